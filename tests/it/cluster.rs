//! Several processes with one PostgreSQL (`CLUSTER=on`): one is the bot, the others stand by.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use clew_simulator::{GatewayEvent, Id};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::faults::Place;
use crate::faults::kill::until_within;
use crate::faults::process::{Process, connected};
use crate::support::bot::lines;
use crate::support::model::Behaviour;
use crate::support::postgres::{Database, Postgres, query};
use crate::support::statements::{LOGGED, statements};

/// What takes longer is taken to hang: a lease that nobody renews takes ten seconds.
const PATIENCE: Duration = Duration::from_mins(1);
/// What a process logs once it has the lease.
const IS_THE_BOT: &str = "this process is the bot from now on";
const STANDS_BY: &str = "standing by";

/// A server on Discord, and a database.
struct Cluster {
    place: Place,
    database: Database,
}

impl Cluster {
    async fn new(server: &Postgres) -> Self {
        Self {
            place: Place::new(&[]).await,
            database: server.fresh_database().await,
        }
    }

    /// A process as on a machine of its own.
    fn start(&self, name: &str, extra: &[(&str, &str)]) -> Process {
        let folder = self.place.stage.folder.path().join(name);
        let path = |what: &str| folder.join(what).display().to_string();
        let (state, telemetry, outputs) = (path("state"), path("telemetry"), path("outputs"));
        let mut settings = vec![
            ("CONTEXT_STORE", self.database.url.as_str()),
            ("CLUSTER", "on"),
            ("STATE_DIR", &state),
            ("TELEMETRY_DIR", &telemetry),
            ("TOOL_OUTPUT_DIR", &outputs),
        ];
        settings.extend(extra);
        Process::start(&self.place.stage, &settings)
    }

    /// The bot, and another process that stands by.
    async fn two(&self) -> (Process, Process) {
        let first = self.start("a", &[]);
        first.wait_for_log(IS_THE_BOT, 1).await;
        connected(&self.place).await;
        self.noted(1).await;
        let second = self.start("b", &[]);
        second.wait_for_log(STANDS_BY, 1).await;
        (first, second)
    }

    /// Waits until the next process could resume the sessions of so many shards.
    async fn noted(&self, shards: u32) {
        let last = format!("\"shard\":{},\"shards\":{shards},", shards - 1);
        let session = format!(
            "SELECT count(*) FROM clew.state_files WHERE name = 'session.json' \
             AND convert_from(content, 'UTF8') LIKE '%{last}%'"
        );
        until("the session is noted", async || {
            query(&self.database.url, &session).await == [[Some("1".to_owned())]]
        })
        .await;
    }

    /// Waits until all is known to be over that was taken.
    async fn over(&self) {
        let open = "SELECT count(*) FROM clew.claims WHERE line NOT LIKE '%\"over\":true%'";
        until("all is answered", async || {
            query(&self.database.url, open).await == [[Some("0".to_owned())]]
        })
        .await;
    }

    /// Which of these processes is the bot, once one is.
    async fn holder(&self, processes: &[Process]) -> usize {
        let node = "SELECT node FROM clew.leases WHERE until > clock_timestamp()";
        let mut found = None;
        until("somebody is the bot", async || {
            let rows = self.lease(node).await;
            found = processes.iter().position(|process| {
                let id = format!(":{}.", process.id());
                rows.iter().any(|node| node.contains(&id))
            });
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// The first column; nothing before there are tables.
    async fn lease(&self, sql: &str) -> Vec<String> {
        let tables = "SELECT to_regclass('clew.leases') IS NOT NULL";
        if query(&self.database.url, tables).await != [[Some("t".to_owned())]] {
            return Vec::new();
        }
        let rows = query(&self.database.url, sql).await;
        rows.into_iter().flatten().flatten().collect()
    }

    /// The questions that the bot's messages answer, one for each message.
    fn answered(&self) -> Vec<Id> {
        let answers = self.place.stage.discord.answers(self.place.help);
        let replied = answers.iter().filter_map(|one| one.reference.as_ref());
        replied.filter_map(|reference| reference.message).collect()
    }

    async fn all_answered(&self, questions: &[Id]) {
        until("each question is answered", async || {
            let answered = self.answered();
            questions.iter().all(|one| answered.contains(one))
        })
        .await;
    }

    /// The exit code and output of a command with the processes' settings.
    fn command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let settings = self.place.stage.settings().iter().cloned();
        let own = [
            ("CONTEXT_STORE", self.database.url.as_str()),
            ("CLUSTER", "on"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let ended = Command::new(env!("CARGO_BIN_EXE_clew"))
            .args(arguments)
            .env_clear()
            .envs(settings.chain(own))
            .current_dir(self.place.stage.folder.path())
            .output()
            .unwrap();
        (
            ended.status.code(),
            String::from_utf8(ended.stdout).unwrap(),
        )
    }

    /// Asks what the model will answer.
    fn asks(&self, question: &str, answer: &str) {
        self.place.stage.model.script(Behaviour::text(&[answer]));
        self.place.ask(self.place.help, question);
    }

    /// Asks, and waits for the answer.
    async fn answers(&self, question: &str, answer: &str) {
        self.asks(question, answer);
        self.place.wait_for_answer(self.place.help, answer).await;
    }

    /// The texts of the bot's messages in the channel.
    fn said(&self) -> Vec<String> {
        let answers = self.place.stage.discord.answers(self.place.help);
        answers.into_iter().map(|one| one.content).collect()
    }

    /// How many sessions were not resumed but begun.
    fn identified(&self) -> usize {
        let is_new = |event: &GatewayEvent| matches!(event, GatewayEvent::Identified { .. });
        let log = self.place.stage.discord.gateway_log();
        log.iter().filter(|record| is_new(&record.event)).count()
    }

    fn told(&self, name: &str) -> Vec<Value> {
        lines(&self.place.stage.folder.path().join(name).join("telemetry"))
    }

    /// Asks a question to which the model begins no answer.
    async fn asks_in_vain(&self, question: &str) -> Id {
        let model = &self.place.stage.model;
        let before = model.requests().len();
        model.script(Behaviour::Hang);
        let id = self.place.ask(self.place.help, question);
        model.wait_requests(before + 1).await;
        id
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_goes_on_after_a_kill() {
    let cluster = Cluster::new(Postgres::shared()).await;
    let (mut first, second) = cluster.two().await;
    cluster.answers("is the pump fine?", "It leaks.").await;
    cluster.asks_in_vain("and since when?").await;
    first.signal("KILL");
    assert_eq!(first.ended().await.code(), None);
    // Nobody hears it, and it is not lost.
    cluster.place.ask(cluster.place.help, "who is there?");
    cluster
        .place
        .stage
        .model
        .script(Behaviour::text(&["Since Monday."]));
    cluster
        .place
        .stage
        .model
        .script(Behaviour::text(&["Boris."]));
    second.wait_for_log(IS_THE_BOT, 1).await;
    cluster
        .place
        .wait_for_answer(cluster.place.help, "Since Monday.")
        .await;
    cluster
        .place
        .wait_for_answer(cluster.place.help, "Boris.")
        .await;
    cluster
        .answers("what did you say first?", "That it leaks.")
        .await;
    let said = ["It leaks.", "Since Monday.", "Boris.", "That it leaks."];
    assert_eq!(cluster.said(), said);
    // It knows the conversation, and resumed the session.
    let requests = cluster.place.stage.model.requests();
    assert!(requests.last().unwrap().to_string().contains("It leaks."));
    assert_eq!(cluster.identified(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_stopped_hands_over() {
    let cluster = Cluster::new(Postgres::shared()).await;
    let (mut first, second) = cluster.two().await;
    cluster.answers("is the pump fine?", "It leaks.").await;
    first.signal("TERM");
    cluster.answers("still?", "Still.").await;
    second.wait_for_log(IS_THE_BOT, 1).await;
    assert_eq!(first.ended().await.code(), Some(0), "{}", first.log());
    let third = cluster.start("c", &[]);
    third.wait_for_log(STANDS_BY, 1).await;
    cluster.answers("and now?", "Mended.").await;
    assert_eq!(cluster.said(), ["It leaks.", "Still.", "Mended."]);
    assert_eq!(cluster.identified(), 1);
    cluster.over().await;
    drop(second);
    cluster.answers("since when?", "Since today.").await;
    third.wait_for_log(IS_THE_BOT, 1).await;
}

/// A process that did not run for a while finds that its time is over before it posts anything.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_stopped_too_long_says_nothing() {
    let cluster = Cluster::new(Postgres::shared()).await;
    let (first, second) = cluster.two().await;
    let (behaviour, gate) = Behaviour::text(&["Old."]).held();
    cluster.place.stage.model.script(behaviour);
    cluster.place.ask(cluster.place.help, "is the pump fine?");
    cluster.place.stage.model.wait_requests(1).await;
    first.signal("STOP");
    cluster.place.stage.model.script(Behaviour::text(&["New."]));
    cluster
        .place
        .wait_for_answer(cluster.place.help, "New.")
        .await;
    gate.open();
    first.signal("CONT");
    first.wait_for_log("not the bot any more", 1).await;
    first.wait_for_log(STANDS_BY, 1).await;
    assert_eq!(cluster.said(), ["New."]);
    cluster.over().await;
    drop(second);
    cluster.answers("are you back?", "Yes.").await;
    assert_eq!(cluster.said(), ["New.", "Yes."]);
    let told = cluster.told("a");
    let stopping = told.iter().find(|line| line["event"] == "stopping");
    assert_eq!(stopping.unwrap()["detail"]["abandoned"], 1);
}

/// Without its database a bot answers nothing for longer than its lease, and everything afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_database_only_delays() {
    let mut server = Postgres::own();
    let cluster = Cluster::new(&server).await;
    let first = cluster.start("a", &[]);
    connected(&cluster.place).await;
    cluster.answers("is the pump fine?", "It leaks.").await;
    cluster.over().await;
    server.stop();
    first.wait_for_log("not the bot any more", 1).await;
    cluster.asks("still?", "Still.");
    first
        .wait_for_log("cannot be asked who is the bot", 1)
        .await;
    assert_eq!(cluster.said(), ["It leaks."]);
    server.start();
    cluster
        .place
        .wait_for_answer(cluster.place.help, "Still.")
        .await;
    assert_eq!(cluster.said(), ["It leaks.", "Still."]);
}

async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    until_within(PATIENCE, what, is_so).await;
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// By `/readyz`, by the command and by `clew doctor`, which makes no table.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_the_bot_is_told() {
    let cluster = Cluster::new(Postgres::shared()).await;
    let status = |format: &str| cluster.command(&["cluster", "status", "--format", format]);
    let (code, none) = status("text");
    assert_eq!(
        (code, none.as_str()),
        (
            Some(1),
            "no process is the bot (last epoch 0)\n  session starts left today: 1000\n"
        )
    );
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'clew'";
    assert_eq!(
        query(&cluster.database.url, tables).await,
        [[Some("0".to_owned())]]
    );
    let addresses = [free_address(), free_address()];
    let first = cluster.start("a", &[("METRICS_ADDR", &addresses[0])]);
    first.wait_for_log(IS_THE_BOT, 1).await;
    connected(&cluster.place).await;
    let second = cluster.start("b", &[("METRICS_ADDR", &addresses[1])]);
    second.wait_for_log(STANDS_BY, 1).await;
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let stands_by = "cluster: another process is the bot, this one stands by";
    let name = |process: &Process| format!(":{}.", process.id());
    for (address, path, expected) in [
        (&addresses[0], "/readyz", (200, "ready")),
        (&addresses[1], "/readyz", (503, &*name(&second))),
        (&addresses[0], "/metrics", (200, &*name(&first))),
        (&addresses[1], "/readyz", (503, stands_by)),
        (&addresses[1], "/healthz", (200, "alive")),
    ] {
        let answer = reqwest::get(format!("http://{address}{path}"))
            .await
            .unwrap();
        let (code, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        assert!(
            code == expected.0 && text.contains(expected.1),
            "{path} {code} {text}"
        );
    }
    let (code, json) = status("json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["epoch"]), (Some(0), &json!(1)));
    assert_eq!(json["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(json["session_starts_left"], 999);
    let holder = json["holder"].as_str().unwrap();
    let (_, text) = status("text");
    assert!(
        text.starts_with(&format!("the bot is {holder} (epoch 1)\n")),
        "{text}"
    );
    assert_eq!(text.matches("stands by").count(), 1, "{text}");
    let (_, doctor) = cluster.command(&["doctor"]);
    assert!(
        doctor.contains("2 processes") && doctor.contains("no synchronous standby"),
        "{doctor}"
    );
}

/// An operator has another process be the bot. Whoever was drained is it again only if nobody else can be.
#[tokio::test(flavor = "multi_thread")]
async fn a_drained_process_hands_over() {
    let cluster = Cluster::new(Postgres::shared()).await;
    let (first, second) = cluster.two().await;
    cluster.answers("is the pump fine?", "It leaks.").await;
    let of = |process: &Process| format!(":{}.", process.id());
    // `the bot is NAME (epoch 1)`
    let bot = |told: &str| told.split(' ').nth(3).unwrap().to_owned();
    let (_, before) = cluster.command(&["cluster", "status"]);
    assert!(before.contains("is the bot"), "{before}");
    let holder = bot(&before);
    assert!(holder.contains(&of(&first)), "{before}");
    let (code, after) = cluster.command(&["cluster", "drain", &holder]);
    assert_eq!(code, Some(0), "{after}");
    let next = bot(&after);
    assert!(next.contains(&of(&second)), "{after}");
    assert!(after.contains("is drained"), "{after}");
    cluster.answers("still?", "Still.").await;
    first.wait_for_log(STANDS_BY, 1).await;
    assert_eq!(cluster.identified(), 1, "it resumed");
    // There is none of that name, and nobody could be the bot in its place.
    for wrong in ["nobody", &next] {
        let (code, told) = cluster.command(&["cluster", "drain", wrong]);
        assert_eq!((code, told.as_str()), (Some(2), ""), "{wrong}");
    }
    cluster.over().await;
    drop(second);
    cluster.answers("and now?", "Mended.").await;
    let third = cluster.start("c", &[]);
    third.wait_for_log(IS_THE_BOT, 1).await;
    cluster.answers("since when?", "Since today.").await;
    assert_eq!(
        cluster.said(),
        ["It leaks.", "Still.", "Mended.", "Since today."]
    );
}

/// More shards, and fewer again, while people ask: each question has one answer, and the next process goes
/// on with as many.
#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_shards_changes_while_the_bot_runs() {
    let cluster = Cluster::new(Postgres::shared()).await;
    let settings = [
        ("USER_TURNS_PER_MIN", "1000"),
        ("TURN_QUEUE_PER_CHANNEL", "100"),
    ];
    let first = cluster.start("a", &settings);
    connected(&cluster.place).await;
    let mut questions = Vec::new();
    let mut begun = 1;
    for shards in [3, 2] {
        let count = shards.to_string();
        let arguments = ["cluster", "reshard", &count];
        let (code, told) = tokio::task::block_in_place(|| {
            let asking = async {
                for _ in 0..40 {
                    questions.push(cluster.place.ask(cluster.place.help, "is the pump fine?"));
                    sleep(Duration::from_millis(100)).await;
                }
            };
            std::thread::scope(|scope| {
                let resharding = scope.spawn(|| cluster.command(&arguments));
                tokio::runtime::Handle::current().block_on(asking);
                resharding.join().unwrap()
            })
        });
        let all = format!("is the bot, {shards} of {shards} shards");
        assert!(code == Some(0) && told.contains(&all), "{code:?} {told}");
        begun += shards;
        assert_eq!(cluster.identified(), begun);
    }
    cluster.all_answered(&questions).await;
    let answered = cluster.answered();
    assert_eq!(answered.len(), questions.len(), "each has one");
    cluster.over().await;
    cluster.noted(2).await;
    let second = cluster.start("b", &settings);
    second.wait_for_log(STANDS_BY, 1).await;
    drop(first);
    cluster.answers("and now?", "Mended.").await;
    assert_eq!(cluster.identified(), begun, "all shards were resumed");
}

/// Whatever ends whichever process is the bot while people ask, each question has one answer.
/// `CLUSTER_ENDS` sets how many ends there are.
#[tokio::test(flavor = "multi_thread")]
async fn each_question_has_one_answer_however_the_bot_ends() {
    const ENDS: [&str; 4] = ["KILL", "TERM", "STOP", "KILL"];
    let cluster = Cluster::new(Postgres::shared()).await;
    let settings = [
        ("USER_TURNS_PER_MIN", "1000"),
        ("TURN_QUEUE_PER_CHANNEL", "100"),
        ("SHUTDOWN_TIMEOUT_S", "2"),
    ];
    let names = ["a", "b", "c"];
    let mut processes: Vec<_> = names.map(|name| cluster.start(name, &settings)).into();
    // What is asked before a bot's first session is not looked for.
    connected(&cluster.place).await;
    cluster.noted(1).await;
    #[expect(clippy::disallowed_methods, reason = "a test's own size is no setting")]
    let ends = std::env::var("CLUSTER_ENDS").map_or(ENDS.len(), |ends| ends.parse().unwrap());
    let mut questions = Vec::new();
    let mut paused = None;
    for end in 0..ends {
        let before = questions.len();
        let holder = cluster.holder(&processes).await;
        for number in 0..6_u64 {
            questions.push(cluster.place.ask(cluster.place.help, "is the pump fine?"));
            sleep(Duration::from_millis(40 * number + 7 * end as u64)).await;
        }
        processes[holder].signal(ENDS[end % ENDS.len()]);
        questions.push(cluster.place.ask(cluster.place.help, "and now?"));
        if ENDS[end % ENDS.len()] == "STOP" {
            paused = Some(holder);
        } else {
            processes[holder].ended().await;
            processes[holder] = cluster.start(names[holder], &settings);
        }
        cluster.all_answered(&questions[before..]).await;
        if let Some(paused) = paused.take() {
            processes[paused].signal("CONT");
        }
    }
    cluster.over().await;
    // Whoever was paused has found out by now.
    questions.push(cluster.place.ask(cluster.place.help, "is all well?"));
    cluster.all_answered(&questions).await;
    let answered = cluster.answered();
    for question in &questions {
        let answers = answered.iter().filter(|of| *of == question).count();
        assert_eq!(answers, 1, "{question}");
    }
    assert_eq!(answered.len(), questions.len());
}

/// What a cluster kept goes with a process that has the database alone, and back.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_database_alone_takes_along_what_a_cluster_kept() {
    let cluster = Cluster::new(Postgres::shared()).await;
    let path = |name: &str| cluster.place.stage.folder.path().join(name);
    let (mut first, second) = cluster.two().await;
    cluster.answers("is the pump fine?", "It leaks.").await;
    cluster.over().await;
    drop(second);
    first.signal("TERM");
    first.ended().await;
    let key = std::fs::read(path("a/state/cluster/claims.key")).unwrap();
    let rows = "SELECT count(*) FROM (SELECT FROM clew.state_files UNION ALL SELECT FROM clew.claims) kept";
    assert_ne!(
        query(&cluster.database.url, rows).await,
        [[Some("0".to_owned())]]
    );
    let mut alone = cluster.start("c", &[("CLUSTER", "off")]);
    cluster.answers("still?", "Still.").await;
    assert_eq!(std::fs::read(path("c/state/claims.key")).unwrap(), key);
    assert_eq!(
        query(&cluster.database.url, rows).await,
        [[Some("0".to_owned())]]
    );
    assert_eq!(cluster.identified(), 1, "it resumed");
    alone.signal("TERM");
    alone.ended().await;
    // Its own folder is the cluster's again.
    let again = cluster.start("c", &[]);
    cluster.answers("and now?", "Mended.").await;
    assert_eq!(
        std::fs::read(path("c/state/cluster/claims.key")).unwrap(),
        key
    );
    assert!(!path("c/state/claims.key").exists());
    // What it answered meanwhile is known as answered.
    cluster.over().await;
    let claims = "SELECT count(*) FROM clew.claims";
    assert_eq!(
        query(&cluster.database.url, claims).await,
        [[Some("3".to_owned())]]
    );
    assert_eq!(cluster.said(), ["It leaks.", "Still.", "Mended."]);
    assert_eq!(cluster.identified(), 1);
    drop(again);
}

/// The database's standby is promoted: nothing that was confirmed is lost, nobody is answered twice.
#[tokio::test(flavor = "multi_thread")]
async fn the_databases_standby_goes_on_in_its_place() {
    let mut server = Postgres::own();
    let mut standby = server.standby().await;
    let mut cluster = Cluster::new(&server).await;
    cluster.database.url = cluster.database.url_of_both(&server, &standby);
    let (bot, other) = cluster.two().await;
    cluster.answers("is the pump fine?", "It leaks.").await;
    cluster.asks("since when?", "Since Monday.");
    server.kill();
    cluster.place.ask(cluster.place.help, "who is there?");
    sleep(Duration::from_secs(1)).await;
    standby.promote();
    until("all is answered", async || cluster.said().len() >= 3).await;
    cluster.over().await;
    cluster
        .answers("what did you say first?", "That it leaks.")
        .await;
    assert_eq!(
        cluster.said(),
        ["It leaks.", "Since Monday.", "ok", "That it leaks."]
    );
    let requests = cluster.place.stage.model.requests();
    assert!(requests.last().unwrap().to_string().contains("It leaks."));
    // Whoever stood by has only waited.
    cluster.over().await;
    drop(bot);
    other.wait_for_log(IS_THE_BOT, 1).await;
}

/// What it costs that questions are noted in the database: a tenth of a turn's statements.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_takes_few_statements_more() {
    const TURNS: usize = 30;
    let mut of_turns = Vec::new();
    for on in ["off", "on"] {
        let server = Postgres::own();
        let cluster = Cluster::new(&server).await;
        for sql in LOGGED {
            query(&cluster.database.admin_url, sql).await;
        }
        let settings = [("CLUSTER", on), ("USER_TURNS_PER_MIN", "1000")];
        let _process = cluster.start("a", &settings);
        connected(&cluster.place).await;
        // An answer stands before all about its turn is stored.
        let when_stored = async || loop {
            let found = statements(server.folder());
            sleep(Duration::from_millis(500)).await;
            if statements(server.folder()) == found {
                return found;
            }
        };
        let mut questions = Vec::new();
        let mut before = 0;
        for number in 0..=TURNS {
            questions.push(cluster.place.ask(cluster.place.help, "is the pump fine?"));
            cluster.all_answered(&questions).await;
            if number == 0 {
                before = when_stored().await;
            }
        }
        // A whole number a turn would round the quotient by more than it may be.
        of_turns.push(when_stored().await - before);
    }
    let [off, on] = of_turns.try_into().unwrap();
    assert!(
        on > off && on * 10 <= off * 11,
        "{off} statements in {TURNS} turns, in a cluster {on}"
    );
}

/// A cluster and a process without one exclude each other.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_no_cluster_has_a_database_alone() {
    let cluster = Cluster::new(Postgres::shared()).await;
    let (first, second) = cluster.two().await;
    let mut alone = cluster.start("c", &[("CLUSTER", "off")]);
    alone.refuses(&["in use by another process"]).await;
    drop((first, second));
    let discord = &cluster.place.stage.discord;
    let begun = discord.sessions_begun();
    let alone = cluster.start("c", &[("CLUSTER", "off")]);
    discord.wait_sessions(begun + 1).await.unwrap();
    discord.settled().await.unwrap();
    let other = cluster.start("d", &[]);
    other.wait_for_log("in use by another process", 1).await;
    cluster.answers("is the pump fine?", "It leaks.").await;
    drop(alone);
    other.wait_for_log(IS_THE_BOT, 1).await;
}
