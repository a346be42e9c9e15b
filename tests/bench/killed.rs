//! A bot that is killed and started again on one folder and one store.

use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use clew_simulator::{Simulator, World};
use clew_store::model::StoreAddress;
use clew_store::{Folders, Store};
use tempfile::TempDir;

use super::bot::command;
use super::model::Model;

/// So that no limit refuses a question.
pub(crate) const UNREFUSED: [(&str, &str); 3] = [
    ("TURN_QUEUE_PER_CHANNEL", "100"),
    ("MAX_CONCURRENT_TURNS", "64"),
    ("CATCH_UP_MIN", "30"),
];
/// All stores, each with its name and what [`setting`] takes.
pub(crate) const fn stores(database: &str) -> [(&str, &str); 3] {
    [
        ("sqlite", "sqlite"),
        ("files", "files"),
        ("postgres", database),
    ]
}

const PATIENCE: Duration = Duration::from_secs(30);
/// A process lives this long once it is connected, from and to.
const LIVES_MS: Range<u64> = 1_000..6_000;

pub(crate) struct KilledBot {
    pub(crate) discord: Simulator,
    model: Model,
    folder: TempDir,
    store: StoreAddress,
    /// `CONTEXT_STORE`: an address is printed without its password.
    setting: String,
}

impl KilledBot {
    /// Its servers; for `store` see [`setting`]. No process runs yet.
    pub(crate) async fn new(mut world: World, model: Model, store: &str) -> Self {
        // 0 skips the five seconds between two identifies.
        world.settings.max_concurrency = 0;
        let folder = TempDir::new().unwrap();
        let setting = setting(folder.path(), store);
        Self {
            discord: Simulator::start(world).await.unwrap().patience(PATIENCE),
            model,
            folder,
            store: setting.parse().unwrap(),
            setting,
        }
    }

    /// Starts a process, with further settings, and waits until it is connected.
    pub(crate) async fn begin(&self, settings: &[(&str, &str)]) -> Child {
        let begun = self.discord.sessions_begun();
        let log = self.folder.path().join("stderr");
        let folders = folders(self.folder.path());
        let child = command(&self.discord, &self.model, self.folder.path())
            .env("CONTEXT_STORE", &self.setting)
            .env("AGENTS_DIR", folders.agents)
            .env("USER_PROFILE_DIR", folders.users)
            .env("SERVER_PROFILE_DIR", folders.servers)
            .envs(settings.iter().copied())
            .stderr(File::create(&log).unwrap())
            .spawn();
        let connected = self.discord.wait_sessions(begun + 1).await;
        let said = || fs::read_to_string(&log).unwrap_or_default();
        assert!(connected.is_ok(), "it does not connect: {}", said());
        child.unwrap()
    }

    /// The store as it is on disk, beside a bot or without one.
    pub(crate) async fn look(&self) -> Store {
        let folders = folders(self.folder.path());
        let opened = Store::look(&self.store, &folders, clew::app::system_clock()).await;
        opened.unwrap()
    }
}

pub(crate) fn folders(folder: &Path) -> Folders {
    Folders {
        agents: folder.join("agents"),
        users: folder.join("users"),
        servers: folder.join("servers"),
    }
}

/// `CONTEXT_STORE` for `sqlite` or `files` in a folder, or for a PostgreSQL URL.
pub(crate) fn setting(folder: &Path, store: &str) -> String {
    match store {
        "sqlite" => format!("sqlite:{}", folder.join("clew.db").display()),
        "files" => format!("files:{}", folder.join("context").display()),
        url => url.to_owned(),
    }
}

/// How long the next process lives.
pub(crate) fn life(seed: &mut u64) -> Duration {
    Duration::from_millis(LIVES_MS.start + next(seed) % (LIVES_MS.end - LIVES_MS.start))
}

/// A linear congruential generator (Knuth's MMIX).
pub(crate) const fn next(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    // The low bits repeat soon.
    *seed >> 33
}

/// `kill -9`.
pub(crate) fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}
