//! A bot that remembers: two people in two servers and their direct messages, a clock set by hand, and each
//! kind of store.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use clew::config::MemoryConfig;
use clew::memory;
use clew_context::model::{Clock, UnixMillis};
use clew_simulator::{ChannelKind, Draft, Id, User, World};
use clew_store::model::{ScopeKind, StoreAddress};
use clew_store::{Folders, Store};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::support::bot::{Bot, Stage, prompt};
use crate::support::model::Behaviour;
#[cfg(feature = "postgres")]
use crate::support::postgres::{Database, Postgres, dump_all};

/// When a place's clock starts, in Unix milliseconds; in May 2026.
pub(super) const START_MS: i64 = 1_780_000_000_000;
pub(super) const HOUR: i64 = 3_600_000;
pub(super) const DAY: i64 = 24 * HOUR;
/// How long to wait for a condition before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause between two checks of a condition.
const LOOK: Duration = Duration::from_millis(10);

/// Settings for a memory without a bot.
pub(crate) fn settings() -> memory::Settings {
    let day = Duration::from_hours(24);
    let config = MemoryConfig {
        store: StoreAddress::Sqlite(PathBuf::from("clew.db")),
        scope: ScopeKind::Member,
        rolling_window: day,
        max_context_messages: 30,
        max_context_chars: 16_000,
        load_past: 30,
        recall: 4,
        in_memory_only: false,
        retention: None,
        receipts: None,
        guild_retention: day,
        agents_dir: PathBuf::new(),
        default_agent: true,
        learn: false,
        max_user_facts: 5,
        max_server_facts: 100,
        save_interval: day,
        user_profile_dir: PathBuf::new(),
        server_profile_dir: PathBuf::new(),
        dm_logs_dir: None,
        max_log_bytes: None,
    };
    memory::Settings {
        memory: config,
        answer_messages: 4,
        patience: Duration::from_secs(5),
    }
}

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sqlite,
    Files,
    #[cfg(feature = "postgres")]
    Postgres,
}

/// Runs scenarios on each back end: `name::sqlite`, `name::files`,
/// `name::postgres`.
macro_rules! on_each_store {
    ($($name:ident)*) => {$(
        mod $name {
            use crate::memory::place::Kind;

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                super::$name(Kind::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn files() {
                super::$name(Kind::Files).await;
            }

            #[cfg(feature = "postgres")]
            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                super::$name(Kind::Postgres).await;
            }
        }
    )*};
}
pub(super) use on_each_store;

/// Like `on_each_store`, for scenarios that files do not support.
macro_rules! on_each_database {
    ($($name:ident)*) => {$(
        mod $name {
            use crate::memory::place::Kind;

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                super::$name(Kind::Sqlite).await;
            }

            #[cfg(feature = "postgres")]
            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                super::$name(Kind::Postgres).await;
            }
        }
    )*};
}
pub(super) use on_each_database;

/// A clock that advances by a millisecond each time it is read.
#[derive(Debug, Clone)]
pub(super) struct Time(Arc<AtomicI64>);

impl Time {
    pub(super) fn pass(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(super) fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn clock(&self) -> Clock {
        let now = Arc::clone(&self.0);
        Arc::new(move || UnixMillis(now.fetch_add(1, Ordering::SeqCst)))
    }
}

/// Ada (111) and Boris (222) are in both servers.
pub(super) struct Place {
    pub(super) stage: Stage,
    pub(super) time: Time,
    pub(super) kind: Kind,
    pub(super) guild: Id,
    pub(super) help: Id,
    pub(super) pumps: Id,
    pub(super) thread: Id,
    pub(super) other_guild: Id,
    pub(super) abroad: Id,
    /// Ada's direct messages.
    pub(super) direct: Id,
    pub(super) ada: Id,
    pub(super) boris: Id,
    #[cfg(feature = "postgres")]
    pub(super) database: Option<Database>,
}

/// A turn that was answered and, unless stated otherwise, stored.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) prompt: String,
    pub(super) trigger: Id,
    pub(super) answer: Id,
}

impl Place {
    pub(super) async fn new(kind: Kind, settings: &[(&str, &str)]) -> Self {
        let mut world = World::new();
        // 0 skips the five seconds between two identifies.
        world.settings.max_concurrency = 0;
        let (guild, other_guild) = (world.guild("Works"), world.guild("Abroad"));
        let [ada, boris] = [(111, "Ada"), (222, "Boris")].map(|(id, name)| {
            let user = world.add_user(User {
                id: Id(id),
                name: name.to_owned(),
                global_name: None,
                bot: false,
            });
            world.join(guild, user);
            world.join(other_guild, user);
            user
        });
        let help = world.channel(guild, ChannelKind::Text, "help");
        let pumps = world.channel(guild, ChannelKind::Text, "pumps");
        let thread = world.thread(help, ChannelKind::PublicThread, "pump failure", ada);
        let abroad = world.channel(other_guild, ChannelKind::Text, "abroad");
        let direct = world.direct(ada);
        let mut stage = Stage::new(
            world,
            &[
                ("TELEMETRY_KEEP_DAYS", "0"),
                ("USER_TURNS_PER_MIN", "0"),
                // It would read the pages that these tests count.
                ("CATCH_UP_MIN", "0"),
            ],
        )
        .await;
        let time = Time(Arc::new(AtomicI64::new(START_MS)));
        stage.clock = time.clock();
        #[cfg(feature = "postgres")]
        let database = match kind {
            Kind::Postgres => Some(Postgres::shared().fresh_database().await),
            Kind::Sqlite | Kind::Files => None,
        };
        match kind {
            Kind::Sqlite => {}
            Kind::Files => {
                let dir = stage.folder.path().join("context");
                stage.set("CONTEXT_STORE", &format!("files:{}", dir.display()));
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres => stage.set("CONTEXT_STORE", &database.as_ref().unwrap().url),
        }
        for (name, value) in settings {
            stage.set(name, value);
        }
        Self {
            stage,
            time,
            kind,
            guild,
            help,
            pumps,
            thread,
            other_guild,
            abroad,
            direct,
            ada,
            boris,
            #[cfg(feature = "postgres")]
            database,
        }
    }

    pub(super) async fn start(&self) -> Bot {
        self.stage.start().await
    }

    /// Stops the bot and starts the next one a second later.
    pub(super) async fn restart(&self, bot: Bot) -> Bot {
        bot.stop().await;
        self.time.pass(1_000);
        self.start().await
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.stage.folder.path().join(name)
    }

    /// Posts words addressed to the bot; in direct messages without a mention.
    pub(super) fn say(&self, channel: Id, author: Id, words: &str) -> Id {
        let us = self.stage.discord.bot();
        let text = if channel == self.direct {
            words.to_owned()
        } else {
            format!("<@{us}> {words}")
        };
        self.stage.discord.post(channel, author, text)
    }

    /// Asks, is answered with `so: ` and the words, and waits until the turn is stored.
    pub(super) async fn ask(&self, channel: Id, author: Id, words: &str) -> Asked {
        let answer = format!("so: {words}");
        self.ask_for(channel, author, words, &answer).await
    }

    /// Asks, is given this answer, and waits until the turn is stored.
    pub(super) async fn ask_for(
        &self,
        channel: Id,
        author: Id,
        words: &str,
        answer: &str,
    ) -> Asked {
        let draft = self.draft(channel, words);
        self.post_for(channel, author, draft, answer).await
    }

    /// Asks and is answered with `so: ` and the words; does not wait for the store.
    pub(super) async fn ask_only(&self, channel: Id, author: Id, words: &str) -> Asked {
        let draft = self.draft(channel, words);
        let answer = format!("so: {words}");
        self.answered(channel, author, draft, &answer).await
    }

    /// Words addressed to the bot; in direct messages without a mention.
    fn draft(&self, channel: Id, words: &str) -> Draft {
        let us = self.stage.discord.bot();
        if channel == self.direct {
            Draft::new(words)
        } else {
            Draft::new(format!("<@{us}> {words}"))
        }
    }

    /// Posts a draft addressed to the bot, is given this answer, and waits until the turn is stored.
    pub(super) async fn post_for(
        &self,
        channel: Id,
        author: Id,
        draft: Draft,
        answer: &str,
    ) -> Asked {
        let stored = self.event_count("recorded");
        let asked = self.answered(channel, author, draft, answer).await;
        self.until("a stored turn", || self.event_count("recorded") > stored)
            .await;
        asked
    }

    /// Like `post_for`, without waiting for the store.
    pub(super) async fn answered(
        &self,
        channel: Id,
        author: Id,
        draft: Draft,
        answer: &str,
    ) -> Asked {
        let requests = self.stage.model.requests().len();
        self.stage.model.script(Behaviour::text(&[answer]));
        let trigger = self.stage.discord.post(channel, author, draft);
        let request = self.stage.model.wait_requests(requests + 1).await;
        let us = self.stage.discord.bot();
        let posted = self
            .stage
            .discord
            .wait_for_message(channel, |message| {
                message.author == us && message.content == answer && message.id > trigger
            })
            .await
            .unwrap();
        Asked {
            prompt: prompt(&request[requests]),
            trigger,
            answer: posted.id,
        }
    }

    /// Asks an arbitrary question; returns its prompt.
    pub(super) async fn prompt(&self, channel: Id, author: Id) -> String {
        self.ask_for(channel, author, "go on", "ok").await.prompt
    }

    /// The number of telemetry lines with this event so far.
    pub(super) fn event_count(&self, event: &str) -> usize {
        let wanted = format!("\"event\":\"{event}\"");
        let text: Vec<u8> = files(&self.path("telemetry"))
            .iter()
            .flat_map(|file| fs::read(file).unwrap())
            .collect();
        String::from_utf8_lossy(&text).matches(&wanted).count()
    }

    /// Waits for a condition that no event reports.
    #[expect(clippy::unused_self, reason = "reads better as a method of the place")]
    #[track_caller]
    pub(super) fn until<'a>(
        &'a self,
        what: &'a str,
        mut is_so: impl FnMut() -> bool + 'a,
    ) -> impl Future<Output = ()> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let deadline = Instant::now() + PATIENCE;
            while !is_so() {
                assert!(Instant::now() < deadline, "{caller}: not {what}");
                sleep(LOOK).await;
            }
        }
    }

    /// Waits until no byte of a text is kept anywhere.
    #[track_caller]
    pub(super) fn until_gone<'a>(&'a self, mark: &'a str) -> impl Future<Output = ()> + 'a {
        self.until("without a trace", move || self.traces(mark).is_empty())
    }

    /// Where a text is kept: files below the stage's folder, or the database.
    pub(super) fn traces(&self, mark: &str) -> Vec<String> {
        let mut found: Vec<String> = files(self.stage.folder.path())
            .into_iter()
            // A file that vanishes meanwhile holds nothing.
            .filter(|file| contains(&fs::read(file).unwrap_or_default(), mark.as_bytes()))
            .map(|file| file.display().to_string())
            .collect();
        #[cfg(feature = "postgres")]
        if let Some(database) = &self.database
            && dump_all(&database.admin_url).contains(mark)
        {
            found.push("PostgreSQL".to_owned());
        }
        found
    }

    /// Opens the store while no bot is running.
    pub(super) async fn open(&self) -> Store {
        let memory = self.stage.config().memory;
        let folders = Folders {
            agents: memory.agents_dir,
            users: memory.user_profile_dir,
            servers: memory.server_profile_dir,
        };
        Store::open(&memory.store, &folders, self.time.clock())
            .await
            .unwrap()
    }

    /// The details of the telemetry lines with this event.
    pub(super) fn details(&self, event: &str) -> Vec<Value> {
        let lines = crate::support::bot::lines(&self.path("telemetry"));
        crate::support::bot::details(&lines, event)
    }
}

fn contains(bytes: &[u8], mark: &[u8]) -> bool {
    bytes.windows(mark.len()).any(|window| window == mark)
}

/// All files below a folder.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Asserts that the prompt contains all of these, in this order.
#[track_caller]
pub(super) fn assert_says(prompt: &str, parts: &[&str]) {
    let mut rest = prompt;
    for part in parts {
        let at = rest.find(part);
        let at =
            at.unwrap_or_else(|| panic!("{part:?} is missing, or out of order, in:\n{prompt}"));
        rest = &rest[at + part.len()..];
    }
}

#[track_caller]
pub(super) fn assert_says_nothing_of(prompt: &str, marks: &[&str]) {
    for mark in marks {
        assert!(!prompt.contains(mark), "{mark:?} is in:\n{prompt}");
    }
}
