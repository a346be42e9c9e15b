//! People talking at a steady pace, until about now.

use clew_simulator::{Draft, Id, World};

/// A conversation that began some time ago.
pub(super) struct DemoTalk {
    channel: Id,
    next_ms: i64,
    step_ms: i64,
}

impl DemoTalk {
    /// Begins `minutes` ago, with a message every `step_s` seconds.
    pub(super) fn ago(world: &World, channel: Id, minutes: i64, step_s: usize) -> Self {
        let step_ms = i64::try_from(step_s).unwrap_or(1).saturating_mul(1_000);
        Self {
            channel,
            next_ms: world.now_ms() - minutes * 60_000,
            step_ms,
        }
    }

    /// Goes on after a pause: the next message is from `minutes` ago, with one every
    /// `step_s` seconds from then on.
    pub(super) fn resume(&mut self, world: &World, minutes: i64, step_s: usize) {
        *self = Self::ago(world, self.channel, minutes, step_s);
    }

    /// Adds the next thing said; all of it is from before the bot came.
    pub(super) fn say(&mut self, world: &mut World, author: Id, draft: impl Into<Draft>) -> Id {
        let at_ms = self.next_ms();
        world.seed(self.channel, author, draft.into().at_ms(at_ms))
    }

    /// The time of the next message; each call advances it.
    pub(super) const fn next_ms(&mut self) -> i64 {
        let at_ms = self.next_ms;
        self.next_ms += self.step_ms;
        at_ms
    }

    /// Continues in another channel.
    pub(super) const fn go_on_in(&mut self, channel: Id) {
        self.channel = channel;
    }
}
