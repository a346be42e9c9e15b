//! Responses to interactions: the callback, its message, and what follows.

use serde_json::{Value, json};

use super::answer::{Answer, Refusal, Reply};
use super::body::{self, Call};
use super::given;
use crate::draft::Draft;
use crate::ids::Id;
use crate::render::{self, Audience};
use crate::state::State;
use crate::world::flag::{EPHEMERAL, LOADING};
use crate::world::{Interaction, Message};

impl State {
    /// The first answer to an interaction.
    pub(super) fn callback(&mut self, call: &mut Call, id: &str, token: &str) -> Answer {
        let id = body::id(id)?;
        let found = self.world.interactions.get(&id);
        let Some(found) = found.filter(|found| found.token == token) else {
            return Err(Refusal::unknown_interaction());
        };
        if self.elapsed().saturating_sub(found.at) > self.world.settings.callback_window {
            return Err(Refusal::unknown_interaction());
        }
        if found.callback.is_some() {
            return Err(Refusal::acknowledged());
        }
        let (interaction, whole) = (found.clone(), call.body.clone());
        let with_response = call.query("with_response").as_deref() == Some("true");
        let kind = whole["type"].as_u64().unwrap_or(0);
        check_kind(kind, interaction.kind)?;
        call.body = whole["data"].clone();
        let message = match kind {
            4 => Some(self.answer_interaction(call, &interaction)?),
            5 => Some(self.defer(call, &interaction)),
            6 => interaction.message,
            7 => Some(self.update_component(call, &interaction)?),
            8 => {
                super::parts::check_choices(&call.body["choices"])?;
                None
            }
            _ => None,
        };
        if let Some(stored) = self.world.interactions.get_mut(&id) {
            stored.callback = Some(whole);
            stored.original = message;
        }
        if !with_response {
            return Ok(Reply::nothing());
        }
        Ok(Reply::json(self.callback_object(
            &interaction,
            kind,
            message,
        )))
    }

    /// The original answer and follow-ups, under the application's webhook.
    pub(super) fn webhook_routes(
        &mut self,
        call: &mut Call,
        application: &str,
        token: &str,
        rest: &[&str],
    ) -> Answer {
        if body::id(application)? != self.world.bot {
            return Err(Refusal::new(404, 10015, "Unknown Webhook"));
        }
        let mut interactions = self.world.interactions.values();
        let Some(interaction) = interactions.find(|each| each.token == token).cloned() else {
            return Err(Refusal::new(401, 50027, "Invalid Webhook Token"));
        };
        if interaction.callback.is_none() {
            return Err(Refusal::new(404, 10015, "Unknown Webhook"));
        }
        let method = call.method.clone();
        match (method.as_str(), rest) {
            ("POST", []) => self.follow_up(call, &interaction),
            (method, ["messages", message]) => {
                let id = match *message {
                    "@original" => interaction.original.ok_or_else(Refusal::unknown_message)?,
                    other => body::id(other)?,
                };
                if !interaction.messages().any(|own| own == id) {
                    return Err(Refusal::unknown_message());
                }
                let changed = self.webhook_message(call, method, &interaction, id)?;
                let stored = self.world.interactions.get_mut(&interaction.id);
                if let Some(stored) = stored.filter(|_| method == "PATCH") {
                    stored.edited |= stored.original == Some(id);
                }
                Ok(changed)
            }
            _ => Err(Refusal::no_route()),
        }
    }

    fn webhook_message(
        &mut self,
        call: &mut Call,
        method: &str,
        interaction: &Interaction,
        id: Id,
    ) -> Answer {
        let channel = interaction.channel;
        let message = self.world.any_message(channel, id);
        let message = message.ok_or_else(Refusal::unknown_message)?.clone();
        match method {
            "GET" => {}
            "PATCH" => self.replace(call, message, LOADING)?,
            "DELETE" => {
                if self.world.ephemeral.remove(&id).is_none() {
                    self.remove_message(channel, id);
                }
                return Ok(Reply::nothing());
            }
            _ => return Err(Refusal::no_route()),
        }
        Ok(Reply::json(self.any_object(channel, id)))
    }

    /// Changes a message as a call asks, takes these flags away, and dispatches it.
    fn replace(
        &mut self,
        call: &mut Call,
        mut message: Message,
        without: u64,
    ) -> Result<(), Refusal> {
        self.change_message(call, &mut message)?;
        message.flags &= !without;
        let (channel, id) = (message.channel, message.id);
        if let Some(found) = self.world.ephemeral.get_mut(&id) {
            *found = message;
            self.emit_ephemeral("MESSAGE_UPDATE", id);
        } else {
            self.world.keep_changed(message);
            self.emit_message("MESSAGE_UPDATE", channel, id);
        }
        Ok(())
    }

    fn answer_interaction(
        &mut self,
        call: &mut Call,
        interaction: &Interaction,
    ) -> Result<Id, Refusal> {
        let message = self.message_from(call, interaction.channel)?;
        let kind = answer_kind(interaction);
        Ok(self.publish_answer(interaction, Message { kind, ..message }))
    }

    fn defer(&mut self, call: &Call, interaction: &Interaction) -> Id {
        let flags = call.body["flags"].as_u64().unwrap_or(0) & EPHEMERAL;
        let draft = Draft::new("").flags(flags | LOADING);
        let bot = self.world.bot;
        let message = self.world.compose(interaction.channel, bot, draft);
        let kind = answer_kind(interaction);
        self.publish_answer(interaction, Message { kind, ..message })
    }

    fn follow_up(&mut self, call: &mut Call, interaction: &Interaction) -> Answer {
        let message = self.message_from(call, interaction.channel)?;
        let id = self.publish_answer(interaction, message);
        if let Some(stored) = self.world.interactions.get_mut(&interaction.id) {
            stored.followups.push(id);
        }
        Ok(Reply::json(self.any_object(interaction.channel, id)))
    }

    /// Stores an answer and dispatches it; an ephemeral one is kept outside the channel.
    fn publish_answer(&mut self, interaction: &Interaction, mut message: Message) -> Id {
        message.interaction = Some(interaction.id);
        if message.flags & EPHEMERAL == 0 {
            return self.publish(message);
        }
        let id = message.id;
        self.world.ephemeral.insert(id, message);
        self.emit_ephemeral("MESSAGE_CREATE", id);
        id
    }

    fn update_component(
        &mut self,
        call: &mut Call,
        interaction: &Interaction,
    ) -> Result<Id, Refusal> {
        let id = interaction.message;
        let message = id.and_then(|id| self.world.any_message(interaction.channel, id));
        let message = message.ok_or_else(Refusal::unknown_message)?.clone();
        let id = message.id;
        self.replace(call, message, 0)?;
        Ok(id)
    }

    /// A message of a channel, or an ephemeral one, as REST returns it.
    fn any_object(&self, channel: Id, id: Id) -> Value {
        match self.world.ephemeral.get(&id) {
            Some(message) => render::message(&self.world, message, Audience::Rest),
            None => self.served_message(channel, id),
        }
    }

    fn callback_object(&self, interaction: &Interaction, kind: u64, message: Option<Id>) -> Value {
        let mut object = json!({
            "interaction": {"id": interaction.id.json(), "type": interaction.kind},
        });
        let Some(id) = message else { return object };
        let message = self.any_object(interaction.channel, id);
        let flags = given(&message, "flags")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        object["interaction"]["response_message_id"] = id.json();
        object["interaction"]["response_message_loading"] = (flags & LOADING != 0).into();
        object["interaction"]["response_message_ephemeral"] = (flags & EPHEMERAL != 0).into();
        if kind == 4 {
            object["resource"] = json!({"type": 4, "message": message});
        }
        object
    }
}

/// Whether an interaction accepts this callback type: autocompletion takes only
/// choices, and updates are for components.
fn check_kind(callback: u64, interaction: u8) -> Result<(), Refusal> {
    let taken: &[u64] = match interaction {
        3 => &[4, 5, 6, 7, 9, 12],
        4 => &[8],
        _ => &[4, 5, 9, 12],
    };
    if taken.contains(&callback) {
        return Ok(());
    }
    let taken: Vec<String> = taken.iter().map(u64::to_string).collect();
    let message = format!("Value must be one of {{{}}}.", taken.join(", "));
    Err(Refusal::invalid("type", "BASE_TYPE_CHOICES", &message))
}

/// The message type of a first answer: 20 to a slash command, 23 to a
/// context-menu command, 0 to a component.
fn answer_kind(interaction: &Interaction) -> u8 {
    match (interaction.kind, interaction.message) {
        (2, None) => 20,
        (2, Some(_)) => 23,
        _ => 0,
    }
}
