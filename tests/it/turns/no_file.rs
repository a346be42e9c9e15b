//! Answers that are too long for messages where no file can be attached.

use clew_simulator::{Fault, FaultKind, Permissions, Use};
use serde_json::{Value, json};

use super::{Place, only, place};
use crate::support::bot::details;
use crate::support::model::Behaviour;

const CUT_NOTE: &str = "\n-# There was more, but I can't attach files here.";

fn long() -> String {
    "A sentence of some length. ".repeat(300)
}

async fn two_messages() -> Place {
    place(&[("ANSWER_MAX_MESSAGES", "2")]).await
}

/// Asserts that the answer came as text in two messages, the last with a note that
/// there was more; that telemetry says why; and that what was shown is stored.
async fn check(p: Place, lines: &[Value], reason: &str) {
    let answers = p.stage.discord.answers(p.channel);
    let texts: Vec<&str> = answers.iter().map(|one| one.content.as_str()).collect();
    assert_eq!(texts.len(), 2, "{reason}");
    assert!(answers.iter().all(|one| one.attachments.is_empty()));
    let last = texts[1]
        .strip_suffix(CUT_NOTE)
        .unwrap_or_else(|| panic!("{reason}: {}", texts[1]));
    assert!(
        texts[0].len() > 1_900 && last.len() > 1_800,
        "all that fits"
    );
    assert!(long().starts_with(&format!("{} {last}", texts[0])));
    let fallback = json!({"reason": reason, "stage": "attach"});
    assert_eq!(details(lines, "send_fallback"), [fallback]);
    let sent = only(lines, "sent");
    assert_eq!(
        (&sent["messages"], &sent["attached"]),
        (&json!(2), &json!(false))
    );
    assert_eq!(only(lines, "turn_done")["outcome"], "answered");
    assert_eq!(only(lines, "recorded")["rows"], 2);
    let bot = p.stage.start().await;
    p.post(p.channel, p.ada, p.to_us("go on"));
    p.answer(p.channel, 3).await;
    bot.stop().await;
    let requests = p.stage.model.requests();
    let messages = requests[1]["messages"].as_array().unwrap();
    let ours = messages
        .iter()
        .find(|one| one["role"] == "assistant")
        .unwrap();
    let ours = ours["content"].as_str().unwrap();
    assert!(ours.ends_with(&last[last.len() - 100..]), "{ours}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_attach_files_no_upload_is_tried() {
    let p = two_messages().await;
    p.deny_us(Permissions::ATTACH_FILES);
    let bot = p.start().await;
    p.stage.model.script(Behaviour::text(&[&long()]));
    p.post(p.channel, p.ada, p.to_us("all of it"));
    p.answer(p.channel, 2).await;
    let lines = bot.stop().await;
    let posts = p.stage.discord.requests_to("POST", "/channels/*/messages");
    assert_eq!(posts.len(), 2);
    assert!(posts.iter().all(|post| post.files.is_empty()));
    check(p, &lines, "forbidden").await;
}

/// Discord refuses the upload, or it fails as often as it is tried.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_uploaded_comes_as_text() {
    let status = |status, code| FaultKind::Status {
        status,
        body: json!({"message": "no", "code": code}),
        retry_after: None,
    };
    let proxy = FaultKind::Status {
        status: 413,
        body: Value::Null,
        retry_after: None,
    };
    for (kind, tries, reason) in [
        (proxy, 1, "malformed"),
        (status(413, 40_005), 1, "malformed"),
        (status(400, 50_006), 1, "malformed"),
        (status(403, 50_013), 1, "forbidden"),
        (status(502, 0), 9, "unavailable"),
    ] {
        let p = two_messages().await;
        let bot = p.start().await;
        let upload = Fault::new("POST", "/channels/*/messages", kind)
            .after(1)
            .times(tries);
        let upload = p.stage.discord.fault(upload);
        p.stage.model.script(Behaviour::text(&[&long()]));
        p.post(p.channel, p.ada, p.to_us("all of it"));
        p.answer(p.channel, 2).await;
        let lines = bot.stop().await;
        assert_eq!(p.stage.discord.hits(upload), tries, "{reason}");
        check(p, &lines, reason).await;
    }
}

/// The message that announces the file was posted before the upload fails.
#[tokio::test(flavor = "multi_thread")]
async fn the_announcement_of_a_file_that_fails_is_taken_back() {
    let p = two_messages().await;
    let bot = p.start().await;
    let words = long();
    let (streamed, gate) = Behaviour::gated(&[&words, "The end."]);
    p.stage.model.script(streamed);
    p.post(p.channel, p.ada, p.to_us("all of it"));
    gate.step(1);
    let announced = p.answer(p.channel, 2).await;
    assert!(
        announced.ends_with("… (continued in the attached file)"),
        "{announced}"
    );
    let refused = Fault::status("PATCH", "/channels/*/messages/*", 413, 40_005, "too large").once();
    p.stage.discord.fault(refused);
    gate.open();
    let fits = |message: &clew_simulator::Message| message.content.ends_with(CUT_NOTE);
    p.stage
        .discord
        .wait_for_message(p.channel, fits)
        .await
        .unwrap();
    let lines = bot.stop().await;
    check(p, &lines, "malformed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commands_answer_comes_as_text_too() {
    let p = two_messages().await;
    let bot = p.start().await;
    let refused = Fault::status("POST", "/webhooks/*/*", 413, 40_005, "too large").once();
    p.stage.discord.fault(refused);
    p.stage.model.script(Behaviour::text(&[&long()]));
    let question = Use::slash("ask", &[("question", "all of it?")]);
    p.stage.discord.interact(p.channel, p.ada, &question);
    let last = p.answer(p.channel, 2).await;
    assert!(last.ends_with(CUT_NOTE), "{last}");
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "turn_done")["outcome"], "answered");
    check(p, &lines, "malformed").await;
}
