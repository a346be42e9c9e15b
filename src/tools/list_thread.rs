//! `list_thread`: the messages of a thread or channel, page by page.

use std::sync::Arc;

use super::address::Address;
use super::asker::Asker;
use super::reading::shown;
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::model::{BuiltIn, ToolDefinition, ToolParameter};
use clew_context::collect::PageCursor;
use clew_context::model::{ChannelId, Message, MessageId};

pub(super) const LIST_THREAD: Tool = Tool {
    definition: ToolDefinition::built_in(
        BuiltIn::ListThread,
        "Reads the newest messages of a Discord thread or channel, 25 at a time, oldest \
                first. Each line begins with the message's id.",
        &[
            TARGET,
            ToolParameter::optional(BEFORE, "The id of a message: reads those right before it."),
        ],
    ),
    run: run!(list_thread),
    is_kept: true,
};

/// What [`target`] reads.
pub(super) const TARGET: ToolParameter = ToolParameter::optional(
    THREAD,
    "The thread or channel: its name as shown (`#name`), its id, or a link to it; this one \
            if left out.",
);
const THREAD: &str = "thread";
const BEFORE: &str = "before";
/// Messages of one page.
const PAGE: usize = 25;

async fn list_thread(asker: &Asker<'_>, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let channel = target(asker, arguments)?;
    let before = match arguments.text(BEFORE).as_deref().map(Address::parse) {
        None => asker.trigger,
        Some(Some(Address::Id(id))) => MessageId::new(id).min(asker.trigger),
        Some(_) => return Err(ToolError::Argument(BEFORE)),
    };
    asker.must_read(channel)?;
    let page = asker
        .reads
        .page(channel, PageCursor::Before(before), PAGE)
        .await;
    let page = page.map_err(ToolError::of_read)?;
    let mut messages: Vec<Arc<Message>> = page.messages.into_iter().map(Arc::new).collect();
    messages.sort_by_key(|message| message.id);
    let mut output = shown(asker, channel, &messages, asker.max_message_chars);
    let more = match messages.first() {
        None => "(there are no messages)\n".to_owned(),
        Some(_) if page.complete => "(there are no older messages)\n".to_owned(),
        Some(oldest) => format!("(older messages: `before` {})\n", oldest.id),
    };
    output.content.extend_from_slice(more.as_bytes());
    Ok(output)
}

/// Which channel is meant. Links into other servers lead nowhere.
pub(super) fn target(asker: &Asker<'_>, arguments: &Arguments) -> Result<ChannelId, ToolError> {
    let Some(text) = arguments.text(THREAD) else {
        return Ok(asker.place.channel);
    };
    match Address::parse(&text) {
        Some(Address::Id(id)) => Ok(ChannelId::new(id)),
        Some(Address::Link(link)) if asker.is_here(link) => Ok(link.channel),
        Some(Address::Link(_)) => Err(ToolError::NotForEverybody),
        None => asker.named(&text).ok_or(ToolError::NotForEverybody),
    }
}
