//! History across restarts: how much is loaded, and the four verification scenarios under their names.

use clew_context::model::{ChannelId, TurnId, UnixMillis, UserId};
use clew_store::model::{AgentName, Scope, StoredMessage, StoredRole};

use super::place::{
    HOUR, Kind, Place, START_MS, assert_says, assert_says_nothing_of, on_each_database,
    on_each_store,
};
use crate::support::bot::prompt;
use crate::support::model::Behaviour;

on_each_store! {
    load_past_conversations_counts_rows
    rows_are_written_with_loading_off
}

on_each_database! {
    verification_1_context_isolation
    verification_2_history_loading
    verification_3_multi_user_concurrent
    verification_4_disabled
    a_hundred_are_loaded_of_more
}

const USER_SCOPE: (&str, &str) = ("CONTEXT_SCOPE", "user");

/// The keys of the stored conversations.
pub(super) async fn keys(p: &Place) -> Vec<String> {
    let sql = |table: &str| format!("SELECT DISTINCT scope FROM {table} ORDER BY scope");
    match p.kind {
        Kind::Sqlite => {
            let file = rusqlite::Connection::open(p.path("clew.db")).unwrap();
            let mut rows = file.prepare(&sql("messages")).unwrap();
            let keys = rows.query_map([], |row| row.get(0)).unwrap();
            keys.map(Result::unwrap).collect()
        }
        Kind::Files => panic!("files have one scope"),
        #[cfg(feature = "postgres")]
        Kind::Postgres => {
            let url = &p.database.as_ref().unwrap().admin_url;
            let rows = crate::support::postgres::query(url, &sql("clew.messages")).await;
            rows.into_iter().flatten().flatten().collect()
        }
    }
}

async fn load_past_conversations_counts_rows(kind: Kind) {
    let p = Place::new(kind, &[("LOAD_PAST_CONVERSATIONS", "3")]).await;
    let bot = p.start().await;
    for word in ["anise", "basil", "cumin"] {
        p.ask(p.help, p.ada, word).await;
    }
    let bot = p.restart(bot).await;
    let asked = p.ask(p.help, p.ada, "dill").await;
    assert_says(&asked.prompt, &["so: basil", "cumin", "so: cumin", "dill"]);
    assert_eq!(asked.prompt.matches("basil").count(), 1, "{}", asked.prompt);
    assert_says_nothing_of(&asked.prompt, &["anise"]);
    // Rows of this process do not count towards the limit.
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(
        &prompt,
        &["so: basil", "so: cumin", "dill", "so: dill", "go on"],
    );
    bot.stop().await;
}

async fn rows_are_written_with_loading_off(kind: Kind) {
    let p = Place::new(kind, &[("LOAD_PAST_CONVERSATIONS", "0")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "anise").await;
    assert_says(&p.ask(p.help, p.ada, "basil").await.prompt, &["so: anise"]);
    let bot = p.restart(bot).await;
    let asked = p.ask(p.help, p.ada, "cumin").await;
    assert_says_nothing_of(&asked.prompt, &["anise", "basil"]);
    bot.stop().await;
    let bot = p
        .stage
        .start_with(&[("LOAD_PAST_CONVERSATIONS", "100")])
        .await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["so: anise", "so: basil", "so: cumin"]);
    bot.stop().await;
}

async fn verification_1_context_isolation(kind: Kind) {
    let p = Place::new(kind, &[USER_SCOPE]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "rust programming").await;
    p.ask(p.help, p.boris, "python programming").await;
    let bot = p.restart(bot).await;
    // With the scope `user` it is the same conversation everywhere.
    for channel in [p.help, p.abroad, p.direct] {
        let asked = p.ask(channel, p.ada, "continue").await;
        assert_says(&asked.prompt, &["rust programming", "continue"]);
        assert_says_nothing_of(&asked.prompt, &["python"]);
    }
    for channel in [p.help, p.abroad] {
        let asked = p.ask(channel, p.boris, "continue").await;
        assert_says(&asked.prompt, &["python programming", "continue"]);
        assert_says_nothing_of(&asked.prompt, &["rust"]);
    }
    bot.stop().await;
    assert_eq!(keys(&p).await, ["discord_conv:111", "discord_conv:222"]);
}

async fn verification_2_history_loading(kind: Kind) {
    let p = Place::new(kind, &[USER_SCOPE, ("LOAD_PAST_CONVERSATIONS", "5")]).await;
    let bot = p.start().await;
    for number in 1..=10 {
        p.ask_for(
            p.help,
            p.ada,
            &format!("word{number}."),
            &format!("answer{number}."),
        )
        .await;
    }
    let bot = p.restart(bot).await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(
        &prompt,
        &[
            "answer8.",
            "word9.",
            "answer9.",
            "word10.",
            "answer10.",
            "go on",
        ],
    );
    assert_says_nothing_of(&prompt, &["word8.", "answer7.", "word7.", "word1."]);
    bot.stop().await;
}

async fn verification_3_multi_user_concurrent(kind: Kind) {
    let p = Place::new(kind, &[USER_SCOPE]).await;
    let bot = p.start().await;
    let (first, gate) = Behaviour::gated(&["one"]);
    let (second, other_gate) = Behaviour::gated(&["two"]);
    p.stage.model.script(first);
    p.stage.model.script(second);
    p.say(p.help, p.ada, "rust programming");
    p.say(p.help, p.boris, "python programming");
    let both = p.stage.model.wait_requests(2).await;
    for request in both.iter().map(prompt) {
        assert_ne!(request.contains("rust"), request.contains("python"));
    }
    gate.open();
    other_gate.open();
    p.until("two stored turns", || p.event_count("recorded") == 2)
        .await;
    let asked = p.ask(p.help, p.ada, "continue").await;
    assert_says(&asked.prompt, &["rust programming", "continue"]);
    assert_says_nothing_of(&asked.prompt, &["python"]);
    let asked = p.ask(p.help, p.boris, "continue").await;
    assert_says(&asked.prompt, &["python programming", "continue"]);
    assert_says_nothing_of(&asked.prompt, &["rust"]);
    bot.stop().await;
    assert_eq!(keys(&p).await, ["discord_conv:111", "discord_conv:222"]);
}

async fn verification_4_disabled(kind: Kind) {
    let p = Place::new(kind, &[USER_SCOPE, ("LOAD_PAST_CONVERSATIONS", "0")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "rust programming").await;
    let bot = p.restart(bot).await;
    let asked = p.ask(p.help, p.ada, "continue").await;
    assert_says_nothing_of(&asked.prompt, &["rust"]);
    bot.stop().await;
}

/// Stores turns of an earlier process.
async fn past(p: &Place, turns: u64) {
    let store = p.open().await;
    let agent = AgentName::default_agent();
    let owner = UserId::new(p.ada.0);
    store
        .agent_created(&agent, UnixMillis(START_MS - HOUR))
        .await
        .unwrap();
    for turn in 1..=turns {
        let row = |role, content: String| StoredMessage {
            scope: Scope::User(owner),
            agent: agent.clone(),
            turn: TurnId(turn),
            ordinal: 0,
            role,
            guild: None,
            channel: ChannelId::new(p.direct.0),
            owner,
            author_name: None,
            content,
            tool_calls: None,
            tool_call_id: None,
            timestamp: UnixMillis(START_MS - HOUR / 2),
            // Without ids: Discord knows none of these messages.
            message: None,
            parts: Vec::new(),
            target: None,
            restored_from: None,
            sources: Vec::new(),
        };
        let rows = [
            row(StoredRole::User, format!("word{turn}.")),
            row(StoredRole::Assistant, format!("answer{turn}.")),
        ];
        store.append(&rows).await.unwrap();
    }
    store.close().await.unwrap();
}

/// A hundred rows are the most that a conversation loads.
async fn a_hundred_are_loaded_of_more(kind: Kind) {
    let most = ("LOAD_PAST_CONVERSATIONS", "100");
    let p = Place::new(kind, &[USER_SCOPE, most, ("MAX_CONTEXT_MESSAGES", "300")]).await;
    past(&p, 60).await;
    let bot = p.start().await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["word11.", "answer11.", "word60.", "answer60."]);
    assert_says_nothing_of(&prompt, &["answer10.", "word10.", "word1."]);
    bot.stop().await;
}
