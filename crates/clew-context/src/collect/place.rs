//! The channel's topic, and its pinned messages unless the window holds them: other people's
//! words like all that is collected, for those who may read the channel. Only in servers.

use std::sync::Arc;

use crate::engine::place::{GatheredPlace, MOST_PINS};
use crate::engine::turn::Collected;
use crate::model::{Message, PlaceContext};

use super::fetch::Fetcher;
use super::source::Source;

pub(super) async fn collect<S: Source>(fetcher: &Fetcher<'_, S>, collected: &mut Collected) {
    let wanted = collected.turn.limits.place_context;
    let turn = &mut collected.turn;
    if wanted == PlaceContext::Off || turn.guild().is_none() || !turn.asker_access.may_read() {
        return;
    }
    if turn.channel.is_none() {
        turn.channel = fetcher.channel(turn.channel_id()).await;
    }
    let topic = turn.channel.as_ref().map(|channel| channel.topic.clone());
    let (pins, fetched) = match &turn.view.pins {
        _ if wanted == PlaceContext::Topic => (Vec::new(), false),
        Some(held) => (held.clone(), false),
        None => fetched(fetcher, collected).await,
    };
    collected.place = GatheredPlace {
        topic: topic.unwrap_or_default(),
        pins,
        fetched,
    };
}

/// The pins that are still there, and whether the window may keep them: one that is gone leaves
/// room for another only once Discord knows that, too.
async fn fetched<S: Source>(
    fetcher: &Fetcher<'_, S>,
    collected: &Collected,
) -> (Vec<Arc<Message>>, bool) {
    let turn = &collected.turn;
    let Some(pins) = fetcher.pins(turn.channel_id(), MOST_PINS).await else {
        return (Vec::new(), false);
    };
    let is_there = |message: &Message| !turn.view.deleted.contains(&message.id);
    let are_all = pins.len() < MOST_PINS || pins.iter().all(is_there);
    let pins = pins.into_iter().filter(is_there).take(MOST_PINS);
    (pins.map(Arc::new).collect(), are_all)
}
