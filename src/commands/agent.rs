//! `/agent run|status|stop`: a task that an agent does by itself, in a thread of its own.

use std::sync::Arc;

use super::ask::question_as_message;
use super::call::{Call, Work, run};
use super::definition::{Action, Button, Command, Section};
use super::done::{BeginningRun, Done, Effect, Stop};
use super::{CommandServices, Refused, choices, words};
use crate::model::{Agent, STOP_RUN, channel_address};
use crate::runs::{Full, NewRun, Run};
use clew_context::model::{
    Cause, ChannelId, ChannelKind, ChannelMode, GuildId, InteractionId, TurnRequest,
};
use clew_discord::model::OptionSpec;

/// The most runs that `/agent status` lists.
const MOST_LISTED: usize = 15;

pub(super) const AGENT: Command = Command {
    buttons: &[STOP],
    help: Some((
        Section::Runs,
        "`/agent run` does a task in a thread of its own, knowing nothing but the task · \
         `/agent status` · `/agent stop`",
    )),
    ..Command::subs(
        "agent",
        "Longer tasks that I do by myself",
        &[
            Action::new("run", "Give me a task", run!(begin))
                .options(&[TASK, AS])
                .complete(run!(propose_agents))
                .work(Work::Model),
            Action::new("status", "Show the tasks I'm doing", run!(status)),
            Action::new("stop", "Stop a task", run!(stop))
                .options(&[RUN])
                .complete(run!(propose_runs)),
        ],
    )
};

const TASK: OptionSpec = OptionSpec::text("task", "What should I do?", 1, 2_000).required();
const AS: OptionSpec = OptionSpec::completed("agent", "Which agent does it");
const RUN: OptionSpec = OptionSpec::completed("run", "Which one; the one here if left out");

/// The message of the run stays: the run edits it.
const STOP: Button = Button {
    keeps_message: true,
    ..Button::new(STOP_RUN, run!(stop_pressed))
};

async fn begin(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let task = call.text(&TASK).unwrap_or_default().trim();
    if task.is_empty() {
        return Err(Stop::refused("Say what I should do."));
    }
    let ours = services.guild_state.our_access(call.channel_id());
    if call.mode == ChannelMode::Off {
        return Err(Stop::refused(Refused::SwitchedOff.line()));
    }
    let thread_in = thread_in(services, call);
    if thread_in.is_none() && ours.forbids(|rights| rights.send) {
        return Err(Stop::refused("I can't write in this channel."));
    }
    let slot = services.runs.begin(NewRun {
        id: call.interaction.id,
        guild: call.guild(),
        asker: call.caller(),
        agent: agent(services, call)?,
        home: home(call),
        began: call.interaction.id.created(),
    });
    let slot = slot.map_err(|full| Stop::refused(no_room(full)))?;
    let trigger = question_as_message(&call.interaction, call.asker.clone(), task);
    let request = TurnRequest {
        trigger: Arc::new(trigger),
        channel_kind: call.channel_kind,
        asker_roles: Some(call.roles.clone()),
        cause: Cause::AgentRun,
        is_private: false,
    };
    let beginning = BeginningRun {
        slot,
        request,
        thread_in,
    };
    Ok(Done::say("Started.").with(Effect::Run(Box::new(beginning))))
}

/// The agent that is named, else the one that answers here.
fn agent(services: &CommandServices<'_>, call: &Call) -> Result<Arc<Agent>, Stop> {
    let (channel, parent) = (call.channel_id(), call.parent());
    let Some(name) = call.text(&AS) else {
        let here = services.agents.pick(channel, parent);
        return here.ok_or_else(|| Stop::refused("No agent answers here: name one."));
    };
    let mut callable = services.agents.callable(channel, parent).into_iter();
    let named = callable.find(|agent| agent.name.as_str() == name);
    named.ok_or_else(|| Stop::refused("No such agent here."))
}

/// The channel for a run's thread: both we and the caller may start threads there. The
/// caller gets no thread here that they could not have opened themselves.
fn thread_in(services: &CommandServices<'_>, call: &Call) -> Option<(GuildId, ChannelId)> {
    let (channel, guild_state) = (call.channel_id(), services.guild_state);
    let (kind, _) = guild_state.kind_and_parent(channel)?;
    let has_threads = matches!(kind, ChannelKind::Text | ChannelKind::Announcement);
    let ours = guild_state.our_access(channel);
    let callers = guild_state.access(call.caller(), Some(&call.roles), channel);
    let may = has_threads && ours.may_open_threads() && callers.may_open_threads();
    Some((call.guild()?, channel)).filter(|_| may)
}

/// The channel whose permissions apply: a thread counts as its channel.
fn home(call: &Call) -> ChannelId {
    call.parent()
        .filter(|_| call.is_thread())
        .unwrap_or(call.channel_id())
}

const fn no_room(full: Full) -> &'static str {
    match full {
        Full::Off => "Tasks are off here (`MAX_AGENT_RUNS=0`).",
        Full::All => "I'm doing as many tasks as I can. Try again later.",
        Full::Guild => {
            "I'm doing as many tasks as I may in this server. `/agent status` shows them."
        }
        Full::User => "I'm still doing a task for you. `/agent stop` ends it.",
    }
}

async fn status(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let runs = visible(services, call);
    if runs.is_empty() {
        return Ok(Done::say("No tasks running."));
    }
    let listed = runs.iter().take(MOST_LISTED);
    let mut lines: Vec<String> = listed.filter_map(|run| line(run)).collect();
    let more = runs.len().saturating_sub(MOST_LISTED);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    Ok(Done::say(lines.join("\n")))
}

/// One run, with a link to its message.
fn line(run: &Run) -> Option<String> {
    let place = run.place()?;
    let (channel, message) = (channel_address(run.guild, place.channel), place.message);
    let since = run.began.0.div_euclid(1_000);
    let (asker, agent, step) = (run.asker, &run.agent.name, run.activity.now().rounds.max(1));
    Some(format!(
        "- {channel}/{message} for <@{asker}>, agent `{agent}`, since <t:{since}:R>, step {step}"
    ))
}

/// The runs of this server that stand where the caller may read, and the caller's own.
fn visible(services: &CommandServices<'_>, call: &Call) -> Vec<Arc<Run>> {
    let mut runs = services.runs.under_way();
    runs.retain(|run| run.guild == call.guild() && may_see(services, call, run));
    runs
}

fn may_see(services: &CommandServices<'_>, call: &Call, run: &Run) -> bool {
    let guild_state = services.guild_state;
    let access = |channel| guild_state.access(call.caller(), Some(&call.roles), channel);
    let may_read = |channel| access(channel).may_read();
    run.asker == call.caller() || run.place().is_some_and(|place| may_read(place.channel))
}

/// Whoever asked for a run may stop it, and who has Manage Messages in its channel.
fn may_stop(call: &Call, run: &Run) -> bool {
    let is_moderator = call.rights.manage_messages
        && run.guild.is_some()
        && run.guild == call.guild()
        && run.home == home(call);
    run.asker == call.caller() || is_moderator
}

async fn stop(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let mut runs = visible(services, call);
    if let Some(named) = call.text(&RUN) {
        runs.retain(|run| run.id.to_string() == named);
        let run = runs.first();
        let run = run.ok_or_else(|| Stop::refused("No such task. It may be over."))?;
        return stopped(call, run);
    }
    runs.retain(|run| may_stop(call, run));
    let here = |run: &&Arc<Run>| {
        run.place()
            .is_some_and(|at| at.channel == call.channel_id())
    };
    match (runs.iter().find(here), &*runs) {
        (Some(run), _) | (None, [run]) => stopped(call, run),
        (None, []) => Err(Stop::refused("No task here that you may stop.")),
        (None, _) => Err(Stop::refused(
            "There are several tasks. Pick one from the list.",
        )),
    }
}

async fn stop_pressed(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let id: InteractionId = call.argument()?;
    let run = services.runs.get(id);
    let run = run.ok_or_else(|| Stop::refused("This task is over."))?;
    stopped(call, &run)
}

fn stopped(call: &Call, run: &Run) -> Result<Done, Stop> {
    if !may_stop(call, run) {
        return Err(Stop::refused(
            "Only whoever gave me a task, or has Manage Messages, can stop it.",
        ));
    }
    Ok(Done::say("Stopping it.").with(Effect::StopRun(run.id)))
}

async fn propose_agents(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let callable = services.agents.callable(call.channel_id(), call.parent());
    let names = callable.iter().map(|agent| agent.name.to_string());
    Ok(choices::matching(
        call,
        names.map(|name| (name.clone(), name)),
    ))
}

/// Those that the caller may stop, by their place and time.
async fn propose_runs(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let mut runs = visible(services, call);
    runs.retain(|run| may_stop(call, run));
    let named = runs.iter().filter_map(|run| {
        let name = services.guild_state.channel_name(run.place()?.channel);
        let name = name.unwrap_or_else(|| "here".to_owned());
        let name = words::shortened(&name, choices::NAME_CHARS - 20);
        Some((
            format!("{name} ({} UTC)", run.began.clock()),
            run.id.to_string(),
        ))
    });
    Ok(choices::matching(call, named))
}
