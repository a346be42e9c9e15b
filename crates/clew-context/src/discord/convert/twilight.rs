//! What twilight has parsed already.

use super::{Unreadable, WhyUnreadable, message};
use crate::engine::eligible::Us;
use crate::model::{ChannelId, Message, MessageId, Proxies, UserId};

/// Converts a message that twilight has already parsed, by writing it as JSON and
/// reading that. This is slower than passing the original JSON, and a null
/// `referenced_message` becomes absent, because twilight does not keep it.
///
/// # Errors
/// [`Unreadable`], but only if the message cannot be written as JSON.
pub fn from_twilight(twilight: &twilight_model::channel::Message) -> Result<Message, Unreadable> {
    let json = serde_json::to_string(twilight).map_err(|_| Unreadable {
        id: Some(MessageId::new(twilight.id.get())),
        channel: Some(ChannelId::new(twilight.channel_id.get())),
        reason: WhyUnreadable::Json,
    })?;
    message(&json)
}

/// Our identity from READY or Get Current User. The caller fills in our roles in a server,
/// and the apps through which people write.
pub fn us(user: &twilight_model::user::CurrentUser) -> Us {
    Us {
        user: UserId::new(user.id.get()),
        name: user.name.clone(),
        roles: Vec::new(),
        proxies: Proxies::default(),
    }
}
