//! Confirms that what a prompt takes from the stores still stands on Discord.

use crate::memory::{Confirming, DiscordChange, Fetched};
use crate::turn::background::Background;
use crate::turn::{Services, Turn};
use clew_context::engine::turn::{Collected, MessageRange};
use clew_context::model::{ChannelId, Message, MessageId};

/// Beside the collectors: asks for rows of the prompt that lie before a gap. Those of this
/// channel wait for the collectors if these read its pages, as do those that are at hand.
pub(super) async fn beside(
    turn: &Turn<'_>,
    background: &mut Background,
    reads_pages: bool,
    confirming: &mut Confirming<'_>,
) {
    let trigger = turn.trigger();
    let is_at_hand = |channel, id| {
        let referenced = trigger.referenced_message();
        let is_it = referenced.is_some_and(|one| (one.channel, one.id) == (channel, id));
        is_it || turn.services.window().message(channel, id).is_some()
    };
    let is_meant =
        |(channel, id)| channel != trigger.channel || !(reads_pages || is_at_hand(channel, id));
    let (rows, recalled) = background.rows_and_recalled();
    let memory = &turn.services.memory;
    // Boxed to keep the future of a turn small.
    Box::pin(memory.confirm(rows, recalled, is_meant, confirming)).await;
}

/// After the collectors: confirms rows by what these saw, asks for those that are left, and
/// leaves out what is not confirmed then.
pub(super) async fn after(
    turn: &Turn<'_>,
    background: Option<&mut Background>,
    collected: &Collected,
    mut confirming: Confirming<'_>,
) {
    let Services { memory, .. } = turn.services;
    let update = &collected.window_update;
    let page = update.pages.as_ref().map(|pages| fetched(turn, pages));
    let Some(background) = background else {
        if let Some(page) = page {
            memory.reconcile(DiscordChange::Fetched(page));
        }
        return;
    };
    let (rows, recalled) = background.rows_and_recalled();
    if let Some(page) = page {
        confirming.says(memory.fetched(page, rows));
    }
    let here = turn.trigger().channel;
    let found = |channel: ChannelId, id: MessageId| -> Option<&Message> {
        let held = collected.turn.view.get(id).filter(|_| channel == here);
        let mut single = update.single.iter();
        let fetched = single.find(|(of, message)| (*of, message.id) == (channel, id));
        let found = held.or(fetched.map(|(_, message)| message));
        found.map(|message| &**message)
    };
    memory.confirmed(rows, found, &mut confirming);
    Box::pin(memory.confirm(rows, recalled, |_| true, &mut confirming)).await;
    let says = memory.leave_out_rest(&turn.ids, rows, confirming);
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
