//! A world in memory for the collectors: a `Source` over lists of messages that
//! records its calls and fails on demand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use clew_context::collect::{
    FetchError, MessagePage, NegativeCache, OtherChannels, PageCursor, Source, collect,
};
use clew_context::engine::eligible::Us;
use clew_context::engine::prepare::{Prepared, PromptInput, prepare};
use clew_context::engine::turn::{Collected, TurnInput};
use clew_context::engine::window::{View, Window, WindowLimits};
use clew_context::model::{
    Access, AgentDoc, Attachment, Block, BlockEntry, BlockPlace, Cause, Channel, ChannelId,
    ChannelKind, Fallback, Guild, GuildId, HistoryMessage, Limits, Marker, Message, MessageId,
    OptedOut, Profiles, Readers, ReplyTarget, RoleId, TurnRequest, UserId,
};
use tokio::time::{Duration, Instant, sleep};

use super::build::{id, number, us};

/// One call in short form: `page to 12` (a page that ends at 12), `page before
/// 12`, `message 3`, `channel 500`.
pub(crate) type Call = String;

/// Everything that can be fetched.
#[derive(Debug, Default)]
pub(crate) struct World {
    messages: BTreeMap<ChannelId, BTreeMap<MessageId, Message>>,
    channels: BTreeMap<ChannelId, Channel>,
    /// The pinned messages of each channel, the last pinned first.
    pub(crate) pins: BTreeMap<ChannelId, Vec<Message>>,
    /// Texts of files, by name.
    pub(crate) files: HashMap<String, String>,
    /// Channels whose history may not be read: pages are empty, single reads are refused.
    pub(crate) hidden: BTreeSet<ChannelId>,
    /// Messages that are unreadable in pages.
    pub(crate) unreadable: BTreeSet<MessageId>,
    /// The server.
    pub(crate) guild: Option<Guild>,
    /// Its members' roles.
    pub(crate) members: HashMap<UserId, Vec<RoleId>>,
    /// Members of private threads.
    pub(crate) thread_members: BTreeSet<UserId>,
    /// Errors for the next call whose name starts with the word, in order.
    faults: Mutex<Vec<(&'static str, FetchError)>>,
    /// Channels that the gateway told of, and who may read them.
    pub(crate) known: BTreeMap<ChannelId, (Channel, Readers)>,
    /// Who may read the others; nobody if that is not set.
    pub(crate) of_unknown: Option<Readers>,
    /// Channels that we know we may not read.
    pub(crate) barred: BTreeSet<ChannelId>,
    /// Windows of other channels.
    pub(crate) views: BTreeMap<ChannelId, View>,
    /// How long each call takes.
    pub(crate) latency: Duration,
    calls: Mutex<Vec<Call>>,
}

impl World {
    /// A world with these messages.
    pub(crate) fn of(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut world = Self::default();
        world.add(messages);
        world
    }

    pub(crate) fn add(&mut self, messages: impl IntoIterator<Item = Message>) {
        for mut message in messages {
            // Pages contain no guild id.
            message.guild = None;
            let channel = self.messages.entry(message.channel).or_default();
            channel.insert(message.id, message);
        }
    }

    pub(crate) fn with_channel(mut self, channel: Channel) -> Self {
        self.channels.insert(channel.id, channel);
        self
    }

    /// Puts a message of another channel into this channel's pages.
    pub(crate) fn misplace(&mut self, channel: ChannelId, message: Message) {
        let channel = self.messages.entry(channel).or_default();
        channel.insert(message.id, message);
    }

    pub(crate) fn remove(&mut self, channel: ChannelId, id: MessageId) {
        self.messages.entry(channel).or_default().remove(&id);
    }

    /// Makes the next call whose name starts with `call` fail.
    pub(crate) fn failing(self, call: &'static str, error: FetchError) -> Self {
        self.faults.lock().unwrap().push((call, error));
        self
    }

    /// Returns the calls so far and forgets them.
    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    async fn call(&self, name: String, deadline: Instant) -> Result<(), FetchError> {
        let fault = {
            let mut faults = self.faults.lock().unwrap();
            let at = faults.iter().position(|(call, _)| name.starts_with(call));
            at.map(|at| faults.remove(at).1)
        };
        self.calls.lock().unwrap().push(name);
        if Instant::now() + self.latency > deadline {
            tokio::time::sleep_until(deadline).await;
            return Err(FetchError::lasting(Fallback::Timeout));
        }
        if !self.latency.is_zero() {
            sleep(self.latency).await;
        }
        fault.map_or(Ok(()), Err)
    }
}

impl Source for World {
    async fn page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
        deadline: Instant,
    ) -> Result<MessagePage, FetchError> {
        let name = match cursor {
            PageCursor::Before(before) if before == id(number(before)) => {
                format!("page before {}", number(before))
            }
            PageCursor::Before(before) => format!("page to {}", number(before)),
            PageCursor::After(id) => format!("page after {} limit {limit}", number(id)),
            PageCursor::Around(id) => format!("page around {}", number(id)),
        };
        self.call(name, deadline).await?;
        let empty = BTreeMap::new();
        let all = self.messages.get(&channel).unwrap_or(&empty);
        let all = if self.hidden.contains(&channel) {
            &empty
        } else {
            all
        };
        let mut chosen: Vec<&Message> = match cursor {
            PageCursor::Before(id) => all
                .range(..id)
                .rev()
                .take(limit)
                .map(|(_, message)| message)
                .collect(),
            PageCursor::After(id) => all
                .range(id.next()..)
                .take(limit)
                .map(|(_, message)| message)
                .collect(),
            PageCursor::Around(id) => {
                let half = limit / 2;
                let older = all.range(..id).rev().take(half);
                let newer = all.range(id..).take(limit - half);
                older.chain(newer).map(|(_, message)| message).collect()
            }
        };
        chosen.sort_by_key(|message| message.id);
        let complete = chosen.len() < limit;
        let (unreadable, chosen): (Vec<&Message>, Vec<&Message>) = chosen
            .into_iter()
            .partition(|message| self.unreadable.contains(&message.id));
        Ok(MessagePage {
            messages: chosen.into_iter().cloned().collect(),
            unreadable: unreadable.into_iter().map(|message| message.id).collect(),
            complete,
        })
    }

    async fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> Result<Message, FetchError> {
        self.call(format!("message {}", number(id)), deadline)
            .await?;
        if self.hidden.contains(&channel) {
            return Err(FetchError::lasting(Fallback::Forbidden));
        }
        let found = self.messages.get(&channel).and_then(|all| all.get(&id));
        found.cloned().ok_or(FetchError::lasting(Fallback::Deleted))
    }

    async fn pins(
        &self,
        channel: ChannelId,
        limit: usize,
        deadline: Instant,
    ) -> Result<Vec<Message>, FetchError> {
        self.call("pins".to_owned(), deadline).await?;
        let pins = self.pins.get(&channel).into_iter().flatten();
        Ok(pins.take(limit).cloned().collect())
    }

    fn other_channels(&self) -> Option<&dyn OtherChannels> {
        Some(self)
    }

    async fn channel(&self, id: ChannelId, deadline: Instant) -> Result<Channel, FetchError> {
        self.call("channel".to_owned(), deadline).await?;
        let found = self.channels.get(&id).cloned();
        found.ok_or(FetchError::lasting(Fallback::NotFound))
    }

    async fn guild(&self, _: GuildId, deadline: Instant) -> Result<Guild, FetchError> {
        self.call("guild".to_owned(), deadline).await?;
        let found = self.guild.clone();
        found.ok_or(FetchError::lasting(Fallback::NotFound))
    }

    async fn member_roles(
        &self,
        _: GuildId,
        user: UserId,
        deadline: Instant,
    ) -> Result<Vec<RoleId>, FetchError> {
        self.call("member".to_owned(), deadline).await?;
        let found = self.members.get(&user).cloned();
        found.ok_or(FetchError::lasting(Fallback::NotFound))
    }

    async fn is_thread_member(
        &self,
        _: ChannelId,
        user: UserId,
        deadline: Instant,
    ) -> Result<bool, FetchError> {
        self.call("thread member".to_owned(), deadline).await?;
        Ok(self.thread_members.contains(&user))
    }

    async fn file(
        &self,
        file: &Attachment,
        _: u64,
        deadline: Instant,
    ) -> Result<String, FetchError> {
        let query = file.url.find('?').map_or("", |at| &file.url[at..]);
        self.call(format!("file {}{query}", file.filename), deadline)
            .await?;
        let found = self.files.get(&*file.filename).cloned();
        found.ok_or(FetchError::lasting(Fallback::NotFound))
    }
}

impl OtherChannels for World {
    fn channel(&self, id: ChannelId) -> Option<Channel> {
        self.known.get(&id).map(|(channel, _)| channel.clone())
    }

    fn readers(&self, channel: &Channel) -> Readers {
        let known = self.known.get(&channel.id);
        let readers = known.map(|(_, readers)| *readers).or(self.of_unknown);
        readers.unwrap_or(Readers::Nobody)
    }

    fn may_surely_not_read(&self, channel: ChannelId) -> bool {
        self.barred.contains(&channel)
    }

    fn view(&self, channel: ChannelId) -> View {
        self.views.get(&channel).cloned().unwrap_or_default()
    }
}

/// What a turn knows when it starts; nothing but the request unless a view is given.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) us: Us,
    pub(crate) limits: Limits,
    pub(crate) channel: Option<Channel>,
    pub(crate) kind: Option<ChannelKind>,
    pub(crate) our_access: Access,
    pub(crate) asker_access: Access,
    pub(crate) asker_roles: Option<Vec<RoleId>>,
    pub(crate) view: Option<View>,
    pub(crate) starter: Option<Arc<Message>>,
    pub(crate) waited: bool,
    pub(crate) other_triggers: BTreeSet<MessageId>,
    pub(crate) reply_target: ReplyTarget,
    pub(crate) cause: Cause,
    pub(crate) docs: Vec<AgentDoc>,
    pub(crate) status: String,
    /// Who opted out, unless a view is given.
    pub(crate) opted_out: OptedOut,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            us: us(),
            limits: Limits::default(),
            channel: None,
            kind: None,
            our_access: Access::FULL,
            asker_access: Access::FULL,
            asker_roles: None,
            view: None,
            starter: None,
            waited: false,
            other_triggers: BTreeSet::new(),
            reply_target: ReplyTarget::Newest,
            cause: Cause::Mention,
            docs: Vec::new(),
            status: String::new(),
            opted_out: OptedOut::default(),
        }
    }
}

impl Start {
    /// A turn in this channel.
    pub(crate) fn within(channel: Channel) -> Self {
        Self {
            channel: Some(channel),
            ..Self::default()
        }
    }

    /// Starts with a view of a window that saw these messages.
    pub(crate) fn watching(mut self, messages: &[Message], opened: bool) -> Self {
        let mut window = window();
        window.withhold(self.opted_out.clone());
        let channel = messages.first().unwrap().channel;
        if opened {
            window.opened(channel, None);
        }
        for message in messages {
            window.created(message.clone());
        }
        self.view = Some(window.view(channel));
        self
    }

    /// Collects where no runtime is; time passes at once.
    pub(crate) fn collected(&self, world: &World, trigger: &Message) -> Collected {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(self.collect(world, trigger))
    }

    pub(crate) async fn collect(&self, world: &World, trigger: &Message) -> Collected {
        self.collect_with(world, &NegativeCache::default(), trigger)
            .await
    }

    pub(crate) async fn collect_with(
        &self,
        world: &World,
        negative_cache: &NegativeCache,
        trigger: &Message,
    ) -> Collected {
        let view = self.view.clone().unwrap_or_else(|| {
            let mut window = window();
            window.withhold(self.opted_out.clone());
            if self.cause.interaction().is_none() {
                window.created(trigger.clone());
            }
            window.view(trigger.channel)
        });
        let request = TurnRequest {
            trigger: Arc::new(trigger.clone()),
            channel_kind: self.kind,
            asker_roles: self.asker_roles.clone(),
            cause: self.cause.clone(),
            is_private: false,
        };
        let input = TurnInput {
            channel: self.channel.clone(),
            our_access: self.our_access,
            asker_access: self.asker_access,
            starter: self.starter.clone(),
            waited: self.waited,
            other_triggers: self.other_triggers.clone(),
            reply_target: self.reply_target,
            ..TurnInput::new(request, self.us.clone(), view, self.limits)
        };
        collect(world, negative_cache, input).await
    }

    pub(crate) fn prepare(&self, collected: &Collected) -> Prepared {
        self.prepare_with(collected, &Profiles::default(), &[])
    }

    pub(crate) fn prepare_with(
        &self,
        collected: &Collected,
        profiles: &Profiles,
        history: &[HistoryMessage],
    ) -> Prepared {
        let input = PromptInput {
            docs: &self.docs,
            status: &self.status,
            profiles,
            history,
            ..PromptInput::new("Be helpful.", b"secret", "test")
        };
        prepare(collected, &input)
    }

    /// Collects and outlines the block, see [`outline`].
    pub(crate) async fn outline(&self, world: &World, trigger: &Message) -> String {
        let collected = self.collect(world, trigger).await;
        outline(&self.prepare(&collected).block)
    }
}

pub(crate) fn window() -> Window {
    Window::new(WindowLimits {
        per_channel: 200,
        max_bytes: 8_000_000,
    })
}

/// The block in short form, oldest first: the numbers of messages, named ones
/// prefixed by their place (`s`tarter, `p`ointed at, `t`arget, `l`inked, `*` pinned), and markers:
/// `..12..`, `deleted`, `app`, `unavailable`, `earlier`, `private`, `closed`; `|` is a
/// heading.
pub(crate) fn outline(block: &Block) -> String {
    let words: Vec<String> = block
        .entries
        .iter()
        .map(|entry| match entry {
            BlockEntry::Message(item) => {
                let place = match item.place {
                    BlockPlace::Starter => "s",
                    BlockPlace::PointedAt => "p",
                    BlockPlace::Target => "t",
                    BlockPlace::Linked => "l",
                    BlockPlace::Pinned => "*",
                    BlockPlace::Tail
                    | BlockPlace::History
                    | BlockPlace::Chain
                    | BlockPlace::LinkContext
                    | BlockPlace::Conversation(_) => "",
                };
                format!("{place}{}", number(item.message.id))
            }
            BlockEntry::Marker(Marker::Gap(count, _)) => format!("..{count}.."),
            BlockEntry::Marker(Marker::Skipped) => "...".to_owned(),
            BlockEntry::Marker(Marker::EarlierChain(_)) => "earlier".to_owned(),
            BlockEntry::Marker(Marker::Deleted(..)) => "deleted".to_owned(),
            BlockEntry::Marker(Marker::Ineligible(_)) => "app".to_owned(),
            BlockEntry::Marker(Marker::Withheld(1, _)) => "private".to_owned(),
            BlockEntry::Marker(Marker::Withheld(count, _)) => format!("private*{count}"),
            BlockEntry::Marker(Marker::Unavailable(..)) => "unavailable".to_owned(),
            BlockEntry::Marker(Marker::ClosedLink) => "closed".to_owned(),
            BlockEntry::Heading(_) => "|".to_owned(),
        })
        .collect();
    words.join(" ")
}

/// What failed, as `stage:reason`.
pub(crate) fn failures(collected: &Collected) -> Vec<String> {
    let failures = collected.fallbacks.iter();
    failures
        .map(|(stage, reason)| format!("{}:{reason}", stage.as_str()))
        .collect()
}

/// The number of the message that the answer replies to.
pub(crate) fn target(collected: &Collected) -> Option<u64> {
    let target = collected.target.reply_to.as_ref();
    target.map(|message| number(message.id))
}

/// The number of the message whose text is adopted.
pub(crate) fn adopted(collected: &Collected) -> Option<u64> {
    let adopted = collected.target.adopted.as_ref();
    adopted.map(|message| number(message.id))
}
