//! The rules of queues and shares, and that they hold in any history.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use clew_context::model::{GuildId, UserId};
use proptest::prelude::*;

use super::super::shares::Tenant;
use super::*;

const fn thread(id: u64) -> QueueKey {
    QueueKey::Conversation(ChannelId::new(id))
}

const fn requester(guild: u64, user: u64) -> Requester {
    Requester {
        tenant: Tenant::Guild(GuildId::new(guild)),
        spender: Spender::User(UserId::new(user)),
        channel: ChannelId::new(0),
    }
}

/// Submits a question in a thread.
fn submit<T>(queues: &mut Queues<T>, channel: u64, requester: Requester, work: T) -> Submitted<T> {
    let channel = ChannelId::new(channel);
    let requester = Requester {
        channel,
        ..requester
    };
    let queue = QueueKey::Conversation(channel);
    queues.submit(queue, requester, Instant::now(), work)
}

const ADA: Requester = requester(1, 1);
const BORIS: Requester = requester(1, 2);
const ELSEWHERE: Requester = requester(2, 3);

#[test]
fn a_lane_runs_one_after_the_other_and_refuses_what_is_too_much() {
    let mut queues = Queues::new(8, 2);
    let mut ask = |work| submit(&mut queues, 1, ADA, work);
    assert_eq!(ask('a'), Submitted::Starts('a'));
    assert_eq!(ask('b'), Submitted::Waits);
    assert_eq!(ask('c'), Submitted::Waits);
    assert_eq!(ask('d'), Submitted::Refused('d', Full::Queue));
    assert_eq!(submit(&mut queues, 2, ADA, 'e'), Submitted::Starts('e'));
    assert_eq!(queues.finished(thread(1)), Some((thread(1), 'b')));
    assert_eq!(queues.finished(thread(1)), Some((thread(1), 'c')));
    assert_eq!(queues.finished(thread(1)), None);
    let again = submit(&mut queues, 1, ADA, 'f');
    assert_eq!(again, Submitted::Starts('f'));
}

#[test]
fn a_thread_is_not_filled_by_one_of_its_people() {
    let mut queues = Queues::new(8, 2);
    for work in ['a', 'b', 'c'] {
        submit(&mut queues, 1, ADA, work);
    }
    let newcomer = submit(&mut queues, 1, BORIS, 'd');
    assert_eq!(newcomer, Submitted::Displaces('c', Full::Queue));
}

#[test]
fn one_alone_may_use_everything() {
    let mut queues = Queues::new(8, 3);
    for queue in 1..=8 {
        let submitted = submit(&mut queues, queue, ADA, queue);
        assert_eq!(submitted, Submitted::Starts(queue));
    }
    assert_eq!(submit(&mut queues, 9, ADA, 9), Submitted::Waits);
}

#[test]
fn a_free_place_goes_to_the_server_and_the_person_with_the_fewest() {
    let mut queues = Queues::new(3, 3);
    for queue in 1..=6 {
        submit(&mut queues, queue, ADA, "ada's");
    }
    submit(&mut queues, 7, BORIS, "boris'");
    submit(&mut queues, 8, ELSEWHERE, "another server's");
    assert_eq!((queues.running(), queues.waiting()), (3, 5));
    let mut next = |queue| queues.finished(thread(queue)).unwrap().1;
    assert_eq!(next(1), "another server's");
    assert_eq!(next(2), "boris'");
    assert_eq!(next(3), "ada's");
}

#[test]
fn servers_take_turns_when_there_is_one_place() {
    let mut queues = Queues::new(1, 9);
    for queue in 1..=4 {
        submit(&mut queues, queue, ADA, 1);
    }
    for queue in 5..=6 {
        submit(&mut queues, queue, ELSEWHERE, 2);
    }
    let mut queue = thread(1);
    let order = std::iter::from_fn(|| {
        let (next, of) = queues.finished(queue)?;
        queue = next;
        Some(of)
    });
    assert_eq!(order.collect::<Vec<_>>(), [2, 1, 2, 1, 1]);
}

/// Seven people of one server ask seventy questions; another server's and a direct
/// message still find room, and run next.
#[test]
fn who_fills_the_room_is_sent_away_and_not_the_newcomer() {
    let mut queues = Queues::new(4, 3);
    let mut sent_away = 0;
    for question in 0..70 {
        let requester = requester(1, 1 + question % 7);
        match submit(&mut queues, question + 1, requester, 1) {
            Submitted::Starts(_) | Submitted::Waits => {}
            Submitted::Refused(..) | Submitted::Displaces(..) => sent_away += 1,
        }
    }
    assert_eq!(sent_away, 70 - 4 - 8, "half the room is one server's");
    let direct = Requester {
        tenant: Tenant::Person(Spender::User(UserId::new(9))),
        spender: Spender::User(UserId::new(9)),
        channel: ChannelId::new(0),
    };
    for (queue, newcomer) in [(71, ELSEWHERE), (72, direct)] {
        assert_eq!(submit(&mut queues, queue, newcomer, 2), Submitted::Waits);
    }
    let running = [1, 2].map(thread);
    let next = running.map(|queue| queues.finished(queue).unwrap().1);
    assert_eq!(next, [2, 2]);
}

#[test]
fn a_full_room_sends_away_the_newest_of_who_takes_up_most() {
    let mut queues = Queues::new(1, 0);
    submit(&mut queues, 1, ADA, 'a');
    assert_eq!(submit(&mut queues, 2, ADA, 'b'), Submitted::Waits);
    let submitted = submit(&mut queues, 3, BORIS, 'c');
    assert_eq!(submitted, Submitted::Displaces('b', Full::Room));
    let submitted = submit(&mut queues, 4, ELSEWHERE, 'd');
    assert_eq!(submitted, Submitted::Displaces('c', Full::Room));
    let submitted = submit(&mut queues, 5, requester(3, 4), 'e');
    assert_eq!(submitted, Submitted::Refused('e', Full::Room), "as much");
    assert_eq!(queues.finished(thread(1)), Some((thread(4), 'd')));
    assert_eq!(queues.finished(thread(4)), None);
    assert_eq!(queues.running(), 0);
}

/// A raid: hundreds of accounts ask in one channel of a server. It never has all places;
/// others of the server find a place in other channels, even if each raider has asked once.
#[test]
fn a_raid_shuts_out_nobody_of_its_server() {
    for times in [1, 2] {
        let mut queues = Queues::new(8, 3);
        let raid = raid(&mut queues, times);
        let count = |of: &dyn Fn(&Submitted<_>) -> bool| raid.iter().filter(|one| of(one)).count();
        let starts = count(&|one| matches!(one, Submitted::Starts(_)));
        let waits = count(&|one| *one == Submitted::Waits);
        assert_eq!(
            (starts, waits),
            (4, 16),
            "half of the places and of the room"
        );
        for channel in 2..=5 {
            let submitted = ask_in(&mut queues, channel, channel);
            assert_eq!(submitted, Submitted::Starts((channel, channel)));
        }
        let submitted = ask_in(&mut queues, 6, 6);
        displaces_a_raider(&submitted, Full::Room);
        assert_eq!(
            finish(&mut queues, 1, 100),
            Some((6, 6)),
            "least runs there"
        );
    }
}

/// In the raided channel itself whoever has asked less than the raiders is answered.
#[test]
fn in_a_raided_channel_goes_first_who_has_asked_less() {
    let mut queues = Queues::new(8, 3);
    raid(&mut queues, 2);
    for user in [7, 800] {
        let submitted = ask_in(&mut queues, 1, user);
        displaces_a_raider(&submitted, Full::Room);
    }
    let again = ask_in(&mut queues, 1, 800);
    assert_eq!(again, Submitted::Refused((1, 800), Full::Room), "as often");
    for channel in 2..=5 {
        ask_in(&mut queues, channel, channel);
    }
    // The raided channel has a half of what others leave free.
    assert_eq!(finish(&mut queues, 1, 100), None);
    assert_eq!(finish(&mut queues, 1, 101), None);
    assert_eq!(finish(&mut queues, 2, 2), Some((1, 7)));
}

/// Six hundred accounts ask in one channel, so many times each.
fn raid(queues: &mut Queues<(u64, u64)>, times: usize) -> Vec<Submitted<(u64, u64)>> {
    let raiders = (0..times).flat_map(|_| 100..700);
    raiders.map(|user| ask_in(queues, 1, user)).collect()
}

/// Submits a question of a member in an ordinary channel.
fn ask_in(queues: &mut Queues<(u64, u64)>, channel: u64, user: u64) -> Submitted<(u64, u64)> {
    let requester = Requester {
        channel: ChannelId::new(channel),
        ..requester(1, user)
    };
    let queue = QueueKey::Member(requester.channel, requester.spender);
    queues.submit(queue, requester, Instant::now(), (channel, user))
}

fn finish(queues: &mut Queues<(u64, u64)>, channel: u64, user: u64) -> Option<(u64, u64)> {
    let user = Spender::User(UserId::new(user));
    let ended = queues.finished(QueueKey::Member(ChannelId::new(channel), user));
    ended.map(|(_, work)| work)
}

#[track_caller]
fn displaces_a_raider(submitted: &Submitted<(u64, u64)>, full: Full) {
    match submitted {
        Submitted::Displaces((1, 100..700), of) => assert_eq!(*of, full),
        other => panic!("{other:?}"),
    }
}

/// What was asked more than a minute ago counts no more.
#[test]
fn who_has_asked_less_lately_goes_first() {
    for (seconds, first) in [(59, "boris'"), (61, "ada's")] {
        let mut queues = Queues::new(2, 3);
        let (start, channel) = (Instant::now(), ChannelId::new(1));
        let queue = |of: Requester| QueueKey::Member(channel, of.spender);
        let ask = |queues: &mut Queues<_>, of: Requester, seconds, work| {
            let now = start + Duration::from_secs(seconds);
            queues.submit(queue(of), Requester { channel, ..of }, now, work)
        };
        let someone = requester(1, 9);
        let before = ask(&mut queues, ADA, 0, "before");
        assert_eq!(before, Submitted::Starts("before"));
        assert_eq!(queues.finished(queue(ADA)), None);
        let starts = ask(&mut queues, someone, seconds, "someone's");
        assert_eq!(starts, Submitted::Starts("someone's"));
        for (of, work) in [(ADA, "ada's"), (BORIS, "boris'")] {
            assert_eq!(ask(&mut queues, of, seconds, work), Submitted::Waits);
        }
        assert_eq!(queues.finished(queue(someone)).unwrap().1, first);
    }
}

#[test]
fn what_waits_can_be_taken_out() {
    let mut queues = Queues::new(1, 2);
    submit(&mut queues, 1, ADA, 'a');
    submit(&mut queues, 1, ADA, 'b');
    submit(&mut queues, 2, ADA, 'c');
    assert_eq!(queues.remove_waiting(|work| *work == 'c'), ['c']);
    assert_eq!(queues.finished(thread(1)), Some((thread(1), 'b')));
    assert_eq!(queues.finished(thread(1)), None);
}

#[derive(Debug, Clone)]
enum Step {
    Submit { tenant: u64, user: u64, queue: u64 },
    Finish(usize),
    Remove(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let submit = (1..5_u64, 1..4_u64, 1..9_u64);
    let submit = submit.prop_map(|(tenant, user, queue)| Step::Submit {
        tenant,
        user,
        queue,
    });
    let step = prop_oneof![
        6 => submit,
        4 => any::<usize>().prop_map(Step::Finish),
        1 => any::<usize>().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..120)
}

/// Queues, and what is known of them from outside.
struct Watched {
    queues: Queues<(u64, Requester)>,
    start: Instant,
    tickets: u64,
    running: HashMap<QueueKey, Requester>,
    /// How many starts by others each tenant may still see before its own.
    patience: HashMap<Tenant, usize>,
}

impl Watched {
    fn submit(&mut self, queue: QueueKey, requester: Requester) {
        self.tickets += 1;
        let now = self.start + Duration::from_secs(self.tickets);
        let work = (self.tickets, requester);
        match self.queues.submit(queue, requester, now, work) {
            Submitted::Starts(_) => {
                assert!(
                    self.running.insert(queue, requester).is_none(),
                    "one a queue"
                );
            }
            Submitted::Displaces((_, other), _) => {
                let taken_up = |of| self.queues.shares.load(of).0;
                assert!(taken_up(other) + 1 >= taken_up(requester), "{other:?}");
                self.patience.remove(&other.tenant);
            }
            Submitted::Waits | Submitted::Refused(..) => {}
        }
    }

    fn finish(&mut self, at: usize) {
        let Some(queue) = self
            .running
            .keys()
            .copied()
            .nth(at % self.running.len().max(1))
        else {
            return;
        };
        self.running.remove(&queue);
        let waited = self.ready_but(queue);
        let mut next = self.queues.finished(queue);
        let mut waited = Some(waited);
        while let Some((queue, (_, requester))) = next {
            if let Some(waited) = waited.take() {
                self.fair(requester, &waited);
            }
            assert!(
                self.running.insert(queue, requester).is_none(),
                "one a queue"
            );
            next = self.queues.next();
        }
    }

    /// Who was ready before this queue became ready.
    fn ready_but(&self, queue: QueueKey) -> HashSet<Requester> {
        let ready = self.queues.by_key.iter().filter(|(one, _)| **one != queue);
        ready
            .filter_map(|(_, state)| Some(state.ready()?.requester))
            .filter(|one| self.has_place(one.channel))
            .collect()
    }

    /// Whether one more may run in a channel.
    fn has_place(&self, channel: ChannelId) -> bool {
        let (limit, all) = (self.queues.limits.running, self.running.len());
        let here = self.running.values().filter(|one| one.channel == channel);
        let here = here.count();
        all < limit && here < (limit - (all - here)).div_ceil(2)
    }

    /// No server that waited has fewer turns running, nor a person of the same server whose
    /// channel has no more.
    fn fair(&mut self, chosen: Requester, waited: &HashSet<Requester>) {
        let running = |fits: &dyn Fn(&Requester) -> bool| {
            self.running.values().filter(|one| fits(one)).count()
        };
        let of_tenant = |tenant| running(&|one| one.tenant == tenant);
        let weight = |of: Requester| {
            let of_person = running(&|one| one.person() == of.person());
            of_person.max(running(&|one| one.channel == of.channel))
        };
        for other in waited {
            assert!(
                of_tenant(chosen.tenant) <= of_tenant(other.tenant),
                "{waited:?}"
            );
            if chosen.tenant == other.tenant {
                assert!(weight(chosen) <= weight(*other), "{waited:?}");
            }
        }
        self.patience.remove(&chosen.tenant);
        let idle = |tenant: &Tenant| of_tenant(*tenant) == 0;
        let tenants: HashSet<Tenant> = waited.iter().map(|one| one.tenant).collect();
        self.patience.retain(|tenant, _| tenants.contains(tenant));
        let most = tenants.len();
        for tenant in tenants.iter().copied().filter(idle) {
            if tenant != chosen.tenant {
                let left = self.patience.entry(tenant).or_insert(most);
                assert!(*left > 0, "{tenant:?} starves");
                *left -= 1;
            }
        }
    }

    fn sound(&self) {
        let Queues {
            limits,
            running,
            waiting,
            by_key,
            ..
        } = &self.queues;
        let mut ready = by_key.values().filter_map(|state| state.ready());
        let may_run = |one: &QueuedItem<_>| self.has_place(one.requester.channel);
        assert!(!ready.any(may_run), "a place is left unused");
        assert_eq!(*running, self.running.len());
        let all: Vec<Requester> = by_key
            .values()
            .flat_map(|state| state.waiting.iter().map(|one| one.requester))
            .collect();
        assert_eq!(all.len(), *waiting);
        assert!(*waiting <= limits.waiting);
        for requester in all {
            let (of_tenant, of_person) = self.queues.shares.waiting(requester);
            assert!(of_tenant <= limits.tenant && of_person <= limits.person);
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
            queues: Queues::new(places, behind),
            start: Instant::now(),
            tickets: 0,
            running: HashMap::new(),
            patience: HashMap::new(),
        };
        for step in steps {
            match step {
                Step::Submit { tenant, user, queue } => {
                    // A channel belongs to one server. Half of them are threads.
                    let channel = ChannelId::new(tenant * 10 + queue);
                    let requester = Requester { channel, ..requester(tenant, user) };
                    let queue = match queue % 2 {
                        0 => QueueKey::Conversation(channel),
                        _ => QueueKey::Member(channel, requester.spender),
                    };
                    watched.submit(queue, requester);
                }
                Step::Finish(at) => watched.finish(at),
                Step::Remove(at) => {
                    let ticket = at as u64 % (watched.tickets + 1);
                    watched.queues.remove_waiting(|(one, _)| *one == ticket);
                    watched.patience.clear();
                }
            }
            watched.sound();
        }
        while !watched.running.is_empty() {
            watched.finish(0);
            watched.sound();
        }
        prop_assert!(watched.queues.by_key.is_empty());
        prop_assert_eq!(watched.queues.waiting, 0);
    }
}
