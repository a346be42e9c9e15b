//! The bot's reactions.

use serde_json::Value;

use super::answer::{Answer, Refusal, Reply};
use super::body::{self, Call};
use crate::ids::Id;
use crate::permissions::Permissions;
use crate::render;
use crate::state::State;

impl State {
    pub(super) fn reaction_routes(
        &mut self,
        call: &Call,
        channel: &str,
        message: &str,
        rest: &[&str],
    ) -> Answer {
        let channel = self.seen_channel(channel)?;
        self.need(channel, Permissions::READ_MESSAGE_HISTORY)?;
        let message = self.known_message(channel, message)?;
        match (call.method.as_str(), rest) {
            ("PUT", [emoji, "@me"]) => self.react(channel, message, &body::decode(emoji)),
            ("DELETE", [emoji, "@me"]) => {
                let bot = self.world.bot;
                self.remove_reaction(channel, message, &body::decode(emoji), bot);
                Ok(Reply::nothing())
            }
            ("DELETE", [emoji, user]) => {
                self.need(channel, Permissions::MANAGE_MESSAGES)?;
                let user = body::id(user)?;
                self.remove_reaction(channel, message, &body::decode(emoji), user);
                Ok(Reply::nothing())
            }
            ("GET", [emoji]) => {
                let emoji = body::decode(emoji);
                let found = self.world.message(channel, message);
                let users = found.and_then(|found| found.reactions.iter().find(|r| r.0 == emoji));
                let users = users.map_or(&[][..], |(_, users)| &users[..]);
                let users: Vec<Value> = users
                    .iter()
                    .map(|&user| render::user(&self.world, user))
                    .collect();
                Ok(Reply::json(users.into()))
            }
            _ => Err(Refusal::no_route()),
        }
    }

    fn react(&mut self, channel: Id, message: Id, emoji: &str) -> Answer {
        if emoji.is_ascii() && !emoji.contains(':') {
            return Err(Refusal::unknown_emoji());
        }
        self.check_not_archived(channel)?;
        let bot = self.world.bot;
        let found = self.world.message(channel, message);
        let new = found.is_some_and(|found| found.reactions.iter().all(|r| r.0 != emoji));
        if new {
            self.need(channel, Permissions::ADD_REACTIONS)?;
        }
        self.add_reaction(channel, message, emoji, bot);
        Ok(Reply::nothing())
    }

    /// Adds a reaction and dispatches it; does nothing if it already exists.
    pub(crate) fn add_reaction(&mut self, channel: Id, message: Id, emoji: &str, user: Id) {
        let Some(found) = self.world.message_mut(channel, message) else {
            return;
        };
        let reactions = &mut found.reactions;
        match reactions.iter_mut().find(|r| r.0 == emoji) {
            Some((_, users)) if users.contains(&user) => return,
            Some((_, users)) => users.push(user),
            None => reactions.push((emoji.to_owned(), vec![user])),
        }
        self.emit_reaction("MESSAGE_REACTION_ADD", channel, message, user, emoji);
    }

    /// Takes a reaction back and dispatches that.
    pub(crate) fn remove_reaction(&mut self, channel: Id, message: Id, emoji: &str, user: Id) {
        let Some(found) = self.world.message_mut(channel, message) else {
            return;
        };
        let reactions = &mut found.reactions;
        for (_, users) in reactions.iter_mut().filter(|r| r.0 == emoji) {
            users.retain(|each| *each != user);
        }
        reactions.retain(|(_, users)| !users.is_empty());
        self.emit_reaction("MESSAGE_REACTION_REMOVE", channel, message, user, emoji);
    }
}
