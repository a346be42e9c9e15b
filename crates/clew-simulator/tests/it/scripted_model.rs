//! The model server that answers from a script.

use clew_simulator::{ModelReply, ScriptedModel};
use serde_json::{Value, json};

#[tokio::test]
async fn a_scripted_model_streams_calls_and_text() {
    let model = ScriptedModel::start(|request| match request["messages"].as_array() {
        Some(messages) if messages.len() == 1 => {
            ModelReply::ToolCalls(vec![("look".to_owned(), r#"{"at":1}"#.to_owned())])
        }
        _ => ModelReply::Text("seen".to_owned()),
    })
    .await
    .unwrap();
    let first = json!({"messages": [{"role": "user", "content": "?"}], "stream": true});
    let chunks = asked(&model, &first).await;
    let call = &chunks[0]["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!(
        call["function"],
        json!({"name": "look", "arguments": "{\"at\":1}"})
    );
    assert_eq!(chunks[1]["choices"][0]["finish_reason"], "tool_calls");
    let second = json!({"messages": [{}, {}], "stream": true});
    let chunks = asked(&model, &second).await;
    assert_eq!(chunks[0]["choices"][0]["delta"]["content"], "seen");
    assert_eq!(model.requests(), [first, second]);
}

/// The chunks of a stream that ends as it should.
async fn asked(model: &ScriptedModel, body: &Value) -> Vec<Value> {
    crate::support::install_crypto();
    let url = format!("{}/chat/completions", model.url());
    let client = reqwest::Client::new();
    let response = client.post(url).body(body.to_string());
    let response = response.header("content-type", "application/json").send();
    let text = response.await.unwrap().text().await.unwrap();
    let events = text.strip_suffix("data: [DONE]\n\n").unwrap();
    let events = events.split("\n\n").filter(|event| !event.is_empty());
    let read = |event: &str| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
    events.map(read).collect()
}
