//! People at the client: they use a registered command, press a button they see,
//! pick a proposed choice, and read the result.

use serde_json::Value;

use super::interact::{Choice, Use};
use super::watch::WaitError;
use crate::draft::File;
use crate::ids::Id;
use crate::script::ScriptError;
use crate::state::State;
use crate::world::Message;
use crate::world::flag::{EPHEMERAL, LOADING};
use crate::{Permissions, Simulator};

/// One use of the bot, and its results.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    simulator: &'a Simulator,
    /// The interaction's id.
    pub id: Id,
}

/// A message as the user who caused it sees it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its id.
    pub message: Id,
    /// Its text.
    pub content: String,
    /// Its embeds.
    pub embeds: Vec<Value>,
    /// Its rows of components.
    pub components: Vec<Value>,
    /// Whether only that user sees it.
    pub ephemeral: bool,
    /// Its files.
    pub files: Vec<File>,
}

impl Shown {
    /// Label and custom id of each button, in order.
    pub fn buttons(&self) -> Vec<(String, String)> {
        let buttons = buttons(&self.components);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        buttons
            .map(|button| (text(&button["label"]), text(&button["custom_id"])))
            .collect()
    }

    /// All text on it, one item per line: the content, then each embed's title,
    /// description, fields and footer.
    pub fn text(&self) -> String {
        let mut lines = vec![self.content.as_str()];
        for embed in &self.embeds {
            let fields = embed["fields"].as_array();
            let fields = fields.into_iter().flatten();
            let fields = fields.flat_map(|field| [&field["name"], &field["value"]]);
            let texts = [&embed["title"], &embed["description"]].into_iter();
            let texts = texts.chain(fields).chain([&embed["footer"]["text"]]);
            lines.extend(texts.filter_map(Value::as_str));
        }
        lines.retain(|line| !line.is_empty());
        lines.join("\n")
    }
}

impl Simulator {
    /// Uses a slash command, such as `memory remember`, with its options by name,
    /// as soon as it is registered. Rejects what a client would not let anybody
    /// send. Server administrators decide who may use a command, so that is left to
    /// the bot (see [`offered`](Self::offered)).
    ///
    /// # Errors
    ///
    /// The command was not registered in time, or does not have these options.
    pub async fn call(
        &self,
        user: Id,
        channel: Id,
        command: &str,
        options: Value,
    ) -> Result<Invocation<'_>, WaitError> {
        let (name, sub, place) = self.place(channel, command).await?;
        let options = within(sub, choices_for(&place, command, &options)?);
        let id = self.interact(channel, user, &Use::Slash { name, options });
        Ok(self.invocation(id))
    }

    /// Uses a command in the menu of a message.
    pub fn call_on(&self, user: Id, channel: Id, command: &str, message: Id) -> Invocation<'_> {
        let used = Use::on_message(command, message);
        self.invocation(self.interact(channel, user, &used))
    }

    /// Types in an option of a command and returns the proposed choices as name and value.
    ///
    /// # Errors
    ///
    /// The command was not registered or nothing was proposed in time, or the
    /// option has no autocompletion.
    pub async fn complete(
        &self,
        user: Id,
        channel: Id,
        command: &str,
        option: &str,
        typed: &str,
    ) -> Result<Vec<(String, String)>, WaitError> {
        let (name, sub, place) = self.place(channel, command).await?;
        if option_of(&place, option, command)?["autocomplete"] != true {
            return Err(ScriptError(format!("`{option}` of `/{command}` is not completed")).into());
        }
        let options = within(sub, vec![Choice::text(option, typed)]);
        let id = self.interact(channel, user, &Use::Autocomplete { name, options });
        let what = format!("choices for `{option}` of `/{command}`");
        self.wait(&what, |state| {
            let callback = state.world.interactions.get(&id)?.callback.as_ref()?;
            let choices = callback["data"]["choices"].as_array();
            let text = |value: &Value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let choices = choices.into_iter().flatten();
            let choices = choices.map(|one| (text(&one["name"]), text(&one["value"])));
            Some(choices.collect())
        })
        .await
    }

    /// Presses a button by its label. A button that the person does not see is a
    /// mistake in the script, see [`mistake`](Self::mistake).
    pub fn press(&self, user: Id, message: Id, label: &str) -> Invocation<'_> {
        let id = self.shared.with(|state| {
            let pressed = state.press(user, message, ("label", label));
            pressed.unwrap_or_else(|mistake| {
                state.world.note_mistake(mistake.0);
                state.world.fresh_id()
            })
        });
        self.invocation(id)
    }

    const fn invocation(&self, id: Id) -> Invocation<'_> {
        Invocation {
            simulator: self,
            id,
        }
    }

    /// Presses a button by its custom id.
    ///
    /// # Errors
    ///
    /// The person does not see such a button.
    pub fn press_id(
        &self,
        user: Id,
        message: Id,
        custom_id: &str,
    ) -> Result<Invocation<'_>, ScriptError> {
        let named = ("custom_id", custom_id);
        let pressed = self.shared.with(|state| state.press(user, message, named));
        Ok(self.invocation(pressed?))
    }

    /// The slash commands that the client offers somebody in a channel, as they were
    /// registered, by their contexts and default permissions.
    pub fn offered(&self, user: Id, channel: Id) -> Vec<Value> {
        self.offered_of(1, user, channel)
    }

    /// The same in the menu of a message.
    pub fn offered_on_messages(&self, user: Id, channel: Id) -> Vec<Value> {
        self.offered_of(3, user, channel)
    }

    fn offered_of(&self, kind: u64, user: Id, channel: Id) -> Vec<Value> {
        self.shared.read(|state| {
            let held = state.world.permissions(user, channel);
            let direct = state.world.guild_of(channel).is_none();
            let commands = state.commands_in(channel).filter(|body| {
                let needed = body["default_member_permissions"].as_str();
                let needed = needed.and_then(|needed| needed.parse().ok()).unwrap_or(0);
                body["type"].as_u64().unwrap_or(1) == kind
                    && (direct || held.contains(Permissions(needed)))
            });
            commands.cloned().collect()
        })
    }

    /// The name of a command, that of its sub-command or nothing, and the definition that has
    /// its options, once it is registered.
    async fn place<'a>(
        &self,
        channel: Id,
        command: &'a str,
    ) -> Result<(String, &'a str, Value), WaitError> {
        let (name, sub) = command.split_once(' ').unwrap_or((command, ""));
        let what = format!("the registration of `/{name}` for {channel}");
        let registered = self.wait(&what, |state| {
            let mut commands = state.commands_in(channel);
            commands.find(|body| body["name"] == name).cloned()
        });
        let definition = registered.await?;
        let place = match sub {
            "" => definition,
            sub => option_of(&definition, sub, command)?.clone(),
        };
        Ok((name.to_owned(), sub, place))
    }
}

impl Invocation<'_> {
    /// The final answer: the message, what replaces "thinking", or the message that
    /// has the button, once it was changed.
    ///
    /// # Errors
    ///
    /// There was no final answer in time.
    pub async fn answer(&self) -> Result<Shown, WaitError> {
        let what = format!("the answer to interaction {}", self.id);
        let look = |state: &State| state.shown_answer(self.id);
        self.simulator.wait(&what, look).await
    }

    /// A message sent after the first answer, by index from 0.
    ///
    /// # Errors
    ///
    /// It was not sent in time.
    pub async fn follow_up(&self, index: usize) -> Result<Shown, WaitError> {
        let what = format!("follow-up {index} of interaction {}", self.id);
        let look = |state: &State| {
            let interaction = state.world.interactions.get(&self.id)?;
            let message = *interaction.followups.get(index)?;
            let found = state.world.any_message(interaction.channel, message);
            found.map(shown)
        };
        self.simulator.wait(&what, look).await
    }

    /// The type of the first answer (4 message, 5 thinking, 6 and 7 updates), if there is one.
    pub fn callback(&self) -> Option<u64> {
        let interaction = self.simulator.interaction(self.id)?;
        interaction.callback?["type"].as_u64()
    }
}

impl State {
    fn shown_answer(&self, id: Id) -> Option<Shown> {
        let interaction = self.world.interactions.get(&id)?;
        let callback = interaction.callback.as_ref()?["type"].as_u64()?;
        let original = interaction.original?;
        let message = self.world.any_message(interaction.channel, original)?;
        let complete = match callback {
            5 => message.flags & LOADING == 0,
            6 => interaction.edited,
            _ => true,
        };
        complete.then(|| shown(message))
    }

    /// A message that a person sees; an ephemeral one is visible to its user only.
    fn seen_by(&self, user: Id, message: Id) -> Option<&Message> {
        if let Some(hidden) = self.world.ephemeral.get(&message) {
            let interaction = self.world.interactions.get(&hidden.interaction?)?;
            return (interaction.user == user).then_some(hidden);
        }
        let mut channels = self.world.channels.values();
        let found = channels.find_map(|channel| channel.messages.get(&message))?;
        self.world.sees(user, found.channel).then_some(found)
    }

    /// Presses the button that has this value under this key, if the person sees it.
    fn press(
        &mut self,
        user: Id,
        message: Id,
        (key, value): (&str, &str),
    ) -> Result<Id, ScriptError> {
        let found = self.seen_by(user, message);
        let found =
            found.ok_or_else(|| ScriptError(format!("{user} sees no message {message}")))?;
        let is_meant = |button: &&Value| button[key] == value && button["disabled"] != true;
        let button = buttons(&found.components).find(is_meant).ok_or_else(|| {
            let shown = &found.components;
            ScriptError(format!("there is no button `{value}` to press: {shown:?}"))
        })?;
        let custom_id = button["custom_id"].as_str().unwrap_or_default().to_owned();
        let channel = found.channel;
        let used = Use::Component {
            message,
            custom_id,
            values: Vec::new(),
        };
        Ok(self.interact(channel, user, &used))
    }

    /// The commands of a channel's guild, and the global ones for this kind of channel.
    fn commands_in(&self, channel: Id) -> impl Iterator<Item = &Value> {
        let guild = self.world.guild_of(channel);
        let context = Value::from(u8::from(guild.is_none()));
        let commands = self.world.commands.iter().filter(move |command| {
            let contexts = command.body["contexts"].as_array();
            match command.guild {
                Some(of) => guild == Some(of),
                None => contexts.is_none_or(|contexts| contexts.contains(&context)),
            }
        });
        commands.map(|command| &command.body)
    }
}

/// Options of a sub-command, if it is one.
fn within(sub: &str, options: Vec<Choice>) -> Vec<Choice> {
    match sub {
        "" => options,
        sub => vec![Choice::subcommand(sub, options)],
    }
}

fn shown(message: &Message) -> Shown {
    let files = message.attachments.iter();
    Shown {
        message: message.id,
        content: message.content.clone(),
        embeds: message.embeds.clone(),
        components: message.components.clone(),
        ephemeral: message.flags & EPHEMERAL != 0,
        files: files.map(|one| one.file.clone()).collect(),
    }
}

fn buttons(rows: &[Value]) -> impl Iterator<Item = &Value> {
    let inner = rows.iter().filter_map(|row| row["components"].as_array());
    inner.flatten().filter(|component| component["type"] == 2)
}

/// The option with this name in a command or subcommand.
fn option_of<'a>(place: &'a Value, name: &str, command: &str) -> Result<&'a Value, ScriptError> {
    let mut options = place["options"].as_array().into_iter().flatten();
    let found = options.find(|option| option["name"] == name);
    found.ok_or_else(|| ScriptError(format!("`/{command}` has no `{name}`")))
}

/// The options as the client would send them.
fn choices_for(place: &Value, command: &str, options: &Value) -> Result<Vec<Choice>, ScriptError> {
    for (name, _) in options.as_object().into_iter().flatten() {
        option_of(place, name, command)?;
    }
    let defined = place["options"].as_array().into_iter().flatten();
    let mut choices = Vec::new();
    for option in defined {
        let name = option["name"].as_str().unwrap_or_default();
        let kind = option["type"].as_u64().unwrap_or(0);
        if kind <= 2 {
            return Err(ScriptError(format!("`/{command}` needs a sub-command")));
        }
        match options.get(name) {
            Some(value) if fits(option, value) => choices.push(Choice {
                name: name.to_owned(),
                kind: u8::try_from(kind).unwrap_or(u8::MAX),
                value: value.clone(),
                options: Vec::new(),
            }),
            Some(value) => {
                return Err(ScriptError(format!(
                    "`{name}` of `/{command}` is no {value}"
                )));
            }
            None if option["required"] == true => {
                return Err(ScriptError(format!("`/{command}` needs `{name}`")));
            }
            None => {}
        }
    }
    Ok(choices)
}

/// Whether a client would accept this value for an option.
fn fits(option: &Value, value: &Value) -> bool {
    let bound = |key: &str, otherwise: i64| option[key].as_i64().unwrap_or(otherwise);
    let kind_fits = match option["type"].as_u64() {
        Some(3) => value.as_str().is_some_and(|text| {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            (bound("min_length", 0)..=bound("max_length", 6_000)).contains(&length)
        }),
        Some(4) => value.as_i64().is_some_and(|number| {
            (bound("min_value", i64::MIN)..=bound("max_value", i64::MAX)).contains(&number)
        }),
        Some(5) => value.is_boolean(),
        Some(6..=9) => Id::parse(value).is_some(),
        _ => true,
    };
    let choices = option["choices"].as_array().filter(|all| !all.is_empty());
    kind_fits && choices.is_none_or(|all| all.iter().any(|choice| choice["value"] == *value))
}
