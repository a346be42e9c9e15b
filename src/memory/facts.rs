//! Facts about users and servers: held in memory and written every
//! `MEMORY_SAVE_INTERVAL`, or at once when a person asked for it.

mod held;

use std::collections::HashSet;

use held::HeldFacts;
use parking_lot::Mutex;

use super::reconcile::trace_of_fact;
use super::{Memory, Place, Result};
use crate::engine::facts::{self, Room};
use crate::telemetry::event::{Flushed, StoreOperation};
use crate::telemetry::{Ids, Ms};
use clew_context::model::{ChannelId, ContentSource, MessageId, Profiles, UnixMillis, UserId};
use clew_store::Purge;
use clew_store::model::{Fact, FactId, Origin, Subject};

/// The facts that are shown to who asks for them, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFacts {
    /// Those whose messages are there, as far as is known.
    pub shown: Vec<Fact>,
    /// How many others were learnt before events may have been missed: Discord is being asked
    /// whether their messages are there.
    pub unchecked: usize,
}

/// Which facts could be read for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readable {
    user: bool,
    server: bool,
}

/// Facts as a prompt shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptFacts {
    /// Their texts.
    pub profiles: Profiles,
    /// Who stated each of them, and the message that it was learnt from, if any.
    pub stated: Vec<(UserId, Option<ContentSource>)>,
}

/// Facts in memory, and which of them are not on disk yet.
#[derive(Debug, Default)]
pub(super) struct Cache {
    held: Mutex<HeldFacts>,
    /// One writer at a time, so that what is forgotten does not come back through
    /// a write that was already under way.
    writing: tokio::sync::Mutex<()>,
}

impl Cache {
    /// The messages of a channel that facts were learnt from.
    pub(super) fn links(&self, channel: ChannelId) -> impl Iterator<Item = MessageId> {
        let here: Vec<MessageId> = self.held.lock().links(channel).collect();
        here.into_iter()
    }
}

impl Memory {
    /// Reads the facts for one prompt into memory, in parallel with each other
    /// and with whatever else the prompt needs; [`Memory::profiles`] finds them
    /// there. So a store that is gone delays the turn only once.
    pub async fn read_facts(&self, ids: &Ids, place: &Place) -> Readable {
        let user = async {
            !self.opted_out(place.asker) && self.reads(ids, Subject::User(place.asker)).await
        };
        let server = async {
            match place.guild {
                Some(guild) => self.reads(ids, Subject::Server(guild)).await,
                None => false,
            }
        };
        let (user, server) = tokio::join!(user, server);
        Readable { user, server }
    }

    async fn reads(&self, ids: &Ids, subject: Subject) -> bool {
        let is_held = self.facts.held.lock().get(subject).is_some();
        let lasting = &self.stores.lasting;
        is_held
            || self
                .ask(ids, lasting, self.facts_of(subject))
                .await
                .is_some()
    }

    /// The facts for one prompt: the asker's, as far as their origin allows, and
    /// the server's that match the question, and the words around it, best, within a budget. The
    /// facts returned count as used now.
    pub async fn profiles(
        &self,
        ids: &Ids,
        place: &Place,
        readable: Readable,
        (question, around): (&str, &str),
    ) -> PromptFacts {
        let mut shown = PromptFacts::default();
        if readable.user && !self.opted_out(place.asker) {
            let subject = Subject::User(place.asker);
            let facts = self.facts_or_none(ids, subject).await;
            let serving = facts
                .into_iter()
                .filter(|fact| fact.origin.serves(place.guild) && !self.is_doubtful(fact));
            let serving: Vec<Fact> = serving.collect();
            if place.guild.is_none() {
                self.note_used_elsewhere(place.asker, &serving);
            }
            let facts = facts::most_useful(serving);
            shown.stated.extend(facts.iter().map(stated));
            shown.profiles.user = self.using(subject, facts);
        }
        if let Some(guild) = place.guild.filter(|_| readable.server) {
            let subject = Subject::Server(guild);
            let facts = self.facts_or_none(ids, subject).await;
            let opted_out = self.opt_outs.current();
            let told = facts
                .into_iter()
                .filter(|fact| !opted_out.contains(fact.by) && !self.is_doubtful(fact));
            let facts = facts::best_matching(told.collect(), question, around);
            shown.stated.extend(facts.iter().map(stated));
            shown.profiles.server = self.using(subject, facts);
        }
        shown
    }

    /// Whether the message that it was learnt from is deleted, or may be, or was edited since.
    /// One that lies before a gap is asked for in the background, and may be deleted until then.
    pub(super) fn is_doubtful(&self, fact: &Fact) -> bool {
        drop(self.doubts.take_unconfirmed(trace_of_fact(fact), 0));
        self.is_unconfirmed(fact) || self.is_withdrawn(fact)
    }

    fn is_unconfirmed(&self, fact: &Fact) -> bool {
        trace_of_fact(fact).is_some_and(|trace| self.doubts.is_unconfirmed(&trace))
    }

    /// Whether the message that it was learnt from is known to be deleted or edited since: the
    /// store is still to forget it.
    fn is_withdrawn(&self, fact: &Fact) -> bool {
        trace_of_fact(fact).is_some_and(|trace| self.doubts.hides(&trace))
            || fact
                .link
                .is_some_and(|link| self.changes.noted.is_withdrawn(link, fact.at))
    }

    /// The facts about a user or a server that are shown to who asks for them.
    ///
    /// # Errors
    /// The store's error.
    pub async fn listed_facts(&self, subject: Subject) -> Result<ListedFacts> {
        let mut shown = self.facts_of(subject).await?;
        shown.retain(|fact| !self.is_withdrawn(fact));
        let traces = shown.iter().filter_map(trace_of_fact);
        drop(self.doubts.take_unconfirmed(traces, 0));
        let before = shown.len();
        shown.retain(|fact| !self.is_unconfirmed(fact));
        let unchecked = before - shown.len();
        Ok(ListedFacts { shown, unchecked })
    }

    /// Has it checked whether the user left the servers of these facts unnoticed.
    fn note_used_elsewhere(&self, user: UserId, facts: &[Fact]) {
        for fact in facts {
            if let Origin::Guild(guild) = fact.origin {
                self.changes.used((guild, user), self.now());
            }
        }
    }

    /// Marks these facts as used now; returns their texts.
    fn using(&self, subject: Subject, facts: Vec<Fact>) -> Vec<String> {
        let now = self.now();
        let mut held = self.facts.held.lock();
        let used: HashSet<FactId> = facts.iter().map(|fact| fact.id).collect();
        held.used(subject, &used, now);
        drop(held);
        let line = |fact: Fact| facts::one_line(&fact.text);
        facts.into_iter().map(line).collect()
    }

    /// A subject's facts; empty if the store fails.
    async fn facts_or_none(&self, ids: &Ids, subject: Subject) -> Vec<Fact> {
        let held = self.facts.held.lock().get(subject).cloned();
        if let Some(facts) = held {
            return facts;
        }
        let lasting = &self.stores.lasting;
        let facts = self.ask(ids, lasting, self.facts_of(subject)).await;
        facts.unwrap_or_default()
    }

    /// The facts about a user or a server, oldest first; of more than may be kept, which an
    /// import or a lowered limit leaves, the most useful.
    ///
    /// # Errors
    /// The store's error.
    pub async fn facts_of(&self, subject: Subject) -> Result<Vec<Fact>> {
        loop {
            let purges = {
                let held = self.facts.held.lock();
                if let Some(facts) = held.get(subject) {
                    return Ok(facts.clone());
                }
                held.purges()
            };
            let lasting = &self.stores.lasting;
            let facts = lasting.facts(subject, self.most(subject)).await?;
            let mut held = self.facts.held.lock();
            // What was purged during the read must not come back through it.
            if held.purges() == purges {
                return Ok(held.read(subject, facts).to_vec());
            }
        }
    }

    /// Remembers what a person asked for. It is on disk when this returns.
    /// None if the person opted out or nothing may be remembered of the subject.
    ///
    /// # Errors
    /// The store's error; nothing has changed then.
    pub async fn remember(
        &self,
        subject: Subject,
        text: &str,
        origin: Origin,
        by: UserId,
    ) -> Result<Option<Room>> {
        let _writing = self.facts.writing.lock().await;
        // Checked under the lock that a purge holds, too, so that no opt-out is missed.
        if self.opted_out(by) {
            return Ok(None);
        }
        let facts = self.facts_of(subject).await?;
        let fact = Fact {
            id: new_id(),
            subject,
            text: facts::one_line(text),
            origin,
            by,
            at: self.now(),
            link: None,
            pinned: true,
            seen: 1,
            last_used: self.now(),
        };
        let Some(mut room) = facts::add(facts, fact, self.most(subject)) else {
            return Ok(None);
        };
        let store = &self.stores.lasting;
        store.put_facts(std::slice::from_ref(&room.fact)).await?;
        // From here on it is remembered, whatever happens to the dropped
        // facts: those not removed now are removed with the next save.
        let facts = std::mem::take(&mut room.facts);
        self.facts.held.lock().put(subject, facts);
        if !room.dropped.is_empty() {
            let ids: Vec<FactId> = room.dropped.iter().map(|fact| fact.id).collect();
            self.done(StoreOperation::Flush, store.remove_facts(&ids).await);
        }
        // What is gone is not asked for any more.
        let may_be_gone = |fact: &Fact| self.is_unconfirmed(fact) || self.is_withdrawn(fact);
        room.dropped.retain(|fact| !may_be_gone(fact));
        Ok(Some(room))
    }

    /// Adds facts that were learnt, as long as `wanted` says so: purges take the
    /// same lock, so nothing slips in behind one. They are written with the next
    /// save. Returns those that are new.
    ///
    /// # Errors
    /// The store's error.
    pub(super) async fn learnt_while(
        &self,
        facts_learnt: Vec<Fact>,
        wanted: impl Fn() -> bool,
    ) -> Result<Vec<Fact>> {
        let _writing = self.facts.writing.lock().await;
        let mut new = Vec::new();
        for fact in facts_learnt {
            let subject = fact.subject;
            let held = self.facts_of(subject).await?;
            if !wanted() {
                break;
            }
            let Some(room) = facts::add(held, fact, self.most(subject)) else {
                continue;
            };
            if !room.known {
                new.push(room.fact);
            }
            self.facts.held.lock().put(subject, room.facts);
        }
        // A new fact may have been dropped again to make room for the next one.
        let held = self.facts.held.lock();
        new.retain(|fact| held.is_changed(fact.id));
        Ok(new)
    }

    /// Forgets one fact of a subject, on disk as well when this returns. None if
    /// there is no such fact.
    ///
    /// # Errors
    /// The store's error.
    pub async fn forget(&self, subject: Subject, id: FactId) -> Result<Option<Fact>> {
        let _writing = self.facts.writing.lock().await;
        let mut facts = self.facts_of(subject).await?;
        let Some(at) = facts.iter().position(|fact| fact.id == id) else {
            return Ok(None);
        };
        // It must not come back from what is being learnt.
        self.extractions.discard();
        let before = facts.clone();
        let fact = facts.remove(at);
        // Noted before it is written: should nobody wait for the end of this, the
        // next save removes it.
        self.facts.held.lock().put(subject, facts);
        match self.stores.lasting.remove_facts(&[id]).await {
            Ok(_) => self.facts.held.lock().saved(&[], &[id]),
            Err(error) => {
                self.facts.held.lock().put_back(subject, before, id);
                return Err(error);
            }
        }
        Ok(Some(fact))
    }

    /// Saves what changed since the last save. What cannot be saved stays until
    /// the next one.
    pub async fn flush(&self) {
        let _writing = self.facts.writing.lock().await;
        self.done(StoreOperation::Flush, self.write_facts().await);
    }

    async fn write_facts(&self) -> Result<()> {
        let (facts, removed) = self.facts.held.lock().unsaved();
        if facts.is_empty() && removed.is_empty() {
            return Ok(());
        }
        let began = self.now();
        let store = &self.stores.lasting;
        store.put_facts(&facts).await?;
        store.remove_facts(&removed).await?;
        self.facts.held.lock().saved(&facts, &removed);
        let flushed = Flushed {
            facts: facts.len(),
            ms: Ms::from(self.elapsed(began)),
        };
        self.telemetry.emit(&Ids::default(), flushed);
        Ok(())
    }

    /// Runs a purge in the stores: facts in memory are saved before it and read
    /// again after it. Most purges are of messages from which no fact was learnt;
    /// those leave the facts in memory alone.
    pub(super) async fn beneath_facts<T>(
        &self,
        purge: &Purge,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _writing = self.facts.writing.lock().await;
        if self.facts.held.lock().is_touched_by(purge) {
            self.write_facts().await?;
            // From here on readers go to the store.
            self.facts.held.lock().purged(purge);
        }
        let done = work.await;
        // Some may have been read into memory since.
        self.facts.held.lock().purged(purge);
        done
    }

    /// Whether nothing more can be learnt of a subject with these facts: people
    /// asked for each of them, and learnt facts never displace those.
    pub fn is_full(&self, subject: Subject, facts: &[Fact]) -> bool {
        facts.len() >= self.most(subject) && facts.iter().all(|fact| fact.pinned)
    }

    const fn most(&self, subject: Subject) -> usize {
        match subject {
            Subject::User(_) => self.settings.max_user_facts,
            Subject::Server(_) => self.settings.max_server_facts,
        }
    }

    pub(super) fn elapsed(&self, began: UnixMillis) -> std::time::Duration {
        std::time::Duration::from_millis(self.now().since(began).max(0).unsigned_abs())
    }
}

pub(super) fn new_id() -> FactId {
    // At most i64::MAX, for the databases.
    FactId(uuid::Uuid::new_v4().as_u64_pair().0 >> 1)
}

/// Who stated a fact, and the message that it was learnt from.
fn stated(fact: &Fact) -> (UserId, Option<ContentSource>) {
    let source = fact.link.map(|(channel, message)| ContentSource {
        guild: fact.origin.guild(),
        channel,
        message: Some(message),
        author: Some(fact.by),
    });
    (fact.by, source)
}
