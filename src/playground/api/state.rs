//! All that the page shows before anything happens.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::messages::MOST_FILE_BYTES;
use super::{Answer, SharedState};
use crate::config::{ContextSetting, Takes};
use crate::playground::Shared;
use clew_simulator::{Id, World};

/// The ids of what there is.
struct Places {
    people: Vec<Id>,
    /// Each with its channels and members.
    guilds: Vec<(Id, Vec<Id>, Vec<Id>)>,
    dms: Vec<Id>,
}

impl Places {
    fn of(world: &World) -> Self {
        let people = world.users().filter(|user| !user.bot).map(|user| user.id);
        let of_guild = |guild: Option<Id>| {
            let channels = world.channels().filter(move |one| one.guild == guild);
            channels.map(|channel| channel.id).collect::<Vec<Id>>()
        };
        let guilds = world.guilds().map(|guild| {
            let members = guild.members.keys().copied().collect();
            (guild.id, of_guild(Some(guild.id)), members)
        });
        Self {
            people: people.collect(),
            guilds: guilds.collect(),
            dms: of_guild(None),
        }
    }
}

pub(super) async fn state(State(shared): SharedState) -> Answer {
    let discord = &shared.discord;
    let places = discord.world(|world| Places::of(world));
    let channels = |ids: Vec<Id>| -> Value {
        let channels = ids.into_iter().map(|id| discord.channel_object(id));
        channels.collect()
    };
    let guilds = places.guilds.into_iter().map(|(id, inside, members)| {
        let mut guild = discord.guild_object(id);
        guild["channels"] = channels(inside);
        let members = members.iter().map(ToString::to_string);
        guild["members"] = members.collect();
        guild
    });
    let people = places.people.into_iter();
    let people = people.map(|id| discord.user_object(id));
    let (channel, content) = &shared.suggestion;
    Ok(Json(json!({
        "bot": discord.user_object(discord.bot()),
        "people": people.collect::<Vec<_>>(),
        "guilds": guilds.collect::<Vec<_>>(),
        "dms": channels(places.dms),
        "settings": settings(&shared),
        "model": shared.model,
        "proxies": !shared.config.triggers.proxies.is_empty(),
        "max_file_bytes": MOST_FILE_BYTES,
        "faults": shared.faults(),
        "turns": shared.turns.summaries(),
        "suggestion": {"channel": channel.to_string(), "content": content},
    })))
}

/// The caps and settings of the context, as they are in effect.
fn settings(shared: &Shared) -> Vec<Value> {
    let effective: Vec<_> = shared.config.effective().collect();
    let settings = ContextSetting::all().into_iter();
    let shown = settings.map(|setting| {
        let variable = setting.variable;
        let mut effective = effective.iter();
        let now = effective.find(|one| one.name == variable.name);
        let now = now.map_or(variable.default, |one| one.shown.as_str());
        let mut shown = json!({
            "name": variable.name,
            "value": value(now, &setting.takes),
            "default": value(variable.default, &setting.takes),
            "unit": variable.unit,
            "about": variable.about,
        });
        match setting.takes {
            Takes::Whole(range) => {
                shown["min"] = (*range.start()).into();
                shown["max"] = (*range.end()).into();
            }
            Takes::Seconds(range) => {
                shown["min"] = (*range.start()).into();
                shown["max"] = (*range.end()).into();
            }
            Takes::Words(words) => shown["choices"] = words.into(),
            Takes::Text => {}
        }
        shown
    });
    shown.collect()
}

/// A number if the setting is one.
fn value(text: &str, takes: &Takes) -> Value {
    let number = match takes {
        Takes::Whole(_) => text.parse::<u64>().ok().map(Value::from),
        Takes::Seconds(_) => text.parse::<f64>().ok().map(Value::from),
        Takes::Words(_) | Takes::Text => None,
    };
    number.unwrap_or_else(|| text.into())
}
