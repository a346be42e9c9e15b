//! A recording as the collectors see it: what Discord would have answered at a given moment.

use std::fs;

use clew::archive::{ReadOptions, Recording};
use clew::replay::{RecordedSource, timeline};
use clew_context::collect::{FetchError, MessagePage, PageCursor, Source as _};
use clew_context::model::{
    Attachment, ChannelId, Fallback, Message, MessageId, MessageKind, Referenced,
};
use tokio::time::Instant;

use super::run::{CHANNEL, Place, Row, block_on, export};
use super::{GENERAL, at, fixture, world};

/// The scenario hides it from the bot.
const STAFF: ChannelId = ChannelId::new(703);

fn page(until: MessageId, anchor: PageCursor, limit: usize) -> MessagePage {
    let world = world(&["general.json"]);
    let source = RecordedSource::new(&world, until);
    block_on(source.page(GENERAL, anchor, limit, Instant::now())).unwrap()
}

fn ids(page: &MessagePage) -> Vec<MessageId> {
    page.messages.iter().map(|message| message.id).collect()
}

#[test]
fn messages_newer_than_the_moment_do_not_exist_yet() {
    let until = at(60);
    let before = page(until, PageCursor::Before(at(9_999)), 2);
    assert_eq!(ids(&before), [at(30), at(60)]);
    assert!(!before.complete);
    let after = page(until, PageCursor::After(at(0)), 2);
    assert_eq!(ids(&after), [at(30), at(60)]);
    let after = page(until, PageCursor::After(at(0)), 3);
    assert_eq!(ids(&after), [at(30), at(60)]);
    assert!(after.complete);
}

#[test]
fn pages_and_messages_include_what_they_reply_to() {
    let world = world(&["general.json"]);
    let source = RecordedSource::new(&world, at(9_999));
    let carried = |message: &Message| match &message.referenced {
        Referenced::Known(carried) => Some(carried.id),
        _ => None,
    };
    let reply = at(120);
    let one = block_on(source.message(GENERAL, reply, Instant::now())).unwrap();
    assert_eq!(carried(&one), Some(at(90)));
    let page = page(at(9_999), PageCursor::Before(reply.next()), 1);
    assert_eq!(carried(&page.messages[0]), Some(at(90)));
    source.finish().unwrap();
}

#[track_caller]
fn check_reason(channel: ChannelId, id: MessageId, expected: Fallback) {
    let world = world(&["scenario.json"]);
    let source = RecordedSource::new(&world, at(60));
    let error = block_on(source.message(channel, id, Instant::now())).unwrap_err();
    assert_eq!(error, FetchError::lasting(expected));
}

#[test]
fn a_missing_message_has_its_reason() {
    check_reason(GENERAL, at(7), Fallback::Deleted);
    check_reason(GENERAL, at(90), Fallback::Deleted);
    check_reason(STAFF, at(7), Fallback::Forbidden);
    check_reason(ChannelId::new(12), at(7), Fallback::Unavailable);
    let world = world(&["scenario.json"]);
    let source = RecordedSource::new(&world, at(60));
    let file = Attachment {
        filename: "line3.txt".into(),
        content_type: None,
        size: 12,
        url: "https://cdn.discordapp.com/attachments/1/2/line3.txt".into(),
        description: None,
        text: None,
    };
    let error = block_on(source.file(&file, 100, Instant::now())).unwrap_err();
    assert_eq!(error.reason, Fallback::Unavailable);
}

#[test]
fn a_file_that_disappears_ends_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("general.json");
    fs::copy(fixture("general.json"), &path).unwrap();
    let world = Recording::open(std::slice::from_ref(&path), ReadOptions::default()).unwrap();
    fs::write(&path, "{}").unwrap();
    let source = RecordedSource::new(&world, at(9_999));
    let error = block_on(source.message(GENERAL, at(0), Instant::now())).unwrap_err();
    assert_eq!(error.reason, Fallback::Unavailable);
    let error = source.finish().unwrap_err().to_string();
    assert!(error.contains("changed while it was being read"), "{error}");
}

/// Two channels whose messages alternate, each a reply to an earlier one. Everything is read by windows of
/// the file.
#[test]
fn all_messages_are_read_in_windows() {
    let folder = tempfile::tempdir().unwrap();
    let other = Place { id: 701, ..CHANNEL };
    let files = [(CHANNEL, 0), (other, 1)].map(|(channel, odd)| {
        let row = |number: i64| Row {
            second: 2 * number + odd,
            author: 501,
            text: "it goes on and on".to_owned(),
            reply: (number > 20).then_some(2 * (number - number % 20 - 1) + odd),
        };
        let rows: Vec<Row> = (0..1_500).map(row).collect();
        export(folder.path(), channel, &rows)
    });
    let world = Recording::open(&files, ReadOptions::default()).unwrap();
    let passed = timeline(&world).map(|event| event.unwrap().message);
    let passed: Vec<Message> = passed.collect();
    assert_eq!(passed.len(), 3_000);
    assert!(passed.is_sorted_by_key(|message| message.id));
    let bytes = files.map(|file| fs::metadata(file).unwrap().len());
    let bytes = usize::try_from(bytes.iter().sum::<u64>()).unwrap();
    // A window is 64 KiB; its last message may be incomplete.
    let windows = 4 + bytes / 60_000;
    assert!(world.reads() < windows, "{} reads", world.reads());
    let of_one = |message: &Message| message.channel == GENERAL;
    for mut message in passed.into_iter().filter(of_one) {
        world.carry(&mut message).unwrap();
        let replies = message.kind == MessageKind::Reply;
        assert_eq!(matches!(message.referenced, Referenced::Known(_)), replies);
    }
    assert!(world.reads() < 2 * windows, "{} reads", world.reads());
}
