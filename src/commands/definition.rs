//! What a command is: how members see it, what a call does, who may call it, and what
//! `/help` says. The file of each command has one such value; [`COMMANDS`] lists them.

use std::fmt::Display;

use super::call::{Called, Run, Work};
use super::done::Deferral;
use super::{BUTTONS, COMMANDS, Refused};
use crate::telemetry::event::CommandWord;
use clew_context::model::TurnRequest;
use clew_discord::event::IncomingInteraction;
use clew_discord::model::{
    CommandData, CommandKind, CommandSpec, InteractionData, OptionKind, OptionSpec,
};

/// A command, begun with [`Command::action`] or [`Command::subs`]; what it has beyond that is set
/// field by field.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of a definition, beside its name"
)]
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: &'static str,
    /// 1 to 100 characters; empty for one in a menu.
    pub(super) description: &'static str,
    pub(super) kind: CommandKind,
    pub(super) body: Body,
    /// Not offered in direct messages.
    pub(super) servers_only: bool,
    /// Offered to members with Manage Server only.
    pub(super) manage_server: bool,
    /// The same with Moderate Members.
    pub(super) moderate_members: bool,
    /// Allow and deny lists keep nobody from it: `/help`, and what people need to see and delete
    /// what is kept about themselves.
    pub(super) for_everybody: bool,
    /// The buttons under its answers.
    pub(super) buttons: &'static [Button],
    /// The section of `/help` that it stands in, and its line there.
    pub(super) help: Option<(Section, &'static str)>,
}

/// A command does something itself, or has sub-commands that do.
#[derive(Debug)]
pub(super) enum Body {
    Action(Action),
    Subs(&'static [Action]),
}

/// What can be called: a sub-command, or a command without any.
#[derive(Debug)]
pub(super) struct Action {
    name: &'static str,
    /// As a command's.
    description: &'static str,
    /// Those that are required come first.
    options: &'static [OptionSpec],
    handler: Handler,
    /// Proposes choices for the options that are [`OptionKind::Completed`].
    complete: Option<Run>,
    work: Work,
}

/// A button. It carries all that it needs, so that it works after a restart and in
/// later versions: an id that was posted once keeps its meaning.
#[derive(Debug)]
pub(super) struct Button {
    /// Its `custom_id`. If this ends in a colon, an argument follows.
    pub(super) id: &'static str,
    /// As a command's.
    pub(super) for_everybody: bool,
    pub(super) work: Work,
    /// The message with the button stays as it is.
    pub(super) keeps_message: bool,
    pub(super) handler: Handler,
}

/// What a call leads to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Handler {
    Answer(Run),
    Turn(fn(IncomingInteraction) -> Result<TurnRequest, Refused>),
}

/// The sections of `/help`, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Runs,
    Conversation,
    Caller,
    Server,
    Privacy,
}

impl Section {
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Runs => "**Longer tasks**",
            Self::Conversation => "**What I remember of our conversation**",
            Self::Caller => "**What I remember about you**",
            Self::Server => "**About this server** (changes need Manage Server)",
            Self::Privacy => "**Your data**",
        }
    }
}

impl Command {
    /// A command without sub-commands: its name and description are the action's.
    pub(super) const fn action(action: Action) -> Self {
        Self::new(action.name, action.description, Body::Action(action))
    }

    pub(super) const fn subs(
        name: &'static str,
        description: &'static str,
        subs: &'static [Action],
    ) -> Self {
        Self::new(name, description, Body::Subs(subs))
    }

    const fn new(name: &'static str, description: &'static str, body: Body) -> Self {
        Self {
            name,
            description,
            kind: CommandKind::Slash,
            body,
            servers_only: false,
            manage_server: false,
            moderate_members: false,
            for_everybody: false,
            buttons: &[],
            help: None,
        }
    }

    /// As it is registered.
    pub(super) fn spec(&self) -> CommandSpec {
        let options = match &self.body {
            Body::Action(action) => action.options.to_vec(),
            Body::Subs(subs) => {
                let spec = |sub: &Action| {
                    OptionSpec::new(sub.name, sub.description, OptionKind::Sub(sub.options))
                };
                subs.iter().map(spec).collect()
            }
        };
        CommandSpec {
            name: self.name,
            description: self.description,
            kind: self.kind,
            options,
            servers_only: self.servers_only,
            manage_server: self.manage_server,
            moderate_members: self.moderate_members,
        }
    }

    /// What is called; none if there is no such sub-command.
    fn called(&'static self, sub: Option<&str>) -> Option<(CommandWord, &'static Action)> {
        match (&self.body, sub) {
            (Body::Action(action), None) => Some((CommandWord::new(self.name, None), action)),
            (Body::Subs(subs), Some(sub)) => {
                let sub = subs.iter().find(|one| one.name == sub)?;
                Some((CommandWord::new(self.name, Some(sub.name)), sub))
            }
            _ => None,
        }
    }
}

impl Action {
    /// Is answered with what `run` returns.
    pub(super) const fn new(name: &'static str, description: &'static str, run: Run) -> Self {
        Self::with(name, description, Handler::Answer(run))
    }

    /// Leads to a turn.
    pub(super) const fn turn(
        name: &'static str,
        description: &'static str,
        request: fn(IncomingInteraction) -> Result<TurnRequest, Refused>,
    ) -> Self {
        Self::with(name, description, Handler::Turn(request))
    }

    const fn with(name: &'static str, description: &'static str, handler: Handler) -> Self {
        Self {
            name,
            description,
            options: &[],
            handler,
            complete: None,
            work: Work::Short,
        }
    }

    pub(super) const fn options(mut self, options: &'static [OptionSpec]) -> Self {
        self.options = options;
        self
    }

    pub(super) const fn complete(mut self, complete: Run) -> Self {
        self.complete = Some(complete);
        self
    }

    pub(super) const fn work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }
}

impl Button {
    pub(super) const fn new(id: &'static str, run: Run) -> Self {
        Self::with_handler(id, Handler::Answer(run))
    }

    /// Leads to a turn, whose answer replies to the message.
    pub(super) const fn turn(
        id: &'static str,
        request: fn(IncomingInteraction) -> Result<TurnRequest, Refused>,
    ) -> Self {
        Self::with_handler(id, Handler::Turn(request))
    }

    const fn with_handler(id: &'static str, handler: Handler) -> Self {
        Self {
            id,
            for_everybody: false,
            work: Work::Short,
            keeps_message: false,
            handler,
        }
    }

    /// The `custom_id` with its argument: at most 100 characters together.
    pub(super) fn with(&self, argument: impl Display) -> String {
        format!("{}{argument}", self.id)
    }

    /// The argument in a `custom_id`; none if it is another button's.
    pub(super) fn argument<'a>(&self, custom_id: &'a str) -> Option<&'a str> {
        let argument = custom_id.strip_prefix(self.id)?;
        (argument.is_empty() || self.id.ends_with(':')).then_some(argument)
    }
}

/// What a call asks for.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) for_everybody: bool,
    pub(super) handler: Handler,
    pub(super) called: Called,
}

/// Finds out what a call asks for. None if this version does not know it, or cannot use
/// its options: another version registered that command or posted that button.
pub(super) fn find(data: &InteractionData) -> Option<Matched> {
    match data {
        InteractionData::Command(data) => find_action(data),
        InteractionData::Autocomplete(data) => find_completion(data),
        InteractionData::Button(custom_id) => find_button(custom_id),
        InteractionData::Other => None,
    }
}

fn find_action(data: &CommandData) -> Option<Matched> {
    let command = named(&data.name)?;
    let (word, action) = command.called(data.sub.as_deref())?;
    data.fits(action.options).then(|| Matched {
        for_everybody: command.for_everybody,
        handler: action.handler,
        called: Called {
            word,
            work: action.work,
            deferral: Deferral::Thinking,
            argument: String::new(),
        },
    })
}

fn find_completion(data: &CommandData) -> Option<Matched> {
    let (_, action) = named(&data.name)?.called(data.sub.as_deref())?;
    let mut options = action.options.iter();
    let option = options.find(|option| Some(option.name) == data.focused.as_deref())?;
    let complete = action.complete?;
    matches!(option.kind, OptionKind::Completed).then(|| Matched {
        for_everybody: false,
        handler: Handler::Answer(complete),
        called: Called {
            word: CommandWord::COMPLETE,
            work: Work::Short,
            deferral: Deferral::NoChoices,
            argument: String::new(),
        },
    })
}

fn find_button(custom_id: &str) -> Option<Matched> {
    let of_commands = COMMANDS.iter().flat_map(|command| command.buttons);
    of_commands.chain(BUTTONS).find_map(|button| {
        Some(Matched {
            for_everybody: button.for_everybody,
            handler: button.handler,
            called: Called {
                argument: button.argument(custom_id)?.to_owned(),
                word: CommandWord::BUTTON,
                work: button.work,
                deferral: if button.keeps_message {
                    Deferral::Thinking
                } else {
                    Deferral::Update
                },
            },
        })
    })
}

fn named(name: &str) -> Option<&'static Command> {
    let mut all = COMMANDS.iter().copied();
    all.find(|command| command.name == name)
}

#[cfg(test)]
mod tests;
