//! Turns `INTERACTION_CREATE` into a call of one of our commands, a press of
//! one of our buttons, or an autocompletion.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::button::button;
use super::options::{Options, WireOption, command, completing};
use crate::event::Called;
use crate::model::{CallerRights, Command};
use clew_context::discord::convert;
use clew_context::engine::access::bits;
use clew_context::model::{
    ApplicationId, Author, ChannelId, ChannelKind, GuildId, Interaction, InteractionId,
    InteractionKind, MessageId, RoleId, Secret, UserId,
};

/// Interaction types (Discord's reference, "Interaction Type"); we do not use
/// pings and modals.
const APPLICATION_COMMAND: u8 = 2;
const MESSAGE_COMPONENT: u8 = 3;
const AUTOCOMPLETE: u8 = 4;
/// Component type of buttons; we send no select menus.
const BUTTON: u8 = 2;
/// Interaction contexts (Discord's reference, "Interaction Context Types").
const CONTEXT_GUILD: u8 = 0;
const CONTEXT_BOT_DM: u8 = 1;
/// Key of `authorizing_integration_owners` for an install in a server.
const GUILD_INSTALL: &str = "0";

/// Reads `d` as text. `None` for interactions we do not use, and for options we
/// do not complete.
///
/// # Errors
/// The missing part without which we cannot answer.
pub fn called(data: &str) -> Result<Option<Called>, &'static str> {
    let wire: Wire<'_> = serde_json::from_str(data).map_err(|_| "json")?;
    let kind = wire.place();
    let command = wire.data.as_ref().and_then(|data| data.command(wire.kind));
    let (Some(data), Some(command)) = (&wire.data, command) else {
        return Ok(None);
    };
    let message = data.message().and_then(|raw| convert::incoming(raw).ok());
    let rights = wire.member.as_ref().map(WireMember::rights);
    let (member, user) = (wire.member, wire.user);
    let (user, nick, roles) = match (member, user) {
        (Some(member), _) => (member.user, member.nick, member.roles),
        (None, Some(user)) => (user, None, Vec::new()),
        (None, None) => return Err("user"),
    };
    let channel = wire
        .channel_id
        .or(wire.channel.as_ref().map(|channel| channel.id));
    Ok(Some(Called {
        command,
        message: message.map(Box::new),
        asker: Author {
            id: user.id,
            name: nick.or(user.global_name).unwrap_or(user.username).into(),
            bot: user.bot,
            webhook: false,
        },
        roles,
        rights: rights.unwrap_or_default(),
        channel_kind: wire.channel.as_ref().map(WireChannel::kind),
        interaction: Interaction {
            id: wire.id,
            application: wire.application_id,
            token: Secret::new(wire.token),
            channel: channel.ok_or("channel_id")?,
            guild: wire.guild_id,
            user: user.id,
            kind,
        },
    }))
}

impl Wire<'_> {
    /// Where it was called: as Discord says, else guessed from the rest.
    fn place(&self) -> InteractionKind {
        let owners = self.authorizing_integration_owners.as_ref();
        // Installed for the user only: the bot is not in that server.
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
    fn command(&self, kind: u8) -> Option<Command> {
        let name = self.name.as_deref().unwrap_or_default();
        let options = Options::of(&self.options);
        match kind {
            APPLICATION_COMMAND => Some(
                command(name, &options, self.target_id)
                    .unwrap_or_else(|| Command::Unknown(name.to_owned())),
            ),
            MESSAGE_COMPONENT => {
                let id = self.custom_id.as_deref().unwrap_or_default();
                let pressed = (self.component_type == BUTTON).then(|| button(id));
                let pressed = pressed.flatten().map(Command::Button);
                Some(pressed.unwrap_or_else(|| Command::Unknown(id.to_owned())))
            }
            AUTOCOMPLETE => completing(name, &options).map(Command::Complete),
            _ => None,
        }
    }

    /// The target of a message command, as JSON.
    fn message(&self) -> Option<&str> {
        let messages = self.resolved.as_ref()?.messages.as_ref()?;
        Some(messages.get(&self.target_id?)?.get())
    }
}

impl WireMember {
    /// Administrators have every permission.
    fn rights(&self) -> CallerRights {
        let held = self.permissions.as_deref();
        let held: u64 = held.and_then(|held| held.parse().ok()).unwrap_or(0);
        let has = |bit: u64| held & (bit | bits::ADMINISTRATOR) != 0;
        CallerRights {
            manage_server: has(bits::MANAGE_GUILD),
            manage_messages: has(bits::MANAGE_MESSAGES),
        }
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

/// For a command or an autocompletion (name and options), or for a component
/// (custom id and type).
#[derive(Deserialize)]
struct WireData<'a> {
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    options: Vec<WireOption<'a>>,
    #[serde(default)]
    target_id: Option<MessageId>,
    #[serde(default, borrow)]
    resolved: Option<WireResolved<'a>>,
    #[serde(default, borrow)]
    custom_id: Option<Cow<'a, str>>,
    #[serde(default)]
    component_type: u8,
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
    #[serde(default)]
    permissions: Option<String>,
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
    use crate::model::{Button, Completing, Paged};

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
        .unwrap()
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
        assert!(call(5, MEMBER, "", ASKED).is_none());
        assert_eq!(called("{}").unwrap_err(), "json");
        let old = call(2, MEMBER, "", r#""data":{"id":"9","name":"old","type":1}"#).unwrap();
        assert_eq!(old.command, Command::Unknown("old".to_owned()));
        let bare = call(2, MEMBER, "", r#""data":{"id":"9","name":"ask","type":1}"#).unwrap();
        assert_eq!(bare.command, Command::Unknown("ask".to_owned()));
    }

    #[test]
    fn the_callers_rights_are_discords() {
        #[track_caller]
        fn check(permissions: &str, manage_server: bool, manage_messages: bool) {
            let member = MEMBER.replace(
                r#""roles""#,
                &format!(r#""permissions":{permissions},"roles""#),
            );
            let rights = call(2, &member, "", ASKED).unwrap().rights;
            let expected = CallerRights {
                manage_server,
                manage_messages,
            };
            assert_eq!(rights, expected);
        }
        check(r#""0""#, false, false);
        check(r#""32""#, true, false);
        check(r#""8192""#, false, true);
        check(r#""8""#, true, true);
        check(r#""9007199254740991""#, true, true);
        check(r#""2147483647999999999999999""#, false, false);
        check("null", false, false);
        let direct = call(2, USER, r#","context":1"#, ASKED).unwrap();
        assert_eq!(direct.rights, CallerRights::default());
    }

    #[test]
    fn a_press_says_what_its_button_is() {
        #[track_caller]
        fn check(component: u8, id: &str, expected: &Command) {
            let data = format!(
                r#""data":{{"component_type":{component},"custom_id":"{id}","id":1}},
                "message":{{"id":"7","channel_id":"4"}}"#
            );
            assert_eq!(&call(3, MEMBER, "", &data).unwrap().command, expected);
        }
        let unknown = |id: &str| Command::Unknown(id.to_owned());
        check(2, "erase", &Command::Button(Button::Erase));
        let page = Button::Page(Paged::Facts, 3);
        check(2, "page:facts:3", &Command::Button(page));
        check(2, "nobody's", &unknown("nobody's"));
        check(3, "erase", &unknown("erase"));
        check(2, r#"a\\n\"b"#, &unknown("a\\n\"b"));
        let bare = call(3, MEMBER, "", r#""data":{}"#).unwrap();
        assert_eq!(bare.command, Command::Unknown(String::new()));
    }

    #[test]
    fn only_our_options_are_completed() {
        let typed = |option: &str| {
            let data = format!(
                r#""data":{{"id":"9","name":"memory","type":1,"options":[{{"name":"forget",
                "type":1,"options":[{{"name":"{option}","type":3,"value":"pi","focused":true}}]}}]}}"#
            );
            call(4, MEMBER, "", &data).map(|call| call.command)
        };
        let expected = Command::Complete(Completing::Fact("pi".to_owned()));
        assert_eq!(typed("fact"), Some(expected));
        assert_eq!(typed("other"), None);
    }
}
