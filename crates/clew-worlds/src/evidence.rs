//! All that is known of a world once it is over: rules are judged by this.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clew_simulator::Id;
use clew_store::model::StoredMessage;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::disk;
use crate::history::{GAVE_BACK, Happened, Mark, MarkOf, Said, What, marks};
use crate::plan::{Command, LONGEST_CUT, Plan, StoreKind};
use crate::twins::Twins;
use crate::world::World;

/// Faults at which a process does not reach the database that others share.
pub(crate) const CUTS: [&str; 3] = ["database_gone", "parted", "paused"];

/// What is known of a world that is over.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) history: Vec<Happened>,
    /// Lines of the bot's telemetry, process by process.
    pub(crate) telemetry: Vec<Value>,
    /// The processes of a cluster that they are of, in order; of one alone they are counted.
    pub(crate) tenures: Vec<u32>,
    /// The marks in the files of telemetry.
    pub(crate) in_telemetry: Vec<Mark>,
    /// The bot's messages that are there at the end.
    pub(crate) posts: Vec<Post>,
    /// The rows of turns that the store holds.
    pub(crate) rows: Vec<StoredMessage>,
    pub(crate) store: StoreKind,
    /// What stores of other kinds answered otherwise; none if none was asked.
    pub(crate) differences: Option<Vec<String>>,
    /// The plan's own settings.
    pub(crate) settings: Vec<(&'static str, &'static str)>,
}

/// A message of the bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) message: Id,
    pub(crate) marks: Vec<Mark>,
    pub(crate) replies_to: Option<Id>,
    pub(crate) text: String,
}

/// A text that is no longer what a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone {
    /// Its place in the history.
    number: usize,
    pub(crate) at: i64,
    pub(crate) mark: Mark,
    pub(crate) message: Id,
    pub(crate) how: How,
}

/// How a text went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Edited,
    Deleted,
}

impl How {
    /// Whether an event of the gateway says so.
    fn is_told_by(self, event: &str) -> bool {
        match event {
            "MESSAGE_UPDATE" => self == Self::Edited,
            // All that it ever said is gone.
            "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => true,
            _ => false,
        }
    }
}

impl Evidence {
    /// Looks at everything.
    pub(crate) fn gather(
        plan: &Plan,
        world: &World,
        folder: &Path,
        rows: Vec<StoredMessage>,
    ) -> Result<Self, String> {
        let history = world.history();
        let (mut telemetry, mut in_telemetry) = (Vec::new(), Vec::new());
        let files = disk::files(folder).map_err(|error| error.to_string())?;
        // What is on a machine is of tasks that were killed with it.
        let told = files
            .iter()
            .filter(|file| file.path.starts_with(disk::TELEMETRY));
        for file in told {
            let lines = file.text.lines();
            let lines = lines.filter_map(|line| serde_json::from_str(line).ok());
            telemetry.push((file.path.as_path(), lines.collect::<Vec<Value>>()));
            in_telemetry.extend(marks(&file.text));
        }
        let (telemetry, tenures) = if plan.machines > 1 {
            in_order(telemetry, world)
        } else {
            let lines = telemetry.into_iter().flat_map(|(_, lines)| lines);
            (lines.collect(), Vec::new())
        };
        let bot = world.discord.bot();
        let posts = world.discord.world(|discord| {
            let messages = discord
                .channels()
                .flat_map(|channel| channel.messages.values());
            let own = messages.filter(|message| message.author == bot);
            let posts = own.map(|post| Post {
                message: post.id,
                marks: marks(&post.content),
                replies_to: post.reference.as_ref().and_then(|to| to.message),
                text: post.content.clone(),
            });
            posts.collect()
        });
        Ok(Self {
            history,
            telemetry,
            tenures,
            in_telemetry,
            posts,
            rows,
            store: plan.store,
            differences: world.twins.as_ref().map(Twins::differences),
            settings: plan.settings.clone(),
        })
    }

    /// The history in one number: equal if and only if two runs were equal.
    pub(crate) fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for happened in &self.history {
            hash.update(format!("{happened:?}\n"));
        }
        let bytes = hash.finalize();
        let first = bytes.iter().take(8);
        let first = first.fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        format!("{first:016x}")
    }

    /// What people said, with the times.
    pub(crate) fn said(&self) -> impl Iterator<Item = (i64, &Said)> {
        self.history
            .iter()
            .filter_map(|happened| match &happened.what {
                What::Said(said) => Some((happened.at, said)),
                _ => None,
            })
    }

    /// What people wrote, by mark, as first said and as edited.
    pub(crate) fn texts(&self) -> BTreeMap<Mark, &Said> {
        let mut texts = BTreeMap::new();
        let mut by_message = BTreeMap::new();
        for happened in &self.history {
            match &happened.what {
                What::Said(said) => {
                    by_message.insert(said.message, said);
                    texts.insert(said.mark, said);
                }
                What::Edited { message, is, .. } => {
                    let said = by_message.get(message).copied();
                    texts.extend(said.map(|said| (*is, said)));
                }
                _ => {}
            }
        }
        texts
    }

    /// The questions among them.
    pub(crate) fn questions(&self) -> BTreeMap<Mark, &Said> {
        let mut questions = self.texts();
        questions.retain(|mark, _| mark.of == MarkOf::Question);
        questions
    }

    /// What agents were to do.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = Mark> {
        let marks = self
            .history
            .iter()
            .filter_map(|happened| match happened.what {
                What::Called { mark, .. } => mark,
                _ => None,
            });
        marks.filter(|mark| mark.of == MarkOf::Task)
    }

    /// When each question was asked, by the person rather than by an app in their place.
    pub(crate) fn asked_at(&self) -> BTreeMap<Mark, i64> {
        let asked = self.said().filter(|(_, said)| said.in_place_of.is_none());
        asked.map(|(at, said)| (said.mark, at)).collect()
    }

    /// When each text was written, as first said and as edited.
    pub(crate) fn written_at(&self) -> BTreeMap<Mark, i64> {
        let edits = self.history.iter().filter_map(|one| match one.what {
            What::Edited { is, .. } => Some((is, one.at)),
            _ => None,
        });
        self.asked_at().into_iter().chain(edits).collect()
    }

    /// What was edited away or deleted, in order.
    pub(crate) fn gone(&self) -> Vec<Gone> {
        let mut mark_of: BTreeMap<Id, Mark> = BTreeMap::new();
        let mut gone = Vec::new();
        for (number, happened) in self.history.iter().enumerate() {
            let at = happened.at;
            let mut note = |mark, message, how| {
                gone.push(Gone {
                    number,
                    at,
                    mark,
                    message,
                    how,
                });
            };
            match &happened.what {
                What::Said(said) => drop(mark_of.insert(said.message, said.mark)),
                What::Edited { message, was, is } => {
                    mark_of.insert(*message, *is);
                    note(*was, *message, How::Edited);
                }
                What::Deleted { messages } => {
                    for message in messages {
                        if let Some(mark) = mark_of.get(message) {
                            note(*mark, *message, How::Deleted);
                        }
                    }
                }
                _ => {}
            }
        }
        gone
    }

    /// The messages that were deleted, also by an app which posted them in another's place.
    pub(crate) fn deleted(&self) -> BTreeSet<Id> {
        let gone = self.gone().into_iter();
        let deleted = gone.filter(|one| one.how == How::Deleted);
        let replaced = self.said().filter_map(|(_, said)| said.in_place_of);
        deleted.map(|one| one.message).chain(replaced).collect()
    }

    /// When processes were told that a text went, in order: those that are to stop hear nothing
    /// more. An event about an earlier edit may come late: words that came after these tell that
    /// they went. The end of an app's copy says so to whoever had heard of that copy.
    pub(crate) fn told_of(&self, gone: &Gone) -> impl Iterator<Item = (i64, u32)> {
        let (message, how, mark) = (gone.message, gone.how, gone.mark);
        let mut said = self.said();
        let is_copy = said.any(|(_, one)| one.message == message && one.in_place_of.is_some());
        let is_known = !is_copy || self.heard(message).next().is_some();
        let after = self.history.iter().skip(gone.number + 1);
        let after = after.filter(move |_| is_known);
        after.filter_map(move |happened| match &happened.what {
            What::Told {
                process,
                event,
                messages,
                marks,
            } if how.is_told_by(event)
                && messages.contains(&message)
                && (event != "MESSAGE_UPDATE"
                    || marks.iter().any(|is| is.number > mark.number))
                && !self.is_stopping(*process, happened.at) =>
            {
                Some((happened.at, *process))
            }
            _ => None,
        })
    }

    /// When processes were told that a message was posted, in order.
    pub(crate) fn heard(&self, message: Id) -> impl Iterator<Item = (i64, u32)> {
        self.history.iter().filter_map(move |one| match &one.what {
            What::Told {
                process,
                event,
                messages,
                ..
            } if event == "MESSAGE_CREATE" && messages.contains(&message) => {
                Some((one.at, *process))
            }
            _ => None,
        })
    }

    /// One of the plan's own settings, if it has it.
    pub(crate) fn setting(&self, name: &str) -> Option<&'static str> {
        let mut settings = self.settings.iter();
        settings.find_map(|(of, value)| (*of == name).then_some(*value))
    }

    /// Whether there were several machines.
    pub(crate) fn is_of_cluster(&self) -> bool {
        let mut all = self.history.iter();
        all.any(|one| matches!(one.what, What::Machines { .. }))
    }

    /// Whether the model called a tool.
    pub(crate) fn has_called_tools(&self) -> bool {
        self.told("tool_called").next().is_some()
    }

    /// The questions whose turns telemetry tells such a thing of.
    pub(crate) fn asked_with(&self, is_meant: impl Fn(&Value) -> bool) -> BTreeSet<&str> {
        let lines = self.telemetry.iter().filter(|line| is_meant(line));
        lines.filter_map(|line| line["msg_id"].as_str()).collect()
    }

    /// Those whose turns followed links.
    pub(crate) fn linked(&self) -> BTreeSet<&str> {
        self.asked_with(|line| !line["detail"]["links"].is_null())
    }

    /// Whether anybody used such a command.
    pub(crate) fn has_used(&self, is_meant: impl Fn(Command) -> bool) -> bool {
        let uses = |what: &What| matches!(what, What::Called { command, .. } if is_meant(*command));
        self.count(uses) > 0
    }

    /// Whether such a fault began.
    pub(crate) fn has_met(&self, fault: &str) -> bool {
        self.count(|what| matches!(what, What::Fault { name } if *name == fault)) > 0
    }

    /// Whether a process was asked to stop by then, or ended by itself.
    pub(crate) fn is_stopping(&self, process: u32, by: i64) -> bool {
        self.history.iter().any(|one| {
            let (What::AskedToStop { process: of } | What::Ended { process: of, .. }) = &one.what
            else {
                return false;
            };
            *of == process && one.at <= by
        })
    }

    /// Each look at the disk, with its time.
    pub(crate) fn looks(&self) -> impl Iterator<Item = (i64, &[(PathBuf, Vec<Mark>)])> {
        self.history.iter().filter_map(|one| match &one.what {
            What::OnDisk { files } => Some((one.at, &files[..])),
            _ => None,
        })
    }

    /// Whether the bot may not have reached its database at a time, of which others know it.
    pub(crate) fn may_be_cut_off(&self, at: i64) -> bool {
        self.history.iter().any(|one| {
            let is_cut = matches!(one.what, What::Fault { name } if CUTS.contains(&name));
            is_cut && (one.at..one.at + LONGEST_CUT).contains(&at)
        })
    }

    /// The processes that ended before they had noted all that they did.
    pub(crate) fn ended_early(&self) -> BTreeSet<u32> {
        let all = self.history.iter();
        all.filter_map(|one| match &one.what {
            What::Killed { process, .. } => Some(*process),
            What::Ended { process, error } => {
                let is_cut_off = error.as_ref().is_some_and(|it| it.contains(GAVE_BACK));
                is_cut_off.then_some(*process)
            }
            _ => None,
        })
        .collect()
    }

    /// How many of the history fit.
    pub(crate) fn count(&self, fits: impl Fn(&What) -> bool) -> usize {
        self.history.iter().filter(|one| fits(&one.what)).count()
    }

    /// The lines of the telemetry, each with the number of its process.
    pub(crate) fn by_process(&self) -> impl Iterator<Item = (u32, &Value)> {
        let (mut process, mut tenures) = (0, self.tenures.iter());
        self.telemetry.iter().map(move |line| {
            if line["event"] == "started" {
                process = tenures.next().copied().unwrap_or(process + 1);
            }
            (process, line)
        })
    }

    /// The details of an event of the telemetry.
    pub(crate) fn told<'a>(&'a self, event: &'a str) -> impl Iterator<Item = &'a Value> {
        self.telemetry
            .iter()
            .filter(move |line| line["event"] == event)
    }
}

/// The lines of a cluster's processes, tenure by tenure, with the tenures. A process has a folder named
/// by its number, and tells of each tenure that it begins.
fn in_order(told: Vec<(&Path, Vec<Value>)>, world: &World) -> (Vec<Value>, Vec<u32>) {
    let mut processes: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    for (path, lines) in told {
        let mut parts = path.iter().filter_map(|part| part.to_str()?.parse().ok());
        let process = parts.next().unwrap_or_default();
        processes.entry(process).or_default().extend(lines);
    }
    let mut tenures: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    for (process, lines) in processes {
        let mut begun = world.database.begun_by(process).into_iter();
        let mut tenure = 0;
        for line in lines {
            if line["event"] == "started" {
                tenure = begun.next().unwrap_or(tenure);
            }
            tenures.entry(tenure).or_default().push(line);
        }
    }
    let numbers = tenures.keys().copied().collect();
    (tenures.into_values().flatten().collect(), numbers)
}
