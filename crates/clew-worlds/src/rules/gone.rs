//! What is gone is not shown, and not kept.

use std::collections::{BTreeMap, BTreeSet};

use clew_simulator::Id;

use super::{Verdict, verdict};
use crate::evidence::Evidence;
use crate::history::{Mark, MarkOf, Prompted, Said, What};

/// What of the world a process knows at a moment of the history.
#[derive(Default)]
struct Known {
    /// The words that a message had before, or that were in it when it was deleted, by mark;
    /// as people did it.
    gone: BTreeMap<Mark, Id>,
    /// Those of them that the process was told of, and when.
    told: BTreeMap<Mark, i64>,
    /// When it was greeted last.
    greeted: Option<i64>,
}

/// Walks through the history with what is gone. `is_of`: which changes count.
fn walk(evidence: &Evidence, deletions: bool, mut judge: impl FnMut(i64, &Prompted, &Known)) {
    let mut mark_of: BTreeMap<Id, Mark> = BTreeMap::new();
    let mut known = Known::default();
    // Told of a message at this moment, for edits: the mark that it had then.
    for happened in &evidence.history {
        match &happened.what {
            What::Said(said) => drop(mark_of.insert(said.message, said.mark)),
            What::Edited { message, was, is } => {
                mark_of.insert(*message, *is);
                if !deletions {
                    known.gone.insert(*was, *message);
                }
            }
            What::Deleted { messages } if deletions => {
                for message in messages {
                    if let Some(mark) = mark_of.get(message) {
                        known.gone.insert(*mark, *message);
                    }
                }
            }
            What::Told {
                event, messages, ..
            } => {
                let fits = match &**event {
                    "MESSAGE_UPDATE" => !deletions,
                    "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => deletions,
                    _ => false,
                };
                if fits {
                    let gone = known.gone.iter();
                    let theirs = gone.filter(|(_, message)| messages.contains(message));
                    let theirs: Vec<Mark> = theirs.map(|(mark, _)| *mark).collect();
                    for mark in theirs {
                        known.told.entry(mark).or_insert(happened.at);
                    }
                }
            }
            What::Greeted { .. } => known.greeted = Some(happened.at),
            What::Prompted(prompted) => judge(happened.at, prompted, &known),
            _ => {}
        }
    }
}

fn not_shown(evidence: &Evidence, deletions: bool, what: &str) -> Verdict {
    let questions = evidence.questions();
    let asked_at: BTreeMap<Mark, i64> = evidence.said().map(|(at, said)| (said.mark, at)).collect();
    let (mut judged, mut found) = (0, None);
    let gone_at = gone_times(evidence);
    walk(evidence, deletions, |at, prompted, known| {
        judged += usize::from(!known.gone.is_empty());
        for mark in &prompted.shows {
            if !known.gone.contains_key(mark) {
                continue;
            }
            // What comes in the same moment may have been on its way already.
            let is_told = known.told.get(mark).is_some_and(|told| *told < at);
            // A session that begins knows nothing of what is stored, and confirms it.
            let asked = prompted
                .question
                .and_then(|question| asked_at.get(&question));
            let before_greeting = known.greeted.is_some_and(|greeted| {
                gone_at.get(mark).is_some_and(|gone| *gone < greeted)
                    && asked.is_some_and(|asked| *asked > greeted)
            });
            if is_told || before_greeting {
                let by = prompted
                    .question
                    .and_then(|question| questions.get(&question));
                let by = by.map(|said| said.author);
                found.get_or_insert(format!(
                    "{at} ms: the prompt for {:?} of {by:?} shows {mark}, which is {what} (told: {is_told})",
                    prompted.question.map(|mark| mark.to_string()),
                ));
            }
        }
    });
    verdict(judged, found)
}

/// When each mark was edited away or deleted.
fn gone_times(evidence: &Evidence) -> BTreeMap<Mark, i64> {
    let mut mark_of: BTreeMap<Id, Mark> = BTreeMap::new();
    let mut gone = BTreeMap::new();
    for happened in &evidence.history {
        match &happened.what {
            What::Said(said) => drop(mark_of.insert(said.message, said.mark)),
            What::Edited { message, was, is } => {
                mark_of.insert(*message, *is);
                gone.insert(*was, happened.at);
            }
            What::Deleted { messages } => {
                let marks = messages.iter().filter_map(|message| mark_of.get(message));
                gone.extend(marks.map(|mark| (*mark, happened.at)));
            }
            _ => {}
        }
    }
    gone
}

/// Nothing deleted is in a prompt, once the bot was told or began a session after it.
pub(crate) fn deleted_is_not_shown(evidence: &Evidence) -> Verdict {
    not_shown(evidence, true, "deleted")
}

/// Nor are words that were edited away.
pub(crate) fn edited_is_not_shown(evidence: &Evidence) -> Verdict {
    not_shown(evidence, false, "edited away")
}

/// Nor is what somebody said who opted out, in what others ask.
pub(crate) fn opted_out_is_not_shown(evidence: &Evidence) -> Verdict {
    let questions = evidence.questions();
    let author_of = authors(evidence);
    let mut callers: BTreeMap<Id, (Id, &str)> = BTreeMap::new();
    let mut out: BTreeSet<Id> = BTreeSet::new();
    let (mut judged, mut found) = (0, None);
    for happened in &evidence.history {
        match &happened.what {
            What::Called {
                interaction,
                user,
                name,
            } => {
                if *name == "privacy opt-in" {
                    // From here on whatever was asked for before may be undone.
                    out.remove(user);
                    callers.retain(|_, (caller, _)| caller != user);
                }
                callers.insert(*interaction, (*user, name));
            }
            What::CallAnswered { interaction, text } => match callers.get(interaction) {
                Some((user, "privacy opt-out")) if text.contains("You have opted out") => {
                    out.insert(*user);
                }
                _ => {}
            },
            What::Prompted(prompted) => {
                judged += usize::from(!out.is_empty());
                let asker = prompted
                    .question
                    .and_then(|question| questions.get(&question));
                let asker = asker.map(|said| said.author);
                for mark in &prompted.shows {
                    let author = author_of.get(mark).copied();
                    if author != asker && author.is_some_and(|author| out.contains(&author)) {
                        found.get_or_insert(format!(
                            "{} ms: a prompt shows {mark} of {author:?}, who opted out",
                            happened.at
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    verdict(judged, found)
}

fn authors(evidence: &Evidence) -> BTreeMap<Mark, Id> {
    let mut of_message: BTreeMap<Id, Id> = BTreeMap::new();
    let mut authors = BTreeMap::new();
    for happened in &evidence.history {
        match &happened.what {
            What::Said(said) => {
                of_message.insert(said.message, said.author);
                authors.insert(said.mark, said.author);
            }
            What::Edited { message, is, .. } => {
                if let Some(author) = of_message.get(message) {
                    authors.insert(*is, *author);
                }
            }
            _ => {}
        }
    }
    authors
}

/// Nor is what was said where the asker may not read, and could not when asking.
pub(crate) fn hidden_is_not_shown(evidence: &Evidence) -> Verdict {
    let questions = evidence.questions();
    let asked_at: BTreeMap<Mark, i64> = evidence.said().map(|(at, said)| (said.mark, at)).collect();
    let channel_of: BTreeMap<Mark, &Said> =
        evidence.said().map(|(_, said)| (said.mark, said)).collect();
    // Since when somebody has not seen a channel.
    let mut unseen: BTreeMap<(Id, Id), i64> = BTreeMap::new();
    let mut everyone: BTreeSet<Id> = BTreeSet::new();
    let (mut judged, mut found) = (0, None);
    for happened in &evidence.history {
        match &happened.what {
            What::Seen { channel, by } => {
                everyone.extend(by);
                for person in &everyone {
                    if by.contains(person) {
                        unseen.remove(&(*channel, *person));
                    } else {
                        unseen.entry((*channel, *person)).or_insert(happened.at);
                    }
                }
            }
            What::Prompted(prompted) => {
                let Some(question) = prompted.question else {
                    continue;
                };
                let Some(asker) = questions.get(&question).map(|said| said.author) else {
                    continue;
                };
                for mark in &prompted.shows {
                    let Some(said) = channel_of.get(mark) else {
                        continue;
                    };
                    // Her own words are hers wherever she asks.
                    if said.author == asker {
                        continue;
                    }
                    judged += 1;
                    let since = unseen.get(&(said.channel, asker));
                    let asked = asked_at.get(&question);
                    if since.zip(asked).is_some_and(|(since, asked)| since < asked) {
                        found.get_or_insert(format!(
                            "{} ms: the prompt for {question} shows {mark}, whose channel {asker} \
                             may not see",
                            happened.at
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    verdict(judged, found)
}

/// How long a process has to carry out what it was told, in milliseconds: also while its store
/// fails, whose last troubles may have to be waited for.
const CARRIED_OUT: i64 = 300_000;

/// Nothing is on disk that was deleted or edited away, once a process was told and had the
/// time; answers to deleted questions neither. What was lost with a process is asked for
/// when it is used.
pub(crate) fn gone_is_not_kept(evidence: &Evidence) -> Verdict {
    let questions = evidence.questions();
    let mut gone: BTreeSet<Mark> = BTreeSet::new();
    for mark in told_in_time(evidence) {
        gone.insert(mark);
    }
    let deleted = evidence.deleted();
    let theirs = questions
        .iter()
        .filter(|(_, said)| deleted.contains_key(&said.message));
    let answers: Vec<Mark> = theirs
        .filter(|(mark, _)| gone.contains(mark))
        .map(|(mark, _)| Mark {
            of: MarkOf::Answer,
            number: mark.number,
        })
        .collect();
    gone.extend(answers);
    let judged = evidence.on_disk.iter().flat_map(|(_, marks)| marks).count();
    let found = evidence.on_disk.iter().find_map(|(path, marks)| {
        let left = marks.iter().find(|mark| gone.contains(mark))?;
        Some(format!("{left} is gone, but in {}", path.display()))
    });
    verdict(judged.min(gone.len()), found)
}

/// The marks of what is gone, of which a process was told that lived on for long enough.
fn told_in_time(evidence: &Evidence) -> Vec<Mark> {
    let over = evidence.history.last().map_or(0, |last| last.at);
    let end_of = |process: u32| {
        let ends = evidence.history.iter().filter(|one| match one.what {
            What::Killed { process: of, .. } | What::Ended { process: of, .. } => of == process,
            _ => false,
        });
        ends.map(|one| one.at).next().unwrap_or(over)
    };
    let mut mark_of: BTreeMap<Id, Mark> = BTreeMap::new();
    let mut pending: BTreeMap<Id, Vec<Mark>> = BTreeMap::new();
    let mut told = Vec::new();
    for happened in &evidence.history {
        match &happened.what {
            What::Said(said) => drop(mark_of.insert(said.message, said.mark)),
            What::Edited { message, was, is } => {
                mark_of.insert(*message, *is);
                pending.entry(*message).or_default().push(*was);
            }
            What::Deleted { messages } => {
                for message in messages {
                    let mark = mark_of.get(message);
                    pending.entry(*message).or_default().extend(mark);
                }
            }
            What::Told {
                process,
                event,
                messages,
            } if event != "MESSAGE_CREATE" => {
                if end_of(*process) - happened.at < CARRIED_OUT {
                    continue;
                }
                let gone = messages
                    .iter()
                    .filter_map(|message| pending.remove(message));
                told.extend(gone.flatten());
            }
            _ => {}
        }
    }
    told
}
