//! The dispatcher: what the loop does with each event. It feeds windows and
//! queues in gateway order, and starts and ends turns.

mod bot_turns;
mod calls;
mod carry_out;
mod edits;
mod turns;
mod unplaced;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::loop_event::LoopEvent;
use super::queues::Queues;
use super::rate::Rate;
use super::wiring;
use crate::config::Config;
use crate::memory::{Mend, Missed};
use crate::telemetry::event::{
    Connected, Disconnected, ReadFailure, Refusal, SessionLost, Unreadable,
};
use crate::telemetry::{self, Ids};
use crate::turn::Services;
use clew_context::discord::convert::Incoming;
use clew_context::engine::route::{RouteFacts, Rules, Verdict, ends_bot_turns, route};
use clew_context::model::{
    ChannelId, ChannelKind, ChannelMode, GuildId, Message, MessageId, TurnRequest, UserId,
};
use clew_discord::event::{self, Delivery, Disconnect, Event, Ready};
use clew_discord::invite;
use clew_discord::session::{Claims, Mark, Progress};

use bot_turns::BotTurns;
use turns::{Active, Waiting};

/// The most channels for which bot turns are counted, or that were told about
/// mentions.
const CHANNELS_REMEMBERED: usize = 10_000;
/// How many refusals one person gets per minute.
const REFUSALS_A_MINUTE: usize = 1;

/// The state of the loop.
pub(super) struct Dispatcher {
    services: Arc<Services>,
    rules: Rules,
    command_guild: Option<GuildId>,
    claims: Claims,
    progress: Arc<Mutex<Progress>>,
    queues: Queues<Waiting>,
    active: HashMap<MessageId, Active>,
    turn_rate: Option<Rate>,
    refusals: Rate,
    bot_turns: BotTurns,
    told: HashSet<ChannelId>,
    /// Direct conversations that were recognised only by a look at the channel.
    direct: HashSet<ChannelId>,
    /// Questions that got no turn, oldest first; no answer refers to them.
    refused: VecDeque<(ChannelId, MessageId)>,
    /// Triggers whose channel is being looked at, without those deleted since.
    looked_at: HashSet<MessageId>,
    tracker: TaskTracker,
    loop_events: mpsc::UnboundedSender<LoopEvent>,
    closed: bool,
    /// Cancelled to end optional work in the background.
    stopped: CancellationToken,
}

impl Dispatcher {
    pub(super) fn new(
        config: &Config,
        services: Arc<Services>,
        claims: Claims,
        progress: Arc<Mutex<Progress>>,
        tracker: TaskTracker,
        loop_events: mpsc::UnboundedSender<LoopEvent>,
    ) -> Self {
        let per_minute = config.turns.user_per_minute.map(|most| most.get() as usize);
        Self {
            services,
            rules: wiring::rules(config),
            command_guild: config.discord.command_guild,
            claims,
            progress,
            queues: Queues::new(config.turns.max_concurrent, config.turns.queue_per_channel),
            active: HashMap::new(),
            turn_rate: per_minute.map(Rate::new),
            refusals: Rate::new(REFUSALS_A_MINUTE),
            bot_turns: BotTurns::default(),
            told: HashSet::new(),
            direct: HashSet::new(),
            refused: VecDeque::new(),
            looked_at: HashSet::new(),
            tracker,
            loop_events,
            closed: false,
            stopped: CancellationToken::new(),
        }
    }

    /// Handles one event. It is finished at once, unless it led to a turn.
    pub(super) fn deliver(&mut self, delivery: Delivery) {
        let Delivery { mark, event } = delivery;
        let shard = mark.shard();
        let turn_began = match event {
            Event::Message(incoming) => self.message(*incoming, mark),
            Event::Called(called) => {
                self.called(*called);
                false
            }
            other => {
                self.note(other, shard);
                false
            }
        };
        if !turn_began {
            self.finished(mark);
        }
    }

    /// Handles events that start nothing.
    fn note(&mut self, event: Event, shard: u32) {
        match event {
            Event::Message(_) | Event::Called(_) => {}
            Event::Ready(ready) => self.ready(&ready, shard),
            Event::Resumed => self.emit(Connected {
                shard,
                resumed: true,
            }),
            Event::SessionLost => {
                self.services.window().break_where(|_, _| true);
                self.emit(SessionLost { shard });
            }
            Event::Disconnected(Disconnect { by, code }) => {
                let reason = wiring::lost_by(by);
                self.emit(Disconnected {
                    shard,
                    reason,
                    code,
                });
            }
            Event::MessageEdited(incoming) => self.edited(*incoming),
            Event::MessagesDeleted { channel, ids } => {
                self.services.window().deleted(channel, &ids);
                self.starters_deleted(&ids);
                self.cancel(&ids);
                let guild = self.services.guild_state.guild_of(channel);
                self.services.memory.mend(Mend::Deleted {
                    guild,
                    channel,
                    ids,
                });
            }
            Event::MessageUnreadable(lost) => {
                self.missed(lost.channel);
                self.unreadable(lost);
            }
            Event::OtherUnreadable(lost) => self.unreadable(lost),
            Event::ChannelDeleted { channel, threads } => {
                self.channel_gone(channel);
                for thread in threads {
                    self.channel_gone(thread);
                }
            }
            Event::ThreadDeleted(thread) => self.channel_gone(thread),
            Event::MemberLeft { guild, user } => {
                self.services.memory.mend(Mend::MemberLeft { guild, user });
            }
            Event::ThreadCreated {
                channel,
                newly_created,
            } => {
                let guild = self.services.guild_state.guild_of(channel);
                if newly_created {
                    self.services.window().opened(channel, guild);
                }
            }
            Event::GuildUnavailable(guild) => self.guild_lost(guild),
            Event::GuildRemoved(guild) => {
                self.guild_lost(guild);
                self.services.memory.mend(Mend::GuildLeft(guild));
            }
            Event::GuildAvailable(guild) => {
                self.services.memory.mend(Mend::GuildJoined(guild));
            }
            Event::GuildIncomplete { guild, parts } => {
                let ids = Ids {
                    guild: Some(guild),
                    ..Ids::default()
                };
                self.rejected(&ids, "guild_create", parts);
                self.fill(guild);
            }
            Event::PermissionsChanged { guild, hidden } => self.permissions_changed(guild, &hidden),
        }
    }

    fn ready(&mut self, ready: &Ready, shard: u32) {
        self.emit(Connected {
            shard,
            resumed: false,
        });
        tracing::info!(shard, user = %ready.user, name = ready.name, guilds = ready.guilds.len(),
            "connected to Discord");
        if ready.guilds.is_empty() && ready.shards == 1 {
            tracing::warn!(
                "the bot is in no server: open {} to add it to one",
                invite(ready.application)
            );
        }
        if self.rules.message_content && !ready.content_granted {
            tracing::warn!(
                "the application may not have the message content intent: switch it on in the \
                 developer portal, or set DISCORD_MESSAGE_CONTENT=off"
            );
        }
        self.services.memory.mend(Mend::Connected {
            shard,
            shards: ready.shards,
            guilds: ready.guilds.clone(),
        });
        if shard == 0 {
            self.register_commands(ready.application);
        }
    }

    fn channel_gone(&self, channel: ChannelId) {
        self.services.window().forget(channel);
        self.services.recall.forget(channel);
        self.services.memory.mend(Mend::ChannelDeleted(channel));
    }

    fn guild_lost(&self, guild: GuildId) {
        let mut window = self.services.window();
        window.break_where(|_, of| of == Some(guild));
        self.services.memory.missed(Missed::Guild(guild));
    }

    /// An unreadable event may have been any message: the window has a gap there.
    fn missed(&self, channel: Option<ChannelId>) {
        if let Some(channel) = channel {
            self.services.window().break_channel(channel);
            self.services.memory.missed(Missed::Channel(channel));
        } else {
            self.services.window().break_where(|_, _| true);
            self.services.memory.missed(Missed::Everything);
        }
    }

    fn unreadable(&self, lost: event::Unreadable) {
        let of_channel = |channel| self.services.guild_state.guild_of(channel);
        let ids = Ids {
            guild: lost.guild.or_else(|| lost.channel.and_then(of_channel)),
            channel: lost.channel,
            message: lost.message,
            ..Ids::default()
        };
        let unreadable = Unreadable {
            what: lost.event,
            reason: ReadFailure::Malformed,
            parts: lost.parts,
        };
        self.services.telemetry.emit(&ids, unreadable);
    }

    /// Reports parts that could not be read, although the rest could.
    fn rejected(&self, ids: &Ids, what: &str, parts: Vec<&'static str>) {
        let unreadable = Unreadable {
            what: what.to_owned(),
            reason: ReadFailure::Rejected,
            parts,
        };
        self.services.telemetry.emit(ids, unreadable);
    }

    /// Reports the parts of a message that could not be read.
    fn tell_unread(&self, message: &Message, what: &str) {
        let extras = message.extras.as_ref();
        if let Some(extras) = extras.filter(|extras| !extras.unread.is_empty()) {
            self.rejected(&self.ids(message), what, extras.unread.clone());
        }
    }

    /// The windows of channels that we can no longer see have a gap from now on.
    fn permissions_changed(&mut self, guild: GuildId, hidden: &[ChannelId]) {
        let guild_state = &self.services.guild_state;
        let may_be_of = |channel| guild_state.guild_of(channel).is_none_or(|of| of == guild);
        self.services.recall.permissions_changed(may_be_of);
        self.services.memory.permissions_changed(may_be_of);
        let mut window = self.services.window();
        window.break_where(|channel, _| hidden.contains(&channel));
        for channel in hidden {
            self.services.memory.missed(Missed::Channel(*channel));
        }
    }

    /// Handles a new message. Returns whether a turn began or waits for it.
    fn message(&mut self, incoming: Incoming, mark: Mark) -> bool {
        let Incoming {
            message,
            channel_kind,
            roles,
            complete,
            ..
        } = incoming;
        self.tell_unread(&message, "message_create");
        let (known_kind, parent) = self
            .services
            .guild_state
            .kind_and_parent(message.channel)
            .unzip();
        let kind = channel_kind.or(known_kind);
        let kind = kind.or_else(|| {
            let direct = self.direct.contains(&message.channel);
            direct.then_some(ChannelKind::Dm)
        });
        let unplaced = kind.is_none() && message.guild.is_none();
        let verdict = if complete {
            // Our role is only looked up, among all of the server's, if the
            // message mentions one.
            let roles_of = message.guild.filter(|_| !message.mention_roles.is_empty());
            let us = self.services.us(roles_of);
            let facts = RouteFacts {
                kind: kind.or_else(|| unplaced.then_some(ChannelKind::Dm)),
                parent: parent.flatten(),
                roles: roles.as_deref(),
                replied_author: self.replied_author(&message),
                bot_turns: self.bot_turns.in_a_row(message.channel, message.guild),
                mode: self.mode(message.guild, message.channel, parent.flatten()),
            };
            if ends_bot_turns(&message, &self.rules, &facts) {
                self.bot_turns.end(message.channel, message.guild);
            }
            route(&message, &us, &self.rules, facts)
        } else {
            Verdict::Ignore
        };
        // The window separates the message from the one it carries; the turn needs both.
        let trigger = matches!(verdict, Verdict::Turn(_)).then(|| Arc::new(message.clone()));
        let kept = self.services.window().created(message);
        match verdict {
            Verdict::Ignore => false,
            Verdict::Denied(denied) => {
                let ids = self.ids(&kept);
                self.emit_refused(&ids, Refusal::NotAllowed, Some(denied));
                false
            }
            Verdict::NoContent => {
                self.tell_once(&kept);
                false
            }
            Verdict::Turn(cause) => {
                let request = TurnRequest {
                    trigger: trigger.unwrap_or(kept),
                    channel_kind: kind,
                    asker_roles: roles,
                    cause,
                };
                if unplaced {
                    self.look_up(request, mark);
                    return true;
                }
                self.submit(request, Some(mark))
            }
        }
    }

    /// The server's setting for a channel, or for its parent.
    fn mode(
        &self,
        guild: Option<GuildId>,
        channel: ChannelId,
        parent: Option<ChannelId>,
    ) -> ChannelMode {
        let settings = guild.map(|guild| self.services.memory.guild_settings(guild));
        settings.map_or(ChannelMode::Mentions, |settings| {
            settings.mode(channel, parent)
        })
    }

    /// A thread started from a message has that message's id.
    fn starters_deleted(&self, ids: &[MessageId]) {
        for thread in ids.iter().map(|id| ChannelId::new(id.get())) {
            let known = self.services.guild_state.kind_and_parent(thread);
            if known.is_some_and(|(kind, _)| kind.is_thread()) {
                self.services.recall.starter_deleted(thread);
            }
        }
    }

    fn replied_author(&self, message: &Message) -> Option<UserId> {
        let id = message.replies_to()?;
        let carried = message.carried().map(|carried| carried.author.id);
        carried.or_else(|| {
            Some(
                self.services
                    .window()
                    .message(message.channel, id)?
                    .author
                    .id,
            )
        })
    }

    /// Says once per channel that without the message content intent we only see
    /// mentions.
    fn tell_once(&mut self, message: &Message) {
        if self.told.len() >= CHANNELS_REMEMBERED {
            self.told.clear();
        }
        if self.told.insert(message.channel) {
            self.refuse(message, Refusal::NoContent);
        }
    }

    /// The ids for an event about a message without a turn.
    fn ids(&self, message: &Message) -> Ids {
        let of_channel = || self.services.guild_state.guild_of(message.channel);
        let author = message.author.id;
        Ids {
            guild: message.guild.or_else(of_channel),
            channel: Some(message.channel),
            // An edit may lack the author.
            user: (author.get() != 0).then_some(author),
            message: Some(message.id),
            turn: None,
        }
    }

    fn emit(&self, event: impl Into<telemetry::Event>) {
        self.services.telemetry.emit(&Ids::default(), event);
    }

    fn finished(&self, mark: Mark) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.finished(mark);
    }

    /// Starts nothing new. Triggers that wait stay unfinished, so that the next
    /// process gets them again; commands are not sent again, so their callers
    /// are told.
    pub(super) fn close(&mut self) {
        self.closed = true;
        for waiting in self.queues.remove_waiting(|_| true) {
            self.stopping(&waiting.request);
        }
    }

    /// Waits, up to a limit, for what is being sent and learnt in the background.
    pub(super) async fn settle(&self, patience: Duration) {
        self.tracker.close();
        let _ = timeout(patience, self.tracker.wait()).await;
        self.stopped.cancel();
    }

    pub(super) fn running(&self) -> usize {
        self.queues.running()
    }

    pub(super) fn answered(&self) -> Vec<MessageId> {
        self.claims.all_answered()
    }
}
