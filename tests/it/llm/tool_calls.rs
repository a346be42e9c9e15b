//! Tool calls over real sockets: what the model server is sent of them, and what
//! comes of those that it sends.

use clew::llm::{AnswerStep, FinishReason};
use clew_context::model::{ChatMessage, Role, ToolCall};
use serde_json::{Value, json};

use super::{PATIENT, alone, prompt, raw, settings, steps};
use crate::support::model::{Behaviour, FakeModel, text_event};

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

#[tokio::test]
async fn calls_and_results_are_written_as_openai_describes() {
    let server = FakeModel::start().await;
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let weather = call("a1", "weather", r#"{"city": "Brest"}"#);
    let time = call("a2", "time", "{}");
    let result = |call_id: &str, content: &str| ChatMessage::ToolResult {
        call_id: call_id.to_owned(),
        content: content.to_owned(),
    };
    let prompt = [
        ChatMessage::new(Role::User, "weather and time in Brest?"),
        ChatMessage::ToolCalls {
            content: String::new(),
            calls: vec![weather.clone(), time],
        },
        result("a1", "rain"),
        result("a2", ""),
        ChatMessage::ToolCalls {
            content: "Once more.".to_owned(),
            calls: vec![weather],
        },
    ];
    steps(&client, &prompt).await;
    let function = |id: &str, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    let weather = function("a1", "weather", r#"{"city": "Brest"}"#);
    let expected = json!([
        {"role": "user", "content": "weather and time in Brest?"},
        {
            "role": "assistant",
            "content": null,
            "tool_calls": [weather, function("a2", "time", "{}")],
        },
        {"role": "tool", "content": "rain", "tool_call_id": "a1"},
        {"role": "tool", "content": "", "tool_call_id": "a2"},
        {"role": "assistant", "content": "Once more.", "tool_calls": [weather]},
    ]);
    assert_eq!(server.requests()[0]["messages"], expected);
}

/// The steps that come of a body: pieces of text, calls, and how it ended.
async fn check(body: Behaviour, expected_text: &[&str], expected: &[ToolCall], end: &str) {
    let server = FakeModel::start().await;
    server.script(body);
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let (mut pieces, mut calls, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for step in steps(&client, &prompt()).await {
        match step {
            Ok(AnswerStep::Text(text)) => {
                assert!(calls.is_empty() && ends.is_empty());
                pieces.push(text);
            }
            Ok(AnswerStep::ToolCall(call)) => calls.push(call),
            Ok(AnswerStep::End(end)) => ends.push(format!("{:?}", end.finish_reason)),
            Ok(AnswerStep::Retry(error)) => panic!("{error:?}"),
            Err(error) => ends.push(error.reason().to_owned()),
        }
    }
    assert_eq!(pieces, expected_text);
    assert_eq!(calls, expected);
    assert_eq!(ends, [end]);
}

fn events(chunks: &[Value]) -> Behaviour {
    let events: Vec<String> = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    raw(&(events.concat() + "data: [DONE]\n\n")).remove(0)
}

fn delta(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

#[tokio::test]
async fn calls_come_after_the_text_and_before_the_end() {
    let chunks = [
        delta(&json!({"role": "assistant", "content": null}), None),
        delta(&json!({"content": "Let me look."}), None),
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a1", "type": "function",
                "function": {"name": "weather", "arguments": ""}}]}),
            None,
        ),
        delta(
            &json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"city\":"}}]}),
            None,
        ),
        delta(
            &json!({"tool_calls": [{"index": 1, "id": "a2", "type": "function",
                "function": {"name": "time", "arguments": ""}}]}),
            None,
        ),
        delta(
            &json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"Brest\"}"}}]}),
            None,
        ),
        delta(&json!({}), Some("tool_calls")),
    ];
    let calls = [
        call("a1", "weather", r#"{"city":"Brest"}"#),
        call("a2", "time", "{}"),
    ];
    check(events(&chunks), &["Let me look."], &calls, "ToolCalls").await;
}

#[tokio::test]
async fn a_whole_document_may_have_calls() {
    let document = json!({"choices": [{
        "index": 0,
        "message": {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a1", "type": "function", "function": {"name": "x", "arguments": "{}"}},
            {"id": "a2", "type": "function", "function": {"name": "x", "arguments": "{}"}},
        ]},
        "finish_reason": "stop",
    }]});
    let body = Behaviour::Raw("application/json", document.to_string().into());
    let calls = [call("a1", "x", "{}"), call("a2", "x", "{}")];
    check(body, &[], &calls, "ToolCalls").await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_calls_nothing() {
    let begun = delta(
        &json!({"tool_calls": [{"index": 0, "id": "a1", "function": {"name": "x"}}]}),
        None,
    );
    let body = |before: &str| raw(&format!("{before}data: {begun}\n\n")).remove(0);
    check(body(""), &[], &[], "truncated").await;
    check(body(&text_event("a")), &["a"], &[], "truncated").await;
}

#[tokio::test]
async fn calls_without_end_are_an_error() {
    let one = |index: usize, arguments: &str| {
        let function = json!({"name": "x", "arguments": arguments});
        let call = json!({"index": index, "id": format!("a{index}"), "function": function});
        delta(&json!({"tool_calls": [call]}), None)
    };
    let many: Vec<Value> = (0..1_000).map(|index| one(index, "{}")).collect();
    check(events(&many), &[], &[], "malformed").await;
    let long: Vec<Value> = (0..200).map(|_| one(0, &"x".repeat(10_000))).collect();
    check(events(&long), &[], &[], "malformed").await;
}

#[tokio::test]
async fn who_offers_no_tools_gets_no_answer() {
    let server = FakeModel::start().await;
    let function = json!({"name": "x", "arguments": "{}"});
    let calls = json!({"tool_calls": [{"index": 0, "id": "a1", "function": function}]});
    server.script(events(&[delta(&calls, Some("tool_calls"))]));
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let error = client.complete(&prompt()).await.unwrap_err();
    assert_eq!(error.reason(), "empty");
    let completion = client.complete(&prompt()).await.unwrap();
    assert_eq!(completion.text, "ok");
    assert_eq!(completion.end.finish_reason, FinishReason::Stop);
}
