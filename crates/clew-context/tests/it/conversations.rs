//! Conversations that went wrong in practice, each from its messages to the block and the target of the answer.

use clew_context::model::{Cause, Message, Reference, ReferenceKind};

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, EVE, Person, Shape, asked, id, said, thread, thread_id,
};
use crate::support::world::{Start, World, adopted, outline, target};

fn here(n: u64, who: Person, text: &str) -> Message {
    said(n, who, text).into_channel(thread_id(0))
}

fn ask(n: u64, who: Person, text: &str) -> Message {
    asked(n, who, text).into_channel(thread_id(0))
}

/// The result of the turn for `trigger` if all these messages were seen before it
/// starts: block, target and adopted message.
async fn turn(
    seen: &[Message],
    trigger: &Message,
    others: &[u64],
    cause: Cause,
) -> (String, Option<u64>, Option<u64>) {
    let mut world = World::of([said(0, ADA, "start")]);
    world.add(seen.iter().cloned());
    let start = Start {
        other_triggers: others.iter().map(|n| id(*n)).collect(),
        cause,
        ..Start::within(thread(0)).watching(seen, true)
    };
    let collected = start.collect(&world, trigger).await;
    let shown = outline(&start.prepare(&collected).block);
    (shown, target(&collected), adopted(&collected))
}

/// The answer to each queued question replies to that question, and its prompt
/// contains the answers given before.
#[tokio::test]
async fn three_triggers_queued_while_the_first_is_answered() {
    let questions = [
        ask(1, ADA, "q1?"),
        ask(2, BOB, "q2?"),
        ask(3, EVE, "q3?"),
        ask(4, ADA, "q4?"),
    ];
    let (_, first, _) = turn(&questions[..1], &questions[0], &[], Cause::Mention).await;
    assert_eq!(first, Some(1));
    let mut seen = questions.to_vec();
    for (n, waiting) in [(2, vec![3, 4]), (3, vec![4]), (4, vec![])] {
        // The previous answer has arrived in the meantime.
        seen.push(here(8 + n, CLEW, "an answer").replying(n - 1));
        let trigger = &questions[usize::try_from(n).unwrap() - 1];
        let (shown, to, text) = turn(&seen, trigger, &waiting, Cause::Mention).await;
        assert_eq!((to, text), (Some(n), None), "{shown}");
        assert!(shown.contains(&(8 + n).to_string()), "{shown}");
    }
}

#[tokio::test]
async fn our_newest_answer_in_two_parts_then_a_bare_mention() {
    let trigger = ask(5, ADA, "");
    let seen = [
        here(1, BOB, "hi"),
        here(2, ADA, "explain it"),
        here(3, CLEW, "first part"),
        here(4, CLEW, "second part"),
        trigger.clone(),
    ];
    for (cause, shown) in [
        (Cause::Mention, "s0 1 t2 3 4"),
        (Cause::AutoReply, "s0 1 t2 3 4"),
    ] {
        let came = turn(&seen, &trigger, &[], cause).await;
        assert_eq!(came, (shown.to_owned(), Some(2), Some(2)));
    }
}

#[tokio::test]
async fn a_webhook_newest() {
    let trigger = ask(3, ADA, "");
    let seen = [
        here(1, BOB, "is it up?"),
        here(2, ALERT, "disk full"),
        trigger.clone(),
    ];
    let came = turn(&seen, &trigger, &[], Cause::Mention).await;
    assert_eq!(came, ("s0 t1".to_owned(), Some(1), Some(1)));
}

/// The asker wants the bot's own text explained; the answer replies to the asker, never to the bot.
#[tokio::test]
async fn a_bare_reply_to_our_own_message() {
    let trigger = ask(3, ADA, "").replying(2).pinging(CLEW);
    let seen = [here(1, BOB, "q"), here(2, CLEW, "42"), trigger.clone()];
    let came = turn(&seen, &trigger, &[], Cause::Mention).await;
    assert_eq!(came, ("s0 1 p2".to_owned(), Some(3), Some(2)));
}

#[tokio::test]
async fn a_pin_notice_newest() {
    let trigger = ask(3, ADA, "");
    let pin = here(2, EVE, "").of_type(6).shaped(|pin| {
        pin.reference = Some(Reference {
            kind: ReferenceKind::Default,
            channel: Some(thread_id(0)),
            message: Some(id(1)),
        });
    });
    let seen = [here(1, BOB, "the question"), pin, trigger.clone()];
    let came = turn(&seen, &trigger, &[], Cause::Mention).await;
    assert_eq!(came, ("s0 t1".to_owned(), Some(1), Some(1)));
}

#[tokio::test]
async fn a_question_our_answer_and_a_bare_mention_by_another_user() {
    let trigger = ask(3, BOB, "");
    let seen = [
        here(1, ADA, "q1"),
        here(2, CLEW, "a1").replying(1),
        trigger.clone(),
    ];
    let came = turn(&seen, &trigger, &[], Cause::Mention).await;
    assert_eq!(
        came,
        ("s0 t1 2".to_owned(), Some(1), Some(1)),
        "our answer is kept"
    );
}

/// The answer replies to the newest message by a person at the turn's start, but
/// still answers the question.
#[tokio::test]
async fn somebody_says_lol_before_the_turn_starts() {
    let trigger = ask(2, ADA, "how tall is it?");
    let seen = [here(1, BOB, "hm"), trigger.clone(), here(3, EVE, "lol")];
    let came = turn(&seen, &trigger, &[], Cause::Mention).await;
    assert_eq!(came, ("s0 1 t3".to_owned(), Some(3), None));
}

/// The starter is the bot's own message: it is shown as such and never replied to.
#[tokio::test]
async fn a_thread_opened_on_our_own_message() {
    let ours = said(0, CLEW, "our answer in the channel");
    let trigger = ask(2, ADA, "why?");
    let world = World::of([ours.clone(), trigger.clone()]);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    let block = start.prepare(&collected).block;
    assert_eq!(outline(&block), "s0");
    assert!(block.items().all(|item| item.ours));
    assert_eq!(target(&collected), Some(2));

    let bare = ask(2, ADA, "");
    let world = World::of([ours, bare.clone()]);
    let collected = start.collect(&world, &bare).await;
    assert_eq!((target(&collected), adopted(&collected)), (Some(2), None));
}
