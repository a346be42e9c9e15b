//! Interactions: somebody uses a command or a component, or types in an option.

use serde_json::{Value, json};

use crate::Simulator;
use crate::ids::Id;
use crate::render::{self, Audience};
use crate::state::State;
use crate::world::{Interaction, Message};

/// A way of using the bot.
#[derive(Clone, Debug)]
pub enum Use {
    /// A slash command with its options.
    Slash {
        /// Name of the command.
        name: String,
        /// Options in order.
        options: Vec<Choice>,
    },
    /// Typing in an option of a slash command.
    Autocomplete {
        /// Name of the command.
        name: String,
        /// Options in order; the last one is being typed in.
        options: Vec<Choice>,
    },
    /// A command in a message's context menu.
    OnMessage {
        /// Name of the command.
        name: String,
        /// The message.
        message: Id,
    },
    /// A button or menu.
    Component {
        /// The message it is on.
        message: Id,
        /// Its custom id.
        custom_id: String,
        /// Values chosen in a menu.
        values: Vec<String>,
    },
}

/// An option of a slash command.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Name.
    pub name: String,
    /// The API's option type: 1 subcommand, 2 group, 3 string, 4 integer, 5
    /// boolean, 6 user, 7 channel, 8 role, 10 number, 11 attachment.
    pub kind: u8,
    /// Value; null for a subcommand.
    pub value: Value,
    /// Options of a subcommand.
    pub options: Vec<Choice>,
}

impl Choice {
    /// A text option.
    pub fn text(name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: 3,
            value: value.into(),
            options: Vec::new(),
        }
    }

    /// An option that takes a file: one of any message, in place of an upload.
    pub fn file(name: &str, id: Id) -> Self {
        Self {
            kind: 11,
            value: id.json(),
            ..Self::text(name, "")
        }
    }

    /// A subcommand with its options.
    pub fn subcommand(name: &str, options: Vec<Self>) -> Self {
        Self {
            name: name.to_owned(),
            kind: 1,
            value: Value::Null,
            options,
        }
    }

    fn object(&self, focused: bool) -> Value {
        let mut object = json!({"name": self.name, "type": self.kind});
        if self.kind <= 2 {
            object["options"] = objects(&self.options, focused);
            return object;
        }
        object["value"] = self.value.clone();
        if focused {
            object["focused"] = true.into();
        }
        object
    }
}

impl Use {
    /// A slash command with text options.
    pub fn slash(name: &str, options: &[(&str, &str)]) -> Self {
        let options = options
            .iter()
            .map(|(name, value)| Choice::text(name, value));
        Self::Slash {
            name: name.to_owned(),
            options: options.collect(),
        }
    }

    /// A command in a message's context menu.
    pub fn on_message(name: &str, message: Id) -> Self {
        Self::OnMessage {
            name: name.to_owned(),
            message,
        }
    }

    /// The interaction's type, what is used, and the message that it is about.
    fn about(&self) -> (u8, &str, Option<Id>) {
        match self {
            Self::Slash { name, .. } => (2, name, None),
            Self::Autocomplete { name, .. } => (4, name, None),
            Self::OnMessage { name, message } => (2, name, Some(*message)),
            Self::Component {
                message, custom_id, ..
            } => (3, custom_id, Some(*message)),
        }
    }
}

acts! {
    /// Somebody uses the bot; returns the interaction's id.
    with interact(channel: Id, user: Id, used: &Use) -> Id =
        |state| state.interact(channel, user, used);
    /// The current state of an interaction: its callback and its messages.
    read interaction(id: Id) -> Option<Interaction> =
        |state| state.world.interactions.get(&id).cloned();
    /// The messages that answered an interaction, the first answer first.
    read interaction_answers(id: Id) -> Vec<Message> =
        |state| state.world.answers_to(id).cloned().collect();
}

impl State {
    pub(super) fn interact(&mut self, channel: Id, user: Id, used: &Use) -> Id {
        let id = self.world.fresh_id();
        let (kind, name, message) = used.about();
        let interaction = Interaction {
            id,
            token: format!("aW50ZXJhY3Rpb246{id}"),
            kind,
            name: name.to_owned(),
            user,
            channel,
            message,
            at: self.elapsed(),
            ..Interaction::default()
        };
        let object = self.interaction_object(&interaction, used);
        let guild = self.world.guild_of(channel);
        self.world.interactions.insert(id, interaction);
        self.emit("INTERACTION_CREATE", 0, guild, &object);
        id
    }

    fn interaction_object(&self, interaction: &Interaction, used: &Use) -> Value {
        let world = &self.world;
        let (channel, user) = (interaction.channel, interaction.user);
        let found = world.channels.get(&channel);
        let guild = found.and_then(|found| found.guild);
        let mut object = json!({
            "id": interaction.id.json(), "application_id": world.bot.json(),
            "type": interaction.kind, "token": interaction.token, "version": 1,
            "channel_id": channel.json(), "locale": "en-US", "entitlements": [],
            "channel": found.map(|found| render::channel(world, found)),
            "app_permissions": world.permissions(world.bot, channel).0.to_string(),
            "attachment_size_limit": 10_485_760,
            "authorizing_integration_owners": {"0": render::owner_of(world, interaction)},
            "context": u8::from(guild.is_none()),
            "data": self.interaction_data(channel, guild, used),
        });
        if let Some(guild) = guild {
            object["guild_id"] = guild.json();
            object["guild_locale"] = "en-US".into();
            object["guild"] = json!({"id": guild.json(), "locale": "en-US", "features": []});
        }
        match world.member_of(guild, user) {
            Some(member) => {
                let mut member = render::member(world, member, true);
                let held = world.permissions(user, channel);
                member["permissions"] = held.0.to_string().into();
                object["member"] = member;
            }
            None => object["user"] = render::user(world, user),
        }
        if let Use::Component { message, .. } = used {
            object["message"] = self.interaction_message(channel, *message);
        }
        object
    }

    fn interaction_message(&self, channel: Id, id: Id) -> Value {
        let world = &self.world;
        let found = world.any_message(channel, id);
        found.map_or(Value::Null, |m| render::message(world, m, Audience::Rest))
    }

    fn interaction_data(&self, channel: Id, guild: Option<Id>, used: &Use) -> Value {
        let named = |name: &str, kind: u64| {
            let command = self.world.commands.iter().find(|command| {
                let fits = command.guild.is_none() || command.guild == guild;
                let same = command.body["type"].as_u64().unwrap_or(1) == kind;
                command.body["name"] == name && same && fits
            });
            let id = command.map_or(Id(1), |command| command.id);
            json!({"id": id.json(), "name": name, "type": kind})
        };
        match used {
            Use::Slash { name, options } | Use::Autocomplete { name, options } => {
                let typing = matches!(used, Use::Autocomplete { .. });
                let mut data = named(name, 1);
                data["options"] = objects(options, typing);
                if !typing {
                    data["resolved"] = self.resolve(guild, options);
                }
                data
            }
            Use::OnMessage { name, message } => {
                let mut data = named(name, 3);
                data["target_id"] = message.json();
                let object = self.interaction_message(channel, *message);
                data["resolved"] = json!({"messages": {(message.to_string()): object}});
                data
            }
            Use::Component {
                custom_id, values, ..
            } => {
                let kind = if values.is_empty() { 2 } else { 3 };
                json!({"custom_id": custom_id, "component_type": kind, "values": values, "id": 1})
            }
        }
    }

    /// Objects for the users, roles, channels and files that the options name; a file is one of
    /// any message.
    fn resolve(&self, guild: Option<Id>, options: &[Choice]) -> Value {
        let mut resolved = json!({});
        let world = &self.world;
        let guild = guild.and_then(|guild| world.guilds.get(&guild));
        for option in options.iter().flat_map(|o| o.options.iter().chain([o])) {
            let Some(id) = Id::parse(&option.value) else {
                continue;
            };
            let key = id.to_string();
            match option.kind {
                6 => {
                    resolved["users"][&key] = render::user(world, id);
                    if let Some(member) = guild.and_then(|guild| guild.members.get(&id)) {
                        let mut object = render::member(world, member, false);
                        object["permissions"] = "0".into();
                        resolved["members"][&key] = object;
                    }
                }
                7 => {
                    if let Some(found) = world.channels.get(&id) {
                        let mut object = render::channel(world, found);
                        let held = world.permissions(world.bot, id);
                        object["permissions"] = held.0.to_string().into();
                        resolved["channels"][&key] = object;
                    }
                }
                8 => {
                    if let Some(role) = guild.and_then(|guild| guild.roles.get(&id)) {
                        resolved["roles"][&key] = render::role(role);
                    }
                }
                11 => {
                    if let Some(object) = render::file(world, id) {
                        resolved["attachments"][&key] = object;
                    }
                }
                _ => {}
            }
        }
        resolved
    }
}

/// Option objects; while typing, the last one is focused.
fn objects(options: &[Choice], typing: bool) -> Value {
    let last = options.len().saturating_sub(1);
    let objects = options.iter().enumerate();
    objects
        .map(|(index, option)| option.object(typing && index == last))
        .collect()
}
