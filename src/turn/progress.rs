//! The message of an agent run: whose it is and what it is to do, how far it is, how it
//! ended. It is posted once and edited at a bounded rate.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::control::Order;
use super::patience::{doubling, patiently};
use super::{EndedTurn, Services, Turn};
use crate::model::STOP_RUN;
use crate::model::{count, cut, unformatted};
use crate::runs::{Doing, OpenRun, Run, RunPlace, RunSlot};
use crate::telemetry::event::{Outcome, RunDone, RunEnd};
use crate::telemetry::{Ids, Ms};
use crate::tools;
use clew_context::discord::error::RestError;
use clew_context::engine::meaning::NOTE_PREFIX;
use clew_context::engine::sanitise;
use clew_context::model::{InteractionId, TurnId, UnixMillis};
use clew_discord::model::{Answer, ButtonStyle};
use clew_discord::rest::Rest;

/// The pause between two edits: Discord allows about five in five seconds, which the
/// channel's other answers share.
const PACE: Duration = Duration::from_secs(3);
/// How long one edit may take.
const EDIT_TIMEOUT: Duration = Duration::from_secs(4);
/// How long the last edit is tried...
const LAST_EDIT: Duration = Duration::from_secs(30);
/// ...and at the end of the process, which leaves five seconds, part of the answer included.
const LAST_EDIT_AT_SHUTDOWN: Duration = Duration::from_millis(2_500);
/// The pause before the last edit is tried again; doubled for each further time.
const LAST_EDIT_PAUSE: Duration = Duration::from_secs(1);
/// How much of the task is shown, in Unicode scalars.
const TASK_CHARS: usize = 300;

/// What is said of a run that had ended before the restart.
const OVER: &str = "over";
/// The most results listed at the end.
const MAX_OUTPUTS: usize = 8;
/// How much of each line is shown, in Unicode scalars.
const OUTPUT_CHARS: usize = 150;

/// The message of a run that is under way.
pub fn under_way(run: &Run, task: &str) -> Answer {
    let doing = run.activity.now();
    let state = at_work(&doing);
    let stop = format!("{STOP_RUN}{}", run.id);
    let mut text = text(run, &state, task);
    if let Some(progress) = &doing.progress {
        text.push_str(&format!("\n{NOTE_PREFIX}{}", unformatted(progress)));
    }
    Answer::for_all(text).with_button("Stop", ButtonStyle::Danger, stop)
}

/// The nonce of a run's message.
pub fn progress_nonce(run: InteractionId) -> String {
    format!("{:x}.p", run.get())
}

/// Says of the runs of an earlier process that they broke off, or are over.
pub async fn report_broken_off(services: &Services) {
    for (id, open) in services.runs.broken_off().0 {
        match report(&services.rest, id, &open).await {
            Err(error) if may_pass(&error) => {
                tracing::info!(%error, "the end of an earlier run was not shown");
            }
            _ => services.runs.reported(id),
        }
        if open.is_over {
            continue;
        }
        let ids = Ids {
            guild: services.guild_state.guild_of(open.channel),
            channel: Some(open.channel),
            turn: Some(TurnId(id.get())),
            ..Ids::default()
        };
        let ms = services.memory.now().since(UnixMillis(open.began));
        let done = RunDone {
            end: RunEnd::Interrupted,
            rounds: None,
            calls: None,
            tokens: None,
            ms: Ms::from(Duration::from_millis(ms.max(0).unsigned_abs())),
        };
        services.telemetry.emit(&ids, done);
    }
}

async fn report(rest: &Rest, id: InteractionId, open: &OpenRun) -> Result<(), RestError> {
    let state = if open.is_over {
        OVER
    } else {
        words(RunEnd::Interrupted)
    };
    let answer = Answer::for_all(format!("{NOTE_PREFIX}Agent run: {state}."));
    let channel = open.channel;
    let message = if let Some(message) = open.message {
        message
    } else {
        // Of a message that was posted in the last minutes the nonce gives the id.
        let deadline = Instant::now() + EDIT_TIMEOUT;
        rest.post_answer(channel, &answer, &progress_nonce(id), deadline)
            .await?
    };
    edit(rest, RunPlace { channel, message }, &answer).await
}

/// Does the work of a run. Its message shows how far it is, and at last how it ended.
pub(super) async fn shown(
    turn: &Turn<'_>,
    slot: &RunSlot,
    work: impl Future<Output = Result<EndedTurn, Order>>,
) -> Result<EndedTurn, Order> {
    let over = CancellationToken::new();
    let work = async {
        let ended = work.await;
        over.cancel();
        ended
    };
    let (ended, ()) = tokio::join!(work, show_progress(turn, slot.run(), &over));
    let end = match &ended {
        Ok(ended) if ended.outcome == Outcome::Answered => RunEnd::Done,
        Ok(_) if matches!(turn.spent(), Ok(Some(_))) => RunEnd::TokensSpent,
        Ok(_) => RunEnd::Failed,
        Err(Order::TimeOver) => RunEnd::TimeOver,
        Err(Order::Abandon { .. }) => RunEnd::Interrupted,
        Err(_) => RunEnd::Stopped,
    };
    turn.report.run_done(end, &slot.run().activity.now());
    if end != RunEnd::Interrupted {
        slot.over();
    }
    show_end(turn, slot, end).await;
    ended
}

/// Edits the message whenever there is more to show, until the run is over. No edit is
/// given up half way: it could arrive after the last one.
async fn show_progress(turn: &Turn<'_>, run: &Run, over: &CancellationToken) {
    let Some(place) = run.place() else {
        return;
    };
    let mut progress = run.activity.changes();
    while let Some(Ok(())) = over.run_until_cancelled(progress.changed()).await {
        let answer = under_way(run, &turn.trigger().content);
        if let Err(error) = edit(&turn.services.rest, place, &answer).await {
            tracing::info!(%error, "the progress of a run was not shown");
        }
        over.run_until_cancelled(sleep(PACE)).await;
    }
}

/// The last edit takes the button away and says what came of the run. If it fails for all
/// that time, the next process tries again.
async fn show_end(turn: &Turn<'_>, slot: &RunSlot, end: RunEnd) {
    let run = slot.run();
    let Some(place) = run.place() else {
        return;
    };
    let mut content = text(run, words(end), &turn.trigger().content);
    content.push_str(&steps(&run.activity.now()));
    content.push_str(&outputs(turn, run).await);
    let patience = match end {
        RunEnd::Interrupted => LAST_EDIT_AT_SHUTDOWN,
        _ => LAST_EDIT,
    };
    let until = Instant::now() + patience;
    match edit_until(&turn.services.rest, place, &Answer::for_all(content), until).await {
        Err(error) if may_pass(&error) => {
            tracing::warn!(%error, "the end of a run was not shown: the next process tries again");
        }
        _ => slot.told(),
    }
}

/// What a run did, once it is over, if that was more than to answer.
fn steps(doing: &Doing) -> String {
    let called = called(doing);
    let steps = match doing.rounds {
        0 | 1 if called.is_empty() => return String::new(),
        steps => count(steps, "step"),
    };
    let calls = if called.is_empty() { "" } else { ": " };
    format!("\n{NOTE_PREFIX}{steps}{calls}{called}")
}

/// A line for each result that was kept, to be read by asking for it in the conversation.
async fn outputs(turn: &Turn<'_>, run: &Run) -> String {
    let memory = &turn.services.memory;
    let kept = memory
        .outputs_of_run(&turn.ids, run.id.get(), run.asker)
        .await;
    if kept.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{NOTE_PREFIX}Kept results, by id:");
    for pointer in kept.iter().take(MAX_OUTPUTS) {
        let line: String = tools::line(pointer).chars().take(OUTPUT_CHARS).collect();
        text.push_str(&format!("\n{NOTE_PREFIX}{line}"));
    }
    let more = kept.len().saturating_sub(MAX_OUTPUTS);
    if more > 0 {
        text.push_str(&format!("\n{NOTE_PREFIX}and {more} more"));
    }
    text
}

/// Whether trying again later may help.
pub fn may_pass(error: &RestError) -> bool {
    error.transient || error.is_limit()
}

/// Tries until it is shown, can never be, or it is that late.
async fn edit_until(
    rest: &Rest,
    place: RunPlace,
    answer: &Answer,
    until: Instant,
) -> Result<(), RestError> {
    let edit = || {
        let deadline = until.min(Instant::now() + EDIT_TIMEOUT);
        rest.edit_answer(place.channel, place.message, answer, deadline)
    };
    patiently(doubling(LAST_EDIT_PAUSE, until), edit, may_pass).await
}

async fn edit(rest: &Rest, place: RunPlace, answer: &Answer) -> Result<(), RestError> {
    let deadline = Instant::now() + EDIT_TIMEOUT;
    rest.edit_answer(place.channel, place.message, answer, deadline)
        .await
}

/// The step, and which tools have been called how often.
fn at_work(doing: &Doing) -> String {
    let mut state = "at work".to_owned();
    if doing.rounds > 1 {
        state.push_str(&format!(", step {}", doing.rounds));
    }
    let called = called(doing);
    if !called.is_empty() {
        state.push_str(&format!(" ({called})"));
    }
    state
}

/// Which tools have been called how often.
fn called(doing: &Doing) -> String {
    let called = doing.called.iter().map(|(tool, times)| match times {
        1 => tool.as_str().to_owned(),
        _ => format!("{} ×{times}", tool.as_str()),
    });
    called.collect::<Vec<String>>().join(", ")
}

/// It begins like a note, which keeps it out of prompts.
fn text(run: &Run, state: &str, task: &str) -> String {
    format!(
        "{NOTE_PREFIX}Agent run for <@{}>: {state}.\n> {}",
        run.asker,
        quoted(task)
    )
}

/// The beginning of a task on one line, as it is seen.
fn quoted(task: &str) -> String {
    cut(&sanitise::line(task), TASK_CHARS, "…")
}

const fn words(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Done => "done",
        RunEnd::Failed => "failed",
        RunEnd::Stopped => "stopped",
        RunEnd::TimeOver => "stopped, out of time",
        RunEnd::TokensSpent => "stopped, out of tokens",
        RunEnd::Interrupted => "interrupted by my restart. Start it again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_quoted_as_it_is_seen() {
        assert_eq!(quoted("read\n\u{202E}lanam\u{2066} eht"), "read lanam eht");
        assert_eq!(quoted(&"x".repeat(999)).chars().count(), TASK_CHARS + 1);
    }
}
