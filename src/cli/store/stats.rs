//! `clew store stats`: how much there is, how old it is, and what it takes on disk.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::json;

use super::{OpenedStore, Table};
use crate::cli::exit::Ended;
use crate::config::Config;
use crate::report::grouped;
use clew_context::model::UnixMillis;
use clew_store::{Kind, KindStats};

pub(super) async fn run(config: &Config, json: bool) -> Ended {
    let opened = OpenedStore::look(config).await?;
    let mut found = opened.store.stats().await?;
    // No store keeps these two.
    found.retain(|stats| !matches!(stats.kind, Kind::Transcripts | Kind::Outputs));
    if let Some(transcripts) = &opened.transcripts {
        found.push(transcripts.stats().await?);
    }
    found.push(opened.outputs.stats().await?);
    let sizes = opened.store.sizes().await?;
    opened.store.close().await?;
    let of = |kind: Kind| {
        let stats = found.iter().find(|stats| stats.kind == kind).copied();
        stats.unwrap_or(KindStats::none(kind))
    };
    let all = Kind::ALL.map(of);
    let mut out = io::stdout();
    if json {
        let kinds = all.map(|stats| {
            json!({
                "kind": stats.kind.as_str(),
                "entries": stats.entries,
                "bytes": stats.bytes,
                "oldest": stats.oldest.map(UnixMillis::rfc3339),
                "newest": stats.newest.map(UnixMillis::rfc3339),
            })
        });
        let sizes = sizes
            .iter()
            .map(|size| json!({"part": size.part, "bytes": size.bytes}));
        let sizes: Vec<_> = sizes.collect();
        let (place, version) = (&opened.place, opened.version);
        let line = json!({"store": place, "version": version, "kinds": kinds, "disk": sizes});
        writeln!(out, "{line}")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{}, version {}", opened.place, opened.version)?;
    let rows = all.map(|stats| {
        let counted = [stats.entries, stats.bytes].map(grouped);
        let times = [stats.oldest, stats.newest]
            .map(|at| at.map_or_else(|| "-".to_owned(), UnixMillis::minute));
        let name = stats.kind.as_str().to_owned();
        (name, [counted, times].concat())
    });
    let heads = ["entries", "bytes of text", "oldest", "newest"].map(str::to_owned);
    let heads = (String::new(), heads.to_vec());
    write!(out, "{}", Table([heads].into_iter().chain(rows).collect()))?;
    writeln!(out, "\nOn disk, in bytes:")?;
    let rows = sizes
        .into_iter()
        .map(|size| (size.part, vec![grouped(size.bytes)]));
    write!(out, "{}", Table(rows.collect()))?;
    Ok(ExitCode::SUCCESS)
}
