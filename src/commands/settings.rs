//! `/settings show|set`: how the bot behaves in a server. Needs Manage Server.

use std::collections::BTreeSet;

use super::call::Call;
use super::done::{Done, Stop};
use super::server_memory::managed;
use super::{Context, words};
use clew_context::model::{ChannelId, ReplyTarget};
use clew_discord::model::{Answer, AnswerEmbed, SettingsCommand};
use clew_store::model::GuildSettings;

/// The most characters in a list of channels.
const CHANNELS_CHARS: usize = 900;

pub(super) async fn run(
    context: &Context<'_>,
    call: &Call,
    command: &SettingsCommand,
) -> Result<Done, Stop> {
    let guild = managed(call)?;
    let (title, settings) = match command {
        SettingsCommand::Show => (
            "How I behave in this server",
            context.memory.guild_settings(guild),
        ),
        SettingsCommand::Set(change) => (
            "Changed. This is how I behave in this server from now on",
            context.memory.change_settings(guild, change).await?,
        ),
    };
    Ok(Done::answer(Answer::default().with_embed(AnswerEmbed {
        title: title.to_owned(),
        fields: fields(context, call, &settings),
        ..AnswerEmbed::default()
    })))
}

/// The settings in effect, and whether they were set here.
fn fields(context: &Context<'_>, call: &Call, settings: &GuildSettings) -> Vec<(String, String)> {
    let operators = context.memory.settings();
    let target = settings.reply_target.unwrap_or(context.reply_target);
    let learning = match (operators.learn, settings.learning.unwrap_or(true)) {
        (true, true) => "on",
        (true, false) => "off",
        (false, true) => "off: the people who run this bot have switched it off for all servers",
        (false, false) => "off, for all servers too",
    };
    let field = |name: &str, value: String, is_set: bool| {
        let source = if is_set { "" } else { " (not set here)" };
        (name.to_owned(), format!("{value}{source}"))
    };
    vec![
        (
            "I remember a conversation for".to_owned(),
            window(context, call, settings),
        ),
        field(
            "My answers in threads reply to",
            match target {
                ReplyTarget::Newest => "the newest message".to_owned(),
                ReplyTarget::Trigger => "the message that asked".to_owned(),
            },
            settings.reply_target.is_some(),
        ),
        field(
            "Learning from conversations",
            learning.to_owned(),
            settings.learning.is_some(),
        ),
        field("I am silent in", listed(&settings.channels_off), true),
        field(
            "I answer every message in",
            listed(&settings.channels_answered),
            true,
        ),
    ]
}

/// The rolling window. The server's takes precedence over the agent's, and
/// that over the operator's; a window that is overridden is shown as well.
fn window(context: &Context<'_>, call: &Call, settings: &GuildSettings) -> String {
    let operators = words::span(context.memory.settings().rolling_window);
    let agent = context.agents.pick(call.channel_id(), call.parent());
    let own = agent.and_then(|agent| Some((agent.rolling_window?, agent)));
    let own = own.map(|(window, agent)| (words::span(window), agent.name.to_string()));
    match (settings.rolling_window.map(words::span), own) {
        (None, None) => format!("{operators} (not set here)"),
        (None, Some((own, agent))) => {
            format!(
                "{own}, as the agent `{agent}` in this channel has it; elsewhere {operators} (not set here)"
            )
        }
        (Some(set), None) => set,
        (Some(set), Some((own, agent))) => format!(
            "{set}, and not the {own} that the agent `{agent}` in this channel has by itself: \
             `rolling-window:default` gives it that back"
        ),
    }
}

fn listed(channels: &BTreeSet<ChannelId>) -> String {
    if channels.is_empty() {
        return "no channel".to_owned();
    }
    let mut text = String::new();
    for (at, channel) in channels.iter().enumerate() {
        if text.len() > CHANNELS_CHARS {
            text.push_str(&format!(" and {} more", channels.len() - at));
            break;
        }
        let gap = if at > 0 { ", " } else { "" };
        text.push_str(&format!("{gap}<#{channel}>"));
    }
    text
}
