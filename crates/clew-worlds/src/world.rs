//! A world while it runs: its Discord, its time, its faults, and what happened.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clew_simulator::{Dispatch, Id, Local, Simulator};
use serde_json::Value;
use tokio::sync::broadcast::Receiver;

use crate::chance::Chance;
use crate::clock::WorldClock;
use crate::disk;
use crate::history::{Happened, What, marks};
use crate::seams::cluster::Database;
use crate::twins::Twins;

pub(crate) struct World {
    pub(crate) clock: Arc<WorldClock>,
    pub(crate) discord: Simulator,
    pub(crate) local: Local,
    pub(crate) troubles: Mutex<Troubles>,
    /// What other stores answer, if they are asked.
    pub(crate) twins: Option<Twins>,
    /// What processes share that agree who is the bot.
    pub(crate) database: Database,
    /// Where the bot's files are.
    folder: PathBuf,
    /// Decides what the seams do.
    chance: Mutex<Chance>,
    record: Mutex<Record>,
}

struct Record {
    history: Vec<Happened>,
    /// What the bot posts is read from here, before anything else is noted.
    dispatches: Receiver<Dispatch>,
    /// Where each of the bot's messages is, since a deletion does not say whose it was.
    of_bot: BTreeMap<Id, Id>,
}

/// Which faults are on, and what they do.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    /// What the model does with its next requests.
    pub(crate) model: Vec<ModelTrouble>,
    /// What the store does with its next calls.
    pub(crate) store: Vec<StoreTrouble>,
    /// How many of the next gateway events come late, and by how many milliseconds.
    pub(crate) late_events: (u32, u64),
    /// How many of the next gateway events come twice.
    pub(crate) doubled_events: u32,
}

/// What a model server does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelTrouble {
    /// It answers with a status.
    Status(u16),
    /// It breaks off in the middle of the answer.
    BreaksOff,
    /// It says nothing for this many milliseconds, then breaks off.
    Hangs(u64),
    /// It takes this many milliseconds between two words.
    Slow(u64),
    /// It answers without a word.
    Empty,
}

/// What a store does wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreTrouble {
    /// It fails, having done nothing.
    Fails,
    /// It does what it was asked, and fails.
    AppliedButLost,
    /// Its disk is full: what writes fails.
    Full,
    /// Another process holds it: the bot ends, so that two never answer.
    Held,
    /// It answers after this many milliseconds.
    Hangs(u64),
}

impl World {
    pub(crate) fn new(
        clock: Arc<WorldClock>,
        discord: Simulator,
        twins: Option<Twins>,
        folder: &Path,
        chance: Chance,
    ) -> Self {
        let dispatches = discord.subscribe();
        Self {
            clock,
            local: discord.local(),
            discord,
            troubles: Mutex::default(),
            twins,
            database: Database::default(),
            folder: folder.to_owned(),
            chance: Mutex::new(chance),
            record: Mutex::new(Record {
                history: Vec::new(),
                dispatches,
                of_bot: BTreeMap::new(),
            }),
        }
    }

    /// Notes what happened.
    pub(crate) fn note(&self, what: What) {
        let at = self.clock.elapsed_ms();
        let bot = self.discord.bot();
        let mut record = lock(&self.record);
        record.take_posts(at, bot);
        record.history.push(Happened { at, what });
    }

    /// Notes what is on the bot's disk.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn look_at_disk(&self) -> io::Result<()> {
        let files = disk::files(&self.folder)?.into_iter();
        // The store that several machines share stays open: what is in its files is not settled.
        let is_shared = |file: &disk::File| file.is_store() && self.database.is_open();
        let of_bot = files.filter(|file| !file.is_telemetry() && !is_shared(file));
        let files = of_bot.map(|file| (file.path, marks(&file.text))).collect();
        self.note(What::OnDisk { files });
        Ok(())
    }

    /// Everything that happened.
    pub(crate) fn history(&self) -> Vec<Happened> {
        let (at, bot) = (self.clock.elapsed_ms(), self.discord.bot());
        let mut record = lock(&self.record);
        record.take_posts(at, bot);
        record.history.clone()
    }

    /// Whether a process was asked to stop.
    pub(crate) fn is_asked_to_stop(&self, process: u32) -> bool {
        let record = lock(&self.record);
        let mut history = record.history.iter().rev();
        history.any(|one| one.what == What::AskedToStop { process })
    }

    /// The bot's messages, oldest first, with their channels.
    pub(crate) fn posts_of_bot(&self) -> Vec<(Id, Id)> {
        let (at, bot) = (self.clock.elapsed_ms(), self.discord.bot());
        let mut record = lock(&self.record);
        record.take_posts(at, bot);
        record
            .of_bot
            .iter()
            .map(|(message, channel)| (*message, *channel))
            .collect()
    }

    /// A number for a seam.
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        lock(&self.chance).between(from, to)
    }

    pub(crate) fn troubles(&self) -> MutexGuard<'_, Troubles> {
        lock(&self.troubles)
    }
}

impl Record {
    fn take_posts(&mut self, at: i64, bot: Id) {
        while let Ok(dispatch) = self.dispatches.try_recv() {
            if let Some(what) = self.of_dispatch(&dispatch, bot) {
                self.history.push(Happened { at, what });
            }
        }
    }

    fn of_dispatch(&mut self, dispatch: &Dispatch, bot: Id) -> Option<What> {
        let data = &*dispatch.data;
        let id = |value: &Value| value.as_str()?.parse().ok().map(Id);
        match &*dispatch.name {
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" if id(&data["author"]["id"]) == Some(bot) => {
                let (message, channel) = (id(&data["id"])?, id(&data["channel_id"])?);
                self.of_bot.insert(message, channel);
                let text = data["content"].as_str().unwrap_or_default();
                Some(What::Posted {
                    message,
                    channel,
                    marks: marks(text),
                    replies_to: id(&data["message_reference"]["message_id"]),
                    text: text.to_owned(),
                })
            }
            "MESSAGE_DELETE" => {
                let message = id(&data["id"])?;
                self.of_bot.remove(&message)?;
                let messages = vec![message];
                Some(What::TakenBack { messages })
            }
            _ => None,
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
