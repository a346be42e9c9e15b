//! Messages as tools show them: one after the other, each with its id and mark, and what they
//! were made from.

use std::fmt::Write as _;
use std::sync::Arc;

use super::asker::Asker;
use super::result::ToolOutput;
use crate::engine::citations::{mark, without_marks};
use clew_context::engine::frame;
use clew_context::engine::render::Renderer;
use clew_context::model::{BlockPlace, ChannelId, ContentSource, Marker, Message};

/// Shows messages of a channel that the asker may read, under its name. `max_chars` is
/// the longest that one may be.
pub(super) fn shown(
    asker: &Asker<'_>,
    channel: ChannelId,
    messages: &[Arc<Message>],
    max_chars: usize,
) -> ToolOutput {
    let mut renderer = Renderer::new(asker.us, asker.names);
    renderer.meet(messages.iter().map(AsRef::as_ref));
    let mut text = String::new();
    if let Some(name) = asker.names.channel(channel) {
        let name = clew_context::engine::sanitise::name(&name);
        let _ = writeln!(text, "#{}", without_marks(&name));
    }
    for message in messages {
        let (id, date) = (message.id, message.timestamp.date());
        if message.withheld {
            let marker = Marker::Withheld(1, BlockPlace::History);
            let _ = writeln!(text, "{id} {date} {}", frame::marker_line(marker));
            continue;
        }
        let item = renderer.item(Arc::clone(message), BlockPlace::History, max_chars);
        let said = without_marks(&format!("{}{}", frame::header(&item), item.text));
        let _ = writeln!(text, "{id} {} {date} {said}", mark(id));
    }
    // A message as what the result was made from.
    let source = |message: &Arc<Message>| ContentSource {
        guild: asker.guild(),
        channel,
        message: Some(message.id),
        author: (!message.withheld).then_some(message.author.id),
    };
    ToolOutput {
        content: text.into_bytes(),
        sources: messages.iter().map(source).collect(),
        ..ToolOutput::default()
    }
}
