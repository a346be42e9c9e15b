//! The texts of saved conversations as rows, where several processes share the database: a file
//! would stay behind with a machine.

use std::sync::Arc;

use deadpool_postgres::{Object, Pool};
use tokio::runtime::Handle;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSqlOwned, ToSql};

use super::super::Error;
use super::super::snapshots::SnapshotRows;
use super::connect::Connected;
use super::hold;
use super::session::{Borrowed, Failure, LONG_PATIENCE, Outcome, bounded};

const ARE_THERE: &str = "SELECT to_regclass('clew.snapshot_texts') IS NOT NULL";
const SEE_ALL: &str = "SELECT set_config('clew.all', 'on', true)";
/// Without a row that leads to them: it was erased where the text could not be reached.
const FORGET_LOST: &str = "DELETE FROM snapshot_texts t WHERE NOT EXISTS ( \
     SELECT FROM snapshots s WHERE s.snapshot_id::text = split_part(split_part(t.name, '_', 2), '.', 1))";

/// The texts of saved conversations. Its calls come from threads that may block.
#[derive(Debug)]
pub(super) struct TextRows {
    /// Of their own: whoever waits for a text has a connection already.
    pool: Pool,
    runtime: Handle,
}

impl TextRows {
    /// If this database keeps texts: once several processes have shared it.
    pub(super) async fn of(
        client: &Object,
        pool: impl FnOnce() -> Result<Connected, Error>,
    ) -> Outcome<Option<Arc<Self>>> {
        let is_there: bool = client.query_one(ARE_THERE, &[]).await?.try_get(0)?;
        if !is_there {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self {
            pool: pool()?.pool,
            runtime: Handle::current(),
        })))
    }

    /// Lets go of the database.
    pub(super) async fn close(&self) {
        hold::release(&self.pool).await;
        self.pool.close();
    }

    /// Runs a statement that sees all rows, in a transaction of its own.
    fn rows(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let running = async {
            let mut client = Borrowed::of(self.pool.get().await?);
            let transaction = client.object()?.transaction().await?;
            transaction.batch_execute(SEE_ALL).await?;
            let rows = transaction.query(sql, values).await?;
            transaction.commit().await?;
            client.returned();
            Ok(rows)
        };
        let operation = "read or write a saved conversation";
        let running = bounded(LONG_PATIENCE, operation, running);
        self.runtime.block_on(running)
    }

    fn first<T: FromSqlOwned>(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<T>, Error> {
        let rows = self.rows(sql, values)?;
        let first = rows.first().map(|row| row.try_get(0)).transpose();
        first.map_err(|error| Failure::from(error).during("read a saved conversation"))
    }
}

impl SnapshotRows for TextRows {
    fn put(&self, name: &str, text: &str) -> Result<(), Error> {
        let sql = "INSERT INTO snapshot_texts VALUES ($1, $2) \
                   ON CONFLICT (name) DO UPDATE SET content = excluded.content";
        self.rows(sql, &[&name, &text]).map(drop)
    }

    fn get(&self, name: &str) -> Result<Option<String>, Error> {
        self.first(
            "SELECT content FROM snapshot_texts WHERE name = $1",
            &[&name],
        )
    }

    fn remove(&self, name: &str) -> Result<bool, Error> {
        let sql = "DELETE FROM snapshot_texts WHERE name = $1 RETURNING true";
        Ok(self.first(sql, &[&name])?.unwrap_or(false))
    }

    fn bytes(&self) -> Result<u64, Error> {
        let sql = "SELECT coalesce(sum(length(content)), 0)::bigint FROM snapshot_texts";
        let bytes: Option<i64> = self.first(sql, &[])?;
        Ok(bytes.unwrap_or_default().unsigned_abs())
    }

    fn forget_lost(&self) -> Result<(), Error> {
        self.rows(FORGET_LOST, &[]).map(drop)
    }
}
