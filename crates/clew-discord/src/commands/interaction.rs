//! Turns `INTERACTION_CREATE` into the call of a command, the press of a button, or
//! an autocompletion. Reads leniently: what it cannot use counts as left out.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::IncomingInteraction;
use crate::model::{CallerRights, CommandData, InteractionData, OptionValue};
use clew_context::discord::convert;
use clew_context::engine::access::bits;
use clew_context::model::{
    ApplicationId, Author, ChannelId, ChannelKind, GuildId, Interaction, InteractionId,
    InteractionPlace, MessageId, RoleId, Secret, UserId,
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
/// Option types (Discord's reference, "Application Command Option Type").
const SUB_COMMAND: u8 = 1;
const ATTACHMENT: u8 = 11;
/// Key of `authorizing_integration_owners` for an install in a server.
const GUILD_INSTALL: &str = "0";

/// Reads `d` as text. `None` for interactions we do not use.
///
/// # Errors
/// The missing part without which we cannot answer.
pub fn parse(data: &str) -> Result<Option<IncomingInteraction>, &'static str> {
    let wire: Wire<'_> = serde_json::from_str(data).map_err(|_| "json")?;
    let place = wire.place();
    let Some(wire_data) = wire.data else {
        return Ok(None);
    };
    let on = wire.message.map(RawValue::get);
    let pressed_on = on.and_then(|raw| serde_json::from_str(raw).ok());
    let message = wire_data.message().or(on);
    let message = message.and_then(|raw| convert::incoming(raw).ok());
    let Some(data) = wire_data.read(wire.kind) else {
        return Ok(None);
    };
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
    Ok(Some(IncomingInteraction {
        data,
        message: message.map(Box::new),
        pressed_on: pressed_on.map(|WireMessage { id }| id),
        asker: Author {
            id: user.id,
            name: nick.or(user.global_name).unwrap_or(user.username).into(),
            bot: user.bot,
            webhook: false,
            application: None,
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
            place,
        },
    }))
}

impl Wire<'_> {
    /// Where it was called: as Discord says, else guessed from the rest.
    fn place(&self) -> InteractionPlace {
        let owners = self.authorizing_integration_owners.as_ref();
        // Installed for the user only: the bot is not in that server.
        let installed = owners.is_none_or(|owners| owners.contains_key(GUILD_INSTALL));
        let direct = self.channel.as_ref().map(WireChannel::kind) == Some(ChannelKind::Dm);
        match self.context {
            Some(CONTEXT_GUILD) if installed => InteractionPlace::Guild,
            Some(CONTEXT_BOT_DM) => InteractionPlace::BotDm,
            None if self.guild_id.is_some() && installed => InteractionPlace::Guild,
            None if self.guild_id.is_none() && direct => InteractionPlace::BotDm,
            _ => InteractionPlace::Elsewhere,
        }
    }
}

impl<'a> WireData<'a> {
    fn read(self, kind: u8) -> Option<InteractionData> {
        Some(match kind {
            APPLICATION_COMMAND => InteractionData::Command(self.command()),
            AUTOCOMPLETE => InteractionData::Autocomplete(self.command()),
            MESSAGE_COMPONENT if self.component_type == BUTTON => {
                InteractionData::Button(self.custom_id.unwrap_or_default())
            }
            MESSAGE_COMPONENT => InteractionData::Other,
            _ => return None,
        })
    }

    fn command(self) -> CommandData {
        let (sub, options) = match self.options.as_slice() {
            [sub] if sub.kind == SUB_COMMAND => (Some(sub.name.clone()), &*sub.options),
            options => (None, options),
        };
        let focused = options.iter().find(|option| option.focused);
        let values = options.iter();
        let resolved = self.resolved.as_ref();
        let value = |option: &WireOption<'_>| match option.kind {
            ATTACHMENT => option.file(resolved),
            _ => option.value(),
        };
        let values = values.filter_map(|option| Some((option.name.clone(), value(option)?)));
        CommandData {
            focused: focused.map(|option| option.name.clone()),
            options: values.collect(),
            sub,
            name: self.name.unwrap_or_default(),
            target: self.target_id,
        }
    }

    /// The target of a message command, as JSON.
    fn message(&self) -> Option<&'a str> {
        let messages = self.resolved.as_ref()?.messages.as_ref()?;
        Some(messages.get(&self.target_id?)?.get())
    }
}

impl WireOption<'_> {
    /// `None` if it is of a type that we do not use.
    fn value(&self) -> Option<OptionValue> {
        let raw = self.value?.get();
        let text = serde_json::from_str(raw).map(OptionValue::Text);
        text.or_else(|_| serde_json::from_str(raw).map(OptionValue::Flag))
            .ok()
    }

    /// The file that it names by its id; `None` if it did not come or cannot be read.
    fn file(&self, resolved: Option<&WireResolved<'_>>) -> Option<OptionValue> {
        let id: &str = serde_json::from_str(self.value?.get()).ok()?;
        let file = resolved?.attachments.as_ref()?.get(id)?;
        let file = convert::attachment(file.get()).ok()?;
        Some(OptionValue::File(Box::new(file)))
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
            moderate_members: has(bits::MODERATE_MEMBERS),
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
    guild_id: Option<GuildId>,
    channel: Option<WireChannel>,
    channel_id: Option<ChannelId>,
    member: Option<WireMember>,
    user: Option<WireUser>,
    #[serde(default, borrow)]
    message: Option<&'a RawValue>,
    token: String,
    context: Option<u8>,
    #[serde(default, borrow)]
    authorizing_integration_owners: Option<HashMap<String, &'a RawValue>>,
}

/// For a command or an autocompletion (name and options), or for a component
/// (custom id and type).
#[derive(Deserialize)]
struct WireData<'a> {
    name: Option<String>,
    #[serde(default, borrow)]
    options: Vec<WireOption<'a>>,
    target_id: Option<MessageId>,
    #[serde(default, borrow)]
    resolved: Option<WireResolved<'a>>,
    custom_id: Option<String>,
    #[serde(default)]
    component_type: u8,
}

/// An option as Discord sends it; a sub-command has options of its own.
#[derive(Deserialize)]
struct WireOption<'a> {
    name: String,
    #[serde(rename = "type", default)]
    kind: u8,
    #[serde(default, borrow)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    focused: bool,
    #[serde(default, borrow)]
    options: Vec<WireOption<'a>>,
}

#[derive(Deserialize)]
struct WireResolved<'a> {
    #[serde(default, borrow)]
    messages: Option<HashMap<MessageId, &'a RawValue>>,
    /// By id.
    #[serde(default, borrow)]
    attachments: Option<HashMap<&'a str, &'a RawValue>>,
}

#[derive(Deserialize)]
struct WireChannel {
    id: ChannelId,
    #[serde(rename = "type")]
    kind: u8,
}

/// The message that a component is on.
#[derive(Deserialize)]
struct WireMessage {
    id: MessageId,
}

#[derive(Deserialize)]
struct WireMember {
    user: WireUser,
    nick: Option<String>,
    #[serde(default)]
    roles: Vec<RoleId>,
    permissions: Option<String>,
}

#[derive(Deserialize)]
struct WireUser {
    id: UserId,
    #[serde(default)]
    username: String,
    global_name: Option<String>,
    #[serde(default)]
    bot: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{OptionKind, OptionSpec};

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

    fn call(kind: u8, place: &str, more: &str, data: &str) -> Option<IncomingInteraction> {
        parse(&format!(
            r#"{{"id":"1","application_id":"2","type":{kind},"token":"secret",{place}{more},{data}}}"#
        ))
        .unwrap()
    }

    const FILE: OptionSpec = OptionSpec::new("file", "", OptionKind::File);

    /// A call of a command, with one option at most.
    fn command(name: &str, sub: Option<&str>, option: Option<(&str, OptionValue)>) -> CommandData {
        CommandData {
            name: name.to_owned(),
            sub: sub.map(str::to_owned),
            options: option
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..CommandData::default()
        }
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[track_caller]
    fn check(place: &str, more: &str, expected: InteractionPlace) {
        let call = call(2, place, more, ASKED).unwrap();
        assert_eq!(call.interaction.place, expected);
        let asked = command("ask", None, Some(("question", text("why?"))));
        assert_eq!(call.data, InteractionData::Command(asked));
    }

    #[test]
    fn the_place_of_a_call_is_told() {
        check(MEMBER, r#","context":0"#, InteractionPlace::Guild);
        check(MEMBER, "", InteractionPlace::Guild);
        let owners = r#","context":0,"authorizing_integration_owners":{"0":"3"}"#;
        check(MEMBER, owners, InteractionPlace::Guild);
        let owners = r#","context":0,"authorizing_integration_owners":{"1":"5"}"#;
        check(MEMBER, owners, InteractionPlace::Elsewhere);
        check(USER, r#","context":1"#, InteractionPlace::BotDm);
        check(USER, "", InteractionPlace::BotDm);
        check(USER, r#","context":2"#, InteractionPlace::Elsewhere);
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
        let about = CommandData {
            target: Some(MessageId::new(7)),
            ..command("Ask about this message", None, None)
        };
        assert_eq!(call.data, InteractionData::Command(about));
        let message = call.message.unwrap().message;
        assert_eq!((message.id, &*message.content), (MessageId::new(7), "look"));
    }

    #[test]
    fn other_interactions_are_none_of_ours() {
        assert!(call(1, MEMBER, "", ASKED).is_none());
        assert!(call(5, MEMBER, "", ASKED).is_none());
        assert_eq!(parse("{}").unwrap_err(), "json");
    }

    #[test]
    fn options_are_read_leniently() {
        #[track_caller]
        fn check(options: &str, expected: &CommandData) {
            let data = format!(r#""data":{{"id":"9","name":"memory","options":[{options}]}}"#);
            let expected = InteractionData::Command(expected.clone());
            assert_eq!(call(2, MEMBER, "", &data).unwrap().data, expected);
        }
        let bare = command("memory", None, None);
        check("", &bare);
        let sub = |inner: &str| format!(r#"{{"name":"show","type":1,"options":[{inner}]}}"#);
        check(&sub(""), &command("memory", Some("show"), None));
        check(
            r#"{"name":"show","type":1}"#,
            &command("memory", Some("show"), None),
        );
        // Of a group of sub-commands, two at once, or an option of that name.
        check(&sub("").replace(":1", ":2"), &bare);
        check(&format!("{},{}", sub(""), sub("")), &bare);
        check(r#"{"name":"show"}"#, &bare);
        for (value, expected) in [
            (r#""tea""#, Some(text("tea"))),
            (r#""\"tea\"\n""#, Some(text("\"tea\"\n"))),
            ("true", Some(OptionValue::Flag(true))),
            ("7", None),
            ("1e999", None),
            ("null", None),
            ("[]", None),
        ] {
            let option = format!(r#"{{"name":"text","type":3,"value":{value}}}"#);
            let expected = expected.map(|value| ("text", value));
            check(&option, &command("memory", None, expected.clone()));
            check(&sub(&option), &command("memory", Some("show"), expected));
        }
    }

    #[test]
    fn a_file_comes_from_what_the_call_resolves() {
        #[track_caller]
        fn check(resolved: &str, expected: Option<&str>) {
            let data = format!(
                r#""data":{{"id":"9","name":"ask","options":[{{"name":"file","type":11,
                "value":"7"}}],"resolved":{{"attachments":{{{resolved}}}}}}}"#
            );
            let InteractionData::Command(data) = call(2, MEMBER, "", &data).unwrap().data else {
                panic!("it is a command");
            };
            assert_eq!(data.file(&FILE).map(|file| &*file.filename), expected);
            assert!(data.fits(&[FILE]) && data.text(&FILE).is_none());
        }
        let file = r#"{"id":"7","filename":"a.txt","size":3,"url":"https://cdn/a","proxy_url":""}"#;
        check(&format!(r#""7":{file}"#), Some("a.txt"));
        check(&format!(r#""8":{file}"#), None);
        check(r#""7":{"id":"7","filename":"a.txt"}"#, None);
        check(r#""7":[]"#, None);
    }

    #[test]
    fn the_callers_rights_are_discords() {
        #[track_caller]
        fn check(permissions: &str, expected: [bool; 3]) {
            let member = MEMBER.replace(
                r#""roles""#,
                &format!(r#""permissions":{permissions},"roles""#),
            );
            let rights = call(2, &member, "", ASKED).unwrap().rights;
            let [manage_server, manage_messages, moderate_members] = expected;
            let expected = CallerRights {
                manage_server,
                manage_messages,
                moderate_members,
            };
            assert_eq!(rights, expected);
        }
        check(r#""0""#, [false; 3]);
        check(r#""32""#, [true, false, false]);
        check(r#""8192""#, [false, true, false]);
        check(r#""1099511627776""#, [false, false, true]);
        check(r#""8""#, [true; 3]);
        check(r#""9007199254740991""#, [true; 3]);
        check(r#""2147483647999999999999999""#, [false; 3]);
        check("null", [false; 3]);
        let direct = call(2, USER, r#","context":1"#, ASKED).unwrap();
        assert_eq!(direct.rights, CallerRights::default());
    }

    #[test]
    fn a_press_brings_the_id_of_its_button() {
        #[track_caller]
        fn check(component: u8, id: &str, expected: &InteractionData) {
            let data = format!(
                r#""data":{{"component_type":{component},"custom_id":"{id}","id":1}},
                "message":{{"id":"7","channel_id":"4"}}"#
            );
            let call = call(3, MEMBER, "", &data).unwrap();
            assert_eq!(
                (&call.data, call.pressed_on),
                (expected, Some(MessageId::new(7)))
            );
        }
        let button = |id: &str| InteractionData::Button(id.to_owned());
        check(2, "erase", &button("erase"));
        check(2, "page:facts:3", &button("page:facts:3"));
        check(2, r#"a\\n\"b"#, &button("a\\n\"b"));
        check(3, "erase", &InteractionData::Other);
        let bare = call(3, MEMBER, "", r#""data":{}"#).unwrap();
        assert_eq!(bare.data, InteractionData::Other);
    }

    #[test]
    fn what_is_being_typed_is_told() {
        let data = r#""data":{"id":"9","name":"memory","type":1,"options":[{"name":"forget",
            "type":1,"options":[{"name":"fact","type":3,"value":"pi","focused":true}]}]}"#;
        let typed = CommandData {
            focused: Some("fact".to_owned()),
            ..command("memory", Some("forget"), Some(("fact", text("pi"))))
        };
        let typed = InteractionData::Autocomplete(typed);
        assert_eq!(call(4, MEMBER, "", data).unwrap().data, typed);
    }
}
