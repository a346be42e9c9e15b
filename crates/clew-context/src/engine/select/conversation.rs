//! What is shown of a channel's last messages, or of a thread: those of the asker's
//! conversation.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{GapMarks, Pick, Selection, Selector};
use crate::engine::conversation::choose::{Candidate, Rule, choose, ranked, wanted};
use crate::engine::conversation::group::group;
use crate::engine::conversation::{
    self, MOST_MESSAGES, Reply, Utterance, Verdict, is_too_long_ago, judge,
};
use crate::engine::eligible::Us;
use crate::model::{BlockPlace, Message, MessageId, OmitReason, Speaker, UserId};

/// Little is said where the last messages that fit took this long.
const QUIET_MS: i64 = 20 * 60 * 1_000;
/// A longer pause counts as this one: after it another conversation may have begun.
const PAUSE_MS: i64 = 3 * 60 * 1_000;

impl Selector<'_> {
    /// Adds to a reply's chain, or to nothing, those of the messages before the trigger, oldest
    /// first, that belong to its conversation, within `LONE_MAX_CHARS` and `MEM_MAX_MSGS` for all.
    pub(super) fn conversation(
        self,
        messages: &[Arc<Message>],
        mut selection: Selection,
    ) -> Selection {
        selection.gaps = GapMarks::None;
        let chain = std::mem::take(&mut selection.picks);
        let told: BTreeSet<MessageId> = selection.omitted.iter().map(|one| one.id).collect();
        let mut spoken: BTreeMap<MessageId, &Arc<Message>> = BTreeMap::new();
        for message in messages.iter().filter(|one| one.id < self.trigger.id) {
            match self.us.rejects(message) {
                Some(_) if told.contains(&message.id) => {}
                Some(reason) => selection.omit(message.id, reason),
                None => drop(spoken.insert(message.id, message)),
            }
        }
        let most = (MOST_MESSAGES - 1).saturating_sub(chain.len());
        while spoken.len() > most {
            spoken.pop_first();
        }
        spoken.extend(chain.iter().map(|pick| (pick.message.id, &pick.message)));
        let spoken: Vec<&Arc<Message>> = spoken.into_values().collect();
        let spoken = &*spoken;
        let shown = chain.iter().map(|pick| pick.message.id).collect();
        let verdicts = self.verdicts(spoken);
        let (ranks, reasons) = self.chosen(spoken, &verdicts, &shown);
        for (index, (message, verdict)) in spoken.iter().zip(&verdicts).enumerate() {
            if shown.contains(&message.id) {
                continue;
            }
            if let Some(rank) = ranks.get(&index) {
                let place = BlockPlace::Conversation(verdict.tie);
                selection
                    .picks
                    .push(Pick::new(message, place, false, *rank));
            } else {
                selection.omit(message.id, reasons[index]);
            }
        }
        selection.omitted.sort_by_key(|omitted| omitted.id);
        // Whatever has to go, the chain goes last.
        let rank = spoken.len();
        let chain = chain.into_iter().map(|pick| Pick { rank, ..pick });
        selection.picks.extend(chain);
        selection.picks.sort_by_key(|pick| pick.message.id);
        selection
    }

    /// Whether an older page is worth its call: the conversation reaches the oldest tenth of what
    /// there is before the trigger.
    pub fn conversation_wants_more(self, messages: &[Arc<Message>]) -> bool {
        let newest_first = self.eligible(messages).take(MOST_MESSAGES - 1);
        let mut spoken: Vec<&Arc<Message>> = newest_first.collect();
        spoken.reverse();
        let (ranks, _) = self.chosen(&spoken, &self.verdicts(&spoken), &BTreeSet::new());
        ranks.keys().any(|index| index * 10 < spoken.len())
    }

    /// The ranks of those chosen, by index, the surest one's the highest; and why each would be
    /// left out. What is shown already belongs for certain.
    fn chosen(
        self,
        spoken: &[&Arc<Message>],
        verdicts: &[Verdict],
        shown: &BTreeSet<MessageId>,
    ) -> (HashMap<usize, usize>, Vec<OmitReason>) {
        let Self {
            us,
            trigger,
            limits,
        } = self;
        let mut room = limits.lone_max_chars;
        let mut candidates: Vec<Candidate<'_>> = Vec::with_capacity(spoken.len());
        for (verdict, message) in verdicts.iter().zip(spoken) {
            let (mut verdict, mut chars) = (*verdict, self.chars(message));
            if shown.contains(&message.id) {
                verdict.belongs = 1.0;
                room = room.saturating_sub(chars);
                chars = 0;
            }
            candidates.push(Candidate {
                verdict,
                // A longer one is shortened.
                chars: chars.min(limits.lone_max_chars / 2),
                speaker: us.speaker(message),
            });
        }
        let asker = us.speaker(trigger);
        let rule = if self.is_quiet(spoken, &candidates) {
            Rule::quiet()
        } else {
            Rule::default()
        };
        let mut chosen = choose(&candidates, asker, room, rule);
        let over_msgs = chosen.split_off(limits.max_msgs.min(chosen.len()));
        let over_chars = wanted(&candidates, asker, rule);
        let elsewhere = if over_chars.is_empty() {
            OmitReason::NewConversation
        } else {
            OmitReason::OtherConversation
        };
        let judged = spoken.iter().zip(verdicts);
        let reasons = judged.map(|(message, verdict)| {
            let is_long_ago = is_too_long_ago(verdict.tie, message.timestamp, trigger.timestamp);
            if is_long_ago {
                OmitReason::LongAgo
            } else {
                elsewhere
            }
        });
        let mut reasons: Vec<OmitReason> = reasons.collect();
        for index in over_chars {
            reasons[index] = OmitReason::LoneChars;
        }
        for index in over_msgs {
            reasons[index] = OmitReason::Msgs;
        }
        (chosen.into_iter().rev().zip(0..).collect(), reasons)
    }

    /// Whether little is said: those of the last messages that fit take long, a long pause
    /// counted as a short one.
    fn is_quiet(self, spoken: &[&Arc<Message>], candidates: &[Candidate<'_>]) -> bool {
        let (mut left, mut next) = (self.limits.lone_max_chars, self.trigger.timestamp);
        let newest_first = spoken.iter().zip(candidates).rev();
        let pauses = newest_first.map_while(|(message, candidate)| {
            left = left.checked_sub(candidate.chars)?;
            let pause = next.since(message.timestamp);
            next = message.timestamp;
            Some(pause.clamp(0, PAUSE_MS))
        });
        pauses.sum::<i64>() >= QUIET_MS
    }

    /// The ranks of the messages before the trigger, oldest first: the more surely one belongs to
    /// its conversation, the higher.
    pub(super) fn ranks(self, spoken: &[&Arc<Message>]) -> HashMap<MessageId, usize> {
        let surest_first = ranked(&self.verdicts(spoken)).into_iter();
        let ids = surest_first.rev().map(|index| spoken[index].id);
        ids.zip(0..).collect()
    }

    /// Whether each of these messages, oldest first, belongs to the trigger's conversation.
    fn verdicts(self, spoken: &[&Arc<Message>]) -> Vec<Verdict> {
        let Self { us, trigger, .. } = self;
        let ids: Vec<MessageId> = spoken.iter().map(|message| message.id).collect();
        let texts: Vec<Cow<'_, str>> = spoken.iter().map(|message| words(us, message)).collect();
        let asked = us.without_address(&trigger.content);
        let before = spoken.iter().zip(&texts);
        let before = before.map(|(message, text)| utterance(us, message, text, &ids));
        let utterances: Vec<Utterance<'_>> = before
            .chain([utterance(us, trigger, asked, &ids)])
            .collect();
        judge(&utterances)
    }
}

/// The conversation of each of these messages, oldest first, as the index of its first one.
pub fn conversations(us: &Us, messages: &[Arc<Message>]) -> Vec<usize> {
    with_utterances(us, messages, group)
}

/// Which of a list of messages, oldest first, name somebody who missed those from the `from`th on.
pub fn naming(
    us: &Us,
    messages: &[Arc<Message>],
    (whom, name): (UserId, &str),
    from: usize,
) -> Vec<bool> {
    let whom = (Speaker::User(whom), name);
    with_utterances(us, messages, |said| conversation::naming(said, whom, from))
}

fn with_utterances<T>(
    us: &Us,
    messages: &[Arc<Message>],
    then: impl FnOnce(&[Utterance<'_>]) -> T,
) -> T {
    let ids: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
    let texts: Vec<Cow<'_, str>> = messages.iter().map(|message| words(us, message)).collect();
    let said = messages.iter().zip(&texts);
    let said: Vec<Utterance<'_>> = said
        .map(|(message, text)| utterance(us, message, text, &ids))
        .collect();
    then(&said)
}

/// Everybody who asks us mentions us, which says nothing about who talks with whom.
fn words<'a>(us: &Us, message: &'a Message) -> Cow<'a, str> {
    if us.mentioned(message) {
        us.without_mentions(&message.content).into()
    } else {
        Cow::Borrowed(&message.content)
    }
}

/// A message as its conversation is judged by it; `ids` are those of the others, ascending.
fn utterance<'a>(us: &Us, message: &'a Message, text: &'a str, ids: &[MessageId]) -> Utterance<'a> {
    Utterance {
        speaker: us.speaker(message),
        name: &message.author.name,
        at: message.timestamp,
        text,
        mentions: mentions(us, message, text),
        reply: match message.replies_to().map(|id| ids.binary_search(&id)) {
            None => Reply::Unknown,
            Some(Ok(index)) => Reply::To(index),
            Some(Err(_)) => Reply::Elsewhere,
        },
    }
}

/// Whom a message mentions, in the order of its text: who is named first is who is addressed.
fn mentions(us: &Us, message: &Message, text: &str) -> Vec<UserId> {
    let pieces = text.split("<@").skip(1);
    let typed = pieces.filter_map(|piece| {
        let (id, _) = piece.trim_start_matches('!').split_once('>')?;
        id.parse().ok()
    });
    let mut places: HashMap<u64, usize> = HashMap::new();
    for (place, id) in typed.enumerate() {
        places.entry(id).or_insert(place);
    }
    let ids = message.mentions.iter().map(|mention| mention.id);
    let mut ids: Vec<UserId> = ids.filter(|id| *id != us.user).collect();
    // A reply's ping is not in the text.
    ids.sort_by_key(|id| places.get(&id.get()).copied().unwrap_or(usize::MAX));
    ids
}
