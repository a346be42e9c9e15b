//! The words that everything else speaks: ids, messages, channels, what a
//! turn is and what came of it.
//!
//! Invariant: `model` imports nothing of ours and knows neither twilight nor
//! JSON from any server; its values are plain data.

mod address;
mod agent;
mod answer;
mod block;
mod channel;
mod chat;
mod command;
mod config;
mod id;
mod message;
mod opt_out;
mod profile;
mod reason;
mod rules;
mod scope;
mod secret;
mod settings;
mod stored;
mod time;
mod turn;

pub use address::{StoreAddress, StoreAddressError};
pub use agent::{Agent, AgentChannels, AgentDoc};
pub use answer::{Answer, AnswerButton, AnswerEmbed, ButtonStyle};
pub use block::{Block, Entry, Item, Marker, OmitReason, Omitted, Place};
pub use channel::{Access, Channel, ChannelKind, ThreadState};
pub use chat::{ChatMessage, Role};
pub use command::{
    Button, CallerRights, Command, Completing, ContextCommand, Interaction, InteractionKind,
    MemoryCommand, Paged, PrivacyCommand, ServerMemoryCommand, SettingsCommand, WrongCall,
};
pub use config::Limits;
pub use id::{
    ApplicationId, ChannelId, GuildId, InteractionId, MessageId, ParseIdError, RoleId, TurnId,
    UserId,
};
pub use message::{
    Attachment, Author, Embed, EmbedField, Extras, Mention, Message, MessageFlags, MessageKind,
    Poll, Reference, ReferenceKind, Referenced, Snapshot,
};
pub use opt_out::{OptOuts, OptedOut};
pub use profile::{Fact, FactId, FactIdError, HistoryMessage, Origin, Profiles, Subject};
pub use reason::{Fallback, Stage};
pub use rules::{AccessRules, AllowList, IdList, ReplyTarget, TriggerRules};
pub use scope::{ParseScopeError, Scope, ScopeKind};
pub use secret::Secret;
pub use settings::{ChannelMode, GuildSettings, SettingsChange};
pub use stored::{
    AgentName, AgentNameError, ClearKey, ContextSnapshot, ContextSnapshotInfo, SnapshotId,
    SnapshotIdError, StoredMessage, StoredRole,
};
pub use time::{Clock, UnixMillis, fixed_clock};
pub use turn::{Cause, Scene, TurnRequest};
