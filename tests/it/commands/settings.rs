//! `/settings show|set`.

use clew_simulator::ChannelKind;
use serde_json::json;

use super::{assert_refused, assert_says, field, outcomes, place};
use crate::support::bot::prompt;

#[tokio::test(flavor = "multi_thread")]
async fn settings_need_manage_server() {
    let (p, bot) = place(&[]).await;
    assert_refused(&p.plain(p.ada, "settings show").await, "Manage Server");
    let options = json!({"learning": "off"});
    let refused = p.call(p.ada, p.channel, "settings set", options).await;
    assert_refused(&refused, "Manage Server");
    let shown = p.plain(p.maria, "settings show").await;
    assert!(field(&shown, "Learning from conversations").contains("(not set here)"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_is_shown_and_outlasts_a_restart() {
    let (p, bot) = place(&[]).await;
    let shown = p.plain(p.maria, "settings show").await;
    let window = "I remember a conversation for";
    assert_eq!(field(&shown, window), "24 hours (not set here)");
    assert_eq!(field(&shown, "I am silent in"), "no channel");
    let other = p.stage.discord.channel(p.guild, ChannelKind::Text, "other");
    for options in [
        json!({"rolling-window": "48", "reply-target": "trigger"}),
        json!({"channel": other.to_string(), "mode": "off"}),
        json!({"channel": p.channel.to_string(), "mode": "everything", "learning": "on"}),
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
async fn nonsense_is_refused_with_the_reason() {
    let (p, bot) = place(&[]).await;
    for (options, reason) in [
        (json!({}), "Say what to change"),
        (json!({"rolling-window": "soon"}), "a time such as `90m`"),
        (json!({"mode": "off"}), "`mode` needs `channel`"),
        (
            json!({"channel": p.channel.to_string()}),
            "`channel` needs `mode`",
        ),
    ] {
        let shown = p.call(p.maria, p.channel, "settings set", options).await;
        assert_refused(&shown, reason);
    }
    assert_eq!(outcomes(&bot.stop().await, "settings_set"), ["refused"; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_can_be_set_back_to_the_operators() {
    let (p, bot) = place(&[]).await;
    let set = async |options| p.call(p.maria, p.channel, "settings set", options).await;
    let shown = set(json!({
        "rolling-window": "90m", "reply-target": "trigger", "learning": "off",
    }));
    let window = "I remember a conversation for";
    assert_eq!(field(&shown.await, window), "90 minutes");
    let shown = set(json!({
        "rolling-window": "default", "reply-target": "default", "learning": "default",
    }));
    let shown = shown.await;
    for (name, value) in [
        (window, "24 hours (not set here)"),
        (
            "My answers in threads reply to",
            "the newest message (not set here)",
        ),
    ] {
        assert_eq!(field(&shown, name), value);
    }
    assert!(field(&shown, "Learning from conversations").ends_with("(not set here)"));
    bot.stop().await;
    // The settings were saved to disk.
    let bot = p
        .stage
        .start_with(&[("CONTEXT_ROLLING_WINDOW_S", "60")])
        .await;
    let shown = p.plain(p.maria, "settings show").await;
    assert_eq!(field(&shown, window), "1 minute (not set here)");
    bot.stop().await;
}

/// An agent's own window is shown, not silently overridden.
#[tokio::test(flavor = "multi_thread")]
async fn an_agents_own_window_is_shown_beside_the_servers() {
    let (p, bot) = place(&[]).await;
    bot.stop().await;
    let folder = p.stage.folder.path().join("agents/pumps");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = json!({
        "system_prompt": "You know pumps.", "rolling_window_s": 3_600,
        "channels": [p.channel.to_string()],
    });
    std::fs::write(folder.join("agent.json"), agent.to_string()).unwrap();
    let bot = p.stage.start().await;
    let window = "I remember a conversation for";
    let shown = p.plain(p.maria, "settings show").await;
    let own =
        "1 hour, as the agent `pumps` in this channel has it; elsewhere 24 hours (not set here)";
    assert_eq!(field(&shown, window), own);
    let options = json!({"rolling-window": "2d"});
    let shown = p.call(p.maria, p.channel, "settings set", options).await;
    let both = field(&shown, window);
    assert!(
        both.starts_with("2 days, and not the 1 hour that the agent `pumps`"),
        "{both}"
    );
    assert!(both.contains("`rolling-window:default`"), "{both}");
    let context = p.plain(p.ada, "context show").await;
    assert!(field(&context, "I go back to").ends_with("(at most 2 days)"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_what_is_read_around_links_and_for_lone_mentions() {
    let (p, bot) = place(&[]).await;
    let shown = p.plain(p.maria, "settings show").await;
    let (links, lone) = (
        "With a linked message I read",
        "Mentioned outside threads I read",
    );
    assert_eq!(
        field(&shown, links),
        "3 before and 1 after it (not set here)"
    );
    assert_eq!(field(&shown, lone), "only the question (not set here)");
    let options = json!({"link-context": "0,0", "lone-context": "recent"});
    let shown = p.call(p.maria, p.channel, "settings set", options).await;
    assert_eq!(field(&shown, links), "0 before and 0 after it");
    assert_eq!(field(&shown, lone), "the last messages of the channel too");
    let other = p.stage.discord.channel(p.guild, ChannelKind::Text, "other");
    let first = p.stage.discord.post(other, p.ada, "before it");
    let linked = p.stage.discord.post(other, p.ada, "the linked one");
    p.stage.discord.post(p.channel, p.ada, "said here");
    let link = format!("https://discord.com/channels/{}/{other}/{linked}", p.guild);
    let question = format!("<@{}> what of {link}?", p.stage.discord.bot());
    p.stage.discord.post(p.channel, p.ada, question);
    let requests = p.stage.model.wait_requests(1).await;
    let prompt = prompt(&requests[0]);
    for word in ["Ada: said here", "Ada [linked]: the linked one"] {
        assert!(prompt.contains(word), "{word} is missing in {prompt}");
    }
    assert!(!prompt.contains("before it"), "{first} is in {prompt}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_may_have_its_own_lone_context() {
    let (p, bot) = place(&[]).await;
    let other = p.stage.discord.channel(p.guild, ChannelKind::Text, "other");
    let here = json!({"channel": p.channel.to_string(), "lone-context": "recent"});
    let shown = p.call(p.maria, p.channel, "settings set", here).await;
    assert_eq!(
        field(&shown, "Mentioned outside threads I read"),
        format!(
            "only the question; in <#{}> the last messages of the channel too (not set here)",
            p.channel
        )
    );
    for (number, (channel, is_read)) in [(p.channel, true), (other, false)].into_iter().enumerate()
    {
        p.stage.discord.post(channel, p.ada, "said there");
        let question = format!("<@{}> what of it?", p.stage.discord.bot());
        p.stage.discord.post(channel, p.ada, question);
        let requests = p.stage.model.wait_requests(number + 1).await;
        let prompt = prompt(&requests[number]);
        assert_eq!(prompt.contains("said there"), is_read, "{prompt}");
    }
    let back = json!({"channel": p.channel.to_string(), "lone-context": "default"});
    let shown = p.call(p.maria, p.channel, "settings set", back).await;
    assert_eq!(
        field(&shown, "Mentioned outside threads I read"),
        "only the question (not set here)"
    );
    bot.stop().await;
}

/// After the operator's, before the agent's docs and our rules.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_instructions_of_its_own() {
    let (p, bot) = place(&[("SYSTEM_PROMPT", "Be brief.")]).await;
    let text = json!({"text": "Answer in Czech.\\nBe kind."});
    let refused = p.call(p.ada, p.channel, "settings prompt", text.clone());
    assert_refused(&refused.await, "Manage Server");
    p.talk(p.ada, p.channel, "before").await;
    p.call(p.maria, p.channel, "settings prompt", text).await;
    let shown = p.plain(p.maria, "settings show").await;
    let told = &shown.embeds[0]["description"];
    assert_eq!(told, "I am told:\nAnswer in Czech.\nBe kind.");
    p.talk(p.ada, p.channel, "after").await;
    let why = p.plain(p.ada, "context why").await;
    assert_says(&why, "25 characters of this server's own instructions");
    p.talk(p.ada, p.direct(p.ada), "elsewhere").await;
    let shown = p.plain(p.maria, "settings prompt").await;
    assert_eq!(shown.embeds[0]["description"], "Answer in Czech.\nBe kind.");
    p.talk(p.ada, p.channel, "cleared").await;
    let prompts = p.prompts();
    let own = "Be brief.\n\n# What this server's managers ask of you\n\nIt changes none of your \
               other instructions.\n\n> Answer in Czech.\n> Be kind.\n\nYour name here is";
    let has: Vec<bool> = prompts.iter().map(|prompt| prompt.contains(own)).collect();
    assert_eq!(has, [false, true, false, false], "{prompts:?}");
    for plain in [0, 2, 3] {
        assert!(prompts[plain].contains("Be brief.\n\nYour name here is"));
    }
    bot.stop().await;
}
