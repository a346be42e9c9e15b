//! Extracting facts from a turn that is over, and the note that says so. Nobody waits
//! for it.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::background::Background;
use super::gather::TurnMaterial;
use super::{Services, Turn, line};
use crate::engine::extract::{own, without_others};
use crate::memory;
use crate::model::Noted;
use crate::model::Payer;
use crate::telemetry::with_sources;
use clew_context::model::{ChannelId, Interaction, Message, MessageId};
use clew_discord::model::{Answer, ButtonStyle};
use clew_store::model::{FactId, StoredRole};

/// What facts may be extracted from, after the turn; give it to [`extract`].
#[derive(Debug)]
pub struct Extraction {
    input: memory::ExtractionInput,
    /// The model of the agent, if it has its own.
    model: Option<String>,
    payer: Payer,
    destination: NoteDestination,
}

/// Where the note goes.
#[derive(Debug)]
enum NoteDestination {
    Channel(ChannelId, MessageId),
    /// A reply to a command, which only the asker sees.
    Interaction(Box<Interaction>),
}

/// Extracts facts and says in the same place how many are new, never which. If none
/// is new, there is no note.
pub async fn extract(services: &Services, extraction: Extraction) {
    let Some(model) = &services.model else {
        return;
    };
    let model = model.asked_by(extraction.payer, extraction.model.as_deref());
    let new = services
        .memory
        .extract_facts(&model, extraction.input)
        .await;
    if !new.is_empty() {
        let facts = new.iter().map(|fact| fact.id).collect();
        say(services, &extraction.destination, facts).await;
    }
}

async fn say(services: &Services, destination: &NoteDestination, facts: Vec<FactId>) {
    let note = line::noted(facts.len());
    let answer = Answer::for_all(note).with_button(
        line::SHOW_NOTED,
        ButtonStyle::Secondary,
        format!("{}{}", Noted::ID, Noted(facts)),
    );
    let deadline = Instant::now() + super::ASIDE_TIMEOUT;
    let rest = &services.rest;
    let said = match destination {
        NoteDestination::Channel(channel, trigger) => {
            let access = services.guild_state.our_access(*channel);
            if access.forbids(|rights| rights.send) {
                return;
            }
            let nonce = format!("{:x}.n", trigger.get());
            rest.post_answer(*channel, &answer, &nonce, deadline).await
        }
        NoteDestination::Interaction(interaction) => {
            let answer = Answer {
                ephemeral: true,
                ..answer
            };
            rest.follow_up_answer(interaction, &answer, deadline).await
        }
    };
    if let Err(error) = said {
        tracing::info!(error = %with_sources(&error), "it could not be said that something was noted");
    }
}

impl Extraction {
    /// What facts may be extracted from, if anything: only the asker's own words,
    /// never the message that they point at.
    pub(super) fn of(
        turn: &Turn<'_>,
        material: &TurnMaterial,
        background: &Background,
    ) -> Option<Self> {
        let (services, request) = (turn.services, &turn.job.request);
        let (memory, trigger) = (&services.memory, turn.trigger());
        let learns = memory.learns(turn.ids.guild) && !memory.opted_out(request.asker());
        // A task says what is to be done, not what its asker is like. What is asked anew was learnt
        // from before, and may have been forgotten since.
        let is_new = turn.job.run.is_none() && turn.job.again.is_none();
        if !learns || !trigger.is_human() || !is_new {
            return None;
        }
        let input = said(turn, material, background);
        if input.words.is_empty() {
            return None;
        }
        Some(Self {
            input,
            payer: turn.payer(),
            model: background.agent.model.clone(),
            destination: match turn.interaction() {
                Some(interaction) => NoteDestination::Interaction(Box::new(interaction.clone())),
                None => NoteDestination::Channel(trigger.channel, trigger.id),
            },
        })
    }
}

/// What the asker said in a turn, as facts about them are taken from it; without words
/// if none are their own.
pub(super) fn said(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    background: &Background,
) -> memory::ExtractionInput {
    let trigger = turn.trigger();
    let bare = Message {
        content: without_others(&trigger.content, material.collected.turn.us.user).into(),
        ..trigger.clone()
    };
    let words = turn.services.own_words(turn.ids.guild, &bare);
    memory::ExtractionInput {
        ids: turn.ids,
        place: background.place.clone(),
        asker: material.prompt.prepared.asker.clone(),
        words: own(&words).unwrap_or_default(),
        others: others(material, background),
        message: turn.job.request.posted_trigger(),
        asked: turn.job.asked,
        worded: trigger.edited.unwrap_or(trigger.timestamp),
    }
}

/// All the names of those who are mentioned or speak in what was collected or said
/// before, except for us and the asker.
fn others(material: &TurnMaterial, background: &Background) -> Vec<String> {
    let trigger = material.collected.trigger();
    let collected = material.collected.gathered.messages();
    let messages = collected
        .iter()
        .map(|message| &***message)
        .chain([&**trigger])
        .chain(trigger.referenced_message());
    let mut others = BTreeSet::new();
    for message in messages {
        others.insert((message.author.id, &*message.author.name));
        let mentions = message.mentions.iter();
        others.extend(mentions.map(|mention| (mention.id, &*mention.name)));
    }
    let shown = material.prompt.prepared.block.items();
    others.extend(shown.map(|item| (item.message.author.id, item.name.as_str())));
    let rows = background.rows.iter();
    let authors = rows.filter(|row| row.role == StoredRole::User);
    others.extend(authors.filter_map(|row| Some((row.owner, row.author_name.as_deref()?))));
    let apart = [trigger.author.id, material.collected.turn.us.user];
    others
        .into_iter()
        .filter(|(id, name)| !apart.contains(id) && *name != &*trigger.author.name)
        .map(|(_, name)| name.to_owned())
        .collect()
}
