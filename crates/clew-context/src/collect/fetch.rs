//! Fetching under one deadline and one budget, with one retry where that can
//! help. Every failure is noted once, with the stage it happened in. Messages of
//! users who opted out lose their words here, before anything else sees them.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use crate::engine::select::NamedMessage;
use crate::engine::turn::StageFetches;
use crate::model::{
    Attachment, Channel, ChannelId, Fallback, Guild, GuildId, Image, Limits, Message, MessageId,
    OptedOut, RoleId, Stage, UnixMillis, UserId,
};

use super::negative_cache::{LookUp, NegativeCache};
use super::source::{FetchError, MessagePage, OtherChannels, PageCursor, Source};

/// Pause before the retry after a server error or a broken connection.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Access to a source for one block.
#[derive(Debug)]
pub(super) struct Fetcher<'a, S> {
    source: &'a S,
    negative_cache: &'a NegativeCache,
    opted_out: &'a OptedOut,
    deadline: Instant,
    budget: usize,
    used: AtomicUsize,
    made: Mutex<BTreeMap<Stage, CallsMade>>,
    failures: Mutex<Vec<(Stage, Fallback)>>,
    /// Each channel is fetched once, however many ask for it.
    channels: Mutex<HashMap<ChannelId, Arc<OnceCell<Option<Channel>>>>>,
}

/// The calls of a stage, of which several may run at once.
#[derive(Debug, Clone, Copy)]
struct CallsMade {
    count: usize,
    began: Instant,
    ended: Instant,
}

impl<'a, S: Source> Fetcher<'a, S> {
    pub(super) fn new(
        source: &'a S,
        negative_cache: &'a NegativeCache,
        opted_out: &'a OptedOut,
        limits: &Limits,
    ) -> Self {
        Self {
            source,
            negative_cache,
            opted_out,
            deadline: Instant::now() + limits.fetch_timeout,
            budget: limits.max_fetches,
            used: AtomicUsize::new(0),
            made: Mutex::default(),
            failures: Mutex::new(Vec::new()),
            channels: Mutex::default(),
        }
    }

    /// A page of at most `limit` messages.
    pub(super) async fn page(
        &self,
        stage: Stage,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
    ) -> Option<MessagePage> {
        self.page_or_why(stage, channel, cursor, limit).await.ok()
    }

    /// The same, and if there is none, why.
    pub(super) async fn page_or_why(
        &self,
        stage: Stage,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
    ) -> Result<MessagePage, Fallback> {
        let call = || self.source.page(channel, cursor, limit, self.deadline);
        let page = self.allowed(stage, channel, call).await;
        let mut page = page.inspect_err(|reason| self.fail(stage, *reason))?;
        let foreign = |message: &Message| message.channel != channel;
        for message in page.messages.extract_if(.., |message| foreign(message)) {
            page.unreadable.push(message.id);
        }
        for message in &mut page.messages {
            self.opted_out.withhold(message);
        }
        Ok(page)
    }

    /// One message. That there is none is not noted as a failure.
    pub(super) async fn message(
        &self,
        stage: Stage,
        channel: ChannelId,
        id: MessageId,
    ) -> Result<Message, Fallback> {
        let message = self.message_unnoted(stage, channel, id).await;
        message.inspect_err(|reason| {
            if !matches!(reason, Fallback::Deleted | Fallback::NotFound) {
                self.fail(stage, *reason);
            }
        })
    }

    /// One message, which something else may show as well: only if nothing does, the caller
    /// notes the failure.
    pub(super) async fn message_unnoted(
        &self,
        stage: Stage,
        channel: ChannelId,
        id: MessageId,
    ) -> Result<Message, Fallback> {
        let call = || self.source.message(channel, id, self.deadline);
        let mut message = self.allowed(stage, channel, call).await?;
        if message.channel != channel {
            return Err(Fallback::Malformed);
        }
        self.opted_out.withhold(&mut message);
        Ok(message)
    }

    /// The pinned messages of a channel, the last pinned first.
    pub(super) async fn pins(&self, channel: ChannelId, limit: usize) -> Option<Vec<Message>> {
        let call = || self.source.pins(channel, limit, self.deadline);
        let pins = self.allowed(Stage::Pins, channel, call).await;
        let pins = pins.inspect_err(|reason| self.fail(Stage::Pins, *reason));
        let mut pins = pins.ok()?;
        pins.retain(|message| message.channel == channel);
        for message in &mut pins {
            message.take_referenced_message();
            self.opted_out.withhold(message);
        }
        Some(pins)
    }

    /// A channel. It may be visible even if its messages are refused.
    pub(super) async fn channel(&self, id: ChannelId) -> Option<Channel> {
        let cell = {
            let channels = self.channels.lock();
            let mut channels = channels.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(channels.entry(id).or_default())
        };
        cell.get_or_init(|| self.ask_for_channel(id)).await.clone()
    }

    async fn ask_for_channel(&self, id: ChannelId) -> Option<Channel> {
        let call = || self.source.channel(id, self.deadline);
        let channel = if self.negative_cache.is_hidden(id, Instant::now()) {
            Err(Fallback::Forbidden)
        } else {
            self.counted(Stage::Channel, call).await
        };
        channel
            .inspect_err(|reason| {
                if *reason == Fallback::Forbidden {
                    self.negative_cache.hide(id, Instant::now());
                }
                self.fail(Stage::Channel, *reason);
            })
            .ok()
    }

    /// A channel that somebody named. Why it could not be got is not noted: it may be
    /// none of the asker's business that it exists. Whatever comes of it holds for a
    /// while, so that the number of calls does not tell it either.
    pub(super) async fn look_up(&self, id: ChannelId) -> Option<Channel> {
        let known = self.negative_cache.looked_up(id, Instant::now());
        let found = match known {
            Some(known) => known,
            None => self.ask_for_named(id).await?,
        };
        match found {
            LookUp::Found(channel) => Some(*channel),
            LookUp::Nothing => None,
        }
    }

    async fn ask_for_named(&self, id: ChannelId) -> Option<LookUp> {
        let call = || self.source.channel(id, self.deadline);
        let found = match self.counted(Stage::Link, call).await {
            Ok(channel) => LookUp::Found(Box::new(channel)),
            Err(Fallback::Forbidden | Fallback::NotFound) => LookUp::Nothing,
            Err(_) => return None,
        };
        let now = Instant::now();
        self.negative_cache.remember_look_up(id, found.clone(), now);
        Some(found)
    }

    /// What is known of channels other than the trigger's.
    pub(super) fn other_channels(&self) -> Option<&dyn OtherChannels> {
        self.source.other_channels()
    }

    pub(super) async fn guild(&self, id: GuildId) -> Option<Guild> {
        let call = || self.source.guild(id, self.deadline);
        self.or_noted(Stage::Asker, call).await
    }

    pub(super) async fn member_roles(&self, guild: GuildId, user: UserId) -> Option<Vec<RoleId>> {
        let call = || self.source.member_roles(guild, user, self.deadline);
        self.or_noted(Stage::Asker, call).await
    }

    /// Whether a user is a member of a thread.
    pub(super) async fn is_thread_member(&self, thread: ChannelId, user: UserId) -> Option<bool> {
        let call = || self.source.is_thread_member(thread, user, self.deadline);
        self.or_noted(Stage::Asker, call).await
    }

    /// Files of a message at addresses that hold: a message that is asked for again has new ones.
    pub(super) async fn at_fresh_addresses(
        &self,
        stage: Stage,
        (channel, id): (ChannelId, MessageId),
        mut files: Vec<Attachment>,
        now: UnixMillis,
    ) -> Vec<Attachment> {
        if files.iter().any(|file| file.is_stale(now))
            && let Ok(message) = self.message(stage, channel, id).await
        {
            let given = || message.extras.iter().flat_map(|extras| extras.files());
            for file in &mut files {
                if let Some(given) = given().find(|given| given.is_same(file)) {
                    file.url.clone_from(&given.url);
                }
            }
        }
        files
    }

    /// The text of a file.
    pub(super) async fn file(&self, file: &Attachment, max_bytes: u64) -> Option<String> {
        let call = || self.source.file(file, max_bytes, self.deadline);
        self.or_noted(Stage::File, call).await
    }

    pub(super) async fn image(&self, file: &Attachment) -> Option<Image> {
        let call = || self.source.whole_file(file, self.deadline);
        let image = Image::of_bytes(&self.or_noted(Stage::Image, call).await?);
        if image.is_none() {
            self.fail(Stage::Image, Fallback::Malformed);
        }
        image
    }

    /// Notes a failure, once per stage and reason.
    pub(super) fn fail(&self, stage: Stage, reason: Fallback) {
        if let Ok(mut failures) = self.failures.lock()
            && !failures.contains(&(stage, reason))
        {
            failures.push((stage, reason));
        }
    }

    /// Notes that a starter could not be fetched, and that nothing else shows it.
    pub(super) fn no_starter(&self, stage: Stage, id: MessageId, why: Fallback) -> NamedMessage {
        self.fail(stage, why);
        NamedMessage::Unavailable(Some(id))
    }

    /// Marks a channel that is known to refuse us, so that it is not asked.
    pub(super) fn bar(&self, channel: ChannelId) {
        self.negative_cache.forbid(channel, Instant::now());
    }

    /// Notes that the channel refused us; it is not asked again for a while.
    pub(super) fn refused(&self, stage: Stage, channel: ChannelId) {
        self.negative_cache.forbid(channel, Instant::now());
        self.fail(stage, Fallback::Forbidden);
    }

    pub(super) fn negative_cache(&self) -> &NegativeCache {
        self.negative_cache
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The calls made, by stage.
    pub(super) fn stages(&self) -> Vec<StageFetches> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let stages = made.iter().map(|(stage, calls)| StageFetches {
            stage: *stage,
            fetches: calls.count,
            took: calls.ended - calls.began,
        });
        stages.collect()
    }

    pub(super) fn failures(&self) -> Vec<(Stage, Fallback)> {
        self.failures
            .lock()
            .map(|failures| failures.clone())
            .unwrap_or_default()
    }

    async fn allowed<T, F: Future<Output = Result<T, FetchError>>>(
        &self,
        stage: Stage,
        channel: ChannelId,
        call: impl Fn() -> F,
    ) -> Result<T, Fallback> {
        if self.negative_cache.is_forbidden(channel, Instant::now()) {
            return Err(Fallback::Forbidden);
        }
        self.counted(stage, call).await.inspect_err(|reason| {
            if *reason == Fallback::Forbidden {
                self.negative_cache.forbid(channel, Instant::now());
            }
        })
    }

    /// What a call gives; that it fails is noted.
    async fn or_noted<T, F: Future<Output = Result<T, FetchError>>>(
        &self,
        stage: Stage,
        call: impl Fn() -> F,
    ) -> Option<T> {
        let answer = self.counted(stage, call).await;
        answer.map_err(|reason| self.fail(stage, reason)).ok()
    }

    /// One call from the budget, and a second one after a transient error.
    async fn counted<T, F: Future<Output = Result<T, FetchError>>>(
        &self,
        stage: Stage,
        call: impl Fn() -> F,
    ) -> Result<T, Fallback> {
        let first = self.once(stage, &call).await;
        match first {
            Err(error) if error.transient && Instant::now() + RETRY_DELAY < self.deadline => {
                sleep(RETRY_DELAY).await;
                self.once(stage, &call)
                    .await
                    .map_err(|again| match again.reason {
                        Fallback::FetchBudget => error.reason,
                        reason => reason,
                    })
            }
            other => other.map_err(|error| error.reason),
        }
    }

    async fn once<T, F: Future<Output = Result<T, FetchError>>>(
        &self,
        stage: Stage,
        call: &impl Fn() -> F,
    ) -> Result<T, FetchError> {
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < self.budget).then_some(used + 1)
            });
        if taken.is_err() {
            return Err(FetchError::lasting(Fallback::FetchBudget));
        }
        // The source enforces the deadline itself and knows what the call waited for;
        // this timeout only guards against a source that does not.
        let guard = self.deadline + Duration::from_millis(100);
        self.call_begins(stage);
        let answered = tokio::time::timeout_at(guard, call()).await;
        self.call_ended(stage);
        answered.unwrap_or(Err(FetchError::lasting(Fallback::Timeout)))
    }

    fn call_begins(&self, stage: Stage) {
        let now = Instant::now();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = made.entry(stage).or_insert(CallsMade {
            count: 0,
            began: now,
            ended: now,
        });
        calls.count += 1;
    }

    fn call_ended(&self, stage: Stage) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(calls) = made.get_mut(&stage) {
            calls.ended = Instant::now();
        }
    }
}
