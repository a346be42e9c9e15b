//! What turns took of models: counted by day, server, model, agent and model server.

use super::top::Row;
use crate::model::{Cost, Prices};

/// Turns, requests and tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    /// Turns that ended.
    pub(super) turns: u64,
    /// Those of them that were answered.
    pub(super) answered: u64,
    /// Requests that the model answered.
    pub(super) requests: u64,
    /// Requests that it did not.
    pub(super) failed: u64,
    /// Answered requests of which the server did not count the tokens.
    pub(super) uncounted: u64,
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    /// Of the tokens whose price is known.
    pub(super) cost: Cost,
    /// Tokens whose price is not known.
    pub(super) unpriced: u64,
}

impl Usage {
    /// An answered request.
    pub(super) fn of_request(
        tokens: Option<(u64, u64)>,
        model: Option<&str>,
        prices: &Prices,
    ) -> Self {
        let (prompt_tokens, completion_tokens) = tokens.unwrap_or_default();
        let price = prices.of(model.unwrap_or_default());
        let all = prompt_tokens.saturating_add(completion_tokens);
        Self {
            requests: 1,
            uncounted: u64::from(tokens.is_none()),
            prompt_tokens,
            completion_tokens,
            cost: price.map_or(Cost::default(), |price| {
                price.cost(prompt_tokens, completion_tokens)
            }),
            unpriced: if price.is_some() { 0 } else { all },
            ..Self::default()
        }
    }

    /// A request without an answer.
    pub(super) fn of_failure() -> Self {
        Self {
            failed: 1,
            ..Self::default()
        }
    }

    /// A turn that ended.
    pub(super) fn of_turn(is_answered: bool) -> Self {
        Self {
            turns: 1,
            answered: u64::from(is_answered),
            ..Self::default()
        }
    }
}

impl Row for Usage {
    fn weight(&self) -> [u64; 2] {
        let tokens = self.prompt_tokens.saturating_add(self.completion_tokens);
        [tokens, self.turns]
    }

    fn add(&mut self, other: &Self) {
        let add = |into: &mut u64, more: u64| *into = into.saturating_add(more);
        add(&mut self.turns, other.turns);
        add(&mut self.answered, other.answered);
        add(&mut self.requests, other.requests);
        add(&mut self.failed, other.failed);
        add(&mut self.uncounted, other.uncounted);
        add(&mut self.prompt_tokens, other.prompt_tokens);
        add(&mut self.completion_tokens, other.completion_tokens);
        add(&mut self.unpriced, other.unpriced);
        self.cost = self.cost.plus(other.cost);
    }
}
