//! Turns that wait: their order, their bounds, and what happens to them.

use super::*;
use clew_context::model::ContentSource;
use clew_context::model::TurnId;
use clew_store::model::{ReceiptPerson, StoredRole};

fn turn(guild: u64, user: u64, turn: u64, text: &str) -> UnsavedTurn {
    let (guild, user) = (GuildId::new(guild), UserId::new(user));
    let channel = ChannelId::new(7);
    let row = |role, message, content: String| StoredMessage {
        scope: Scope::Member {
            guild,
            channel,
            user,
        },
        agent: AgentName::default_agent(),
        turn: TurnId(turn),
        ordinal: 0,
        role,
        guild: Some(guild),
        channel,
        owner: user,
        author_name: None,
        content,
        tool_calls: None,
        tool_call_id: None,
        timestamp: UnixMillis(i64::try_from(turn).unwrap()),
        message: Some(MessageId::new(message)),
        parts: Vec::new(),
        target: None,
        restored_from: None,
        sources: Vec::new(),
    };
    let rows = vec![
        row(StoredRole::User, turn * 10, text.to_owned()),
        row(StoredRole::Assistant, turn * 10 + 1, format!("re: {text}")),
    ];
    let ids = Ids {
        guild: Some(guild),
        user: Some(user),
        ..Ids::default()
    };
    UnsavedTurn::new(ids, UnixMillis(0), &AgentName::default_agent(), rows, None).unwrap()
}

fn texts(unsaved: &Unsaved) -> Vec<String> {
    let turns = unsaved.turns.lock();
    let rows = turns.waiting.iter().flat_map(|one| one.turn.rows.iter());
    rows.map(|row| row.content.clone()).collect()
}

fn next(unsaved: &Unsaved) -> Option<Moving<'_>> {
    match unsaved.next(&BTreeSet::new(), |_| true) {
        Next::Turn(moving) => Some(*moving),
        Next::Wait | Next::Nothing => None,
    }
}

fn deleted(message: u64) -> Purge {
    Purge::Messages {
        channel: ChannelId::new(7),
        ids: vec![MessageId::new(message)],
    }
}

#[test]
fn a_conversation_is_stored_in_its_order_and_others_do_not_wait_for_it() {
    let unsaved = Unsaved::default();
    for one in [turn(1, 1, 1, "a"), turn(1, 1, 2, "b"), turn(1, 2, 3, "c")] {
        assert_eq!(unsaved.keep(one), []);
    }
    let first = next(&unsaved).unwrap();
    let other = next(&unsaved).unwrap();
    assert_eq!(first.turn.rows[0].content, "a");
    assert_eq!(other.turn.rows[0].content, "c");
    assert!(matches!(
        unsaved.next(&BTreeSet::new(), |_| true),
        Next::Wait
    ));
    other.stored();
    drop(first);
    assert_eq!(
        texts(&unsaved),
        ["a", "re: a", "b", "re: b"],
        "it failed, and waits on"
    );
    next(&unsaved).unwrap().stored();
    next(&unsaved).unwrap().stored();
    assert!(matches!(
        unsaved.next(&BTreeSet::new(), |_| true),
        Next::Nothing
    ));
    assert!(unsaved.is_empty());
}

/// It came after the answer was there, and before all of it was kept.
#[test]
fn an_edit_of_the_early_question_lasts() {
    let unsaved = Unsaved::default();
    let mut early = turn(1, 1, 1, "asked");
    early.is_early = true;
    unsaved.keep(early);
    unsaved.edit(ChannelId::new(7), MessageId::new(10), "reworded");
    unsaved.keep(turn(1, 1, 1, "asked"));
    assert_eq!(texts(&unsaved), ["reworded", "re: asked"]);
}

#[test]
fn what_is_refused_is_passed_by_its_conversation_in_the_end() {
    let unsaved = Unsaved::default();
    unsaved.keep(turn(1, 1, 1, "refused"));
    unsaved.keep(turn(1, 1, 2, "next"));
    unsaved.keep(turn(1, 2, 3, "other"));
    for tries in 1..=TRIES_IN_ORDER {
        let refused = next(&unsaved).unwrap();
        assert_eq!(refused.turn.rows[0].content, "refused");
        let held_up = unsaved.held_up_by(&refused.turn);
        let expected: &[u64] = if tries < TRIES_IN_ORDER {
            &[0, 1]
        } else {
            &[0]
        };
        assert_eq!(held_up, expected, "{tries}");
    }
}

#[test]
fn who_takes_most_makes_room() {
    let unsaved = Unsaved::default();
    let large = "x".repeat(MOST_BYTES / 64);
    // One user of one server takes nearly all the room, the others little.
    unsaved.keep(turn(1, 1, 1, "modest"));
    unsaved.keep(turn(2, 2, 2, "neighbour"));
    let mut gone = Vec::new();
    for number in 10..100 {
        gone.extend(unsaved.keep(turn(2, 3, number, &large)));
    }
    assert!(!gone.is_empty());
    assert!(
        gone.iter().all(|ids| ids.user == Some(UserId::new(3))),
        "{gone:?}"
    );
    let kept = texts(&unsaved);
    assert!(kept.contains(&"modest".to_owned()) && kept.contains(&"neighbour".to_owned()));
    assert!(unsaved.turns.lock().bytes <= MOST_BYTES);
    let numbers: Vec<u64> = unsaved
        .turns
        .lock()
        .waiting
        .iter()
        .map(|one| one.turn.key.turn.0)
        .collect();
    assert_eq!(numbers.last(), Some(&99), "the oldest go: {numbers:?}");
}

/// Words, tool calls and names count; this many fit, to the byte.
#[test]
fn what_waits_is_bounded_by_its_bytes() {
    let each = MOST_BYTES / 256;
    let large = |number: u64| {
        let mut turn = turn(1, 1, number, "");
        let bytes = each - turn.bytes();
        let rows = Arc::make_mut(&mut turn.rows);
        match number % 3 {
            0 => rows[0].content = "x".repeat(bytes),
            1 => rows[1].tool_calls = Some("x".repeat(bytes)),
            _ => rows[1].author_name = Some("x".repeat(bytes)),
        }
        turn
    };
    let unsaved = Unsaved::default();
    for number in 1..=256 {
        assert_eq!(unsaved.keep(large(number)), []);
    }
    for number in 257..=300 {
        assert_eq!(unsaved.keep(large(number)).len(), 1);
        assert_eq!(unsaved.len(), 256);
    }
    // Another attempt at a turn replaces the first.
    for _ in 0..9 {
        assert_eq!(unsaved.keep(large(300)), []);
    }
    assert_eq!(unsaved.keep(turn(1, 1, 300, "little")), []);
    assert_eq!(unsaved.keep(turn(1, 1, 301, "one more")), []);
    assert_eq!(unsaved.keep(large(302)).len(), 1);
}

/// Rows of tools may have little text, but there are many, and each has all sources.
#[test]
fn all_that_a_turn_holds_counts() {
    let source = ContentSource {
        guild: Some(GuildId::new(1)),
        channel: ChannelId::new(7),
        message: Some(MessageId::new(8)),
        author: Some(UserId::new(9)),
    };
    let bytes = |change: &dyn Fn(&mut Vec<StoredMessage>)| {
        let mut turn = turn(1, 1, 1, "x");
        change(Arc::make_mut(&mut turn.rows));
        turn.bytes()
    };
    let plain = bytes(&|_| ());
    let check = |least: usize, change: &dyn Fn(&mut Vec<StoredMessage>)| {
        let more = bytes(change) - plain;
        assert!(more >= least, "{more} < {least}");
    };
    check(50 * size_of::<StoredMessage>(), &|rows| {
        rows.resize(52, rows[0].clone());
    });
    check(300 * size_of::<ContentSource>(), &|rows| {
        rows[1].sources = vec![source; 300];
    });
    check(800, &|rows| rows[1].parts = vec![MessageId::new(1); 100]);
    check(700, &|rows| rows[1].tool_calls = Some("x".repeat(700)));
    check(64, &|rows| rows[1].tool_call_id = Some("x".repeat(64)));

    let with_receipt = |people: u64, messages: usize| {
        let mut turn = turn_with_receipt(true);
        let receipt = Arc::make_mut(turn.receipt.as_mut().unwrap());
        let person = |id| ReceiptPerson {
            guild: None,
            author: Some(UserId::new(id)),
        };
        receipt.people = (1..=people).map(person).collect();
        receipt.messages = vec![MessageId::new(1); messages];
        turn.bytes()
    };
    let few = with_receipt(0, 0);
    assert!(with_receipt(1_000, 0) >= few + 1_000 * size_of::<ReceiptPerson>());
    assert!(with_receipt(0, 100) >= few + 800);
    assert!(few >= plain + size_of::<StoredReceipt>());
}

#[test]
fn many_small_ones_are_bounded_by_their_number() {
    let unsaved = Unsaved::default();
    let mut gone = 0;
    for number in 1..=MOST_TURNS as u64 + 10 {
        gone += unsaved
            .keep(turn(number % 50 + 1, number % 7 + 1, number, "x"))
            .len();
    }
    assert_eq!((unsaved.len(), gone), (MOST_TURNS, 10));
}

#[test]
fn what_is_deleted_goes_as_it_goes_from_a_store() {
    let unsaved = Unsaved::default();
    for one in [turn(1, 1, 1, "a"), turn(1, 1, 2, "b"), turn(1, 2, 3, "c")] {
        unsaved.keep(one);
    }
    unsaved.purge(&deleted(10));
    assert_eq!(
        texts(&unsaved),
        ["b", "re: b", "c", "re: c"],
        "a question, its turn"
    );
    unsaved.purge(&deleted(21));
    assert_eq!(texts(&unsaved), ["b", "c", "re: c"], "an answer, itself");
    unsaved.purge(&Purge::User(UserId::new(2)));
    unsaved.edit(ChannelId::new(7), MessageId::new(20), "edited");
    assert_eq!(texts(&unsaved), ["edited"]);
    unsaved.purge(&Purge::Guild(GuildId::new(1)));
    assert!(unsaved.is_empty());
    assert_eq!(unsaved.turns.lock().bytes, 0);
}

#[test]
fn what_changes_on_its_way_is_stored_again() {
    let unsaved = Unsaved::default();
    unsaved.keep(turn(1, 1, 1, "before"));
    let moving = next(&unsaved).unwrap();
    unsaved.edit(ChannelId::new(7), MessageId::new(10), "after");
    moving.stored();
    let again = next(&unsaved).unwrap();
    assert_eq!(again.turn.rows[0].content, "after");
    assert!(again.turn.is_logged);
    // The store may have it by now, or get it late: it is told to purge it.
    unsaved.purge(&deleted(10));
    again.stored();
    let gone = next(&unsaved).unwrap();
    assert!(gone.turn.rows.is_empty());
    assert_eq!(gone.turn.purges, [deleted(10)]);
    gone.stored();
    assert!(unsaved.is_empty());
}

#[test]
fn an_earlier_attempt_at_a_turn_is_replaced() {
    let unsaved = Unsaved::default();
    unsaved.keep(turn(1, 1, 1, "a"));
    unsaved.keep(turn(1, 1, 2, "b"));
    unsaved.keep(turn(1, 1, 1, "a, edited"));
    assert_eq!(
        texts(&unsaved),
        ["a, edited", "re: a, edited", "b", "re: b"]
    );
    // What was deleted while the first was on its way must be deleted all the same.
    let moving = next(&unsaved).unwrap();
    unsaved.purge(&deleted(10));
    drop(moving);
    unsaved.keep(turn(1, 1, 1, "a, edited twice"));
    let again = next(&unsaved).unwrap();
    assert_eq!(again.turn.rows[0].content, "a, edited twice");
    assert_eq!(again.turn.purges, [deleted(10)]);
}

/// A clear covers a server or direct messages, and everybody or one user.
#[test]
fn a_clear_reaches_what_waits_of_it() {
    let one = turn(1, 5, 1, "a");
    let key = |guild: Option<u64>, user: Option<u64>| ClearKey {
        agent: AgentName::default_agent(),
        guild: guild.map(GuildId::new),
        user: user.map(UserId::new),
    };
    for (guild, user, is_cleared) in [
        (Some(1), None, true),
        (Some(1), Some(5), true),
        (Some(1), Some(6), false),
        (Some(2), None, false),
        (Some(2), Some(5), false),
        (None, Some(5), false),
    ] {
        let key = key(guild, user);
        assert_eq!(one.is_cleared_by(&key), is_cleared, "{key:?}");
        let other = ClearKey {
            agent: "scribe".parse().unwrap(),
            ..key
        };
        assert!(!one.is_cleared_by(&other), "{other:?}");
    }
}

#[test]
fn what_waits_is_found_by_its_conversation_and_its_messages() {
    let unsaved = Unsaved::default();
    assert!(unsaved.is_empty() && !unsaved.waits(|_| true));
    unsaved.keep(turn(1, 1, 1, "a"));
    assert!(!unsaved.is_empty());
    let (hers, his) = (turn(1, 1, 2, "b"), turn(1, 2, 3, "c"));
    let of = |turn: &UnsavedTurn| turn.key.scope;
    assert!(unsaved.waits(|one| one.key.scope == of(&hers)));
    assert!(!unsaved.waits(|one| one.key.scope == of(&his)));
    let messages = |channel| unsaved.messages(ChannelId::new(channel));
    assert_eq!(messages(7), [10, 11].map(MessageId::new).into());
    assert_eq!(messages(8), BTreeSet::new());
    // What is held up or does not match is not given out.
    let held_up = BTreeSet::from([0]);
    unsaved.keep(his);
    let hers = |one: &UnsavedTurn| one.ids.user == Some(UserId::new(1));
    assert!(matches!(unsaved.next(&held_up, hers), Next::Nothing));
}

#[test]
fn a_prompt_has_what_waits_behind_what_is_stored() {
    let unsaved = Unsaved::default();
    let stored = turn(1, 1, 1, "stored");
    let mut rows: Vec<StoredMessage> = stored.rows.to_vec();
    for row in &mut rows {
        row.ordinal = 4;
    }
    // Stored, but the store's reply was lost: it is in the store and waits as well.
    unsaved.keep(turn(1, 1, 1, "stored"));
    unsaved.keep(turn(1, 1, 2, "waits"));
    unsaved.keep(turn(1, 9, 3, "somebody else's"));
    let (scope, agent) = (rows[0].scope, rows[0].agent.clone());
    unsaved.add_to(&mut rows, scope, &agent, UnixMillis(0));
    let seen: Vec<_> = rows.iter().map(|row| row.content.as_str()).collect();
    assert_eq!(seen, ["stored", "re: stored", "waits", "re: waits"]);
    assert!(rows[0].ordinal < rows[2].ordinal);
    let mut rows = Vec::new();
    unsaved.add_to(&mut rows, scope, &agent, UnixMillis(1));
    assert_eq!(rows.len(), 2, "later than the window's beginning");
}

/// A turn that is being stored is left to whoever stores it.
#[test]
fn turns_of_one_user_are_let_go_of() {
    let unsaved = Unsaved::default();
    for one in [turn(1, 1, 1, "a"), turn(1, 2, 2, "b"), turn(1, 1, 3, "c")] {
        unsaved.keep(one);
    }
    let moving = next(&unsaved).unwrap();
    assert!(
        moving.turn.ids.user == Some(UserId::new(1))
            && moving.turn.ids.user != Some(UserId::new(2))
    );
    unsaved.forget(|one| one.ids.user == Some(UserId::new(1)));
    assert_eq!(texts(&unsaved), ["a", "re: a", "b", "re: b"]);
}

/// The receipt of a turn's answer; `rows` says whether the answer was whole.
fn turn_with_receipt(whole: bool) -> UnsavedTurn {
    let UnsavedTurn { ids, key, rows, .. } = turn(1, 1, 1, "a");
    let receipt = StoredReceipt {
        turn: key.turn,
        scope: key.scope,
        guild: Some(GuildId::new(1)),
        channel: ChannelId::new(7),
        owner: UserId::new(1),
        is_private: false,
        trigger: Some(MessageId::new(10)),
        messages: vec![MessageId::new(11)],
        at: UnixMillis(0),
        people: BTreeSet::new(),
        body: "x".repeat(100),
    };
    let rows = if whole { rows.to_vec() } else { Vec::new() };
    UnsavedTurn::new(ids, UnixMillis(0), &key.agent, rows, Some(receipt)).unwrap()
}

#[test]
fn a_receipt_waits_with_its_turn_and_goes_with_what_it_is_of() {
    for whole in [true, false] {
        for purge in [deleted(10), deleted(11), Purge::User(UserId::new(1))] {
            let unsaved = Unsaved::default();
            unsaved.keep(turn_with_receipt(whole));
            unsaved.purge(&deleted(12));
            let found = |unsaved: &Unsaved| unsaved.last_receipt(|_| true).is_some();
            assert!(found(&unsaved), "{purge:?}");
            unsaved.purge(&purge);
            assert!(!found(&unsaved), "{purge:?}");
        }
        // Once it may be stored, what deletes it is carried out there, too.
        let unsaved = Unsaved::default();
        unsaved.keep(turn_with_receipt(whole));
        drop(next(&unsaved).unwrap());
        unsaved.purge(&deleted(11));
        let moving = next(&unsaved).unwrap();
        assert_eq!(moving.turn.purges, [deleted(11)]);
        assert_eq!(moving.turn.receipt, None);
        let left = moving.turn.rows.len();
        assert_eq!(left, usize::from(whole), "the question is left");
        moving.stored();
        assert_eq!(unsaved.len(), 0);
    }
}
