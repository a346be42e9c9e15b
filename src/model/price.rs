//! What tokens cost.

const MILLIONTHS: u64 = 1_000_000;
/// The highest price, in whole units of a currency.
const HIGHEST: u64 = 1_000_000;

/// What tokens of models cost, in a currency that only the operator knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    /// For models that are not named.
    pub others: Option<ModelPrice>,
    /// By the model's name.
    pub models: Vec<(String, ModelPrice)>,
}

/// What a model's tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelPrice {
    /// Those of prompts.
    pub input: Price,
    /// Those of answers.
    pub output: Price,
}

/// The price of a million tokens, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price(u64);

/// A cost: a millionth of a millionth, so that one token's is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cost(u128);

impl Prices {
    pub fn is_known(&self) -> bool {
        self.others.is_some() || !self.models.is_empty()
    }

    /// A model's price, if it is known.
    pub fn of(&self, model: &str) -> Option<ModelPrice> {
        let named = self.models.iter().find(|(name, _)| name == model);
        named.map(|(_, price)| *price).or(self.others)
    }
}

impl ModelPrice {
    pub fn cost(self, prompt_tokens: u64, completion_tokens: u64) -> Cost {
        let part = |tokens: u64, price: Price| u128::from(tokens) * u128::from(price.0);
        Cost(part(prompt_tokens, self.input) + part(completion_tokens, self.output))
    }
}

impl Price {
    /// Parses an amount such as `0.15`: at most six decimals, at most a million.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > 6 {
            return None;
        }
        let whole: u64 = whole.parse().ok().filter(|whole| *whole <= HIGHEST)?;
        let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
        Some(Self(whole * MILLIONTHS + fraction))
    }
}

impl Cost {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// In whole units of the currency.
    #[expect(
        clippy::cast_precision_loss,
        reason = "fifteen digits are enough to be read"
    )]
    pub fn amount(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_exact() {
        for (text, millionths) in [
            ("0", Some(0)),
            ("0.15", Some(150_000)),
            ("2.5", Some(2_500_000)),
            ("60", Some(60_000_000)),
            ("0.000001", Some(1)),
            ("1000000", Some(1_000_000_000_000)),
            ("1000001", None),
            ("0.0000001", None),
            ("", None),
            (".5", None),
            ("5.", None),
            ("-1", None),
            ("1e3", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(Price::parse(text), millionths.map(Price), "{text}");
        }
    }

    #[test]
    fn a_request_costs_its_tokens_by_its_model() {
        let price = |input, output| ModelPrice {
            input: Price::parse(input).unwrap(),
            output: Price::parse(output).unwrap(),
        };
        let prices = Prices {
            others: Some(price("0.15", "0.6")),
            models: vec![("big".to_owned(), price("2.5", "10"))],
        };
        let cost = |model, prompt, answer| prices.of(model).unwrap().cost(prompt, answer).amount();
        assert!((cost("small", 1_000_000, 1_000_000) - 0.75).abs() < 1e-12);
        assert!((cost("big", 1_000, 100) - 0.0035).abs() < 1e-12);
        assert!(cost("big", u64::MAX, u64::MAX) > 1e13);
        assert_eq!(Prices::default().of("small"), None);
    }
}
