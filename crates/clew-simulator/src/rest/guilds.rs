//! Guilds: the guild itself, its channels, roles, members and active threads.

use serde_json::Value;

use super::answer::{Answer, Refusal, Reply};
use super::body::{self, Call};
use crate::gateway::intent::GUILD_MEMBERS;
use crate::ids::Id;
use crate::render;
use crate::state::State;
use crate::world::{Channel, Guild};

impl State {
    pub(super) fn guild_routes(&mut self, call: &Call, guild: &str, rest: &[&str]) -> Answer {
        let id = body::id(guild)?;
        let known = self.world.guilds.get(&id);
        let Some(guild) = known else {
            return Err(Refusal::unknown_guild());
        };
        if !guild.members.contains_key(&self.world.bot) {
            return Err(Refusal::missing_access());
        }
        let body = match (call.method.as_str(), rest) {
            ("GET", []) => {
                let mut object = render::guild(&self.world, guild);
                if call.query("with_counts").as_deref() == Some("true") {
                    object["approximate_member_count"] = guild.members.len().into();
                    object["approximate_presence_count"] = guild.members.len().into();
                }
                object
            }
            ("GET", ["channels"]) => {
                let of_guild = self.world.channels.values();
                let of_guild = of_guild.filter(|c| c.guild == Some(id) && c.thread.is_none());
                of_guild.map(|c| render::channel(&self.world, c)).collect()
            }
            ("GET", ["roles"]) => guild.roles.values().map(render::role).collect(),
            ("GET", ["roles", role]) => {
                let role = guild.roles.get(&body::id(role)?);
                let role = role.map(render::role);
                role.ok_or_else(|| Refusal::new(404, 10011, "Unknown Role"))?
            }
            ("GET", ["members", user]) => {
                let member = guild.members.get(&body::id(user)?);
                let member = member.ok_or_else(Refusal::unknown_member)?;
                render::member(&self.world, member, true)
            }
            ("GET", ["members"]) => self.member_page(call, guild)?,
            ("GET", ["threads", "active"]) => self.active_threads(id),
            ("GET", ["messages", "search"]) => self.search(call, guild)?,
            _ => return Err(Refusal::no_route()),
        };
        Ok(Reply::json(body))
    }

    fn member_page(&self, call: &Call, guild: &Guild) -> Result<Value, Refusal> {
        if self.world.settings.disallowed_intents & GUILD_MEMBERS != 0 {
            return Err(Refusal::missing_access());
        }
        let limit = call.number("limit")?.unwrap_or(1).clamp(1, 1_000);
        let after = Id(call.number("after")?.unwrap_or(0).saturating_add(1));
        let members = guild.members.range(after..).map(|(_, member)| member);
        let members = members.take(usize::try_from(limit).unwrap_or(1_000));
        Ok(members
            .map(|m| render::member(&self.world, m, true))
            .collect())
    }

    fn active_threads(&self, guild: Id) -> Value {
        let active = |channel: &&Channel| {
            let open = channel.thread.as_ref().is_some_and(|t| !t.archived);
            channel.guild == Some(guild) && open && self.world.sees(self.world.bot, channel.id)
        };
        let mut threads: Vec<&Channel> = self.world.channels.values().filter(active).collect();
        threads.sort_by_key(|channel| std::cmp::Reverse(channel.id));
        render::thread_listing(&self.world, &threads, false)
    }
}
