//! Whether what is known of a server is what Discord has told last: who reads on another's
//! behalf, from outside Discord, goes by nothing older.

use std::collections::BTreeSet;

use super::{GuildState, PartialGuild};
use clew_context::model::GuildId;

/// Which shards hear what happens, and of which servers they still have to hear.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// How many shards there are; none hears before this is known.
    shards: u32,
    connected: BTreeSet<u32>,
    /// Listed by READY, lost in an outage or told of unreadably, and not told of whole since.
    awaited: BTreeSet<GuildId>,
}

impl Hearing {
    /// A server was told of whole.
    pub(super) fn told(&mut self, guild: GuildId) {
        self.awaited.remove(&guild);
    }

    /// A server is gone for us, or until it comes back.
    pub(super) fn awaits(&mut self, guild: GuildId) {
        self.awaited.insert(guild);
    }

    fn is_current(&self, guild: GuildId) -> bool {
        let shard = shard_of(guild, self.shards);
        shard.is_some_and(|shard| self.connected.contains(&shard)) && !self.awaited.contains(&guild)
    }
}

impl GuildState {
    /// Whether a server is known as it is now: its shard is connected, and has told of it since it
    /// last missed anything.
    pub fn is_current(&self, guild: GuildId) -> bool {
        let guilds = self.read();
        guilds.guild(guild).is_some() && guilds.hearing.is_current(guild)
    }

    /// A server as it is now, where there is no gateway: it is current for as long as whoever asked
    /// takes it as such.
    pub fn tell(&self, guild: PartialGuild) {
        let mut guilds = self.write();
        guilds.hearing.shards = 1;
        guilds.hearing.connected.insert(0);
        guilds.hearing.told(guild.id);
        guilds.put(guild);
    }

    /// A shard resumed, and what it had missed was told.
    pub(crate) fn hears(&self, shard: u32, shards: u32) {
        let hearing = &mut self.write().hearing;
        hearing.shards = shards;
        hearing.connected.insert(shard);
    }

    /// A shard began a new session: its servers are told of one by one.
    pub(crate) fn hears_anew(&self, shard: u32, shards: u32, listed: &[GuildId]) {
        let hearing = &mut self.write().hearing;
        hearing
            .awaited
            .retain(|guild| shard_of(*guild, shards) != Some(shard));
        hearing.awaited.extend(listed);
        if hearing.shards != shards {
            hearing.connected.clear();
        }
        hearing.shards = shards;
        hearing.connected.insert(shard);
    }

    /// Something of these servers was not told: they are not current until they are told of whole.
    pub(crate) fn loses(&self, guilds: impl IntoIterator<Item = GuildId>) {
        self.write().hearing.awaited.extend(guilds);
    }

    /// A shard's connection ended.
    pub(crate) fn hears_no_more(&self, shard: u32) {
        self.write().hearing.connected.remove(&shard);
    }
}

/// The shard that is told of a server, `(id >> 22) % shards` (Discord's reference, "Sharding").
/// None if there are no shards.
pub fn shard_of(guild: GuildId, shards: u32) -> Option<u32> {
    let shard = (guild.get() >> 22).checked_rem(u64::from(shards))?;
    u32::try_from(shard).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_is_current_from_its_create_until_its_shard_hears_nothing() {
        let state = GuildState::default();
        // Of two shards this server is of the second.
        let guild = GuildId::new(1 << 22);
        let create = json!({
            "id": guild, "name": "g", "owner_id": "1",
            "roles": [{ "id": guild, "name": "@everyone", "permissions": "0" }],
            "channels": [{ "id": "2", "type": 0, "name": "c" }],
        });
        let part = json!({ "id": guild, "name": "g", "owner_id": "1" }).to_string();
        let create = create.to_string();
        let apply = |event: &str, data: &str| drop(state.apply(event, data));
        state.hears_anew(0, 2, &[]);
        apply("GUILD_CREATE", &create);
        assert!(!state.is_current(guild), "its own shard hears nothing");
        state.hears_anew(1, 2, &[guild]);
        assert!(!state.is_current(guild), "it is still to be told of");
        apply("GUILD_CREATE", &create);
        assert!(state.is_current(guild));
        state.hears_no_more(1);
        assert!(!state.is_current(guild));
        state.hears(1, 2);
        assert!(state.is_current(guild));
        let outage = json!({ "id": guild, "unavailable": true }).to_string();
        apply("GUILD_DELETE", &outage);
        assert!(!state.is_current(guild), "an outage");
        apply("GUILD_CREATE", &create);
        assert!(state.is_current(guild));
        apply("GUILD_CREATE", &part);
        assert!(!state.is_current(guild), "a part of it could not be read");
        apply("GUILD_CREATE", &create);
        apply("CHANNEL_PINS_UPDATE", r#"{"channel_id":2}"#);
        assert!(state.is_current(guild));
        for (event, data) in [
            ("CHANNEL_UPDATE", r#"{"id":"2","type":[]"#),
            ("GUILD_ROLE_UPDATE", "{"),
        ] {
            apply(event, data);
        }
        assert!(
            state.is_current(guild),
            "nobody knows of which server those were"
        );
        let role = json!({ "guild_id": guild, "role": [] }).to_string();
        apply("GUILD_ROLE_UPDATE", &role);
        assert!(
            !state.is_current(guild),
            "an event of its rights could not be read"
        );
    }
}
