//! When something happened last, by place.

use std::collections::HashMap;

use super::super::party::{Party, Shared};
use super::Trace;
use clew_context::model::{ChannelId, GuildId, UnixMillis};
use clew_discord::guild_state::shard_of;
use clew_discord::session::{Gap, Missed};

/// The most channels with a time of their own: beyond, the server with most of them has one
/// time for all, or everything has.
pub(super) const MOST_CHANNELS: usize = 8_192;
/// The same for servers.
const MOST_GUILDS: usize = 8_192;

/// The last time something happened, by place.
#[derive(Debug, Default)]
pub(super) struct Since {
    everything: Option<UnixMillis>,
    shards: HashMap<(u32, u32), UnixMillis>,
    guilds: HashMap<GuildId, UnixMillis>,
    channels: Shared<ChannelId, UnixMillis, MOST_CHANNELS>,
}

impl Since {
    pub(super) fn note(&mut self, missed: Missed, now: UnixMillis) {
        match missed {
            Missed::Everything => self.everything = Some(now),
            Missed::Shard { shard, shards } => {
                self.shards.insert((shard, shards), now);
            }
            Missed::Guild(guild) => self.note_guild(guild, now),
            Missed::Channel { guild, channel } => {
                let party = Party::of(guild, channel);
                if let Some((most, _)) = self.channels.insert(party, channel, now) {
                    match most.guild() {
                        Some(guild) => self.note_guild(guild, now),
                        None => self.everything = Some(now),
                    }
                }
            }
        }
    }

    /// All that is noted.
    pub(super) fn gaps(&self) -> impl Iterator<Item = Gap> {
        let everything = self.everything.iter().map(|at| (*at, Missed::Everything));
        let shards = self.shards.iter();
        let shards = shards.map(|((shard, shards), at)| {
            let (shard, shards) = (*shard, *shards);
            (*at, Missed::Shard { shard, shards })
        });
        let guilds = self
            .guilds
            .iter()
            .map(|(guild, at)| (*at, Missed::Guild(*guild)));
        let channels = self.channels.iter().map(|(party, channel, at)| {
            let (guild, channel) = (party.guild(), *channel);
            (*at, Missed::Channel { guild, channel })
        });
        let all = everything.chain(shards).chain(guilds).chain(channels);
        all.map(|(at, missed)| Gap { at: at.0, missed })
    }

    fn note_guild(&mut self, guild: GuildId, now: UnixMillis) {
        self.guilds.insert(guild, now);
        if self.guilds.len() > MOST_GUILDS {
            self.guilds.clear();
            self.everything = Some(now);
        }
    }

    /// The latest time that concerns a message. Direct messages are the first shard's.
    pub(super) fn latest(&self, trace: &Trace) -> Option<UnixMillis> {
        let shard_among = |shards: u32| match trace.guild {
            Some(guild) => shard_of(guild, shards.max(1)),
            None => Some(0),
        };
        let of_shard = self
            .shards
            .iter()
            .filter(|((shard, shards), _)| shard_among(*shards) == Some(*shard));
        let of_guild = trace.guild.and_then(|guild| self.guilds.get(&guild));
        of_shard
            .map(|(_, at)| at)
            .chain(of_guild)
            .chain(self.channels.get(&trace.key.0))
            .chain(&self.everything)
            .max()
            .copied()
    }
}
