//! What a turn may know of channels other than its own, for links into them.

use crate::turn::Turn;
use clew_context::collect::OtherChannels;
use clew_context::engine::window::View;
use clew_context::model::{Channel, ChannelId, Readers};

/// What the gateway told, judged for the readers of one turn's answer.
pub(super) struct TurnChannels<'a>(pub(super) &'a Turn<'a>);

impl OtherChannels for TurnChannels<'_> {
    fn channel(&self, id: ChannelId) -> Option<Channel> {
        self.0.services.guild_state.channel(id)
    }

    fn readers(&self, channel: &Channel) -> Readers {
        self.0.readers_of(channel)
    }

    fn may_surely_not_read(&self, channel: ChannelId) -> bool {
        let ours = self.0.services.guild_state.our_access(channel);
        ours.forbids(|rights| rights.read_history)
    }

    fn view(&self, channel: ChannelId) -> View {
        self.0.services.window().view(channel)
    }
}
