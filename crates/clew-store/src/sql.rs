//! What both databases do alike: the same statements, carried out by either. Their parameters
//! are written `?1`; PostgreSQL makes `$1` of them.

use std::collections::BTreeSet;

use super::backend::RECENT_ROWS;
use super::columns::{self, Cell, Columns, RECEIPT, guild_key, user_key};
use super::table::{Table, receipts_beyond};
use super::{
    ConversationStats, Cursor, Error, ExchangeQuery, Exchanges, Kind, KindStats, Record, RecordKey,
    Records, SnapshotFiles, append,
};
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, MAX_FACT_BYTES, ReceiptLimits,
    Scope, StoredMessage, StoredReceipt, Subject,
};
use clew_context::model::{ApplicationId, ChannelId, GuildId, MessageId, UnixMillis, UserId};

mod purge;
mod write;

pub(crate) use purge::{announce, edit_snapshots, purge, ready, remove, snapshot, take_back};
pub(crate) use write::write;

/// What a statement has to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum See {
    /// Short lists and receipts, which everything sees.
    Lists,
    /// One conversation.
    Scope(Scope),
    /// The facts about a user, with their snapshots, or those about a server.
    About(Subject),
    /// Everything.
    All,
}

/// A row of a turn, and its position in it.
pub(crate) type Placed<'a> = (&'a StoredMessage, i64);

/// What a database's statements say otherwise than the other's.
pub(crate) trait Dialect {
    const MESSAGES: Table;
    const MARKERS: Table = Table::MARKERS;
    const SNAPSHOTS: Table;
    const RECEIPTS: Table = Table::RECEIPTS;
    const FACTS: Table;
    const AGENTS: Table = Table::AGENTS;
    /// Counters of conversations, which go when all of the conversation goes.
    const COUNTERS: Table;
    /// The column of a snapshot's id.
    const SNAPSHOT_ID: &'static str;
    /// Marks the snapshot with the id ?1 as ready.
    const READY: &'static str;
    /// Locks the rows that are read, so that nobody else changes them, or their files.
    const FOR_UPDATE: &'static str = "";
    /// Locks them, so that nobody removes them, or their files.
    const FOR_SHARE: &'static str = "";
    /// Tells facts about users from those about servers, and their column with whom.
    const OF_USERS: [&'static str; 2];
    /// The same of facts about servers.
    const OF_SERVERS: [&'static str; 2];
    /// Says of a column that it is one of the ids ?2.
    const IDS: &'static str;
    /// Before a column, keeps it from being looked up in an index that finds far more.
    const UNINDEXED: &'static str = "";
    /// The rows of a turn, with the values of [`TurnKey::cells`](super::TurnKey::cells).
    const OF_TURN: &'static str;
    /// Counts the rows of the conversation ?1.
    const COUNT: &'static str;
    /// Servers with anything stored.
    const GUILDS: &'static str;
    /// Users with anything stored from the server ?1.
    const MEMBERS: &'static str;
    /// Messages of the channel ?1 from ?2 to ?3 that are stored in any form, or are what something
    /// was made from.
    const HELD: &'static str;
    /// At most ?2 channels of direct messages among the newest ?1 rows, newest first.
    const RECENT_DIRECT: &'static str;
    /// The newest turn of receipts with the message ?2 in the channel ?1.
    const RECEIPTS_OF: &'static str;
    /// Receipts of the channel ?1.
    const RECEIPTS_IN: &'static str;

    /// The table of a kind; `None` for what is in files alone.
    fn table(kind: Kind) -> Option<Table> {
        let table = match kind {
            Kind::Messages => Self::MESSAGES,
            Kind::Markers => Self::MARKERS,
            Kind::Snapshots => Self::SNAPSHOTS,
            Kind::Receipts => Self::RECEIPTS,
            Kind::UserFacts => Table {
                only: Self::OF_USERS[0],
                ..Self::FACTS
            },
            Kind::ServerFacts => Table {
                only: Self::OF_SERVERS[0],
                ..Self::FACTS
            },
            Kind::OptOuts => Table::OPT_OUTS,
            Kind::Settings => Table::SETTINGS,
            Kind::Agents => Self::AGENTS,
            Kind::Departures => Table::DEPARTURES,
            Kind::Transcripts | Kind::Outputs => return None,
        };
        Some(Table {
            ids: Self::IDS,
            ..table
        })
    }
}

/// A database in the midst of a call.
pub(crate) trait Database: Dialect {
    type Fault: From<Error> + From<&'static str>;
    type Row<'a>: Columns<Fault = Self::Fault>;

    /// Reads every row. The table names them in errors.
    async fn all<T>(
        &self,
        see: See,
        table: &'static str,
        sql: &str,
        values: &[Cell<'_>],
        read: impl FnMut(&Self::Row<'_>) -> Result<T, Self::Fault>,
    ) -> Result<Vec<T>, Self::Fault>;

    /// Runs a statement. Returns how many rows it changed.
    async fn run(&self, sql: &str, values: &[Cell<'_>]) -> Result<u64, Self::Fault>;

    /// Host or file, for errors.
    fn place(&self) -> &str;

    /// A row of a turn; one that cannot be read is logged and left out.
    fn readable(
        &self,
        row: Result<StoredMessage, Self::Fault>,
    ) -> Result<Option<StoredMessage>, Self::Fault>;

    /// From here on the transaction also reads and writes this.
    async fn see(&self, _: See) -> Result<(), Self::Fault> {
        Ok(())
    }

    /// Removes the entries of a table that fulfil a condition. Returns how many.
    async fn remove_where(
        &self,
        table: &Table,
        which: &str,
        values: &[Cell<'_>],
    ) -> Result<u64, Self::Fault>;

    /// Inserts rows of turns, which are not there yet, in this order.
    async fn insert_rows(&self, placed: &[Placed<'_>]) -> Result<(), Self::Fault>;

    /// Writes a fact, which the transaction sees, replacing the one with its id.
    async fn put_fact(&self, fact: &Fact) -> Result<(), Self::Fault>;

    /// Writes a receipt, replacing the one of its turn.
    async fn put_receipt(&self, receipt: &StoredReceipt) -> Result<(), Self::Fault>;

    /// Writes a snapshot's row, a new one as not ready.
    async fn put_snapshot(&self, snapshot: &ContextSnapshot) -> Result<(), Self::Fault>;

    /// Does work at the snapshots' files.
    async fn at_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SnapshotFiles) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Self::Fault>;
}

type Outcome<T, D> = Result<T, <D as Database>::Fault>;

/// Reads the ids in the column `id`.
pub(crate) async fn ids<T, D: Database>(
    db: &D,
    see: See,
    sql: &str,
    values: &[Cell<'_>],
    make: impl Fn(u64) -> T,
) -> Outcome<Vec<T>, D> {
    db.all(see, "", sql, values, |row| row.id("id", &make))
        .await
}

/// See [`Backend::claim`](super::Backend::claim).
pub(crate) async fn claim<D: Database>(db: &D, application: ApplicationId) -> Outcome<(), D> {
    let sql = "INSERT INTO owner (application_id)
         SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM owner)";
    db.run(sql, &[Cell::id(application.get())]).await?;
    owned_by(db, application).await
}

/// Refuses the store of another application.
pub(crate) async fn owned_by<D: Database>(db: &D, application: ApplicationId) -> Outcome<(), D> {
    let sql = "SELECT application_id AS id FROM owner";
    let owners = ids(db, See::Lists, sql, &[], ApplicationId::new).await?;
    let owner = owners.first().copied().unwrap_or(application);
    Ok(Error::unless_owned(db.place(), owner, application)?)
}

/// See [`Backend::clear`](super::Backend::clear).
pub(crate) async fn clear<D: Database>(db: &D, key: &ClearKey, at: UnixMillis) -> Outcome<(), D> {
    let value = D::MARKERS.value;
    let sql = format!(
        "{} WHERE excluded.{value} > markers.{value}",
        D::MARKERS.put()
    );
    let key = RecordKey::Marker(key.clone());
    let mut values = key.cells();
    values.push(Cell::Time(at));
    db.run(&sql, &values).await?;
    Ok(())
}

/// See [`Backend::cleared_at`](super::Backend::cleared_at).
pub(crate) async fn cleared_at<D: Database>(
    db: &D,
    agent: &AgentName,
    guild: Option<GuildId>,
    user: UserId,
) -> Outcome<Option<UnixMillis>, D> {
    let Table { columns, value, .. } = D::MARKERS;
    let sql = format!(
        "SELECT {columns} FROM markers
         WHERE agent_name = ?1 AND guild_id = ?2 AND user_id IN (?3, 0)
         ORDER BY {value} DESC LIMIT 1"
    );
    let values = [
        Cell::text(agent.as_str()),
        Cell::Number(guild_key(guild)),
        Cell::Number(user_key(Some(user))),
    ];
    let read = |row: &D::Row<'_>| row.time("at");
    let found = db.all(See::Lists, "markers", &sql, &values, read).await?;
    Ok(found.first().copied())
}

/// When an agent was first seen, if it was.
pub(crate) async fn agent_seen<D: Database>(
    db: &D,
    agent: &AgentName,
) -> Outcome<Option<UnixMillis>, D> {
    let Table { columns, key, .. } = D::AGENTS;
    let sql = format!("SELECT {columns} FROM agents WHERE {} = ?1", key[0]);
    let name = [Cell::text(agent.as_str())];
    let read = |row: &D::Row<'_>| row.time("created_at");
    let found = db.all(See::Lists, "agents", &sql, &name, read).await?;
    Ok(found.first().copied())
}

/// See [`Backend::agent_created`](super::Backend::agent_created).
pub(crate) async fn agent_created<D: Database>(
    db: &D,
    agent: &AgentName,
    now: UnixMillis,
) -> Outcome<UnixMillis, D> {
    if let Some(seen) = agent_seen(db, agent).await? {
        return Ok(seen);
    }
    let sql = format!(
        "INSERT INTO agents ({}, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        D::AGENTS.key[0]
    );
    db.run(&sql, &[Cell::text(agent.as_str()), Cell::Time(now)])
        .await?;
    Ok(agent_seen(db, agent).await?.unwrap_or(now))
}

/// See [`Backend::guilds`](super::Backend::guilds).
pub(crate) async fn guilds<D: Database>(db: &D) -> Outcome<Vec<GuildId>, D> {
    ids(db, See::All, D::GUILDS, &[], GuildId::new).await
}

/// See [`Backend::members`](super::Backend::members).
pub(crate) async fn members<D: Database>(db: &D, guild: GuildId) -> Outcome<Vec<UserId>, D> {
    ids(
        db,
        See::All,
        D::MEMBERS,
        &[Cell::id(guild.get())],
        UserId::new,
    )
    .await
}

/// See [`Backend::held_messages`](super::Backend::held_messages).
pub(crate) async fn held_messages<D: Database>(
    db: &D,
    channel: ChannelId,
    from: MessageId,
    to: MessageId,
) -> Outcome<Vec<MessageId>, D> {
    // No Discord id uses the highest bit, but a range may.
    let bound = |id: MessageId| Cell::Number(i64::try_from(id.get()).unwrap_or(i64::MAX));
    let values = [Cell::id(channel.get()), bound(from), bound(to)];
    let held = ids(db, See::All, D::HELD, &values, MessageId::new).await?;
    let early = early_rows(db).await?;
    let early = early.iter().flat_map(|(_, row)| row.made_of());
    let early = early.filter(|(of, id)| *of == channel && (from..=to).contains(id));
    let held = held.into_iter().chain(early.map(|(_, id)| id));
    Ok(held.collect::<BTreeSet<_>>().into_iter().collect())
}

/// See [`Backend::recent_direct`](super::Backend::recent_direct).
pub(crate) async fn recent_direct<D: Database>(db: &D, limit: usize) -> Outcome<Vec<ChannelId>, D> {
    let limits = [RECENT_ROWS, limit].map(Cell::limit);
    ids(db, See::All, D::RECENT_DIRECT, &limits, ChannelId::new).await
}

/// See [`Backend::read_exchanges`](super::Backend::read_exchanges). Unreadable rows are left
/// out.
pub(crate) async fn read_exchanges<D: Database>(
    db: &D,
    query: &ExchangeQuery,
) -> Outcome<Vec<StoredMessage>, D> {
    let bound = |ordinal: u64| Cell::Number(i64::try_from(ordinal).unwrap_or(i64::MAX));
    let ids = D::IDS;
    let of_turns = format!("turn_id {ids}");
    let (index, which, order, given) = match &query.which {
        Exchanges::Below(ordinal) => ("", "ordinal < ?2", "DESC", bound(*ordinal)),
        Exchanges::Above(ordinal) => ("", "ordinal > ?2", "ASC", bound(*ordinal)),
        Exchanges::Turns(turns) => {
            let turns = turns.iter().map(|turn| turn.0.cast_signed()).collect();
            (D::UNINDEXED, &*of_turns, "ASC", Cell::Numbers(turns))
        }
    };
    let sql = format!(
        "SELECT {} FROM messages WHERE {index}scope = ?1 AND {which} AND {index}agent_name = ?3
             AND role IN ('user', 'assistant')
         ORDER BY ordinal {order}, turn_id {order}, position {order} LIMIT ?4",
        D::MESSAGES.columns
    );
    let values = [
        Cell::scope(query.scope),
        given,
        Cell::text(query.agent.as_str()),
        Cell::limit(query.limit),
    ];
    let read = |row: &D::Row<'_>| db.readable(columns::message(row));
    let see = See::Scope(query.scope);
    let found = db.all(see, "messages", &sql, &values, read).await?;
    let mut found: Vec<_> = found.into_iter().flatten().collect();
    if order == "DESC" {
        found.reverse();
    }
    Ok(found)
}

/// See [`Backend::conversation`](super::Backend::conversation). Nothing expires here.
pub(crate) async fn conversation<D: Database>(
    db: &D,
    scope: Scope,
    _now: UnixMillis,
) -> Outcome<ConversationStats, D> {
    let values = [Cell::scope(scope)];
    let read = |row: &D::Row<'_>| row.id("messages", |count| count);
    let found = db.all(See::Scope(scope), "messages", D::COUNT, &values, read);
    let count: u64 = found.await?.into_iter().sum();
    Ok(ConversationStats {
        exists: count > 0,
        message_count: usize::try_from(count).unwrap_or_default(),
        expires_in: None,
    })
}

/// See [`Backend::own_messages`](super::Backend::own_messages).
pub(crate) async fn own_messages<D: Database>(
    db: &D,
    owner: UserId,
    agent: &AgentName,
    guild: Option<GuildId>,
    since: UnixMillis,
) -> Outcome<Vec<StoredMessage>, D> {
    let sql = format!(
        "SELECT {} FROM messages WHERE owner_id = ?1 AND agent_name = ?2
             AND guild_id IS NOT DISTINCT FROM ?3 AND timestamp > ?4
         ORDER BY timestamp, scope, ordinal, turn_id, position",
        D::MESSAGES.columns
    );
    let values = [
        Cell::id(owner.get()),
        Cell::text(agent.as_str()),
        Cell::maybe_id(guild.map(GuildId::get)),
        Cell::Time(since),
    ];
    let read = |row: &D::Row<'_>| columns::message(row);
    db.all(See::All, "messages", &sql, &values, read).await
}

/// See [`Backend::early`](super::Backend::early). Unreadable rows are left out.
pub(crate) async fn early<D: Database>(db: &D, limit: usize) -> Outcome<Vec<StoredMessage>, D> {
    let found = early_rows(db).await?.into_iter().map(|(_, row)| row);
    Ok(append::first_turns(found.collect(), limit))
}

/// All early rows, turn by turn, with their numbers.
pub(crate) async fn early_rows<D: Database>(db: &D) -> Outcome<Vec<(i64, StoredMessage)>, D> {
    let sql = format!(
        "SELECT {} FROM early_messages ORDER BY scope, agent_name, turn_id, position",
        D::MESSAGES.columns
    );
    let read = |row: &D::Row<'_>| {
        let id = row.id("id", u64::cast_signed)?;
        let message = db.readable(columns::message(row))?;
        Ok(message.map(|message| (id, message)))
    };
    let found = db.all(See::All, "messages", &sql, &[], read).await?;
    Ok(found.into_iter().flatten().collect())
}

/// See [`Backend::snapshots`](super::Backend::snapshots).
pub(crate) async fn snapshots<D: Database>(
    db: &D,
    owner: UserId,
    guild: Option<GuildId>,
    agent: Option<&AgentName>,
    limit: usize,
) -> Outcome<Vec<ContextSnapshotInfo>, D> {
    let sql = format!(
        "SELECT {} FROM snapshots
         WHERE ready AND owner_id = ?1 AND guild_id IS NOT DISTINCT FROM ?2
             AND (CAST(?3 AS TEXT) IS NULL OR agent_name = ?3)
         ORDER BY timestamp DESC, seq DESC LIMIT ?4",
        D::SNAPSHOTS.columns
    );
    let values = [
        Cell::id(owner.get()),
        Cell::maybe_id(guild.map(GuildId::get)),
        Cell::maybe(agent.map(AgentName::as_str)),
        Cell::limit(limit),
    ];
    let see = See::About(Subject::User(owner));
    let read = |row: &D::Row<'_>| columns::snapshot(row);
    db.all(see, "snapshots", &sql, &values, read).await
}

/// See [`Backend::facts`](super::Backend::facts).
pub(crate) async fn facts<D: Database>(
    db: &D,
    subject: Subject,
    most: usize,
) -> Outcome<Vec<Fact>, D> {
    let ([only, column], id) = match subject {
        Subject::User(user) => (D::OF_USERS, user.get()),
        Subject::Server(guild) => (D::OF_SERVERS, guild.get()),
    };
    let sql = format!(
        "SELECT {} FROM facts WHERE {only} AND {column} = ?1
             AND octet_length(text) <= {MAX_FACT_BYTES}
         ORDER BY pinned DESC, last_used DESC, seen DESC, at DESC, id DESC LIMIT ?2",
        D::FACTS.columns
    );
    let values = [Cell::id(id), Cell::limit(most)];
    let read = |row: &D::Row<'_>| columns::fact(row);
    let found = db.all(See::About(subject), "facts", &sql, &values, read);
    Ok(Fact::most_useful(found.await?, most))
}

/// See [`Backend::receipt_of`](super::Backend::receipt_of).
pub(crate) async fn receipt_of<D: Database>(
    db: &D,
    channel: ChannelId,
    message: MessageId,
) -> Outcome<Option<StoredReceipt>, D> {
    let which = format!("turn_id = {}", D::RECEIPTS_OF);
    receipt(db, &which, [channel.get(), message.get()]).await
}

/// See [`Backend::last_receipt`](super::Backend::last_receipt).
pub(crate) async fn last_receipt<D: Database>(
    db: &D,
    channel: ChannelId,
    reader: UserId,
) -> Outcome<Option<StoredReceipt>, D> {
    let which = format!(
        "{} AND (NOT is_private OR owner_id = ?2) ORDER BY at DESC, turn_id DESC LIMIT 1",
        D::RECEIPTS_IN
    );
    receipt(db, &which, [channel.get(), reader.get()]).await
}

async fn receipt<D: Database>(
    db: &D,
    which: &str,
    ids: [u64; 2],
) -> Outcome<Option<StoredReceipt>, D> {
    let sql = format!("SELECT {RECEIPT} FROM receipts WHERE {which}");
    let read = |row: &D::Row<'_>| columns::receipt(row);
    let values = ids.map(Cell::id);
    let found = db.all(See::Lists, "receipts", &sql, &values, read);
    Ok(found.await?.pop())
}

/// See [`Backend::expire_receipts`](super::Backend::expire_receipts).
pub(crate) async fn expire_receipts<D: Database>(db: &D, limits: ReceiptLimits) -> Outcome<u64, D> {
    let mut gone = 0;
    for (which, value) in receipts_beyond(limits) {
        gone += db.run(&D::RECEIPTS.delete(&which), &[value]).await?;
    }
    Ok(gone)
}

/// See [`Backend::records`](super::Backend::records).
pub(crate) async fn records<D: Database>(
    db: &D,
    kind: Kind,
    owner: Option<UserId>,
    after: Option<&Cursor>,
    limit: usize,
) -> Outcome<Records, D> {
    let Some(table) = D::table(kind) else {
        return Ok(Records::default());
    };
    let Some((sql, values)) = table.page(owner, after, limit)? else {
        return Ok(Records::default());
    };
    let see = if kind.is_text() { See::All } else { See::Lists };
    let read = |row: &D::Row<'_>| columns::entry(kind, &table, row);
    let found = db.all(see, table.name, &sql, &values, read).await?;
    let mut page = Records::first(limit, found);
    for record in &mut page.records {
        if let Record::Snapshot(snapshot) = record {
            let info = snapshot.info.clone();
            let left = db.at_files(move |files| files.read_what_is_left(&info));
            *snapshot = left.await?;
        }
    }
    Ok(page)
}

/// See [`Backend::stats`](super::Backend::stats). The bytes of snapshots' files are not counted.
pub(crate) async fn stats<D: Database>(db: &D) -> Outcome<Vec<KindStats>, D> {
    let mut stats = Vec::with_capacity(Kind::ALL.len());
    for kind in Kind::ALL {
        let Some(table) = D::table(kind) else {
            continue;
        };
        let read = |row: &D::Row<'_>| columns::stats(kind, row);
        stats.extend(
            db.all(See::All, table.name, &table.count(), &[], read)
                .await?,
        );
    }
    Ok(stats)
}
