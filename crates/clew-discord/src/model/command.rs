//! Commands: how they are defined, and what a call of one brings.

use std::str::FromStr;

use clew_context::model::{Attachment, ChannelId, MessageId};

/// A command of ours, as members see it.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// Discord's name of it; lower case unless it is in a menu.
    pub name: &'static str,
    /// 1 to 100 characters; empty for one in a menu.
    pub description: &'static str,
    /// Where it is offered.
    pub kind: CommandKind,
    /// In this order; those that are required come first.
    pub options: Vec<OptionSpec>,
    /// Not offered in direct messages.
    pub servers_only: bool,
    /// Offered to members with Manage Server only, unless a server's
    /// administrators say otherwise.
    pub manage_server: bool,
    /// The same with Moderate Members.
    pub moderate_members: bool,
}

/// Where a command is offered (Discord's reference, "Application Command Types").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    /// As `/name`.
    Slash,
    /// In the menu of every message.
    Message,
}

/// An option of a command.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Lower case.
    pub name: &'static str,
    /// 1 to 100 characters.
    pub description: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// Whether a call without it is refused.
    pub required: bool,
}

/// What an option takes.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// A text of so many characters.
    Text {
        /// At least.
        min: u16,
        /// At most.
        max: u16,
    },
    /// A text for which we propose choices as it is typed.
    Completed,
    /// One of these, by label and word.
    Choice(&'static [(&'static str, &'static str)]),
    /// Yes or no.
    Flag,
    /// A channel that people talk in; a thread counts as its parent.
    Channel,
    /// The same, a thread or a post.
    Place,
    /// A file that the caller uploads with the call.
    File,
    /// A user.
    User,
    /// A role.
    Role,
    /// Nothing itself: a sub-command, with options of its own.
    Sub(&'static [OptionSpec]),
}

impl OptionSpec {
    /// A text of so many characters.
    pub const fn text(name: &'static str, description: &'static str, min: u16, max: u16) -> Self {
        Self::new(name, description, OptionKind::Text { min, max })
    }

    /// A text for which we propose choices as it is typed.
    pub const fn completed(name: &'static str, description: &'static str) -> Self {
        Self::new(name, description, OptionKind::Completed)
    }

    /// Yes or no.
    pub const fn flag(name: &'static str, description: &'static str) -> Self {
        Self::new(name, description, OptionKind::Flag)
    }

    /// An option that may be left out.
    pub const fn new(name: &'static str, description: &'static str, kind: OptionKind) -> Self {
        Self {
            name,
            description,
            kind,
            required: false,
        }
    }

    /// The same, and it may not be left out.
    #[must_use]
    pub const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }
}

/// What was called (Discord's reference, "Interaction Data").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InteractionData {
    /// A command.
    Command(CommandData),
    /// The caller is typing an option for which we propose choices.
    Autocomplete(CommandData),
    /// A button under one of our answers, by its `custom_id`.
    Button(String),
    /// A component that we do not send.
    Other,
}

/// The call of a command. Nothing of it is checked against any definition: the
/// command may have been registered by another version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandData {
    /// The command.
    pub name: String,
    /// The sub-command.
    pub sub: Option<String>,
    /// The message, if it was called from its menu.
    pub target: Option<MessageId>,
    /// The options by name, without those of types that we do not use.
    pub options: Vec<(String, OptionValue)>,
    /// The option being typed.
    pub focused: Option<String>,
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A text, the word of a choice, or an id.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A file.
    File(Box<Attachment>),
}

impl CommandData {
    /// Whether this version can use the call: no required option is missing, and
    /// each choice is one of those offered.
    pub fn fits(&self, options: &[OptionSpec]) -> bool {
        options.iter().all(|option| match option.kind {
            OptionKind::Text { .. } | OptionKind::Completed => {
                !option.required || self.text(option).is_some()
            }
            OptionKind::Choice(choices) => self
                .text(option)
                .is_none_or(|word| choices.iter().any(|(_, offered)| *offered == word)),
            OptionKind::Channel | OptionKind::Place | OptionKind::User | OptionKind::Role => {
                self.text(option).is_none_or(|id| id.parse::<u64>().is_ok())
            }
            OptionKind::Flag | OptionKind::File | OptionKind::Sub(_) => true,
        })
    }

    /// A text or the word of a choice; `None` if it is absent or of another type.
    pub fn text(&self, option: &OptionSpec) -> Option<&str> {
        self.text_of(option.name)
    }

    /// What was typed so far into the option to complete.
    pub fn typed(&self) -> Option<&str> {
        self.text_of(self.focused.as_deref()?)
    }

    fn text_of(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            OptionValue::Text(text) => Some(text),
            OptionValue::Flag(_) | OptionValue::File(_) => None,
        }
    }

    /// Whether a flag is set.
    pub fn flag(&self, option: &OptionSpec) -> bool {
        self.value(option.name) == Some(&OptionValue::Flag(true))
    }

    /// A file; `None` if it is absent or could not be read.
    pub fn file(&self, option: &OptionSpec) -> Option<&Attachment> {
        match self.value(option.name)? {
            OptionValue::File(file) => Some(file),
            OptionValue::Text(_) | OptionValue::Flag(_) => None,
        }
    }

    /// A channel.
    pub fn channel(&self, option: &OptionSpec) -> Option<ChannelId> {
        self.id(option)
    }

    /// A chosen user, role or channel.
    pub fn id<T: FromStr>(&self, option: &OptionSpec) -> Option<T> {
        self.text(option)?.parse().ok()
    }

    fn value(&self, name: &str) -> Option<&OptionValue> {
        let found = self.options.iter().find(|(option, _)| option == name);
        found.map(|(_, value)| value)
    }
}

/// What the caller may do in that channel, as computed by Discord
/// (`member.permissions`). All false in direct messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerRights {
    /// Manage Server.
    pub manage_server: bool,
    /// Manage Messages.
    pub manage_messages: bool,
    /// Moderate Members (time out).
    pub moderate_members: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: OptionSpec = OptionSpec::text("text", "", 1, 9);
    const FACT: OptionSpec = OptionSpec::completed("fact", "");
    const MODE: OptionSpec = OptionSpec::new("mode", "", OptionKind::Choice(&[("Off", "off")]));
    const CHANNEL: OptionSpec = OptionSpec::new("channel", "", OptionKind::Channel);
    const EVERYWHERE: OptionSpec = OptionSpec::flag("everywhere", "");

    fn call(option: &str, value: OptionValue) -> CommandData {
        CommandData {
            options: vec![(option.to_owned(), value)],
            ..CommandData::default()
        }
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[test]
    fn calls_of_another_version_do_not_fit() {
        #[track_caller]
        fn check(option: OptionSpec, value: OptionValue, expected: bool) {
            assert_eq!(call(option.name, value).fits(&[option]), expected);
        }
        let flag = || OptionValue::Flag(true);
        check(TEXT, flag(), true);
        check(TEXT.required(), flag(), false);
        check(TEXT.required(), text(""), true);
        check(FACT.required(), flag(), false);
        check(MODE, text("off"), true);
        check(MODE, text("Off"), false);
        check(MODE, text("sometimes"), false);
        check(CHANNEL, text("42"), true);
        check(CHANNEL, text("here"), false);
        check(EVERYWHERE, text("yes"), true);
        let nothing = CommandData::default();
        assert!(nothing.fits(&[TEXT, FACT, MODE, CHANNEL, EVERYWHERE]));
        assert!(!nothing.fits(&[TEXT, FACT.required()]));
        assert!(call("other", flag()).fits(&[MODE, CHANNEL]));
    }

    #[test]
    fn an_option_of_another_type_counts_as_left_out() {
        assert_eq!(call("text", text("tea")).text(&TEXT), Some("tea"));
        assert_eq!(call("text", OptionValue::Flag(true)).text(&TEXT), None);
        assert_eq!(call("other", text("tea")).text(&TEXT), None);
        assert!(call("everywhere", OptionValue::Flag(true)).flag(&EVERYWHERE));
        assert!(!call("everywhere", OptionValue::Flag(false)).flag(&EVERYWHERE));
        assert!(!call("everywhere", text("true")).flag(&EVERYWHERE));
        let channel = call("channel", text("42")).channel(&CHANNEL);
        assert_eq!(channel, Some(ChannelId::new(42)));
    }
}
