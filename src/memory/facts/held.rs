//! The facts held in memory, by subject, with an index by the message that they
//! were learnt from.

use std::collections::{HashMap, HashSet};

use clew_context::model::{ChannelId, MessageId, UnixMillis};
use clew_store::Purge;
use clew_store::model::{Fact, FactId, Subject};

/// The most users and servers whose facts are held in memory; beyond, those
/// without unsaved changes are dropped.
const MAX_SUBJECTS: usize = 10_000;

/// Facts in memory, and which of them are not on disk yet.
#[derive(Debug, Default)]
pub(super) struct HeldFacts {
    subjects: HashMap<Subject, Vec<Fact>>,
    /// How many of the facts were learnt from each message.
    links: HashMap<ChannelId, HashMap<MessageId, usize>>,
    /// Not written yet. Facts dropped since are no longer in `subjects`.
    changed: HashMap<FactId, Subject>,
    removed: HashSet<FactId>,
    /// The number of purges: anything read from a store before one is out of date.
    purges: u64,
}

impl HeldFacts {
    pub(super) fn get(&self, subject: Subject) -> Option<&Vec<Fact>> {
        self.subjects.get(&subject)
    }

    /// Takes facts as read from a store, unless the subject's are held already.
    pub(super) fn read(&mut self, subject: Subject, facts: Vec<Fact>) -> &[Fact] {
        self.shrink();
        if !self.subjects.contains_key(&subject) {
            self.set(subject, facts);
        }
        &self.subjects[&subject]
    }

    /// Replaces a subject's facts, and notes what changed.
    pub(super) fn put(&mut self, subject: Subject, facts: Vec<Fact>) {
        let before = self.set(subject, facts);
        let after = &self.subjects[&subject];
        let gone = before
            .iter()
            .filter(|fact| after.iter().all(|one| one.id != fact.id));
        for id in gone.map(|fact| fact.id) {
            self.changed.remove(&id);
            self.removed.insert(id);
        }
        let changed = after.iter().filter(|fact| !before.contains(fact));
        self.changed.extend(changed.map(|fact| (fact.id, subject)));
    }

    /// Undoes the removal of a fact, which the store still has.
    pub(super) fn put_back(&mut self, subject: Subject, facts: Vec<Fact>, removed: FactId) {
        self.put(subject, facts);
        self.removed.remove(&removed);
    }

    /// Marks these facts of a subject as used.
    pub(super) fn used(&mut self, subject: Subject, ids: &HashSet<FactId>, now: UnixMillis) {
        let facts = self.subjects.get_mut(&subject);
        let facts = facts.into_iter().flatten();
        for fact in facts.filter(|fact| ids.contains(&fact.id)) {
            fact.last_used = now;
            self.changed.insert(fact.id, subject);
        }
    }

    /// Whether it has changed and is not written yet.
    pub(super) fn is_changed(&self, fact: FactId) -> bool {
        self.changed.contains_key(&fact)
    }

    /// The facts to write, and the ids to remove.
    pub(super) fn unsaved(&self) -> (Vec<Fact>, Vec<FactId>) {
        let facts = self.changed.iter().filter_map(|(id, subject)| {
            let facts = self.subjects.get(subject)?;
            facts.iter().find(|fact| fact.id == *id).cloned()
        });
        (facts.collect(), self.removed.iter().copied().collect())
    }

    /// Notes that these were written and removed.
    pub(super) fn saved(&mut self, facts: &[Fact], removed: &[FactId]) {
        for fact in facts {
            // Unless it has been used again since.
            let now = self.subjects.get(&fact.subject);
            if now.is_none_or(|all| all.contains(fact)) {
                self.changed.remove(&fact.id);
            }
        }
        for id in removed {
            self.removed.remove(id);
        }
    }

    /// Whether a purge may remove facts that are held.
    pub(super) fn is_touched_by(&self, purge: &Purge) -> bool {
        match purge {
            Purge::Messages { channel, ids } => self.is_linked(*channel, ids),
            Purge::Edited {
                channel, message, ..
            } => self.is_linked(*channel, std::slice::from_ref(message)),
            Purge::Channel(channel) => self.links.contains_key(channel),
            Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) | Purge::Before(_) => true,
        }
    }

    /// Whether facts were learnt from any of these messages.
    fn is_linked(&self, channel: ChannelId, ids: &[MessageId]) -> bool {
        let here = self.links.get(&channel);
        here.is_some_and(|here| ids.iter().any(|id| here.contains_key(id)))
    }

    /// The messages of a channel that facts were learnt from.
    pub(super) fn links(&self, channel: ChannelId) -> impl Iterator<Item = MessageId> {
        self.links
            .get(&channel)
            .into_iter()
            .flat_map(HashMap::keys)
            .copied()
    }

    pub(super) const fn purges(&self) -> u64 {
        self.purges
    }

    /// Notes a purge: anything read before it is out of date. If it may have
    /// removed facts that are held, all are dropped, to be read again; nothing may
    /// be unsaved then.
    pub(super) fn purged(&mut self, purge: &Purge) {
        let purges = self.purges + 1;
        if self.is_touched_by(purge) {
            *self = Self::default();
        }
        self.purges = purges;
    }

    /// Replaces a subject's facts; returns the previous ones.
    fn set(&mut self, subject: Subject, facts: Vec<Fact>) -> Vec<Fact> {
        for (channel, message) in facts.iter().filter_map(|fact| fact.link) {
            *self
                .links
                .entry(channel)
                .or_default()
                .entry(message)
                .or_default() += 1;
        }
        let before = self.subjects.insert(subject, facts).unwrap_or_default();
        unlink(&mut self.links, &before);
        before
    }

    /// Drops subjects without unsaved changes when there are too many.
    fn shrink(&mut self) {
        if self.subjects.len() <= MAX_SUBJECTS {
            return;
        }
        let (changed, links) = (&self.changed, &mut self.links);
        self.subjects.retain(|_, facts| {
            let unsaved = facts.iter().any(|fact| changed.contains_key(&fact.id));
            if !unsaved {
                unlink(links, facts);
            }
            unsaved
        });
    }
}

fn unlink(links: &mut HashMap<ChannelId, HashMap<MessageId, usize>>, facts: &[Fact]) {
    for (channel, message) in facts.iter().filter_map(|fact| fact.link) {
        let Some(here) = links.get_mut(&channel) else {
            continue;
        };
        if let Some(count) = here.get_mut(&message) {
            *count -= 1;
            if *count == 0 {
                here.remove(&message);
            }
        }
        if here.is_empty() {
            links.remove(&channel);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clew_context::model::UserId;
    use clew_store::model::Origin;
    use proptest::prelude::*;

    use super::*;

    fn fact(user: u64, id: u64, link: Option<(u64, u64)>) -> Fact {
        Fact {
            id: FactId(id),
            subject: Subject::User(UserId::new(user)),
            text: id.to_string(),
            origin: Origin::Direct,
            by: UserId::new(user),
            at: UnixMillis(0),
            link: link.map(|(channel, message)| (ChannelId::new(channel), MessageId::new(message))),
            pinned: false,
            seen: 1,
            last_used: UnixMillis(0),
        }
    }

    /// Lookups are by channel or by id: the index must find what a search
    /// through all facts would.
    #[track_caller]
    fn check(held: &HeldFacts) {
        let all = || held.subjects.values().flatten();
        for channel in (1..4).map(ChannelId::new) {
            let here = || all().filter_map(|fact| fact.link.filter(|(of, _)| *of == channel));
            let found: BTreeSet<MessageId> = here().map(|(_, message)| message).collect();
            assert_eq!(held.links(channel).collect::<BTreeSet<_>>(), found);
            let purge = Purge::Channel(channel);
            assert_eq!(held.is_touched_by(&purge), !found.is_empty());
            for id in (1..6).map(MessageId::new) {
                let purge = Purge::Messages {
                    channel,
                    ids: vec![id],
                };
                assert_eq!(held.is_touched_by(&purge), found.contains(&id));
            }
        }
        let counted: usize = held.links.values().flat_map(HashMap::values).sum();
        assert_eq!(counted, all().filter(|fact| fact.link.is_some()).count());
        let unsaved = all().filter(|fact| held.is_changed(fact.id)).count();
        assert_eq!(held.unsaved().0.len(), unsaved);
    }

    #[test]
    fn a_message_of_a_busy_channel_is_found_among_thousands_of_others() {
        let mut held = HeldFacts::default();
        for user in 1..=5_000 {
            let of = |n| fact(user, user * 10 + n, Some((1_000 + user, n)));
            held.read(Subject::User(UserId::new(user)), (1..=5).map(of).collect());
        }
        // A lookup needs two maps only: one of the channels, and one of the
        // messages of a channel.
        assert_eq!(held.links.len(), 5_000);
        let here = ChannelId::new(1_042);
        assert_eq!(held.links[&here].len(), 5);
        held.check_one(here);
        held.used(
            Subject::User(UserId::new(7)),
            &HashSet::from([FactId(71)]),
            UnixMillis(9),
        );
        let (changed, removed) = held.unsaved();
        assert_eq!((changed.len(), removed.len()), (1, 0));
    }

    fn ids(facts: &[Fact]) -> BTreeSet<u64> {
        facts.iter().map(|fact| fact.id.0).collect()
    }

    /// What is written and what is removed with the next save.
    fn unsaved(held: &HeldFacts) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let (facts, removed) = held.unsaved();
        let removed = removed.iter().map(|id| id.0).collect();
        (ids(&facts), removed)
    }

    #[test]
    fn what_changed_is_written_once() {
        let mut held = HeldFacts::default();
        let subject = Subject::User(UserId::new(1));
        let [one, two, three] = [1, 2, 3].map(|id| fact(1, id, None));
        held.read(subject, vec![one.clone(), two.clone()]);
        held.read(subject, vec![three.clone()]);
        assert_eq!(ids(held.get(subject).unwrap()), BTreeSet::from([1, 2]));
        assert_eq!(unsaved(&held), (BTreeSet::new(), BTreeSet::new()));

        held.put(subject, vec![two.clone(), three.clone()]);
        assert_eq!(ids(held.get(subject).unwrap()), BTreeSet::from([2, 3]));
        let expected = (BTreeSet::from([3]), BTreeSet::from([1]));
        assert_eq!(unsaved(&held), expected);
        assert!(held.is_changed(three.id) && !held.is_changed(two.id));

        // Used while it is being written: it has to be written again.
        let (facts, removed) = held.unsaved();
        held.used(subject, &HashSet::from([three.id]), UnixMillis(9));
        held.saved(&facts, &removed);
        assert_eq!(unsaved(&held), (BTreeSet::from([3]), BTreeSet::new()));
        let (facts, removed) = held.unsaved();
        assert_eq!(facts[0].last_used, UnixMillis(9));
        held.saved(&facts, &removed);
        assert_eq!(unsaved(&held), (BTreeSet::new(), BTreeSet::new()));
    }

    /// A reader of the store can tell that there was a purge meanwhile.
    #[test]
    fn a_purge_lets_go_of_what_it_may_have_removed() {
        let mut held = HeldFacts::default();
        let subject = Subject::User(UserId::new(1));
        held.read(subject, vec![fact(1, 1, Some((2, 3)))]);
        let before = held.purges();
        held.purged(&Purge::Channel(ChannelId::new(9)));
        let between = held.purges();
        assert!(held.get(subject).is_some());
        held.purged(&Purge::Channel(ChannelId::new(2)));
        assert!(held.get(subject).is_none());
        assert!(before < between && between < held.purges());
    }

    /// Those not yet written stay.
    #[test]
    fn of_too_many_those_that_are_saved_are_let_go_of() {
        let mut held = HeldFacts::default();
        let subject = |user| Subject::User(UserId::new(user));
        let most = MAX_SUBJECTS as u64;
        let facts = |user| vec![fact(user, user, Some((2, user)))];
        for user in 1..=most {
            held.read(subject(user), facts(user));
        }
        let changed = HashSet::from([FactId(7)]);
        held.used(subject(7), &changed, UnixMillis(9));
        held.read(subject(most + 1), facts(most + 1));
        assert!(held.get(subject(1)).is_some());
        held.read(subject(most + 2), facts(most + 2));
        for (user, is_held) in [(1, false), (7, true), (most + 1, false), (most + 2, true)] {
            assert_eq!(held.get(subject(user)).is_some(), is_held, "{user}");
        }
        let here: BTreeSet<MessageId> = held.links(ChannelId::new(2)).collect();
        assert_eq!(here, [7, most + 2].map(MessageId::new).into());
    }

    impl HeldFacts {
        #[track_caller]
        fn check_one(&self, channel: ChannelId) {
            let purge = |id| Purge::Messages {
                channel,
                ids: vec![MessageId::new(id)],
            };
            assert!(self.is_touched_by(&purge(3)) && !self.is_touched_by(&purge(9)));
        }
    }

    proptest! {
        #[test]
        fn the_index_is_what_a_search_would_find(
            steps in prop::collection::vec(
                (0..4_u8, 1..4_u64, prop::collection::vec(
                    (1..9_u64, prop::option::of((1..4_u64, 1..6_u64))), 0..5)),
                0..40,
            ),
        ) {
            let mut held = HeldFacts::default();
            for (step, user, facts) in steps {
                let subject = Subject::User(UserId::new(user));
                let mut ids = BTreeSet::new();
                let facts: Vec<Fact> = facts
                    .into_iter()
                    .filter(|(id, _)| ids.insert(*id))
                    .map(|(id, link)| fact(user, user * 10 + id, link))
                    .collect();
                match step {
                    0 => held.put(subject, facts),
                    1 => drop(held.read(subject, facts).len()),
                    2 => {
                        let (facts, removed) = held.unsaved();
                        held.saved(&facts, &removed);
                    }
                    _ => {
                        let (facts, removed) = held.unsaved();
                        held.saved(&facts, &removed);
                        held.purged(&Purge::Channel(ChannelId::new(user)));
                    }
                }
                check(&held);
            }
        }
    }
}
