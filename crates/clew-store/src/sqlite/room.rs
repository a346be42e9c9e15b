//! Limits a database in memory: when it is full, the oldest conversations are
//! removed, of those who take more than their share.
//!
//! Servers have equal shares of the space, and so do the people of a server;
//! direct messages count as a server of one person. Whoever stays within their
//! share loses nothing, whatever others write.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use super::fault::Outcome;
use super::texts;

/// One part in this many is freed at a time, so that it serves many turns.
const FREED_PART: i64 = 8;
/// Approximate bytes of a row besides its texts, including index entries.
const ROW_BYTES: i64 = 600;
/// A source takes about twice its text again in a table and its indexes.
const SOURCE_PARTS: i64 = 3;

/// A server, or `None` and a person for direct messages.
type Server = (Option<i64>, i64);

/// One person's part of a conversation with an agent.
struct Talk {
    server: Server,
    person: i64,
    scope: String,
    agent: String,
    bytes: i64,
}

/// Frees space if more than `most` bytes are in use, within the current
/// transaction.
pub(super) fn make(connection: &Connection, most: i64) -> Outcome<()> {
    if used(connection)? <= most {
        return Ok(());
    }
    texts::clear(connection)?;
    drop_receipts(connection)?;
    let surplus = used(connection)? - (most - most / FREED_PART);
    if surplus <= 0 {
        return Ok(());
    }
    let talks = talks(connection)?;
    let all: i64 = talks.iter().map(|talk| talk.bytes).sum();
    free(connection, talks, (all - surplus).max(0))?;
    drop_receipts(connection)?;
    connection.execute(
        "DELETE FROM conversations WHERE NOT EXISTS (SELECT 1 FROM message_rows r
             WHERE r.scope = conversations.scope AND r.agent_name = conversations.agent_name)",
        [],
    )?;
    Ok(())
}

/// In memory a receipt stays as long as something of its turn.
fn drop_receipts(connection: &Connection) -> Outcome<()> {
    connection.execute(
        "DELETE FROM receipts WHERE NOT EXISTS
             (SELECT 1 FROM message_rows r
                 WHERE r.early IN (0, 1) AND r.turn_id = receipts.turn_id)",
        [],
    )?;
    Ok(())
}

/// Bytes in use.
fn used(connection: &Connection) -> Outcome<i64> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok((pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?)
}

/// SQL for the bytes of the receipt of a row's turn, counted with its first row.
fn receipt_bytes(row: &str) -> String {
    format!(
        "CASE WHEN {row}.position = 0 THEN coalesce((
             SELECT {ROW_BYTES} + octet_length(p.body)
                 + {SOURCE_PARTS} * coalesce(octet_length(p.people), 0)
             FROM receipts p WHERE p.turn_id = {row}.turn_id), 0) ELSE 0 END"
    )
}

/// All talks, the most recently extended last.
fn talks(connection: &Connection) -> Outcome<Vec<Talk>> {
    let mut select = connection.prepare_cached(&format!(
        "SELECT guild_id, owner_id, scope, agent_name,
             sum({ROW_BYTES} + octet_length(content) + coalesce(octet_length(tool_calls), 0)
                 + {SOURCE_PARTS} * coalesce(octet_length(sources), 0) + {})
         FROM messages GROUP BY scope, agent_name, owner_id, guild_id ORDER BY max(id)",
        receipt_bytes("messages")
    ))?;
    let talks = select.query_map([], |row| {
        let (guild, person): (Option<i64>, i64) = (row.get(0)?, row.get(1)?);
        Ok(Talk {
            server: (guild, if guild.is_none() { person } else { 0 }),
            person,
            scope: row.get(2)?,
            agent: row.get(3)?,
            bytes: row.get(4)?,
        })
    })?;
    Ok(talks.collect::<Result<_, _>>()?)
}

/// Frees space until about `wanted` bytes are left. While there are more, some
/// server exceeds its share, and somebody in it theirs. Excess only shrinks, so
/// one pass is enough.
fn free(connection: &Connection, talks: Vec<Talk>, wanted: i64) -> Outcome<()> {
    let mut servers = BTreeMap::<Server, i64>::new();
    let mut people = BTreeMap::<(Server, i64), i64>::new();
    let mut members = BTreeMap::<Server, BTreeSet<i64>>::new();
    for talk in &talks {
        *servers.entry(talk.server).or_default() += talk.bytes;
        *people.entry((talk.server, talk.person)).or_default() += talk.bytes;
        members.entry(talk.server).or_default().insert(talk.person);
    }
    let part = |whole: i64, parts: usize| whole / i64::try_from(parts.max(1)).unwrap_or(i64::MAX);
    let of_server = part(wanted, servers.len());
    for talk in talks {
        let of_person = part(of_server, members[&talk.server].len());
        let key = (talk.server, talk.person);
        let beyond = (servers[&talk.server] - of_server).min(people[&key] - of_person);
        let freed = remove_oldest(connection, &talk, beyond)?;
        *servers.entry(talk.server).or_default() -= freed;
        *people.entry(key).or_default() -= freed;
    }
    Ok(())
}

/// Removes a talk's oldest turns until `bytes` are freed, or all are gone.
/// Returns the bytes freed.
fn remove_oldest(connection: &Connection, talk: &Talk, bytes: i64) -> Outcome<i64> {
    if bytes <= 0 {
        return Ok(0);
    }
    let mut select = connection.prepare_cached(&format!(
        "SELECT r.id, r.text_id, r.turn_id,
             {ROW_BYTES} + octet_length(t.content) + coalesce(octet_length(t.tool_calls), 0)
                 + {SOURCE_PARTS} * coalesce(octet_length(r.sources), 0) + {}
         FROM message_rows r CROSS JOIN message_texts t ON t.id = r.text_id
         WHERE r.scope = ?1 AND r.agent_name = ?2 AND r.owner_id = ?3 AND NOT r.gone
         ORDER BY r.ordinal, r.turn_id, r.position",
        receipt_bytes("r")
    ))?;
    let key = (&talk.scope, &talk.agent, talk.person);
    let mut rows = select.query(key)?;
    let (mut freed, mut last, mut gone) = (0, None, Vec::new());
    while let Some(row) = rows.next()? {
        let turn: i64 = row.get(2)?;
        // Whole turns only.
        if freed >= bytes && last != Some(turn) {
            break;
        }
        last = Some(turn);
        freed += row.get::<_, i64>(3)?;
        gone.push((row.get(0)?, row.get(1)?));
    }
    texts::drop_rows(connection, &gone)?;
    Ok(freed)
}
