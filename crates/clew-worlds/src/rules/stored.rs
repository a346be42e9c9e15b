//! Turns are stored once, whole, in order, and stay stored.

use std::collections::{BTreeMap, BTreeSet};

use clew_simulator::Id;
use clew_store::model::{StoredMessage, StoredRole};

use super::answers::pressed;
use super::{Verdict, verdict};
use crate::evidence::{CUTS, Evidence};
use crate::history::{Mark, MarkOf, Said, What, marks};
use crate::plan::{Command, StoreKind};

/// A turn's rows are one question, the tools that were called, and its answer. What was made
/// from messages that are gone is gone with them.
pub(crate) fn stored_once(evidence: &Evidence) -> Verdict {
    let mut turns: BTreeMap<u64, Vec<&StoredMessage>> = BTreeMap::new();
    for row in &evidence.rows {
        turns.entry(row.turn.0).or_default().push(row);
    }
    // An answer made from what is gone elsewhere goes, too: a tool read it, a link led there, a fact was
    // learnt of it, or an earlier answer was made from it.
    let mut read = evidence.asked_with(|line| line["event"] == "tool_called");
    read.extend(evidence.linked());
    let shown = |counts: &[&str]| {
        evidence.asked_with(|line| {
            let mut counts = counts.iter().map(|count| line["detail"][count].as_u64());
            counts.any(|count| count > Some(0))
        })
    };
    let has_learnt = evidence.told("learnt").next().is_some();
    let cut_off = cut_off(evidence);
    let knew = shown(&["user_facts", "server_facts"]);
    let went_on = shown(&["block_msgs", "history_msgs", "recalled_msgs"]);
    let is_whole = |rows: &[&StoredMessage]| {
        let roles: Vec<StoredRole> = rows.iter().map(|row| row.role).collect();
        let called = [StoredRole::ToolUse, StoredRole::ToolResult];
        let is_one =
            |row: &&StoredMessage| (row.scope, row.ordinal) == (rows[0].scope, rows[0].ordinal);
        let is_whole = matches!(&roles[..], [StoredRole::User, tools @ .., StoredRole::Assistant]
            if tools.chunks(2).all(|round| round == called));
        let is_alone = || {
            let turn = rows[0].turn.0.to_string();
            let is_of_facts = has_learnt && knew.contains(&*turn);
            read.contains(&*turn)
                || is_of_facts
                || !read.is_empty() && went_on.contains(&*turn)
                || cut_off.contains(&rows[0].turn.0)
        };
        (is_whole || roles == [StoredRole::User] && is_alone()) && rows.iter().all(is_one)
    };
    let found = turns.iter().find(|(_, rows)| !is_whole(rows));
    let found = found.map(|(turn, rows)| {
        let texts: Vec<&str> = rows.iter().map(|row| row.content.as_str()).collect();
        format!("the turn {turn} is stored as {texts:?}")
    });
    verdict(turns.len(), found)
}

/// Questions whose answers were taken back to be asked again, and no process came to the end of it.
fn cut_off(evidence: &Evidence) -> BTreeSet<u64> {
    let (mut answers, mut taken_back) = (BTreeMap::new(), BTreeSet::new());
    let (ended_early, mut process, mut unended) = (evidence.ended_early(), 0, BTreeSet::new());
    let is_together = !evidence.tenures.is_empty();
    for happened in &evidence.history {
        match &happened.what {
            What::Posted {
                message,
                replies_to,
                ..
            } => {
                answers.insert(*message, *replies_to);
            }
            What::TakenBack { messages } => {
                let questions = messages.iter().filter_map(|id| *answers.get(id)?);
                let questions: Vec<u64> = questions.map(|question| question.0).collect();
                if is_together && ended_early.contains(&process) {
                    unended.extend(&questions);
                }
                taken_back.extend(questions);
            }
            What::Started { process: next } => process = *next,
            _ => {}
        }
    }
    let ended = evidence.asked_with(|line| line["event"] == "turn_done");
    taken_back.retain(|question| !ended.contains(&*question.to_string()));
    // In a cluster they may have ended before.
    taken_back.append(&mut unended);
    taken_back
}

/// What is stored of an answer in one message is what stands there, unless that says in small print
/// that it is not whole, or a kill came before a failing store had the one that was given anew.
pub(crate) fn stored_as_posted(evidence: &Evidence) -> Verdict {
    let posts = evidence.posts.iter();
    let posts: BTreeMap<u64, &str> = posts
        .map(|post| (post.message.0, post.text.as_str()))
        .collect();
    let again = evidence.history.iter().filter_map(|one| match &one.what {
        What::Pressed { message, label, .. } if label == "Regenerate" => Some(message.0),
        _ => None,
    });
    let fails = |name: &&str| name.starts_with("store_") || CUTS.contains(name);
    let fails = evidence.count(|what| matches!(what, What::Fault { name } if fails(name))) > 0;
    let is_cut_off = !evidence.ended_early().is_empty();
    let mut again: BTreeSet<u64> = again.filter(|_| is_cut_off && fails).collect();
    again.extend(given_anew(evidence));
    let answers = evidence.rows.iter().filter_map(|row| {
        if again.contains(&row.message?.get()) {
            return None;
        }
        let post = posts.get(&row.message?.get())?;
        let is_whole = row.parts.is_empty() && !post.contains("-# ");
        (row.role == StoredRole::Assistant && is_whole).then_some((row, *post))
    });
    let (mut judged, mut found) = (0, None);
    for (row, post) in answers {
        judged += 1;
        if row.content.trim() != post.trim() {
            found.get_or_insert(format!(
                "{:?} is stored of the answer {post:?}",
                row.content
            ));
        }
    }
    verdict(judged, found)
}

/// Answers that a second process gave where the first had ended before it noted all that it did.
fn given_anew(evidence: &Evidence) -> BTreeSet<u64> {
    if evidence.tenures.is_empty() {
        return BTreeSet::new();
    }
    let ended_early = evidence.ended_early();
    let mut by: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    let mut process = 0;
    for happened in &evidence.history {
        match &happened.what {
            What::Started { process: next } => process = *next,
            What::Posted { message, .. } => {
                by.entry(message.0).or_default().insert(process);
            }
            _ => {}
        }
    }
    by.retain(|_, processes| {
        let last = processes.last().copied();
        let mut earlier = processes.iter().filter(|one| Some(**one) != last);
        earlier.any(|one| ended_early.contains(one))
    });
    by.into_keys().collect()
}

/// A person's turns in a channel are stored in the order of their questions, but for those
/// that had to be looked for: what is asked then does not wait for them.
pub(crate) fn stored_in_order(evidence: &Evidence) -> Verdict {
    let mut last: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    let mut found = None;
    let questions = evidence.rows.iter();
    let caught_up = caught_up(evidence);
    // What was answered anew comes later if the first answer never was stored.
    let anew = if evidence.ended_early().is_empty() {
        BTreeSet::new()
    } else {
        pressed(evidence, "Regenerate")
    };
    let mut questions: Vec<&StoredMessage> = questions
        .filter(|row| row.role == StoredRole::User && !caught_up.contains(&row.turn.0))
        // Agent runs go their own way.
        .filter(|row| {
            let goes_apart = |mark: &Mark| mark.of == MarkOf::Task || anew.contains(&mark.number);
            !marks(&row.content).iter().any(goes_apart)
        })
        .collect();
    questions.sort_by_key(|row| (row.ordinal, row.turn.0));
    for row in &questions {
        let (ordinal, turn) = (row.ordinal, row.turn.0);
        let key = (row.scope, row.channel, row.owner);
        if let Some(before) = last.insert(key, (ordinal, turn))
            && (before.1 > turn || before.0 == ordinal)
        {
            found.get_or_insert(format!(
                "the turn {turn} has the ordinal {ordinal}, and {} has {}",
                before.1, before.0
            ));
        }
    }
    verdict(questions.len(), found)
}

/// The questions that were asked before a fresh session, or the end of an outage, and came to the
/// model after it.
fn caught_up(evidence: &Evidence) -> BTreeSet<u64> {
    let said: BTreeMap<Id, i64> = evidence.said().map(|(at, one)| (one.message, at)).collect();
    let questions = evidence.questions();
    let (mut greeted, mut found) = (i64::MIN, BTreeSet::new());
    for happened in &evidence.history {
        match &happened.what {
            What::Greeted { .. } | What::Outage { is_on: false, .. } => greeted = happened.at,
            What::Prompted(prompted) => {
                let question = prompted.question.and_then(|mark| questions.get(&mark));
                let question = question.map(|said| said.message);
                let is_before = |id: &Id| said.get(id).is_some_and(|at| *at <= greeted);
                found.extend(question.filter(is_before).map(|id| id.0));
            }
            _ => {}
        }
    }
    found
}

/// Stores of all kinds answer the same.
pub(crate) fn stores_agree(evidence: &Evidence) -> Verdict {
    let Some(differences) = &evidence.differences else {
        return Verdict::Unreached;
    };
    verdict(1, differences.first().cloned())
}

/// How long a process has to store what it answered, in milliseconds: also while its store
/// fails, whose last troubles may have to be waited for.
const STORED: i64 = 300_000;

/// What was answered is stored, unless it was deleted, its asker wanted nothing to be kept, its
/// process was ended before it could, or a loss was counted.
pub(crate) fn answered_is_kept(evidence: &Evidence) -> Verdict {
    // Files keep the last few of each conversation.
    let is_lost = evidence.told("turns_dropped").next().is_some() || is_shared_deleted(evidence);
    if is_lost || evidence.store == StoreKind::Files {
        return Verdict::Unreached;
    }
    let kept: BTreeSet<u64> = evidence.rows.iter().map(|row| row.turn.0).collect();
    let (answered, deleted) = (answered(evidence), evidence.deleted());
    let called = evidence.history.iter();
    let called = called.filter_map(|happened| match happened.what {
        What::Called { user, command, .. } => is_forgetting(command).then_some(user),
        _ => None,
    });
    let unkept: BTreeSet<Id> = called.collect();
    let questions = evidence.questions().into_iter();
    let questions: BTreeMap<u32, &Said> =
        questions.map(|(mark, said)| (mark.number, said)).collect();
    let mut until = evidence.history.last().map_or(0, |last| last.at);
    let mut taken_back: BTreeSet<Id> = BTreeSet::new();
    let (mut judged, mut found) = (0, None);
    for happened in evidence.history.iter().rev() {
        match &happened.what {
            What::Killed { .. } | What::Ended { .. } => until = happened.at,
            What::TakenBack { messages } => taken_back.extend(messages),
            What::Posted { message, marks, .. } if until - happened.at >= STORED => {
                let of = marks.iter().find(|mark| mark.of == MarkOf::Answer);
                let Some(said) = of.and_then(|mark| questions.get(&mark.number)) else {
                    continue;
                };
                if !answered.contains(&said.message)
                    || taken_back.contains(message)
                    || deleted.contains(&said.message)
                    || unkept.contains(&said.author)
                    // Who asks through an app owns nothing.
                    || said.in_place_of.is_some()
                {
                    continue;
                }
                judged += 1;
                if !kept.contains(&said.message.0) {
                    found.get_or_insert(format!(
                        "{} ms: {} is answered, and not stored",
                        happened.at, said.mark
                    ));
                }
            }
            _ => {}
        }
    }
    verdict(judged, found)
}

/// Whether somebody deleted what others had said, too.
fn is_shared_deleted(evidence: &Evidence) -> bool {
    let is_shared = evidence.settings.contains(&("CONTEXT_SCOPE", "thread"));
    is_shared && evidence.has_used(|command| command == Command::DeleteConversation)
}

fn is_forgetting(command: Command) -> bool {
    use Command::{DeleteConversation, Erase, OptIn, OptOut};
    matches!(command, OptOut | OptIn | Erase | DeleteConversation)
}

/// The questions whose turns told that they were answered whole.
fn answered(evidence: &Evidence) -> BTreeSet<Id> {
    let done = evidence.told("turn_done");
    let answered = done.filter(|line| line["detail"]["outcome"] == "answered");
    let ids = answered.filter_map(|line| line["msg_id"].as_str()?.parse().ok());
    ids.map(Id).collect()
}
