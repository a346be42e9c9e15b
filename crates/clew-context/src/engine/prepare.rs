//! Turns what was collected into a prompt: select, render, assemble. Pure;
//! repeated with smaller caps if a model says that the prompt was too long.

use std::mem;
use std::sync::Arc;

use crate::model::{
    Block, BlockItem, BlockPlace, HistoryMessage, Limits, Message, Profiles, Scene,
};

pub use super::assemble::PromptInput;
use super::assemble::{Prompt, PromptParts, assemble};
use super::block;
use super::links::GatheredLinks;
use super::place::GatheredPlace;
use super::render::Renderer;
use super::select::{Gathered, LinkedSelection, PlaceSelection, Selection, Selector};
use super::turn::Collected;

/// A block and the prompt that contains it.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The block.
    pub block: Block,
    /// Its caps: those that were set, halved as often as asked for.
    pub limits: Limits,
    /// The thread's tail.
    pub tail: TailCounts,
    /// The prompt.
    pub prompt: Prompt,
    /// The asker's name within the prompt.
    pub asker: String,
    /// Whether the trigger has words or something stands in for them.
    pub has_question: bool,
    /// The message whose words stand in for the trigger's, if one's do.
    pub adopted: Option<BlockItem>,
    /// How many facts about the asker and about the server are in the prompt.
    pub facts: (usize, usize),
}

/// How many messages a thread's tail has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TailCounts {
    /// Chosen of the thread, at most `THREAD_CONTEXT_TAIL_COUNT`.
    pub found: usize,
    /// In the block, where `MEM_MAX_CHARS` may leave room for fewer.
    pub shown: usize,
}

/// Selects, renders and assembles.
pub fn prepare(collected: &Collected, input: &PromptInput<'_>) -> Prepared {
    let (us, trigger) = (&collected.turn.us, collected.trigger());
    let limits = &halved(collected.turn.limits, input.halvings);
    let mut renderer = Renderer::new(us, input.directory);
    renderer.meet(collected.messages().map(AsRef::as_ref));
    let bare = us.is_bare(trigger, collected.scene == Scene::Direct);
    let adopted = collected.target.adopted.as_ref().filter(|_| bare);
    let (mut selection, place, linked) = select(collected, limits);
    if let Some(adopted) = adopted {
        selection.point_at(adopted.id);
    }
    let tail = mem::take(&mut selection.tail);
    let asker = renderer.author(trigger);
    let block = block::build(
        selection,
        place,
        linked,
        collected.turn.channel.as_ref(),
        &mut renderer,
        limits,
    );
    let in_tail = block.items().filter(|item| tail.contains(&item.message.id));
    let tail = TailCounts {
        found: tail.len(),
        shown: in_tail.count(),
    };
    let words = (!bare).then(|| renderer.trigger(trigger));
    let words = words.unwrap_or_default();
    let adopted = adopted.map(|message| {
        let shown = block.items().find(|item| item.message.id == message.id);
        let max_chars = limits.max_msg_chars;
        let quoted = || renderer.item(Arc::clone(message), BlockPlace::PointedAt, max_chars);
        shown.cloned().unwrap_or_else(quoted)
    });
    let profiles = profiles(collected, input.profiles, &mut renderer);
    let (history, recalled) = if collected.asker_opted_out {
        (&[][..], &[][..])
    } else {
        (input.history, input.recalled)
    };
    let history = rendered(history, &mut renderer);
    let recalled = rendered(recalled, &mut renderer);
    let prompt = assemble(&PromptParts {
        input: PromptInput {
            profiles: &profiles,
            history: &history,
            recalled: &recalled,
            ..*input
        },
        our_name: renderer.our_name(),
        asker: &asker,
        asker_is_proxied: us.proxy_of(trigger).is_some(),
        asked: trigger.timestamp,
        block: &block,
        words: &words,
        adopted: adopted.as_ref(),
    });
    Prepared {
        has_question: !words.is_empty()
            || adopted.is_some()
            || block.items().any(|item| item.place != BlockPlace::Pinned),
        block,
        limits: *limits,
        tail,
        prompt,
        asker,
        adopted,
        facts: (profiles.user.len(), profiles.server.len()),
    }
}

/// What is shown: of the conversation, of the channel itself, and behind links, each message once.
fn select<'a>(
    collected: &'a Collected,
    limits: &'a Limits,
) -> (Selection, PlaceSelection<'a>, LinkedSelection<'a>) {
    let by = Selector {
        limits,
        ..collected.turn.selector()
    };
    let mut linked = by.links(&collected.links);
    let mut place = by.place(&collected.place);
    let rest = Selector {
        limits: &place.leave_room(&linked.leave_room(limits)),
        ..by
    };
    let mut selection = rest.select(&collected.gathered);
    linked.show_once(&mut selection);
    place.show_once(&selection, &linked);
    (selection, place, linked)
}

/// How many messages that the window holds `LONE_CONTEXT` would show of a channel with
/// `recent` and with `conversation`; 0 where it changes nothing.
pub fn lone_in_window(collected: &Collected) -> (usize, usize) {
    let turn = &collected.turn;
    let is_lone = collected.scene == Scene::Lone && collected.gathered == Gathered::Nothing;
    if !is_lone || !turn.asker_access.may_read() {
        return (0, 0);
    }
    let count = |gathered: fn(Vec<Arc<Message>>) -> Gathered| {
        let with = Collected {
            gathered: gathered(turn.view.recent.clone()),
            links: GatheredLinks::default(),
            place: GatheredPlace::default(),
            ..collected.clone()
        };
        let prepared = prepare(&with, &PromptInput::new("", b"", ""));
        prepared.block.items().count()
    };
    (count(Gathered::Recent), count(Gathered::Conversation))
}

/// Leaves out the facts about an asker who opted out, even in a turn that began
/// before they were deleted from the store.
fn profiles(collected: &Collected, profiles: &Profiles, renderer: &mut Renderer<'_>) -> Profiles {
    let mut rendered = |facts: &[String]| facts.iter().map(|fact| renderer.stored(fact)).collect();
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
fn rendered(history: &[HistoryMessage], renderer: &mut Renderer<'_>) -> Vec<HistoryMessage> {
    let mut history = history.to_vec();
    for message in &mut history {
        if let Some((id, name)) = &mut message.author {
            *name = renderer.named(*id, name);
        }
        message.text = renderer.stored(&message.text);
    }
    history
}

/// The caps of the block with half their room, this often.
fn halved(limits: Limits, halvings: u32) -> Limits {
    (0..halvings).fold(limits, |limits, _| Limits {
        max_chars: limits.max_chars / 2,
        max_msgs: (limits.max_msgs / 2).max(1),
        max_msg_chars: limits.max_msg_chars / 2,
        ..limits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The caps are halved, but never to nothing.
    #[test]
    fn halving_the_room_halves_each_cap() {
        let limits = Limits {
            max_chars: 6_000,
            max_msgs: 41,
            max_msg_chars: 1_000,
            tail: 5,
            ..Limits::default()
        };
        let caps = |halvings| {
            let half = halved(limits, halvings);
            (half.max_chars, half.max_msgs, half.max_msg_chars, half.tail)
        };
        assert_eq!(caps(0), (6_000, 41, 1_000, 5));
        assert_eq!(caps(1), (3_000, 20, 500, 5));
        assert_eq!(caps(6), (93, 1, 15, 5));
    }
}
