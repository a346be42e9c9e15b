//! What stored texts were made from elsewhere: which of them may be shown, and what an
//! answer takes over from those that its prompt shows.

use std::collections::{BTreeSet, HashMap};

use clew_context::model::{ChannelId, ContentSource, GuildId, Readers};
use clew_store::model::StoredMessage;

/// The most messages elsewhere that an answer takes over from earlier ones; of further
/// ones only the channel and the author. It is stored with each row.
const MAX_MESSAGES: usize = 100;
/// The most channels with an author that it takes over. What would bring more is not shown.
const MAX_PLACES: usize = 200;

/// The most channels that are judged at once: to judge one takes up to some milliseconds.
const MAX_JUDGED: usize = 64;

/// Keeps what stands where, and was made only from what, everybody who will read the answer
/// may read. Each channel is judged once, for the last items first; what needs more than 64
/// is not kept.
pub fn retain_readable<T>(
    items: &mut Vec<T>,
    place_of: impl Fn(&T) -> Option<ChannelId>,
    sources_of: impl Fn(&T) -> &[ContentSource],
    readers: impl Fn(ChannelId) -> Readers,
) {
    let mut judged = HashMap::new();
    let mut may_read = |channel: ChannelId| {
        let has_room = judged.len() < MAX_JUDGED;
        let known = judged.entry(channel);
        *known.or_insert_with(|| has_room && readers(channel) == Readers::Everybody)
    };
    let kept = items.iter().rev().map(|item| {
        let sources = sources_of(item).iter().map(|source| source.channel);
        place_of(item).into_iter().chain(sources).all(&mut may_read)
    });
    let kept: Vec<bool> = kept.collect();
    let mut kept = kept.into_iter().rev();
    items.retain(|_| kept.next() == Some(true));
}

/// Where a row stands, if that is for the server to judge: a conversation that follows its
/// user (`CONTEXT_SCOPE=user`) has rows of other channels. That it follows them to other
/// servers and out of direct messages is the operator's choice.
pub fn place_of(row: &StoredMessage, guild: Option<GuildId>) -> Option<ChannelId> {
    (row.guild.is_some() && row.guild == guild).then_some(row.channel)
}

/// What an answer is made from elsewhere because earlier texts in its prompt are: it may
/// say again what they say.
#[derive(Debug, Clone)]
pub struct Inherited {
    /// The channel of the answer.
    here: ChannelId,
    messages: BTreeSet<ContentSource>,
    places: BTreeSet<ContentSource>,
}

impl Inherited {
    /// Nothing yet, for an answer in this channel.
    pub const fn new(here: ChannelId) -> Self {
        Self {
            here,
            messages: BTreeSet::new(),
            places: BTreeSet::new(),
        }
    }

    /// Leaves in a prompt the newest of the rows whose sources an answer can carry, and
    /// takes these over.
    pub fn take_rows(&mut self, rows: &mut Vec<StoredMessage>) {
        rows.reverse();
        rows.retain(|row| self.take(row.sources.iter().copied()));
        rows.reverse();
    }

    /// Takes over the sources of a text, all or none. Returns whether it did.
    pub fn take(&mut self, sources: impl IntoIterator<Item = ContentSource>) -> bool {
        let (mut messages, mut places) = (BTreeSet::new(), BTreeSet::new());
        let room = MAX_MESSAGES - self.messages.len();
        for source in elsewhere(sources, self.here) {
            if self.messages.contains(&source) {
                continue;
            }
            if source.message.is_some() && messages.len() < room {
                messages.insert(source);
            } else if !self.places.contains(&source.without_message()) {
                places.insert(source.without_message());
            }
        }
        let fits = self.places.len() + places.len() <= MAX_PLACES;
        if fits {
            self.messages.append(&mut messages);
            self.places.append(&mut places);
        }
        fits
    }

    pub fn sources(&self) -> impl Iterator<Item = ContentSource> {
        self.messages.iter().chain(&self.places).copied()
    }
}

/// Those in other channels than this one.
pub fn elsewhere(
    sources: impl IntoIterator<Item = ContentSource>,
    here: ChannelId,
) -> impl Iterator<Item = ContentSource> {
    let sources = sources.into_iter();
    sources.filter(move |source| source.channel != here)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use clew_context::model::{GuildId, MessageId, UserId};

    fn source(channel: u64, message: u64) -> ContentSource {
        ContentSource {
            guild: Some(GuildId::new(1)),
            channel: ChannelId::new(channel),
            message: Some(MessageId::new(message)),
            author: Some(UserId::new(5)),
        }
    }

    #[test]
    fn what_is_made_from_many_messages_costs_one_judgement_a_channel() {
        let row = |channels: &[u64]| -> Vec<ContentSource> {
            let messages = channels
                .iter()
                .flat_map(|channel| (1..=300).map(|id| (*channel, id)));
            messages.map(|(channel, id)| source(channel, id)).collect()
        };
        let rows = [
            row(&[2]),
            row(&[]),
            row(&[2, 3]),
            row(&[4]),
            row(&[3, 2]),
            row(&[2]),
        ];
        let judged = RefCell::new(Vec::new());
        let readers = |channel: ChannelId| {
            judged.borrow_mut().push(channel.get());
            match channel.get() {
                2 => Readers::Everybody,
                3 => Readers::AskerOnly,
                _ => Readers::Nobody,
            }
        };
        let mut rows: Vec<(usize, Vec<ContentSource>)> = rows.into_iter().enumerate().collect();
        retain_readable(&mut rows, |_| None, |(_, sources)| sources, readers);
        let kept: Vec<usize> = rows.into_iter().map(|(at, _)| at).collect();
        assert_eq!(kept, [0, 1, 5]);
        assert_eq!(*judged.borrow(), [2, 3, 4]);
    }

    #[test]
    fn so_many_channels_are_judged_and_for_the_newest() {
        let mut rows: Vec<Vec<ContentSource>> = (1..=70).map(|id| vec![source(id, id)]).collect();
        retain_readable(&mut rows, |_| None, Vec::as_slice, |_| Readers::Everybody);
        let kept = rows.iter().flatten().map(|source| source.channel.get());
        assert!(kept.eq(7..=70), "{rows:?}");
    }

    fn of(author: u64, source: ContentSource) -> ContentSource {
        ContentSource {
            author: Some(UserId::new(author)),
            ..source
        }
    }

    #[test]
    fn an_answer_takes_over_messages_first_and_then_channels_with_authors() {
        let mut inherited = Inherited::new(ChannelId::new(9));
        assert!(inherited.take((1..=60).map(|id| source(2, id))));
        assert!(inherited.take((41..=120).map(|id| source(2, id))));
        assert!(inherited.take((1..=50).map(|id| source(9, id))), "its own");
        let taken: Vec<ContentSource> = inherited.sources().collect();
        let mut expected: Vec<ContentSource> = (1..=100).map(|id| source(2, id)).collect();
        expected.push(source(2, 1).without_message());
        assert_eq!(taken, expected);
        // Two hundred fit, and what brings one more leaves no trace.
        assert!(inherited.take((101..300).map(|id| of(id, source(3, id)))));
        assert!(!inherited.take([source(2, 7), of(5, source(4, 1))]));
        assert!(inherited.take([source(2, 500), of(120, source(3, 9))]));
        assert_eq!(inherited.sources().count(), 300);
    }
}
