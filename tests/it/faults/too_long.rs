//! Prompts that are too long for the model, and answers without a word.

use serde_json::{Value, json};

use super::model::check;
use super::{Place, has, has_no};
use crate::support::bot::{details, prompt};
use crate::support::model::Behaviour;

/// The size in bytes of each prompt so far.
fn sizes(place: &Place) -> Vec<usize> {
    let requests = place.stage.model.requests();
    requests
        .iter()
        .map(|request| prompt(request).len())
        .collect()
}

/// Asks in the thread and waits for one more answer, which contains `says`.
async fn answered(place: &Place, says: &str) {
    let before = place.stage.discord.answers(place.thread).len();
    place.ask(place.thread, "what is it about?");
    let answers = place.answers(place.thread, before + 1).await;
    assert_eq!(answers[before].content, says);
}

fn status(status: u16, body: &Value) -> Behaviour {
    Behaviour::Status(status, body.to_string(), Vec::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_too_long_is_halved_and_the_next_starts_shorter() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    place.stage.model.script(Behaviour::context_too_long());
    answered(&place, "ok").await;
    answered(&place, "ok").await;
    let sizes = sizes(&place);
    assert_eq!(sizes.len(), 3, "the second question needs no refusal");
    assert!(
        sizes[1] < sizes[0] * 4 / 5 && sizes[2] < sizes[0] * 4 / 5,
        "{sizes:?}"
    );
    let requests = place.stage.model.requests();
    assert!(prompt(&requests[1]).contains("what is it about?"));
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "request_failed").len(), 1);
    let failed = json!({"reason": "context_too_long", "attempt": 1, "will_retry": true});
    has(&lines, "request_failed", &failed);
    has(&lines, "request_ok", &json!({"attempt": 2}));
    // Telemetry reports the prompt that was sent in the end.
    let told = details(&lines, "merge_ok");
    assert!(told[1]["block_msgs"].as_u64() < told[0]["block_msgs"].as_u64());
}

/// By code, type or wording; in the answer's body or within the stream.
#[tokio::test(flavor = "multi_thread")]
async fn each_servers_way_to_say_that_a_prompt_is_too_long_is_known() {
    let event =
        |data: &Value| Behaviour::Raw("text/event-stream", format!("data: {data}\n\n").into());
    let words = "This model's maximum context length is 32000 tokens. However, you asked for 40000";
    for refusal in [
        status(
            400,
            &json!({"error": {"message": "too long", "code": "context_length_exceeded"}}),
        ),
        status(
            400,
            &json!({"error": {"code": 400, "message": "the request exceeds the available \
            context size", "type": "exceed_context_size_error", "n_ctx": 40000}}),
        ),
        status(
            400,
            &json!({"object": "error", "message": words, "code": 400}),
        ),
        status(
            500,
            &json!({"error": "the input length exceeds the context length"}),
        ),
        status(
            400,
            &json!({"error": {"message": "litellm.ContextWindowExceededError: too big"}}),
        ),
        event(&json!({"error": {"message": words, "code": 400}})),
        event(&json!({"error": {"message": "no", "code": "context_length_exceeded"}})),
    ] {
        let place = Place::new(&[]).await;
        let bot = place.stage.start().await;
        place.stage.model.script(refusal);
        answered(&place, "ok").await;
        let sizes = sizes(&place);
        assert!(sizes.len() == 2 && sizes[1] < sizes[0], "{sizes:?}");
        bot.stop().await;
    }
}

/// A fault that does not concern the length is not met by a shorter prompt.
#[tokio::test(flavor = "multi_thread")]
async fn another_fault_halves_nothing() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    place
        .stage
        .model
        .script(Behaviour::status(400, "context length must be positive"));
    place.ask(place.thread, "what is it about?");
    assert!(
        place.answers(place.thread, 1).await[0]
            .content
            .starts_with("-# ")
    );
    answered(&place, "ok").await;
    let sizes = sizes(&place);
    assert_eq!(sizes.len(), 2);
    assert!(sizes[1] >= sizes[0], "{sizes:?}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_halved_three_times_at_most() {
    let refusals = (0..4).map(|_| Behaviour::context_too_long()).collect();
    check(
        "too long",
        refusals,
        "too long for the model",
        "context_too_long",
    )
    .await;
}

/// The sizes of the prompts of two questions, the first of which is refused once like this.
async fn refused_once(refusal: Behaviour) -> Vec<usize> {
    let place = Place::new(&[("LLM_MAX_OUTPUT_TOKENS", "100")]).await;
    let bot = place.stage.start().await;
    place.stage.model.script(refusal);
    answered(&place, "ok").await;
    answered(&place, "ok").await;
    bot.stop().await;
    sizes(&place)
}

/// A server that names its limit spares the bot from finding it by trial.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_the_server_names_is_respected() {
    let named = json!({"error": {"message": "no", "type": "exceed_context_size_error",
        "n_prompt_tokens": 2000, "n_ctx": 600}});
    let unnamed = json!({"error": {"message": "no", "type": "exceed_context_size_error"}});
    let halved = refused_once(status(400, &unnamed)).await;
    let fitting = refused_once(status(400, &named)).await;
    assert!(halved.len() == 3 && fitting.len() == 3);
    assert!(halved[1] > 500 * 3, "three bytes a token: {halved:?}");
    assert!(
        fitting[1] <= 500 * 3 && fitting[2] <= 500 * 3,
        "{fitting:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_may_set_how_much_a_model_takes() {
    let settings = [
        ("LLM_CONTEXT_TOKENS", "600"),
        ("LLM_MAX_OUTPUT_TOKENS", "100"),
    ];
    let place = Place::new(&settings).await;
    let bot = place.stage.start().await;
    answered(&place, "ok").await;
    let sizes = sizes(&place);
    assert!(sizes.len() == 1 && sizes[0] <= 500 * 3, "{sizes:?}");
    let lines = bot.stop().await;
    has_no(&lines, "request_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_word_is_asked_for_once_more() {
    for nothing in [Behaviour::empty(), Behaviour::cut(&[])] {
        let place = Place::new(&[]).await;
        let bot = place.stage.start().await;
        place.stage.model.script(nothing);
        answered(&place, "ok").await;
        let requests = place.stage.model.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0], requests[1], "nothing is halved");
        let lines = bot.stop().await;
        has(
            &lines,
            "request_failed",
            &json!({"attempt": 1, "will_retry": true}),
        );
        has(&lines, "request_ok", &json!({"attempt": 2}));
    }
}
