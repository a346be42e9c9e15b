//! A model that repeats the lines that frame the prompt: they are not shown.

use serde_json::Value;

use super::{Place, only, place};
use crate::support::bot::{details, prompt};
use crate::support::model::Behaviour;

/// The nonce of the newest prompt.
fn nonce(p: &Place) -> String {
    let requests = p.stage.model.requests();
    let prompt = prompt(requests.last().unwrap());
    let (_, after) = prompt.split_once("<discord-context ").unwrap();
    after.split_once('>').unwrap().0.to_owned()
}

/// Every text that was posted or edited in.
fn said(p: &Place) -> Vec<String> {
    let calls = ["POST", "PATCH"].map(|method| p.stage.discord.requests_to(method, "/messages"));
    let content =
        |call: &clew_simulator::RequestRecord| call.body["content"].as_str().map(str::to_owned);
    calls.iter().flatten().filter_map(content).collect()
}

/// The bot's answers in a prompt's history.
fn remembered(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap().iter();
    let ours = messages.filter(|message| message["role"] == "assistant");
    ours.map(|message| message["content"].as_str().unwrap().trim_end())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_the_frames_are_never_shown_nor_kept() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us("hello"));
    p.answer(p.channel, 1).await;
    let nonce = nonce(&p);
    let (first, second) = nonce.split_at(5);
    let memory = format!("<memory {nonce}>\n- likes tea\n</memory {nonce}>\n");
    let (behaviour, gate) = Behaviour::gated(&[
        "Seal it.\n",
        "[",
        first,
        second,
        "] Ada | 12:00",
        " UTC\nUse tape.\n</disc",
        "ord-context",
        "\n",
        &memory,
        "That is all.",
        "\n<discord-con",
    ]);
    p.stage.model.script(behaviour);
    p.post(p.channel, p.ada, p.to_us("what helps?"));
    for (pieces, shown) in [(1, "Seal it."), (3, "Seal it."), (3, "Seal it.\nUse tape.")] {
        gate.step(pieces);
        p.wait_for(p.channel, shown).await;
    }
    gate.open();
    let whole = "Seal it.\nUse tape.\n- likes tea\nThat is all.";
    p.wait_for(p.channel, whole).await;
    p.post(p.channel, p.ada, p.to_us("and then?"));
    p.answer(p.channel, 3).await;
    bot.stop().await;
    for content in said(&p) {
        assert!(
            !content.contains(first) && !content.contains("discord-con"),
            "{content}"
        );
    }
    let requests = p.stage.model.requests();
    assert_eq!(remembered(&requests[2]), ["ok", whole]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_frames_alone_is_none() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us("hello"));
    p.answer(p.channel, 1).await;
    let echo = format!("[{}] Ada | 12:00 UTC | asks you:\n\n", nonce(&p));
    for _ in 0..2 {
        p.stage.model.script(Behaviour::text(&[&echo]));
    }
    p.post(p.channel, p.ada, p.to_us("what helps?"));
    let told = p.answer(p.channel, 2).await;
    assert!(told.starts_with("-# The model had no answer."), "{told}");
    let lines = bot.stop().await;
    let failed = details(&lines, "request_failed");
    let reasons: Vec<&Value> = failed.iter().map(|one| &one["reason"]).collect();
    assert_eq!(reasons, ["empty", "empty"]);
    assert_eq!(only(&lines, "recorded")["rows"], 2, "the first turn's");
}
