//! Facts: which are kept when there is no room for all, and which of them, and how many, fit
//! into a prompt.

use std::cmp::Reverse;

use clew_store::model::Fact;

use clew_context::engine::recall::{Ranking, RecallIndex};
use clew_context::engine::sanitise;

/// The longest a fact may be, in Unicode scalars: about one sentence.
pub const MAX_FACT_CHARS: usize = 300;
/// The most that the facts of a user, and those of a server, may take up in a prompt, in
/// Unicode scalars.
const BUDGET_CHARS: usize = 2_000;
/// How facts are weighed, which have nothing to do with each other.
const RANKING: Ranking = Ranking {
    length: 0.4,
    rarity: 1.5,
    beside: [0.0; 4],
    least: 0.01,
};
/// The most facts that are ranked for one prompt, which takes some milliseconds.
const MOST_RANKED: usize = 1_000;

/// A subject's facts after one was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// All of them, oldest first.
    pub facts: Vec<Fact>,
    /// The fact that was added, or the known one that it repeats.
    pub fact: Fact,
    /// Whether it was known already.
    pub known: bool,
    /// The least useful facts, which were dropped to make room.
    pub dropped: Vec<Fact>,
}

/// Adds a fact to those of its subject, keeping at most `most` of them. A fact that
/// is already known is counted as seen once more, and as theirs if a person asks
/// for it; what is learnt is known only where it serves. Returns `None` if `most` is 0, if
/// the fact is empty, or if a fact that nobody asked for would have to displace one
/// that somebody did ask for.
pub fn add(mut facts: Vec<Fact>, fact: Fact, most: usize) -> Option<Room> {
    if most == 0 || fact.text.is_empty() {
        return None;
    }
    let serves = |known: &Fact| fact.pinned || known.origin.serves(fact.origin.guild());
    let alike = |known: &Fact| serves(known) && plain(&known.text) == plain(&fact.text);
    if let Some(mut at) = facts.iter().position(alike) {
        let mut known = facts.remove(at);
        known.seen = known.seen.saturating_add(1);
        known.last_used = known.last_used.max(fact.last_used);
        if fact.pinned {
            (known.pinned, known.origin, known.link) = (true, fact.origin, fact.link);
            (known.at, known.by, at) = (fact.at, fact.by, facts.len());
        }
        facts.insert(at, known.clone());
        return Some(Room {
            facts,
            fact: known,
            known: true,
            dropped: Vec::new(),
        });
    }
    let mut dropped = Vec::new();
    while facts.len() >= most {
        let least = least_useful(&facts);
        if facts[least].pinned && !fact.pinned {
            return None;
        }
        dropped.push(facts.remove(least));
    }
    facts.push(fact.clone());
    Some(Room {
        facts,
        fact,
        known: false,
        dropped,
    })
}

/// The first to make room.
fn least_useful(facts: &[Fact]) -> usize {
    let least = facts
        .iter()
        .enumerate()
        .min_by_key(|(_, fact)| fact.usefulness());
    least.map_or(0, |(at, _)| at)
}

/// As many of a server's facts as the budget allows, those first that match the question, and the
/// messages around it, best; the others stand as they did.
pub fn best_matching(mut facts: Vec<Fact>, question: &str, around: &str) -> Vec<Fact> {
    if all_fit(&facts) {
        return facts;
    }
    if facts.len() > MOST_RANKED {
        facts.sort_by_key(|fact| Reverse(fact.usefulness()));
    }
    let texts = facts.iter().take(MOST_RANKED);
    let index = RecallIndex::of_texts(texts.map(|fact| vec![fact.text.as_str()]));
    let ranked = index.ranked(question, around, RANKING);
    let mut ranks = vec![usize::MAX; facts.len()];
    for (rank, place) in ranked.into_iter().enumerate() {
        ranks[place] = rank;
    }
    let mut facts: Vec<(usize, Fact)> = ranks.into_iter().zip(facts).collect();
    facts.sort_by_key(|(rank, _)| *rank);
    within_budget(facts.into_iter().map(|(_, fact)| fact))
}

/// As many of the first facts as the budget of a prompt allows.
fn within_budget(facts: impl IntoIterator<Item = Fact>) -> Vec<Fact> {
    let mut left = BUDGET_CHARS;
    let fits = |fact: &Fact| {
        let room = left.checked_sub(fact.text.chars().count());
        left = room.unwrap_or(0);
        room.is_some()
    };
    facts.into_iter().take_while(fits).collect()
}

/// The most useful of a user's facts, as many as the budget allows, oldest first.
pub fn most_useful(mut facts: Vec<Fact>) -> Vec<Fact> {
    if all_fit(&facts) {
        return facts;
    }
    facts.sort_by_key(|fact| Reverse(fact.usefulness()));
    let mut facts = within_budget(facts);
    facts.sort_by_key(|fact| (fact.at, fact.id));
    facts
}

/// Whether the budget allows all of these, so that there is nothing to choose.
fn all_fit(facts: &[Fact]) -> bool {
    let chars = facts.iter().map(|fact| fact.text.chars().count());
    chars.sum::<usize>() <= BUDGET_CHARS
}

/// Turns a text into a fact: sanitised, on one line, cut to the longest length.
pub fn one_line(text: &str) -> String {
    sanitise::line(text).chars().take(MAX_FACT_CHARS).collect()
}

/// The form in which facts are compared: case, spacing and final dots do not count.
pub(super) fn plain(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.trim_end_matches(['.', '!']).to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};
    use clew_store::model::{FactId, Origin, Subject};

    fn fact(id: u64, text: &str, pinned: bool, last_used: i64) -> Fact {
        Fact {
            id: FactId(id),
            subject: Subject::User(UserId::new(1)),
            text: text.to_owned(),
            origin: Origin::Direct,
            by: UserId::new(1),
            at: UnixMillis(0),
            link: None,
            pinned,
            seen: 1,
            last_used: UnixMillis(last_used),
        }
    }

    #[track_caller]
    fn check(facts: &[(bool, i64)], most: usize, dropped: &[u64]) {
        let facts: Vec<Fact> = (1..)
            .zip(facts)
            .map(|(id, (pinned, used))| fact(id, &id.to_string(), *pinned, *used))
            .collect();
        let room = add(facts, fact(100, "new", true, 100), most).unwrap();
        let gone: Vec<u64> = room.dropped.iter().map(|fact| fact.id.0).collect();
        assert_eq!(gone, dropped);
        assert!(room.facts.len() <= most && room.facts.contains(&room.fact));
    }

    #[test]
    fn the_least_useful_goes() {
        check(&[(false, 1), (false, 2)], 3, &[]);
        check(&[(false, 2), (false, 1)], 2, &[2]);
        check(&[(true, 1), (false, 2)], 2, &[2]);
        check(&[(true, 2), (true, 1)], 2, &[2]);
        check(&[(true, 2), (false, 1), (false, 3)], 1, &[2, 3, 1]);
    }

    #[test]
    fn of_facts_as_long_unused_the_one_learnt_least_often_goes() {
        let seen = |id, seen| Fact {
            seen,
            ..fact(id, &id.to_string(), false, 1)
        };
        let facts = vec![seen(1, 3), seen(2, 1), seen(3, 2)];
        let room = add(facts, fact(100, "new", true, 100), 3).unwrap();
        assert_eq!(room.dropped[0].id, FactId(2));
        // Among those seen equally often, the oldest goes.
        let at = |id, at| Fact {
            at: UnixMillis(at),
            ..seen(id, 1)
        };
        let room = add(vec![at(1, 9), at(2, 5)], fact(100, "new", true, 100), 2).unwrap();
        assert_eq!(room.dropped[0].id, FactId(2));
    }

    #[test]
    fn what_nobody_asked_for_takes_no_place_of_what_somebody_did() {
        let asked_for = || vec![fact(1, "1", true, 1), fact(2, "2", true, 2)];
        assert_eq!(add(asked_for(), fact(100, "new", false, 100), 2), None);
        let mut facts = asked_for();
        facts.push(fact(3, "3", false, 3));
        let room = add(facts.clone(), fact(100, "new", false, 100), 3).unwrap();
        assert_eq!(room.dropped[0].id, FactId(3));
        // Even if the limit has been lowered since.
        assert_eq!(add(facts, fact(100, "new", false, 100), 2), None);
    }

    #[test]
    fn what_is_known_counts_once_more() {
        let known = vec![fact(1, "Likes tea.", false, 1)];
        let room = add(known, fact(2, "likes  TEA", true, 5), 5).unwrap();
        assert!(room.known && room.fact.pinned);
        assert_eq!(
            (room.fact.id, room.fact.seen, room.facts.len()),
            (FactId(1), 2, 1)
        );
    }

    /// Else it would go with a message that they had not in mind.
    #[test]
    fn what_a_person_asks_for_is_theirs_from_then_on() {
        let learnt = Fact {
            origin: Origin::Guild(GuildId::new(1)),
            link: Some((ChannelId::new(2), MessageId::new(3))),
            ..fact(1, "Likes tea.", false, 1)
        };
        let asked_for = Fact {
            by: UserId::new(4),
            at: UnixMillis(5),
            ..fact(2, "likes  TEA", true, 5)
        };
        let expected = Fact {
            id: learnt.id,
            text: learnt.text.clone(),
            seen: 2,
            ..asked_for.clone()
        };
        let facts = vec![learnt, fact(7, "7", false, 1)];
        let room = add(facts, asked_for, 5).unwrap();
        assert_eq!(room.fact, expected);
        assert_eq!(room.facts, [fact(7, "7", false, 1), expected]);
    }

    #[test]
    fn what_is_learnt_is_known_only_where_it_serves() {
        let of = |guild, id| Fact {
            origin: Origin::Guild(GuildId::new(guild)),
            ..fact(id, "Likes tea.", false, 1)
        };
        let room = add(vec![of(1, 1)], of(2, 2), 5).unwrap();
        assert_eq!((room.known, room.facts), (false, vec![of(1, 1), of(2, 2)]));
        assert!(add(vec![of(1, 1), of(2, 2)], of(2, 3), 5).unwrap().known);
    }

    #[test]
    fn nothing_is_kept_where_nothing_may_be() {
        assert_eq!(add(Vec::new(), fact(1, "x", true, 1), 0), None);
        assert_eq!(add(Vec::new(), fact(1, "", true, 1), 5), None);
    }

    #[test]
    fn a_fact_is_one_line() {
        assert_eq!(one_line(" a\n\u{202e}b\tc "), "a b c");
        assert_eq!(one_line(&"x".repeat(1_000)).len(), MAX_FACT_CHARS);
    }

    #[test]
    fn a_servers_facts_that_match_the_question_come_first() {
        let padded = |text: &str| format!("{text} {}", "-".repeat(250));
        let filler = (20..40).map(|id| fact(id, &padded(&format!("matter {id}")), true, 0));
        let mut facts: Vec<Fact> = filler.collect();
        facts.extend([
            fact(1, &padded("the deploy happens on friday"), true, 0),
            fact(2, &padded("the staging database is called heron"), true, 0),
            fact(3, &padded("ask ops before deploying to staging"), true, 0),
        ]);
        let best = |question: &str, around: &str| {
            let best = best_matching(facts.clone(), question, around);
            best.iter().map(|fact| fact.id.0).collect::<Vec<_>>()
        };
        let found = best("which database does a staging deploy take?", "on friday?");
        assert_eq!(
            BTreeSet::from_iter(&found[..3]),
            BTreeSet::from([&1, &2, &3])
        );
        assert_eq!(best("HERONS?", "")[0], 2);
        assert_eq!(best("so?", "is it friday")[0], 1);
        let as_they_stand: Vec<u64> = (20..27).collect();
        for odd in [
            "",
            "\"' ; -- * ^ { } : ( ) + \0",
            "zebra",
            "' | \\' & !() <->",
        ] {
            assert_eq!(best(odd, odd), as_they_stand, "{odd:?}");
        }
    }

    #[test]
    fn of_very_many_facts_the_most_useful_are_ranked() {
        let text = |id: u64| format!("pump {id} {}", "-".repeat(250));
        let facts = (0..3_000).map(|id| fact(id, &text(id), false, i64::try_from(id).unwrap()));
        let best = best_matching(facts.collect(), "pump 2990", "pump 5");
        assert_eq!(best[0].id.0, 2_990);
        assert!(best.iter().all(|fact| fact.id.0 != 5));
    }

    #[test]
    fn the_budget_holds() {
        let facts: Vec<Fact> = (0..100)
            .map(|id| fact(id, &"x".repeat(300), true, 0))
            .collect();
        assert!(!all_fit(&facts));
        assert_eq!(within_budget(facts).len(), 6);
        let mut facts: Vec<Fact> = (0..100)
            .map(|id| fact(id, &"x".repeat(300), false, -i64::try_from(id).unwrap()))
            .collect();
        facts[50].pinned = true;
        let ids = |facts: &[Fact]| facts.iter().map(|fact| fact.id.0).collect::<Vec<_>>();
        assert_eq!(ids(&most_useful(facts)), [0, 1, 2, 3, 4, 50]);
    }
}
