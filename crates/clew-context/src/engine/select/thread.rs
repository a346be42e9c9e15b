//! What of a thread is shown: the messages asked for by name, the tail before
//! the target, and the history as far as the caps allow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Found, GatheredThread, Pick, Selection, Unseen};
use crate::engine::chain::oldest_allowed;
use crate::engine::eligible::Us;
use crate::engine::window::CHANNEL_START;
use crate::model::{Limits, Marker, Message, MessageId, OmitReason, Place, UnixMillis};

/// Newest first until a cap; what is kept counts first.
pub(super) fn select(
    us: &Us,
    trigger: &Message,
    thread: &GatheredThread,
    limits: &Limits,
) -> Selection {
    let mut selection = Selection::default();
    let kept = kept(us, trigger, thread, limits, &mut selection);
    let candidates = candidates(us, trigger, thread, &kept, &mut selection);
    let tail = tail_ids(us, trigger, thread, &candidates, limits);
    let wanted: Vec<&Arc<Message>> = if thread.history {
        candidates
    } else {
        only_tail(us, trigger, thread, candidates, &tail)
    };
    let mut room = limits.max_msgs.saturating_sub(kept.len());
    let oldest = oldest_allowed(trigger, limits);
    for message in wanted.into_iter().rev() {
        let in_tail = tail.contains(&message.id);
        if let Some(reason) = refuse(message, in_tail, room, oldest) {
            selection.omit(message.id, reason);
            continue;
        }
        room -= 1;
        selection.tail += usize::from(in_tail);
        let place = if in_tail { Place::Tail } else { Place::History };
        selection.pick(message, place, false);
    }
    mark_withheld(
        thread,
        floor(thread, &tail, &selection, limits),
        oldest,
        &mut selection,
    );
    selection.tail += kept.keys().filter(|id| tail.contains(id)).count();
    selection.picks.extend(kept.into_values());
    selection.picks.sort_by_key(|pick| pick.message.id);
    selection.omitted.sort_by_key(|omitted| omitted.id);
    selection.unseen = if thread.history {
        unseen(thread)
    } else {
        before_tail(thread, &tail)
    };
    selection
}

/// Starter, pointed-at and target are always shown.
fn kept(
    us: &Us,
    trigger: &Message,
    thread: &GatheredThread,
    limits: &Limits,
    selection: &mut Selection,
) -> BTreeMap<MessageId, Pick> {
    let mut kept = BTreeMap::new();
    let target = match &thread.target {
        Some(target) => Found::Known(Arc::clone(target)),
        None => Found::None,
    };
    // One message may be all three: the first of these is said of it.
    let named = [
        (&thread.pointed_at, Place::PointedAt),
        (&target, Place::Target),
        (&thread.starter, Place::Starter),
    ];
    for (found, place) in named {
        match found {
            Found::None => {}
            Found::Known(message) => {
                keep(us, trigger, message, place, limits, &mut kept, selection);
            }
            Found::Deleted(id) => selection.mark_deleted(*id, place),
            Found::Unavailable(id) => {
                let at = id.unwrap_or(CHANNEL_START);
                selection.mark(at, Marker::Unavailable(*id, place));
            }
        }
    }
    kept
}

fn keep(
    us: &Us,
    trigger: &Message,
    message: &Arc<Message>,
    place: Place,
    limits: &Limits,
    kept: &mut BTreeMap<MessageId, Pick>,
    selection: &mut Selection,
) {
    if message.id == trigger.id {
        return;
    }
    let rejected = us.rejects_pointed_at(message, limits.include_pointed_apps);
    if rejected == Some(OmitReason::OptedOut) {
        selection.mark_withheld(message.id, place);
        return;
    }
    if let Some(reason) = rejected {
        selection.omit(message.id, reason);
        return;
    }
    let pick = || Pick {
        message: Arc::clone(message),
        place,
        kept: true,
    };
    kept.entry(message.id).or_insert_with(pick);
}

/// The eligible messages of the thread, oldest first, without kept ones.
fn candidates<'a>(
    us: &Us,
    trigger: &Message,
    thread: &'a GatheredThread,
    kept: &BTreeMap<MessageId, Pick>,
    selection: &mut Selection,
) -> Vec<&'a Arc<Message>> {
    let mut candidates = Vec::new();
    let named: BTreeSet<MessageId> = selection.omitted.iter().map(|one| one.id).collect();
    for message in &thread.messages {
        if message.id == trigger.id || kept.contains_key(&message.id) {
            continue;
        }
        match us.rejects(message) {
            None => candidates.push(message),
            Some(_) if named.contains(&message.id) => {}
            Some(reason) => selection.omit(message.id, reason),
        }
    }
    candidates
}

/// The last K eligible messages strictly before the target.
fn tail_ids(
    us: &Us,
    trigger: &Message,
    thread: &GatheredThread,
    candidates: &[&Arc<Message>],
    limits: &Limits,
) -> BTreeSet<MessageId> {
    let target = thread.target.as_ref().map(|target| target.id);
    let kept = [&thread.starter, &thread.pointed_at]
        .into_iter()
        .filter_map(|found| found.message())
        .filter(|message| message.channel == trigger.channel && us.rejects(message).is_none())
        .map(|message| message.id);
    let mut ids: BTreeSet<MessageId> = candidates.iter().map(|message| message.id).collect();
    ids.extend(kept.filter(|id| *id != trigger.id));
    let before: Vec<MessageId> = ids
        .into_iter()
        .filter(|id| target.is_none_or(|target| *id < target))
        .collect();
    before.into_iter().rev().take(limits.tail).collect()
}

/// A withheld message leaves a marker where it would have been shown: nobody
/// learns of those beyond a cap more than that older messages are omitted.
fn mark_withheld(
    thread: &GatheredThread,
    floor: Option<MessageId>,
    oldest: Option<UnixMillis>,
    selection: &mut Selection,
) {
    let named = |id: MessageId| selection.markers.iter().any(|(at, _)| *at == id);
    let withheld: BTreeSet<MessageId> = selection
        .omitted
        .iter()
        .filter(|omitted| omitted.reason == OmitReason::OptedOut && !named(omitted.id))
        .map(|omitted| omitted.id)
        .collect();
    for message in &thread.messages {
        let too_old = oldest.is_some_and(|oldest| message.timestamp < oldest);
        let beyond = floor.is_some_and(|floor| message.id < floor);
        if withheld.contains(&message.id) && !too_old && !beyond {
            selection.mark(message.id, Marker::Withheld(1, Place::History));
        }
    }
}

/// What is older than this is beyond a cap: a full tail, or the newest message
/// that a cap left out.
fn floor(
    thread: &GatheredThread,
    tail: &BTreeSet<MessageId>,
    selection: &Selection,
    limits: &Limits,
) -> Option<MessageId> {
    if !thread.history {
        let is_full = tail.len() >= limits.tail;
        return tail.first().copied().filter(|_| is_full);
    }
    let capped = |reason| matches!(reason, OmitReason::Msgs | OmitReason::Age);
    let left_out = selection.omitted.iter().filter(|one| capped(one.reason));
    left_out.map(|omitted| omitted.id).max()
}

/// Without the history: the tail, and our own messages between target and
/// trigger.
fn only_tail<'a>(
    us: &Us,
    trigger: &Message,
    thread: &GatheredThread,
    candidates: Vec<&'a Arc<Message>>,
    tail: &BTreeSet<MessageId>,
) -> Vec<&'a Arc<Message>> {
    let target = thread
        .target
        .as_ref()
        .map_or(trigger.id, |target| target.id);
    let between =
        |message: &Message| us.wrote(message) && message.id > target && message.id < trigger.id;
    candidates
        .into_iter()
        .filter(|message| tail.contains(&message.id) || between(message))
        .collect()
}

/// Newest first until a cap.
fn refuse(
    message: &Message,
    in_tail: bool,
    room: usize,
    oldest: Option<UnixMillis>,
) -> Option<OmitReason> {
    if room == 0 {
        return Some(OmitReason::Msgs);
    }
    let too_old = oldest.is_some_and(|oldest| message.timestamp < oldest);
    (too_old && !in_tail).then_some(OmitReason::Age)
}

fn unseen(thread: &GatheredThread) -> Option<Unseen> {
    let first = thread.messages.first().filter(|_| !thread.reaches_start)?;
    // Discord's count is of when the thread was last seen: one that is already
    // exceeded tells nothing.
    let count = thread
        .total
        .and_then(|total| total.checked_sub(thread.messages.len()));
    if count == Some(0) {
        return None;
    }
    let shown = thread
        .pointed_at
        .message()
        .is_some_and(|message| message.channel == first.channel && message.id < first.id);
    Some(Unseen {
        before: first.id,
        count: count.map(|count| count - usize::from(shown)),
    })
}

/// Without the history nobody counts what stands before the tail.
fn before_tail(thread: &GatheredThread, tail: &BTreeSet<MessageId>) -> Option<Unseen> {
    let (first, oldest) = (tail.first()?, thread.messages.first()?);
    let starter = thread.starter.message().map(|starter| starter.id);
    let earlier = oldest.id < *first && Some(oldest.id) != starter;
    (earlier || !thread.reaches_start).then_some(Unseen {
        before: *first,
        count: None,
    })
}
