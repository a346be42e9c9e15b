//! What the store holds once a world is over.

use clew::config::Config;
use clew_context::model::Clock;
use clew_store::model::StoredMessage;
use clew_store::{Error, Folders, Kind, Record, Store};

/// How many entries are read at a time.
const PAGE: usize = 500;

/// The rows of turns that were confirmed.
pub(crate) async fn rows(config: &Config, clock: Clock) -> Result<Vec<StoredMessage>, Error> {
    let config = &config.memory;
    let folders = Folders {
        agents: config.agents_dir.clone(),
        users: config.user_profile_dir.clone(),
        servers: config.server_profile_dir.clone(),
    };
    let store = Store::look(&config.store, &folders, clock).await?;
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = store
            .records(Kind::Messages, None, after.as_ref(), PAGE)
            .await?;
        rows.extend(page.records.into_iter().filter_map(|record| match record {
            Record::Message(row) => Some(row),
            _ => None,
        }));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    store.close().await?;
    Ok(rows)
}
