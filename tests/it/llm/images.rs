//! Images over real sockets: how they are written, what their refusals mean, and what
//! they are estimated at.

use clew::llm::{Error, tokens};
use clew_context::engine::echo::Echo;
use clew_context::model::{ChatMessage, Image, Role, ToolCall};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{PATIENT, alone, settings, steps};
use crate::support::model::{Behaviour, FakeModel};

const BYTES: &[u8] = b"GIF89a of a leak";
const URL: &str = "data:image/gif;base64,R0lGODlhIG9mIGEgbGVhaw==";

fn with_image() -> Vec<ChatMessage> {
    vec![
        ChatMessage::new(Role::System, "You are a clew."),
        ChatMessage::WithImages {
            content: "what is it?".to_owned(),
            images: Vec::from_iter(Image::of_bytes(BYTES)),
        },
    ]
}

fn parts(text: &str) -> Value {
    let image = json!({"type": "image_url", "image_url": {"url": URL}});
    json!({"role": "user", "content": [{"type": "text", "text": text}, image]})
}

#[tokio::test]
async fn images_are_written_as_openai_describes() {
    let server = FakeModel::start().await;
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    let mut prompt = with_image();
    steps(&client, &prompt).await;
    let system = json!({"role": "system", "content": "You are a clew."});
    let request = &server.requests()[0];
    assert_eq!(request["messages"], json!([system, parts("what is it?")]));
    // Without tools their results are text beside the images.
    prompt.push(ChatMessage::ToolCalls {
        content: String::new(),
        calls: vec![ToolCall {
            id: "a1".to_owned(),
            name: "weather".to_owned(),
            arguments: "{}".to_owned(),
            extra: None,
        }],
    });
    prompt.push(ChatMessage::ToolResult {
        call_id: "a1".to_owned(),
        content: "rain".to_owned(),
    });
    steps(&client, &prompt).await;
    let request = &server.requests()[1];
    let expected = json!([system, parts("what is it?\n\nrain")]);
    assert_eq!(request["messages"], expected);
}

/// A refusal of images says nothing of the server, changes no parameter, is not tried
/// again as it is, and repeats no image.
#[tokio::test]
async fn a_refusal_of_images_is_told_apart() {
    for (status, said) in [
        (
            400,
            "image_url is only supported by certain models with tools",
        ),
        (404, "No endpoints found that support image input"),
        (500, "image input is not supported"),
    ] {
        let server = FakeModel::start().await;
        let client = alone(settings(server.url(), PATIENT)).unwrap();
        for _ in 0..4 {
            let said = format!("{said}: {URL}{}", "A".repeat(60));
            server.script(Behaviour::status(status, &said));
            let mut attempts = client.attempts();
            let prompt = with_image();
            let answer = attempts.answer(&prompt, &[], Echo::default());
            let mut steps: Vec<_> = answer.collect().await;
            let Some(Err(error)) = steps.pop() else {
                panic!("{said}: {steps:?}");
            };
            assert!(steps.is_empty(), "{steps:?}");
            let by_model = matches!(error, Error::ImagesRefused { by_model: true, .. });
            assert!(by_model, "{error:?}");
            assert!(!error.to_string().contains("R0lGOD"), "{error}");
            assert!(!attempts.move_on(&error));
        }
        assert_eq!(server.requests().len(), 4);
    }
}

/// A parameter that is rejected by name is corrected also beside images.
#[tokio::test]
async fn other_rejections_are_corrected_with_the_images() {
    let server = FakeModel::start().await;
    server.script(Behaviour::status(400, "use max_completion_tokens"));
    let client = alone(settings(server.url(), PATIENT)).unwrap();
    steps(&client, &with_image()).await;
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1]["max_completion_tokens"], 64);
    assert_eq!(requests[1]["messages"][1], parts("what is it?"));
}

#[test]
fn an_image_is_estimated_at_a_thousand_tokens() {
    let words = [
        ChatMessage::new(Role::System, "You are a clew."),
        ChatMessage::new(Role::User, "what is it?"),
    ];
    assert_eq!(tokens(&with_image()), tokens(&words) + 1_000);
}
