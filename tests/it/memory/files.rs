//! Context files as the bot writes them.

use std::fs;
use std::time::Duration;

use clew_context::model::{ChannelId, GuildId, UnixMillis, UserId};
use clew_store::ConversationStats;
use clew_store::model::Scope;
use serde_json::Value;

use super::place::{DAY, HOUR, Kind, Place, START_MS, assert_says, assert_says_nothing_of, files};

/// The files of conversations, by path below `context/`.
fn conversations(p: &Place) -> Vec<String> {
    let root = p.path("context");
    let all = files(&root).into_iter();
    let found = all.filter(|file| file.extension().is_some_and(|suffix| suffix == "json"));
    let names = found.map(|file| file.strip_prefix(&root).unwrap().display().to_string());
    names
        .filter(|name| name.starts_with("guilds/") || name.starts_with("dms/"))
        .collect()
}

fn read(p: &Place, name: &str) -> Value {
    let text = fs::read_to_string(p.path("context").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn of_ada(p: &Place) -> String {
    format!("guilds/{}/{}/{}.json", p.guild, p.help, p.ada)
}

fn scope(p: &Place) -> Scope {
    Scope::Member {
        guild: GuildId::new(p.guild.0),
        channel: ChannelId::new(p.help.0),
        user: UserId::new(p.ada.0),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn file_structure_and_context_file_format() {
    let p = Place::new(Kind::Files, &[]).await;
    let bot = p.start().await;
    let asked = p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.help, p.boris, "ginger").await;
    p.ask(p.pumps, p.ada, "cumin").await;
    p.ask(p.direct, p.ada, "cinnamon").await;
    bot.stop().await;
    let [help, pumps] = [p.help, p.pumps].map(|channel| format!("guilds/{}/{channel}", p.guild));
    let mut expected = [
        format!("dms/{}.json", p.ada),
        format!("{help}/{}.json", p.ada),
        format!("{help}/{}.json", p.boris),
        format!("{pumps}/{}.json", p.ada),
    ];
    expected.sort();
    assert_eq!(conversations(&p), expected);
    let file = read(&p, &of_ada(&p));
    assert_eq!(file["version"], 1);
    let created = file["createdAt"].as_i64().unwrap();
    assert!((START_MS..p.time.now()).contains(&created), "{created}");
    assert_eq!(file["expiresAt"], created + DAY);
    assert!(file["lastUpdated"].as_i64().unwrap() >= created);
    let messages = file["messages"].as_array().unwrap();
    let said: Vec<_> = messages
        .iter()
        .map(|one| (one["role"].as_str(), one["content"].as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (Some("user"), Some("saffron")),
            (Some("assistant"), Some("so: saffron"))
        ]
    );
    assert_eq!(messages[0]["messageId"], asked.trigger.to_string());
    let times: Vec<_> = messages
        .iter()
        .map(|one| one["timestamp"].as_i64())
        .collect();
    assert!(times[0] < times[1] && times[0].unwrap() >= START_MS);
    // Each file holds only its own conversation.
    for (word, name) in [("ginger", &expected), ("cumin", &expected)] {
        let holders = name.iter().filter(|name| {
            let text = fs::read_to_string(p.path("context").join(name)).unwrap();
            text.contains(word)
        });
        assert_eq!(holders.count(), 1, "{word}");
    }
}

/// Files that an earlier program wrote are loaded as history.
#[tokio::test(flavor = "multi_thread")]
async fn existing_files_load() {
    let p = Place::new(Kind::Files, &[]).await;
    let file = p.path("context").join(of_ada(&p));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = serde_json::json!({
        "version": 1, "createdAt": START_MS - HOUR, "lastUpdated": START_MS - HOUR,
        "expiresAt": START_MS - HOUR + DAY,
        "messages": [
            {"role": "user", "content": "saffron", "timestamp": START_MS - HOUR},
            {"role": "assistant", "content": "so: saffron", "timestamp": START_MS - HOUR + 50},
        ],
    });
    fs::write(file, text.to_string()).unwrap();
    let bot = p.start().await;
    let asked = p.ask(p.help, p.ada, "turmeric").await;
    assert_says(&asked.prompt, &["saffron", "so: saffron", "turmeric"]);
    bot.stop().await;
    let file = read(&p, &of_ada(&p));
    assert_eq!(file["createdAt"], START_MS - HOUR);
    assert_eq!(file["messages"].as_array().unwrap().len(), 4);
}

/// The newest whole turns: with 15 rows the oldest would be an answer without its question.
#[tokio::test(flavor = "multi_thread")]
async fn max_messages_per_context_is_fifteen() {
    let p = Place::new(Kind::Files, &[("MAX_CONTEXT_MESSAGES", "40")]).await;
    let bot = p.start().await;
    let words: Vec<String> = (1..=9).map(|number| format!("word{number}.")).collect();
    for word in &words {
        p.ask(p.help, p.ada, word).await;
    }
    let messages = read(&p, &of_ada(&p))["messages"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(messages.len(), 14);
    assert_eq!(messages[13]["content"], "so: word9.");
    assert_eq!(messages[0]["content"], "word3.");
    let prompt = p.prompt(p.help, p.ada).await;
    let parts: Vec<&str> = words[2..].iter().map(String::as_str).collect();
    assert_says(&prompt, &parts);
    assert_says_nothing_of(&prompt, &["word1.", "word2."]);
    bot.stop().await;
    assert_eq!(p.traces("word1."), [""; 0]);
}

/// 24 hours from `createdAt`, which does not change when rows are added.
#[tokio::test(flavor = "multi_thread")]
async fn expiration_is_a_day_from_the_first_message() {
    let p = Place::new(Kind::Files, &[("CONTEXT_ROLLING_WINDOW_S", "864000")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.pumps, p.ada, "cinnamon").await;
    p.time.pass(23 * HOUR);
    let asked = p.ask(p.help, p.ada, "turmeric").await;
    assert_says(&asked.prompt, &["saffron"]);
    p.time.pass(HOUR);
    // Removed on access ...
    let asked = p.ask(p.help, p.ada, "ginger").await;
    assert_says_nothing_of(&asked.prompt, &["saffron", "turmeric"]);
    assert_eq!(p.traces("saffron"), [""; 0]);
    assert!(!p.traces("cinnamon").is_empty());
    // ... and by the sweep.
    let bot = p.restart(bot).await;
    p.until_gone("cinnamon").await;
    assert_says(&p.prompt(p.help, p.ada).await, &["ginger"]);
    bot.stop().await;
    assert_eq!(conversations(&p), [of_ada(&p)]);
}

/// What is reported about a conversation.
#[tokio::test(flavor = "multi_thread")]
async fn get_context_stats() {
    let p = Place::new(Kind::Files, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    bot.stop().await;
    let created = read(&p, &of_ada(&p))["createdAt"].as_i64().unwrap();
    let store = p.open().await;
    let stats = store
        .conversation(scope(&p), UnixMillis(created + HOUR))
        .await;
    let expected = ConversationStats {
        exists: true,
        message_count: 2,
        expires_in: Some(Duration::from_hours(23)),
    };
    assert_eq!(stats.unwrap(), expected);
    let none = store
        .conversation(scope(&p), UnixMillis(created + DAY))
        .await;
    assert_eq!(none.unwrap(), ConversationStats::default());
    store.close().await.unwrap();
}
