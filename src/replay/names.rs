//! The names a recording knows.

use crate::archive::World;
use clew_context::engine::render::Directory;
use clew_context::model::{ChannelId, RoleId, UserId};

/// Names of who wrote or was mentioned, and of recorded channels. Recordings
/// name no roles.
pub(super) struct Names<'a>(pub(super) &'a World);

impl Directory for Names<'_> {
    fn user(&self, id: UserId) -> Option<String> {
        let known = self.0.participant(id)?;
        Some(known.name.to_string())
    }

    fn role(&self, _: RoleId) -> Option<String> {
        None
    }

    fn channel(&self, id: ChannelId) -> Option<String> {
        let known = self.0.channel(id)?;
        Some(known.name.clone())
    }
}
