//! Confirming: asks Discord for stored messages that may be gone, by pages or one by one.
//! Only Discord's "Unknown Message" (10008) purges.

mod ask;

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::reconcile::{Asking, Key, Trace, Words, traces};
use super::{DiscordChange, Edit, Fetched, Memory};
use crate::telemetry::Ids;
use crate::telemetry::event::Confirmed;
use clew_context::model::{ChannelId, GuildId, Message, MessageId, TurnId, UnixMillis};
use clew_discord::rest::Rest;
use clew_store::Reach;
use clew_store::model::{StoredMessage, StoredRole};

use ask::{Answer, Asker, Look, Paged, edited};

/// The most requests of a turn. What they leave is not shown, and asked for in the background.
const MOST_A_TURN: usize = 2;
/// The most turns that wait for such requests at once: under load a turn goes on without what is
/// not confirmed, rather than wait for its limit.
const MOST_TURNS: usize = 8;
/// How long one request in the background may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two requests in the background.
const PACE: Duration = Duration::from_millis(250);
/// After this many requests in a row without an answer, the round ends.
const MOST_UNANSWERED: usize = 3;
/// How long until messages without an answer are asked for again.
const AGAIN: Duration = Duration::from_mins(1);

/// Room for as many turns as may wait.
pub(super) fn room() -> Semaphore {
    Semaphore::new(MOST_TURNS)
}

/// What an edited message says now, as a turn would store it; none if the message
/// may not become part of a turn.
pub type EditOf<'a> = &'a (dyn Fn(&Message) -> Option<Edit> + Send + Sync);

/// A turn's questions to Discord about its rows.
pub struct Confirming<'a> {
    asker: Asker<'a>,
    told: Confirmed,
    /// Discord says that these are gone.
    gone: Vec<Key>,
    /// Whose words the rows have by what Discord said.
    says: Words,
}

impl<'a> Confirming<'a> {
    /// Nothing is asked yet.
    pub fn new(rest: &'a Rest, edit_of: EditOf<'a>, deadline: Instant) -> Self {
        Self {
            asker: Asker {
                rest,
                edit_of,
                deadline,
                is_waited_for: true,
            },
            told: Confirmed::default(),
            gone: Vec::new(),
            says: Words::new(),
        }
    }

    /// Rows have the words of these messages.
    pub fn says(&mut self, words: impl IntoIterator<Item = (Key, Option<UnixMillis>)>) {
        self.says.extend(words);
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
    /// confirmed since, for the messages that are meant: the newest first, then those of
    /// `recalled` turns, then the others. Several of a channel are asked for by a page. The
    /// rows stay, see [`Memory::leave_out_rest`].
    pub async fn confirm(
        &self,
        rows: &mut [StoredMessage],
        recalled: &BTreeSet<TurnId>,
        is_meant: impl Fn(Key) -> bool,
        confirming: &mut Confirming<'_>,
    ) {
        let is_recalled = |row: &&StoredMessage| recalled.contains(&row.turn);
        let (then, mut first): (Vec<_>, Vec<_>) = rows.iter().rev().partition(is_recalled);
        let last = first.split_off(first.len().min(1));
        let in_order = first.into_iter().chain(then).chain(last).flat_map(traces);
        let is_open = |one: &Trace| self.doubts.is_unconfirmed(one) && is_meant(one.key);
        let meant: Vec<Trace> = in_order.filter(is_open).collect();
        let mut asking = self.doubts.take_unconfirmed(meant, usize::MAX);
        if asking.keys.is_empty() {
            return;
        }
        confirming.told.asked += asking.keys.len();
        let Ok(_room) = self.confirms.try_acquire() else {
            confirming.told.unanswered += asking.keys.len();
            return;
        };
        let (began, mut paged) = (Instant::now(), Paged::default());
        let mut is_answered = true;
        while is_answered && Instant::now() < confirming.asker.deadline {
            let looks = paged.next(&asking, MOST_A_TURN - confirming.told.calls);
            if looks.is_empty() {
                break;
            }
            confirming.told.calls += looks.len();
            let asker = &confirming.asker;
            let answers = join_all(looks.iter().map(|look| self.ask_discord(*look, asker))).await;
            for (look, answered) in looks.into_iter().zip(answers) {
                is_answered &= !matches!(answered.1, Answer::Unanswered);
                let left = (&mut asking, &mut paged);
                self.take_answer(look, answered, rows, left, confirming);
            }
        }
        self.gone(&std::mem::take(&mut confirming.gone));
        confirming.told.unanswered += asking.keys.len();
        confirming.told.ms.0 += began.elapsed();
    }

    /// What an answer says of the messages asked for, which was read after that time.
    fn take_answer(
        &self,
        look: Look,
        (at, answer): (UnixMillis, Answer),
        rows: &mut [StoredMessage],
        (asking, paged): (&mut Asking<'_>, &mut Paged),
        confirming: &mut Confirming<'_>,
    ) {
        match (look, answer) {
            (_, Answer::Page(page)) => {
                paged.0.insert(page.channel, Some(page.from));
                let is_edited = |id| page.edited.iter().any(|edit| edit.message == id);
                let shown = asking.keys.iter().filter(|key| page.shows(**key));
                let settled = shown.map(|(_, id)| *id).filter(|id| !is_edited(*id));
                self.doubts.settle(page.channel, settled, at);
                asking.keys.retain(|key| !page.shows(*key));
                confirming.says(self.fetched(page, rows));
            }
            (Look::Single(key), Answer::There(edit)) => {
                // An edited one counts as confirmed only once the stores have its words.
                let edited = self.there_in(rows, (key, at), edit);
                confirming.says([(key, edited)]);
                asking.keys.retain(|other| *other != key);
            }
            (Look::Single(key), Answer::Gone) => {
                confirming.told.gone += 1;
                confirming.gone.push(key);
                asking.keys.retain(|other| *other != key);
            }
            (Look::Single(key), Answer::Unclear) => {
                confirming.told.unanswered += 1;
                self.doubts.unclear(key);
                asking.keys.retain(|other| *other != key);
            }
            (_, Answer::Refused) => {
                let (before, channel) = (asking.keys.len(), look.channel());
                self.doubts.refused(channel, self.now_apart());
                asking.keys.retain(|key| key.0 != channel);
                confirming.told.unanswered += before - asking.keys.len();
            }
            // It stays with the rest, which is asked for later.
            (Look::Single(_), Answer::Unanswered) => {}
            // Each is asked for by itself.
            (Look::Page((channel, _)), _) => {
                paged.0.insert(channel, None);
            }
        }
    }

    /// Leaves out the rows that are not confirmed, whole turns of those whose message is gone,
    /// and tells of what was asked. Returns whose words the rows have by what Discord said.
    pub fn leave_out_rest(
        &self,
        ids: &Ids,
        rows: &mut Vec<StoredMessage>,
        confirming: Confirming<'_>,
    ) -> Words {
        let Confirming { told, mut says, .. } = confirming;
        if told.asked > 0 {
            self.telemetry.emit(ids, told);
        }
        let is_unconfirmed =
            |one: Trace| !says.contains_key(&one.key) && self.doubts.is_unconfirmed(&one);
        let followed = self.follow_edits(rows);
        leave_out(rows, |row| {
            self.may_be_gone(row) || traces(row).any(is_unconfirmed)
        });
        says.extend(followed);
        says
    }

    /// Takes the words that a message has now into the rows of a prompt, and notes that it
    /// is there. Returns when it was edited.
    fn there_in(
        &self,
        rows: &mut [StoredMessage],
        (key, at): (Key, UnixMillis),
        edit: Option<Edit>,
    ) -> Option<UnixMillis> {
        let edited = edit.as_ref().and_then(|edit| edit.at);
        // In the background there are no rows to tell.
        let edit = edit.filter(|edit| rows.is_empty() || !says(rows, key, edit));
        if let Some(edit) = &edit {
            reword(rows, key.0, edit);
        }
        self.there(key, edit, at);
        edited
    }

    /// Compares the rows of a prompt with a fetched page, and passes it on: what else the stores
    /// hold of it is confirmed for everybody soon after. Rows on the page are confirmed and take
    /// its words; those missing from it are put in doubt, as are facts learnt from messages
    /// missing from it. Returns whose words the rows have by it.
    pub fn fetched(&self, page: Fetched, rows: &mut [StoredMessage]) -> Words {
        let keys = || rows.iter().flat_map(traces).map(|trace| trace.key);
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
        let mut says = Words::new();
        for edit in &page.edited {
            reword(rows, page.channel, edit);
            says.insert((page.channel, edit.message), edit.at);
        }
        self.reconcile(DiscordChange::Fetched(page));
        says
    }

    /// Confirms rows of a prompt by messages that the window or the trigger itself has, which
    /// may be edited since the rows were stored.
    pub fn confirmed<'a>(
        &self,
        rows: &mut [StoredMessage],
        found: impl Fn(ChannelId, MessageId) -> Option<&'a Message>,
        confirming: &mut Confirming<'_>,
    ) {
        let keys: BTreeSet<Key> = rows.iter().flat_map(traces).map(|one| one.key).collect();
        for key in keys {
            let Some(message) = found(key.0, key.1) else {
                continue;
            };
            let edit = edited(message, confirming.asker.edit_of);
            // What was found may be older than the last event.
            let at = edit.as_ref().and_then(|edit| edit.at);
            if !self.changes.noted.is_edited_after(key, at) {
                confirming.says([(key, self.there_in(rows, (key, self.now()), edit))]);
            }
        }
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
        let traces_of_all = rows.iter().flat_map(traces);
        drop(self.doubts.take_unconfirmed(traces_of_all, 0));
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

    /// Whether events were missed since a message was heard at that time.
    pub fn is_before_gap(
        &self,
        guild: Option<GuildId>,
        message: (ChannelId, MessageId),
        at: UnixMillis,
    ) -> bool {
        self.doubts.is_unconfirmed(&Trace {
            key: message,
            guild,
            at,
        })
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
        let _ = shutdown.run_until_cancelled(asking).await;
    }

    /// Asks for one round of messages of a channel, by a page first; what it lacks one by one.
    /// Returns those without an answer.
    async fn ask_round(
        &self,
        rest: &Rest,
        mut asking: Asking<'_>,
        edit_of: EditOf<'_>,
    ) -> Vec<Key> {
        let mut confirming = Confirming::new(rest, edit_of, Instant::now());
        confirming.asker.is_waited_for = false;
        let (mut unanswered, mut in_a_row, mut paged) = (Vec::new(), 0, Paged::default());
        while in_a_row < MOST_UNANSWERED
            && let Some(look) = paged.next_of_round(&asking)
        {
            confirming.asker.deadline = Instant::now() + LOOK_TIMEOUT;
            let answered = self.ask_discord(look, &confirming.asker).await;
            in_a_row += 1;
            if !matches!(answered.1, Answer::Unanswered) {
                in_a_row = 0;
            } else if let Look::Single(key) = look {
                unanswered.push(key);
                asking.keys.retain(|other| *other != key);
            }
            self.take_answer(
                look,
                answered,
                &mut [],
                (&mut asking, &mut paged),
                &mut confirming,
            );
            sleep(PACE).await;
        }
        self.gone(&confirming.gone);
        unanswered.extend(asking.hand_over());
        unanswered
    }

    /// An edited message is settled only once the stores have its new words.
    fn there(&self, (channel, id): Key, edit: Option<Edit>, at: UnixMillis) {
        match edit {
            Some(edit) => {
                let page = Fetched::one(at, channel, edit);
                self.reconcile(DiscordChange::Fetched(page));
            }
            None => self.doubts.settle(channel, [id], at),
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
