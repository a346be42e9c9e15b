//! What stays in doubt, what is asked for again, and what is forgotten.

use futures_util::FutureExt;

use super::questions::MOST_OF_A_CHANNEL;
use super::*;

const HERE: ChannelId = ChannelId::new(7);
const ELSEWHERE: ChannelId = ChannelId::new(8);

const fn in_channel(channel: ChannelId) -> Missed {
    let guild = None;
    Missed::Channel { guild, channel }
}

fn trace(channel: ChannelId, id: u64) -> Trace {
    Trace {
        key: (channel, MessageId::new(id)),
        guild: None,
        at: UnixMillis(0),
    }
}

/// Takes a round and returns what it asks for, by channel and message.
fn round(doubts: &Doubts) -> Vec<(u64, u64)> {
    let keys = doubts.inner.lock().questions.take_round().into_iter();
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
    doubts.unclear(trace(HERE, 1).key);
    assert_eq!(asked(&doubts), [0; 0], "refused");
    doubts.missed(in_channel(ELSEWHERE), UnixMillis(6));
    assert_eq!(asked(&doubts), [1]);

    doubts.lacking((None, HERE), [MessageId::new(2)], UnixMillis(7));
    doubts.unclear(trace(HERE, 2).key);
    doubts.missed(Missed::Everything, UnixMillis(8));
    assert!(doubts.hides(&trace(HERE, 2)));
}

/// A refused message is not asked for in round after round.
#[test]
fn who_would_not_say_is_not_due() {
    let doubts = Doubts::default();
    doubts.lacking((None, HERE), [1, 2].map(MessageId::new), UnixMillis(5));
    doubts.unclear(trace(HERE, 1).key);
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
        (in_channel(HERE), true, true),
        (in_channel(ELSEWHERE), false, false),
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
                let is_asked = asking.keys.first().copied().is_some();
                assert_eq!(
                    is_asked,
                    concerned && since,
                    "{missed:?} {guild:?} stored {stored}, shown {shown:?}"
                );
            }
        }
    }
}

/// So many channels are told apart. Beyond, a server with many is in doubt as a whole, and
/// nobody else is.
#[test]
fn who_has_gaps_in_too_many_channels_is_in_doubt_as_a_whole() {
    let doubts = Doubts::default();
    let of = |guild, channel| Missed::Channel {
        guild: Some(GuildId::new(guild)),
        channel: ChannelId::new(channel),
    };
    let is_asked = |guild, channel, id| {
        let guild = Some(GuildId::new(guild));
        let trace = Trace {
            guild,
            ..trace(ChannelId::new(channel), id)
        };
        doubts.is_unconfirmed(&trace)
    };
    doubts.missed(of(1, 10), UnixMillis(5));
    for channel in 0..since::MOST_CHANNELS as u64 - 1 {
        doubts.missed(of(2, 1_000 + channel), UnixMillis(5));
    }
    assert!(is_asked(2, 1_000, 1) && !is_asked(2, 20, 2));
    doubts.missed(of(1, 11), UnixMillis(5));
    assert!(
        is_asked(2, 1_000, 1) && is_asked(2, 20, 2),
        "the whole server"
    );
    assert!(is_asked(1, 10, 3) && is_asked(1, 11, 4) && !is_asked(1, 12, 5));
    assert!(!is_asked(3, 30, 6));
}

/// So many servers are told apart, and direct conversations.
#[test]
fn with_too_many_gaps_all_is_in_doubt() {
    for missed in [
        |n| Missed::Guild(GuildId::new(n)),
        |n| in_channel(ChannelId::new(n)),
    ] {
        let doubts = Doubts::default();
        for n in 0..since::MOST_CHANNELS as u64 {
            doubts.missed(missed(1_000 + n), UnixMillis(5));
        }
        assert_eq!(asked(&doubts), [0; 0]);
        doubts.missed(missed(1), UnixMillis(5));
        assert_eq!(asked(&doubts), [1]);
    }
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
    assert_eq!(
        (asking.keys.first().copied(), asking.keys.len()),
        (Some(traces[0].key), 3)
    );
    assert_eq!(round(&doubts), [(7, 4)], "the others");
    let first = asking.keys.first().copied().unwrap();
    asking.keys.retain(|one| *one != first);
    assert_eq!(
        (asking.keys.first().copied(), asking.keys.len()),
        (Some(traces[1].key), 2)
    );
    asking.keys.retain(|(channel, _)| *channel != HERE);
    assert_eq!(
        (asking.keys.first().copied(), asking.keys.len()),
        (Some(traces[2].key), 1)
    );
    assert_eq!(round(&doubts), []);
    drop(asking);
    assert_eq!(round(&doubts), [(8, 3)]);

    doubts.ask_again(&[traces[0].key]);
    assert_eq!(round(&doubts), [(7, 1)]);
    assert!(!doubts.hides(&traces[0]), "shown meanwhile");
}

/// A round is of one channel, the newest first, and limited. Servers take turns, whatever their ids and
/// however many channels they have; within a server its channels do. Who comes later waits
/// for one round of each of the others.
#[test]
fn rounds_go_in_a_circle() {
    let doubts = Doubts::default();
    let lacking = |guild, channel, ids: std::ops::RangeInclusive<u64>| {
        let place = (Some(GuildId::new(guild)), ChannelId::new(channel));
        doubts.lacking(place, ids.map(MessageId::new), UnixMillis(5));
    };
    for channel in 1..=3 {
        lacking(1, channel, 1..=20);
    }
    lacking(2, 9, 1..=20);
    let next = || {
        let round = round(&doubts);
        let channel = round[0].0;
        assert!(round.iter().all(|one| one.0 == channel), "{round:?}");
        (channel, round[0].1, round.len())
    };
    assert_eq!(next(), (1, 13, 8));
    assert_eq!(next(), (9, 13, 8));
    lacking(3, 4, 1..=1);
    assert_eq!(next(), (2, 13, 8));
    assert_eq!(next(), (9, 5, 8));
    assert_eq!(next(), (4, 1, 1));
    assert_eq!(next(), (3, 13, 8));
    assert_eq!(next(), (9, 1, 4));
    assert_eq!([next(), next()], [(1, 5, 8), (2, 5, 8)]);
}

#[test]
fn a_round_waits_until_something_is_due() {
    let doubts = Doubts::default();
    assert!(doubts.due().now_or_never().is_none());
    doubts.lacking((None, HERE), [MessageId::new(1)], UnixMillis(5));
    let due = doubts.due().now_or_never().unwrap();
    assert_eq!(due.keys.first().copied(), Some(trace(HERE, 1).key));
    assert!(doubts.due().now_or_never().is_none(), "being asked");
}

/// Missing from a page is a reason to ask again, but not twice at once.
#[test]
fn a_channel_that_refused_is_asked_when_there_is_a_reason() {
    let doubts = Doubts::default();
    let lacking = |channel| doubts.lacking((None, channel), [MessageId::new(1)], UnixMillis(5));
    let both = || {
        lacking(HERE);
        lacking(ELSEWHERE);
    };
    both();
    assert_eq!([round(&doubts), round(&doubts)], [[(7, 1)], [(8, 1)]]);
    both();
    assert_eq!(round(&doubts), [], "being asked");
    doubts.refused(HERE, UnixMillis(6));
    both();
    assert_eq!(round(&doubts), [(7, 1)]);
    doubts.refused(HERE, UnixMillis(6));
    doubts.refused(ELSEWHERE, UnixMillis(6));
    assert_eq!(round(&doubts), []);
    doubts.ask_refused(|channel| channel == ELSEWHERE);
    let reopened = (None, (ELSEWHERE, MessageId::new(0)));
    assert_eq!(doubts.unfinished(), Some(reopened));
    doubts.ask_refused(|channel| channel == ELSEWHERE);
    assert_eq!(doubts.unfinished(), None, "being asked");
}

/// What was heard and could not be kept is shown only after it was asked for.
#[test]
fn what_was_lost_is_hidden_until_it_is_shown() {
    let doubts = Doubts::default();
    let (here, elsewhere) = (trace(HERE, 1), trace(ELSEWHERE, 2));
    doubts.lost(in_channel(HERE), UnixMillis(5));
    assert!(doubts.hides(&here) && !doubts.hides(&elsewhere));
    assert_eq!(round(&doubts), [(7, 1)], "asked for by itself");
    doubts.settle(HERE, [MessageId::new(1)], UnixMillis(6));
    assert!(!doubts.hides(&here));

    // Lost while it is being asked for because of a gap.
    doubts.missed(Missed::Everything, UnixMillis(7));
    let asking = doubts.take_unconfirmed([here], 9);
    assert!(!doubts.hides(&here));
    doubts.lost(in_channel(HERE), UnixMillis(8));
    assert!(doubts.hides(&here));
    assert_eq!(asking.hand_over(), [here.key]);
    assert_eq!(round(&doubts), [], "handed over");
}

/// It stays hidden until it is purged.
#[test]
fn what_is_gone_is_hidden_and_not_asked_for() {
    let doubts = Doubts::default();
    doubts.gone(trace(HERE, 1).key);
    assert!(doubts.hides(&trace(HERE, 1)));
    assert_eq!(round(&doubts), []);
}

#[test]
fn a_channel_that_is_gone_leaves_no_doubts() {
    let doubts = Doubts::default();
    for channel in [HERE, ELSEWHERE] {
        doubts.lacking((None, channel), [MessageId::new(1)], UnixMillis(5));
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
        doubts.lacking((None, HERE), [MessageId::new(n)], time(n));
        assert_eq!(doubts.hides(&trace(HERE, n)), hidden, "{n}");
    }
}

/// Also if all were shown at the same time.
#[test]
fn so_many_that_were_shown_are_remembered() {
    let doubts = Doubts::default();
    let most = MOST_SETTLED as u64;
    doubts.settle(HERE, (1..=most).map(MessageId::new), UnixMillis(5));
    doubts.lacking((None, HERE), [1, most].map(MessageId::new), UnixMillis(5));
    assert_eq!(round(&doubts), []);
    doubts.settle(HERE, [MessageId::new(most + 1)], UnixMillis(5));
    assert!(doubts.inner.lock().settled.len() <= MOST_SETTLED);
}

/// A channel has room for only so many; the others are noted once those are
/// settled.
#[test]
fn what_there_is_no_room_for_waits_until_there_is() {
    let doubts = Doubts::default();
    let ids = || (1..=300).map(MessageId::new);
    doubts.lacking((None, HERE), ids(), UnixMillis(5));
    assert_eq!(doubts.unfinished(), None);
    doubts.settle(HERE, ids(), UnixMillis(6));
    assert!(
        doubts.due().now_or_never().is_some(),
        "it wakes whoever asks"
    );
    let last = MessageId::new(MOST_OF_A_CHANNEL as u64);
    assert_eq!(doubts.unfinished(), Some((None, (HERE, last))));
    assert_eq!(doubts.unfinished(), None, "told once");
}

/// A server may have a quarter of what others leave free, so that something is left for
/// whoever comes next. What it has no room for is hidden and noted once there is.
#[test]
fn no_server_takes_the_room_of_others() {
    let doubts = Doubts::default();
    let ids = || (1..=MOST_OF_A_CHANNEL as u64).map(MessageId::new);
    let place = |guild, channel| (Some(GuildId::new(guild)), ChannelId::new(channel));
    for channel in 1..=20 {
        doubts.lacking(place(1, channel), ids(), UnixMillis(5));
    }
    for channel in 21..=24 {
        doubts.lacking(place(1, channel), ids(), UnixMillis(5));
    }
    let of = |guild, channel, id| Trace {
        guild: Some(GuildId::new(guild)),
        ..trace(ChannelId::new(channel), id)
    };
    assert!(doubts.hides(&of(1, 24, 1)), "without room, too");
    for (guild, channel) in [(2, 30), (3, 31), (4, 32), (5, 33)] {
        doubts.lacking(place(guild, channel), ids(), UnixMillis(5));
    }
    doubts.missed(Missed::Everything, UnixMillis(6));
    for guild in 6..=9 {
        let asking = doubts.take_unconfirmed([of(guild, 30 + guild, 1)], 9);
        assert_eq!(asking.keys.len(), 1, "{guild}");
        drop(asking);
    }
    assert_eq!(doubts.unfinished(), None, "its room is taken");
    for channel in 1..=2 {
        doubts.settle(ChannelId::new(channel), ids(), UnixMillis(6));
    }
    let next = || doubts.unfinished().map(|(guild, key)| (guild, key.0.get()));
    assert_eq!(
        next(),
        Some((Some(GuildId::new(1)), 5)),
        "the first that found none"
    );
    doubts.lacking(place(1, 5), ids(), UnixMillis(7));
    assert_eq!(next(), None, "its room is taken again");
    doubts.settle(ChannelId::new(3), ids(), UnixMillis(7));
    assert_eq!(next(), Some((Some(GuildId::new(1)), 6)));
}

/// What Discord refuses to tell takes no room, is not asked for meanwhile, and stays
/// hidden if it was. A change of permissions has the channel looked through again.
#[test]
fn a_channel_that_refused_takes_no_room() {
    let doubts = Doubts::default();
    let ids = || (1..=MOST_OF_A_CHANNEL as u64).map(MessageId::new);
    for channel in (1..=100).map(ChannelId::new) {
        doubts.lacking((Some(GuildId::new(1)), channel), ids(), UnixMillis(5));
        doubts.refused(channel, UnixMillis(6));
    }
    let channel = ChannelId::new(3);
    let trace = Trace {
        guild: Some(GuildId::new(1)),
        ..trace(channel, 1)
    };
    assert!(doubts.hides(&trace));
    assert_eq!(round(&doubts), [], "it was refused");
    assert_eq!(doubts.unfinished(), None);
    doubts.ask_refused(|one| one == channel);
    let reopened = Some((Some(GuildId::new(1)), (channel, MessageId::new(0))));
    assert_eq!(doubts.unfinished(), reopened);
    assert!(doubts.hides(&trace));
    assert_eq!(round(&doubts), [(3, 1)]);
}
