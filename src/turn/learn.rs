//! Learning: what a turn leaves to learn from, and the note that says so. The
//! turn is over by then; nobody waits.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::gather::Material;
use super::{Services, Turn, line};
use crate::engine::learn::{own, without_others};
use crate::memory;
use crate::telemetry::with_sources;
use clew_context::model::{ChannelId, Interaction, Message, MessageId, UserId};
use clew_discord::model::{Answer, Button, ButtonStyle};
use clew_store::model::{FactId, StoredRole};

/// What a turn leaves to learn from; give it to [`learn`].
#[derive(Debug)]
pub struct Lesson {
    said: memory::Lesson,
    /// The model of the agent, if it has its own.
    model: Option<String>,
    destination: NoteDestination,
}

/// Where the note goes.
#[derive(Debug)]
enum NoteDestination {
    Channel(ChannelId, MessageId),
    /// A reply to a command, which only the asker sees.
    Interaction(Box<Interaction>),
}

/// Learns from a turn that is over and says in the same place how much was learnt,
/// never what. If nothing is new, there is no note.
pub async fn learn(services: &Services, lesson: Lesson) {
    let Some(model) = &services.model else {
        return;
    };
    let model = model.with_model(lesson.model.as_deref());
    let new = services.memory.learn(&model, lesson.said).await;
    if !new.is_empty() {
        let facts = new.iter().map(|fact| fact.id).collect();
        say(services, &lesson.destination, facts).await;
    }
}

async fn say(services: &Services, destination: &NoteDestination, facts: Vec<FactId>) {
    let note = line::noted(facts.len());
    let answer = Answer::for_all(note).with_button(
        line::SHOW_NOTED,
        ButtonStyle::Secondary,
        Button::ShowNoted(facts),
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

impl Turn<'_> {
    /// What there is to learn from this turn: only the asker's own words, never the
    /// message that they point at.
    pub(super) fn lesson(&self, material: &Material) -> Option<Lesson> {
        let background = material.background.as_ref()?;
        let memory = &self.services.memory;
        let trigger = &self.request.trigger;
        let learns = memory.learns(self.ids.guild) && !memory.opted_out(self.request.asker());
        if !learns || !trigger.is_human() {
            return None;
        }
        let interaction = self.request.cause.interaction();
        let said = memory::Lesson {
            ids: self.ids,
            place: background.place.clone(),
            asker: material.prepared.asker.clone(),
            words: own(&self.words_without_others(material.collected.turn.us.user))?,
            others: others(material),
            message: self.request.posted_trigger(),
            asked: self.asked,
        };
        Some(Lesson {
            said,
            model: background.agent.model.clone(),
            destination: match interaction {
                Some(interaction) => NoteDestination::Interaction(Box::new(interaction.clone())),
                None => NoteDestination::Channel(trigger.channel, trigger.id),
            },
        })
    }

    fn words_without_others(&self, us: UserId) -> String {
        let trigger = &*self.request.trigger;
        let bare = Message {
            content: without_others(&trigger.content, us).into(),
            ..trigger.clone()
        };
        self.services.own_words(self.ids.guild, &bare)
    }
}

/// All the names of those who are mentioned or speak in what was collected or said
/// before, except for us and the asker.
fn others(material: &Material) -> Vec<String> {
    let trigger = material.collected.trigger();
    let collected = material.collected.gathered.messages();
    let messages = collected
        .iter()
        .map(|message| &***message)
        .chain([&**trigger])
        .chain(trigger.carried());
    let mut others = BTreeSet::new();
    for message in messages {
        others.insert((message.author.id, &*message.author.name));
        let mentions = message.mentions.iter();
        others.extend(mentions.map(|mention| (mention.id, &*mention.name)));
    }
    let shown = material.prepared.block.items();
    others.extend(shown.map(|item| (item.message.author.id, item.name.as_str())));
    let rows = material.background.iter().flat_map(|one| &one.rows);
    let authors = rows.filter(|row| row.role == StoredRole::User);
    others.extend(authors.filter_map(|row| Some((row.owner, row.author_name.as_deref()?))));
    let apart = [trigger.author.id, material.collected.turn.us.user];
    others
        .into_iter()
        .filter(|(id, name)| !apart.contains(id) && *name != &*trigger.author.name)
        .map(|(_, name)| name.to_owned())
        .collect()
}
