//! What is stored of the asker's conversation, for a search.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::super::asker::Asker;
use super::super::result::{ToolError, ToolOutput};
use super::query::{PAGE_SIZE, Query};
use crate::engine::citations::without_marks;
use crate::engine::history::words;
use crate::engine::sources::place_of;
use clew_context::engine::render::Renderer;
use clew_context::engine::{frame, shorten};
use clew_context::model::{ContentSource, MessageId, TurnId};
use clew_store::model::{StoredMessage, StoredRole};

/// The longest that a stored message is shown, in Unicode scalars.
const MAX_STORED_CHARS: usize = 1_000;
/// The most messages that what is shown was made from.
const MAX_SOURCES: usize = 150;

/// The best of what is stored of the asker's conversation here, without messages that are
/// shown already.
pub(super) async fn found(
    asker: &Asker<'_>,
    query: &Query,
    known: &BTreeSet<MessageId>,
) -> Result<ToolOutput, ToolError> {
    if asker.owns_nothing {
        return Ok(ToolOutput::default());
    }
    let mut rows = asker.memory.said_before(asker.place).await?;
    let guild = asker.place.guild;
    asker.retain_readable(&mut rows, |row| place_of(row, guild), |row| &row.sources);
    // An answer goes with its question.
    let mut messages: BTreeMap<TurnId, Vec<ContentSource>> = BTreeMap::new();
    for row in &rows {
        let of_turn = messages.entry(row.turn).or_default();
        of_turn.extend(message_of(row));
    }
    let is_new = |row: &StoredMessage| row.message.is_none_or(|id| !known.contains(&id));
    let is_asked = |row: &StoredMessage| {
        let id = row.message.unwrap_or(MessageId::first_at(row.timestamp));
        query.is_within(id) && query.covers(asker, row.channel)
    };
    let scored = rows
        .into_iter()
        .filter(|row| is_new(row) && is_asked(row))
        .map(|row| (query.shared_with(&row.content), row));
    let mut found: Vec<(usize, StoredMessage)> = scored.filter(|(score, _)| *score > 0).collect();
    found.sort_by_key(|(score, row)| {
        Reverse((if query.by_relevance { *score } else { 0 }, row.timestamp))
    });
    found.truncate(PAGE_SIZE);
    let mut renderer = Renderer::new(asker.us, asker.names);
    let mut output = ToolOutput::default();
    let mut sources: BTreeSet<ContentSource> = BTreeSet::new();
    for (_, row) in found {
        let of_turn = messages.get(&row.turn).into_iter().flatten();
        let all: BTreeSet<ContentSource> = of_turn.chain(&row.sources).copied().collect();
        // One answer may have been made from a hundred messages.
        if sources.union(&all).count() > MAX_SOURCES {
            continue;
        }
        sources.extend(all);
        let line = without_marks(&line(&mut renderer, &row));
        output.content.extend_from_slice(line.as_bytes());
    }
    output.sources.extend(sources);
    Ok(output)
}

/// The message that a row is of, as what a result was made from.
fn message_of(row: &StoredMessage) -> Option<ContentSource> {
    let message = row.message?;
    Some(ContentSource {
        guild: row.guild,
        channel: row.channel,
        message: Some(message),
        author: Some(row.owner),
    })
}

fn line(renderer: &mut Renderer<'_>, row: &StoredMessage) -> String {
    let text = renderer.stored(&words(row));
    let text = shorten::head_and_tail(&text, MAX_STORED_CHARS).unwrap_or(text);
    let name = match (row.role, &row.author_name) {
        (StoredRole::User, Some(name)) => renderer.named(row.owner, name),
        _ => renderer.our_name().to_owned(),
    };
    let header = frame::stored_header(&name, row.timestamp, row.restored_from.is_some());
    let mut line = String::new();
    let _ = writeln!(line, "(said earlier) {header}: {}", frame::indented(&text));
    line
}
