//! Who the bot is in a recording.

use std::cmp::Reverse;

use anyhow::{anyhow, bail};

use super::{Questions, Triggers, Us};
use crate::archive::{Participant, Recording};
use clew_context::engine::sanitise;
use clew_context::model::UserId;

/// The most accounts that an error lists.
const MAX_LISTED: usize = 8;
/// Our name if nobody in the recording is the bot.
const NAME: &str = "Clew";

/// The requested bot, or else the scenario's, or else the bot account that most messages
/// mention, or else the user most mentioned among those who never wrote (a bot that was
/// away). Without any, triggers that need no bot get one that is not in the recording, and
/// others get none.
pub(super) fn choose(recording: &Recording, questions: &Questions) -> anyhow::Result<Option<Us>> {
    let found = match &questions.bot {
        Some(wanted) => Some(named(recording, wanted)?),
        None => recording.bot().or_else(|| likeliest(recording)),
    };
    let is_needed = questions.triggers == Triggers::Mentions;
    let user = found.or((!is_needed).then_some(UserId::new(0)));
    Ok(user.map(|user| us(recording, questions, user)))
}

/// Nobody in the recording looks like the bot.
pub(super) fn unknown(recording: &Recording) -> anyhow::Error {
    anyhow!(
        "cannot tell who the bot is: no bot wrote or was mentioned in the recording; name it with \
         --bot ID or --bot NAME{}",
        candidates(recording)
    )
}

fn us(recording: &Recording, questions: &Questions, user: UserId) -> Us {
    let name = recording
        .participant(user)
        .map_or(NAME, |known| &known.name);
    Us {
        user,
        name: name.to_owned(),
        roles: Vec::new(),
        proxies: questions.rules.proxies.clone(),
    }
}

/// The bot as reports name it, unless it is nobody in particular.
pub(super) fn told(recording: &Recording, us: &Us) -> Option<String> {
    let name = sanitise::name(&us.name);
    match us.user.get() {
        0 => None,
        id if is_recorded(recording, us.user) => Some(format!("{name} ({id})")),
        id => Some(format!("{name} ({id}, not in the recording yet)")),
    }
}

fn is_recorded(recording: &Recording, id: UserId) -> bool {
    recording.participant(id).is_some() || recording.bot() == Some(id)
}

/// An id may be that of a bot to come; a name must be in the recording, since a
/// misspelt one would answer nobody.
fn named(recording: &Recording, wanted: &str) -> anyhow::Result<UserId> {
    if let Ok(id) = wanted.parse::<UserId>() {
        return Ok(id);
    }
    let name = wanted.strip_prefix('@').unwrap_or(wanted).to_lowercase();
    let is_named = |one: &&Participant| !one.webhook && one.name.to_lowercase() == name;
    let mut found: Vec<&Participant> = recording.participants().filter(is_named).collect();
    if found.len() > 1 && found.iter().any(|one| one.bot) {
        found.retain(|one| one.bot);
    }
    let wrong = match found.as_slice() {
        [one] => return Ok(one.id),
        [] => "nobody in the recording has this name, and a bot to come is named by its id",
        _ => "several have this name, give the id",
    };
    bail!("--bot {wanted}: {wrong}{}", candidates(recording))
}

fn likeliest(recording: &Recording) -> Option<UserId> {
    let bots = recording
        .participants()
        .filter(|one| one.bot && !one.webhook);
    let best = bots.max_by_key(|one| (one.mentioned, one.messages, Reverse(one.id)));
    let silent = || {
        let asked = recording
            .participants()
            .filter(|one| one.mentioned > 0 && one.messages == 0);
        asked.max_by_key(|one| (one.mentioned, Reverse(one.id)))
    };
    Some(best.or_else(silent)?.id)
}

/// `; accounts: Clew (900, bot), Maya (501)`: bots first, then by how many messages
/// mention them.
fn candidates(recording: &Recording) -> String {
    let mut all: Vec<&Participant> = recording
        .participants()
        .filter(|one| !one.webhook)
        .collect();
    all.sort_by_key(|one| (!one.bot, Reverse((one.mentioned, one.messages)), one.id));
    if all.is_empty() {
        return String::new();
    }
    let more = if all.len() > MAX_LISTED { ", ..." } else { "" };
    let listed = all.iter().take(MAX_LISTED).map(|one| {
        let bot = if one.bot { ", bot" } else { "" };
        format!("{} ({}{bot})", sanitise::name(&one.name), one.id)
    });
    let listed: Vec<String> = listed.collect();
    format!("; accounts: {}{more}", listed.join(", "))
}
