//! Tool calls over real sockets: what the model server is sent of them, and what
//! comes of those that it sends.

use clew::llm::{AnswerStep, FinishReason};
use clew::model::{BuiltIn, Payer, ToolDefinition, ToolParameter};
use clew_context::model::{ChatMessage, Role, ToolCall, UserId};
use serde_json::{Value, json};

use super::{PATIENT, alone, prompt, raw, settings, steps, steps_with, whole};
use crate::support::model::{Behaviour, FakeModel, text_event};

/// A tool with a parameter that it needs and one that it does not.
const TOOLS: &[ToolDefinition] = &[ToolDefinition::built_in(
    BuiltIn::Forget,
    "Forgets.",
    &[
        ToolParameter {
            name: "fact",
            about: "What.",
            is_required: true,
        },
        ToolParameter {
            name: "why",
            about: "Why.",
            is_required: false,
        },
    ],
)];

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        extra: None,
    }
}

/// What a server says of a call beyond OpenAI's fields goes back to it, bounded.
#[tokio::test]
async fn what_else_a_server_says_of_a_call_is_kept_for_it() {
    let server = FakeModel::start().await;
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let signature = json!({"google": {"thought_signature": "c2lnbmVk"}});
    let call = |id: &str, extra: &Value| {
        let function = json!({"name": "forget", "arguments": "{}"});
        json!({"index": 0, "id": id, "type": "function", "function": function,
            "extra_content": extra, "other": null})
    };
    let long = json!("x".repeat(70_000));
    for (extra, kept) in [(&signature, true), (&long, false)] {
        let delta = json!({"tool_calls": [call("a1", extra)]});
        let chunk = json!({"choices": [{"delta": delta, "finish_reason": "tool_calls"}]});
        let events = format!("data: {chunk}\n\ndata: [DONE]\n\n");
        server.script(Behaviour::Raw("text/event-stream", events.into_bytes()));
        let question = ChatMessage::new(Role::User, "well?");
        let answer = steps_with(&client, std::slice::from_ref(&question), TOOLS).await;
        let called = answer.into_iter().find_map(|step| match step {
            Ok(AnswerStep::ToolCall(call)) => Some(call),
            _ => None,
        });
        let calls = ChatMessage::ToolCalls {
            content: String::new(),
            calls: vec![called.unwrap()],
        };
        steps_with(&client, &[question, calls], TOOLS).await;
        let request = server.requests().pop().unwrap();
        let sent = &request["messages"][1]["tool_calls"][0];
        let expected = kept.then_some(extra);
        assert_eq!(sent.get("extra_content"), expected);
        assert_eq!(
            sent.as_object().unwrap().len(),
            3 + usize::from(kept),
            "{sent}"
        );
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
    steps_with(&client, &prompt, TOOLS).await;
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
    let request = &server.requests()[0];
    assert_eq!(request["messages"], expected);
    let text = |about: &str| json!({"type": "string", "description": about});
    let parameters = json!({
        "type": "object",
        "properties": {"fact": text("What."), "why": text("Why.")},
        "required": ["fact"],
    });
    let function = json!({"name": "forget", "description": "Forgets.", "parameters": parameters});
    assert_eq!(
        request["tools"],
        json!([{"type": "function", "function": function}])
    );
}

/// What each kind of server says of tools that it, or its model, does not know.
const REFUSALS: [(u16, &str); 6] = [
    (
        400,
        "registry.ollama.ai/library/small does not support tools",
    ),
    (
        400,
        "\"auto\" tool choice requires --enable-auto-tool-choice to be set",
    ),
    (
        400,
        "litellm.UnsupportedParamsError: small does not support parameters: ['tools']",
    ),
    (404, "No endpoints found that support tool use."),
    (422, "body.tools: Extra inputs are not permitted"),
    (500, "tools param requires --jinja flag"),
];

#[tokio::test]
async fn a_model_without_tools_is_noticed_once_and_served_without() {
    for (status, said) in REFUSALS {
        let server = FakeModel::start().await;
        server.script(Behaviour::status(status, said));
        let client = alone(settings(server.url(), PATIENT)).unwrap();
        let prompt = [
            ChatMessage::new(Role::User, "weather?"),
            ChatMessage::ToolCalls {
                content: String::new(),
                calls: vec![call("a1", "weather", "{}")],
            },
            ChatMessage::ToolResult {
                call_id: "a1".to_owned(),
                content: "rain".to_owned(),
            },
        ];
        for _ in 0..2 {
            let steps = steps_with(&client, &prompt, TOOLS).await;
            assert!(
                matches!(steps.last(), Some(Ok(AnswerStep::End(_)))),
                "{said}"
            );
        }
        let requests = server.requests();
        let offers = |request: &Value| request.get("tools").is_some();
        let offered: Vec<bool> = requests.iter().map(offers).collect();
        assert_eq!(offered, [true, false, false], "{said}");
        let plain = json!([{"role": "user", "content": "weather?\n\nrain"}]);
        assert_eq!(requests[1]["messages"], plain);
        // Another model of the server may have tools.
        let nobody = Payer {
            spender: UserId::new(1).into(),
            guild: None,
            limits: clew_store::model::RoleLimits::default(),
        };
        let other = client.asked_by(nobody, Some("large"));
        steps_with(&other, &prompt, TOOLS).await;
        assert!(offers(&server.requests()[3]));
    }
}

#[tokio::test]
async fn an_error_that_only_names_a_tool_costs_no_tools() {
    let server = FakeModel::start().await;
    server.script(Behaviour::status(500, "failed to parse the tool call"));
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    steps_with(&client, &prompt(), TOOLS).await;
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.get("tools").is_some())
    );
}

/// Which requests offered tools, after one question to each part of a script.
async fn offered(script: Vec<Vec<Behaviour>>) -> Vec<bool> {
    let server = FakeModel::start().await;
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    for behaviours in script {
        for behaviour in behaviours {
            server.script(behaviour);
        }
        let steps = steps_with(&client, &prompt(), TOOLS).await;
        assert!(matches!(steps.last(), Some(Ok(AnswerStep::End(_)))));
    }
    let requests = server.requests();
    let offers = requests.iter().map(|one| one.get("tools").is_some());
    offers.collect()
}

/// What one request has of tools may be refused: it is made without, and the next one with them.
#[tokio::test]
async fn a_refusal_of_what_one_request_has_costs_it_alone_its_tools() {
    for said in [
        "Unexpected role 'user' after role 'tool'",
        "Invalid 'tools[0].function.name'",
        "Invalid schema for function 'x': 'oneOf' is not permitted",
        "function_declarations[0].parameters.format: only 'enum' is supported for STRING",
    ] {
        let refused = vec![Behaviour::status(400, said)];
        let offered = offered(vec![vec![], refused, vec![]]).await;
        assert_eq!(offered, [true, true, false, true], "{said}");
    }
}

#[tokio::test]
async fn a_model_that_has_called_a_tool_is_not_taken_to_have_none() {
    let called = vec![Behaviour::calls("", &[("forget", "{}")])];
    let refused = vec![Behaviour::status(400, "this image does not support tools")];
    let offered = offered(vec![called, refused, vec![]]).await;
    assert_eq!(offered, [true, true, false, true]);
}

/// Servers quote what they refuse, and anybody may write the name of a parameter.
#[tokio::test]
async fn what_an_error_quotes_of_the_prompt_corrects_nothing() {
    let server = FakeModel::start().await;
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let words = "which models support no tools or no temperature?";
    let prompt = [ChatMessage::new(Role::User, words)];
    server.script(Behaviour::status(400, &format!("cannot read \"{words}\"")));
    let steps = steps_with(&client, &prompt, TOOLS).await;
    assert!(matches!(steps.as_slice(), [Err(_)]), "{steps:?}");
    assert_eq!(server.requests().len(), 1);
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
            Ok(AnswerStep::Retry(error, _)) => panic!("{error:?}"),
            Err(error) => ends.push(error.reason().to_string()),
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
    let error = whole(&client).await.unwrap_err();
    assert_eq!(error.reason().as_str(), "empty");
    let completion = whole(&client).await.unwrap();
    assert_eq!(completion.text, "ok");
    assert_eq!(completion.end.finish_reason, FinishReason::Stop);
}
