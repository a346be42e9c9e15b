//! `/context clear|show|save|history|restore`.

use std::sync::Arc;

use super::call::{Call, Work, run};
use super::definition::{Action, Button, Command, Section};
use super::done::{Done, Stop};
use super::pages::Page;
use super::readable::{self, Reader};
use super::{CommandServices, choices, why, words};
use crate::memory::{MOST_SAVED, Overview, Place, RestoreError, Restored, SaveError};
use crate::model::Agent;
use clew_context::engine::sanitise;
use clew_discord::model::{Answer, AnswerEmbed, OptionSpec};
use clew_store::model::{AgentName, ContextSnapshotInfo, Scope, SnapshotId};

pub(super) const CONTEXT: Command = Command {
    buttons: &[PAGE, PAGE_OF_AGENT, why::BUTTON],
    help: Some((
        Section::Conversation,
        "`/context show` · `/context why` tells what an answer was made from · `/context clear` \
         starts fresh in every channel here · `/context save`, `/context history`, `/context \
         restore` keep a conversation and bring it back",
    )),
    ..Command::subs(
        "context",
        "What I remember of our conversation",
        &[
            Action::new(
                "clear",
                "Start fresh in every channel here; nothing is deleted",
                run!(clear),
            )
            .options(&[EVERYONE]),
            Action::new("show", "Show what I go by here", run!(show)),
            Action::new("why", "Show what an answer was made from", run!(why::why))
                .options(&[why::ANSWER]),
            Action::new("save", "Save the conversation", run!(save))
                .options(&[DESCRIPTION])
                .work(Work::Model),
            Action::new("history", "List what you saved", run!(history))
                .options(&[AGENT])
                .complete(run!(propose_agents)),
            Action::new("restore", "Bring back what you saved", run!(restore))
                .options(&[SNAPSHOT])
                .complete(run!(propose_snapshots)),
        ],
    )
};

const EVERYONE: OptionSpec = OptionSpec::flag(
    "everyone",
    "For everyone in this server (needs Manage Server)",
);
/// It fits a choice.
const DESCRIPTION: OptionSpec = OptionSpec::text("description", "What to call it", 0, 100);
const AGENT: OptionSpec = OptionSpec::completed("agent", "Only what was saved with this agent");
const SNAPSHOT: OptionSpec = OptionSpec::completed("snapshot", "Which one").required();

const PAGE: Button = Button::new("page:snapshots:", run!(page));
/// Carries agent and page.
const PAGE_OF_AGENT: Button = Button::new("snapshots-of:", run!(page_of_agent));

/// Instead of a summary of what the caller may no longer read.
const UNREADABLE: &str = "(You can no longer read all that this was made from.)";
/// The most characters of a summary in a list, so that ten fit into an embed.
const SUMMARY_CHARS: usize = 300;

/// The agent of this channel and the conversation with it.
fn active(services: &CommandServices<'_>, call: &Call) -> Result<(Arc<Agent>, Place), Stop> {
    let agent = services.agents.pick(call.channel_id(), call.parent());
    let agent = agent.ok_or_else(|| {
        Stop::refused("No agent answers in this channel, so I remember nothing here.")
    })?;
    let place = services.memory.place(
        &agent,
        call.guild(),
        call.channel_id(),
        call.is_thread(),
        call.caller(),
    );
    Ok((agent, place))
}

/// Starts fresh for the caller or, with Manage Server, for everyone. In direct
/// messages both are the same.
async fn clear(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (_, place) = active(services, call)?;
    let everyone = call.data.flag(&EVERYONE) && call.guild().is_some();
    if everyone && !call.rights.manage_server {
        return Err(Stop::refused(words::MANAGE_SERVER));
    }
    if !services.memory.clear(&place, everyone).await? {
        return Err(Stop::refused(words::OPTED_OUT));
    }
    let whose = match (everyone, place.guild) {
        (true, _) => " for everyone in every channel here",
        (false, Some(_)) => " for you in every channel here",
        (false, None) => "",
    };
    // Other agents of the server go on as before.
    let with = if place.agent == AgentName::default_agent() {
        String::new()
    } else {
        format!(" with agent `{}`", place.agent)
    };
    Ok(Done::say(format!(
        "Starting fresh{with}{whose}. Nothing was deleted."
    )))
}

async fn show(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (agent, place) = active(services, call)?;
    let overview = services.memory.overview(&place).await?;
    let saved = match services.memory.snapshots(&place, None).await {
        Ok(saved) => words::count(saved.len(), "conversation"),
        Err(clew_store::Error::NeedsDatabase { .. }) => "saving needs a database".to_owned(),
        Err(error) => return Err(error.into()),
    };
    let mut fields = vec![
        ("Agent", format!("`{}`", agent.name)),
        ("Whose conversation", whose(place.scope).to_owned()),
        ("Stored", stored(&overview)),
        (
            "In my next answer",
            words::count(overview.in_prompt, "message"),
        ),
        (
            "I go back to",
            format!(
                "{} (at most {})",
                words::moment(overview.since),
                words::span(overview.rolling_window)
            ),
        ),
        ("Saved by you here", saved),
    ];
    let recalled = services.memory.settings().recall;
    if recalled > 0 {
        let what = words::count(recalled, "exchange");
        let value = format!("At most {what} that match a question, since the last clear");
        fields.push(("From before that", value));
    }
    if services.memory.opted_out(place.asker) {
        fields.push(("Opted out", words::OPTED_OUT.to_owned()));
    }
    Ok(Done::fields("Our conversation here", fields))
}

/// Whether anything is stored, how many messages, and for how long.
fn stored(overview: &Overview) -> String {
    let stats = &overview.stored;
    if !stats.exists {
        return "nothing".to_owned();
    }
    let mut text = words::count(stats.message_count, "message");
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

async fn save(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (agent, place) = active(services, call)?;
    let description = given(call, &DESCRIPTION);
    let own = agent.model.as_deref();
    let model = services
        .model
        .map(|model| model.asked_by(call.payer(services.memory), own));
    let saved = services
        .memory
        .save(&place, description, model.as_ref())
        .await;
    let info = saved.map_err(|error| match error {
        SaveError::Off => Stop::refused(
            "Saving is off: this bot keeps conversations in memory only \
             (`IN_MEMORY_CONTEXT_ONLY`).",
        ),
        SaveError::Nothing => Stop::refused("Nothing to save: we haven't talked here lately."),
        SaveError::Full => Stop::refused(format!(
            "You have {MOST_SAVED} saved conversations here, the most there may be. \
             `/privacy erase` removes them, with all else about you."
        )),
        SaveError::OptedOut => Stop::refused(words::OPTED_OUT),
        SaveError::Store(error) => error.into(),
    })?;
    let summary = summary(services, call, &place, &info).await;
    Ok(Done::say(format!(
        "Saved {}{} as `{}`.\n{}",
        words::count(info.message_count, "message"),
        named(&info),
        info.id,
        words::quoted(&words::shortened(&summary, 1_200)),
    )))
}

/// A text, unless it is blank.
fn given<'a>(call: &'a Call, option: &OptionSpec) -> Option<&'a str> {
    let text = call.text(option).map(str::trim);
    text.filter(|text| !text.is_empty())
}

fn named(info: &ContextSnapshotInfo) -> String {
    let description = info.description.as_deref();
    description.map_or_else(String::new, |text| {
        format!(" (\"{}\")", sanitise::line(text))
    })
}

async fn history(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    active(services, call)?;
    let agent = given(call, &AGENT).map(str::parse::<AgentName>);
    let agent = agent.transpose();
    let agent = agent.map_err(|error| Stop::refused(format!("{error}.")))?;
    list(services, call, agent.as_ref(), 0).await
}

async fn page(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    list(services, call, None, call.argument()?).await
}

async fn page_of_agent(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let argument: String = call.argument()?;
    let (agent, page) = argument.split_once(':').unwrap_or_default();
    match (agent.parse(), page.parse()) {
        (Ok(agent), Ok(page)) => list(services, call, Some(&agent), page).await,
        _ => Err(Stop::refused(words::TOO_OLD)),
    }
}

/// A page of the caller's snapshots in this server, newest first, of one agent or
/// of all.
async fn list(
    services: &CommandServices<'_>,
    call: &Call,
    agent: Option<&AgentName>,
    page: u16,
) -> Result<Done, Stop> {
    let (_, place) = active(services, call)?;
    let saved = services.memory.snapshots(&place, agent).await?;
    if saved.is_empty() {
        let with = agent.map_or_else(String::new, |agent| format!(" with agent `{agent}`"));
        return Ok(Done::say(format!(
            "Nothing saved here{with} yet. Use `/context save`."
        )));
    }
    let page = Page::of(&saved, page);
    let mut fields = Vec::new();
    for (number, info) in page.numbered() {
        let summary = summary(services, call, &place, info).await;
        fields.push(listed(number, info, &summary));
    }
    let embed = AnswerEmbed {
        title: "Conversations you saved here".to_owned(),
        fields,
        footer: page.footer(),
        ..AnswerEmbed::default()
    };
    let answer = Answer::default().with_embed(embed);
    let answer = page.with_buttons(answer, |number| page_id(agent, number));
    Ok(Done::answer(answer))
}

fn page_id(agent: Option<&AgentName>, number: u16) -> String {
    match agent {
        Some(agent) => PAGE_OF_AGENT.with(format!("{agent}:{number}")),
        None => PAGE.with(number),
    }
}

/// What a saved conversation is about, on one line, if the caller may read now all that it
/// was made from, as a restore asks as well.
async fn summary(
    services: &CommandServices<'_>,
    call: &Call,
    place: &Place,
    info: &ContextSnapshotInfo,
) -> String {
    let Ok(channels) = services.memory.snapshot_channels(place, &info.id).await else {
        return UNREADABLE.to_owned();
    };
    let reader = Reader::of(services, call, &call.roles);
    let readable = readable::among(&reader, channels.clone()).await;
    if channels.is_subset(&readable) {
        sanitise::line(&info.summary)
    } else {
        UNREADABLE.to_owned()
    }
}

fn listed(number: usize, info: &ContextSnapshotInfo, summary: &str) -> (String, String) {
    let description = info.description.as_deref().map(sanitise::line);
    let name = format!(
        "{number}. {}",
        description.as_deref().unwrap_or("(no name)")
    );
    let value = format!(
        "{} · {} · agent `{}`\n{}\n`{}`",
        words::moment(info.timestamp),
        words::count(info.message_count, "message"),
        info.agent,
        words::shortened(summary, SUMMARY_CHARS),
        info.id,
    );
    (name, value)
}

async fn restore(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (_, place) = active(services, call)?;
    let snapshot = call.text(&SNAPSHOT).unwrap_or_default();
    let unknown = || Stop::refused("No such saved conversation. Pick one from the list.");
    let id: SnapshotId = snapshot.trim().parse().map_err(|_| unknown())?;
    let why = |error| match error {
        RestoreError::Unknown => unknown(),
        RestoreError::Forbidden => {
            Stop::refused("You can no longer read any channel it was saved from.")
        }
        RestoreError::OptedOut => Stop::refused(words::OPTED_OUT),
        RestoreError::Store(error) => error.into(),
    };
    let memory = services.memory;
    let channels = memory.snapshot_channels(&place, &id).await.map_err(why)?;
    let reader = Reader::of(services, call, &call.roles);
    let readable = readable::among(&reader, channels).await;
    let restored = memory
        .restore(&place, &id, |channel| readable.contains(&channel))
        .await
        .map_err(why)?;
    Ok(Done::say(told(&restored)))
}

fn told(restored: &Restored) -> String {
    let mut text = format!(
        "{}{} {} back in our conversation.",
        words::count(restored.messages, "message"),
        named(&restored.info),
        if restored.messages == 1 { "is" } else { "are" },
    );
    if restored.present > 0 {
        let present = words::count(restored.present, "message");
        text.push_str(&format!(" {present} had never left it."));
    }
    if restored.forbidden > 0 {
        let forbidden = words::count(restored.forbidden, "message");
        text.push_str(&format!(
            " Left out: {forbidden}, since you can no longer read where they were said."
        ));
    }
    text
}

async fn propose_snapshots(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (_, place) = active(services, call)?;
    let saved = services.memory.snapshots(&place, None).await?;
    let all = saved
        .iter()
        .map(|info| (choice_name(info), info.id.to_string()));
    Ok(choices::matching(call, all))
}

/// When it was saved, and its name; its summary is for those alone who may read what it was
/// made from, which is not looked up at each key.
fn choice_name(info: &ContextSnapshotInfo) -> String {
    let count = || words::count(info.message_count, "message");
    let about = info.description.clone().unwrap_or_else(count);
    let name = format!("{} · {about}", info.timestamp.minute());
    words::shortened(&name, choices::NAME_CHARS)
}

async fn propose_agents(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let names = services.agents.names().into_iter();
    let names = names.map(|name| name.to_string());
    Ok(choices::matching(
        call,
        names.map(|name| (name.clone(), name)),
    ))
}
