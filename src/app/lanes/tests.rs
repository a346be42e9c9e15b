//! The rules of lanes and shares, and any history of them.

use std::collections::{HashMap, HashSet};

use clew_context::model::GuildId;
use proptest::prelude::*;

use super::super::shares::Party;
use super::*;

const fn thread(id: u64) -> Lane {
    Lane::Conversation(ChannelId::new(id))
}

const fn asker(guild: u64, user: u64) -> Asker {
    Asker {
        party: Party::Guild(GuildId::new(guild)),
        user: UserId::new(user),
    }
}

const ADA: Asker = asker(1, 1);
const BORIS: Asker = asker(1, 2);
const ELSEWHERE: Asker = asker(2, 3);

#[test]
fn a_lane_runs_one_after_the_other_and_refuses_what_is_too_much() {
    let mut lanes = Lanes::new(8, 2);
    let mut submit = |lane, work| lanes.submit(thread(lane), ADA, work);
    assert_eq!(submit(1, 'a'), Submitted::Starts('a'));
    assert_eq!(submit(1, 'b'), Submitted::Waits);
    assert_eq!(submit(1, 'c'), Submitted::Waits);
    assert_eq!(submit(1, 'd'), Submitted::Refused('d', Full::Lane));
    assert_eq!(submit(2, 'e'), Submitted::Starts('e'));
    assert_eq!(lanes.finished(thread(1)), Some((thread(1), 'b')));
    assert_eq!(lanes.finished(thread(1)), Some((thread(1), 'c')));
    assert_eq!(lanes.finished(thread(1)), None);
    let again = lanes.submit(thread(1), ADA, 'f');
    assert_eq!(again, Submitted::Starts('f'));
}

#[test]
fn a_thread_is_not_filled_by_one_of_its_people() {
    let mut lanes = Lanes::new(8, 2);
    for work in ['a', 'b', 'c'] {
        lanes.submit(thread(1), ADA, work);
    }
    let newcomer = lanes.submit(thread(1), BORIS, 'd');
    assert_eq!(newcomer, Submitted::Displaces('c', Full::Lane));
}

#[test]
fn one_alone_may_use_everything() {
    let mut lanes = Lanes::new(8, 3);
    for lane in 1..=8 {
        let submitted = lanes.submit(thread(lane), ADA, lane);
        assert_eq!(submitted, Submitted::Starts(lane));
    }
    assert_eq!(lanes.submit(thread(9), ADA, 9), Submitted::Waits);
}

#[test]
fn a_free_place_goes_to_the_server_and_the_person_with_the_fewest() {
    let mut lanes = Lanes::new(3, 3);
    for lane in 1..=6 {
        lanes.submit(thread(lane), ADA, "ada's");
    }
    lanes.submit(thread(7), BORIS, "boris'");
    lanes.submit(thread(8), ELSEWHERE, "another server's");
    let mut next = |lane| lanes.finished(thread(lane)).unwrap().1;
    assert_eq!(next(1), "another server's");
    assert_eq!(next(2), "boris'");
    assert_eq!(next(3), "ada's");
}

#[test]
fn servers_take_turns_when_there_is_one_place() {
    let mut lanes = Lanes::new(1, 9);
    for lane in 1..=4 {
        lanes.submit(thread(lane), ADA, 1);
    }
    for lane in 5..=6 {
        lanes.submit(thread(lane), ELSEWHERE, 2);
    }
    let mut lane = thread(1);
    let order = std::iter::from_fn(|| {
        let (next, of) = lanes.finished(lane)?;
        lane = next;
        Some(of)
    });
    assert_eq!(order.collect::<Vec<_>>(), [2, 1, 2, 1, 1]);
}

/// Seven people of one server ask seventy questions; another server's and a
/// direct message still find room, and theirs run next.
#[test]
fn who_fills_the_room_is_sent_away_and_not_the_newcomer() {
    let mut lanes = Lanes::new(4, 3);
    let mut sent_away = 0;
    for question in 0..70 {
        let asker = asker(1, 1 + question % 7);
        match lanes.submit(thread(question + 1), asker, 1) {
            Submitted::Starts(_) | Submitted::Waits => {}
            Submitted::Refused(..) | Submitted::Displaces(..) => sent_away += 1,
        }
    }
    assert_eq!(sent_away, 70 - 4 - 8, "half the room is one server's");
    let direct = Asker {
        party: Party::Person(UserId::new(9)),
        user: UserId::new(9),
    };
    for (lane, newcomer) in [(71, ELSEWHERE), (72, direct)] {
        assert_eq!(lanes.submit(thread(lane), newcomer, 2), Submitted::Waits);
    }
    let running = [1, 2].map(thread);
    let next = running.map(|lane| lanes.finished(lane).unwrap().1);
    assert_eq!(next, [2, 2]);
}

#[test]
fn a_full_room_sends_away_the_newest_of_who_takes_up_most() {
    let mut lanes = Lanes::new(1, 0);
    lanes.submit(thread(1), ADA, 'a');
    assert_eq!(lanes.submit(thread(2), ADA, 'b'), Submitted::Waits);
    let submitted = lanes.submit(thread(3), BORIS, 'c');
    assert_eq!(submitted, Submitted::Displaces('b', Full::Room));
    let submitted = lanes.submit(thread(4), ELSEWHERE, 'd');
    assert_eq!(submitted, Submitted::Displaces('c', Full::Room));
    let submitted = lanes.submit(thread(5), asker(3, 4), 'e');
    assert_eq!(submitted, Submitted::Refused('e', Full::Room), "as much");
    assert_eq!(lanes.finished(thread(1)), Some((thread(4), 'd')));
    assert_eq!(lanes.finished(thread(4)), None);
    assert_eq!(lanes.running(), 0);
}

#[test]
fn what_waits_can_be_taken_out() {
    let mut lanes = Lanes::new(1, 2);
    lanes.submit(thread(1), ADA, 'a');
    lanes.submit(thread(1), ADA, 'b');
    lanes.submit(thread(2), ADA, 'c');
    assert_eq!(lanes.remove_waiting(|work| *work == 'c'), ['c']);
    assert_eq!(lanes.finished(thread(1)), Some((thread(1), 'b')));
    assert_eq!(lanes.finished(thread(1)), None);
}

#[derive(Debug, Clone)]
enum Step {
    Submit { party: u64, user: u64, lane: u64 },
    Finish(usize),
    Remove(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let submit = (1..5_u64, 1..4_u64, 1..9_u64);
    let submit = submit.prop_map(|(party, user, lane)| Step::Submit { party, user, lane });
    let step = prop_oneof![
        6 => submit,
        4 => any::<usize>().prop_map(Step::Finish),
        1 => any::<usize>().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..120)
}

/// Lanes beside what is known of them from outside.
struct Watched {
    lanes: Lanes<(u64, Asker)>,
    tickets: u64,
    running: HashMap<Lane, Asker>,
    /// Starts by others that each party may still see before its own.
    patience: HashMap<Party, usize>,
}

impl Watched {
    fn submit(&mut self, lane: Lane, asker: Asker) {
        self.tickets += 1;
        match self.lanes.submit(lane, asker, (self.tickets, asker)) {
            Submitted::Starts(_) => {
                assert!(self.running.insert(lane, asker).is_none(), "one a lane");
            }
            Submitted::Displaces((_, other), _) => {
                let taken_up = |of| self.lanes.shares.load(of).0;
                assert!(taken_up(other) + 1 >= taken_up(asker), "{other:?}");
                assert_ne!(other, asker);
                self.patience.remove(&other.party);
            }
            Submitted::Waits | Submitted::Refused(..) => {}
        }
    }

    fn finish(&mut self, at: usize) {
        let Some(lane) = self
            .running
            .keys()
            .copied()
            .nth(at % self.running.len().max(1))
        else {
            return;
        };
        self.running.remove(&lane);
        let waited = self.ready_but(lane);
        if let Some((lane, (_, asker))) = self.lanes.finished(lane) {
            self.fair(asker, &waited);
            assert!(self.running.insert(lane, asker).is_none(), "one a lane");
        }
    }

    /// Who was ready before this lane became so.
    fn ready_but(&self, lane: Lane) -> HashSet<Asker> {
        let ready = self.lanes.by_lane.iter().filter(|(one, _)| **one != lane);
        ready
            .filter_map(|(_, state)| Some(state.ready()?.asker))
            .collect()
    }

    /// No server that waited has fewer turns, nor a person of the same server.
    fn fair(&mut self, chosen: Asker, waited: &HashSet<Asker>) {
        let running =
            |fits: &dyn Fn(&Asker) -> bool| self.running.values().filter(|one| fits(one)).count();
        let of_party = |party| running(&|one| one.party == party);
        let of_person = |asker| running(&|one| *one == asker);
        for other in waited {
            assert!(
                of_party(chosen.party) <= of_party(other.party),
                "{waited:?}"
            );
            if chosen.party == other.party {
                assert!(of_person(chosen) <= of_person(*other), "{waited:?}");
            }
        }
        self.patience.remove(&chosen.party);
        let idle = |party: &Party| of_party(*party) == 0;
        let parties: HashSet<Party> = waited.iter().map(|one| one.party).collect();
        self.patience.retain(|party, _| parties.contains(party));
        let most = parties.len();
        for party in parties.iter().copied().filter(idle) {
            if party != chosen.party {
                let left = self.patience.entry(party).or_insert(most);
                assert!(*left > 0, "{party:?} starves");
                *left -= 1;
            }
        }
    }

    fn sound(&self) {
        let Lanes {
            limits,
            running,
            waiting,
            by_lane,
            ..
        } = &self.lanes;
        let ready = by_lane.values().any(|state| state.ready().is_some());
        assert!(
            *running == limits.running || !ready,
            "a place is left unused"
        );
        assert_eq!(*running, self.running.len());
        let all: Vec<Asker> = by_lane
            .values()
            .flat_map(|state| state.waiting.iter().map(|one| one.asker))
            .collect();
        assert_eq!(all.len(), *waiting);
        assert!(*waiting <= limits.waiting);
        for asker in all {
            let (of_party, of_person) = self.lanes.shares.waiting(asker);
            assert!(of_party <= limits.party && of_person <= limits.person);
        }
    }
}

proptest! {
    #[test]
    fn places_are_used_and_shared_whatever_happens(
        steps in steps(),
        places in 1..5_usize,
        behind in 0..4_usize,
    ) {
        let mut watched = Watched {
            lanes: Lanes::new(places, behind),
            tickets: 0,
            running: HashMap::new(),
            patience: HashMap::new(),
        };
        for step in steps {
            match step {
                Step::Submit { party, user, lane } => {
                    // A thread is of one server.
                    watched.submit(thread(party * 10 + lane), asker(party, user));
                }
                Step::Finish(at) => watched.finish(at),
                Step::Remove(at) => {
                    let ticket = at as u64 % (watched.tickets + 1);
                    watched.lanes.remove_waiting(|(one, _)| *one == ticket);
                    watched.patience.clear();
                }
            }
            watched.sound();
        }
        while !watched.running.is_empty() {
            watched.finish(0);
            watched.sound();
        }
        prop_assert!(watched.lanes.by_lane.is_empty());
        prop_assert_eq!(watched.lanes.waiting, 0);
    }
}
