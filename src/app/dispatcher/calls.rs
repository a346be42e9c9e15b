//! Calls of our commands, and other requests to Discord outside of turns.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::loop_event::{CatchUpNews, LoopEvent};
use super::Dispatcher;
use super::carry_out::{CALL_TIMEOUT, carry_out};
use super::catching_up::tell;
use crate::commands::{self, Planned, Refused};
use crate::model::Payer;
use crate::telemetry::Ids;
use crate::telemetry::event::Refusal;
use crate::telemetry::with_sources;
use crate::turn;
use crate::turn::patience::{doubling, patiently};
use clew_context::engine::admission::Denied;
use clew_context::engine::meaning::NOTE_PREFIX;
use clew_context::model::{ApplicationId, GuildId, Interaction, TurnRequest};
use clew_discord::commands::register;
use clew_discord::event::IncomingInteraction;
use clew_discord::model::Answer;
use clew_discord::send::{Callback, MessageText};
use clew_discord::session::Mark;

/// How long fetching the parts of a server that its event lacked may take, all tries together.
const FILL_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before the second try; doubled for each further one.
const FILL_PAUSE: Duration = Duration::from_millis(500);

impl Dispatcher {
    /// Handles a call. A command that asks a question gets "thinking" at once and
    /// a place in the queue; others run in the background; or the call is
    /// refused in a line.
    pub(super) fn interaction(&mut self, incoming: IncomingInteraction) {
        let interaction = incoming.interaction.clone();
        let channel = self.services.guild_state.channel(interaction.channel);
        let mode = self.mode(
            interaction.guild,
            interaction.channel,
            channel.as_ref().and_then(|channel| channel.parent),
        );
        match commands::plan(incoming, channel, &self.rules.access, mode) {
            Ok(Planned::Turn(request)) => {
                if self.services.is_blocked(self.payer(&request)) {
                    // Before "thinking", which others may see.
                    let line = turn::BLOCKED.to_owned();
                    return self.refuse_call(interaction, Refusal::Blocked, None, line);
                }
                self.think(interaction, request);
            }
            Ok(Planned::Run(call)) => {
                if call.asks_model()
                    && let Err(reason) = self.may_ask(call.payer(&self.services.memory))
                {
                    let line = turn::refusal(reason, self.services.memory.now());
                    let line = line.unwrap_or_default().into_owned();
                    return self.refuse_call(interaction, reason, None, line);
                }
                let (services, loop_events) =
                    (Arc::clone(&self.services), self.loop_events.clone());
                let stopped = self.stopped.clone();
                self.tracker.spawn(async move {
                    carry_out(&services, &loop_events, *call, &stopped).await;
                });
            }
            Ok(Planned::NoChoices) => {
                self.answer_at_once(interaction, Callback::Autocomplete(Vec::new()));
            }
            Err(refused) => {
                let denied = match refused {
                    Refused::NotAllowed(denied) => Some(denied),
                    _ => None,
                };
                let line = format!("{NOTE_PREFIX}{}", refused.line());
                self.refuse_call(interaction, reason(refused), denied, line);
            }
        }
    }

    /// Anything that asks the model counts as a question.
    ///
    /// # Errors
    /// Why they may not.
    pub(super) fn may_ask(&mut self, payer: Payer) -> Result<(), Refusal> {
        if let Some(refused) = self.services.may_not_ask(payer) {
            return Err(refused);
        }
        if self.question_rate.take(payer, Instant::now()) {
            Ok(())
        } else {
            Err(Refusal::UserRate)
        }
    }

    fn refuse_call(
        &mut self,
        interaction: Interaction,
        reason: Refusal,
        denied: Option<Denied>,
        line: String,
    ) {
        let ids = Ids::from(&interaction);
        self.emit_refused(&ids, reason, denied);
        self.answer_at_once(interaction, Callback::Message(Answer::for_caller(line)));
    }

    /// Says that the answer will come. Only now can it become one that the asker alone
    /// sees, as what the question points at may demand.
    fn think(&self, interaction: Interaction, mut request: Box<TurnRequest>) {
        let (services, loop_events) = (Arc::clone(&self.services), self.loop_events.clone());
        self.tracker.spawn(async move {
            request.is_private |= turn::is_for_asker_only(&services, &request);
            let ephemeral = request.is_private;
            let thinking = Callback::Deferred { ephemeral };
            let deadline = Instant::now() + CALL_TIMEOUT;
            let (answering, is_noted) = tokio::join!(
                services
                    .rest
                    .answer_interaction(&interaction, &thinking, deadline),
                services.claims.note_call(interaction.id),
            );
            match answering {
                // The loop is gone only when the process ends.
                Ok(()) if is_noted => drop(loop_events.send(LoopEvent::Ask(request))),
                // This process is the bot no more.
                Ok(()) => {}
                Err(error) => tracing::warn!(%error, "a command could not be answered in time"),
            }
        });
    }

    fn answer_at_once(&self, interaction: Interaction, answer: Callback) {
        let services = Arc::clone(&self.services);
        self.tracker.spawn(async move {
            // Choices change nothing, and are asked for with each key.
            if !matches!(answer, Callback::Autocomplete(_)) {
                services.claims.note_call(interaction.id).await;
            }
            let deadline = Instant::now() + CALL_TIMEOUT;
            let rest = &services.rest;
            let answered = rest.answer_interaction(&interaction, &answer, deadline);
            if let Err(error) = answered.await {
                tracing::warn!(%error, "a command could not be answered in time");
            }
        });
    }

    /// Replaces "thinking" by the line.
    pub(super) fn answer_call(&self, interaction: Interaction, line: Cow<'static, str>) {
        let services = Arc::clone(&self.services);
        self.tracker.spawn(async move {
            let deadline = Instant::now() + CALL_TIMEOUT;
            let (rest, text) = (&services.rest, MessageText::plain(&line));
            let answered = rest.edit_original(&interaction, &text, deadline);
            if let Err(error) = answered.await {
                tracing::warn!(%error, "a command could not be answered");
            }
        });
    }

    /// Takes "thinking" away.
    pub(super) fn withdraw_call(&self, interaction: Interaction) {
        let services = Arc::clone(&self.services);
        self.tracker.spawn(async move {
            let deadline = Instant::now() + CALL_TIMEOUT;
            let withdrawn = services.rest.delete_original(&interaction, deadline);
            if let Err(error) = withdrawn.await {
                tracing::warn!(%error, "a refused command is still shown as thinking");
            }
        });
    }

    pub(super) fn register_commands(&self, application: ApplicationId) {
        let services = Arc::clone(&self.services);
        self.tracker.spawn(async move {
            let commands = commands::specs(services.settings.mcp_listen.is_some());
            match register(&services.rest, application, None, &commands).await {
                Ok(true) => tracing::info!("commands were registered"),
                Ok(false) => {}
                Err(error) => tracing::warn!(
                    error = %with_sources(&error),
                    "commands could not be registered; mentions work without"
                ),
            }
        });
    }

    /// Fetches a server whose event lacked parts.
    pub(super) fn fill(&self, mark: Mark, guild: GuildId) {
        let (services, loop_events) = self.for_task();
        self.tracker.spawn(async move {
            let deadline = Instant::now() + FILL_TIMEOUT;
            let fill = || services.guild_state.fill(&services.rest, guild, deadline);
            let pauses = doubling(FILL_PAUSE, deadline);
            match patiently(pauses, fill, |error| error.transient).await {
                Ok(newest) => tell(&loop_events, CatchUpNews::Filled(mark, guild, newest)),
                Err(error) => tracing::warn!(%error, %guild, "a server could not be filled in"),
            }
        });
    }
}

const fn reason(refused: Refused) -> Refusal {
    match refused {
        Refused::Elsewhere => Refusal::Elsewhere,
        Refused::NotAllowed(_) | Refused::SwitchedOff | Refused::NotTheirs => Refusal::NotAllowed,
        Refused::Unknown | Refused::TooOld => Refusal::UnknownCommand,
        Refused::NoMessage => Refusal::NoContent,
    }
}
