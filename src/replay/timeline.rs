//! All channels' messages as one, in the order in which they were posted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::archive::{ArchiveError, World};
use clew_context::model::{Channel, Message};

/// A message passes by.
pub(super) struct Event<'a> {
    /// Where.
    pub(super) channel: &'a Channel,
    /// It is the channel's first.
    pub(super) first: bool,
    /// The message; it carries no other.
    pub(super) message: Message,
}

/// Every message of every channel that the bot sees, by id. One message is in
/// memory at a time, however many channels there are.
pub(super) fn timeline(world: &World) -> impl Iterator<Item = Result<Event<'_>, ArchiveError>> {
    let seen = world.channels().filter(|channel| !world.hidden(channel.id));
    let mut channels: Vec<_> = seen
        .map(|channel| (channel, world.ids(channel.id)))
        .collect();
    let mut next = BinaryHeap::with_capacity(channels.len());
    for (index, (_, ids)) in channels.iter_mut().enumerate() {
        if let Some(id) = ids.next() {
            next.push(Reverse((id, index, true)));
        }
    }
    std::iter::from_fn(move || {
        loop {
            let Reverse((id, index, first)) = next.pop()?;
            let (channel, ids) = channels.get_mut(index)?;
            if let Some(following) = ids.next() {
                next.push(Reverse((following, index, false)));
            }
            match world.message(channel.id, id) {
                Ok(Some(message)) => {
                    return Some(Ok(Event {
                        channel,
                        first,
                        message,
                    }));
                }
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    })
}
