//! The dispatcher: what the loop does with each event. It feeds windows and
//! queues in gateway order, and starts and ends turns.

mod begin_run;
mod bot_turns;
mod calls;
mod carry_out;
mod catching_up;
mod edits;
mod held;
mod messages;
mod refusals;
mod turns;
mod unplaced;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::catch_up::CatchUp;
use super::holds::Holds;
use super::loop_event::LoopEvent;
use super::queues::Queues;
use super::wiring;
use crate::config::Config;
use crate::engine::rate_limit::{QuestionRate, RateLimiter};
use crate::memory::DiscordChange;
use crate::model::Spender;
use crate::telemetry::event::{SessionLost, ShardConnected, ShardDisconnected};
use crate::telemetry::{self, Ids, LoopGauges};
use crate::turn::{self, Order, Services};
use clew_context::engine::route::Rules;
use clew_context::model::{
    ChannelId, GuildId, InteractionId, Message, MessageId, TurnRequest, UnixMillis,
};
use clew_discord::event::{Disconnect, Event, Ready, ShardEvent};
use clew_discord::guild_state::shard_of;
use clew_discord::invite;
use clew_discord::session::{Mark, Missed, ShardProgress};

use bot_turns::BotTurns;
use turns::{ActiveTurn, Arrival, WaitingTrigger};

/// The most channels for which bot turns are counted, or that were told about
/// mentions, or people who were told about tokens.
const CHANNELS_REMEMBERED: usize = 10_000;
/// How many refusals one person gets per minute.
const REFUSALS_A_MINUTE: usize = 1;
/// How many refusals are posted in one channel per minute: a twelfth of what Discord lets us
/// post there, and the rest is for answers.
const REFUSALS_OF_A_CHANNEL: usize = 5;

/// The state of the loop.
pub(super) struct Dispatcher {
    services: Arc<Services>,
    rules: Rules,
    /// Which events are finished.
    progress: Arc<Mutex<ShardProgress>>,
    /// How many shards there are; 0 before the first is connected.
    shards: u32,
    /// Those that are connected.
    connected: BTreeSet<u32>,
    /// Since when those are down that were connected, and since when the others are.
    down: BTreeMap<u32, Instant>,
    began: Instant,
    /// Questions that came again since a shard lost its connection.
    replayed: HashMap<u32, usize>,
    catch_up: CatchUp,
    queues: Queues<WaitingTrigger>,
    active: HashMap<MessageId, ActiveTurn>,
    question_rate: QuestionRate,
    refusal_rate: RateLimiter<Spender>,
    refusals_here: RateLimiter<ChannelId>,
    bot_turns: BotTurns,
    /// Channels that were told that we only see mentions.
    told_to_mention: HashSet<ChannelId>,
    /// Who was told that tokens are used up: on which day since 1970, and where.
    told_spent: HashSet<(i64, ChannelId, Spender)>,
    /// Direct conversations that were recognised only by a look at the channel.
    direct: HashSet<ChannelId>,
    /// Questions that got no turn, oldest first; no answer refers to them.
    refused: VecDeque<(ChannelId, MessageId)>,
    /// Questions for which an app through which people write may post a copy.
    holds: Holds,
    /// When triggers came that are not queued yet.
    arrivals: HashMap<MessageId, Arrival>,
    /// Triggers whose channel is being looked up, without those deleted since.
    unplaced: HashMap<MessageId, TurnRequest>,
    /// What agent runs that are about to begin were told.
    run_orders: HashMap<InteractionId, Order>,
    /// Shards of a new number whose first READY has not come.
    renumbered: BTreeSet<u32>,
    tracker: TaskTracker,
    loop_events: mpsc::UnboundedSender<LoopEvent>,
    /// Whether nothing new may start.
    closed: bool,
    /// Cancelled to end optional work in the background.
    stopped: CancellationToken,
    /// Cancelled to end turns, whatever they do.
    ended: CancellationToken,
}

impl Dispatcher {
    pub(super) fn new(
        config: &Config,
        services: Arc<Services>,
        progress: Arc<Mutex<ShardProgress>>,
        tracker: TaskTracker,
        loop_events: mpsc::UnboundedSender<LoopEvent>,
        whole_until: Option<UnixMillis>,
    ) -> Self {
        let per_minute = config.turns.user_per_minute.map(|most| most.get() as usize);
        Self {
            services,
            rules: wiring::rules(config),
            progress,
            shards: 0,
            connected: BTreeSet::new(),
            down: BTreeMap::new(),
            began: Instant::now(),
            replayed: HashMap::new(),
            catch_up: CatchUp::new(config.turns.catch_up, whole_until),
            queues: Queues::new(config.turns.max_concurrent, config.turns.queue_per_channel),
            active: HashMap::new(),
            question_rate: QuestionRate::new(per_minute),
            refusal_rate: RateLimiter::new(REFUSALS_A_MINUTE),
            refusals_here: RateLimiter::new(REFUSALS_OF_A_CHANNEL),
            bot_turns: BotTurns::default(),
            told_to_mention: HashSet::new(),
            told_spent: HashSet::new(),
            direct: HashSet::new(),
            refused: VecDeque::new(),
            holds: Holds::new(config.triggers.proxy_hold),
            arrivals: HashMap::new(),
            unplaced: HashMap::new(),
            run_orders: HashMap::new(),
            renumbered: BTreeSet::new(),
            tracker,
            loop_events,
            closed: false,
            stopped: CancellationToken::new(),
            ended: CancellationToken::new(),
        }
    }

    /// Handles one event. It is finished at once, unless it led to a turn.
    pub(super) fn deliver(&mut self, ShardEvent { mark, event }: ShardEvent) {
        let turn_began = match event {
            Event::Message(incoming) => self.message(*incoming, mark),
            Event::Interaction(incoming) => {
                if self.is_first_call(incoming.interaction.id) {
                    self.interaction(*incoming);
                }
                false
            }
            other => {
                self.note(other, mark);
                false
            }
        };
        if !turn_began {
            self.finished(mark);
        }
    }

    /// Has a change on Discord carried over to what is stored.
    fn reconcile(&self, change: DiscordChange) {
        self.services.memory.reconcile(change);
    }

    /// Handles events that start nothing.
    fn note(&mut self, event: Event, mark: Mark) {
        let shard = mark.shard();
        match event {
            Event::Message(_) | Event::Interaction(_) => {}
            Event::Ready(_)
            | Event::Resumed
            | Event::Disconnected(_)
            | Event::GuildUnavailable(_)
                if self.progress().is_replaced(mark) => {}
            Event::Ready(ready) => self.ready(&ready, mark),
            Event::Resumed => {
                self.connected(shard, true);
                self.services.memory.heard(shard, self.shards, true);
                self.caught_up_by_resuming(shard);
            }
            Event::SessionLost => {
                self.services.window().break_where(|_, _| true);
                self.emit(SessionLost { shard });
            }
            Event::Disconnected(disconnect) => self.disconnected(shard, disconnect),
            Event::MessageEdited(incoming) => self.edited(*incoming),
            Event::MessagesDeleted { channel, ids } => self.messages_deleted(channel, ids),
            Event::PinsChanged(channel) => self.services.window().pins_changed(channel),
            Event::MessagesMissed(lost) => {
                self.missed(lost.guild, lost.channel);
                if let (Some(channel), Some(message)) = (lost.channel, lost.message) {
                    self.changed(lost.guild, channel, message);
                }
                self.unreadable(lost);
            }
            Event::Unreadable(lost) => self.unreadable(lost),
            Event::ChannelDeleted {
                guild,
                channel,
                threads,
            } => {
                self.channel_gone(guild, channel);
                for thread in threads {
                    self.channel_gone(guild, thread);
                }
            }
            Event::ThreadDeleted { guild, thread } => self.channel_gone(guild, thread),
            Event::MemberLeft { guild, user } => {
                self.cancel_runs(|run| run.guild == Some(guild) && run.asker == user);
                self.services.connections.left(Some(user), guild);
                self.reconcile(DiscordChange::MemberLeft { guild, user });
            }
            Event::ThreadCreated {
                channel,
                newly_created,
            } => {
                if newly_created {
                    let guild = self.services.guild_state.guild_of(channel);
                    self.services.window().opened(channel, guild);
                }
            }
            Event::GuildUnavailable(guild) => {
                self.guild_lost(guild);
                let now = self.services.memory.now();
                self.progress().outage(shard, guild, now);
            }
            Event::GuildRemoved(guild) => {
                self.guild_lost(guild);
                // Of what was only fetched there, nobody knows any more that it was there.
                self.services.window().break_where(|_, of| of.is_none());
                self.guilds_gone(shard, |gone| gone == guild);
                self.reconcile(DiscordChange::GuildLeft(guild));
            }
            Event::GuildAvailable { guild, newest } => {
                self.reconcile(DiscordChange::GuildJoined(guild));
                self.catch_up_guild(mark, guild, newest);
            }
            Event::GuildIncomplete { guild, parts } => self.guild_incomplete(guild, parts, mark),
            Event::PermissionsChanged { guild, hidden } => self.permissions_changed(guild, &hidden),
        }
    }

    fn guild_incomplete(&self, guild: GuildId, parts: Vec<&'static str>, mark: Mark) {
        let ids = Ids {
            guild: Some(guild),
            ..Ids::default()
        };
        self.rejected(&ids, "guild_create", parts);
        self.reconcile(DiscordChange::GuildJoined(guild));
        self.fill(mark, guild);
    }

    fn messages_deleted(&mut self, channel: ChannelId, ids: Vec<MessageId>) {
        self.catch_up.gone(&ids);
        self.services.window().deleted(channel, &ids);
        self.starters_deleted(&ids);
        let guild = self.services.guild_state.guild_of(channel);
        self.held_deleted(guild, &ids);
        self.cancel_runs(|run| run.place().is_some_and(|at| ids.contains(&at.message)));
        self.reconcile(DiscordChange::Deleted {
            guild,
            channel,
            ids,
        });
    }

    /// Returns since when nothing was heard.
    fn connected(&mut self, shard: u32, resumed: bool) -> Option<UnixMillis> {
        let shards = self.progress().shard_count();
        if ![0, shards].contains(&self.shards) {
            self.connected.clear();
            self.down = (0..shards).map(|one| (one, Instant::now())).collect();
            self.catch_up.renumbered(shards);
            self.renumbered = (0..shards).collect();
        }
        self.shards = shards;
        self.connected.insert(shard);
        self.down.remove(&shard);
        let unheard = self.progress().connected(shard);
        self.emit(ShardConnected { shard, resumed });
        unheard
    }

    fn disconnected(&mut self, shard: u32, Disconnect { reason, code }: Disconnect) {
        let now = self.services.memory.now();
        self.connected.remove(&shard);
        self.down.entry(shard).or_insert_with(Instant::now);
        self.progress().disconnected(shard, now);
        self.emit(ShardDisconnected {
            shard,
            reason,
            code,
        });
    }

    fn ready(&mut self, ready: &Ready, mark: Mark) {
        let shard = mark.shard();
        let unheard = self.connected(shard, false);
        self.replayed.remove(&shard);
        self.catch_up(ready, mark, unheard);
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
        self.left_unseen(ready, shard);
        self.reconcile(DiscordChange::Connected {
            shard,
            shards: ready.shards,
            guilds: ready.guilds.clone(),
        });
        self.services.memory.heard(shard, ready.shards, false);
        if shard == 0 {
            self.register_commands(ready.application);
        }
    }

    /// Servers of a shard that READY does not name are left.
    fn left_unseen(&mut self, ready: &Ready, shard: u32) {
        // Some Discord-compatible servers do not list them. The READY of a new number of shards is
        // older than what the former shards told.
        if ready.guilds.is_empty() || self.renumbered.remove(&shard) {
            return;
        }
        let is_of_shard = |guild| shard_of(guild, ready.shards) == Some(shard);
        self.guilds_gone(shard, |guild| {
            is_of_shard(guild) && !ready.guilds.contains(&guild)
        });
    }

    /// We are not in such servers any more.
    fn guilds_gone(&mut self, shard: u32, are_left: impl Fn(GuildId) -> bool) {
        let out: Vec<GuildId> = self.progress().outages(shard);
        for guild in out.into_iter().filter(|guild| are_left(*guild)) {
            self.progress().outage_over(shard, guild);
        }
        self.cancel_runs(|run| run.guild.is_some_and(&are_left));
        self.questions_gone(None, |asked| asked.guild.is_some_and(&are_left));
        for guild in self.services.connections.guilds() {
            if are_left(guild) {
                self.services.connections.left(None, guild);
            }
        }
    }

    /// A place is gone, with the questions that were asked there.
    fn questions_gone(&mut self, guild: Option<GuildId>, is_there: impl Fn(&Message) -> bool) {
        let running = self.active.values().filter(|one| one.run.is_none());
        let running = running.map(|one| &*one.trigger);
        let waiting = self.queues.waiting_mut().map(|one| &one.request);
        let waiting = waiting.chain(self.unplaced.values());
        let waiting = waiting.chain(self.holds.requests());
        let asked = waiting.map(|request| &*request.trigger);
        let found = self.catch_up.candidates();
        let asked = running.chain(asked).chain(found);
        let ids: Vec<MessageId> = asked
            .filter(|asked| is_there(asked))
            .map(|asked| asked.id)
            .collect();
        self.catch_up.gone(&ids);
        self.held_deleted(guild, &ids);
    }

    fn channel_gone(&mut self, guild: Option<GuildId>, channel: ChannelId) {
        self.cancel_runs(|run| run.channel() == Some(channel));
        self.questions_gone(guild, |asked| asked.channel == channel);
        self.services.window().forget(channel);
        self.services.negative_cache.forget(channel);
        self.reconcile(DiscordChange::ChannelDeleted { guild, channel });
    }

    fn guild_lost(&self, guild: GuildId) {
        let guild_state = &self.services.guild_state;
        let is_of = |channel, of: Option<GuildId>| {
            of.or_else(|| guild_state.guild_of(channel)) == Some(guild)
        };
        self.services.window().break_where(is_of);
        self.services.memory.missed(Missed::Guild(guild));
    }

    /// An unreadable event may have been any message: the window has a gap there.
    fn missed(&self, guild: Option<GuildId>, channel: Option<ChannelId>) {
        if let Some(channel) = channel {
            self.services.window().break_channel(channel);
            let guild = guild.or_else(|| self.services.guild_state.guild_of(channel));
            self.services
                .memory
                .missed(Missed::Channel { guild, channel });
        } else {
            self.services.window().break_where(|_, _| true);
            self.services.memory.missed(Missed::Everything);
        }
    }

    /// The windows of channels that we can no longer see have a gap from now on.
    fn permissions_changed(&mut self, guild: GuildId, hidden: &[ChannelId]) {
        let guild_state = &self.services.guild_state;
        let may_be_of = |channel| guild_state.guild_of(channel).is_none_or(|of| of == guild);
        self.services.negative_cache.permissions_changed(may_be_of);
        self.services.memory.permissions_changed(may_be_of);
        let mut window = self.services.window();
        window.break_where(|channel, _| hidden.contains(&channel));
        for channel in hidden {
            let missed = Missed::Channel {
                guild: Some(guild),
                channel: *channel,
            };
            self.services.memory.missed(missed);
        }
    }

    /// A thread started from a message has that message's id.
    fn starters_deleted(&self, ids: &[MessageId]) {
        for thread in ids.iter().map(|id| ChannelId::new(id.get())) {
            let known = self.services.guild_state.kind_and_parent(thread);
            if known.is_some_and(|(kind, _)| kind.is_thread()) {
                self.services.negative_cache.starter_deleted(thread);
            }
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

    fn progress(&self) -> MutexGuard<'_, ShardProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finished(&self, mark: Mark) {
        self.progress().finished(mark);
    }

    /// Starts nothing new. Triggers that wait, held ones too, stay unfinished, so that the next
    /// process gets them again; commands are not sent again, so their callers
    /// are told.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.holds.close();
        for active in self
            .active
            .values()
            .filter(|active| active.activity.now().waits)
        {
            turn::abandon(&active.orders);
        }
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

    /// Ends the turns that still run, as a kill would.
    pub(super) fn kill(&self) {
        self.ended.cancel();
    }

    pub(super) fn running(&self) -> usize {
        self.queues.running() + self.runs()
    }

    /// Agent runs, and turns that waited for people: what holds no place.
    fn runs(&self) -> usize {
        let runs = self.active.values().filter(|active| active.queue.is_none());
        runs.count()
    }

    /// Whether any shard is connected.
    pub(super) fn is_connected(&self) -> bool {
        !self.connected.is_empty()
    }

    /// Tells how the loop is.
    pub(super) fn look(&self, reply: oneshot::Sender<LoopGauges>) {
        let shards = self.progress().shard_count();
        let is_down = |shard: &u32| !self.connected.contains(shard);
        let down = (0..shards.max(1)).filter(is_down);
        let down = down.map(|shard| self.down.get(&shard).unwrap_or(&self.began).elapsed());
        // Whoever asked may be gone.
        let _ = reply.send(LoopGauges {
            running: self.queues.running(),
            running_limit: self.queues.running_limit(),
            waiting: self.queues.waiting(),
            runs: self.runs(),
            shards: shards as usize,
            connected: self.connected.len(),
            down: down.max(),
        });
    }

    /// A question is answered, refused or given up: no process takes it again.
    fn over(&self, question: MessageId) {
        let (claims, now) = (
            Arc::clone(&self.services.claims),
            self.services.memory.now(),
        );
        self.tracker
            .spawn(async move { claims.over(question, now).await });
    }

    /// Whether a call has not been delivered before, to this process or another: a resumed
    /// session may deliver it again. Whoever does something for it notes it before.
    fn is_first_call(&self, call: InteractionId) -> bool {
        let now = self.services.memory.now();
        self.services.claims.claim_call(call, now)
    }
}
