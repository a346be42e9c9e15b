//! Turns what was collected into a prompt: select, render, assemble. Pure;
//! repeated with smaller caps if a model says that the prompt was too long.

use std::sync::Arc;

use crate::engine::assemble::{Material, Prompt, assemble};
use crate::engine::block;
use crate::engine::eligible::Us;
use crate::engine::render::{Directory, Nobody, Renderer};
use crate::engine::select::select;
use crate::model::{AgentDoc, Block, HistoryMessage, Limits, Place, Profiles, Scene};

use super::Collected;

/// What a prompt contains besides the collected messages.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a, D> {
    /// Our identity in this server.
    pub us: &'a Us,
    /// Names the asker may see.
    pub directory: &'a D,
    /// The operator's system prompt, or the agent's.
    pub system: &'a str,
    /// The agent's docs; can be empty.
    pub docs: &'a [AgentDoc],
    /// What the agent does elsewhere, as written by
    /// [`crate::engine::status::status`]; can be empty.
    pub status: &'a str,
    /// The key for the nonces of the frames.
    pub secret: &'a [u8],
    /// The conversation's name, also used for those nonces.
    pub scope: &'a str,
    /// The caps.
    pub limits: &'a Limits,
    /// Remembered facts, with mentions as they were typed (`<@id>`).
    pub profiles: &'a Profiles,
    /// The stored conversation, with mentions as they were typed.
    pub history: &'a [HistoryMessage],
}

/// Used if nothing is remembered.
const NOTHING: &Profiles = &Profiles {
    user: Vec::new(),
    server: Vec::new(),
};

impl<'a> Surroundings<'a, Nobody> {
    /// A prompt of only the system prompt, the block and the trigger. `secret` is
    /// the key for the frames' nonces and should survive restarts; `scope` names
    /// the conversation, for example `guild/channel/user`.
    pub const fn new(
        us: &'a Us,
        system: &'a str,
        secret: &'a [u8],
        scope: &'a str,
        limits: &'a Limits,
    ) -> Self {
        Self {
            us,
            directory: &Nobody,
            system,
            docs: &[],
            status: "",
            secret,
            scope,
            limits,
            profiles: NOTHING,
            history: &[],
        }
    }
}

/// A block and the prompt that contains it.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The block.
    pub block: Block,
    /// How many of its messages are the thread's tail.
    pub tail: usize,
    /// The prompt.
    pub prompt: Prompt,
    /// The asker's name within the prompt.
    pub asker: String,
    /// Whether the trigger has words or something stands in for them.
    pub has_question: bool,
    /// How many facts about the asker and about the server are in the prompt.
    pub facts: (usize, usize),
}

/// Selects, renders and assembles.
pub fn prepare<D: Directory>(collected: &Collected, around: &Surroundings<'_, D>) -> Prepared {
    let Surroundings {
        us,
        directory,
        limits,
        ..
    } = *around;
    let mut renderer = Renderer::new(us, directory);
    let gathered = collected.gathered.messages();
    renderer.meet(gathered.into_iter().map(AsRef::as_ref));
    let bare = us.is_bare(&collected.trigger, collected.scene == Scene::Direct);
    let adopted = collected.target.adopted.as_ref().filter(|_| bare);
    let mut selection = select(us, &collected.trigger, &collected.gathered, limits);
    if let Some(adopted) = adopted {
        selection.point_at(adopted.id);
    }
    let tail = selection.tail;
    let asker = renderer.author(&collected.trigger);
    let block = block::build(selection, collected.channel.as_ref(), &mut renderer, limits);
    let words = if bare {
        String::new()
    } else {
        renderer.trigger(&collected.trigger)
    };
    let adopted = adopted.map(|message| {
        let shown = block.items().find(|item| item.message.id == message.id);
        let max_chars = limits.max_msg_chars;
        let quoted = || renderer.item(Arc::clone(message), Place::PointedAt, max_chars);
        shown.cloned().unwrap_or_else(quoted)
    });
    let profiles = profiles(collected, around.profiles, &mut renderer);
    let history = if collected.asker_opted_out {
        &[]
    } else {
        around.history
    };
    let history = rendered(history, &mut renderer);
    let prompt = assemble(&Material {
        system: around.system,
        docs: around.docs,
        status: around.status,
        our_name: renderer.our_name(),
        asker: &asker,
        asked: collected.trigger.timestamp,
        block: &block,
        profiles: &profiles,
        history: &history,
        words: &words,
        adopted: adopted.as_ref(),
        secret: around.secret,
        scope: around.scope,
    });
    let has_question = !words.is_empty() || adopted.is_some() || block.items().next().is_some();
    let facts = (profiles.user.len(), profiles.server.len());
    Prepared {
        block,
        tail,
        prompt,
        asker,
        has_question,
        facts,
    }
}

/// Leaves out the facts about an asker who opted out, even in a turn that began
/// before they were deleted from the store.
fn profiles<D: Directory>(
    collected: &Collected,
    profiles: &Profiles,
    renderer: &mut Renderer<'_, D>,
) -> Profiles {
    let mut rendered = |facts: &[String]| facts.iter().map(|fact| renderer.kept(fact)).collect();
    Profiles {
        user: if collected.asker_opted_out {
            Vec::new()
        } else {
            rendered(&profiles.user)
        },
        server: rendered(&profiles.server),
    }
}

/// Stored messages with the names of authors and mentions as this prompt shows them.
fn rendered<D: Directory>(
    history: &[HistoryMessage],
    renderer: &mut Renderer<'_, D>,
) -> Vec<HistoryMessage> {
    let mut history = history.to_vec();
    for message in &mut history {
        if let Some((id, name)) = &mut message.author {
            *name = renderer.named(*id, name);
        }
        message.text = renderer.kept(&message.text);
    }
    history
}

/// Caps with half the room, after a model said that the prompt was too long.
pub fn halved(limits: &Limits) -> Limits {
    Limits {
        max_chars: limits.max_chars / 2,
        max_msgs: (limits.max_msgs / 2).max(1),
        max_msg_chars: limits.max_msg_chars / 2,
        ..*limits
    }
}
