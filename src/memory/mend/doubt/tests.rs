//! What stays in doubt, what is asked again, and what is forgotten.

use super::*;

const HERE: ChannelId = ChannelId::new(7);
const ELSEWHERE: ChannelId = ChannelId::new(8);

fn trace(channel: ChannelId, id: u64) -> Trace {
    Trace {
        key: (channel, MessageId::new(id)),
        guild: None,
        at: UnixMillis(0),
    }
}

fn asked(doubts: &Doubts) -> Vec<u64> {
    let asking = doubts.take_unconfirmed([trace(HERE, 1)], 9).hand_over();
    asking.into_iter().map(|(_, id)| id.get()).collect()
}

/// Permissions may have changed since; what was hidden stays hidden.
#[test]
fn who_would_not_say_is_asked_anew_after_the_next_gap() {
    let doubts = Doubts::default();
    doubts.missed(Missed::Everything, UnixMillis(5));
    assert_eq!(asked(&doubts), [1]);
    assert_eq!(asked(&doubts), [0; 0], "being asked");
    doubts.unclear(trace(HERE, 1).key());
    assert_eq!(asked(&doubts), [0; 0], "refused");
    doubts.missed(Missed::Channel(ELSEWHERE), UnixMillis(6));
    assert_eq!(asked(&doubts), [1]);

    doubts.lacking(HERE, [MessageId::new(2)], UnixMillis(7));
    doubts.unclear(trace(HERE, 2).key());
    doubts.missed(Missed::Everything, UnixMillis(8));
    assert!(doubts.hides(&trace(HERE, 2)));
}

/// What would not be said is not asked round after round.
#[test]
fn who_would_not_say_is_not_due() {
    let doubts = Doubts::default();
    doubts.lacking(HERE, [1, 2].map(MessageId::new), UnixMillis(5));
    doubts.unclear(trace(HERE, 1).key());
    assert_eq!(doubts.lock().take_round(), [trace(HERE, 2).key()]);
}

#[test]
fn a_channel_that_is_gone_leaves_no_doubts() {
    let doubts = Doubts::default();
    for channel in [HERE, ELSEWHERE] {
        doubts.lacking(channel, [MessageId::new(1)], UnixMillis(5));
    }
    doubts.forget(HERE);
    assert!(!doubts.hides(&trace(HERE, 1)));
    assert!(doubts.hides(&trace(ELSEWHERE, 1)));
}

/// A page older than what was shown since tells nothing; of too many that were
/// shown the older half is forgotten.
#[test]
fn the_newer_half_of_what_was_shown_is_remembered() {
    let doubts = Doubts::default();
    let most = MOST_SETTLED as u64 + 1;
    let time = |n: u64| UnixMillis(n.cast_signed());
    for n in 1..=most {
        doubts.settle(HERE, [MessageId::new(n)], time(n));
    }
    for (n, hidden) in [
        (1, true),
        (most / 4, true),
        (most * 3 / 4, false),
        (most, false),
    ] {
        doubts.lacking(HERE, [MessageId::new(n)], time(n));
        assert_eq!(doubts.hides(&trace(HERE, n)), hidden, "{n}");
    }
}

/// There is room for so many of a channel; the others are noted when those are
/// settled.
#[test]
fn what_there_is_no_room_for_waits_until_there_is() {
    let doubts = Doubts::default();
    let ids = || (1..=300).map(MessageId::new);
    doubts.lacking(HERE, ids(), UnixMillis(5));
    assert_eq!(doubts.unfinished(), []);
    doubts.settle(HERE, ids(), UnixMillis(6));
    let last = MessageId::new(MOST_OF_A_CHANNEL as u64);
    assert_eq!(doubts.unfinished(), [(HERE, last)]);
    assert_eq!(doubts.unfinished(), [], "told once");
}
