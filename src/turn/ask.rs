//! Asking: the model is asked, once more with half the room if the prompt was
//! too long, and its answer or its failure concluded.

use tokio::time::Instant;

use super::answer::{self, Ended, Times};
use super::control::{Control, Order};
use super::gather::Material;
use super::outlet::Posted;
use super::remember::Background;
use super::{Done, Turn, line};
use crate::llm::{self, Completion};
use crate::telemetry::event::{Finish, LlmFailure, Outcome, RequestFailed, RequestOk};
use crate::telemetry::{Ms, with_sources};
use clew_context::collect::prepare::halved;
use clew_context::model::ChatMessage;

/// One request to the model.
struct Asked<'a> {
    prompt: &'a [ChatMessage],
    /// From 1.
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
        let prompt = &material.prepared.prompt.messages;
        let (ended, asked) = self.request(model, prompt, 1, posted, control).await;
        if !is_too_long(&ended) {
            let outcome = self
                .conclude(ended, &asked, material, posted, control)
                .await?;
            return Ok(self.asked(outcome, material));
        }
        self.failed(LlmFailure::ContextTooLong, asked.attempt, true);
        let limits = halved(&self.services.settings.limits);
        let background = material.background.as_ref().map(Background::halved);
        let smaller = self.prepare(
            &material.us,
            &material.collected,
            background.as_ref(),
            &limits,
        );
        let prompt = &smaller.prompt.messages;
        let (ended, asked) = self
            .request(model, prompt, asked.attempt + 1, posted, control)
            .await;
        let outcome = self
            .conclude(ended, &asked, material, posted, control)
            .await?;
        Ok(self.asked(outcome, material))
    }

    /// One prompt, asked once more if the client does that.
    async fn request<'p>(
        &self,
        model: &llm::Client,
        prompt: &'p [ChatMessage],
        mut attempt: u32,
        posted: &mut Posted<'_>,
        control: &mut Control,
    ) -> (Ended, Asked<'p>) {
        let max_messages = self.services.settings.max_messages;
        // An earlier one counts.
        let _ = self.model_asked.set(Instant::now());
        let on_retry = |error: &llm::Error| {
            self.failed(failure(error), attempt, true);
            attempt += 1;
        };
        let (ended, times) =
            answer::stream(model, prompt, posted, control, max_messages, on_retry).await;
        let asked = Asked {
            prompt,
            attempt,
            times,
        };
        (ended, asked)
    }

    /// Only what was answered, and thus recorded, is learnt from.
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
                    if completion.finish_reason == llm::FinishReason::CutOff {
                        self.tell_cut_off(posted).await;
                    }
                    if let Some(order) = control.revoked() {
                        return Err(order);
                    }
                    control.answered();
                    self.record(material, posted, &completion.text).await;
                }
                Ok(outcome)
            }
            Ended::Model(Err(error)) => Ok(self.excuse(&error, asked.attempt, posted).await),
        }
    }

    /// The answer is posted; without this line too it is a good one.
    async fn tell_cut_off(&self, posted: &mut Posted<'_>) {
        if let Err(error) = posted.say(line::CUT_OFF).await {
            tracing::info!(%error, "the asker was not told that the answer was cut off");
        }
    }

    /// What came before the failure, or one line that says what to do.
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
        let chars = asked.prompt.iter().map(|one| one.content.chars().count());
        self.emit(RequestOk {
            ms_first: Ms::from(first - times.asked),
            ms: Ms::from(times.asked.elapsed()),
            prompt_chars: chars.sum(),
            prompt_tokens: completion.usage.map(|usage| usage.prompt_tokens),
            completion_tokens: completion.usage.map(|usage| usage.completion_tokens),
            finish: finish(completion.finish_reason),
            attempt: asked.attempt,
            model: self.model_name(),
            agent: self.agent_name(),
        });
    }
}

fn is_too_long(ended: &Ended) -> bool {
    matches!(ended, Ended::Model(Err(llm::Error::ContextTooLong { .. })))
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
