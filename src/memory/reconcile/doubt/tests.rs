//! What stays in doubt, what is asked for again, and what is forgotten.

use futures_util::FutureExt;

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

/// Takes a round and returns what it asks for, by channel and message.
fn round(doubts: &Doubts) -> Vec<(u64, u64)> {
    let keys = doubts.lock().take_round().into_iter();
    keys.map(|(channel, id)| (channel.get(), id.get()))
        .collect()
}

fn asked(doubts: &Doubts) -> Vec<u64> {
    let asking = doubts.take_unconfirmed([trace(HERE, 1)], 9).hand_over();
    asking.into_iter().map(|(_, id)| id.get()).collect()
}

/// Permissions may have changed meanwhile; what was hidden stays hidden.
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

/// A refused message is not asked for in round after round.
#[test]
fn who_would_not_say_is_not_due() {
    let doubts = Doubts::default();
    doubts.lacking(HERE, [1, 2].map(MessageId::new), UnixMillis(5));
    doubts.unclear(trace(HERE, 1).key());
    assert_eq!(round(&doubts), [(7, 2)]);
}

/// Nothing is asked for that was stored or shown after the gap, or that lies
/// elsewhere. A server belongs to one shard, direct messages to the first.
#[test]
fn a_gap_concerns_what_was_stored_and_shown_before_it_there() {
    // In shard 5 of 8, and in shard 1 of 2.
    let guild = GuildId::new(5 << 22 | 3);
    let shard = |shard, shards| Missed::Shard { shard, shards };
    for (missed, of_guild, direct) in [
        (Missed::Everything, true, true),
        (Missed::Guild(guild), true, false),
        (Missed::Guild(GuildId::new(4)), false, false),
        (Missed::Channel(HERE), true, true),
        (Missed::Channel(ELSEWHERE), false, false),
        (shard(1, 2), true, false),
        (shard(0, 2), false, true),
        (shard(0, 1), true, true),
        (shard(5, 8), true, false),
        (shard(2, 4), false, false),
    ] {
        for (guild, concerned) in [(Some(guild), of_guild), (None, direct)] {
            for (stored, shown, since) in [
                (4, None, true),
                (5, None, false),
                (6, None, false),
                (4, Some(4), true),
                (4, Some(5), false),
                (4, Some(6), false),
            ] {
                let doubts = Doubts::default();
                if let Some(shown) = shown {
                    doubts.settle(HERE, [MessageId::new(1)], UnixMillis(shown));
                }
                doubts.missed(missed, UnixMillis(5));
                let at = UnixMillis(stored);
                let trace = Trace {
                    guild,
                    at,
                    ..trace(HERE, 1)
                };
                let asking = doubts.take_unconfirmed([trace], 9);
                let is_asked = asking.first().is_some();
                assert_eq!(
                    is_asked,
                    concerned && since,
                    "{missed:?} {guild:?} stored {stored}, shown {shown:?}"
                );
            }
        }
    }
}

/// Up to this many places are told apart.
#[test]
fn with_too_many_gaps_all_is_in_doubt() {
    let doubts = Doubts::default();
    for n in 0..MOST_MISSED as u64 / 2 {
        doubts.missed(Missed::Channel(ChannelId::new(1_000 + n)), UnixMillis(5));
        doubts.missed(Missed::Guild(GuildId::new(1_000 + n)), UnixMillis(5));
    }
    assert_eq!(asked(&doubts), [0; 0]);
    doubts.missed(Missed::Channel(ELSEWHERE), UnixMillis(5));
    assert_eq!(asked(&doubts), [1]);
}

/// The first ones are the caller's. None is asked for twice, and what the caller
/// leaves is due again.
#[test]
fn of_what_is_unconfirmed_the_caller_asks_for_the_first() {
    let doubts = Doubts::default();
    doubts.missed(Missed::Everything, UnixMillis(5));
    let traces = [(HERE, 1), (HERE, 2), (ELSEWHERE, 3), (HERE, 4)];
    let traces = traces.map(|(channel, id)| trace(channel, id));
    let mut asking = doubts.take_unconfirmed(traces, 3);
    assert_eq!((asking.first(), asking.len()), (Some(traces[0].key()), 3));
    assert_eq!(round(&doubts), [(7, 4)], "the others");
    let first = asking.first().unwrap();
    asking.done(&first);
    assert_eq!((asking.first(), asking.len()), (Some(traces[1].key()), 2));
    asking.leave(HERE);
    assert_eq!((asking.first(), asking.len()), (Some(traces[2].key()), 1));
    assert_eq!(round(&doubts), []);
    drop(asking);
    assert_eq!(round(&doubts), [(8, 3)]);

    doubts.ask_again(&[traces[0].key()]);
    assert_eq!(round(&doubts), [(7, 1)]);
    assert!(!doubts.hides(&traces[0]), "shown meanwhile");
}

/// A round is limited overall and per channel, so that none waits long for another.
#[test]
fn a_round_is_shared_out() {
    let doubts = Doubts::default();
    let ids = || (1..=10).map(MessageId::new);
    for channel in (1..=10).map(ChannelId::new) {
        doubts.lacking(channel, ids(), UnixMillis(5));
    }
    let expected = |channels: std::ops::RangeInclusive<u64>, ids: std::ops::RangeInclusive<u64>| {
        let of = |channel| ids.clone().map(move |id| (channel, id));
        channels.flat_map(of).collect::<Vec<_>>()
    };
    assert_eq!(round(&doubts), expected(1..=8, 1..=8));
    let second = [expected(1..=8, 9..=10), expected(9..=10, 1..=8)];
    assert_eq!(round(&doubts), second.concat());
    assert_eq!(round(&doubts), expected(9..=10, 9..=10));
    assert_eq!(round(&doubts), []);
}

#[test]
fn a_round_waits_until_something_is_due() {
    let doubts = Doubts::default();
    assert!(doubts.due().now_or_never().is_none());
    doubts.lacking(HERE, [MessageId::new(1)], UnixMillis(5));
    let due = doubts.due().now_or_never().unwrap();
    assert_eq!(due.first(), Some(trace(HERE, 1).key()));
    assert!(doubts.due().now_or_never().is_none(), "being asked");
}

/// Missing from a page is a reason to ask again, but not twice at once.
#[test]
fn a_channel_that_refused_is_asked_when_there_is_a_reason() {
    let doubts = Doubts::default();
    let lacking = |channel| doubts.lacking(channel, [MessageId::new(1)], UnixMillis(5));
    let both = || {
        lacking(HERE);
        lacking(ELSEWHERE);
    };
    both();
    assert_eq!(round(&doubts), [(7, 1), (8, 1)]);
    both();
    assert_eq!(round(&doubts), [], "being asked");
    doubts.refused(HERE);
    both();
    assert_eq!(round(&doubts), [(7, 1)]);
    doubts.refused(HERE);
    doubts.refused(ELSEWHERE);
    assert_eq!(round(&doubts), []);
    doubts.ask_refused(|channel| channel == ELSEWHERE);
    assert_eq!(round(&doubts), [(8, 1)]);
    doubts.ask_refused(|channel| channel == ELSEWHERE);
    assert_eq!(round(&doubts), [], "being asked");
}

/// What was heard and could not be kept is shown only after it was asked for.
#[test]
fn what_was_lost_is_hidden_until_it_is_shown() {
    let doubts = Doubts::default();
    let (here, elsewhere) = (trace(HERE, 1), trace(ELSEWHERE, 2));
    doubts.lost(Missed::Channel(HERE), UnixMillis(5));
    assert!(doubts.hides(&here) && !doubts.hides(&elsewhere));
    assert_eq!(round(&doubts), [(7, 1)], "asked for by itself");
    doubts.settle(HERE, [MessageId::new(1)], UnixMillis(6));
    assert!(!doubts.hides(&here));

    // Lost while it is being asked for because of a gap.
    doubts.missed(Missed::Everything, UnixMillis(7));
    let asking = doubts.take_unconfirmed([here], 9);
    assert!(!doubts.hides(&here));
    doubts.lost(Missed::Channel(HERE), UnixMillis(8));
    assert!(doubts.hides(&here));
    assert_eq!(asking.hand_over(), [here.key()]);
    assert_eq!(round(&doubts), [], "handed over");
}

/// It stays hidden until it is purged.
#[test]
fn what_is_gone_is_hidden_and_not_asked_for() {
    let doubts = Doubts::default();
    doubts.gone(trace(HERE, 1).key());
    assert!(doubts.hides(&trace(HERE, 1)));
    assert_eq!(round(&doubts), []);
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

/// A page older than the last showing settles nothing. When too many were shown,
/// the older half is forgotten.
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

/// Also if all were shown at the same time.
#[test]
fn so_many_that_were_shown_are_remembered() {
    let doubts = Doubts::default();
    let most = MOST_SETTLED as u64;
    doubts.settle(HERE, (1..=most).map(MessageId::new), UnixMillis(5));
    doubts.lacking(HERE, [1, most].map(MessageId::new), UnixMillis(5));
    assert_eq!(round(&doubts), []);
    doubts.settle(HERE, [MessageId::new(most + 1)], UnixMillis(5));
    assert!(doubts.lock().settled.len() <= MOST_SETTLED);
}

/// A channel has room for only so many; the others are noted once those are
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

    // The limit over all channels.
    let doubts = Doubts::default();
    let channels = (MOST_QUESTIONS / MOST_OF_A_CHANNEL) as u64;
    let ids = || (1..=MOST_OF_A_CHANNEL as u64).map(MessageId::new);
    for channel in (1..=channels).map(ChannelId::new) {
        doubts.lacking(channel, ids(), UnixMillis(5));
    }
    assert_eq!(doubts.unfinished(), []);
    let last = ChannelId::new(channels + 1);
    doubts.missed(Missed::Everything, UnixMillis(5));
    let asking = doubts.take_unconfirmed([trace(last, 1)], 9);
    assert_eq!(asking.len(), 0, "no room");
    doubts.lacking(last, ids(), UnixMillis(5));
    assert_eq!(doubts.unfinished(), [(last, MessageId::new(0))]);
}
