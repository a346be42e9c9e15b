//! Reads the options of a call.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::name;
use crate::model::{
    Command, Completing, ContextCommand, MemoryCommand, PrivacyCommand, ServerMemoryCommand,
    SettingsCommand, WrongCall,
};
use clew_context::model::{ChannelId, ChannelMode, MessageId, ReplyTarget};
use clew_store::model::{Change, SettingsChange};

/// How long a conversation may be remembered, in minutes: up to a year.
const WINDOW_MINUTES: RangeInclusive<u64> = 1..=365 * 24 * 60;
/// Option types (Discord's reference, "Application Command Option Type").
const SUB_COMMAND: u8 = 1;

/// The options of a call, with its sub-command split off.
pub(super) struct Options<'a> {
    sub: Option<&'a str>,
    values: &'a [WireOption<'a>],
}

/// An option as Discord sends it; a sub-command has options of its own.
#[derive(Deserialize)]
pub(super) struct WireOption<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(rename = "type", default)]
    kind: u8,
    #[serde(default, borrow)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    focused: bool,
    #[serde(default, borrow)]
    options: Vec<WireOption<'a>>,
}

/// A choice this version does not offer.
struct OtherVersion;

impl<'a> Options<'a> {
    pub(super) fn of(options: &'a [WireOption<'a>]) -> Self {
        match options {
            [sub] if sub.kind == SUB_COMMAND => Self {
                sub: Some(&*sub.name),
                values: &sub.options,
            },
            _ => Self {
                sub: None,
                values: options,
            },
        }
    }

    /// A value; `None` if it is absent or of another type.
    fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let option = self.values.iter().find(|option| option.name == name)?;
        serde_json::from_str(option.value?.get()).ok()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name)
    }

    /// A switch that defaults to off.
    fn flag(&self, name: &str) -> bool {
        self.get(name).unwrap_or(false)
    }

    /// A choice, if given; an error if we do not offer it.
    fn choice<T>(
        &self,
        name: &str,
        of: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, OtherVersion> {
        let word = self.text(name);
        word.map(|word| of(&word).ok_or(OtherVersion)).transpose()
    }
}

/// The command called; `None` if this version does not know it.
pub(super) fn command(
    name: &str,
    options: &Options<'_>,
    target: Option<MessageId>,
) -> Option<Command> {
    match (name, options.sub) {
        (name::ASK, None) => {
            let question = options.text(name::QUESTION)?;
            Some(Command::Ask { question })
        }
        (name::ASK_ABOUT, None) => target.map(|message| Command::AskAbout { message }),
        (name::CONTEXT, Some(sub)) => context(sub, options).map(Command::Context),
        (name::CLEAR_CONTEXT, None) => Some(Command::ClearContext),
        (name::SETTINGS, Some(sub)) => settings(sub, options),
        (name::MEMORY, Some(sub)) => memory(sub, options).map(Command::Memory),
        (name::SERVER_MEMORY, Some(sub)) => server_memory(sub, options).map(Command::ServerMemory),
        (name::PRIVACY, Some(sub)) => privacy(sub).map(Command::Privacy),
        (name::HELP, None) => Some(Command::Help),
        _ => None,
    }
}

fn context(sub: &str, options: &Options<'_>) -> Option<ContextCommand> {
    match sub {
        name::CLEAR => Some(ContextCommand::Clear {
            everyone: options.flag(name::EVERYONE),
        }),
        name::SHOW => Some(ContextCommand::Show),
        name::SAVE => Some(ContextCommand::Save {
            description: options.text(name::DESCRIPTION),
        }),
        name::HISTORY => Some(ContextCommand::History {
            agent: options.text(name::AGENT),
        }),
        name::RESTORE => Some(ContextCommand::Restore {
            snapshot: options.text(name::SNAPSHOT)?,
        }),
        _ => None,
    }
}

fn settings(sub: &str, options: &Options<'_>) -> Option<Command> {
    match sub {
        name::SHOW => Some(Command::Settings(SettingsCommand::Show)),
        name::SET => Some(match change(options).ok()? {
            Ok(change) => Command::Settings(SettingsCommand::Set(change)),
            Err(wrong) => Command::Wrong(wrong),
        }),
        _ => None,
    }
}

fn change(options: &Options<'_>) -> Result<Result<SettingsChange, WrongCall>, OtherVersion> {
    let mode = options.choice(name::MODE, |word| match word {
        name::MENTIONS => Some(ChannelMode::Mentions),
        name::EVERYTHING => Some(ChannelMode::Everything),
        name::OFF => Some(ChannelMode::Off),
        _ => None,
    })?;
    let reply_target = options.choice(name::REPLY_TARGET, |word| match word {
        name::NEWEST => Some(Change::Set(ReplyTarget::Newest)),
        name::TRIGGER => Some(Change::Set(ReplyTarget::Trigger)),
        name::DEFAULT => Some(Change::Unset),
        _ => None,
    })?;
    let learning = options.choice(name::LEARNING, |word| match word {
        name::ON => Some(Change::Set(true)),
        name::OFF => Some(Change::Set(false)),
        name::DEFAULT => Some(Change::Unset),
        _ => None,
    })?;
    let channel = options.choice(name::CHANNEL, |id| ChannelId::from_str(id).ok())?;
    let channel = match (channel, mode) {
        (Some(channel), Some(mode)) => Some((channel, mode)),
        (Some(_), None) => return Ok(Err(WrongCall::ChannelWithoutMode)),
        (None, Some(_)) => return Ok(Err(WrongCall::ModeWithoutChannel)),
        (None, None) => None,
    };
    let rolling_window = match options.text(name::ROLLING_WINDOW).as_deref() {
        None => Change::Keep,
        Some(name::DEFAULT) => Change::Unset,
        Some(text) => match span(text) {
            Some(window) => Change::Set(window),
            None => return Ok(Err(WrongCall::RollingWindow)),
        },
    };
    let change = SettingsChange {
        rolling_window,
        channel,
        reply_target: reply_target.unwrap_or_default(),
        learning: learning.unwrap_or_default(),
    };
    if change == SettingsChange::default() {
        return Ok(Err(WrongCall::NothingToSet));
    }
    Ok(Ok(change))
}

/// A time span as people type it: `90m`, `12 hours`, `7d`; a bare number is
/// hours.
fn span(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let minutes = match unit.trim() {
        "m" | "min" | "minute" | "minutes" => 1,
        "" | "h" | "hour" | "hours" => 60,
        "d" | "day" | "days" => 24 * 60,
        _ => return None,
    };
    let minutes = number.parse::<u64>().ok()?.checked_mul(minutes)?;
    WINDOW_MINUTES
        .contains(&minutes)
        .then(|| Duration::from_secs(minutes * 60))
}

fn memory(sub: &str, options: &Options<'_>) -> Option<MemoryCommand> {
    match sub {
        name::SHOW => Some(MemoryCommand::Show),
        name::REMEMBER => Some(MemoryCommand::Remember {
            text: options.text(name::TEXT)?,
            everywhere: options.flag(name::EVERYWHERE),
        }),
        name::FORGET => Some(MemoryCommand::Forget {
            fact: options.text(name::FACT)?,
        }),
        _ => None,
    }
}

fn server_memory(sub: &str, options: &Options<'_>) -> Option<ServerMemoryCommand> {
    match sub {
        name::SHOW => Some(ServerMemoryCommand::Show),
        name::REMEMBER => Some(ServerMemoryCommand::Remember {
            text: options.text(name::TEXT)?,
        }),
        name::FORGET => Some(ServerMemoryCommand::Forget {
            fact: options.text(name::FACT)?,
        }),
        _ => None,
    }
}

fn privacy(sub: &str) -> Option<PrivacyCommand> {
    match sub {
        name::SHOW => Some(PrivacyCommand::Show),
        name::OPT_OUT => Some(PrivacyCommand::OptOut),
        name::OPT_IN => Some(PrivacyCommand::OptIn),
        name::EXPORT => Some(PrivacyCommand::Export),
        name::ERASE => Some(PrivacyCommand::Erase),
        _ => None,
    }
}

/// The option being typed; `None` for those we do not complete.
pub(super) fn completing(name: &str, options: &Options<'_>) -> Option<Completing> {
    let focused = options.values.iter().find(|option| option.focused)?;
    let typed = options.text(&focused.name).unwrap_or_default();
    match (name, options.sub?, &*focused.name) {
        (name::MEMORY, name::FORGET, name::FACT) => Some(Completing::Fact(typed)),
        (name::SERVER_MEMORY, name::FORGET, name::FACT) => Some(Completing::ServerFact(typed)),
        (name::CONTEXT, name::RESTORE, name::SNAPSHOT) => Some(Completing::Snapshot(typed)),
        (name::CONTEXT, name::HISTORY, name::AGENT) => Some(Completing::Agent(typed)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a call of `name`, with options as Discord writes them.
    fn read(name: &str, options: &str) -> Option<Command> {
        let options: Vec<WireOption<'_>> = serde_json::from_str(options).unwrap();
        command(name, &Options::of(&options), None)
    }

    fn sub(sub: &str, options: &str) -> String {
        format!(r#"[{{"name":"{sub}","type":1,"options":[{options}]}}]"#)
    }

    #[test]
    fn every_command_is_read() {
        #[track_caller]
        fn check(name: &str, inner: (&str, &str), expected: Command) {
            assert_eq!(read(name, &sub(inner.0, inner.1)), Some(expected));
        }
        let everyone = r#"{"name":"everyone","type":5,"value":true}"#;
        let clear = |everyone| Command::Context(ContextCommand::Clear { everyone });
        check("context", ("clear", ""), clear(false));
        check("context", ("clear", everyone), clear(true));
        check("context", ("show", ""), {
            Command::Context(ContextCommand::Show)
        });
        let called = r#"{"name":"description","type":3,"value":"pump \"A\""}"#;
        let save = |text: Option<&str>| {
            Command::Context(ContextCommand::Save {
                description: text.map(str::to_owned),
            })
        };
        check("context", ("save", called), save(Some("pump \"A\"")));
        check("context", ("save", ""), save(None));
        let agent = r#"{"name":"agent","type":3,"value":"default"}"#;
        check("context", ("history", agent), {
            let agent = Some("default".to_owned());
            Command::Context(ContextCommand::History { agent })
        });
        check(
            "context",
            ("restore", r#"{"name":"snapshot","type":3,"value":"id"}"#),
            {
                let snapshot = "id".to_owned();
                Command::Context(ContextCommand::Restore { snapshot })
            },
        );
        let text = r#"{"name":"text","type":3,"value":"likes tea"}"#;
        let everywhere = format!(r#"{text},{{"name":"everywhere","type":5,"value":true}}"#);
        let remember = |everywhere| {
            let text = "likes tea".to_owned();
            Command::Memory(MemoryCommand::Remember { text, everywhere })
        };
        check("memory", ("remember", text), remember(false));
        check("memory", ("remember", &everywhere), remember(true));
        check("memory", ("show", ""), Command::Memory(MemoryCommand::Show));
        check("server-memory", ("remember", text), {
            let text = "likes tea".to_owned();
            Command::ServerMemory(ServerMemoryCommand::Remember { text })
        });
        let fact = r#"{"name":"fact","type":3,"value":"7"}"#;
        check("server-memory", ("forget", fact), {
            let fact = "7".to_owned();
            Command::ServerMemory(ServerMemoryCommand::Forget { fact })
        });
        for (word, command) in [
            ("show", PrivacyCommand::Show),
            ("opt-out", PrivacyCommand::OptOut),
            ("opt-in", PrivacyCommand::OptIn),
            ("export", PrivacyCommand::Export),
            ("erase", PrivacyCommand::Erase),
        ] {
            check("privacy", (word, ""), Command::Privacy(command));
        }
        assert_eq!(read("clear-context", "[]"), Some(Command::ClearContext));
        assert_eq!(read("help", "[]"), Some(Command::Help));
    }

    #[test]
    fn settings_are_read_together() {
        #[track_caller]
        fn check(options: &str, expected: Result<SettingsChange, WrongCall>) {
            let expected = match expected {
                Ok(change) => Command::Settings(SettingsCommand::Set(change)),
                Err(wrong) => Command::Wrong(wrong),
            };
            assert_eq!(read("settings", &sub("set", options)), Some(expected));
        }
        let unset = SettingsChange::default;
        let option =
            |name: &str, value: &str| format!(r#"{{"name":"{name}","type":3,"value":"{value}"}}"#);
        for (text, seconds) in [
            ("1m", 60),
            ("90 minutes", 5_400),
            ("12h", 43_200),
            ("36", 129_600),
            (" 7D ", 604_800),
            ("365d", 31_536_000),
        ] {
            let rolling_window = Change::Set(Duration::from_secs(seconds));
            check(&option("rolling-window", text), {
                Ok(SettingsChange {
                    rolling_window,
                    ..unset()
                })
            });
        }
        for text in [
            "",
            "0",
            "0m",
            "-1",
            "366d",
            "8761",
            "1w",
            "h",
            "99999999999999999999d",
        ] {
            let window = option("rolling-window", text);
            check(&window, Err(WrongCall::RollingWindow));
        }
        let back = ["rolling-window", "reply-target", "learning"];
        let back = back.map(|name| option(name, "default")).join(",");
        check(&back, {
            Ok(SettingsChange {
                rolling_window: Change::Unset,
                channel: None,
                reply_target: Change::Unset,
                learning: Change::Unset,
            })
        });
        let channel = r#"{"name":"channel","type":7,"value":"42"}"#;
        let mode = r#"{"name":"mode","type":3,"value":"off"}"#;
        check(channel, Err(WrongCall::ChannelWithoutMode));
        check(mode, Err(WrongCall::ModeWithoutChannel));
        check("", Err(WrongCall::NothingToSet));
        let rest = r#"{"name":"reply-target","type":3,"value":"trigger"},
            {"name":"learning","type":3,"value":"off"}"#;
        check(&format!("{channel},{mode},{rest}"), {
            Ok(SettingsChange {
                rolling_window: Change::Keep,
                channel: Some((ChannelId::new(42), ChannelMode::Off)),
                reply_target: Change::Set(ReplyTarget::Trigger),
                learning: Change::Set(false),
            })
        });
    }

    #[test]
    fn what_is_missing_or_of_another_version_is_unknown() {
        #[track_caller]
        fn check(name: &str, options: &str) {
            assert_eq!(read(name, options), None);
        }
        check("memory", "[]");
        check("memory", &sub("remember", ""));
        check(
            "memory",
            &sub("forget", r#"{"name":"fact","type":4,"value":7}"#),
        );
        check("context", &sub("restore", ""));
        check("context", &sub("other", ""));
        check("privacy", &sub("", ""));
        check("help", &sub("show", ""));
        let mode = r#"{"name":"channel","type":7,"value":"42"},
            {"name":"mode","type":3,"value":"sometimes"}"#;
        check("settings", &sub("set", mode));
    }

    #[test]
    fn what_is_typed_is_completed() {
        #[track_caller]
        fn check(name: &str, inner: &str, option: &str, expected: Option<&Completing>) {
            let other = r#"{"name":"other","type":3,"value":"no"}"#;
            let typed =
                format!(r#"{other},{{"name":"{option}","type":3,"value":"pi","focused":true}}"#);
            let text = sub(inner, &typed);
            let options: Vec<WireOption<'_>> = serde_json::from_str(&text).unwrap();
            assert_eq!(completing(name, &Options::of(&options)).as_ref(), expected);
        }
        let typed = || "pi".to_owned();
        let fact = Completing::Fact(typed());
        check("memory", "forget", "fact", Some(&fact));
        let of_server = Completing::ServerFact(typed());
        check("server-memory", "forget", "fact", Some(&of_server));
        let snapshot = Completing::Snapshot(typed());
        check("context", "restore", "snapshot", Some(&snapshot));
        let agent = Completing::Agent(typed());
        check("context", "history", "agent", Some(&agent));
        check("memory", "remember", "text", None);
        check("context", "forget", "fact", None);
    }
}
