//! Counts the turns in a row that other bots started (`REPLY_TO_BOTS`), per channel and
//! per server, so that a bot cannot start over by opening one thread after another.

use std::collections::HashMap;

use super::CHANNELS_REMEMBERED;
use clew_context::model::{ChannelId, GuildId};

/// The counts since a person who may use the bot last wrote.
#[derive(Debug, Default)]
pub(super) struct BotTurns {
    channels: HashMap<ChannelId, usize>,
    guilds: HashMap<GuildId, usize>,
}

impl BotTurns {
    /// The larger of both counts.
    pub(super) fn in_a_row(&self, channel: ChannelId, guild: Option<GuildId>) -> usize {
        let in_channel = self.channels.get(&channel);
        let in_guild = guild.and_then(|guild| self.guilds.get(&guild));
        in_channel.max(in_guild).copied().unwrap_or(0)
    }

    /// Counts a bot's turn.
    pub(super) fn count(&mut self, channel: ChannelId, guild: Option<GuildId>) {
        if self.channels.len() >= CHANNELS_REMEMBERED {
            self.channels.clear();
        }
        *self.channels.entry(channel).or_default() += 1;
        if let Some(guild) = guild {
            *self.guilds.entry(guild).or_default() += 1;
        }
    }

    /// Resets both counts, after a person wrote.
    pub(super) fn end(&mut self, channel: ChannelId, guild: Option<GuildId>) {
        self.channels.remove(&channel);
        if let Some(guild) = guild {
            self.guilds.remove(&guild);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_of_a_channel_and_of_its_server() {
        let mut turns = BotTurns::default();
        let (here, there) = (ChannelId::new(1), ChannelId::new(2));
        let guild = Some(GuildId::new(3));
        turns.count(here, guild);
        turns.count(there, guild);
        turns.count(there, guild);
        assert_eq!(turns.in_a_row(here, guild), 3);
        assert_eq!(turns.in_a_row(ChannelId::new(9), guild), 3, "a new thread");
        assert_eq!(turns.in_a_row(ChannelId::new(9), Some(GuildId::new(4))), 0);
        turns.end(here, guild);
        assert_eq!(turns.in_a_row(here, guild), 0);
        assert_eq!(turns.in_a_row(there, guild), 2, "nobody spoke there");
    }
}
