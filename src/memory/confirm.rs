//! Confirming: stored messages that may be gone are asked for, each by its own
//! id, in a lane of its own. Only Discord's "Unknown Message" (10008) purges.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::history::stored_words;
use super::mend::{Asking, Key, traces};
use super::{Edit, Fetched, Memory, Mend};
use crate::telemetry::event::Confirmed;
use crate::telemetry::{Ids, Ms};
use clew_context::model::{ChannelId, Fallback, Message, MessageId, TurnId};
use clew_discord::rest::Rest;
use clew_store::model::{StoredMessage, StoredRole};

/// Asked for by one turn; what is more is asked for behind it.
const MOST_A_TURN: usize = 8;
/// One look behind turns.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks behind turns.
const PACE: Duration = Duration::from_millis(250);
/// So many in a row without an answer, and the others are not asked for now.
const MOST_UNANSWERED: usize = 3;
/// What got no answer is asked for again after this long.
const AGAIN: Duration = Duration::from_mins(1);

/// What an edited message says now, as a turn would store it; none if no turn
/// may be made of it.
pub type EditOf<'a> = &'a (dyn Fn(&Message) -> Option<Edit> + Send + Sync);

/// What Discord says of a message.
enum Answer {
    /// It is there; edited, maybe.
    There(Option<Edit>),
    /// It is not.
    Gone,
    /// The channel refuses us.
    Refused,
    /// Nothing in time.
    Unanswered,
    /// Nothing of use.
    Unclear,
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
    /// Asks for those rows of a prompt that lie before a gap and were not
    /// confirmed since, the newest first, until `deadline`. What is gone is left
    /// out and purged; what could not be asked for stays, and is asked for
    /// behind the turn.
    pub async fn confirm(
        &self,
        ids: &Ids,
        rows: &mut Vec<StoredMessage>,
        rest: &Rest,
        edit_of: EditOf<'_>,
        deadline: Instant,
    ) {
        let newest_first = rows.iter().rev().flat_map(traces);
        let mut asking = self.doubts.take_unconfirmed(newest_first, MOST_A_TURN);
        if asking.first().is_some() {
            let began = Instant::now();
            let mut told = Confirmed {
                asked: 0,
                gone: 0,
                unanswered: 0,
                ms: Ms::default(),
            };
            while let Some(key) = asking.first().filter(|_| Instant::now() < deadline) {
                told.asked += 1;
                match self.look_for(rest, key, edit_of, deadline).await {
                    Answer::There(edit) => {
                        let edit = edit.filter(|edit| !says(rows, key, edit));
                        if let Some(edit) = &edit {
                            reword(rows, key.0, edit);
                        }
                        self.there(key, edit);
                    }
                    Answer::Gone => {
                        told.gone += 1;
                        self.gone(&[key]);
                    }
                    Answer::Refused => {
                        self.doubts.refused(key.0);
                        asking.leave(key.0);
                        continue;
                    }
                    Answer::Unclear => self.doubts.unclear(key),
                    // It stays with those that are left.
                    Answer::Unanswered => break,
                }
                asking.done();
            }
            told.unanswered = asking.len();
            told.ms = Ms::from(began.elapsed());
            self.telemetry.emit(ids, told);
        }
        drop(asking);
        self.leave_out_doubtful(rows);
    }

    /// What a page says of the rows of one prompt, at once: those that it shows
    /// are confirmed and have its words, those that it lacks are in doubt, and so
    /// is what was learnt from messages that it lacks. The page itself is a
    /// [`Mend::Fetched`] beside this.
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
        self.doubts.lacking(page.channel, lacking, page.at);
        for edit in &page.edited {
            reword(rows, page.channel, edit);
        }
    }

    /// Messages that are there, as the window or the trigger itself shows.
    pub fn confirmed(
        &self,
        rows: &[StoredMessage],
        is_there: impl Fn(ChannelId, MessageId) -> bool,
    ) {
        let keys = rows.iter().flat_map(traces).map(|trace| trace.key());
        for (channel, id) in keys.filter(|(channel, id)| is_there(*channel, *id)) {
            self.doubts.settle(channel, [id], self.now());
        }
    }

    /// Without what is made of messages that are deleted or in doubt: with a
    /// question its answer goes, as in a purge.
    pub(super) fn leave_out_doubtful(&self, rows: &mut Vec<StoredMessage>) {
        let is_hidden = |row: &StoredMessage| {
            let deleted = || {
                let ids = row.message.iter().chain(&row.parts).copied();
                !self.mends.deleted_of(ids).is_empty()
            };
            traces(row).any(|trace| self.doubts.hides(&trace)) || deleted()
        };
        let mut hidden: BTreeSet<(TurnId, bool)> = BTreeSet::new();
        for row in rows.iter().filter(|row| is_hidden(row)) {
            hidden.insert((row.turn, row.role == StoredRole::User));
        }
        rows.retain(|row| {
            let own = (row.turn, row.role == StoredRole::User);
            !hidden.contains(&own) && !hidden.contains(&(row.turn, true))
        });
    }

    /// Beside the bot: what is in doubt is asked for, channel by channel in turn.
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
                    round = self.doubts.due() => {
                        let left = self.ask_round(rest, round, edit_of).await;
                        if !left.is_empty() {
                            again = Instant::now() + AGAIN;
                            unanswered.extend(left);
                        }
                        for (channel, from) in self.doubts.unfinished() {
                            self.mend(Mend::Recheck { channel, from });
                        }
                    }
                    () = sleep_until(again), if !unanswered.is_empty() => {
                        self.doubts.ask_again(&std::mem::take(&mut unanswered));
                    }
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = asking => {}
        }
    }

    /// One round. Gives back what got no answer.
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
                Answer::Unclear => self.doubts.unclear(key),
                Answer::Refused => {
                    self.doubts.refused(key.0);
                    asking.leave(key.0);
                    continue;
                }
            }
            asking.done();
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
            Err(error) => match error.reason {
                Fallback::Deleted => Answer::Gone,
                Fallback::Forbidden | Fallback::NotFound => Answer::Refused,
                Fallback::Timeout | Fallback::RateLimited | Fallback::Unavailable => {
                    Answer::Unanswered
                }
                _ => Answer::Unclear,
            },
        }
    }

    /// What was edited is settled once the stores say what it says.
    fn there(&self, (channel, id): Key, edit: Option<Edit>) {
        match edit {
            Some(edit) => {
                let page = Fetched::one(self.now(), channel, edit);
                self.mend(Mend::Fetched(page));
            }
            None => self.doubts.settle(channel, [id], self.now()),
        }
    }

    /// Those of a channel go together: each purge costs writes of its own.
    fn gone(&self, keys: &[Key]) {
        for of_channel in keys.chunk_by(|one, next| one.0 == next.0) {
            for key in of_channel {
                self.doubts.gone(*key);
            }
            let channel = of_channel[0].0;
            let ids: Vec<MessageId> = of_channel.iter().map(|(_, id)| *id).collect();
            self.mend(Mend::Unknown { channel, ids });
        }
    }
}

/// A question that was edited says what it says now.
fn reword(rows: &mut [StoredMessage], channel: ChannelId, edit: &Edit) {
    let is_it = |row: &&mut StoredMessage| {
        (row.channel, row.message) == (channel, Some(edit.message)) && row.role == StoredRole::User
    };
    for row in rows.iter_mut().filter(is_it) {
        stored_words(&edit.words).clone_into(&mut row.content);
    }
}

/// The row of that message has these words already.
fn says(rows: &[StoredMessage], key: Key, edit: &Edit) -> bool {
    let mut of_message = rows.iter().filter(|row| row.message == Some(key.1));
    let words = stored_words(&edit.words);
    of_message.all(|row| row.content == words)
}
