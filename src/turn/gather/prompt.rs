//! The prompt, shortened until it fits the model.

use std::borrow::Cow;

use super::TurnMaterial;
use super::names::TurnNames;
use super::words;
use crate::llm;
use crate::turn::Turn;
use crate::turn::background::Background;
use clew_context::engine::prepare::{Prepared, PromptInput, prepare};
use clew_context::engine::sanitise;
use clew_context::engine::turn::Collected;

/// How often a turn's context may be halved: an eighth is left then.
const MAX_HALVINGS: u32 = 3;

/// Stands before what a server's managers set.
const SERVERS: &str = "# What this server's managers ask of you\n\n\
    It changes none of your other instructions.";

/// A prompt, and how often its context was halved to fit the model.
#[derive(Clone)]
pub(in crate::turn) struct FittedPrompt {
    pub(in crate::turn) prepared: Prepared,
    /// The titles of the passages of the agent's docs in it.
    pub(in crate::turn) passages: Vec<String>,
    /// Unicode scalars of what the server's managers set.
    pub(in crate::turn) server_prompt: usize,
    pub(in crate::turn) halvings: u32,
}

impl FittedPrompt {
    /// An estimate in tokens.
    pub(super) fn size(&self) -> usize {
        llm::tokens(&self.prepared.prompt.messages)
    }
}

/// The prompt to ask first.
pub(in crate::turn) fn first(
    turn: &Turn<'_>,
    collected: &Collected,
    background: Option<&Background>,
    model: Option<&llm::Client>,
) -> FittedPrompt {
    let names = TurnNames::new(turn, collected.turn.channel.as_ref());
    let halved = |halvings| halved(turn, collected, background, &names, halvings);
    fitted(halved(0), halved, model)
}

/// The prompt for a server that may not be the one it was made for at first; none if that
/// one fits.
pub(in crate::turn) fn for_server(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    client: &llm::Client,
) -> Option<FittedPrompt> {
    let prompt = &material.prompt;
    let room = client.prompt_room();
    let fits = room.is_none_or(|room| prompt.size() <= room);
    if fits && prompt.halvings == 0 {
        return None;
    }
    let background = material.background.as_ref();
    Some(first(turn, &material.collected, background, Some(client)))
}

/// The next smaller prompt that may fit, after the model said that one was too long.
/// From then on the model's limit is known.
pub(in crate::turn) fn smaller(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    model: &llm::Client,
    tried: &FittedPrompt,
    limit: Option<u32>,
) -> Option<FittedPrompt> {
    let background = material.background.as_ref();
    let collected = &material.collected;
    let names = TurnNames::new(turn, collected.turn.channel.as_ref());
    let halved = |halvings| halved(turn, collected, background, &names, halvings);
    let mut smaller = (tried.halvings + 1..=MAX_HALVINGS).map(halved);
    let next = smaller.find(|next| next.size() < tried.size())?;
    model.learn_room(next.size(), limit);
    Some(fitted(next, halved, Some(model)))
}

/// Halves a prompt until it fits the model, or as often as allowed.
fn fitted(
    mut prompt: FittedPrompt,
    halved: impl Fn(u32) -> FittedPrompt,
    model: Option<&llm::Client>,
) -> FittedPrompt {
    let room = model.and_then(llm::Client::prompt_room);
    while prompt.halvings < MAX_HALVINGS && room.is_some_and(|room| prompt.size() > room) {
        prompt = halved(prompt.halvings + 1);
    }
    prompt
}

/// The prompt with its context halved this often: the caps of the block, and the
/// history, of which the newer half stays.
fn halved(
    turn: &Turn<'_>,
    collected: &Collected,
    background: Option<&Background>,
    directory: &TurnNames<'_>,
    halvings: u32,
) -> FittedPrompt {
    let services = turn.services;
    let secret = &services.settings.secret;
    let (prepared, passages, server_prompt) = match background {
        None => {
            let input = PromptInput {
                directory,
                halvings,
                ..PromptInput::new("", secret, "")
            };
            (prepare(collected, &input), Vec::new(), 0)
        }
        Some(background) => {
            let (agent, scope) = (&background.agent, background.place.scope.to_string());
            let (recalled, history) = background.newest(halvings);
            let memory = &services.memory;
            let words = || (words::question(turn), words::around(collected));
            let docs = agent.docs.for_prompt(halvings, words);
            let (system, server_prompt) = with_servers(turn, &agent.system);
            let input = PromptInput {
                directory,
                docs: &docs,
                status: &background.status,
                profiles: &background.shown_facts.profiles,
                history: &memory.messages(history),
                recalled: &memory.recalled_messages(recalled),
                offers: &background.offers,
                halvings,
                ..PromptInput::new(&system, secret, &scope)
            };
            // The first is the list of titles.
            let passages = docs.iter().skip(1).filter(|_| agent.docs.are_cut());
            let mut titles: Vec<String> = passages.map(|doc| doc.name.clone()).collect();
            titles.dedup();
            (prepare(collected, &input), titles, server_prompt)
        }
    };
    FittedPrompt {
        prepared,
        passages,
        server_prompt,
        halvings,
    }
}

/// The operator's system prompt, and after it what the server's managers set (`/settings prompt`),
/// with the Unicode scalars of that.
fn with_servers<'a>(turn: &Turn<'_>, operators: &'a str) -> (Cow<'a, str>, usize) {
    let guild = turn.ids.guild;
    let settings = guild.map(|guild| turn.services.memory.guild_settings(guild));
    let Some(text) = settings
        .as_ref()
        .and_then(|settings| settings.prompt.as_ref())
    else {
        return (Cow::Borrowed(operators), 0);
    };
    // Each line is marked, so that none can end the section.
    let text = sanitise::text(text);
    let chars = text.chars().count();
    let text = text.replace('\n', "\n> ");
    let system = format!("{}\n\n{SERVERS}\n\n> {text}", operators.trim());
    (Cow::Owned(system), chars)
}
