//! Turns: appending, windows, statistics, deleting.

use std::time::Duration;

use clew_context::model::{ChannelId, UnixMillis};
use clew_store::model::{Scope, StoredMessage, StoredRole};
use clew_store::{Backend, ConversationStats, Purge, WindowQuery};

use crate::store::build::{
    agent, all_of, at, default_agent, direct, member, message, numbered, of_agent, texts, thread,
    turn, user, with_tools,
};
use crate::store::fixture::{Fixture, needs_database, on_each_store};

on_each_store! {
    message_persisted
    message_includes_agent_name_and_thread_id
    message_includes_timestamp
    messages_queryable_by_agent
    rolling_window_returns_messages_within_window
    rolling_window_excludes_old_messages
    rolling_window_configurable
    more_rows_than_the_limit_give_the_newest_oldest_first
    a_window_of_nothing_is_empty
    rows_of_tools_stand_between_question_and_answer
    a_deleted_answer_takes_its_tools_along
    a_window_without_tools_has_as_many_questions_and_answers
    an_existing_turn_is_replaced_and_keeps_its_ordinal
    an_ordinal_is_never_reused
    rows_that_are_not_a_turn_are_refused
    scopes_are_separate
    a_clock_that_goes_back_keeps_the_order
    turns_after_a_marker_are_later_than_it
    statistics_count_a_conversation
    a_deleted_conversation_is_gone_with_all_agents
    own_messages_come_from_all_channels_of_a_server
    any_text_comes_back_as_it_was
    many_simultaneous_turns_get_an_ordinal_each
}

const HERE: Scope = Scope::Member {
    guild: clew_context::model::GuildId::new(1),
    channel: ChannelId::new(2),
    user: clew_context::model::UserId::new(3),
};

async fn rows(store: &impl Backend, scope: Scope) -> Vec<StoredMessage> {
    store.window(&all_of(scope)).await.unwrap()
}

async fn message_persisted<F: Fixture>(place: &F) {
    let store = place.open().await;
    for scope in [HERE, direct(3)] {
        let one = turn(scope, 10, at(0));
        assert_eq!(store.append(&one).await.unwrap(), 1);
        assert_eq!(rows(&store, scope).await, numbered(one, 1));
    }
}

async fn message_includes_agent_name_and_thread_id<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.append(&turn(HERE, 10, at(0))).await.unwrap();
    for row in rows(&store, HERE).await {
        assert_eq!(row.agent, default_agent());
        assert_eq!(row.channel.get(), 2);
        assert_eq!(row.guild.unwrap().get(), 1);
        assert_eq!(row.owner, user(3));
        assert_eq!(row.turn.0, 10);
    }
}

async fn message_includes_timestamp<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.append(&turn(HERE, 10, at(7))).await.unwrap();
    let times: Vec<_> = rows(&store, HERE)
        .await
        .iter()
        .map(|row| row.timestamp)
        .collect();
    assert_eq!(times, [at(7), at(8)]);
}

async fn messages_queryable_by_agent<F: Fixture>(place: &F) {
    let store = place.open().await;
    let other = agent("other");
    store.append(&turn(HERE, 10, at(0))).await.unwrap();
    let theirs = of_agent(turn(HERE, 20, at(1)), &other);
    let appended = needs_database::<F, _>(store.append(&theirs).await);
    let query = WindowQuery {
        agent: other,
        ..all_of(HERE)
    };
    if let Some(ordinal) = appended {
        // Counted per agent.
        assert_eq!(ordinal, 1);
        assert_eq!(store.window(&query).await.unwrap(), numbered(theirs, 1));
    }
    assert_eq!(
        texts(&rows(&store, HERE).await),
        ["question 10", "answer 10"]
    );
}

async fn since(store: &impl Backend, since: UnixMillis) -> Vec<u64> {
    let query = WindowQuery {
        since,
        cleared: None,
        ..all_of(HERE)
    };
    let rows = store.window(&query).await.unwrap();
    rows.iter().map(|row| row.message.unwrap().get()).collect()
}

async fn rolling_window_returns_messages_within_window<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.append(&turn(HERE, 10, at(100))).await.unwrap();
    store.append(&turn(HERE, 20, at(200))).await.unwrap();
    assert_eq!(since(&store, at(99)).await, [10, 11, 20, 21]);
}

async fn rolling_window_excludes_old_messages<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.append(&turn(HERE, 10, at(100))).await.unwrap();
    store.append(&turn(HERE, 20, at(200))).await.unwrap();
    // `since` is exclusive.
    assert_eq!(since(&store, at(101)).await, [20, 21]);
    assert_eq!(since(&store, at(300)).await, [0; 0]);
}

async fn rolling_window_configurable<F: Fixture>(place: &F) {
    let store = place.open().await;
    for number in 1..=5 {
        let when = at(i64::try_from(number).unwrap() * 1_000);
        store.append(&turn(HERE, number * 10, when)).await.unwrap();
    }
    for (window, turns) in [(0, 0), (500, 0), (1_500, 1), (4_500, 4), (86_400_000, 5)] {
        let found = since(&store, at(6_000 - window)).await;
        let expected = if window == 1_500 { 2 } else { turns * 2 };
        assert_eq!(found.len(), expected, "{window}");
    }
}

async fn more_rows_than_the_limit_give_the_newest_oldest_first<F: Fixture>(place: &F) {
    let store = place.open().await;
    // Files hold 15 messages.
    let turns = if F::IS_DATABASE { 100 } else { 7 };
    for number in 1..=turns {
        let when = at(i64::try_from(number).unwrap() * 10);
        store.append(&turn(HERE, number * 10, when)).await.unwrap();
    }
    let all = rows(&store, HERE).await;
    assert_eq!(all.len() as u64, turns * 2);
    let is_in_order = |one: &StoredMessage, next: &StoredMessage| {
        one.timestamp <= next.timestamp && one.ordinal <= next.ordinal
    };
    assert!(all.is_sorted_by(is_in_order));
    for limit in [0, 1, 2, 5, 14, all.len(), all.len() + 1] {
        let query = WindowQuery {
            limit,
            ..all_of(HERE)
        };
        let expected = &all[all.len().saturating_sub(limit)..];
        assert_eq!(store.window(&query).await.unwrap(), expected, "{limit}");
    }
}

async fn a_window_of_nothing_is_empty<F: Fixture>(place: &F) {
    let store = place.open().await;
    assert_eq!(rows(&store, HERE).await, []);
    assert_eq!(store.delete_conversation(HERE).await.unwrap(), 0);
}

async fn a_window_without_tools_has_as_many_questions_and_answers<F: Fixture>(place: &F) {
    let store = place.open().await;
    for number in [10, 20] {
        let mut called = turn(HERE, number, at(i64::try_from(number).unwrap()));
        if F::IS_DATABASE {
            called = with_tools(called);
        }
        store.append(&called).await.unwrap();
    }
    for (limit, expected) in [
        (1, &["answer 20"][..]),
        (3, &["answer 10", "question 20", "answer 20"]),
        (9, &["question 10", "answer 10", "question 20", "answer 20"]),
    ] {
        let query = WindowQuery {
            with_tools: false,
            limit,
            ..all_of(HERE)
        };
        let found = store.window(&query).await.unwrap();
        assert_eq!(texts(&found), expected, "{limit}");
    }
}

async fn rows_of_tools_stand_between_question_and_answer<F: Fixture>(place: &F) {
    let store = place.open().await;
    let called = with_tools(turn(HERE, 10, at(0)));
    if needs_database::<F, _>(store.append(&called).await).is_some() {
        assert_eq!(rows(&store, HERE).await, numbered(called, 1));
    } else {
        assert_eq!(rows(&store, HERE).await, [], "nothing of it is there");
    }
}

/// What a model called is worth nothing without what it said of it.
async fn a_deleted_answer_takes_its_tools_along<F: Fixture>(place: &F) {
    let store = place.open().await;
    for number in [10, 20] {
        let called = turn(HERE, number, at(0));
        let called = if F::IS_DATABASE {
            with_tools(called)
        } else {
            called
        };
        store.append(&called).await.unwrap();
    }
    let answer = Purge::Messages {
        channel: ChannelId::new(2),
        ids: vec![message(11)],
    };
    store.purge(&answer).await.unwrap();
    let kept = rows(&store, HERE).await;
    assert_eq!(texts(&kept)[..2], ["question 10", "question 20"]);
    assert_eq!(kept.len(), if F::IS_DATABASE { 5 } else { 3 });
}

async fn an_existing_turn_is_replaced_and_keeps_its_ordinal<F: Fixture>(place: &F) {
    let store = place.open().await;
    for number in [10, 20, 30] {
        store.append(&turn(HERE, number, at(0))).await.unwrap();
    }
    let mut again = turn(HERE, 20, at(50));
    again[1].content = String::from("another answer");
    assert_eq!(store.append(&again).await.unwrap(), 2);
    let rows = rows(&store, HERE).await;
    let ordinals: Vec<u64> = rows.iter().map(|row| row.ordinal).collect();
    // In its old place, although its time is now later.
    assert_eq!(ordinals, [1, 1, 2, 2, 3, 3]);
    assert_eq!(texts(&rows)[2..4], ["question 20", "another answer"]);
    let next = turn(HERE, 40, at(60));
    assert_eq!(store.append(&next).await.unwrap(), 4);
}

async fn an_ordinal_is_never_reused<F: Fixture>(place: &F) {
    let store = place.open().await;
    for number in [10, 20, 30] {
        store.append(&turn(HERE, number, at(0))).await.unwrap();
    }
    let newest = Purge::Messages {
        channel: ChannelId::new(2),
        ids: vec![message(30)],
    };
    store.purge(&newest).await.unwrap();
    assert_eq!(store.append(&turn(HERE, 40, at(1))).await.unwrap(), 4);
    store.delete_conversation(HERE).await.unwrap();
    // A file's counter is deleted with the file.
    let next = if F::IS_DATABASE { 5 } else { 1 };
    assert_eq!(store.append(&turn(HERE, 50, at(2))).await.unwrap(), next);
}

async fn rows_that_are_not_a_turn_are_refused<F: Fixture>(place: &F) {
    let store = place.open().await;
    let good = turn(HERE, 10, at(0));
    let mut two_turns = good.clone();
    two_turns[1].turn = clew_context::model::TurnId(20);
    let mut two_scopes = good.clone();
    two_scopes[1].scope = member(1, 2, 4);
    let mut two_agents = good.clone();
    two_agents[1].agent = agent("other");
    for wrong in [vec![], two_turns, two_scopes, two_agents] {
        assert!(store.append(&wrong).await.is_err(), "{} rows", wrong.len());
        assert_eq!(rows(&store, HERE).await, []);
        assert_eq!(rows(&store, member(1, 2, 4)).await, []);
    }
    assert_eq!(store.append(&good).await.unwrap(), 1);
}

/// The same user and channel under every kind of key, and neighbours of each.
async fn scopes_are_separate<F: Fixture>(place: &F) {
    let store = place.open().await;
    let near = [
        HERE,
        member(1, 2, 4),
        member(1, 5, 3),
        member(9, 2, 3),
        member(1, 2, 33),
        direct(3),
        direct(2),
        thread(1, 2),
        thread(9, 2),
        Scope::User(user(3)),
        Scope::User(user(2)),
    ];
    let mut kept = Vec::new();
    for (number, scope) in (1..).zip(near) {
        let one = turn(scope, number * 10, at(0));
        let appended = store.append(&one).await;
        if matches!(scope, Scope::Thread { .. } | Scope::User(_)) {
            if needs_database::<F, _>(appended).is_none() {
                let refused = store.window(&all_of(scope)).await;
                needs_database::<F, _>(refused);
                needs_database::<F, _>(store.conversation(scope, at(0)).await);
                needs_database::<F, _>(store.delete_conversation(scope).await);
                continue;
            }
        } else {
            assert_eq!(appended.unwrap(), 1);
        }
        kept.push((scope, numbered(one, 1)));
    }
    while let Some((scope, expected)) = kept.pop() {
        assert_eq!(rows(&store, scope).await, expected);
        assert_eq!(store.delete_conversation(scope).await.unwrap(), 2);
        assert_eq!(rows(&store, scope).await, []);
        for (other, expected) in &kept {
            assert_eq!(&rows(&store, *other).await, expected, "{scope} and {other}");
        }
    }
}

async fn a_clock_that_goes_back_keeps_the_order<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.append(&turn(HERE, 10, at(1_000))).await.unwrap();
    store.append(&turn(HERE, 20, at(500))).await.unwrap();
    let mut backwards = turn(HERE, 30, at(2_000));
    backwards[1].timestamp = at(1_500);
    store.append(&backwards).await.unwrap();
    let rows = rows(&store, HERE).await;
    let times: Vec<_> = rows.iter().map(|row| row.timestamp).collect();
    let expected = [1_000, 1_001, 1_001, 1_001, 2_000, 2_000].map(at);
    assert_eq!(times, expected);
    let order = ["question 10", "answer 10", "question 20", "answer 20"];
    assert_eq!(texts(&rows)[..4], order);
    assert_eq!(texts(&rows)[4..], ["question 30", "answer 30"]);
}

async fn turns_after_a_marker_are_later_than_it<F: Fixture>(place: &F) {
    let store = place.open().await;
    let marker = |guild, user| clew_store::model::ClearKey {
        agent: default_agent(),
        guild,
        user,
    };
    let guild = Some(clew_context::model::GuildId::new(1));
    store
        .clear(&marker(guild, Some(user(3))), at(1_000))
        .await
        .unwrap();
    store
        .clear(&marker(guild, Some(user(4))), at(7_000))
        .await
        .unwrap();
    store
        .clear(&marker(None, Some(user(3))), at(8_000))
        .await
        .unwrap();
    store.append(&turn(HERE, 10, at(500))).await.unwrap();
    assert_eq!(since(&store, at(1_000)).await, [10, 11]);
    store.clear(&marker(guild, None), at(3_000)).await.unwrap();
    store.append(&turn(HERE, 20, at(500))).await.unwrap();
    assert_eq!(since(&store, at(3_000)).await, [20, 21]);
    assert_eq!(
        since(&store, at(7_000)).await,
        [0; 0],
        "not by markers of others"
    );
}

async fn statistics_count_a_conversation<F: Fixture>(place: &F) {
    let store = place.open().await;
    let none = ConversationStats::default();
    assert_eq!(store.conversation(HERE, at(0)).await.unwrap(), none);
    store.append(&turn(HERE, 10, at(0))).await.unwrap();
    store
        .append(&turn(member(1, 2, 4), 20, at(0)))
        .await
        .unwrap();
    let hour = Duration::from_hours(1);
    let later = at(i64::try_from(hour.as_millis()).unwrap());
    place.ground().set_time(later);
    let stats = store.conversation(HERE, later).await.unwrap();
    assert!(stats.exists);
    assert_eq!(stats.message_count, 2);
    let expected = (!F::IS_DATABASE).then_some(hour * 23);
    assert_eq!(stats.expires_in, expected);
    store.append(&turn(HERE, 30, later)).await.unwrap();
    let after_a_day = at(24 * 3_600_000 + 1);
    place.ground().set_time(after_a_day);
    let stats = store.conversation(HERE, after_a_day).await.unwrap();
    assert_eq!(stats.exists, F::IS_DATABASE, "appending does not extend it");
    let swept = store.sweep(after_a_day).await.unwrap();
    assert_eq!(rows(&store, HERE).await.is_empty(), !F::IS_DATABASE);
    assert_eq!(swept > 0, !F::IS_DATABASE);
}

async fn a_deleted_conversation_is_gone_with_all_agents<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.append(&turn(HERE, 10, at(0))).await.unwrap();
    let mut expected = 2;
    let other = of_agent(turn(HERE, 20, at(0)), &agent("other"));
    if needs_database::<F, _>(store.append(&other).await).is_some() {
        expected += 2;
    }
    store.append(&turn(direct(3), 30, at(0))).await.unwrap();
    assert_eq!(store.delete_conversation(HERE).await.unwrap(), expected);
    assert!(!store.conversation(HERE, at(0)).await.unwrap().exists);
    assert_eq!(rows(&store, direct(3)).await.len(), 2);
}

async fn own_messages_come_from_all_channels_of_a_server<F: Fixture>(place: &F) {
    let store = place.open().await;
    let scopes = [
        (HERE, 30),
        (member(1, 5, 3), 10),
        (member(1, 2, 4), 20),
        (member(9, 2, 3), 40),
        (direct(3), 50),
    ];
    for (scope, number) in scopes {
        let when = at(i64::try_from(number).unwrap());
        store.append(&turn(scope, number, when)).await.unwrap();
    }
    if F::IS_DATABASE {
        let mut shared = turn(thread(1, 7), 60, at(60));
        for row in &mut shared {
            row.owner = user(3);
        }
        store.append(&shared).await.unwrap();
        store.append(&turn(thread(1, 7), 70, at(70))).await.unwrap();
    }
    let guild = Some(clew_context::model::GuildId::new(1));
    let own = async |guild, since| {
        let agent = default_agent();
        let rows = store
            .own_messages(user(3), &agent, guild, since)
            .await
            .unwrap();
        rows.iter()
            .map(|row| row.message.unwrap().get())
            .collect::<Vec<u64>>()
    };
    let mut all = vec![10, 11, 30, 31];
    if F::IS_DATABASE {
        all.extend([60, 61]);
    }
    assert_eq!(own(guild, UnixMillis(0)).await, all);
    assert_eq!(own(guild, at(11)).await, all[2..]);
    assert_eq!(own(None, UnixMillis(0)).await, [50, 51]);
}

async fn any_text_comes_back_as_it_was<F: Fixture>(place: &F) {
    let store = place.open().await;
    let long = "ä🦀".repeat(50_000);
    let odd = [
        "",
        " ",
        "'); DROP TABLE messages; --",
        "\"\\\\u0000\\n{}[]\r\n\t\u{1}\u{7f}",
        "👩‍👩‍👧‍👦 \u{202e}right to left\u{2066}",
        "\u{feff}bom, \u{fffd}, \u{10ffff}",
        &long,
    ];
    for (number, text) in (1..).zip(odd) {
        let mut one = turn(HERE, number * 10, at(0));
        one[0].content = String::from(text);
        one[0].author_name = Some(text.chars().take(40).collect());
        store.append(&one).await.unwrap();
        let back = rows(&store, HERE).await;
        let back: Vec<_> = back
            .into_iter()
            .filter(|row| row.turn == one[0].turn)
            .collect();
        assert_eq!(back[0].role, StoredRole::User);
        assert_eq!(back[0].content, one[0].content);
        assert_eq!(back[0].author_name, one[0].author_name);
    }
    let mut zero = turn(HERE, 1_000, at(0));
    zero[0].content = String::from("a\0b");
    store.append(&zero).await.unwrap();
    let back = rows(&store, HERE).await;
    let kept = &back[back.len() - 2].content;
    assert!(["a\0b", "a\u{fffd}b"].contains(&kept.as_str()), "{kept:?}");
}

async fn many_simultaneous_turns_get_an_ordinal_each<F: Fixture>(place: &F) {
    let store = place.open().await;
    let turns: Vec<_> = (1..=7)
        .map(|number| turn(HERE, number * 10, at(0)))
        .collect();
    let appends = turns.iter().map(|turn| store.append(turn));
    let mut given = futures_util::future::try_join_all(appends).await.unwrap();
    given.sort_unstable();
    assert_eq!(given, (1..=7).collect::<Vec<u64>>());
    assert_eq!(rows(&store, HERE).await.len(), 14);
}
