//! A member at one moment: what they may read of their server, and what is read for them.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{CHANNEL, Given, TIME, Who, lets_read};
use crate::config::Search;
use crate::engine::citations::mark;
use crate::memory::{ExtractionInput, Place, UnderWay};
use crate::model::{BuiltIn, Spender};
use crate::telemetry::Ids;
use crate::telemetry::event::ToolOutcome;
use crate::tools::{self, Address, Arguments, Asker, DiscordSearch, TurnSearches};
use crate::turn::Services;
use clew_context::collect::Reads;
use clew_context::discord::Live;
use clew_context::discord::error::RestError;
use clew_context::engine::admission::{Admission, admit};
use clew_context::engine::docs::Docs;
use clew_context::engine::links::LinkPlace;
use clew_context::engine::render::Directory;
use clew_context::engine::sanitise;
use clew_context::model::{
    Access, AccessRules, Channel, ChannelId, ChannelKind, ChannelMode, ContentSource, Guild,
    Limits, MessageId, Missing, OptedOut, Readers, RoleId, TurnId, UnixMillis, UserId,
};
use clew_store::model::{AgentName, Scope};

/// Where somebody asks who is nowhere on Discord: no channel has this id.
pub(super) const NOWHERE: ChannelId = ChannelId::new(0);
/// The most channels and threads that are listed.
const MAX_LISTED: usize = 500;
/// How long a look at one thread may take.
const LOOK: Duration = Duration::from_secs(5);
/// How much newer than our clock a message may be: Discord's may be ahead.
const AHEAD_MS: i64 = 60_000;

pub(super) struct Member<'a> {
    pub(super) services: &'a Services,
    rules: &'a AccessRules,
    pub(super) who: Who,
    /// As Discord told them just now.
    pub(super) roles: Vec<RoleId>,
    /// The server's roles and owner when the call began.
    guild: Guild,
    opted_out: OptedOut,
    /// Private threads that they are in, as Discord told just now.
    joined: Mutex<BTreeSet<ChannelId>>,
    /// Keeps what is noted of deletions and edits from here on.
    under_way: UnderWay,
}

impl<'a> Member<'a> {
    /// None if they are no member, are blocked, opted out or in a timeout, which takes rights away,
    /// or Discord does not tell. The tokens of who is no member any more, or of a server that is not
    /// ours, end.
    pub(super) async fn now(
        services: &'a Services,
        rules: &'a AccessRules,
        who: Who,
        deadline: Instant,
    ) -> Option<Self> {
        // No change waits for it.
        let turn = TurnId(MessageId::first_at(services.memory.now()).get());
        let under_way = services.memory.noted().begins(Some(turn));
        let reader = services.rest.reader();
        let member = reader.member(who.guild, who.user, deadline).await;
        if member.as_ref().is_err_and(RestError::is_no_member) {
            services.connections.left(Some(who.user), who.guild);
        }
        let (member, guild) = (member.ok()?, services.guild_state.to_guild(who.guild)?);
        let now = services.memory.now();
        let is_timed_out = member.timed_out_until.is_some_and(|until| now < until);
        let may_ask = !is_timed_out && may_ask(services, who, &member.roles);
        may_ask.then(|| Self {
            services,
            rules,
            who,
            roles: member.roles,
            guild,
            opted_out: services.opt_outs.current(),
            joined: Mutex::default(),
            under_way,
        })
    }

    /// The same as others know it.
    pub(super) fn by<'b>(self, services: &'b Services) -> Member<'b>
    where
        'a: 'b,
    {
        Member { services, ..self }
    }

    /// Whether they may read a channel on Discord, from outside it, by the roles of a server.
    fn sees(&self, guild: &Guild, channel: ChannelId) -> bool {
        let reads = |channel| {
            let member = (self.who.user, &*self.roles);
            self.services.guild_state.reads(guild, member, channel)
        };
        let joined = || self.joined.lock().contains(&channel);
        let home = || self.home_of_private(channel);
        reads(channel) || joined() && home().is_some_and(reads)
    }

    /// The channel of a private thread that they may read if they are in it.
    fn home_of_private(&self, thread: ChannelId) -> Option<ChannelId> {
        let guild_state = &self.services.guild_state;
        let (_, parent) = guild_state.kind_and_parent(thread)?;
        let access = guild_state.access(self.who.user, Some(&self.roles), thread);
        let Access::Unknown(Missing::Membership(rights)) = access else {
            return None;
        };
        parent.filter(|_| rights.read_history)
    }

    /// Whether they see a channel where the operator's lists let them ask and the server does not have
    /// us silent.
    pub(super) fn reads(&self, channel: ChannelId) -> bool {
        let guild = self.who.guild;
        let known = self.services.guild_state.kind_and_parent(channel);
        let parent = known.filter(|(kind, _)| kind.is_thread());
        let parent = parent.and_then(|(_, parent)| parent);
        let asked = Admission {
            guild: Some(guild),
            channel,
            parent,
            user: self.who.user,
            roles: Some(&self.roles),
        };
        let settings = self.services.memory.guild_settings(guild);
        settings.mode(channel, parent) != ChannelMode::Off
            && admit(self.rules, asked).is_ok()
            && self.sees(&self.guild, channel)
    }

    /// Whether they may still ask, and what a result was made from stands and may still be read.
    pub(super) fn still_reads(&self, sources: &[ContentSource]) -> bool {
        let (services, who) = (self.services, self.who);
        let may_ask = lets_read(services, who) && may_ask(services, who, &self.roles);
        if !may_ask || !services.guild_state.is_current(who.guild) {
            return false;
        }
        let channels: BTreeSet<ChannelId> = sources.iter().map(|one| one.channel).collect();
        let memory = &self.services.memory;
        let noted = memory.noted().after(self.under_way.since);
        let stands = |source: &ContentSource| {
            !noted.changed(source) && !source.author.is_some_and(|author| memory.opted_out(author))
        };
        let stand = sources.iter().all(stands);
        drop(noted);
        let now = self.services.guild_state.to_guild(self.who.guild);
        let sees = |channel| now.as_ref().is_some_and(|now| self.sees(now, channel));
        stand && channels.into_iter().all(sees)
    }

    /// The channel, and the message of a link, that the arguments name, if they may read there.
    pub(super) async fn place(
        &self,
        given: &Arguments,
    ) -> Result<(ChannelId, Option<MessageId>), Given> {
        let text = given.text(CHANNEL.name);
        let text = text.ok_or_else(|| Given::missing(CHANNEL.name))?;
        let (channel, message) = match Address::parse(&text) {
            Some(Address::Id(id)) => (ChannelId::new(id), None),
            Some(Address::Link(link)) if link.place == LinkPlace::Guild(self.who.guild) => {
                (link.channel, link.message)
            }
            Some(Address::Link(_)) => return Err(Given::nothing()),
            None => (self.named(&text).ok_or_else(Given::nothing)?, None),
        };
        if self.opens(channel).await {
            Ok((channel, message))
        } else {
            Err(Given::nothing())
        }
    }

    /// Whether they may read a channel that they name: Discord is asked for archived threads, and
    /// whether they are in a private one. For whatever they may not read it is asked the same, known
    /// or not, so that time does not tell what there is.
    pub(super) async fn opens(&self, channel: ChannelId) -> bool {
        if self.reads(channel) {
            return true;
        }
        let (services, user) = (self.services, self.who.user);
        let limits = Limits {
            max_fetches: 1,
            fetch_timeout: LOOK,
            ..services.settings.limits
        };
        let live = Live::new(services.rest.reader());
        let reads = Reads::new(&live, &services.negative_cache, &self.opted_out, &limits);
        let found = reads.look_up(channel).await;
        if let Some(found) = found.filter(|found| found.guild == Some(self.who.guild)) {
            services
                .guild_state
                .meet_threads(self.who.guild, vec![found]);
        }
        let deadline = Instant::now() + LOOK;
        let is_in = services
            .rest
            .reader()
            .thread_member(channel, user, deadline);
        if is_in.await.is_ok_and(|is_in| is_in) {
            self.joined.lock().insert(channel);
        }
        self.reads(channel)
    }

    /// The newest channel of this name.
    fn named(&self, name: &str) -> Option<ChannelId> {
        let name = name.strip_prefix('#').unwrap_or(name);
        let mut channels = self.services.guild_state.channels_of(self.who.guild);
        channels.sort_unstable();
        channels.into_iter().rev().find(|id| {
            let shown = self.services.guild_state.channel_name(*id);
            let has_name = shown.is_some_and(|shown| sanitise::name(&shown) == name);
            has_name && self.reads(*id) && self.channel(*id).is_some()
        })
    }

    /// The channels that they may read, each followed by its open threads; where there are too many,
    /// threads are left out.
    pub(super) async fn channels(&self) -> Given {
        let guild_state = &self.services.guild_state;
        let mut listed = Vec::new();
        for id in guild_state.channels_of(self.who.guild) {
            tokio::task::yield_now().await;
            let Some(channel) = guild_state.channel(id).filter(is_listed) else {
                continue;
            };
            if self.reads(id) {
                let is_thread = channel.kind.is_thread();
                let home = channel.parent.filter(|_| is_thread).unwrap_or(id);
                listed.push((is_thread, home, id));
            }
        }
        listed.sort_unstable();
        let is_short = listed.len() > MAX_LISTED;
        listed.truncate(MAX_LISTED);
        listed.sort_unstable_by_key(|(is_thread, home, id)| (*home, *is_thread, *id));
        let lines = listed.into_iter().map(|(is_thread, _, id)| {
            let name = sanitise::name(&self.channel(id).unwrap_or_default());
            if is_thread {
                format!("  {id} thread {name}")
            } else {
                format!("{id} #{name}")
            }
        });
        let more = is_short.then(|| "(There are more.)".to_owned());
        let lines: Vec<String> = lines.chain(more).collect();
        if lines.is_empty() {
            return Given::nothing();
        }
        Given::of(lines.join("\n"), Vec::new())
    }

    /// Runs a tool of ours.
    pub(super) async fn read(&self, tool: BuiltIn, arguments: &Arguments) -> Given {
        let (services, Who { user, guild, .. }) = (self.services, self.who);
        let now = services.memory.now();
        let ids = Ids {
            guild: Some(guild),
            user: Some(user),
            ..Ids::default()
        };
        let place = Place {
            scope: Scope::User(user),
            agent: AgentName::default_agent(),
            guild: Some(guild),
            channel: NOWHERE,
            asker: user,
            rolling_window: Duration::ZERO,
        };
        let said = ExtractionInput {
            ids,
            place: place.clone(),
            asker: String::new(),
            words: String::new(),
            others: Vec::new(),
            message: None,
            asked: now,
            worded: now,
        };
        let limits = Limits {
            max_fetches: tools::MAX_FETCHES,
            fetch_timeout: TIME,
            ..services.settings.limits
        };
        let live = Live::new(services.rest.reader());
        let reads = Reads::new(&live, &services.negative_cache, &self.opted_out, &limits);
        let readers = |channel| {
            if self.reads(channel) {
                Readers::Everybody
            } else {
                Readers::Nobody
            }
        };
        let (seen, us, docs) = (BTreeSet::new(), services.us(Some(guild)), Docs::default());
        let searches = TurnSearches::default();
        let search = DiscordSearch {
            rest: services.rest.reader(),
            servers: &services.searched_servers,
            turn: &searches,
            is_program: true,
        };
        let asker = Asker {
            ids,
            place: &place,
            docs: &docs,
            task: None,
            owns_nothing: true,
            trigger: MessageId::first_at(UnixMillis(now.0 + AHEAD_MS)),
            said: &said,
            seen: &seen,
            us: &us,
            max_message_chars: limits.max_msg_chars,
            names: self,
            readers: &readers,
            guild_state: &services.guild_state,
            reads: &reads,
            search: (services.settings.tools.search == Search::Discord).then_some(search),
            of_servers: None,
            window: &services.window,
            opt_outs: &services.opt_outs,
            memory: &services.memory,
        };
        let result = tools::read(&asker, tool, arguments, TIME).await;
        match result.outcome {
            ToolOutcome::Ok => Given::of(unmarked(result.text, &result.sources), result.sources),
            ToolOutcome::Refused => Given::nothing(),
            outcome => Given::refused(outcome, result.text),
        }
    }
}

/// Whether a member with these roles may ask: not blocked, and not opted out.
fn may_ask(services: &Services, who: Who, roles: &[RoleId]) -> bool {
    let memory = &services.memory;
    let payer = memory.payer(Spender::User(who.user), Some(who.guild), Some(roles));
    !services.is_blocked(payer) && !memory.opted_out(who.user)
}

/// Whether there is something in a channel to read; threads only if they are open and public.
fn is_listed(channel: &Channel) -> bool {
    let is_closed = channel.thread.as_ref().is_some_and(|one| one.archived);
    !is_closed
        && !matches!(
            channel.kind,
            ChannelKind::Category | ChannelKind::PrivateThread
        )
}

/// A text without the marks of its messages, which are for answers that cite.
fn unmarked(text: String, sources: &[ContentSource]) -> String {
    let messages = sources.iter().filter_map(|source| source.message);
    messages.fold(text, |text, id| {
        text.replacen(&format!("{id} {} ", mark(id)), &format!("{id} "), 1)
    })
}

/// Names of the server, and of channels that they may read.
impl Directory for Member<'_> {
    fn user(&self, id: UserId) -> Option<String> {
        self.services.guild_state.user_name(self.who.guild, id)
    }

    fn heard(&self, id: UserId) -> Option<String> {
        self.services.guild_state.heard_name(self.who.guild, id)
    }

    fn role(&self, id: RoleId) -> Option<String> {
        self.services.guild_state.role_name(self.who.guild, id)
    }

    fn channel(&self, id: ChannelId) -> Option<String> {
        let channel = self.services.guild_state.channel(id)?;
        let owner = channel.thread.as_ref().and_then(|thread| thread.owner);
        let is_withheld = owner.is_some_and(|owner| self.opted_out.contains(owner));
        (!is_withheld && self.sees(&self.guild, id)).then_some(channel.name)
    }
}
