//! Gathers the messages for one turn: within caps, under one deadline and one
//! fetch budget. If something fails, the rest is still used.
//!
//! `gather` has an arm for each scene: `thread` (tail, history and `starter` share
//! their fetches), `reply_chain`, or for a lone mention `history` alone (the pages
//! of a channel). At the end of [`collect()`] `files`, `links` and `place` add to every scene.
//! `images` comes once it is known what the prompt shows.
//!
//! Invariant: `collect` knows [`Source`] and the core, but neither Discord's wire
//! format nor any file format; the only clock it reads is the deadline's.

mod access;
mod fetch;
mod files;
mod history;
mod images;
mod links;
mod negative_cache;
mod place;
mod reads;
mod reply_chain;
mod source;
mod starter;
mod thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join;

use crate::engine::chain::ChainLink;
use crate::engine::eligible::is_blank;
use crate::engine::links::GatheredLinks;
use crate::engine::place::GatheredPlace;
use crate::engine::route;
use crate::engine::select::{Gathered, GatheredThread, NamedMessage};
use crate::engine::target::Target;
use crate::engine::turn::{Collected, TurnInput, WindowUpdate};
use crate::model::{
    Access, Channel, ChannelKind, Fallback, LoneContext, Message, OptedOut, Scene, Stage,
};

pub use images::collect_images;
pub use links::is_for_asker_only;
pub use negative_cache::NegativeCache;
pub use reads::Reads;
pub use source::{FetchError, MessagePage, OtherChannels, PAGE_LIMIT, PageCursor, Source};

use fetch::Fetcher;

/// What a scene's collectors give.
struct SceneMessages {
    gathered: Gathered,
    target: Target,
    channel: Option<Channel>,
    window_update: WindowUpdate,
}

/// A turn, and what fetches for it.
struct Collector<'a, S> {
    turn: &'a TurnInput,
    fetcher: &'a Fetcher<'a, S>,
}

/// Collects for one trigger. Never fails: what could not be fetched is listed in `fallbacks`.
pub async fn collect<S: Source>(
    source: &S,
    negative_cache: &NegativeCache,
    mut turn: TurnInput,
) -> Collected {
    let opted_out = turn.view.opted_out.clone();
    let asker_opted_out = opted_out.contains(turn.request.asker());
    withhold_others(&mut turn.request.trigger, &opted_out);
    let fetcher = Fetcher::new(source, negative_cache, &opted_out, &turn.limits);
    if turn.may_surely_not_read() {
        fetcher.bar(turn.channel_id());
    }
    if turn.channel_kind().is_none() {
        turn.channel = fetcher.channel(turn.channel_id()).await;
    }
    let kind = turn.channel_kind();
    if kind.is_some_and(ChannelKind::is_direct) {
        turn.asker_access = Access::FULL;
    }
    let scene = route::scene(turn.trigger(), kind);
    let by = Collector {
        turn: &turn,
        fetcher: &fetcher,
    };
    let (asker_access, messages) = judged(&by, scene).await;
    if !asker_access.may_read() {
        fetcher.fail(Stage::Asker, Fallback::Forbidden);
    }
    if let Some(stage) = without_content(&messages.gathered) {
        fetcher.fail(stage, Fallback::NoContent);
    }
    let mut collected = Collected {
        turn: TurnInput {
            channel: messages.channel.filter(|_| asker_access.may_view()),
            asker_access,
            ..turn
        },
        scene,
        gathered: messages.gathered,
        links: GatheredLinks::default(),
        place: GatheredPlace::default(),
        target: messages.target,
        fetches: 0,
        stages: Vec::new(),
        fallbacks: Vec::new(),
        asker_opted_out,
        window_update: messages.window_update,
    };
    files::inline_all(&fetcher, &mut collected).await;
    if collected.turn.wants_context() {
        links::collect(&fetcher, &mut collected).await;
        // Boxed to keep the future of a turn small.
        Box::pin(place::collect(&fetcher, &mut collected)).await;
    }
    files::inline_linked(&fetcher, &mut collected).await;
    // A forward may have been held or fetched before its original was seen to be from
    // somebody who opted out.
    collected.withhold(&opted_out);
    collected.fetches = fetcher.used();
    collected.stages = fetcher.stages();
    collected.fallbacks = fetcher.failures();
    collected
}

/// Removes from a message what it includes or forwards of people who opted out;
/// its own words stay.
fn withhold_others(message: &mut Arc<Message>, opted_out: &OptedOut) {
    if opted_out.concerns_others(message) {
        opted_out.withhold_others(Arc::make_mut(message));
    }
}

/// Whether the last messages of the channel will be read, as far as that is known before
/// anything is fetched: what only pages show needs no request of its own then.
pub fn reads_last_messages(turn: &TurnInput) -> bool {
    let kind = turn.channel_kind();
    match kind.map(|kind| route::scene(turn.trigger(), Some(kind))) {
        None | Some(Scene::Thread) => true,
        Some(Scene::Lone) => turn.is_bare() || turn.limits.lone_context != LoneContext::Off,
        Some(Scene::ReplyChain) => turn.limits.lone_context == LoneContext::Conversation,
        Some(Scene::Direct) => false,
    }
}

/// Gathers what the asker may read there. If the asker's rights are unknown, they
/// are looked up at the same time.
async fn judged<S: Source>(by: &Collector<'_, S>, scene: Scene) -> (Access, SceneMessages) {
    if !by.turn.wants_context() {
        let nothing = SceneMessages {
            channel: None,
            ..base(by.turn, Gathered::Nothing)
        };
        return (access::of_asker(by).await, nothing);
    }
    if by.turn.asker_access.forbids(|rights| rights.read_history) {
        return (by.turn.asker_access, only_referenced(by.turn));
    }
    let access = access::of_asker(by);
    let (asker, messages) = join(access, gather(by, scene)).await;
    if asker.may_read() {
        return (asker, messages);
    }
    let hidden = SceneMessages {
        window_update: messages.window_update,
        ..only_referenced(by.turn)
    };
    (asker, hidden)
}

async fn gather<S: Source>(by: &Collector<'_, S>, scene: Scene) -> SceneMessages {
    match scene {
        Scene::Thread => gather_thread(by).await,
        Scene::Lone if by.turn.is_bare() => gather_tail(by).await,
        Scene::Lone if by.turn.limits.lone_context == LoneContext::Recent => {
            gather_recent(by).await
        }
        Scene::Lone if by.turn.limits.lone_context == LoneContext::Conversation => {
            gather_conversation(by).await
        }
        Scene::ReplyChain if by.turn.limits.lone_context == LoneContext::Conversation => {
            gather_chain_around(by).await
        }
        Scene::ReplyChain | Scene::Direct | Scene::Lone => gather_chain(by).await,
    }
}

async fn gather_thread<S: Source>(by: &Collector<'_, S>) -> SceneMessages {
    let thread = thread::collect(by).await;
    let named = [&thread.gathered.starter, &thread.gathered.pointed_at];
    let named = named.into_iter().filter_map(NamedMessage::message);
    let window_update = WindowUpdate {
        pages: thread.history.fetched_range(by.turn),
        single: named.map(|one| (one.channel, Arc::clone(one))).collect(),
    };
    SceneMessages {
        channel: thread.channel,
        target: thread.target,
        window_update,
        ..base(by.turn, Gathered::Thread(thread.gathered))
    }
}

/// A bare mention outside a thread: the last messages of the channel.
async fn gather_tail<S: Source>(by: &Collector<'_, S>) -> SceneMessages {
    if by.turn.limits.tail == 0 {
        return base(by.turn, Gathered::Tail(Vec::new()));
    }
    let more = |older: &[Arc<Message>]| by.turn.selector().tail_wants_more(older);
    gather_last(by, more, Gathered::Tail).await
}

/// A mention with text outside a thread, with `LONE_CONTEXT=recent`: the last messages
/// of the channel.
async fn gather_recent<S: Source>(by: &Collector<'_, S>) -> SceneMessages {
    let more = |older: &[Arc<Message>]| by.turn.selector().recent_wants_more(older);
    gather_last(by, more, Gathered::Recent).await
}

/// A mention with text outside a thread, with `LONE_CONTEXT=conversation`: what the window
/// holds of the channel, or where that is less than a page, one page, and a second one if the
/// conversation reaches the first one's end.
async fn gather_conversation<S: Source>(by: &Collector<'_, S>) -> SceneMessages {
    // Where nothing is held, a page is fetched before anybody is asked.
    let pages = AtomicUsize::new(usize::from(by.turn.view.whole_from.is_none()));
    let more = |older: &[Arc<Message>]| match pages.fetch_add(1, Ordering::Relaxed) {
        0 => older.len() < PAGE_LIMIT,
        1 => by.turn.selector().conversation_wants_more(older),
        _ => false,
    };
    gather_last(by, more, Gathered::Conversation).await
}

/// The last messages of a channel, while more of those before the trigger are wanted.
async fn gather_last<S: Source>(
    by: &Collector<'_, S>,
    wants_more: impl Fn(&[Arc<Message>]) -> bool,
    gathered: impl Fn(Vec<Arc<Message>>) -> Gathered,
) -> SceneMessages {
    let trigger = by.turn.trigger();
    let more = |messages: &[Arc<Message>]| {
        let before = messages.partition_point(|message| message.id < trigger.id);
        wants_more(&messages[..before])
    };
    let history = history::collect(by, more).await;
    let pages = history.fetched_range(by.turn);
    let mut messages = base(by.turn, gathered(history.messages));
    messages.window_update.pages = pages;
    messages
}

async fn gather_chain<S: Source>(by: &Collector<'_, S>) -> SceneMessages {
    if by.turn.trigger().replies_to().is_none() {
        return base(by.turn, Gathered::Nothing);
    }
    let mut messages = base(by.turn, reply_chain::collect(by).await);
    let walked = messages.gathered.messages().into_iter();
    let single = walked.map(|one| (one.channel, Arc::clone(one)));
    messages.window_update.single.extend(single);
    messages
}

/// A reply outside a thread, with `LONE_CONTEXT=conversation`: its chain, and at the same time
/// what may be of the conversation around it.
async fn gather_chain_around<S: Source>(by: &Collector<'_, S>) -> SceneMessages {
    let conversation = gather_conversation(by);
    let (mut messages, conversation) = join(gather_chain(by), conversation).await;
    if let (Gathered::Chain { around, .. }, Gathered::Conversation(last)) =
        (&mut messages.gathered, conversation.gathered)
    {
        *around = last;
    }
    messages.window_update.pages = conversation.window_update.pages;
    messages
}

/// People cannot post empty messages: if one of theirs is blank, the message
/// content intent is missing.
fn without_content(gathered: &Gathered) -> Option<Stage> {
    let is_blanked =
        |message: &Arc<Message>| message.is_human() && !message.withheld && is_blank(message);
    let (stage, is_found) = match gathered {
        Gathered::Thread(GatheredThread { messages, .. })
        | Gathered::Tail(messages)
        | Gathered::Recent(messages)
        | Gathered::Conversation(messages) => (Stage::History, messages.iter().any(is_blanked)),
        Gathered::Chain { .. } => {
            let messages = gathered.messages();
            (Stage::Chain, messages.into_iter().any(is_blanked))
        }
        Gathered::Nothing => return None,
    };
    is_found.then_some(stage)
}

/// The asker may not read the history: only the trigger and the message it includes, which
/// Discord shows to whoever replies. To an app nothing is shown.
fn only_referenced(turn: &TurnInput) -> SceneMessages {
    let links = turn
        .trigger()
        .referenced_message()
        .filter(|_| turn.us.proxy_of(turn.trigger()).is_none())
        .map(|referenced| ChainLink::Message(Arc::new(referenced.clone())));
    let gathered = Gathered::Chain {
        links: links.into_iter().collect(),
        cut: None,
        around: Vec::new(),
    };
    base(turn, gathered)
}

/// Replies to the trigger, and adopts the pointed-at text if the trigger has none.
fn base(turn: &TurnInput, gathered: Gathered) -> SceneMessages {
    SceneMessages {
        target: turn.target(gathered.pointed_at(), None),
        channel: turn.channel.clone(),
        gathered,
        window_update: WindowUpdate::default(),
    }
}
