//! The bot's own domain types: its personas, its tools, what the button under a note
//! shows, what an answer was made from, what its buttons carry, who pays for tokens and how much, whether
//! models are sent images, what agent runs are bound by, what looks like a key, and how texts for
//! people are counted and cut.
//!
//! Those of messages and turns are in `clew-context`, those of commands in
//! `clew-discord`, those of stored data in `clew-store`.
//!
//! Invariant: `model` imports no other module of the bot; its values are plain
//! data.

mod agent;
mod agent_run;
mod end;
mod key;
mod noted;
mod price;
mod receipt;
mod steering;
mod text;
mod tokens;
mod tool;
mod vision;

pub use agent::{Agent, AgentChannels};
pub use agent_run::{RUN_FETCHES, RUN_ROUNDS, RUNS_PER_GUILD, RUNS_PER_USER, RunBounds, STOP_RUN};
pub use end::{FinishReason, LlmFailure};
pub use key::{begins_as_key, without_keys};
pub use noted::Noted;
pub use price::{Cost, ModelPrice, Price, Prices};
pub use receipt::{
    CollectorReceipt, CutBy, ImagesSent, LeftOut, ModelReceipt, OmittedMessage, PromptReceipt,
    RECEIPT_BUTTON, ReadSource, Receipt, ShownMessage, ToolReceipt,
};
pub use steering::{Again, Continue, Regenerate, STOP_ANSWER};
pub use text::{channel_address, count, cut, read_span, shortened, unfenced, unformatted};
pub use tokens::{Payer, Spender, TokenLimits};
pub use tool::{
    ALLOW_CALL, BuiltIn, Consent, DENY_CALL, ToolDefinition, ToolName, ToolParameter,
    ToolParameters,
};
pub use vision::Vision;
