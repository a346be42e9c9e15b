//! Reads the files line by line.

use std::path::{Path, PathBuf};

use anyhow::bail;

use clew_context::model::UnixMillis;

use super::line::{Line, printable};
use super::lines::{LONGEST_LINE, Lines, RawLine};
use super::summary::{BrokenFile, Report, UnreadableLine};
use super::tally::Tally;
use super::{Guild, Options, files, finish};

/// The most unreadable lines that are named.
const NAMED: usize = 5;
/// How the bot's lines begin: where one was cut off, the next may follow on the same line.
const BEGINNING: &[u8] = b"{\"ts\":\"";
/// What stands before an event's name.
const BEFORE_EVENT: &[u8] = b"\"event\":\"";
/// The frequent events that the report does not count.
const PASSED_OVER: [&[u8]; 5] = [b"merge_ok", b"tail_ok", b"sent", b"learnt", b"answered"];

/// Reads the telemetry of the given files and folders.
///
/// # Errors
/// If one of them cannot be opened, or none has a line of telemetry. A file that
/// breaks off later is named in the report.
pub fn read(paths: &[PathBuf], options: &Options) -> anyhow::Result<Report> {
    let files = files::find(paths)?;
    let mut tally = Tally::default();
    for path in &files {
        read_file(path, options, &mut tally);
    }
    let input = &mut tally.input;
    input.files = files.len();
    if input.lines > 0 && input.lines == input.unreadable + input.cut_off {
        let place = input.unreadable_at.first().map_or_else(
            || "all are cut off".to_owned(),
            |UnreadableLine { file, line, why }| format!("{file}:{line}: {why}"),
        );
        let files = input.files;
        bail!("no line of telemetry in the {files} files, {place}: are these the bot's files?");
    }
    Ok(finish::report(tally, options))
}

fn read_file(path: &Path, options: &Options, tally: &mut Tally) {
    let mut number = 0;
    let error = match Lines::open(path) {
        Ok(mut lines) => {
            while let Some(line) = lines.next() {
                number += 1;
                read_line(&line, path, number, options, tally);
            }
            lines.error
        }
        Err(error) => Some(error),
    };
    let broken = error.map(|error| BrokenFile {
        file: path.display().to_string(),
        error: error.to_string(),
    });
    tally.input.broken_files.extend(broken);
}

/// Counts a line. Lines that end too early are the last of their file, or stand before
/// another on the same line.
fn read_line(line: &RawLine<'_>, path: &Path, number: u64, options: &Options, tally: &mut Tally) {
    tally.input.lines += 1;
    tally.input.bytes += line.bytes as u64;
    let Err(why) = count(line.text, options, tally) else {
        return;
    };
    let is_too_long = line.text.len() > LONGEST_LINE;
    let follows = || {
        let next = memchr::memmem::rfind(line.text, BEGINNING).filter(|at| *at > 0);
        next.map(|at| &line.text[at..])
    };
    let is_cut_off = !is_too_long
        && (!line.is_ended || follows().is_some_and(|next| count(next, options, tally).is_ok()));
    let input = &mut tally.input;
    if is_cut_off {
        input.cut_off += 1;
        return;
    }
    input.unreadable += 1;
    if input.unreadable_at.len() < NAMED {
        input.unreadable_at.push(UnreadableLine {
            file: path.display().to_string(),
            line: number,
            why,
        });
    }
}

/// Counts a line if it is one of telemetry and the options ask for it; the error says why
/// it cannot be read.
fn count(line: &[u8], options: &Options, tally: &mut Tally) -> Result<(), String> {
    if line.len() > LONGEST_LINE {
        return Err(format!("it is longer than {LONGEST_LINE} bytes"));
    }
    if is_of_no_interest(line) || line.trim_ascii().is_empty() {
        return Ok(());
    }
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| why(&error))?;
    let time = UnixMillis::parse(&line.ts.0).ok_or("its `ts` is no time")?;
    let is_in_time = options.since.is_none_or(|since| time >= since)
        && options.until.is_none_or(|until| time < until);
    // The process serves all servers.
    let of_process = matches!(&*line.event.0, "started" | "dropped");
    let is_of_guild = match options.guild {
        Some(Guild::Server(id)) => line.guild_id == Some(id),
        Some(Guild::DirectMessages) => line.guild_id.is_none(),
        None => true,
    };
    if is_in_time && (of_process || is_of_guild) {
        tally.count(time, &line, options);
    }
    Ok(())
}

/// serde's message without the line, which is always the first. It may quote the file.
fn why(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let (what, _) = message.rsplit_once(" at line ").unwrap_or((&message, ""));
    format!("{} (column {})", printable(what), error.column())
}

/// Whether a line is whole and of an event that the report does not count. Of such a
/// line nothing else is looked at, which spares a third of the work.
fn is_of_no_interest(line: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(line, BEFORE_EVENT) else {
        return false;
    };
    let after = &line[at + BEFORE_EVENT.len()..];
    let name = memchr::memchr(b'"', after).map(|end| &after[..end]);
    let is_known = name.is_some_and(|name| PASSED_OVER.contains(&name));
    is_known && line.starts_with(b"{") && line.trim_ascii_end().ends_with(b"}}")
}
