//! New messages: whether one is for us.

use std::sync::Arc;

use super::{CHANNELS_REMEMBERED, Dispatcher};
use crate::telemetry::event::Refusal;
use clew_context::discord::convert::Incoming;
use clew_context::engine::route::{RouteFacts, Verdict, ends_bot_turns, route};
use clew_context::model::{
    ChannelId, ChannelKind, ChannelMode, GuildId, Message, RoleId, TurnRequest, UserId,
};
use clew_discord::session::Mark;

impl Dispatcher {
    /// Handles a new message. Returns whether a turn began or waits for it.
    pub(super) fn message(&mut self, incoming: Incoming, mark: Mark) -> bool {
        let Incoming {
            message,
            channel_kind,
            roles,
            complete,
            ..
        } = incoming;
        self.tell_unread(&message, "message_create");
        self.progress().heard(mark.shard(), message.id.created());
        let known = self.services.guild_state.kind_and_parent(message.channel);
        let (known_kind, parent) = known.unzip();
        let kind = channel_kind.or(known_kind);
        let kind = kind.or_else(|| {
            let direct = self.direct.contains(&message.channel);
            direct.then_some(ChannelKind::Dm)
        });
        let unplaced = kind.is_none() && message.guild.is_none();
        // Our role is only looked up, among all of the server's, if the message mentions one.
        let roles_of = message.guild.filter(|_| !message.mention_roles.is_empty());
        let us = self.services.us(roles_of);
        let copied = complete.then(|| self.copied(&message, &us)).flatten();
        let (original, copy) = copied.unzip();
        let asked = copy.as_ref().unwrap_or(&message);
        let verdict = if complete {
            let kind = kind.or_else(|| unplaced.then_some(ChannelKind::Dm));
            let facts = self.facts(asked, kind, parent.flatten(), roles.as_deref());
            if ends_bot_turns(&message, &us, &self.rules, &facts) {
                self.bot_turns.end(message.channel, message.guild);
            }
            route(asked, &us, &self.rules, facts)
        } else {
            Verdict::Ignore
        };
        // The window separates the message from the one it carries; the turn needs both.
        let trigger = matches!(verdict, Verdict::Turn(_)).then(|| Arc::new(asked.clone()));
        let kept = self.services.window().created(message);
        for run in self
            .active
            .values()
            .filter_map(|active| active.run.as_ref())
        {
            run.hears(&kept);
        }
        match verdict {
            Verdict::Ignore => false,
            Verdict::Denied(denied) => {
                if let Some(original) = original {
                    self.holds.refuse_copy(original, kept.id);
                }
                let ids = self.ids(&kept);
                self.emit_refused(&ids, Refusal::NotAllowed, Some(denied));
                false
            }
            Verdict::NoContent => {
                self.tell_once(&kept);
                false
            }
            Verdict::Turn(cause) => {
                let request = TurnRequest {
                    trigger: trigger.unwrap_or(kept),
                    channel_kind: kind,
                    asker_roles: roles,
                    cause,
                    is_private: false,
                };
                if unplaced {
                    self.look_up(request, mark);
                    return true;
                }
                self.ask_or_hold(request, original, mark);
                true
            }
        }
    }

    /// What is known of a message in a channel of this kind.
    pub(super) fn facts<'a>(
        &self,
        message: &Message,
        kind: Option<ChannelKind>,
        parent: Option<ChannelId>,
        roles: Option<&'a [RoleId]>,
    ) -> RouteFacts<'a> {
        RouteFacts {
            kind,
            parent,
            roles,
            replied_author: self.replied_author(message),
            bot_turns: self.bot_turns.in_a_row(message.channel, message.guild),
            mode: self.mode(message.guild, message.channel, parent),
        }
    }

    /// The server's setting for a channel, or for its parent.
    pub(super) fn mode(
        &self,
        guild: Option<GuildId>,
        channel: ChannelId,
        parent: Option<ChannelId>,
    ) -> ChannelMode {
        let settings = guild.map(|guild| self.services.memory.guild_settings(guild));
        settings.map_or(ChannelMode::Mentions, |settings| {
            settings.mode(channel, parent)
        })
    }

    fn replied_author(&self, message: &Message) -> Option<UserId> {
        let id = message.replies_to()?;
        if let Some(referenced) = message.referenced_message() {
            return Some(referenced.author.id);
        }
        let held = self.services.window().message(message.channel, id)?;
        Some(held.author.id)
    }

    /// Says once per channel that without the message content intent we only see
    /// mentions.
    fn tell_once(&mut self, message: &Message) {
        if self.told_to_mention.len() >= CHANNELS_REMEMBERED {
            self.told_to_mention.clear();
        }
        if self.told_to_mention.insert(message.channel) {
            self.refuse(message, Refusal::NoContent);
        }
    }
}
