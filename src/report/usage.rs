//! What turns took of models: counted by day, server, model, agent and model server.

use serde::{Serialize, Serializer};

use super::top::{Row, add_fields};
use crate::model::{Cost, Prices};

/// Turns, requests, tokens and cost.
#[derive(Debug, Default, Serialize)]
pub(super) struct Usage {
    /// Turns that ended.
    pub(super) turns: u64,
    pub(super) answered: u64,
    /// Requests that the model answered.
    pub(super) requests: u64,
    /// Requests that it did not.
    pub(super) failed_requests: u64,
    /// Answered requests of which the server did not count the tokens.
    pub(super) uncounted_requests: u64,
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    /// Tokens of models without a price.
    pub(super) unpriced_tokens: u64,
    /// Of the others; none if no price is set.
    #[serde(serialize_with = "amount")]
    pub(super) cost: Option<Cost>,
}

impl Usage {
    pub(super) fn none(prices: &Prices) -> Self {
        Self {
            cost: prices.is_known().then(Cost::default),
            ..Self::default()
        }
    }

    /// An answered request.
    pub(super) fn of_request(
        tokens: Option<(u64, u64)>,
        model: Option<&str>,
        prices: &Prices,
    ) -> Self {
        let (prompt_tokens, completion_tokens) = tokens.unwrap_or_default();
        let price = prices.of(model.unwrap_or_default());
        let all = prompt_tokens.saturating_add(completion_tokens);
        let none = Self::none(prices);
        Self {
            requests: 1,
            uncounted_requests: u64::from(tokens.is_none()),
            prompt_tokens,
            completion_tokens,
            unpriced_tokens: if price.is_some() { 0 } else { all },
            cost: price.map_or(none.cost, |price| {
                Some(price.cost(prompt_tokens, completion_tokens))
            }),
            ..none
        }
    }

    /// A request without an answer.
    pub(super) fn of_failure(prices: &Prices) -> Self {
        Self {
            failed_requests: 1,
            ..Self::none(prices)
        }
    }

    /// A turn that ended.
    pub(super) fn of_turn(is_answered: bool, prices: &Prices) -> Self {
        Self {
            turns: 1,
            answered: u64::from(is_answered),
            ..Self::none(prices)
        }
    }

    /// The cost in whole units of the currency, to the millionth.
    pub(super) fn amount(&self) -> Option<f64> {
        self.cost.map(rounded)
    }
}

fn rounded(cost: Cost) -> f64 {
    (cost.amount() * 1e6).round() / 1e6
}

#[expect(clippy::ref_option, reason = "serde hands on a reference to the field")]
fn amount<S: Serializer>(cost: &Option<Cost>, to: S) -> Result<S::Ok, S::Error> {
    cost.map(rounded).serialize(to)
}

impl Row for Usage {
    fn weight(&self) -> [u64; 2] {
        let tokens = self.prompt_tokens.saturating_add(self.completion_tokens);
        [tokens, self.turns]
    }

    fn add(&mut self, other: &Self) {
        add_fields!(self, other; turns, answered, requests, failed_requests, uncounted_requests);
        add_fields!(self, other; prompt_tokens, completion_tokens, unpriced_tokens);
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            (one, other) => one.or(other),
        };
    }
}
