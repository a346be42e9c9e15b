//! Files that are not recordings, or are damaged.

use std::path::Path;

use clew::archive::{ArchiveError, ReadOptions, Recording};
use clew_context::model::{ChannelId, MessageId};

use super::{GENERAL, LENIENT, at, fixture, world};

/// A file, the place and the problem, and which of the messages 5000 to 5002 are left.
const DAMAGED: [(&str, &str, &[i64]); 7] = [
    (
        "no_id.json",
        "46 (byte 1074): it has no `id`",
        &[5000, 5002],
    ),
    (
        "bad_time.json",
        "46 (byte 1074), message 1456246414639104000: `timestamp`: `yesterday` is not an RFC 3339 time",
        &[5000, 5002],
    ),
    (
        "no_author.json",
        "46 (byte 1074), message 1456246414639104000: its author has no `id`",
        &[5000, 5002],
    ),
    (
        "missing_quote.json",
        "53 (byte 1306), message 1456246414639104000: a control character inside a string",
        &[5000, 5002],
    ),
    (
        "missing_bracket.json",
        "68 (byte 1686), message 1456246414639104000: expected `,` or `]`",
        &[5000, 5002],
    ),
    (
        "missing_comma.json",
        "46 (byte 1073): a `,` between messages is missing",
        &[5000, 5001, 5002],
    ),
    (
        "bad_word.json",
        "52 (byte 1272), message 1456246414639104000: expected ident",
        &[5000, 5002],
    ),
];

/// In strict mode the error names the place and the remedy; in lenient mode the rest is used.
#[track_caller]
fn check_damage(name: &str, strict: &str, left: &[i64], skipped: u64, cut_off: u64) {
    let path = fixture(&format!("damaged/{name}"));
    let error = Recording::open(std::slice::from_ref(&path), ReadOptions::default()).unwrap_err();
    let text = error.to_string();
    let text = text.replace(&path.display().to_string(), "FILE");
    assert_eq!(text, strict, "{name}");
    let world = Recording::open(std::slice::from_ref(&path), LENIENT).unwrap();
    let ids: Vec<MessageId> = world.ids(GENERAL).collect();
    let left: Vec<MessageId> = left.iter().map(|seconds| at(*seconds)).collect();
    assert_eq!(ids, left, "{name}");
    let report = world.report();
    assert_eq!(
        (report.skipped, report.cut_off),
        (skipped, cut_off),
        "{name}"
    );
    assert_eq!(report.places.len() as u64, skipped + cut_off, "{name}");
    // All that is left can be read.
    assert!(
        world.messages(GENERAL).all(|message| message.is_ok()),
        "{name}"
    );
}

#[test]
fn damage_is_reported_with_its_place_or_skipped() {
    let again = "export it again, or use --lenient to leave it out";
    for (name, problem, left) in DAMAGED {
        let strict = format!("FILE:{problem}; {again}");
        check_damage(name, &strict, left, 1, 0);
    }
}

#[test]
fn a_file_that_is_cut_off_is_used_as_far_as_it_goes() {
    let again = "export it again, or use --lenient to replay what is there";
    check_damage(
        "cut_off.json",
        &format!(
            "FILE:71 (byte 1730), message 1456246418833408000: the file is cut off after 2 messages; {again}"
        ),
        &[5000, 5001],
        0,
        1,
    );
    check_damage(
        "cut_between.json",
        &format!(
            "FILE:70 (byte 1724), message 1456246414639104000: the file is cut off after 2 messages; {again}"
        ),
        &[5000, 5001],
        0,
        1,
    );
}

/// Wherever a file is cut off or one of its bytes is wrong, opening it gives an error or a readable
/// recording; one wrong byte costs two messages at most.
#[test]
fn no_damage_panics_or_costs_more_than_two_messages() {
    let watch = ChannelId::new(730);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.json");
    let whole = std::fs::read(fixture("parts/older.json")).unwrap();
    let text = std::str::from_utf8(&whole).unwrap();
    let (first, last) = (text.find("\"messages\"").unwrap(), text.rfind(']').unwrap());
    let left = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let _ = Recording::open(std::slice::from_ref(&path), ReadOptions::default());
        let world = Recording::open(std::slice::from_ref(&path), LENIENT).ok()?;
        Some(world.messages(watch).map(Result::unwrap).count())
    };
    assert_eq!(left(&whole), Some(4));
    for at in (0..whole.len()).step_by(23) {
        let count = left(&whole[..at]);
        assert!(count.is_some() || at < first, "cut off at {at}");
        for (turn, byte) in b"\"{}[],:\\\n\x00\xff1".iter().enumerate() {
            let mut bytes = whole.clone();
            let at = (at + turn % 7).min(whole.len() - 1);
            bytes[at] = *byte;
            let count = left(&bytes);
            let inside = at > first + 14 && at < last;
            assert!(!inside || count >= Some(2), "{at} {byte:?}: {count:?}");
        }
    }
}

#[test]
fn files_that_are_not_exports_are_refused() {
    let cases = [
        ("page.html", "it looks like HTML"),
        ("empty.json", "it is empty"),
        ("list.json", "it is a JSON list"),
        ("table.csv", "it is not JSON"),
        (
            "other.json",
            "JSON without a `channel`; it has `name`, `version`, `private`",
        ),
    ];
    for (name, expected) in cases {
        for options in [ReadOptions::default(), LENIENT] {
            let path = fixture(&format!("damaged/{name}"));
            match Recording::open(&[path], options).unwrap_err() {
                ArchiveError::NotAnExport { found, .. } => assert_eq!(found, expected, "{name}"),
                other => panic!("{name}: {other}"),
            }
        }
    }
    let missing = Recording::open(&[fixture("nothing.json")], LENIENT).unwrap_err();
    assert!(matches!(missing, ArchiveError::Read { .. }), "{missing}");
    let none = Recording::open(&[], LENIENT).unwrap_err();
    assert!(matches!(none, ArchiveError::NoFiles), "{none}");
    let empty = world(&["damaged/no_messages.json"]);
    assert_eq!(empty.ids(GENERAL).len(), 0);
}

/// In strict mode the error names the file and the remedy, and no type of this program; in lenient mode the
/// rest is used.
#[track_caller]
fn check_odd(text: &str, strict: Result<usize, &str>, lenient: Result<usize, &str>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.json");
    std::fs::write(&path, text).unwrap();
    for (options, expected) in [(ReadOptions::default(), strict), (LENIENT, lenient)] {
        let opened = Recording::open(std::slice::from_ref(&path), options);
        let found = opened.map(|world| world.channels().map(|one| world.ids(one.id).len()).sum());
        let found: Result<usize, String> = found.map_err(|error| error.to_string());
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(*found, expected, "{text}"),
            (Err(error), Err(expected)) => {
                assert!(error.contains(expected), "{expected}: {error}");
                assert!(error.contains("odd.json"), "{error}");
                assert!(error.contains("export"), "no remedy: {error}");
                for word in ["Wire", "struct", "enum", "u64"] {
                    assert!(!error.contains(word), "{word}: {error}");
                }
            }
            _ => panic!("{text}: {found:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn odd_exports_are_used_or_refused_in_plain_words() {
    let author = r#""author":{"id":"5","name":"Ada"}"#;
    let message = format!(
        r#"{{"id":"7","type":"Default","timestamp":"2026-01-01T10:00:00Z","content":"hi",{author}}}"#
    );
    let channel = r#""channel":{"id":"700","type":"GuildTextChat","name":"general"}"#;
    let whole = format!(r#"{{"guild":null,{channel},"messages":[{message}]}}"#);
    check_odd(&whole, Ok(1), Ok(1));
    check_odd(&format!("{whole}\n \n"), Ok(1), Ok(1));
    let more = "more follows after the end of the export";
    check_odd(&format!("{whole}\n{whole}"), Err(more), Ok(1));
    check_odd(&format!("{whole} x"), Err(more), Ok(1));
    let none = "JSON with a `channel` and no `messages`";
    check_odd(&format!("{{{channel}}}"), Err(none), Ok(0));
    let nowhere = "JSON without a `channel`; it has `channel`, `messages`";
    let no_channel = format!(r#"{{"channel":null,"messages":[{message}]}}"#);
    check_odd(&no_channel, Err(nowhere), Err(nowhere));
    let guild = "invalid type: integer `7`, expected an object";
    let odd = format!(r#"{{"guild":7,{channel},"messages":[{message}]}}"#);
    check_odd(&odd, Err(guild), Err(guild));
    let nobody = message.replace(author, r#""author":7"#);
    let nobody = format!(r#"{{{channel},"messages":[{nobody},{message}]}}"#);
    let author = "`author`: invalid type: integer `7`, expected an object";
    check_odd(&nobody, Err(author), Ok(1));
    let scenario = r#"{"bot":{"id":"1"},"guilds":[]}"#;
    let more = "more follows after the end of the scenario";
    check_odd(&format!("{scenario} {scenario}"), Err(more), Ok(0));
    let bot = "invalid type: integer `7`, expected an object";
    check_odd(r#"{"bot":7}"#, Err(bot), Err(bot));
}

/// Messages are read again at their place, so only regular files can be used.
#[test]
fn pipes_and_folders_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| {
        let error = Recording::open(&[path.to_owned()], LENIENT).unwrap_err();
        assert!(matches!(error, ArchiveError::NoFile { .. }), "{error}");
        let text = error.to_string();
        assert!(text.starts_with(&path.display().to_string()), "{text}");
        text
    };
    assert!(refused(folder.path()).ends_with("is a folder; name the files in it"));
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert!(refused(&pipe).ends_with("write it to a file first and name that"));
}

#[test]
fn a_scenarios_bad_operations_are_reported_or_skipped() {
    let path = fixture("damaged/scenario.json");
    let error = Recording::open(std::slice::from_ref(&path), ReadOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("unknown variant `explode`"),
        "{error}"
    );
    let world = Recording::open(&[path], LENIENT).unwrap();
    let problems: Vec<&str> = world
        .report()
        .places
        .iter()
        .map(|(_, what)| &**what)
        .collect();
    assert_eq!(problems[1], "there is no message 12345 in channel 700");
    assert_eq!(problems[2], "there is no channel 1 for messages");
    assert_eq!(world.report().skipped, 3);
    assert_eq!(world.ids(GENERAL).len(), 3);
    let cut = Recording::open(&[fixture("damaged/scenario_cut.json")], LENIENT).unwrap_err();
    assert!(matches!(cut, ArchiveError::CutOff { .. }), "{cut}");
}

#[test]
fn a_file_that_changed_meanwhile_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("general.json");
    std::fs::copy(fixture("general.json"), &path).unwrap();
    let world = Recording::open(std::slice::from_ref(&path), ReadOptions::default()).unwrap();
    std::fs::write(&path, "{}").unwrap();
    let error = world.message(GENERAL, at(120)).unwrap_err();
    assert!(matches!(error, ArchiveError::Changed { .. }), "{error}");
}
