//! `clew mcp check`: what each server of `MCP_CONFIG` gives, and who may use it. `clew mcp
//! serve`: the bot that runs here as a server over stdio.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::anyhow;
use clap::Subcommand;
use serde_json::json;
use tracing::level_filters::LevelFilter;

use super::doctor::line;
use super::exit::{self, Ended, cannot, failed, printed};
use crate::app::{Greeting, SOCKET};
use crate::config::{Config, LogFormat};
use crate::doctor::{self, Outcome};
use crate::telemetry::init_log;
use clew_context::engine::sanitise;
use clew_context::model::{GuildId, UserId};

#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    /// Connect to each server of `MCP_CONFIG`; list its tools and on whose consent they run
    Check,
    /// Let a program read a server over stdin and stdout, through the bot that runs here
    Serve {
        /// The member as whom it reads
        #[arg(long = "as", value_name = "USER")]
        user: u64,
        /// The server
        #[arg(long, value_name = "ID")]
        guild: u64,
    },
}

/// Carries what comes to the bot, and what it answers back. Exit codes: 0 the program went; 1 it
/// went before it read all, or the bot did; 2 no bot runs that lets it in.
fn serve(config: &Config, user: UserId, guild: GuildId) -> Ended {
    let state_dir = &config.state_dir;
    let mut bot = UnixStream::connect(state_dir.join(SOCKET)).map_err(|error| {
        let at = state_dir.display();
        cannot(anyhow!(
            "no bot runs with STATE_DIR={at} and lets programs in ({error}): start `clew run` with \
             MCP_LISTEN=socket first"
        ))
    })?;
    let greeting = json!(Greeting { user, guild }).to_string() + "\n";
    bot.write_all(greeting.as_bytes()).map_err(failed)?;
    let mut to_bot = bot.try_clone().map_err(failed)?;
    let has_gone = Arc::new(AtomicBool::new(false));
    let goes = Arc::clone(&has_gone);
    thread::spawn(move || {
        // It ends with the program, or with the bot: then there is nobody to tell.
        let _ = io::copy(&mut io::stdin().lock(), &mut to_bot);
        goes.store(true, Ordering::SeqCst);
        let _ = to_bot.shutdown(Shutdown::Write);
    });
    printed(io::copy(&mut bot, &mut io::stdout().lock()).map(drop))?;
    Ok(exit::found(has_gone.load(Ordering::SeqCst)))
}

/// Exit codes: 0 all servers give tools; 1 one does not, or the output cannot be written.
pub(super) async fn run(command: &McpCommand, config: &Config) -> Ended {
    if let McpCommand::Serve { user, guild } = command {
        return serve(config, UserId::new(*user), GuildId::new(*guild));
    }
    init_log(LevelFilter::ERROR, LogFormat::Text);
    if config.mcp.is_none() {
        return Err(cannot(anyhow!(
            "MCP_CONFIG is not set: write a file of servers (docs/mcp.md)"
        )));
    }
    let servers = doctor::servers(config).await;
    let mut out = io::stdout().lock();
    let written = servers.iter().try_for_each(|server| {
        line(&mut out, &server.finding)?;
        let mut tools = server.tools.iter();
        tools.try_for_each(|tool| writeln!(out, "      {}", sanitise::line(tool)))
    });
    printed(written)?;
    let mut servers = servers.iter();
    Ok(exit::found(
        servers.all(|one| one.finding.outcome != Outcome::Failed),
    ))
}
