//! Who of an answer's readers may read what it was made from.

use super::guild::KnownGuild;
use super::{GuildState, to_channel};
use clew_context::engine::access::judge;
use clew_context::engine::audience::{Spot, everybody_may_read};
use clew_context::model::{Channel, ChannelId, Guild, GuildId, Readers, RoleId, UserId};

/// An answer to be given: who asked, and where it will stand.
#[derive(Debug, Clone, Copy)]
pub struct AnswerPlace<'a> {
    /// Who asked.
    pub asker: UserId,
    /// The asker's roles, if the message or call came with them.
    pub roles: Option<&'a [RoleId]>,
    /// Where the question was asked.
    pub channel: ChannelId,
    /// Whether nobody but the asker will see the answer (an ephemeral one).
    pub is_private: bool,
}

impl GuildState {
    /// Who of those who will read an answer may read the history of `source`, by what
    /// is known now: its own channel's is read by everybody; another channel must be in
    /// the same server. What is age-restricted is only for an age-restricted channel. Unknown
    /// is no: see [`everybody_may_read`].
    ///
    /// A channel that the gateway told of is judged by that, not by `source`.
    pub fn readers(&self, answer: &AnswerPlace<'_>, source: &Channel) -> Readers {
        if source.id == answer.channel {
            return Readers::Everybody;
        }
        self.readers_elsewhere(answer, source)
            .unwrap_or(Readers::Nobody)
    }

    /// A server's owner and roles as they are now, to judge many channels by.
    pub fn to_guild(&self, id: GuildId) -> Option<Guild> {
        Some(self.read().guild(id)?.to_guild(id))
    }

    /// Whether somebody may read the history of a channel from outside Discord, by what is known
    /// now, and the server's roles as given: nothing age-restricted. Unknown is no.
    pub fn reads(
        &self,
        guild: &Guild,
        (user, roles): (UserId, &[RoleId]),
        channel: ChannelId,
    ) -> bool {
        let guilds = self.read();
        let known = || {
            let known = guilds.guild(guild.id)?;
            let source = known.judgeable(guild.id, channel)?;
            let judged = source.judged.as_ref()?;
            let is_open = known.is_age_restricted(judged.id) == Some(false);
            let access = judge(guild, user, roles, &source.channel, judged);
            Some(is_open && access.may_read())
        };
        known().unwrap_or(false)
    }

    fn readers_elsewhere(&self, answer: &AnswerPlace<'_>, source: &Channel) -> Option<Readers> {
        let guilds = self.read();
        let id = guilds.guild_of(answer.channel)?;
        let known = guilds.guild(id)?;
        let source = known
            .judgeable(id, source.id)
            .unwrap_or_else(|| JudgedChannel {
                judged: known.judge_of(id, source),
                channel: source.clone(),
            });
        if source.channel.guild != Some(id) {
            return None;
        }
        let guild = known.to_guild(id);
        let judged = source.judged.as_ref()?;
        let [source_is, place_is] =
            [judged.id, answer.channel].map(|channel| known.is_age_restricted(channel));
        if source_is != Some(false) && place_is != Some(true) {
            return None;
        }
        let asker = judge(&guild, answer.asker, answer.roles?, &source.channel, judged);
        if !asker.may_read() {
            return None;
        }
        if answer.is_private {
            return Some(Readers::Everybody);
        }
        let place = known.judgeable(id, answer.channel)?;
        let spots = place.spot().zip(source.spot());
        let everybody =
            spots.is_some_and(|(place, source)| everybody_may_read(&guild, place, source));
        Some(if everybody {
            Readers::Everybody
        } else {
            Readers::AskerOnly
        })
    }
}

/// A channel, with the one whose overwrites apply to it.
struct JudgedChannel {
    channel: Channel,
    judged: Option<Channel>,
}

impl JudgedChannel {
    fn spot(&self) -> Option<Spot<'_>> {
        Some(Spot {
            channel: &self.channel,
            judged: self.judged.as_ref()?,
        })
    }
}

impl KnownGuild {
    fn to_guild(&self, id: GuildId) -> Guild {
        let roles = self.roles.values();
        Guild {
            id,
            owner: self.owner_id,
            roles: roles.map(|role| (role.id, role.permissions.0)).collect(),
        }
    }

    fn judgeable(&self, guild: GuildId, channel: ChannelId) -> Option<JudgedChannel> {
        let channel = to_channel(guild, self.channels.get(&channel)?);
        Some(JudgedChannel {
            judged: self.judge_of(guild, &channel),
            channel,
        })
    }

    /// The channel whose overwrites apply: a thread's parent, else itself.
    fn judge_of(&self, guild: GuildId, channel: &Channel) -> Option<Channel> {
        if !channel.kind.is_thread() {
            return Some(channel.clone());
        }
        let parent = self.channels.get(&channel.parent?)?;
        Some(to_channel(guild, parent))
    }
}
