//! Recorded channels: both formats, several files as one world, damage told
//! and damage left out, and the memory that a large export takes.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use clew::archive::{ArchiveError, BYTES_PER_MESSAGE, Options, World};
use clew::model::{
    ChannelId, ChannelKind, GuildId, Message, MessageId, MessageKind, ReferenceKind, Referenced,
    UnixMillis, UserId,
};

const GENERAL: ChannelId = ChannelId::new(700);
const THREAD: ChannelId = ChannelId::new(1_456_225_690_583_040_000);
const POST: ChannelId = ChannelId::new(1_456_229_633_228_800_000);
const LENIENT: Options<'static> = Options {
    lenient: true,
    progress: None,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/archive")
        .join(name)
}

#[track_caller]
fn world(names: &[&str]) -> World {
    let paths: Vec<PathBuf> = names.iter().map(|name| fixture(name)).collect();
    World::open(&paths, Options::default()).unwrap()
}

/// Fixture ids are made of seconds since 2026-01-01T10:00:00Z.
fn at(seconds: i64) -> MessageId {
    MessageId::first_at(UnixMillis(1_767_261_600_000 + 1000 * seconds))
}

fn contents(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &*message.content).collect()
}

fn message(world: &World, channel: ChannelId, id: MessageId) -> Message {
    world.message(channel, id).unwrap().unwrap()
}

#[test]
fn several_files_make_a_world() {
    let world = world(&[
        "thread.json",
        "general.json",
        "forum_post.json",
        "direct.json",
    ]);
    let thread = world.channel(THREAD).unwrap();
    assert_eq!(thread.kind, ChannelKind::PublicThread);
    assert_eq!(thread.name, "Pump talk");
    assert_eq!(thread.parent, Some(GENERAL));
    assert_eq!(thread.parent_kind, Some(ChannelKind::Text));
    assert_eq!(thread.parent_name.as_deref(), Some("general"));
    assert!(thread.thread.is_some());
    let post = world.channel(POST).unwrap();
    assert_eq!(post.parent, Some(ChannelId::new(710)));
    assert_eq!(post.parent_kind, Some(ChannelKind::Forum));
    assert_eq!(post.parent_name.as_deref(), Some("questions"));
    let direct = world.channel(ChannelId::new(720)).unwrap();
    assert_eq!((direct.kind, direct.guild), (ChannelKind::Dm, None));
    assert_eq!((direct.name.as_str(), direct.parent), ("", None));
    let general = world.channel(GENERAL).unwrap();
    assert_eq!(general.guild, Some(GuildId::new(800)));
    assert_eq!(world.channels().count(), 4);
    assert_eq!(world.channel_of(at(70)), Some(THREAD));
    assert_eq!(world.report().messages, 17);
    assert_eq!(world.report().files, 4);
}

#[test]
fn a_thread_without_its_parent_still_knows_what_it_hangs_on() {
    let thread = world(&["thread.json"]);
    let thread = thread.channel(THREAD).unwrap();
    assert_eq!(thread.parent_kind, Some(ChannelKind::Text));
    assert_eq!(thread.parent_name.as_deref(), Some("general"));
}

#[test]
fn the_type_21_message_carries_its_starter_from_the_parent() {
    let world = world(&["thread.json", "general.json"]);
    let first = world.page_after(THREAD, MessageId::new(1), 1).unwrap();
    let mut first = first.into_iter().next().unwrap();
    assert_eq!(first.kind, MessageKind::ThreadStarter);
    assert_eq!(first.referenced, Referenced::Absent);
    world.carry(&mut first).unwrap();
    let starter = first.carried().unwrap();
    assert_eq!(starter.id, THREAD.starter());
    let text = "Is anybody on the **pump** today? `Vec<String>` & a < b";
    assert_eq!(&*starter.content, text);
    // A system message carries nothing, whatever it points at.
    let mut notice = message(&world, GENERAL, at(61));
    assert_eq!(notice.kind, MessageKind::System(18));
    world.carry(&mut notice).unwrap();
    assert_eq!(notice.referenced, Referenced::Absent);
}

#[test]
fn pages_run_from_old_to_new_beside_their_anchor() {
    let world = world(&["general.json"]);
    let ids: Vec<MessageId> = world.ids(GENERAL).collect();
    assert!(ids.is_sorted());
    let page = world.page_before(GENERAL, at(125), 2).unwrap();
    assert_eq!(
        page.iter().map(|m| m.id).collect::<Vec<_>>(),
        [at(90), at(120)]
    );
    let page = world.page_after(GENERAL, at(125), 100).unwrap();
    assert_eq!(page.first().unwrap().id, at(150));
    assert_eq!(page.len(), 3);
    let nowhere = ChannelId::new(1);
    assert!(world.page_before(nowhere, at(125), 2).unwrap().is_empty());
    assert_eq!(world.message(nowhere, at(0)).unwrap(), None);
    assert_eq!(world.message(GENERAL, at(1)).unwrap(), None);
}

#[test]
fn names_bots_and_webhooks_are_told_apart() {
    let world = world(&["general.json"]);
    let of = |seconds| message(&world, GENERAL, at(seconds)).author;
    let cases = [
        (0, "Maya R.", false, false),
        (60, "Tomás", false, false),
        (90, "Alerts", true, true),
        (125, "Clew", true, false),
    ];
    for (seconds, name, bot, webhook) in cases {
        let author = of(seconds);
        assert_eq!(
            (&*author.name, author.bot, author.webhook),
            (name, bot, webhook)
        );
    }
    let people: Vec<(&str, bool, u64)> = world
        .participants()
        .map(|one| (&*one.name, one.bot, one.messages))
        .collect();
    let expected = [
        ("Maya R.", false, 2),
        ("Tomás", false, 3),
        ("Ines", false, 3),
        ("Clew", true, 1),
        ("Alerts", true, 1),
    ];
    assert_eq!(people, expected);
}

#[test]
fn a_reply_mentions_and_points() {
    let world = world(&["general.json"]);
    let mut reply = message(&world, GENERAL, at(120));
    assert_eq!(reply.kind, MessageKind::Reply);
    assert_eq!(&*reply.content, "<@900> what is this alert?");
    assert_eq!(reply.mentions[0].id, UserId::new(900));
    assert_eq!(&*reply.mentions[0].name, "Clew");
    assert_eq!(reply.replies_to(), Some(at(90)));
    world.carry(&mut reply).unwrap();
    let embed = &reply.carried().unwrap().extras.as_ref().unwrap().embeds[0];
    assert_eq!(embed.title.as_deref(), Some("Pressure low"));
    assert_eq!(embed.description.as_deref(), Some("Line 3 at 1.2 bar"));
    assert_eq!(embed.author.as_deref(), Some("Sensors"));
    assert_eq!(embed.footer.as_deref(), Some("rev 4"));
    assert_eq!(&*embed.fields[0].value, "north");
    assert!(embed.media);
    // A ping without a name in the text stays out of it.
    let answer = message(&world, GENERAL, at(125));
    assert_eq!(&*answer.content, "Line 3 lost pressure at 10:01.");
    assert_eq!(answer.mentions.len(), 1);
    assert_eq!(answer.replies_to(), Some(at(120)));
}

#[test]
fn what_stands_beside_the_text_is_read() {
    let world = world(&["general.json"]);
    let forward = message(&world, GENERAL, at(150));
    let reference = forward.reference.as_ref().unwrap();
    assert_eq!(reference.kind, ReferenceKind::Forward);
    assert_eq!(forward.replies_to(), None);
    let snapshot = &forward.extras.as_ref().unwrap().snapshots[0];
    assert_eq!(&*snapshot.content, "Valve list is in the binder");
    assert_eq!(snapshot.timestamp, Some(at(5).created()));
    let file = &snapshot.extras.as_ref().unwrap().attachments[0];
    assert_eq!((&*file.filename, file.size), ("valves.txt", 421));

    let rich = message(&world, GENERAL, at(180));
    assert_eq!(rich.edited, Some(at(200).created()));
    assert_eq!(rich.timestamp, at(180).created());
    let extras = rich.extras.unwrap();
    assert_eq!(&*extras.attachments[0].filename, "log.txt");
    assert_eq!(&*extras.stickers[0], "Thumbs");
    assert_eq!(&*extras.component_text[0], "Open log");
    let poll = extras.poll.unwrap();
    assert_eq!(&*poll.question, "Restart?");
    assert_eq!(poll.answers[0], ("yes".into(), Some(3)));
    assert_eq!(poll.answers[1], ("no".into(), None));
    let command = message(&world, GENERAL, at(210));
    assert_eq!(command.kind, MessageKind::ChatInputCommand);
}

#[test]
fn parts_of_a_channel_are_merged_in_the_order_of_their_ids() {
    let watch = ChannelId::new(730);
    let world = world(&["parts/newest_first.json", "parts/older.json"]);
    let streamed: Vec<Message> = world.messages(watch).map(Result::unwrap).collect();
    let expected = [
        "watch 4000",
        "watch 4001",
        "watch 4002",
        "watch 4003, as first exported",
        "watch 4004",
        "watch 4005",
    ];
    assert_eq!(contents(&streamed), expected);
    assert_eq!(world.report().duplicates, 1);
    let paged = world.page_before(watch, at(9999), 100).unwrap();
    assert_eq!(paged, streamed);
}

#[test]
fn of_one_message_the_last_file_counts() {
    let watch = ChannelId::new(730);
    let world = world(&["parts/older.json", "parts/newest_first.json"]);
    assert_eq!(&*message(&world, watch, at(4003)).content, "watch 4003");
}

#[test]
fn parts_that_cannot_be_read_cost_only_themselves() {
    let world = world(&["damaged/odd_parts.json"]);
    let odd = message(&world, GENERAL, at(5000));
    assert_eq!(&*odd.content, "");
    let mut unread = odd.extras.unwrap().unread;
    unread.sort_unstable();
    assert_eq!(unread, ["content", "embeds", "mentions"]);
}

/// A file, the place and the problem, and what is left of 5000 to 5002.
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

/// Strictly the error names the place and the remedy; leniently the rest is used.
#[track_caller]
fn check_damage(name: &str, strict: &str, left: &[i64], skipped: u64, cut_off: u64) {
    let path = fixture(&format!("damaged/{name}"));
    let error = World::open(std::slice::from_ref(&path), Options::default()).unwrap_err();
    let text = error.to_string();
    let text = text.replace(&path.display().to_string(), "FILE");
    assert_eq!(text, strict, "{name}");
    let world = World::open(std::slice::from_ref(&path), LENIENT).unwrap();
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
    // What is left can be read.
    assert!(
        world.messages(GENERAL).all(|message| message.is_ok()),
        "{name}"
    );
}

#[test]
fn damage_is_told_with_its_place_or_left_out() {
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

/// Wherever a file ends or one byte of it is wrong, opening it gives an error
/// or a world that can be read, and one bad byte costs two messages at most.
#[test]
fn no_damage_panics_or_costs_more_than_its_surroundings() {
    let watch = ChannelId::new(730);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.json");
    let whole = std::fs::read(fixture("parts/older.json")).unwrap();
    let text = std::str::from_utf8(&whole).unwrap();
    let (first, last) = (text.find("\"messages\"").unwrap(), text.rfind(']').unwrap());
    let left = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let _ = World::open(std::slice::from_ref(&path), Options::default());
        let world = World::open(std::slice::from_ref(&path), LENIENT).ok()?;
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
fn what_is_no_export_is_said_to_be_none() {
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
        for options in [Options::default(), LENIENT] {
            let path = fixture(&format!("damaged/{name}"));
            match World::open(&[path], options).unwrap_err() {
                ArchiveError::NotAnExport { found, .. } => assert_eq!(found, expected, "{name}"),
                other => panic!("{name}: {other}"),
            }
        }
    }
    let missing = World::open(&[fixture("nothing.json")], LENIENT).unwrap_err();
    assert!(matches!(missing, ArchiveError::Read { .. }), "{missing}");
    let none = World::open(&[], LENIENT).unwrap_err();
    assert!(matches!(none, ArchiveError::NoFiles), "{none}");
    let empty = world(&["damaged/no_messages.json"]);
    assert_eq!(empty.ids(GENERAL).len(), 0);
}

#[test]
fn a_scenario_is_its_final_state() {
    let world = world(&["scenario.json"]);
    assert_eq!(world.bot(), Some(UserId::new(900)));
    assert_eq!(world.trigger(), Some(at(2000)));
    let general: Vec<Message> = world.messages(GENERAL).map(Result::unwrap).collect();
    let expected = [
        "first, corrected",
        "Is the pump on?",
        "answering what goes",
        "",
        "",
        "<@900> what happened?",
    ];
    assert_eq!(contents(&general), expected);
    assert_eq!(general[0].edited, Some(at(95).created()));
    assert_eq!(&*general[0].author.name, "Maya R.");
    let (reply, alert, forward, trigger) = (&general[2], &general[3], &general[4], &general[5]);
    assert_eq!(reply.kind, MessageKind::Reply);
    assert_eq!(reply.referenced, Referenced::Deleted);
    assert_eq!(&*reply.mentions[0].name, "Maya R.");
    assert!(alert.author.webhook && alert.author.bot);
    let extras = alert.extras.as_ref().unwrap();
    assert_eq!(extras.embeds[0].title.as_deref(), Some("Pressure low"));
    assert_eq!(&*extras.attachments[0].filename, "line3.txt");
    assert_eq!(
        extras.attachments[0].content_type.as_deref(),
        Some("text/plain")
    );
    assert_eq!(forward.kind, MessageKind::Default);
    let snapshot = &forward.extras.as_ref().unwrap().snapshots[0];
    assert_eq!(&*snapshot.content, "forwarded words");
    assert_eq!(trigger.replies_to(), Some(alert.id));
    assert_eq!(trigger.mentions[0].id, UserId::new(900));
}

#[test]
fn a_scenarios_threads_know_parents_tags_and_state() {
    let world = world(&["scenario.json"]);
    let thread = world.channel(THREAD).unwrap();
    assert_eq!(thread.parent_kind, Some(ChannelKind::Text));
    let state = thread.thread.as_ref().unwrap();
    assert!(state.archived && state.locked);
    assert_eq!(state.owner, Some(UserId::new(502)));
    let messages = world.page_after(THREAD, MessageId::new(1), 9).unwrap();
    assert_eq!(messages[0].kind, MessageKind::ThreadStarter);
    assert_eq!(&*messages[0].author.name, "tomas");
    assert_eq!(messages[1].mentions[0].id, UserId::new(502));
    assert_eq!(messages[1].mention_roles[0].get(), 44);
    let post = world.channel(POST).unwrap();
    assert_eq!(post.parent_kind, Some(ChannelKind::Forum));
    assert_eq!(post.tags, ["solved"]);
    assert!(world.hidden(ChannelId::new(703)) && !world.hidden(GENERAL));
    // Nicknames are a server's.
    let direct = message(&world, ChannelId::new(720), at(1100));
    assert_eq!((&*direct.author.name, direct.guild), ("Maya", None));
}

#[test]
fn a_scenarios_bad_operations_are_told_or_left_out() {
    let path = fixture("damaged/scenario.json");
    let error = World::open(std::slice::from_ref(&path), Options::default()).unwrap_err();
    assert!(
        error.to_string().contains("unknown variant `explode`"),
        "{error}"
    );
    let world = World::open(&[path], LENIENT).unwrap();
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
    let cut = World::open(&[fixture("damaged/scenario_cut.json")], LENIENT).unwrap_err();
    assert!(matches!(cut, ArchiveError::CutOff { .. }), "{cut}");
}

#[test]
fn progress_runs_to_the_end_over_all_files() {
    let paths = [fixture("general.json"), fixture("thread.json")];
    let total: u64 = paths
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    let last = Cell::new((0, 0));
    let progress = |done, all| {
        assert!(done >= last.get().0);
        last.set((done, all));
    };
    let options = Options {
        lenient: false,
        progress: Some(&progress),
    };
    World::open(&paths, options).unwrap();
    assert_eq!(last.get(), (total, total));
}

#[test]
fn a_file_that_changed_meanwhile_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("general.json");
    std::fs::copy(fixture("general.json"), &path).unwrap();
    let world = World::open(std::slice::from_ref(&path), Options::default()).unwrap();
    std::fs::write(&path, "{}").unwrap();
    let error = world.message(GENERAL, at(120)).unwrap_err();
    assert!(matches!(error, ArchiveError::Changed { .. }), "{error}");
}

const LARGE: &str = "large-export.json";
const LARGE_MESSAGES: u64 = 200_000;

/// Runs itself again as a process of its own, in the folder of the export, so
/// that the peak of memory is that of reading it.
#[test]
fn a_large_export_is_read_in_bounded_memory() {
    if Path::new(LARGE).exists() {
        return read_large();
    }
    let folder = tempfile::tempdir().unwrap();
    write_large(&folder.path().join(LARGE), LARGE_MESSAGES);
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "replay::a_large_export_is_read_in_bounded_memory",
        ])
        .arg("--nocapture")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains("messages read: 200000"), "{text}");
}

fn read_large() {
    let before = peak_kb();
    let size = std::fs::metadata(LARGE).unwrap().len();
    let world = World::open(&[LARGE.into()], Options::default()).unwrap();
    assert_eq!(world.ids(GENERAL).len() as u64, LARGE_MESSAGES);
    let bytes = usize::try_from(LARGE_MESSAGES).unwrap() * BYTES_PER_MESSAGE;
    assert_eq!(world.index_bytes(), bytes);
    let read = world.messages(GENERAL).map(Result::unwrap).count();
    writeln!(std::io::stdout(), "messages read: {read}").unwrap();
    // The index, once more for its growth, and a fixed amount for buffers and
    // the people who wrote.
    let allowed = 2 * bytes as u64 / 1024 + 4 * 1024;
    if let (Some(before), Some(after)) = (before, peak_kb()) {
        let grown = after - before;
        assert!(grown <= allowed, "{grown} kB over {allowed} kB");
        assert!(allowed * 1024 < size / 3, "the export is too small to tell");
    }
}

/// The process's peak of resident memory, where the system tells it.
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
        let comma = if number == 0 { "" } else { "," };
        write!(
            line,
            r#"{comma}{{"id":"{id}","type":"Default","timestamp":"{time}","timestampEdited":null,"callEndedTimestamp":null,"isPinned":false,"content":"note {number} on the crane and the pump","author":{{"id":"{author}","name":"user{author}","discriminator":"0000","nickname":"User {author}","color":null,"isBot":false,"roles":[],"avatarUrl":"https://cdn.discordapp.com/embed/avatars/0.png"}},"attachments":[],"embeds":[],"stickers":[],"reactions":[],"mentions":[],"inlineEmojis":[]}}"#
        )
        .unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
    write!(file, "],\"messageCount\":{messages}}}").unwrap();
    file.flush().unwrap();
}
