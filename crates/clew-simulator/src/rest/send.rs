//! Create Message: all checks that a message of the bot has to pass before it is stored.

use serde_json::Value;

use super::answer::{Answer, Refusal, Reply};
use super::body::Call;
use super::given;
use crate::draft::{Draft, Reference};
use crate::ids::Id;
use crate::permissions::Permissions;
use crate::state::State;
use crate::world::{Message, flag};

/// Most characters in a message.
const MAX_CONTENT_CHARS: usize = 2_000;

/// Most characters in a nonce.
const MAX_NONCE_CHARS: usize = 25;

/// How long a nonce is enforced, in milliseconds; "the past few minutes", says Discord's
/// reference (Create Message).
const NONCE_MS: i64 = 180_000;

/// Flags that a sender may set.
const SETTABLE_FLAGS: u64 =
    flag::SUPPRESS_EMBEDS | flag::EPHEMERAL | flag::SUPPRESS_NOTIFICATIONS | flag::COMPONENTS_V2;

impl State {
    pub(super) fn create_message(&mut self, call: &mut Call, channel: Id) -> Answer {
        self.check_sendable(channel)?;
        if let Some(known) = self.same_nonce(&call.body, channel)? {
            return Ok(self.sent(&call.body, channel, known));
        }
        let message = self.message_from(call, channel)?;
        if !message.attachments.is_empty() {
            self.need(channel, Permissions::ATTACH_FILES)?;
        }
        let nonce = message.nonce.clone();
        let id = self.publish(message);
        self.nonces.extend(nonce.map(|nonce| (id, channel, nonce)));
        Ok(self.sent(&call.body, channel, id))
    }

    /// The answer to a call that sent a message; it repeats the nonce.
    fn sent(&self, body: &Value, channel: Id, id: Id) -> Reply {
        let mut object = self.served_message(channel, id);
        if let Some(nonce) = given(body, "nonce") {
            object["nonce"] = nonce.clone();
        }
        Reply::json(object)
    }

    /// A message by the bot, built from a call's body; not stored yet.
    pub(super) fn message_from(
        &mut self,
        call: &mut Call,
        channel: Id,
    ) -> Result<Message, Refusal> {
        let body = std::mem::take(&mut call.body);
        let content = given(&body, "content").and_then(Value::as_str);
        let content = content.unwrap_or_default();
        check_length(content)?;
        super::parts::check(&body)?;
        let mut draft = Draft::new(content);
        draft.embeds = embeds(&body["embeds"]);
        draft.components = body["components"].as_array().cloned().unwrap_or_default();
        draft.flags = body["flags"].as_u64().unwrap_or(0) & SETTABLE_FLAGS;
        draft.attachments = std::mem::take(&mut call.files);
        describe(&mut draft, &body["attachments"]);
        self.set_reference(&mut draft, &body, channel)?;
        let bot = self.world.bot;
        let mut message = self.world.compose(channel, bot, draft);
        self.allow_mentions(&mut message, &body);
        message.nonce = given(&body, "nonce").cloned();
        call.body = body;
        if message.is_empty() {
            return Err(Refusal::empty_message());
        }
        Ok(message)
    }

    /// The message sent earlier with the same enforced nonce. One that was deleted since is not sent
    /// again: "Unknown Message" (discord-api-docs, pull request 6647).
    fn same_nonce(&mut self, body: &Value, channel: Id) -> Result<Option<Id>, Refusal> {
        let Some(nonce) = given(body, "nonce") else {
            return Ok(None);
        };
        let is_long = |nonce: &str| nonce.chars().count() > MAX_NONCE_CHARS;
        if nonce.as_str().is_some_and(is_long) {
            let message = "Must be 25 or fewer in length.";
            return Err(Refusal::invalid("nonce", "NONCE_TYPE_TOO_LONG", message));
        }
        if body["enforce_nonce"] != true {
            return Ok(None);
        }
        let since = self.world.now_ms() - NONCE_MS;
        self.nonces.retain(|(id, ..)| id.unix_ms() >= since);
        let mut sent = self.nonces.iter().rev();
        let same = sent.find(|(_, of, other)| *of == channel && other == nonce);
        match same {
            Some((id, ..)) if self.world.message(channel, *id).is_none() => {
                Err(Refusal::unknown_message())
            }
            same => Ok(same.map(|(id, ..)| *id)),
        }
    }

    /// Sets the reference of a reply or forward, checked as Discord does.
    fn set_reference(&self, draft: &mut Draft, body: &Value, channel: Id) -> Result<(), Refusal> {
        let Some(reference) = given(body, "message_reference") else {
            return Ok(());
        };
        let refuse = |code: &str, text: &str| Refusal::invalid("message_reference", code, text);
        let Some(target) = Id::parse(&reference["message_id"]) else {
            return Err(refuse("BASE_TYPE_REQUIRED", "This field is required"));
        };
        if reference["type"] == 1 {
            let from = Id::parse(&reference["channel_id"]).unwrap_or(channel);
            if self.world.message(from, target).is_none() {
                return Err(Refusal::unknown_message());
            }
            draft.forward_of = Some((from, target));
            return Ok(());
        }
        if !self.may_read(channel) {
            return Err(Refusal::unreadable_reply());
        }
        match self.world.message(channel, target) {
            Some(found) if !matches!(found.kind, 0 | 19 | 20 | 23) => Err(refuse(
                "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE",
                "Cannot reply to a system message",
            )),
            Some(_) => {
                draft.reply_to = Some(target);
                draft.ping = false;
                Ok(())
            }
            None if reference["fail_if_not_exists"] == false => Ok(()),
            None => Err(refuse("REPLIES_UNKNOWN_MESSAGE", "Unknown message")),
        }
    }

    /// Keeps the mentions that `allowed_mentions` permits; without it, all of them,
    /// and a reply pings.
    pub(super) fn allow_mentions(&self, message: &mut Message, body: &Value) {
        let allowed = given(body, "allowed_mentions");
        message.allowed_mentions = allowed.cloned();
        let everyone = self
            .world
            .bot_may(message.channel, Permissions::MENTION_EVERYONE);
        if let Some(allowed) = allowed {
            let parses = |kind: &str| {
                let parse = allowed["parse"].as_array();
                parse.is_some_and(|kinds| kinds.iter().any(|each| each == kind))
            };
            let listed = |key: &str, id: &Id| {
                let ids = allowed[key].as_array();
                ids.is_some_and(|ids| ids.iter().any(|each| Id::parse(each) == Some(*id)))
            };
            let (users, roles) = (parses("users"), parses("roles"));
            message.mentions.retain(|id| users || listed("users", id));
            message
                .mention_roles
                .retain(|id| roles || listed("roles", id));
            message.mention_everyone &= parses("everyone");
        }
        message.mention_everyone &= everyone;
        let pings = allowed.is_none_or(|allowed| allowed["replied_user"] == true);
        let replied = match message.reference {
            Some(Reference {
                kind: 0,
                channel,
                message: Some(target),
            }) if pings => self.world.message(channel, target),
            _ => None,
        };
        if let Some(replied) = replied.filter(|replied| replied.webhook.is_none()) {
            message.mention([replied.author]);
        }
    }
}

/// Refuses text that is too long.
pub(super) fn check_length(content: &str) -> Result<(), Refusal> {
    if content.chars().count() > MAX_CONTENT_CHARS {
        let message = "Must be 2000 or fewer in length.";
        return Err(Refusal::invalid("content", "BASE_TYPE_MAX_LENGTH", message));
    }
    Ok(())
}

/// The embeds of a body, with the type that Discord gives them.
pub(super) fn embeds(embeds: &Value) -> Vec<Value> {
    let mut embeds = embeds.as_array().cloned().unwrap_or_default();
    for embed in &mut embeds {
        embed["type"] = "rich".into();
    }
    embeds
}

/// Applies file names and descriptions from the body's attachment list.
fn describe(draft: &mut Draft, listed: &Value) {
    let listed = listed.as_array();
    for entry in listed.into_iter().flatten() {
        let index = Id::parse(&entry["id"]).and_then(|id| usize::try_from(id.0).ok());
        let Some(file) = index.and_then(|index| draft.attachments.get_mut(index)) else {
            continue;
        };
        file.description = entry["description"].as_str().map(str::to_owned);
        if let Some(name) = entry["filename"].as_str() {
            name.clone_into(&mut file.name);
        }
    }
}
