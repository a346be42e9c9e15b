//! `get_message`: one message, by id or link.

use std::sync::Arc;

use super::address::Address;
use super::asker::Asker;
use super::reading::shown;
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::model::{BuiltIn, ToolDefinition, ToolParameter};
use clew_context::model::{ChannelId, MessageId};

pub(super) const GET_MESSAGE: Tool = Tool {
    definition: ToolDefinition::built_in(
        BuiltIn::GetMessage,
        "Reads one Discord message. Use it for a message that is linked or named by id.",
        &[
            ToolParameter::required(MESSAGE, "The message's link, or its id."),
            ToolParameter::optional(
                CHANNEL,
                "The id of its channel, if only an id is given and it is not this channel.",
            ),
        ],
    ),
    run: run!(get_message),
    is_kept: true,
};

const MESSAGE: &str = "message";
const CHANNEL: &str = "channel";
/// The longest that a message is shown, in Unicode scalars: with embeds and files some
/// are longer than any text.
const MAX_CHARS: usize = 12_000;

async fn get_message(asker: &Asker<'_>, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let (channel, id) = target(asker, arguments)?;
    asker.must_read(channel)?;
    if id > asker.trigger {
        return Err(ToolError::NotForEverybody);
    }
    let view = asker.view(channel);
    if view.deleted.contains(&id) {
        return Err(ToolError::NotForEverybody);
    }
    let message = if let Some(held) = view.get(id) {
        Arc::clone(held)
    } else {
        let read = asker.reads.message(channel, id).await;
        Arc::new(read.map_err(ToolError::of_read)?)
    };
    Ok(shown(asker, channel, &[message], MAX_CHARS))
}

/// Which message is meant. Links into other servers lead nowhere.
fn target(asker: &Asker<'_>, arguments: &Arguments) -> Result<(ChannelId, MessageId), ToolError> {
    let message = Address::parse(&arguments.required(MESSAGE)?);
    match message.ok_or(ToolError::Argument(MESSAGE))? {
        Address::Id(id) => {
            let channel = match arguments.text(CHANNEL) {
                None => asker.place.channel,
                Some(text) => match Address::parse(&text) {
                    Some(Address::Id(channel)) => ChannelId::new(channel),
                    Some(Address::Link(link)) => link.channel,
                    None => return Err(ToolError::Argument(CHANNEL)),
                },
            };
            Ok((channel, MessageId::new(id)))
        }
        Address::Link(link) => match link.message {
            Some(message) if asker.is_here(link) => Ok((link.channel, message)),
            _ => Err(ToolError::NotForEverybody),
        },
    }
}
