//! What of results goes into a request, and how much a turn may be made from.

use clew_context::model::{ChannelId, MessageId};

use super::*;
use crate::telemetry::event::ToolOutcome;

fn called(chars: usize) -> Called {
    Called {
        call: ToolCall {
            id: "call00001".to_owned(),
            name: "list_thread".to_owned(),
            arguments: "{}".to_owned(),
            extra: None,
        },
        result: ToolResult {
            text: "x".repeat(chars),
            bytes: chars,
            sources: Vec::new(),
            outcome: ToolOutcome::Ok,
            ..ToolResult::of_error(&ToolError::Unknown)
        },
    }
}

/// How many characters of each result are shown, oldest first; none of one that is left out.
fn shown(rounds: &[&[usize]], room: usize) -> Vec<Option<usize>> {
    let rounds: Vec<Round> = rounds
        .iter()
        .map(|calls| Round {
            server: 0,
            said: String::new(),
            calls: calls.iter().copied().map(called).collect(),
            judged: Judged::default(),
        })
        .collect();
    let shown = fitting(&rounds, room);
    let texts = shown.iter().flat_map(|round| &round.calls);
    texts
        .map(|(_, text)| text.starts_with('x').then_some(text.len()))
        .collect()
}

/// What stands behind a gap would be shown without what it followed from.
#[test]
fn what_is_older_than_a_result_without_room_is_left_out() {
    assert_eq!(
        shown(&[&[10], &[20, 30]], 60),
        [Some(10), Some(20), Some(30)]
    );
    assert_eq!(shown(&[&[10], &[20, 30]], 59), [None, Some(20), Some(30)]);
    assert_eq!(shown(&[&[10], &[90, 30]], 60), [None, None, Some(30)]);
    assert_eq!(shown(&[&[10], &[10, 90]], 60), [None, None, None]);
}

#[test]
fn a_turn_is_made_from_so_much_and_no_more() {
    let source = |id: u64| ContentSource {
        guild: None,
        channel: ChannelId::new(1),
        message: Some(MessageId::new(id)),
        author: None,
    };
    let taken = |known: u64, new: std::ops::Range<u64>| {
        let known: BTreeSet<ContentSource> = (1..=known).map(source).collect();
        let result = ToolResult {
            text: "found".to_owned(),
            bytes: 5,
            sources: new.map(source).collect(),
            outcome: ToolOutcome::Ok,
            ..ToolResult::of_error(&ToolError::Unknown)
        };
        let taken = unless_too_much(&known, result);
        (taken.outcome, taken.sources.len())
    };
    assert_eq!(taken(0, 1..301), (ToolOutcome::Ok, 300));
    assert_eq!(taken(0, 1..302), (ToolOutcome::TooMany, 0));
    assert_eq!(taken(299, 300..301), (ToolOutcome::Ok, 1));
    assert_eq!(taken(299, 300..302), (ToolOutcome::TooMany, 0));
    // What is known already is nothing new.
    assert_eq!(taken(300, 200..301), (ToolOutcome::Ok, 101));
}

/// Servers refuse a request in which a call has no name of a tool or an id twice.
#[test]
fn a_call_is_sent_back_with_a_name_and_an_id_that_servers_take() {
    let sent = |number: usize, name: &str| {
        let call = ToolCall {
            name: name.to_owned(),
            ..called(0).call
        };
        let call = sendable(number, call, &Err(ToolError::Arguments));
        (call.id, call.name, call.arguments)
    };
    let (longest, too_long) = ("a".repeat(64), "a".repeat(65));
    for (name, expected) in [
        ("list_thread", "list_thread"),
        (longest.as_str(), longest.as_str()),
        (too_long.as_str(), "unknown"),
        ("list thread", "unknown"),
        ("", "unknown"),
    ] {
        let sent = sent(7, name);
        assert_eq!(sent, ("call00008".into(), expected.into(), "{}".into()));
    }
}

#[test]
fn a_result_ends_its_line_and_not_its_frame() {
    let framed_text = framed("n0nce", "found");
    assert_eq!(framed("n0nce", "found\n"), framed_text);
    assert_eq!(framed("n0nce", "fo n0nceund"), framed("n0nce", "fo und"));
    assert!(framed_text.contains("found\n"), "{framed_text}");
}

#[test]
fn results_are_halved_as_long_as_that_may_help() {
    assert_eq!(halved(10_000, 50_000), Some(5_000));
    assert_eq!(halved(50_000, 10_000), Some(5_000));
    assert_eq!(halved(3_000, 3_000), Some(MIN_PROMPT_CHARS));
    assert_eq!(halved(MIN_PROMPT_CHARS, 50_000), None);
    assert_eq!(halved(50_000, MIN_PROMPT_CHARS), None);
}
