//! For every question of the demo, one with a tool among them, and for its agent run the
//! receipt says of each message what the model got.

use std::path::Path;

use clew::app::system_clock;
use clew::demo;
use clew_simulator::{Id, ModelReply, ScriptedModel, World};
use clew_store::model::{StoreAddress, StoredReceipt};
use clew_store::{Folders, Kind, Record, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::pairs;
use crate::support::model::FakeModel;
use crate::support::receipt::body;
use crate::support::schema;

/// How much of a message's words is looked for: less than what is ever shortened.
const WORDS: usize = 15;

/// A message of the block as the model got it: its time of day, and all its lines.
#[derive(Debug)]
struct BlockMessage {
    clock: String,
    text: String,
}

fn text(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap().iter();
    let texts = messages.map(|message| message["content"].as_str().unwrap_or_default());
    texts.collect::<Vec<_>>().join("\n")
}

/// What the tools gave.
fn tool_results(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    let texts = results.map(|message| message["content"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

/// The lines between the first pair of lines that begin and end such a part.
fn part<'a>(request: &'a str, name: &str) -> Vec<&'a str> {
    let begins = format!("<{name} ");
    let ends = format!("</{name} ");
    let lines = request
        .lines()
        .skip_while(|line| !line.starts_with(&begins));
    lines
        .skip(1)
        .take_while(|line| !line.starts_with(&ends))
        .collect()
}

/// The messages of the block: each begins at the margin with its time.
fn block(request: &str) -> Vec<BlockMessage> {
    let mut messages: Vec<BlockMessage> = Vec::new();
    for line in part(request, "discord-context") {
        let clock = line.get(..5).filter(|clock| {
            let digits = clock.split(':').flat_map(str::chars);
            clock.contains(':')
                && digits.clone().count() == 4
                && digits.clone().all(|c| c.is_ascii_digit())
        });
        match (clock, messages.last_mut()) {
            (Some(clock), _) => messages.push(BlockMessage {
                clock: clock.to_owned(),
                text: line.to_owned(),
            }),
            (None, Some(message)) if line.starts_with(' ') => message.text.push_str(line),
            (None, _) => {}
        }
    }
    messages
}

/// The first words of a message, without what is rendered in another way.
fn words(world: &World, shown: &Value) -> String {
    let id = |name: &str| Id(shown[name].as_str().unwrap().parse().unwrap());
    let message = world.message(id("channel"), id("id")).unwrap();
    let plain = message.content.split(['<', '*', '_', '`', '\n', '#', '>']);
    plain
        .max_by_key(|part| part.len())
        .unwrap()
        .chars()
        .take(WORDS)
        .collect()
}

fn clock(shown: &Value) -> String {
    let id: u64 = shown["id"].as_str().unwrap().parse().unwrap();
    clew_context::model::MessageId::new(id).created().clock()
}

fn detail<'a>(lines: &'a [Value], turn: &str, event: &str) -> &'a Value {
    told(lines, turn, event).unwrap_or_else(|| panic!("no {event} of {turn}"))
}

fn told<'a>(lines: &'a [Value], turn: &str, event: &str) -> Option<&'a Value> {
    let mut lines = lines.iter();
    let found = lines.find(|line| line["event"] == event && line["turn_id"] == turn)?;
    Some(&found["detail"])
}

#[track_caller]
fn check(
    world: &World,
    receipt: &StoredReceipt,
    request: &Value,
    lines: &[Value],
    tokens: (u64, u64),
) {
    let body = body(receipt);
    let results = tool_results(request);
    let read = body["read"].as_array().unwrap();
    assert_eq!(read.is_empty(), results.is_empty(), "{read:?}");
    for read in read.iter().filter(|one| !one["message"].is_null()) {
        let message = json!({"channel": read["channel"], "id": read["message"]});
        let words = words(world, &message);
        assert!(results.contains(&words), "{words:?} is not in {results}");
    }
    let (prompt, request) = (&body["prompt"], text(request));
    let shown = prompt["shown"].as_array().unwrap();
    let block = block(&request);
    assert_eq!(shown.len(), block.len(), "{request}");
    for (shown, got) in shown.iter().zip(&block) {
        assert_eq!(clock(shown), got.clock, "{shown} is not {got:?}");
        let words = words(world, shown);
        assert!(got.text.contains(&words), "{words:?} is not in {got:?}");
    }
    let quoted = part(&request, "pointed-at-message");
    assert_eq!(prompt["quoted"].is_null(), quoted.is_empty(), "{request}");
    let remembered = part(&request, "memory");
    let facts = prompt["user_facts"].as_u64().unwrap() + prompt["server_facts"].as_u64().unwrap();
    let facts = usize::try_from(facts).unwrap();
    assert_eq!(
        facts,
        remembered
            .iter()
            .filter(|line| line.starts_with("- "))
            .count()
    );
    let model = &body["model"];
    let asked = (
        &model["name"],
        &model["server"],
        &model["prompt_tokens"],
        &model["completion_tokens"],
    );
    assert_eq!(
        asked,
        (
            &json!("fake"),
            &json!(1),
            &json!(tokens.0),
            &json!(tokens.1)
        )
    );

    let turn = receipt.turn.to_string();
    let none = json!({"msgs": 0, "fetches": 0, "omitted": {}});
    let collected = told(lines, &turn, "collect_ok").unwrap_or(&none);
    assert_eq!(collected["msgs"], shown.len());
    let collectors = body["collectors"].as_array().unwrap().iter();
    let fetches: u64 = collectors.map(|one| one["fetches"].as_u64().unwrap()).sum();
    assert_eq!(collected["fetches"], fetches);
    let left_out = prompt["left_out"].as_array().unwrap().iter();
    let left_out: serde_json::Map<String, Value> = left_out
        .map(|one| {
            let reason = one["reason"].as_str().unwrap();
            (reason.to_owned(), one["all"].clone())
        })
        .collect();
    assert_eq!(collected["omitted"], Value::Object(left_out));
    assert_eq!(detail(lines, &turn, "trigger")["target"], body["target"]);
    assert_eq!(detail(lines, &turn, "trigger")["scene"], body["scene"]);
    assert_eq!(
        detail(lines, &turn, "request_ok")["prompt_chars"],
        prompt["chars"]
    );
    let none = json!({"history_msgs": 0, "block_msgs": 0});
    let merged = told(lines, &turn, "merge_ok").unwrap_or(&none);
    assert_eq!(merged["history_msgs"], prompt["history"]);
    assert_eq!(merged["block_msgs"], shown.len());
}

/// The receipts in a folder's store, in the order of their turns.
async fn receipts(folder: &Path) -> Vec<StoredReceipt> {
    let folders = Folders {
        agents: folder.join("agents"),
        users: folder.join("users"),
        servers: folder.join("servers"),
    };
    let address = StoreAddress::Sqlite(folder.join("clew.db"));
    let store = Store::open(&address, &folders, system_clock()).await;
    let records = store.unwrap().list(Kind::Receipts).await.unwrap();
    let receipts = records.into_iter().map(|record| match record {
        Record::Receipt(receipt) => receipt,
        other => panic!("{other:?}"),
    });
    let mut receipts: Vec<StoredReceipt> = receipts.collect();
    receipts.sort_by_key(|receipt| receipt.turn.0);
    receipts
}

/// The demo's settings, with this model and a folder of its own.
fn settings(url: &str, folder: &Path) -> Vec<(String, String)> {
    let path = |name: &str| folder.join(name).display().to_string();
    pairs(&[
        ("LLM_BASE_URL", url),
        ("LLM_MODEL", "fake"),
        ("CONTEXT_STORE", &format!("sqlite:{}", path("clew.db"))),
        ("TELEMETRY_DIR", &path("telemetry")),
    ])
}

/// The last request of each turn is what its answer was made from. Returns the receipts.
async fn check_all(
    world: &World,
    folder: &Path,
    requests: Vec<Value>,
    tokens: (u64, u64),
) -> Vec<StoredReceipt> {
    let receipts = receipts(folder).await;
    let mut last: Vec<Value> = Vec::new();
    for request in requests {
        if !tool_results(&request).is_empty() {
            last.pop();
        }
        last.push(request);
    }
    let lines = schema::validate_dir(&folder.join("telemetry"));
    let questions = lines
        .iter()
        .filter(|line| line["event"] == "trigger")
        .count();
    assert!(questions > 0);
    assert_eq!((receipts.len(), last.len()), (questions, questions));
    for (receipt, request) in receipts.iter().zip(&last) {
        check(world, receipt, request, &lines, tokens);
    }
    receipts
}

#[tokio::test(flavor = "multi_thread")]
async fn each_receipt_agrees_message_by_message_with_what_the_model_got() {
    let (model, folder) = (FakeModel::start().await, TempDir::new().unwrap());
    let settings = settings(&model.url(), folder.path());
    let world = demo::played(settings).await.unwrap();
    check_all(&world, folder.path(), model.requests(), (7, 3)).await;
}

/// The question about the sampling log is answered from another channel, by a tool; the last
/// answer is that of the agent run, which has nothing but its task.
#[tokio::test(flavor = "multi_thread")]
async fn receipts_of_tools_and_runs_agree_with_what_the_model_got() {
    let reply = |request: &Value| {
        let is_about_log = text(request).contains("where is the sampling log?");
        if is_about_log && tool_results(request).is_empty() {
            let arguments = json!({"thread": "#gate"}).to_string();
            ModelReply::ToolCalls(vec![("list_thread".to_owned(), arguments)])
        } else {
            ModelReply::Text("ok".to_owned())
        }
    };
    let model = ScriptedModel::start(reply).await.unwrap();
    let folder = TempDir::new().unwrap();
    let settings = settings(&model.url(), folder.path());
    let world = demo::played(settings).await.unwrap();
    let receipts = check_all(&world, folder.path(), model.requests(), (0, 0)).await;
    let mut bodies = receipts.iter().map(body);
    assert!(bodies.any(|body| body["tools"] != json!([])));
    let run = body(receipts.last().unwrap());
    assert_eq!(run["prompt"]["shown"], json!([]));
    assert_eq!(run["prompt"]["history"], 0);
}
