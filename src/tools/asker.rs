//! For whom a tool runs, and what it may use.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::discord_search::DiscordSearch;
use super::result::ToolError;
use super::servers::CallerTools;
use crate::engine::sources::retain_readable;
use crate::memory::{ContextPointer, ExtractionInput, Memory, Place};
use crate::telemetry::Ids;
use clew_context::collect::Reads;
use clew_context::discord::Live;
use clew_context::engine::docs::Docs;
use clew_context::engine::eligible::Us;
use clew_context::engine::links::{Link, LinkPlace};
use clew_context::engine::render::Directory;
use clew_context::engine::sanitise;
use clew_context::engine::window::{View, Window};
use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, OptOuts, Readers};
use clew_discord::guild_state::GuildState;

/// The most REST calls that the tools of one turn make, all together but for searches; an
/// agent run's may make a hundred.
pub const MAX_FETCHES: usize = 16;

/// The asker of a turn, and what the tools of the turn may use for them.
pub struct Asker<'a> {
    pub ids: Ids,
    /// The conversation, and who asks.
    pub place: &'a Place,
    /// The documents of the agent that answers.
    pub docs: &'a Docs,
    /// The agent run that the turn does, if it does one.
    pub task: Option<u64>,
    /// Whether they ask through an app: nothing that is kept is theirs, and nothing is kept
    /// for them.
    pub owns_nothing: bool,
    /// The trigger: nothing newer is read.
    pub trigger: MessageId,
    /// What the asker wrote, for facts about them.
    pub said: &'a ExtractionInput,
    /// What the model has seen by now from other channels: its calls may repeat it.
    pub seen: &'a BTreeSet<ContentSource>,
    /// Who we are there.
    pub us: &'a Us,
    /// The longest that a message is shown, in Unicode scalars.
    pub max_message_chars: usize,
    /// Names that everybody who will read the answer may see.
    pub names: &'a (dyn Directory + Sync),
    /// Who of those who will read the answer may read a channel.
    pub readers: &'a (dyn Fn(ChannelId) -> Readers + Sync),
    /// What the gateway told.
    pub guild_state: &'a GuildState,
    /// Reads over REST, within the turn's budget.
    pub reads: &'a Reads<'a, Live<'a>>,
    /// Discord's search, unless the window alone is searched.
    pub search: Option<DiscordSearch<'a>>,
    /// The tools of MCP servers, if there are any.
    pub of_servers: Option<CallerTools<'a>>,
    /// Recent messages.
    pub window: &'a Mutex<Window>,
    pub opt_outs: &'a Arc<OptOuts>,
    pub memory: &'a Memory,
}

impl Asker<'_> {
    /// The server; none in direct messages.
    pub(super) const fn guild(&self) -> Option<GuildId> {
        self.ids.guild
    }

    /// Whether a link says that it leads into this server, or here into direct messages.
    pub(super) fn is_here(&self, link: Link) -> bool {
        match link.place {
            LinkPlace::Guild(guild) => self.guild() == Some(guild),
            LinkPlace::Direct => self.guild().is_none(),
            LinkPlace::Mention => true,
        }
    }

    /// Whether everybody who will read the answer may read this channel, and so may we.
    /// To be asked before anything of it is looked at.
    pub(super) fn may_read(&self, channel: ChannelId) -> bool {
        let ours = self.guild_state.our_access(channel);
        (self.readers)(channel) == Readers::Everybody && !ours.forbids(|rights| rights.read_history)
    }

    /// The channel of this name, as prompts show it, among those that
    /// [`may_read`](Self::may_read); of several the newest.
    pub(super) fn named(&self, name: &str) -> Option<ChannelId> {
        let name = name.strip_prefix('#').unwrap_or(name);
        let is_shown = |shown: String| sanitise::name(&shown) == name;
        let mut channels = self.guild_state.channels_of(self.guild()?);
        channels.sort_unstable();
        channels.into_iter().rev().find(|channel| {
            let has_name = self
                .guild_state
                .channel_name(*channel)
                .is_some_and(is_shown);
            has_name && self.names.channel(*channel).is_some() && self.may_read(*channel)
        })
    }

    /// The same, as an error that tells nothing.
    pub(super) fn must_read(&self, channel: ChannelId) -> Result<(), ToolError> {
        if self.may_read(channel) {
            Ok(())
        } else {
            Err(ToolError::NotForEverybody)
        }
    }

    /// Keeps of stored texts those that may be read, with all that they were made from.
    pub(super) fn retain_readable<T>(
        &self,
        items: &mut Vec<T>,
        place_of: impl Fn(&T) -> Option<ChannelId>,
        sources_of: impl Fn(&T) -> &[ContentSource],
    ) {
        retain_readable(items, place_of, sources_of, self.readers);
    }

    /// What tools gave in this conversation, as far as it may be read.
    pub(super) async fn outputs(&self) -> Vec<ContextPointer> {
        let mut pointers = self.memory.outputs_of(&self.ids, self.place).await;
        self.retain_readable(&mut pointers, |_| None, |pointer| &pointer.sources);
        pointers
    }

    /// What is held of a channel now.
    pub(super) fn view(&self, channel: ChannelId) -> View {
        self.window().view(channel)
    }

    /// The channels of the server of which something is held, latest used first.
    pub(super) fn held(&self, guild: GuildId) -> Vec<ChannelId> {
        self.window().held_of(guild).collect()
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        let mut window = self.window.lock();
        window.withhold(self.opt_outs.current());
        window
    }
}
