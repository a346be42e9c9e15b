//! Builds a recording from files.

use std::collections::BTreeMap;
use std::path::Path;

use super::export::{self, Export, ExportPass};
use super::index::{self, IndexEntry, KEPT};
use super::scenario;
use super::staged::StagedScenario;
use super::{ArchiveError, RecordedChannel, Recording};
use clew_context::model::{Channel, ChannelId, ChannelKind, MessageKind};

impl Recording {
    pub(super) fn add(
        &mut self,
        path: &Path,
        lenient: bool,
        progress: &dyn Fn(u64),
    ) -> Result<(), ArchiveError> {
        let file = u32::try_from(self.files.paths.len()).unwrap_or(KEPT);
        self.files.paths.push(path.to_owned());
        self.report.files += 1;
        let found = export::read(ExportPass {
            path,
            file,
            lenient,
            report: &mut self.report,
            participants: &mut self.participants,
            progress,
        })?;
        if let Some(export) = found {
            self.add_export(export);
        } else {
            let scenario = scenario::read(path, lenient, &mut self.report)?;
            self.add_scenario(scenario);
        }
        Ok(())
    }

    /// Adds an exported channel; further parts of a channel join the first.
    fn add_export(&mut self, mut export: Export) {
        let recorded = self.record(export.channel);
        recorded.anchored |= export.anchored;
        if recorded.entries.is_empty() {
            recorded.entries = export.entries;
        } else {
            recorded.entries.append(&mut export.entries);
        }
    }

    fn add_scenario(&mut self, scenario: StagedScenario) {
        for user in scenario.users.values() {
            let name = user.shown_name(true);
            self.participants.known(user.id, &name, user.bot);
        }
        for channel in scenario.channels.into_values() {
            self.record(channel);
        }
        for ((channel, id), message) in scenario.messages {
            self.participants.wrote(&message.author);
            let entry = IndexEntry {
                id,
                offset: self.kept.len() as u64,
                length: 0,
                file: KEPT,
            };
            if let Some(recorded) = self.channels.get_mut(&channel) {
                recorded.anchored |= message.kind == MessageKind::ThreadStarter;
                recorded.entries.push(entry);
            }
            self.kept.push(message);
        }
        self.hidden.extend(scenario.hidden);
        self.bot = self.bot.or(scenario.bot);
    }

    fn record(&mut self, channel: Channel) -> &mut RecordedChannel {
        self.channels
            .entry(channel.id)
            .or_insert_with(|| RecordedChannel {
                channel,
                entries: Vec::new(),
                anchored: false,
            })
    }

    /// Sorts the messages, and tells threads their parents' kinds, names and topics.
    pub(super) fn settle(&mut self) {
        for recorded in self.channels.values_mut() {
            self.report.duplicates += index::settle(&mut recorded.entries);
            self.report.messages += recorded.entries.len() as u64;
        }
        let parents: BTreeMap<ChannelId, Channel> = self
            .channels()
            .filter(|channel| !channel.kind.is_thread())
            .map(|channel| (channel.id, channel.clone()))
            .collect();
        for recorded in self.channels.values_mut() {
            let parent = recorded.channel.parent;
            match parent.and_then(|parent| parents.get(&parent)) {
                Some(parent) => {
                    let channel = &mut recorded.channel;
                    channel.parent_kind = Some(parent.kind);
                    channel.parent_name = Some(parent.name.clone());
                    if channel.kind.is_thread() {
                        channel.topic.clone_from(&parent.topic);
                    }
                }
                None => recorded.channel.parent_kind = recorded.guess_parent(),
            }
        }
    }
}

impl RecordedChannel {
    /// The kind of a parent that was not recorded. Only forum posts hold the
    /// message with the thread's own id, and only threads of other channels begin
    /// with a message of type 21.
    fn guess_parent(&self) -> Option<ChannelKind> {
        if !self.channel.kind.is_thread() {
            return None;
        }
        if index::find(&self.entries, self.channel.id.starter()).is_some() {
            return Some(ChannelKind::Forum);
        }
        let parent = match self.channel.kind {
            ChannelKind::AnnouncementThread => ChannelKind::Announcement,
            _ => ChannelKind::Text,
        };
        self.anchored.then_some(parent)
    }
}
