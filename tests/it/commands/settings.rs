//! `/settings show|set`.

use clew_simulator::ChannelKind;
use serde_json::json;

use super::{assert_refused, field, outcomes, place};

#[tokio::test(flavor = "multi_thread")]
async fn settings_need_manage_server() {
    let (p, bot) = place(&[]).await;
    assert_refused(&p.plain(p.ada, "settings show").await, "Manage Server");
    let options = json!({"learning": false});
    let refused = p.call(p.ada, p.channel, "settings set", options).await;
    assert_refused(&refused, "Manage Server");
    let shown = p.plain(p.maria, "settings show").await;
    assert!(field(&shown, "Learning from conversations").contains("(not set here)"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_is_shown_and_stays() {
    let (p, bot) = place(&[]).await;
    let shown = p.plain(p.maria, "settings show").await;
    let window = "I remember a conversation for";
    assert_eq!(field(&shown, window), "24 hours (not set here)");
    assert_eq!(field(&shown, "I am silent in"), "no channel");
    let other = p.stage.discord.channel(p.guild, ChannelKind::Text, "other");
    for options in [
        json!({"rolling-window": 48, "reply-target": "trigger"}),
        json!({"channel": other.to_string(), "mode": "off"}),
        json!({"channel": p.channel.to_string(), "mode": "everything", "learning": true}),
    ] {
        p.call(p.maria, p.channel, "settings set", options).await;
    }
    let options = json!({"channel": p.channel.to_string(), "mode": "mentions"});
    let shown = p.call(p.maria, p.channel, "settings set", options).await;
    assert_eq!(field(&shown, window), "2 days");
    let target = "My answers in threads reply to";
    assert_eq!(field(&shown, target), "the message that asked");
    assert_eq!(field(&shown, "I am silent in"), format!("<#{other}>"));
    assert_eq!(field(&shown, "I answer every message in"), "no channel");
    bot.stop().await;
    let bot = p.stage.start().await;
    let shown = p.plain(p.maria, "settings show").await;
    assert_eq!(field(&shown, window), "2 days");
    let context = p.plain(p.ada, "context show").await;
    assert!(field(&context, "I go back to").ends_with("(at most 2 days)"));
    let lines = bot.stop().await;
    assert_eq!(outcomes(&lines, "settings_set"), ["done"; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_with_the_reason() {
    let (p, bot) = place(&[]).await;
    for (options, reason) in [
        (json!({}), "Say what to change"),
        (json!({"mode": "off"}), "`mode` needs `channel`"),
        (
            json!({"channel": p.channel.to_string()}),
            "`channel` needs `mode`",
        ),
    ] {
        let shown = p.call(p.maria, p.channel, "settings set", options).await;
        assert_refused(&shown, reason);
    }
    assert_eq!(outcomes(&bot.stop().await, "settings_set"), ["refused"; 3]);
}
