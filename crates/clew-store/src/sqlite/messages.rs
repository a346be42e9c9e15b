//! Conversations: rows of turns, their windows, and deletions.

use rusqlite::{Connection, params, params_from_iter};

use super::fault::Outcome;
use super::records::put_receipt;
use super::row::{self, MESSAGE, ReadOrder, SqliteRow, Stage, time_text};
use super::session::Session;
use super::statement::{all, at_once, first, run};
use super::{room, texts};
use crate::columns;
use crate::model::{AgentName, Scope, StoredMessage, StoredReceipt};
use crate::sql::{self, Database as _};
use crate::{TurnKey, WindowQuery, append};
use clew_context::model::UnixMillis;

/// Appends, replaces or confirms a turn (see `Backend::append`).
pub(super) fn append(session: &Session, turn: &[StoredMessage]) -> Outcome<u64> {
    let first = append::first_of(turn)?;
    match confirm(session, first, turn)? {
        Some(ordinal) => Ok(ordinal),
        None => put(session, first, turn, Stage::Confirmed),
    }
}

/// See `Backend::append_with`.
pub(super) fn append_with(
    session: &Session,
    turn: &[StoredMessage],
    receipt: &StoredReceipt,
) -> Outcome<u64> {
    let ordinal = append(session, turn)?;
    put_receipt(&session.connection, receipt)?;
    Ok(ordinal)
}

/// See `Backend::append_early`.
pub(super) fn append_early(session: &Session, turn: &[StoredMessage]) -> Outcome<()> {
    let first = append::first_of(turn)?;
    put(session, first, turn, Stage::Early).map(drop)
}

/// The latest marker that applies to a row's owner.
fn cleared_for(session: &Session, row: &StoredMessage) -> Outcome<Option<UnixMillis>> {
    at_once(sql::cleared_at(session, &row.agent, row.guild, row.owner))
}

/// Inserts a turn in place of its rows; early ones take the place of early ones
/// only. Returns its ordinal.
fn put(
    session: &Session,
    first: &StoredMessage,
    turn: &[StoredMessage],
    stage: Stage,
) -> Outcome<u64> {
    let connection = &session.connection;
    let mut state = State::of(connection, first.scope, &first.agent)?;
    let newest = state.newest()?;
    let cleared = cleared_for(session, first)?;
    let replaced = ordinal_of(connection, first)?;
    if replaced.is_some() {
        remove_turn(session, &TurnKey::of(first), stage == Stage::Early)?;
    }
    let last = newest.map_or(0, |(newest, _)| newest);
    let ordinal = replaced.unwrap_or(state.last_ordinal.max(last) + 1);
    if newest.is_some_and(|(newest, _)| newest > ordinal) {
        state.disorder()?;
    }
    let newest = newest.map(|(_, time)| time);
    for (position, row) in (0..).zip(append::placed(turn, ordinal, newest, cleared)) {
        row::insert_message(connection, &row, position, stage)?;
    }
    if let Some(bytes) = session.room {
        room::make(connection, bytes)?;
    }
    Ok(ordinal)
}

/// Makes the early rows of a turn its rows, if they say the same. Their texts stay
/// where they are, so this writes little; they keep ordinal and times. Returns the
/// ordinal, or `None` if the turn has to be inserted.
fn confirm(
    session: &Session,
    first: &StoredMessage,
    turn: &[StoredMessage],
) -> Outcome<Option<u64>> {
    let connection = &session.connection;
    let (ids, early): (Vec<i64>, Vec<_>) = early_of(session, first)?.into_iter().unzip();
    let cleared = cleared_for(session, first)?;
    let Some(confirmed) = append::confirmed(&early, turn, cleared) else {
        return Ok(None);
    };
    let replaced = format!("NOT early AND {OF_TURN}");
    let key = TurnKey::of(first);
    texts::remove_messages(session, &replaced, params_from_iter(key.cells()))?;
    for (id, row) in ids.iter().zip(&confirmed) {
        row::confirm_message(connection, *id, row)?;
    }
    Ok(confirmed.first().map(|row| row.ordinal))
}

/// The early rows of a row's turn, in order, with their numbers.
fn early_of(session: &Session, row: &StoredMessage) -> Outcome<Vec<(i64, StoredMessage)>> {
    let sql = format!("SELECT {MESSAGE} FROM early_messages WHERE {OF_TURN} ORDER BY position");
    let (key, order) = (TurnKey::of(row), ReadOrder::default());
    all(
        &session.connection,
        &sql,
        params_from_iter(key.cells()),
        |row| {
            let message = columns::message(&SqliteRow::of("messages", row, &order))?;
            Ok((row.get(0)?, message))
        },
    )
}

/// See `Backend::take_back`.
pub(super) fn take_back(session: &Session, key: &TurnKey) -> Outcome<u64> {
    remove_turn(session, key, true)
}

/// What is stored of a conversation besides its rows.
pub(super) struct State<'a> {
    connection: &'a Connection,
    scope: String,
    agent: &'a str,
    /// The last ordinal of rows that are gone.
    last_ordinal: u64,
    /// A turn was replaced, so times may not increase with ordinals.
    disordered: bool,
}

impl<'a> State<'a> {
    /// The stored state, or that of a new conversation.
    pub(super) fn of(
        connection: &'a Connection,
        scope: Scope,
        agent: &'a AgentName,
    ) -> Outcome<Self> {
        let sql = "SELECT last_ordinal, disordered FROM conversations
             WHERE scope = ?1 AND agent_name = ?2";
        let (scope, agent) = (scope.to_string(), agent.as_str());
        let found = first(connection, sql, (&scope, agent), |row| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
        });
        let (last_ordinal, disordered) = found?.unwrap_or_default();
        Ok(Self {
            connection,
            scope,
            agent,
            last_ordinal,
            disordered,
        })
    }

    /// Notes that times no longer increase with ordinals.
    pub(super) fn disorder(&mut self) -> Outcome<()> {
        if self.disordered {
            return Ok(());
        }
        self.disordered = true;
        let sql = "INSERT INTO conversations (scope, agent_name, last_ordinal, disordered)
             VALUES (?1, ?2, 0, TRUE) ON CONFLICT DO UPDATE SET disordered = TRUE";
        run(self.connection, sql, (&self.scope, self.agent)).map(drop)
    }

    /// The highest ordinal present, and the latest time.
    pub(super) fn newest(&self) -> Outcome<Option<(u64, UnixMillis)>> {
        let sql = if self.disordered {
            "SELECT max(ordinal), max(timestamp) FROM message_rows
             WHERE scope = ?1 AND agent_name = ?2 AND NOT gone"
        } else {
            "SELECT ordinal, timestamp FROM message_rows
             WHERE scope = ?1 AND agent_name = ?2 AND NOT gone
             ORDER BY ordinal DESC, turn_id DESC, position DESC LIMIT 1"
        };
        let found = first(self.connection, sql, (&self.scope, self.agent), |row| {
            let (ordinal, time): (Option<i64>, Option<String>) = (row.get(0)?, row.get(1)?);
            Ok(ordinal.zip(time))
        })?;
        Ok(found.flatten().map(|(ordinal, time)| {
            // An unreadable time is reported when its row is read.
            let time = UnixMillis::parse(&time).unwrap_or_default();
            (ordinal.cast_unsigned(), time)
        }))
    }
}

/// A turn's ordinal, if it has any rows, early or not.
fn ordinal_of(connection: &Connection, row: &StoredMessage) -> Outcome<Option<u64>> {
    let sql = format!("SELECT ordinal FROM message_rows WHERE NOT gone AND {OF_TURN} LIMIT 1");
    let key = TurnKey::of(row);
    first(connection, &sql, params_from_iter(key.cells()), |row| {
        Ok(row.get::<_, i64>(0)?.cast_unsigned())
    })
}

/// Removes a turn's rows, or only its early ones. Returns how many there were.
fn remove_turn(session: &Session, key: &TurnKey, only_early: bool) -> Outcome<u64> {
    let which = if only_early { "early AND " } else { "" };
    texts::remove_messages(
        session,
        &format!("{which}{OF_TURN}"),
        params_from_iter(key.cells()),
    )
}

/// The rows of a turn, early or not, with the values of [`TurnKey::cells`]. `+` keeps `SQLite` from using the conversation's index,
/// which finds far more rows than that of turns.
pub(super) const OF_TURN: &str =
    "early IN (0, 1) AND turn_id = ?1 AND +scope = ?2 AND +agent_name = ?3";

/// A conversation's newest rows, oldest first. If times increase with ordinals,
/// it stops at the first row that is too old, so older rows cost nothing.
/// Unreadable rows are left out.
pub(super) fn read_window(session: &Session, query: &WindowQuery) -> Outcome<Vec<StoredMessage>> {
    let connection = &session.connection;
    // One snapshot of the data, and one lock, for all statements.
    let reading = connection.unchecked_transaction()?;
    let window = window_of(session, query)?;
    reading.commit()?;
    Ok(window)
}

fn window_of(session: &Session, query: &WindowQuery) -> Outcome<Vec<StoredMessage>> {
    let connection = &session.connection;
    let cleared = match query.cleared {
        Some(asker) => at_once(sql::cleared_at(
            session,
            &query.agent,
            asker.guild,
            asker.user,
        ))?,
        None => None,
    };
    let is_ordered = !State::of(connection, query.scope, &query.agent)?.disordered;
    let mut select = connection.prepare_cached(&format!(
        "SELECT {MESSAGE} FROM messages WHERE scope = ?1 AND agent_name = ?2
             AND (?4 OR timestamp > ?3) AND (?5 OR role IN ('user', 'assistant'))
         ORDER BY ordinal DESC, turn_id DESC, position DESC"
    ))?;
    let since = time_text(query.start(cleared));
    let timestamp = select.column_index("timestamp")?;
    let mut rows = select.query(params![
        query.scope.to_string(),
        query.agent.as_str(),
        since,
        is_ordered,
        query.with_tools
    ])?;
    let (mut window, order) = (Vec::new(), ReadOrder::default());
    while window.len() < query.limit {
        let Some(row) = rows.next()? else { break };
        if is_ordered
            && row
                .get_ref(timestamp)?
                .as_str()
                .is_ok_and(|time| *time <= *since)
        {
            break;
        }
        let row = SqliteRow::of("messages", row, &order);
        window.extend(session.readable(columns::message(&row))?);
    }
    window.reverse();
    Ok(window)
}

/// Deletes a conversation for all agents. Its ordinals are not reused.
pub(super) fn delete_conversation(session: &Session, scope: Scope) -> Outcome<u64> {
    session.transact(|connection| {
        let gone = texts::remove_messages(session, "scope = ?1", [scope.to_string()])?;
        connection.execute(
            "UPDATE conversations SET disordered = 0 WHERE scope = ?1",
            [scope.to_string()],
        )?;
        Ok(gone)
    })
}
