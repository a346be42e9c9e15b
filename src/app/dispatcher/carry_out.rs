//! Carries out commands in the background: the first response within Discord's
//! three seconds, further effects, and the answer.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::commands::{self, Call, CommandServices, Deferral, Done, Effect, Reply, Steered};
use crate::telemetry::event::{CommandAnswered, CommandOutcome};
use crate::telemetry::{Ids, Ms};
use crate::turn::Services;
use clew_context::discord::error::RestError;
use clew_context::engine::eligible::Us;
use clew_context::engine::meaning::NOTE_PREFIX;
use clew_context::model::Interaction;
use clew_discord::model::Answer;
use clew_discord::send::Callback;

use super::super::loop_event::LoopEvent;
use super::begin_run::begin_run;

/// Discord gives a call up that has no first response after this time.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// What is done within this time is answered at once. After it "thinking" is sent, which has the
/// other half of [`CALL_TIMEOUT`] to reach Discord.
const AT_ONCE: Duration = Duration::from_millis(1_500);
/// How long choices may take; they cannot be sent later.
const CHOICES: Duration = Duration::from_secs(2);
/// How long an answer after "thinking" may take, and each message with files.
const LATER: Duration = Duration::from_mins(1);

/// Does what a call asks for, and answers it. Work that is not done when the bot has
/// `stopped` is dropped, and the caller told.
pub(super) async fn carry_out(
    services: &Services,
    loop_events: &mpsc::UnboundedSender<LoopEvent>,
    call: Call,
    stopped: &CancellationToken,
) {
    let came = Instant::now();
    let us = services.us(call.interaction.guild);
    let for_commands = for_commands(services, &us, &call.interaction);
    // Boxed, since the combined future of all commands is large.
    let work = Box::pin(async {
        let work = async {
            // Choices change nothing, and are asked for with each key.
            let is_noted = matches!(call.deferral(), Deferral::NoChoices)
                || services.claims.note_call(call.interaction.id).await;
            if is_noted {
                commands::run(&for_commands, &call).await
            } else {
                // The next process carries it out.
                Done::unfinished(call.deferral())
            }
        };
        let done = stopped.run_until_cancelled(work).await;
        done.unwrap_or_else(|| Done::unfinished(call.deferral()))
    });
    let (done, deferred) = in_time(services, &call, work).await;
    let Done {
        reply,
        mut outcome,
        effect,
    } = done;
    let (reply, further) = match effect {
        None => (reply, Vec::new()),
        Some(effect) => {
            let effect = carry_on(services, loop_events, &call, effect, reply);
            effect.await.unwrap_or_else(|(reply, instead)| {
                outcome = instead;
                (reply, Vec::new())
            })
        }
    };
    if let Err(error) = answer(services, &call, reply, further, deferred).await {
        tracing::warn!(%error, command = %call.word(), "a command could not be answered");
    }
    let (command, ms) = (call.word().clone(), Ms::from(came.elapsed()));
    let answered = CommandAnswered {
        command,
        outcome,
        ms,
        deferred,
    };
    services
        .telemetry
        .emit(&Ids::from(&call.interaction), answered);
}

/// What the caller reads, and what follows that.
type Replies = (Reply, Vec<Answer>);

/// Does what is left to do before the reply. What the caller reads instead comes with another
/// outcome.
async fn carry_on(
    services: &Services,
    loop_events: &mpsc::UnboundedSender<LoopEvent>,
    call: &Call,
    effect: Effect,
    reply: Reply,
) -> Result<Replies, (Reply, CommandOutcome)> {
    let message = Reply::Message;
    // The loop is gone only when the process ends.
    let tell = |news| drop(loop_events.send(news));
    Ok(match effect {
        Effect::OptOutsChanged => {
            services.withhold();
            (reply, Vec::new())
        }
        Effect::DirectMessages { messages, closed } => {
            match directly(services, call, messages).await {
                left if left.is_empty() => (reply, left),
                left => (message(closed), left),
            }
        }
        Effect::Share(answer) => (reply, vec![answer]),
        Effect::Run(beginning) => match begin_run(services, *beginning).await {
            Ok((begun, answer)) => {
                tell(begun);
                (message(answer), Vec::new())
            }
            Err(answer) => return Err((message(answer), CommandOutcome::Failed)),
        },
        Effect::Steer(steer) => {
            let (told, steered) = oneshot::channel();
            tell(LoopEvent::Steer(steer, told));
            let line = steered.await.unwrap_or(Steered::Unfinished).line();
            let line = line.map_err(|line| {
                let line = Answer::for_caller(format!("{NOTE_PREFIX}{line}"));
                (message(line), CommandOutcome::Refused)
            });
            let content = line?.to_owned();
            let reply = match reply {
                Reply::Message(answer) => message(Answer { content, ..answer }),
                other => other,
            };
            (reply, Vec::new())
        }
        Effect::StopRun(id) => {
            tell(LoopEvent::StopRun(id));
            (reply, Vec::new())
        }
    })
}

/// What a command reads and changes.
fn for_commands<'a>(
    services: &'a Services,
    us: &'a Us,
    caller: &Interaction,
) -> CommandServices<'a> {
    CommandServices {
        memory: &services.memory,
        claims: &services.claims,
        agents: &services.agents,
        runs: &services.runs,
        approvals: &services.approvals,
        catch_up_pace: &services.catch_up_pace,
        connections: &services.connections,
        mcp_listen: services.settings.mcp_listen,
        us,
        opt_outs: &services.opt_outs,
        model: services.model.as_ref(),
        guild_state: &services.guild_state,
        rest: &services.rest,
        reply_target: services.settings.reply_target,
        limits: services.settings.limits,
        telemetry: &services.telemetry,
        tokens: services.tokens.as_deref(),
        last_refusal: services.refusals.of((caller.user, caller.guild)),
    }
}

/// Waits for the work, and tells Discord if it takes longer. Returns whether
/// Discord was told.
async fn in_time(
    services: &Services,
    call: &Call,
    mut work: impl Future<Output = Done> + Unpin,
) -> (Done, bool) {
    let callback = match call.deferral() {
        Deferral::NoChoices => return (choices(work).await, false),
        Deferral::Thinking => Callback::Deferred { ephemeral: true },
        Deferral::Update => Callback::DeferredUpdate,
    };
    if !call.takes_long()
        && let Ok(done) = timeout(AT_ONCE, &mut work).await
    {
        return (done, false);
    }
    let deadline = Instant::now() + CALL_TIMEOUT;
    let (rest, interaction) = (&services.rest, &call.interaction);
    let told = rest.answer_interaction(interaction, &callback, deadline);
    let (told, done) = tokio::join!(told, work);
    if let Err(error) = told {
        tracing::warn!(%error, "a command could not be deferred in time");
    }
    (done, true)
}

async fn choices(work: impl Future<Output = Done>) -> Done {
    let nothing = Done {
        reply: Reply::Choices(Vec::new()),
        outcome: CommandOutcome::Failed,
        effect: None,
    };
    timeout(CHOICES, work).await.unwrap_or(nothing)
}

/// Sends direct messages to the caller. Returns those that could not be sent.
async fn directly(services: &Services, call: &Call, messages: Vec<Answer>) -> Vec<Answer> {
    let (rest, interaction) = (&services.rest, &call.interaction);
    let deadline = Instant::now() + LATER;
    let channel = match rest.direct_channel(interaction.user, deadline).await {
        Ok(channel) => channel,
        Err(error) => {
            tracing::info!(%error, "a direct conversation could not be opened");
            return messages;
        }
    };
    for (at, message) in messages.iter().enumerate() {
        let nonce = format!("{}-{at}", interaction.id);
        let deadline = Instant::now() + LATER;
        let posted = rest.post_answer(channel, message, &nonce, deadline).await;
        if let Err(error) = posted {
            tracing::info!(%error, "a direct message could not be sent");
            return messages[at..].to_vec();
        }
    }
    Vec::new()
}

async fn answer(
    services: &Services,
    call: &Call,
    reply: Reply,
    further: Vec<Answer>,
    deferred: bool,
) -> Result<(), RestError> {
    let (rest, interaction) = (&services.rest, &call.interaction);
    let callback = match reply {
        Reply::Message(answer) | Reply::Update(answer) if deferred => {
            let deadline = Instant::now() + LATER;
            rest.edit_original_answer(interaction, &answer, deadline)
                .await?;
            for answer in &further {
                let deadline = Instant::now() + LATER;
                rest.follow_up_answer(interaction, answer, deadline).await?;
            }
            return Ok(());
        }
        Reply::Message(answer) => Callback::Message(answer),
        Reply::Update(answer) => Callback::Update(answer),
        Reply::Choices(choices) => Callback::Autocomplete(choices),
    };
    let deadline = Instant::now() + CALL_TIMEOUT;
    rest.answer_interaction(interaction, &callback, deadline)
        .await
}
