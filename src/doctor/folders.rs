//! The folders that the bot writes to: whether it may, and how much room there is.

use std::fs;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::app::{LOW_BYTES, free_bytes};
use crate::config::Config;
use clew_store::model::StoreAddress;

/// Looks at those whose settings can be used.
pub(super) fn look(
    config: &Config,
    is_usable: impl Fn(&[&str]) -> bool,
    tell: &mut dyn FnMut(Finding),
) {
    let mut folders = vec![
        ("TELEMETRY_DIR", config.telemetry.dir.clone()),
        ("STATE_DIR", config.state_dir.clone()),
    ];
    match &config.memory.store {
        StoreAddress::Sqlite(path) => {
            let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
            folders.push(("CONTEXT_STORE", folder));
        }
        StoreAddress::Files(dir) => folders.push(("CONTEXT_STORE", dir.clone())),
        StoreAddress::Postgres(_) => {}
    }
    if config.tools.is_on() && !config.memory.in_memory_only {
        folders.push(("TOOL_OUTPUT_DIR", config.tool_outputs.dir.clone()));
    }
    folders.retain(|(name, _)| is_usable(&[name]));
    for (name, folder) in folders {
        tell(folder_found(name, &folder));
    }
}

fn folder_found(name: &'static str, folder: &Path) -> Finding {
    let shown = folder.display();
    let there = nearest(folder);
    let remedy = format!(
        "make {} writable for this user, or set {name}",
        there.display()
    );
    // A file without a name of its own: nothing is left behind, whatever happens.
    if let Err(error) = tempfile::tempfile_in(&there) {
        return Finding::failed("disk", format!("{name}={shown}: {error}"), remedy);
    }
    match free_bytes(&there) {
        Ok(bytes) if bytes < LOW_BYTES => Finding::warning(
            "disk",
            format!("{name}={shown}: {} MiB free", bytes >> 20),
            "make room, or set it to a folder on another disk",
        ),
        Ok(bytes) => Finding::ok(
            "disk",
            format!("{name}={shown}: writable, {} MiB free", bytes >> 20),
        ),
        Err(error) => Finding::failed("disk", format!("{name}={shown}: {error}"), remedy),
    }
}

/// The folder itself, or the one above it in which it will be made.
fn nearest(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let mut above = absolute.ancestors();
    let there = above.find(|folder| fs::metadata(folder).is_ok());
    there.map_or_else(|| PathBuf::from("/"), Path::to_path_buf)
}
