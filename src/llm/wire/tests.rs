//! What servers send, in the shapes that are known.

use super::{PieceError, piece, server_error};
use crate::llm::FinishReason;

#[track_caller]
fn check_piece(json: &str, text: &str, finish_reason: Option<FinishReason>) {
    let piece = piece(json).unwrap();
    assert_eq!(
        (piece.text.as_str(), piece.finish_reason),
        (text, finish_reason)
    );
}

/// `OpenAI`, `DeepSeek`, Moonshot; of a name that is none, and of counts that are none, nothing.
#[test]
fn caches_reasoning_and_the_model_that_answered() {
    #[track_caller]
    fn check(usage: &str, cached: Option<u64>, reasoning: Option<u64>) {
        let json = format!(
            r#"{{"choices":[],"usage":{{"prompt_tokens":9,"completion_tokens":5,{usage}}}}}"#
        );
        let usage = piece(&json).unwrap().usage.unwrap();
        let found = (usage.cached_tokens, usage.reasoning_tokens);
        assert_eq!(found, (cached, reasoning), "{json}");
    }
    check(
        r#""prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":4}"#,
        Some(8),
        Some(4),
    );
    check(
        r#""prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":3"#,
        Some(6),
        None,
    );
    check(r#""cached_tokens":7"#, Some(7), None);
    check(
        r#""prompt_tokens_details":null,"completion_tokens_details":[]"#,
        None,
        None,
    );
    check(r#""cached_tokens":"many""#, None, None);
    for (model, expected) in [
        (
            r#""openai/gpt-5.1-2026-01-01""#,
            Some("openai/gpt-5.1-2026-01-01"),
        ),
        (r#""what Ada said""#, None),
        (r#""""#, None),
        ("7", None),
        ("null", None),
    ] {
        let json = format!(r#"{{"choices":[],"model":{model},"usage":{{}}}}"#);
        assert_eq!(piece(&json).unwrap().model.as_deref(), expected, "{json}");
    }
    let long = format!(
        r#"{{"choices":[],"model":"{}","usage":{{}}}}"#,
        "m".repeat(129)
    );
    assert_eq!(piece(&long).unwrap().model, None);
}

#[test]
fn pieces() {
    let stop = Some(FinishReason::Stop);
    check_piece(
        r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#,
        "",
        None,
    );
    check_piece(
        r#"{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#,
        "a",
        None,
    );
    check_piece(
        r#"{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}"#,
        "a",
        None,
    );
    check_piece(
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "",
        stop,
    );
    check_piece(
        r#"{"choices":[{"finish_reason":"stop","delta":null}]}"#,
        "",
        stop,
    );
    check_piece(r#"{"choices":[],"usage":null}"#, "", None);
    check_piece(
        r#"{"choices":[{"delta":{"refusal":"no"}}],"error":null}"#,
        "no",
        None,
    );
    check_piece(
        r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
        "",
        None,
    );
    check_piece(
        r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#,
        "whole",
        stop,
    );
    check_piece(
        r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},
            {"type":"text","text":"b"}]}}]}"#,
        "b",
        None,
    );
}

#[test]
fn usage_comes_in_the_last_chunk() {
    let json = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"x":{}}}"#;
    let usage = piece(json).unwrap().usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (3, 4));
}

#[test]
fn what_is_piece_error() {
    for json in [
        "",
        "{",
        "[]",
        "{}",
        "null",
        r#"{"choices":{}}"#,
        r#"{"choices":[1]}"#,
    ] {
        assert!(matches!(piece(json), Err(PieceError::Malformed)), "{json}");
    }
    for json in [
        r#"{"error":"out of memory"}"#,
        r#"{"error":{"message":"out of memory"}}"#,
        r#"{"object":"error","message":"out of memory","code":500}"#,
    ] {
        let Err(PieceError::ServerError(error)) = piece(json) else {
            panic!("{json}");
        };
        assert_eq!(error.message, "out of memory");
    }
}

#[track_caller]
fn check_server_error(body: &str, status: Option<u16>, code: &str, message: &str) {
    let error = server_error(body);
    let found = (error.status, error.code.as_str(), error.message.as_str());
    assert_eq!(found, (status, code, message));
}

#[test]
fn server_errors() {
    check_server_error("", None, "", "");
    check_server_error("model is loading", None, "", "model is loading");
    check_server_error("<html>502</html>", None, "", "");
    check_server_error(r#"{"error":"no"}"#, None, "", "no");
    check_server_error(r#"{"message":"no"}"#, None, "", "no");
    check_server_error(r#"{"detail":"no"}"#, None, "", "no");
    check_server_error(
        r#"{"error":{"message":"no","code":"400"}}"#,
        Some(400),
        "400 ",
        "no",
    );
    check_server_error(
        r#"[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]"#,
        Some(400),
        "INVALID_ARGUMENT ",
        "no",
    );
    check_server_error(
        r#"{"detail":[{"loc":["body","stream_options"],"msg":"extra","input":"secret"}]}"#,
        None,
        "",
        "body.stream_options: extra",
    );
}
