//! Delivering: posts the whole answer, and deals with places where it cannot.

use tokio::time::Instant;

use super::control::Order;
use super::reply::{Destination, Posted};
use super::{Turn, answer};
use crate::telemetry::event::{Outcome, SendFallback, SendStage, Sent, TailFallback};
use crate::telemetry::with_sources;
use clew_context::discord::error::RestError;
use clew_context::engine::turn::Collected;
use clew_context::model::{
    Cause, ChannelKind, Fallback, Message, MessageFlags, MessageKind, Referenced,
};

/// The reaction that says that we cannot write here.
const CANNOT_WRITE: &str = "🔇";
/// The reaction that says that an answer could not be posted.
const NOT_POSTED: &str = "⚠️";

impl Turn<'_> {
    /// Where the answer goes.
    pub(super) fn destination(&self, collected: &Collected) -> Destination {
        if let Some(interaction) = self.request.cause.interaction() {
            return Destination::Interaction(Box::new(interaction.clone()));
        }
        let target = collected.target.reply_to.as_ref();
        Destination::Channel {
            channel: self.request.trigger.channel,
            reply_to: target.map(|target| target.id),
            ping: target.is_some_and(|target| target.author.id == self.request.asker()),
        }
    }

    /// An answer of which nothing is posted yet, noting whether files may be
    /// attached. A command's answer needs no permission.
    pub(super) fn posted(&self, destination: Destination) -> Posted<'_> {
        let is_channel = matches!(destination, Destination::Channel { .. });
        let forbidden = is_channel && self.our_access().forbids(|rights| rights.attach);
        Posted::new(
            self.services,
            destination,
            self.request.turn(),
            self.attempt,
        )
        .without_file(forbidden.then_some(Fallback::Forbidden))
    }

    /// Nothing is posted yet, but a command shows that we are thinking.
    pub(super) async fn interrupted(&self, order: &Order) {
        let interaction = self.request.cause.interaction();
        if let (Some(interaction), Order::Cancel | Order::Abandon) = (interaction, order) {
            let destination = Destination::Interaction(Box::new(interaction.clone()));
            self.posted(destination).remove().await;
        }
    }

    /// Shows the whole answer.
    pub(super) async fn finish(&self, posted: &mut Posted<'_>, text: &str) -> Outcome {
        let shown = answer::show(posted, text).await;
        if shown.is_ok() {
            self.remember(posted);
            self.emit(Sent {
                messages: posted.messages(),
                chars: posted.shown(text).chars().count(),
                attached: posted.attached,
                edits: posted.edits,
                reply: posted.replied(),
                pinged: posted.pinged(),
            });
        }
        self.outcome(shown, Outcome::Answered).await
    }

    /// The next turn here may start before the gateway delivers the answer.
    fn remember(&self, posted: &Posted<'_>) {
        let trigger = &self.request.trigger;
        let us = self.services.us(self.ids.guild);
        let kind = match self.request.cause {
            Cause::Mention | Cause::Direct | Cause::AutoReply => MessageKind::Default,
            Cause::Ask(_) => MessageKind::ChatInputCommand,
            Cause::AskAbout(..) => MessageKind::ContextMenuCommand,
        };
        let mut window = self.services.window();
        for (id, content) in posted.parts() {
            window.posted(Message {
                id,
                channel: trigger.channel,
                guild: self.ids.guild,
                kind,
                author: us.author(),
                timestamp: id.created(),
                edited: None,
                flags: MessageFlags::default(),
                content: content.into(),
                reference: None,
                referenced: Referenced::Absent,
                mentions: Box::default(),
                mention_roles: Box::default(),
                extras: None,
                withheld: false,
            });
        }
    }

    /// The outcome of the turn, depending on whether its words could be shown.
    pub(super) async fn outcome(
        &self,
        shown: Result<(), RestError>,
        otherwise: Outcome,
    ) -> Outcome {
        match shown {
            Ok(()) => otherwise,
            Err(error) => {
                self.undelivered(error).await;
                Outcome::Failed
            }
        }
    }

    async fn undelivered(&self, error: RestError) {
        let may_react = !self.our_access().forbids(|rights| rights.react);
        match error.reason {
            Fallback::Forbidden | Fallback::Locked | Fallback::Archived => {
                self.cannot_write(may_react, error.reason).await;
            }
            reason => {
                tracing::warn!(error = %with_sources(&error), "an answer could not be sent");
                self.sending(reason, SendStage::Create);
                if may_react && self.request.cause.interaction().is_none() {
                    self.react(NOT_POSTED).await;
                }
            }
        }
    }

    /// Reacts to the trigger if that is allowed; otherwise logs it.
    pub(super) async fn cannot_write(&self, may_react: bool, reason: Fallback) {
        self.sending(reason, SendStage::Create);
        let kind = self.request.channel_kind;
        if kind.is_some_and(ChannelKind::is_thread) {
            self.emit(TailFallback { reason });
        }
        let is_message = self.request.cause.interaction().is_none();
        if may_react && is_message && self.react(CANNOT_WRITE).await {
            return;
        }
        let channel = self.request.trigger.channel;
        let recall = &self.services.recall;
        if recall.first_today(channel, Instant::now()) {
            tracing::warn!(%channel, %reason,
                "cannot write in this channel: give the bot Send Messages (in threads Send \
                 Messages in Threads) there, or deny it View Channel");
        }
    }

    async fn react(&self, sign: &str) -> bool {
        let trigger = &self.request.trigger;
        let deadline = Instant::now() + super::ASIDE_TIMEOUT;
        let rest = &self.services.rest;
        let reacted = rest.add_reaction(trigger.channel, trigger.id, sign, deadline);
        match reacted.await {
            Ok(()) => true,
            Err(error) => {
                self.sending(error.reason, SendStage::React);
                false
            }
        }
    }

    /// Reports what it took to post the answer.
    pub(super) fn report(&self, posted: &Posted<'_>) {
        if let Some(reason) = posted.reference_dropped {
            self.sending(reason, SendStage::Reference);
        }
        if let Some(reason) = posted.cut() {
            self.sending(reason, SendStage::Attach);
        }
    }

    fn sending(&self, reason: Fallback, stage: SendStage) {
        self.emit(SendFallback { reason, stage });
    }
}
