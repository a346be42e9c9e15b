//! What belongs to the trigger's channel, whatever is said there: its topic and its pinned
//! messages.

use std::sync::Arc;

use super::shorten::head_and_tail;
use crate::model::{Channel, Message};

/// The most pinned messages that are asked for, kept and shown.
pub const MOST_PINS: usize = 5;

/// What was found of a channel besides its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatheredPlace {
    /// The topic; empty if there is none or it is not wanted.
    pub topic: String,
    /// The last pinned first.
    pub pins: Vec<Arc<Message>>,
    /// Whether the pins were fetched in this turn, for the window to keep.
    pub fetched: bool,
}

/// What is kept of a topic: at most [`Channel::TOPIC_CHARS`], marked where it is cut.
pub fn kept_topic(topic: &str) -> String {
    head_and_tail(topic, Channel::TOPIC_CHARS).unwrap_or_else(|| topic.to_owned())
}

impl GatheredPlace {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.topic.is_empty() && self.pins.is_empty()
    }
}
