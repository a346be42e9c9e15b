//! How many turns run at once, and the form of an answer.

use std::num::NonZeroU32;
use std::time::Duration;

use super::check::Checker;
use super::variable as var;
use crate::model::TokenLimits;

/// The highest limit of tokens per day.
const MOST_TOKENS: u64 = 1_000_000_000_000;

/// How many turns may run and wait, and when further ones are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnConfig {
    /// `TURN_QUEUE_PER_CHANNEL`: the most triggers that wait behind a running turn.
    pub queue_per_channel: usize,
    /// `MAX_CONCURRENT_TURNS`, at least one.
    pub max_concurrent: usize,
    /// `USER_TURNS_PER_MIN`; if 0, none.
    pub user_per_minute: Option<NonZeroU32>,
    /// `TOKENS_PER_DAY` and `TOKENS_TOTAL_DAY`.
    pub tokens: TokenLimits,
    /// `SHUTDOWN_TIMEOUT_S`: how long running turns may take at shutdown.
    pub shutdown_timeout: Duration,
    /// What was asked while nobody listened.
    pub catch_up: CatchUpConfig,
}

/// How questions are caught up that were asked while nobody listened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatchUpConfig {
    /// `CATCH_UP_MIN`: how old they may be; zero: none are caught up.
    pub within: Duration,
    /// `CATCH_UP_MAX_FETCHES`: the most pages that are read for it.
    pub max_fetches: usize,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerConfig {
    /// `ANSWER_MAX_MESSAGES`, at least one; the rest is attached as a file.
    pub max_messages: usize,
    /// `RECEIPT_BUTTON`.
    pub receipt_button: bool,
}

pub(super) fn read(check: &mut Checker) -> TurnConfig {
    let per_minute = check.number(&var::USER_TURNS_PER_MIN, 0..=1_000);
    TurnConfig {
        queue_per_channel: check.number(&var::TURN_QUEUE_PER_CHANNEL, 0..=100),
        max_concurrent: check.number(&var::MAX_CONCURRENT_TURNS, 1..=10_000),
        user_per_minute: NonZeroU32::new(per_minute),
        tokens: tokens(check),
        shutdown_timeout: check.seconds(&var::SHUTDOWN_TIMEOUT_S, 0.0..=600.0),
        catch_up: CatchUpConfig {
            within: Duration::from_mins(check.number(&var::CATCH_UP_MIN, 0..=30)),
            max_fetches: check.number(&var::CATCH_UP_MAX_FETCHES, 1..=10_000),
        },
    }
}

/// The limits of tokens, of which 0 is none.
fn tokens(check: &mut Checker) -> TokenLimits {
    let accepted = format!("a person's and a server's, each from 0 to {MOST_TOKENS}");
    let read = |text: &str| {
        let (user, guild) = text.split_once(',')?;
        let limit = |text: &str| text.trim().parse().ok().filter(|most| *most <= MOST_TOKENS);
        let most = |limit: u64| (limit > 0).then_some(limit);
        Some(TokenLimits {
            per_user: most(limit(user)?),
            per_guild: most(limit(guild)?),
            total: None,
        })
    };
    let limits = check.optional(&var::TOKENS_PER_DAY, &accepted, read);
    let total = check.number(&var::TOKENS_TOTAL_DAY, 0..=MOST_TOKENS);
    TokenLimits {
        total: (total > 0).then_some(total),
        ..limits.unwrap_or_default()
    }
}
