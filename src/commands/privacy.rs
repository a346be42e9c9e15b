//! `/privacy show|opt-out|opt-in|export|erase`: what is kept about the caller, and
//! how to get rid of it.

mod export;

use super::call::{Call, Work, run};
use super::definition::{Action, Button, Command, Section};
use super::done::{Done, Effect, Stop};
use super::{CommandServices, confirm, connect, words};
use crate::config::MemoryConfig;
use crate::telemetry::Telemetry;
use clew_store::{Kind, Purged};

pub(super) const PRIVACY: Command = Command {
    for_everybody: true,
    buttons: &[ERASE, OPT_OUT],
    help: Some((
        Section::Privacy,
        "`/privacy show` says what I keep of you · `/privacy export` sends it to you · \
         `/privacy erase` deletes it · `/privacy opt-out`: I keep nothing of you and read your \
         messages only when you ask me something · `/privacy opt-in`",
    )),
    ..Command::subs(
        "privacy",
        "What I keep of you",
        &[
            Action::new("show", "Show what I keep of you", run!(show)),
            Action::new(
                "opt-out",
                "Keep nothing of you from now on",
                run!(ask_to_opt_out),
            ),
            Action::new("opt-in", "Remember you again", run!(opt_in)),
            Action::new(
                "export",
                "Send you everything I keep of you",
                run!(export::export),
            )
            .work(Work::Long),
            Action::new(
                "erase",
                "Erase everything I keep of you",
                run!(ask_to_erase),
            ),
        ],
    )
};

const ERASE: Button = Button {
    for_everybody: true,
    work: Work::Long,
    ..Button::new("erase", run!(erase))
};

const OPT_OUT: Button = Button {
    for_everybody: true,
    work: Work::Long,
    ..Button::new("opt-out", run!(opt_out))
};

async fn show(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let kept = services.memory.kept_of(call.caller()).await?;
    let settings = services.memory.settings();
    let opted_out = services.memory.opted_out(call.caller());
    let learning = if settings.learn { "on" } else { "off" };
    let is_out = if opted_out {
        "yes: I keep nothing of you and read your messages only when you ask me something"
    } else {
        "no"
    };
    let choices = "`/privacy export` sends you all of it. `/privacy erase` deletes all of it. \
        `/privacy opt-out` and `/privacy opt-in` say whether I keep anything. \
        `/memory forget` forgets one thing, `/clear-context` one conversation.";
    let connections = services
        .connections
        .of(call.caller(), services.memory.now());
    let mut kept = listed(&kept);
    if !connections.is_empty() {
        let tokens = words::count(connections.len(), "token");
        kept.push_str(&format!(
            "\n{tokens} of programs of yours (`/connect list`)"
        ));
    }
    let fields = vec![
        ("Kept of you", kept),
        ("For how long", retention(settings)),
        ("In my operator's records", recorded(services.telemetry)),
        ("Learning from conversations", learning.to_owned()),
        ("Opted out", is_out.to_owned()),
        ("What you can do", choices.to_owned()),
    ];
    Ok(Done::fields("What I keep of you", fields))
}

/// One line per kind.
fn listed(kept: &Purged) -> String {
    let lines = kept.iter().map(|(kind, entries)| so_many(kind, entries));
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        "nothing".to_owned()
    } else {
        lines.join("\n")
    }
}

/// What a kind of data means to the person it is about.
fn so_many(kind: Kind, entries: u64) -> String {
    let count = |one: &str| words::count(entries, one);
    match kind {
        Kind::Messages => format!("{} of our conversations", count("message")),
        Kind::Markers => format!("{} at which we started fresh", count("moment")),
        Kind::Snapshots => format!("{} that you saved", count("conversation")),
        Kind::Receipts => format!("{} of answers to you", count("receipt")),
        Kind::UserFacts => format!("{} that I remember about you", count("thing")),
        Kind::ServerFacts => format!("{} that you had me remember about servers", count("thing")),
        Kind::Transcripts => format!("{} in the log of our direct messages", count("line")),
        Kind::Outputs => format!("{} of tools", count("result")),
        Kind::OptOuts => "that you opted out".to_owned(),
        // These belong to nobody in particular.
        Kind::Settings | Kind::Agents | Kind::Departures => {
            format!("{} about servers", count("setting"))
        }
    }
}

/// Which ids telemetry holds, and for how long.
fn recorded(telemetry: &Telemetry) -> String {
    let (you, direct) = if telemetry.is_keyed() {
        (
            "a pseudonym for you",
            ", our direct messages under a pseudonym as well",
        )
    } else {
        ("your id", "")
    };
    let kept = match telemetry.keep_days() {
        0 => "They are kept until somebody deletes them.".to_owned(),
        days => format!("They go after {}.", words::count(days, "day")),
    };
    format!(
        "When you ask me something: {you}, the ids of server, channel and messages{direct}, times \
         and sizes; never words. {kept} Erasing does not change them."
    )
}

fn retention(settings: &MemoryConfig) -> String {
    let mut text = match settings.retention {
        Some(retention) => format!("Texts go after {}.", words::span(retention)),
        None => "Until you or somebody else deletes them.".to_owned(),
    };
    if settings.in_memory_only {
        text.push_str(" Conversations are in memory only and go when I restart.");
    }
    text.push_str(" What is deleted on Discord is deleted here.");
    text
}

async fn ask_to_opt_out(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    if services.memory.opted_out(call.caller()) {
        return Err(Stop::refused(
            "You already opted out. `/privacy opt-in` changes that.",
        ));
    }
    let question = "Opting out erases everything I keep of you, at once and for good. From then on \
         I keep and learn nothing of you, and leave your messages out of what I read for others. \
         You can still ask me things; I won't remember them.";
    Ok(confirm::ask(question, "Opt out and erase", OPT_OUT.id))
}

/// For the next process, before anything is erased.
async fn note_erasure(services: &CommandServices<'_>, call: &Call) {
    let at = call.interaction.id.created();
    services.claims.erased(call.caller(), at).await;
}

/// The caller's programs read nothing any more. Returns how many there were.
fn disconnect(services: &CommandServices<'_>, call: &Call) -> usize {
    services.connections.revoke(|one| one.user == call.caller())
}

/// "Opt out and erase" was pressed.
async fn opt_out(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    disconnect(services, call);
    note_erasure(services, call).await;
    let gone = services.memory.opt_out(call.caller()).await?;
    let text = format!(
        "You have opted out. Erased:\n{}\nAfter `/privacy opt-in` I remember you again.{}",
        listed(&gone),
        connect::saved(services.connections, connect::AGAIN).await
    );
    Ok(Done::say(text).with(Effect::OptOutsChanged))
}

async fn opt_in(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    if !services.memory.opted_out(call.caller()) {
        return Err(Stop::refused("You haven't opted out."));
    }
    services.memory.opt_in(call.caller()).await?;
    let text = "Welcome back. From now on I read and remember you again.";
    Ok(Done::say(text).with(Effect::OptOutsChanged))
}

async fn ask_to_erase(_: &CommandServices<'_>, _: &Call) -> Result<Done, Stop> {
    Ok(confirm::ask(
        "Erase everything I keep of you, in all servers and direct messages: conversations, what \
         you saved, what I remember? This can't be undone. `/privacy export` sends you a copy \
         first.",
        "Erase everything",
        ERASE.id,
    ))
}

/// "Erase everything" was pressed. An opt-out stays in force.
async fn erase(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let connections = disconnect(services, call);
    note_erasure(services, call).await;
    let erased = services.memory.erase(call.caller()).await?;
    let mut text = if erased.total() == 0 {
        "There was nothing to erase.".to_owned()
    } else {
        format!("Erased:\n{}", listed(&erased))
    };
    if connections > 0 {
        let tokens = words::count(connections, "token");
        text.push_str(&format!("\n{tokens} of programs of yours"));
    }
    text.push_str(&connect::saved(services.connections, connect::AGAIN).await);
    if services.memory.opted_out(call.caller()) {
        text.push_str("\nAll I still know is that you opted out.");
    }
    text.push_str("\nMy operator's records stay, without a word of yours: ");
    text.push_str(&recorded(services.telemetry));
    Ok(Done::say(text))
}
