//! Faults of the model: the person gets an answer, or one line that says why not.

use serde_json::json;

use super::{Place, has};
use crate::support::bot::details;
use crate::support::model::Behaviour;

/// Asserts what a person reads and what telemetry says when the model behaves like this.
pub(super) async fn check(name: &str, behaviours: Vec<Behaviour>, says: &str, reason: &str) {
    let place = Place::new(&[("LLM_TIMEOUT_S", "1")]).await;
    let bot = place.stage.start().await;
    let count = behaviours.len();
    for behaviour in behaviours {
        place.stage.model.script(behaviour);
    }
    place.ask(place.thread, "what is it about?");
    let answers = place.answers(place.thread, 1).await;
    let said = &answers[0].content;
    assert!(
        said.starts_with("-# ") && said.contains(says),
        "{name}: {said}"
    );
    assert!(!said.trim_end().contains('\n'), "{name}: {said}");
    assert_eq!(place.stage.model.requests().len(), count, "{name}");
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "request_failed",
        &json!({"reason": reason, "will_retry": false}),
    );
    has(&lines, "turn_done", &json!({"outcome": "failed"}));
    let all = place.stage.discord.answers(place.thread);
    assert_eq!(all.len(), 2, "{name}: {all:?}");
}

fn twice(behaviour: fn() -> Behaviour) -> Vec<Behaviour> {
    vec![behaviour(), behaviour()]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_model_is_reported_in_one_line() {
    let unauthorized = vec![Behaviour::status(401, "bad key")];
    let fixes = "The model is unavailable until the operator fixes its account.";
    check("401", unauthorized, fixes, "unauthorized").await;
    let unpaid = vec![Behaviour::status(402, "no credit")];
    check("402", unpaid, fixes, "unauthorized").await;
    let rejected = vec![Behaviour::status(422, "no such parameter")];
    check("422", rejected, "The model rejected this.", "rejected").await;
    let limited = vec![Behaviour::rate_limited("600")];
    check(
        "429",
        limited,
        "The model is busy. Try again in a minute.",
        "rate_limited",
    )
    .await;
    let broken = twice(|| Behaviour::status(500, "broken"));
    check("500", broken, "is unavailable", "unavailable").await;
    let empty = twice(Behaviour::empty);
    check("empty", empty, "no answer", "empty").await;
    let malformed = vec![Behaviour::malformed()];
    check("malformed", malformed, "is unavailable", "malformed").await;
    let hang = vec![Behaviour::Hang];
    check("hang", hang, "took too long", "timeout").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_operators_see_a_temporary_fault_of_the_model() {
    for once in [
        Behaviour::status(500, "broken"),
        Behaviour::rate_limited("0"),
    ] {
        let place = Place::new(&[]).await;
        let bot = place.stage.start().await;
        place.stage.model.script(once);
        place.ask(place.thread, "what is it about?");
        assert_eq!(place.answers(place.thread, 1).await[0].content, "ok");
        let lines = place.still_works(bot).await;
        let failed = details(&lines, "request_failed");
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!(
            (&failed[0]["attempt"], &failed[0]["will_retry"]),
            (&json!(1), &json!(true))
        );
        has(
            &lines,
            "request_ok",
            &json!({"attempt": 2, "model": "fake", "agent": "default"}),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_answer_is_kept_and_marked() {
    for (name, behaviour, reason) in [
        ("stall", Behaviour::stall(&["The pump", " is"]), "timeout"),
        ("drop", Behaviour::drop(&["The pump", " is"]), "truncated"),
        ("cut", Behaviour::cut(&["The pump", " is"]), "truncated"),
    ] {
        let place = Place::new(&[("LLM_TIMEOUT_S", "1")]).await;
        let bot = place.stage.start().await;
        place.stage.model.script(behaviour);
        place.ask(place.thread, "what is it about?");
        let us = place.stage.discord.bot();
        let broke_off = |message: &clew_simulator::Message| {
            message.author == us
                && message.content.starts_with("The pump is")
                && message.content.contains("\n-# ")
        };
        let found = place
            .stage
            .discord
            .wait_for_message(place.thread, broke_off)
            .await;
        found.expect(name);
        let lines = place.still_works(bot).await;
        has(&lines, "request_failed", &json!({"reason": reason}));
        assert_eq!(place.stage.discord.answers(place.thread).len(), 2, "{name}");
    }
}
