//! The types of stored data: turns and their scope, snapshots, receipts, facts,
//! server settings, and a store's address.
//!
//! Invariant: plain data, built on `clew-context`'s types; knows no back end.

mod address;
mod fact;
mod receipt;
mod scope;
mod settings;
mod stored;

pub use address::{StoreAddress, StoreAddressError};
pub use fact::{Fact, FactId, FactIdError, MAX_FACT_BYTES, Origin, Subject};
pub use receipt::{ReceiptLimits, ReceiptPerson, StoredReceipt};
pub use scope::{ParseScopeError, Scope, ScopeKind};
pub use settings::{Change, GuildSettings, RoleLimits, SettingsChange};
pub use stored::{
    AgentName, AgentNameError, ClearKey, ContextSnapshot, ContextSnapshotInfo, SnapshotId,
    SnapshotIdError, StoredMessage, StoredRole,
};
