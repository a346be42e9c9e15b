//! What all turns share, and what they look up there.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::image_room::ImageRoom;
use super::news::TurnObserver;
use super::refusals::LastRefusals;
use crate::agents::Agents;
use crate::config::ToolConfig;
use crate::engine::daily_tokens::SpentBy;
use crate::llm;
use crate::memory::{Edit, Memory};
use crate::model::{Payer, RunBounds, Spender};
use crate::runs::{Approvals, CatchUpPace, Connections, Runs};
use crate::telemetry::event::Refusal;
use crate::telemetry::{Ids, Telemetry};
use crate::tools::{SearchedServers, ToolServers};
use clew_context::collect::NegativeCache;
use clew_context::engine::eligible::Us;
use clew_context::engine::window::Window;
use clew_context::model::{
    ChannelId, GuildId, Limits, Message, OptOuts, Proxies, ProxyId, ReplyTarget, TurnRequest,
    UserId,
};
use clew_discord::guild_state::GuildState;
use clew_discord::rest::Rest;
use clew_discord::session::Claims;

/// What all turns share.
pub struct Services {
    /// Discord's REST API.
    pub rest: Rest,
    /// What the gateway told about servers, channels and roles.
    pub guild_state: Arc<GuildState>,
    /// The servers of the model; without them the inspector answers.
    pub model: Option<llm::ModelServers>,
    /// Counts the tokens that people and servers use of it; none without a model.
    pub tokens: Option<Arc<llm::TokenMeter>>,
    /// Where events are written.
    pub telemetry: Telemetry,
    /// Recent messages; use [`Services::window`] to read them.
    pub window: Mutex<Window>,
    /// Who opted out; shared with whatever stores and learns.
    pub opt_outs: Arc<OptOuts>,
    /// What turns have found out for later ones.
    pub negative_cache: NegativeCache,
    /// How often Discord's search was asked.
    pub searched_servers: Arc<SearchedServers>,
    /// The servers of `MCP_CONFIG`.
    pub tool_servers: Arc<ToolServers>,
    /// What is remembered beyond a turn.
    pub memory: Memory,
    /// Which questions are taken or answered.
    pub claims: Arc<Claims>,
    /// The agents that answer.
    pub agents: Agents,
    /// The agent runs that are under way.
    pub runs: Runs,
    /// The calls of tools that wait for consent.
    pub approvals: Approvals,
    /// The programs that read as members.
    pub connections: Connections,
    /// How often people are told what they missed.
    pub catch_up_pace: CatchUpPace,
    /// What the images of running turns may take in memory.
    pub image_room: Arc<ImageRoom>,
    pub settings: TurnSettings,
    /// Why people were last refused.
    pub refusals: LastRefusals,
    /// Is told how turns go on; `clew run` has none.
    pub observer: Option<TurnObserver>,
}

#[derive(Debug, Clone)]
pub struct TurnSettings {
    /// The caps of a block.
    pub limits: Limits,
    /// `PROXY_APPS`.
    pub proxies: Proxies,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
    /// `ANSWER_MAX_MESSAGES`.
    pub max_messages: usize,
    /// Whether and how models may call tools.
    pub tools: ToolConfig,
    /// `RECEIPT_BUTTON`.
    pub receipt_button: bool,
    /// `MCP_LISTEN`.
    pub mcp_listen: Option<SocketAddr>,
    /// How far an agent run may go.
    pub runs: RunBounds,
    /// The key for the nonces of frames.
    pub secret: Vec<u8>,
}

impl Services {
    /// The window; nothing in it can be left half-written. Words of users who opted
    /// out since the last look are dropped before anybody sees them.
    pub fn window(&self) -> MutexGuard<'_, Window> {
        let mut window = self.window.lock();
        window.withhold(self.opt_outs.current());
        window
    }

    /// Somebody opted out: drops their words from the window at once, not only at
    /// the next event.
    pub fn withhold(&self) {
        drop(self.window());
    }

    /// Who we are in a server, or in direct messages.
    pub fn us(&self, guild: Option<GuildId>) -> Us {
        let us = self.guild_state.current_user();
        let proxies = self.settings.proxies.clone();
        let roles = guild
            .map(|guild| self.guild_state.our_role_ids(guild))
            .unwrap_or_default();
        // Before the first READY there are no messages anyway.
        let nobody = || (UserId::new(0), String::new());
        let (user, name) = us.map_or_else(nobody, |us| (us.user, us.name));
        Us {
            user,
            name,
            roles,
            proxies,
        }
    }

    /// The app through which a person wrote a message, if so.
    pub fn proxy_of(&self, message: &Message) -> Option<ProxyId> {
        self.settings.proxies.posted(&message.author)
    }

    /// Whom limits count for a message's author. A thread counts as its channel, whose
    /// webhooks post in both.
    pub fn spender(&self, message: &Message) -> Spender {
        let Some(app) = self.proxy_of(message) else {
            return Spender::User(message.author.id);
        };
        Spender::Proxy(app, self.home(message.channel))
    }

    /// A thread's channel; other channels are their own.
    pub fn home(&self, channel: ChannelId) -> ChannelId {
        let known = self.guild_state.kind_and_parent(channel);
        let parent = known.filter(|(kind, _)| kind.is_thread());
        parent.and_then(|(_, parent)| parent).unwrap_or(channel)
    }

    /// A message's own words as a turn stores them.
    pub fn own_words(&self, guild: Option<GuildId>, message: &Message) -> String {
        self.us(guild).own_words(message)
    }

    /// What an edited message says now. None for our own, which change while we post them: no
    /// turn is made from them anew. Of who has opted out nothing is kept; an opt-out that the
    /// store does not take leaves nothing of their former words either.
    pub fn edit_of(&self, message: &Message) -> Option<Edit> {
        let author = message.author.id;
        let us = self.guild_state.current_user();
        let is_ours = us.is_some_and(|us| us.user == author);
        if is_ours {
            return None;
        }
        let is_silent = message.withheld || self.memory.opted_out(author);
        let guild = message.guild;
        let guild = guild.or_else(|| self.guild_state.guild_of(message.channel));
        let words = || {
            if is_silent {
                String::new()
            } else {
                self.own_words(guild, message)
            }
        };
        Some(Edit {
            message: message.id,
            words: message.is_human().then(words),
            at: message.edited,
        })
    }

    /// Why somebody may not ask the model, at any rate today, if so.
    pub fn may_not_ask(&self, payer: Payer) -> Option<Refusal> {
        if self.is_blocked(payer) {
            return Some(Refusal::Blocked);
        }
        let spent = self.tokens.as_ref()?.shares(payer).spent()?;
        Some(match spent {
            SpentBy::User => Refusal::UserTokens,
            SpentBy::Guild => Refusal::GuildTokens,
            SpentBy::Total => Refusal::TotalTokens,
        })
    }

    /// Whether the server's moderators blocked them. Who writes through an app is not known.
    pub fn is_blocked(&self, payer: Payer) -> bool {
        match payer.spender {
            Spender::User(user) => self.memory.is_blocked(payer.guild, user),
            Spender::Proxy(..) => false,
        }
    }

    /// The ids with which a turn's events are written.
    pub(super) fn ids(&self, request: &TurnRequest) -> Ids {
        let ids = Ids::of(request);
        Ids {
            guild: ids
                .guild
                .or_else(|| self.guild_state.guild_of(request.trigger.channel)),
            ..ids
        }
    }
}
