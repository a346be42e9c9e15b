//! `/clear-context`.

use clew_simulator::{ChannelKind, Id, Permissions, Shown};
use serde_json::json;

use super::{Place, assert_refused, assert_says, labels, outcomes, place};

async fn ask(p: &Place, who: Id, channel: Id) -> Shown {
    p.call(who, channel, "clear-context", json!({})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conversation_goes_after_a_confirmation() {
    let (p, bot) = place(&[]).await;
    let other = p.stage.discord.channel(p.guild, ChannelKind::Text, "other");
    p.talk(p.ada, p.channel, "kumquat").await;
    p.talk(p.ada, other, "elsewhere").await;
    p.talk(p.boris, p.channel, "mine").await;
    let asked = ask(&p, p.ada, p.channel).await;
    assert_says(&asked, "yours alone, of this channel");
    assert_eq!(labels(&asked), ["Delete", "Cancel"]);
    let left = p.press(p.ada, &asked, "Cancel").await;
    assert_eq!(left.content, "Nothing changed.");
    assert!(labels(&left).is_empty());
    assert_eq!(p.stored(p.ada, p.channel).await, 2);
    let asked = ask(&p, p.ada, p.channel).await;
    let gone = p.press(p.ada, &asked, "Delete").await;
    assert_eq!(gone.content, "Deleted: 2 messages of our conversation.");
    assert!(labels(&gone).is_empty());
    assert_eq!(p.stored(p.ada, p.channel).await, 0);
    assert_eq!(p.stored(p.ada, other).await, 2);
    assert_eq!(p.stored(p.boris, p.channel).await, 2);
    let asked = ask(&p, p.ada, p.channel).await;
    let nothing = p.press(p.ada, &asked, "Delete").await;
    assert_says(&nothing, "nothing to delete");
    let lines = bot.stop().await;
    assert_eq!(outcomes(&lines, "clear_context"), ["done"; 3]);
    assert_eq!(outcomes(&lines, "button"), ["done"; 3]);
    assert!(!p.on_disk("kumquat"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_thread_is_for_its_owner_and_its_moderators() {
    let (p, bot) = place(&[("CONTEXT_SCOPE", "thread")]).await;
    let discord = &p.stage.discord;
    let moderator = discord.world(|world| world.member(p.guild, "Mo"));
    let role = discord.role(p.guild, "moderator", Permissions::MANAGE_MESSAGES);
    discord.set_role(p.guild, moderator, role, true);
    let thread = discord.thread(p.channel, ChannelKind::PublicThread, "pump", p.ada);
    p.talk(p.boris, thread, "one").await;
    p.talk(p.ada, thread, "two").await;
    assert_eq!(p.stored(p.boris, thread).await, 4, "one conversation");
    assert_refused(&ask(&p, p.boris, thread).await, "Manage Messages");
    let asked = ask(&p, moderator, thread).await;
    assert_says(&asked, "everybody's in this thread");
    // The right may be lost between the question and the press.
    discord.set_role(p.guild, moderator, role, false);
    let refused = p.press(moderator, &asked, "Delete").await;
    assert_refused(&refused, "Manage Messages");
    let asked = ask(&p, p.ada, thread).await;
    let gone = p.press(p.ada, &asked, "Delete").await;
    assert_says(&gone, "Deleted: 4 messages");
    p.talk(p.boris, p.channel, "alone").await;
    let asked = ask(&p, p.boris, p.channel).await;
    assert_says(&asked, "yours alone");
    bot.stop().await;
}
