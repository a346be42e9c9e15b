//! Answers: streamed, split, attached, pinging nobody, as replies.

use clew_simulator::{Draft, Fault, Id, Permissions, Use};
use serde_json::{Value, json};

use super::{Place, assert_in_order, only, place, place_with};
use crate::support::bot::details;
use crate::support::model::{Behaviour, text_event};

/// The bodies of messages posted to channels so far.
fn posts(p: &Place) -> Vec<Value> {
    let calls = p.stage.discord.requests_to("POST", "/channels/*/messages");
    calls.into_iter().map(|call| call.body).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_grows_by_few_edits_of_one_message() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let words: Vec<String> = (0..200).map(|count| format!("word{count} ")).collect();
    let pieces: Vec<&str> = words.iter().map(String::as_str).collect();
    let (behaviour, gate) = Behaviour::gated(&pieces);
    p.stage.model.script(behaviour);
    p.post(p.channel, p.ada, p.to_us("tell me"));
    gate.step(100);
    let partial = p.answer(p.channel, 1).await;
    assert!(
        partial.starts_with("word0 ") && partial.ends_with("word99"),
        "{partial}"
    );
    gate.step(50);
    p.stage
        .discord
        .wait_request("PATCH", "/messages/", 1)
        .await
        .unwrap();
    gate.open();
    let whole = words.concat();
    p.wait_for(p.channel, whole.trim_end()).await;
    let lines = bot.stop().await;
    assert_eq!(posts(&p).len(), 1);
    let edits = p.stage.discord.requests_to("PATCH", "/messages/").len();
    assert!((2..=3).contains(&edits), "{edits} edits of 200 pieces");
    assert_eq!(only(&lines, "sent")["edits"], edits);
    let edited = &p.stage.discord.requests_to("PATCH", "/messages/")[0].body;
    assert_eq!(edited["allowed_mentions"], json!({"parse": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_answer_is_posted_once() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us("hm?"));
    p.answer(p.channel, 1).await;
    bot.stop().await;
    assert_eq!(posts(&p).len(), 1);
    assert_eq!(p.stage.discord.requests_to("PATCH", "/messages/").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_is_split_and_its_code_stays_code() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let code = "let x = 1; // & <b>\n".repeat(150);
    let text = format!("Here:\n```rust\n{code}```\nDone.");
    p.stage.model.script(Behaviour::text(&[&text]));
    p.post(p.channel, p.ada, p.to_us("code?"));
    p.answer(p.channel, 2).await;
    let lines = bot.stop().await;
    let answers = p.stage.discord.answers(p.channel);
    assert_eq!(answers.len(), 2);
    for answer in &answers {
        assert!(answer.content.chars().count() <= 2_000);
        assert_eq!(answer.content.matches("```").count() % 2, 0);
    }
    assert!(
        answers[1].content.starts_with("```rust\n"),
        "{}",
        answers[1].content
    );
    assert_eq!(answers[1].reference, None, "only the first is a reply");
    assert_eq!(only(&lines, "sent")["messages"], 2);
}

/// What the provider ended is said to be no whole answer, in small print, in telemetry and in the receipt.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_model_did_not_end_says_so() {
    let limit = "it reached the model's token limit.";
    let filter = "the model's content filter cut it off.";
    for (reason, line, finish, cut_off) in [
        (
            "length",
            limit,
            "length",
            "cut off by the model's token limit",
        ),
        (
            "MAX_TOKENS",
            limit,
            "length",
            "cut off by the model's token limit",
        ),
        (
            "content_filter",
            filter,
            "content_filter",
            "cut off by its content filter",
        ),
        (
            "SAFETY",
            filter,
            "content_filter",
            "cut off by its content filter",
        ),
    ] {
        let p = place(&[]).await;
        let bot = p.start().await;
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        let body = format!("{}data: {end}\n\ndata: [DONE]\n\n", text_event("Half of"));
        p.stage
            .model
            .script(Behaviour::Raw("text/event-stream", body.into_bytes()));
        p.post(p.channel, p.ada, p.to_us("all of it"));
        let note = p.answer(p.channel, 2).await;
        assert_eq!(note, format!("-# The answer ends here: {line}"));
        let answers = p.stage.discord.answers(p.channel);
        assert_eq!(answers[0].content, "Half of");
        let why = p.why(answers[0].id).await;
        assert!(why.contains(cut_off), "{why}");
        let lines = bot.stop().await;
        assert_eq!(only(&lines, "request_ok")["finish"], finish);
    }
}

impl Place {
    /// What `/context why` says of an answer, once it is recorded.
    pub(super) async fn why(&self, answer: Id) -> String {
        let discord = &self.stage.discord;
        let answer = json!({"answer": answer.to_string()});
        for _ in 0..1_000 {
            let called = discord.call(self.ada, self.channel, "context why", answer.clone());
            let told = called.await.unwrap().answer().await.unwrap().text();
            if !told.contains("No record") {
                return told;
            }
        }
        panic!("it is not recorded");
    }
}

/// Discord shows no tables: an aligned code block stands in their place, whole at once; what is stored and
/// attached are the model's words.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_becomes_a_code_block() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (behaviour, gate) = Behaviour::gated(&[
        "Here:\n| what | bar |\n",
        "|---|--:|\n| inlet | 4 |\n",
        "| outlet | 12 |\n",
        "\nDone.",
    ]);
    p.stage.model.script(behaviour);
    p.post(p.channel, p.ada, p.to_us("readings?"));
    gate.step(2);
    p.wait_for(p.channel, "Here:").await;
    gate.open();
    let table = "```\nwhat    bar\n------  ---\ninlet     4\noutlet   12\n```";
    p.wait_for(p.channel, &format!("Here:\n{table}\n\nDone."))
        .await;
    p.post(p.channel, p.ada, p.to_us("and then?"));
    p.answer(p.channel, 2).await;
    bot.stop().await;
    let requests = p.stage.model.requests();
    let prompt = requests[1]["messages"].to_string();
    assert!(prompt.contains("| inlet | 4 |"), "{prompt}");
}

/// What a spoiler hides is not shown before its end has come.
#[tokio::test(flavor = "multi_thread")]
async fn a_spoiler_that_grows_waits_for_its_end() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let pieces = ["It ends: ||he\n", "and she\n", "die||."];
    let (behaviour, gate) = Behaviour::gated(&pieces);
    p.stage.model.script(behaviour);
    p.post(p.channel, p.ada, p.to_us("how does it end?"));
    gate.step(2);
    assert_eq!(p.answer(p.channel, 1).await, "It ends:");
    gate.open();
    p.wait_for(p.channel, &pieces.concat()).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_block_ends_before_the_line_that_says_it_broke_off() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.stage.model.script(Behaviour::drop(&["```rust\nlet x"]));
    p.post(p.channel, p.ada, p.to_us("code?"));
    let line = "-# The answer broke off here. Ask again for the rest.";
    p.wait_for(p.channel, &format!("```rust\nlet x\n```\n{line}"))
        .await;
    bot.stop().await;
}

/// What was held back stays hidden.
#[tokio::test(flavor = "multi_thread")]
async fn a_spoiler_that_breaks_off_is_closed() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.stage.model.script(Behaviour::drop(&["It ends: ||he"]));
    p.post(p.channel, p.ada, p.to_us("how?"));
    let line = "-# The answer broke off here. Ask again for the rest.";
    p.wait_for(p.channel, &format!("It ends: ||he||\n{line}"))
        .await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_for_messages_is_attached() {
    let p = place(&[("ANSWER_MAX_MESSAGES", "2")]).await;
    let bot = p.start().await;
    let text = "A sentence of some length. ".repeat(300);
    p.stage.model.script(Behaviour::text(&[&text]));
    p.post(p.channel, p.ada, p.to_us("all of it"));
    p.answer(p.channel, 2).await;
    let lines = bot.stop().await;
    let answers = p.stage.discord.answers(p.channel);
    assert_eq!(answers.len(), 2);
    let file = &answers[1].attachments[0].file;
    assert_eq!(file.name, "answer.md");
    assert_eq!(
        std::str::from_utf8(&file.bytes).unwrap().trim_end(),
        text.trim_end()
    );
    assert_eq!(only(&lines, "sent")["attached"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_no_file_can_carry_is_cut_off_and_the_asker_told() {
    const MIB: usize = 1 << 20;
    let p = place(&[("ANSWER_MAX_MESSAGES", "2")]).await;
    let bot = p.start().await;
    let piece = "All work and no play. ".repeat(20_000);
    let pieces = vec![piece.as_str(); 11 * MIB / piece.len()];
    let (endless, gate) = Behaviour::gated(&[&pieces[..], &["never asked for"]].concat());
    p.stage.model.script(endless);
    p.post(p.channel, p.ada, p.to_us("all of it"));
    gate.step(pieces.len());
    let told = p.answer(p.channel, 3).await;
    assert!(
        told.starts_with("-# The answer ends here: it was too long"),
        "{told}"
    );
    p.stage.model.wait_ended(1).await;
    let lines = bot.stop().await;
    let answers = p.stage.discord.answers(p.channel);
    let file = &answers[1].attachments[0].file;
    assert_eq!(file.bytes.len(), 10 * MIB);
    assert!(piece.as_bytes().starts_with(&file.bytes[..1_000]));
    assert_eq!(only(&lines, "request_ok")["finish"], "cut_off");
    assert_eq!(only(&lines, "turn_done")["outcome"], "answered");
    assert_eq!(only(&lines, "recorded")["rows"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_pinged_but_an_asker_who_is_answered() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let thread = seeds.thread(world, "pump");
        world.seed(thread, seeds.boris, "is 3 bar normal?");
        thread
    })
    .await;
    let bot = p.start().await;
    p.stage
        .model
        .script(Behaviour::text(&["@everyone see <@5> and <@&6>"]));
    p.post(thread, p.ada, p.to_us("is it?"));
    p.answer(thread, 1).await;
    p.post(thread, p.ada, p.to_us(""));
    p.answer(thread, 2).await;
    let boris = p.post(thread, p.boris, "four?");
    p.post(thread, p.ada, p.to_us(""));
    p.answer(thread, 3).await;
    bot.stop().await;
    let bodies = posts(&p);
    let asked = [true, true, false];
    for (body, pings) in bodies.iter().zip(asked) {
        let expected = json!({"parse": [], "users": [], "replied_user": pings});
        assert_eq!(body["allowed_mentions"], expected, "{body}");
        assert_eq!(body["enforce_nonce"], true);
    }
    assert_ne!(bodies[0]["nonce"], bodies[1]["nonce"]);
    let target = &bodies[2]["message_reference"]["message_id"];
    assert_eq!(*target, json!(boris.to_string()));
}

/// Suppress Embeds is set on what is posted and on every edit of it, to
/// commands as well, and nobody is pinged the more for it.
#[tokio::test(flavor = "multi_thread")]
async fn links_show_no_previews() {
    let words = "See https://example.org for more. ".repeat(70);
    let (beginning, rest) = words.split_at(1_000);
    let question = Use::slash("ask", &[("question", "where?")]);
    let p = place(&[]).await;
    let bot = p.start().await;
    let (streamed, gate) = Behaviour::gated(&[beginning, rest]);
    p.stage.model.script(streamed);
    p.post(p.channel, p.ada, p.to_us("where?"));
    gate.step(1);
    p.answer(p.channel, 1).await;
    gate.open();
    p.answer(p.channel, 2).await;
    p.stage.model.script(Behaviour::text(&[&words]));
    p.stage.discord.interact(p.channel, p.ada, &question);
    p.answer(p.channel, 4).await;
    bot.stop().await;
    let discord = &p.stage.discord;
    for answer in discord.answers(p.channel) {
        assert_eq!(json!(answer.flags), json!(4), "{answer:?}");
    }
    let edits = discord.requests_to("PATCH", "/messages/");
    assert!(edits.len() >= 2, "of a message, and of a command's answer");
    for edit in edits {
        assert_eq!(edit.body["flags"], 4);
        assert_eq!(edit.body["allowed_mentions"], json!({"parse": []}));
    }
    for sent in posts(&p).iter().chain(&followed_up(&p)) {
        assert_eq!(
            (&sent["flags"], &sent["allowed_mentions"]["parse"]),
            (&json!(4), &json!([]))
        );
    }
}

/// The bodies of messages that followed the first answer to a command.
fn followed_up(p: &Place) -> Vec<Value> {
    let calls = p.stage.discord.requests_to("POST", "/webhooks/");
    calls.into_iter().map(|call| call.body).collect()
}

/// Refusals of the reference cost the reference, never the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_reference_is_dropped_once() {
    let errors = [
        (
            403,
            json!({"code": 160_002, "message": "Cannot reply without permission"}),
        ),
        (404, json!({"code": 10_008, "message": "Unknown Message"})),
        (
            400,
            json!({"code": 50_035, "message": "Invalid Form Body",
            "errors": {"message_reference": {"_errors": [{"code": "REPLIES_CANNOT_REFERENCE_SYSTEM_MESSAGE"}]}}}),
        ),
    ];
    for (status, body) in errors {
        let p = place(&[]).await;
        let bot = p.start().await;
        let kind = clew_simulator::FaultKind::Status {
            status,
            body,
            retry_after: None,
        };
        p.stage
            .discord
            .fault(Fault::new("POST", "/channels/*/messages", kind).once());
        p.post(p.channel, p.ada, p.to_us("why?"));
        assert_eq!(p.answer(p.channel, 1).await, "ok");
        let lines = bot.stop().await;
        let bodies = posts(&p);
        assert_eq!(bodies.len(), 2);
        assert!(bodies[0]["message_reference"].is_object());
        assert!(bodies[1]["message_reference"].is_null());
        assert_eq!(bodies[1]["allowed_mentions"]["replied_user"], false);
        assert_eq!(only(&lines, "send_fallback")["stage"], "reference");
        assert_eq!(only(&lines, "turn_done")["outcome"], "answered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_read_message_history_the_answer_comes_without_reference() {
    let p = place(&[]).await;
    p.deny_us(Permissions::READ_MESSAGE_HISTORY);
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us("why?"));
    assert_eq!(p.answer(p.channel, 1).await, "ok");
    bot.stop().await;
}

/// Where we may not write we react, else it is logged; Discord is asked for
/// nothing that it would refuse.
#[tokio::test(flavor = "multi_thread")]
async fn where_it_may_not_write_it_reacts_if_it_may() {
    let send = Permissions::SEND_MESSAGES;
    let both = Permissions(send.0 | Permissions::ADD_REACTIONS.0);
    for (denied, reacts) in [(send, true), (both, false)] {
        let p = place(&[]).await;
        p.deny_us(denied);
        let bot = p.start().await;
        let trigger = p.post(p.channel, p.ada, p.to_us("why?"));
        p.seen().await;
        let lines = bot.stop().await;
        assert_eq!(reactions(&p, p.channel, trigger), usize::from(reacts));
        assert_eq!(only(&lines, "turn_done")["outcome"], "failed");
        assert_eq!(p.stage.discord.requests_to("POST", "/channels").len(), 0);
        assert_eq!(p.stage.model.requests().len(), 0);
    }
}

fn reactions(p: &Place, channel: Id, message: Id) -> usize {
    let messages = p.stage.discord.messages(channel);
    let found = messages.iter().find(|one| one.id == message);
    found.unwrap().reactions.len()
}

/// Permissions changed where we did not see it.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_post_leads_to_a_reaction() {
    for code in [50_001, 50_013] {
        let p = place(&[]).await;
        let bot = p.start().await;
        let refused = Fault::status("POST", "/channels/*/messages", 403, code, "Missing");
        p.stage.discord.fault(refused);
        let trigger = p.post(p.channel, p.ada, p.to_us("why?"));
        p.stage
            .discord
            .wait_request("PUT", "/reactions/", 1)
            .await
            .unwrap();
        let lines = bot.stop().await;
        assert_eq!(reactions(&p, p.channel, trigger), 1);
        let fallback = only(&lines, "send_fallback");
        assert_eq!(
            (&fallback["reason"], &fallback["stage"]),
            (&"forbidden".into(), &"create".into())
        );
        assert_eq!(posts(&p).len(), 1);
    }
}

/// Answers in a thread that is archived, locked or both meanwhile; gives the
/// telemetry.
async fn shut(archived: bool, locked: bool) -> (Place, Id, Vec<Value>) {
    let (p, thread) = place_with(&[], |world, seeds| seeds.thread(world, "pump")).await;
    let bot = p.start().await;
    let (behaviour, gate) = Behaviour::gated(&["Three bar."]);
    p.stage.model.script(behaviour);
    p.post(thread, p.ada, p.to_us("how much?"));
    p.stage.model.wait_requests(1).await;
    p.stage.discord.set_archived(thread, archived, locked);
    p.seen().await;
    gate.open();
    (p, thread, bot.stop().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_opens_an_archived_thread() {
    let (p, thread, lines) = shut(true, false).await;
    assert_eq!(p.stage.discord.answers(thread)[0].content, "Three bar.");
    let archived = p.stage.discord.world(|world| {
        let channel = world.get_channel(thread).unwrap();
        channel.thread.as_ref().unwrap().archived
    });
    assert!(!archived);
    for event in ["send_fallback", "tail_fallback"] {
        assert_eq!(details(&lines, event), [] as [Value; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_thread_stays_shut() {
    for (archived, expected) in [
        (false, vec![("locked", "create")]),
        // Not even a reaction is taken there.
        (true, vec![("archived", "create"), ("archived", "react")]),
    ] {
        let (p, thread, lines) = shut(archived, true).await;
        let tail = only(&lines, "tail_fallback");
        assert_eq!(tail["reason"], expected[0].0, "it is told there");
        let failed = details(&lines, "send_fallback");
        let failed: Vec<(&str, &str)> = failed
            .iter()
            .map(|one| {
                (
                    one["reason"].as_str().unwrap(),
                    one["stage"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(failed, expected);
        assert!(p.stage.discord.answers(thread).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_never_replies_to_itself() {
    let (p, (thread, own)) = place_with(&[], |world, seeds| {
        let us = world.bot;
        let thread = seeds.thread(world, "pump");
        let own = world.seed(thread, us, "Three bar is normal.");
        (thread, own)
    })
    .await;
    let bot = p.start().await;
    let bare = Draft::new(p.to_us("")).reply_to(own);
    let trigger = p.post(thread, p.ada, bare);
    p.answer(thread, 2).await;
    let answers = p.stage.discord.answers(thread);
    assert_eq!(answers[1].reference.unwrap().message, Some(trigger));
    // Its text is meant all the same.
    let prompt = p.prompt(1).await;
    assert_in_order(
        &prompt,
        &[
            "[you]",
            "Three bar is normal.",
            "points at the message",
            "your own earlier message",
        ],
    );
    bot.stop().await;
}
