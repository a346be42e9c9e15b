//! What the answer replies to, and whose text stands in for a trigger without
//! words: one table per rule.

use std::collections::BTreeSet;
use std::sync::Arc;

use clew_context::engine::target::{TargetFacts, resolve};
use clew_context::model::{
    ApplicationId, Cause, Interaction, InteractionId, InteractionPlace, Message, MessageFlags,
    ReplyTarget, Secret,
};

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, DICE, EVE, GENERAL, GUILD, Shape, asked, id, number, said, us,
};

/// `/ask`.
pub(super) fn ask_command() -> Cause {
    Cause::Ask(Box::new(Interaction {
        id: InteractionId::new(1),
        application: ApplicationId::new(2),
        token: Secret::new(String::new()),
        channel: GENERAL,
        guild: Some(GUILD),
        user: EVE.user(),
        place: InteractionPlace::Guild,
    }))
}

struct Case<'a> {
    thread: Option<&'a [Message]>,
    pointed_at: Option<&'a Message>,
    others: &'a [u64],
    rule: ReplyTarget,
    is_message: bool,
    waited: bool,
}

const IN_THREAD: Case<'static> = Case {
    thread: Some(&[]),
    pointed_at: None,
    others: &[],
    rule: ReplyTarget::Newest,
    is_message: true,
    waited: false,
};

/// Expects the numbers of target and adopted message.
#[track_caller]
fn check(trigger: &Message, case: &Case<'_>, expected: (Option<u64>, Option<u64>)) {
    let trigger = Arc::new(trigger.clone());
    let pointed_at = case.pointed_at.map(|message| Arc::new(message.clone()));
    let thread: Option<Vec<Arc<Message>>> = case.thread.map(|messages| {
        let mut all: Vec<Arc<Message>> = messages.iter().cloned().map(Arc::new).collect();
        all.push(Arc::clone(&trigger));
        all.sort_by_key(|message| message.id);
        all
    });
    let others: BTreeSet<_> = case.others.iter().map(|n| id(*n)).collect();
    let found = resolve(
        &us(),
        &TargetFacts {
            trigger: &trigger,
            is_message: case.is_message,
            bare: us().is_bare(&trigger, false),
            waited: case.waited,
            pointed_at: pointed_at.as_ref(),
            thread: thread.as_deref(),
            other_triggers: &others,
            rule: case.rule,
        },
    );
    let of = |message: Option<Arc<Message>>| message.map(|message| number(message.id));
    assert_eq!((of(found.reply_to), of(found.adopted)), expected);
}

#[track_caller]
fn in_thread(thread: &[Message], trigger: &Message, expected: (Option<u64>, Option<u64>)) {
    let thread = Some(thread);
    check(
        trigger,
        &Case {
            thread,
            ..IN_THREAD
        },
        expected,
    );
}

/// Rule 1: a reply without words of its own.
#[test]
fn a_bare_reply_takes_the_message_it_points_at() {
    let thread = [said(1, ADA, "q"), said(2, BOB, "newest")];
    let bare = asked(3, EVE, "").replying(1);
    let human = said(1, ADA, "q");
    for (pointed_at, expected) in [
        (Some(human), (Some(1), Some(1))),
        (Some(said(1, CLEW, "ours")), (Some(3), Some(1))),
        (Some(said(1, ALERT, "alert")), (Some(3), Some(1))),
        (Some(said(1, DICE, "bot")), (Some(3), Some(1))),
        (Some(said(1, ADA, "").of_type(7)), (Some(3), Some(1))),
        (None, (Some(3), None)),
    ] {
        let case = Case {
            thread: Some(&thread),
            pointed_at: pointed_at.as_ref(),
            ..IN_THREAD
        };
        check(&bare, &case, expected);
    }
}

/// A reply with words of its own is like any other mention.
#[test]
fn a_reply_with_text_takes_no_other_words() {
    let thread = [said(1, ADA, "q")];
    let pointed_at = said(1, ADA, "q");
    let case = Case {
        thread: Some(&thread),
        pointed_at: Some(&pointed_at),
        ..IN_THREAD
    };
    check(&asked(3, EVE, "why?").replying(1), &case, (Some(3), None));
}

/// Rule 2: the newest message by a person, skipping everything else.
#[test]
fn the_newest_message_of_a_person_is_the_target() {
    let ask = asked(5, EVE, "");
    let told = asked(5, EVE, "why?");
    in_thread(&[said(1, ADA, "q")], &ask, (Some(1), Some(1)));
    in_thread(&[said(1, ADA, "q")], &told, (Some(5), None));
    in_thread(
        &[said(1, ADA, "q"), said(6, BOB, "lol")],
        &told,
        (Some(6), None),
    );
    in_thread(
        &[said(1, ADA, "q"), said(6, BOB, "lol")],
        &ask,
        (Some(6), Some(6)),
    );
    for passed_over in [
        said(3, CLEW, "our answer"),
        said(3, CLEW, "-# our note"),
        said(3, ALERT, "a webhook's"),
        said(3, DICE, "a bot's"),
        said(3, BOB, "").of_type(6),
        said(3, BOB, "").of_type(7),
        said(3, BOB, "").of_type(21),
        said(3, BOB, "cmd").of_type(20),
        said(3, BOB, "cmd").of_type(23),
    ] {
        in_thread(&[said(1, ADA, "q"), passed_over], &ask, (Some(1), Some(1)));
    }
}

/// Seen in practice: "@bot" taking the words of "@bot".
#[test]
fn messages_that_say_nothing_are_skipped() {
    let nothing = [asked(2, BOB, ""), said(3, BOB, "..."), asked(4, ADA, "?")];
    let q = [said(1, ADA, "q")];
    let thread: Vec<Message> = q.into_iter().chain(nothing.clone()).collect();
    in_thread(&thread, &asked(5, EVE, ""), (Some(1), Some(1)));
    in_thread(&nothing, &asked(5, EVE, ""), (Some(5), None));
    let file = said(3, BOB, "").with_file("a.png", None, 1);
    in_thread(
        &[said(1, ADA, "q"), file],
        &asked(5, EVE, ""),
        (Some(3), Some(3)),
    );
}

/// Seen in practice: the answer to the second asker replied to a third person's "lol".
#[test]
fn a_question_that_waited_is_its_own_target() {
    let thread = [said(1, ADA, "q"), said(6, BOB, "lol")];
    let case = Case {
        thread: Some(&thread),
        waited: true,
        ..IN_THREAD
    };
    check(&asked(5, EVE, "why?"), &case, (Some(5), None));
    check(&asked(5, EVE, "why?").replying(1), &case, (Some(5), None));
    check(&asked(5, EVE, ""), &case, (Some(6), Some(6)));
    let by_bot = asked(5, DICE, "hi");
    check(&by_bot, &case, (Some(6), None));
}

#[test]
fn other_turns_triggers_are_skipped() {
    let thread = [said(1, ADA, "q"), asked(2, BOB, "x?"), asked(6, ADA, "y?")];
    let case = Case {
        thread: Some(&thread),
        others: &[2, 6],
        ..IN_THREAD
    };
    check(&asked(5, EVE, "why?"), &case, (Some(5), None));
    check(&asked(5, EVE, ""), &case, (Some(1), Some(1)));
}

/// Rule 3: the trigger, and never the bot itself.
#[test]
fn without_another_message_the_trigger_is_the_target() {
    in_thread(&[], &asked(5, EVE, ""), (Some(5), None));
    in_thread(&[], &asked(5, EVE, "why?"), (Some(5), None));
    in_thread(
        &[said(1, CLEW, "ours")],
        &asked(5, EVE, ""),
        (Some(5), None),
    );
    // No message by a person at all: no reference.
    in_thread(
        &[said(1, CLEW, "ours")],
        &asked(5, DICE, "hi"),
        (None, None),
    );
    in_thread(&[said(1, ADA, "q")], &asked(5, DICE, "hi"), (Some(1), None));
}

#[test]
fn a_command_replies_to_nothing() {
    let thread = [said(1, ADA, "q")];
    for thread in [None, Some(&thread[..])] {
        let case = Case {
            thread,
            is_message: false,
            ..IN_THREAD
        };
        check(&said(5, EVE, "why?"), &case, (None, None));
    }
}

#[test]
fn the_setting_prefers_the_trigger() {
    let thread = [said(1, ADA, "q"), said(6, BOB, "lol")];
    let case = Case {
        thread: Some(&thread),
        rule: ReplyTarget::Trigger,
        ..IN_THREAD
    };
    check(&asked(5, EVE, "why?"), &case, (Some(5), None));
    check(&asked(5, EVE, ""), &case, (Some(5), Some(6)));
}

#[test]
fn outside_threads_the_trigger_is_the_target() {
    let pointed_at = said(1, ADA, "q");
    let outside = |pointed_at| Case {
        thread: None,
        pointed_at,
        ..IN_THREAD
    };
    check(&asked(5, EVE, ""), &outside(None), (Some(5), None));
    let bare = asked(5, EVE, "").replying(1);
    check(&bare, &outside(Some(&pointed_at)), (Some(5), Some(1)));
    let told = asked(5, EVE, "why?").replying(1);
    check(&told, &outside(Some(&pointed_at)), (Some(5), None));
    check(&asked(5, DICE, "hi"), &outside(None), (Some(5), None));
}

/// What counts as words: letters, digits or emoji of any script, or a part such as a file.
#[test]
fn words_of_any_script_count() {
    let us = us();
    for text in ["да", "はい", "٣", "👍", "<:yes:1>", "ok", "<@11>"] {
        assert!(us.has_meaning(&asked(1, EVE, text)), "{text}");
    }
    for text in ["", "?", "...", "\u{200B}", "<@&8000>", "<@!90>"] {
        assert!(!us.has_meaning(&asked(1, EVE, text)), "{text}");
    }
    let bare = || asked(1, EVE, "");
    assert!(us.has_meaning(&bare().with_file("a.png", None, 1)));
    assert!(us.has_meaning(&bare().with_embed("title", "text")));
    assert!(us.has_meaning(&bare().with_extras(|extras| extras.stickers.push("wave".into()))));
    assert!(us.has_meaning(&bare().with_extras(|extras| extras.unread.push("poll"))));
    assert!(!us.has_meaning(&bare().flagged(MessageFlags(4))));
}
