//! `clew replay` and `clew tune` on exports of a million messages.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clew_context::model::MessageId;

use super::process::{Process, mebibytes};

const MESSAGES: u64 = 1_000_000;
/// Authors, in turn; every message of the first one mentions the bot.
const PEOPLE: u64 = 500;

/// The caps of a thread; the default sweep has six times as many combinations.
const SWEEPS: [&str; 8] = [
    "--sweep",
    "MEM_MAX_MSGS=10,20,40,80",
    "--sweep",
    "MEM_MAX_CHARS=2000,4000,8000,16000",
    "--sweep",
    "MEM_MAX_AGE_MIN=60,240,1440",
    "--sweep",
    "MEM_CHAIN_MAX_AGE_MIN=1440,10080",
];

pub(crate) fn print() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("export.json");
    write(&path, "GuildTextChat");
    let size = std::fs::metadata(&path).unwrap().len();
    println!(
        "\nclew replay on {MESSAGES} messages ({:.0} MiB)",
        mebibytes(size)
    );
    let triggers = MESSAGES / PEOPLE;
    for mode in ["--cold", "--warm"] {
        let words = ["replay", "--format", "jsonl", "--bot", "501", mode];
        measure(&words, &path, &format!("{mode}: {triggers} triggers"));
    }
    write(&path, "GuildPublicThread");
    println!("\nclew tune on {MESSAGES} messages of one thread, {triggers} of them questions");
    let sample = "1,000 questions under 96 combinations";
    let words: Vec<&str> = ["tune", "--bot", "501"].into_iter().chain(SWEEPS).collect();
    measure(&words, &path, sample);
}

/// Runs the program on an export, and prints what it took.
fn measure(words: &[&str], path: &Path, what: &str) {
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_clew"))
        .args(words)
        .arg(path)
        .env_clear()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = Process(child.id());
    let (mut peak, mut cpu) = (0, Duration::ZERO);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if let Some(now) = process.peak() {
            peak = now;
            cpu = cpu.max(process.cpu());
        }
        sleep(Duration::from_millis(20));
    };
    assert!(status.success());
    println!(
        "{what}, {:.1} s, {:.1} s CPU, {:.1} MiB at most",
        began.elapsed().as_secs_f64(),
        cpu.as_secs_f64(),
        mebibytes(peak)
    );
}

/// An export of one channel of a type, with a message every second.
fn write(path: &Path, kind: &str) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    write!(
        file,
        r#"{{"guild":{{"id":"1","name":"Works"}},"channel":{{"id":"2","type":"{kind}","categoryId":"3","category":"works","name":"general","topic":null}},"messages":["#
    )
    .unwrap();
    let mut line = String::new();
    for number in 0..MESSAGES {
        line.clear();
        let id = (350_000_000_000 + number * 1_000) << 22;
        let time = MessageId::new(id).created();
        let author = 502 + number % PEOPLE;
        let mentions = match number % PEOPLE {
            0 => r#"{"id":"501","name":"clew","nickname":"Clew","isBot":true}"#,
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
    write!(file, "],\"messageCount\":{MESSAGES}}}").unwrap();
    file.flush().unwrap();
}
