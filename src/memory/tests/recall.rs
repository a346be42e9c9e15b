//! Earlier exchanges that match the question.

use super::*;
use crate::memory::Edit;
use crate::memory::recall::{MOST_OF_ALL, MOST_STORED};
use clew_context::model::ContentSource;
use clew_store::{ExchangeQuery, Exchanges, Record, TurnKey};

/// What is recalled for a question, oldest first.
async fn recalled(s: &Scene, place: &Place, question: &str) -> Vec<String> {
    let turn = TurnId(u64::MAX >> 1);
    let earlier = s
        .memory
        .earlier(&Ids::default(), place, turn, question)
        .await;
    let mut rows = earlier.recalled;
    rows.truncate(s.memory.settings().recall);
    let mut rows = rows.concat();
    rows.sort_by_key(|row| row.ordinal);
    rows.into_iter().map(|row| row.content).collect()
}

/// A question about a pump, and as many others as fill a prompt's history.
async fn long_ago(s: &Scene, place: &Place) {
    // The agent is known from now on.
    s.rows(place).await;
    s.ask(place, 10, "my pump is called Berta").await;
    fill(s, place, 100).await;
}

async fn fill(s: &Scene, place: &Place, first: u64) {
    for number in 0..20 {
        s.pass(HOUR_MS);
        s.ask(place, first + 10 * number, "saffron").await;
    }
}

const HOUR_MS: i64 = 3_600_000;
const ABOUT_PUMP: [&str; 2] = ["my pump is called Berta", "so: my pump is called Berta"];
const QUESTION: &str = "What is the name of my pump?";

#[tokio::test]
async fn what_matches_is_recalled_however_old() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.ask(&here, 10, "my pump is called Berta").await;
    // In the history it is not shown twice.
    assert_eq!(recalled(&s, &here, QUESTION).await, [""; 0]);
    fill(&s, &here, 100).await;
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    // Asked again after an edit, it does not find its own former words.
    let (ids, turn) = (Ids::default(), TurnId(10));
    let again = s.memory.earlier(&ids, &here, turn, QUESTION).await;
    assert!(again.recalled.is_empty(), "{again:?}");
    s.pass(1_000 * HOUR_MS);
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    assert_eq!(recalled(&s, &here, "And what of the valve?").await, [""; 0]);
    // Nobody else's question finds it, nor the asker's elsewhere.
    for other in [
        place(GUILD, HERE, BORIS),
        place(GUILD, ChannelId::new(8), ADA),
    ] {
        assert_eq!(recalled(&s, &other, QUESTION).await, [""; 0]);
    }
}

#[tokio::test]
async fn nothing_is_recalled_where_it_is_off() {
    for off in [
        MemoryConfig {
            recall: 0,
            ..settings()
        },
        MemoryConfig {
            max_context_messages: 0,
            ..settings()
        },
    ] {
        let s = scene_with(off).await;
        let here = place(GUILD, HERE, ADA);
        long_ago(&s, &here).await;
        assert_eq!(recalled(&s, &here, QUESTION).await, [""; 0]);
    }
}

#[tokio::test]
async fn what_is_cleared_or_from_before_the_process_is_not_recalled() {
    let here = place(GUILD, HERE, ADA);
    let s = scene().await;
    long_ago(&s, &here).await;
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    s.memory.clear(&here, false).await.unwrap();
    assert_eq!(recalled(&s, &here, QUESTION).await, [""; 0]);

    let s = scene_with(MemoryConfig {
        load_past: 0,
        ..settings()
    })
    .await;
    s.pass(-1);
    s.ask(&here, 10, "my pump is called Berta").await;
    s.pass(1);
    s.ask(&here, 20, "my pump is called Carla").await;
    fill(&s, &here, 100).await;
    let found = recalled(&s, &here, QUESTION).await;
    assert_eq!(
        found,
        ["my pump is called Carla", "so: my pump is called Carla"]
    );
}

#[tokio::test]
async fn what_is_deleted_edited_or_withdrawn_is_not_recalled() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    long_ago(&s, &here).await;
    s.ask(&here, 400, "your pump is called Berta").await;
    fill(&s, &here, 500).await;
    assert_eq!(recalled(&s, &here, QUESTION).await.len(), 4);
    // Before the stores have heard of it, and after.
    s.memory.reconcile(deleted(400));
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    s.memory.reconcile_all().await;
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    // Asked again with other words.
    s.ask(&here, 10, "my valve is called Dora").await;
    assert_eq!(recalled(&s, &here, QUESTION).await, [""; 0]);
    assert_eq!(recalled(&s, &here, "Which valve is Dora?").await.len(), 2);
    s.memory.delete_conversation(&here).await.unwrap();
    assert!(!s.memory.recall.holds(&here));
    assert_eq!(recalled(&s, &here, "Which valve is Dora?").await, [""; 0]);
}

#[tokio::test]
async fn nobody_who_opted_out_is_recalled() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    let mut exchange = s.exchange(10, "my pump is called Berta");
    exchange.sources = vec![ContentSource {
        guild: Some(GUILD),
        channel: HERE,
        message: Some(MessageId::new(5)),
        author: Some(BORIS),
    }];
    s.memory
        .record(&Ids::default(), &here, &exchange, None)
        .await;
    fill(&s, &here, 100).await;
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    // The answer was made from what Boris said.
    s.opt_outs.set([BORIS].into_iter().collect());
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP[..1]);
    s.opt_outs.set([ADA].into_iter().collect());
    assert_eq!(recalled(&s, &here, QUESTION).await, [""; 0]);
}

#[tokio::test]
async fn the_best_are_few_and_in_order() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.rows(&here).await;
    for number in 1..=9 {
        s.pass(2 * HOUR_MS);
        s.ask(&here, 10 * number, &format!("pump number{number}"))
            .await;
    }
    fill(&s, &here, 100).await;
    let found = recalled(&s, &here, "Which pump?").await;
    let questions: Vec<&String> = found.iter().step_by(2).collect();
    assert_eq!(
        questions,
        [
            "pump number6",
            "pump number7",
            "pump number8",
            "pump number9"
        ]
    );
}

/// More than one page, and than one segment of an index.
#[tokio::test]
async fn a_long_conversation_is_read_to_its_beginning() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.ask(&here, 10, "my pump is called Berta").await;
    s.pass(2 * HOUR_MS);
    for number in 0..1_100 {
        s.pass(60_000);
        s.ask(&here, 100 + 10 * number, &format!("saffron {number}"))
            .await;
    }
    let mut found = Vec::new();
    // A slow machine takes more than one turn for it.
    for _ in 0..20 {
        found = recalled(&s, &here, QUESTION).await;
        if !found.is_empty() {
            break;
        }
    }
    assert_eq!(found, ABOUT_PUMP);
}

#[tokio::test]
async fn indexes_make_room_for_those_asked_lately() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    long_ago(&s, &here).await;
    recalled(&s, &here, QUESTION).await;
    let recall = &s.memory.recall;
    assert!(recall.holds(&here));
    let others = (20..40).map(|channel| place(GUILD, ChannelId::new(channel), ADA));
    let others: Vec<Place> = others.collect();
    for other in &others {
        recalled(&s, other, QUESTION).await;
        recall.measured(other, MOST_OF_ALL / 16);
    }
    assert!(!recall.holds(&here) && recall.holds(&others[19]));
    // It is made again.
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    s.memory.purge(&Purge::User(ADA)).await.unwrap();
    assert!(!recall.holds(&here));
}

/// A search after an edit finds the new words, and one between two versions of a turn as well.
#[tokio::test]
async fn new_words_are_found_and_former_ones_are_not() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    long_ago(&s, &here).await;
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    s.memory.reconcile(DiscordChange::Edited {
        guild: Some(GUILD),
        channel: HERE,
        edit: Edit {
            message: MessageId::new(10),
            words: Some("my valve is called Dora".to_owned()),
            at: Some(s.memory.now()),
        },
    });
    s.memory.reconcile_all().await;
    // Until it is answered anew its answer stays.
    let found = recalled(&s, &here, "Which valve?").await;
    assert_eq!(found, ["my valve is called Dora", ABOUT_PUMP[1]]);
    // The answer to the new words.
    s.ask(&here, 10, "my valve is called Dora").await;
    assert_eq!(recalled(&s, &here, QUESTION).await, [""; 0]);
    let found = recalled(&s, &here, "so, which valve?").await;
    assert_eq!(
        found,
        ["my valve is called Dora", "so: my valve is called Dora"]
    );
}

/// A turn that the store takes after later ones, or again with other words, is found by its
/// words though its index was there before.
#[tokio::test]
async fn what_is_stored_late_or_again_is_found() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    long_ago(&s, &here).await;
    let store = &s.memory.stores.conversations;
    let turn_at = async |ordinal: u64| {
        let query = ExchangeQuery {
            scope: here.scope,
            agent: here.agent.clone(),
            which: Exchanges::Above(ordinal - 1),
            limit: 100,
        };
        let mut rows = store.exchanges(&query).await.unwrap();
        rows.retain(|row| row.ordinal == ordinal);
        rows
    };
    let rows = turn_at(3).await;
    // The store lacks the third turn until the index is there.
    let missing = TurnKey::of(&rows[0]);
    let ids = rows.iter().filter_map(|row| row.message).collect();
    let purge = Purge::Messages { channel: HERE, ids };
    store.purge(&purge).await.unwrap();
    assert_eq!(turn_at(3).await, []);
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    let stores = async |rows: &[StoredMessage], turn: TurnId, words: &str| {
        let row = |row: &StoredMessage| StoredMessage {
            turn,
            content: words.to_owned(),
            ..row.clone()
        };
        let records: Vec<Record> = rows.iter().map(row).map(Record::Message).collect();
        store.write(&records).await.unwrap();
        let key = TurnKey {
            turn,
            ..missing.clone()
        };
        s.memory.recall.stored(&key, rows[0].ordinal);
    };
    let late = "the valve is brass";
    stores(&rows, TurnId(900), late).await;
    assert_eq!(recalled(&s, &here, late).await, [late, late]);
    let again = "the hinge is steel";
    let newest = turn_at(21).await;
    stores(&newest, newest[0].turn, again).await;
    recalled(&s, &here, QUESTION).await;
    fill(&s, &here, 500).await;
    assert_eq!(recalled(&s, &here, again).await, [again, again]);
}

/// What somebody else does leaves an index alone.
#[tokio::test]
async fn indexes_outlast_what_concerns_others() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    let there = place(GUILD, ChannelId::new(8), BORIS);
    long_ago(&s, &here).await;
    s.ask(&there, 50, "saffron").await;
    for place in [&here, &there] {
        recalled(&s, place, QUESTION).await;
    }
    // Nothing is stored of that message, nor of who leaves.
    let gone = Purge::Messages {
        channel: HERE,
        ids: vec![MessageId::new(999)],
    };
    s.memory.purge(&gone).await.unwrap();
    let left = Purge::Member {
        guild: GUILD,
        user: UserId::new(30),
    };
    s.memory.purge(&left).await.unwrap();
    assert!(s.memory.recall.holds(&here) && s.memory.recall.holds(&there));
    let gone = Purge::Messages {
        channel: ChannelId::new(8),
        ids: vec![MessageId::new(50)],
    };
    s.memory.purge(&gone).await.unwrap();
    assert!(s.memory.recall.holds(&here) && !s.memory.recall.holds(&there));
}

/// A page that ends within a turn is not all of it: it is read from the newest back, and on
/// from what is indexed.
#[tokio::test]
async fn a_turn_of_which_a_page_has_a_part_is_read_whole() {
    for is_indexed_before in [false, true] {
        let s = scene().await;
        let here = place(GUILD, HERE, ADA);
        s.rows(&here).await;
        s.ask(&here, 10, "ginger").await;
        let full = 100..199;
        if is_indexed_before {
            recalled(&s, &here, "ginger").await;
            without_answer(&s, &here, 20).await;
            saffron(&s, &here, full).await;
            about_pump(&s, &here).await;
            saffron(&s, &here, 300..330).await;
        } else {
            about_pump(&s, &here).await;
            saffron(&s, &here, full).await;
            without_answer(&s, &here, 20).await;
        }
        for question in ["Which pump?", "Which gasket?"] {
            let mut found = Vec::new();
            // A slow machine takes more than one turn for it.
            for _ in 0..20 {
                found = recalled(&s, &here, question).await;
                if !found.is_empty() {
                    break;
                }
            }
            let expected = ["my pump is called Berta", "its gasket is blue"];
            assert_eq!(found, expected, "{question} {is_indexed_before}");
        }
    }
}

async fn saffron(s: &Scene, place: &Place, numbers: std::ops::Range<u64>) {
    for number in numbers {
        s.pass(60_000);
        s.ask(place, 10 * number, "saffron").await;
    }
}

async fn about_pump(s: &Scene, place: &Place) {
    s.pass(2 * HOUR_MS);
    let mut exchange = s.exchange(50, "my pump is called Berta");
    exchange.answer = "its gasket is blue".to_owned();
    s.memory
        .record(&Ids::default(), place, &exchange, None)
        .await;
    s.pass(2 * HOUR_MS);
}

/// A turn with a single row: what its answer was made from is gone.
async fn without_answer(s: &Scene, place: &Place, question: u64) {
    s.pass(60_000);
    let source = MessageId::new(5);
    let mut exchange = s.exchange(question, "nutmeg");
    exchange.sources = vec![ContentSource {
        guild: Some(GUILD),
        channel: HERE,
        message: Some(source),
        author: Some(BORIS),
    }];
    s.memory
        .record(&Ids::default(), place, &exchange, None)
        .await;
    let gone = Purge::Messages {
        channel: HERE,
        ids: vec![source],
    };
    let store = &s.memory.stores.conversations;
    store.purge(&gone).await.unwrap();
}

#[tokio::test]
async fn those_asked_longest_ago_make_room_down_to_seven_eighths() {
    let s = scene().await;
    let places = (20..36).map(|channel| place(GUILD, ChannelId::new(channel), ADA));
    let places: Vec<Place> = places.collect();
    let recall = &s.memory.recall;
    for place in &places {
        recalled(&s, place, QUESTION).await;
        // Measured again, it counts once.
        for _ in 0..20 {
            recall.measured(place, MOST_OF_ALL / 16);
        }
        if place.scope == places[14].scope {
            assert!(places[..15].iter().all(|one| recall.holds(one)));
            // The first is asked again.
            recalled(&s, &places[0], QUESTION).await;
            recall.measured(&places[0], MOST_OF_ALL / 16);
        }
    }
    let held: Vec<bool> = places.iter().map(|one| recall.holds(one)).collect();
    let mut expected = [true; 16];
    expected[1..4].fill(false);
    assert_eq!(held, expected);
    // One that is too large alone stays while it is the one asked last.
    recall.measured(&places[15], 2 * MOST_OF_ALL);
    let held: Vec<bool> = places.iter().map(|one| recall.holds(one)).collect();
    expected[..15].fill(false);
    assert_eq!(held, expected);
}

/// What is too old goes from the index with its rows.
#[tokio::test]
async fn an_index_goes_when_old_rows_go() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    long_ago(&s, &here).await;
    assert_eq!(recalled(&s, &here, QUESTION).await, ABOUT_PUMP);
    s.memory
        .purge(&Purge::Before(s.memory.now()))
        .await
        .unwrap();
    assert!(!s.memory.recall.holds(&here));
    assert_eq!(recalled(&s, &here, QUESTION).await, [""; 0]);
}

/// Some of the best may be gone, or not for those who read the answer.
#[tokio::test]
async fn there_are_three_candidates_for_each_that_is_recalled() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.rows(&here).await;
    for number in 1..=15 {
        s.ask(&here, 10 * number, &format!("pump number{number}"))
            .await;
    }
    fill(&s, &here, 200).await;
    let (ids, turn) = (Ids::default(), TurnId(u64::MAX >> 1));
    let earlier = s.memory.earlier(&ids, &here, turn, "Which pump?").await;
    assert_eq!(earlier.recalled.len(), 3 * s.memory.settings().recall);
}

/// An index that nobody asks does not note turns without end.
#[tokio::test]
async fn an_index_goes_when_too_much_was_stored_since() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    let there = place(GUILD, ChannelId::new(8), ADA);
    for place in [&here, &there] {
        recalled(&s, place, QUESTION).await;
    }
    let recall = &s.memory.recall;
    let turn = TurnKey {
        scope: here.scope,
        agent: here.agent.clone(),
        turn: TurnId(10),
    };
    for ordinal in 0..=MOST_STORED as u64 {
        assert!(recall.holds(&here), "{ordinal}");
        recall.stored(&turn, ordinal);
    }
    assert!(!recall.holds(&here) && recall.holds(&there));
}

#[tokio::test]
async fn an_index_goes_with_its_server_or_its_member() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    let other = GuildId::new(2);
    for (purge, stays) in [
        (Purge::Guild(other), true),
        (Purge::Guild(GUILD), false),
        (member(other, ADA), true),
        (member(GUILD, ADA), false),
    ] {
        recalled(&s, &here, QUESTION).await;
        s.memory.recall.forget_changed(&purge);
        assert_eq!(s.memory.recall.holds(&here), stays, "{purge:?}");
    }
}

fn member(guild: GuildId, user: UserId) -> Purge {
    Purge::Member { guild, user }
}
