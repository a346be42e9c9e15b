//! The call of a command that does not start a turn.

use crate::telemetry::event::CommandWord;
use clew_context::model::{Channel, ChannelId, ChannelKind, GuildId, Interaction, RoleId, UserId};
use clew_discord::event::Called;
use clew_discord::model::{
    Button, CallerRights, Command, ContextCommand, MemoryCommand, PrivacyCommand,
    ServerMemoryCommand, SettingsCommand,
};
use clew_store::model::Subject;

/// A command call, a button press, or an option to complete.
#[derive(Debug)]
pub struct Call {
    /// The interaction to respond to.
    pub interaction: Interaction,
    /// What is asked for.
    pub command: Command,
    /// The caller's roles, as the call carried them.
    pub roles: Vec<RoleId>,
    /// What the caller may do here.
    pub rights: CallerRights,
    /// The current channel, if known; direct messages never are.
    pub channel: Option<Channel>,
    /// The type of the channel, as the call carried it.
    pub channel_kind: Option<ChannelKind>,
}

/// What is shown if the work takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferral {
    /// "... is thinking", for the caller alone.
    Thinking,
    /// Nothing; the message with the button changes later.
    Update,
    /// Nothing; there are no choices then.
    NoChoices,
}

impl Call {
    pub(super) fn new(called: Called, channel: Option<Channel>) -> Self {
        Self {
            interaction: called.interaction,
            command: called.command,
            roles: called.roles,
            rights: called.rights,
            channel,
            channel_kind: called.channel_kind,
        }
    }

    /// What to show if the work takes long.
    pub const fn deferral(&self) -> Deferral {
        match &self.command {
            Command::Complete(_) => Deferral::NoChoices,
            _ if self.updates() => Deferral::Update,
            _ => Deferral::Thinking,
        }
    }

    /// Whether the work is known to take long: it asks a model or goes through
    /// every store.
    pub const fn takes_long(&self) -> bool {
        matches!(
            &self.command,
            Command::Context(ContextCommand::Save { .. })
                | Command::Privacy(PrivacyCommand::Export)
                | Command::Button(Button::Erase | Button::OptOut)
        )
    }

    /// Whether it asks the model, as a turn does.
    pub const fn asks_model(&self) -> bool {
        matches!(&self.command, Command::Context(ContextCommand::Save { .. }))
    }

    /// Whether the answer replaces the message with the button. A note that
    /// everyone sees stays.
    pub(super) const fn updates(&self) -> bool {
        match &self.command {
            Command::Button(button) => !matches!(button, Button::ShowNoted(_)),
            _ => false,
        }
    }

    pub(super) const fn caller(&self) -> UserId {
        self.interaction.user
    }

    /// The caller, as the subject of facts.
    pub(super) const fn about_caller(&self) -> Subject {
        Subject::User(self.interaction.user)
    }

    pub(super) const fn guild(&self) -> Option<GuildId> {
        self.interaction.guild
    }

    pub(super) const fn channel_id(&self) -> ChannelId {
        self.interaction.channel
    }

    /// The channel of the thread, if this is one.
    pub(super) fn parent(&self) -> Option<ChannelId> {
        self.channel.as_ref()?.parent
    }

    pub(super) fn is_thread(&self) -> bool {
        let known = self.channel.as_ref().map(|channel| channel.kind);
        self.channel_kind
            .or(known)
            .is_some_and(ChannelKind::is_thread)
    }

    /// Whether the caller opened this thread.
    pub(super) fn owns_thread(&self) -> bool {
        let channel = self.channel.as_ref();
        let state = channel.and_then(|channel| channel.thread.as_ref());
        state.and_then(|state| state.owner) == Some(self.caller())
    }

    /// Its name in telemetry.
    pub const fn word(&self) -> CommandWord {
        match &self.command {
            Command::Context(command) => context_word(command),
            Command::ClearContext => CommandWord::ClearContext,
            Command::Settings(SettingsCommand::Show) => CommandWord::SettingsShow,
            Command::Settings(SettingsCommand::Set(_)) | Command::Wrong(_) => {
                CommandWord::SettingsSet
            }
            Command::Memory(MemoryCommand::Show) => CommandWord::MemoryShow,
            Command::Memory(MemoryCommand::Remember { .. }) => CommandWord::MemoryRemember,
            Command::Memory(MemoryCommand::Forget { .. }) => CommandWord::MemoryForget,
            Command::ServerMemory(ServerMemoryCommand::Show) => CommandWord::ServerMemoryShow,
            Command::ServerMemory(ServerMemoryCommand::Remember { .. }) => {
                CommandWord::ServerMemoryRemember
            }
            Command::ServerMemory(ServerMemoryCommand::Forget { .. }) => {
                CommandWord::ServerMemoryForget
            }
            Command::Privacy(command) => privacy_word(*command),
            Command::Button(_) => CommandWord::Button,
            Command::Complete(_) => CommandWord::Complete,
            // The others never become a call.
            Command::Help
            | Command::Ask { .. }
            | Command::AskAbout { .. }
            | Command::Unknown(_) => CommandWord::Help,
        }
    }
}

const fn context_word(command: &ContextCommand) -> CommandWord {
    match command {
        ContextCommand::Clear { .. } => CommandWord::ContextClear,
        ContextCommand::Show => CommandWord::ContextShow,
        ContextCommand::Save { .. } => CommandWord::ContextSave,
        ContextCommand::History { .. } => CommandWord::ContextHistory,
        ContextCommand::Restore { .. } => CommandWord::ContextRestore,
    }
}

const fn privacy_word(command: PrivacyCommand) -> CommandWord {
    match command {
        PrivacyCommand::Show => CommandWord::PrivacyShow,
        PrivacyCommand::OptOut => CommandWord::PrivacyOptOut,
        PrivacyCommand::OptIn => CommandWord::PrivacyOptIn,
        PrivacyCommand::Export => CommandWord::PrivacyExport,
        PrivacyCommand::Erase => CommandWord::PrivacyErase,
    }
}
