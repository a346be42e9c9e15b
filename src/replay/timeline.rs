//! The messages of all channels in one sequence, in the order of posting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::archive::{ArchiveError, Messages, Recording};
use clew_context::model::{Channel, Message};

/// A message in its turn.
pub struct TimelineEvent<'a> {
    pub channel: &'a Channel,
    /// Whether it is the channel's first.
    pub first: bool,
    /// The message, without the one that it refers to.
    pub message: Message,
}

/// Every message of every channel that the bot can see, by id. A read window per
/// channel is in memory at a time: 16 MiB together, or 4 KiB each if that is more.
pub fn timeline(
    recording: &Recording,
) -> impl Iterator<Item = Result<TimelineEvent<'_>, ArchiveError>> {
    let seen = recording
        .channels()
        .filter(|channel| !recording.hidden(channel.id));
    let mut channels: Vec<(&Channel, Messages<'_>)> = seen
        .map(|channel| (channel, recording.messages(channel.id)))
        .collect();
    let mut next = BinaryHeap::with_capacity(channels.len());
    for (index, (_, messages)) in channels.iter().enumerate() {
        next.extend(messages.next_id().map(|id| Reverse((id, index, true))));
    }
    std::iter::from_fn(move || {
        let Reverse((_, index, first)) = next.pop()?;
        let (channel, messages) = channels.get_mut(index)?;
        let message = messages.next()?;
        next.extend(messages.next_id().map(|id| Reverse((id, index, false))));
        Some(message.map(|message| TimelineEvent {
            channel,
            first,
            message,
        }))
    })
}
