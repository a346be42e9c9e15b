//! `clew doctor`: each thing that can be wrong is named, with a remedy, and no secret is shown.

use std::collections::BTreeMap;
use std::process::Command;

use clew::app;
use clew::config::Config;
use clew::doctor::{self, Finding, Outcome};
use clew_simulator::{ChannelKind, Id, OverwriteOf, Permissions, World};
use clew_store::Store;

use crate::support::bot::Stage;
use crate::support::model::Behaviour;
#[cfg(feature = "postgres")]
use crate::support::postgres::Postgres;

/// A server in which nothing is wrong.
fn world() -> (World, Id) {
    let mut world = World::new();
    let guild = world.guild("Works");
    world.channel(guild, ChannelKind::Text, "help");
    world.member(guild, "Ada");
    (world, guild)
}

async fn findings(settings: &[(String, String)]) -> Vec<Finding> {
    let config = Config::load(settings.to_vec(), None);
    let mut found = Vec::new();
    doctor::run(config, &mut |finding| found.push(finding)).await;
    found
}

/// The findings about something.
fn of(found: &[Finding], subject: &str) -> Vec<Finding> {
    let of = found.iter().filter(|one| one.subject == subject);
    of.cloned().collect()
}

#[track_caller]
fn assert_one(found: &[Finding], subject: &str, outcome: Outcome, parts: &[&str]) {
    let of = of(found, subject);
    let [one] = of.as_slice() else {
        panic!("{of:?} in {found:?}");
    };
    assert_eq!(one.outcome, outcome, "{one:?}");
    let told = format!("{} {}", one.found, one.remedy.as_deref().unwrap_or(""));
    for part in parts {
        assert!(told.contains(part), "no {part:?} in {told:?}");
    }
    assert_eq!(one.remedy.is_none(), outcome == Outcome::Ok, "{one:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_is_well_it_says_so_and_leaves_nothing_behind() {
    let (world, _) = world();
    let stage = Stage::new(world, &[]).await;
    // The bot makes the store; it is checked beside it, and alone.
    let bot = stage.start().await;
    let beside = findings(stage.settings()).await;
    bot.stop().await;
    assert_one(&beside, "store", Outcome::Ok, &["read; a bot uses it"]);
    let posted = stage.discord.requests().len();
    let asked = stage.model.requests().len();
    let alone = findings(stage.settings()).await;
    assert_one(&alone, "store", Outcome::Ok, &["written and read"]);
    assert_one(&alone, "token", Outcome::Ok, &["application"]);
    assert_one(&alone, "intents", Outcome::Ok, &[]);
    assert_one(&alone, "gateway", Outcome::Ok, &["session starts left"]);
    assert_one(&alone, "clock", Outcome::Ok, &[]);
    assert_one(
        &alone,
        "server",
        Outcome::Ok,
        &["Works: all 1 channels can be read"],
    );
    assert_one(&alone, "model", Outcome::Ok, &["answers, in"]);
    let subjects: Vec<&str> = alone.iter().map(|one| one.subject).collect();
    assert!(subjects.contains(&"disk"), "{subjects:?}");
    // Of the settings it says that two have no effect.
    let mut others = alone.iter().filter(|one| one.subject != "settings");
    assert!(others.all(|one| one.outcome == Outcome::Ok), "{alone:?}");
    assert_eq!(stage.model.requests().len(), asked + 1, "one small request");
    let requests = stage.discord.requests().split_off(posted);
    assert!(requests.iter().all(|request| request.method == "GET"));
    let config = stage.config();
    let (address, folders) = (&config.memory.store, app::folders(&config.memory));
    let store = Store::open(address, &folders, app::system_clock()).await;
    assert_eq!(store.unwrap().departures().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_thing_that_is_wrong_is_told_with_its_remedy() {
    let (mut world, guild) = world();
    world.settings.disallowed_intents = 1 << 15;
    world.settings.session_starts_remaining = 3;
    let staff = world.channel(guild, ChannelKind::Text, "staff");
    let us = world.bot;
    let view = Permissions::VIEW_CHANNEL;
    world.overwrite(staff, OverwriteOf::Member(us), Permissions::NONE, view);
    let stage = Stage::new(world, &[]).await;
    let refusal = r#"{"error":{"message":"bad key"}}"#.to_owned();
    stage
        .model
        .script(Behaviour::Status(401, refusal, Vec::new()));
    let found = findings(stage.settings()).await;
    assert_one(
        &found,
        "intents",
        Outcome::Failed,
        &[
            "Message Content Intent is off",
            "/bot, or set DISCORD_MESSAGE_CONTENT=off",
        ],
    );
    assert_one(
        &found,
        "gateway",
        Outcome::Warning,
        &["3 session starts left"],
    );
    assert_one(
        &found,
        "server",
        Outcome::Ok,
        &["1 of 2 channels can be read; not #staff"],
    );
    assert_one(
        &found,
        "model",
        Outcome::Failed,
        &["refuses the API key", "LLM_API_KEY"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_it_from_looking_is_told_too() {
    let (world, _) = world();
    let stage = Stage::new(world, &[]).await;
    let settings = stage.settings().iter().cloned();
    let mut settings: BTreeMap<String, String> = settings.collect();
    let mut with = async |name: &str, value: &str| {
        let before = settings.insert(name.to_owned(), value.to_owned());
        let pairs: Vec<(String, String)> = settings.clone().into_iter().collect();
        match before {
            Some(before) => settings.insert(name.to_owned(), before),
            None => settings.remove(name),
        };
        findings(&pairs).await
    };
    let found = with("DISCORD_TOKEN", "hush-hush").await;
    assert_one(
        &found,
        "token",
        Outcome::Failed,
        &["Discord refuses it", "Reset Token"],
    );
    assert!(of(&found, "server").is_empty());
    assert!(!format!("{found:?}").contains("hush-hush"));
    let found = with("DISCORD_TOKEN", "").await;
    assert_one(
        &found,
        "token",
        Outcome::Failed,
        &["DISCORD_TOKEN is not set"],
    );
    let found = with("DISCORD_API_URL", "http://127.0.0.1:1").await;
    assert_one(
        &found,
        "token",
        Outcome::Failed,
        &["connection was refused", "DISCORD_API_URL"],
    );
    let found = with("LLM_BASE_URL", "").await;
    assert_one(&found, "model", Outcome::Warning, &["none is set"]);
    let found = with("MEM_MAX_MSGS", "many").await;
    let settings = of(&found, "settings");
    let told = "MEM_MAX_MSGS is \"many\"";
    assert!(settings.iter().any(|one| one.found == told), "{settings:?}");
    // All else is tried.
    for subject in ["token", "server", "model", "store", "disk"] {
        assert!(!of(&found, subject).is_empty(), "{subject} in {found:?}");
    }
    let found = with("LLM_MODEL", "").await;
    let told = "LLM_MODEL is not set";
    assert!(of(&found, "settings").iter().any(|one| one.found == told));
    assert!(of(&found, "model").is_empty(), "{found:?}");
    assert!(!of(&found, "token").is_empty() && !of(&found, "store").is_empty());
    for (name, value, subject) in [
        ("DISCORD_TOKEN", "two words", "token"),
        ("LLM_BASE_URL", "hush", "model"),
        ("CONTEXT_STORE", "redis:x", "store"),
    ] {
        let found = with(name, value).await;
        assert!(of(&found, subject).is_empty(), "{name}: {found:?}");
        let problem = format!("{name} is [set]");
        let problem = if name == "CONTEXT_STORE" {
            "CONTEXT_STORE is \"redis:x\""
        } else {
            &problem
        };
        let settings = of(&found, "settings");
        assert!(
            settings.iter().any(|one| one.found == problem),
            "{settings:?}"
        );
        assert!(found.len() > 3, "{found:?}");
    }
    let found = with("TELEMETRY_DIR", "/proc/none").await;
    let disk = of(&found, "disk");
    assert_eq!(disk[0].outcome, Outcome::Failed, "{disk:?}");
    let file = stage.folder.path().join("no-store.db");
    let text = "no database at all, but long enough to be read as one";
    std::fs::write(&file, text).unwrap();
    let found = with("CONTEXT_STORE", &format!("sqlite:{}", file.display())).await;
    assert_one(&found, "store", Outcome::Failed, &["CONTEXT_STORE"]);
}

/// Servers and channels bear the names that their members gave them.
#[tokio::test(flavor = "multi_thread")]
async fn names_give_no_orders_to_a_terminal() {
    let mut world = World::new();
    let guild = world.guild("Works\u{1b}[31m\u{202E}\nok    token");
    world.channel(guild, ChannelKind::Text, "help");
    world.member(guild, "Ada");
    let stage = Stage::new(world, &[]).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_clew"));
    command
        .arg("doctor")
        .env_clear()
        .current_dir(stage.folder.path());
    command.envs(stage.settings().iter().cloned());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let told = String::from_utf8(output.await.unwrap().stdout).unwrap();
    assert!(
        told.contains("Works[31m ok token: all 1 channels"),
        "{told}"
    );
    assert!(!told.contains(['\u{1b}', '\u{202E}']), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_for_metrics_is_tried() {
    let (world, _) = world();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut stage = Stage::new(world, &[]).await;
    assert_eq!(of(&findings(stage.settings()).await, "metrics"), []);
    stage.set("METRICS_ADDR", &address);
    stage.set("MCP_LISTEN", &address);
    let found = findings(stage.settings()).await;
    let told = [address.as_str(), "in use", "set it to a free port"];
    assert_one(&found, "metrics", Outcome::Failed, &told);
    assert_one(
        &found,
        "programs",
        Outcome::Failed,
        &["MCP_LISTEN", "in use"],
    );
    // A bot that runs from this folder is taken to be the one that has it.
    let _running = app::claim(&stage.config()).unwrap();
    let found = findings(stage.settings()).await;
    assert_one(&found, "metrics", Outcome::Ok, &["a bot runs"]);
    stage.set("METRICS_ADDR", "127.0.0.1:0");
    let found = findings(stage.settings()).await;
    assert_one(&found, "metrics", Outcome::Ok, &["free"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn which_apps_people_write_through_are_in_a_server_is_told() {
    let (mut world, guild) = world();
    let proxy = world.member(guild, "Proxy");
    let listed = format!("77,{proxy}");
    let stage = Stage::new(world, &[("PROXY_APPS", &listed)]).await;
    let found = findings(stage.settings()).await;
    let known = format!("questions wait 1500 ms for copies by PROXY_APPS: {proxy} (in Works); ");
    let other = "in no server that was looked at, as webhooks are: 77";
    assert_one(&found, "proxies", Outcome::Ok, &[&known, other]);
    assert!(stage.discord.requests().len() < 20, "it asks little");
}

/// A page that the disk zeroed, in a database that the bot would still open.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_is_found() {
    let (world, _) = world();
    let stage = Stage::new(world, &[]).await;
    stage.start().await.stop().await;
    let file = stage.folder.path().join("clew.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'messages_gone'";
    let page: u32 = database.query_row(sql, [], |row| row.get(0)).unwrap();
    let page = usize::try_from(page).unwrap();
    drop(database);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(0);
    std::fs::write(&file, &bytes).unwrap();
    let found = findings(stage.settings()).await;
    let remedy = ["is damaged", "clew store import FILE"];
    assert_one(&found, "store", Outcome::Failed, &remedy);
}

/// Row-level security keeps conversations apart for ordinary roles only.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_stands_above_is_warned_of() {
    let database = Postgres::shared().fresh_database().await;
    let (world, _) = world();
    let mut stage = Stage::new(world, &[("CONTEXT_STORE", &database.url)]).await;
    let check = |found: &[Finding], expected: bool| {
        let mut store = of(found, "store").into_iter();
        let told = "its role is a superuser or has BYPASSRLS";
        let warned = store.any(|one| one.outcome == Outcome::Warning && one.found.contains(told));
        assert_eq!(warned, expected, "{found:?}");
        assert!(!format!("{found:?}").contains(&database.url));
    };
    check(&findings(stage.settings()).await, false);
    // Both of an empty database and of one that the bot has used.
    stage.set("CONTEXT_STORE", &database.admin_url);
    check(&findings(stage.settings()).await, true);
    let bot = stage.start().await;
    check(&findings(stage.settings()).await, true);
    bot.stop().await;
    check(&findings(stage.settings()).await, true);
}
