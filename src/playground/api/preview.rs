//! The context of a turn with other caps.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Body, SharedState, not_kept, trigger_id};
use crate::config::{Config, ContextSetting, Effective};
use crate::playground::error::ApiError;
use crate::playground::{Shared, context, source};
use crate::turn::{self, GatheredTurn};
use clew_context::model::{Limits, ReplyTarget};

/// The changed settings.
#[derive(Debug, Deserialize)]
pub(super) struct Changes {
    settings: BTreeMap<String, Value>,
}

/// The caps of one collecting.
type Caps = (Limits, ReplyTarget);

pub(super) async fn preview(
    State(shared): SharedState,
    Path(trigger): Path<String>,
    Body(Changes { settings }): Body<Changes>,
) -> Answer {
    let gathered = shared.turns.gathered(trigger_id(&trigger)?);
    let gathered = gathered.ok_or_else(not_kept)?;
    let changes = changes(&shared, settings)?;
    let config = load(&shared, &changes)?;
    let now = (gathered.input.limits, gathered.input.reply_target);
    let changed = changed(&shared.config, &config, now);
    let (now, changed) = tokio::try_join!(
        collected(&shared, &gathered, now),
        collected(&shared, &gathered, changed)
    )?;
    let lines = changes.iter();
    let env = lines.fold(String::new(), |env, (name, value)| {
        env + name + "=" + value + "\n"
    });
    Ok(Json(json!({"now": now, "changed": changed, "env": env})))
}

async fn collected(
    shared: &Shared,
    gathered: &GatheredTurn,
    (limits, target): Caps,
) -> Answer<Value> {
    let reader = source::reader(&shared.discord, shared.faults());
    let reader = reader.map_err(|error| ApiError::bad(error.to_string()))?;
    let services = &shared.services;
    let (context, calls) = turn::preview(services, gathered, &reader, limits, target).await;
    Ok(context::shown(&context, &calls))
}

/// The settings that differ from those in effect, as texts.
fn changes(shared: &Shared, settings: BTreeMap<String, Value>) -> Answer<Vec<(String, String)>> {
    let known = ContextSetting::all();
    let effective: Vec<_> = shared.config.effective().collect();
    let mut changes = Vec::new();
    for (name, value) in settings {
        if !known.iter().any(|setting| setting.variable.name == name) {
            return Err(ApiError::bad(format!(
                "{name} is no setting of the context"
            )));
        }
        let value = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Bool(switch) => switch.to_string(),
            _ => return Err(ApiError::bad(format!("{name} takes a text or a number"))),
        };
        // A line of `.env` each.
        if value.is_empty() || value.chars().any(char::is_control) {
            return Err(ApiError::bad(format!("{name} takes a value on one line")));
        }
        let is_same = |one: &Effective| one.name == name && one.shown == value;
        if !effective.iter().any(is_same) {
            changes.push((name, value));
        }
    }
    Ok(changes)
}

/// The bot's settings with the changes, checked like any.
fn load(shared: &Shared, changes: &[(String, String)]) -> Answer<Config> {
    let all = shared.settings.iter().chain(changes).cloned();
    Config::load(all, None).map_err(|errors| ApiError::bad(errors.to_string()))
}

/// The changed caps. What the server set for itself stays, unless it is changed.
fn changed(base: &Config, changed: &Config, (now, target): Caps) -> Caps {
    let (old, new) = (&base.limits, &changed.limits);
    let limits = Limits {
        link_context: unless_same(new.link_context, old.link_context, now.link_context),
        lone_context: unless_same(new.lone_context, old.lone_context, now.lone_context),
        place_context: unless_same(new.place_context, old.place_context, now.place_context),
        ..*new
    };
    let target = unless_same(changed.reply_target, base.reply_target, target);
    (limits, target)
}

/// The new value; if it is the old one, what holds now.
fn unless_same<T: Copy + PartialEq>(new: T, old: T, now: T) -> T {
    if new == old { now } else { new }
}
