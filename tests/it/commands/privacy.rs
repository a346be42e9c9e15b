//! `/privacy show|opt-out|opt-in|export|erase`.

use clew_simulator::Draft;
use serde_json::{Value, json};

use super::{Place, assert_refused, assert_says, field, holds, labels, outcomes, place};

/// In everything that Ada says.
const MARK: &str = "kumquat";

/// Ada talks, saves, and has something remembered.
async fn leave_traces(p: &Place) {
    p.talk(p.ada, p.channel, &format!("a {MARK}, please")).await;
    p.plain(p.ada, "context save").await;
    let options = json!({"text": format!("I like the {MARK}")});
    p.call(p.ada, p.channel, "memory remember", options).await;
    p.plain(p.ada, "context clear").await;
    let direct = p.direct(p.ada);
    p.talk(p.ada, direct, &format!("{MARK} again")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn show_counts_what_is_kept() {
    let (p, bot) = place(&[("RETENTION_DAYS", "90")]).await;
    let shown = p.plain(p.ada, "privacy show").await;
    assert_eq!(field(&shown, "Kept of you"), "nothing");
    leave_traces(&p).await;
    let shown = p.plain(p.ada, "privacy show").await;
    let kept = field(&shown, "Kept of you");
    for line in [
        "4 messages of our conversations",
        "1 moment at which we started fresh",
        "1 conversation that you saved",
        "1 thing that I remember about you",
    ] {
        assert!(kept.lines().any(|found| found == line), "{kept}");
    }
    assert!(field(&shown, "For how long").starts_with("Texts go after 90 days."));
    assert_eq!(field(&shown, "Opted out"), "no");
    let shown = p.plain(p.boris, "privacy show").await;
    assert_eq!(field(&shown, "Kept of you"), "nothing");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn erase_asks_and_leaves_nothing() {
    // The interval is long: nothing may be left until the next save.
    let (p, bot) = place(&[("MEMORY_SAVE_INTERVAL", "3600")]).await;
    leave_traces(&p).await;
    p.talk(p.boris, p.channel, "mine").await;
    let asked = p.plain(p.ada, "privacy erase").await;
    assert_eq!(labels(&asked), ["Erase everything", "Cancel"]);
    let kept = p.press(p.ada, &asked, "Cancel").await;
    assert_says(&kept, "Nothing changed.");
    assert_eq!(p.stored(p.ada, p.channel).await, 2);
    let asked = p.plain(p.ada, "privacy erase").await;
    let gone = p.press(p.ada, &asked, "Erase everything").await;
    for line in [
        "Erased:\n4 messages of our conversations",
        "1 conversation that you saved",
        "1 thing that I remember about you",
        "1 moment at which we started fresh",
    ] {
        assert_says(&gone, line);
    }
    for internal in ["store", "snapshot", "marker", "facts about"] {
        assert!(!gone.text().contains(internal), "{}", gone.text());
    }
    assert_eq!(p.stored(p.ada, p.channel).await, 0);
    assert_eq!(p.stored(p.boris, p.channel).await, 2);
    let shown = p.plain(p.ada, "memory show").await;
    assert_says(&shown, "I remember nothing about you");
    let asked = p.plain(p.ada, "privacy erase").await;
    let nothing = p.press(p.ada, &asked, "Erase everything").await;
    assert_says(&nothing, "There was nothing to erase.");
    bot.stop().await;
    assert!(!p.on_disk(MARK));
}

/// An erasure that the end of the bot breaks off is not confirmed, keeps nobody waiting, and can
/// be asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_is_broken_off_is_not_confirmed() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, &format!("a {MARK}, please")).await;
    let asked = p.plain(p.ada, "privacy erase").await;
    // Another program holds the database for as long as it likes.
    let other = rusqlite::Connection::open(p.stage.folder.path().join("clew.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let pressed = p
        .stage
        .discord
        .press(p.ada, asked.message, "Erase everything");
    while pressed.callback().is_none() {
        tokio::task::yield_now().await;
    }
    bot.ask_to_stop();
    let shown = pressed.answer().await.unwrap();
    assert_says(&shown, "I'm restarting, and this isn't finished.");
    bot.stop().await;
    drop(other);
    let bot = p.stage.start().await;
    assert_eq!(p.stored(p.ada, p.channel).await, 2);
    let asked = p.plain(p.ada, "privacy erase").await;
    let gone = p.press(p.ada, &asked, "Erase everything").await;
    assert_says(&gone, "2 messages of our conversations");
    bot.stop().await;
    assert!(!p.on_disk(MARK));
}

/// Beside the words, ids and times: after the confirmation, while the bot runs, in any file of
/// the database.
#[tokio::test(flavor = "multi_thread")]
async fn after_an_erasure_no_byte_of_ids_is_in_the_database() {
    let (p, bot) = place(&[]).await;
    p.talk(p.boris, p.channel, "mine").await;
    let mut ids = vec![p.ada];
    for number in 1..=8 {
        let question = Draft::new(format!("<@{}> {MARK} {number}", p.us));
        ids.push(p.ask(p.ada, p.channel, question).await);
        ids.push(p.stage.discord.answers(p.channel).last().unwrap().id);
        p.talk(p.boris, p.channel, "mine").await;
    }
    p.plain(p.ada, "context save").await;
    let options = json!({"text": format!("I like the {MARK}")});
    p.call(p.ada, p.channel, "memory remember", options).await;
    let mut parts = vec![MARK.as_bytes().to_vec()];
    for id in ids {
        parts.push(id.0.to_be_bytes().into());
        parts.push(id.0.to_string().into_bytes());
    }
    let found = || {
        let names = ["clew.db", "clew.db-wal", "clew.db-shm"];
        let files = names.map(|name| std::fs::read(p.stage.folder.path().join(name)).unwrap());
        let is_found = |part: &&Vec<u8>| files.iter().any(|file| holds(file, part));
        parts.iter().filter(is_found).count()
    };
    assert!(found() > 16, "{}", found());
    let asked = p.plain(p.ada, "privacy erase").await;
    p.press(p.ada, &asked, "Erase everything").await;
    assert_eq!(found(), 0);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opting_out_erases_and_keeps_nothing_from_then_on() {
    let (p, bot) = place(&[]).await;
    leave_traces(&p).await;
    let asked = p.plain(p.ada, "privacy opt-out").await;
    assert_eq!(labels(&asked), ["Opt out and erase", "Cancel"]);
    assert_says(&p.press(p.ada, &asked, "Cancel").await, "Nothing changed.");
    let asked = p.plain(p.ada, "privacy opt-out").await;
    let out = p.press(p.ada, &asked, "Opt out and erase").await;
    assert_says(
        &out,
        "You have opted out. Erased:\n4 messages of our conversations",
    );
    assert!(!p.on_disk(MARK));
    assert_refused(
        &p.plain(p.ada, "privacy opt-out").await,
        "already opted out",
    );
    // Erasing again does not undo the opt-out.
    let asked = p.plain(p.ada, "privacy erase").await;
    let gone = p.press(p.ada, &asked, "Erase everything").await;
    assert_says(&gone, "All I still know is that you opted out.");
    let text = json!({"text": MARK});
    for (command, options) in [
        ("memory remember", text),
        ("context clear", json!({})),
        ("context save", json!({})),
        (
            "context restore",
            json!({"snapshot": "00000000-0000-4000-8000-000000000000"}),
        ),
    ] {
        let refused = p.call(p.ada, p.channel, command, options).await;
        assert_eq!(labels(&refused), Vec::<String>::new());
        assert!(
            refused.content.starts_with("-# "),
            "{command}: {}",
            refused.content
        );
    }
    let shown = p.plain(p.ada, "privacy show").await;
    assert!(field(&shown, "Opted out").starts_with("yes"));
    bot.stop().await;
    let bot = p.stage.start().await;
    let shown = p.plain(p.ada, "privacy show").await;
    assert!(
        field(&shown, "Opted out").starts_with("yes"),
        "over a restart"
    );
    assert_says(&p.plain(p.ada, "privacy opt-in").await, "Welcome back");
    assert_refused(&p.plain(p.ada, "privacy opt-in").await, "haven't opted out");
    p.talk(p.ada, p.channel, "and again").await;
    bot.stop().await;
    assert!(!p.on_disk(MARK));
}

/// Her messages are dropped from the window at once, so others' prompts lack them too.
#[tokio::test(flavor = "multi_thread")]
async fn others_prompts_lack_who_opted_out() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let kind = clew_simulator::ChannelKind::PublicThread;
    let thread = discord.thread(p.channel, kind, "pump", p.boris);
    discord.post(thread, p.ada, format!("it was the {MARK}"));
    p.talk(p.boris, thread, "who was it?").await;
    assert!(p.prompts()[0].contains(MARK));
    let asked = p.plain(p.ada, "privacy opt-out").await;
    p.press(p.ada, &asked, "Opt out and erase").await;
    p.talk(p.boris, thread, "and what did she say?").await;
    assert!(!p.prompts()[1].contains(MARK), "{}", p.prompts()[1]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_comes_by_direct_message_as_one_file() {
    let (p, bot) = place(&[]).await;
    leave_traces(&p).await;
    let shown = p.plain(p.ada, "privacy export").await;
    assert_says(&shown, "I sent you everything");
    assert!(shown.files.is_empty());
    let direct = p.direct(p.ada);
    let sent = p.stage.discord.answers(direct).pop().unwrap();
    assert_eq!(sent.attachments.len(), 1);
    let file = &sent.attachments[0].file;
    assert_eq!(file.name, format!("clew-export-{}.json", p.ada));
    let document: Value = serde_json::from_slice(&file.bytes).unwrap();
    assert_eq!(document["user_id"], p.ada.to_string());
    assert!(document["exported_at"].is_string());
    let entries = document["entries"].as_array().unwrap();
    let count = |kind: &str| entries.iter().filter(|entry| entry["kind"] == kind).count();
    assert_eq!(
        ["message", "marker", "snapshot", "fact"].map(count),
        [4, 1, 1, 1]
    );
    assert_eq!(outcomes(&bot.stop().await, "privacy_export"), ["done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_direct_messages_closed_an_export_is_shown_to_the_caller_alone() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, MARK).await;
    let discord = &p.stage.discord;
    discord.world(|world| world.settings.closed_to_dms.insert(p.ada));
    let called = discord.call(p.ada, p.channel, "privacy export", json!({}));
    let called = called.await.unwrap();
    let shown = called.answer().await.unwrap();
    assert_says(&shown, "You take no direct messages from me");
    let file = called.follow_up(0).await.unwrap();
    assert!(shown.ephemeral && file.ephemeral);
    assert_eq!(file.files.len(), 1);
    let text = String::from_utf8(file.files[0].bytes.clone()).unwrap();
    assert!(text.contains(MARK));
    bot.stop().await;
}

/// Anyone can always see and erase what is kept about them.
#[tokio::test(flavor = "multi_thread")]
async fn privacy_and_help_ignore_the_access_lists() {
    let (p, bot) = place(&[]).await;
    leave_traces(&p).await;
    bot.stop().await;
    let bot = p.stage.start_with(&[("ALLOWED", "user:1")]).await;
    let refused = p.plain(p.ada, "memory show").await;
    assert_refused(&refused, "I may not answer you here");
    p.plain(p.ada, "help").await;
    let shown = p.plain(p.ada, "privacy show").await;
    assert!(field(&shown, "Kept of you").contains("4 messages"));
    let asked = p.plain(p.ada, "privacy erase").await;
    let gone = p.press(p.ada, &asked, "Erase everything").await;
    assert_says(&gone, "4 messages");
    let lines = bot.stop().await;
    let refused = crate::support::bot::details(&lines, "refused");
    assert_eq!(refused.len(), 1);
    assert!(!p.on_disk(MARK));
}

/// Telemetry is not erased: users who ask are told what it holds, and whether under pseudonyms.
#[tokio::test(flavor = "multi_thread")]
async fn what_telemetry_keeps_is_told() {
    for (ids, you) in [("plain", "your id"), ("keyed", "a pseudonym for you")] {
        let settings = [("TELEMETRY_IDS", ids), ("TELEMETRY_KEEP_DAYS", "12")];
        let (p, bot) = place(&settings).await;
        leave_traces(&p).await;
        let shown = p.plain(p.ada, "privacy show").await;
        let said = field(&shown, "In my operator's records");
        assert!(said.contains(you), "{said}");
        assert!(said.contains("They go after 12 days."), "{said}");
        let asked = p.plain(p.ada, "privacy erase").await;
        let gone = p.press(p.ada, &asked, "Erase everything").await;
        assert_says(
            &gone,
            &format!("My operator's records stay, without a word of yours: {said}"),
        );
        let direct = p.direct(p.ada);
        let lines = bot.stop().await;
        let names = |key: &str, id: clew_simulator::Id| {
            let id = id.0.to_string();
            lines.iter().filter(|line| line[key] == id.as_str()).count()
        };
        let is_plain = ids == "plain";
        assert_eq!(names("user_id", p.ada) > 0, is_plain);
        assert_eq!(names("channel_id", direct) > 0, is_plain);
        assert!(
            names("channel_id", p.channel) > 0,
            "a server's channel is no personal id"
        );
        let people = |lines: &[Value]| -> std::collections::BTreeSet<String> {
            let ids = lines.iter().filter_map(|line| line["user_id"].as_str());
            ids.map(str::to_owned).collect()
        };
        assert_eq!(people(&lines).len(), 1, "Ada alone, by id or pseudonym");
        let key = p.stage.state().join("telemetry.key");
        assert_eq!(key.exists(), !is_plain);
        if !is_plain {
            use std::os::unix::fs::PermissionsExt;
            let kept = std::fs::metadata(&key).unwrap();
            assert_eq!((kept.len(), kept.permissions().mode() & 0o777), (32, 0o600));
            let bot = p.stage.start().await;
            p.talk(p.ada, p.channel, "again").await;
            assert_eq!(
                people(&bot.stop().await).len(),
                1,
                "the same after a restart"
            );
        }
    }
}
