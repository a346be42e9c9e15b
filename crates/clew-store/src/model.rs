//! The words of what is kept: stored turns and their scope, snapshots, facts,
//! a server's settings, and where a store is.
//!
//! Invariant: plain data over `clew-context`'s words; knows no back end.

mod address;
mod fact;
mod scope;
mod settings;
mod stored;

pub use address::{StoreAddress, StoreAddressError};
pub use fact::{Fact, FactId, FactIdError, Origin, Subject};
pub use scope::{ParseScopeError, Scope, ScopeKind};
pub use settings::{Change, GuildSettings, SettingsChange};
pub use stored::{
    AgentName, AgentNameError, ClearKey, ContextSnapshot, ContextSnapshotInfo, SnapshotId,
    SnapshotIdError, StoredMessage, StoredRole,
};
