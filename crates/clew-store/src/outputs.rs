//! Results of tools on disk, found again by words, within bounds.
//!
//! Every result becomes a file at once ([`ToolOutputs::save_context`]). In
//! memory stays a [`ContextPointer`]: what the result is about, whose it is and
//! what it was made from. What is needed again is loaded from its file.
//!
//! Each output belongs to one [`Scope`] and one owner; lookups never cross a
//! scope. The whole API lists across scopes only where its name says `all`.

mod bounds;
mod files;
mod folder;
mod index;
mod name;
mod relevance;
mod stored;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Mutex as AsyncMutex;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::disk::blocking;
use crate::model::Scope;
use crate::{Error, Purge};
use clew_context::model::{Clock, ContentSource, GuildId, UnixMillis, UserId};

pub use bounds::OutputLimits;
pub use files::{Disk, FileSystem, InMemory};
pub use folder::OutputFolder;
pub use name::describe;
pub use relevance::Keywords;
pub use stored::{ContextPointer, OutputId, QueryId, StoredContext};

use index::Index;

/// A result up to this many bytes goes to the model whole (`persistThreshold`).
pub const PERSIST_THRESHOLD: usize = 32 * 1024;

/// How outputs are kept.
#[derive(Debug, Clone)]
pub struct OutputSettings {
    /// `TOOL_OUTPUT_DIR`.
    pub context_dir: PathBuf,
    /// See [`PERSIST_THRESHOLD`]. Larger results are on disk alone.
    pub persist_threshold: usize,
    /// What all outputs together may take.
    pub limits: OutputLimits,
    /// `TOOL_OUTPUT_RESUME`: whether the next process finds them again.
    pub resume: bool,
}

impl OutputSettings {
    /// The defaults, in this folder.
    pub fn new(context_dir: impl Into<PathBuf>) -> Self {
        Self {
            context_dir: context_dir.into(),
            persist_threshold: PERSIST_THRESHOLD,
            limits: OutputLimits::default(),
            resume: false,
        }
    }
}

/// A result to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NewOutput {
    /// The tool that was called.
    pub tool_name: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// What it returned.
    pub result: Value,
    /// The number of the agent run that called it.
    pub task_id: Option<u64>,
    /// The query it was called for.
    pub query_id: Option<QueryId>,
    /// The conversation.
    pub scope: Scope,
    /// Its server; `None` in direct messages.
    pub guild: Option<GuildId>,
    /// Who asked.
    pub owner: UserId,
    /// The messages and channels it was made from.
    pub sources: Vec<ContentSource>,
    /// When the question was asked that the tool ran for. If its owner, place or conversation
    /// is erased after that, it never reaches a file.
    pub asked: UnixMillis,
    /// When the tool began. The same of what it was made from.
    pub began: UnixMillis,
}

/// Why a result was not kept.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// It is larger than all outputs together may be.
    #[error("the result of {bytes} bytes is larger than all outputs may be ({most} bytes)")]
    TooLarge {
        /// Its file's size.
        bytes: u64,
        /// See [`OutputLimits::bytes`].
        most: u64,
    },
    /// Something it was made from was deleted, edited or erased meanwhile.
    #[error("what the result was made from was removed meanwhile")]
    SourceRemoved,
    /// Its owner, place or conversation was erased since the question was asked.
    #[error("what was asked for there was erased meanwhile")]
    Erased,
    /// The file could not be written.
    #[error(transparent)]
    Store(#[from] Error),
}

/// What could be loaded.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Those that could, in the order asked for.
    pub contexts: Vec<StoredContext>,
    /// Those that could not, and why.
    pub failed: Vec<(PathBuf, LoadError)>,
}

/// Why an output could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its file is gone, or was never one of ours.
    #[error("it is no longer there")]
    Gone,
    /// Its file cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
}

/// The results of tools that are kept.
pub struct ToolOutputs {
    settings: OutputSettings,
    files: Arc<dyn FileSystem>,
    clock: Clock,
    index: Mutex<Index>,
    /// Held while files and pointers change together.
    changing: AsyncMutex<()>,
}

impl std::fmt::Debug for ToolOutputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolOutputs")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl ToolOutputs {
    /// Opens the folder for this process alone. With `resume` the outputs in it
    /// are found again when they are first asked for; otherwise they are removed
    /// now, since no pointer leads to them.
    ///
    /// # Errors
    /// [`Error::Held`] if another process uses the folder, [`Error::Io`] if it
    /// cannot be read or written.
    pub async fn open(
        settings: OutputSettings,
        files: Arc<dyn FileSystem>,
        clock: Clock,
    ) -> Result<Self, Error> {
        let outputs = Self {
            index: Mutex::new(Index::new(settings.limits, settings.resume)),
            settings,
            files,
            clock,
            changing: AsyncMutex::new(()),
        };
        outputs
            .on_files("open the folder of outputs", |files, folder| {
                files.open(folder)
            })
            .await?;
        if !outputs.settings.resume {
            outputs.clear_context_dir().await?;
        }
        Ok(outputs)
    }

    /// Writes a result to its file and returns the pointer to it. The oldest
    /// outputs of whoever has most make room. In a span with the tool, the file
    /// and its size.
    ///
    /// # Errors
    /// See [`SaveError`]; nothing is kept then.
    pub async fn save_context(&self, output: NewOutput) -> Result<ContextPointer, SaveError> {
        let tool = &output.tool_name;
        let span = tracing::debug_span!("save_context", tool, file = Empty, bytes = Empty);
        self.save(output).instrument(span).await
    }

    async fn save(&self, output: NewOutput) -> Result<ContextPointer, SaveError> {
        let now = (self.clock)();
        self.resume().await?;
        let _changing = self.changing.lock().await;
        let serial = self.index().next_serial();
        let folder = &self.settings.context_dir;
        let (pointer, text) = ContextPointer::of(output, folder, now, serial);
        let (bytes, most) = (pointer.file_bytes, self.settings.limits.bytes);
        Span::current().record("file", &pointer.filename);
        Span::current().record("bytes", bytes);
        if bytes > most {
            return Err(SaveError::TooLarge { bytes, most });
        }
        self.index().check(&pointer)?;
        let crowded_out = self.index().crowded_out(&pointer);
        self.remove(crowded_out).await?;
        let path = pointer.filepath.clone();
        self.on_files("write an output", move |files, _| files.write(&path, &text))
            .await?;
        // A purge that came while the file was written did not see it.
        let checked = self.index().check(&pointer);
        if let Err(removed) = checked {
            self.remove(vec![pointer]).await?;
            return Err(removed);
        }
        self.index().insert(pointer.clone(), now);
        Ok(pointer)
    }

    /// Whether the model gets a result of this size whole.
    pub const fn is_inline(&self, bytes: usize) -> bool {
        bytes <= self.settings.persist_threshold
    }

    /// All pointers, oldest first.
    ///
    /// # Errors
    /// The folder cannot be read (with `resume`, the first time).
    pub async fn all_pointers(&self) -> Result<Vec<ContextPointer>, Error> {
        self.pointers(|_| true).await
    }

    /// The pointers of one conversation, oldest first. Keeps its session alive.
    ///
    /// # Errors
    /// As [`all_pointers`](Self::all_pointers).
    pub async fn pointers_in(&self, scope: Scope) -> Result<Vec<ContextPointer>, Error> {
        let pointers = self.pointers(|pointer| pointer.scope == scope).await?;
        self.index().used(scope, (self.clock)());
        Ok(pointers)
    }

    /// The pointers of one query in one conversation, oldest first.
    ///
    /// # Errors
    /// As [`all_pointers`](Self::all_pointers).
    pub async fn pointers_for_query(
        &self,
        scope: Scope,
        query: &QueryId,
    ) -> Result<Vec<ContextPointer>, Error> {
        let is_of = |pointer: &ContextPointer| {
            pointer.scope == scope && pointer.query_id.as_ref() == Some(query)
        };
        self.pointers(is_of).await
    }

    /// The pointers of one agent run, oldest first.
    ///
    /// # Errors
    /// As [`all_pointers`](Self::all_pointers).
    pub async fn pointers_for_task(&self, task: u64) -> Result<Vec<ContextPointer>, Error> {
        self.pointers(|pointer| pointer.task_id == Some(task)).await
    }

    /// The pointer with this id in one conversation.
    ///
    /// # Errors
    /// As [`all_pointers`](Self::all_pointers).
    pub async fn pointer(
        &self,
        scope: Scope,
        id: &OutputId,
    ) -> Result<Option<ContextPointer>, Error> {
        let pointers = self.pointers_in(scope).await?;
        Ok(pointers.into_iter().find(|pointer| pointer.id == *id))
    }

    /// Reads outputs from their files. What is missing or cannot be read costs
    /// nothing but itself. Only files that a pointer leads to are read, each in a
    /// span with its path.
    pub async fn load_contexts(&self, filepaths: &[PathBuf]) -> Loaded {
        let mut loaded = Loaded::default();
        for path in filepaths {
            let span = tracing::debug_span!("load_context", file = %path.display());
            match self.load(path).instrument(span).await {
                Ok(context) => loaded.contexts.push(context),
                Err(error) => loaded.failed.push((path.clone(), error)),
            }
        }
        loaded
    }

    /// Chooses among pointers by the words they share with a query, best first;
    /// of equals the newest. All of them where none shares a word.
    pub fn select_relevant_contexts(query: &str, pointers: &[ContextPointer]) -> Vec<PathBuf> {
        let mut chosen = relevance::ranked(query, pointers);
        if chosen.is_empty() {
            chosen = pointers.iter().collect();
        }
        let path = |pointer: &ContextPointer| pointer.filepath.clone();
        chosen.into_iter().map(path).collect()
    }

    /// The pointers to offer with a prompt: those that share a word with the
    /// query, best first, at most `most`.
    pub fn offers<'a>(
        query: &str,
        pointers: &'a [ContextPointer],
        most: usize,
    ) -> Vec<&'a ContextPointer> {
        let mut chosen = relevance::ranked(query, pointers);
        chosen.truncate(most);
        chosen
    }

    /// The id of a query: equal for equal queries, in every process.
    pub fn hash_query(query: &str) -> QueryId {
        QueryId::of(query)
    }

    /// Forgets all pointers; the files stay.
    pub fn clear_pointers(&self) {
        self.index().clear();
    }

    /// Removes all files of outputs; the pointers stay, and loading says that
    /// they lead nowhere. Other files in the folder are left alone.
    ///
    /// # Errors
    /// The folder cannot be read, or a file cannot be removed.
    pub async fn clear_context_dir(&self) -> Result<(), Error> {
        let _changing = self.changing.lock().await;
        self.on_files("remove outputs", |files, folder| {
            for file in files.list(folder)? {
                files.remove(&file)?;
            }
            Ok(())
        })
        .await
    }

    /// Removes all files and pointers.
    ///
    /// # Errors
    /// As [`clear_context_dir`](Self::clear_context_dir).
    pub async fn clear(&self) -> Result<(), Error> {
        self.clear_context_dir().await?;
        self.clear_pointers();
        Ok(())
    }

    /// Pointers in memory.
    pub fn len(&self) -> usize {
        self.index().len()
    }

    /// Whether there are no pointers in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The folder.
    pub fn context_dir(&self) -> &Path {
        &self.settings.context_dir
    }

    /// Removes the outputs that a purge reaches: by owner, server, channel, time,
    /// and by what they were made from. Outputs that tools are still making from
    /// it, or for questions of theirs, are refused when they come. `at` is now, by the
    /// clock of [`NewOutput::asked`]. Returns how many were removed.
    ///
    /// # Errors
    /// A file cannot be removed; its pointer is gone all the same, and the file
    /// goes with the next sweep.
    pub async fn purge(&self, purge: &Purge, at: UnixMillis) -> Result<u64, Error> {
        self.note(purge, at);
        self.resume().await?;
        let _changing = self.changing.lock().await;
        let reached = self.index().take(|pointer| pointer.is_reached_by(purge));
        self.remove(reached).await
    }

    /// Has a purge that is over refuse what comes too late for it, as [`purge`](Self::purge) does.
    pub fn note(&self, purge: &Purge, at: UnixMillis) {
        self.index().note_purge(purge, at);
    }

    /// Removes the outputs of one conversation, and refuses those for questions from
    /// before `at`.
    ///
    /// # Errors
    /// As [`purge`](Self::purge).
    pub async fn end_session(&self, scope: Scope, at: UnixMillis) -> Result<u64, Error> {
        self.index().note_end(scope, at);
        self.resume().await?;
        let _changing = self.changing.lock().await;
        let of_scope = self.index().take(|pointer| pointer.scope == scope);
        self.remove(of_scope).await
    }

    /// Removes what is too old, what belongs to a conversation that has been
    /// idle for too long, and files that could not be removed before. Returns
    /// how many outputs went. To be called every minute.
    ///
    /// # Errors
    /// As [`purge`](Self::purge).
    pub async fn sweep(&self) -> Result<u64, Error> {
        let _changing = self.changing.lock().await;
        let expired = self.index().expired((self.clock)());
        self.remove(expired).await
    }

    /// At shutdown: files go unless the next process shall find them.
    ///
    /// # Errors
    /// As [`clear_context_dir`](Self::clear_context_dir).
    pub async fn close(&self) -> Result<(), Error> {
        if self.settings.resume {
            return Ok(());
        }
        self.clear().await
    }

    async fn pointers(
        &self,
        is_wanted: impl Fn(&ContextPointer) -> bool,
    ) -> Result<Vec<ContextPointer>, Error> {
        self.resume().await?;
        let index = self.index();
        let wanted = index.iter().filter(|pointer| is_wanted(pointer));
        Ok(wanted.cloned().collect())
    }

    async fn load(&self, path: &Path) -> Result<StoredContext, LoadError> {
        self.resume().await?;
        let pointer = self.index().at(path).cloned().ok_or(LoadError::Gone)?;
        let path = pointer.filepath.clone();
        let read = self.on_files("read an output", move |files, _| files.read(&path));
        let text = read.await?.ok_or(LoadError::Gone)?;
        // What was purged while the file was read is not shown.
        if self.index().at(&pointer.filepath).is_none() {
            return Err(LoadError::Gone);
        }
        Ok(StoredContext::from_json(&text, &pointer.filepath)?)
    }

    /// Rebuilds the pointers of a former process, once.
    async fn resume(&self) -> Result<(), Error> {
        if !self.index().must_resume() {
            return Ok(());
        }
        let _changing = self.changing.lock().await;
        if !self.index().must_resume() {
            return Ok(());
        }
        let (found, unreadable) = self
            .on_files("find outputs again", |files, folder| {
                let mut found = Vec::new();
                let mut unreadable = Vec::new();
                for file in files.list(folder)? {
                    let Some(text) = files.read(&file)? else {
                        continue;
                    };
                    match ContextPointer::from_json(&text, &file) {
                        Ok(pointer) => found.push(pointer),
                        Err(_) => unreadable.push(file),
                    }
                }
                Ok((found, unreadable))
            })
            .await?;
        // No pointer leads to them, so no purge would ever find them.
        for file in &unreadable {
            tracing::warn!(file = %file.display(), "removing an output of a tool that is broken");
        }
        self.index().put_undeleted(unreadable);
        let crowded_out = self.index().resumed(found, (self.clock)());
        if let Err(error) = self.remove(crowded_out).await {
            tracing::warn!(%error, "outputs of tools are left, to be removed by the next sweep");
        }
        Ok(())
    }

    /// Removes the files of pointers that are no longer in the index. Those that
    /// cannot be removed are tried again by [`sweep`](Self::sweep).
    async fn remove(&self, pointers: Vec<ContextPointer>) -> Result<u64, Error> {
        let path = |pointer: ContextPointer| pointer.filepath;
        let fresh: Vec<PathBuf> = pointers.into_iter().map(path).collect();
        let count = fresh.len() as u64;
        let mut paths = self.index().take_undeleted();
        paths.extend(fresh);
        if paths.is_empty() {
            return Ok(0);
        }
        let left = self
            .on_files("remove outputs", move |files, _| {
                let failed = |path: PathBuf| files.remove(&path).err().map(|error| (path, error));
                Ok(paths.into_iter().filter_map(failed).collect::<Vec<_>>())
            })
            .await?;
        let (left, mut errors): (Vec<PathBuf>, Vec<Error>) = left.into_iter().unzip();
        self.index().put_undeleted(left);
        match errors.pop() {
            Some(error) => Err(error),
            None => Ok(count),
        }
    }

    async fn on_files<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&dyn FileSystem, &Path) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let files = Arc::clone(&self.files);
        let folder = self.settings.context_dir.clone();
        blocking(operation, move || work(&*files, &folder)).await
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long purges are remembered, for results that are still on their way: far
/// longer than a tool may run.
const PURGES_KEPT: Duration = Duration::from_mins(10);
/// The same of purges that name an owner or a place: longer than the longest turn.
const ERASURES_KEPT: Duration = Duration::from_hours(24);

#[cfg(test)]
mod tests;
