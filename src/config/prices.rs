//! What the models' tokens cost: `LLM_PRICE_IN`, `LLM_PRICE_OUT`.

use serde::Deserialize;

use super::check::Checker;
use super::problem::Problem;
use super::{Variable, variable as var};
use crate::model::{ModelPrice, Price, Prices};

#[derive(Default, Deserialize)]
struct RawPrices {
    llm_price_in: Option<String>,
    llm_price_out: Option<String>,
}

/// The prices of one variable.
#[derive(Default)]
struct List {
    others: Option<Price>,
    models: Vec<(String, Price)>,
}

impl List {
    fn of(&self, model: &str) -> Option<Price> {
        let named = self.models.iter().find(|(name, _)| name == model);
        named.map(|(_, price)| *price).or(self.others)
    }
}

/// Each model that either variable names, and the others, must have both prices.
pub(super) fn read(check: &mut Checker) -> Prices {
    let raw: RawPrices = check.raw();
    let input = read_list(check, &var::LLM_PRICE_IN, raw.llm_price_in);
    let output = read_list(check, &var::LLM_PRICE_OUT, raw.llm_price_out);
    let (Some(input), Some(output)) = (input, output) else {
        return Prices::default();
    };
    let mut prices = Prices {
        others: both(check, None, input.others, output.others),
        models: Vec::new(),
    };
    for (name, _) in input.models.iter().chain(&output.models) {
        if prices.models.iter().any(|(known, _)| known == name) {
            continue;
        }
        let price = both(check, Some(name), input.of(name), output.of(name));
        prices
            .models
            .extend(price.map(|price| (name.clone(), price)));
    }
    prices
}

fn both(
    check: &mut Checker,
    model: Option<&str>,
    input: Option<Price>,
    output: Option<Price>,
) -> Option<ModelPrice> {
    let (missing, other) = match (input, output) {
        (None, None) => return None,
        (Some(input), Some(output)) => return Some(ModelPrice { input, output }),
        (None, Some(_)) => (&var::LLM_PRICE_IN, &var::LLM_PRICE_OUT),
        (Some(_), None) => (&var::LLM_PRICE_OUT, &var::LLM_PRICE_IN),
    };
    let of_model = model.map_or_else(String::new, |name| format!(" for {name}"));
    check.problem(Problem::missing(
        missing,
        format!("a price{of_model}, since {} has one", other.name),
    ));
    None
}

/// None after a problem.
fn read_list(check: &mut Checker, variable: &Variable, raw: Option<String>) -> Option<List> {
    let text = raw.unwrap_or_default();
    let list = parse(&text);
    if list.is_none() {
        let accepted = "the price of a million tokens, such as 0.15, for every model, and \
            MODEL=PRICE for those that differ; a comma between them";
        check.problem(Problem::value(variable, &text, accepted));
    }
    list
}

fn parse(text: &str) -> Option<List> {
    let mut list = List::default();
    let entries = text.split(',').map(str::trim);
    for entry in entries.filter(|entry| !entry.is_empty()) {
        match entry.rsplit_once('=') {
            None if list.others.is_some() => return None,
            None => list.others = Some(Price::parse(entry)?),
            Some((name, price)) => {
                let (name, price) = (name.trim(), Price::parse(price.trim())?);
                if name.is_empty() || list.models.iter().any(|(known, _)| known == name) {
                    return None;
                }
                list.models.push((name.to_owned(), price));
            }
        }
    }
    Some(list)
}
