//! What a turn costs with more processes; and whether what dies loses anything of a cluster: three processes
//! of a bot with eight shards, of which one is killed each second, and two database servers, of which the
//! first is killed and the other goes on in its place. Questions are asked all the time, and people opt out.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use clew_simulator::{ChannelKind, Id, Simulator, World};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_postgres::NoTls;
use tokio_util::sync::CancellationToken;

use super::bot::{Bot, amount, block_on, command};
use super::killed::{UNREFUSED, kill, next};
use super::missed::{
    Asked, Guild, THINKS, guilds, keep_asking, print_heads, print_row, replies, wait_quiet,
};
use super::model::Model;
use super::postgres::{Postgres, query};
use super::process::milliseconds;
use super::statements::{LOGGED, statements};

/// Kills, unless `CLEW_KILLS` says otherwise.
const KILLS: u64 = 60;
/// Between two kills, in milliseconds, unless `CLEW_KILL_EACH_MS` says otherwise.
const KILL_EACH_MS: u64 = 1_000;
/// How often a database server is killed, unless `CLEW_PROMOTIONS` says otherwise.
const PROMOTIONS: u64 = 5;
/// Between two questions.
const ASKED_EACH: Duration = Duration::from_millis(20);
const OPTS_OUT_EACH: Duration = Duration::from_secs(1);
/// Discord shows that an interaction failed if it gets no answer in this time; a database is not waited for
/// longer, either.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
/// Between two looks.
const LOOKED_EACH: Duration = Duration::from_millis(200);
/// Between a server's end and the next's, while all is well.
const FAILS_EACH: Duration = Duration::from_secs(5);
/// How long it takes until whoever watches over the servers has another one go on.
const NOTICED_AFTER: Duration = Duration::from_secs(2);
const MACHINES: usize = 3;
const GUILDS: usize = 64;
const SHARDS: u64 = 8;
const LEAVERS: usize = 400;
/// How long the whole may take to go on after a change.
const PATIENCE: Duration = Duration::from_mins(2);
/// Turns before those whose cost is counted, and these.
const WARM: usize = 5;
const TURNS: usize = 50;

pub(crate) fn print() {
    println!("\na turn by how many processes there are, on average of {TURNS}; 0: without CLUSTER");
    println!("| processes | statements | KiB written | CPU, ms |\n|---|---|---|---|");
    for processes in [0, 1, 2, 4] {
        block_on(print_costs(processes));
    }
    let (kills, promotions) = (
        amount("CLEW_KILLS", KILLS),
        amount("CLEW_PROMOTIONS", PROMOTIONS),
    );
    println!(
        "\n{MACHINES} processes, {SHARDS} shards, {GUILDS} servers, a question each {} ms; one process is killed each \
         {} ms, and {promotions} times the database server",
        ASKED_EACH.as_millis(),
        amount("CLEW_KILL_EACH_MS", KILL_EACH_MS)
    );
    print_heads();
    block_on(run(kills, promotions));
}

/// Of the process that is the bot; the others stand by.
async fn print_costs(processes: usize) {
    let mut world = World::new();
    let office = world.guild("Office");
    let ada = world.member(office, "Ada");
    let hall = world.channel(office, ChannelKind::Text, "hall");
    let server = Postgres::own();
    let database = server.fresh_database().await;
    for sql in LOGGED {
        query(&database.admin_url, sql).await;
    }
    let on = if processes == 0 { "off" } else { "on" };
    let settings = [("CLUSTER", on), ("CONTEXT_STORE", &*database.url)];
    let bot = Bot::start_with(world, &settings).await;
    let folder = TempDir::new().unwrap();
    let others = (1..processes).map(|number| {
        let folder = folder.path().join(number.to_string());
        Machine::new(&bot.discord, &bot.model, &folder, &database.url)
    });
    let mut others: Vec<Machine> = others.collect();
    let nodes = "SELECT 1 FROM clew.nodes";
    while processes > 1 && query(&database.admin_url, nodes).await.len() < processes {
        sleep(LOOKED_EACH).await;
    }
    let ask = async |times| {
        for _ in 0..times {
            bot.answer(hall, ada).await;
            bot.rest().await;
        }
    };
    let now = || {
        let process = bot.process();
        (
            statements(server.folder()),
            process.written(),
            process.cpu(),
        )
    };
    ask(WARM).await;
    let before = now();
    ask(TURNS).await;
    let after = now();
    println!(
        "| {processes} | {:.1} | {:.1} | {:.2} |",
        (after.0 - before.0) as f64 / TURNS as f64,
        (after.1 - before.1) as f64 / 1_024.0 / TURNS as f64,
        milliseconds(after.2.saturating_sub(before.2)) / TURNS as f64
    );
    for other in &mut others {
        kill(&mut other.running);
    }
}

async fn run(kills: u64, promotions: u64) {
    let mut world = World::new();
    world.settings.shards = SHARDS;
    // 0 skips the five seconds between two identifies.
    world.settings.max_concurrency = 0;
    let guilds: Arc<Vec<Guild>> = Arc::new(guilds(&mut world, GUILDS));
    let office = world.guild("Office");
    let hall = world.channel(office, ChannelKind::Text, "hall");
    let leavers = (0..LEAVERS).map(|one| world.member(office, &format!("Leaver {one}")));
    let leavers: Vec<Id> = leavers.collect();
    let discord = Simulator::start(world).await.unwrap().patience(PATIENCE);
    let discord = Arc::new(discord);
    let model = Model::start(THINKS).await;
    let servers = Servers::start().await;
    let folder = TempDir::new().unwrap();
    let machine = |number: usize| {
        let folder = folder.path().join(number.to_string());
        Machine::new(&discord, &model, &folder, &servers.url)
    };
    let mut machines: Vec<Machine> = (0..MACHINES).map(machine).collect();
    discord.wait_ready().await.unwrap();
    let asked = Arc::new(Asked::default());
    let asking = {
        let (discord, guilds, asked) = (discord.clone(), guilds.clone(), asked.clone());
        tokio::spawn(async move { keep_asking(&discord, &guilds, &asked, ASKED_EACH).await })
    };
    let over = CancellationToken::new();
    let leaving = opt_out(Arc::clone(&discord), hall, leavers, over.clone());
    let (leaving, watching) = (
        tokio::spawn(leaving),
        tokio::spawn(watch_tenures(servers.url.clone(), over.clone())),
    );
    let failing = tokio::spawn(servers.fail(promotions));
    keep_killing(&mut machines, kills).await;
    let servers = failing.await.unwrap();
    asking.abort();
    over.cancel();
    let (told, back) = (leaving.await.unwrap(), watching.await.unwrap());
    wait_quiet(&discord, &guilds).await;
    let asked = asked.lock().unwrap().clone();
    print_row("cluster", kills, &asked, &replies(&discord, &guilds));
    let stored = servers.opt_outs().await;
    let lost = told.iter().filter(|one| !stored.contains(one)).count();
    println!(
        "{} were told that they have opted out, {lost} of them are not stored; {} tenures, whose number \
         went back {back} times",
        told.len(),
        tenures(&servers.url).await.unwrap()
    );
    for machine in &mut machines {
        kill(&mut machine.running);
    }
}

/// People opt out one after the other. Returns who was told that they have.
async fn opt_out(
    discord: Arc<Simulator>,
    hall: Id,
    leavers: Vec<Id>,
    ended: CancellationToken,
) -> Vec<Id> {
    let mut told = Vec::new();
    for who in leavers {
        if ended
            .run_until_cancelled(sleep(OPTS_OUT_EACH))
            .await
            .is_none()
        {
            break;
        }
        let leaving = async {
            let called = discord.call(who, hall, "privacy opt-out", json!({})).await;
            let asked = called.ok()?.answer().await.ok()?;
            let pressed = discord.press(who, asked.message, "Opt out and erase");
            let answer = pressed.answer().await.ok()?;
            answer
                .text()
                .starts_with("You have opted out.")
                .then_some(who)
        };
        told.extend(timeout(ANSWERED_WITHIN, leaving).await.ok().flatten());
    }
    told
}

/// Returns how often the count of tenures went back.
async fn watch_tenures(url: String, ended: CancellationToken) -> usize {
    let (mut last, mut back) = (0, 0);
    while ended
        .run_until_cancelled(sleep(LOOKED_EACH))
        .await
        .is_some()
    {
        if let Some(now) = tenures(&url).await {
            back += usize::from(now < last);
            last = now;
        }
    }
    back
}

/// None while no server answers.
async fn tenures(url: &str) -> Option<i64> {
    let connecting = timeout(ANSWERED_WITHIN, tokio_postgres::connect(url, NoTls));
    let (client, connection) = connecting.await.ok()?.ok()?;
    tokio::spawn(connection);
    let sql = "SELECT epoch FROM clew.leases";
    let row = timeout(ANSWERED_WITHIN, client.query_one(sql, &[])).await;
    row.ok()?.ok()?.try_get(0).ok()
}

/// A database server, and one that confirms its commits.
struct Servers {
    first: Postgres,
    standby: Postgres,
    /// Names both, with the role that owns the database.
    url: String,
}

impl Servers {
    async fn start() -> Self {
        let first = Postgres::own();
        let standby = first.standby().await;
        let database = first.fresh_database().await;
        Self {
            url: database.url_of_both(&first, &standby),
            first,
            standby,
        }
    }

    /// As if the first one's machine died, so many times: the standby goes on, and gets one of its own.
    async fn fail(mut self, times: u64) -> Self {
        for _ in 0..times {
            sleep(FAILS_EACH).await;
            self.first.kill();
            sleep(NOTICED_AFTER).await;
            self.standby.promote();
            let port = self.first.port();
            let next = self.standby.standby_at(Some(port)).await;
            self.first = std::mem::replace(&mut self.standby, next);
        }
        self
    }

    async fn opt_outs(&self) -> Vec<Id> {
        let rows = query(&self.url, "SELECT user_id FROM clew.opt_outs").await;
        let ids = rows.into_iter().flatten().flatten();
        ids.map(|id| Id(id.parse().unwrap())).collect()
    }
}

/// A process on a machine of its own.
pub(crate) struct Machine {
    start: Command,
    pub(crate) running: Child,
}

impl Machine {
    /// In a new folder, with a database that it shares.
    pub(crate) fn new(discord: &Simulator, model: &Model, folder: &Path, database: &str) -> Self {
        fs::create_dir(folder).unwrap();
        let mut start = command(discord, model, folder);
        start.env("CLUSTER", "on").envs(UNREFUSED);
        start.env("CONTEXT_STORE", database);
        start.stderr(File::create(folder.join("stderr")).unwrap());
        let running = start.spawn().unwrap();
        Self { start, running }
    }

    /// Kills it, and starts another one right after.
    pub(crate) fn again(&mut self) {
        kill(&mut self.running);
        self.running = self.start.spawn().unwrap();
    }
}

/// One of them is ended each time.
async fn keep_killing(machines: &mut [Machine], kills: u64) {
    let mut seed = 1;
    let each = Duration::from_millis(amount("CLEW_KILL_EACH_MS", KILL_EACH_MS));
    for _ in 0..kills {
        sleep(each).await;
        let meant = usize::try_from(next(&mut seed)).unwrap() % machines.len();
        machines[meant].again();
    }
}
