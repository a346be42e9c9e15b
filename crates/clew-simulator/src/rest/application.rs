//! Routes about the bot itself: gateway address, user, application, guilds,
//! direct messages; its commands; and the files of the CDN.

use serde_json::{Value, json};

use super::answer::{Answer, Refusal, Reply};
use super::body::{self, Call};
use crate::ids::Id;
use crate::render;
use crate::state::State;
use crate::world::Command;

impl State {
    pub(super) fn application_routes(&mut self, call: &Call, segments: &[&str]) -> Answer {
        let world = &self.world;
        let url = world.base_url.replacen("http", "ws", 1);
        let body = match (call.method.as_str(), segments) {
            ("GET", ["gateway"]) => json!({"url": url}),
            ("GET", ["gateway", "bot"]) => json!({
                "url": url,
                "shards": world.settings.shards,
                "session_start_limit": {
                    "total": world.settings.session_starts_total,
                    "remaining": world.settings.session_starts_remaining,
                    "reset_after": world.settings.session_starts_reset_ms,
                    "max_concurrency": world.settings.max_concurrency,
                },
            }),
            ("GET", ["users", "@me"]) => render::own_user(world),
            ("GET", ["applications", "@me"] | ["oauth2", "applications", "@me"]) => {
                render::application(world)
            }
            ("GET", ["users", "@me", "guilds"]) => self.own_guilds(),
            ("POST", ["users", "@me", "channels"]) => return self.open_direct(call),
            ("GET", ["users", user]) => {
                let id = body::id(user)?;
                if !world.users.contains_key(&id) {
                    return Err(Refusal::new(404, 10013, "Unknown User"));
                }
                render::user(world, id)
            }
            _ => return Err(Refusal::no_route()),
        };
        Ok(Reply::json(body))
    }

    fn own_guilds(&self) -> Value {
        let guilds = self.world.guilds.values();
        let own = guilds.filter(|guild| guild.members.contains_key(&self.world.bot));
        own.map(|guild| {
            json!({
                "id": guild.id.json(), "name": guild.name, "icon": null, "banner": null,
                "owner": false, "features": [],
                "permissions": guild.permissions(self.world.bot).0.to_string(),
            })
        })
        .collect()
    }

    fn open_direct(&mut self, call: &Call) -> Answer {
        let user = Id::parse(&call.body["recipient_id"]);
        let Some(user) = user.filter(|id| self.world.users.contains_key(id)) else {
            return Err(Refusal::new(400, 50033, "Invalid Recipient(s)"));
        };
        let channel = self.world.direct(user);
        Ok(Reply::json(self.channel_object(channel)))
    }

    pub(super) fn command_routes(
        &mut self,
        call: &Call,
        application: &str,
        guild: Option<&str>,
        rest: &[&str],
    ) -> Answer {
        if body::id(application)? != self.world.bot {
            return Err(Refusal::unauthorized_for_application());
        }
        let guild = guild.map(body::id).transpose()?;
        match (call.method.as_str(), rest) {
            ("GET", []) => Ok(Reply::json(self.commands_of(guild))),
            ("PUT", []) => {
                let bodies = call.body.as_array().cloned().unwrap_or_default();
                bodies.iter().try_for_each(super::definition::check)?;
                self.world.commands.retain(|command| command.guild != guild);
                for body in bodies {
                    self.put_command(guild, body)?;
                }
                Ok(Reply::json(self.commands_of(guild)))
            }
            ("POST", []) => {
                let (object, new) = self.put_command(guild, call.body.clone())?;
                Ok(Reply::with_status(if new { 201 } else { 200 }, object))
            }
            (method, [command]) => {
                let id = body::id(command)?;
                self.one_command(method, guild, id, &call.body)
            }
            _ => Err(Refusal::no_route()),
        }
    }

    fn one_command(&mut self, method: &str, guild: Option<Id>, id: Id, body: &Value) -> Answer {
        let bot = self.world.bot;
        let commands = &mut self.world.commands;
        let found = commands
            .iter()
            .position(|command| command.id == id && command.guild == guild);
        let Some(found) = found else {
            return Err(Refusal::new(404, 10063, "Unknown application command"));
        };
        match method {
            "GET" => Ok(Reply::json(command_object(bot, &commands[found]))),
            "PATCH" => {
                let command = &mut commands[found];
                if let (Some(old), Some(new)) = (command.body.as_object_mut(), body.as_object()) {
                    old.extend(new.clone());
                }
                Ok(Reply::json(command_object(bot, command)))
            }
            "DELETE" => {
                commands.remove(found);
                Ok(Reply::nothing())
            }
            _ => Err(Refusal::no_route()),
        }
    }

    fn commands_of(&self, guild: Option<Id>) -> Value {
        let commands = self.world.commands.iter();
        let commands = commands.filter(|command| command.guild == guild);
        commands
            .map(|command| command_object(self.world.bot, command))
            .collect()
    }

    /// Stores a command, replacing one with the same type and name.
    fn put_command(&mut self, guild: Option<Id>, body: Value) -> Result<(Value, bool), Refusal> {
        super::definition::check(&body)?;
        let kind = |body: &Value| body["type"].as_u64().unwrap_or(1);
        let same = self.world.commands.iter().position(|command| {
            let body_fits =
                command.body["name"] == body["name"] && kind(&command.body) == kind(&body);
            command.guild == guild && body_fits
        });
        let (id, new) = match same {
            Some(at) => (self.world.commands.remove(at).id, false),
            None => (self.world.fresh_id(), true),
        };
        let command = Command { id, guild, body };
        let object = command_object(self.world.bot, &command);
        self.world.commands.push(command);
        Ok((object, new))
    }

    /// The bytes of an attachment.
    pub(super) fn cdn(&self, channel: &str, attachment: &str) -> Answer {
        let (channel, id) = (body::id(channel)?, body::id(attachment)?);
        let found = self.world.channels.get(&channel);
        let messages = found.map(|found| found.messages.values());
        let ephemeral = self.world.ephemeral.values();
        let mut files = messages
            .into_iter()
            .flatten()
            .chain(ephemeral)
            .flat_map(|message| &message.attachments);
        match files.find(|file| file.id == id) {
            Some(found) => Ok(Reply::file(&found.file.content_type, &found.file.bytes)),
            None => Err(Refusal::no_route()),
        }
    }
}

/// A command object: what was registered, plus the fields Discord adds.
fn command_object(application: Id, command: &Command) -> Value {
    let mut object = json!({
        "type": 1, "description": "", "default_member_permissions": null, "nsfw": false,
        "dm_permission": true, "name_localizations": null, "description_localizations": null,
        "contexts": null, "integration_types": [0],
    });
    if let (Some(object), Some(body)) = (object.as_object_mut(), command.body.as_object()) {
        object.extend(body.clone());
    }
    object["id"] = command.id.json();
    object["application_id"] = application.json();
    object["version"] = command.id.json();
    if let Some(guild) = command.guild {
        object["guild_id"] = guild.json();
    }
    object
}
