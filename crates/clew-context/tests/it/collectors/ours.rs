//! Which messages are the bot's, and which words of a message are its author's own.

use clew_context::model::{Message, OmitReason};

use crate::support::build::{ADA, CLEW, DICE, EVE, OUR_ROLE, Shape, asked, said, us};

#[test]
fn mentions_of_us_at_either_end_are_stripped() {
    let role = OUR_ROLE;
    for (text, own) in [
        ("<@90> hi", "hi"),
        ("hi <@90>", "hi"),
        ("hi<@90>", "hi"),
        ("<@!90> <@90> hi <@90> <@90>", "hi"),
        ("is <@90> awake?", "is <@90> awake?"),
        ("<@90> is <@90> awake? <@90>", "is <@90> awake?"),
        ("hi <@11>", "hi <@11>"),
        ("<@11> hi", "<@11> hi"),
        ("<@90>", ""),
        ("<@90", "<@90"),
        ("90>", "90>"),
        ("", ""),
    ] {
        assert_eq!(us().without_address(text), own, "{text}");
    }
    let by_role = format!("<@&{role}> hi <@&{role}>");
    assert_eq!(us().without_address(&by_role), "hi");
}

/// Only what its author typed is stored of a message.
#[test]
fn own_words_are_what_was_typed() {
    let message = asked(1, EVE, "  what does <@11> say?\u{200B} <@90>")
        .with_embed("title", "an embed")
        .with_file("a.txt", Some("text/plain"), 3);
    assert_eq!(us().own_words(&message), "what does <@11> say?");
    assert_eq!(us().own_words(&asked(1, EVE, "")), "");
}

/// Answers to commands come through the bot's own webhook. Any other webhook is somebody else, even with the
/// bot's id.
#[test]
fn a_webhook_with_our_id_is_not_ours() {
    let ours = said(1, CLEW, "an answer");
    let through = |bot: bool| {
        ours.clone().shaped(|message| {
            message.author.webhook = true;
            message.author.bot = bot;
        })
    };
    assert!(us().wrote(&ours) && us().wrote(&through(true)));
    assert!(!us().wrote(&through(false)));
    assert!(!us().wrote(&said(1, DICE, "x")) && !us().wrote(&said(1, ADA, "x")));
}

#[test]
fn our_own_answers_to_commands_are_shown() {
    for number in [20, 23] {
        let rejects = |message: Message| us().rejects(&message.of_type(number));
        assert_eq!(rejects(said(1, CLEW, "ours")), None);
        assert_eq!(rejects(said(1, DICE, "theirs")), Some(OmitReason::App));
    }
}
