//! Gathering: collects the conversation around the trigger, reads what is remembered,
//! and makes the prompt of both.

mod channels;
mod confirm;
mod images;
mod names;
pub(super) mod prompt;
mod recheck;
mod remember;
mod words;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Turn;
use super::background::Background;
use crate::llm;
use crate::memory::Confirming;
use clew_context::collect::{collect, reads_last_messages};
use clew_context::discord::{Live, ReadCall};
use clew_context::engine::chain::ChainLink;
use clew_context::engine::select::{Gathered, NamedMessage};
use clew_context::engine::turn::{Collected, TurnInput};
use clew_context::engine::window::View;
use clew_context::model::{
    Access, Block, ChannelId, ContentSource, Fallback, Limits, Message, MessageId, Stage,
};

pub(super) use channels::TurnChannels;
pub use channels::is_for_asker_only;
pub(super) use images::TurnImages;
pub(super) use names::TurnNames;
pub(super) use recheck::Judged;

use names::access_to;
use prompt::FittedPrompt;

/// The calls to Discord of one turn, noted for an observer.
pub(super) type NotedCalls = Mutex<Vec<ReadCall>>;

/// What was collected, and what was made of it.
pub(super) struct TurnMaterial {
    pub(super) collected: Collected,
    pub(super) collected_in: Duration,
    /// What could not be collected.
    pub(super) fallbacks: Vec<(Stage, Fallback)>,
    /// The agent and what it remembers; none if no agent answers here.
    pub(super) background: Option<Background>,
    /// The servers of the agent's model; none without `LLM_BASE_URL`, or if no agent answers here.
    pub(super) model: Option<llm::ModelServers>,
    pub(super) prompt: FittedPrompt,
    /// Beside the prompt's question, for servers whose models take them.
    pub(super) images: TurnImages,
    judged: Judged,
}

impl TurnMaterial {
    pub(super) fn block(&self) -> &Block {
        &self.prompt.prepared.block
    }

    /// What the prompt shows of other channels behind links: each thread, for its title,
    /// and each message.
    pub(super) fn linked(&self, turn: &Turn<'_>) -> BTreeSet<ContentSource> {
        let (guild, here) = (turn.ids.guild, turn.trigger().channel);
        let links = &self.collected.links;
        let elsewhere = links.targets.iter().filter(|link| link.id != here);
        let threads = elsewhere.filter(|link| link.message.is_none());
        let threads = threads.map(|link| ContentSource {
            guild,
            channel: link.id,
            message: None,
            author: None,
        });
        let linked = links.messages().map(|message| message.id);
        let linked: BTreeSet<MessageId> = linked.collect();
        let shown = self.block().items().map(|item| &item.message);
        let shown = shown.filter(|one| one.channel != here && linked.contains(&one.id));
        let messages = shown.map(|message| ContentSource {
            guild,
            channel: message.channel,
            message: Some(message.id),
            author: Some(message.author.id),
        });
        threads.chain(messages).collect()
    }
}

/// Collects, remembers, and prepares the prompt. An observer gets what was known before, and
/// the calls to Discord.
pub(super) async fn gather(
    turn: &Turn<'_>,
    calls: &NotedCalls,
) -> (TurnMaterial, Option<TurnInput>) {
    let services = turn.services;
    let input = input(turn);
    let observed = services.observer.as_ref().map(|_| input.clone());
    let kind = input.channel_kind();
    let parent = input.channel.as_ref().and_then(|one| one.parent);
    let began = Instant::now();
    // What the trigger brought with it may have changed while it waited.
    let judged = Judged {
        noted: turn.job.noted,
        ..Judged::now(services)
    };
    let parents = |id| services.guild_state.parent(id);
    let others = TurnChannels {
        services,
        request: &turn.job.request,
    };
    let mut source = Live::new(services.rest.reader())
        .with_parents(&parents)
        .with_other_channels(&others);
    let note = |call| calls.lock().push(call);
    let deadline = began + input.limits.fetch_timeout;
    let edit_of = |message: &_| services.edit_of(message);
    let mut confirming = Confirming::new(&services.rest, &edit_of, deadline);
    let reads_pages = reads_last_messages(&input);
    if observed.is_some() {
        source = source.with_call_log(&note);
    }
    let collecting = async {
        let collected = collect(&source, &services.negative_cache, input).await;
        (collected, began.elapsed())
    };
    let remembering = async {
        let mut background = remember::remembered(turn, kind, parent).await;
        if let Some(background) = &mut background {
            confirm::beside(turn, background, reads_pages, &mut confirming).await;
        }
        background
    };
    let ((mut collected, collected_in), mut background) = tokio::join!(collecting, remembering);
    note_names(turn);
    if let Some(background) = &mut background
        && !collected.turn.asker_access.may_read()
    {
        background.leave_out_shared();
    }
    collected.update(&mut services.window());
    confirm::after(turn, background.as_mut(), &collected, confirming).await;
    if let Some(background) = &mut background {
        background.complete(turn, &collected).await;
    }
    let model = background.as_ref().and_then(|background| {
        let model = services.model.as_ref()?;
        Some(model.asked_by(turn.payer(), background.agent.model.as_deref()))
    });
    let client = model.as_ref().map(llm::ModelServers::first);
    let prompt = prompt::first(turn, &collected, background.as_ref(), client);
    let images = images::fetched(turn, &source, &mut collected, &prompt, client, deadline).await;
    let material = TurnMaterial {
        fallbacks: fallbacks(&collected),
        collected,
        collected_in,
        background,
        model,
        prompt,
        images,
        judged,
    };
    (material, observed)
}

/// What is known before anything is fetched. The server's own settings take precedence
/// over the operator's.
pub(super) fn input(turn: &Turn<'_>) -> TurnInput {
    let (services, job) = (turn.services, &turn.job);
    let here = turn.trigger().channel;
    let channel = services.guild_state.channel(here);
    let (view, starter) = window_view(turn, channel.as_ref().and_then(|one| one.parent));
    let of_guild = turn
        .ids
        .guild
        .map(|guild| services.memory.guild_settings(guild));
    let of_guild = of_guild.unwrap_or_default();
    let operators = services.settings.limits;
    let limits = Limits {
        link_context: of_guild.link_context.unwrap_or(operators.link_context),
        lone_context: of_guild
            .lone_context_in(here)
            .unwrap_or(operators.lone_context),
        place_context: of_guild.place_context.unwrap_or(operators.place_context),
        ..operators
    };
    let us = services.us(turn.ids.guild);
    TurnInput {
        channel,
        our_access: services.guild_state.our_access(here),
        asker_access: asker_access(turn),
        starter,
        waited: job.waited,
        other_triggers: job.other_triggers.clone(),
        reply_target: of_guild
            .reply_target
            .unwrap_or(services.settings.reply_target),
        ..TurnInput::new(job.request.clone(), us, view, limits)
    }
}

/// The channel's window, and the thread's starter if the parent's window has it.
fn window_view(turn: &Turn<'_>, parent: Option<ChannelId>) -> (View, Option<Arc<Message>>) {
    let window = turn.services.window();
    let trigger = turn.trigger();
    let starter = parent.and_then(|parent| window.message(parent, trigger.channel.starter()));
    let mut view = window.view(trigger.channel);
    view.newest = view.newest.min(turn.job.newest);
    view.leave_out(&turn.job.copies);
    if let Some(referenced) = trigger.referenced_message() {
        view.complete(referenced);
    }
    (view, starter)
}

/// As far as known; collecting finds out the rest. Whoever writes in a private thread
/// is a member of it, unless it is through an app: a webhook writes in every thread.
fn asker_access(turn: &Turn<'_>) -> Access {
    let access = access_to(turn, turn.trigger().channel);
    if turn.proxy().is_some() {
        access.as_stranger()
    } else if turn.job.request.cause.is_posted() {
        access.as_member()
    } else {
        access
    }
}

/// Notes the names of users whom the trigger mentions, since its stored words may
/// mention them later.
fn note_names(turn: &Turn<'_>) {
    let Some(guild) = turn.ids.guild else {
        return;
    };
    let trigger = turn.trigger();
    let author = (trigger.author.id, &*trigger.author.name);
    let author = turn.proxy().is_none().then_some(author);
    let mentions = trigger.mentions.iter();
    let mentioned = mentions.map(|mention| (mention.id, &*mention.name));
    let guild_state = &turn.services.guild_state;
    guild_state.hear(guild, mentioned.chain(author));
}

/// What failed, and the starter, pointed-at message or end of a chain that was
/// deleted.
pub(super) fn fallbacks(collected: &Collected) -> Vec<(Stage, Fallback)> {
    let deleted = match &collected.gathered {
        Gathered::Thread(thread) => {
            let is_deleted = |found: &NamedMessage| matches!(found, NamedMessage::Deleted(_));
            let starter = is_deleted(&thread.starter).then_some(Stage::Starter);
            let pointed_at = is_deleted(&thread.pointed_at).then_some(Stage::PointedAt);
            [starter, pointed_at]
        }
        Gathered::Chain { links, .. } => {
            let is_deleted = matches!(links.last(), Some(ChainLink::Deleted(_)));
            [is_deleted.then_some(Stage::Chain), None]
        }
        Gathered::Tail(_) | Gathered::Recent(_) | Gathered::Conversation(_) | Gathered::Nothing => {
            [None, None]
        }
    };
    let deleted = deleted.into_iter().flatten();
    let deleted = deleted.map(|stage| (stage, Fallback::Deleted));
    collected.fallbacks.iter().copied().chain(deleted).collect()
}
