//! What is shown of a thread: the named messages, the tail before the target, and
//! as much history as the caps allow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{GapMarks, GatheredThread, NamedMessage, Pick, Selection, Selector, least};
use crate::engine::window::CHANNEL_START;
use crate::model::{
    BlockPlace, Marker, Message, MessageId, OmitReason, ThreadSelect, UnixMillis, Unseen,
};

/// Selects newest first, or as `THREAD_SELECT` says, until a cap is reached; kept messages
/// use up room first.
pub(super) fn select(by: Selector<'_>, thread: &GatheredThread) -> Selection {
    ThreadSelector { by, thread }.select()
}

#[derive(Clone, Copy)]
struct ThreadSelector<'a> {
    by: Selector<'a>,
    thread: &'a GatheredThread,
}

impl<'a> ThreadSelector<'a> {
    fn select(self) -> Selection {
        let Self { by, thread } = self;
        let mut selection = Selection {
            gaps: match by.limits.thread_select {
                ThreadSelect::Newest => GapMarks::Counted,
                ThreadSelect::Conversation => GapMarks::Short,
            },
            ..Selection::default()
        };
        let kept = self.kept(&mut selection);
        let candidates = self.candidates(&kept, &mut selection);
        let spoken = self.spoken(&candidates);
        let newest_first = spoken.values().rev().copied();
        let target = self.target();
        let pointed_at = thread.pointed_at.message();
        let oldest = by.oldest_allowed(newest_first.clone(), target, pointed_at);
        let tail = by.before_target(newest_first, target);
        let tail: BTreeSet<MessageId> = tail.map(|message| message.id).collect();
        let wanted: Vec<&Arc<Message>> = if thread.history {
            candidates
        } else {
            self.only_tail(candidates, &tail)
        };
        let ranks = self.ranks(&spoken, &tail);
        let rank = |message: &Message| ranks.get(&message.id).copied().unwrap_or_default();
        let mut surest_first: Vec<&Arc<Message>> = wanted.into_iter().rev().collect();
        surest_first.sort_by_key(|message| Reverse(rank(message)));
        let mut room = by.limits.max_msgs.saturating_sub(kept.len());
        for message in surest_first {
            let in_tail = tail.contains(&message.id);
            if let Some(reason) = refuse(message, in_tail, room, oldest) {
                selection.omit(message.id, reason);
                continue;
            }
            room -= 1;
            let place = if in_tail {
                selection.tail.insert(message.id);
                BlockPlace::Tail
            } else {
                BlockPlace::History
            };
            let pick = Pick::new(message, place, false, rank(message));
            selection.picks.push(pick);
        }
        let floor = self.floor(&tail, &selection);
        self.mark_withheld(floor, oldest, &mut selection);
        let kept_tail = kept.keys().copied().filter(|id| tail.contains(id));
        selection.tail.extend(kept_tail);
        selection.picks.extend(kept.into_values());
        selection.picks.sort_by_key(|pick| pick.message.id);
        selection.omitted.sort_by_key(|omitted| omitted.id);
        selection.unseen = if thread.history {
            self.unseen()
        } else {
            self.before_tail(&tail)
        };
        selection
    }

    fn target(self) -> Option<MessageId> {
        self.thread.target.as_ref().map(|target| target.id)
    }

    /// The ranks by which messages stay where not all fit: with `THREAD_SELECT=newest` all are
    /// alike; otherwise those of the tail, our own since the target and those after the trigger
    /// stay longest, then those that most surely belong to the trigger's conversation.
    fn ranks(
        self,
        spoken: &BTreeMap<MessageId, &Arc<Message>>,
        tail: &BTreeSet<MessageId>,
    ) -> HashMap<MessageId, usize> {
        let Selector {
            us,
            trigger,
            limits,
        } = self.by;
        if limits.thread_select == ThreadSelect::Newest {
            return HashMap::new();
        }
        let before: Vec<&Arc<Message>> = spoken.range(..trigger.id).map(|(_, one)| *one).collect();
        let mut ranks = self.by.ranks(&before);
        let after = spoken.range(trigger.id..).map(|(id, _)| *id);
        let target = self.target().unwrap_or(trigger.id);
        let ours = spoken.range(target.min(trigger.id)..trigger.id);
        let ours = ours.filter(|(_, message)| message.author.id == us.user);
        let longest = after
            .chain(ours.map(|(id, _)| *id))
            .chain(tail.iter().copied());
        ranks.extend(longest.map(|id| (id, usize::MAX)));
        ranks
    }

    /// Starter, pointed-at and target are always shown.
    fn kept(self, selection: &mut Selection) -> BTreeMap<MessageId, Pick> {
        let Self { by, thread } = self;
        let mut kept = BTreeMap::new();
        let target = match &thread.target {
            Some(target) => NamedMessage::Known(Arc::clone(target)),
            None => NamedMessage::None,
        };
        // One message may be all three; it gets the first matching label.
        let named = [
            (&thread.pointed_at, BlockPlace::PointedAt),
            (&target, BlockPlace::Target),
            (&thread.starter, BlockPlace::Starter),
        ];
        let with_apps = by.limits.include_pointed_apps;
        for (found, place) in named {
            match found {
                NamedMessage::None => {}
                NamedMessage::Known(message) if message.id == by.trigger.id => {}
                NamedMessage::Known(message) => {
                    if let Some(reason) = by.us.rejects_pointed_at(message, with_apps) {
                        selection.leave_out(message.id, reason, place);
                    } else {
                        let pick = || Pick::new(message, place, true, 0);
                        kept.entry(message.id).or_insert_with(pick);
                    }
                }
                NamedMessage::Deleted(id) => selection.mark_deleted(*id, place),
                NamedMessage::Unavailable(id) => {
                    let at = id.unwrap_or(CHANNEL_START);
                    selection.mark(at, Marker::Unavailable(*id, place));
                }
            }
        }
        kept
    }

    /// The eligible messages of the thread, oldest first, without the kept ones.
    fn candidates(
        self,
        kept: &BTreeMap<MessageId, Pick>,
        selection: &mut Selection,
    ) -> Vec<&'a Arc<Message>> {
        let mut candidates = Vec::new();
        let named: BTreeSet<MessageId> = selection.omitted.iter().map(|one| one.id).collect();
        for message in &self.thread.messages {
            if message.id == self.by.trigger.id || kept.contains_key(&message.id) {
                continue;
            }
            match self.by.us.rejects(message) {
                None => candidates.push(message),
                Some(_) if named.contains(&message.id) => {}
                Some(reason) => selection.omit(message.id, reason),
            }
        }
        candidates
    }

    /// The eligible messages of the thread, including kept ones, without the trigger.
    fn spoken(self, candidates: &[&'a Arc<Message>]) -> BTreeMap<MessageId, &'a Arc<Message>> {
        let Selector { us, trigger, .. } = self.by;
        let named = [&self.thread.starter, &self.thread.pointed_at].map(NamedMessage::message);
        let named = named.into_iter().flatten().filter(|message| {
            let stands_here = message.channel == trigger.channel && message.id != trigger.id;
            stands_here && us.rejects(message).is_none()
        });
        let all = candidates.iter().copied().chain(named);
        all.map(|message| (message.id, message)).collect()
    }

    /// Puts a marker where a withheld message would have been shown. Those beyond a
    /// cap get none: they are among the omitted older messages.
    fn mark_withheld(
        self,
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
        for message in &self.thread.messages {
            let too_old = oldest.is_some_and(|oldest| message.timestamp < oldest);
            let beyond = floor.is_some_and(|floor| message.id < floor);
            if withheld.contains(&message.id) && !too_old && !beyond {
                selection.mark(message.id, Marker::Withheld(1, BlockPlace::History));
            }
        }
    }

    /// Messages older than this are beyond a cap: the oldest of a full tail, or the
    /// newest message that a cap left out; where the newest do not go first, the oldest shown.
    fn floor(self, tail: &BTreeSet<MessageId>, selection: &Selection) -> Option<MessageId> {
        let limits = self.by.limits;
        if !self.thread.history {
            let is_full = tail.len() >= limits.tail;
            return tail.first().copied().filter(|_| is_full);
        }
        let capped = |reason| matches!(reason, OmitReason::Msgs | OmitReason::Age);
        let left_out = selection.omitted.iter().filter(|one| capped(one.reason));
        let newest = left_out.map(|omitted| omitted.id).max();
        match limits.thread_select {
            ThreadSelect::Newest => newest,
            ThreadSelect::Conversation => {
                let oldest = selection.picks.iter().map(|pick| pick.message.id).min();
                newest.map(|newest| oldest.unwrap_or(newest))
            }
        }
    }

    /// Without the history: the tail, and our own messages between target and trigger.
    fn only_tail(
        self,
        mut candidates: Vec<&'a Arc<Message>>,
        tail: &BTreeSet<MessageId>,
    ) -> Vec<&'a Arc<Message>> {
        let (us, trigger) = (self.by.us, self.by.trigger.id);
        let target = self.target().unwrap_or(trigger);
        let between =
            |message: &Message| us.wrote(message) && message.id > target && message.id < trigger;
        candidates.retain(|message| tail.contains(&message.id) || between(message));
        candidates
    }

    fn unseen(self) -> Option<Unseen> {
        let thread = self.thread;
        let first = thread.messages.first().filter(|_| !thread.reaches_start)?;
        // Discord's count dates from when we last saw the thread: if it is already
        // exceeded, it is of no use.
        let count = thread
            .total
            .and_then(|total| total.checked_sub(thread.messages.len()));
        if count == Some(0) {
            return None;
        }
        let pointed_at = thread.pointed_at.message();
        let shown = pointed_at.is_some_and(|one| one.channel == first.channel && one.id < first.id);
        let by = self.by;
        Some(Unseen {
            before: first.id,
            count: count.map(|count| count - usize::from(shown)),
            cap: by.history_is_full(&thread.messages, self.target(), pointed_at),
        })
    }

    /// Messages before the tail when the history is not wanted; they are not counted.
    fn before_tail(self, tail: &BTreeSet<MessageId>) -> Option<Unseen> {
        let thread = self.thread;
        let (first, oldest) = (tail.first()?, thread.messages.first()?);
        let starter = thread.starter.message().map(|starter| starter.id);
        let earlier = oldest.id < *first && Some(oldest.id) != starter;
        (earlier || !thread.reaches_start).then_some(Unseen {
            before: *first,
            count: None,
            cap: None,
        })
    }
}

impl Selector<'_> {
    /// The last `limits.tail` messages before the target.
    fn before_target<'m>(
        self,
        newest_first: impl Iterator<Item = &'m Arc<Message>>,
        target: Option<MessageId>,
    ) -> impl Iterator<Item = &'m Arc<Message>> {
        newest_first
            .filter(move |message| target.is_none_or(|target| message.id < target))
            .take(self.limits.tail)
    }

    /// The earliest time that `MEM_MAX_AGE_MIN` allows. It counts back from the
    /// tail's oldest message (without a tail, from the newest before the trigger), or
    /// from the pointed-at message if that is older. So yesterday's thread is still
    /// included today.
    fn oldest_allowed<'m>(
        self,
        newest_first: impl Iterator<Item = &'m Arc<Message>> + Clone,
        target: Option<MessageId>,
        pointed_at: Option<&'m Arc<Message>>,
    ) -> Option<UnixMillis> {
        let (max_age, trigger) = (self.limits.max_age?, self.trigger);
        let last = newest_first.clone().find(|message| message.id < trigger.id);
        let tail = self.before_target(newest_first, target).last();
        let known = [tail.or(last), pointed_at].into_iter().flatten();
        let from = known.map(|message| message.timestamp).min();
        Some(from.unwrap_or(trigger.timestamp).before(max_age))
    }

    /// The cap that older messages of a thread's history would exceed; `None` if they
    /// are worth fetching. `messages` are oldest first.
    pub fn history_is_full(
        self,
        messages: &[Arc<Message>],
        target: Option<MessageId>,
        pointed_at: Option<&Arc<Message>>,
    ) -> Option<OmitReason> {
        let limits = self.limits;
        let spoken: Vec<_> = self.eligible(messages).take(limits.max_msgs).collect();
        // If there are none, the newest has yet to be found.
        let last = *spoken.last()?;
        let oldest = self.oldest_allowed(spoken.iter().copied(), target, pointed_at);
        let is_over_age =
            |message: &Arc<Message>| oldest.is_some_and(|oldest| message.timestamp < oldest);
        let mut room = limits.max_chars;
        for message in &spoken {
            if is_over_age(message) {
                return Some(OmitReason::Age);
            }
            room = room.saturating_sub(least::chars(message, limits));
            if room == 0 {
                return Some(OmitReason::Chars);
            }
        }
        if spoken.len() >= limits.max_msgs {
            return Some(OmitReason::Msgs);
        }
        let first = messages.first().unwrap_or(last);
        is_over_age(first).then_some(OmitReason::Age)
    }
}

/// Why a message is left out, going newest first; `None` if it is shown.
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
