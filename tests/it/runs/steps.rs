//! The steps of a run: what it calls, what is shown of that, and what bounds it.

use clew_simulator::ChannelKind;
use serde_json::{Value, json};

use super::{ends, place};
use crate::support::bot::{details, prompt};
use crate::support::model::{Behaviour, end_events};

/// The same, with what the server counts: ten tokens.
fn counted(calls: Behaviour) -> Behaviour {
    let Behaviour::Raw(kind, bytes) = calls else {
        panic!("calls are raw");
    };
    let text = String::from_utf8(bytes).unwrap();
    let text = text.replace("data: [DONE]\n\n", &end_events());
    Behaviour::Raw(kind, text.into_bytes())
}

/// What a run reads it asked for; the rest it never sees. Its message tells of the steps, and
/// of the answer only the end is posted.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_reads_what_it_asks_for_and_says_only_the_end() {
    let (p, bot) = place(&[]).await;
    p.stage
        .discord
        .post(p.channel, p.ada, format!("<@{}> saffron", p.us));
    p.stage.discord.wait_answers(p.channel, 1).await.unwrap();
    let asked_for = p.stage.discord.post(p.channel, p.boris, "nine pumps");
    p.stage.discord.post(p.channel, p.boris, "ginger");
    p.stage.discord.settled().await.unwrap();
    let before = p.stage.model.requests().len();
    p.stage.model.script(counted(p.reads(asked_for)));
    let found = [
        ("search_messages", r#"{"words":"valves"}"#),
        ("get_message", "{}"),
    ];
    p.stage
        .model
        .script(counted(Behaviour::calls("Further.", &found)));
    let gate = p.hold("There are nine.");
    let run = p.begin(p.ada, "count the pumps").await;
    let at_work = format!(
        "-# Agent run for <@{}>: at work, step 3 (get_message ×2, search_messages).\n> count the pumps",
        p.ada
    );
    let shows = |message: &clew_simulator::Message| message.content == at_work;
    p.stage
        .discord
        .wait_for_message(run.channel, shows)
        .await
        .unwrap();
    assert_eq!(p.texts(run.channel), [at_work.as_str()]);
    gate.open();
    let shown = p.ended(run, "done.\n> count the pumps").await;
    let kept = shown.content.split_once("\n-# Kept results, by id:\n-# ");
    let kept = kept.unwrap_or_else(|| panic!("{}", shown.content)).1;
    assert!(
        kept.contains("get message") && kept.contains("search messages"),
        "{kept}"
    );
    assert_eq!(p.texts(run.channel)[1..], ["There are nine."]);
    let requests = p.stage.model.requests().split_off(before);
    assert_eq!(requests.len(), 3);
    for (number, request) in requests.iter().enumerate() {
        let text = request["messages"].to_string();
        assert!(
            !text.contains("saffron") && !text.contains("ginger"),
            "{text}"
        );
        assert_eq!(text.contains("nine pumps"), number > 0, "{text}");
    }
    let edits = format!("/channels/{}/messages/{}", run.channel, run.message);
    let edits = p.stage.discord.requests_to("PATCH", &edits);
    assert!((2..=4).contains(&edits.len()), "{} edits", edits.len());
    let lines = bot.stop().await;
    let done = details(&lines, "run_done").remove(0);
    assert_eq!(
        (&done["rounds"], &done["calls"], &done["tokens"]),
        (&json!(3), &json!(3), &json!(30))
    );
}

/// The model gets its last word.
#[tokio::test(flavor = "multi_thread")]
async fn after_its_rounds_a_run_has_to_answer() {
    let (p, bot) = place(&[("TOOL_MAX_ROUNDS", "1")]).await;
    for round in 0..20 {
        let arguments = json!({"words": format!("word{round}")}).to_string();
        p.stage
            .model
            .script(Behaviour::calls("", &[("search_messages", &arguments)]));
    }
    let run = p.begin(p.ada, "count the pumps").await;
    p.ended(run, "done").await;
    let offered: Vec<bool> = p.stage.model.requests().iter().map(offers).collect();
    let mut expected = [true; 21];
    expected[20] = false;
    assert_eq!(offered, expected);
    bot.stop().await;
}

fn offers(request: &Value) -> bool {
    request.get("tools").is_some()
}

/// Each request takes ten tokens, as the server says.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_keeps_to_its_tokens() {
    for (setting, tokens, requests, ended) in [
        (
            "AGENT_RUN_MAX_TOKENS",
            "39",
            vec![true, true, false],
            "done",
        ),
        ("AGENT_RUN_MAX_TOKENS", "29", vec![true, false], "done"),
        (
            "AGENT_RUN_MAX_TOKENS",
            "10",
            vec![true],
            "stopped, out of tokens",
        ),
        (
            "TOKENS_PER_DAY",
            "10,0",
            vec![true],
            "stopped, out of tokens",
        ),
    ] {
        let (p, bot) = place(&[(setting, tokens)]).await;
        for words in ["a", "b"]
            .iter()
            .take(requests.len() - usize::from(requests.len() > 1))
        {
            let arguments = json!({"words": words}).to_string();
            let calls = Behaviour::calls("", &[("search_messages", &arguments)]);
            p.stage.model.script(counted(calls));
        }
        let run = p.begin(p.ada, "count the pumps").await;
        p.ended(run, ended).await;
        let offered: Vec<bool> = p.stage.model.requests().iter().map(offers).collect();
        assert_eq!(offered, requests, "{setting}={tokens}");
        let said = p.texts(run.channel).remove(1);
        let expected = match (setting, ended) {
            (_, "done") => "ok",
            ("AGENT_RUN_MAX_TOKENS", _) => "-# I stopped here: this task's tokens are used up",
            (_, _) => "-# You used up today's tokens. Try again <t:",
        };
        assert!(said.starts_with(expected), "{said}");
        let end = if ended == "done" {
            "done"
        } else {
            "tokens_spent"
        };
        assert_eq!(ends(&bot.stop().await), [end]);
    }
}

/// Its own bound; the tools of other turns may make 16 calls.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_keeps_to_its_calls_to_discord() {
    let (p, bot) = place(&[("MEM_FETCH_TIMEOUT_S", "60")]).await;
    let seeded: Vec<_> = (0..104)
        .map(|at| {
            p.stage
                .discord
                .seed(p.channel, p.boris, format!("pump {at}"))
        })
        .collect();
    for ids in seeded.chunks(8) {
        let arguments: Vec<String> = ids
            .iter()
            .map(|id| json!({"message": p.link(*id)}).to_string())
            .collect();
        let calls: Vec<(&str, &str)> = arguments
            .iter()
            .map(|one| ("get_message", one.as_str()))
            .collect();
        p.stage.model.script(Behaviour::calls("", &calls));
    }
    p.told(p.ada, p.channel, "count the pumps").await;
    let request = p.stage.model.wait_requests(14).await.pop().unwrap();
    let said = request["messages"].to_string();
    assert_eq!(said.matches("Boris: pump ").count(), 100, "{said}");
    assert_eq!(said.matches("(fetch_budget)").count(), 4, "{said}");
    p.idle().await;
    bot.stop().await;
}

/// Stopping a run stops its tools.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_hangs_is_left_when_the_run_is_stopped() {
    let (p, bot) = place(&[]).await;
    let (asked_for, path) = p.unreadable();
    p.stage.model.script(p.reads(asked_for));
    let run = p.begin(p.ada, "count the pumps").await;
    p.stage.discord.wait_request("GET", &path, 1).await.unwrap();
    p.stage
        .discord
        .press(p.ada, run.message, "Stop")
        .answer()
        .await
        .unwrap();
    p.ended(run, "stopped.").await;
    p.idle().await;
    assert_eq!(ends(&bot.stop().await), ["stopped"]);
}

/// Tools that run elsewhere are told by their names alone.
#[tokio::test(flavor = "multi_thread")]
async fn other_turns_are_told_of_running_tools() {
    let (p, bot) = place(&[]).await;
    let apart = p.stage.discord.channel(p.guild, ChannelKind::Text, "apart");
    p.stage.discord.settled().await.unwrap();
    let (asked_for, path) = p.unreadable();
    p.stage.model.script(p.reads(asked_for));
    p.stage
        .discord
        .post(p.channel, p.ada, format!("<@{}> how many?", p.us));
    p.stage.discord.wait_request("GET", &path, 1).await.unwrap();
    p.stage
        .discord
        .post(apart, p.boris, format!("<@{}> hello", p.us));
    let told = prompt(&p.stage.model.wait_requests(2).await[1]);
    assert!(told.contains("\"#help\" (1 question, since "), "{told}");
    assert!(told.contains(" UTC, using get_message)."), "{told}");
    bot.stop().await;
}
