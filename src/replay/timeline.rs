//! All channels' messages as one, in the order in which they were posted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::archive::{ArchiveError, Messages, World};
use clew_context::model::{Channel, Message};

/// A message passes by.
pub struct Event<'a> {
    /// Where.
    pub channel: &'a Channel,
    /// It is the channel's first.
    pub first: bool,
    /// The message; it carries no other.
    pub message: Message,
}

/// Every message of every channel that the bot sees, by id. A window of each
/// channel is in memory at a time, together 16 MiB or 4 KiB each.
pub fn timeline(world: &World) -> impl Iterator<Item = Result<Event<'_>, ArchiveError>> {
    let seen = world.channels().filter(|channel| !world.hidden(channel.id));
    let mut channels: Vec<(&Channel, Messages<'_>)> = seen
        .map(|channel| (channel, world.messages(channel.id)))
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
        Some(message.map(|message| Event {
            channel,
            first,
            message,
        }))
    })
}
