//! Two processes of one bot that anybody may kill: PostgreSQL, the fake Discord and both processes run for
//! five minutes or as many seconds as `CLEW_SECONDS` says, a question comes each second, and each five
//! seconds it is counted what became of them.

use std::time::Duration;

use clew_simulator::{Simulator, World};
use tempfile::TempDir;
use tokio::time::sleep;

use super::bot::{amount, block_on};
use super::killed::kill;
use super::machines::Machine;
use super::missed::{
    Asked, THINKS, guilds, keep_asking, print_heads, print_row, replies, wait_quiet,
};
use super::model::Model;
use super::postgres::Postgres;

const SECONDS: u64 = 300;
const ASKED_EACH: Duration = Duration::from_secs(1);
const COUNTED_EACH: u64 = 5;
/// How long the processes may take until one of them answers.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) fn print() {
    block_on(run(amount("CLEW_SECONDS", SECONDS)));
}

async fn run(seconds: u64) {
    let mut world = World::new();
    let guilds = guilds(&mut world, 1);
    let discord = Simulator::start(world).await.unwrap().patience(PATIENCE);
    let model = Model::start(THINKS).await;
    let server = Postgres::own();
    let database = server.fresh_database().await;
    let folder = TempDir::new().unwrap();
    let machine = |name| {
        let folder = folder.path().join(name);
        Machine::new(&discord, &model, &folder, &database.url)
    };
    let mut machines = ["one", "two"].map(machine);
    discord.wait_ready().await.unwrap();
    println!("\na question each second; `kill -9` either process whenever you like");
    let asked = Asked::default();
    let mut kills = 0;
    let watching = async {
        for second in 0..seconds {
            for (machine, name) in machines.iter_mut().zip(["one", "two"]) {
                let ended = machine.running.try_wait().unwrap();
                if second == 0 {
                    println!("process {name}: {}", machine.running.id());
                } else if let Some(status) = ended {
                    machine.again();
                    kills += 1;
                    println!(
                        "process {name} has ended ({status}), now {}",
                        machine.running.id()
                    );
                }
            }
            if second == 0 {
                print_heads();
            } else if second % COUNTED_EACH == 0 {
                let asked = asked.lock().unwrap().clone();
                print_row("by hand", kills, &asked, &replies(&discord, &guilds));
            }
            sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = keep_asking(&discord, &guilds, &asked, ASKED_EACH) => unreachable!("it has no end"),
        () = watching => {}
    }
    wait_quiet(&discord, &guilds).await;
    let asked = asked.into_inner().unwrap();
    print_row("at the end", kills, &asked, &replies(&discord, &guilds));
    for machine in &mut machines {
        kill(&mut machine.running);
    }
}
