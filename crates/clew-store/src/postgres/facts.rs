//! Facts about users and servers.

use super::session::{Call, Outcome};
use crate::columns::{self, Cell, FACT_REST};
use crate::model::{Fact, Subject};
use crate::sql::Database as _;
use crate::table::upsert;

/// Writes a fact, which the transaction must see.
pub(super) async fn put(call: &Call<'_>, fact: &Fact) -> Outcome<()> {
    let (user, server) = match fact.subject {
        Subject::User(user) => (Some(user.get()), None),
        Subject::Server(guild) => (None, Some(guild.get())),
    };
    let mut values = vec![
        Cell::id(fact.id.0),
        Cell::maybe_id(user),
        Cell::maybe_id(server),
        Cell::text(&fact.text),
    ];
    values.extend(columns::fact_rest(fact));
    let others = ["user_id", "server_id", "text"];
    let sql = upsert("facts", &["id"], &[&others[..], &FACT_REST].concat());
    call.run(&sql, &values).await?;
    Ok(())
}
