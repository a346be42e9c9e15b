//! Queued changes: how they are merged, and which turns a purge reaches.

use std::time::Duration;

use super::noted::Noted;
use super::*;
use crate::memory::Place;
use clew_context::model::UserId;
use clew_store::model::{AgentName, Scope};

const HERE: ChannelId = ChannelId::new(7);
const ELSEWHERE: ChannelId = ChannelId::new(8);

fn deleted(channel: ChannelId, id: u64) -> DiscordChange {
    DiscordChange::Deleted {
        guild: None,
        channel,
        ids: vec![MessageId::new(id)],
    }
}

fn edited(id: u64, words: &str, at: Option<i64>) -> DiscordChange {
    DiscordChange::Edited {
        guild: None,
        channel: HERE,
        edit: Edit {
            message: MessageId::new(id),
            words: Some(words.to_owned()),
            at: at.map(UnixMillis),
        },
    }
}

#[test]
fn deletions_of_one_channel_in_a_row_become_one() {
    let all = together(vec![deleted(HERE, 1), deleted(HERE, 2), deleted(HERE, 3)]);
    let ids = [1, 2, 3].map(MessageId::new).to_vec();
    let one = DiscordChange::Deleted {
        guild: None,
        channel: HERE,
        ids,
    };
    assert_eq!(all, [one]);
}

#[test]
fn what_stands_between_deletions_keeps_them_apart() {
    let changes = vec![
        deleted(HERE, 1),
        deleted(ELSEWHERE, 2),
        deleted(HERE, 3),
        edited(4, "words", Some(1)),
        deleted(HERE, 5),
    ];
    assert_eq!(together(changes.clone()), changes);
}

#[test]
fn of_the_edits_of_a_message_the_last_one_by_a_person_is_done() {
    let changes = vec![
        edited(4, "first", Some(1)),
        edited(6, "another's", Some(1)),
        edited(4, "last", Some(2)),
        edited(4, "last, with a preview", None),
    ];
    assert_eq!(together(changes.clone()), changes[1..]);
    // The update with a preview is older than the edit after it, so it is dropped.
    let changes = vec![
        edited(4, "with a preview", None),
        edited(4, "last", Some(2)),
    ];
    assert_eq!(together(changes.clone()), changes[1..]);
}

/// A turn that began earlier is not stored. A question at the very time of its
/// asker's erasure counts as asked after it.
#[test]
fn what_is_gone_is_gone_for_turns_that_began_before() {
    const GUILD: GuildId = GuildId::new(1);
    const USER: UserId = UserId::new(5);
    let place = |guild: u64, channel, asker| Place {
        scope: Scope::Thread {
            guild: GuildId::new(guild),
            channel,
        },
        agent: AgentName::default_agent(),
        guild: Some(GuildId::new(guild)),
        channel,
        asker,
        rolling_window: Duration::ZERO,
    };
    let other = UserId::new(6);
    let (guild, user) = (GUILD, USER);
    // Each purge, and whether it reaches the turns of the channel, member and user.
    let (in_channel, of_member) = (place(2, HERE, other), place(1, ELSEWHERE, USER));
    let (of_user, nobodys) = (place(2, ELSEWHERE, USER), place(1, ELSEWHERE, other));
    for (purge, at_once, reached) in [
        (Purge::Channel(HERE), true, [true, false, false]),
        (Purge::Member { guild, user }, true, [false, true, false]),
        (Purge::User(USER), false, [false, true, true]),
    ] {
        let noted = Noted::default();
        noted.gone(Party::Channel(HERE), &purge, UnixMillis(9));
        for (place, reached) in [&in_channel, &of_member, &of_user].into_iter().zip(reached) {
            let gone = |since| noted.is_gone(place, UnixMillis(since));
            assert_eq!(gone(8), reached, "{purge:?} {place:?}");
            assert_eq!(gone(9), reached && at_once, "{purge:?} {place:?}");
            assert!(!gone(10), "{purge:?} {place:?}");
        }
        assert!(!noted.is_gone(&nobodys, UnixMillis(8)), "{purge:?}");
    }
}
