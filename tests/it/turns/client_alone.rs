//! The operator's own program by `clew mcp serve`: without a bot, beside one that lets none in, and through one.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use clew_simulator::{ChannelKind, Draft, Fault, Id, OverwriteOf, Permissions};
use serde_json::{Value, json};

use super::clients::{NOTHING, closed};
use super::{Place, assert_in_order, place_with};
use crate::support::bot::details;
use crate::support::client::said;

/// What the bot needs and its operator's program does not.
const OF_THE_BOT: [&str; 2] = ["LLM_BASE_URL", "LLM_MODEL"];

/// A running `clew mcp serve` whose input stays open; killed when dropped.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(p: &Place, who: Id, extra: &[(&str, &str)]) -> Self {
        Self::of(p, (who, p.guild), extra)
    }

    fn of(p: &Place, (who, guild): (Id, Id), extra: &[(&str, &str)]) -> Self {
        let settings = p.stage.settings().iter();
        let settings = settings.map(|(name, value)| (name.as_str(), value.as_str()));
        let settings = settings.filter(|(name, _)| !OF_THE_BOT.contains(name));
        let (who, guild) = (who.to_string(), guild.to_string());
        let mut child = Command::new(env!("CARGO_BIN_EXE_clew"))
            .args(["mcp", "serve", "--as", &who, "--guild", &guild])
            .env_clear()
            .envs(settings.chain(extra.iter().copied()))
            .current_dir(p.stage.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Self {
            child,
            input,
            output: BufReader::new(output),
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?} {:?}", self.ends()))
    }

    /// What a tool says, or why it says nothing.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, String> {
        let body = self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        );
        said(&body)
    }

    fn reads(&mut self, channel: Id) -> Result<String, String> {
        self.call("read_thread", &json!({ "channel": channel.to_string() }))
    }

    /// Its exit code once its input has ended, and what it told its operator.
    fn ends(&mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let mut told = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut told).unwrap();
        (self.child.wait().unwrap().code(), told)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names and contents of all files below a folder.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.push((path.display().to_string(), bytes));
            }
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_bot_a_member_reads_what_they_may_and_nothing_is_written() {
    let (p, town) = place_with(&[], closed).await;
    let bot = p.start().await;
    p.post(town.closed, p.ada, p.to_us("what is broken?"));
    p.answer(town.closed, 1).await;
    bot.stop().await;
    let answer = p.stage.discord.answers(town.closed)[0].id;
    let why = json!({ "answer": p.link(town.closed, answer) });
    p.stage.discord.clear_requests();
    let before = files(p.stage.folder.path());

    let mut ada = Program::start(&p, p.ada, &[]);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    });
    let body = ada.ask("initialize", &params);
    assert_eq!(body["result"]["protocolVersion"], "2025-11-25");
    let body = ada.ask("tools/list", &json!({}));
    assert_eq!(body["result"]["tools"].as_array().unwrap().len(), 5);
    let calls = [
        ("list_channels", json!({})),
        ("read_thread", json!({ "channel": town.closed.to_string() })),
        ("search", json!({ "words": "crack" })),
        ("read_context", json!({ "channel": "#engine-room" })),
        ("why", why.clone()),
    ];
    let told = calls
        .clone()
        .map(|(tool, given)| ada.call(tool, &given).unwrap());
    let [listed, page, found, context, receipt] = &told;
    assert!(
        listed.contains("#help") && listed.contains("#engine-room") && !listed.contains("#bar"),
        "{listed}"
    );
    assert_in_order(page, &["#engine-room", "Ada", "the boiler has a crack"]);
    assert!(
        found.contains("boiler") && found.contains("mends") && !found.contains("sailors"),
        "{found}"
    );
    assert_in_order(context, &["Context:", "Ada: the boiler has a crack"]);
    assert_in_order(receipt, &["What this answer was made from", "message"]);

    let mut boris = Program::start(&p, p.boris, &[]);
    let listed = boris.call("list_channels", &json!({})).unwrap();
    assert!(
        listed.contains("#help") && !listed.contains("engine-room"),
        "{listed}"
    );
    let nothing = Err(NOTHING.to_owned());
    assert_eq!(boris.reads(town.closed), nothing);
    assert_eq!(boris.call("why", &why), nothing);
    let found = boris.call("search", &json!({ "words": "crack" })).unwrap();
    assert!(
        found.contains("mends") && !found.contains("boiler"),
        "{found}"
    );
    for program in [&mut ada, &mut boris] {
        let (code, told) = program.ends();
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains("\"event\":\"served\""), "{told}");
    }
    assert!(
        files(p.stage.folder.path()) == before,
        "something was written"
    );
    let requests = p.stage.discord.requests();
    assert!(requests.iter().all(|one| one.method == "GET"));

    // A bot tells the same.
    let bot = p.stage.start_with(&[("MCP_LISTEN", "socket")]).await;
    let mut ada = Program::start(&p, p.ada, &[]);
    let unframed = |text: String| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.contains("discord-context"));
        lines.map(str::to_owned).collect()
    };
    for ((tool, given), alone) in calls.into_iter().zip(told) {
        let told = ada.call(tool, &given).unwrap();
        assert_eq!(unframed(told), unframed(alone), "{tool}");
    }
    assert_eq!(details(&bot.stop().await, "served").len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_are_asked_for_at_each_call() {
    let (p, (town, thread, old)) = place_with(&[], |world, seeds| {
        let old = seeds.thread(world, "pump");
        world.seed(old, seeds.boris, "the seal is worn");
        world.set_archived(old, true, false);
        let kind = ChannelKind::PrivateThread;
        let thread = world.thread(seeds.channel, kind, "secret", seeds.ada);
        world.join_thread(thread, world.bot);
        world.seed(thread, seeds.ada, "the key is under the mat");
        (closed(world, seeds), thread, old)
    })
    .await;
    p.start().await.stop().await;
    // A bot that was killed leaves its socket.
    drop(UnixListener::bind(p.stage.state().join("mcp.sock")).unwrap());
    let discord = &p.stage.discord;
    let nothing = Err(NOTHING.to_owned());
    let mut ada = Program::start(&p, p.ada, &[]);
    let mut boris = Program::start(&p, p.boris, &[]);
    assert!(ada.reads(town.closed).is_ok());
    discord.set_role(p.guild, p.ada, town.role, false);
    assert_eq!(ada.reads(town.closed), nothing);
    discord.set_role(p.guild, p.ada, town.role, true);
    assert!(ada.reads(town.closed).is_ok());
    // A private thread is for who is in it.
    assert!(ada.reads(thread).unwrap().contains("mat"));
    assert_eq!(boris.reads(thread), nothing);
    // An archived one is read where it is named.
    assert!(ada.reads(old).unwrap().contains("worn"));
    // A channel that is closed to somebody, and one that is opened to them.
    let reads = Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY;
    let [ada_is, boris_is] = [p.ada, p.boris].map(OverwriteOf::Member);
    discord.world(|world| {
        world.overwrite(town.closed, ada_is, Permissions::NONE, reads);
        world.overwrite(town.closed, boris_is, reads, Permissions::NONE);
    });
    assert_eq!(ada.reads(town.closed), nothing);
    assert!(boris.reads(town.closed).is_ok());
    // What Discord does not tell is no.
    discord.fault(Fault::status("GET", "/threads/active", 500, 0, "broken"));
    assert!(boris.reads(town.closed).is_err());
    discord.leave(p.guild, p.boris);
    assert!(boris.reads(p.channel).is_err());
}

/// The bot runs, but lets no program in; what it stores counts at the next call.
async fn what_is_stored_counts(store: impl FnOnce(&str) -> String) {
    let (mut p, town) = place_with(&[], closed).await;
    let store = store(&p.stage.folder.path().display().to_string());
    p.stage.set("CONTEXT_STORE", &store);
    p.start().await.stop().await;
    let mut ada = Program::start(&p, p.ada, &[]);
    let read = ada.reads(p.channel).unwrap();
    assert!(read.contains("who mends a crack?"), "{read}");
    // It keeps no bot from starting.
    let bot = p.stage.start().await;
    p.opts_out(p.boris).await;
    for tool in ["read_thread", "read_context"] {
        let help = json!({ "channel": p.channel.to_string() });
        let read = ada.call(tool, &help).unwrap();
        assert!(!read.contains("mends"), "{read}");
    }
    assert!(ada.reads(town.closed).is_ok());
    let silent = json!({ "channel": town.closed.to_string(), "mode": "off" });
    p.settles(silent).await;
    assert_eq!(ada.reads(town.closed), Err(NOTHING.to_owned()));
    let discord = &p.stage.discord;
    let role = discord.role(p.guild, "moderator", Permissions::MODERATE_MEMBERS);
    discord.set_role(p.guild, p.boris, role, true);
    let blocked = json!({ "member": p.ada.to_string() });
    p.command(p.boris, "block member", blocked).await;
    assert!(ada.reads(p.channel).is_err());
    let (code, told) = ada.ends();
    assert_eq!(code, Some(0), "{told}");
    let served = bot.stop().await;
    assert!(served.iter().all(|line| line["event"] != "served"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_sqlite_holds_counts() {
    what_is_stored_counts(|folder| format!("sqlite:{folder}/clew%20?#.db")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_files_hold_counts() {
    what_is_stored_counts(|folder| format!("files:{folder}/context")).await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn what_postgresql_holds_counts() {
    let server = crate::support::postgres::Postgres::shared();
    let database = server.fresh_database().await;
    what_is_stored_counts(|_| database.url.clone()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opts_out_while_they_are_read_is_not_told() {
    let (p, _) = place_with(&[], closed).await;
    p.start().await.stop().await;
    let mut ada = Program::start(&p, p.ada, &[]);
    assert!(ada.reads(p.channel).is_ok());
    let discord = &p.stage.discord;
    let bot = p.stage.start().await;
    p.stage.discord.clear_requests();
    // The page comes when Boris has opted out.
    let path = format!("/channels/{}/messages", p.channel);
    let (held, gate) = Fault::held("GET", &path);
    discord.fault(held.once());
    let reading = tokio::task::spawn_blocking({
        let channel = p.channel;
        move || ada.reads(channel)
    });
    discord.wait_request("GET", &path, 1).await.unwrap();
    p.opts_out(p.boris).await;
    gate.open();
    let read = reading.await.unwrap();
    assert!(
        read.clone()
            .is_err_and(|why| why.contains("changed meanwhile")),
        "{read:?}"
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_it_from_reading_is_said() {
    let (p, _) = place_with(&[], closed).await;
    let refused = |who: (Id, Id), extra: &[(&str, &str)], code: i32, says: &str| {
        let (ended, told) = Program::of(&p, who, extra).ends();
        assert_eq!(ended, Some(code), "{told}");
        assert!(
            told.contains("MCP_LISTEN=socket") && told.contains(says),
            "{told}"
        );
    };
    let ada = (p.ada, p.guild);
    refused(ada, &[], 2, "start the bot (`clew run`) once");
    refused(ada, &[("CONTEXT_STORE", "files:none")], 2, "start the bot");
    p.start().await.stop().await;
    refused(ada, &[("DISCORD_TOKEN", "")], 2, "DISCORD_TOKEN is not set");
    refused(
        ada,
        &[("DISCORD_TOKEN", "x")],
        2,
        "Discord refused the token",
    );
    let stranger = Id(p.ada.0 + 12_345);
    refused((stranger, p.guild), &[], 2, "is no member of server");
    refused((p.ada, stranger), &[], 2, "the bot is not in server");
    let nowhere = [("DISCORD_API_URL", "http://127.0.0.1:1")];
    refused(ada, &nowhere, 1, "connection was refused");
    // A store of another version stays as it is.
    let path = p.stage.folder.path().join("clew.db");
    for (version, says) in [(1, "start the bot"), (1_000, "update the program")] {
        let database = rusqlite::Connection::open(&path).unwrap();
        database
            .pragma_update(None, "user_version", version)
            .unwrap();
        drop(database);
        let before = files(p.stage.folder.path());
        refused(ada, &[], 2, says);
        assert!(files(p.stage.folder.path()) == before);
    }
}

/// What comes is passed on as it comes, not when the input ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_answered_through_the_bot_while_its_input_is_open() {
    let (p, town) = place_with(&[("MCP_LISTEN", "socket")], closed).await;
    let bot = p.start().await;
    let mut ada = Program::start(&p, p.ada, &[("DISCORD_TOKEN", "")]);
    for _ in 0..2 {
        assert!(ada.reads(town.closed).is_ok());
    }
    p.post(town.closed, p.boris, Draft::new("and a leak"));
    p.seen().await;
    assert!(ada.reads(town.closed).unwrap().contains("and a leak"));
    assert_eq!(ada.ends().0, Some(0));
    bot.stop().await;
}
