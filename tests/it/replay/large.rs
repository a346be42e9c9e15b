//! How much memory a large export takes.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use clew::archive::{BYTES_PER_MESSAGE, ReadOptions, Recording};
use clew::replay::BYTES_PER_OWN_MESSAGE;
use clew_context::model::MessageId;

use super::GENERAL;
use super::run::replay;

const LARGE: &str = "large-export.json";
/// Read before anything is measured, so that the program's code is in memory already.
const SMALL: &str = "small-export.json";
/// The file in which the child process says how many it counted.
const COUNTED: &str = "counted.txt";
const LARGE_MESSAGES: u64 = 200_000;

/// Large enough to tell, and replayed within seconds.
const REPLAYED_MESSAGES: u64 = 50_000;

#[test]
fn a_large_export_is_read_in_bounded_memory() {
    if Path::new(LARGE).exists() {
        return read_large();
    }
    let read = alone(
        "replay::large::a_large_export_is_read_in_bounded_memory",
        LARGE_MESSAGES,
    );
    assert_eq!(read, LARGE_MESSAGES.to_string());
}

#[test]
fn a_large_export_is_replayed_in_bounded_memory() {
    if Path::new(LARGE).exists() {
        return replay_large();
    }
    let triggers = alone(
        "replay::large::a_large_export_is_replayed_in_bounded_memory",
        REPLAYED_MESSAGES,
    );
    assert_eq!(triggers, (REPLAYED_MESSAGES / 50).to_string());
}

/// Runs a test again as a process of its own, in a folder with the exports, so that the peak of memory is its
/// own. Returns what it counted.
fn alone(test: &str, messages: u64) -> String {
    let folder = tempfile::tempdir().unwrap();
    write_large(&folder.path().join(SMALL), 500);
    write_large(&folder.path().join(LARGE), messages);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    std::fs::read_to_string(folder.path().join(COUNTED)).unwrap()
}

fn read_large() {
    let small = Recording::open(&[SMALL.into()], ReadOptions::default()).unwrap();
    assert_eq!(small.messages(GENERAL).map(Result::unwrap).count(), 500);
    let before = peak_kb();
    let size = std::fs::metadata(LARGE).unwrap().len();
    let world = Recording::open(&[LARGE.into()], ReadOptions::default()).unwrap();
    assert_eq!(world.ids(GENERAL).len() as u64, LARGE_MESSAGES);
    let bytes = usize::try_from(LARGE_MESSAGES).unwrap() * BYTES_PER_MESSAGE;
    assert_eq!(world.index_bytes(), bytes);
    let read = world.messages(GENERAL).map(Result::unwrap).count();
    std::fs::write(COUNTED, read.to_string()).unwrap();
    // Twice the index, since it grows by doubling, and a fixed amount for buffers and the people who wrote.
    let allowed = 2 * bytes as u64 / 1024 + 4 * 1024;
    if let (Some(before), Some(after)) = (before, peak_kb()) {
        let grown = after - before;
        assert!(grown <= allowed, "{grown} kB over {allowed} kB");
        assert!(allowed * 1024 < size / 3, "the export is too small to tell");
    }
}

/// Every message of one person is a trigger.
fn replay_large() {
    let flags = "--format jsonl --bot 501 --warm --as-mention --window-max-mb 1";
    let counted = |name: &str| replay(&[name.into()], flags).unwrap().1;
    assert_eq!(counted(SMALL).figures.all.triggers, 10);
    let before = peak_kb();
    let summary = counted(LARGE);
    let triggers = summary.figures.all.triggers;
    std::fs::write(COUNTED, triggers.to_string()).unwrap();
    let kept = (BYTES_PER_MESSAGE + BYTES_PER_OWN_MESSAGE) as u64 * REPLAYED_MESSAGES;
    let report = 400 * triggers;
    let allowed = (2 * kept + report) / 1024 + 1024 + 2 * 1024;
    if let (Some(before), Some(after)) = (before, peak_kb()) {
        let grown = after - before;
        assert!(grown <= allowed, "{grown} kB over {allowed} kB");
    }
}

/// The peak of this process's resident memory, in kB, where the system tells it.
fn peak_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn write_large(path: &Path, messages: u64) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let head = r#"{"guild":{"id":"800","name":"Harbour"},"channel":{"id":"700","type":"GuildTextChat","categoryId":null,"category":null,"name":"general","topic":null},"messages":["#;
    file.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    for number in 0..messages {
        line.clear();
        let id = (1_400_000_000_000 + number) << 20;
        let time = MessageId::new(id).created();
        let author = 500 + number % 50;
        let mentions = match author {
            549 => r#"{"id":"501","name":"user501","nickname":"User 501"}"#,
            _ => "",
        };
        let comma = if number == 0 { "" } else { "," };
        write!(
            line,
            r#"{comma}{{"id":"{id}","type":"Default","timestamp":"{time}","timestampEdited":null,"callEndedTimestamp":null,"isPinned":false,"content":"note {number} on the crane and the pump","author":{{"id":"{author}","name":"user{author}","discriminator":"0000","nickname":"User {author}","color":null,"isBot":false,"roles":[],"avatarUrl":"https://cdn.discordapp.com/embed/avatars/0.png"}},"attachments":[],"embeds":[],"stickers":[],"reactions":[],"mentions":[{mentions}],"inlineEmojis":[]}}"#
        )
        .unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
    write!(file, "],\"messageCount\":{messages}}}").unwrap();
    file.flush().unwrap();
}
