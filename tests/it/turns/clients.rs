//! Programs of members: who gets a token, what it opens, when it is over, and what they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clew::runs::MOST_CONNECTIONS;
use clew_context::model::UnixMillis;
use clew_simulator::{ChannelKind, Draft, Id, OverwriteOf, Permissions, World};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::{Place, Seeds, assert_in_order, place_with};
use crate::monitor::own_address;
use crate::support::START;
use crate::support::bot::{Bot, details};
use crate::support::client::{Client, MODERN, given};

pub(super) const NOTHING: &str = "There is nothing there that you may read.";
const TOOLS: [&str; 5] = [
    "list_channels",
    "read_thread",
    "search",
    "read_context",
    "why",
];

/// A channel that only a role reads, beside the usual one; what Ada has, Boris lacks.
pub(super) struct Town {
    pub(super) closed: Id,
    adult: Id,
    pub(super) role: Id,
}

impl Place {
    /// Somebody's token, as `/connect new` shows it.
    pub(super) async fn token(&self, who: Id, client: &str) -> String {
        let text = self
            .command(who, "connect new", json!({ "client": client }))
            .await;
        let token = text.split("```").nth(1);
        token.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
    }

    /// Boris, who manages the server for a moment, has it as the options say.
    pub(super) async fn settles(&self, options: Value) {
        let discord = &self.stage.discord;
        let role = discord.role(self.guild, "manager", Permissions::MANAGE_GUILD);
        discord.set_role(self.guild, self.boris, role, true);
        self.command(self.boris, "settings set", options).await;
        discord.set_role(self.guild, self.boris, role, false);
    }

    pub(super) async fn lets_programs_read(&self) {
        self.settles(json!({ "programs": "on" })).await;
    }

    pub(super) async fn command(&self, who: Id, command: &str, options: Value) -> String {
        self.command_in(self.channel, who, command, options).await
    }

    pub(super) async fn command_in(
        &self,
        channel: Id,
        who: Id,
        command: &str,
        options: Value,
    ) -> String {
        let discord = &self.stage.discord;
        let called = discord.call(who, channel, command, options).await;
        let shown = called.unwrap().answer().await.unwrap();
        assert!(shown.ephemeral);
        let embeds = shown.embeds.iter().map(ToString::to_string);
        shown.content + &embeds.collect::<String>()
    }

    pub(super) fn link(&self, channel: Id, message: Id) -> String {
        format!(
            "https://discord.com/channels/{}/{channel}/{message}",
            self.guild
        )
    }
}

pub(super) fn closed(world: &mut World, seeds: Seeds) -> Town {
    let role = world.role(seeds.guild, "crew", Permissions::NONE);
    world.give_role(seeds.guild, seeds.ada, role);
    let closed = world.channel(seeds.guild, ChannelKind::Text, "engine-room");
    let reads = Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY;
    let us = OverwriteOf::Member(world.bot);
    world.overwrite(closed, us, reads, Permissions::NONE);
    world.overwrite(closed, OverwriteOf::Role(role), reads, Permissions::NONE);
    let everybody = OverwriteOf::Role(seeds.guild);
    world.overwrite(closed, everybody, Permissions::NONE, reads);
    world.seed(closed, seeds.ada, "the boiler has a crack");
    let adult = world.channel(seeds.guild, ChannelKind::Text, "bar");
    world.restrict_age(adult);
    world.seed(adult, seeds.ada, "a crack about sailors");
    world.seed(seeds.channel, seeds.boris, "who mends a crack?");
    Town {
        closed,
        adult,
        role,
    }
}

/// A bot that lets programs in, and Ada's.
async fn town() -> (Place, Town, Bot, Client) {
    town_with(closed).await
}

/// One with something in it.
pub(super) async fn town_with<T>(
    prepare: impl FnOnce(&mut World, Seeds) -> T,
) -> (Place, T, Bot, Client) {
    let address = own_address();
    let listen = address.to_string();
    let (p, town) = place_with(&[("MCP_LISTEN", &listen)], prepare).await;
    let bot = p.start().await;
    p.lets_programs_read().await;
    let token = p.token(p.ada, "editor").await;
    (p, town, bot, Client::new(address, &token))
}

#[tokio::test(flavor = "multi_thread")]
async fn both_generations_are_spoken() {
    let (_p, _, bot, ada) = town().await;
    let listed = |body: &Value| {
        let tools = body["result"]["tools"].as_array().unwrap().clone();
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    });
    let first = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let body: Value = ada.post(&first).send().await.unwrap().json().await.unwrap();
    assert_eq!(body["result"]["protocolVersion"], "2025-11-25");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let told = ada.post(&ready).send().await.unwrap();
    assert_eq!(told.status(), StatusCode::ACCEPTED);
    let body = ada.legacy("tools/list", &json!({})).send().await.unwrap();
    assert_eq!(listed(&body.json().await.unwrap()), TOOLS);
    let call = json!({ "name": "search", "arguments": { "words": "crack" } });
    let old = given(ada.legacy("tools/call", &call).send().await.unwrap()).await;
    assert!(old.as_ref().unwrap().contains("boiler"), "{old:?}");

    let body = ada
        .modern("server/discover", json!({}))
        .send()
        .await
        .unwrap();
    let body: Value = body.json().await.unwrap();
    assert_eq!(body["result"]["supportedVersions"][0], MODERN);
    let body = ada.modern("tools/list", json!({})).send().await.unwrap();
    assert_eq!(listed(&body.json().await.unwrap()), TOOLS);
    assert_eq!(ada.call("search", json!({ "words": "crack" })).await, old);
    // The server sends nothing by itself, and there are no sessions to end.
    let url = ada.bare(&json!({})).build().unwrap().url().clone();
    let got = reqwest::get(url).await.unwrap();
    assert_eq!(got.status(), StatusCode::METHOD_NOT_ALLOWED);
    let lines = bot.stop().await;
    let served = details(&lines, "served");
    assert_eq!(served.len(), 2);
    assert_eq!(
        [&served[0]["tool"], &served[0]["by"], &served[0]["outcome"]],
        [&json!("search"), &json!("token"), &json!("ok")]
    );
}

/// rmcp, the SDK that models' tools are called with.
#[cfg(feature = "mcp")]
#[tokio::test(flavor = "multi_thread")]
async fn another_client_finds_the_tools() {
    let (_p, _, bot, ada) = town().await;
    let mut entry = ada.entry();
    entry["allow"] = json!(TOOLS);
    let file = json!({ "mcpServers": { "clew": entry } }).to_string();
    let config = clew_mcp::Config::parse(&file, &|_| None).unwrap();
    let checked = clew_mcp::check("clew", &config.servers["clew"])
        .await
        .unwrap();
    assert_eq!(
        (checked.version.as_str(), &checked.problems),
        (MODERN, &vec![])
    );
    let names = checked.tools.iter().map(|tool| tool.remote.to_string());
    let (mut names, mut tools) = (names.collect::<Vec<_>>(), TOOLS);
    names.sort_unstable();
    tools.sort_unstable();
    assert_eq!(names, tools);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_nothing_is_read() {
    let (_p, _, bot, ada) = town().await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let challenged = |response: reqwest::Response, challenge: &str| {
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.headers()["www-authenticate"], challenge);
    };
    challenged(ada.bare(&list).send().await.unwrap(), "Bearer");
    let wrong = ada.bare(&list).bearer_auth("clew_0").send().await;
    challenged(wrong.unwrap(), "Bearer error=\"invalid_token\"");
    for (origin, status) in [
        ("http://localhost:6274", StatusCode::OK),
        ("http://127.0.0.1", StatusCode::OK),
        ("https://evil.example", StatusCode::FORBIDDEN),
        ("http://localhost.evil.example", StatusCode::FORBIDDEN),
        ("null", StatusCode::FORBIDDEN),
    ] {
        let sent = ada
            .post(&list)
            .header("origin", origin)
            .send()
            .await
            .unwrap();
        assert_eq!(sent.status(), status, "{origin}");
    }
    let large = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(70_000) });
    let sent = ada.post(&large).send().await.unwrap();
    assert_eq!(sent.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        bot.stop()
            .await
            .iter()
            .filter(|one| one["event"] == "served")
            .count(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tool_reads_what_its_member_may_read() {
    let (p, town, bot, ada) = town().await;
    let boris = p.token(p.boris, "editor").await;
    let boris = Client::new(ada.address(), &boris);
    let mine = ada.call("list_channels", json!({})).await.unwrap();
    assert!(
        mine.contains("#help") && mine.contains("#engine-room"),
        "{mine}"
    );
    assert!(!mine.contains("#bar"), "{mine}");
    let his = boris.call("list_channels", json!({})).await.unwrap();
    assert!(
        his.contains("#help") && !his.contains("engine-room"),
        "{his}"
    );
    for channel in [town.closed.to_string(), "#engine-room".to_owned()] {
        let read = json!({ "channel": channel });
        let page = ada.call("read_thread", read.clone()).await.unwrap();
        assert_in_order(&page, &["#engine-room", "Ada", "the boiler has a crack"]);
        assert!(!page.contains("[msg:"), "{page}");
        assert_eq!(
            boris.call("read_thread", read.clone()).await,
            Err(NOTHING.to_owned())
        );
        let context = ada.call("read_context", read.clone()).await.unwrap();
        assert_in_order(&context, &["Context:", "the boiler has a crack"]);
        assert_eq!(
            boris.call("read_context", read).await,
            Err(NOTHING.to_owned())
        );
    }
    let bar = json!({ "channel": town.adult.to_string() });
    assert_eq!(
        ada.call("read_thread", bar.clone()).await,
        Err(NOTHING.to_owned())
    );
    assert_eq!(ada.call("read_context", bar).await, Err(NOTHING.to_owned()));
    let found = ada
        .call("search", json!({ "words": "crack" }))
        .await
        .unwrap();
    assert!(
        found.contains("boiler") && found.contains("mends"),
        "{found}"
    );
    assert!(!found.contains("sailors"), "{found}");
    let found = boris
        .call("search", json!({ "words": "crack" }))
        .await
        .unwrap();
    assert!(
        found.contains("mends") && !found.contains("boiler"),
        "{found}"
    );
    // An answer there, and what it was made from.
    p.post(town.closed, p.ada, p.to_us("what is broken?"));
    p.answer(town.closed, 1).await;
    // What it was made from is stored by then.
    bot.stop().await;
    let bot = p.stage.start().await;
    let answer = p.stage.discord.answers(town.closed)[0].id;
    let why = json!({ "answer": p.link(town.closed, answer) });
    let told = ada.call("why", why.clone()).await.unwrap();
    assert_in_order(
        &told,
        &["What this answer was made from", "message", "Model:"],
    );
    assert_eq!(boris.call("why", why).await, Err(NOTHING.to_owned()));
    for wrong in ["", "yes", "https://discord.com/channels/1/2/3", "3"] {
        let wrong = json!({ "answer": wrong });
        assert!(ada.call("why", wrong).await.is_err());
    }
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_names_what_is_asked_about() {
    let (p, _, bot, ada) = town().await;
    let asked = p.post(p.channel, p.boris, "is the pump safe?");
    p.post(p.channel, p.ada, Draft::new("it is").reply_to(asked));
    p.seen().await;
    let link = json!({ "channel": p.link(p.channel, asked), "question": "and now?" });
    let context = ada.call("read_context", link.clone()).await.unwrap();
    assert!(context.contains("is the pump safe?"), "{context}");
    let page = ada.call("read_thread", link).await.unwrap();
    assert!(
        page.contains("is the pump safe?") && !page.contains("it is"),
        "{page}"
    );
    let elsewhere = json!({ "channel": format!("https://discord.com/channels/1/{}/2", p.channel) });
    assert_eq!(
        ada.call("read_thread", elsewhere).await,
        Err(NOTHING.to_owned())
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_taken_away_is_missed_at_the_next_call() {
    let (p, town, bot, ada) = town().await;
    let read = json!({ "channel": town.closed.to_string() });
    assert!(ada.call("read_thread", read.clone()).await.is_ok());
    p.stage.discord.set_role(p.guild, p.ada, town.role, false);
    assert_eq!(
        ada.call("read_thread", read.clone()).await,
        Err(NOTHING.to_owned())
    );
    p.stage.discord.set_role(p.guild, p.ada, town.role, true);
    assert!(ada.call("read_thread", read.clone()).await.is_ok());
    // A timeout takes the right to manage threads, for one.
    let hour = 3_600_000;
    for (until, is_over) in [(hour, false), (-hour, true)] {
        p.stage.discord.world(|world| {
            let until = world.now_ms() + until;
            world.time_out(p.guild, p.ada, Some(until));
        });
        assert_eq!(ada.call("read_thread", read.clone()).await.is_ok(), is_over);
    }
    p.stage.discord.leave(p.guild, p.ada);
    assert!(ada.call("read_thread", read).await.is_err());
    // A token does not wait for its member to come back.
    assert_eq!(ada.status().await, StatusCode::UNAUTHORIZED);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opted_out_is_not_read_and_reads_nothing() {
    let (p, town, bot, ada) = town().await;
    let boris = p.token(p.boris, "editor").await;
    let boris = Client::new(ada.address(), &boris);
    p.opts_out(p.boris).await;
    assert_eq!(boris.status().await, StatusCode::UNAUTHORIZED);
    let refused = p
        .command(p.boris, "connect new", json!({ "client": "x" }))
        .await;
    assert!(refused.contains("opted out"), "{refused}");
    let help = json!({ "channel": p.channel.to_string() });
    for tool in ["read_thread", "read_context"] {
        let read = ada.call(tool, help.clone()).await.unwrap();
        assert!(!read.contains("mends"), "{read}");
    }
    let found = ada
        .call("search", json!({ "words": "crack" }))
        .await
        .unwrap();
    assert!(
        found.contains("boiler") && !found.contains("mends"),
        "{found}"
    );
    // Who is blocked reads nothing either.
    let closed = json!({ "channel": town.closed.to_string() });
    assert!(ada.call("read_thread", closed.clone()).await.is_ok());
    let discord = &p.stage.discord;
    let role = discord.role(p.guild, "moderator", Permissions::MODERATE_MEMBERS);
    discord.set_role(p.guild, p.boris, role, true);
    let blocked = json!({ "member": p.ada.to_string() });
    p.command(p.boris, "block member", blocked).await;
    assert!(ada.call("read_thread", closed).await.is_err());
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_few_listed_taken_back_and_erased() {
    let (p, _, bot, ada) = town().await;
    for number in 1..MOST_CONNECTIONS {
        p.token(p.ada, &format!("program {number}")).await;
    }
    let full = p
        .command(p.ada, "connect new", json!({ "client": "more" }))
        .await;
    assert!(full.contains("5 programs already"), "{full}");
    let listed = p.command(p.ada, "connect list", json!({})).await;
    assert_in_order(&listed, &["editor", "Works", "program 1", "program 4"]);
    assert_eq!(ada.status().await, StatusCode::OK);
    let kept = p.command(p.ada, "privacy show", json!({})).await;
    assert!(kept.contains("5 tokens of programs"), "{kept}");
    let other = json!({ "client": "editor" });
    let kept = p.command(p.boris, "connect list", json!({})).await;
    assert_eq!(kept, "No program reads as you.");
    let none = p.command(p.boris, "connect revoke", other.clone()).await;
    assert!(none.contains("No program"), "{none}");
    p.command(p.ada, "connect revoke", other).await;
    assert_eq!(ada.status().await, StatusCode::UNAUTHORIZED);
    // Not even after a kill: it is written by then.
    let state = p.stage.state().join("connections.json");
    let written = std::fs::read_to_string(&state).unwrap();
    assert!(
        !written.contains("editor") && written.contains("program 1"),
        "{written}"
    );
    p.confirms(p.ada, "privacy erase", "Erase everything").await;
    let listed = p.command(p.ada, "connect list", json!({})).await;
    assert_eq!(listed, "No program reads as you.");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_outlives_a_restart_and_ends_after_thirty_days() {
    let (address, clock) = (own_address(), Arc::new(AtomicI64::new(START.0)));
    let listen = address.to_string();
    let (mut p, _) = place_with(&[("MCP_LISTEN", &listen)], closed).await;
    let shown = Arc::clone(&clock);
    p.stage.clock = Arc::new(move || UnixMillis(shown.load(Ordering::SeqCst)));
    let bot = p.start().await;
    p.lets_programs_read().await;
    let ada = Client::new(address, &p.token(p.ada, "editor").await);
    bot.stop().await;
    let bot = p.stage.start().await;
    let days = |days: i64| START.0 + days * 86_400_000;
    for (at, status) in [
        (days(29), StatusCode::OK),
        (days(31), StatusCode::UNAUTHORIZED),
    ] {
        clock.store(at, Ordering::SeqCst);
        assert_eq!(ada.status().await, status);
    }
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_calls_so_often_in_a_minute() {
    let (_p, _, bot, ada) = town().await;
    for _ in 0..20 {
        assert!(ada.call("list_channels", json!({})).await.is_ok());
    }
    for _ in 0..3 {
        let refused = ada.call("list_channels", json!({})).await.unwrap_err();
        assert!(refused.contains("20 calls of a member"), "{refused}");
    }
    // Of those that are too many telemetry has one a minute.
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "served").len(), 21);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_own_program_comes_through_a_socket() {
    let (p, _) = place_with(&[("MCP_LISTEN", "socket")], closed).await;
    let bot = p.stage.start().await;
    let path = p.stage.state().join("mcp.sock");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let mut lines = Vec::new();
    for who in [p.ada, p.boris] {
        let mut bot = BufReader::new(UnixStream::connect(&path).await.unwrap());
        let first = json!({ "user": who.to_string(), "guild": p.guild.to_string() });
        let params = json!({ "name": "list_channels" });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let sent = format!("{first}\n{call}\n");
        bot.write_all(sent.as_bytes()).await.unwrap();
        // Who has asked all still gets the answers.
        bot.shutdown().await.unwrap();
        let mut line = String::new();
        bot.read_line(&mut line).await.unwrap();
        lines.push(line);
    }
    assert!(
        lines[0].contains("engine-room") && !lines[1].contains("engine-room"),
        "{lines:?}"
    );
    assert!(lines[1].contains("help"), "{lines:?}");
    // One too many is told so.
    let mut open = Vec::new();
    let first = json!({ "user": p.ada.to_string(), "guild": p.guild.to_string() });
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    while open.len() < 9 {
        let mut bot = BufReader::new(UnixStream::connect(&path).await.unwrap());
        // The ninth may be gone before it says anything.
        let _ = bot.write_all(format!("{first}\n{ping}\n").as_bytes()).await;
        let mut line = String::new();
        bot.read_line(&mut line).await.unwrap();
        let is_refused = line.contains("Too many programs");
        // Those before may just be going.
        if !is_refused || open.len() == 8 {
            assert_eq!(is_refused, open.len() == 8, "{line}");
            open.push(bot);
        }
    }
    // Without an address nobody is offered a token.
    let registered = p.stage.discord.wait_request("PUT", "/commands", 1).await;
    let registered = format!("{:?}", registered.unwrap());
    assert!(registered.contains("/commands") && !registered.contains("Programs of yours"));
    drop(open);
    let served = details(&bot.stop().await, "served");
    assert!(served.len() == 2 && served.iter().all(|one| one["by"] == "socket"));
}
