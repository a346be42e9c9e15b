//! Results of tools: kept for the rest of the turn and for later ones of the same
//! conversation, for the person for whom the tool ran.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Memory, Place, Result};
use crate::telemetry::event::StoreOperation;
use crate::telemetry::{Ids, with_sources};
use clew_context::model::{ContentSource, UnixMillis, UserId};
use clew_store::outputs::{
    ContextPointer, LoadError, NewOutput, OutputId, SaveError, StoredContext, ToolOutputs,
};
use clew_store::{Kind, Purge, Purged};

/// A result to be kept.
#[derive(Debug)]
pub struct MadeOutput<'a> {
    pub tool: &'a str,
    pub args: Map<String, Value>,
    /// What it gave.
    pub text: &'a str,
    /// What that was made from.
    pub sources: Vec<ContentSource>,
    /// What the asker asked.
    pub query: &'a str,
    /// The agent run that called the tool, if one did.
    pub task: Option<u64>,
    /// When the turn's question was asked.
    pub asked: UnixMillis,
    /// When the tool began.
    pub began: UnixMillis,
}

/// What became of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptOutput {
    /// It is on disk, under this id.
    Kept(OutputId),
    /// Nothing is kept, or nothing of this person, or of what they asked before an erasure.
    Off,
    /// What it was made from was deleted or edited meanwhile.
    SourceRemoved,
    /// There is no room, or the disk failed.
    Failed,
}

impl Memory {
    /// Keeps a result. It is on disk when this returns.
    pub async fn keep_output(&self, place: &Place, made: MadeOutput<'_>) -> KeptOutput {
        let Some(outputs) = self.outputs() else {
            return KeptOutput::Off;
        };
        if self.opted_out(place.asker) {
            return KeptOutput::Off;
        }
        let output = NewOutput {
            tool_name: made.tool.to_owned(),
            args: made.args,
            result: Value::from(made.text),
            task_id: made.task,
            query_id: Some(ToolOutputs::hash_query(made.query)),
            scope: place.scope,
            guild: place.guild,
            owner: place.asker,
            sources: made.sources,
            asked: made.asked,
            began: made.began,
        };
        match outputs.save_context(output).await {
            // An opt-out that came meanwhile purged what it found.
            Ok(_) if self.opted_out(place.asker) => KeptOutput::Off,
            Ok(pointer) => KeptOutput::Kept(pointer.id),
            Err(SaveError::SourceRemoved) => KeptOutput::SourceRemoved,
            Err(SaveError::Erased) => KeptOutput::Off,
            Err(error @ (SaveError::TooLarge { .. } | SaveError::Store(_))) => {
                tracing::warn!(error = %with_sources(&error), "what a tool gave was not kept");
                KeptOutput::Failed
            }
        }
    }

    /// Whether a result of this size is shown to the model whole.
    pub fn is_inline(&self, bytes: usize) -> bool {
        self.outputs()
            .is_none_or(|outputs| outputs.is_inline(bytes))
    }

    /// What tools gave the asker in this conversation for questions since its last clear,
    /// oldest first. None if the store fails.
    pub async fn outputs_of(&self, ids: &Ids, place: &Place) -> Vec<ContextPointer> {
        let Some(outputs) = self.outputs() else {
            return Vec::new();
        };
        let found = async {
            let mut pointers = outputs.pointers_in(place.scope).await?;
            pointers.retain(|pointer| self.is_for(pointer, place.asker));
            if !pointers.is_empty() {
                let since = self.since(place).await?;
                pointers.retain(|pointer| pointer.asked > since);
            }
            Ok(pointers)
        };
        let told = |error: &_| self.failed(ids, StoreOperation::Read, error);
        found.await.inspect_err(told).unwrap_or_default()
    }

    /// What tools gave its asker in an agent run, oldest first. None if the store fails.
    pub async fn outputs_of_run(&self, ids: &Ids, run: u64, asker: UserId) -> Vec<ContextPointer> {
        let Some(outputs) = self.outputs() else {
            return Vec::new();
        };
        let found = outputs.pointers_for_task(run).await;
        let told = |error: &_| self.failed(ids, StoreOperation::Read, error);
        let mut pointers = found.inspect_err(told).unwrap_or_default();
        pointers.retain(|pointer| self.is_for(pointer, asker));
        pointers
    }

    /// One of them in full; none if it is not there any more.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub async fn output(&self, pointer: &ContextPointer) -> Result<Option<String>> {
        let Some(outputs) = self.outputs() else {
            return Ok(None);
        };
        let loaded = loaded(outputs, pointer).await?;
        Ok(loaded.map(|context| context.text().into_owned()))
    }

    /// Those that share a word with what is asked, best first.
    pub fn offers<'a>(
        words: &str,
        pointers: &'a [ContextPointer],
        most: usize,
    ) -> Vec<&'a ContextPointer> {
        ToolOutputs::offers(words, pointers, most)
    }

    /// Whether it is the asker's, and nobody whose words it was made from opted out.
    fn is_for(&self, pointer: &ContextPointer, asker: UserId) -> bool {
        let opted_out = self.opt_outs.current();
        let mut authors = pointer.sources.iter().filter_map(|source| source.author);
        pointer.owner == asker
            && !opted_out.contains(asker)
            && !authors.any(|author| opted_out.contains(author))
    }

    /// Removes the results that a purge reaches.
    ///
    /// # Errors
    /// A file could not be removed.
    pub(super) async fn purge_outputs(&self, purge: &Purge) -> Result<Purged> {
        let mut purged = Purged::default();
        if let Some(outputs) = self.outputs() {
            purged.add(Kind::Outputs, outputs.purge(purge, self.now_apart()).await?);
        }
        Ok(purged)
    }

    /// All results of a user as JSON.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) async fn export_outputs(&self, user: UserId) -> Result<Vec<String>> {
        let Some(outputs) = self.outputs() else {
            return Ok(Vec::new());
        };
        let mut pointers = outputs.all_pointers().await?;
        pointers.retain(|pointer| pointer.owner == user);
        let mut entries = Vec::with_capacity(pointers.len());
        for pointer in &pointers {
            let context = loaded(outputs, pointer).await?;
            entries.extend(context.map(|context| context.to_line()));
        }
        Ok(entries)
    }

    /// How many results are kept of a user.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) async fn count_outputs(&self, user: UserId) -> Result<u64> {
        let Some(outputs) = self.outputs() else {
            return Ok(0);
        };
        let pointers = outputs.all_pointers().await?;
        let theirs = pointers.iter().filter(|pointer| pointer.owner == user);
        Ok(theirs.count() as u64)
    }

    /// Of whom results are kept.
    ///
    /// # Errors
    /// As [`count_outputs`](Memory::count_outputs).
    pub(super) async fn owners_of_outputs(&self) -> Result<BTreeSet<UserId>> {
        let Some(outputs) = self.outputs() else {
            return Ok(BTreeSet::new());
        };
        let pointers = outputs.all_pointers().await?.into_iter();
        Ok(pointers.map(|pointer| pointer.owner).collect())
    }

    /// Removes results that are too old or whose conversation is over.
    pub(super) async fn sweep_outputs(&self) {
        if let Some(outputs) = self.outputs() {
            self.done(StoreOperation::Sweep, outputs.sweep().await);
        }
    }

    pub(super) fn outputs(&self) -> Option<&ToolOutputs> {
        self.stores.outputs.as_deref()
    }
}

/// An output in full; none if it is not there any more.
async fn loaded(outputs: &ToolOutputs, pointer: &ContextPointer) -> Result<Option<StoredContext>> {
    let path = std::slice::from_ref(&pointer.filepath);
    let mut loaded = outputs.load_contexts(path).await;
    match loaded.failed.pop() {
        Some((_, LoadError::Store(error))) => Err(error),
        Some((_, LoadError::Gone)) => Ok(None),
        None => Ok(loaded.contexts.pop()),
    }
}
