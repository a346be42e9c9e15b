//! What is shown of a channel's last messages, or of a thread: those of the asker's
//! conversation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::{Pick, Selection, Selector};
use crate::engine::conversation::choose::{Candidate, Rule, choose, ranked, wanted};
use crate::engine::conversation::{MOST_MESSAGES, Reply, Utterance, Verdict, judge};
use crate::engine::eligible::Us;
use crate::model::{BlockPlace, Message, MessageId, OmitReason, UserId};

impl Selector<'_> {
    /// Selects of the messages before the trigger, oldest first, those that belong to its
    /// conversation, within `LONE_MAX_CHARS` and `MEM_MAX_MSGS`.
    pub(super) fn conversation(self, messages: &[Arc<Message>]) -> Selection {
        let mut selection = Selection {
            max_chars: Some(self.limits.lone_max_chars),
            unmarked: true,
            ..Selection::default()
        };
        let mut spoken: Vec<&Arc<Message>> = Vec::new();
        for message in messages.iter().filter(|one| one.id < self.trigger.id) {
            match self.us.rejects(message) {
                Some(reason) => selection.omit(message.id, reason),
                None => spoken.push(message),
            }
        }
        let spoken = &spoken[spoken.len().saturating_sub(MOST_MESSAGES - 1)..];
        let verdicts = self.verdicts(spoken);
        let (ranks, over) = self.chosen(spoken, &verdicts);
        for (index, (message, verdict)) in spoken.iter().zip(&verdicts).enumerate() {
            if let Some(rank) = ranks.get(&index) {
                let place = BlockPlace::Conversation(verdict.tie);
                selection
                    .picks
                    .push(Pick::new(message, place, false, *rank));
            } else {
                let cap = over.get(&index).copied();
                selection.omit(message.id, cap.unwrap_or(OmitReason::OtherConversation));
            }
        }
        selection.omitted.sort_by_key(|omitted| omitted.id);
        selection
    }

    /// The ranks of those chosen, by index, the surest one's the highest; and of those that would
    /// be if there was room, the cap that they exceed.
    fn chosen(
        self,
        spoken: &[&Arc<Message>],
        verdicts: &[Verdict],
    ) -> (HashMap<usize, usize>, HashMap<usize, OmitReason>) {
        let Self {
            us,
            trigger,
            limits,
        } = self;
        let candidates = verdicts.iter().zip(spoken);
        let candidates: Vec<Candidate<'_>> = candidates
            .map(|(verdict, message)| Candidate {
                verdict: *verdict,
                // A longer one is shortened.
                chars: self.chars(message).min(limits.lone_max_chars / 2),
                speaker: us.speaker(message),
            })
            .collect();
        let (asker, rule) = (us.speaker(trigger), Rule::default());
        let mut chosen = choose(&candidates, asker, limits.lone_max_chars, rule);
        let over_msgs = chosen.split_off(limits.max_msgs.min(chosen.len()));
        let over_chars = wanted(&candidates, asker, rule).into_iter();
        let over = over_chars.map(|index| (index, OmitReason::Chars));
        let over = over.chain(over_msgs.into_iter().map(|index| (index, OmitReason::Msgs)));
        let over = over.collect();
        (chosen.into_iter().rev().zip(0..).collect(), over)
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
