//! Limits of the model's tokens, and whom they hold.

use clew_context::model::{GuildId, UserId};

/// The most tokens that may be used in a day; none if there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenLimits {
    /// By one user, wherever they ask.
    pub per_user: Option<u64>,
    /// By all users of a server together.
    pub per_guild: Option<u64>,
}

/// Whose limits a request to the model counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payer {
    /// Who asked.
    pub user: UserId,
    /// The server in which they asked; none in direct messages.
    pub guild: Option<GuildId>,
}
