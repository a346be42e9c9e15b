//! Gives an agent run its place: a thread of its own, or where it was asked for, and the
//! message that shows its progress.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::super::loop_event::LoopEvent;
use crate::commands::BeginningRun;
use crate::model::shortened;
use crate::telemetry::with_sources;
use crate::turn::{self, Services};
use clew_context::engine::meaning::NOTE_PREFIX;
use clew_context::engine::sanitise;
use clew_context::model::{ChannelId, GuildId, TurnRequest};
use clew_discord::guild_state::MAX_THREAD_NAME;
use clew_discord::model::Answer;

/// How long starting the thread may take, and posting the message.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long writing down that there is a run may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// The name of a thread whose asker opted out, and keeps their words to themselves, or
/// whose task shows nothing.
const UNTITLED: &str = "Agent run";

/// Returns what the loop is told and what the caller reads; the latter alone if the run
/// has no place and does not begin.
pub(super) async fn begin_run(
    services: &Services,
    beginning: BeginningRun,
) -> Result<(LoopEvent, Answer), Answer> {
    let BeginningRun {
        slot,
        mut request,
        thread_in,
    } = beginning;
    let thread = match thread_in {
        Some((guild, parent)) => start_thread(services, &request, guild, parent).await,
        None => None,
    };
    if let Some(thread) = thread {
        slot.opens(thread);
        Arc::make_mut(&mut request.trigger).channel = thread;
        request.channel_kind = services
            .guild_state
            .kind_and_parent(thread)
            .map(|(kind, _)| kind);
    }
    let channel = request.trigger.channel;
    let message = turn::under_way(slot.run(), &request.trigger.content);
    let nonce = turn::progress_nonce(slot.run().id);
    if timeout(WRITE_TIMEOUT, slot.begins_in(channel))
        .await
        .is_err()
    {
        tracing::warn!("an agent run begins before it is written down");
    }
    let deadline = Instant::now() + TIMEOUT;
    match services
        .rest
        .post_answer(channel, &message, &nonce, deadline)
        .await
    {
        Ok(id) => slot.stands(id),
        Err(error) => {
            if !turn::may_pass(&error) {
                slot.told();
            }
            tracing::warn!(error = %with_sources(&error), "an agent run has no place");
            let line = format!("{NOTE_PREFIX}I can't write here, so I didn't start.");
            return Err(Answer::for_caller(line));
        }
    }
    let said = match thread {
        Some(thread) => format!("Started: <#{thread}>"),
        None => "Started. I'll answer here.".to_owned(),
    };
    let begun = LoopEvent::Run(Box::new(request), slot);
    Ok((begun, Answer::for_caller(said)))
}

/// The thread, which is known from now on; none if it was refused.
async fn start_thread(
    services: &Services,
    request: &TurnRequest,
    guild: GuildId,
    parent: ChannelId,
) -> Option<ChannelId> {
    let name = if services.memory.opted_out(request.asker()) {
        UNTITLED.to_owned()
    } else {
        thread_name(&request.trigger.content)
    };
    let deadline = Instant::now() + TIMEOUT;
    let (guild_state, rest) = (&services.guild_state, &services.rest);
    match guild_state
        .start_thread(rest, guild, parent, &name, deadline)
        .await
    {
        Ok(thread) => Some(thread),
        Err(error) => {
            tracing::info!(error = %with_sources(&error), "an agent run gets no thread");
            None
        }
    }
}

/// The beginning of the task on one line, as others see it: without characters that show
/// nothing or turn the line around.
fn thread_name(task: &str) -> String {
    let name = sanitise::line(task);
    if name.is_empty() {
        return UNTITLED.to_owned();
    }
    shortened(&name, MAX_THREAD_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_named_by_what_is_seen_of_its_task() {
        for (task, name) in [
            ("read  the\nmanual", "read the manual"),
            (
                "read \u{202E}lanam\u{202C} \u{2066}eht\u{200B}",
                "read lanam eht",
            ),
            ("\u{202E}\u{200F}", UNTITLED),
        ] {
            assert_eq!(thread_name(task), name, "{task:?}");
        }
        let long = thread_name(&"word ".repeat(99));
        assert_eq!(long.chars().count(), MAX_THREAD_NAME);
        assert!(long.ends_with('…'));
    }
}
