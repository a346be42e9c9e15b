//! Events of Discord's that could not be read, or only in part.

use super::Dispatcher;
use crate::telemetry::Ids;
use crate::telemetry::event::{ReadFailure, UnreadableInput};
use clew_context::model::Message;
use clew_discord::event::UnreadableEvent;

impl Dispatcher {
    pub(super) fn unreadable(&self, lost: UnreadableEvent) {
        let of_channel = |channel| self.services.guild_state.guild_of(channel);
        let ids = Ids {
            guild: lost.guild.or_else(|| lost.channel.and_then(of_channel)),
            channel: lost.channel,
            message: lost.message,
            ..Ids::default()
        };
        let unreadable = UnreadableInput {
            what: lost.event,
            reason: ReadFailure::Malformed,
            parts: lost.parts,
        };
        self.services.telemetry.emit(&ids, unreadable);
    }

    /// Reports parts that could not be read, although the rest could.
    pub(super) fn rejected(&self, ids: &Ids, what: &str, parts: Vec<&'static str>) {
        let unreadable = UnreadableInput {
            what: what.to_owned(),
            reason: ReadFailure::Rejected,
            parts,
        };
        self.services.telemetry.emit(ids, unreadable);
    }

    /// Reports the parts of a message that could not be read.
    pub(super) fn tell_unread(&self, message: &Message, what: &str) {
        let extras = message.extras.as_ref();
        if let Some(extras) = extras.filter(|extras| !extras.unread.is_empty()) {
            self.rejected(&self.ids(message), what, extras.unread.clone());
        }
    }
}
