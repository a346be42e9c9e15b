//! Model servers that stand in for the first one, in whole turns.

use clew_simulator::{Draft, File};
use serde_json::{Value, json};

use super::{Place, has};
use crate::support::bot::{Bot, details, prompt};
use crate::support::model::{Behaviour, FakeModel};

/// A bot with a second server for "spare", and that server.
async fn with_fallback(settings: &[(&str, &str)]) -> (Place, Bot, FakeModel) {
    let spare = FakeModel::start().await;
    let fallbacks = format!("{} spare hush-spare", spare.url());
    let mut all = vec![("LLM_API_KEY", "hush-first"), ("LLM_FALLBACKS", &fallbacks)];
    all.extend(settings);
    let place = Place::new(&all).await;
    let bot = place.stage.start().await;
    (place, bot, spare)
}

async fn answer(place: &Place) -> String {
    let before = place.stage.discord.answers(place.thread).len();
    place.ask(place.thread, "what is it about?");
    let answers = place.answers(place.thread, before + 1).await;
    answers[before].content.clone()
}

fn models_and_servers(lines: &[Value], event: &str) -> Vec<(Value, Value)> {
    let details = details(lines, event).into_iter();
    let pairs = details.map(|detail| (detail["server"].clone(), detail["model"].clone()));
    pairs.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_server_answers_and_telemetry_says_so() {
    let (place, bot, spare) = with_fallback(&[]).await;
    place.stage.model.script(Behaviour::status(401, "bad key"));
    spare.script(Behaviour::text(&["from the spare"]));
    assert_eq!(answer(&place).await, "from the spare");
    assert_eq!(
        spare.recorded()[0].authorization.as_deref(),
        Some("Bearer hush-spare")
    );
    let lines = bot.stop().await;
    let failed = json!({"reason": "unauthorized", "server": 1, "model": "fake", "attempt": 1, "will_retry": true});
    has(&lines, "request_failed", &failed);
    let ok = json!({"server": 2, "model": "spare", "attempt": 2});
    has(&lines, "request_ok", &ok);
    has(
        &lines,
        "turn_done",
        &json!({"outcome": "answered", "model": "spare"}),
    );
    let told = serde_json::to_string(&lines).unwrap();
    assert!(
        !told.contains("hush") && !told.contains("127.0.0.1"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn if_no_server_answers_one_line_says_so() {
    let (place, bot, spare) = with_fallback(&[]).await;
    place.stage.model.script(Behaviour::status(401, "bad key"));
    spare.script(Behaviour::rate_limited("600"));
    let said = answer(&place).await;
    assert!(
        said.starts_with("-# ") && said.contains("The model is busy"),
        "{said}"
    );
    let lines = place.still_works(bot).await;
    let failed = json!({"reason": "rate_limited", "server": 2, "will_retry": false});
    has(&lines, "request_failed", &failed);
    has(
        &lines,
        "turn_done",
        &json!({"outcome": "failed", "model": "spare"}),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_is_kept_and_nobody_else_asked() {
    let (place, bot, spare) = with_fallback(&[]).await;
    place
        .stage
        .model
        .script(Behaviour::drop(&["The pump", " is"]));
    let said = answer(&place).await;
    assert!(said.starts_with("The pump is"), "{said}");
    assert_eq!(spare.requests().len(), 0);
    bot.stop().await;
}

/// What is too long for the second server is halved there, and starts whole at the first again.
#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_halved_for_the_server_that_refuses_its_length() {
    let (place, bot, spare) = with_fallback(&[]).await;
    place.stage.model.script(Behaviour::status(401, "bad key"));
    spare.script(Behaviour::context_too_long());
    assert_eq!(answer(&place).await, "ok");
    assert_eq!(answer(&place).await, "ok");
    let sizes = |requests: Vec<Value>| -> Vec<usize> {
        requests.iter().map(|one| prompt(one).len()).collect()
    };
    let (first, second) = (sizes(place.stage.model.requests()), sizes(spare.requests()));
    assert_eq!((first.len(), second.len()), (2, 2), "{first:?} {second:?}");
    assert_eq!(first[0], second[0]);
    assert!(second[1] < second[0] * 4 / 5, "{second:?}");
    assert!(first[1] > second[1] * 5 / 4, "{first:?} {second:?}");
    // The spare's limit is known: the next question that comes to it is short at once.
    place.stage.model.script(Behaviour::status(401, "bad key"));
    assert_eq!(answer(&place).await, "ok");
    let second = sizes(spare.requests());
    assert_eq!(second.len(), 3);
    assert!(second[2] < first[0] * 4 / 5, "{second:?}");
    let lines = bot.stop().await;
    let asked = models_and_servers(&lines, "request_ok");
    let servers: Vec<_> = asked.iter().map(|(server, _)| server.clone()).collect();
    assert_eq!(servers, [2, 1, 2]);
}

/// Each server keeps to itself whether its model takes images.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_server_says_of_images_is_for_that_server_alone() {
    let (place, bot, spare) = with_fallback(&[]).await;
    let ask = async || {
        let us = place.stage.discord.bot();
        let before = place.stage.discord.answers(place.thread).len();
        let image = File {
            name: "a.gif".to_owned(),
            content_type: "image/gif".to_owned(),
            bytes: b"GIF89a".to_vec(),
            description: None,
        };
        let draft = Draft::new(format!("<@{us}> what is it?")).attachment(image);
        place.stage.discord.post(place.thread, place.ada, draft);
        let answers = place.answers(place.thread, before + 1).await;
        assert_eq!(answers[before].content, "ok");
    };
    let busy = || place.stage.model.script(Behaviour::status(401, "bad key"));
    busy();
    spare.script(Behaviour::status(400, "spare is not a multimodal model"));
    ask().await;
    ask().await;
    busy();
    ask().await;
    let shows = |requests: Vec<Value>| -> Vec<bool> {
        let shows = |one: &Value| one.to_string().contains("image_url");
        requests.iter().map(shows).collect()
    };
    assert_eq!(shows(place.stage.model.requests()), [true; 3]);
    assert_eq!(shows(spare.requests()), [true, false, false]);
    bot.stop().await;
}
