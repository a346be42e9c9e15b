//! One question and its answer: sent until the server accepts it, then read.

use std::time::Duration;

use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, sleep, timeout_at};

use super::answer::ArrivingAnswer;
use super::capabilities::Extra;
use super::dialect::{Dialect, refuses_tools};
use super::meter::{Charge, TokenAccount};
use super::redact::Redactor;
use super::stream::{self, AnswerPieces, WITHOUT_END};
use super::{AnswerStep, Client, Error, vision};
use crate::model::ToolDefinition;
use clew_context::engine::echo::Echo;
use clew_context::model::ChatMessage;

/// The wait before the second attempt if the server does not name one.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The longest wait for which the last server is still asked again; while another is
/// left, [`RETRY_DELAY`] is.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// How long a question may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestLimits {
    /// When the whole answer must be there.
    pub(super) deadline: Instant,
    /// Whether there is no other server to ask.
    pub(super) is_last_server: bool,
}

/// A question to the model and its answer, from the first attempt to the end.
pub(super) struct ModelRequest<'a> {
    client: &'a Client,
    prompt: &'a [ChatMessage],
    /// None from when they were refused; what tools gave is then sent as text.
    tools: &'a [ToolDefinition],
    limits: RequestLimits,
    account: Option<&'a TokenAccount>,
    /// Counts the tokens of what was sent last.
    charge: Option<Charge<'a>>,
    /// Whether it was sent again after an error that may pass; done only once.
    has_retried: bool,
    state: RequestState,
    answer: ArrivingAnswer,
}

enum RequestState {
    /// The server has not accepted the question yet.
    Sending,
    Reading(AnswerPieces),
    /// With the error that the caller has not seen yet.
    Over(Option<Error>),
}

impl<'a> ModelRequest<'a> {
    /// Asks one server; see [`ServerAttempts::answer`](super::ServerAttempts::answer).
    pub(super) fn ask(
        client: &'a Client,
        prompt: &'a [ChatMessage],
        tools: &'a [ToolDefinition],
        echo: Echo,
        limits: RequestLimits,
        account: Option<&'a TokenAccount>,
    ) -> impl Stream<Item = Result<AnswerStep, Error>> + Send + 'a {
        let request = Self {
            client,
            prompt,
            tools,
            limits,
            account,
            charge: None,
            has_retried: false,
            state: RequestState::Sending,
            answer: ArrivingAnswer::of_at_most(client.settings.max_answer_bytes, echo),
        };
        unfold(request, Self::next)
    }

    /// The next step, or the error that ends the answer; and what remains.
    async fn next(mut self) -> Option<(Result<AnswerStep, Error>, Self)> {
        loop {
            if let Some(step) = self.answer.next_step() {
                return Some((Ok(step), self));
            }
            if let RequestState::Over(error) = &mut self.state {
                let error = error.take()?;
                return Some((Err(error), self));
            }
            let advanced = timeout_at(self.limits.deadline, self.advance()).await;
            match advanced.unwrap_or(Err(Error::Timeout)) {
                Ok(Some((error, failed))) => {
                    let retry = AnswerStep::Retry(self.redacted(error), failed);
                    return Some((Ok(retry), self));
                }
                Ok(None) => {}
                Err(error) => self.fail(error),
            }
        }
    }

    /// Sends the question, or reads one piece. Returns the error because of which the
    /// question is sent again at once, and when it came.
    async fn advance(&mut self) -> Result<Option<(Error, Instant)>, Error> {
        match &mut self.state {
            RequestState::Sending => return self.send().await,
            RequestState::Reading(pieces) => {
                let piece = pieces.next().await.transpose()?;
                let is_last = piece.is_none();
                let piece = piece.unwrap_or_default();
                if let Some(charge) = &mut self.charge {
                    charge.take(piece.bytes(), piece.usage);
                }
                self.answer.take(piece)?;
                if is_last || self.answer.is_cut_off() {
                    self.finish();
                }
            }
            RequestState::Over(_) => {}
        }
        Ok(None)
    }

    async fn send(&mut self) -> Result<Option<(Error, Instant)>, Error> {
        let Client {
            settings,
            capabilities,
            ..
        } = self.client;
        let model = &settings.model;
        let dialect = capabilities.dialect(model);
        if !capabilities.takes(Extra::Tools, model, Instant::now()) {
            self.tools = &[];
        }
        let charge = |account| Charge::new(account, self.prompt);
        self.charge = self.account.map(charge);
        let error = match self.client.post(self.prompt, self.tools, dialect).await {
            Ok(response) => {
                self.state =
                    RequestState::Reading(stream::pieces(response, settings.timeout).await?);
                return Ok(None);
            }
            Err(error) => error.without_prompt(&self.redactor()),
        };
        let failed = Instant::now();
        if !matches!(error, Error::Timeout)
            && let Some(charge) = self.charge.take()
        {
            charge.waive();
        }
        let names_images = self.has_images() && vision::names_images(&error);
        if !names_images && self.corrects(&error, dialect) {
            return Ok(Some((error, failed)));
        }
        let error = self.blamed(error);
        match self.retry_delay(&error) {
            Some(delay) if !self.has_retried => {
                self.has_retried = true;
                sleep(delay).await;
                Ok(Some((error, failed)))
            }
            _ => Err(error),
        }
    }

    /// Whether something that the server rejected is left out or replaced from now on: what may
    /// be the fault of this request's tools, in this request only.
    fn corrects(&mut self, error: &Error, dialect: Dialect) -> bool {
        let (capabilities, model) = (&self.client.capabilities, self.client.model());
        if !self.tools.is_empty()
            && let Some(knows_none) = refuses_tools(error)
        {
            self.tools = &[];
            if knows_none {
                capabilities.refused(Extra::Tools, model, Instant::now());
            }
            return true;
        }
        let better = dialect.corrected_by(error);
        let learnt = better.map(|better| capabilities.learn_dialect(model, better));
        learnt.is_some()
    }

    fn finish(&mut self) {
        if self.answer.has_calls() && !self.tools.is_empty() {
            let (capabilities, model) = (&self.client.capabilities, self.client.model());
            capabilities.took(Extra::Tools, model, Instant::now());
        }
        self.state = RequestState::Over(self.answer.end().err());
    }

    /// Ends the answer because of an error; what has arrived is passed on first.
    fn fail(&mut self, error: Error) {
        self.answer.flush();
        let has_text = self.answer.has_text();
        let endless = matches!(error, Error::Malformed { what: WITHOUT_END });
        if endless && has_text {
            self.answer.cut_off();
            self.finish();
            return;
        }
        let error = self.redacted(self.blamed(error));
        self.state = RequestState::Over(Some(if has_text { error.after_text() } else { error }));
    }

    /// The error, which may be because of images if there are any.
    fn blamed(&self, error: Error) -> Error {
        if self.has_images() {
            vision::of_images(error)
        } else {
            error
        }
    }

    fn has_images(&self) -> bool {
        let mut images = self.prompt.iter().flat_map(ChatMessage::images);
        images.next().is_some()
    }

    fn redactor(&self) -> Redactor<'a> {
        Redactor::new(self.client.settings.api_key.as_ref(), self.prompt)
    }

    fn redacted(&self, error: Error) -> Error {
        error.redacted(&self.redactor())
    }

    /// How long to wait before a second attempt; none if that would not help, or if
    /// another server is asked sooner.
    fn retry_delay(&self, error: &Error) -> Option<Duration> {
        let (Error::RateLimited { retry_after, .. } | Error::Unavailable { retry_after, .. }) =
            error
        else {
            return None;
        };
        let delay = retry_after.unwrap_or(RETRY_DELAY);
        let longest = if self.limits.is_last_server {
            MAX_RETRY_DELAY
        } else {
            RETRY_DELAY
        };
        (delay <= longest && delay < self.client.settings.timeout).then_some(delay)
    }
}
