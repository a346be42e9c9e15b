//! Threads: creation, members, lists of archived ones.

use serde_json::{Value, json};

use super::answer::{Answer, Refusal, Reply};
use super::body::{self, Call};
use super::given;
use crate::draft::{Draft, Reference};
use crate::ids::{Id, parse_iso};
use crate::permissions::Permissions;
use crate::render::{self, Audience};
use crate::state::State;
use crate::world::{Channel, ChannelKind};

impl State {
    pub(super) fn thread_routes(
        &mut self,
        call: &mut Call,
        channel: &str,
        first: &str,
        rest: &[&str],
    ) -> Answer {
        match (call.method.as_str(), first, rest) {
            ("POST", "threads", []) => self.create_thread(call, channel, None),
            ("GET", "threads", ["archived", kind]) => self.archived_threads(call, channel, kind),
            ("GET", "thread-members", []) => {
                let thread = self.seen_channel(channel)?;
                let members = self.world.channels.get(&thread).and_then(|found| {
                    let users = found.thread.as_ref()?.members.keys();
                    let members = users.filter_map(|&user| render::thread_member(found, user));
                    Some(members.collect())
                });
                Ok(Reply::json(members.unwrap_or_else(|| json!([]))))
            }
            (method, "thread-members", [user]) => {
                let user = match *user {
                    "@me" => self.world.bot,
                    other => body::id(other)?,
                };
                let thread = self.seen_channel(channel)?;
                self.thread_member_route(method, thread, user)
            }
            _ => Err(Refusal::no_route()),
        }
    }

    fn thread_member_route(&mut self, method: &str, thread: Id, user: Id) -> Answer {
        let found = self.world.channels.get(&thread);
        let Some(found) = found.filter(|found| found.thread.is_some()) else {
            return Err(Refusal::wrong_channel_type());
        };
        if method == "GET" {
            let member = render::thread_member(found, user);
            return member.map(Reply::json).ok_or_else(Refusal::unknown_member);
        }
        self.check_not_archived(thread)?;
        if user != self.world.bot {
            self.need(thread, Permissions::SEND_MESSAGES_IN_THREADS)?;
        }
        match method {
            "PUT" => self.add_thread_member(thread, user),
            "DELETE" => self.remove_thread_member(thread, user),
            _ => return Err(Refusal::no_route()),
        }
        Ok(Reply::nothing())
    }

    /// Adds a member and dispatches that; for the bot itself also the thread's `THREAD_CREATE`.
    pub(crate) fn add_thread_member(&mut self, thread: Id, user: Id) {
        self.world.join_thread(thread, user);
        if user == self.world.bot {
            self.emit_channel("THREAD_CREATE", thread);
        }
        self.emit_thread_members(thread, &[user], &[]);
    }

    /// Removes a member and dispatches that. A private thread is then invisible to
    /// the bot if it was the one removed.
    pub(crate) fn remove_thread_member(&mut self, thread: Id, user: Id) {
        if let Some(thread) = self.world.thread_mut(thread) {
            thread.members.remove(&user);
        }
        self.emit_thread_members(thread, &[], &[user]);
    }

    /// Opens a thread from a message, one without, or a post in a forum.
    pub(super) fn create_thread(
        &mut self,
        call: &mut Call,
        channel: &str,
        message: Option<&str>,
    ) -> Answer {
        let parent = self.seen_channel(channel)?;
        let title = given(&call.body, "name").and_then(Value::as_str);
        let Some(title) = title.filter(|t| (1..=100).contains(&t.chars().count())) else {
            let message = "Must be between 1 and 100 in length.";
            return Err(Refusal::invalid("name", "BASE_TYPE_BAD_LENGTH", message));
        };
        let title = title.to_owned();
        let found = self.world.channels.get(&parent);
        let kind = found.ok_or_else(Refusal::unknown_channel)?.kind;
        if kind.is_forum() {
            return self.create_post(call, parent, &title);
        }
        if kind.is_thread() || kind == ChannelKind::Voice || self.world.guild_of(parent).is_none() {
            return Err(Refusal::wrong_channel_type());
        }
        let private = message.is_none() && call.body["type"].as_u64().unwrap_or(12) == 12;
        self.need(
            parent,
            if private {
                Permissions::CREATE_PRIVATE_THREADS
            } else {
                Permissions::CREATE_PUBLIC_THREADS
            },
        )?;
        let bot = self.world.bot;
        let thread = if let Some(message) = message {
            let message = self.known_message(parent, message)?;
            if self.world.channels.contains_key(&message) {
                return Err(Refusal::has_thread());
            }
            self.open_thread_from(parent, message, &title, bot)
        } else {
            // A channel has threads of one public kind.
            let of_parent = match kind {
                ChannelKind::Announcement => ChannelKind::AnnouncementThread,
                _ => ChannelKind::PublicThread,
            };
            let asked = match call.body["type"].as_u64() {
                Some(10) => ChannelKind::AnnouncementThread,
                Some(11) => ChannelKind::PublicThread,
                _ => ChannelKind::PrivateThread,
            };
            if !private && asked != of_parent {
                return Err(Refusal::wrong_channel_type());
            }
            self.open_thread(parent, asked, &title, bot)
        };
        Ok(Reply::with_status(201, self.channel_object(thread)))
    }

    fn create_post(&mut self, call: &mut Call, forum: Id, title: &str) -> Answer {
        self.need(forum, Permissions::SEND_MESSAGES)?;
        let tags = call.body["applied_tags"].as_array();
        let tags: Vec<Id> = tags.into_iter().flatten().filter_map(Id::parse).collect();
        let inner = call.body["message"].take();
        call.body = inner;
        let message = self.message_from(call, forum)?;
        let bot = self.world.bot;
        let draft = Draft::new(message.content.clone());
        let post = self.world.forum_post(forum, bot, title, &tags, draft);
        let stored = self.world.message_mut(post, post);
        let stored = stored.ok_or_else(Refusal::unknown_channel)?;
        stored.embeds = message.embeds;
        stored.attachments = message.attachments;
        stored.components = message.components;
        stored.mentions = message.mentions;
        self.emit_thread_create(post);
        self.emit_message("MESSAGE_CREATE", post, post);
        let mut object = self.channel_object(post);
        if let Some(message) = self.world.message(post, post) {
            object["message"] = render::message(&self.world, message, Audience::Rest);
        }
        Ok(Reply::with_status(201, object))
    }

    /// Opens a thread from a message and dispatches it.
    pub(crate) fn open_thread_from(
        &mut self,
        parent: Id,
        message: Id,
        title: &str,
        owner: Id,
    ) -> Id {
        let (thread, starter) = self.world.thread_and_starter(parent, message, title, owner);
        self.emit_thread_create(thread);
        self.emit_message("MESSAGE_UPDATE", parent, message);
        self.emit_message("MESSAGE_CREATE", thread, starter);
        thread
    }

    /// Opens a thread that is not started from a message and dispatches it; for a
    /// public one, the parent channel gets a notice of type 18.
    pub(crate) fn open_thread(
        &mut self,
        parent: Id,
        kind: ChannelKind,
        title: &str,
        owner: Id,
    ) -> Id {
        let thread = self.world.thread(parent, kind, title, owner);
        self.emit_thread_create(thread);
        if kind != ChannelKind::PrivateThread {
            let reference = Reference::to(thread, None);
            let draft = Draft::new(title).kind(18).reference(reference);
            let notice = self.world.compose(parent, owner, draft);
            self.publish(notice);
        }
        thread
    }

    /// Archived threads, most recently archived first: `public`, `private`, or only
    /// the private ones the bot has `joined`.
    pub(super) fn archived_threads(&self, call: &Call, channel: &str, kind: &str) -> Answer {
        let parent = self.seen_channel(channel)?;
        self.need(parent, Permissions::READ_MESSAGE_HISTORY)?;
        if kind == "private" {
            self.need(parent, Permissions::MANAGE_THREADS)?;
        }
        let limit = call.within("limit", 50, 1..=100)?;
        let before = call.query("before");
        let before = before.and_then(|text| {
            let as_id = text.parse().ok().map(|id: u64| Id(id).unix_ms());
            as_id.or_else(|| parse_iso(&text))
        });
        let fits = |channel: &&Channel| {
            let Some(thread) = channel.thread.as_ref().filter(|thread| thread.archived) else {
                return false;
            };
            let private = channel.kind == ChannelKind::PrivateThread;
            let wanted = match kind {
                "public" => !private,
                "private" => private,
                _ => private && thread.members.contains_key(&self.world.bot),
            };
            let in_time = before.is_none_or(|before| thread.archive_ms < before);
            channel.parent == Some(parent) && wanted && in_time
        };
        let mut threads: Vec<&Channel> = self.world.channels.values().filter(fits).collect();
        let archived_ms = |channel: &Channel| channel.thread.as_ref().map_or(0, |t| t.archive_ms);
        threads.sort_by_key(|channel| std::cmp::Reverse((archived_ms(channel), channel.id)));
        let has_more = threads.len() > limit;
        threads.truncate(limit);
        let listing = render::thread_listing(&self.world, &threads, has_more);
        Ok(Reply::json(listing))
    }
}
