//! Questions and calls that get no turn: a line for whoever asked, and an event.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{CHANNELS_REMEMBERED, Dispatcher};
use crate::model::Spender;
use crate::telemetry::Ids;
use crate::telemetry::event::{Refusal, TriggerRefused};
use crate::turn;
use clew_context::engine::admission::Denied;
use clew_context::model::{ChannelId, Message, TurnRequest};
use clew_discord::send::NewMessage;

/// How long sending a refusal may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How many refused questions are remembered, over all channels.
const REFUSED_REMEMBERED: usize = 1_024;

impl Dispatcher {
    /// Tells the caller of a command that it will not be answered before the end.
    pub(super) fn stopping(&mut self, request: &TurnRequest) {
        if let Some(interaction) = request.cause.interaction() {
            let ids = self.ids(&request.trigger);
            self.emit_refused(&ids, Refusal::Stopping, None);
            self.answer_call(interaction.clone(), turn::INTERRUPTED.into());
        }
    }

    /// The refusal counts as the answer: a restart does not give another.
    pub(super) fn refuse_request(&mut self, request: &TurnRequest, reason: Refusal) {
        self.over(request.trigger.id);
        match request.cause.interaction() {
            Some(interaction) => {
                let ids = self.ids(&request.trigger);
                self.emit_refused(&ids, reason, None);
                if reason == Refusal::Blocked {
                    // Others may see "thinking".
                    self.withdraw_call(interaction.clone());
                } else if let Some(line) = turn::refusal(reason, self.services.memory.now()) {
                    self.answer_call(interaction.clone(), line);
                }
            }
            None => self.refuse(&request.trigger, reason),
        }
    }

    /// Sends one line, at most once per user and minute and a few in a channel; that tokens
    /// are used up, once per day in a channel. Who is blocked is told nothing.
    pub(super) fn refuse(&mut self, message: &Message, reason: Refusal) {
        let ids = self.ids(message);
        self.emit_refused(&ids, reason, None);
        if reason == Refusal::Blocked {
            return;
        }
        let (now, at) = (self.services.memory.now(), Instant::now());
        let Some(line) = turn::refusal(reason, now) else {
            return;
        };
        let access = self.services.guild_state.our_access(message.channel);
        let of_day = matches!(
            reason,
            Refusal::UserTokens | Refusal::GuildTokens | Refusal::TotalTokens
        );
        let spender = self.services.spender(message);
        let told = (now.day(), message.channel, spender);
        if access.forbids(|rights| rights.send)
            || of_day && self.told_spent.contains(&told)
            || !self.refusal_rate.take(spender, at)
            || !self.refusals_here.take(message.channel, at)
        {
            return;
        }
        if of_day {
            self.tell_spent(told);
        }
        let outgoing = NewMessage {
            content: line.into_owned(),
            reply_to: Some(message.id),
            nonce: format!("{:x}.r", message.id.get()),
            ..NewMessage::default()
        };
        let (services, channel) = (Arc::clone(&self.services), message.channel);
        self.tracker.spawn(async move {
            let deadline = Instant::now() + REFUSAL_TIMEOUT;
            let sent = services.rest.create_message(channel, &outgoing, deadline);
            if let Err(error) = sent.await {
                tracing::info!(%error, %channel, "a refusal could not be sent");
            }
        });
    }

    fn tell_spent(&mut self, told: (i64, ChannelId, Spender)) {
        if self.told_spent.len() >= CHANNELS_REMEMBERED {
            self.told_spent.clear();
        }
        self.told_spent.insert(told);
    }

    /// Emits the event. Users whom a list keeps out are told nothing.
    pub(super) fn emit_refused(&mut self, ids: &Ids, reason: Refusal, denied: Option<Denied>) {
        if self.refused.len() >= REFUSED_REMEMBERED {
            self.refused.pop_front();
        }
        self.refused.extend(ids.channel.zip(ids.message));
        if let Some(user) = ids.user {
            let now = self.services.memory.now();
            self.services.refusals.note((user, ids.guild), reason, now);
        }
        let known = |channel| self.services.guild_state.kind_and_parent(channel);
        let thread = ids.channel.and_then(known);
        let thread = thread.filter(|(kind, _)| kind.is_thread());
        let refused = TriggerRefused {
            reason,
            list: denied,
            parent_channel_id: thread.and_then(|(_, parent)| parent),
        };
        self.services.telemetry.emit(ids, refused);
    }
}
