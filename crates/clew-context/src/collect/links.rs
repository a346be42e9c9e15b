//! What links in the question lead to: a message with those around it, or a thread's
//! starter and newest messages. Fetched last, and only from channels that everybody
//! who will read the answer may read.

use std::iter;
use std::sync::Arc;

use futures_util::future::{join, join_all};

use crate::engine::links::{self, GatheredLink, GatheredLinks, Link, LinkPlace, MOST_TARGETS};
use crate::engine::select::NamedMessage;
use crate::engine::turn::{Collected, TurnInput};
use crate::engine::window::{CHANNEL_START, View};
use crate::model::{
    Channel, ChannelId, Fallback, GuildId, Message, MessageId, MessageKind, Readers, Stage,
};

use super::Collector;
use super::fetch::Fetcher;
use super::negative_cache::NoStarter;
use super::source::{OtherChannels, PageCursor, Source};
use super::starter::{self, FirstLook};

/// How many messages of a page may be of apps or the system, on each side, before
/// fewer are shown than wanted.
const SPARE: usize = 8;

/// Where a link leads, by what is known without asking Discord.
enum Lead {
    /// Into the channel of the question.
    Own,
    /// To a channel or thread that the gateway told of, of any server.
    Known(Box<Channel>),
    /// Perhaps to a thread: the gateway tells of none that is archived.
    Unknown,
    /// Elsewhere: to another server, or to what nobody told of.
    Closed,
}

/// Where a link leads, as far as this turn is concerned.
enum Judged {
    /// To what everybody may read.
    Open(Box<Target>),
    /// To what may not be shown, or to nothing.
    Closed,
    /// To nothing that would be shown: an ordinary channel, or the thread of the
    /// question itself.
    Nothing,
}

/// A place that may be read.
struct Target {
    id: ChannelId,
    /// `None` for a direct message.
    channel: Option<Channel>,
    message: Option<MessageId>,
    view: View,
}

/// Whether links in a question, or in the message that it points at, lead to what its
/// asker may read and not everybody else who would read the answer, as far as is known
/// without asking Discord.
pub fn is_for_asker_only(question: &Message, others: &dyn OtherChannels) -> bool {
    let (guild, here) = (question.guild, question.channel);
    let pointed_at = question.referenced_message().into_iter();
    let texts = iter::once(&*question.content).chain(pointed_at.flat_map(large_print));
    let links = links::found_in(texts);
    let followed =
        links
            .into_iter()
            .filter_map(|link| match lead(link, guild, here, Some(others)) {
                Lead::Known(channel) if brings(link, &channel) => {
                    let is_here = channel.guild == guild;
                    Some(is_here && others.readers(&channel) == Readers::AskerOnly)
                }
                Lead::Known(_) => None,
                Lead::Own => link.message.map(|_| false),
                Lead::Unknown => Some(false),
                Lead::Closed => (link.place != LinkPlace::Mention).then_some(false),
            });
    followed.take(MOST_TARGETS).any(|is_for_asker| is_for_asker)
}

/// Brings what the links of the trigger and of the message that it points at lead to,
/// and keeps the linked messages for the window.
pub(super) async fn collect<S: Source>(fetcher: &Fetcher<'_, S>, collected: &mut Collected) {
    let links = links::found_in(texts(collected));
    if !links.is_empty() {
        // Boxed to keep the future of a turn small.
        Box::pin(follow(fetcher, collected, links)).await;
    }
}

async fn follow<S: Source>(fetcher: &Fetcher<'_, S>, collected: &mut Collected, links: Vec<Link>) {
    let by = Collector {
        turn: &collected.turn,
        fetcher,
    };
    let mut targets = Vec::new();
    let mut closed = 0;
    for link in links {
        if targets.len() + closed == MOST_TARGETS {
            break;
        }
        match judge(&by, link).await {
            Judged::Open(target) => targets.push(target),
            Judged::Closed => closed += 1,
            Judged::Nothing => {}
        }
    }
    let closed = closed > 0;
    if closed {
        fetcher.fail(Stage::Link, Fallback::Forbidden);
    }
    let targets = targets.into_iter().map(|target| gathered(&by, target));
    let targets = join_all(targets).await;
    for link in &targets {
        let main = link.main.message();
        let main = main.map(|message| (message.channel, Arc::clone(message)));
        collected.window_update.single.extend(main);
    }
    collected.links = GatheredLinks { targets, closed };
}

/// The texts whose links count: the trigger's first.
fn texts(collected: &Collected) -> Vec<&str> {
    let pointed_at = collected.gathered.pointed_at();
    let adopted = collected.target.adopted.as_ref();
    let others = [pointed_at, adopted].into_iter().flatten();
    let others = others.flat_map(|message| large_print(message));
    let trigger = &*collected.trigger().content;
    iter::once(trigger).chain(others).collect()
}

/// Without lines of small print (Discord's `-# `): under an answer of ours they link what it
/// cites.
fn large_print(message: &Message) -> impl Iterator<Item = &str> {
    let lines = message.content.lines();
    lines.filter(|line| !line.starts_with("-# "))
}

/// Where a link in a channel leads.
fn lead(
    link: Link,
    guild: Option<GuildId>,
    here: ChannelId,
    others: Option<&dyn OtherChannels>,
) -> Lead {
    let says_here = match link.place {
        LinkPlace::Guild(said) => guild == Some(said),
        LinkPlace::Direct => guild.is_none(),
        LinkPlace::Mention => true,
    };
    if says_here && link.channel == here {
        return Lead::Own;
    }
    let Some(others) = others.filter(|_| says_here && guild.is_some()) else {
        return Lead::Closed;
    };
    match (others.channel(link.channel), link.place) {
        (Some(known), _) => Lead::Known(Box::new(known)),
        (None, LinkPlace::Mention) => Lead::Closed,
        (None, _) => Lead::Unknown,
    }
}

/// Whether anything is shown of what a link leads to: of an ordinary channel only a
/// message.
const fn brings(link: Link, channel: &Channel) -> bool {
    link.message.is_some() || channel.kind.is_thread()
}

/// Whether a link's target may be read by everybody who will read the answer. No
/// request is made for a link that names another server.
async fn judge<S: Source>(by: &Collector<'_, S>, link: Link) -> Judged {
    let others = by.fetcher.other_channels();
    let lead = lead(link, by.turn.guild(), by.turn.channel_id(), others);
    let is_known = matches!(lead, Lead::Known(_));
    let channel = match lead {
        Lead::Own => return own_channel(by.turn, link),
        Lead::Known(known) => Some(*known),
        Lead::Unknown => {
            let found = by.fetcher.look_up(link.channel).await;
            found.filter(|channel| channel.kind.is_thread())
        }
        Lead::Closed => None,
    };
    let readers = |channel: &Channel| others.map(|others| others.readers(channel));
    let is_open = |channel: &Channel| {
        channel.guild == by.turn.guild() && readers(channel) == Some(Readers::Everybody)
    };
    let (Some(channel), Some(others)) = (channel.filter(is_open), others) else {
        if is_known && link.place != LinkPlace::Mention {
            // As for what the gateway did not tell of: calls and time do not tell which.
            by.fetcher.look_up(link.channel).await;
        }
        return closed(link);
    };
    if !brings(link, &channel) {
        return Judged::Nothing;
    }
    let home = starter::home(&channel);
    for id in [Some(channel.id), home].into_iter().flatten() {
        if others.may_surely_not_read(id) {
            by.fetcher.bar(id);
        }
    }
    Judged::Open(Box::new(Target {
        id: channel.id,
        view: others.view(channel.id),
        channel: Some(channel),
        message: link.message,
    }))
}

/// What a link that leads to nothing open counts as. A `<#id>` is typed all the time, and
/// nobody expects a channel's content.
const fn closed(link: Link) -> Judged {
    match link.place {
        LinkPlace::Mention => Judged::Nothing,
        LinkPlace::Guild(_) | LinkPlace::Direct => Judged::Closed,
    }
}

/// A link into the trigger's own channel.
fn own_channel(turn: &TurnInput, link: Link) -> Judged {
    if !turn.asker_access.may_read() {
        return closed(link);
    }
    if link.message.is_none() {
        return Judged::Nothing;
    }
    Judged::Open(Box::new(Target {
        id: link.channel,
        channel: turn.channel.clone().filter(|one| !one.kind.is_direct()),
        message: link.message,
        view: turn.view.clone(),
    }))
}

async fn gathered<S: Source>(by: &Collector<'_, S>, target: Box<Target>) -> GatheredLink {
    match target.message {
        Some(id) => linked_message(by, *target, id).await,
        None => linked_thread(by, *target).await,
    }
}

/// A message, and those around it.
async fn linked_message<S: Source>(
    by: &Collector<'_, S>,
    target: Target,
    id: MessageId,
) -> GatheredLink {
    let (main, others) = if target.view.deleted.contains(&id) {
        (NamedMessage::Deleted(id), Vec::new())
    } else if let Some(held) = held_around(by.turn, &target.view, id) {
        held
    } else {
        fetched_around(by, &target, id).await
    };
    GatheredLink {
        channel: target.channel,
        id: target.id,
        message: Some(id),
        main,
        others,
        reaches_start: false,
    }
}

/// The message and those around it, if the window shows them all.
fn held_around(
    turn: &TurnInput,
    view: &View,
    id: MessageId,
) -> Option<(NamedMessage, Vec<Arc<Message>>)> {
    let at = view.recent.binary_search_by_key(&id, |message| message.id);
    let at = at.ok()?;
    let (older, newer) = (&view.recent[..at], &view.recent[at + 1..]);
    let before = turn.limits.link_context.before;
    let is_whole = view.whole_from == Some(CHANNEL_START);
    if !is_whole && !turn.selector().are_enough(older, before) {
        return None;
    }
    let others = older.iter().chain(newer).cloned().collect();
    Some((NamedMessage::Known(Arc::clone(&view.recent[at])), others))
}

async fn fetched_around<S: Source>(
    by: &Collector<'_, S>,
    target: &Target,
    id: MessageId,
) -> (NamedMessage, Vec<Arc<Message>>) {
    let context = by.turn.limits.link_context;
    let limit = 2 * (context.before.max(context.after) + SPARE) + 1;
    let cursor = PageCursor::Around(id);
    let page = by.fetcher.page(Stage::Link, target.id, cursor, limit);
    let held = target.view.get(id).cloned();
    let Some(page) = page.await else {
        let main = held.map_or(NamedMessage::Unavailable(Some(id)), NamedMessage::Known);
        return (main, Vec::new());
    };
    if page.messages.is_empty() && page.unreadable.is_empty() {
        // Without Read Message History Discord sends an empty list.
        by.fetcher.fail(Stage::Link, Fallback::Forbidden);
        return (NamedMessage::Unavailable(Some(id)), Vec::new());
    }
    let is_unreadable = page.unreadable.contains(&id);
    let messages = page.messages.into_iter().map(Arc::new);
    let (main, others): (Vec<_>, Vec<_>) = messages.partition(|message| message.id == id);
    let is_deleted = |one: &Arc<Message>| target.view.deleted.contains(&one.id);
    let main = match main.into_iter().next() {
        Some(found) => NamedMessage::Known(found),
        None if is_unreadable => {
            by.fetcher.fail(Stage::Link, Fallback::Malformed);
            return (NamedMessage::Unavailable(Some(id)), Vec::new());
        }
        None => return (NamedMessage::Deleted(id), Vec::new()),
    };
    let others = others.into_iter().filter(|one| !is_deleted(one)).collect();
    (main, others)
}

/// A thread: its newest messages and its starter.
async fn linked_thread<S: Source>(by: &Collector<'_, S>, target: Target) -> GatheredLink {
    let newest = newest(by, &target);
    let starter = first_look(by.fetcher, &target);
    let ((others, reaches_start), starter) = join(newest, starter).await;
    let main = match starter {
        FirstLook::Found(starter) => starter,
        FirstLook::InThread => first_message(by.fetcher, &target, &others, reaches_start).await,
        FirstLook::Failed(id, reason) => {
            let shown = starter::among(&others, reaches_start, target.channel.as_ref(), id);
            shown.unwrap_or_else(|| by.fetcher.no_starter(Stage::Link, id, reason))
        }
    };
    GatheredLink {
        channel: target.channel,
        id: target.id,
        message: None,
        main,
        others,
        reaches_start,
    }
}

/// The newest messages, oldest first, and whether they are all there are.
async fn newest<S: Source>(by: &Collector<'_, S>, target: &Target) -> (Vec<Arc<Message>>, bool) {
    let (view, trigger) = (&target.view, by.turn.trigger().id);
    let is_whole = view.whole_from == Some(CHANNEL_START);
    let seen = view.recent.partition_point(|one| one.id < trigger);
    let seen = &view.recent[..seen];
    if is_whole || by.turn.selector().are_enough(seen, by.turn.limits.tail) {
        return (seen.to_vec(), is_whole);
    }
    let cursor = PageCursor::Before(trigger);
    let limit = by.turn.limits.tail + SPARE;
    let page = by.fetcher.page(Stage::Link, target.id, cursor, limit);
    let Some(page) = page.await else {
        return (seen.to_vec(), false);
    };
    let deleted = |one: &Message| view.deleted.contains(&one.id);
    let messages = page.messages.into_iter().filter(|one| !deleted(one));
    (messages.map(Arc::new).collect(), page.complete)
}

/// The starter where it usually is.
async fn first_look<S: Source>(fetcher: &Fetcher<'_, S>, target: &Target) -> FirstLook {
    let Some((home, view)) = home_of(fetcher, target) else {
        return FirstLook::InThread;
    };
    let id = target.id.starter();
    if let Some(held) = view.get(id) {
        return FirstLook::Found(NamedMessage::Known(Arc::clone(held)));
    }
    if view.deleted.contains(&id) {
        return FirstLook::Found(NamedMessage::Deleted(id));
    }
    match fetcher.negative_cache().no_starter(target.id) {
        Some(NoStarter::Deleted) => FirstLook::Found(NamedMessage::Deleted(id)),
        Some(NoStarter::FirstMessage(_)) => FirstLook::InThread,
        None => FirstLook::fetched(fetcher, Stage::Link, target.id, home).await,
    }
}

/// Where the starter stands, if it is not just the first message, and that channel's window.
fn home_of<S: Source>(fetcher: &Fetcher<'_, S>, target: &Target) -> Option<(ChannelId, View)> {
    let home = starter::home(target.channel.as_ref()?)?;
    let view = if home == target.id {
        target.view.clone()
    } else {
        fetcher.other_channels()?.view(home)
    };
    Some((home, view))
}

/// The first message of a thread that was not started from one.
async fn first_message<S: Source>(
    fetcher: &Fetcher<'_, S>,
    target: &Target,
    others: &[Arc<Message>],
    reaches_start: bool,
) -> NamedMessage {
    let first = if reaches_start {
        others.first().cloned()
    } else {
        let cursor = PageCursor::After(target.id.starter());
        let page = fetcher.page(Stage::Link, target.id, cursor, 1).await;
        page.and_then(|page| page.messages.into_iter().next())
            .map(Arc::new)
    };
    match first {
        Some(first) if first.kind == MessageKind::ThreadStarter => {
            NamedMessage::Deleted(target.id.starter())
        }
        Some(first) => NamedMessage::Known(first),
        None => NamedMessage::None,
    }
}
