//! Edited and deleted triggers.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::super::holds::joined;
use super::Dispatcher;
use crate::memory::DiscordChange;
use crate::telemetry::event::Refusal;
use crate::turn::{Order, Services};
use clew_context::discord::convert::Incoming;
use clew_context::engine::eligible::is_blank;
use clew_context::model::{ChannelId, GuildId, Message, MessageId};
use clew_discord::session::Mark;

impl Dispatcher {
    /// Handles an edit: updates the window, and a trigger that is not answered yet.
    pub(super) fn edited(&mut self, incoming: Incoming) {
        let Incoming {
            message,
            complete,
            has_content,
            ..
        } = incoming;
        self.tell_unread(&message, "message_update");
        if !complete {
            let extras = message.extras.as_deref();
            let is_unread = extras.is_some_and(|extras| extras.unread.contains(&"content"));
            if has_content || is_unread {
                // New text without its message: the held message is out of date.
                self.services.window().break_channel(message.channel);
                self.catch_up.gone(&[message.id]);
                self.changed(message.guild, message.channel, message.id);
            }
            return;
        }
        self.services.window().edited(message.clone());
        self.reconcile_edited(&message);
        if !self.rules.message_content && is_blank(&message) {
            // The edit removed our mention, and so we no longer see the text.
            self.catch_up.gone(&[message.id]);
            return;
        }
        self.holds.edited(&message);
        self.catch_up.edited(&message);
        if self.active.contains_key(&message.id) {
            self.restart(message);
            return;
        }
        let queued = self.queues.waiting_mut().map(|one| &mut one.request);
        let mut waiting = queued.chain(self.unplaced.values_mut());
        if let Some(request) = waiting.find(|request| request.trigger.id == message.id) {
            let trigger = edited(&self.services, message, &request.trigger);
            request.trigger = Arc::new(trigger);
        }
    }

    /// Passes on that a message changed, nobody knows into what.
    pub(super) fn changed(&self, guild: Option<GuildId>, channel: ChannelId, id: MessageId) {
        let guild = guild.or_else(|| self.services.guild_state.guild_of(channel));
        self.services.memory.changed(guild, channel, id);
    }

    /// A running question was edited: its turn stops at once, and the question is
    /// asked again once the edits stop, which counts as a question. Beyond the
    /// asker's rate the turn just ends.
    fn restart(&mut self, message: Message) {
        let Some(active) = self.active.get_mut(&message.id) else {
            return;
        };
        let ends = active.orders.borrow().ends();
        // A link preview comes as an update without an edit.
        let before = &active.trigger;
        let differs = message.edited > before.edited
            || message.edited == before.edited && message.content != before.content;
        if ends || !differs {
            return;
        }
        let (now, payer) = (Instant::now(), active.payer);
        let refused = self.services.may_not_ask(payer);
        let rate = &mut self.question_rate;
        let may_ask = || refused.is_none() && rate.take(payer, now);
        if let Some(at) = active.restarts.edited(now, may_ask) {
            let trigger = Arc::new(edited(&self.services, message, before));
            active.trigger = Arc::clone(&trigger);
            active.orders.send_replace(Order::Restart { trigger, at });
        } else {
            active.orders.send_replace(Order::Refuse);
            self.refuse(&message, refused.unwrap_or(Refusal::UserRate));
        }
    }

    /// Passes an edit on to memory: the message may be part of a stored turn.
    fn reconcile_edited(&self, message: &Message) {
        let services = &self.services;
        if let Some(edit) = services.edit_of(message) {
            let channel = message.channel;
            let guild = message
                .guild
                .or_else(|| services.guild_state.guild_of(channel));
            services.memory.reconcile(DiscordChange::Edited {
                guild,
                channel,
                edit,
            });
        }
    }

    /// Cancels the turns of deleted triggers. Returns those that waited for their turn, with
    /// their events, which are not finished; what was to be answered anew has an answer.
    pub(super) fn cancel(&mut self, ids: &[MessageId]) -> HashMap<MessageId, Option<Mark>> {
        for active in ids.iter().filter_map(|id| self.active.get(id)) {
            active.orders.send_replace(Order::Cancel);
        }
        self.unplaced.retain(|id, _| !ids.contains(id));
        let gone = self
            .queues
            .remove_waiting(|one| ids.contains(&one.request.trigger.id));
        let gone = gone.into_iter().filter(|waiting| !waiting.is_anew());
        gone.map(|waiting| (waiting.request.trigger.id, waiting.mark))
            .collect()
    }
}

/// A question as it reads now; what a copy has of its original stays.
fn edited(services: &Services, message: Message, before: &Message) -> Message {
    if services.proxy_of(&message).is_some() {
        joined(&message, before)
    } else {
        message
    }
}
