//! The queue and its bounds.

use futures_util::FutureExt;

use super::super::{Edit, Fetched};
use super::*;

const HERE: ChannelId = ChannelId::new(7);

fn edit(bytes: usize) -> Edit {
    Edit {
        message: MessageId::new(1),
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

fn dropped(changes: usize, channels: BTreeMap<ChannelId, Option<GuildId>>) -> Overflow {
    Overflow {
        changes,
        channels,
        guilds: BTreeSet::new(),
    }
}

/// The channel of [`edited`] in that server.
fn channel_of(guild: u64) -> (ChannelId, Option<GuildId>) {
    (ChannelId::new(guild), Some(GuildId::new(guild)))
}

fn channel_deleted(guild: u64, channel: u64) -> DiscordChange {
    DiscordChange::ChannelDeleted {
        guild: Some(GuildId::new(guild)),
        channel: ChannelId::new(channel),
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
        let mut pushes = (1..=most + 9).map(|waiting| (waiting, queue.push(change.clone(), None)));
        let (waiting, overflow) = pushes
            .find(|(_, overflow)| *overflow != Overflow::default())
            .unwrap();
        assert!(
            (most * 9 / 10..=most + 1).contains(&waiting),
            "{waiting} of {bytes} bytes"
        );
        let channels = match change {
            DiscordChange::MemberLeft { .. } => BTreeMap::new(),
            DiscordChange::Edited { channel, guild, .. } => BTreeMap::from([(channel, guild)]),
            _ => BTreeMap::from([(HERE, None)]),
        };
        assert_eq!(overflow, dropped(waiting, channels));
        assert!(taken(&queue).is_empty());
    }
}

fn taken(queue: &ChangeQueue) -> Vec<DiscordChange> {
    queue.take(|changes| changes).to_vec()
}

/// An edit that is being carried out counts until that is done.
#[test]
fn edits_wait_until_they_are_carried_out() {
    let queue = ChangeQueue::default();
    let change = edited(1, 10);
    let count = || queue.edits_waiting(|_, _| true).len();
    queue.push(change.clone(), None);
    assert_eq!((count(), queue.channels().len()), (1, 1));
    queue.take(|changes| changes);
    assert_eq!((count(), queue.channels().len()), (1, 1));
    queue.put_back([change]);
    assert_eq!(count(), 1, "once");
    queue.take(|changes| changes);
    queue.carried_out();
    assert_eq!((count(), queue.channels().len()), (0, 0));
}

/// What is noted of a change stays noted as long as it waits, however it is put back, and not
/// for those that come later.
#[test]
fn a_change_is_under_way_until_it_is_carried_out() {
    let queue = ChangeQueue::default();
    let push = |guild| {
        let under_way = queue.noted.begins(None);
        let since = under_way.since;
        queue.noted.deleted(None, HERE, &[MessageId::new(guild)]);
        queue.push(edited(guild, 10), Some(under_way));
        since
    };
    let stored = || queue.noted.stored_revision();
    let first = push(1);
    let taken = taken(&queue);
    let second = push(2);
    assert_eq!(stored(), first);
    queue.put_back(taken);
    assert_eq!(stored(), first);
    queue.take(|changes| changes);
    let third = push(3);
    assert_eq!(stored(), first);
    queue.carried_out();
    assert!(second < third);
    assert_eq!(stored(), third);
    queue.take(|changes| changes);
    queue.carried_out();
    assert_eq!(stored(), queue.noted.revision());
}

/// Those who have most make room until half of it is free.
#[test]
fn who_has_most_makes_room() {
    let queue = ChangeQueue::default();
    let (half, part) = (MOST_BYTES / 2, MOST_BYTES / 16);
    for (guild, bytes) in [(2, part * 2), (9, part * 3), (4, part), (8, half - part)] {
        assert_eq!(queue.push(edited(guild, bytes), None), Overflow::default());
    }
    let overflow = queue.push(edited(8, part * 4), None);
    assert_eq!(overflow, dropped(2, BTreeMap::from([channel_of(8)])));
    // Half of the room is free again.
    let more = edited(1, half - part);
    assert_eq!(queue.push(more.clone(), None), Overflow::default());
    let left = [
        edited(2, part * 2),
        edited(9, part * 3),
        edited(4, part),
        more,
    ];
    assert_eq!(taken(&queue), left);
    assert_eq!(queue.put_back(left), Overflow::default());
    let channels = [1, 3].map(channel_of).into();
    let overflow = queue.put_back([edited(3, part * 4)]);
    assert_eq!(overflow, dropped(2, channels));
}

/// Nothing makes up for a deleted channel, so it stays, and pushes out nobody else's. Who
/// deletes more than can be kept is in doubt as a whole.
#[test]
fn deleted_channels_take_nobodys_room() {
    let queue = ChangeQueue::default();
    let others = edited(2, 100_000);
    assert_eq!(queue.push(others.clone(), None), Overflow::default());
    let other = channel_deleted(2, 1);
    assert_eq!(queue.push(other.clone(), None), Overflow::default());
    for channel in 2..=MOST_CHANNELS as u64 {
        assert_eq!(
            queue.push(channel_deleted(1, channel), None),
            Overflow::default()
        );
    }
    assert_eq!(
        queue.push(channel_deleted(1, 2), None),
        Overflow::default(),
        "twice"
    );
    let overflow = queue.push(channel_deleted(3, 70_000), None);
    let expected = Overflow {
        changes: MOST_CHANNELS - 1,
        channels: BTreeMap::new(),
        guilds: BTreeSet::from([GuildId::new(1)]),
    };
    assert_eq!(overflow, expected);
    assert_eq!(taken(&queue), [other, channel_deleted(3, 70_000), others]);
}

/// A server left, joined and left again: the last counts. A channel is rechecked once,
/// from the first message in doubt on, when all else is done.
#[test]
fn of_what_happens_twice_the_last_counts() {
    let (guild, other) = (GuildId::new(1), GuildId::new(2));
    let connected = |shard, guilds| DiscordChange::Connected {
        shard,
        shards: 2,
        guilds,
    };
    let recheck = |from| DiscordChange::Recheck {
        guild: Some(guild),
        channel: HERE,
        from: MessageId::new(from),
    };
    let queue = ChangeQueue::default();
    assert!(queue.came.notified().now_or_never().is_none());
    for change in [
        connected(0, vec![guild]),
        connected(1, vec![guild]),
        DiscordChange::GuildLeft(guild),
        DiscordChange::GuildJoined(guild),
        recheck(2),
        DiscordChange::GuildJoined(other),
        DiscordChange::GuildLeft(guild),
        recheck(1),
        connected(0, vec![other]),
        recheck(3),
    ] {
        assert_eq!(queue.push(change, None), Overflow::default());
    }
    assert!(queue.came.notified().now_or_never().is_some());
    let left = [
        connected(1, vec![guild]),
        DiscordChange::GuildJoined(other),
        DiscordChange::GuildLeft(guild),
        connected(0, vec![other]),
        recheck(1),
    ];
    assert_eq!(taken(&queue), left);
    assert!(taken(&queue).is_empty());
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
