//! The call of a command that does not start a turn.

use std::pin::Pin;
use std::str::FromStr;

use super::done::{Deferral, Done, Stop};
use super::{CommandServices, words};
use crate::memory::Memory;
use crate::model::{Payer, Spender};
use crate::telemetry::event::CommandWord;
use clew_context::model::{
    Author, Channel, ChannelId, ChannelKind, ChannelMode, GuildId, Interaction, MessageId, RoleId,
    UserId,
};
use clew_discord::event::IncomingInteraction;
use clew_discord::model::{CallerRights, CommandData, InteractionData, OptionSpec};
use clew_store::model::Subject;

/// A command call, a button press, or an option to complete.
#[derive(Debug)]
pub struct Call {
    /// The interaction to respond to.
    pub interaction: Interaction,
    /// The options; none for a button.
    pub(super) data: CommandData,
    called: Called,
    pub(super) run: Run,
    /// The caller, as the call names them.
    pub(super) asker: Author,
    /// The caller's roles, as the call carried them.
    pub roles: Vec<RoleId>,
    /// What the caller may do here.
    pub rights: CallerRights,
    /// The current channel, if known; direct messages never are.
    pub channel: Option<Channel>,
    /// The type of the channel, as the call carried it.
    pub channel_kind: Option<ChannelKind>,
    /// The message with the button, which may be for anybody there; none for a command.
    pub(super) pressed_on: Option<MessageId>,
    /// What the bot responds to there.
    pub(super) mode: ChannelMode,
}

/// What is called, and how.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) word: CommandWord,
    pub(super) work: Work,
    pub(super) deferral: Deferral,
    /// What the button carries; empty for a command.
    pub(super) argument: String,
}

/// How long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Usually no time at all.
    Short,
    /// It goes through every store.
    Long,
    /// It asks the model, as a turn does.
    Model,
}

/// Does what is asked for: an async function in a box, so that all are of one type.
pub(super) type Run = for<'a> fn(&'a CommandServices<'a>, &'a Call) -> Running<'a>;
pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Result<Done, Stop>> + Send + 'a>>;

/// A [`Run`] from an async function, and from what else it takes.
macro_rules! run {
    ($function:path $(, $more:expr)?) => {
        |services, call| Box::pin($function(services, call $(, $more)?))
    };
}
pub(super) use run;

impl Call {
    pub(super) fn new(
        incoming: IncomingInteraction,
        channel: Option<Channel>,
        mode: ChannelMode,
        called: Called,
        run: Run,
    ) -> Self {
        let data = match incoming.data {
            InteractionData::Command(data) | InteractionData::Autocomplete(data) => data,
            InteractionData::Button(_) | InteractionData::Other => CommandData::default(),
        };
        Self {
            interaction: incoming.interaction,
            data,
            called,
            run,
            asker: incoming.asker,
            roles: incoming.roles,
            rights: incoming.rights,
            channel,
            channel_kind: incoming.channel_kind,
            pressed_on: incoming.pressed_on,
            mode,
        }
    }

    /// Its name in telemetry.
    pub const fn word(&self) -> &CommandWord {
        &self.called.word
    }

    /// What to show if the work takes long, and where the answer goes.
    pub const fn deferral(&self) -> Deferral {
        self.called.deferral
    }

    /// Whether the work is known to take long.
    pub fn takes_long(&self) -> bool {
        self.called.work != Work::Short
    }

    /// Whether it asks the model, as a turn does.
    pub fn asks_model(&self) -> bool {
        self.called.work == Work::Model
    }

    /// An option that takes a text.
    pub(super) fn text(&self, option: &OptionSpec) -> Option<&str> {
        self.data.text(option)
    }

    /// What the button carries.
    pub(super) fn argument<T: FromStr>(&self) -> Result<T, Stop> {
        let argument = self.called.argument.parse();
        argument.map_err(|_| Stop::refused(words::TOO_OLD))
    }

    /// The page that the button leads to; a command shows the first.
    pub(super) fn page(&self) -> Result<u16, Stop> {
        if self.called.argument.is_empty() {
            Ok(0)
        } else {
            self.argument()
        }
    }

    /// Whose limits of tokens it counts towards.
    pub fn payer(&self, memory: &Memory) -> Payer {
        let spender = Spender::User(self.interaction.user);
        memory.payer(spender, self.interaction.guild, Some(&self.roles))
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
}
