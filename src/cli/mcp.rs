//! `clew mcp check`: what each server of `MCP_CONFIG` gives, and who may use it. `clew mcp
//! serve`: a server over stdio, by the bot that runs here or alone.

use std::io::{self, Read, Write};
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
use crate::app::{AloneServer, Greeting, SOCKET};
use crate::config::{Config, LogFormat};
use crate::doctor::{self, Outcome};
use crate::telemetry::init_log;
use clew_context::engine::sanitise;
use clew_context::model::{GuildId, UserId};

#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    /// Connect to each server of `MCP_CONFIG`; list its tools and on whose consent they run
    Check,
    /// Let a program read a server over stdin and stdout, through the bot that runs here or without
    /// one
    Serve {
        /// The member as whom it reads
        #[arg(long = "as", value_name = "USER")]
        user: u64,
        /// The server
        #[arg(long, value_name = "ID")]
        guild: u64,
    },
}

/// Through the bot that runs here, or alone. Exit codes: 0 the program went; 1 it went before it
/// read all, the bot did, or Discord or the store cannot be asked just now; 2 what a person has to
/// mend.
async fn serve(config: &Config, who: Greeting) -> Ended {
    let path = config.state_dir.join(SOCKET);
    match UnixStream::connect(&path) {
        Ok(bot) => carry(bot, who),
        Err(error) if is_nobody(&error) => alone(config, who).await,
        Err(error) => Err(cannot(error).context(format!(
            "cannot reach the bot at {}: run this as the bot's user",
            path.display()
        ))),
    }
}

/// Whether nobody listens there. A path that is too long keeps the bot from doing so, too.
fn is_nobody(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, InvalidInput, NotADirectory, NotFound};
    let of_nobody = [ConnectionRefused, InvalidInput, NotADirectory, NotFound];
    of_nobody.contains(&error.kind())
}

/// Answers as the bot would, by Discord's REST API.
async fn alone(config: &Config, who: Greeting) -> Ended {
    init_log(config.log.level, config.log.format);
    let begun = Box::pin(AloneServer::begin(config, who)).await;
    let server = begun.map_err(|error| {
        let ended = if error.is_passing() { failed } else { cannot };
        ended(error).context(format!(
            "no bot with STATE_DIR={} lets programs in (`clew run` with MCP_LISTEN=socket), and \
             without one nothing can be read",
            config.state_dir.display()
        ))
    })?;
    let (bot, ours) = UnixStream::pair().map_err(failed)?;
    ours.set_nonblocking(true).map_err(failed)?;
    let ours = tokio::net::UnixStream::from_std(ours).map_err(failed)?;
    let serving = tokio::spawn(server.serve(ours));
    let carried = tokio::task::spawn_blocking(move || carry(bot, who)).await;
    serving.abort();
    carried.map_err(failed)?
}

/// Carries what comes to the bot, and what it answers back.
fn carry(mut bot: UnixStream, who: Greeting) -> Ended {
    let greeting = json!(who).to_string() + "\n";
    bot.write_all(greeting.as_bytes()).map_err(failed)?;
    let mut to_bot = bot.try_clone().map_err(failed)?;
    let has_gone = Arc::new(AtomicBool::new(false));
    let goes = Arc::clone(&has_gone);
    thread::spawn(move || {
        // It ends with the program, or with the bot: then there is nobody to tell.
        let _ = pass(&mut io::stdin().lock(), &mut to_bot);
        goes.store(true, Ordering::SeqCst);
        let _ = to_bot.shutdown(Shutdown::Write);
    });
    printed(pass(&mut bot, &mut io::stdout().lock()))?;
    Ok(exit::found(has_gone.load(Ordering::SeqCst)))
}

/// Passes on what comes as it comes, to its end. `io::copy` would have Linux splice a pipe into a
/// socket, which waits for more.
fn pass(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let read = match from.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&bytes[..read])?;
        to.flush()?;
    }
}

/// Exit codes: 0 all servers give tools; 1 one does not, or the output cannot be written.
pub(super) async fn run(command: &McpCommand, config: &Config) -> Ended {
    if let McpCommand::Serve { user, guild } = command {
        let (user, guild) = (UserId::new(*user), GuildId::new(*guild));
        return serve(config, Greeting { user, guild }).await;
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
