//! The program itself: signals, exit codes and its output.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use clew_simulator::{Fault, FaultKind, Simulator, World};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Place, has};
use crate::support::bot::{Stage, lines};
use crate::support::model::Behaviour;

/// What takes longer is taken to hang.
const PATIENCE: Duration = Duration::from_secs(40);
/// The pause between two checks of a child process.
const LOOK: Duration = Duration::from_millis(20);

/// A running `clew run`; killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn start(stage: &Stage, extra: &[(&str, &str)]) -> Self {
        let settings = stage
            .settings()
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()));
        let settings = settings.chain(extra.iter().copied());
        Self::with(stage.folder.path(), settings)
    }

    pub(super) fn with<'a>(
        folder: &Path,
        settings: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        Self::under("--default-signal=HUP", folder, settings)
    }

    /// `signals` is an option of `env` that sets how signals are handled.
    fn under<'a>(
        signals: &str,
        folder: &Path,
        settings: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let fresh = (0..).map(|number| folder.join(format!("stderr{number}")));
        let log = fresh.into_iter().find(|path| !path.exists()).unwrap();
        // Through `env`, since the test runner itself may ignore SIGHUP.
        let child = Command::new("/usr/bin/env")
            .args([signals, env!("CARGO_BIN_EXE_clew"), "run"])
            .env_clear()
            .envs(settings)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    /// How often it has passed something to the system to write, and bytes in all.
    pub(crate) fn written(&self) -> (u64, u64) {
        let path = format!("/proc/{}/io", self.child.id());
        let text = std::fs::read_to_string(path).unwrap();
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().parse().unwrap()
        };
        (of("syscw:"), of("wchar:"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "it has not ended: {}",
                self.log()
            );
            sleep(LOOK).await;
        }
    }

    /// Asserts that it ends with code 2 and that its last line, apart from causes, contains all of `says`.
    pub(crate) async fn refuses(&mut self, says: &[&str]) {
        let status = self.ended().await;
        let log = self.log();
        assert_eq!(status.code(), Some(2), "{log}");
        let of_cause = |line: &&str| line.starts_with("  because: ");
        let last = log.lines().rev().find(|line| !of_cause(line));
        let last = last.unwrap_or_default();
        assert!(last.starts_with("clew: "), "{log}");
        for word in says {
            assert!(last.contains(word), "{word}: {log}");
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the log contains `word` this many times.
    pub(crate) async fn wait_for_log(&self, word: &str, times: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.log().matches(word).count() < times {
            assert!(Instant::now() < deadline, "{word}: {}", self.log());
            sleep(LOOK).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What it writes is about people: store, telemetry and state are for its own account.
#[tokio::test(flavor = "multi_thread")]
async fn its_files_are_closed_to_other_accounts() {
    let place = Place::new(&[]).await;
    let _bot = Process::start(&place.stage, &[]);
    place.stage.discord.wait_ready().await.unwrap();
    place.ask(place.thread, "what is it about?");
    place.answers(place.thread, 1).await;
    let mut folders = vec![place.stage.folder.path().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            // Made by this test.
            if entry.file_name().to_string_lossy().starts_with("stderr") {
                continue;
            }
            let found = entry.metadata().unwrap();
            let mode = found.permissions().mode() & 0o077;
            assert_eq!(mode, 0, "{}", entry.path().display());
            if found.is_dir() {
                folders.push(entry.path());
            } else {
                files += 1;
            }
        }
    }
    assert!(files > 2, "{files}");
}

/// So is what an earlier version, or another umask, left open.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_could_open_is_closed_at_the_start() {
    let place = Place::new(&[]).await;
    let settings = [("DM_LOGS_DIR", "logs"), ("TOOL_OUTPUT_RESUME", "true")];
    let mut bot = Process::start(&place.stage, &settings);
    connected(&place).await;
    place.ask(place.thread, "what is it about?");
    place.answers(place.thread, 1).await;
    bot.signal("TERM");
    assert_eq!(bot.ended().await.code(), Some(0), "{}", bot.log());
    let folder = place.stage.folder.path();
    for name in [
        "logs/7.jsonl",
        "agents/default/sessions/x.json",
        "tool_outputs/x.json",
    ] {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{}").unwrap();
    }
    let files = files_below(folder);
    for file in &files {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let bot = Process::start(&place.stage, &settings);
    connected(&place).await;
    bot.wait_for_log("could open files of ours", 5).await;
    for file in files.iter().filter(|file| file.exists()) {
        let mode = std::fs::metadata(file).unwrap().permissions().mode();
        let is_lock = file.extension().is_some_and(|end| end == "lock");
        assert!(mode.trailing_zeros() >= 3 || is_lock, "{}", file.display());
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if !name.starts_with("stderr") {
            files.push(path);
        }
    }
    files
}

/// A store that is not available when the bot starts.
#[cfg(feature = "postgres")]
mod starting {
    use super::*;
    use crate::support::postgres::Postgres;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_database_that_starts_later_is_waited_for() {
        let mut server = Postgres::own();
        let database = server.fresh_database().await;
        server.stop();
        let place = Place::new(&[]).await;
        let process = Process::start(&place.stage, &[("CONTEXT_STORE", &database.url)]);
        process.wait_for_log("not ready", 2).await;
        server.start();
        connected(&place).await;
        place.ask(place.help, "are you there?");
        place.wait_for_answer(place.help, "ok").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_signal_ends_the_wait() {
        let place = Place::new(&[]).await;
        let nowhere = "postgres://ada:hunter2@nowhere.invalid/clew";
        let mut process = Process::start(&place.stage, &[("CONTEXT_STORE", nowhere)]);
        process.wait_for_log("not ready", 1).await;
        process.signal("TERM");
        assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
        assert!(!process.log().contains("hunter2"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_only_a_person_can_fix_is_not_waited_for() {
        let server = Postgres::shared();
        let database = server.fresh_database().await;
        let (start, _) = database.url.split_once('@').unwrap();
        let (_, password) = start.rsplit_once(':').unwrap();
        let place = Place::new(&[]).await;
        let wrong = database.url.replace(password, "hunter2");
        let mut process = Process::start(&place.stage, &[("CONTEXT_STORE", &wrong)]);
        process.refuses(&["check user and password"]).await;
        let (server, _) = database.url.rsplit_once('/').unwrap();
        let nowhere = format!("{server}/nowhere");
        let mut process = Process::start(&place.stage, &[("CONTEXT_STORE", &nowhere)]);
        process.refuses(&["create the database first"]).await;
    }
}

pub(crate) async fn connected(place: &Place) {
    place.stage.discord.wait_ready().await.unwrap();
    place.stage.discord.settled().await.unwrap();
}

pub(super) fn written(place: &Place) -> Vec<serde_json::Value> {
    lines(&place.stage.folder.path().join("telemetry"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_turn_ends_after_a_signal() {
    for signal in ["TERM", "INT", "HUP"] {
        let place = Place::new(&[]).await;
        let mut process = Process::start(&place.stage, &[]);
        connected(&place).await;
        let (pieces, gate) = Behaviour::gated(&["The pump\n", "is fine."]);
        place.stage.model.script(pieces);
        place.ask(place.thread, "what is it about?");
        gate.step(1);
        place.wait_for_answer(place.thread, "The pump").await;
        process.signal(signal);
        // The connection is closed first, with a code that allows a resume.
        let closed = clew_simulator::GatewayEvent::ClosedByClient { code: Some(4000) };
        let closed = |event: &_| *event == closed;
        place
            .stage
            .discord
            .wait_gateway("the end", closed)
            .await
            .unwrap();
        gate.open();
        assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
        place
            .wait_for_answer(place.thread, "The pump\nis fine.")
            .await;
        let lines = written(&place);
        has(&lines, "stopping", &json!({"drained": 1, "abandoned": 0}));
        has(&lines, "turn_done", &json!({"outcome": "answered"}));
        let file = place.stage.state().join("session.json");
        assert!(file.exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_program_at_once() {
    let place = Place::new(&[("SHUTDOWN_TIMEOUT_S", "30")]).await;
    for second in ["INT", "HUP"] {
        let mut process = Process::start(&place.stage, &[]);
        connected(&place).await;
        place.stage.model.script(Behaviour::Hang);
        let before = place.stage.model.requests().len();
        place.ask(place.thread, "what is it about?");
        place.stage.model.wait_requests(before + 1).await;
        process.signal("INT");
        process
            .wait_for_log("another signal ends all at once", 1)
            .await;
        process.signal(second);
        assert_eq!(process.ended().await.code(), Some(1), "{}", process.log());
        assert!(process.log().contains("stopped at once"));
    }
}

/// `nohup` means that the program outlives its terminal.
#[tokio::test(flavor = "multi_thread")]
async fn an_ignored_hang_up_stays_ignored() {
    let place = Place::new(&[]).await;
    let settings = place.stage.settings();
    let settings = settings.iter().map(|(a, b)| (a.as_str(), b.as_str()));
    let folder = place.stage.folder.path();
    let mut process = Process::under("--ignore-signal=HUP", folder, settings);
    connected(&place).await;
    process.signal("HUP");
    place.ask(place.help, "are you there?");
    place.wait_for_answer(place.help, "ok").await;
    process.signal("TERM");
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_past_the_deadline_is_answered_by_the_next_process() {
    let place = Place::new(&[("SHUTDOWN_TIMEOUT_S", "0.3")]).await;
    let mut process = Process::start(&place.stage, &[]);
    connected(&place).await;
    place.stage.model.script(Behaviour::Hang);
    place.ask(place.thread, "what is it about?");
    place.stage.model.wait_requests(1).await;
    process.signal("TERM");
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    has(
        &written(&place),
        "stopping",
        &json!({"drained": 0, "abandoned": 1}),
    );
    let _next = Process::start(&place.stage, &[]);
    place.wait_for_answer(place.thread, "ok").await;
    place.ask(place.thread, "again?");
    place.answers(place.thread, 2).await;
    place.stage.discord.settled().await.unwrap();
    place.stage.discord.wait_idle().await.unwrap();
    assert_eq!(place.stage.discord.answers(place.thread).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_nothing_is_answered_twice() {
    let place = Place::new(&[]).await;
    let mut process = Process::start(&place.stage, &[]);
    connected(&place).await;
    place.ask(place.thread, "before");
    place.wait_for_answer(place.thread, "ok").await;
    place.stage.model.script(Behaviour::Hang);
    place.ask(place.thread, "in the middle");
    place.stage.model.wait_requests(2).await;
    process.signal("KILL");
    assert_eq!(process.ended().await.code(), None);
    let bot = place.stage.start().await;
    place.still_works(bot).await;
    assert_eq!(place.stage.discord.answers(place.thread).len(), 2);
}

/// Waits until a process has noted a message of an answer: it stands at Discord before.
async fn noted_as_posted(place: &Place) {
    let path = place.stage.state().join("claims.jsonl");
    let end = Instant::now() + PATIENCE;
    loop {
        let claims = std::fs::read_to_string(&path).unwrap_or_default();
        if claims.contains(r#""posted""#) {
            return;
        }
        assert!(Instant::now() < end, "nothing is noted as posted");
        sleep(LOOK).await;
    }
}

/// What it left of an answer is told, and the question is answered once.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_telemetry_says_what_was_left() {
    for left in ["part", "nonce"] {
        let place = Place::new(&[]).await;
        let discord = &place.stage.discord;
        let mut process = Process::start(&place.stage, &[]);
        connected(&place).await;
        let (behaviour, gate) = Behaviour::gated(&["Half of\n", "it."]);
        place.stage.model.script(behaviour);
        let path = "/channels/*/messages";
        if left == "nonce" {
            discord.fault(Fault::new("POST", path, FaultKind::DroppedBefore));
        }
        place.ask(place.thread, "all of it");
        gate.step(1);
        if left == "nonce" {
            discord.wait_request("POST", path, 1).await.unwrap();
        } else {
            place.wait_for_answer(place.thread, "Half of").await;
            noted_as_posted(&place).await;
        }
        process.signal("KILL");
        assert_eq!(process.ended().await.code(), None);
        discord.end_faults();
        let bot = place.stage.start().await;
        place.wait_for_answer(place.thread, "ok").await;
        let lines = place.still_works(bot).await;
        let done = json!({"left": left, "outcome": "answered"});
        has(&lines, "turn_done", &done);
        assert_eq!(place.stage.discord.answers(place.thread).len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_names_the_first() {
    let place = Place::new(&[]).await;
    let first = Process::start(&place.stage, &[]);
    connected(&place).await;
    let pid = first.child.id().to_string();
    let mut second = Process::start(&place.stage, &[]);
    let lock = place.stage.state().join("session.json.lock");
    let lock = lock.display().to_string();
    second
        .refuses(&["another process", &pid, "stop it", &lock])
        .await;
    place.ask(place.thread, "are you there?");
    place.wait_for_answer(place.thread, "ok").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_it_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::with(folder.path(), std::iter::empty());
    process
        .refuses(&["DISCORD_TOKEN", "developer portal"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_person_can_fix_ends_the_program_with_a_reason() {
    async fn check(change: impl FnOnce(&Simulator), says: &[&str], reason: &str) {
        let place = Place::new(&[]).await;
        let mut process = Process::start(&place.stage, &[]);
        connected(&place).await;
        change(&place.stage.discord);
        place.stage.discord.post(place.thread, place.ada, "hello");
        place.ask(place.thread, "are you there?");
        process.refuses(says).await;
        has(&written(&place), "fatal", &json!({"reason": reason}));
    }
    let token = &["DISCORD_TOKEN", "developer portal"];
    check(
        |discord| discord.close_gateway(4004),
        token,
        "token_rejected",
    )
    .await;
    let intents = &["DISCORD_MESSAGE_CONTENT=off", "developer portal"];
    let refused = |discord: &Simulator| discord.close_gateway(4014);
    check(refused, intents, "disallowed_intents").await;
    check(
        |discord| discord.close_gateway(4013),
        &["intents"],
        "invalid_intents",
    )
    .await;
    let unauthorized = Fault::status("GET", "/channels/", 401, 0, "401: Unauthorized");
    let refused = |discord: &Simulator| {
        discord.fault(unauthorized);
    };
    check(refused, token, "token_rejected").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_at_once_says_so() {
    let mut world = World::new();
    world.guild("Works");
    let stage = Stage::new(world, &[]).await;
    let mut process = Process::start(&stage, &[("DISCORD_TOKEN", "wrong.token.here")]);
    process
        .refuses(&["DISCORD_TOKEN", "developer portal"])
        .await;
    assert!(!process.log().contains("wrong.token.here"));
}

/// A store that cannot be opened ends the program before it sends anything to Discord.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_opened_is_named_with_what_to_do() {
    async fn check(stage: &Stage, address: &str, says: &[&str]) {
        let mut process = Process::start(stage, &[("CONTEXT_STORE", address)]);
        process.refuses(says).await;
        let log = process.log();
        assert!(!log.contains("swordfish"), "{log}");
        assert_eq!(log.matches("clew: ").count(), 1, "{log}");
    }
    let stage = Stage::new(World::new(), &[]).await;
    let path = |name: &str| stage.folder.path().join(name);
    let sqlite = |name: &str| format!("sqlite:{}", path(name).display());
    std::fs::create_dir(path("folder")).unwrap();
    check(
        &stage,
        &sqlite("folder"),
        &["folder", "a folder stands in its place"],
    )
    .await;
    let noise: Vec<u8> = (0..8_192_u32).map(|at| (at * 31 % 251) as u8).collect();
    std::fs::write(path("noise.db"), &noise).unwrap();
    check(
        &stage,
        &sqlite("noise.db"),
        &["noise.db", "not an SQLite database"],
    )
    .await;
    assert_eq!(std::fs::read(path("noise.db")).unwrap(), noise);
    let file = rusqlite::Connection::open(path("newer.db")).unwrap();
    file.pragma_update(None, "application_id", 0x436c_6577)
        .unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    drop(file);
    check(
        &stage,
        &sqlite("newer.db"),
        &["newer.db", "99", "update the program"],
    )
    .await;
    for (name, lost) in [
        ("opt_outs.json", r#"{"version":1}"#),
        ("settings/11.json", ""),
    ] {
        let file = path("files").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, lost).unwrap();
        let files = format!("files:{}", path("files").display());
        check(&stage, &files, &[name, "restore it from a backup"]).await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), lost);
        std::fs::remove_file(&file).unwrap();
    }
    assert_eq!(stage.discord.sessions_begun(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_secrets_nor_words_are_written() {
    let key = "sk-verysecretkey";
    let settings = [
        ("LLM_API_KEY", key),
        ("DEBUG", "true"),
        ("LLM_TIMEOUT_S", "2"),
    ];
    let place = Place::new(&settings).await;
    let mut process = Process::start(&place.stage, &[]);
    connected(&place).await;
    let discord = &place.stage.discord;
    let refused = r#"{"error": {"message": "bad key sk-verysecretkey for so, what is a xylophone?", "code": 1}}"#;
    for behaviour in [
        Behaviour::text(&["the answer is xylophone"]),
        Behaviour::Status(401, refused.to_owned(), Vec::new()),
        Behaviour::Status(400, refused.to_owned(), Vec::new()),
        Behaviour::Raw("text/event-stream", b"data: {xylophone\n\n".to_vec()),
        Behaviour::drop(&["xylophone"]),
    ] {
        place.stage.model.script(behaviour);
    }
    for count in 1..=5 {
        place.ask(place.thread, "so, what is a xylophone?");
        place.answers(place.thread, count).await;
    }
    let echo = r#"{"message": "xylophone", "code": 50035, "errors": {"content": "xylophone"}}"#;
    let echo = FaultKind::Status {
        status: 400,
        body: serde_json::from_str(echo).unwrap(),
        retry_after: None,
    };
    let path = format!("/channels/{}/messages", place.thread);
    discord.fault(Fault::new("POST", &path, echo).times(1));
    place.ask(place.thread, "a xylophone again?");
    place.stage.model.wait_requests(6).await;
    discord.dispatch_raw("MESSAGE_CREATE", r#"{"content": "xylophone"}"#);
    discord.dispatch_raw("MESSAGE_UPDATE", r#"["xylophone"]"#);
    discord.dispatch_raw("MESSAGE_CREATE", "{xylophone");
    discord.settled().await.unwrap();
    discord.drop_gateway();
    place.ask(place.help, "a xylophone elsewhere?");
    place.answers(place.help, 1).await;
    process.signal("TERM");
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    let token = discord.token();
    let mut texts = vec![process.log()];
    assert!(texts[0].contains("DEBUG"), "{}", texts[0]);
    assert!(!written(&place).is_empty());
    for entry in std::fs::read_dir(place.stage.folder.path().join("telemetry")).unwrap() {
        texts.push(std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    for text in texts {
        for secret in [key, token.as_str(), "xylophone"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
