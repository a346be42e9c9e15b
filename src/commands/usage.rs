//! `/usage`: what the caller may still use today, and why they were last refused.

use super::CommandServices;
use super::call::{Call, run};
use super::definition::{Action, Command, Section};
use super::done::{Done, Stop};
use crate::engine::daily_tokens::{Share, day_ends};
use crate::telemetry::event::Refusal;

pub(super) const USAGE: Command = Command {
    help: Some((
        Section::Privacy,
        "`/usage` shows what you may still use today, and why I last refused you",
    )),
    ..Command::action(Action::new(
        "usage",
        "What you may still use today",
        run!(usage),
    ))
};

async fn usage(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let shares = services
        .tokens
        .map(|meter| meter.shares(call.payer(services.memory)));
    let shares = shares.unwrap_or_default();
    let told = |share: Option<Share>| {
        share.map_or_else(
            || "no limit".to_owned(),
            |share| format!("{} of {} tokens are left", share.left(), share.limit),
        )
    };
    let mut fields = vec![("You", told(shares.user))];
    if shares.member.is_some() {
        fields.push(("You, in this server", told(shares.member)));
    }
    if call.guild().is_some() {
        fields.push(("This server", told(shares.guild)));
    }
    if let Some(share) = shares.total {
        // How much everybody together may use is the operator's affair.
        let percent = u128::from(share.left()) * 100 / u128::from(share.limit.max(1));
        fields.push(("Everybody together", format!("{percent} % is left")));
    }
    let ends = day_ends(services.memory.now());
    fields.push(("The day ends", format!("<t:{ends}:R>")));
    let refused = services.last_refusal.map_or_else(
        || "not since I started".to_owned(),
        |(reason, at)| format!("<t:{}:R>: {}", at.0 / 1_000, why(reason)),
    );
    fields.push(("I last refused you here", refused));
    Ok(Done::fields("What you may still use today", fields))
}

const fn why(reason: Refusal) -> &'static str {
    match reason {
        Refusal::QueueFull => "too many questions waited there",
        Refusal::UserRate => "you asked too much within a minute",
        Refusal::UserTokens => "your tokens of the day were used up",
        Refusal::GuildTokens => "this server's tokens of the day were used up",
        Refusal::TotalTokens => "everybody's tokens of the day were used up",
        Refusal::Blocked => "this server's moderators don't let you ask me here",
        Refusal::Busy => "I was busy elsewhere",
        Refusal::NotAllowed => "I may not answer you, or not in that channel",
        Refusal::Elsewhere => "I don't answer in that place",
        Refusal::NoContent => "I couldn't see what you wrote",
        Refusal::UnknownCommand => "I don't know that command",
        Refusal::Stopping => "I was restarting",
    }
}
