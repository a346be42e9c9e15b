//! `clew store stats`: how much there is, and where.

use std::io::{self, Write};

use serde_json::json;

use super::{CommandEnd, Error, OpenedStore, Table};
use crate::config::Config;
use clew_store::{Kind, KindStats};

pub(super) async fn run(config: &Config, json: bool) -> Result<CommandEnd, Error> {
    let opened = OpenedStore::look(config).await?;
    let mut found = opened.store.stats().await?;
    // No store keeps these two.
    found.retain(|stats| !matches!(stats.kind, Kind::Transcripts | Kind::Outputs));
    if let Some(transcripts) = &opened.transcripts {
        found.push(transcripts.stats().await?);
    }
    found.push(opened.outputs.stats().await?);
    opened.store.close().await?;
    let of = |kind: Kind| {
        let stats = found.iter().find(|stats| stats.kind == kind).copied();
        stats.unwrap_or(KindStats {
            kind,
            entries: 0,
            bytes: 0,
        })
    };
    let all = Kind::ALL.map(of);
    let mut out = io::stdout();
    if json {
        let kinds = all.map(|stats| {
            json!({
                "kind": stats.kind.as_str(),
                "entries": stats.entries,
                "bytes": stats.bytes,
            })
        });
        let line = json!({"store": opened.place, "version": opened.version, "kinds": kinds});
        writeln!(out, "{line}")?;
        return Ok(CommandEnd::All);
    }
    writeln!(out, "{}, version {}", opened.place, opened.version)?;
    let rows = all.map(|stats| (stats.kind.as_str(), vec![stats.entries, stats.bytes]));
    let table = Table {
        heads: &["entries", "bytes"],
        rows: rows.into(),
    };
    write!(out, "{table}")?;
    Ok(CommandEnd::All)
}
