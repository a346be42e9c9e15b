//! From settings to the parts that they set.

use std::sync::{Arc, Mutex};

use crate::collect::Recall;
use crate::config::{Config, MessageContent};
use crate::discord::event::{FatalReason, LostBy};
use crate::discord::facts::Facts;
use crate::discord::gateway::GatewaySettings;
use crate::discord::rest::Rest;
use crate::discord::session::ShardSession;
use crate::engine::route::Rules;
use crate::engine::window::{Window, WindowLimits};
use crate::telemetry::event::{self, Answers, Capped, Started};
use crate::telemetry::{self, Telemetry};
use crate::turn::{Services, Settings};
use crate::{app, llm};

pub(super) fn services(
    config: &Config,
    token: &str,
    telemetry: Telemetry,
    secret: Vec<u8>,
) -> Result<Services, app::Error> {
    let api = config.discord.api.as_ref().map(ToString::to_string);
    let limits = WindowLimits {
        per_channel: config.window.per_channel,
        max_bytes: config.window.max_bytes,
    };
    Ok(Services {
        rest: Rest::new(token, api.as_deref())?,
        facts: Arc::new(Facts::default()),
        model: model(config).map(llm::Client::new).transpose()?,
        telemetry,
        window: Mutex::new(Window::new(limits)),
        opt_outs: Arc::default(),
        recall: Recall::default(),
        settings: Settings {
            system: config.prompt.clone(),
            limits: config.limits,
            reply_target: config.reply_target,
            max_messages: config.answers.max_messages,
            secret,
        },
    })
}

fn model(config: &Config) -> Option<llm::Settings> {
    let model = config.llm.as_ref()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a temperature has two digits"
    )]
    let temperature = model.temperature.map(|temperature| temperature as f32);
    Some(llm::Settings {
        base_url: model.base_url.to_string(),
        api_key: model.api_key.clone(),
        model: model.model.clone(),
        timeout: model.timeout,
        max_output_tokens: model.max_output_tokens,
        temperature,
    })
}

pub(super) fn gateway(config: &Config, token: &str, resume: Vec<ShardSession>) -> GatewaySettings {
    GatewaySettings {
        token: token.to_owned(),
        url: config.discord.gateway.as_ref().map(ToString::to_string),
        message_content: sees_content(config),
        members: config.discord.members_intent,
        resume,
    }
}

pub(super) fn rules(config: &Config) -> Rules {
    Rules {
        access: config.access.clone(),
        triggers: config.triggers.clone(),
        message_content: sees_content(config),
    }
}

fn sees_content(config: &Config) -> bool {
    config.discord.message_content == MessageContent::Required
}

pub(super) fn telemetry(config: &Config) -> telemetry::Settings {
    telemetry::Settings {
        dir: config.telemetry.dir.clone(),
        keep_days: config.telemetry.keep_days.map_or(0, |days| days as usize),
        log_subsys: config.telemetry.context_subsys.clone(),
    }
}

pub(super) fn started(config: &Config) -> Started {
    Started {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        answers: if config.llm.is_some() {
            Answers::Model
        } else {
            Answers::Inspector
        },
        caps: Capped::from(&config.limits),
    }
}

pub(super) fn lost_by(by: LostBy) -> event::LostBy {
    match by {
        LostBy::Network => event::LostBy::Network,
        LostBy::Heartbeat => event::LostBy::Heartbeat,
        LostBy::Reconnect => event::LostBy::Reconnect,
        LostBy::InvalidSession => event::LostBy::InvalidSession,
        LostBy::Closed => event::LostBy::Closed,
    }
}

pub(super) fn fatal(reason: &FatalReason) -> event::FatalReason {
    match reason {
        FatalReason::TokenRefused => event::FatalReason::TokenRejected,
        FatalReason::IntentsRefused { .. } => event::FatalReason::DisallowedIntents,
        FatalReason::IntentsInvalid => event::FatalReason::InvalidIntents,
        FatalReason::ShardingRefused(_) => event::FatalReason::Sharding,
        FatalReason::Closed(_) | FatalReason::Broken => event::FatalReason::Other,
    }
}
