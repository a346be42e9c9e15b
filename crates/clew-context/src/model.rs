//! The plain data types that everything else uses: ids, messages, channels, turns
//! and their results.
//!
//! Invariant: `model` imports no other module of ours and knows neither twilight
//! nor any server's JSON; its values are plain data.

mod block;
mod channel;
mod chat;
mod config;
mod id;
mod image;
mod interaction;
mod message;
mod number;
mod opt_out;
mod profile;
mod proxy;
mod reason;
mod rules;
mod secret;
mod source;
mod time;
mod turn;
mod word;

pub use block::{
    Block, BlockEntry, BlockItem, BlockPlace, Marker, OmitReason, Omitted, Tie, Unseen,
};
pub use channel::{
    Access, Channel, ChannelKind, Guild, Missing, Overwrite, OverwriteTarget, Parent, Rights,
    ThreadState,
};
pub use chat::{AgentDoc, ChatMessage, Role, ToolCall};
pub use config::{ImageLimits, Limits, LinkContext, LoneContext, PlaceContext, ThreadSelect};
pub use id::{
    ApplicationId, ChannelId, GuildId, InteractionId, MessageId, ParseIdError, ProxyId, RoleId,
    TagId, TurnId, UserId,
};
pub use image::{Image, ImageKind};
pub use interaction::{Interaction, InteractionPlace};
pub use message::{
    Attachment, Author, Embed, EmbedField, Extras, Mention, Message, MessageFlags, MessageKind,
    Poll, Reference, ReferenceKind, Referenced, Snapshot,
};
pub use opt_out::{OptOuts, OptedOut};
pub use profile::{HistoryMessage, Profiles};
pub use proxy::{Proxies, Speaker};
pub use reason::{Fallback, Stage};
pub use rules::{
    AccessRules, AllowList, ChannelMode, IdList, LATE_COPIES, ReplyTarget, TriggerRules,
};
pub use secret::Secret;
pub use source::{ContentSource, Readers};
pub use time::{Clock, UnixMillis, fixed_clock};
pub use turn::{Cause, Scene, TurnRequest};
