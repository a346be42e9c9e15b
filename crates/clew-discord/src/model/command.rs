//! A call of one of our commands, parsed.

use clew_context::model::MessageId;
use clew_store::model::{AgentName, FactId, SettingsChange};

/// One of our commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `/ask question:`
    Ask {
        /// What is asked.
        question: String,
    },
    /// The message command "Ask about this message".
    AskAbout {
        /// The message.
        message: MessageId,
    },
    /// `/context ...`
    Context(ContextCommand),
    /// `/clear-context`: deletes the caller's history in this channel.
    ClearContext,
    /// `/settings ...`
    Settings(SettingsCommand),
    /// `/memory ...`
    Memory(MemoryCommand),
    /// `/server-memory ...`
    ServerMemory(ServerMemoryCommand),
    /// `/privacy ...`
    Privacy(PrivacyCommand),
    /// `/help`
    Help,
    /// A button under one of our answers was pressed.
    Button(Button),
    /// The caller is typing an option that we complete.
    Complete(Completing),
    /// One of our commands with options that do not fit together, which Discord
    /// cannot check.
    Wrong(WrongCall),
    /// A command this version does not know (registered by an older one).
    Unknown(String),
}

/// What is wrong with a call; `Display` addresses the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongCall {
    /// `/settings set channel:` without `mode:`.
    #[error("`channel` needs `mode` with it: what do I answer there?")]
    ChannelWithoutMode,
    /// `/settings set mode:` without `channel:`.
    #[error("`mode` needs `channel` with it: which channel is it for?")]
    ModeWithoutChannel,
    /// `/settings set` without options.
    #[error("Say what to change: give at least one of the options.")]
    NothingToSet,
    /// Not a time span, or out of range.
    #[error(
        "`rolling-window` is a time such as `90m`, `12h` or `7d`, from a minute to 365 days, or \
         `default` for the operator's."
    )]
    RollingWindow,
}

/// `/context ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextCommand {
    /// `clear [everyone:]`: start afresh, for the caller or for everyone.
    Clear {
        /// For everybody in the server; needs Manage Server.
        everyone: bool,
    },
    /// `show`
    Show,
    /// `save [description:]`
    Save {
        /// What to call it.
        description: Option<String>,
    },
    /// `history [agent:]`
    History {
        /// As typed.
        agent: Option<String>,
    },
    /// `restore snapshot:`
    Restore {
        /// As typed.
        snapshot: String,
    },
}

/// `/settings ...`; needs Manage Server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsCommand {
    /// `show`
    Show,
    /// `set ...`
    Set(SettingsChange),
}

/// `/memory ...`: facts about the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryCommand {
    /// `show`
    Show,
    /// `remember text: [everywhere:]`
    Remember {
        /// The fact.
        text: String,
        /// In every server.
        everywhere: bool,
    },
    /// `forget fact:`
    Forget {
        /// As typed or chosen.
        fact: String,
    },
}

/// `/server-memory ...`: facts about the server; changes need Manage Server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMemoryCommand {
    /// `show`
    Show,
    /// `remember text:`
    Remember {
        /// The fact.
        text: String,
    },
    /// `forget fact:`
    Forget {
        /// As typed or chosen.
        fact: String,
    },
}

/// `/privacy ...`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivacyCommand {
    /// `show`
    Show,
    /// `opt-out`
    OptOut,
    /// `opt-in`
    OptIn,
    /// `export`
    Export,
    /// `erase`
    Erase,
}

/// A button under one of our answers. It carries all it needs, so that it works
/// after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Button {
    /// Another page of a list.
    Page(Paged, u16),
    /// Another page of `/context history agent:`.
    SnapshotsOf(AgentName, u16),
    /// Confirms deleting the caller's history in this channel.
    ClearContext,
    /// Confirms forgetting this fact about the caller.
    Forget(FactId),
    /// Confirms forgetting this fact about the server.
    ForgetOfServer(FactId),
    /// Confirms erasing everything about the caller.
    Erase,
    /// Confirms opting out: erase everything, and store nothing from now on.
    OptOut,
    /// Under "Noted 1 thing": shows it, to the person it is about.
    ShowNoted(Vec<FactId>),
    /// Cancels.
    Cancel,
}

/// Paged lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paged {
    /// `/memory show`
    Facts,
    /// `/server-memory show`
    ServerFacts,
    /// `/context history`
    Snapshots,
}

/// The option being typed, with its text so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completing {
    /// `/memory forget fact:`
    Fact(String),
    /// `/server-memory forget fact:`
    ServerFact(String),
    /// `/context restore snapshot:`
    Snapshot(String),
    /// `/context history agent:`
    Agent(String),
}

/// What the caller may do in that channel, as computed by Discord
/// (`member.permissions`). All false in direct messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerRights {
    /// Manage Server.
    pub manage_server: bool,
    /// Manage Messages.
    pub manage_messages: bool,
}
