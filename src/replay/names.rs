//! The names that a recording knows in the trigger's server.

use crate::archive::Recording;
use clew_context::engine::render::Directory;
use clew_context::model::{ChannelId, GuildId, RoleId, UserId};

/// The names of those who wrote or were mentioned, and of channels of one
/// server that are recorded and not hidden. Recordings do not name roles.
pub(super) struct RecordedNames<'a> {
    pub(super) recording: &'a Recording,
    /// None in direct messages.
    pub(super) guild: Option<GuildId>,
}

impl Directory for RecordedNames<'_> {
    fn user(&self, id: UserId) -> Option<String> {
        let known = self.recording.participant(id)?;
        Some(known.name.to_string())
    }

    fn role(&self, _: RoleId) -> Option<String> {
        None
    }

    fn channel(&self, id: ChannelId) -> Option<String> {
        let guild = self.guild?;
        let known = self.recording.channel(id)?;
        let is_told = known.guild == Some(guild) && !self.recording.hidden(id);
        is_told.then(|| known.name.clone())
    }
}
