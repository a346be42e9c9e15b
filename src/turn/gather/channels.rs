//! What a turn may know of channels other than its own, for links into them.

use crate::turn::Services;
use crate::turn::roles::answer_place;
use clew_context::collect::{self, OtherChannels};
use clew_context::engine::window::View;
use clew_context::model::{Channel, ChannelId, Readers, TurnRequest};

/// What the gateway told, judged for the readers of one turn's answer.
#[derive(Clone, Copy)]
pub(in crate::turn) struct TurnChannels<'a> {
    /// What the gateway told is there.
    pub services: &'a Services,
    /// The turn whose readers are judged.
    pub request: &'a TurnRequest,
}

impl OtherChannels for TurnChannels<'_> {
    fn channel(&self, id: ChannelId) -> Option<Channel> {
        self.services.guild_state.channel(id)
    }

    fn readers(&self, channel: &Channel) -> Readers {
        let place = answer_place(self.request);
        self.services.guild_state.readers(&place, channel)
    }

    fn may_surely_not_read(&self, channel: ChannelId) -> bool {
        let ours = self.services.guild_state.our_access(channel);
        ours.forbids(|rights| rights.read_history)
    }

    fn view(&self, channel: ChannelId) -> View {
        self.services.window().view(channel)
    }
}

/// Whether links in the question lead to what its asker may read and not everybody else
/// who would read the answer, by what the gateway told: unknown is no.
pub fn is_for_asker_only(services: &Services, request: &TurnRequest) -> bool {
    let others = TurnChannels { services, request };
    collect::is_for_asker_only(&request.trigger, &others)
}
