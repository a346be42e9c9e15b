//! Files, rotation, and what happens when the disk is slow, full or absent.

use std::error::Error as _;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use clew::telemetry::{Guard, IdStyle, Ids, Telemetry, TelemetrySettings, remove_old};
use clew_context::model::{ChannelId, Scene, UnixMillis, fixed_clock};
use serde_json::Value;

use super::samples::{one_of_each, trigger, turn_ids};
use crate::support::schema::{validate_dir, validate_lines};

/// How long to wait for the writing thread before a test fails.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

fn settings(dir: &Path) -> TelemetrySettings {
    TelemetrySettings {
        dir: dir.to_owned(),
        keep_days: 30,
        log_subsys: "mem.ctx".to_owned(),
        ids: IdStyle::Plain,
    }
}

/// Pseudonyms look like ids and depend on the key alone: the same after a restart, others under another key.
/// Nothing else in a line changes.
#[test]
fn people_appear_under_pseudonyms() {
    let write = |key: &[u8], ids: &Ids| {
        let folder = tempfile::tempdir().unwrap();
        let settings = TelemetrySettings {
            ids: IdStyle::keyed(key.to_vec()),
            ..settings(folder.path())
        };
        assert!(!format!("{settings:?}").contains("107"), "no key in a log");
        let (telemetry, guard) = start(&settings);
        telemetry.emit(ids, trigger(Scene::Lone));
        guard.close();
        validate_dir(folder.path()).remove(0)
    };
    let key = [107; 32];
    let ids = turn_ids(1);
    let line = write(&key, &ids);
    assert_eq!(line["guild_id"], "11");
    assert_eq!(line["channel_id"], "22");
    assert_eq!(line["msg_id"], "1001");
    assert_ne!(line["user_id"], "33");
    assert_eq!(write(&key, &ids)["user_id"], line["user_id"]);
    assert_ne!(write(&[7; 32], &ids)["user_id"], line["user_id"]);
    let direct = write(&key, &Ids { guild: None, ..ids });
    assert_ne!(direct["channel_id"], "22");
    assert_eq!(direct["user_id"], line["user_id"]);
    // A user and a channel with the same id get different pseudonyms.
    let channel = Some(ChannelId::new(33));
    let same = write(
        &key,
        &Ids {
            guild: None,
            channel,
            ..ids
        },
    );
    assert_ne!(same["channel_id"], same["user_id"]);
}

fn start(settings: &TelemetrySettings) -> (Telemetry, Guard) {
    Telemetry::start(settings, fixed_clock(UnixMillis(0))).unwrap()
}

fn names(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect()
}

fn file_names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn each_bot_of_a_process_writes_to_its_own_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("a/b"), folder.path().join("two"));
    let (first, first_guard) = start(&settings(&one));
    let (second, second_guard) = start(&settings(&two));
    for event in one_of_each() {
        first.emit(&turn_ids(1), event);
    }
    second.emit(&turn_ids(2), trigger(Scene::Lone));
    first_guard.close();
    second_guard.close();
    assert_eq!(validate_dir(&one).len(), one_of_each().len());
    assert_eq!(names(&validate_dir(&two)), ["trigger"]);
    let files = file_names(&two);
    assert_eq!(files.len(), 1);
    let date = files[0].strip_prefix("clew.").unwrap();
    let date = date.strip_suffix(".jsonl").unwrap();
    let shape: String = date
        .chars()
        .map(|c| if c.is_ascii_digit() { '9' } else { c })
        .collect();
    assert_eq!(shape, "9999-99-99");
}

#[test]
fn a_restart_continues_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    // With the shortest retention a restart would be most likely to remove today's file.
    let settings = TelemetrySettings {
        keep_days: 1,
        ..settings(folder.path())
    };
    for turn in 1..=3 {
        let (telemetry, guard) = start(&settings);
        telemetry.emit(&turn_ids(turn), trigger(Scene::Lone));
        guard.close();
    }
    assert_eq!(validate_dir(folder.path()).len(), 3);
    assert_eq!(file_names(folder.path()).len(), 1);
}

#[test]
fn old_files_go_and_other_files_stay() {
    #[track_caller]
    fn check(keep_days: usize, expected: usize) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        for day in 1..=5 {
            std::fs::write(dir.join(format!("clew.2020-01-0{day}.jsonl")), "").unwrap();
        }
        std::fs::write(dir.join("notes.txt"), "").unwrap();
        let settings = TelemetrySettings {
            keep_days,
            ..settings(dir)
        };
        let (telemetry, guard) = start(&settings);
        telemetry.emit(&turn_ids(1), trigger(Scene::Lone));
        guard.close();
        let files = file_names(dir);
        assert_eq!(files.len(), expected, "{files:?}");
        assert!(files.contains(&"notes.txt".to_owned()));
        assert_eq!(validate_dir(dir).len(), 1);
    }
    check(0, 5 + 1 + 1);
    check(1, 1 + 1 + 1);
    check(2, 2 + 1 + 1);
    check(30, 5 + 1 + 1);
}

/// By their days: a process that stands by writes none that would push them out.
#[test]
fn what_is_older_than_so_many_days_goes_without_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let names = [
        "clew.2020-01-01.jsonl",
        "clew.2020-01-02.jsonl",
        "clew.x.jsonl",
    ];
    for name in names.into_iter().chain(["notes.2020-01-01.jsonl"]) {
        std::fs::write(dir.join(name), "").unwrap();
    }
    let now = UnixMillis::parse("2020-02-01T12:00:00Z").unwrap();
    remove_old(dir, 30, now).unwrap();
    let mut left = file_names(dir);
    left.sort();
    assert_eq!(left, [names[1], names[2], "notes.2020-01-01.jsonl"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let dir = file.join("telemetry");
    let clock = fixed_clock(UnixMillis(0));
    let error = Telemetry::start(&settings(&dir), clock).err().unwrap();
    let text = error.to_string();
    assert!(text.contains(&dir.display().to_string()), "{text}");
    assert!(text.contains("TELEMETRY_DIR"), "{text}");
    assert!(error.source().is_some());
}

/// What a test's writer has received.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn add(&self, bytes: &[u8]) {
        self.0.lock().unwrap().extend_from_slice(bytes);
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// A writer that reports each write on `asked` and blocks it until the other end of `release` is dropped.
struct Blocked {
    asked: Sender<()>,
    release: Receiver<()>,
    written: Written,
}

impl Write for Blocked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The test listens for the first write only.
        let _ = self.asked.send(());
        let _ = self.release.recv();
        self.written.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_queue_never_blocks_and_its_losses_are_counted() {
    let written = Written::default();
    let ((asked, is_asked), (release, released)) = (channel(), channel());
    let blocked = Blocked {
        asked,
        release: released,
        written: written.clone(),
    };
    let clock = fixed_clock(UnixMillis(0));
    let (telemetry, guard) = Telemetry::start_with(blocked, 2, "mem.ctx", clock);
    telemetry.emit(&turn_ids(0), trigger(Scene::Lone));
    is_asked.recv().unwrap();
    for turn in 1..10 {
        telemetry.emit(&turn_ids(turn), trigger(Scene::Lone));
    }
    drop(release);
    guard.close();
    let lines = validate_lines(&written.text());
    let expected = ["trigger", "dropped", "trigger", "trigger"];
    assert_eq!(names(&lines), expected);
    assert_eq!(lines[1]["detail"]["count"], 7);
    assert_eq!(lines[1]["level"], "warn");
}

#[test]
fn losses_after_the_last_line_are_counted_when_it_ends() {
    let written = Written::default();
    let ((asked, is_asked), (release, released)) = (channel(), channel());
    let blocked = Blocked {
        asked,
        release: released,
        written: written.clone(),
    };
    let clock = fixed_clock(UnixMillis(0));
    let (telemetry, guard) = Telemetry::start_with(blocked, 0, "mem.ctx", clock);
    // Without a queue a line gets through only while the thread waits for one.
    while is_asked.try_recv().is_err() {
        telemetry.emit(&turn_ids(0), trigger(Scene::Lone));
        std::thread::yield_now();
    }
    telemetry.emit(&turn_ids(1), trigger(Scene::Lone));
    drop(release);
    guard.close();
    let lines = validate_lines(&written.text());
    assert_eq!(names(&lines).last(), Some(&"dropped"));
}

/// A writer whose disk is full in the middle of the second line, and has room again after one error.
struct FailsOnce {
    /// Bytes until the disk is full; `None` after the error.
    room: Option<usize>,
    written: Written,
}

impl Write for FailsOnce {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = match &mut self.room {
            Some(0) => {
                self.room = None;
                return Err(io::ErrorKind::StorageFull.into());
            }
            Some(room) => {
                let taken = bytes.len().min(*room);
                *room -= taken;
                taken
            }
            None => bytes.len(),
        };
        self.written.add(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The approximate size in bytes of an event in this test.
const A_LINE: usize = 260;

#[test]
fn a_full_disk_costs_one_line_which_is_counted() {
    let written = Written::default();
    let fails = FailsOnce {
        room: Some(A_LINE + A_LINE / 2),
        written: written.clone(),
    };
    let clock = fixed_clock(UnixMillis(0));
    let (telemetry, guard) = Telemetry::start_with(fails, 16, "mem.ctx", clock);
    for turn in 1..=3 {
        telemetry.emit(&turn_ids(turn), trigger(Scene::Lone));
    }
    guard.close();
    let text = written.text();
    let (whole, torn): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.ends_with('}'));
    assert_eq!(torn.len(), 1, "{text}");
    let lines = validate_lines(&whole.join("\n"));
    let mut names = names(&lines);
    names.sort_unstable();
    assert_eq!(names, ["dropped", "trigger", "trigger"]);
    let dropped = lines.iter().find(|line| line["event"] == "dropped");
    assert_eq!(dropped.unwrap()["detail"]["count"], 1);
}

/// Waits until the folder's files hold so many lines.
fn until_written(dir: &Path, lines: usize) {
    let until = std::time::Instant::now() + PATIENCE;
    while !dir.exists() || validate_dir(dir).len() < lines {
        assert!(std::time::Instant::now() < until, "{lines} lines in time");
        std::thread::yield_now();
    }
}

/// Somebody removes the folder or today's file, or puts another file in its place.
#[test]
fn what_is_removed_under_it_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("telemetry");
    let (telemetry, guard) = start(&settings(&dir));
    let emit = |turn| telemetry.emit(&turn_ids(turn), trigger(Scene::Lone));
    emit(1);
    until_written(&dir, 1);
    std::fs::remove_dir_all(&dir).unwrap();
    emit(2);
    until_written(&dir, 1);
    let file = dir.join(&file_names(&dir)[0]);
    std::fs::remove_file(&file).unwrap();
    emit(3);
    until_written(&dir, 1);
    std::fs::rename(&file, dir.join("aside")).unwrap();
    std::fs::write(&file, "").unwrap();
    emit(4);
    until_written(&dir, 1);
    guard.close();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = validate_lines(&text);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["msg_id"], "1004");
}

#[test]
fn many_threads_write_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (telemetry, guard) = start(&settings(folder.path()));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let telemetry = telemetry.clone();
            scope.spawn(move || {
                for turn in 0..250 {
                    telemetry.emit(&turn_ids(thread * 250 + turn), trigger(Scene::Lone));
                }
            });
        }
    });
    guard.close();
    assert_eq!(validate_dir(folder.path()).len(), 1000);
}
