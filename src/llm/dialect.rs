//! Servers differ in the parameters that they accept. A parameter that a server
//! rejects by name is replaced or left out from then on.

use super::Error;

/// The choice of parameters in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Dialect(u8);

/// Use `max_completion_tokens` for the limit, as OpenAI's reasoning models require.
const COMPLETION_TOKENS: u8 = 1;
/// Send no `stream_options`, for older servers; they then report no usage.
const NO_STREAM_OPTIONS: u8 = 1 << 1;
/// Send no `temperature`, for models with a fixed one.
const NO_TEMPERATURE: u8 = 1 << 2;

/// The flags that apply to all models of a server. The others apply to one model.
const OF_SERVER: u8 = COMPLETION_TOKENS | NO_STREAM_OPTIONS;

/// If a rejection contains the word, the flag is set.
const CORRECTIONS: [(&str, u8); 3] = [
    ("max_completion_tokens", COMPLETION_TOKENS),
    ("stream_options", NO_STREAM_OPTIONS),
    ("temperature", NO_TEMPERATURE),
];

impl Dialect {
    /// The flags of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags that apply to the server's other models, too.
    pub(super) fn of_server(self) -> Self {
        Self(self.0 & OF_SERVER)
    }

    pub(super) fn says_completion_tokens(self) -> bool {
        self.0 & COMPLETION_TOKENS != 0
    }

    pub(super) fn asks_for_usage(self) -> bool {
        self.0 & NO_STREAM_OPTIONS == 0
    }

    pub(super) fn sets_temperature(self) -> bool {
        self.0 & NO_TEMPERATURE == 0
    }

    /// A dialect without the parameter that the server rejected by name. None if
    /// that has been tried already, so that each change is made only once.
    pub(super) fn corrected_by(self, error: &Error) -> Option<Self> {
        let Error::Rejected { message, .. } = error else {
            return None;
        };
        CORRECTIONS
            .iter()
            .find(|(word, change)| self.0 & change == 0 && message.contains(word))
            .map(|(_, change)| Self(self.0 | change))
    }
}

/// Words by which an error says that tools are not known.
const UNKNOWN: [&str; 7] = [
    "support",
    "requires --",
    "not permitted",
    "not enabled",
    "jinja",
    "unknown field",
    "unrecogni",
];

/// Words by which it is about one tool of the request: its schema.
const OF_ONE: [&str; 6] = [
    "schema",
    "parameters.",
    "parameters[",
    "function_declarations",
    "tools[",
    "tools.",
];

/// Whether a request with tools was refused because of them, and if so, whether the model
/// seems to know none: with 400 or 422 (Ollama, vLLM, `LiteLLM`), 404 (`OpenRouter`), or 500
/// and 501 (llama.cpp without `--jinja`). Otherwise what is sent of them is to blame.
pub(super) fn refuses_tools(error: &Error) -> Option<bool> {
    let (message, is_surely_ours) = error.objection()?;
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let knows_none = says(&UNKNOWN) && !says(&OF_ONE);
    (says(&["tool", "function"]) && (is_surely_ours || knows_none)).then_some(knows_none)
}
