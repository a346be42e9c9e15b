//! The connection to Discord.

use super::check::Checker;
use super::{Endpoint, variable as var};
use clew_context::model::Secret;

/// How to reach Discord, and what to request from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscordConfig {
    /// `DISCORD_TOKEN`, without a leading `Bot `. Only `run` needs it.
    pub token: Option<Secret>,
    /// `DISCORD_API_URL`: another base for REST, `http://host:port`, without path.
    pub api: Option<Endpoint>,
    /// `DISCORD_GATEWAY_URL`: `ws://host:port`, without path. If absent while
    /// `api` is set, the address that the API's `/gateway/bot` returns.
    pub gateway: Option<Endpoint>,
    /// `DISCORD_MESSAGE_CONTENT`.
    pub message_content: MessageContent,
    /// `DISCORD_MEMBERS_INTENT`.
    pub members_intent: bool,
}

/// Whether to request the privileged message content intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageContent {
    /// Requested; Discord refuses the connection if it is not enabled.
    Required,
    /// Not requested: only mentions of us, replies that ping us and direct
    /// messages have text.
    Off,
}

pub(super) fn read(check: &mut Checker) -> DiscordConfig {
    DiscordConfig {
        token: check.optional(
            &var::DISCORD_TOKEN,
            "the token as the developer portal shows it, without spaces",
            token,
        ),
        api: check.optional(
            &var::DISCORD_API_URL,
            "http://host:port or https://host:port without a path",
            |text| bare(text, &["http", "https"]),
        ),
        gateway: check.optional(
            &var::DISCORD_GATEWAY_URL,
            "ws://host:port or wss://host:port without a path",
            |text| bare(text, &["ws", "wss"]),
        ),
        message_content: check.one_of(
            &var::DISCORD_MESSAGE_CONTENT,
            &[
                ("required", MessageContent::Required),
                ("off", MessageContent::Off),
            ],
        ),
        members_intent: check.switch(&var::DISCORD_MEMBERS_INTENT),
    }
}

fn token(text: &str) -> Option<Secret> {
    let token = text.strip_prefix("Bot ").unwrap_or(text).trim();
    let printable = token.bytes().all(|byte| byte.is_ascii_graphic());
    (printable && !token.is_empty()).then(|| Secret::new(token))
}

fn bare(text: &str, schemes: &[&'static str]) -> Option<Endpoint> {
    Endpoint::parse(text, schemes).filter(|endpoint| endpoint.path().is_empty())
}
