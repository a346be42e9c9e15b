//! What was written in a channel or thread since somebody last wrote there: its pages, newest
//! first, until that message.

use std::sync::Arc;

use tokio::time::Instant;

use super::super::CommandServices;
use super::super::call::Call;
use super::super::done::Stop;
use crate::engine::catch_up::{self, Backlog, Reader, Said, Since};
use crate::memory::UnderWay;
use crate::telemetry::with_sources;
use clew_context::collect::{PAGE_LIMIT, PageCursor};
use clew_context::engine::render::Nobody;
use clew_context::model::{ChannelId, ContentSource, GuildId, Message, MessageId, TurnId};
use clew_context::outside::blocking;

/// The most pages of [`PAGE_LIMIT`] messages.
const MAX_PAGES: usize = 20;
const UNREAD: &str = "I can't read that channel now.";

/// What was written since then, by people who have not opted out.
pub(super) struct Missed<'a> {
    services: &'a CommandServices<'a>,
    guild: Option<GuildId>,
    /// Keeps what is noted of deletions and edits from here on.
    under_way: UnderWay,
    channel: ChannelId,
    /// Oldest first.
    pub(super) messages: Vec<Arc<Message>>,
    /// The same, for the model.
    pub(super) said: Vec<Said>,
    /// There are older ones that were not read.
    pub(super) is_cut: bool,
}

impl Missed<'_> {
    /// Whether a message still says what was read, and its author still has not opted out.
    pub(super) fn stands(&self, at: usize) -> bool {
        let Some(message) = self.messages.get(at) else {
            return false;
        };
        let source = ContentSource {
            guild: self.guild,
            channel: self.channel,
            message: Some(message.id),
            author: Some(message.author.id),
        };
        let memory = self.services.memory;
        !memory.opted_out(message.author.id)
            && !memory.noted().after(self.under_way.since).changed(&source)
    }
}

/// Reads it; no page after one that fails.
pub(super) async fn missed<'a>(
    services: &'a CommandServices<'a>,
    call: &Call,
    (channel, since): (ChannelId, Since),
    reader: Reader,
    deadline: Instant,
) -> Result<Missed<'a>, Stop> {
    let under_way = services
        .memory
        .noted()
        .begins(Some(TurnId(call.interaction.id.get())));
    let rest = services.rest.reader();
    let mut before = MessageId::new(call.interaction.id.get());
    let (mut backlog, mut is_cut) = (Backlog::default(), true);
    for page in 0..MAX_PAGES {
        let read = rest
            .page(channel, PageCursor::Before(before), PAGE_LIMIT, deadline)
            .await;
        let read = match read {
            Ok(read) => read,
            Err(error) if page == 0 => {
                tracing::info!(error = %with_sources(&error), "a channel could not be read");
                return Err(Stop::refused(UNREAD));
            }
            Err(_) => break,
        };
        let Some(oldest) = backlog.take(read, |message| since.wants(message, reader.user)) else {
            is_cut = false;
            break;
        };
        before = oldest;
    }
    let opted_out = services.opt_outs.current();
    let spoken = |mut message: Message| {
        opted_out.withhold(&mut message);
        let is_said = !message.withheld && services.us.rejects(&message).is_none();
        is_said.then(|| Arc::new(message))
    };
    let [mut messages, mut missed] = [backlog.earlier, backlog.missed].map(|newest_first| {
        let oldest_first = newest_first.into_iter().rev();
        oldest_first.filter_map(spoken).collect::<Vec<_>>()
    });
    let earlier = messages.len();
    messages.append(&mut missed);
    let us = services.us.clone();
    // Grouping so many takes a while.
    let group = move || {
        let said = catch_up::said(&us, &Nobody, &messages, earlier, &reader);
        (said, messages.split_off(earlier))
    };
    let grouped = blocking(group).await;
    let (said, messages) = grouped.map_err(|_| Stop::refused(UNREAD))?;
    Ok(Missed {
        services,
        guild: call.guild(),
        under_way,
        channel,
        messages,
        said,
        is_cut,
    })
}
