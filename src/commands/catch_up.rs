//! `/catch-up` and "Summarise from here": what was decided, asked and left open in a channel or
//! thread since the caller last wrote, each point with links to the messages that show it.
//!
//! The model reads whole conversations, those that concern the caller first, a portion a request;
//! a last request joins what it says of several portions.
//!
//! Invariant: nothing is read that the caller, and of a shared answer everybody there, may not
//! read, before the model is asked and again before it is told.

mod ask;
mod read;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Call, Work, run};
use super::definition::{Action, Command, Section};
use super::done::{Done, Effect, Stop};
use super::{CommandServices, readable, words};
use crate::engine::catch_up::{PointKind, Reader, Since};
use crate::model::{channel_address, unformatted};
use crate::telemetry::Ids;
use ask::Told;
use clew_context::model::{Channel, ChannelId, ChannelKind, Readers, RoleId};
use clew_discord::guild_state::AnswerPlace;
use clew_discord::model::{Answer, AnswerEmbed, CommandKind, OptionKind, OptionSpec};
use read::Missed;

pub(super) const CATCH_UP: Command = Command {
    help: Some((
        Section::Conversation,
        "`/catch-up` tells what was decided, asked and left open since you last wrote somewhere",
    )),
    ..Command::action(
        Action::new(
            "catch-up",
            "What was decided, asked and left open since your last message",
            run!(catch_up),
        )
        .options(&[CHANNEL, SINCE, SHARE])
        .work(Work::Model),
    )
};

pub(super) const SUMMARISE: Command = Command {
    kind: CommandKind::Message,
    ..Command::action(Action::new("Summarise from here", "", run!(catch_up)).work(Work::Model))
};

const CHANNEL: OptionSpec = OptionSpec::new(
    "channel",
    "A channel, thread or forum post; this one if left out",
    OptionKind::Place,
);
const SINCE: OptionSpec = OptionSpec::text(
    "since",
    "How far back, like 30m, 2h, 3d or 1w; your last message there if left out",
    0,
    10,
);
const SHARE: OptionSpec = OptionSpec::flag("share", "Show it to everybody here");

/// For all of it: Discord takes an answer for 15 minutes.
const TIME: Duration = Duration::from_mins(12);
/// Of the 4,096 characters of an embed, those for points.
const POINTS_CHARS: usize = 3_700;
/// The same words whether it does not exist or may not be read.
const UNREADABLE: &str = "There is no channel there that you can read.";
const BLOCKED: &str = "This server's moderators don't let you ask me here.";
const FORUM: &str = "A forum has nothing but posts. Choose one of them, or call this there.";

async fn catch_up(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let model = services
        .model
        .ok_or_else(|| Stop::refused("No model is set up, so I can't summarise."))?;
    let payer = call.payer(services.memory);
    let model = model.asked_by(payer, None);
    let channel = call.data.channel(&CHANNEL).unwrap_or(call.channel_id());
    let is_shared = call.data.flag(&SHARE);
    let since = since(services, call)?;
    let found = must_read(services, call, &call.roles, (channel, is_shared)).await?;
    if found.as_ref().is_some_and(|found| found.kind.is_forum()) {
        return Err(Stop::refused(FORUM));
    }
    let (pace, now) = (services.catch_up_pace, Instant::now());
    let taken = pace.take(call.caller(), channel, call.guild(), now);
    let _running = taken.map_err(|left| {
        Stop::refused(format!(
            "That was asked lately. Try again in {}.",
            words::about(left)
        ))
    })?;
    let reader = Reader::new(call.caller(), call.asker.name.to_string(), found.as_ref());
    let missed = read::missed(services, call, (channel, since), reader, now + TIME).await?;
    if missed.messages.is_empty() {
        return Ok(Done::say("Nothing was written there since."));
    }
    let is_blocked = || services.memory.is_blocked(call.guild(), call.caller());
    let may_ask = || {
        let spent = services.tokens.map(|tokens| tokens.shares(payer).spent());
        spent.flatten().is_none() && !is_blocked()
    };
    let telemetry = (services.telemetry, Ids::from(&call.interaction));
    let summary = ask::ask(&model, &missed, may_ask, (telemetry, now + TIME)).await?;
    // The model takes a while.
    if is_blocked() {
        return Err(Stop::refused(BLOCKED));
    }
    let roles = roles_now(services, call).await?;
    must_read(services, call, &roles, (channel, is_shared)).await?;
    let answer = answer(
        call,
        channel,
        &missed,
        &summary.told(|at| missed.stands(at)),
    );
    Ok(if is_shared {
        let shared = Answer {
            ephemeral: false,
            ..answer
        };
        Done::say("Here it is for everybody.").with(Effect::Share(shared))
    } else {
        Done::answer(answer)
    })
}

/// From when on.
fn since(services: &CommandServices<'_>, call: &Call) -> Result<Since, Stop> {
    if let Some(target) = call.data.target {
        return Ok(Since::Message(target));
    }
    Since::read(call.text(&SINCE), services.memory.now())
        .ok_or_else(|| Stop::refused("Say `since` like 30m, 2h, 3d or 1w, up to 365 days."))
}

/// The caller's roles, which may have changed since the call.
async fn roles_now(services: &CommandServices<'_>, call: &Call) -> Result<Vec<RoleId>, Stop> {
    let Some(guild) = call.guild() else {
        return Ok(Vec::new());
    };
    let deadline = Instant::now() + readable::TIMEOUT;
    let reader = services.rest.reader();
    let roles = reader.member_roles(guild, call.caller(), deadline).await;
    roles.map_err(|_| Stop::refused(UNREADABLE))
}

/// The channel, as far as it is known, if the caller may read it now, we too, and everybody who
/// will read the answer.
async fn must_read(
    services: &CommandServices<'_>,
    call: &Call,
    roles: &[RoleId],
    (channel, is_shared): (ChannelId, bool),
) -> Result<Option<Channel>, Stop> {
    let (here, guild_state) = (call.channel_id(), services.guild_state);
    let is_elsewhere = guild_state
        .guild_of(channel)
        .is_some_and(|guild| Some(guild) != call.guild());
    let is_alien = is_elsewhere || (call.guild().is_none() && channel != here);
    let reader = readable::Reader::of(services, call, roles);
    let readable = readable::among(&reader, BTreeSet::from([channel])).await;
    let ours = guild_state.our_access(channel);
    if is_alien || !readable.contains(&channel) || ours.forbids(|rights| rights.read_history) {
        return Err(Stop::refused(UNREADABLE));
    }
    if channel == here {
        return Ok(call.channel.clone());
    }
    let unreadable = || Stop::refused(UNREADABLE);
    let deadline = Instant::now() + readable::TIMEOUT;
    let found = match guild_state.channel(channel) {
        // Archived threads are known to Discord only.
        None => services.rest.reader().channel(channel, deadline).await.ok(),
        known => known,
    };
    let mut source = found.clone().ok_or_else(unreadable)?;
    // Who its members are is not known; that the caller is one is known by now.
    if source.kind == ChannelKind::PrivateThread && !is_shared {
        let parent = source.parent.and_then(|parent| guild_state.channel(parent));
        source = parent.ok_or_else(unreadable)?;
    }
    let place = AnswerPlace {
        asker: call.caller(),
        roles: Some(roles),
        channel: here,
        is_private: !is_shared,
    };
    match guild_state.readers(&place, &source) {
        Readers::Everybody => Ok(found),
        Readers::AskerOnly => Err(Stop::refused(
            "Not everybody here can read that channel, so I can't share it.",
        )),
        Readers::Nobody => Err(unreadable()),
    }
}

fn answer(call: &Call, channel: ChannelId, missed: &Missed<'_>, told: &Told<'_>) -> Answer {
    let address = channel_address(call.guild(), channel);
    // The messages of the links, in the order of their numbers.
    let mut numbered: Vec<usize> = Vec::new();
    let mut text = String::new();
    for (kind, title) in [
        (PointKind::Decided, "Decided"),
        (PointKind::Asked, "Asked"),
        (PointKind::Open, "Left open"),
    ] {
        let of_kind = told.points.iter().filter(|point| point.kind == kind);
        let mut is_titled = false;
        for point in of_kind {
            let known_before = numbered.len();
            let mut line = format!("- {}", unformatted(&point.text));
            for at in &point.from {
                let message = missed.messages[*at].id;
                let known = numbered.iter().position(|one| one == at);
                let number = known.unwrap_or_else(|| {
                    numbered.push(*at);
                    numbered.len() - 1
                });
                let _ = write!(line, " [{}]({address}/{message})", number + 1);
            }
            if text.chars().count() + line.chars().count() > POINTS_CHARS {
                numbered.truncate(known_before);
                continue;
            }
            if !is_titled {
                let _ = writeln!(text, "**{title}**");
                is_titled = true;
            }
            let _ = writeln!(text, "{line}");
        }
    }
    if told.points.is_empty() && !told.is_short {
        text.push_str("Nothing was decided, asked or left open.\n");
    }
    let _ = write!(
        text,
        "-# {} in <#{channel}>",
        words::count(told.read.len(), "message")
    );
    if let Some(first) = missed.messages.first() {
        let _ = write!(text, " since {}", words::moment(first.timestamp));
    }
    if missed.is_cut {
        text.push_str("; I stopped there, at the most that I read");
    }
    if told.is_short {
        text.push_str("; something that I read was deleted, edited or made private meanwhile, so what I made of it is left out");
    }
    let unread = (0..missed.messages.len()).filter(|at| !told.read.contains(at));
    let rest = unread.filter(|at| missed.stands(*at)).count();
    if rest > 0 {
        let _ = write!(
            text,
            "; {} more I didn't get to",
            words::count(rest, "message")
        );
    }
    let embed = AnswerEmbed {
        title: "What you missed".to_owned(),
        description: text,
        ..AnswerEmbed::default()
    };
    Answer::default().with_embed(embed)
}

#[cfg(test)]
mod tests {
    use super::unformatted;

    #[test]
    fn no_markup_reaches_beyond_a_point() {
        assert_eq!(
            unformatted("run `x` || <@1> [a]"),
            r"run \`x\` \|\| \<@1\> \[a\]"
        );
    }
}
