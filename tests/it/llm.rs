//! The model client against a server that misbehaves as scripted.

mod fallbacks;
mod images;
mod metered;
mod tool_calls;

use std::pin::pin;
use std::time::Duration;

use clew::llm::{
    AnswerEnd, AnswerStep, Completion, Error, FinishReason, ModelServers, ModelSettings,
    SetupError, Usage,
};
use clew::model::{ToolDefinition, Vision};
use clew_context::engine::echo::Echo;
use clew_context::model::{ChatMessage, Role, Secret};
use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::model::{Behaviour, FakeModel, end_events, text_event};

const KEY: &str = "sk-never-to-be-seen";

/// A timeout that never passes in a test.
const PATIENT: Duration = Duration::from_secs(30);

/// A timeout for tests that wait until it passes.
const IMPATIENT: Duration = Duration::from_millis(400);

fn settings(base_url: String, timeout: Duration) -> ModelSettings {
    ModelSettings {
        base_url,
        api_key: Some(Secret::new(KEY)),
        model: "small".to_owned(),
        timeout,
        max_output_tokens: 64,
        context_tokens: None,
        max_answer_bytes: 1 << 20,
        temperature: Some(0.5),
        vision: Vision::Auto,
    }
}

/// A server without any that stands in for it.
fn alone(settings: ModelSettings) -> Result<ModelServers, SetupError> {
    ModelServers::new(settings, Vec::new(), 0)
}

fn prompt() -> Vec<ChatMessage> {
    vec![
        ChatMessage::new(Role::System, "You are a clew."),
        ChatMessage::new(Role::User, "where is the way out?"),
    ]
}

/// A whole answer, asked for as often as that takes.
async fn whole(client: &ModelServers) -> Result<Completion, Error> {
    let whole = client.complete(&prompt(), || true).await;
    whole.map(Option::unwrap)
}

/// All steps of an answer, the last of which is the end or an error.
async fn steps(client: &ModelServers, prompt: &[ChatMessage]) -> Vec<Result<AnswerStep, Error>> {
    steps_with(client, prompt, &[]).await
}

/// The same with tools.
async fn steps_with(
    client: &ModelServers,
    prompt: &[ChatMessage],
    tools: &[ToolDefinition],
) -> Vec<Result<AnswerStep, Error>> {
    let mut attempts = client.attempts();
    let steps = attempts.answer(prompt, tools, Echo::default());
    steps.collect().await
}

/// The outcome as a caller receives it, and the pieces of text that came before it.
async fn ask(client: &ModelServers) -> (Result<Completion, Error>, Vec<String>) {
    let mut pieces = Vec::new();
    let mut outcome = None;
    for step in steps(client, &prompt()).await {
        assert!(outcome.is_none(), "nothing follows the end");
        match step {
            Ok(AnswerStep::Text(piece)) => pieces.push(piece),
            Ok(AnswerStep::End(end)) => outcome = Some(Ok(end)),
            Err(error) => outcome = Some(Err(error)),
            Ok(AnswerStep::Retry(..)) => assert_eq!(pieces.len(), 0),
            Ok(AnswerStep::ToolCall(call)) => panic!("{call:?}"),
        }
    }
    let completion = outcome.unwrap().map(|end| Completion {
        text: pieces.concat(),
        end,
    });
    (completion, pieces)
}

/// The outcome of one question to a server with this script, its text, and the number of requests made.
async fn outcome(
    script: Vec<Behaviour>,
    timeout: Duration,
) -> (Result<Completion, Error>, String, usize) {
    let server = FakeModel::start().await;
    for behaviour in script {
        server.script(behaviour);
    }
    let client = alone(settings(server.url(), timeout)).unwrap();
    let (outcome, pieces) = ask(&client).await;
    (outcome, pieces.concat(), server.requests().len())
}

/// Asserts that a script gives this text with this many requests.
async fn check_text(script: Vec<Behaviour>, text: &str, requests: usize) {
    let (outcome, came, made) = outcome(script, PATIENT).await;
    outcome.unwrap();
    assert_eq!((came.as_str(), made), (text, requests));
}

/// Asserts that a script gives an error with this reason, this text before it and number of requests, and
/// that the error shows neither the key nor the prompt.
async fn check_error(script: Vec<Behaviour>, reason: &str, partial: &str, requests: usize) {
    check_error_within(PATIENT, script, reason, partial, requests).await;
}

async fn check_error_within(
    timeout: Duration,
    script: Vec<Behaviour>,
    reason: &str,
    partial: &str,
    requests: usize,
) {
    let (outcome, came, made) = outcome(script, timeout).await;
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.reason().as_str(), came.as_str(), made),
        (reason, partial, requests),
        "{error:?}"
    );
    let shown = format!("{error} {error:?}");
    assert!(
        !shown.contains(KEY) && !shown.contains("way out"),
        "{shown}"
    );
    assert!(error.to_string().chars().count() < 300 && !error.to_string().contains('\n'));
}

fn raw(events: &str) -> Vec<Behaviour> {
    vec![Behaviour::Raw("text/event-stream", events.into())]
}

#[tokio::test]
async fn the_request_is_as_openai_documents() {
    let server = FakeModel::start().await;
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let (outcome, deltas) = ask(&client).await;
    assert_eq!(deltas, ["ok"]);
    let expected = Completion {
        text: "ok".to_owned(),
        end: AnswerEnd {
            finish_reason: FinishReason::Stop,
            refused: false,
            usage: Some(Usage {
                prompt_tokens: 7,
                cached_tokens: Some(5),
                completion_tokens: 3,
                reasoning_tokens: Some(2),
            }),
            model: Some("fake-1".to_owned()),
        },
    };
    assert_eq!(outcome.unwrap(), expected);
    let request = server.recorded().remove(0);
    assert_eq!(request.authorization.unwrap(), format!("Bearer {KEY}"));
    let body = json!({
        "model": "small",
        "messages": [
            {"role": "system", "content": "You are a clew."},
            {"role": "user", "content": "where is the way out?"},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 64,
        "temperature": 0.5,
    });
    assert_eq!(request.body, body);
}

#[tokio::test]
async fn unset_parameters_are_left_out() {
    let server = FakeModel::start().await;
    let client = alone(ModelSettings {
        api_key: None,
        temperature: None,
        ..settings(server.url(), PATIENT)
    });
    ask(&client.unwrap()).await.0.unwrap();
    let request = server.recorded().remove(0);
    assert_eq!(request.authorization, None);
    assert_eq!(request.body.get("temperature"), None);
}

#[tokio::test]
async fn passes_text_on_as_it_arrives() {
    let server = FakeModel::start().await;
    let (behaviour, gate) = Behaviour::gated(&["one", " two"]);
    server.script(behaviour);
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let prompt = prompt();
    let mut attempts = client.attempts();
    let mut answer = pin!(attempts.answer(&prompt, &[], Echo::default()));
    gate.step(1);
    assert_eq!(text(answer.next().await), "one");
    assert!(answer.next().now_or_never().is_none());
    gate.open();
    assert_eq!(text(answer.next().await), " two");
    assert!(matches!(answer.next().await, Some(Ok(AnswerStep::End(_)))));
    assert!(answer.next().await.is_none());
}

fn text(step: Option<Result<AnswerStep, Error>>) -> String {
    match step {
        Some(Ok(AnswerStep::Text(piece))) => piece,
        step => panic!("{step:?}"),
    }
}

#[tokio::test]
async fn dropping_the_answer_ends_the_stream() {
    let server = FakeModel::start().await;
    let (behaviour, gate) = Behaviour::gated(&["one", "two"]);
    server.script(behaviour);
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let prompt = prompt();
    let mut attempts = client.attempts();
    let mut answer = Box::pin(attempts.answer(&prompt, &[], Echo::default()));
    gate.step(1);
    assert_eq!(text(answer.next().await), "one");
    drop(answer);
    server.wait_ended(1).await;
}

#[tokio::test]
async fn a_retry_is_a_step() {
    let server = FakeModel::start().await;
    server.script(Behaviour::rate_limited("0.01"));
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let steps = steps(&client, &prompt()).await;
    let [
        Ok(AnswerStep::Retry(error, _)),
        Ok(AnswerStep::Text(text)),
        Ok(AnswerStep::End(_)),
    ] = steps.as_slice()
    else {
        panic!("{steps:?}");
    };
    assert_eq!(
        (error.reason().as_str(), text.as_str()),
        ("rate_limited", "ok")
    );
}

#[tokio::test]
async fn requests_share_a_connection() {
    let server = FakeModel::start().await;
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    for _ in 0..3 {
        ask(&client).await.0.unwrap();
    }
    let peers: Vec<_> = server.recorded().iter().map(|r| r.peer).collect();
    assert!(peers.iter().all(|peer| *peer == peers[0]), "{peers:?}");
}

#[tokio::test]
async fn answers_in_every_form_are_read() {
    check_text(vec![Behaviour::text(&[" ", "\na", "b ", "ü"])], "ab ü", 1).await;
    check_text(vec![Behaviour::Json("whole".to_owned())], "whole", 1).await;
    let event = text_event("x");
    check_text(raw(&format!("{event}data: [DONE]")), "x", 1).await;
    check_text(raw(&format!("\u{feff}{event}data: [DONE]\n\n")), "x", 1).await;
    check_text(
        raw(&format!("\u{feff}\u{feff}\n\n{event}data: [DONE]\n\n")),
        "x",
        1,
    )
    .await;
    check_text(
        raw(&format!(": wait\n\n{event}: wait\n\ndata:[DONE]\n\n")),
        "x",
        1,
    )
    .await;
    check_text(
        raw(&format!("{event}{}", end_events()).replace('\n', "\r\n")),
        "x",
        1,
    )
    .await;
    check_text(
        raw(&format!(
            "{event}{}",
            end_events().replace("data: [DONE]", "")
        )),
        "x",
        1,
    )
    .await;
    check_text(
        vec![Behaviour::text(&["<thi", "nk>hm</think>", "\n\nyes"])],
        "yes",
        1,
    )
    .await;
    let refusal =
        "data: {\"choices\":[{\"delta\":{\"content\":null,\"refusal\":\"I won't\"}}]}\n\n";
    check_text(raw(&format!("{refusal}{}", end_events())), "I won't", 1).await;
}

#[tokio::test]
async fn a_finished_answer_needs_no_done_event() {
    let (events, _) = end_events()
        .split_once("\n\n")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let server = FakeModel::start().await;
    server.script(Behaviour::Raw(
        "text/event-stream",
        (text_event("x") + &events).into(),
    ));
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let completion = ask(&client).await.0.unwrap();
    assert_eq!(
        (completion.text.as_str(), completion.end.usage),
        ("x", None)
    );
}

#[tokio::test]
async fn refusals_are_classified() {
    let status = |status, message: &str| vec![Behaviour::status(status, message)];
    check_error(status(401, "no"), "unauthorized", "", 1).await;
    check_error(status(403, "no"), "unauthorized", "", 1).await;
    check_error(
        status(400, concat!("Invalid API key: ", "sk-never-to-be-seen")),
        "unauthorized",
        "",
        1,
    )
    .await;
    check_error(
        status(404, "the model `small` does not exist"),
        "not_found",
        "",
        1,
    )
    .await;
    check_error(
        status(400, "I got 'where is the way out?'"),
        "rejected",
        "",
        1,
    )
    .await;
    check_error(status(400, &"long ".repeat(5000)), "rejected", "", 1).await;
    check_error(
        vec![Behaviour::context_too_long()],
        "context_too_long",
        "",
        1,
    )
    .await;
    let moved = Behaviour::Status(
        307,
        String::new(),
        vec![("location", "/v1/chat/completions".to_owned())],
    );
    check_error(vec![moved], "not_found", "", 1).await;
}

#[tokio::test]
async fn temporary_faults_are_tried_twice() {
    let down = || Behaviour::Status(503, "<html>".to_owned(), Vec::new());
    check_text(vec![down()], "ok", 2).await;
    check_error(vec![down(), down(), down()], "unavailable", "", 2).await;
    let limited = || Behaviour::rate_limited("0.01");
    check_text(vec![limited()], "ok", 2).await;
    check_error(vec![limited(), limited()], "rate_limited", "", 2).await;
    check_error(vec![Behaviour::rate_limited("6")], "rate_limited", "", 1).await;
}

#[tokio::test]
async fn a_rate_limit_gives_the_wait() {
    let (outcome, ..) = outcome(vec![Behaviour::rate_limited("60")], PATIENT).await;
    let Err(Error::RateLimited { retry_after, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(retry_after, Some(Duration::from_mins(1)));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let client = alone(settings(url, PATIENT)).unwrap();
    let error = ask(&client).await.0.unwrap_err();
    assert!(matches!(
        &error,
        Error::Unavailable {
            status: None,
            cause: Some(_),
            ..
        }
    ));
}

/// Reads a request up to the end of its body, which is one JSON object.
async fn read_request(stream: &mut TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_connection_dropped_before_the_answer_is_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let serve = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        read_request(&mut first).await;
        drop(first);
        let (mut second, _) = listener.accept().await.unwrap();
        read_request(&mut second).await;
        let body = text_event("back") + &end_events();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        second.write_all((head + &body).as_bytes()).await.unwrap();
    });
    let client = alone(settings(url, PATIENT)).unwrap();
    assert_eq!(ask(&client).await.0.unwrap().text, "back");
    serve.await.unwrap();
}

#[tokio::test]
async fn interrupted_answers_keep_their_text() {
    check_error(vec![Behaviour::drop(&["a", "b"])], "truncated", "ab", 1).await;
    check_error(vec![Behaviour::cut(&["a"])], "truncated", "a", 1).await;
    check_error(vec![Behaviour::cut(&[])], "truncated", "", 1).await;
    let fault = r#"data: {"error":{"message":"out of memory","code":500}}"#;
    check_error(
        raw(&format!("{}{fault}\n\n", text_event("a"))),
        "truncated",
        "a",
        1,
    )
    .await;
    check_error(
        raw(&format!("{}data: {{\n\n", text_event("a"))),
        "truncated",
        "a",
        1,
    )
    .await;
    check_error(raw(&format!("{fault}\n\n")), "unavailable", "", 1).await;
    let event = "event: error\ndata: the context length is exceeded\n\n";
    check_error(raw(event), "context_too_long", "", 1).await;
}

#[tokio::test]
async fn reading_stops_at_the_length_limit() {
    let server = FakeModel::start().await;
    let client = alone(ModelSettings {
        max_answer_bytes: 5,
        ..settings(server.url(), PATIENT)
    });
    let client = client.unwrap();
    // The server has more to send, but waits for the gate.
    let (endless, gate) = Behaviour::gated(&["äß", "öü", "never"]);
    gate.step(2);
    server.script(endless);
    let cut_off = ask(&client).await.0.unwrap();
    assert_eq!(
        (cut_off.text.as_str(), cut_off.end.finish_reason),
        ("äß", FinishReason::CutOff)
    );
    server.wait_ended(1).await;
    server.script(Behaviour::Json("123456".to_owned()));
    let cut_off = ask(&client).await.0.unwrap();
    assert_eq!(
        (cut_off.text.as_str(), cut_off.end.finish_reason),
        ("12345", FinishReason::CutOff)
    );
    server.script(Behaviour::text(&["123", "45"]));
    let whole = ask(&client).await.0.unwrap();
    assert_eq!(
        (whole.text.as_str(), whole.end.finish_reason),
        ("12345", FinishReason::Stop)
    );
}

#[tokio::test]
async fn an_endless_stream_is_cut_off_and_keeps_its_text() {
    let silence = format!(":{}\n", "still there ".repeat(10_000)).repeat(300);
    let (outcome, ..) = outcome(raw(&format!("{}{silence}", text_event("a"))), PATIENT).await;
    assert_eq!(outcome.unwrap().end.finish_reason, FinishReason::CutOff);
    check_error(raw(&silence), "malformed", "", 1).await;
}

#[tokio::test]
async fn what_is_not_an_answer_is_an_error() {
    check_error(vec![Behaviour::malformed()], "malformed", "", 1).await;
    check_error(raw("<html>hello</html>"), "malformed", "", 1).await;
    check_error(raw("{\"hello\":1}"), "malformed", "", 1).await;
    check_error(
        vec![Behaviour::Raw(
            "text/event-stream",
            b"data: \xff\n\n".to_vec(),
        )],
        "malformed",
        "",
        1,
    )
    .await;
    check_error(
        raw(&(text_event(&"x".repeat(2_000_000)) + &end_events())),
        "malformed",
        "",
        1,
    )
    .await;
    check_error(vec![Behaviour::empty()], "empty", "", 1).await;
    check_error(vec![Behaviour::text(&[" ", "\n"])], "empty", "", 1).await;
    check_error(vec![Behaviour::text(&["<think>hm"])], "empty", "", 1).await;
    let reasoning = "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n";
    check_error(raw(&format!("{reasoning}{}", end_events())), "empty", "", 1).await;
    let whole = r#"{"choices":[{"message":{"content":null},"finish_reason":"length"}]}"#;
    check_error(raw(whole), "empty", "", 1).await;
}

#[tokio::test]
async fn a_silent_server_times_out() {
    check_error_within(IMPATIENT, vec![Behaviour::Hang], "timeout", "", 1).await;
    check_error_within(IMPATIENT, vec![Behaviour::stall(&[])], "timeout", "", 1).await;
    check_error_within(
        IMPATIENT,
        vec![Behaviour::stall(&["a", "b"])],
        "timeout",
        "ab",
        1,
    )
    .await;
}

#[tokio::test]
async fn a_trickling_server_times_out_too() {
    let server = FakeModel::start().await;
    let (behaviour, gate) = Behaviour::gated(&["."; 1000]);
    server.script(behaviour);
    let client = alone(settings(server.url(), IMPATIENT)).unwrap();
    let trickle = tokio::spawn(async move {
        loop {
            gate.step(1);
            tokio::time::sleep(IMPATIENT / 8).await;
        }
    });
    let error = ask(&client).await.0.unwrap_err();
    trickle.abort();
    assert!(matches!(&error, Error::Timeout), "{error:?}");
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_reported_to_the_caller() {
    let server = FakeModel::start().await;
    server.script(Behaviour::context_too_long());
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    assert_eq!(
        ask(&client).await.0.unwrap_err().reason().as_str(),
        "context_too_long"
    );
    assert_eq!(ask(&client).await.0.unwrap().text, "ok");
}

#[tokio::test]
async fn rejected_parameters_are_renamed_or_left_out() {
    let server = FakeModel::start().await;
    let tokens = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    server.script(Behaviour::status(400, tokens));
    server.script(Behaviour::status(400, "'temperature' does not support 0.5"));
    server.script(Behaviour::status(422, "body.stream_options: Extra inputs"));
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    assert_eq!(ask(&client).await.0.unwrap().text, "ok");
    ask(&client).await.0.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    for request in &requests[3..] {
        let names: Vec<_> = request.as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            ["max_completion_tokens", "messages", "model", "stream"]
        );
    }
    server.script(Behaviour::status(400, tokens));
    assert_eq!(
        ask(&client).await.0.unwrap_err().reason().as_str(),
        "rejected"
    );
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let make = |url: &str, key: &str| {
        alone(ModelSettings {
            api_key: Some(Secret::new(key)),
            ..settings(url.to_owned(), PATIENT)
        })
    };
    assert!(make("http://127.0.0.1:1/v1", "key").is_ok());
    assert!(make("https://127.0.0.1:1/v1", "key").is_ok());
    for (url, key) in [
        ("", "key"),
        ("example.org/v1", "key"),
        ("http://a/v1", "k\ney"),
    ] {
        let error = make(url, key).unwrap_err();
        assert!(!error.to_string().contains("k\ney"));
    }
}
