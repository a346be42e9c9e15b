//! A run starts clean: no request that it makes to the model holds anything stored or
//! said before.

use clew_simulator::Permissions;
use serde_json::json;

use super::{ends, place};
use crate::support::bot::{details, prompt};
use crate::support::model::Behaviour;

#[tokio::test(flavor = "multi_thread")]
async fn no_request_of_a_run_holds_stored_context() {
    let (p, bot) = place(&[("MEMORY_LEARN", "model"), ("CONTEXT_SCOPE", "user")]).await;
    // History, facts about the caller and the server, and what stands in the channel.
    p.stage
        .discord
        .post(p.channel, p.ada, format!("<@{}> saffron", p.us));
    p.stage.discord.wait_answers(p.channel, 1).await.unwrap();
    let about = |text| json!({"text": text});
    p.call(p.ada, p.channel, "memory remember", about("I grow cumin"))
        .await;
    let manager = p
        .stage
        .discord
        .role(p.guild, "manager", Permissions::MANAGE_GUILD);
    p.stage.discord.set_role(p.guild, p.boris, manager, true);
    let told = p.call(
        p.boris,
        p.channel,
        "server-memory remember",
        about("We sell nutmeg"),
    );
    assert!(told.await.text().contains("nutmeg"));
    let ginger = p.stage.discord.post(p.channel, p.boris, "ginger");
    p.stage.discord.settled().await.unwrap();
    let shown = p.call(p.ada, p.channel, "context show", json!({})).await;
    assert!(shown.text().contains("2 messages"), "{}", shown.text());
    let before = p.stage.model.requests().len();

    // A link is read by a tool, if the model asks for it.
    let link = format!(
        "https://discord.com/channels/{}/{}/{ginger}",
        p.guild, p.channel
    );
    let task = format!("count the pumps of {link}");
    let run = p.begin(p.ada, &task).await;
    p.ended(run, "done").await;
    p.idle().await;
    let requests = p.stage.model.requests().split_off(before);
    assert_eq!(requests.len(), 1, "nor is anything learnt from it");
    for request in &requests {
        let messages = request["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages
            .iter()
            .map(|one| one["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["system", "user"]);
        let text = prompt(request);
        assert!(text.contains("asks you:\ncount the pumps of "), "{text}");
        for word in [
            "saffron",
            "cumin",
            "nutmeg",
            "ginger",
            "discord-context",
            "memory",
        ] {
            let of_rules = text.matches(&format!("<{word} ")).count();
            let said = text.matches(word).count();
            assert!(said <= of_rules * 2, "{word}: {text}");
        }
    }
    bot.stop().await;
}

/// What tools gave before is offered to later turns that it matches, not to a run.
#[tokio::test(flavor = "multi_thread")]
async fn no_output_is_offered_to_a_run() {
    let (p, bot) = place(&[("CONTEXT_SCOPE", "user")]).await;
    let words = json!({"words": "pumps cumin"}).to_string();
    let calls = [("search_messages", words.as_str())];
    p.stage.model.script(Behaviour::calls("", &calls));
    let ask = |text: &str| {
        let text = format!("<@{}> {text}", p.us);
        p.stage.discord.post(p.channel, p.ada, text)
    };
    ask("where?");
    p.stage.discord.wait_answers(p.channel, 1).await.unwrap();
    let run = p.begin(p.ada, "count the pumps").await;
    p.ended(run, "done").await;
    p.idle().await;
    ask("count the pumps");
    let requests = p.stage.model.wait_requests(4).await;
    let [of_run, of_turn] = [&requests[2], &requests[3]].map(|one| one["messages"].to_string());
    assert!(!of_run.contains("cumin"), "{of_run}");
    assert!(
        of_turn.contains("bytes"),
        "it is offered to a turn: {of_turn}"
    );
    bot.stop().await;
}

/// The run is a turn of its conversation: what follows in its thread knows of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_later_mention_in_the_thread_is_an_ordinary_turn() {
    let (p, bot) = place(&[]).await;
    p.stage
        .model
        .script(Behaviour::text(&["There are ", "nine."]));
    let run = p.begin(p.ada, "count the pumps").await;
    p.ended(run, "done").await;
    p.idle().await;
    let question = format!("<@{}> are you sure?", p.us);
    p.stage.discord.post(run.channel, p.ada, question);
    p.stage.discord.wait_answers(run.channel, 3).await.unwrap();
    let text = prompt(&p.stage.model.requests()[1]);
    assert!(text.contains("There are nine."), "{text}");
    assert!(
        !text.contains("Agent run for"),
        "progress is no part of it: {text}"
    );
    let lines = bot.stop().await;
    assert_eq!(ends(&lines), ["done"]);
    let causes: Vec<_> = details(&lines, "trigger")
        .iter()
        .map(|one| one["cause"].clone())
        .collect();
    assert_eq!(causes, ["agent_run", "mention"]);
    // Nothing is collected for the run; the question after it is in its thread.
    let collected = details(&lines, "collect_ok");
    assert_eq!(collected.len(), 1, "{collected:?}");
    let tails = details(&lines, "tail_ok");
    assert_eq!(tails.len(), 1, "{tails:?}");
}
