//! Changes to members, roles and guilds.

use serde_json::json;

use crate::ids::Id;
use crate::render;
use crate::state::State;
use crate::{Permissions, Simulator};

impl Simulator {
    /// A user joins a guild.
    pub fn join(&self, guild: Id, user: Id) {
        self.shared.with(|state| {
            state.world.join(guild, user);
            state.emit_member("GUILD_MEMBER_ADD", guild, user);
        });
    }

    /// A user leaves a guild. For the bot this is a kick (`GUILD_DELETE`).
    pub fn leave(&self, guild: Id, user: Id) {
        self.shared.with(|state| {
            let own = user == state.world.bot;
            let Some(found) = state.world.guild_mut(guild) else {
                return;
            };
            found.members.remove(&user);
            if own {
                let data = json!({"id": guild.json()});
                state.emit_guild_event("GUILD_DELETE", Some(guild), &data);
            } else {
                let user_object = render::user(&state.world, user);
                let data = json!({"guild_id": guild.json(), "user": user_object});
                state.emit_member_event("GUILD_MEMBER_REMOVE", guild, user, &data);
            }
        });
    }

    /// The bot is kicked from a guild.
    pub fn kick_bot(&self, guild: Id) {
        self.leave(guild, self.bot());
    }

    /// Starts a guild's outage (`GUILD_DELETE` with `unavailable`) or ends it (`GUILD_CREATE`).
    pub fn set_outage(&self, guild: Id, outage: bool) {
        self.shared.with(|state| {
            if outage {
                let data = json!({"id": guild.json(), "unavailable": true});
                state.emit_guild_event("GUILD_DELETE", Some(guild), &data);
            }
            if let Some(found) = state.world.guild_mut(guild) {
                found.unavailable = outage;
            }
            if !outage {
                state.emit_guild_create(guild);
            }
        });
    }

    /// Gives a role to a member, or takes it away.
    pub fn set_role(&self, guild: Id, user: Id, role: Id, given: bool) {
        self.shared.with(|state| {
            let Some(member) = state.world.member_mut(guild, user) else {
                return;
            };
            member.roles.retain(|each| *each != role);
            if given {
                member.roles.push(role);
            }
            state.emit_member("GUILD_MEMBER_UPDATE", guild, user);
        });
    }

    /// Adds a role to a guild.
    pub fn role(&self, guild: Id, name: &str, permissions: Permissions) -> Id {
        self.shared.with(|state| {
            let role = state.world.role(guild, name, permissions);
            state.emit_role("GUILD_ROLE_CREATE", guild, role);
            role
        })
    }

    /// Sets a role's permissions; `@everyone` has the guild's id.
    pub fn set_role_permissions(&self, guild: Id, role: Id, permissions: Permissions) {
        self.shared.with(|state| {
            state.world.set_role_permissions(guild, role, permissions);
            state.emit_role("GUILD_ROLE_UPDATE", guild, role);
        });
    }

    /// Deletes a role.
    pub fn delete_role(&self, guild: Id, role: Id) {
        self.shared.with(|state| {
            let Some(found) = state.world.guild_mut(guild) else {
                return;
            };
            found.roles.remove(&role);
            for member in found.members.values_mut() {
                member.roles.retain(|each| *each != role);
            }
            let data = json!({"guild_id": guild.json(), "role_id": role.json()});
            state.emit_guild_event("GUILD_ROLE_DELETE", Some(guild), &data);
        });
    }
}

acts! {
    /// Tells the bot of a guild that was added to the world after it had connected
    /// (`GUILD_CREATE`).
    with announce_guild(guild: Id) = |state| state.emit_guild_create(guild);
}

impl State {
    fn emit_guild_create(&mut self, guild: Id) {
        let found = self.world.guilds.get(&guild);
        if let Some(data) = found.map(|found| render::guild_create(&self.world, found)) {
            self.emit_guild_event("GUILD_CREATE", Some(guild), &data);
        }
    }

    fn emit_member(&mut self, name: &str, guild: Id, user: Id) {
        let Some(member) = self.world.member_of(Some(guild), user) else {
            return;
        };
        let mut data = render::member(&self.world, member, true);
        data["guild_id"] = guild.json();
        self.emit_member_event(name, guild, user, &data);
    }

    fn emit_role(&mut self, name: &str, guild: Id, role: Id) {
        let Some(found) = self.world.role_mut(guild, role).cloned() else {
            return;
        };
        let data = json!({"guild_id": guild.json(), "role": render::role(&found)});
        self.emit_guild_event(name, Some(guild), &data);
    }
}
