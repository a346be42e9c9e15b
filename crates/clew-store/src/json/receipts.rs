//! The JSON of receipts.

use serde::Serialize;

use super::fields::{SWITCH, parsed};
use super::{Fields, FormError, SOURCES, TEXT, TIME, TURN, Time, id, ids};
use crate::model::StoredReceipt;
use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, UserId};

#[derive(Serialize)]
pub(super) struct ReceiptForm<'a> {
    turn: String,
    scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    guild: Option<GuildId>,
    channel: ChannelId,
    owner: UserId,
    is_private: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<MessageId>,
    messages: &'a [MessageId],
    at: Time,
    #[serde(skip_serializing_if = "<[ContentSource]>::is_empty")]
    sources: &'a [ContentSource],
    body: &'a str,
}

impl<'a> ReceiptForm<'a> {
    pub(super) fn of(receipt: &'a StoredReceipt) -> Self {
        Self {
            turn: receipt.turn.to_string(),
            scope: receipt.scope.to_string(),
            guild: receipt.guild,
            channel: receipt.channel,
            owner: receipt.owner,
            is_private: receipt.is_private,
            trigger: receipt.trigger,
            messages: &receipt.messages,
            at: Time(receipt.at),
            sources: &receipt.sources,
            body: &receipt.body,
        }
    }
}

pub(super) fn read_receipt_fields(fields: &Fields) -> Result<StoredReceipt, FormError> {
    Ok(StoredReceipt {
        turn: fields.need("turn", TURN)?,
        scope: fields.need("scope", parsed("the key of a conversation"))?,
        guild: fields.maybe("guild", id())?,
        channel: fields.need("channel", id())?,
        owner: fields.need("owner", id())?,
        is_private: fields.need("is_private", SWITCH)?,
        trigger: fields.maybe("trigger", id())?,
        messages: fields.maybe("messages", ids())?.unwrap_or_default(),
        at: fields.need("at", TIME)?,
        sources: fields.maybe("sources", SOURCES)?.unwrap_or_default(),
        body: fields.need("body", TEXT)?,
    })
}
