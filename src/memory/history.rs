//! History: what was said earlier in a conversation, and what a turn adds to it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use super::{Memory, Place, Result};
use crate::engine::history::{self, HistoryLimits};
use crate::model::Receipt;
use crate::telemetry::Ids;
use crate::telemetry::event::StoreOperation;
use clew_context::engine::shorten;
use clew_context::model::{
    ChannelId, ContentSource, HistoryMessage, MessageId, ToolCall, TurnId, UnixMillis,
};
use clew_store::model::{AgentName, ClearKey, StoredMessage, StoredRole};
use clew_store::{Asker, ConversationStats, WindowQuery};

/// Stored for a trigger without words of its own.
const MENTION: &str = "(mention)";
/// How many rows of a conversation are searched, the newest.
const MAX_SEARCHED: usize = 500;
/// The most that is kept of an answer, in Unicode scalars, unless prompts may show
/// more: every later turn reads it again.
const ANSWER_CHARS: usize = 32_000;

/// A turn that succeeded, as it will be stored.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub turn: TurnId,
    /// The trigger; none for a command, which is not a message: no page would
    /// show it, so asking whether it still exists would be in vain.
    pub trigger: Option<MessageId>,
    /// The asker's name there.
    pub asker_name: String,
    /// The asker's own words; empty for a bare mention.
    pub words: String,
    /// The message that the answer replies to.
    pub target: Option<MessageId>,
    /// When the question came, by our clock.
    pub asked: UnixMillis,
    /// When the answer was complete, by our clock.
    pub answered: UnixMillis,
    /// The answer; empty if it is not whole, or private: then only the receipt is kept.
    pub answer: String,
    /// Its Discord messages, as far as posted.
    pub messages: Vec<MessageId>,
    /// The tools that the model called on the way.
    pub tools: Vec<ToolRound>,
    /// What it was made from that stands elsewhere.
    pub sources: Vec<ContentSource>,
    /// What earlier answers in its prompt were made from.
    pub inherited: Vec<ContentSource>,
    /// What it was made from, to be told to those who ask.
    pub receipt: Option<Receipt>,
}

/// Calls of tools that a model made together, with what came of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRound {
    /// What the model said before; may be empty.
    pub said: String,
    /// Each call with its result.
    pub calls: Vec<(ToolCall, String)>,
}

/// A call in the column `tool_calls`.
#[derive(Serialize)]
struct StoredCall<'a> {
    id: &'a str,
    name: &'a str,
    arguments: &'a str,
}

/// What `/context show` reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    pub stored: ConversationStats,
    /// How many of its messages the next prompt carries.
    pub in_prompt: usize,
    /// When the window begins.
    pub since: UnixMillis,
    /// The most that the window goes back.
    pub rolling_window: Duration,
    /// Whether conversations are kept in memory only.
    pub in_memory_only: bool,
}

/// What a prompt carries of earlier turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Earlier {
    /// Exchanges from before the history that match the question, best first: more than
    /// are shown, since some may not be for those who read the answer.
    pub recalled: Vec<Vec<StoredMessage>>,
    /// The newest, oldest first.
    pub history: Vec<StoredMessage>,
}

impl Memory {
    /// Where people lately wrote direct messages, also those that the store has not taken yet;
    /// none if it does not say in time.
    pub async fn recent_direct(&self, limit: usize) -> Option<Vec<ChannelId>> {
        let listing = self.stores.conversations.recent_direct(limit);
        let listed = timeout(self.patience, listing).await.ok()?;
        let listed = self.done(StoreOperation::Read, listed)?;
        let mut recent = self.unsaved.direct();
        recent.extend(listed);
        let mut known = BTreeSet::new();
        recent.retain(|channel| known.insert(*channel));
        recent.truncate(limit);
        Some(recent)
    }

    /// The rows of earlier turns that go into this turn's prompt, unless
    /// [`Memory::confirm`] finds them gone. Only those not stored yet if the store
    /// fails; none if the asker opted out. Rows that this turn left before its trigger
    /// was edited are not included.
    pub async fn earlier(&self, ids: &Ids, place: &Place, turn: TurnId, question: &str) -> Earlier {
        if self.settings.max_context_messages == 0 || self.opted_out(place.asker) {
            return Earlier::default();
        }
        let store = &self.stores.conversations;
        let asked = self.ask(ids, store, self.window(place)).await;
        let has_failed = asked.is_none();
        // If it failed: what was said since is in memory.
        let mut rows = asked.unwrap_or_else(|| {
            let (since, limit) = (self.oldest(place), self.limits().to_read());
            self.with_unsaved(place, since, Vec::new(), limit)
        });
        rows.retain(|row| row.turn != turn);
        let history = self.of_prompt(rows);
        let recalled = if has_failed {
            Vec::new()
        } else {
            self.recall(ids, place, question, turn, &history).await
        };
        Earlier { recalled, history }
    }

    fn of_prompt(&self, mut rows: Vec<StoredMessage>) -> Vec<StoredMessage> {
        self.leave_out_opted_out(&mut rows);
        let kept = history::window(&rows, &self.limits()).len();
        let mut kept = rows.split_off(rows.len() - kept);
        // The window may begin within a turn, whose question says whether it may be shown.
        if let Some(turn) = headless(&kept)
            && !self.is_question_confirmed(&rows, turn)
        {
            kept.retain(|row| row.turn != turn);
        }
        kept
    }

    /// Others may have opted out since: in a shared thread, or whose messages an
    /// answer was made from.
    pub(super) fn leave_out_opted_out(&self, rows: &mut Vec<StoredMessage>) {
        let opted_out = self.opt_outs.current();
        let is_out = |row: &StoredMessage| {
            let authors = row.sources.iter().filter_map(|source| source.author);
            let mut people = std::iter::once(row.owner).chain(authors);
            people.any(|user| opted_out.contains(user))
        };
        rows.retain(|row| !is_out(row));
    }

    /// What the asker and we said in this conversation, oldest first, as far back as it
    /// is remembered: more than a prompt carries. None if the asker opted out.
    ///
    /// # Errors
    /// The store's error.
    pub async fn said_before(&self, place: &Place) -> Result<Vec<StoredMessage>> {
        if self.opted_out(place.asker) {
            return Ok(Vec::new());
        }
        let mut rows = self.newest(place, MAX_SEARCHED).await?;
        rows.retain(|row| row.owner == place.asker);
        self.leave_out_opted_out(&mut rows);
        // What was read may begin within a turn.
        if let Some(turn) = headless(&rows) {
            rows.retain(|row| row.turn != turn);
        }
        self.leave_out_unconfirmed(&mut rows);
        Ok(rows)
    }

    /// Rows of the history as the prompt shows them.
    pub fn messages(&self, rows: &[StoredMessage]) -> Vec<HistoryMessage> {
        history::messages(rows, self.limits().longest_row())
    }

    /// What is recalled as the prompt shows it: together as much as one row of the history.
    pub fn recalled_messages(&self, rows: &[StoredMessage]) -> Vec<HistoryMessage> {
        let longest = self.limits().longest_row() / rows.len().max(1);
        history::messages(rows, longest)
    }

    /// `/context clear`: the next prompts start from now, for the asker or for
    /// everyone in the server. The rows stay. Returns whether it is done: nothing is noted
    /// of an asker who opted out.
    ///
    /// # Errors
    /// The store's error.
    pub async fn clear(&self, place: &Place, everyone: bool) -> Result<bool> {
        let now = self.now_apart();
        let key = ClearKey {
            agent: place.agent.clone(),
            guild: place.guild,
            user: (!everyone).then_some(place.asker),
        };
        // A turn stored after the marker would count as later than it.
        self.save_first(|turn| turn.is_cleared_by(&key)).await?;
        if key.user.is_some_and(|user| self.opted_out(user)) {
            return Ok(false);
        }
        self.stores.conversations.clear(&key, now).await?;
        // What was answered since then, while the store took its time, stays.
        self.unsaved
            .forget(|turn| turn.is_cleared_by(&key) && turn.answered <= now);
        Ok(true)
    }

    /// `/clear-context`: deletes this conversation. Returns the number of
    /// messages deleted.
    ///
    /// # Errors
    /// The store's error.
    pub async fn delete_conversation(&self, place: &Place) -> Result<u64> {
        let (scope, at) = (place.scope, self.now_apart());
        self.save_first(|turn| turn.key.scope == scope).await?;
        let store = &self.stores.conversations;
        let gone = store.delete_conversation(scope).await?;
        self.unsaved.forget(|turn| turn.key.scope == scope);
        self.recall.forget(scope);
        if let Some(outputs) = self.outputs() {
            outputs.end_session(scope, at).await?;
        }
        Ok(gone)
    }

    /// `/context show`.
    ///
    /// # Errors
    /// The store's error.
    pub async fn overview(&self, place: &Place) -> Result<Overview> {
        self.save_first(|turn| turn.key.scope == place.scope)
            .await?;
        let stored = self
            .stores
            .conversations
            .conversation(place.scope, self.now())
            .await?;
        let rows = self.window(place).await?;
        Ok(Overview {
            stored,
            in_prompt: self.messages(&self.of_prompt(rows)).len(),
            since: self.since(place).await?,
            rolling_window: place.rolling_window,
            in_memory_only: self.settings.in_memory_only,
        })
    }

    /// The rows that may go into a prompt, and one more if there are more.
    pub(super) async fn window(&self, place: &Place) -> Result<Vec<StoredMessage>> {
        self.newest(place, self.limits().to_read()).await
    }

    /// At most that many questions and answers, the newest.
    async fn newest(&self, place: &Place, limit: usize) -> Result<Vec<StoredMessage>> {
        let since = self.begins(place).await?;
        let query = WindowQuery {
            scope: place.scope,
            agent: place.agent.clone(),
            since,
            cleared: Some(Asker {
                guild: place.guild,
                user: place.asker,
            }),
            with_tools: false,
            limit,
        };
        let rows = self.stores.conversations.window(&query).await?;
        Ok(self.with_unsaved(place, since, rows, limit))
    }

    /// Adds rows not stored yet, and leaves out those whose message may be deleted.
    fn with_unsaved(
        &self,
        place: &Place,
        since: UnixMillis,
        mut rows: Vec<StoredMessage>,
        limit: usize,
    ) -> Vec<StoredMessage> {
        let unsaved = &self.unsaved;
        unsaved.add_to(&mut rows, place.scope, &place.agent, since);
        rows.retain(|row| row.role.is_spoken());
        let too_many = rows.len().saturating_sub(limit);
        rows.drain(..too_many);
        self.leave_out_doubtful(&mut rows);
        rows
    }

    /// When the rolling window begins.
    pub(super) fn oldest(&self, place: &Place) -> UnixMillis {
        let window = i64::try_from(place.rolling_window.as_millis()).unwrap_or(i64::MAX);
        self.longest_window.fetch_max(window, Ordering::Relaxed);
        UnixMillis(self.now().0.saturating_sub(window))
    }

    /// `max(last clear, now - rolling window)`; the agent's creation counts as the
    /// first clear.
    pub(super) async fn since(&self, place: &Place) -> Result<UnixMillis> {
        let begins = self.begins(place).await?;
        let store = &self.stores.conversations;
        let cleared = store
            .cleared_at(&place.agent, place.guild, place.asker)
            .await?;
        Ok(cleared.map_or(begins, |at| at.max(begins)))
    }

    /// The same, without clear markers.
    async fn begins(&self, place: &Place) -> Result<UnixMillis> {
        let oldest = self.oldest(place);
        // A new agent's creation is noted as the beginning of its first window:
        // the first question to it, and rows that another program left, are older
        // than this lookup.
        let created = self.agent_created(&place.agent, oldest).await?;
        Ok(created.max(oldest))
    }

    /// Cached: it never changes once written, and every turn asks for it.
    pub(super) async fn agent_created(
        &self,
        agent: &AgentName,
        now: UnixMillis,
    ) -> Result<UnixMillis> {
        let known = self.created.lock().get(agent).copied();
        if let Some(created) = known {
            return Ok(created);
        }
        let store = &self.stores.conversations;
        let created = store.agent_created(agent, now).await?;
        let mut known = self.created.lock();
        known.insert(agent.clone(), created);
        Ok(created)
    }

    pub(super) const fn limits(&self) -> HistoryLimits {
        HistoryLimits {
            max_messages: self.settings.max_context_messages,
            max_chars: self.settings.max_context_chars,
            load_past: self.settings.load_past,
            started: self.started,
        }
    }
}

/// The first turn if its question is not among the rows.
fn headless(rows: &[StoredMessage]) -> Option<TurnId> {
    let first = rows.first()?;
    (first.role != StoredRole::User).then_some(first.turn)
}

/// What is stored of a trigger's words.
pub(super) fn stored_words(words: &str) -> &str {
    let words = words.trim();
    if words.is_empty() { MENTION } else { words }
}

/// A turn as rows. Of a very long answer only the two ends are kept.
pub(super) fn rows(
    place: &Place,
    exchange: &Exchange,
    limits: HistoryLimits,
) -> Vec<StoredMessage> {
    let answered = exchange.answered;
    let words = stored_words(&exchange.words);
    let row = |role: StoredRole, content: &str, timestamp: UnixMillis| StoredMessage {
        scope: place.scope,
        agent: place.agent.clone(),
        turn: exchange.turn,
        ordinal: 0,
        role,
        guild: place.guild,
        channel: place.channel,
        owner: place.asker,
        author_name: None,
        content: content.to_owned(),
        tool_calls: None,
        tool_call_id: None,
        timestamp,
        message: None,
        parts: Vec::new(),
        target: None,
        restored_from: None,
        sources: Vec::new(),
    };
    let longest = limits.longest_row().max(ANSWER_CHARS);
    let shortened = shorten::head_and_tail(&exchange.answer, longest);
    let answer = shortened.as_deref().unwrap_or(&exchange.answer);
    let mut parts = exchange.messages.iter().copied();
    let mut rows = vec![StoredMessage {
        author_name: Some(exchange.asker_name.clone()),
        message: exchange.trigger,
        target: exchange.target,
        ..row(StoredRole::User, words, exchange.asked)
    }];
    for round in &exchange.tools {
        rows.push(StoredMessage {
            tool_calls: serde_json::to_string(&stored_calls(round)).ok(),
            ..row(StoredRole::ToolUse, &round.said, answered)
        });
        rows.extend(round.calls.iter().map(|(call, result)| StoredMessage {
            tool_call_id: Some(call.id.clone()),
            ..row(StoredRole::ToolResult, result, answered)
        }));
    }
    rows.push(StoredMessage {
        message: parts.next(),
        parts: parts.collect(),
        ..row(StoredRole::Assistant, answer, answered)
    });
    let sources = exchange.sources.iter().chain(&exchange.inherited);
    let sources: BTreeSet<ContentSource> = sources.copied().collect();
    for row in &mut rows[1..] {
        row.sources.extend(&sources);
    }
    rows
}

fn stored_calls(round: &ToolRound) -> Vec<StoredCall<'_>> {
    let calls = round.calls.iter().map(|(call, _)| StoredCall {
        id: &call.id,
        name: &call.name,
        arguments: &call.arguments,
    });
    calls.collect()
}
