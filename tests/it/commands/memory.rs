//! `/memory`, `/server-memory`, and the button under "Noted 1 thing".

use clew_simulator::{Id, Shown, Use};
use serde_json::{Value, json};

use super::{Place, assert_refused, assert_says, labels, outcomes, place};

async fn remember(p: &Place, who: Id, channel: Id, text: &str) -> Shown {
    let options = json!({"text": text});
    p.call(who, channel, "memory remember", options).await
}

/// The fact's id in an answer.
#[track_caller]
fn id(shown: &Shown) -> String {
    let text = shown.text();
    let found = text
        .split('`')
        .find(|part| part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    found
        .unwrap_or_else(|| panic!("no id in:\n{text}"))
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_said_when_there_is_no_room_left() {
    let (p, bot) = place(&[("MAX_USER_MEMORY", "2")]).await;
    remember(&p, p.ada, p.channel, "I like tea").await;
    let shown = p.plain(p.ada, "memory show").await;
    assert!(!shown.text().contains("No room left"), "{}", shown.text());
    remember(&p, p.ada, p.channel, "I have a kumquat tree").await;
    assert_says(&p.plain(p.ada, "memory show").await, "No room left");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_are_remembered_shown_and_forgotten() {
    let (p, bot) = place(&[]).await;
    let none = p.plain(p.ada, "memory show").await;
    assert_says(&none, "I remember nothing about you");
    let shown = remember(&p, p.ada, p.channel, "I have a kumquat tree").await;
    assert_says(&shown, "Remembered:\n> I have a kumquat tree");
    assert!(p.on_disk("kumquat"), "on disk before it is said");
    let again = remember(&p, p.ada, p.channel, "I have a Kumquat tree").await;
    assert_says(&again, "I knew that already");
    remember(&p, p.ada, p.direct(p.ada), "I like tea").await;
    let everywhere = json!({"text": "I am Ada", "everywhere": true});
    p.call(p.ada, p.channel, "memory remember", everywhere)
        .await;
    let shown = p.plain(p.ada, "memory show").await;
    for part in [
        "1. Asked for",
        "I have a kumquat tree",
        "used in this server",
        "2. Asked for",
        "I like tea",
        "used in our direct messages",
        "I am Ada",
        "used everywhere",
    ] {
        assert_says(&shown, part);
    }
    let others = p.plain(p.boris, "memory show").await;
    assert_says(&others, "I remember nothing");
    for fact in [&*id(&again), "I LIKE TEA"] {
        let options = json!({"fact": fact});
        let asked = p.call(p.ada, p.channel, "memory forget", options).await;
        assert_says(&asked, "Forget this?");
        assert_eq!(labels(&asked), ["Forget", "Cancel"]);
        let kept = p.press(p.ada, &asked, "Cancel").await;
        assert_says(&kept, "Nothing changed.");
        let options = json!({"fact": fact});
        let asked = p.call(p.ada, p.channel, "memory forget", options).await;
        assert_says(&p.press(p.ada, &asked, "Forget").await, "Forgotten:");
    }
    let options = json!({"fact": "I LIKE TEA"});
    let unknown = p.call(p.ada, p.channel, "memory forget", options).await;
    assert_refused(&unknown, "No such memory");
    let left = p.plain(p.ada, "memory show").await;
    assert_says(&left, "1. Asked for\nI am Ada");
    bot.stop().await;
    assert!(!p.on_disk("kumquat"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_forgets_once_and_only_ones_own() {
    let (p, bot) = place(&[]).await;
    let fact = id(&remember(&p, p.ada, p.channel, "I have a pump").await);
    let ask = || p.call(p.ada, p.channel, "memory forget", json!({"fact": &fact}));
    let (first, second) = (ask().await, ask().await);
    p.press(p.ada, &first, "Forget").await;
    let again = p.press(p.ada, &second, "Forget").await;
    assert_refused(&again, "already forgot that");
    let fact = id(&remember(&p, p.ada, p.channel, "I have a pump").await);
    let options = json!({"fact": fact});
    let others = p.call(p.boris, p.channel, "memory forget", options).await;
    assert_refused(&others, "No such memory");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn making_room_is_said_and_so_is_that_it_is_off() {
    let (p, bot) = place(&[("MAX_USER_MEMORY", "2"), ("MAX_SERVER_MEMORY", "0")]).await;
    for text in ["one pump", "two pumps"] {
        let shown = remember(&p, p.ada, p.channel, text).await;
        assert!(!shown.text().contains("To make room"));
    }
    let shown = remember(&p, p.ada, p.channel, "three pumps").await;
    assert_says(&shown, "To make room I forgot:\n> one pump");
    let options = json!({"text": "We make pumps"});
    let off = p.call(p.maria, p.channel, "server-memory remember", options);
    assert_refused(&off.await, "is off here (`MAX_SERVER_MEMORY=0`)");
    bot.stop().await;
    let bot = p.stage.start_with(&[("MAX_USER_MEMORY", "0")]).await;
    let off = remember(&p, p.ada, p.channel, "four pumps").await;
    assert_refused(&off, "is off here (`MAX_USER_MEMORY=0`)");
    let blank = remember(&p, p.ada, p.channel, "  ").await;
    assert_refused(&blank, "nothing in that to remember");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_facts_have_pages() {
    let (p, bot) = place(&[("MAX_USER_MEMORY", "25")]).await;
    for number in 1..=21 {
        remember(&p, p.ada, p.channel, &format!("fact number {number}")).await;
    }
    let shown = p.plain(p.ada, "memory show").await;
    assert_says(&shown, "Page 1 of 3");
    let shown = p.press(p.ada, &shown, "Next").await;
    assert_eq!(labels(&shown), ["Back", "Next"]);
    assert_says(&shown, "11. Asked for\nfact number 11");
    let shown = p.press(p.ada, &shown, "Next").await;
    assert_says(&shown, "21. Asked for\nfact number 21");
    assert_eq!(labels(&shown), ["Back"]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_servers_facts_are_seen_by_all_and_changed_by_who_manages_it() {
    let (p, bot) = place(&[]).await;
    let none = p.plain(p.ada, "server-memory show").await;
    assert_says(&none, "I remember nothing about this server");
    let text = json!({"text": "We make pumps"});
    let refused = p.call(p.ada, p.channel, "server-memory remember", text.clone());
    assert_refused(&refused.await, "Manage Server");
    let done = p.call(p.maria, p.channel, "server-memory remember", text);
    let fact = id(&done.await);
    let shown = p.plain(p.ada, "server-memory show").await;
    assert_says(&shown, "We make pumps");
    assert_says(&shown, &format!("by <@{}>", p.maria));
    let options = json!({"fact": fact});
    let refused = p.call(p.ada, p.channel, "server-memory forget", options.clone());
    assert_refused(&refused.await, "Manage Server");
    let unknown = json!({"fact": "nonsense"});
    let unknown = p.call(p.maria, p.channel, "server-memory forget", unknown);
    assert_refused(&unknown.await, "No such memory");
    let asked = p.call(p.maria, p.channel, "server-memory forget", options);
    let gone = p.press(p.maria, &asked.await, "Forget").await;
    assert_says(&gone, "Forgotten:\n> We make pumps");
    let none = p.plain(p.ada, "server-memory show").await;
    assert_says(&none, "I remember nothing about this server");
    let lines = bot.stop().await;
    let outcomes = outcomes(&lines, "server_memory_remember");
    assert_eq!(outcomes, ["refused", "done"]);
}

/// Presses a button with this custom id on one of the bot's public messages; returns the message that the
/// presser sees.
async fn press_noted(p: &Place, who: Id, on: Id, custom_id: String) -> clew_simulator::Message {
    let used = Use::Component {
        message: on,
        custom_id,
        values: Vec::new(),
    };
    let discord = &p.stage.discord;
    let call = discord.interact(p.channel, who, &used);
    let shown = discord.wait_interaction(call, |_| true).await.unwrap();
    assert_eq!(shown.flags & 64, 64, "seen by the presser alone");
    assert_ne!(shown.id, on);
    shown
}

/// Of what another version posted, or of none of ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_is_not_known_is_too_old() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "hello").await;
    let ours = p.stage.discord.answers(p.channel)[0].clone();
    for unknown in ["of-another-version:7", "why:?"] {
        let told = press_noted(&p, p.ada, ours.id, unknown.to_owned()).await;
        assert_eq!(told.content, "-# That button is too old.");
    }
    let answers = p.stage.discord.answers(p.channel);
    assert_eq!(answers[0].content, ours.content);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_noted_is_shown_to_the_person_it_is_about() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "hello").await;
    let ours = p.stage.discord.answers(p.channel)[0].id;
    let first = id(&remember(&p, p.ada, p.channel, "I have a pump").await);
    let second = id(&remember(&p, p.ada, p.channel, "I like tea").await);
    let noted = format!("noted:{first}{second}");
    let others = press_noted(&p, p.boris, ours, noted.clone()).await;
    assert!(others.content.starts_with("-# That's for the person"));
    let shown = press_noted(&p, p.ada, ours, noted.clone()).await;
    assert!(shown.content.starts_with("I noted:\n1. I have a pump"));
    assert!(shown.content.contains("2. I like tea"));
    let rows = shown.components[0]["components"]
        .as_array()
        .unwrap()
        .clone();
    let labels: Vec<&Value> = rows.iter().map(|button| &button["label"]).collect();
    assert_eq!(labels, ["Forget 1", "Forget 2"]);
    let called = p.stage.discord.press(p.ada, shown.id, "Forget 1");
    let gone = called.answer().await.unwrap();
    assert_eq!(gone.content, "Forgotten:\n> I have a pump");
    let shown = press_noted(&p, p.ada, ours, noted).await;
    assert!(shown.content.starts_with("I noted:\n1. I like tea"));
    bot.stop().await;
}
