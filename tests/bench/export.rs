//! `clew replay` on an export of a million messages.

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

pub(crate) fn print() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("export.json");
    write(&path);
    let size = std::fs::metadata(&path).unwrap().len();
    println!(
        "\nclew replay on {MESSAGES} messages ({:.0} MiB)",
        mebibytes(size)
    );
    for mode in ["--cold", "--warm"] {
        replay(&path, mode);
    }
}

fn replay(path: &Path, mode: &str) {
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_clew"))
        .args(["replay", "--format", "jsonl", "--bot", "501", mode])
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
    let triggers = MESSAGES / PEOPLE;
    println!(
        "{mode}: {triggers} triggers, {:.1} s, {:.1} s CPU, {:.1} MiB at most",
        began.elapsed().as_secs_f64(),
        cpu.as_secs_f64(),
        mebibytes(peak)
    );
}

/// An export of one channel with a message every second.
fn write(path: &Path) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let head = r#"{"guild":{"id":"1","name":"Works"},"channel":{"id":"2","type":"GuildTextChat","categoryId":null,"category":null,"name":"general","topic":null},"messages":["#;
    file.write_all(head.as_bytes()).unwrap();
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
