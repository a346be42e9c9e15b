//! A call of one of our commands, after parsing.

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
    /// `/clear-context`: deletes the caller's history of this channel.
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
    /// The caller types an option that we complete.
    Complete(Completing),
    /// One of ours with options that do not fit together, which Discord
    /// cannot refuse by itself.
    Wrong(WrongCall),
    /// A command this version does not know (an old registration).
    Unknown(String),
}

/// What is wrong with a call; `Display` tells the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongCall {
    /// `/settings set channel:` alone.
    #[error("`channel` needs `mode` with it: what do I answer there?")]
    ChannelWithoutMode,
    /// `/settings set mode:` alone.
    #[error("`mode` needs `channel` with it: which channel is it for?")]
    ModeWithoutChannel,
    /// `/settings set` without anything.
    #[error("Say what to change: give at least one of the options.")]
    NothingToSet,
    /// No time, or one that is out of range.
    #[error(
        "`rolling-window` is a time such as `90m`, `12h` or `7d`, from a minute to 365 days, or \
         `default` for the operator's."
    )]
    RollingWindow,
}

/// `/context ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextCommand {
    /// `clear [everyone:]`: from now on, for the caller or for all.
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

/// A button under one of our answers. It carries all that it needs, so that it
/// works after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Button {
    /// Another page of a list.
    Page(Paged, u16),
    /// Another page of `/context history agent:`.
    SnapshotsOf(AgentName, u16),
    /// Yes, delete my history of this channel.
    ClearContext,
    /// Yes, forget this fact about me.
    Forget(FactId),
    /// Yes, forget this fact about the server.
    ForgetOfServer(FactId),
    /// Yes, erase everything about me.
    Erase,
    /// Yes, keep nothing of me from now on, and erase what there is.
    OptOut,
    /// Under "Noted 1 thing": show what, to the person it is about.
    ShowNoted(Vec<FactId>),
    /// No.
    Cancel,
}

/// Lists with pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paged {
    /// `/memory show`
    Facts,
    /// `/server-memory show`
    ServerFacts,
    /// `/context history`
    Snapshots,
}

/// What the caller types and we complete.
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

/// What the caller may do where the command was called, as Discord computed
/// it (`member.permissions`). In direct messages nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerRights {
    /// Manage Server.
    pub manage_server: bool,
    /// Manage Messages.
    pub manage_messages: bool,
}
