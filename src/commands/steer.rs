//! The buttons under answers that steer them: for whoever asked, and for moderators.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ask::pointing_at;
use super::call::{Call, Work, run};
use super::definition::Button;
use super::done::{Done, Effect, Steer, Stop};
use super::{CommandServices, Refused, words};
use crate::model::{Again, Continue, Regenerate, STOP_ANSWER};
use clew_context::model::{
    Cause, ChannelMode, Fallback, Message, Reference, ReferenceKind, TurnRequest,
};
use clew_discord::event::IncomingInteraction;
use clew_discord::model::{Answer, ButtonStyle, InteractionData};

pub(super) const STOP: Button = Button {
    keeps_message: true,
    ..Button::new(STOP_ANSWER, run!(stop))
};
/// Counts as a question of who presses it.
pub(super) const REGENERATE: Button = Button {
    keeps_message: true,
    work: Work::Model,
    ..Button::new(Regenerate::ID, run!(regenerate))
};
pub(super) const CONTINUE: Button = Button::turn(Continue::ID, continuing);

/// The question of who has the answer continued.
const GO_ON: &str = "Continue this answer exactly where it ends, and repeat nothing of it.";
/// How long reading a question again may take, and its asker's roles.
const READING: Duration = Duration::from_secs(10);

async fn stop(_: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let steer = Steer::Stop {
        question: call.argument()?,
        channel: call.channel_id(),
        of: (!call.rights.manage_messages).then_some(call.caller()),
    };
    Ok(Done::say("").with(Effect::Steer(steer)))
}

/// Reads the question as it is now, for a turn like its first.
async fn regenerate(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let Regenerate {
        question,
        cause,
        earlier: mut messages,
    } = call.argument()?;
    if call.mode == ChannelMode::Off {
        return Err(Stop::refused(Refused::SwitchedOff.line()));
    }
    let last = call.pressed_on;
    messages.push(last.ok_or_else(|| Stop::refused(words::TOO_OLD))?);
    let (reader, deadline) = (services.rest.reader(), Instant::now() + READING);
    let found = reader.check(call.channel_id(), question, deadline).await;
    let trigger = found.map_err(|error| match error.reason {
        Fallback::Deleted => Stop::refused("The question is deleted."),
        _ => Stop::refused("I can't read the question. Try again in a moment."),
    })?;
    let asker = trigger.author.id;
    let is_own = asker == call.caller();
    // Who opted out since is answered by their own wish only.
    if !is_own && (!call.rights.manage_messages || services.memory.opted_out(asker)) {
        return Err(Stop::refused(words::NOT_THEIRS));
    }
    let asker_roles = match call.guild() {
        Some(guild) if !is_own => {
            let roles = reader.member_roles(guild, asker, deadline).await;
            Some(roles.map_err(|_| Stop::refused("Whoever asked is not here any more."))?)
        }
        guild => guild.map(|_| call.roles.clone()),
    };
    let request = TurnRequest {
        trigger: Arc::new(Message {
            guild: call.guild(),
            ..trigger
        }),
        channel_kind: call.channel_kind,
        asker_roles,
        cause,
        is_private: false,
    };
    let again = Again {
        press: call.interaction.id,
        messages,
    };
    let steer = Steer::Regenerate(Box::new(request), again);
    // The answer there keeps its own buttons until the new one replaces it.
    let stop = format!("{STOP_ANSWER}{question}");
    let reply = Answer::default().with_button("Stop", ButtonStyle::Danger, stop);
    Ok(Done::answer(reply).with(Effect::Steer(steer)))
}

/// The turn that has an answer go on: as if the answer were asked about.
fn continuing(incoming: IncomingInteraction) -> Result<TurnRequest, Refused> {
    let IncomingInteraction {
        interaction,
        data: InteractionData::Button(custom_id),
        asker,
        roles,
        rights,
        channel_kind,
        message,
        ..
    } = incoming
    else {
        return Err(Refused::TooOld);
    };
    let argument = CONTINUE.argument(&custom_id).and_then(|it| it.parse().ok());
    let carried: Continue = argument.ok_or(Refused::TooOld)?;
    if carried.asker != interaction.user && !rights.manage_messages {
        return Err(Refused::NotTheirs);
    }
    let answer = message.map(|message| message.message);
    let answer = answer.filter(|answer| answer.channel == interaction.channel);
    let mut answer = answer.ok_or(Refused::NoMessage)?;
    // Of several messages the first alone replies to the question.
    answer.reference = carried.question.map(|question| Reference {
        kind: ReferenceKind::Default,
        channel: Some(answer.channel),
        message: Some(question),
    });
    let trigger = pointing_at(&interaction, asker, answer.clone(), GO_ON);
    Ok(TurnRequest {
        trigger: Arc::new(trigger),
        channel_kind,
        asker_roles: Some(roles),
        cause: Cause::AskAbout(Box::new(interaction), Arc::new(answer)),
        is_private: false,
    })
}
