//! "Did you mean": names that look like ours but are not.

use std::fmt;

use super::VARIABLES;

/// Our prefixes; other programs' variables rarely have them.
const PREFIXES: [&str; 22] = [
    "ALLOWED",
    "ANSWER_",
    "AUTO_REPLY_",
    "CONTEXT_",
    "DENIED",
    "DISCORD_",
    "GUILD_RETENTION_",
    "IN_MEMORY_",
    "LLM_",
    "LOAD_PAST_",
    "MAX_",
    "MEMORY_",
    "MEM_",
    "MENTION_",
    "REPLY_TO_",
    "RETENTION_",
    "SYSTEM_PROMPT",
    "TELEMETRY_",
    "THREAD_",
    "TURN_",
    "USER_TURNS_",
    "WINDOW_",
];

/// Names that other programs use for the same thing.
const ALIASES: [(&str, &str); 5] = [
    ("BOT_TOKEN", "DISCORD_TOKEN"),
    ("DISCORD_BOT_TOKEN", "DISCORD_TOKEN"),
    ("OPENAI_API_KEY", "LLM_API_KEY"),
    ("OPENAI_BASE_URL", "LLM_BASE_URL"),
    ("OPENAI_MODEL", "LLM_MODEL"),
];

/// Names that were settings up to 0.1, and what to write instead. They are told of for two versions.
const REMOVED: &[(&str, &str)] = &[
    ("AGENT_RUNS_PER_GUILD", "nothing; it is always 2"),
    ("AGENT_RUNS_PER_USER", "nothing; it is always 1"),
    ("AGENT_RUN_MAX_FETCHES", "nothing; it is always 100"),
    ("AGENT_RUN_MAX_ROUNDS", "nothing; it is always 20"),
    ("AGENT_RUN_TIMEOUT_S", "nothing; it is always 600"),
    ("ALLOWED_CHANNELS", "channel:ID for each in ALLOWED"),
    ("ALLOWED_GUILDS", "guild:ID for each in ALLOWED"),
    ("ALLOWED_ROLES", "role:ID for each in ALLOWED"),
    ("ALLOWED_USERS", "user:ID for each in ALLOWED"),
    ("DENIED_CHANNELS", "channel:ID for each in DENIED"),
    ("DENIED_GUILDS", "guild:ID for each in DENIED"),
    ("DENIED_ROLES", "role:ID for each in DENIED"),
    ("DENIED_USERS", "user:ID for each in DENIED"),
    (
        "DISCORD_COMMAND_GUILD",
        "nothing; commands are registered everywhere",
    ),
    ("DIRECT_MESSAGES", "direct in DENIED for false"),
    ("LINK_PREVIEWS", "nothing; links in answers have none"),
    ("LLM_MAX_IMAGES", "nothing; it is always 4"),
    ("LLM_MAX_IMAGE_BYTES", "nothing; it is always 4000000"),
    (
        "LLM_FALLBACK_KEYS",
        "each key behind its server's model in LLM_FALLBACKS",
    ),
    ("LLM_PRICE_IN", "IN/OUT in LLM_PRICES"),
    ("LLM_PRICE_OUT", "IN/OUT in LLM_PRICES"),
    ("LOG_LEVEL", "nothing for info, DEBUG=true for debug"),
    ("MAX_BOT_TURNS", "nothing; it is always 3"),
    ("PROXY_HOLD_MS", "nothing; it is always 1500"),
    (
        "SYSTEM_PROMPT_FILE",
        "the text in SYSTEM_PROMPT, or an agent in AGENTS_DIR",
    ),
    (
        "TOKENS_PER_GUILD_DAY",
        "the second number of TOKENS_PER_DAY",
    ),
    ("TOKENS_PER_USER_DAY", "the first number of TOKENS_PER_DAY"),
    ("TOOLS", "TOOL_MAX_ROUNDS=0 for off"),
    ("TOOL_OFFER_MAX", "nothing; it is always 8"),
    ("TOOL_OUTPUT_MAX_AGE_H", "nothing; it is always 24"),
    ("TOOL_OUTPUT_MAX_MB", "nothing; it is always 256"),
    ("TOOL_POINTERS_MAX", "nothing; it is always 1000"),
    ("TOOL_PROMPT_MAX_CHARS", "nothing; it is always 48000"),
    ("TOOL_SESSION_IDLE_MIN", "nothing; it is always 60"),
    ("TOOL_TIMEOUT_S", "nothing; it is always 20"),
];

/// What to write instead of a name that was a setting.
pub(super) fn instead_of_removed(name: &str) -> Option<&'static str> {
    let found = REMOVED.iter().find(|(removed, _)| *removed == name);
    found.map(|(_, instead)| *instead)
}

/// What an unknown name may be meant to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guess {
    /// This one of ours.
    Meant(&'static str),
    Ours,
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meant(name) => write!(f, "did you mean {name}?"),
            Self::Ours => f.write_str("see .env.example for those that are"),
        }
    }
}

/// The most letters of a word in a name that is shown.
const LONGEST_WORD: usize = 16;
/// The most digits at the end of one.
const MOST_DIGITS: usize = 2;

/// Whether a name is made of words, as those of variables are. Anything else may be a key
/// that was typed as a name.
pub(super) fn is_plain(name: &str) -> bool {
    let is_word = |word: &str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_one_case = letters.bytes().all(|byte| byte.is_ascii_uppercase())
            || letters.bytes().all(|byte| byte.is_ascii_lowercase());
        is_one_case && letters.len() <= LONGEST_WORD && word.len() - letters.len() <= MOST_DIGITS
    };
    name.split('_').all(is_word)
}

/// What an unknown name may be meant to be; none if it does not look like ours.
///
/// `is_set` tells whether one of our names has a value: then a name that other
/// programs use for the same thing is to be expected.
pub(super) fn guess(name: &str, is_set: impl Fn(&str) -> bool) -> Option<Guess> {
    if let Some((_, ours)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
        return (!is_set(ours)).then_some(Guess::Meant(ours));
    }
    let upper = name.to_ascii_uppercase();
    let shares_prefix = PREFIXES.iter().any(|prefix| upper.starts_with(prefix));
    // A name with our prefix may be a third wrong, any other an eighth: short names
    // of other programs are close to everything.
    let part = if shares_prefix { 3 } else { 8 };
    let near = VARIABLES.iter().filter_map(|variable| {
        let distance = strsim::damerau_levenshtein(&upper, variable.name);
        (distance <= variable.name.len() / part).then_some((distance, variable.name))
    });
    match near.min() {
        Some((_, nearest)) => Some(Guess::Meant(nearest)),
        None => shares_prefix.then_some(Guess::Ours),
    }
}
