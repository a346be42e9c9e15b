//! The model that answers.

use std::time::Duration;

use super::check::Checker;
use super::fallbacks::{self, FallbackConfig};
use super::problem::Problem;
use super::server::{base_url, key, warn_about_path};
use super::{Endpoint, variable as var};
use crate::model::Vision;
use clew_context::model::Secret;

/// The longest wait that `LLM_TIMEOUT_S` accepts, in seconds: an hour.
const LONGEST_TIMEOUT_S: f64 = 3_600.0;
/// The values of `LLM_VISION`, the default first.
const VISIONS: [(&str, Vision); 3] = [
    ("auto", Vision::Auto),
    ("on", Vision::On),
    ("off", Vision::Off),
];

/// An OpenAI-compatible server and how to ask it.
#[derive(Debug, Clone, PartialEq)]
pub struct LlmConfig {
    /// `LLM_BASE_URL`, with its path (`/v1`), without a trailing slash.
    pub base_url: Endpoint,
    /// `LLM_API_KEY`; local servers need none.
    pub api_key: Option<Secret>,
    /// `LLM_MODEL`.
    pub model: String,
    /// `LLM_FALLBACKS`: the servers that are asked next, in order.
    pub fallbacks: Vec<FallbackConfig>,
    /// `LLM_TIMEOUT_S`: the longest wait for the next part of an answer.
    pub timeout: Duration,
    /// `LLM_CONTEXT_TOKENS`; none if only the server knows.
    pub context_tokens: Option<u32>,
    /// `LLM_MAX_OUTPUT_TOKENS`.
    pub max_output_tokens: u32,
    /// `LLM_TEMPERATURE`, 0 to 2; if none, the model's own.
    pub temperature: Option<f64>,
    /// `LLM_VISION`.
    pub vision: Vision,
}

/// None without `LLM_BASE_URL`; the other variables are checked all the same.
pub(super) fn read(check: &mut Checker) -> Option<LlmConfig> {
    let asked = check.is_set(&var::LLM_BASE_URL);
    let model = check.text(&var::LLM_MODEL).map(str::to_owned);
    let base_url = check.optional(
        &var::LLM_BASE_URL,
        "http://host:port/v1 or https://host/v1: the address before /chat/completions, \
         without query, user name and password",
        base_url,
    );
    let timeout = check.seconds(&var::LLM_TIMEOUT_S, 1.0..=LONGEST_TIMEOUT_S);
    let context_tokens = check.optional_number(&var::LLM_CONTEXT_TOKENS, 512..=100_000_000);
    let max_output_tokens = check.number(&var::LLM_MAX_OUTPUT_TOKENS, 1..=1_000_000);
    let temperature = check.optional_number(&var::LLM_TEMPERATURE, 0.0..=2.0);
    let vision = check.one_of(&var::LLM_VISION, &VISIONS);
    let api_key = check.optional(
        &var::LLM_API_KEY,
        "a key of printable ASCII without spaces",
        key,
    );
    let fallbacks = fallbacks::read(check);
    warn_about_form(check, asked, base_url.as_ref());
    if context_tokens.is_some_and(|all| all <= max_output_tokens) {
        let (all, answer) = (&var::LLM_CONTEXT_TOKENS, &var::LLM_MAX_OUTPUT_TOKENS);
        let warning = format!(
            "{} leaves no room for a question beside {}",
            all.name, answer.name
        );
        check.warn(warning);
    }
    if asked && model.is_none() {
        let accepted = "a model's name, since LLM_BASE_URL is set";
        check.problem(Problem::missing(&var::LLM_MODEL, accepted));
    }
    Some(LlmConfig {
        base_url: base_url?,
        api_key,
        model: model?,
        fallbacks,
        timeout,
        context_tokens,
        max_output_tokens,
        temperature,
        vision,
    })
}

fn warn_about_form(check: &mut Checker, asked: bool, base_url: Option<&Endpoint>) {
    if let Some(base_url) = base_url {
        warn_about_path(check, &var::LLM_BASE_URL, base_url);
    }
    for variable in [&var::LLM_MODEL, &var::LLM_API_KEY, &var::LLM_FALLBACKS] {
        if !asked && check.is_set(variable) {
            check.warn_of_no_effect(variable, "without LLM_BASE_URL");
        }
    }
}
