//! Converts our values to columns and back.

use std::borrow::Cow;
use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::session::{Failure, Outcome};
use crate::columns::{Cell, Columns};
use clew_context::model::UnixMillis;

/// PostgreSQL counts microseconds from 1 January 2000.
const EPOCH_MS: i64 = 946_684_800_000;
/// First and last millisecond of a `timestamptz` (PostgreSQL, "Date/Time
/// Types": 4713 BC to 294276 AD), in Unix time.
const FIRST_MS: i64 = -210_866_803_200_000;
const LAST_MS: i64 = 9_224_318_015_999_999;
/// Replaces U+0000, which PostgreSQL refuses in texts.
const REPLACEMENT: &str = "\u{fffd}";

/// A time as `timestamptz`, exact to the millisecond; times outside of
/// PostgreSQL's range become its nearest bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment(pub(super) UnixMillis);

impl ToSql for Moment {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.put_i64((self.0.0.clamp(FIRST_MS, LAST_MS) - EPOCH_MS) * 1_000);
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Moment {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(UnixMillis(
            micros.div_euclid(1_000).saturating_add(EPOCH_MS),
        )))
    }

    accepts!(TIMESTAMPTZ);
}

/// Replaces U+0000, which PostgreSQL refuses, by U+FFFD.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', REPLACEMENT))
    } else {
        Cow::Borrowed(text)
    }
}

/// A statement with PostgreSQL's way to write parameters.
pub(super) fn dollars(sql: &str) -> String {
    sql.replace('?', "$")
}

/// A row, read column by column; errors name its table and key.
pub(super) struct PostgresRow<'a> {
    table: &'static str,
    row: &'a Row,
}

impl<'a> PostgresRow<'a> {
    pub(super) const fn of(table: &'static str, row: &'a Row) -> Self {
        Self { table, row }
    }

    fn get<'b, T: FromSql<'b>>(&'b self, column: &'static str) -> Outcome<T> {
        self.row.try_get(column).map_err(|_| self.unfit(column))
    }
}

impl Columns for PostgresRow<'_> {
    type Fault = Failure;

    fn number(&self, column: &'static str) -> Outcome<Option<i64>> {
        self.get(column)
    }

    fn text(&self, column: &'static str) -> Outcome<Option<&str>> {
        self.get(column)
    }

    fn bytes(&self, column: &'static str) -> Outcome<&[u8]> {
        self.get(column)
    }

    fn maybe_time(&self, column: &'static str) -> Outcome<Option<UnixMillis>> {
        Ok(self.get::<Option<Moment>>(column)?.map(|at| at.0))
    }

    fn flag(&self, column: &'static str) -> Outcome<bool> {
        self.get(column)
    }

    fn unfit(&self, column: &'static str) -> Failure {
        let number = self.row.try_get::<_, i64>(0).map(|key| key.to_string());
        let key = number.or_else(|_| self.row.try_get(0));
        Failure::Unreadable {
            place: format!(
                "table {}, row {}",
                self.table,
                key.unwrap_or_else(|_| "?".to_owned())
            ),
            source: format!("column {column} is not what we write").into(),
        }
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Flag(flag) => flag.to_sql_checked(kind, out),
            Self::Number(number) => number.to_sql_checked(kind, out),
            Self::Numbers(numbers) => numbers.to_sql_checked(kind, out),
            Self::Text(value) => text(value).to_sql_checked(kind, out),
            Self::Bytes(bytes) => bytes.to_sql_checked(kind, out),
            Self::Time(time) => Moment(*time).to_sql_checked(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        let numbers = [Type::INT8, Type::INT8_ARRAY];
        let others = [Type::BOOL, Type::TEXT, Type::BYTEA, Type::TIMESTAMPTZ];
        numbers.contains(kind) || others.contains(kind)
    }

    to_sql_checked!();
}

/// Cells as parameters.
pub(super) fn borrowed<'a>(cells: &'a [Cell<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    let cells = cells.iter();
    cells.map(|cell| -> &(dyn ToSql + Sync) { cell }).collect()
}
