//! Gathers the messages for one turn: within caps, under one deadline and one
//! fetch budget. If something fails, the rest is still used.
//!
//! One file per collector: `thread` (tail, history and starter share their
//! fetches), `reply_chain`, `history` (pages, also used for a bare mention
//! outside threads), `starter`, `files`. A new collector is a new file, a variant
//! of `engine::select::Gathered` and a line in `gather`.
//!
//! Invariant: `collect` knows [`Source`] and the core, but neither Discord's wire
//! format nor any file format; the only clock it reads is the deadline's.

mod access;
mod fetch;
mod files;
mod history;
pub mod prepare;
mod recall;
mod reply_chain;
mod source;
mod starter;
mod thread;
mod view;

use std::sync::Arc;

use futures_util::future::join;

use crate::engine::chain::Link;
use crate::engine::eligible::is_blank;
use crate::engine::route;
use crate::engine::select::{Gathered, tail_wants_more};
use crate::engine::target::Target;
use crate::engine::window::{View, Window};
use crate::model::{
    Access, Channel, ChannelId, ChannelKind, Fallback, Message, OptedOut, Scene, Stage, TurnRequest,
};

pub use history::Adopted;
pub use recall::Recall;
pub use source::{Anchor, FetchError, PAGE_LIMIT, Page, Source};
pub use view::Occasion;

use fetch::Fetcher;

/// What was collected for one trigger.
#[derive(Debug, Clone)]
pub struct Collected {
    /// What the trigger is.
    pub scene: Scene,
    /// What the asker may do there; never unknown at this point.
    pub asker: Access,
    /// The trigger's channel, fetched if necessary; `None` also if the asker may not view it.
    pub channel: Option<Channel>,
    /// The messages.
    pub gathered: Gathered,
    /// The message the answer replies to, and the adopted text.
    pub target: Target,
    /// The trigger, with its text files inlined.
    pub trigger: Arc<Message>,
    /// REST calls made.
    pub fetches: usize,
    /// What failed, and where.
    pub fallbacks: Vec<(Stage, Fallback)>,
    /// The asker opted out: the answer is based on the trigger and on what others
    /// said, without profile and history.
    pub asker_opted_out: bool,
    /// What the window should take over.
    pub learnt: Learnt,
}

/// Fetched messages for the window to keep.
#[derive(Debug, Clone, Default)]
pub struct Learnt {
    /// Complete pages of the trigger's channel.
    pub pages: Option<Adopted>,
    /// Single messages that were pointed at, by channel.
    pub single: Vec<(ChannelId, Arc<Message>)>,
}

impl Learnt {
    /// Adds them to the window from which the turn's `view` was taken.
    pub fn teach(&self, window: &mut Window, view: &View) {
        if let Some(pages) = &self.pages {
            window.adopt(pages.channel, view, pages.from, &pages.messages);
        }
        for (channel, message) in &self.single {
            window.keep(*channel, view, std::slice::from_ref(message));
        }
    }
}

/// Collects for one trigger. Never fails: what could not be fetched is listed in `fallbacks`.
pub async fn collect<S: Source>(source: &S, recall: &Recall, occasion: &Occasion<'_>) -> Collected {
    let opted_out = &occasion.view.opted_out;
    let asker_opted_out = opted_out.contains(occasion.request.asker());
    let withheld = without_others(occasion.request, opted_out);
    let occasion = &Occasion {
        request: withheld.as_ref().unwrap_or(occasion.request),
        ..*occasion
    };
    let fetcher = Fetcher::new(source, recall, opted_out, occasion.limits);
    if occasion.may_surely_not_read() {
        fetcher.bar(occasion.channel_id());
    }
    let kind = occasion.request.channel_kind;
    let kind = kind.or(occasion.channel.map(|channel| channel.kind));
    let fetched = match kind {
        Some(_) => None,
        None => fetcher.channel(occasion.channel_id()).await,
    };
    let channel = occasion.channel.or(fetched.as_ref());
    let kind = kind.or(channel.map(|channel| channel.kind));
    let occasion = &Occasion {
        channel,
        asker_access: if kind.is_some_and(ChannelKind::is_direct) {
            Access::FULL
        } else {
            occasion.asker_access
        },
        ..*occasion
    };
    let scene = route::scene(occasion.trigger(), kind);
    let mut collected = judged(occasion, &fetcher, scene).await;
    if !collected.asker.may_read() {
        fetcher.fail(Stage::Asker, Fallback::Forbidden);
    }
    if let Some(stage) = without_content(&collected.gathered) {
        fetcher.fail(stage, Fallback::NoContent);
    }
    files::inline_all(&fetcher, occasion.limits, &mut collected).await;
    collected.asker_opted_out = asker_opted_out;
    if !collected.asker.may_view() {
        collected.channel = None;
    }
    withhold_again(&mut collected, opted_out);
    untitle(&mut collected, opted_out);
    collected.fetches = fetcher.used();
    collected.fallbacks = fetcher.failures();
    collected
}

/// Clears the title of a thread whose owner opted out: the owner wrote it.
fn untitle(collected: &mut Collected, opted_out: &OptedOut) {
    let Some(channel) = &mut collected.channel else {
        return;
    };
    let owner = channel.thread.as_ref().and_then(|thread| thread.owner);
    if owner.is_some_and(|owner| opted_out.contains(owner)) {
        channel.name.clear();
    }
}

/// Removes from the trigger what it includes or forwards of people who opted out;
/// its own words stay, since they are the question. `None` if nothing has to be
/// removed.
fn without_others(request: &TurnRequest, opted_out: &OptedOut) -> Option<TurnRequest> {
    if !opted_out.concerns_others(&request.trigger) {
        return None;
    }
    let mut trigger = Message::clone(&request.trigger);
    opted_out.withhold_others(&mut trigger);
    Some(TurnRequest {
        trigger: Arc::new(trigger),
        ..request.clone()
    })
}

/// Withholds again at the end: a forward may have been held or fetched before its
/// original was seen to be from somebody who opted out.
fn withhold_again(collected: &mut Collected, opted_out: &OptedOut) {
    let Collected {
        gathered,
        target,
        trigger,
        learnt,
        ..
    } = collected;
    let shown = gathered.messages_mut().into_iter();
    let targets = [&mut target.reply_to, &mut target.adopted];
    let targets = targets.into_iter().flatten();
    let pages = learnt.pages.iter_mut().flat_map(|one| &mut one.messages);
    let single = learnt.single.iter_mut().map(|(_, message)| message);
    let learnt = pages.chain(single);
    for message in shown.chain(targets).chain(learnt).chain([trigger]) {
        if opted_out.concerns_others(message) {
            opted_out.withhold_others(Arc::make_mut(message));
        }
    }
}

/// Gathers what the asker may read there. If the asker's rights are unknown, they
/// are looked up at the same time.
async fn judged<S: Source>(
    occasion: &Occasion<'_>,
    fetcher: &Fetcher<'_, S>,
    scene: Scene,
) -> Collected {
    if occasion.asker_access.forbids(|rights| rights.read_history) {
        return only_carried(occasion, scene);
    }
    let access = access::of_asker(occasion, fetcher);
    let (asker, gathered) = join(access, gather(occasion, fetcher, scene)).await;
    if asker.may_read() {
        return Collected { asker, ..gathered };
    }
    Collected {
        asker,
        learnt: gathered.learnt,
        ..only_carried(occasion, scene)
    }
}

async fn gather<S: Source>(
    occasion: &Occasion<'_>,
    fetcher: &Fetcher<'_, S>,
    scene: Scene,
) -> Collected {
    match scene {
        Scene::Thread => gather_thread(occasion, fetcher).await,
        Scene::Lone if occasion.is_bare() => gather_tail(occasion, fetcher).await,
        Scene::ReplyChain | Scene::Direct | Scene::Lone => {
            gather_chain(occasion, fetcher, scene).await
        }
    }
}

async fn gather_thread<S: Source>(occasion: &Occasion<'_>, fetcher: &Fetcher<'_, S>) -> Collected {
    let thread = thread::collect(occasion, fetcher).await;
    let mut learnt = Learnt {
        pages: thread.history.adopted(occasion),
        ..Learnt::default()
    };
    for found in [&thread.gathered.starter, &thread.gathered.pointed_at] {
        let message = found.message();
        learnt
            .single
            .extend(message.map(|message| (message.channel, Arc::clone(message))));
    }
    Collected {
        channel: thread.channel,
        target: thread.target,
        learnt,
        ..base(occasion, Scene::Thread, Gathered::Thread(thread.gathered))
    }
}

/// A bare mention outside a thread: the last messages of the channel.
async fn gather_tail<S: Source>(occasion: &Occasion<'_>, fetcher: &Fetcher<'_, S>) -> Collected {
    let limits = occasion.limits;
    let trigger = occasion.trigger();
    let more = |messages: &[Arc<Message>]| {
        let before = messages.partition_point(|message| message.id < trigger.id);
        let older = &messages[..before];
        tail_wants_more(occasion.us, trigger, older, limits)
    };
    let history = if limits.tail == 0 {
        history::History::default()
    } else {
        history::collect(occasion, fetcher, more).await
    };
    let learnt = Learnt {
        pages: history.adopted(occasion),
        ..Learnt::default()
    };
    Collected {
        learnt,
        ..base(occasion, Scene::Lone, Gathered::Tail(history.messages))
    }
}

async fn gather_chain<S: Source>(
    occasion: &Occasion<'_>,
    fetcher: &Fetcher<'_, S>,
    scene: Scene,
) -> Collected {
    if occasion.trigger().replies_to().is_none() {
        return base(occasion, scene, Gathered::Nothing);
    }
    let (gathered, walked) = reply_chain::collect(occasion, fetcher).await;
    let single = walked
        .into_iter()
        .map(|message| (message.channel, message))
        .collect();
    let learnt = Learnt {
        single,
        ..Learnt::default()
    };
    Collected {
        learnt,
        ..base(occasion, scene, gathered)
    }
}

/// People cannot post empty messages: if one of theirs is blank, the message
/// content intent is missing.
fn without_content(gathered: &Gathered) -> Option<Stage> {
    let is_blanked =
        |message: &Arc<Message>| message.is_human() && !message.withheld && is_blank(message);
    match gathered {
        Gathered::Thread(thread) => thread
            .messages
            .iter()
            .any(is_blanked)
            .then_some(Stage::History),
        Gathered::Tail(messages) => messages.iter().any(is_blanked).then_some(Stage::History),
        Gathered::Chain { links, .. } => links
            .iter()
            .filter_map(Link::message)
            .any(is_blanked)
            .then_some(Stage::Chain),
        Gathered::Nothing => None,
    }
}

/// The asker may not read the history: only the trigger and the message it includes.
fn only_carried(occasion: &Occasion<'_>, scene: Scene) -> Collected {
    let links = occasion
        .trigger()
        .carried()
        .map(|carried| Link::Message(Arc::new(carried.clone())));
    let gathered = Gathered::Chain {
        links: links.into_iter().collect(),
        cut: None,
    };
    base(occasion, scene, gathered)
}

/// Replies to the trigger, and adopts the pointed-at text if the trigger has none.
fn base(occasion: &Occasion<'_>, scene: Scene, gathered: Gathered) -> Collected {
    let pointed_at = match &gathered {
        Gathered::Chain { links, .. } => links.first().and_then(Link::message),
        Gathered::Thread(_) | Gathered::Tail(_) | Gathered::Nothing => None,
    };
    Collected {
        scene,
        asker: occasion.asker_access,
        channel: occasion.channel.cloned(),
        target: occasion.target(pointed_at, None),
        gathered,
        trigger: Arc::clone(occasion.trigger()),
        fetches: 0,
        fallbacks: Vec::new(),
        asker_opted_out: false,
        learnt: Learnt::default(),
    }
}
