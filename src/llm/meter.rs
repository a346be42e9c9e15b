//! Counts the tokens that requests use, for whoever asked. Every request that a server
//! may have worked on counts, also one that broke off or was cancelled.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Usage;
use super::estimate::{estimated, tokens};
use crate::engine::daily_tokens::{DailyTokens, Share, Shares, UsedTokens};
use crate::model::{Payer, TokenLimits};
use clew_context::model::{ChatMessage, Clock};

/// What has been used today, against the operator's limits.
pub struct TokenMeter {
    clock: Clock,
    today: Mutex<DailyTokens>,
}

/// A meter, and whose limits count.
#[derive(Debug, Clone)]
pub(super) struct TokenAccount {
    pub(super) meter: Arc<TokenMeter>,
    pub(super) payer: Payer,
}

/// A request that was sent: its tokens are counted when this is dropped.
pub(super) struct Charge<'a> {
    account: &'a TokenAccount,
    /// An estimate.
    prompt_tokens: usize,
    /// What has arrived of the answer.
    answer_bytes: usize,
    usage: Option<Usage>,
}

impl TokenMeter {
    /// Counts on from what was kept.
    pub fn new(limits: TokenLimits, kept: UsedTokens, clock: Clock) -> Self {
        let today = DailyTokens::new(limits, kept, clock());
        Self {
            clock,
            today: Mutex::new(today),
        }
    }

    /// What has been used of the limits that count for somebody.
    pub fn shares(&self, payer: Payer) -> Shares {
        self.today.lock().shares(payer, (self.clock)())
    }

    /// What everybody has used together; none without a limit.
    pub fn total(&self) -> Option<Share> {
        self.today.lock().total((self.clock)())
    }

    /// What is kept over a restart.
    pub fn used(&self) -> UsedTokens {
        self.today.lock().used().clone()
    }
}

impl fmt::Debug for TokenMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenMeter").finish_non_exhaustive()
    }
}

impl<'a> Charge<'a> {
    pub(super) fn new(account: &'a TokenAccount, prompt: &[ChatMessage]) -> Self {
        Self {
            account,
            prompt_tokens: tokens(prompt),
            answer_bytes: 0,
            usage: None,
        }
    }

    /// A piece of the answer has arrived.
    pub(super) fn take(&mut self, bytes: usize, usage: Option<Usage>) {
        self.answer_bytes = self.answer_bytes.saturating_add(bytes);
        self.usage = usage.or(self.usage);
    }

    /// No server took the request: it costs nothing.
    pub(super) fn waive(mut self) {
        self.prompt_tokens = 0;
    }

    fn tokens(&self) -> u64 {
        used(self.usage, self.prompt_tokens, self.answer_bytes)
    }
}

/// The tokens of a request, as the server counted, where it did: some say zero for what
/// they do not count.
pub(super) fn used(usage: Option<Usage>, prompt_tokens: usize, answer_bytes: usize) -> u64 {
    let counted = |of: fn(&Usage) -> u64, estimate: usize| {
        let counted = usage.as_ref().map(of).filter(|tokens| *tokens > 0);
        counted.unwrap_or(estimate as u64)
    };
    let prompt = counted(|usage| usage.prompt_tokens, prompt_tokens);
    let answer = counted(|usage| usage.completion_tokens, estimated(answer_bytes));
    prompt.saturating_add(answer)
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        let TokenAccount { meter, payer } = self.account;
        let now = (meter.clock)();
        meter.today.lock().add(*payer, self.tokens(), now);
    }
}
