//! A bot that is killed and started again on one folder and one store.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clew_simulator::{Simulator, World};
use clew_store::model::StoreAddress;
use clew_store::{Folders, Store};
use tempfile::TempDir;

use super::model::Model;

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct KilledBot {
    pub(crate) discord: Simulator,
    pub(crate) model: Model,
    pub(crate) folder: TempDir,
    /// `CONTEXT_STORE`.
    pub(crate) store: String,
}

impl KilledBot {
    /// Its servers; `store` is `sqlite`, `files`, or a PostgreSQL URL. No process runs yet.
    pub(crate) async fn new(mut world: World, model: Model, store: &str) -> Self {
        // 0 skips the five seconds between two identifies.
        world.settings.max_concurrency = 0;
        let folder = TempDir::new().unwrap();
        let place = match store {
            "sqlite" => form("sqlite", &folder.path().join("clew.db")),
            "files" => form("files", &folder.path().join("context")),
            url => url.to_owned(),
        };
        Self {
            discord: Simulator::start(world).await.unwrap().patience(PATIENCE),
            model,
            folder,
            store: place,
        }
    }

    /// Starts a process, with further settings.
    pub(crate) fn start(&self, settings: &[(&str, &str)]) -> Child {
        let log = File::create(self.folder.path().join("stderr")).unwrap();
        let folders = folders(self.folder.path());
        Command::new(env!("CARGO_BIN_EXE_clew"))
            .arg("run")
            .current_dir(self.folder.path())
            .env_clear()
            .env("DISCORD_TOKEN", self.discord.token())
            .env("DISCORD_API_URL", self.discord.url())
            .env("DISCORD_GATEWAY_URL", self.discord.gateway_url())
            .env("LLM_BASE_URL", self.model.url())
            .env("LLM_MODEL", "bench")
            .env("USER_TURNS_PER_MIN", "0")
            .env("LOG_LEVEL", "warn")
            .env("CONTEXT_STORE", &self.store)
            .env("AGENTS_DIR", folders.agents)
            .env("USER_PROFILE_DIR", folders.users)
            .env("SERVER_PROFILE_DIR", folders.servers)
            .envs(settings.iter().copied())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Starts a process and waits until it has read its servers.
    pub(crate) async fn begin(&self, settings: &[(&str, &str)]) -> Child {
        let begun = self.discord.sessions_begun();
        let child = self.start(settings);
        let connected = self.discord.wait_sessions(begun + 1).await;
        let log = || fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
        assert!(connected.is_ok(), "it does not connect: {}", log());
        child
    }

    /// The store as it is on disk, beside a bot or without one.
    pub(crate) async fn look(&self) -> Store {
        let address: StoreAddress = self.store.parse().unwrap();
        let folders = folders(self.folder.path());
        let opened = Store::look(&address, &folders, clew::app::system_clock()).await;
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

fn form(kind: &str, path: &Path) -> String {
    format!("{kind}:{}", path.display())
}
