//! Actions that a test performs while the bot under test is connected. Each one
//! changes the world and is dispatched to the gateway.

/// Declares methods that do one thing with the state, or read one thing of it.
macro_rules! acts {
    ($(
        $(#[$doc:meta])+
        $how:ident $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = |$state:ident| $act:expr;
    )+) => {
        impl Simulator {$(
            $(#[$doc])+
            pub fn $name(&self $(, $arg: $type)*) $(-> $result)? {
                self.shared.$how(|$state| $act)
            }
        )+}
    };
}

mod client;
mod faulty;
mod interact;
mod objects;
mod people;
mod watch;

use serde_json::Value;

use super::draft::{Draft, Reference};
use super::ids::Id;
use super::render;
use super::world::{ChannelKind, Message, OverwriteOf, World};
use super::{Permissions, Simulator};

pub use client::{Invocation, Shown};
pub use interact::{Choice, Use};
pub use watch::{TimedOut, WaitError};

impl Simulator {
    /// Reads or changes the world without any event.
    pub fn world<R>(&self, change: impl FnOnce(&mut World) -> R) -> R {
        self.shared.with(|state| change(&mut state.world))
    }

    /// Posts a message.
    pub fn post(&self, channel: Id, author: Id, draft: impl Into<Draft>) -> Id {
        let draft = draft.into();
        self.shared.with(|state| {
            let message = state.world.compose(channel, author, draft);
            state.publish(message)
        })
    }

    /// Posts a message without an event, as if the bot had missed it.
    pub fn seed(&self, channel: Id, author: Id, draft: impl Into<Draft>) -> Id {
        self.world(|world| world.seed(channel, author, draft))
    }

    /// Changes the text of a message.
    pub fn edit(&self, channel: Id, message: Id, content: &str) {
        self.shared.with(|state| {
            state.world.seed_edit(channel, message, content);
            state.emit_message("MESSAGE_UPDATE", channel, message);
        });
    }

    /// Sends a message again without an edit, as Discord does when a link's embed
    /// arrives: `edited_timestamp` stays unchanged.
    pub fn unfurl(&self, channel: Id, message: Id, embed: Value) {
        self.shared.with(|state| {
            let mut embed = embed;
            if let Some(fields) = embed.as_object_mut() {
                fields.entry("type").or_insert_with(|| "link".into());
            }
            let Some(found) = state.world.message_mut(channel, message) else {
                return;
            };
            found.embeds.push(embed);
            state.emit_message("MESSAGE_UPDATE", channel, message);
        });
    }

    /// Pins a message: the message changes, and a notice of type 6 is posted.
    pub fn pin(&self, channel: Id, message: Id, by: Id) -> Id {
        self.shared.with(|state| {
            let now = state.world.now_ms();
            state.set_pinned(channel, message, Some(now));
            let reference = Reference::to(channel, Some(message));
            let draft = Draft::system(6).reference(reference);
            let notice = state.world.compose(channel, by, draft);
            state.publish(notice)
        })
    }

    /// Unpins a message.
    pub fn unpin(&self, channel: Id, message: Id) {
        self.shared
            .with(|state| state.set_pinned(channel, message, None));
    }

    /// Opens a post in a forum or media channel.
    pub fn forum_post(
        &self,
        forum: Id,
        author: Id,
        title: &str,
        tags: &[Id],
        draft: impl Into<Draft>,
    ) -> Id {
        let draft = draft.into();
        self.shared.with(|state| {
            let post = state.world.forum_post(forum, author, title, tags, draft);
            state.emit_thread_create(post);
            state.emit_message("MESSAGE_CREATE", post, post);
            post
        })
    }

    /// Archives or unarchives, locks or unlocks a thread.
    pub fn set_archived(&self, thread: Id, archived: bool, locked: bool) {
        self.shared.with(|state| {
            state.world.set_archived(thread, archived, locked);
            state.emit_channel("THREAD_UPDATE", thread);
        });
    }

    /// Renames a channel or thread.
    pub fn rename(&self, channel: Id, name: &str) {
        self.shared.with(|state| {
            let Some(found) = state.world.channel_mut(channel) else {
                return;
            };
            name.clone_into(&mut found.name);
            let thread = found.thread.is_some();
            let event = if thread {
                "THREAD_UPDATE"
            } else {
                "CHANNEL_UPDATE"
            };
            state.emit_channel(event, channel);
        });
    }

    /// Adds a channel to a guild.
    pub fn channel(&self, guild: Id, kind: ChannelKind, name: &str) -> Id {
        self.shared.with(|state| {
            let channel = state.world.channel(guild, kind, name);
            state.emit_channel("CHANNEL_CREATE", channel);
            channel
        })
    }

    /// Sets a role's or member's overwrite. As on Discord, the bot is told even if
    /// this hides the channel from it.
    pub fn overwrite(&self, channel: Id, of: OverwriteOf, allow: Permissions, deny: Permissions) {
        self.shared.with(|state| {
            state.world.overwrite(channel, of, allow, deny);
            let Some(found) = state.world.channels.get(&channel) else {
                return;
            };
            let (guild, data) = (found.guild, render::channel(&state.world, found));
            state.emit_guild_event("CHANNEL_UPDATE", guild, &data);
        });
    }

    /// The current messages of a channel, oldest first.
    pub fn messages(&self, channel: Id) -> Vec<Message> {
        self.shared.read(|state| {
            let found = state.world.channels.get(&channel);
            found.map_or_else(Vec::new, |found| found.messages.values().cloned().collect())
        })
    }

    /// The registered commands as the API shows them, each with its guild if it is
    /// a guild command.
    pub fn commands(&self) -> Vec<(Option<Id>, Value)> {
        self.shared.read(|state| {
            let commands = state.world.commands.iter();
            commands.map(|c| (c.guild, c.body.clone())).collect()
        })
    }
}

acts! {
    /// Deletes a message; returns false if it does not exist.
    with delete(channel: Id, message: Id) -> bool = |state| state.remove_message(channel, message);
    /// Deletes messages in bulk.
    with bulk_delete(channel: Id, messages: &[Id]) =
        |state| state.remove_messages(channel, messages);
    /// Reacts to a message.
    with react(channel: Id, message: Id, emoji: &str, user: Id) =
        |state| state.add_reaction(channel, message, emoji, user);
    /// Takes a user's reaction back.
    with unreact(channel: Id, message: Id, emoji: &str, user: Id) =
        |state| state.remove_reaction(channel, message, emoji, user);
    /// Shows that a user is typing.
    with type_in(channel: Id, user: Id) = |state| state.emit_typing(channel, user);
    /// Opens a thread from a message; the thread's id is the message's.
    with thread_from(channel: Id, message: Id, title: &str, owner: Id) -> Id =
        |state| state.open_thread_from(channel, message, title, owner);
    /// Opens a public or private thread that is not started from a message.
    with thread(channel: Id, kind: ChannelKind, title: &str, owner: Id) -> Id =
        |state| state.open_thread(channel, kind, title, owner);
    /// Adds a user to a thread.
    with join_thread(thread: Id, user: Id) = |state| state.add_thread_member(thread, user);
    /// Removes a user from a thread.
    with leave_thread(thread: Id, user: Id) = |state| state.remove_thread_member(thread, user);
    /// Deletes a channel with its threads, or a thread.
    with delete_channel(channel: Id) = |state| state.remove_channel(channel);
    /// The bot's current messages in a channel, oldest first.
    read answers(channel: Id) -> Vec<Message> =
        |state| state.world.answers_in(channel).unwrap_or_default();
    /// The current ephemeral messages, oldest first.
    read ephemeral() -> Vec<Message> = |state| state.world.ephemeral.values().cloned().collect();
    /// The bot's user id.
    read bot() -> Id = |state| state.world.bot;
    /// The token that the simulator accepts.
    read token() -> String = |state| state.world.token.clone();
}
