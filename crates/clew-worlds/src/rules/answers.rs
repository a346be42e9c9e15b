//! Each question has one answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clew_context::model::UnixMillis;
use clew_simulator::Id;
use serde_json::Value;

use super::{Verdict, verdict};
use crate::evidence::Evidence;
use crate::history::{Mark, MarkOf, Said, What};
use crate::seams::model::LAST_WORD;

const MINUTE: i64 = 60_000;
/// How long after a fresh session the last page is read, in milliseconds.
const CAUGHT_UP: i64 = 2 * MINUTE;

/// How long a refusal may be told after it, in milliseconds.
const TOLD: i64 = 1_000;

/// How long after a question its copy by an app is known as one, in milliseconds.
const COPY_IS_KNOWN: i64 = 5_000;

/// Questions whose copy by an app is not known as one. It reached another process, or late, or one that
/// was to stop or may not have reached its database; or two processes had the question, and the first
/// one may have ended while it was answered.
fn with_unknown_copies(evidence: &Evidence) -> BTreeSet<u32> {
    let copies = evidence.said().filter_map(|(_, said)| {
        let processes: BTreeSet<u32> = evidence
            .heard(said.in_place_of?)
            .map(|(_, by)| by)
            .collect();
        let mut told = evidence
            .heard(said.in_place_of?)
            .filter(|_| processes.len() == 1);
        let is_known = told.any(|(at, process)| {
            let mut copied = evidence.heard(said.message);
            copied.any(|(copied, by)| {
                let is_stopping = evidence.is_stopping(by, copied);
                let is_soon = copied - at < COPY_IS_KNOWN;
                by == process && !is_stopping && is_soon && !evidence.may_be_cut_off(copied)
            })
        });
        (!is_known).then_some(said.mark.number)
    });
    copies.collect()
}

/// Questions under whose answers somebody pressed a button, also as they were edited to.
pub(super) fn pressed(evidence: &Evidence, button: &str) -> BTreeSet<u32> {
    let mut marks_of: BTreeMap<Id, &[Mark]> = BTreeMap::new();
    let mut pressed = BTreeSet::new();
    for happened in &evidence.history {
        match &happened.what {
            What::Posted { message, marks, .. } => drop(marks_of.insert(*message, marks)),
            What::Pressed { message, label, .. } if label == button => {
                let marks = marks_of.get(message).copied().unwrap_or_default();
                pressed.extend(marks.iter().map(|mark| mark.number));
            }
            _ => {}
        }
    }
    for happened in &evidence.history {
        if let What::Edited { was, is, .. } = happened.what
            && pressed.contains(&was.number)
        {
            pressed.insert(is.number);
        }
    }
    pressed
}

/// No question has two answers at the same time, over all processes.
pub(crate) fn answered_once(evidence: &Evidence) -> Verdict {
    let mut unknown = with_unknown_copies(evidence);
    // What follows then is about the same question.
    unknown.append(&mut pressed(evidence, "Continue"));
    let mut answers: BTreeMap<u32, Vec<Id>> = BTreeMap::new();
    let mut found = None;
    for happened in &evidence.history {
        match &happened.what {
            What::Posted { message, marks, .. } => {
                let answer =
                    |mark: &&Mark| mark.of == MarkOf::Answer && !unknown.contains(&mark.number);
                for mark in marks.iter().filter(answer) {
                    let posts = answers.entry(mark.number).or_default();
                    if !posts.contains(message) {
                        posts.push(*message);
                    }
                    if posts.len() > 1 {
                        found.get_or_insert(format!(
                            "{} ms: question {} has the answers {posts:?}",
                            happened.at, mark.number
                        ));
                    }
                }
            }
            What::TakenBack { messages } => {
                for posts in answers.values_mut() {
                    posts.retain(|post| !messages.contains(post));
                }
            }
            _ => {}
        }
    }
    verdict(answers.len(), found)
}

/// Each question is answered or refused, unless something that is documented came between.
pub(crate) fn answered(evidence: &Evidence) -> Verdict {
    let asked = evidence.said();
    let judged = asked.filter(|(_, said)| said.mark.of == MarkOf::Question);
    let mut unanswered = unanswered(evidence);
    let found = unanswered.find(|(at, said)| excuse(evidence, *at, said).is_none());
    let found =
        found.map(|(at, said)| format!("{at} ms: nothing came of the question {}", said.mark));
    verdict(judged.count(), found)
}

/// The questions that were lost as the documents say that they may be: why, of each.
pub(crate) fn losses(evidence: &Evidence) -> Vec<&'static str> {
    let excuses = unanswered(evidence).filter_map(|(at, said)| excuse(evidence, at, said));
    excuses.collect()
}

/// The questions that nothing came of, with their times.
fn unanswered(evidence: &Evidence) -> impl Iterator<Item = (i64, &Said)> {
    let deleted = evidence.deleted();
    evidence.said().filter(move |(_, said)| {
        said.mark.of == MarkOf::Question
            && !deleted.contains(&said.message)
            && !is_unlisted(evidence, said)
            && !is_responded(evidence, said)
            && !is_refused(evidence, said)
            && !is_told_apart(evidence, said)
    })
}

/// Whether an app posted it through which nobody writes, as far as the bot knows.
fn is_unlisted(evidence: &Evidence, said: &Said) -> bool {
    said.in_place_of.is_some() && evidence.setting("PROXY_APPS").is_none()
}

/// The marks that a message had, and the one that it is in place of.
fn marks_of(evidence: &Evidence, said: &Said) -> Vec<Mark> {
    let original = said.in_place_of.and_then(|original| {
        let mut all = evidence.said();
        all.find_map(|(_, one)| (one.message == original).then_some(one.mark))
    });
    let is_meant = |message: Id| message == said.message || said.in_place_of == Some(message);
    let edits = evidence
        .history
        .iter()
        .filter_map(|happened| match &happened.what {
            What::Edited { message, is, .. } if is_meant(*message) => Some(*is),
            _ => None,
        });
    let first = [said.mark].into_iter().chain(original);
    first.chain(edits).collect()
}

/// Whether the bot's whole answer to it, or what it replied instead, is there at the end.
fn is_responded(evidence: &Evidence, said: &Said) -> bool {
    let marks = marks_of(evidence, said);
    let is_asked = |mark: &Mark| marks.iter().any(|one| one.number == mark.number);
    if pressed(evidence, "Stop")
        .iter()
        .any(|number| marks.iter().any(|mark| mark.number == *number))
    {
        return true;
    }
    evidence.posts.iter().any(|post| {
        let mut answers = post.marks.iter().filter(|mark| mark.of == MarkOf::Answer);
        let replies = |to: Id| to == said.message || said.in_place_of == Some(to);
        match answers.next() {
            Some(mark) => is_asked(mark) && is_whole(&post.text),
            None => {
                post.replies_to.is_some_and(replies) && may_fail(evidence, &marks, post.message)
            }
        }
    })
}

/// Whether a turn could fail by the time at which the bot said that it had: its model did, or something
/// was broken before.
fn may_fail(evidence: &Evidence, marks: &[Mark], told: Id) -> bool {
    let mut before = evidence
        .history
        .iter()
        .take_while(|one| !matches!(&one.what, What::Posted { message, .. } if *message == told));
    before.any(|happened| match &happened.what {
        What::ModelFailed { question } => question.is_some_and(|of| marks.contains(&of)),
        What::Fault { name } => ["store_", "rest_", "model_"]
            .iter()
            .any(|of| name.starts_with(of)),
        _ => false,
    })
}

/// Whether an answer goes to its last word, or says that it does not.
fn is_whole(text: &str) -> bool {
    text.contains(LAST_WORD) || text.contains("-# ")
}

/// What excuses that nothing came of a question: a session was lost since that was not wholly caught
/// up, or a fault of Discord or the store came between and it was counted as failed. All of it is
/// documented.
fn excuse(evidence: &Evidence, at: i64, said: &Said) -> Option<&'static str> {
    let (mut is_fault, mut is_stored, mut is_held, mut is_archived) = (false, false, false, false);
    let (mut here, mut outages, mut unmet) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let left_out = left_out(evidence);
    let short_from = first_short_page(evidence);
    let recorded = recorded(evidence);
    let (mut deleted, mut heard) = (BTreeSet::<Id>::new(), at);
    let (mut is_barred, mut running, mut has_called) = (false, 0, false);
    for happened in &evidence.history {
        let is_later = happened.at >= at;
        match &happened.what {
            What::Deleted { messages } => deleted.extend(messages),
            What::Told {
                event, messages, ..
            } if event == "MESSAGE_CREATE" && messages.contains(&said.message) => {
                heard = happened.at;
            }
            _ => {}
        }
        // What is missed is looked for.
        let begins = matches!(
            &happened.what,
            What::Greeted { .. } | What::Outage { is_on: false, .. }
        );
        if is_barred && is_later && (begins || happened.at - heard < MINUTE) {
            return Some("barred");
        }
        match &happened.what {
            What::Outage { guild, is_on: true } => drop(outages.insert(*guild)),
            // Nothing says since when to look in a server that the very first session never met.
            What::Outage { guild, .. }
                if outages.remove(guild) && unmet.remove(guild) && is_later =>
            {
                return Some("unmet");
            }
            What::Greeted { process: 1, .. } if !is_later => unmet.clone_from(&outages),
            // Since when it is there only its clock tells, which may be ahead.
            What::Greeted { process: 1, .. } if evidence.is_of_cluster() => return Some("unmet"),
            What::Started { process } => running = *process,
            What::BotMay { channel, all } if *channel == said.channel => is_barred = !all,
            // Whoever holds the store has the questions, too: the next process begins anew.
            What::Fault { name: "store_held" } => is_held = true,
            _ if begins && is_held && is_later => return Some("store_held"),
            // Nor is an archived thread looked at.
            What::Archived { thread } if *thread == said.channel => {
                is_archived |= is_later;
            }
            _ if begins && is_archived => return Some("archived"),
            // Direct conversations are looked for where something is stored of them.
            // What a short page lacks is not known to be there.
            _ if begins && is_later && short_from < happened.at + CAUGHT_UP => {
                return Some("short_page");
            }
            _ if begins && is_later && left_out.contains(&running) => return Some("left_out"),
            What::Greeted { .. } if is_later && said.is_direct && (!is_stored || has_called) => {
                return Some("direct_unknown");
            }
            What::Posted { channel, marks, .. } if *channel == said.channel => {
                let mut answers = marks.iter().filter(|mark| mark.of == MarkOf::Answer);
                // Unless its question was deleted before.
                let stays = |question: &Id| !deleted.contains(question);
                is_stored |= answers.any(|mark| recorded.get(&mark.number).is_some_and(stays));
            }
            What::Said(one) if one.channel == said.channel => {
                here.insert(one.message);
            }
            What::Deleted { messages } if messages.iter().any(|one| here.contains(one)) => {
                is_stored = false;
            }
            // Maybe to opt out, or to erase.
            What::Called { user, .. } if *user == said.author => has_called = true,
            // It stays until it has met so many requests.
            What::Fault { name } if name.starts_with("store_") || name.starts_with("rest_") => {
                is_fault = true;
            }
            _ => {}
        }
    }
    excuse_by_turn(evidence, at, said, (is_archived, is_fault))
}

/// The same, by what became of the question's turn.
fn excuse_by_turn(
    evidence: &Evidence,
    at: i64,
    said: &Said,
    (is_archived, is_fault): (bool, bool),
) -> Option<&'static str> {
    if is_left_unexplained(evidence, said) || is_unknown(evidence, at, said) {
        return Some("unexplained");
    }
    // It was archived while the answer stood half there: nothing can be changed in it.
    if is_archived && is_failed(evidence, said) {
        return Some("archived");
    }
    ((is_fault || was_long_offline(evidence)) && is_failed(evidence, said)).then_some("failed")
}

/// Whether a process was without Discord for about as long as an answer waits.
fn was_long_offline(evidence: &Evidence) -> bool {
    let mut since = None;
    evidence.history.iter().any(|one| match one.what {
        What::CutOff { .. } => {
            since.get_or_insert(one.at);
            false
        }
        What::Greeted { .. } | What::Resumed { .. } => {
            since.take().is_some_and(|since| one.at - since > MINUTE)
        }
        _ => false,
    })
}

/// When pages begin to be short, if they do.
fn first_short_page(evidence: &Evidence) -> i64 {
    let mut shorts = evidence.history.iter().filter_map(|one| {
        let is_short = matches!(one.what, What::Fault { name: "rest_short" });
        is_short.then_some(one.at)
    });
    shorts.next().unwrap_or(i64::MAX)
}

/// Whether no process knew of a question that it was to be answered.
fn is_unknown(evidence: &Evidence, asked: i64, said: &Said) -> bool {
    is_before_all(evidence, asked) || is_unknown_copy(evidence, asked, said)
}

/// Whether a question came before the first process of a cluster, or before the first that Discord
/// greeted where an earlier one ended.
fn is_before_all(evidence: &Evidence, asked: i64) -> bool {
    let first = |is_it: fn(&What) -> bool| evidence.history.iter().find(|one| is_it(&one.what));
    let begun = first(|what| matches!(what, What::Started { .. }));
    let greeted = first(|what| matches!(what, What::Greeted { .. }));
    let is_first = greeted.is_none_or(|one| matches!(one.what, What::Greeted { process: 1, .. }));
    let met = if is_first { begun } else { greeted };
    !evidence.tenures.is_empty() && met.is_some_and(|one| asked < one.at)
}

/// Whether the next process could not know that a copy was to be answered in place of what it copies.
fn is_unknown_copy(evidence: &Evidence, at: i64, said: &Said) -> bool {
    let is_cut_off = [at, at + COPY_IS_KNOWN].map(|at| evidence.may_be_cut_off(at));
    said.in_place_of.is_some() && is_cut_off.contains(&true)
}

/// Whether a killed process left a part of its answer that its claim did not know yet, and the next
/// one came too late for the nonce: the part counts as the answer.
fn is_left_unexplained(evidence: &Evidence, said: &Said) -> bool {
    has_ended(evidence, said, "left", "unexplained")
}

/// The questions whose turns are stored, or will be, with their messages.
fn recorded(evidence: &Evidence) -> BTreeMap<u32, Id> {
    let recorded = evidence.told("recorded");
    let recorded: BTreeSet<&str> = recorded
        .filter_map(|line| line["msg_id"].as_str())
        .collect();
    let questions = evidence.questions().into_iter();
    let recorded =
        questions.filter(|(_, said)| recorded.contains(said.message.to_string().as_str()));
    recorded
        .map(|(mark, said)| (mark.number, said.message))
        .collect()
}

/// The processes of which telemetry counts pages that could not be read, or questions that were
/// too old.
fn left_out(evidence: &Evidence) -> BTreeSet<u32> {
    let is_left = |line: &Value| {
        let counts =
            ["failed", "unread", "too_old", "too_many"].map(|count| &line["detail"][count]);
        counts.iter().any(|count| count.as_u64() != Some(0))
    };
    let lines = evidence.by_process();
    let left = lines.filter(|(_, line)| line["event"] == "caught_up" && is_left(line));
    left.map(|(process, _)| process).collect()
}

/// Whether its turn was counted as failed.
fn is_failed(evidence: &Evidence, said: &Said) -> bool {
    has_ended(evidence, said, "outcome", "failed")
}

/// Whether a turn of it ended so.
fn has_ended(evidence: &Evidence, said: &Said, detail: &str, is: &str) -> bool {
    let messages = messages_of(said);
    let mut ended = evidence.told("turn_done");
    ended.any(|line| is_about(line, &messages) && line["detail"][detail] == is)
}

/// Whether its turn failed and said so elsewhere: in a message of its own, since what it would
/// have replied to was deleted (an app's copy of it had not been heard of yet), or as a reply to
/// the thread's newest message, as `THREAD_REPLY_TARGET` may say.
fn is_told_apart(evidence: &Evidence, said: &Said) -> bool {
    let messages = messages_of(said);
    let mut told = evidence.told("send_fallback");
    let is_apart = |line: &Value| {
        let (stage, reason) = (&line["detail"]["stage"], &line["detail"]["reason"]);
        is_about(line, &messages) && stage == "reference" && reason == "deleted"
    };
    let is_target = |to: &Option<Id>| {
        let mut turns = evidence
            .told("trigger")
            .filter(|line| is_about(line, &messages));
        let to = to.map(|to| to.to_string());
        to.is_some_and(|to| turns.any(|line| line["detail"]["target"] == to.as_str()))
    };
    let mut history = evidence.history.iter();
    let mut is_elsewhere = || {
        history.any(|happened| {
            matches!(&happened.what, What::Posted { channel, marks, replies_to, .. }
                if *channel == said.channel && marks.is_empty() && is_target(replies_to))
        })
    };
    (told.any(is_apart) || is_elsewhere()) && is_failed(evidence, said)
}

/// Whether a limit refused it, maybe without a word: a person, and a channel, is told once.
fn is_refused(evidence: &Evidence, said: &Said) -> bool {
    let messages = messages_of(said);
    let mut refused = evidence.told("refused");
    refused.any(|line| is_about(line, &messages) && is_limit_reached(evidence, line))
}

/// Whether a refusal names a limit that was reached.
fn is_limit_reached(evidence: &Evidence, refused: &Value) -> bool {
    let set = |name| evidence.setting(name);
    let of_minute = |of: &str| {
        let is_of = |line: &Value| line[of] == refused[of];
        begun_in_minute(evidence, refused, is_of)
    };
    match refused["detail"]["reason"].as_str().unwrap_or_default() {
        "user_rate" => {
            let limit = set("USER_TURNS_PER_MIN").and_then(|limit| limit.parse().ok());
            limit.is_some_and(|limit: usize| of_minute("user_id") >= limit)
        }
        "queue_full" => of_minute("channel_id") > 0,
        "busy" => of_minute("guild_id") > 0,
        "user_tokens" | "guild_tokens" => set("TOKENS_PER_DAY").is_some(),
        "total_tokens" => set("TOKENS_TOTAL_DAY").is_some(),
        "stopping" => true,
        _ => false,
    }
}

/// How many turns such as this were begun in the minute before a refusal, by the bot's clock:
/// at most, since a turn may begin anew after an edit, and times are not known where the clock
/// jumped.
fn begun_in_minute(
    evidence: &Evidence,
    refused: &Value,
    is_meant: impl Fn(&Value) -> bool,
) -> usize {
    if evidence.has_met("clock_jumps") {
        return usize::MAX;
    }
    let time = |line: &Value| UnixMillis::parse(line["ts"].as_str()?);
    let Some(at) = time(refused) else { return 0 };
    let done = evidence.told("turn_done");
    let done: BTreeSet<&str> = done.filter_map(|line| line["turn_id"].as_str()).collect();
    let is_done = |line: &Value| line["turn_id"].as_str().is_some_and(|of| done.contains(of));
    // Saving, and an agent run, count as a question, too.
    let asked = evidence.told("trigger").filter(|line| !is_done(line));
    let asked = asked.map(|line| (line, &line["detail"]["queued_ms"]));
    let over = evidence.told("turn_done").chain(evidence.told("answered"));
    let over = over.map(|line| (line, &line["detail"]["ms"]));
    let begun = asked.chain(over).filter(|(line, since)| {
        let since = Duration::from_secs_f64(since.as_f64().unwrap_or_default().max(0.0) / 1_000.0);
        let begun = time(line).map(|time| time.before(since));
        is_meant(line) && begun.is_some_and(|begun| (0..=MINUTE).contains(&at.since(begun)))
    });
    // So does what another limit refused after that: it is told a little later.
    let refused_else = evidence.told("refused").filter(|line| {
        let since = time(line).map(|time| at.since(time));
        let is_near = since.is_some_and(|since| (-TOLD..=MINUTE).contains(&since));
        is_meant(line) && is_near && line["detail"]["reason"] != "user_rate"
    });
    let edits = evidence.count(|what| matches!(what, What::Edited { .. }));
    begun.count() + refused_else.count() + edits
}

/// The message, and the one that it is in place of.
fn messages_of(said: &Said) -> Vec<String> {
    let messages = [said.message].into_iter().chain(said.in_place_of);
    messages.map(|message| message.to_string()).collect()
}

fn is_about(line: &Value, messages: &[String]) -> bool {
    let message = line["msg_id"].as_str();
    message.is_some_and(|message| messages.iter().any(|one| one == message))
}

/// An answer replies to a message of its question's channel.
pub(crate) fn answers_reply(evidence: &Evidence) -> Verdict {
    let questions = evidence.questions();
    let questions: BTreeMap<u32, &Said> = questions
        .into_iter()
        .map(|(mark, said)| (mark.number, said))
        .collect();
    let tasks: BTreeSet<u32> = evidence.tasks().map(|mark| mark.number).collect();
    let (mut judged, mut found) = (0, None);
    for happened in &evidence.history {
        let What::Posted { channel, marks, .. } = &happened.what else {
            continue;
        };
        for mark in marks.iter().filter(|mark| mark.of == MarkOf::Answer) {
            // A task is answered in a thread of its own.
            if tasks.contains(&mark.number) {
                continue;
            }
            judged += 1;
            if questions
                .get(&mark.number)
                .is_none_or(|said| said.channel != *channel)
            {
                found.get_or_insert(format!(
                    "{} ms: the answer {mark} is in another channel than its question",
                    happened.at
                ));
            }
        }
    }
    verdict(judged, found)
}

/// Nobody gets more turns a minute than the limit.
pub(crate) fn people_have_limits(evidence: &Evidence) -> Verdict {
    let questions = evidence.questions();
    let mut asked: BTreeMap<Id, Vec<(i64, Mark)>> = BTreeMap::new();
    for happened in &evidence.history {
        if let What::Prompted(prompted) = &happened.what
            && let Some(question) = prompted.question
            && let Some(said) = questions.get(&question)
            && said.in_place_of.is_none()
        {
            let turns = asked.entry(said.author).or_default();
            if !turns.iter().any(|(_, mark)| *mark == question) {
                turns.push((happened.at, question));
            }
        }
    }
    let mut found = None;
    let starts: Vec<i64> = evidence
        .history
        .iter()
        .filter(|happened| matches!(happened.what, What::Started { .. }))
        .map(|happened| happened.at)
        .collect();
    let set = evidence.setting("USER_TURNS_PER_MIN");
    let Some(limit) = set.and_then(|limit| limit.parse::<usize>().ok()) else {
        return Verdict::Unreached;
    };
    for (person, turns) in &asked {
        for (number, (first, _)) in turns.iter().enumerate() {
            let within = |at: i64| (*first..first + MINUTE).contains(&at);
            let count = turns[number..]
                .iter()
                .take_while(|(at, _)| within(*at))
                .count();
            // Each process counts anew. Twice, since what waited for its turn may run together
            // with what came later.
            let begun = starts.iter().filter(|at| within(**at)).count();
            if count > limit * (2 + begun) {
                found.get_or_insert(format!(
                    "{first} ms: {person} got {count} turns in a minute"
                ));
            }
        }
    }
    verdict(asked.len(), found)
}
