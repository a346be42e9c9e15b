//! From the bytes of a body to the steps that a caller sees: the streams of real
//! servers, however the network cuts them.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::{TryStreamExt, stream};
use proptest::prelude::*;

use super::*;
use crate::llm::stream::pieces;

const OPENAI: &[&str] = &[
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}],"refusal":null},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Brest\"}"}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"city\":\"Łódź\"}"}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#,
];

const LLAMA_CPP: &[&str] = &[
    r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"object":"chat.completion.chunk"}"#,
    r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"I look."}}],"object":"chat.completion.chunk"}"#,
    r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":"{"}}]}}],"object":"chat.completion.chunk"}"#,
    r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"city\":\"Brest\"}"}}]}}],"object":"chat.completion.chunk"}"#,
    r#"{"choices":[{"finish_reason":"tool_calls","index":0,"delta":{}}],"object":"chat.completion.chunk","timings":{"prompt_n":1}}"#,
];

/// The name comes without arguments, and reasoning before it.
const VLLM: &[&str] = &[
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"logprobs":null,"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c1","type":"function","index":0,"function":{"name":"weather"}}]},"logprobs":null,"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": \"Brest"}}]},"logprobs":null,"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]},"logprobs":null,"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"tool_calls","stop_reason":null}]}"#,
];

/// Whole calls, all with the index 0, and `stop`.
const OLLAMA: &[&str] = &[
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"c1","index":0,"type":"function","function":{"name":"weather","arguments":"{\"city\":\"Brest\"}"}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"c2","index":0,"type":"function","function":{"name":"weather","arguments":"{\"city\":\"Łódź\"}"}}]},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#,
];

/// Everything that is not there is null.
const LITELLM: &[&str] = &[
    r#"{"choices":[{"index":0,"delta":{"content":null,"role":"assistant","function_call":null,"tool_calls":[{"id":"c1","function":{"arguments":"","name":"weather"},"type":"function","index":0}],"audio":null},"finish_reason":null}],"usage":null}"#,
    r#"{"choices":[{"index":0,"delta":{"content":null,"role":null,"function_call":null,"tool_calls":[{"id":null,"function":{"arguments":"{\"city\": \"Brest\"}","name":null},"type":"function","index":0}],"audio":null},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":null,"role":null,"function_call":null,"tool_calls":null,"audio":null},"finish_reason":"tool_calls"}]}"#,
];

/// No index, and `stop`.
const GEMINI: &[&str] = &[
    r#"{"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"city\":\"Brest\"}","name":"weather"},"id":"c1","type":"function"}]},"index":0}]}"#,
    r#"{"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"city\":","name":"weather"},"id":"c2","type":"function"}]},"index":0}]}"#,
    r#"{"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"arguments":"\"Łódź\"}"},"type":"function"}]},"index":0}]}"#,
    r#"{"choices":[{"delta":{"role":"assistant"},"finish_reason":"stop","index":0}]}"#,
];

const BREST: &str = r#"weather({"city":"Brest"})"#;
const BREST_SPACED: &str = r#"weather({"city": "Brest"})"#;
const LODZ: &str = r#"weather({"city":"Łódź"})"#;

/// The body of a stream with these events.
fn body(events: &[&str]) -> Vec<u8> {
    let events: Vec<String> = events
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    (events.concat() + "data: [DONE]\n\n").into_bytes()
}

/// The steps of a body that arrives in these packets, each in one line.
async fn steps(packets: Vec<Vec<u8>>) -> Vec<String> {
    let packets = stream::iter(packets.into_iter().map(Ok::<_, Infallible>));
    let response = axum::http::Response::new(reqwest::Body::wrap_stream(packets));
    let mut answer = ArrivingAnswer::of_at_most(1_000, Echo::default());
    let mut pieces = pieces(response.into(), Duration::from_secs(30))
        .await
        .unwrap();
    while let Some(piece) = pieces.try_next().await.unwrap() {
        answer.take(piece).unwrap();
    }
    let ended = answer.end();
    let steps = std::iter::from_fn(|| answer.next_step()).map(|step| match step {
        AnswerStep::Text(text) => format!("say {text}"),
        AnswerStep::ToolCall(call) => format!("{}: {}({})", call.id, call.name, call.arguments),
        AnswerStep::End(end) => format!("{:?}, usage: {}", end.finish_reason, end.usage.is_some()),
        AnswerStep::Retry(error, _) => panic!("{error}"),
    });
    let error = ended.err().map(|error| error.to_string());
    steps.collect::<Vec<_>>().into_iter().chain(error).collect()
}

#[track_caller]
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().unwrap();
    runtime.block_on(future)
}

#[track_caller]
fn check(events: &[&str], expected: &[&str]) {
    assert_eq!(block_on(steps(vec![body(events)])), expected);
}

#[test]
fn the_streams_of_real_servers() {
    let [first, second] = [format!("c1: {BREST}"), format!("c2: {LODZ}")];
    let (first, second) = (first.as_str(), second.as_str());
    let spaced = format!("c1: {BREST_SPACED}");
    let end = "ToolCalls, usage: false";
    check(OPENAI, &[first, second, "ToolCalls, usage: true"]);
    check(LLAMA_CPP, &["say I look.", first, end]);
    check(VLLM, &[&spaced, end]);
    check(OLLAMA, &[first, second, end]);
    check(LITELLM, &[&spaced, end]);
    check(GEMINI, &[first, second, end]);
}

/// An event with these tool calls.
fn calls(calls: &str) -> String {
    format!(r#"{{"choices":[{{"delta":{{"tool_calls":{calls}}}}}]}}"#)
}

#[track_caller]
fn check_calls(pieces: &[&str], expected: &[&str]) {
    let mut events: Vec<String> = pieces.iter().map(|piece| calls(piece)).collect();
    events.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned());
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let expected = [expected, &["ToolCalls, usage: false"]].concat();
    check(&events, &expected);
}

#[test]
fn pieces_of_several_calls_may_alternate() {
    check_calls(
        &[
            r#"[{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\""}},{"index":1,"id":"c2","function":{"name":"b","arguments":"{\"y\""}}]"#,
            r#"[{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":":1}"}}]"#,
        ],
        &[r#"c1: a({"x":1})"#, r#"c2: b({"y":2})"#],
    );
}

#[test]
fn calls_without_index_and_id_are_told_apart() {
    let whole = r#"[{"function":{"name":"a","arguments":"{}"}}]"#;
    let two = r#"[{"function":{"name":"a"}},{"function":{"name":"a"}}]"#;
    check_calls(&[whole, whole], &["call_0: a({})", "call_1: a({})"]);
    check_calls(&[two], &["call_0: a({})", "call_1: a({})"]);
    let other = r#"[{"id":"","function":{"name":"b","arguments":""}}]"#;
    let rest = r#"[{"id":"","function":{"name":"","arguments":"{\"x\":1}"}}]"#;
    check_calls(
        &[other, rest, whole],
        &[r#"call_0: b({"x":1})"#, "call_1: a({})"],
    );
}

#[test]
fn a_repeated_id_and_name_begin_nothing() {
    let piece = |arguments: &str| {
        format!(r#"[{{"index":0,"id":"c1","function":{{"name":"a","arguments":"{arguments}"}}}}]"#)
    };
    check_calls(&[&piece("{"), &piece("}"), &piece("")], &["c1: a({})"]);
    // As SGLang did: each call with an id of its own and the index 0.
    check_calls(
        &[
            r#"[{"index":0,"id":"0","function":{"name":"a","arguments":""}}]"#,
            r#"[{"index":0,"id":"0","function":{"arguments":"{}"}}]"#,
            r#"[{"index":0,"id":"1","function":{"name":"a","arguments":""}}]"#,
            r#"[{"index":0,"id":"1","function":{"arguments":"{ }"}}]"#,
        ],
        &["0: a({})", "1: a({ })"],
    );
}

#[test]
fn arguments_are_kept_as_they_were_written() {
    check_calls(
        &[r#"[{"index":0,"id":"c1","function":{"name":"a","arguments":{"b":1.0,"a":[]}}}]"#],
        &[r#"c1: a({"b":1.0,"a":[]})"#],
    );
    check_calls(
        &[r#"[{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"b\": tru"}}]"#],
        &[r#"c1: a({"b": tru)"#],
    );
}

#[test]
fn an_answer_that_is_cut_off_calls_nothing() {
    let long = format!(
        r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#,
        "x".repeat(1_001)
    );
    let call = calls(r#"[{"index":0,"id":"c1","function":{"name":"a"}}]"#);
    let said = format!("say {}", "x".repeat(1_000));
    check(
        &[
            &call,
            &long,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        ],
        &[&said, "CutOff, usage: false"],
    );
}

#[test]
fn no_calls_are_no_answer() {
    for nothing in [
        r#"{"choices":[{"delta":{"tool_calls":[]},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"name":"a","arguments":"{}"}},"finish_reason":"function_call"}]}"#,
    ] {
        check(&[nothing], &["the model's answer is empty"]);
    }
}

#[test]
fn thinking_before_calls_is_not_said() {
    let thinking = r#"{"choices":[{"delta":{"content":"<think>hm</think>\n\n"}}]}"#;
    let call = calls(r#"[{"index":0,"id":"c1","function":{"name":"a"}}]"#);
    check(
        &[
            thinking,
            &call,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        ],
        &["c1: a({})", "ToolCalls, usage: false"],
    );
}

proptest! {
    #[test]
    fn where_the_network_cuts_makes_no_difference(
        events in prop::sample::select(vec![OPENAI, LLAMA_CPP, VLLM, OLLAMA, LITELLM, GEMINI]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let body = body(events);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).collect();
        ends.push(body.len());
        ends.sort_unstable();
        let mut start = 0;
        let packets = ends.into_iter().map(|end| {
            let packet = body[start..end].to_vec();
            start = end;
            packet
        });
        let apart = packets.collect();
        let whole = block_on(steps(vec![body.clone()]));
        prop_assert_eq!(block_on(steps(apart)), whole);
    }
}
