//! What a request counts, whichever way it ends.

use std::sync::Arc;
use std::time::Duration;

use clew::engine::daily_tokens::UsedTokens;
use clew::llm::{AnswerStep, ModelServers, TokenMeter};
use clew::model::{Payer, TokenLimits};
use clew_context::engine::echo::Echo;
use clew_context::model::{GuildId, UserId, fixed_clock};
use futures_util::StreamExt;
use serde_json::json;

use super::{IMPATIENT, PATIENT, prompt, settings, whole};
use crate::support::START;
use crate::support::model::{Behaviour, FakeModel, text_event};

/// The bytes of `prompt()` by three.
const PROMPT: u64 = 12;
const LIMITS: TokenLimits = TokenLimits {
    per_user: Some(1),
    per_guild: Some(1),
    total: None,
};

struct Metered {
    server: FakeModel,
    meter: Arc<TokenMeter>,
    servers: ModelServers,
}

/// Servers that somebody in a server asks.
async fn metered(timeout: Duration) -> Metered {
    let server = FakeModel::start().await;
    let meter = TokenMeter::new(LIMITS, UsedTokens::default(), fixed_clock(START));
    let meter = Arc::new(meter);
    let servers = ModelServers::new(settings(server.url(), timeout), Vec::new(), 0).unwrap();
    let payer = Payer {
        spender: UserId::new(1).into(),
        guild: Some(GuildId::new(7)),
        limits: clew_store::model::RoleLimits::default(),
    };
    let servers = servers.metered(Arc::clone(&meter)).asked_by(payer, None);
    Metered {
        server,
        meter,
        servers,
    }
}

impl Metered {
    /// What was counted, the same for the user and the server.
    #[track_caller]
    fn counted(&self) -> u64 {
        let used = serde_json::to_value(self.meter.used()).unwrap();
        let user = used["users"]["1"].as_u64().unwrap_or(0);
        assert_eq!(user, used["guilds"]["7"].as_u64().unwrap_or(0));
        user
    }
}

async fn check(timeout: Duration, behaviours: Vec<Behaviour>, expected: u64) {
    let metered = metered(timeout).await;
    for behaviour in behaviours {
        metered.server.script(behaviour);
    }
    let _ = whole(&metered.servers).await;
    assert_eq!(metered.counted(), expected);
}

fn without_usage(events: &str) -> Behaviour {
    Behaviour::Raw("text/event-stream", events.as_bytes().to_vec())
}

#[tokio::test]
async fn usage_counts_and_where_it_is_missing_an_estimate() {
    assert_eq!(clew::llm::tokens(&prompt()) as u64, PROMPT);
    check(PATIENT, vec![Behaviour::text(&["ok"])], 10).await;
    let text = text_event("twelve bytes");
    let done = "data: [DONE]\n\n";
    check(
        PATIENT,
        vec![without_usage(&format!("{text}{done}"))],
        PROMPT + 4,
    )
    .await;
    let zero = json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 3}});
    let zero = format!("{text}data: {zero}\n\n{done}");
    check(PATIENT, vec![without_usage(&zero)], PROMPT + 3).await;
}

#[tokio::test]
async fn a_request_that_breaks_off_or_falls_silent_counts_and_a_refused_one_does_not() {
    check(
        PATIENT,
        vec![Behaviour::drop(&["twelve bytes"])],
        PROMPT + 4,
    )
    .await;
    check(
        IMPATIENT,
        vec![Behaviour::stall(&["twelve bytes"])],
        PROMPT + 4,
    )
    .await;
    check(IMPATIENT, vec![Behaviour::Hang], PROMPT).await;
    check(PATIENT, vec![Behaviour::status(401, "no")], 0).await;
    // The second attempt of the same request.
    let again = vec![Behaviour::rate_limited("0"), Behaviour::text(&["ok"])];
    check(PATIENT, again, 10).await;
}

#[tokio::test]
async fn a_cancelled_request_counts() {
    let metered = metered(PATIENT).await;
    metered.server.script(Behaviour::stall(&["twelve bytes"]));
    let (mut attempts, prompt) = (metered.servers.attempts(), prompt());
    let mut steps = Box::pin(attempts.answer(&prompt, &[], Echo::default()));
    let step = steps.next().await.unwrap().unwrap();
    assert!(matches!(step, AnswerStep::Text(_)), "{step:?}");
    assert_eq!(metered.counted(), 0);
    drop(steps);
    assert_eq!(metered.counted(), PROMPT + 4);
}
