//! Short text files are shown where the asker probably means them.

use clew_context::model::{Limits, Message};

use crate::support::build::{
    ADA, BOB, EVE, Shape, asked, file, said, text_channel, thread, thread_id,
};
use crate::support::world::{Start, World, failures};

fn world(files: &[(&str, &str)], messages: Vec<Message>) -> World {
    let mut world = World::of(messages);
    let files = files.iter();
    world.files = files
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    world
}

fn calls_for_files(world: &World) -> Vec<String> {
    let calls = world.calls().into_iter();
    calls.filter(|call| call.starts_with("file")).collect()
}

/// Which files are text: by media type, or by name if the type says nothing.
#[tokio::test]
async fn text_is_known_by_type_or_name() {
    for (name, kind, size, fetched) in [
        ("a.txt", Some("text/plain; charset=utf-8"), 100, true),
        ("a.bin", Some("text/x-log"), 100, true),
        ("a.json", Some("application/json"), 100, true),
        ("a.rs", None, 100, true),
        ("a.RS", Some("application/octet-stream"), 100, true),
        ("a.png", Some("image/png"), 100, false),
        ("a.txt", Some("image/png"), 100, false),
        ("a.exe", None, 100, false),
        ("txt", None, 100, false),
        ("a.txt", None, 20_000, true),
        ("a.txt", None, 20_001, false),
    ] {
        let world = world(&[(name, "the text")], Vec::new());
        let trigger = asked(1, EVE, "what is wrong?").with_file(name, kind, size);
        let start = Start::within(text_channel());
        let collected = start.collect(&world, &trigger).await;
        assert_eq!(
            calls_for_files(&world).len(),
            usize::from(fetched),
            "{name} {kind:?} {size}"
        );
        let prompt = start.prepare(&collected).prompt;
        let question = prompt.messages.last().unwrap().content();
        assert_eq!(question.contains("the text"), fetched, "{question}");
        assert!(question.contains(&format!("[file: {name} (")), "{question}");
    }
}

/// A message that is starter, pointed-at and target has its file fetched once.
#[tokio::test]
async fn a_file_is_fetched_once() {
    let starter = said(0, ADA, "see the log").with_file("a.log", None, 10);
    let pointed = said(1, BOB, "or this?")
        .with_file("b.log", None, 10)
        .into_channel(thread_id(0));
    let trigger = asked(2, EVE, "").into_channel(thread_id(0)).replying(1);
    let files = [("a.log", "line of a"), ("b.log", "line of b")];
    let world = world(&files, vec![starter, pointed, trigger.clone()]);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(calls_for_files(&world), ["file b.log", "file a.log"]);
    let prompt = start.prepare(&collected).prompt;
    assert!(prompt.messages[1].content().contains("line of a"));
    let question = prompt.messages.last().unwrap().content();
    assert!(
        question.contains("line of b"),
        "adopted with its file: {question}"
    );
}

/// What is held for over a day has addresses that Discord serves no longer.
#[tokio::test]
async fn a_file_whose_address_has_ended_is_asked_for_anew() {
    let logged = |query: &str| {
        said(1, BOB, "it fails").with_extras(|extras| {
            let mut file = file("a.log", None, 10);
            file.url = format!("{}?{query}&is=1&hm=2", file.url).into();
            extras.attachments.push(file);
        })
    };
    let trigger = asked(9, EVE, "why?").replying(1);
    let end = |seconds: i64| format!("ex={:x}", trigger.timestamp.0 / 1_000 + seconds);
    let (past, later) = (end(0), end(86_400));
    let world = world(
        &[("a.log", "line of a")],
        vec![logged(&later), trigger.clone()],
    );
    for (held, calls) in [(&past, 2), (&later, 1)] {
        let start = Start::within(text_channel()).watching(&[logged(held)], true);
        let collected = start.collect(&world, &trigger).await;
        let expected = format!("file a.log?{later}&is=1&hm=2");
        assert_eq!(world.calls().len(), calls, "{held}");
        assert_eq!(collected.fetches, calls, "{held}");
        let asked = start.collect(&world, &trigger).await;
        assert_eq!(calls_for_files(&world), [expected]);
        let prompt = start.prepare(&asked).prompt;
        let question = prompt.messages[1].content();
        assert!(question.contains("line of a"), "{question}");
    }
}

/// Files of other messages are named, not fetched; a budget of 0 fetches none.
#[tokio::test]
async fn files_count_against_the_budget() {
    let chatter = said(1, BOB, "")
        .with_file("c.log", None, 10)
        .into_channel(thread_id(0));
    let trigger = asked(2, EVE, "so?")
        .with_file("t.log", None, 10)
        .into_channel(thread_id(0));
    let world = world(
        &[("c.log", "x"), ("t.log", "y")],
        vec![said(0, ADA, "start"), chatter, trigger.clone()],
    );
    let mut start = Start::within(thread(0));
    start.collect(&world, &trigger).await;
    assert_eq!(calls_for_files(&world), ["file t.log"]);
    start.limits = Limits {
        max_fetches: 2,
        ..Limits::default()
    };
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(calls_for_files(&world), [""; 0]);
    assert_eq!(failures(&collected), ["file:fetch_budget"]);
    start.limits = Limits {
        max_file_bytes: 0,
        ..Limits::default()
    };
    start.collect(&world, &trigger).await;
    assert_eq!(calls_for_files(&world), [""; 0]);
}

#[tokio::test]
async fn a_file_that_cannot_be_fetched_is_still_named() {
    let trigger = asked(2, EVE, "so?").with_file("t.log", None, 10);
    let world = World::default();
    let start = Start::within(text_channel());
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(failures(&collected), ["file:not_found"]);
    let prompt = start.prepare(&collected).prompt;
    assert!(
        prompt
            .messages
            .last()
            .unwrap()
            .content()
            .contains("[file: t.log")
    );
}
