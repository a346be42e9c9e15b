//! Clients of other people's read as a member (`tests/mcp_clients`): `.ci/mcp` installs them and
//! says where in `NAMED_CLIENTS`, a list as PATH is.

use std::env;
use std::process::Stdio;

use clew_simulator::{Id, World};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use super::clients::{Town, closed, town_with};
use super::{Place, Seeds};
use crate::architecture::root;

const SCRIPTS: [&str; 3] = ["sdk.py", "inspector.py", "agent.py"];

/// The usual town, and for each client somebody of the crew: each has calls of their own.
fn crewed(world: &mut World, seeds: Seeds) -> (Town, [Id; SCRIPTS.len()]) {
    let town = closed(world, seeds);
    let crew = SCRIPTS.map(|script| world.member(seeds.guild, script));
    for one in crew {
        world.give_role(seeds.guild, one, town.role);
    }
    (town, crew)
}

/// Runs a client's script to its end, and has the role given and taken as it says.
async fn tried(p: &Place, town: &Town, script: &str, who: Id, variables: &[(&str, String)]) {
    #[expect(
        clippy::disallowed_methods,
        reason = "where the clients are comes from .ci/mcp"
    )]
    let [named, path] = ["NAMED_CLIENTS", "PATH"].map(|name| env::var(name).expect("run .ci/mcp"));
    let mut script = Command::new("python3")
        .arg(root().join("tests/mcp_clients").join(script))
        .env("PATH", format!("{named}:{path}"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(variables.iter().map(|(name, value)| (*name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(script.stdout.take().unwrap()).lines();
    let mut told = script.stdin.take().unwrap();
    while let Some(line) = said.next_line().await.unwrap() {
        let is_given = match line.as_str() {
            "give" => true,
            "take" => false,
            _ => {
                #[expect(clippy::print_stdout, reason = "whoever runs it reads what was tried")]
                {
                    println!("{line}");
                }
                continue;
            }
        };
        p.stage.discord.set_role(p.guild, who, town.role, is_given);
        told.write_all(b"done\n").await.unwrap();
    }
    assert!(script.wait().await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the clients come from registries: run .ci/mcp"]
async fn named_clients_read_as_their_member() {
    let (p, (town, crew), bot, ada) = town_with(crewed).await;
    let asked = p.post(town.closed, p.ada, p.to_us("what is broken?"));
    p.answer(town.closed, 1).await;
    // What it was made from is stored by then.
    bot.stop().await;
    let answer = p.stage.discord.answers(town.closed)[0].id;
    for (script, who) in SCRIPTS.into_iter().zip(crew) {
        // Each has a minute's searches.
        let bot = p.stage.start().await;
        let variables = [
            ("CLEW_URL", format!("http://{}/mcp", ada.address())),
            ("CLEW_TOKEN", p.token(who, "editor").await),
            ("CLEW_ASKED", p.link(town.closed, asked)),
            ("CLEW_ANSWER", p.link(town.closed, answer)),
            ("CLEW_PROGRAM", env!("CARGO_BIN_EXE_clew").to_owned()),
            ("CLEW_STATE_DIR", p.stage.state().display().to_string()),
            ("CLEW_USER", who.to_string()),
            ("CLEW_GUILD", p.guild.to_string()),
        ];
        tried(&p, &town, script, who, &variables).await;
        bot.stop().await;
    }
}
