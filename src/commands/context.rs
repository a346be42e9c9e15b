//! `/context clear|show|save|history|restore`.

use std::sync::Arc;

use super::call::Call;
use super::done::{Done, Stop};
use super::pages::Page;
use super::{Context, readable, words};
use crate::memory::{Overview, Place, RestoreError, Restored, SaveError};
use crate::model::Agent;
use clew_discord::model::{Answer, AnswerEmbed, Button, ContextCommand, Paged};
use clew_store::model::{AgentName, ContextSnapshotInfo, Scope, SnapshotId};

/// The most characters of a summary in a list, so that ten fit into an embed.
const SUMMARY_CHARS: usize = 300;

pub(super) async fn run(
    context: &Context<'_>,
    call: &Call,
    command: &ContextCommand,
) -> Result<Done, Stop> {
    let (agent, place) = active(context, call)?;
    match command {
        ContextCommand::Clear { everyone } => clear(context, call, &place, *everyone).await,
        ContextCommand::Show => show(context, &agent, &place).await,
        ContextCommand::Save { description } => {
            save(context, &agent, &place, description.as_deref()).await
        }
        ContextCommand::History { agent } => {
            let agent = agent
                .as_deref()
                .map(str::trim)
                .filter(|name| !name.is_empty());
            let agent = agent.map(|name| {
                let name = name.parse::<AgentName>();
                name.map_err(|error| Stop::refused(format!("{error}.")))
            });
            history(context, call, agent.transpose()?.as_ref(), 0).await
        }
        ContextCommand::Restore { snapshot } => restore(context, call, &place, snapshot).await,
    }
}

/// The agent of this channel and the conversation with it.
fn active(context: &Context<'_>, call: &Call) -> Result<(Arc<Agent>, Place), Stop> {
    let agent = context.agents.pick(call.channel_id(), call.parent());
    let agent = agent.ok_or_else(|| Stop::refused(words::NO_AGENT))?;
    let place = context.memory.place(
        &agent,
        call.guild(),
        call.channel_id(),
        call.is_thread(),
        call.caller(),
    );
    Ok((agent, place))
}

/// Starts afresh for the caller or, with Manage Server, for everyone. In direct
/// messages both are the same.
async fn clear(
    context: &Context<'_>,
    call: &Call,
    place: &Place,
    everyone: bool,
) -> Result<Done, Stop> {
    let everyone = everyone && call.guild().is_some();
    if everyone && !call.rights.manage_server {
        return Err(Stop::refused(words::MANAGE_SERVER));
    }
    let from = context.memory.clear(place, everyone).await?;
    let (whom, here) = match (everyone, place.guild) {
        (true, _) => ("everybody", " in this server"),
        (false, Some(_)) => ("you", " in this server"),
        (false, None) => ("you", " in our direct messages"),
    };
    Ok(Done::say(format!(
        "With {whom}{here}, agent `{}` starts afresh: I no longer go by anything said before {}. \
         It is not deleted: `/clear-context` and `/privacy erase` do that.",
        place.agent,
        words::moment(from),
    )))
}

async fn show(context: &Context<'_>, agent: &Agent, place: &Place) -> Result<Done, Stop> {
    let overview = context.memory.overview(place).await?;
    let saved = match context.memory.snapshots(place, None).await {
        Ok(saved) => words::many(saved.len(), "conversation"),
        Err(clew_store::Error::NeedsDatabase { .. }) => "saving needs a database".to_owned(),
        Err(error) => return Err(error.into()),
    };
    let field = |name: &str, value: String| (name.to_owned(), value);
    let mut fields = vec![
        field("Agent", format!("`{}`", agent.name)),
        field("Whose conversation", whose(place.scope).to_owned()),
        field("Stored", stored(&overview)),
        field(
            "In my next answer",
            words::many(overview.in_prompt, "message"),
        ),
        field(
            "I go back to",
            format!(
                "{} (at most {})",
                words::moment(overview.since),
                words::span(overview.rolling_window)
            ),
        ),
        field("Saved by you here", saved),
    ];
    if context.memory.opted_out(place.asker) {
        fields.push(field("Opted out", words::OPTED_OUT.to_owned()));
    }
    Ok(Done::answer(Answer::default().with_embed(AnswerEmbed {
        title: "Our conversation here".to_owned(),
        fields,
        ..AnswerEmbed::default()
    })))
}

/// Whether anything is stored, how many messages, and for how long.
fn stored(overview: &Overview) -> String {
    let stats = &overview.stored;
    if !stats.exists {
        return "nothing".to_owned();
    }
    let mut text = words::many(stats.message_count, "message");
    if let Some(left) = stats.expires_in {
        text.push_str(&format!(", gone in {}", words::about(left)));
    }
    text.push_str(if overview.in_memory_only {
        ", in memory only: gone when I restart"
    } else {
        ", kept over restarts"
    });
    text
}

/// A scope in plain words.
pub(super) const fn whose(scope: Scope) -> &'static str {
    match scope {
        Scope::Member { .. } => "yours alone, of this channel",
        Scope::Thread { .. } => "everybody's in this thread",
        Scope::User(_) => "yours alone, of all servers and direct messages",
        Scope::Direct(_) => "yours alone, of our direct messages",
    }
}

async fn save(
    context: &Context<'_>,
    agent: &Agent,
    place: &Place,
    description: Option<&str>,
) -> Result<Done, Stop> {
    let description = description.map(str::trim).filter(|text| !text.is_empty());
    let own = agent.model.as_deref();
    let model = context.model.map(|model| model.with_model(own));
    let saved = context
        .memory
        .save(place, description, model.as_ref())
        .await;
    let info = saved.map_err(|error| match error {
        SaveError::Off => Stop::refused(
            "Saving is off: this bot keeps conversations in memory only \
             (`IN_MEMORY_CONTEXT_ONLY`).",
        ),
        SaveError::Nothing => {
            Stop::refused("There is nothing to save: you have said nothing to me here lately.")
        }
        SaveError::OptedOut => Stop::refused(words::OPTED_OUT),
        SaveError::Store(error) => error.into(),
    })?;
    Ok(Done::say(format!(
        "Saved {}{} as `{}`.\n{}",
        words::many(info.message_count, "message"),
        named(&info),
        info.id,
        words::quoted(&words::short(&one_line(&info.summary), 1_200)),
    )))
}

fn named(info: &ContextSnapshotInfo) -> String {
    let description = info.description.as_deref();
    description.map_or_else(String::new, |text| format!(" (\"{}\")", one_line(text)))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A page of the caller's snapshots in this server, newest first, of one agent or
/// of all.
pub(super) async fn history(
    context: &Context<'_>,
    call: &Call,
    agent: Option<&AgentName>,
    page: u16,
) -> Result<Done, Stop> {
    let (_, place) = active(context, call)?;
    let saved = context.memory.snapshots(&place, agent).await?;
    if saved.is_empty() {
        let with = agent.map_or_else(String::new, |agent| format!(" with agent `{agent}`"));
        return Ok(Done::say(format!(
            "You have saved no conversation here{with} yet: `/context save` does."
        )));
    }
    let page = Page::of(&saved, page);
    let fields = page.numbered().map(|(number, info)| listed(number, info));
    let embed = AnswerEmbed {
        title: "Conversations you saved here".to_owned(),
        fields: fields.collect(),
        footer: page.footer(),
        ..AnswerEmbed::default()
    };
    let button = |number| match agent {
        Some(agent) => Button::SnapshotsOf(agent.clone(), number),
        None => Button::Page(Paged::Snapshots, number),
    };
    Ok(Done::answer(
        page.with_buttons(Answer::default().with_embed(embed), button),
    ))
}

fn listed(number: usize, info: &ContextSnapshotInfo) -> (String, String) {
    let description = info.description.as_deref().map(one_line);
    let name = format!(
        "{number}. {}",
        description.as_deref().unwrap_or("(no name)")
    );
    let value = format!(
        "{} · {} · agent `{}`\n{}\n`{}`",
        words::moment(info.timestamp),
        words::many(info.message_count, "message"),
        info.agent,
        words::short(&one_line(&info.summary), SUMMARY_CHARS),
        info.id,
    );
    (name, value)
}

async fn restore(
    context: &Context<'_>,
    call: &Call,
    place: &Place,
    snapshot: &str,
) -> Result<Done, Stop> {
    let unknown = || {
        Stop::refused(
            "I have no such saved conversation of yours here: `/context history` lists them.",
        )
    };
    let id: SnapshotId = snapshot.trim().parse().map_err(|_| unknown())?;
    let why = |error| match error {
        RestoreError::Unknown => unknown(),
        RestoreError::Forbidden => {
            Stop::refused("You may not read any of the channels that it was saved from now.")
        }
        RestoreError::OptedOut => Stop::refused(words::OPTED_OUT),
        RestoreError::Store(error) => error.into(),
    };
    let memory = context.memory;
    let channels = memory.snapshot_channels(place, &id).await.map_err(why)?;
    let readable = readable::among(context, call, channels).await;
    let restored = memory
        .restore(place, &id, |channel| readable.contains(&channel))
        .await
        .map_err(why)?;
    Ok(Done::say(told(&restored)))
}

fn told(restored: &Restored) -> String {
    let mut text = format!(
        "{}{} {} back in our conversation.",
        words::many(restored.messages, "message"),
        named(&restored.info),
        if restored.messages == 1 { "is" } else { "are" },
    );
    if restored.present > 0 {
        let present = words::many(restored.present, "message");
        text.push_str(&format!(" {present} had never left it."));
    }
    if restored.forbidden > 0 {
        let forbidden = words::many(restored.forbidden, "message");
        text.push_str(&format!(
            " {forbidden} stayed away: you may not read where they stood now."
        ));
    }
    text
}
