//! Lines of an export enter a log where they belong in time; none that is there goes.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use super::line::{lines_of, read_line, to_line};
use super::{LogFolder, Users, disk};
use crate::Error;
use crate::model::StoredMessage;
use clew_context::model::{TurnId, UnixMillis, UserId};

/// What became of lines to restore. The others were there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// Lines that were written.
    pub added: u64,
    /// Lines that were left out, the oldest, since the files have no room for them.
    pub no_room: u64,
}

/// Where a turn's lines come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Rotated,
    Current,
    Import,
}

/// Lines of one turn that stand together.
#[derive(Debug)]
struct LoggedTurn {
    turn: TurnId,
    at: UnixMillis,
    origin: Origin,
    lines: u64,
    text: String,
}

impl LogFolder {
    /// Merges lines of an export into a user's files. Both together take as many of
    /// the newest as they have room for; none that is there makes room. Torn lines,
    /// which nobody can read, go.
    pub(super) fn restore(
        &self,
        users: &mut Users,
        user: UserId,
        lines: &[String],
    ) -> Result<Restored, Error> {
        let hasher = RandomState::new();
        let mut known = HashSet::new();
        let mut there = Vec::new();
        let paths = self.paths(user);
        for (path, origin) in paths.iter().zip([Origin::Rotated, Origin::Current]) {
            for text in lines_of(path)?.into_iter().flatten() {
                let text = text.map_err(Error::io("read", path))?;
                if let Ok(row) = read_line(&String::from_utf8_lossy(&text)) {
                    known.insert(hasher.hash_one(to_line(&row)));
                    push(&mut there, &row, origin);
                }
            }
        }
        let mut new = Vec::new();
        for row in lines.iter().filter_map(|line| read_line(line).ok()) {
            if row.owner == user && known.insert(hasher.hash_one(to_line(&row))) {
                push(&mut new, &row, Origin::Import);
                users.insert(row.channel, user);
            }
        }
        let imported = new.len();
        let turns = merged(there, new);
        let fitting = most_that_fit(&turns, imported, self.max_bytes.unwrap_or(u64::MAX));
        let mut restored = Restored::default();
        let mut left_out = imported - fitting.imported;
        let mut texts = [String::new(), String::new()];
        for (at, turn) in turns.iter().enumerate() {
            if turn.origin == Origin::Import {
                if left_out > 0 {
                    left_out -= 1;
                    restored.no_room += turn.lines;
                    continue;
                }
                restored.added += turn.lines;
            }
            texts[usize::from(at >= fitting.current)].push_str(&turn.text);
        }
        if restored.added == 0 {
            return Ok(restored);
        }
        // The rotated file first: lines move from the current one to it, never back,
        // so that a kill between both leaves a line twice rather than nowhere.
        for (path, text) in paths.iter().zip(texts) {
            if !text.is_empty() {
                disk::write(path, text.as_bytes())?;
            }
        }
        Ok(restored)
    }
}

fn push(turns: &mut Vec<LoggedTurn>, row: &StoredMessage, origin: Origin) {
    match turns.last_mut() {
        Some(last) if (last.turn, last.origin) == (row.turn, origin) => {
            last.lines += 1;
            last.text.push_str(&to_line(row));
        }
        _ => turns.push(LoggedTurn {
            turn: row.turn,
            at: row.timestamp,
            origin,
            lines: 1,
            text: to_line(row),
        }),
    }
}

/// By time; each of the two lists keeps its order.
fn merged(there: Vec<LoggedTurn>, new: Vec<LoggedTurn>) -> Vec<LoggedTurn> {
    let mut merged = Vec::with_capacity(there.len() + new.len());
    let mut new = new.into_iter().peekable();
    for turn in there {
        while let Some(earlier) = new.next_if(|next| next.at < turn.at) {
            merged.push(earlier);
        }
        merged.push(turn);
    }
    merged.extend(new);
    merged
}

/// How a log's turns are spread over its two files.
struct Fitting {
    /// So many imported turns fit, the newest.
    imported: usize,
    /// The first turn of the current file.
    current: usize,
}

/// The more is imported, the longer the rotated file becomes, which allows to halve.
fn most_that_fit(turns: &[LoggedTurn], imported: usize, most: u64) -> Fitting {
    let mut best = Fitting {
        imported: 0,
        current: turns.len(),
    };
    let mut too_many = imported + 1;
    while too_many - best.imported > 1 {
        let tried = best.imported.midpoint(too_many);
        match spread(turns, tried, most) {
            Some(current) => {
                best = Fitting {
                    imported: tried,
                    current,
                }
            }
            None => too_many = tried,
        }
    }
    best
}

/// Fills the current file with the newest turns and the rotated one with the rest,
/// taking the newest `imported` of those imported. Returns the first turn of the current file;
/// none if the rotated one would become too long. A single turn may have any length.
fn spread(turns: &[LoggedTurn], imported: usize, most: u64) -> Option<usize> {
    let (mut current, mut rotated, mut already_rotated) = (0_u64, 0_u64, 0_u64);
    let (mut first, mut is_current, mut rotated_turns) = (turns.len(), true, 0);
    let mut imports = 0;
    for (at, turn) in turns.iter().enumerate().rev() {
        if turn.origin == Origin::Import {
            imports += 1;
            if imports > imported {
                continue;
            }
        }
        let bytes = turn.text.len() as u64;
        let fits = current == 0 || current.saturating_add(bytes) <= most;
        is_current &= fits && turn.origin != Origin::Rotated;
        if is_current {
            current += bytes;
            first = at;
        } else {
            rotated += bytes;
            rotated_turns += 1;
        }
        if turn.origin == Origin::Rotated {
            already_rotated += bytes;
        }
    }
    let fits = rotated <= most.max(already_rotated) || rotated_turns == 1;
    fits.then_some(first)
}
