//! `/block` and `/unblock`.

use clew_simulator::{Id, Permissions};
use serde_json::json;

use super::{Place, assert_refused, place};
use crate::support::bot::details;
use crate::support::model::Behaviour;

/// Gives Boris Moderate Members.
fn moderator(p: &Place) -> Id {
    let discord = &p.stage.discord;
    let role = discord.role(p.guild, "moderator", Permissions::MODERATE_MEMBERS);
    discord.set_role(p.guild, p.boris, role, true);
    p.boris
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_member_gets_no_answers_in_that_server() {
    let (p, bot) = place(&[]).await;
    let moderator = moderator(&p);
    let ada = json!({"member": p.ada.to_string()});
    let block = p.call(moderator, p.channel, "block member", ada.clone());
    let told = format!("I no longer answer <@{}> here.", p.ada);
    assert_eq!(block.await.text(), told);
    // Mentions without a word, calls for the caller alone.
    let question = format!("<@{}> why?", p.us);
    p.stage.discord.post(p.channel, p.ada, question.as_str());
    let options = json!({"question": "why?"});
    let refused = p.call(p.ada, p.channel, "ask", options).await;
    assert_refused(&refused, "don't let you ask me here");
    let usage = p.plain(p.ada, "usage").await;
    let why = super::field(&usage, "I last refused you here");
    assert!(why.ends_with("don't let you ask me here"), "{why}");
    // Others, and elsewhere, are answered.
    p.talk(p.ada, p.direct(p.ada), "and here?").await;
    p.talk(moderator, p.channel, "and me?").await;
    assert_eq!(p.prompts().len(), 2);
    // A restart changes nothing.
    bot.stop().await;
    let bot = p.stage.start().await;
    let list = p.plain(moderator, "block list").await;
    assert_eq!(super::field(&list, "Members"), format!("<@{}>", p.ada));
    p.call(moderator, p.channel, "unblock", ada).await;
    p.talk(p.ada, p.channel, "and now?").await;
    let lines = bot.stop().await;
    let refused = details(&lines, "refused");
    let blocked = refused.iter().filter(|one| one["reason"] == "blocked");
    assert_eq!(blocked.count(), 2, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_moderators_block_and_not_without_end() {
    let (p, bot) = place(&[]).await;
    let boris = json!({"member": p.boris.to_string()});
    for command in ["block member", "unblock"] {
        let refused = p.call(p.maria, p.channel, command, boris.clone()).await;
        assert_refused(&refused, "Moderate Members");
    }
    let moderator = moderator(&p);
    for id in 1..=200 {
        let member = json!({"member": (1_000 + id).to_string()});
        p.call(moderator, p.channel, "block member", member).await;
    }
    let ada = json!({"member": p.ada.to_string()});
    let refused = p.call(moderator, p.channel, "block member", ada).await;
    assert_refused(&refused, "At most 200");
    let list = p.plain(moderator, "block list").await.text();
    assert_eq!(list.matches("<@").count(), 200, "{list}");
    p.talk(p.ada, p.channel, "and me?").await;
    bot.stop().await;
}

/// Neither what runs nor what waits is answered, and nothing of it stands there.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_blocked_meanwhile_is_told_nothing_in_public() {
    let (p, bot) = place(&[]).await;
    let (discord, moderator) = (&p.stage.discord, moderator(&p));
    let held = || {
        let (_, gate) = Behaviour::gated(&[]);
        let calls = Behaviour::calls("Let me look.", &[("list_thread", "{}")]);
        p.stage
            .model
            .script(Behaviour::Held(calls.into(), gate.clone()));
        gate
    };
    let by_us = || {
        let messages = discord.messages(p.channel).into_iter();
        messages.filter(|one| one.author == p.us).count()
    };
    let block = async |who: Id| {
        let member = json!({"member": who.to_string()});
        p.call(moderator, p.channel, "block member", member).await;
    };
    let until = async |count| {
        for _ in 0..1_000 {
            // A later event's answer.
            p.plain(p.boris, "help").await;
            if by_us() == count {
                return;
            }
        }
        panic!("not {count}: {:?}", discord.messages(p.channel));
    };
    let gate = held();
    let asks = ["one", "two"].map(|question| json!({"question": question}));
    for options in asks {
        let called = discord.call(p.ada, p.channel, "ask", options).await;
        called.unwrap();
    }
    p.stage.model.wait_requests(1).await;
    until(2).await;
    block(p.ada).await;
    gate.open();
    until(0).await;
    let unblock = json!({"member": p.ada.to_string()});
    p.call(moderator, p.channel, "unblock", unblock).await;
    let gate = held();
    let question = format!("<@{}> three?", p.us);
    discord.post(p.channel, p.ada, question.as_str());
    p.stage.model.wait_requests(2).await;
    block(p.ada).await;
    gate.open();
    // Of an answer without tools nothing stays either.
    let (answer, gate) = Behaviour::gated(&["It is ", "four."]);
    p.stage.model.script(answer);
    let question = format!("<@{}> four?", p.us);
    discord.post(p.channel, p.boris, question.as_str());
    p.stage.model.wait_requests(3).await;
    block(p.boris).await;
    gate.open();
    let lines = bot.stop().await;
    assert_eq!(by_us(), 0);
    let outcomes: Vec<_> = details(&lines, "turn_done")
        .iter()
        .map(|one| one["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["cancelled"; 3], "{lines:?}");
}
