//! `INTERACTION_CREATE` into a call of one of our commands.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ASK, ASK_ABOUT};
use crate::discord::convert;
use crate::discord::event::Called;
use crate::model::{
    ApplicationId, Author, ChannelId, ChannelKind, Command, GuildId, Interaction, InteractionId,
    InteractionKind, MessageId, RoleId, UserId,
};

/// Interaction type of commands; pings, buttons and the like are not ours.
const APPLICATION_COMMAND: u8 = 2;
/// Interaction contexts (Discord's reference, "Interaction Context Types").
const CONTEXT_GUILD: u8 = 0;
const CONTEXT_BOT_DM: u8 = 1;
/// Key of `authorizing_integration_owners` for an installation in a server.
const GUILD_INSTALL: &str = "0";

/// Reads the text of `d`; nothing for what is no command or cannot be read.
pub fn called(data: &str) -> Option<Called> {
    let wire: Wire<'_> = match serde_json::from_str(data) {
        Ok(wire) => wire,
        Err(error) => {
            tracing::warn!(%error, "an interaction could not be read");
            return None;
        }
    };
    if wire.kind != APPLICATION_COMMAND {
        return None;
    }
    let kind = wire.place();
    let command = wire.data.as_ref()?;
    let message = command
        .message()
        .and_then(|raw| convert::incoming(raw).ok());
    let (member, user) = (wire.member, wire.user);
    let (user, nick, roles) = match (member, user) {
        (Some(member), _) => (member.user, member.nick, member.roles),
        (None, Some(user)) => (user, None, Vec::new()),
        (None, None) => return None,
    };
    Some(Called {
        command: command.command(),
        message: message.map(Box::new),
        asker: Author {
            id: user.id,
            name: nick.or(user.global_name).unwrap_or(user.username).into(),
            bot: user.bot,
            webhook: false,
        },
        roles,
        channel_kind: wire.channel.as_ref().map(WireChannel::kind),
        interaction: Interaction {
            id: wire.id,
            application: wire.application_id,
            token: wire.token,
            channel: wire.channel_id.or(wire.channel.map(|channel| channel.id))?,
            guild: wire.guild_id,
            user: user.id,
            kind,
        },
    })
}

impl Wire<'_> {
    /// Where it was called: what Discord says, else what it looks like.
    fn place(&self) -> InteractionKind {
        let owners = self.authorizing_integration_owners.as_ref();
        // Installed by the user alone: the bot is not in that server.
        let installed = owners.is_none_or(|owners| owners.contains_key(GUILD_INSTALL));
        let direct = self.channel.as_ref().map(WireChannel::kind) == Some(ChannelKind::Dm);
        match self.context {
            Some(CONTEXT_GUILD) if installed => InteractionKind::Guild,
            Some(CONTEXT_BOT_DM) => InteractionKind::BotDm,
            None if self.guild_id.is_some() && installed => InteractionKind::Guild,
            None if self.guild_id.is_none() && direct => InteractionKind::BotDm,
            _ => InteractionKind::Elsewhere,
        }
    }
}

impl WireData<'_> {
    fn command(&self) -> Command {
        let question = || {
            let mut options = self.options.iter();
            let question = options.find(|option| option.name == "question")?;
            serde_json::from_str(question.value?.get()).ok()
        };
        let known = match self.name.as_str() {
            ASK => question().map(|question| Command::Ask { question }),
            ASK_ABOUT => self.target_id.map(|message| Command::AskAbout { message }),
            _ => None,
        };
        known.unwrap_or_else(|| Command::Unknown(self.name.clone()))
    }

    /// The message that a message command was called on, as it came.
    fn message(&self) -> Option<&str> {
        let messages = self.resolved.as_ref()?.messages.as_ref()?;
        Some(messages.get(&self.target_id?)?.get())
    }
}

impl WireChannel {
    fn kind(&self) -> ChannelKind {
        ChannelKind::from_number(self.kind)
    }
}

#[derive(Deserialize)]
struct Wire<'a> {
    id: InteractionId,
    application_id: ApplicationId,
    #[serde(rename = "type")]
    kind: u8,
    #[serde(default, borrow)]
    data: Option<WireData<'a>>,
    #[serde(default)]
    guild_id: Option<GuildId>,
    #[serde(default)]
    channel: Option<WireChannel>,
    #[serde(default)]
    channel_id: Option<ChannelId>,
    #[serde(default)]
    member: Option<WireMember>,
    #[serde(default)]
    user: Option<WireUser>,
    token: String,
    #[serde(default)]
    context: Option<u8>,
    #[serde(default, borrow)]
    authorizing_integration_owners: Option<HashMap<String, &'a RawValue>>,
}

#[derive(Deserialize)]
struct WireData<'a> {
    name: String,
    #[serde(default, borrow)]
    options: Vec<WireOption<'a>>,
    #[serde(default)]
    target_id: Option<MessageId>,
    #[serde(default, borrow)]
    resolved: Option<WireResolved<'a>>,
}

#[derive(Deserialize)]
struct WireOption<'a> {
    name: String,
    #[serde(default, borrow)]
    value: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireResolved<'a> {
    #[serde(default, borrow)]
    messages: Option<HashMap<MessageId, &'a RawValue>>,
}

#[derive(Deserialize)]
struct WireChannel {
    id: ChannelId,
    #[serde(rename = "type")]
    kind: u8,
}

#[derive(Deserialize)]
struct WireMember {
    user: WireUser,
    #[serde(default)]
    nick: Option<String>,
    #[serde(default)]
    roles: Vec<RoleId>,
}

#[derive(Deserialize)]
struct WireUser {
    id: UserId,
    #[serde(default)]
    username: String,
    #[serde(default)]
    global_name: Option<String>,
    #[serde(default)]
    bot: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBER: &str = r#""guild_id":"3","channel":{"id":"4","type":11},"channel_id":"4",
        "member":{"user":{"id":"5","username":"ann","global_name":"Ann"},"nick":null,
        "roles":["6"]}"#;
    const USER: &str = r#""channel":{"id":"4","type":1},"user":{"id":"5","username":"ann"}"#;
    const ASKED: &str = r#""data":{"id":"9","name":"ask","type":1,
        "options":[{"name":"question","type":3,"value":"why?"}]}"#;
    const ABOUT: &str = r#""data":{"id":"9","name":"Ask about this message","type":3,
        "target_id":"7","resolved":{"messages":{"7":{"id":"7","channel_id":"4",
        "content":"look","timestamp":"2026-01-02T03:04:05.678000+00:00","type":0,
        "author":{"id":"8","username":"bob"}}}}}"#;

    fn call(kind: u8, place: &str, more: &str, data: &str) -> Option<Called> {
        called(&format!(
            r#"{{"id":"1","application_id":"2","type":{kind},"token":"secret",{place}{more},{data}}}"#
        ))
    }

    #[track_caller]
    fn check(place: &str, more: &str, expected: InteractionKind) {
        let call = call(2, place, more, ASKED).unwrap();
        assert_eq!(call.interaction.kind, expected);
        assert_eq!(
            call.command,
            Command::Ask {
                question: "why?".to_owned()
            }
        );
    }

    #[test]
    fn the_place_of_a_call_is_told() {
        check(MEMBER, r#","context":0"#, InteractionKind::Guild);
        check(MEMBER, "", InteractionKind::Guild);
        let owners = r#","context":0,"authorizing_integration_owners":{"0":"3"}"#;
        check(MEMBER, owners, InteractionKind::Guild);
        let owners = r#","context":0,"authorizing_integration_owners":{"1":"5"}"#;
        check(MEMBER, owners, InteractionKind::Elsewhere);
        check(USER, r#","context":1"#, InteractionKind::BotDm);
        check(USER, "", InteractionKind::BotDm);
        check(USER, r#","context":2"#, InteractionKind::Elsewhere);
    }

    #[test]
    fn the_asker_comes_with_name_and_roles() {
        let call = call(2, MEMBER, "", ASKED).unwrap();
        assert_eq!((&*call.asker.name, call.asker.id), ("Ann", UserId::new(5)));
        assert_eq!(call.roles, [RoleId::new(6)]);
        assert_eq!(call.channel_kind, Some(ChannelKind::PublicThread));
        assert!(!format!("{call:?}").contains("secret"));
    }

    #[test]
    fn a_message_command_brings_its_message() {
        let call = call(2, MEMBER, "", ABOUT).unwrap();
        assert_eq!(
            call.command,
            Command::AskAbout {
                message: MessageId::new(7)
            }
        );
        let message = call.message.unwrap().message;
        assert_eq!((message.id, &*message.content), (MessageId::new(7), "look"));
    }

    #[test]
    fn what_is_no_command_of_ours_is_told_apart() {
        assert!(call(1, MEMBER, "", ASKED).is_none());
        assert!(call(3, MEMBER, "", ASKED).is_none());
        assert!(called("{}").is_none());
        let old = call(2, MEMBER, "", r#""data":{"id":"9","name":"old","type":1}"#).unwrap();
        assert_eq!(old.command, Command::Unknown("old".to_owned()));
        let bare = call(2, MEMBER, "", r#""data":{"id":"9","name":"ask","type":1}"#).unwrap();
        assert_eq!(bare.command, Command::Unknown("ask".to_owned()));
    }
}
