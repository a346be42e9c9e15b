//! A Discord for the bot: servers, channels, threads, people and roles.

use std::sync::Arc;

use clew_simulator::{ChannelKind, Id, OverwriteOf, Permissions, Simulator, World as Discord};

use crate::clock::WorldClock;
use crate::plan::Plan;

/// Where people meet.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) guilds: Vec<Guild>,
    pub(crate) people: Vec<Id>,
}

/// A server.
#[derive(Debug, Clone)]
pub(crate) struct Guild {
    pub(crate) id: Id,
    /// Those who may see the private channel have it.
    pub(crate) role: Id,
    /// Channels and threads, the private one last.
    pub(crate) channels: Vec<Id>,
}

impl Places {
    /// Every channel and thread of a server.
    pub(crate) fn channels(&self) -> impl Iterator<Item = (&Guild, Id)> {
        let guilds = self.guilds.iter();
        guilds.flat_map(|guild| guild.channels.iter().map(move |channel| (guild, *channel)))
    }

    /// The server of a channel that is no thread.
    pub(crate) fn guild_of_channel(&self, channel: Id) -> Option<Id> {
        let is_of = |guild: &&Guild| {
            let ends = [guild.channels.first(), guild.channels.last()];
            ends.contains(&Some(&channel))
        };
        self.guilds.iter().find(is_of).map(|guild| guild.id)
    }
}

/// Makes a plan's Discord, without sockets.
pub(crate) fn make(plan: &Plan, clock: &Arc<WorldClock>) -> Option<(Simulator, Places)> {
    let mut discord = Discord::new();
    let time = Arc::clone(clock);
    discord.follow_clock(Arc::new(move || time.now_ms()));
    let mut people = Vec::new();
    for number in 0..plan.people {
        people.push(discord.user(&format!("person{number}")));
    }
    let mut guilds = Vec::new();
    for number in 0..plan.guilds {
        let guild = discord.guild(&format!("guild{number}"));
        for person in &people {
            discord.join(guild, *person);
        }
        let role = discord.role(guild, "insiders", Permissions::NONE);
        for person in people.iter().step_by(2) {
            discord.give_role(guild, *person, role);
        }
        let managers = discord.role(guild, "managers", Permissions::MANAGE_GUILD);
        discord.give_role(guild, *people.first()?, managers);
        let general = discord.channel(guild, ChannelKind::Text, "general");
        let forum = discord.channel(guild, ChannelKind::Forum, "forum");
        let private = discord.channel(guild, ChannelKind::Text, "insiders");
        discord.deny_everyone(private, Permissions::VIEW_CHANNEL);
        let view = Permissions::VIEW_CHANNEL;
        for of in [OverwriteOf::Role(role), OverwriteOf::Member(discord.bot)] {
            discord.overwrite(private, of, view, Permissions::NONE);
        }
        let owner = *people.first()?;
        let thread = discord.thread(general, ChannelKind::PublicThread, "thread", owner);
        let post = discord.forum_post(forum, owner, "post", &[], "how it began");
        guilds.push(Guild {
            id: guild,
            role,
            channels: vec![general, thread, post, private],
        });
    }
    let simulator = Simulator::without_sockets(discord).ok()?;
    Some((simulator, Places { guilds, people }))
}
