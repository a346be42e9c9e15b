//! Asking: gets the words of the turn, from the model, from the inspector if there is
//! no model, or a line that says why there are none.

mod added;
mod consent;
mod inspector;
mod rounds;
mod stream;
mod tools;

use std::borrow::Cow;
use std::mem;

use super::answer::TurnAnswer;
use super::control::{Control, Order};
use super::deliver::PostedAnswer;
use super::gather::TurnMaterial;
use super::gather::prompt::{self, FittedPrompt};
use super::news::{SentMessage, TurnNews};
use super::{Turn, line};
use crate::llm::{self, AnswerEnd, Completion};
use crate::model::ImagesSent;
use crate::telemetry::event::{LlmFailure, OrderWord, Outcome};
use crate::telemetry::with_sources;
use clew_context::engine::images;
use clew_context::engine::prepare::Prepared;
use clew_context::model::{ChatMessage, Scene, ToolCall};

pub use consent::report_given_up;
pub(super) use stream::AnswerTimes;
pub(super) use tools::ToolsUsed;

use stream::{Said, Streamed, TurnRequest, show, stream};
use tools::ToolLoop;

/// How often a turn asks anew where a request would have been repeated with what has
/// changed by then.
const MAX_CHANGES: u32 = 3;

/// The words of a turn, and what they were made with.
pub(super) type Asked = (TurnAnswer, ToolsUsed);

/// What the model answered to a request, or one repeated after an error.
enum Round {
    /// The turn's words are complete.
    Over(TurnAnswer),
    /// It wants tools called first.
    Calls(Said, Vec<ToolCall>),
}

/// A request to the model, and what happened before.
#[derive(Clone)]
struct NextRequest {
    /// None for the turn's own.
    prompt: Option<FittedPrompt>,
    /// Whether the request before brought no text.
    after_nothing: bool,
}

impl NextRequest {
    /// The first request to a server.
    fn of(turn: &Turn<'_>, material: &TurnMaterial, client: &llm::Client) -> Self {
        Self {
            prompt: prompt::for_server(turn, material, client),
            after_nothing: false,
        }
    }
}

/// Gets the words of a turn. What the model says is shown as it arrives.
pub(super) async fn ask<'a>(
    turn: &'a Turn<'a>,
    material: &'a mut TurnMaterial,
    posted: &mut PostedAnswer<'_>,
    control: &mut Control,
) -> Result<Asked, Order> {
    material.recheck(turn).await;
    if let Some(line) = refusal(material) {
        let refused = TurnAnswer::Line(line.into(), Outcome::Refused);
        return Ok((refused, ToolsUsed::default()));
    }
    let Some(model) = material.model.clone() else {
        let inspected = TurnAnswer::Inspected(inspector::answer(material));
        return Ok((inspected, ToolsUsed::default()));
    };
    let mut asking = Asking {
        turn,
        servers: model.attempts(),
        tools: ToolLoop::new(turn, material),
        material,
        without_images: false,
        attempt: 1,
        changes: 0,
        said: String::new(),
    };
    let answer = match asking.rounds(posted, control).await {
        Err(order) => asking.part(order)?,
        Ok(answer) => answer,
    };
    let answer = asking.tools.finish(answer);
    posted.attach(asking.tools.attachments());
    Ok((answer, asking.tools.used()))
}

/// Why there is nothing to ask, if so.
fn refusal(material: &TurnMaterial) -> Option<&'static str> {
    let collected = &material.collected;
    if collected.target.withheld {
        Some(line::WITHHELD)
    } else if !material.prompt.prepared.has_question {
        let unread = collected.scene == Scene::Thread && !material.fallbacks.is_empty();
        Some(if unread {
            line::UNREAD_THREAD
        } else {
            line::INVITATION
        })
    } else if material.background.is_none() {
        Some(line::NO_AGENT)
    } else {
        None
    }
}

/// A turn that asks the model, perhaps several times.
struct Asking<'a> {
    turn: &'a Turn<'a>,
    material: &'a mut TurnMaterial,
    servers: llm::ServerAttempts<'a>,
    tools: ToolLoop<'a>,
    /// Whether images were refused, or left no room.
    without_images: bool,
    /// The number of the next request, from 1.
    attempt: u32,
    /// How often a request was not repeated since what it shows had changed.
    changes: u32,
    /// What the model has said so far: all of it is shown as it grows; of an agent run only
    /// the last words are.
    said: String,
}

impl Asking<'_> {
    /// Asks until the model calls no more tools, or may not be asked again.
    async fn rounds(
        &mut self,
        posted: &mut PostedAnswer<'_>,
        control: &mut Control,
    ) -> Result<TurnAnswer, Order> {
        self.turn.must_not_be_blocked()?;
        loop {
            self.turn.job.activity.asks_model();
            let (said, calls) = match self.round(posted, control).await? {
                Round::Over(answer) => return Ok(answer),
                Round::Calls(said, calls) => (said, calls),
            };
            let own = said.own().to_owned();
            self.note(said);
            if posted.grows()
                && !own.is_empty()
                && let Some(error) = show(&self.tools.shown(&self.said), posted, control).await?
            {
                return Ok(TurnAnswer::Unpostable(error));
            }
            let server = self.servers.server();
            self.tools
                .run(self.material, server, own, calls, control)
                .await?;
            if let Some(line) = self.turn.spent()? {
                return Ok(self.broken_off(line.clone(), line));
            }
            self.servers.ask_again();
        }
    }

    fn note(&mut self, said: Said) {
        if !said.own().is_empty() {
            self.said = said.text;
        }
    }

    /// What was said, with a line that says why there is no more; or one line alone, also where the
    /// answer before stays.
    fn broken_off(&mut self, why: Cow<'static, str>, alone: Cow<'static, str>) -> TurnAnswer {
        if self.said.is_empty() || self.turn.job.again.is_some() {
            TurnAnswer::Line(alone, Outcome::Failed)
        } else {
            TurnAnswer::BrokenOff(mem::take(&mut self.said), why)
        }
    }

    /// What was said by now, if it is to be shown.
    fn part(&mut self, order: Order) -> Result<TurnAnswer, Order> {
        if self.turn.job.run.is_none() && matches!(order, Order::Stop) {
            self.turn.report.ordered(OrderWord::Stop);
        }
        if self.turn.shows_part(&order) && !self.said.is_empty() {
            Ok(TurnAnswer::Part(mem::take(&mut self.said), order))
        } else {
            Err(order)
        }
    }

    /// Asks the model, again or at the next server if that may help. The client retries
    /// by itself, too.
    async fn round(
        &mut self,
        posted: &mut PostedAnswer<'_>,
        control: &mut Control,
    ) -> Result<Round, Order> {
        let turn = self.turn;
        let mut next = NextRequest::of(turn, self.material, self.servers.client());
        loop {
            if let Some(refused) = self.recheck(&mut next).await {
                return Ok(Round::Over(refused));
            }
            let material = &*self.material;
            let client = self.servers.client();
            let prompt = next.prompt.as_ref().unwrap_or(&material.prompt);
            let (prepared, server) = (&prompt.prepared, self.servers.server());
            let nonce = &prepared.prompt.nonce;
            let takes_images = !self.without_images && client.takes_images();
            let messages = with_images(material, prepared, takes_images);
            let room = client.prompt_room();
            let messages = self
                .tools
                .messages(messages, nonce, room, server, takes_images);
            let images = ImagesSent::of(&messages);
            turn.tell(|| TurnNews::Asks(SentMessage::all(&messages)));
            let collected = &material.collected;
            turn.report
                .asks_model(client.model(), server, prompt, collected, images);
            let request = TurnRequest {
                messages: &messages,
                tools: self.tools.offered(),
                nonce,
                before: if posted.grows() { &self.said } else { "" },
                called: &self.tools,
            };
            let (attempt, tools) = (&mut self.attempt, &self.tools);
            let may_repeat = |error: &llm::Error, took| {
                let reason = error.reason();
                turn.report.request_failed(reason, took, *attempt, true);
                *attempt += 1;
                material.stands(turn) && tools.stands()
            };
            let asked = stream(&mut self.servers, &request, posted, control, may_repeat);
            let (streamed, times) = asked.await;
            let chars = request.chars();
            let (said, error) = match streamed {
                Streamed::Changed(error) if self.changes < MAX_CHANGES => {
                    tracing::info!(%error, "a request is not repeated: what it shows has changed");
                    self.changes += 1;
                    continue;
                }
                Streamed::Changed(error) => (Said::default(), error),
                Streamed::Ordered(said, order) => {
                    self.gave_up(LlmFailure::Cancelled, times);
                    self.note(said);
                    return Err(order);
                }
                Streamed::Refused(error) => {
                    self.gave_up(LlmFailure::Cancelled, times);
                    return Ok(Round::Over(TurnAnswer::Unpostable(error)));
                }
                Streamed::Model { said, calls, end } => match end {
                    Ok(end) => {
                        if images.count > 0 {
                            client.took_images();
                        }
                        turn.report.request_ok(&end, chars, times, self.attempt);
                        let tokens = end.tokens(&messages, said.own(), &calls);
                        turn.job.activity.answered(tokens);
                        self.attempt += 1;
                        return Ok(ended(said, calls, end));
                    }
                    Err(error) => (said, error),
                },
            };
            next = match self.after(&next, said, (&error, times), images) {
                Ok(again) => again,
                Err(failed) => return Ok(Round::Over(failed)),
            };
        }
    }

    /// Judges once more what a request shows. Returns the answer if nothing is asked any more.
    async fn recheck(&mut self, next: &mut NextRequest) -> Option<TurnAnswer> {
        let is_anew = self.material.recheck(self.turn).await;
        // Last, since making the prompt anew may wait for the store.
        self.tools.recheck();
        if !is_anew {
            return None;
        }
        next.prompt = prompt::for_server(self.turn, self.material, self.servers.client());
        let line = refusal(self.material)?;
        Some(TurnAnswer::Line(line.into(), Outcome::Refused))
    }

    /// What to ask after an error, or the answer if nothing more is asked.
    fn after(
        &mut self,
        tried: &NextRequest,
        said: Said,
        (error, times): (&llm::Error, AnswerTimes),
        images: ImagesSent,
    ) -> Result<NextRequest, TurnAnswer> {
        if said.own().is_empty()
            && let Some(again) = self.again(tried, error, images)
        {
            let (report, took) = (&self.turn.report, times.asked.elapsed());
            report.request_failed(error.reason(), took, self.attempt, true);
            self.attempt += 1;
            return Ok(again);
        }
        tracing::warn!(error = %with_sources(error), "the model gave no answer");
        let reason = error.reason();
        self.gave_up(reason, times);
        self.note(said);
        let alone = line::model_failed(reason).into();
        Err(self.broken_off(line::BROKE_OFF.into(), alone))
    }

    /// Reports that the last request has no answer, and no other follows.
    fn gave_up(&self, reason: LlmFailure, times: AnswerTimes) {
        let (report, took) = (&self.turn.report, times.asked.elapsed());
        report.request_failed(reason, took, self.attempt, false);
    }
}

/// The prompt's messages, with images if the server's model takes them.
fn with_images<'p>(
    material: &TurnMaterial,
    prepared: &'p Prepared,
    takes_images: bool,
) -> Cow<'p, [ChatMessage]> {
    let images = &material.images.images;
    if images.is_empty() || !takes_images {
        return Cow::Borrowed(&prepared.prompt.messages);
    }
    Cow::Owned(images::with_images(&material.collected, prepared, images))
}

fn ended(said: Said, calls: Vec<ToolCall>, end: AnswerEnd) -> Round {
    if calls.is_empty() {
        let text = said.text;
        Round::Over(TurnAnswer::Whole(Completion { text, end }))
    } else {
        Round::Calls(said, calls)
    }
}

impl Asking<'_> {
    /// What to ask next after an error without text, if that may help: another server, the
    /// same without images, less after a prompt that was too long, else the same.
    fn again(
        &mut self,
        tried: &NextRequest,
        error: &llm::Error,
        images: ImagesSent,
    ) -> Option<NextRequest> {
        let (turn, material) = (self.turn, &*self.material);
        if self.servers.move_on(error) {
            return Some(NextRequest::of(turn, material, self.servers.client()));
        }
        match error {
            llm::Error::ImagesRefused { by_model, .. } => {
                let client = self.servers.client();
                self.without_images = client.refused_images(*by_model);
                self.without_images.then(|| tried.clone())
            }
            // Images go before words.
            llm::Error::ContextTooLong { .. } if images.count > 0 => {
                self.without_images = true;
                Some(tried.clone())
            }
            llm::Error::ContextTooLong { .. } if self.tools.shorten() => Some(tried.clone()),
            llm::Error::ContextTooLong { limit, .. } => {
                let client = self.servers.client();
                let tried_prompt = tried.prompt.as_ref().unwrap_or(&material.prompt);
                let smaller = prompt::smaller(turn, material, client, tried_prompt, *limit)?;
                Some(NextRequest {
                    prompt: Some(smaller),
                    after_nothing: tried.after_nothing,
                })
            }
            llm::Error::Empty { .. } | llm::Error::Truncated { .. } if !tried.after_nothing => {
                Some(NextRequest {
                    prompt: tried.prompt.clone(),
                    after_nothing: true,
                })
            }
            _ => None,
        }
    }
}
