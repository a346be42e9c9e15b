//! Choices for the options that want an id.

use super::call::Call;
use super::done::{Done, Stop};
use super::{Context, words};
use clew_discord::model::Completing;
use clew_store::model::{ContextSnapshotInfo, Fact, Subject};

/// The most choices that Discord shows.
const MOST: usize = 25;
/// The most characters in a choice's name.
const NAME_CHARS: usize = 100;

/// The choices that match what was typed: agents by name, others newest first. None
/// if they cannot be read.
pub(super) async fn choices(context: &Context<'_>, call: &Call, completing: &Completing) -> Done {
    let found = match completing {
        Completing::Fact(typed) => facts(context, call.about_caller(), typed).await,
        Completing::ServerFact(typed) => match call.guild() {
            Some(guild) if call.rights.manage_server => {
                facts(context, Subject::Server(guild), typed).await
            }
            _ => Ok(Vec::new()),
        },
        Completing::Snapshot(typed) => snapshots(context, call, typed).await,
        Completing::Agent(typed) => Ok(agents(context, typed)),
    };
    Done::choices(found.unwrap_or_default())
}

async fn facts(
    context: &Context<'_>,
    subject: Subject,
    typed: &str,
) -> Result<Vec<(String, String)>, Stop> {
    let facts = context.memory.facts_of(subject).await?;
    let fits = |fact: &&Fact| holds(&fact.text, typed) || holds(&fact.id.to_string(), typed);
    let newest_first = facts.iter().rev().filter(fits).take(MOST);
    let choice = |fact: &Fact| (words::short(&fact.text, NAME_CHARS), fact.id.to_string());
    Ok(newest_first.map(choice).collect())
}

async fn snapshots(
    context: &Context<'_>,
    call: &Call,
    typed: &str,
) -> Result<Vec<(String, String)>, Stop> {
    let Some(agent) = context.agents.pick(call.channel_id(), call.parent()) else {
        return Ok(Vec::new());
    };
    let place = context.memory.place(
        &agent,
        call.guild(),
        call.channel_id(),
        call.is_thread(),
        call.caller(),
    );
    let saved = context.memory.snapshots(&place, None).await?;
    let choices = saved.iter().map(|info| (name(info), info.id.to_string()));
    let fits = |(name, id): &(String, String)| holds(name, typed) || holds(id, typed);
    Ok(choices.filter(fits).take(MOST).collect())
}

/// When it was saved, and what it is about.
fn name(info: &ContextSnapshotInfo) -> String {
    let about = info.description.as_deref().unwrap_or(&info.summary);
    let name = format!("{} · {about}", info.timestamp.minute());
    words::short(&name, NAME_CHARS)
}

fn agents(context: &Context<'_>, typed: &str) -> Vec<(String, String)> {
    let names = context.agents.names().into_iter();
    let names = names.map(|name| name.to_string());
    let fits = names.filter(|name| holds(name, typed)).take(MOST);
    fits.map(|name| (name.clone(), name)).collect()
}

fn holds(text: &str, typed: &str) -> bool {
    text.to_lowercase().contains(&typed.trim().to_lowercase())
}
