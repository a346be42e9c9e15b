//! Deletions of what has not reached a store yet: a turn being answered, a conversation being summarised, a
//! thread whose channel is deleted.

use clew_simulator::ChannelKind;
use serde_json::json;

use super::{Place, assert_refused, assert_says, place};
use crate::support::model::Behaviour;

/// In every text that must not be kept.
const MARK: &str = "kumquat";

/// Erases everything of Ada.
async fn erase(p: &Place) {
    let asked = p.plain(p.ada, "privacy erase").await;
    p.press(p.ada, &asked, "Erase everything").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_runs_while_its_asker_erases_leaves_nothing() {
    let (p, bot) = place(&[]).await;
    let (gated, gate) = Behaviour::gated(&["Here you are."]);
    p.stage.model.script(gated);
    let text = format!("<@{}> a {MARK}, please", p.us);
    p.stage.discord.post(p.channel, p.ada, text);
    p.stage.model.wait_requests(1).await;
    erase(&p).await;
    gate.open();
    p.stage.discord.wait_answers(p.channel, 1).await.unwrap();
    // What is asked after the erasure is kept as usual.
    p.talk(p.ada, p.channel, "and a pear").await;
    assert_eq!(p.stored(p.ada, p.channel).await, 2);
    bot.stop().await;
    assert!(!p.on_disk(MARK));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_erased_while_it_is_summarised_is_not_saved() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, &format!("a {MARK}, please")).await;
    let (gated, gate) = Behaviour::gated(&[&format!("They want a {MARK}.")]);
    p.stage.model.script(gated);
    let saving = p.plain(p.ada, "context save");
    let erasing = async {
        p.stage.model.wait_requests(2).await;
        erase(&p).await;
        gate.open();
    };
    let (saved, ()) = tokio::join!(saving, erasing);
    assert_refused(&saved, "Nothing to save");
    bot.stop().await;
    assert!(!p.on_disk(MARK));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_while_it_is_summarised_is_not_saved() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "a pear").await;
    let text = format!("<@{}> and a {MARK}, please", p.us);
    let marked = p.stage.discord.post(p.channel, p.ada, text);
    p.stage.discord.wait_answers(p.channel, 2).await.unwrap();
    for _ in 0..1_000 {
        if p.stored(p.ada, p.channel).await == 4 {
            break;
        }
    }
    let (gated, gate) = Behaviour::gated(&[&format!("They want a {MARK}.")]);
    p.stage.model.script(gated);
    let saving = p.plain(p.ada, "context save");
    let deleting = async {
        p.stage.model.wait_requests(3).await;
        assert!(p.stage.discord.delete(p.channel, marked));
        // The answer to a later event shows that the bot has seen the deletion.
        p.plain(p.boris, "help").await;
        gate.open();
    };
    let (saved, ()) = tokio::join!(saving, deleting);
    assert_says(&saved, "Saved 2 messages");
    assert_says(&saved, "(summary generation failed)");
    bot.stop().await;
    assert!(!p.on_disk(MARK));
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_in_threads_are_deleted_with_their_channel() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let kind = ChannelKind::PublicThread;
    let thread = discord.thread(p.channel, kind, "fruit", p.ada);
    p.talk(p.ada, thread, &format!("a {MARK}, please")).await;
    discord.delete_channel(p.channel);
    // The answer to a later event shows that the bot has seen the deletion.
    let direct = p.direct(p.ada);
    p.call(p.ada, direct, "help", json!({})).await;
    bot.stop().await;
    assert!(!p.on_disk(MARK));
}
