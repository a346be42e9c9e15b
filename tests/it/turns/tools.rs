//! The tool loop: calls and results travel, are bounded, and are stored with the turn.

use std::time::Duration;
use tokio::time::sleep;

use clew_simulator::{Fault, FaultKind, Id};
use clew_store::model::{StoreAddress, StoredMessage, StoredRole};
use clew_store::{Folders, Kind, Record, Store};
use serde_json::{Value, json};

use super::{Place, only, place};
use crate::support::bot::{details, lines};
use crate::support::model::Behaviour;

/// The texts that tools gave, in the order of a request's messages.
pub(super) fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// Whether a request offers tools.
pub(super) fn offers(request: &Value) -> bool {
    request.get("tools").is_some()
}

impl Place {
    /// A question to which the model answers with these calls, then "ok".
    pub(super) async fn ask_calling(&self, words: &str, calls: &[(&str, &str)]) -> Value {
        let before = self.stage.model.requests().len();
        self.stage.model.script(Behaviour::calls("", calls));
        self.post(self.channel, self.ada, self.to_us(words));
        let requests = self.stage.model.wait_requests(before + 2).await;
        requests[before + 1].clone()
    }

    /// What the only call of a question gave.
    pub(super) async fn tool(&self, name: &str, arguments: &Value) -> String {
        let arguments = arguments.to_string();
        let request = self.ask_calling("well?", &[(name, &arguments)]).await;
        results(&request).pop().unwrap()
    }

    /// The stored rows, once the bot has stopped.
    pub(super) async fn rows(&self) -> Vec<StoredMessage> {
        let rows = self.records(Kind::Messages).await.into_iter();
        let rows = rows.map(|record| match record {
            Record::Message(row) => row,
            other => panic!("{other:?}"),
        });
        rows.collect()
    }

    /// What is stored of a kind, once the bot has stopped.
    pub(super) async fn records(&self, kind: Kind) -> Vec<Record> {
        let folder = self.stage.folder.path();
        let folders = Folders {
            agents: folder.join("agents"),
            users: folder.join("users"),
            servers: folder.join("servers"),
        };
        let address = StoreAddress::Sqlite(folder.join("clew.db"));
        let store = Store::open(&address, &folders, self.stage.clock.clone())
            .await
            .unwrap();
        let page = store.records(kind, None, None, 1_000).await;
        let records = page.unwrap().records;
        store.close().await.unwrap();
        records
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_results_travel_and_are_stored_with_the_turn() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let said = p.post(p.channel, p.boris, "the pump leaks");
    p.seen().await;
    let arguments = json!({"message": said.to_string()}).to_string();
    let calls = [("get_message", arguments.as_str())];
    p.stage
        .model
        .script(Behaviour::calls("Let me look.", &calls));
    p.stage.model.script(Behaviour::text(&["It leaks."]));
    let question = p.post(p.channel, p.ada, p.to_us("what did Boris say?"));
    p.wait_for(p.channel, "Let me look.\n\nIt leaks.").await;
    let requests = p.stage.model.requests();
    assert_eq!(requests.len(), 2);
    let (first, second) = (&requests[0], &requests[1]);
    assert_eq!(first["tools"], second["tools"]);
    let before = first["messages"].as_array().unwrap();
    let after = second["messages"].as_array().unwrap();
    assert_eq!(after[..before.len()], before[..], "the prompt stays");
    let call = &after[before.len()];
    assert_eq!(call["content"], "Let me look.");
    assert_eq!(call["tool_calls"][0]["id"], "call00001");
    assert_eq!(call["tool_calls"][0]["function"]["name"], "get_message");
    assert_eq!(after[before.len() + 1]["tool_call_id"], "call00001");
    let result = results(second).remove(0);
    assert!(
        result.contains("Boris: the pump leaks\n</tool-result "),
        "{result}"
    );
    let lines = bot.stop().await;
    let called = only(&lines, "tool_called");
    assert_eq!(
        (&called["tool"], &called["outcome"]),
        (&json!("get_message"), &json!("ok"))
    );
    let finishes: Vec<Value> = details(&lines, "request_ok");
    let finishes: Vec<&Value> = finishes.iter().map(|one| &one["finish"]).collect();
    assert_eq!(finishes, ["tool_calls", "stop"]);
    let rows = p.rows().await;
    let roles: Vec<StoredRole> = rows.iter().map(|row| row.role).collect();
    let expected = [
        StoredRole::User,
        StoredRole::ToolUse,
        StoredRole::ToolResult,
        StoredRole::Assistant,
    ];
    assert_eq!(roles, expected);
    let calls: Value = serde_json::from_str(rows[1].tool_calls.as_ref().unwrap()).unwrap();
    assert_eq!(
        (&calls[0]["id"], &calls[0]["name"]),
        (&json!("call00001"), &json!("get_message"))
    );
    assert_eq!(rows[2].tool_call_id.as_deref(), Some("call00001"));
    assert_eq!(rows[3].content, "Let me look.\n\nIt leaks.");
    assert_eq!(rows[0].message.unwrap().get(), question.0);
    assert!(rows[0].sources.is_empty());
    for row in &rows[1..] {
        assert_eq!(row.sources.len(), 1);
        assert_eq!(row.sources[0].message.unwrap().get(), said.0);
        assert_eq!(row.sources[0].author.unwrap().get(), p.boris.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_answer_run_together_and_keep_their_order() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let ids = ["a valve", "a pipe", "a boiler"].map(|text| p.post(p.channel, p.boris, text));
    p.seen().await;
    let arguments = ids.map(|id| json!({"message": id.to_string()}).to_string());
    let calls: Vec<(&str, &str)> = arguments
        .iter()
        .map(|one| ("get_message", &**one))
        .collect();
    let request = p.ask_calling("which?", &calls).await;
    let results = results(&request);
    for (result, text) in results.iter().zip(["a valve", "a pipe", "a boiler"]) {
        assert!(result.contains(text), "{result}");
    }
    assert_eq!(results.len(), 3);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_last_round_the_model_is_asked_without_tools() {
    let p = place(&[("TOOL_MAX_ROUNDS", "2")]).await;
    let bot = p.start().await;
    for (page, words) in [("5", "Let me look."), ("6", ""), ("7", "")] {
        let arguments = json!({"before": page}).to_string();
        let calls = [("list_thread", arguments.as_str())];
        p.stage.model.script(Behaviour::calls(words, &calls));
    }
    p.post(p.channel, p.ada, p.to_us("go on"));
    p.wait_for(p.channel, "Let me look.\n\nok").await;
    let requests = p.stage.model.requests();
    // The third call was not to be, and what a model has no word for is asked again.
    let offered: Vec<bool> = requests.iter().map(offers).collect();
    assert_eq!(offered, [true, true, false, false]);
    let last = requests[3]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    assert_eq!(
        last["content"]
            .as_str()
            .unwrap()
            .matches("<tool-result ")
            .count(),
        2
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tools_requests_are_what_they_were() {
    let p = place(&[("TOOL_MAX_ROUNDS", "0")]).await;
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us("hi"));
    let request = p.stage.model.wait_requests(1).await.remove(0);
    let keys: Vec<&String> = request.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "max_tokens",
            "messages",
            "model",
            "stream",
            "stream_options"
        ]
    );
    p.stage
        .model
        .script(Behaviour::calls("", &[("get_message", "{}")]));
    p.post(p.channel, p.boris, p.to_us("hi"));
    p.answer(p.channel, 2).await;
    let lines = bot.stop().await;
    assert!(details(&lines, "tool_called").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_change_no_word_of_the_prompt() {
    let mut prompts = Vec::new();
    for rounds in ["6", "0"] {
        let p = place(&[("TOOL_MAX_ROUNDS", rounds)]).await;
        let bot = p.start().await;
        p.post(p.channel, p.ada, p.to_us("hi"));
        let mut request = p.stage.model.wait_requests(1).await.remove(0);
        request.as_object_mut().unwrap().remove("tools");
        // The nonce and the ids differ from stage to stage.
        let text = request.to_string();
        let is_digit = |one: char| one.is_ascii_hexdigit();
        prompts.push(text.replace(is_digit, "").len());
        p.answer(p.channel, 1).await;
        assert_eq!(
            p.stage.model.requests().len(),
            1,
            "one question, one request"
        );
        bot.stop().await;
    }
    assert_eq!(prompts[0], prompts[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_offered_the_tools_that_it_names() {
    let p = place(&[]).await;
    let folder = p.stage.folder.path().join("agents/default");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = json!({"system_prompt": "Be kind.", "tools": ["forget"]});
    std::fs::write(folder.join("agent.json"), agent.to_string()).unwrap();
    let bot = p.start().await;
    let request = p.ask_calling("well?", &[("list_thread", "{}")]).await;
    let names: Vec<&Value> = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["forget"]);
    assert!(results(&request)[0].contains("There is no tool of that name."));
    bot.stop().await;
}

impl Place {
    /// Asks; the tool that the model calls for it hangs.
    async fn ask_hanging(&self) -> Id {
        let hang = FaultKind::Hang(Duration::from_mins(1));
        let listing = Fault::new("GET", "/channels/*/messages", hang);
        self.stage.discord.fault(listing.once());
        let calls = [("list_thread", "{}")];
        self.stage
            .model
            .script(Behaviour::calls("Let me look.", &calls));
        let question = self.post(self.channel, self.ada, self.to_us("what is new?"));
        let listed = self.stage.discord.wait_request("GET", "/messages", 1);
        listed.await.unwrap();
        question
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_stops_tools_and_the_question_is_asked_again() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let question = p.ask_hanging().await;
    p.stage
        .discord
        .edit(p.channel, question, &p.to_us("what is old?"));
    let prompt = p.prompt(2).await;
    assert!(prompt.contains("what is old?"), "{prompt}");
    p.wait_for(p.channel, "ok").await;
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "turn_done")["outcome"], "answered");
    assert_eq!(p.stage.discord.answers(p.channel).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_stops_tools_and_takes_back_what_was_said() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let question = p.ask_hanging().await;
    p.wait_for(p.channel, "Let me look.").await;
    p.stage.discord.delete(p.channel, question);
    let gone = p.stage.discord.wait_request("DELETE", "/messages/", 1);
    gone.await.unwrap();
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "turn_done")["outcome"], "cancelled");
    assert!(p.stage.discord.answers(p.channel).is_empty());
    assert_eq!(p.stage.model.requests().len(), 1);
}

/// Nobody deletes the questions, which are gone with their channel.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_channel_stops_what_was_asked_there() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.ask_hanging().await;
    p.wait_for(p.channel, "Let me look.").await;
    p.post(p.channel, p.ada, p.to_us("and what is old?"));
    p.stage.discord.settled().await.unwrap();
    p.stage.discord.delete_channel(p.channel);
    let folder = p.stage.folder.path().join("telemetry");
    while details(&lines(&folder), "turn_done").is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "turn_done")["outcome"], "cancelled");
    assert_eq!(p.stage.model.requests().len(), 1);
}

/// What was said is taken back, and the next process answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_stops_tools_and_the_next_process_answers() {
    let p = place(&[("SHUTDOWN_TIMEOUT_S", "0.2")]).await;
    let bot = p.start().await;
    let question = p.ask_hanging().await;
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "turn_done")["outcome"], "cancelled");
    assert!(p.stage.discord.answers(p.channel).is_empty());
    let bot = p.stage.start().await;
    let answer = p.wait_for(p.channel, "ok").await;
    assert_eq!(answer.reference.unwrap().message, Some(question));
    bot.stop().await;
}
