//! What is gone is not shown, and not kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clew_simulator::Id;

use super::{Verdict, verdict};
use crate::evidence::{Evidence, Gone, How};
use crate::history::{Mark, MarkOf, Said, What, marks};
use crate::plan::Command;

/// How soon an event that has reached a process is noted, in milliseconds: what is asked
/// meanwhile may be on its way already.
const NOTED: i64 = 10;

/// How long the answer to a command may be on its way, in milliseconds.
const ON_ITS_WAY: i64 = 1_000;

/// Nothing that went so is in a prompt once its process was told. Nor if the question came
/// later, and a process before was told, or a session began in between.
fn not_shown(evidence: &Evidence, how: How, what: &str) -> Verdict {
    let written_at = evidence.written_at();
    let mut gone: BTreeMap<Mark, (Gone, Vec<(i64, u32)>)> = BTreeMap::new();
    for one in evidence.gone().into_iter().filter(|one| one.how == how) {
        let told = evidence.told_of(&one).collect();
        gone.insert(one.mark, (one, told));
    }
    let mut called_at: BTreeMap<Id, i64> = BTreeMap::new();
    let (mut judged, mut found, mut greeted, mut running) = (0, None, None, 0);
    for happened in &evidence.history {
        let at = happened.at;
        let (process, asked, shows, noted) = match &happened.what {
            What::Started { process } => {
                running = *process;
                continue;
            }
            // One of several shards knows no more of what others miss.
            What::Greeted { shards, .. } => {
                greeted = (*shards == 1).then_some(at);
                continue;
            }
            What::Called { interaction, .. } => {
                called_at.insert(*interaction, at);
                continue;
            }
            What::CallAnswered { interaction, text } => {
                let called = called_at.get(interaction);
                (running, called, &marks(text), ON_ITS_WAY)
            }
            What::Prompted(prompted) => {
                let asked = prompted.question.and_then(|mark| written_at.get(&mark));
                (prompted.process, asked, &prompted.shows, NOTED)
            }
            _ => continue,
        };
        let is_gone = |(one, _): &&(Gone, Vec<(i64, u32)>)| one.at <= at;
        judged += usize::from(gone.values().any(|one| is_gone(&one)));
        let shown = shows.iter().filter_map(|mark| gone.get(mark));
        for (one, told) in shown.filter(is_gone) {
            // A session that is resumed tells again, in order, what came before the question.
            let is_known = |of: u32| of == process || asked > Some(&one.at);
            let mut told = told.iter();
            let is_told = told.any(|(told, process)| *told + noted < at && is_known(*process));
            // A session that begins knows nothing of what is stored, and confirms it.
            let is_before_session =
                greeted.is_some_and(|greeted| one.at < greeted && asked > Some(&greeted));
            if is_told || is_before_session {
                found.get_or_insert(format!(
                    "{at} ms: {} is shown, which is {what} (told: {is_told}): {:?}",
                    one.mark, happened.what
                ));
            }
        }
    }
    verdict(judged, found)
}

/// Nothing deleted is in a prompt, once the bot was told or began a session after it.
pub(crate) fn deleted_is_not_shown(evidence: &Evidence) -> Verdict {
    not_shown(evidence, How::Deleted, "deleted")
}

/// Nor are words that were edited away.
pub(crate) fn edited_is_not_shown(evidence: &Evidence) -> Verdict {
    not_shown(evidence, How::Edited, "edited away")
}

/// Nor is what somebody said who opted out, in what others ask.
pub(crate) fn opted_out_is_not_shown(evidence: &Evidence) -> Verdict {
    let texts = evidence.texts();
    let author_of = |mark: &Mark| texts.get(mark).map(|said| said.author);
    let mut callers: BTreeMap<Id, (Id, Command)> = BTreeMap::new();
    let mut out: BTreeSet<Id> = BTreeSet::new();
    let (mut judged, mut found) = (0, None);
    for happened in &evidence.history {
        let (reader, shows) = match &happened.what {
            What::Called {
                interaction,
                user,
                command,
                ..
            } => {
                if *command == Command::OptIn {
                    // From here on whatever was asked for before may be undone.
                    out.remove(user);
                    callers.retain(|_, (caller, _)| caller != user);
                }
                callers.insert(*interaction, (*user, *command));
                continue;
            }
            What::CallAnswered { interaction, text } => match callers.get(interaction) {
                Some((user, Command::OptOut)) if text.contains("You have opted out") => {
                    out.insert(*user);
                    continue;
                }
                caller => (caller.map(|(user, _)| *user), marks(text)),
            },
            What::Prompted(prompted) => {
                let asker = prompted.question.as_ref().and_then(author_of);
                (asker, prompted.shows.clone())
            }
            _ => continue,
        };
        judged += usize::from(!out.is_empty());
        for mark in &shows {
            let author = author_of(mark);
            if author != reader && author.is_some_and(|author| out.contains(&author)) {
                found.get_or_insert(format!(
                    "{} ms: {mark} is shown, of {author:?}, who opted out",
                    happened.at
                ));
            }
        }
    }
    verdict(judged, found)
}

/// How long a process has to carry out what it was told, in milliseconds: also while its store
/// fails, whose last troubles may have to be waited for.
const CARRIED_OUT: i64 = 300_000;

/// How soon the bot hears of an edit where nothing is late, in milliseconds.
const HEARD: i64 = 1_000;

/// Nothing is on disk that was deleted or edited away, once a process was told and had the
/// time; answers to deleted questions neither. What was lost with a process is asked for
/// when it is used.
pub(crate) fn gone_is_not_kept(evidence: &Evidence) -> Verdict {
    let has_called = evidence.has_called_tools();
    let gone = evidence.gone().into_iter();
    let told = gone.filter_map(|one| Some((one, carried_out_by(evidence, &one)?)));
    // Those of several machines differ.
    let is_clock_wrong = evidence.has_met("clock_jumps") || !evidence.tenures.is_empty();
    // What a tool read of somebody's former words stays if its turn is later than the edit: after
    // the edit and before the bot heard of it, or by a clock that is ahead of Discord's.
    let is_read = |one: &Gone| {
        let first = evidence.told_of(one).next();
        let is_late = first.is_some_and(|(at, _)| at - one.at > HEARD);
        has_called && one.how == How::Edited && (is_late || is_clock_wrong)
    };
    // Of a message that an app replaced, the bot may not have heard that it is deleted.
    let replaced: BTreeSet<Mark> = evidence
        .said()
        .filter_map(|(_, said)| said.in_place_of.map(|_| said.mark))
        .collect();
    let told = told.filter(|(one, _)| !is_read(one) && !replaced.contains(&one.mark));
    let told: Vec<(Gone, i64)> = told.collect();
    let mut gone: BTreeMap<Mark, i64> = told.iter().map(|(one, by)| (one.mark, *by)).collect();
    let deleted = told.iter().filter(|(one, _)| one.how == How::Deleted);
    let deleted: BTreeMap<Id, i64> = deleted.map(|(one, by)| (one.message, *by)).collect();
    let questions = evidence.questions().into_iter();
    let answers = questions.filter_map(|(mark, said)| {
        let by = deleted.get(&said.message)?;
        Some((answer_to(mark), *by))
    });
    let answers: BTreeMap<Mark, i64> = answers.collect();
    // Tools read from Discord what is left there of them.
    if !has_called {
        gone.extend(&answers);
    }
    if let Some(left) = is_spoken(evidence, |mark| answers.contains_key(mark)) {
        return Verdict::Broken(left);
    }
    let mut looks = evidence.looks();
    let found = looks.find_map(|(at, files)| {
        let is_gone = |mark: &Mark| gone.get(mark).is_some_and(|by| *by <= at);
        let left = left_of(files, is_gone)?;
        Some(format!("{at} ms: gone is {left}"))
    });
    verdict(gone.len(), found)
}

/// The first of these that a file still has.
fn left_of(files: &[(PathBuf, Vec<Mark>)], is_gone: impl Fn(&Mark) -> bool) -> Option<String> {
    files.iter().find_map(|(path, marks)| {
        let left = marks.iter().find(|mark| is_gone(mark))?;
        Some(format!("{left}, in {}", path.display()))
    })
}

fn answer_to(question: Mark) -> Mark {
    Mark {
        of: MarkOf::Answer,
        ..question
    }
}

/// Which of these is stored as a question or an answer, if any is.
fn is_spoken(evidence: &Evidence, is_gone: impl Fn(&Mark) -> bool) -> Option<String> {
    let spoken = evidence.rows.iter().filter(|row| row.role.is_spoken());
    let mut left = spoken.flat_map(|row| marks(&row.content));
    let left = left.find(is_gone)?;
    Some(format!("{left} is gone, and is stored"))
}

/// How long a turn may go on after its answer's last post, in milliseconds.
const OVER: i64 = 5_000;

/// Nothing is on disk of what somebody asked, and was answered, before it was erased.
pub(crate) fn erased_is_not_kept(evidence: &Evidence) -> Verdict {
    let texts = evidence.texts();
    let mut callers: BTreeMap<Id, (Id, i64)> = BTreeMap::new();
    let mut answered: BTreeMap<u32, i64> = BTreeMap::new();
    let mut remembered: Vec<(Mark, Id, i64)> = Vec::new();
    let mut gone: BTreeSet<Mark> = BTreeSet::new();
    let mut found = None;
    // Tools may have read it again.
    let has_called = evidence.has_called_tools();
    for happened in &evidence.history {
        match &happened.what {
            What::Called {
                interaction,
                user,
                command: Command::Erase | Command::OptOut,
                ..
            } => drop(callers.insert(*interaction, (*user, happened.at))),
            What::Called {
                user,
                command: Command::Remember,
                mark,
                ..
            } => remembered.extend(mark.map(|mark| (mark, *user, happened.at))),
            What::CallAnswered { interaction, text }
                if ["Erased:", "nothing to erase", "You have opted out"]
                    .iter()
                    .any(|told| text.contains(told)) =>
            {
                let Some((user, from)) = callers.get(interaction) else {
                    continue;
                };
                gone.extend(texts.iter().filter_map(|(mark, said)| {
                    let over = answered.get(&mark.number)?;
                    (said.author == *user && over + OVER < *from).then_some(*mark)
                }));
                let theirs = remembered
                    .iter()
                    .filter(|(_, by, at)| by == user && at + OVER < *from);
                gone.extend(theirs.map(|(mark, ..)| *mark));
                let answers = gone.iter().filter(|mark| mark.of == MarkOf::Question);
                let answers = answers.map(|mark| answer_to(*mark));
                gone.append(&mut answers.collect());
            }
            What::Posted { marks, .. } => {
                let answers = marks.iter().filter(|mark| mark.of == MarkOf::Answer);
                answered.extend(answers.map(|mark| (mark.number, happened.at)));
            }
            What::OnDisk { files } if !has_called && found.is_none() => {
                let left = left_of(files, |mark| gone.contains(mark));
                found = left.map(|left| format!("{} ms: erased is {left}", happened.at));
            }
            _ => {}
        }
    }
    let found = found.or_else(|| is_spoken(evidence, |mark| gone.contains(mark)));
    verdict(gone.len(), found)
}

/// Where a lone question gets nothing of its channel, no tool and no link reads it, and nothing is
/// learnt, the prompt shows nothing that its asker asked and was answered before a `/context clear` in that
/// server.
pub(crate) fn cleared_is_not_shown(evidence: &Evidence) -> Verdict {
    let is_lone = |(name, _): &(&str, &str)| ["LONE_CONTEXT", "MEMORY_LEARN"].contains(name);
    let is_set = |command| matches!(command, Command::SetLone(_));
    if evidence.settings.iter().any(is_lone)
        || evidence.has_used(is_set)
        || evidence.has_called_tools()
        // What is pinned is shown to everybody.
        || evidence.setting("PLACE_CONTEXT") == Some("topic,pins")
    {
        return Verdict::Unreached;
    }
    let (texts, asked_at, linked) = (evidence.texts(), evidence.asked_at(), evidence.linked());
    let mut callers: BTreeMap<Id, ((Id, Id), i64)> = BTreeMap::new();
    // From when to when somebody's clearing in a server took.
    let mut cleared: BTreeMap<(Id, Id), (i64, i64)> = BTreeMap::new();
    let mut answered: BTreeMap<u32, i64> = BTreeMap::new();
    let (mut judged, mut found) = (0, None);
    for happened in &evidence.history {
        let at = happened.at;
        match &happened.what {
            What::Called {
                interaction,
                user,
                guild,
                command: Command::Clear,
                ..
            } => drop(callers.insert(*interaction, ((*user, *guild), at))),
            What::CallAnswered { interaction, text } if text.contains("Starting fresh") => {
                if let Some((who, from)) = callers.get(interaction) {
                    cleared.insert(*who, (*from, at));
                }
            }
            What::Posted { marks, .. } => {
                let answers = marks.iter().filter(|mark| mark.of == MarkOf::Answer);
                answered.extend(answers.map(|mark| (mark.number, at)));
            }
            What::Prompted(prompted) => {
                let said = prompted.question.and_then(|mark| texts.get(&mark));
                let is_judged = |said: &&&Said| {
                    said.replies_to.is_none() && !linked.contains(&*said.message.to_string())
                };
                let Some(said) = said.filter(is_judged) else {
                    continue;
                };
                let who = said.in_channel_of.map(|guild| (said.author, guild));
                let Some((from, to)) = who.and_then(|who| cleared.get(&who)) else {
                    continue;
                };
                if asked_at.get(&said.mark).is_none_or(|asked| asked <= to) {
                    continue;
                }
                judged += 1;
                let is_cleared = |mark: &&Mark| {
                    let own = texts.get(mark).filter(|one| one.author == said.author);
                    let over = own.and_then(|_| answered.get(&mark.number));
                    over.is_some_and(|over| over + OVER < *from)
                };
                if let Some(mark) = prompted.shows.iter().find(is_cleared) {
                    found.get_or_insert(format!(
                        "{at} ms: the prompt for {} shows {mark}, from before its asker cleared \
                         the context",
                        said.mark
                    ));
                }
            }
            _ => {}
        }
    }
    verdict(judged, found)
}

/// Since when it must have been carried out that a text went: a process was told, and lived on for
/// long enough.
fn carried_out_by(evidence: &Evidence, gone: &Gone) -> Option<i64> {
    let over = evidence.history.last().map_or(0, |last| last.at);
    let end_of = |process: u32| {
        let end = evidence.history.iter().find(|one| match one.what {
            What::Killed { process: of, .. } | What::Ended { process: of, .. } => of == process,
            _ => false,
        });
        end.map_or(over, |one| one.at)
    };
    let told = evidence.told_of(gone);
    let told = told.map(|(at, process)| (at + CARRIED_OUT, process));
    let mut told = told.filter(|(by, process)| end_of(*process) >= *by);
    told.next().map(|(by, _)| by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Happened, Prompted};
    use crate::plan::StoreKind;

    const GONE: Id = Id(1);
    const WORDS: Mark = Mark {
        of: MarkOf::Words,
        number: 1,
    };
    const QUESTION: Mark = Mark {
        of: MarkOf::Question,
        number: 2,
    };

    fn said(message: Id, mark: Mark) -> What {
        What::Said(Said {
            message,
            channel: Id(9),
            in_channel_of: None,
            is_direct: false,
            author: Id(8),
            in_place_of: None,
            mark,
            replies_to: None,
        })
    }

    /// Words are deleted at 10 ms, of which the first process is told at 20 ms. A prompt of a
    /// process shows them at 60 ms, for a question from then.
    fn shown(process: u32, asked: i64) -> Verdict {
        let deleted = What::Deleted {
            messages: vec![GONE],
        };
        let told = What::Told {
            process: 1,
            event: "MESSAGE_DELETE".to_owned(),
            messages: vec![GONE],
            marks: Vec::new(),
        };
        let prompted = What::Prompted(Prompted {
            process,
            question: Some(QUESTION),
            shows: vec![WORDS],
            chars: 1,
        });
        let question = said(Id(2), QUESTION);
        let all = [(0, said(GONE, WORDS)), (asked, question), (10, deleted)];
        let all = all.into_iter().chain([(20, told), (60, prompted)]);
        let history = all.map(|(at, what)| Happened { at, what });
        deleted_is_not_shown(&Evidence {
            history: history.collect(),
            tenures: Vec::new(),
            telemetry: Vec::new(),
            in_telemetry: Vec::new(),
            posts: Vec::new(),
            rows: Vec::new(),
            store: StoreKind::Sqlite,
            differences: None,
            settings: Vec::new(),
        })
    }

    #[test]
    fn a_process_knows_what_it_was_told_and_what_came_before_the_question() {
        let is_broken = |verdict| matches!(verdict, Verdict::Broken(_));
        assert!(is_broken(shown(1, 5)));
        assert!(is_broken(shown(1, 15)));
        assert!(is_broken(shown(2, 15)));
        // The second is told of the deletion again, after the question.
        assert_eq!(shown(2, 5), Verdict::Holds);
    }
}
