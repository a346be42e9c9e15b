//! What stays noted, and for whom.

use super::*;
use clew_context::model::{Author, Message, MessageFlags, MessageKind, Referenced, UserId};
use clew_store::model::{AgentName, Scope, StoredRole};

const HERE: ChannelId = ChannelId::new(7);
const GUILD: GuildId = GuildId::new(1);
const OTHERS: GuildId = GuildId::new(2);
const TURN: TurnId = TurnId(77);

fn ids(from: u64, count: usize) -> Vec<MessageId> {
    (from..).take(count).map(MessageId::new).collect()
}

/// Somebody deletes so many messages of a channel of another server.
fn flood(noted: &Noted, guild: GuildId, count: usize) {
    for first in (0..count).step_by(100) {
        let ids = ids(10_000 + first as u64, 100);
        noted.deleted(Some(guild), ChannelId::new(guild.get()), &ids);
    }
}

fn edit(id: u64, at: Option<i64>) -> Edit {
    Edit {
        message: MessageId::new(id),
        words: None,
        at: at.map(UnixMillis),
    }
}

/// An answer in our channel that was made from a message there.
fn row(source: u64) -> StoredMessage {
    StoredMessage {
        scope: Scope::Direct(UserId::new(5)),
        agent: AgentName::default_agent(),
        turn: TURN,
        ordinal: 1,
        role: StoredRole::Assistant,
        guild: Some(GUILD),
        channel: HERE,
        owner: UserId::new(5),
        author_name: None,
        content: String::new(),
        tool_calls: None,
        tool_call_id: None,
        timestamp: UnixMillis(0),
        message: None,
        parts: Vec::new(),
        target: None,
        restored_from: None,
        sources: vec![ContentSource {
            guild: Some(GUILD),
            channel: HERE,
            message: Some(MessageId::new(source)),
            author: None,
        }],
    }
}

fn blank(id: u64) -> Message {
    Message {
        id: MessageId::new(id),
        channel: HERE,
        guild: None,
        kind: MessageKind::Default,
        author: Author {
            id: UserId::new(5),
            name: "Ada".into(),
            bot: false,
            webhook: false,
            application: None,
        },
        timestamp: UnixMillis(0),
        edited: None,
        flags: MessageFlags::default(),
        content: "".into(),
        reference: None,
        referenced: Referenced::Absent,
        mentions: Box::default(),
        mention_roles: Box::default(),
        extras: None,
        withheld: false,
    }
}

#[test]
fn what_comes_while_a_turn_is_under_way_stays_noted() {
    let noted = Noted::default();
    let deleted = |noted: &Noted| noted.deleted_of(HERE, ids(1, 3));
    let edits = |noted: &Noted| noted.edits_of(&[row(3)]).len();
    let gone = |noted: &Noted| noted.gone_since(UnixMillis(8), |_| true).len();
    let kept = |noted: &Noted| (deleted(noted), edits(noted), gone(noted));
    let note_all = || {
        noted.deleted(Some(GUILD), HERE, &ids(1, 2));
        noted.edited(Some(GUILD), HERE, &[edit(3, Some(9)), edit(4, None)]);
        noted.gone(Party::Channel(HERE), &Purge::Channel(HERE), UnixMillis(9));
    };
    let turn = noted.begins(Some(TURN));
    note_all();
    flood(&noted, OTHERS, 2 * MOST);
    let all = (ids(1, 2), 1, 1);
    assert_eq!(kept(&noted), all);
    assert!(
        !noted.is_unknown(TURN, &[row(1)], None),
        "others lost theirs"
    );
    drop(turn);
    assert_eq!(kept(&noted), (Vec::new(), 0, 0));
    // Without a turn the newest stay all the same.
    note_all();
    flood(&noted, OTHERS, MOST_AFTERWARDS - 100);
    assert_eq!(kept(&noted), all);
    flood(&noted, OTHERS, 100);
    assert_eq!(kept(&noted), (Vec::new(), 0, 0));
    assert!(noted.notes.lock().messages.len() <= MOST_AFTERWARDS);
}

/// What a store says may be from before any change that waits, turns under way or not.
#[test]
fn what_is_noted_of_a_change_is_not_stored_until_it_is_carried_out() {
    let noted = Noted::default();
    let _turn = noted.begins(Some(TURN));
    let change = noted.begins(None);
    noted.deleted(Some(GUILD), HERE, &ids(1, 1));
    let later = noted.begins(None);
    assert_eq!(noted.stored_revision(), change.since);
    drop(change);
    assert_eq!(noted.stored_revision(), later.since);
    drop(later);
    assert_eq!(noted.stored_revision(), noted.revision());
}

/// Of a turn whose own server fills the room, unknown is no.
#[test]
fn who_fills_the_room_is_known_to_have_lost_notes() {
    let noted = Noted::default();
    let before = noted.begins(Some(TURN));
    noted.deleted(Some(GUILD), HERE, &ids(1, 1));
    flood(&noted, OTHERS, 200);
    flood(&noted, GUILD, MOST);
    assert!(noted.notes.lock().order.len() <= MOST);
    assert!(noted.is_unknown(TURN, &[row(1)], None));
    let elsewhere = |guild, channel| StoredMessage {
        guild,
        channel,
        sources: Vec::new(),
        ..row(1)
    };
    for (guild, channel, unknown) in [
        (Some(GUILD), ChannelId::new(9), true),
        (Some(OTHERS), ChannelId::new(2), false),
        (None, ChannelId::new(9), false),
    ] {
        let rows = [elsewhere(guild, channel)];
        assert_eq!(noted.is_unknown(TURN, &rows, None), unknown, "{rows:?}");
    }
    // Turns that begin later do not need what was lost.
    let later = TurnId(78);
    let _later = noted.begins(Some(later));
    assert!(!noted.is_unknown(later, &[row(1)], None));
    drop(before);
    assert!(noted.notes.lock().losers.is_empty());
}

#[test]
fn what_became_of_a_message_is_told_by_its_last_edit() {
    let noted = Noted::default();
    let message = |id: u64, edited: Option<i64>| Message {
        edited: edited.map(UnixMillis),
        ..blank(id)
    };
    noted.edited(Some(GUILD), HERE, &[edit(2, Some(9)), edit(3, None)]);
    noted.unread(Some(GUILD), (HERE, MessageId::new(4)), UnixMillis(20));
    let _turn = noted.begins(Some(TURN));
    let began = noted.revision();
    let became = |id, edited| {
        let noted = noted.after(began);
        noted.became(Some(GUILD), &message(id, edited))
    };
    noted.deleted(Some(GUILD), HERE, &ids(1, 1));
    noted.unread(Some(GUILD), (HERE, MessageId::new(5)), UnixMillis(20));
    let at = |at| Became::Edited(UnixMillis(at));
    for (id, edited, expected) in [
        (1, None, Became::Gone),
        (2, None, at(9)),
        (2, Some(8), at(9)),
        // It was read with its new words.
        (2, Some(9), Became::Unchanged),
        // A preview is no edit.
        (3, None, Became::Unchanged),
        // The turn began afterwards.
        (4, None, Became::Unchanged),
        (5, None, Became::Gone),
        (6, None, Became::Unchanged),
    ] {
        assert_eq!(became(id, edited), expected, "{id} {edited:?}");
    }
    noted.gone(Party::Channel(HERE), &Purge::Channel(HERE), UnixMillis(9));
    assert_eq!(became(6, None), Became::Gone);
}
