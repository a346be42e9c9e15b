//! The JSON of receipts.

use serde::ser::SerializeMap;

use super::fields::{SWITCH, parsed};
use super::{Fields, Form, FormError, Object, SOURCES, TEXT, TIME, TURN, Time, id, ids};
use crate::model::StoredReceipt;

impl Form for StoredReceipt {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        object.field("turn", self.turn.to_string())?;
        object.field("scope", self.scope.to_string())?;
        object.maybe("guild", self.guild)?;
        object.field("channel", self.channel)?;
        object.field("owner", self.owner)?;
        object.field("is_private", self.is_private)?;
        object.maybe("trigger", self.trigger)?;
        object.field("messages", &self.messages)?;
        object.field("at", Time(self.at))?;
        object.list("sources", &self.sources)?;
        object.field("body", &self.body)
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
