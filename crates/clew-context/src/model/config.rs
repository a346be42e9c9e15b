//! The caps that a block has to stay within.

use std::fmt;
use std::time::Duration;

use crate::words;

/// The `MEM_*` and `THREAD_CONTEXT_TAIL_COUNT` settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `THREAD_CONTEXT_TAIL_COUNT`, 0 to 40: messages shown before the target.
    pub tail: usize,
    /// `MEM_MAX_MSGS`: most messages in a block.
    pub max_msgs: usize,
    /// `MEM_MAX_CHARS`: most Unicode scalars in a rendered block.
    pub max_chars: usize,
    /// `MEM_MAX_MSG_CHARS`: most Unicode scalars in one rendered message.
    pub max_msg_chars: usize,
    /// `MEM_MAX_AGE_MIN`: how much older than the tail a thread's history may be;
    /// `None` (0) means no limit.
    pub max_age: Option<Duration>,
    /// `MEM_CHAIN_MAX_AGE_MIN`: how much older than the pointed-at message the
    /// links of a reply chain may be; `None` (0) means no limit.
    pub max_chain_age: Option<Duration>,
    /// `MEM_FETCH_TIMEOUT_S`: a single deadline for the whole block.
    pub fetch_timeout: Duration,
    /// `MEM_MAX_FETCHES`: most REST calls for one block.
    pub max_fetches: usize,
    /// `MEM_MAX_FILE_BYTES`: text files up to this size are shown inline.
    pub max_file_bytes: u64,
    /// `MEM_INCLUDE_POINTED_APPS`: show an app's message if the asker points at it.
    pub include_pointed_apps: bool,
    /// `LINK_CONTEXT`: messages shown around a linked one.
    pub link_context: LinkContext,
    /// `LONE_CONTEXT`: what a lone mention with text gets.
    pub lone_context: LoneContext,
    /// `LONE_MAX_CHARS`: most Unicode scalars of it.
    pub lone_max_chars: usize,
    /// `THREAD_SELECT`: which messages of a thread stay where the caps leave no room for all.
    pub thread_select: ThreadSelect,
    /// `PLACE_CONTEXT`: what is shown of the channel itself.
    pub place_context: PlaceContext,
}

/// Which images a model gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// How many with one question.
    pub images: usize,
    /// The largest.
    pub image_bytes: u64,
}

impl Default for ImageLimits {
    /// The settings' default values.
    fn default() -> Self {
        Self {
            images: 4,
            image_bytes: 4_000_000,
        }
    }
}

words! {
    /// What a lone mention with text gets of its channel.
    LoneContext {
        /// Nothing.
        Off = "off",
        /// The last messages.
        Recent = "recent",
        /// Those of the last messages that belong to the asker's conversation.
        Conversation = "conversation",
    }
}

words! {
    /// Which messages of a thread's history are shown if not all fit.
    ThreadSelect {
        /// The newest ones.
        Newest = "newest",
        /// Those that most surely belong to the asker's conversation.
        Conversation = "conversation",
    }
}

words! {
    /// What is shown of a channel besides what was said last.
    PlaceContext {
        /// Nothing.
        Off = "off",
        /// Its topic; of a forum, its guidelines.
        Topic = "topic",
        /// That, and its pinned messages.
        TopicPins = "topic,pins",
    }
}

/// How many messages are shown around a linked one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkContext {
    /// Before it.
    pub before: usize,
    /// After it.
    pub after: usize,
}

impl LinkContext {
    /// The most on each side.
    pub const MOST: usize = 10;

    /// Both numbers as people type them and [`fmt::Display`] writes them: `3,1`.
    pub fn parse(text: &str) -> Option<Self> {
        let (before, after) = text.split_once(',')?;
        let number = |text: &str| {
            let number = text.trim().parse().ok();
            number.filter(|number| *number <= Self::MOST)
        };
        Some(Self {
            before: number(before)?,
            after: number(after)?,
        })
    }
}

impl fmt::Display for LinkContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.before, self.after)
    }
}

impl Default for Limits {
    /// The settings' default values.
    fn default() -> Self {
        Self {
            tail: 5,
            max_msgs: 40,
            max_chars: 8_000,
            max_msg_chars: 2_000,
            max_age: Some(Duration::from_hours(4)),
            max_chain_age: Some(Duration::from_hours(7 * 24)),
            fetch_timeout: Duration::from_secs(5),
            max_fetches: 8,
            max_file_bytes: 20_000,
            include_pointed_apps: true,
            link_context: LinkContext {
                before: 3,
                after: 1,
            },
            lone_context: LoneContext::Off,
            lone_max_chars: 2_000,
            thread_select: ThreadSelect::Newest,
            place_context: PlaceContext::Off,
        }
    }
}
