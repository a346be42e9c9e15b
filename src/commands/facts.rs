//! What `/memory` and `/server-memory` share: listing, finding, remembering and
//! forgetting facts.

use super::call::Call;
use super::definition::Button;
use super::done::{Done, Stop};
use super::pages::Page;
use super::{CommandServices, choices, confirm, words};
use crate::model::channel_address;
use clew_context::engine::sanitise;
use clew_context::model::GuildId;
use clew_discord::model::{Answer, AnswerEmbed, OptionSpec};
use clew_store::model::{Fact, FactId, Origin, Subject};

/// A new fact, of at most 300 characters: short enough for one line of a prompt.
pub(super) const TEXT: OptionSpec = OptionSpec::text("text", "What to remember", 1, 300).required();
/// A fact that is there, by its id or its text.
pub(super) const FACT: OptionSpec = OptionSpec::completed("fact", "Which one").required();

/// Said when all places are taken by facts that people asked for.
const FULL: &str = "No room left: I learn nothing more until something is forgotten. What you ask me \
                    to remember replaces what was used least.";

/// Said of facts that were learnt before events may have been missed.
const UNCHECKED_ONE: &str =
    "1 memory is not shown until I know that the message it came from is still there.";
const UNCHECKED: &str =
    "memories are not shown until I know that the messages they came from are still there.";

/// A page of the facts about a subject; `about.none` if there are none.
pub(super) async fn list(
    services: &CommandServices<'_>,
    call: &Call,
    about: AboutOf,
) -> Result<Done, Stop> {
    let about = about(call)?;
    let listed = services.memory.listed_facts(about.subject).await?;
    let unchecked = match listed.unchecked {
        0 => None,
        1 => Some(UNCHECKED_ONE.to_owned()),
        count => Some(format!("{count} {UNCHECKED}")),
    };
    let facts = listed.shown;
    if facts.is_empty() {
        return Ok(Done::say(unchecked.as_deref().unwrap_or(about.none)));
    }
    let is_full = services.memory.is_full(about.subject, &facts);
    let full = is_full.then(|| FULL.to_owned());
    let description = full.into_iter().chain(unchecked).collect::<Vec<_>>();
    let description = description.join("\n");
    let page = Page::of(&facts, call.page()?);
    let fields = page.numbered().map(|(number, fact)| {
        let how = if fact.pinned { "Asked for" } else { "Learnt" };
        let name = format!("{number}. {how}");
        (name, described(services, call, fact))
    });
    let embed = AnswerEmbed {
        title: about.title.to_owned(),
        description,
        fields: fields.collect(),
        footer: page.footer(),
    };
    let answer = Answer::default().with_embed(embed);
    let answer = page.with_buttons(answer, |page| about.page.with(page));
    Ok(Done::answer(answer))
}

/// Whose facts are meant, unless the caller may not ask for them.
pub(super) type AboutOf = fn(&Call) -> Result<About, Stop>;

/// Whose facts they are, and how to refer to them.
pub(super) struct About {
    pub(super) subject: Subject,
    pub(super) title: &'static str,
    /// Said if there are none.
    pub(super) none: &'static str,
    /// Said if nothing is kept about such a subject.
    pub(super) off: &'static str,
    pub(super) page: &'static Button,
    pub(super) forget: &'static Button,
}

/// A fact's text, id, origin, date and link.
pub(super) fn described(services: &CommandServices<'_>, call: &Call, fact: &Fact) -> String {
    let mut text = format!(
        "{}\n`{}` · {} · {}",
        fact.text,
        fact.id,
        words::moment(fact.at),
        origin(services, call, fact),
    );
    if let Subject::Server(_) = fact.subject {
        text.push_str(&format!(" · by <@{}>", fact.by));
    }
    if let Some((channel, message)) = fact.link {
        let guild = match fact.origin {
            Origin::Guild(guild) => Some(guild),
            Origin::Direct | Origin::Everywhere => None,
        };
        let channel = channel_address(guild, channel);
        text.push_str(&format!(" · [message]({channel}/{message})"));
    }
    text
}

fn origin(services: &CommandServices<'_>, call: &Call, fact: &Fact) -> String {
    match fact.origin {
        Origin::Everywhere => "used everywhere".to_owned(),
        Origin::Direct => "used in our direct messages".to_owned(),
        Origin::Guild(guild) if call.guild() == Some(guild) => "used in this server".to_owned(),
        Origin::Guild(guild) => {
            let name = guild_name(services, guild);
            format!("used in {}", words::shortened(&name, 40))
        }
    }
}

fn guild_name(services: &CommandServices<'_>, guild: GuildId) -> String {
    let name = services.guild_state.guild_name(guild);
    let name = name.map(|name| sanitise::line(&name));
    name.unwrap_or_else(|| "another server".to_owned())
}

/// Remembers a text that somebody asked for.
pub(super) async fn remember(
    services: &CommandServices<'_>,
    call: &Call,
    about: AboutOf,
    origin: Origin,
) -> Result<Done, Stop> {
    let about = about(call)?;
    let text = call.text(&TEXT).unwrap_or_default();
    if services.memory.opted_out(call.caller()) {
        return Err(Stop::refused(words::OPTED_OUT));
    }
    if text.trim().is_empty() {
        return Err(Stop::refused("There's nothing in that to remember."));
    }
    let (subject, memory) = (about.subject, services.memory);
    let kept = memory
        .remember(subject, text, origin, call.caller())
        .await?;
    let kept = kept.ok_or_else(|| Stop::refused(about.off))?;
    let verb = if kept.known {
        "I knew that already"
    } else {
        "Remembered"
    };
    let fact = words::quoted(&described(services, call, &kept.fact));
    let mut answer = format!("{verb}:\n{fact}");
    if !kept.dropped.is_empty() {
        answer.push_str("\nTo make room I forgot:");
        for gone in &kept.dropped {
            answer.push_str(&format!("\n{}", words::quoted(&gone.text)));
        }
    }
    Ok(Done::say(answer))
}

/// Shows the fact that is meant, by its id or its text, and asks whether to
/// forget it.
pub(super) async fn ask_to_forget(
    services: &CommandServices<'_>,
    call: &Call,
    about: AboutOf,
) -> Result<Done, Stop> {
    let about = about(call)?;
    let facts = services.memory.listed_facts(about.subject).await?.shown;
    let typed = call.text(&FACT).unwrap_or_default().trim();
    let id = typed.parse::<FactId>().ok();
    let by_id = facts.iter().find(|fact| Some(fact.id) == id);
    let meant = by_id.or_else(|| facts.iter().find(|fact| same(&fact.text, typed)));
    let fact = meant.ok_or_else(|| Stop::refused("No such memory. Pick one from the list."))?;
    let shown = words::quoted(&described(services, call, fact));
    let question = format!("Forget this?\n{shown}");
    Ok(confirm::ask(question, "Forget", about.forget.with(fact.id)))
}

fn same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// The facts that hold what was typed, newest first.
pub(super) async fn propose(
    services: &CommandServices<'_>,
    call: &Call,
    about: AboutOf,
) -> Result<Done, Stop> {
    let subject = about(call)?.subject;
    let facts = services.memory.listed_facts(subject).await?.shown;
    let all = facts
        .into_iter()
        .rev()
        .map(|fact| (fact.text, fact.id.to_string()));
    Ok(choices::matching(call, all))
}

pub(super) async fn forget(
    services: &CommandServices<'_>,
    call: &Call,
    about: AboutOf,
) -> Result<Done, Stop> {
    let subject = about(call)?.subject;
    let fact: FactId = call.argument()?;
    let forgotten = services.memory.forget(subject, fact).await?;
    let fact = forgotten.ok_or_else(|| Stop::refused("I already forgot that."))?;
    Ok(Done::say(format!(
        "Forgotten:\n{}",
        words::quoted(&fact.text)
    )))
}
