//! Asking: asks the model, again with less if the prompt was too long, and
//! concludes with its answer or failure.

use std::borrow::Cow;

use tokio::time::Instant;

use super::answer::{self, Ended, Times};
use super::control::{Control, Order};
use super::gather::{MAX_HALVINGS, Material};
use super::reply::Posted;
use super::{Done, Turn, line};
use crate::llm::{self, Completion};
use crate::telemetry::event::{Finish, LlmFailure, Outcome, RequestFailed, RequestOk};
use crate::telemetry::{Ms, with_sources};
use clew_context::engine::assemble::Prompt;
use clew_context::engine::prepare::Prepared;

/// A request to the model: the prompt, and what happened before.
struct Try<'a> {
    prepared: Cow<'a, Prepared>,
    /// How often its context was halved.
    halvings: u32,
    /// Whether the request before brought no text.
    after_nothing: bool,
}

/// A request that is over.
struct Asked<'a> {
    prompt: &'a Prompt,
    /// The number of the attempt, from 1.
    attempt: u32,
    times: Times,
}

impl Turn<'_> {
    /// Asks the model and shows its answer.
    pub(super) async fn ask(
        &self,
        model: &llm::Client,
        material: &Material,
        posted: &mut Posted<'_>,
        control: &mut Control,
    ) -> Result<Done, Order> {
        let mut next = Try {
            prepared: Cow::Borrowed(&material.prepared),
            halvings: material.halvings,
            after_nothing: false,
        };
        let mut attempt = 1;
        loop {
            let prompt = &next.prepared.prompt;
            let (ended, asked) = self.request(model, prompt, attempt, posted, control).await;
            if let Ended::Model(Err(error)) = &ended
                && let Some(again) = self.again(model, material, &next, error)
            {
                self.failed(failure(error), asked.attempt, true);
                attempt = asked.attempt + 1;
                next = again;
                continue;
            }
            let outcome = self.conclude(ended, &asked, material, posted, control);
            return Ok(self.asked(outcome.await?, material));
        }
    }

    /// Sends one prompt, which the client may retry.
    async fn request<'p>(
        &self,
        model: &llm::Client,
        prompt: &'p Prompt,
        mut attempt: u32,
        posted: &mut Posted<'_>,
        control: &mut Control,
    ) -> (Ended, Asked<'p>) {
        // Kept from the first request if there was one.
        let _ = self.model_asked.set(Instant::now());
        let on_retry = |error: &llm::Error| {
            self.failed(failure(error), attempt, true);
            attempt += 1;
        };
        let (ended, times) = answer::stream(model, prompt, posted, control, on_retry).await;
        let asked = Asked {
            prompt,
            attempt,
            times,
        };
        (ended, asked)
    }

    /// What to ask next if that may help: less after a prompt that was too
    /// long, the same after an answer without text.
    fn again<'a>(
        &self,
        model: &llm::Client,
        material: &Material,
        tried: &Try<'a>,
        error: &llm::Error,
    ) -> Option<Try<'a>> {
        match error {
            llm::Error::ContextTooLong { limit, .. } => {
                let (prepared, halvings) = self.smaller(model, material, tried, *limit)?;
                Some(Try {
                    prepared: Cow::Owned(prepared),
                    halvings,
                    after_nothing: tried.after_nothing,
                })
            }
            llm::Error::Empty { .. } | llm::Error::Truncated { .. }
                if error.partial().is_empty() && !tried.after_nothing =>
            {
                Some(Try {
                    prepared: tried.prepared.clone(),
                    halvings: tried.halvings,
                    after_nothing: true,
                })
            }
            _ => None,
        }
    }

    /// The next smaller prompt that may fit; from then on the model's limit is
    /// known.
    fn smaller(
        &self,
        model: &llm::Client,
        material: &Material,
        tried: &Try<'_>,
        limit: Option<u32>,
    ) -> Option<(Prepared, u32)> {
        let collected = &material.collected;
        let background = material.background.as_ref();
        let size = |prepared: &Prepared| llm::tokens(&prepared.prompt.messages);
        let half = (tried.halvings + 1..=MAX_HALVINGS)
            .map(|halvings| {
                let prepared = self.prepare(collected, background, halvings);
                (prepared, halvings)
            })
            .find(|(prepared, _)| size(prepared) < size(&tried.prepared))?;
        model.learn_room(size(&half.0), limit);
        Some(self.fitted(collected, background, half, model.prompt_room()))
    }

    /// Facts are learnt only from turns that were answered, and thus recorded.
    fn asked(&self, outcome: Outcome, material: &Material) -> Done {
        let answered = outcome == Outcome::Answered;
        Done {
            outcome,
            lesson: answered
                .then(|| self.lesson(material))
                .flatten()
                .map(Box::new),
        }
    }

    async fn conclude(
        &self,
        ended: Ended,
        asked: &Asked<'_>,
        material: &Material,
        posted: &mut Posted<'_>,
        control: &mut Control,
    ) -> Result<Outcome, Order> {
        match ended {
            Ended::Ordered(order) => {
                self.failed(LlmFailure::Cancelled, asked.attempt, false);
                Err(order)
            }
            Ended::Refused(error) => {
                self.failed(LlmFailure::Cancelled, asked.attempt, false);
                Ok(self.outcome(Err(error), Outcome::Failed).await)
            }
            Ended::Model(Ok(completion)) => {
                self.succeeded(&completion, asked);
                let outcome = self.finish(posted, &completion.text).await;
                if outcome == Outcome::Answered {
                    let cut_off = completion.finish_reason == llm::FinishReason::CutOff;
                    if cut_off && posted.cut().is_none() {
                        self.tell_cut_off(posted).await;
                    }
                    if let Some(order) = control.revoked() {
                        return Err(order);
                    }
                    control.answered();
                    let shown = posted.shown(&completion.text);
                    self.record(material, posted, shown).await;
                }
                Ok(outcome)
            }
            Ended::Model(Err(error)) => Ok(self.excuse(&error, asked.attempt, posted).await),
        }
    }

    /// Says that the answer was cut off. The answer is fine without this line.
    async fn tell_cut_off(&self, posted: &mut Posted<'_>) {
        if let Err(error) = posted.say(line::CUT_OFF).await {
            tracing::info!(%error, "the asker was not told that the answer was cut off");
        }
    }

    /// Posts what came before the failure, or one line that says what to do.
    async fn excuse(&self, error: &llm::Error, attempt: u32, posted: &mut Posted<'_>) -> Outcome {
        tracing::warn!(error = %with_sources(error), "the model gave no answer");
        let reason = failure(error);
        self.failed(reason, attempt, false);
        if error.partial().trim().is_empty() {
            let said = posted.say(line::model_failed(reason)).await;
            return self.outcome(said, Outcome::Failed).await;
        }
        let text = format!("{}{}", error.partial(), line::BROKE_OFF);
        self.finish(posted, &text).await;
        Outcome::Failed
    }

    fn failed(&self, reason: LlmFailure, attempt: u32, will_retry: bool) {
        self.emit(RequestFailed {
            reason,
            attempt,
            will_retry,
            model: self.model_name(),
            agent: self.agent_name(),
        });
    }

    fn succeeded(&self, completion: &Completion, asked: &Asked<'_>) {
        let times = asked.times;
        let first = times.first_words.unwrap_or_else(Instant::now);
        self.emit(RequestOk {
            ms_first: Ms::from(first - times.asked),
            ms: Ms::from(times.asked.elapsed()),
            prompt_chars: asked.prompt.chars,
            prompt_tokens: completion.usage.map(|usage| usage.prompt_tokens),
            completion_tokens: completion.usage.map(|usage| usage.completion_tokens),
            finish: finish(completion.finish_reason),
            attempt: asked.attempt,
            model: self.model_name(),
            agent: self.agent_name(),
        });
    }
}

fn failure(error: &llm::Error) -> LlmFailure {
    match error {
        llm::Error::Unauthorized { .. } => LlmFailure::Unauthorized,
        llm::Error::RateLimited { .. } => LlmFailure::RateLimited,
        llm::Error::ContextTooLong { .. } => LlmFailure::ContextTooLong,
        llm::Error::Unavailable { .. } => LlmFailure::Unavailable,
        llm::Error::ModelNotFound { .. } => LlmFailure::NotFound,
        llm::Error::Rejected { .. } | llm::Error::Malformed { .. } => LlmFailure::Malformed,
        llm::Error::Timeout { .. } => LlmFailure::Timeout,
        llm::Error::Empty { .. } => LlmFailure::Empty,
        llm::Error::Truncated { .. } => LlmFailure::Truncated,
    }
}

fn finish(reason: llm::FinishReason) -> Finish {
    match reason {
        llm::FinishReason::Stop => Finish::Stop,
        llm::FinishReason::Length => Finish::Length,
        llm::FinishReason::ContentFilter => Finish::ContentFilter,
        llm::FinishReason::CutOff => Finish::CutOff,
        llm::FinishReason::Other => Finish::Other,
    }
}
