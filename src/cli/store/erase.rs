//! `clew store erase`: shows what would be removed, or removes it.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use super::{OpenedStore, Table};
use crate::app;
use crate::cli::exit::{Ended, Failure, NEEDS_CONSENT};
use crate::config::Config;
use clew_context::model::{ChannelId, GuildId, UnixMillis, UserId};
use clew_store::{Erasure, Kind, Purged};

#[derive(Debug, Args)]
pub(in crate::cli) struct EraseArgs {
    #[command(flatten)]
    target: EraseTarget,
    /// Erase, instead of only showing what would be erased
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct EraseTarget {
    /// Everything of a user: owned by them, about them, or said by them
    #[arg(long, value_name = "ID")]
    user: Option<UserId>,
    /// Everything of a server
    #[arg(long, value_name = "ID")]
    guild: Option<GuildId>,
    /// Everything of a channel, a thread or a direct message channel
    #[arg(long, value_name = "ID")]
    channel: Option<ChannelId>,
    /// All texts from before a date in UTC, like 2026-01-31 or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "DATE", value_parser = date)]
    before: Option<UnixMillis>,
}

pub(super) async fn run(config: &Config, args: &EraseArgs) -> Ended {
    let Some(erasure) = args.target.erasure() else {
        // The command line requires one of them.
        return Ok(ExitCode::SUCCESS);
    };
    if args.yes {
        let _alone = app::claim(config)?;
        let opened = OpenedStore::of(config).await?;
        let done = erase(&opened, erasure).await;
        opened.store.close().await?;
        return done;
    }
    let opened = OpenedStore::look(config).await?;
    let done = preview(&opened, erasure).await;
    opened.store.close().await?;
    done
}

async fn preview(opened: &OpenedStore, erasure: Erasure) -> Ended {
    let mut going = erasure.would_go(&opened.store).await?;
    if let Some(transcripts) = &opened.transcripts {
        going.add(Kind::Transcripts, transcripts.would_go(erasure).await?);
    }
    going.add(Kind::Outputs, opened.outputs.would_go(erasure).await?);
    let mut out = io::stdout();
    if going.total() == 0 {
        writeln!(out, "There is nothing {}.", Of(erasure))?;
        tell_opt_out(opened, erasure).await?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "Would erase {}:", Of(erasure))?;
    write!(out, "{}", Table::of_kinds(going.iter()))?;
    tell_opt_out(opened, erasure).await?;
    writeln!(
        out,
        "Nothing was changed. Stop the bot and say --yes to erase it."
    )?;
    Ok(ExitCode::from(NEEDS_CONSENT))
}

async fn erase(opened: &OpenedStore, erasure: Erasure) -> Ended {
    let purge = erasure.purge();
    // If one fails the others are purged all the same.
    let from_store = opened.store.purge(&purge).await;
    let from_logs = match &opened.transcripts {
        Some(transcripts) => transcripts.purge(&purge).await,
        None => Ok(Purged::default()),
    };
    let of_tools = opened.outputs.purge(&purge).await;
    // Also clears what earlier erasures left in pages.
    let vacuumed = opened.store.vacuum().await;
    let mut gone = Purged::default();
    for purged in [&from_store, &from_logs, &of_tools].into_iter().flatten() {
        gone.merge(purged);
    }
    let all = from_store.and(from_logs).and(of_tools).map(drop);
    let all = all.and(vacuumed);
    let mut out = io::stdout();
    match (gone.total(), &all) {
        (0, Ok(())) => writeln!(out, "There was nothing {}.", Of(erasure))?,
        (0, Err(_)) => {}
        (_, Ok(())) => writeln!(out, "Erased {}:", Of(erasure))?,
        (_, Err(_)) => writeln!(out, "Erased {}, not all of it:", Of(erasure))?,
    }
    write!(out, "{}", Table::of_kinds(gone.iter()))?;
    all?;
    tell_opt_out(opened, erasure).await?;
    Ok(ExitCode::SUCCESS)
}

/// Reports the user's opt-out, which outlives every erasure.
async fn tell_opt_out(opened: &OpenedStore, erasure: Erasure) -> Result<(), Failure> {
    let Erasure::User(user) = erasure else {
        return Ok(());
    };
    let all = opened.store.opt_outs().await?;
    let is_out = all.iter().any(|(who, _)| *who == user);
    let told = if is_out {
        "The opt-out stays: nothing of this user is kept from now on."
    } else {
        "This user has not opted out: what they say to the bot from now on is kept."
    };
    writeln!(io::stdout(), "{told}")?;
    Ok(())
}

impl EraseTarget {
    fn erasure(&self) -> Option<Erasure> {
        let user = self.user.map(Erasure::User);
        user.or(self.guild.map(Erasure::Guild))
            .or(self.channel.map(Erasure::Channel))
            .or(self.before.map(Erasure::Before))
    }
}

/// What is erased, worded to follow "erase" and "nothing".
struct Of(Erasure);

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Erasure::User(user) => write!(f, "of user {user}"),
            Erasure::Guild(guild) => write!(f, "of server {guild}"),
            Erasure::Channel(channel) => write!(f, "of channel {channel}"),
            Erasure::Before(time) => write!(f, "from before {time}"),
        }
    }
}

fn date(text: &str) -> Result<UnixMillis, String> {
    let whole = format!("{text}T00:00:00Z");
    let read = UnixMillis::parse(text).or_else(|| UnixMillis::parse(&whole));
    read.ok_or_else(|| "accepted: 2026-01-31, or 2026-01-31T12:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_begins_at_midnight_utc() {
        let check = |text: &str, expected: Option<&str>| {
            let read = date(text).ok().map(UnixMillis::rfc3339);
            assert_eq!(read.as_deref(), expected, "{text}");
        };
        check("2026-01-31", Some("2026-01-31T00:00:00.000Z"));
        check(
            "2026-01-31T12:00:00+01:00",
            Some("2026-01-31T11:00:00.000Z"),
        );
        check("31.1.2026", None);
        check("", None);
    }
}
