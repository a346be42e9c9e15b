//! The queue and its bounds.

use futures_util::FutureExt;

use super::super::Fetched;
use super::*;

const HERE: ChannelId = ChannelId::new(7);

fn edit(bytes: usize) -> Edit {
    Edit {
        message: MessageId::new(1),
        author: UserId::new(5),
        words: Some("x".repeat(bytes)),
        at: None,
    }
}

fn edited(guild: u64, bytes: usize) -> DiscordChange {
    DiscordChange::Edited {
        guild: Some(GuildId::new(guild)),
        channel: ChannelId::new(guild),
        edit: edit(bytes),
    }
}

fn ids(count: u64) -> impl Iterator<Item = MessageId> {
    (1..=count).map(MessageId::new)
}

fn fetched(present: u64, edits: usize) -> DiscordChange {
    DiscordChange::Fetched(Fetched {
        at: UnixMillis(0),
        guild: None,
        channel: HERE,
        from: MessageId::new(0),
        to: MessageId::new(u64::MAX),
        present: ids(present).collect(),
        edited: vec![edit(edits)],
    })
}

/// Some of about a hundred thousand bytes each, and many small ones.
#[test]
fn what_waits_is_bounded_by_its_bytes() {
    let (channel, guild, user) = (HERE, GuildId::new(1), UserId::new(5));
    let number = 100_000 / 8;
    for (change, bytes) in [
        (edited(1, 100_000), 100_000),
        (
            DiscordChange::Deleted {
                guild: None,
                channel,
                ids: ids(number).collect(),
            },
            100_000,
        ),
        (
            DiscordChange::Unknown {
                channel,
                ids: ids(number).collect(),
            },
            100_000,
        ),
        (fetched(number / 2, 10), 100_000),
        (fetched(0, 100_000), 100_000),
        (fetched(number / 4, 50_000), 100_000),
        (
            DiscordChange::MemberLeft { guild, user },
            size_of::<DiscordChange>(),
        ),
    ] {
        let queue = ChangeQueue::default();
        let most = MOST_BYTES / bytes;
        // These are certainly too many, so one of them is the first to overflow.
        let mut pushes = (1..=most + 9).map(|waiting| (waiting, queue.push(change.clone())));
        let (waiting, overflow) = pushes
            .find(|(_, overflow)| *overflow != Overflow::default())
            .unwrap();
        assert!(
            (most * 9 / 10..=most + 1).contains(&waiting),
            "{waiting} of {bytes} bytes"
        );
        let channels = match change {
            DiscordChange::MemberLeft { .. } => BTreeSet::new(),
            DiscordChange::Edited { channel, .. } => BTreeSet::from([channel]),
            _ => BTreeSet::from([HERE]),
        };
        let changes = waiting;
        assert_eq!(overflow, Overflow { changes, channels });
        assert_eq!(queue.take(), []);
    }
}

/// Those who have most make room until half of it is free.
#[test]
fn who_has_most_makes_room() {
    let queue = ChangeQueue::default();
    let (half, part) = (MOST_BYTES / 2, MOST_BYTES / 16);
    for (guild, bytes) in [(2, part * 2), (9, part * 3), (4, part), (8, half - part)] {
        assert_eq!(queue.push(edited(guild, bytes)), Overflow::default());
    }
    // Nothing makes up for a deleted channel, so it stays.
    let gone = DiscordChange::ChannelDeleted(HERE);
    assert_eq!(queue.push(gone.clone()), Overflow::default());
    let overflow = queue.push(edited(8, part * 4));
    let channels = BTreeSet::from([ChannelId::new(8)]);
    assert_eq!(
        overflow,
        Overflow {
            changes: 2,
            channels
        }
    );
    // Half of the room is free again.
    let more = edited(1, half - part);
    assert_eq!(queue.push(more.clone()), Overflow::default());
    let left = [
        edited(2, part * 2),
        edited(9, part * 3),
        edited(4, part),
        gone,
        more,
    ];
    assert_eq!(queue.take(), left);
    assert_eq!(queue.put_back(left), Overflow::default());
    let channels = [1, 3].map(ChannelId::new).into();
    let overflow = queue.put_back([edited(3, part * 4)]);
    assert_eq!(
        overflow,
        Overflow {
            changes: 2,
            channels
        }
    );
}

/// A server left, joined and left again. Only a channel to be rechecked is
/// queued once.
#[test]
fn what_happens_twice_waits_twice() {
    let guild = GuildId::new(1);
    let (left, joined) = (
        DiscordChange::GuildLeft(guild),
        DiscordChange::GuildJoined(guild),
    );
    let recheck = |from| DiscordChange::Recheck {
        channel: HERE,
        from: MessageId::new(from),
    };
    let all = [
        left.clone(),
        joined,
        recheck(1),
        left,
        recheck(1),
        recheck(2),
    ];
    let queue = ChangeQueue::default();
    assert!(queue.came().now_or_never().is_none());
    for change in all.clone() {
        assert_eq!(queue.push(change), Overflow::default());
    }
    assert!(queue.came().now_or_never().is_some());
    let [left, joined, first, again, _, second] = all;
    assert_eq!(queue.take(), [left, joined, first, again, second]);
    assert_eq!(queue.take(), []);
}

#[test]
fn a_member_is_looked_up_once_a_day() {
    let queue = ChangeQueue::default();
    let member = |user| (GuildId::new(1), UserId::new(user));
    let due = || queue.due_members().now_or_never();
    assert_eq!(due(), None);
    queue.used(member(1), UnixMillis(0));
    queue.used(member(2), UnixMillis(5));
    assert_eq!(due(), Some(vec![member(1), member(2)]));
    queue.used(member(1), UnixMillis(A_DAY_MS - 1));
    assert_eq!(due(), None);
    queue.used(member(1), UnixMillis(A_DAY_MS));
    queue.used(member(2), UnixMillis(A_DAY_MS));
    assert_eq!(due(), Some(vec![member(1)]));
}
