//! What the models' tokens cost: `LLM_PRICES`.

use super::check::Checker;
use super::variable as var;
use crate::model::{ModelPrice, Price, Prices};

const ACCEPTED: &str = "the prices of a million tokens of prompts and of answers, such as \
    0.15/0.6, for every model, and MODEL=IN/OUT for those that differ; a comma between them";

pub(super) fn read(check: &mut Checker) -> Prices {
    let prices = check.optional(&var::LLM_PRICES, ACCEPTED, parse);
    prices.unwrap_or_default()
}

fn parse(text: &str) -> Option<Prices> {
    let mut prices = Prices::default();
    let entries = text.split(',').map(str::trim);
    for entry in entries.filter(|entry| !entry.is_empty()) {
        match entry.rsplit_once('=') {
            None if prices.others.is_some() => return None,
            None => prices.others = Some(both(entry)?),
            Some((name, price)) => {
                let (name, price) = (name.trim(), both(price)?);
                if name.is_empty() || prices.models.iter().any(|(known, _)| known == name) {
                    return None;
                }
                prices.models.push((name.to_owned(), price));
            }
        }
    }
    Some(prices)
}

fn both(text: &str) -> Option<ModelPrice> {
    let (input, output) = text.split_once('/')?;
    Some(ModelPrice {
        input: Price::parse(input.trim())?,
        output: Price::parse(output.trim())?,
    })
}
