//! Confirms that what a prompt takes from the stores still stands on Discord.

use tokio::time::Instant;

use super::background::Background;
use crate::memory::{DiscordChange, Fetched, Words};
use crate::turn::{Services, Turn};
use clew_context::engine::turn::{Collected, MessageRange};
use clew_context::model::{ChannelId, MessageId};

/// Confirms rows of the prompt by what the collectors saw; for those that lie before a
/// gap, asks Discord until `deadline`.
pub(super) async fn confirm(
    turn: &Turn<'_>,
    mut background: Option<&mut Background>,
    collected: &Collected,
    deadline: Instant,
) {
    let Services { memory, rest, .. } = turn.services;
    let update = &collected.window_update;
    let mut says = Words::new();
    if let Some(pages) = &update.pages {
        let page = fetched(turn, pages);
        let edited = page.edited.iter();
        says.extend(edited.map(|edit| ((page.channel, edit.message), edit.at)));
        if let Some(background) = &mut background {
            memory.look_through(&page, &mut background.rows);
        }
        memory.reconcile(DiscordChange::Fetched(page));
    }
    let Some(background) = background else {
        return;
    };
    let (rows, recalled) = background.rows_and_recalled();
    let here = turn.trigger().channel;
    let found = |channel: ChannelId, id: MessageId| {
        let held = collected.turn.view.get(id).filter(|_| channel == here);
        let mut single = update.single.iter();
        let fetched = single.find(|(of, message)| (*of, message.id) == (channel, id));
        let found = held.or(fetched.map(|(_, message)| message));
        found.map(|message| &**message)
    };
    let edit_of = |message: &_| turn.services.edit_of(message);
    says.extend(memory.confirmed(rows, found, &edit_of));
    // Boxed to keep the future of a turn small.
    let confirming = Box::pin(memory.confirm(&turn.ids, rows, recalled, rest, &edit_of, deadline));
    says.extend(confirming.await);
    background.confirmed(memory, &says);
}

/// What a page shows to have been edited while we were away, and what may have been
/// deleted.
fn fetched(turn: &Turn<'_>, pages: &MessageRange) -> Fetched {
    let edited = pages.messages.iter().filter(|one| one.edited.is_some());
    let ids = pages.messages.iter().map(|one| one.id);
    Fetched {
        at: turn.started_at,
        guild: turn.ids.guild,
        channel: pages.channel,
        from: pages.from,
        to: pages.to,
        present: ids.collect(),
        edited: edited
            .filter_map(|one| turn.services.edit_of(one))
            .collect(),
    }
}
