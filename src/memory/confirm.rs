//! Confirming: asks Discord for stored messages that may be gone, by pages or one by one,
//! these in a rate-limit pool of their own. Only Discord's "Unknown Message" (10008) purges.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::reconcile::{Asking, Key, Trace, Words, traces};
use super::{DiscordChange, Edit, Fetched, Memory};
use crate::telemetry::event::Confirmed;
use crate::telemetry::{Ids, Ms};
use clew_context::collect::{PAGE_LIMIT, PageCursor};
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, Fallback, Message, MessageId, TurnId, UnixMillis};
use clew_discord::rest::Rest;
use clew_store::Reach;
use clew_store::model::{StoredMessage, StoredRole};

/// The most requests of a turn, for its history and for what is recalled each; the rest
/// is asked for in the background.
const MOST_A_TURN: usize = 8;
/// From this many messages of a channel on, a page is asked for instead of each.
const WORTH_A_PAGE: usize = 3;
/// How long one request in the background may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two requests in the background.
const PACE: Duration = Duration::from_millis(250);
/// After this many requests in a row without an answer, the round ends.
const MOST_UNANSWERED: usize = 3;
/// How long until messages without an answer are asked for again.
const AGAIN: Duration = Duration::from_mins(1);

/// What an edited message says now, as a turn would store it; none if the message
/// may not become part of a turn.
pub type EditOf<'a> = &'a (dyn Fn(&Message) -> Option<Edit> + Send + Sync);

/// Discord's answer about a message.
enum Answer {
    /// The message exists; with its edit, if it has one.
    There(Option<Edit>),
    /// The message does not exist.
    Gone,
    /// We may not read the channel.
    Refused,
    /// No answer in time.
    Unanswered,
    /// An answer that settles nothing.
    Unclear,
    /// A page: what it shows, with its edits, and its oldest message if there are older
    /// ones.
    Page {
        oldest: Option<MessageId>,
        shown: Vec<(MessageId, Option<Edit>)>,
    },
}

impl Answer {
    fn of(error: &RestError) -> Self {
        match error.reason {
            Fallback::Deleted => Self::Gone,
            Fallback::Forbidden | Fallback::NotFound => Self::Refused,
            Fallback::Timeout | Fallback::RateLimited | Fallback::Unavailable => Self::Unanswered,
            _ => Self::Unclear,
        }
    }
}

/// How far down the pages of each channel have been read: what is above was on one of
/// them, or has to be asked for by itself.
#[derive(Default)]
struct Paged(BTreeMap<ChannelId, MessageId>);

impl Paged {
    /// The newest message of the next page, if a page is worth its request.
    fn next(&self, channel: ChannelId, asking: &Asking<'_>) -> Option<MessageId> {
        let end = self.0.get(&channel);
        let of_channel = asking.keys().filter(|(of, _)| *of == channel);
        let below = of_channel.filter(|(_, id)| end.is_none_or(|end| id < end));
        let (count, newest) = below.fold((0, None), |(count, newest), (_, id)| {
            (count + 1, newest.max(Some(*id)))
        });
        newest.filter(|_| count >= WORTH_A_PAGE)
    }

    fn note(&mut self, channel: ChannelId, oldest: Option<MessageId>) {
        self.0.insert(channel, oldest.unwrap_or(MessageId::new(0)));
    }
}

impl Fetched {
    fn shows(&self, (channel, id): Key) -> bool {
        channel == self.channel && self.present.contains(&id)
    }

    fn lacks(&self, (channel, id): Key) -> bool {
        let is_in_range = channel == self.channel && (self.from..=self.to).contains(&id);
        is_in_range && !self.present.contains(&id)
    }
}

impl Memory {
    /// Asks for the rows of a prompt that lie before a gap and have not been
    /// confirmed since, those of `recalled` turns first, then newest first, until
    /// `deadline`: many of a channel by its pages, others one by one. Rows whose message is
    /// gone are left out and purged. What could not be asked for is left out as well, and
    /// asked for in the background. Returns whose words the rows have by what Discord said.
    pub async fn confirm(
        &self,
        ids: &Ids,
        rows: &mut Vec<StoredMessage>,
        recalled: &BTreeSet<TurnId>,
        rest: &Rest,
        edit_of: EditOf<'_>,
        deadline: Instant,
    ) -> Words {
        let is_recalled = |row: &&StoredMessage| recalled.contains(&row.turn);
        let (first, then): (Vec<_>, Vec<_>) = rows.iter().rev().partition(is_recalled);
        let most = MOST_A_TURN + first.len().min(MOST_A_TURN);
        let in_order = first.into_iter().chain(then).flat_map(traces);
        let mut asking = self.doubts.take_unconfirmed(in_order, usize::MAX);
        // An edited one counts as confirmed only once the stores have its words.
        let mut there = Words::new();
        if asking.first().is_some() {
            let began = Instant::now();
            let mut told = Confirmed {
                asked: 0,
                gone: 0,
                unanswered: 0,
                ms: Ms::default(),
            };
            let mut paged = Paged::default();
            let is_left = |asked: usize| asked < most && Instant::now() < deadline;
            while let Some(key) = asking.first().filter(|_| is_left(told.asked)) {
                told.asked += 1;
                let answer = match paged.next(key.0, &asking) {
                    Some(newest) => {
                        self.look_at_page(rest, (key.0, newest), edit_of, deadline)
                            .await
                    }
                    None => self.look_for(rest, key, edit_of, deadline).await,
                };
                match answer {
                    Answer::There(edit) => {
                        there.insert(key, self.there_in(rows, key, edit));
                        asking.done(&key);
                    }
                    Answer::Page { oldest, shown } => {
                        paged.note(key.0, oldest);
                        for (id, edit) in shown {
                            let key = (key.0, id);
                            if asking.done(&key) {
                                there.insert(key, self.there_in(rows, key, edit));
                            }
                        }
                    }
                    Answer::Gone => {
                        told.gone += 1;
                        self.gone(&[key]);
                        asking.done(&key);
                    }
                    Answer::Refused => {
                        self.doubts.refused(key.0, self.now_apart());
                        asking.leave(key.0);
                    }
                    Answer::Unclear => {
                        self.doubts.unclear(key);
                        asking.done(&key);
                    }
                    // It stays with the rest, which is asked for later.
                    Answer::Unanswered => break,
                }
            }
            told.unanswered = asking.len();
            told.ms = Ms::from(began.elapsed());
            self.telemetry.emit(ids, told);
        }
        drop(asking);
        let is_unconfirmed =
            |one: Trace| !there.contains_key(&one.key()) && self.doubts.is_unconfirmed(&one);
        let followed = self.follow_edits(rows);
        leave_out(rows, |row| {
            self.may_be_gone(row) || traces(row).any(is_unconfirmed)
        });
        there.extend(followed);
        there
    }

    /// Takes the words that a message has now into the rows of a prompt, and notes that it
    /// is there. Returns when it was edited.
    fn there_in(
        &self,
        rows: &mut [StoredMessage],
        key: Key,
        edit: Option<Edit>,
    ) -> Option<UnixMillis> {
        let at = edit.as_ref().and_then(|edit| edit.at);
        let edit = edit.filter(|edit| !says(rows, key, edit));
        if let Some(edit) = &edit {
            reword(rows, key.0, edit);
        }
        self.there(key, edit);
        at
    }

    /// Compares the rows of a prompt with a fetched page, without waiting. Rows on
    /// the page are confirmed and take its words; those missing from it are put in
    /// doubt, as are facts learnt from messages missing from it. The page itself
    /// is passed on separately, as a [`DiscordChange::Fetched`].
    pub fn look_through(&self, page: &Fetched, rows: &mut [StoredMessage]) {
        let keys = || rows.iter().flat_map(traces).map(|trace| trace.key());
        let ids = |of: &dyn Fn(Key) -> bool| -> BTreeSet<MessageId> {
            keys().filter(|key| of(*key)).map(|(_, id)| id).collect()
        };
        let shown = ids(&|key| page.shows(key));
        let mut lacking = ids(&|key| page.lacks(key));
        let links = self.facts.links(page.channel);
        lacking.extend(links.filter(|id| page.lacks((page.channel, *id))));
        self.doubts.settle(page.channel, shown, page.at);
        self.doubts
            .lacking((page.guild, page.channel), lacking, page.at);
        for edit in &page.edited {
            reword(rows, page.channel, edit);
        }
    }

    /// Confirms rows of a prompt by messages that the window or the trigger itself has, which
    /// may be edited since the rows were stored. Returns whose words the rows have.
    pub fn confirmed<'a>(
        &self,
        rows: &mut [StoredMessage],
        found: impl Fn(ChannelId, MessageId) -> Option<&'a Message>,
        edit_of: EditOf<'_>,
    ) -> Words {
        let mut there = Words::new();
        let keys: BTreeSet<Key> = rows.iter().flat_map(traces).map(|one| one.key()).collect();
        for key in keys {
            let Some(message) = found(key.0, key.1) else {
                continue;
            };
            let edit = edit_of(message).filter(|edit| edit.at.is_some());
            // What was found may be older than the last event.
            let at = edit.as_ref().and_then(|edit| edit.at);
            if !self.changes.noted.is_edited_after(key, at) {
                there.insert(key, self.there_in(rows, key, edit));
            }
        }
        there
    }

    /// Removes rows made of messages that are deleted or in doubt, or from words
    /// that were edited since. A question takes its answer with it, as in a purge.
    pub(super) fn leave_out_doubtful(&self, rows: &mut Vec<StoredMessage>) {
        self.follow_edits(rows);
        leave_out(rows, |row| self.may_be_gone(row));
    }

    /// The same, and rows from before a gap that are not confirmed; these are asked for in
    /// the background.
    pub(super) fn leave_out_unconfirmed(&self, rows: &mut Vec<StoredMessage>) {
        drop(
            self.doubts
                .take_unconfirmed(rows.iter().flat_map(traces), 0),
        );
        self.follow_edits(rows);
        leave_out(rows, |row| {
            self.may_be_gone(row) || traces(row).any(|one| self.doubts.is_unconfirmed(&one))
        });
    }

    /// Whether the question of a turn is among the rows, and known to stand. If a gap lies
    /// behind it, it is asked for in the background.
    pub(super) fn is_question_confirmed(&self, rows: &[StoredMessage], turn: TurnId) -> bool {
        let mut rows = rows.iter();
        let question = rows.find(|row| row.turn == turn && row.role == StoredRole::User);
        let is_open = |row: &StoredMessage| {
            drop(self.doubts.take_unconfirmed(traces(row), 0));
            traces(row).any(|one| self.doubts.is_unconfirmed(&one))
        };
        question.is_some_and(|row| !is_open(row))
    }

    /// Gives questions the words that the stores do not have yet, and leaves out what was
    /// made from former ones. Returns which questions.
    fn follow_edits(&self, rows: &mut Vec<StoredMessage>) -> Words {
        let mut followed = Words::new();
        let is_of_row = |channel, message| {
            let mut rows = rows.iter();
            rows.any(|row| (row.channel, row.message) == (channel, Some(message)))
        };
        for (channel, edit) in self.changes.edits_waiting(is_of_row) {
            reword(rows, channel, &edit);
            followed.insert((channel, edit.message), edit.at);
        }
        for purge in self.changes.noted.edits_of(rows) {
            let before = rows.clone();
            let reach = Reach::of(&purge, &before);
            rows.retain(|row| !reach.holds(row));
        }
        followed
    }

    fn may_be_gone(&self, row: &StoredMessage) -> bool {
        let is_deleted = || self.changes.noted.is_any_deleted(row.made_of());
        traces(row).any(|trace| self.doubts.hides(&trace)) || is_deleted()
    }

    /// In the background: asks for what is in doubt, a round for each channel in turn.
    pub(super) async fn settle_doubts(
        &self,
        rest: &Rest,
        edit_of: EditOf<'_>,
        shutdown: &CancellationToken,
    ) {
        let asking = async {
            let (mut unanswered, mut again) = (Vec::new(), Instant::now());
            loop {
                tokio::select! {
                    biased;
                    () = sleep_until(again), if !unanswered.is_empty() => {
                        self.doubts.ask_again(&std::mem::take(&mut unanswered));
                    }
                    round = self.doubts.due() => {
                        let left = self.ask_round(rest, round, edit_of).await;
                        if !left.is_empty() {
                            again = Instant::now() + AGAIN;
                            unanswered.extend(left);
                        }
                        if let Some((guild, (channel, from))) = self.doubts.unfinished() {
                            let recheck = DiscordChange::Recheck { guild, channel, from };
                            self.reconcile(recheck);
                            sleep(PACE).await;
                        }
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = asking => {}
        }
    }

    /// Asks for one round of messages. Returns those without an answer.
    async fn ask_round(
        &self,
        rest: &Rest,
        mut asking: Asking<'_>,
        edit_of: EditOf<'_>,
    ) -> Vec<Key> {
        let (mut gone, mut unanswered, mut in_a_row) = (Vec::new(), Vec::new(), 0);
        while let Some(key) = asking.first().filter(|_| in_a_row < MOST_UNANSWERED) {
            let deadline = Instant::now() + LOOK_TIMEOUT;
            let answer = self.look_for(rest, key, edit_of, deadline).await;
            in_a_row = if matches!(answer, Answer::Unanswered) {
                in_a_row + 1
            } else {
                0
            };
            match answer {
                Answer::There(edit) => self.there(key, edit),
                Answer::Gone => gone.push(key),
                Answer::Unanswered => unanswered.push(key),
                Answer::Unclear | Answer::Page { .. } => self.doubts.unclear(key),
                Answer::Refused => {
                    self.doubts.refused(key.0, self.now_apart());
                    asking.leave(key.0);
                    continue;
                }
            }
            asking.done(&key);
            sleep(PACE).await;
        }
        self.gone(&gone);
        unanswered.extend(asking.hand_over());
        unanswered
    }

    async fn look_for(
        &self,
        rest: &Rest,
        (channel, id): Key,
        edit_of: EditOf<'_>,
        deadline: Instant,
    ) -> Answer {
        match rest.reader().check(channel, id, deadline).await {
            Ok(message) => Answer::There(edit_of(&message).filter(|edit| edit.at.is_some())),
            Err(error) => Answer::of(&error),
        }
    }

    /// Asks for the page whose newest message is that one. What it lacks is not settled: a
    /// page may be short for many reasons.
    async fn look_at_page(
        &self,
        rest: &Rest,
        (channel, newest): Key,
        edit_of: EditOf<'_>,
        deadline: Instant,
    ) -> Answer {
        let before = PageCursor::Before(MessageId::new(newest.get().saturating_add(1)));
        let reader = rest.reader();
        match reader.page(channel, before, PAGE_LIMIT, deadline).await {
            Ok(page) => {
                let oldest = page.messages.first().map(|one| one.id);
                let of_channel = page.messages.iter().filter(|one| one.channel == channel);
                let shown = of_channel.map(|message| {
                    let edit = edit_of(message).filter(|edit| edit.at.is_some());
                    (message.id, edit)
                });
                Answer::Page {
                    oldest: oldest.filter(|_| !page.complete),
                    shown: shown.collect(),
                }
            }
            Err(error) => match Answer::of(&error) {
                // No answer about a single message.
                Answer::Gone | Answer::Unclear => Answer::Page {
                    oldest: None,
                    shown: Vec::new(),
                },
                answer => answer,
            },
        }
    }

    /// An edited message is settled only once the stores have its new words.
    fn there(&self, (channel, id): Key, edit: Option<Edit>) {
        match edit {
            Some(edit) => {
                let page = Fetched::one(self.now(), channel, edit);
                self.reconcile(DiscordChange::Fetched(page));
            }
            None => self.doubts.settle(channel, [id], self.now()),
        }
    }

    /// Purges the messages of a channel together, since each purge costs writes.
    fn gone(&self, keys: &[Key]) {
        for of_channel in keys.chunk_by(|one, next| one.0 == next.0) {
            for key in of_channel {
                self.doubts.gone(*key);
            }
            let channel = of_channel[0].0;
            let ids: Vec<MessageId> = of_channel.iter().map(|(_, id)| *id).collect();
            self.reconcile(DiscordChange::Unknown { channel, ids });
        }
    }
}

/// Removes the rows that are hidden, and with a question all of its turn.
fn leave_out(rows: &mut Vec<StoredMessage>, is_hidden: impl Fn(&StoredMessage) -> bool) {
    let own = |row: &StoredMessage| (row.turn, row.role == StoredRole::User);
    let hidden = rows.iter().filter(|row| is_hidden(row)).map(own);
    let hidden: BTreeSet<(TurnId, bool)> = hidden.collect();
    rows.retain(|row| !hidden.contains(&own(row)) && !hidden.contains(&(row.turn, true)));
}

/// Gives an edited question its new words.
fn reword(rows: &mut [StoredMessage], channel: ChannelId, edit: &Edit) {
    let Some(words) = edit.stored_words() else {
        return;
    };
    let is_it = |row: &&mut StoredMessage| {
        (row.channel, row.message) == (channel, Some(edit.message)) && row.role == StoredRole::User
    };
    for row in rows.iter_mut().filter(is_it) {
        words.clone_into(&mut row.content);
    }
}

/// Whether the rows of that message already have these words, and none was made
/// from its former ones.
fn says(rows: &[StoredMessage], key: Key, edit: &Edit) -> bool {
    let mut of_message = rows.iter().filter(|row| row.message == Some(key.1));
    let words = edit.stored_words();
    let has_words = of_message.all(|row| words.is_none_or(|words| row.content == words));
    let withdrawn = edit.withdraws(key.0).is_some_and(|purge| {
        let reach = Reach::of(&purge, rows);
        rows.iter().any(|row| reach.holds(row))
    });
    has_words && !withdrawn
}

#[cfg(test)]
mod tests;
