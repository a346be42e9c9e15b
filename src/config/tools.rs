//! The tools that models may call.

use std::path::PathBuf;
use std::time::Duration;

use super::check::Checker;
use super::discord::MessageContent;
use super::variable as var;

/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// `SEARCH`: where `search_messages` looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// Discord's search and the window.
    Discord,
    /// The window.
    Window,
    /// Nowhere: there is no such tool.
    Off,
}

/// Whether and how models may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolConfig {
    /// `TOOL_MAX_ROUNDS`: how often a model may call tools in one turn; 0: it is offered none.
    pub max_rounds: usize,
    /// `SEARCH`, as far as Discord lets it.
    pub search: Search,
    /// How long one call may take.
    pub timeout: Duration,
}

impl ToolConfig {
    /// Whether models are offered tools.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.max_rounds > 0
    }
}

/// How results of tools are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutputConfig {
    /// `TOOL_OUTPUT_DIR`.
    pub dir: PathBuf,
    /// `TOOL_OUTPUT_RESUME`.
    pub resume: bool,
}

/// Discord's search needs the message content intent (Search Guild Messages).
pub(super) fn read(check: &mut Checker, content: MessageContent) -> ToolConfig {
    let words = [
        ("discord", Search::Discord),
        ("window", Search::Window),
        ("off", Search::Off),
    ];
    ToolConfig {
        search: match check.one_of(&var::SEARCH, &words) {
            Search::Discord if content == MessageContent::Off => Search::Window,
            search => search,
        },
        max_rounds: check.number(&var::TOOL_MAX_ROUNDS, 0..=50),
        timeout: TIMEOUT,
    }
}
