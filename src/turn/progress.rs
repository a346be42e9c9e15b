//! The message of an agent run: whose it is and what it is to do, how far it is, how it
//! ended. It is posted once and edited at a bounded rate.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::control::Order;
use super::{EndedTurn, Services, Turn};
use crate::model::STOP_RUN;
use crate::runs::{Doing, Run, RunPlace, RunSlot};
use crate::telemetry::event::{Outcome, RunDone, RunEnd};
use crate::telemetry::{Ids, Ms};
use crate::tools;
use clew_context::discord::error::RestError;
use clew_context::engine::meaning::NOTE_PREFIX;
use clew_context::model::{TurnId, UnixMillis};
use clew_discord::model::{Answer, ButtonStyle};
use clew_discord::rest::Rest;

/// The pause between two edits: Discord allows about five in five seconds, which the
/// channel's other answers share.
const PACE: Duration = Duration::from_secs(3);
/// How long one edit may take: the last one must fit into what a shutdown leaves.
const EDIT_TIMEOUT: Duration = Duration::from_secs(4);
/// How much of the task is shown, in Unicode scalars.
const TASK_CHARS: usize = 300;

/// The most results listed at the end.
const MAX_OUTPUTS: usize = 8;
/// How much of each line is shown, in Unicode scalars.
const OUTPUT_CHARS: usize = 150;

/// The message of a run that is under way.
pub fn under_way(run: &Run, task: &str) -> Answer {
    let state = at_work(&run.activity.now());
    let stop = format!("{STOP_RUN}{}", run.id);
    Answer::for_all(text(run, &state, task)).with_button("Stop", ButtonStyle::Danger, stop)
}

/// Says of the runs of an earlier process that they broke off.
pub async fn report_broken_off(services: &Services) {
    let line = format!("{NOTE_PREFIX}Agent run: {}.", words(RunEnd::Interrupted));
    let answer = Answer::for_all(line);
    for (id, place) in services.runs.broken_off().0 {
        if is_settled(&edit(&services.rest, place, &answer).await) {
            services.runs.reported(id);
        }
        let ids = Ids {
            guild: services.guild_state.guild_of(place.channel),
            channel: Some(place.channel),
            turn: Some(TurnId(id.get())),
            ..Ids::default()
        };
        let ms = services.memory.now().since(UnixMillis(place.began));
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
        Ok(_) => RunEnd::Failed,
        Err(Order::TimeOver) => RunEnd::TimeOver,
        Err(Order::Abandon) => RunEnd::Interrupted,
        Err(Order::Go | Order::Restart { .. } | Order::Cancel) => RunEnd::Stopped,
    };
    show_end(turn, slot, end).await;
    turn.report.run_done(end, &slot.run().activity.now());
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

/// The last edit takes the button away. If it fails, the next process tries again.
async fn show_end(turn: &Turn<'_>, slot: &RunSlot, end: RunEnd) {
    let run = slot.run();
    let Some(place) = run.place() else {
        return;
    };
    let mut content = text(run, words(end), &turn.trigger().content);
    content.push_str(&outputs(turn, run).await);
    let answer = Answer::for_all(content);
    let edited = edit(&turn.services.rest, place, &answer).await;
    if is_settled(&edited) || end != RunEnd::Interrupted {
        slot.told();
    }
    if let Err(error) = edited {
        tracing::info!(%error, "the end of a run was not shown");
    }
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

/// Whether it was shown, or can never be.
fn is_settled(edited: &Result<(), RestError>) -> bool {
    edited.as_ref().is_err_and(|error| !error.transient) || edited.is_ok()
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
    let called = doing.called.iter().map(|(tool, times)| match times {
        1 => tool.as_str().to_owned(),
        _ => format!("{} ×{times}", tool.as_str()),
    });
    let called: Vec<String> = called.collect();
    if !called.is_empty() {
        state.push_str(&format!(" ({})", called.join(", ")));
    }
    state
}

/// It begins like a note, which keeps it out of prompts.
fn text(run: &Run, state: &str, task: &str) -> String {
    let task: Vec<&str> = task.split_whitespace().collect();
    let mut task = task.join(" ");
    if let Some((end, _)) = task.char_indices().nth(TASK_CHARS) {
        task.truncate(end);
        task.push('…');
    }
    format!(
        "{NOTE_PREFIX}Agent run for <@{}>: {state}.\n> {task}",
        run.asker
    )
}

const fn words(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Done => "done",
        RunEnd::Failed => "it could not be finished",
        RunEnd::Stopped => "stopped",
        RunEnd::TimeOver => "stopped, since its time was over",
        RunEnd::Interrupted => "interrupted, since I was restarted. Please start it again",
    }
}
