//! `clew report` on a gigabyte of telemetry, beside a plain read of the same file.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clew::telemetry::event::{
    AnswerSent, BlockAges, Capped, CauseWord, CollectFallback, CollectOk, CollectTruncated, Finish,
    LlmFailure, MergeOk, OmitCounts, Outcome, Recorded, Refusal, RequestFailed, RequestOk,
    SourceWord, StageCounts, TailOk, Trigger, TriggerRefused, TurnDone,
};
use clew::telemetry::{Event, Ids, Ms, Telemetry};
use clew_context::model::{
    ChannelId, Fallback, GuildId, Limits, MessageId, OmitReason, Scene, Stage, TurnId, UnixMillis,
    UserId,
};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::process::Process;

const BYTES: u64 = 1 << 30;
/// Turns between two writes.
const BATCH: u64 = 1_000;
/// 2026-01-02, UTC.
const BEGIN: i64 = 1_767_312_000_000;
/// For the costs of the report that is shown.
const PRICES: [(&str, &str); 1] = [("LLM_PRICES", "0.15/0.6, big-model=2.5/10")];
/// How often each figure is taken; the best is shown.
const RUNS: usize = 3;

pub(crate) fn print() {
    let folder = tempfile::TempDir::new().unwrap();
    let plain = folder.path().join("clew.2026-01-02.jsonl");
    let turns = generate(&plain);
    let packed = folder.path().join("packed.jsonl.gz");
    compress(&plain, &packed);
    let size = std::fs::metadata(&plain).unwrap().len();
    let megabytes = size as f64 / 1e6;
    println!("\nclew report on {megabytes:.0} MB of telemetry, {turns} turns; best of {RUNS} runs");
    let show = |what: &str, took: Duration, more: &str| {
        println!(
            "{what}: {:.2} s, {:.0} MB/s{more}",
            took.as_secs_f64(),
            megabytes / took.as_secs_f64()
        );
    };
    show("plain read", best(|| timed(|| read(&plain))), "");
    let count = || status(Command::new("wc").arg("-l").arg(&plain));
    show("wc -l", best(|| timed(count)), "");
    for (what, path) in [("clew report", &plain), ("clew report, gzip", &packed)] {
        let mut used = (Duration::ZERO, 0);
        let took = best(|| timed(|| used = report(path)));
        let (cpu, peak) = used;
        let more = format!(
            " ({:.2} s CPU, {:.1} MiB at most)",
            cpu.as_secs_f64(),
            peak as f64 / 1_048_576.0
        );
        show(what, took, &more);
    }
    let shown = Command::new(env!("CARGO_BIN_EXE_clew"))
        .args(["report", "--top", "3"])
        .arg(&plain)
        .env_clear()
        .envs(PRICES)
        .status();
    assert!(shown.unwrap().success());
}

fn best(mut run: impl FnMut() -> Duration) -> Duration {
    (0..RUNS).map(|_| run()).min().unwrap()
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn read(path: &Path) {
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer).unwrap() > 0 {}
}

fn status(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
}

/// CPU time, and the most bytes of memory.
fn report(path: &Path) -> (Duration, u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_clew"))
        .args(["report", "--format", "json"])
        .arg(path)
        .env_clear()
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let process = Process(child.id());
    let (mut cpu, mut peak) = (Duration::ZERO, 0);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if let Some(now) = process.peak() {
            peak = now;
            cpu = cpu.max(process.cpu());
        }
        sleep(Duration::from_millis(10));
    };
    assert!(status.success());
    (cpu, peak)
}

fn compress(from: &Path, to: &Path) {
    let packed = BufWriter::new(File::create(to).unwrap());
    let mut encoder = GzEncoder::new(packed, Compression::default());
    std::io::copy(&mut File::open(from).unwrap(), &mut encoder).unwrap();
    encoder.finish().unwrap().flush().unwrap();
}

/// A turn every ten seconds or so in 300 servers; returns how many.
fn generate(path: &Path) -> u64 {
    let now = Arc::new(AtomicI64::new(BEGIN));
    let clock = {
        let now = Arc::clone(&now);
        Arc::new(move || UnixMillis(now.load(Ordering::Relaxed)))
    };
    let (telemetry, lines) = Telemetry::to_memory("mem.ctx", clock);
    let mut file = BufWriter::new(File::create(path).unwrap());
    let (mut written, mut turn) = (0, 0);
    while written < BYTES {
        for _ in 0..BATCH {
            turn += 1;
            now.fetch_add(10_000, Ordering::Relaxed);
            emit(&telemetry, turn);
        }
        for line in lines.take() {
            file.write_all(line.line.as_bytes()).unwrap();
            written += line.line.len() as u64;
        }
    }
    file.flush().unwrap();
    turn
}

fn emit(telemetry: &Telemetry, turn: u64) {
    let mixed = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    let guild = 800_000_000_000_000_000 + mixed % 300;
    let message = 1_460_000_000_000_000_000 + turn;
    let ids = Ids {
        guild: Some(GuildId::new(guild)),
        channel: Some(ChannelId::new(guild + 1_000 * (mixed % 20))),
        user: Some(UserId::new(700_000_000_000_000_000 + mixed % 20_000)),
        message: Some(MessageId::new(message)),
        turn: Some(TurnId(message)),
    };
    if mixed.is_multiple_of(40) {
        let (reason, list, parent_channel_id) = (Refusal::UserRate, None, None);
        let refused = TriggerRefused {
            reason,
            list,
            parent_channel_id,
        };
        telemetry.emit(&ids, refused);
        return;
    }
    for event in gathered(mixed, message).into_iter().chain(answered(mixed)) {
        telemetry.emit(&ids, event);
    }
}

/// Most turns take some seconds, a few much longer.
fn ms(mixed: u64, most: u64) -> Ms {
    let late = if mixed.is_multiple_of(97) { 9 } else { 1 };
    Ms::from(Duration::from_micros(late * (mixed % (1_000 * most))))
}

fn scene(mixed: u64) -> Scene {
    match mixed % 8 {
        0 => Scene::Lone,
        1 | 2 => Scene::ReplyChain,
        _ => Scene::Thread,
    }
}

fn gathered(mixed: u64, message: u64) -> Vec<Event> {
    let case = scene(mixed);
    let mut events = vec![
        Event::from(Trigger {
            scene: case,
            cause: CauseWord::Mention,
            target: Some(MessageId::new(message - 5)),
            adopted: false,
            queued_ms: ms(mixed, 50),
            parent_channel_id: None,
            agent: Some("default".to_owned()),
        }),
        Event::from(CollectOk {
            case,
            msgs: 40,
            chars: 7_900,
            ms: ms(mixed, 200),
            fetches: 2,
            source: SourceWord::Mixed,
            omitted: OmitCounts([(OmitReason::App, 2), (OmitReason::Age, 9)].into()),
            links: None,
            age_s: Some(BlockAges {
                oldest: mixed % 14_400,
                newest: mixed % 60,
            }),
            stages: StageCounts::default(),
            caps: Capped::from(&Limits::default()),
        }),
        Event::from(TailOk {
            k: 5,
            reply_target: Some(MessageId::new(message - 5)),
            count: 5,
        }),
        Event::from(MergeOk {
            block_msgs: 40,
            user_facts: 5,
            server_facts: 10,
            history_msgs: 30,
            recalled_msgs: 4,
            dedup: 2,
            chars: 12_000,
        }),
    ];
    if mixed.is_multiple_of(3) {
        events.push(Event::from(CollectTruncated {
            reason: if mixed.is_multiple_of(2) {
                OmitReason::Chars
            } else {
                OmitReason::Msgs
            },
            kept: 40,
            dropped: 7,
            shortened: 3,
        }));
    }
    if mixed.is_multiple_of(60) {
        events.push(Event::from(CollectFallback {
            case,
            reason: Fallback::Timeout,
            stage: Stage::History,
        }));
    }
    events
}

fn answered(mixed: u64) -> Vec<Event> {
    let (attempt, server, agent) = (1, 1, "default".to_owned());
    let model = if mixed.is_multiple_of(5) {
        "big-model"
    } else {
        "small-model"
    };
    let fails = mixed.is_multiple_of(70);
    let done = Event::from(TurnDone {
        outcome: if fails {
            Outcome::Failed
        } else {
            Outcome::Answered
        },
        ms: ms(mixed, 5_300),
        ms_to_model: Some(ms(mixed, 250)),
        case: Some(scene(mixed)),
        agent: Some(agent.clone()),
        model: Some(model.to_owned()),
        left: None,
        order: None,
    });
    if fails {
        let failed = RequestFailed {
            reason: LlmFailure::Unavailable,
            ms: ms(mixed, 900),
            attempt,
            will_retry: false,
            server,
            model: model.to_owned(),
            agent: Some(agent),
        };
        return vec![failed.into(), done];
    }
    vec![
        Event::from(RequestOk {
            ms_first: ms(mixed, 800),
            ms: ms(mixed, 5_000),
            prompt_chars: 12_000,
            prompt_tokens: Some(3_000 + mixed % 500),
            cached_tokens: Some(mixed % 3_000),
            completion_tokens: Some(mixed % 400),
            reasoning_tokens: None,
            finish: Finish::Stop,
            attempt,
            server,
            model: model.to_owned(),
            response_model: Some(model.to_owned()),
            agent: Some(agent),
            images: 0,
            image_bytes: 0,
        }),
        Event::from(AnswerSent {
            messages: 1,
            chars: 700,
            attached: false,
            edits: 3,
            reply: true,
            pinged: true,
        }),
        done,
        Event::from(Recorded {
            rows: 2,
            early: true,
            ms: ms(mixed, 3),
        }),
    ]
}
