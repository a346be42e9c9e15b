//! Mentions without words, refused questions, and the inspector.

use clew_simulator::{ChannelKind, Draft, OverwriteOf, Permissions};

use super::{assert_in_order, only, place, place_with};
use crate::support::bot::details;

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_mention_takes_the_last_messages_of_the_channel() {
    let p = place(&[]).await;
    for text in ["one", "two", "three", "four", "five", "is 3 bar normal?"] {
        p.stage.discord.seed(p.channel, p.boris, text);
    }
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us(""));
    p.answer(p.channel, 1).await;
    let prompt = p.prompt(1).await;
    assert_in_order(
        &prompt,
        &["two", "three", "four", "five", "is 3 bar normal?"],
    );
    assert!(!prompt.contains("one\n"), "{prompt}");
    assert_eq!(p.gets(), 1);
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "collect_ok")["msgs"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_mention_in_an_empty_channel_is_invited_to_ask() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us(""));
    let line = p.answer(p.channel, 1).await;
    assert!(line.starts_with("-# Ask me something"), "{line}");
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "turn_done")["outcome"], "refused");
    assert_eq!(p.stage.model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_mention_in_a_thread_that_cannot_be_read_is_told_so() {
    let (p, (hidden, empty)) = place_with(&[], |world, seeds| {
        let own = OverwriteOf::Member(world.bot);
        let closed = world.channel(seeds.guild, ChannelKind::Text, "closed");
        let history = Permissions::READ_MESSAGE_HISTORY;
        world.overwrite(closed, own, Permissions::NONE, history);
        let thread = |world: &mut clew_simulator::World, parent| {
            world.thread(parent, ChannelKind::PublicThread, "pump", seeds.ada)
        };
        let hidden = thread(world, closed);
        world.seed(hidden, seeds.boris, "is 3 bar normal?");
        (hidden, thread(world, seeds.channel))
    })
    .await;
    let bot = p.start().await;
    for (thread, expected) in [
        (hidden, "-# I can't read this thread."),
        (empty, "-# Ask me something"),
    ] {
        p.post(thread, p.ada, p.to_us(""));
        let line = p.answer(thread, 1).await;
        assert!(line.starts_with(expected), "{line}");
    }
    let lines = bot.stop().await;
    let outcomes = details(&lines, "turn_done");
    assert!(outcomes.iter().all(|one| one["outcome"] == "refused"));
    assert_eq!(p.stage.model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_direct_message_whatever_is_typed_is_a_question() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    p.post(direct, p.ada, "??");
    assert_eq!(p.answer(direct, 1).await, "ok");
    let prompt = p.prompt(1).await;
    assert!(prompt.ends_with(" asks you:\n??"), "{prompt}");
    bot.stop().await;
}

/// An answer to a bare mention does not reply to a question that was refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_question_is_passed_over() {
    let (p, thread) = place_with(&[("USER_TURNS_PER_MIN", "1")], |world, seeds| {
        seeds.thread(world, "pump")
    })
    .await;
    let bot = p.start().await;
    let first = p.post(thread, p.ada, p.to_us("how many bar?"));
    p.answer(thread, 1).await;
    p.post(thread, p.ada, p.to_us("and how many pascal?"));
    let refusal = p.answer(thread, 2).await;
    assert!(refusal.starts_with("-# That's a lot"), "{refusal}");
    p.post(thread, p.boris, p.to_us(""));
    p.answer(thread, 3).await;
    assert_eq!(p.targets(thread)[2], Some(first));
    bot.stop().await;
}

/// A message that comes after a waiting question does not become the target of its
/// answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_question_that_waited_replies_to_it() {
    let (p, thread) = place_with(&[], |world, seeds| seeds.thread(world, "pump")).await;
    let bot = p.start().await;
    let gate = p.hold("Three bar is normal.");
    p.post(thread, p.ada, p.to_us("is 3 bar normal?"));
    p.stage.model.wait_requests(1).await;
    let second = p.post(thread, p.boris, p.to_us("and four?"));
    p.post(thread, p.ada, "lol");
    p.seen().await;
    gate.open();
    p.answer(thread, 2).await;
    assert_eq!(p.targets(thread)[1], Some(second));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_the_inspector_answers() {
    let (p, thread) = place_with(&[("LLM_BASE_URL", "")], |world, seeds| {
        let start = world.seed(seeds.channel, seeds.ada, "the *pump* is leaking <@5>");
        let thread = world.thread_from(seeds.channel, start, "pump failure", seeds.ada);
        for count in 0..60 {
            world.seed(thread, seeds.boris, format!("reading {count}"));
        }
        thread
    })
    .await;
    let bot = p.start().await;
    p.post(thread, p.ada, p.to_us("what is it about?"));
    let answer = p.answer(thread, 1).await;
    println!("{answer}");
    assert_in_order(
        &answer,
        &[
            "40 messages of this thread",
            "pump failure",
            "messages omitted ... (MEM\\_MAX\\_MSGS)",
            "... 34 more ...",
            "reading 59",
        ],
    );
    assert!(answer.lines().count() <= 14, "{answer}");
    let lines = bot.stop().await;
    assert_eq!(p.stage.model.requests().len(), 0);
    assert_eq!(only(&lines, "started")["answers"], "inspector");
}

/// A bare reply takes the words that it points at; what authors keep private is counted.
#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_names_whom_it_answers_and_counts_what_is_private() {
    let (p, thread) = place_with(&[("LLM_BASE_URL", "")], |world, seeds| {
        let thread = seeds.thread(world, "pump");
        world.seed(thread, seeds.boris, "is 3 bar normal?");
        thread
    })
    .await;
    let bot = p.start().await;
    let asked = p.post(thread, p.ada, "how many pascal is that?");
    p.post(thread, p.boris, Draft::new(p.to_us("")).reply_to(asked));
    let answer = p.answer(thread, 1).await;
    let names = "- you wrote nothing yourself, so Ada's message is answered";
    assert!(answer.contains(names), "{answer}");
    assert!(!answer.contains("kept private"), "{answer}");
    assert!(!answer.contains("from earlier"), "{answer}");
    p.opts_out(p.boris).await;
    p.post(thread, p.ada, p.to_us("and now?"));
    let answer = p.answer(thread, 2).await;
    assert!(!answer.contains("wrote nothing yourself"), "{answer}");
    let private = "- 2 messages kept private by their authors";
    assert!(answer.contains(private), "{answer}");
    bot.stop().await;
}

/// A message that comes while a turn collects is shown in the next turn, not in this
/// one.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_newer_than_the_turns_start_is_looked_at() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let thread = seeds.thread(world, "pump");
        world.seed(thread, seeds.boris, "is 3 bar normal?");
        thread
    })
    .await;
    let bot = p.start().await;
    // The page of the first turn is slow; meanwhile somebody goes on.
    let slow = clew_simulator::FaultKind::Latency(std::time::Duration::from_millis(400));
    let page = clew_simulator::Fault::new("GET", "/channels/*/messages", slow);
    p.stage.discord.fault(page);
    p.post(thread, p.ada, p.to_us("is it?"));
    p.stage
        .discord
        .wait_request("GET", "/messages", 1)
        .await
        .unwrap();
    p.post(thread, p.boris, "lol");
    p.answer(thread, 1).await;
    let prompt = p.prompt(1).await;
    assert_in_order(&prompt, &["is 3 bar normal?", "is it?"]);
    assert!(!prompt.contains("lol"), "{prompt}");
    p.post(thread, p.ada, p.to_us("well?"));
    p.answer(thread, 2).await;
    assert_in_order(
        &p.prompt(2).await,
        &["is 3 bar normal?", "is it?", "lol", "ok", "well?"],
    );
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "collect_fallback").len(), 0);
}
