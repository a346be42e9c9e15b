//! What stored texts were made from elsewhere: which of them may be shown.

use std::collections::HashMap;

use clew_context::model::{ChannelId, ContentSource, Readers};

/// Keeps what was made only from what everybody who will read the answer may read. To
/// judge a channel takes up to some milliseconds, so each is judged once.
pub fn retain_readable<T>(
    items: &mut Vec<T>,
    sources_of: impl Fn(&T) -> &[ContentSource],
    readers: impl Fn(ChannelId) -> Readers,
) {
    let mut judged = HashMap::new();
    let mut may_read = |source: &ContentSource| {
        let channel = source.channel;
        let known = judged.entry(channel);
        *known.or_insert_with(|| readers(channel) == Readers::Everybody)
    };
    items.retain(|item| sources_of(item).iter().all(&mut may_read));
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
        retain_readable(&mut rows, |(_, sources)| sources, readers);
        let kept: Vec<usize> = rows.into_iter().map(|(at, _)| at).collect();
        assert_eq!(kept, [0, 1, 5]);
        assert_eq!(*judged.borrow(), [2, 3, 4]);
    }
}
