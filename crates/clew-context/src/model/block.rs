//! The block: what the collectors give a turn, oldest to newest, together with
//! what was left out and why. It does not contain the trigger.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Message, MessageId, Scene};
use crate::words;

/// Items and gap markers from oldest to newest; then what links lead to, each under
/// its heading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// Title line: thread title, parent, forum tags. Sanitised, on one line.
    pub title: Option<String>,
    /// What is shown, oldest first, up to the first heading and after each.
    pub entries: Vec<BlockEntry>,
    /// Messages that were looked at but are not shown, and why.
    pub omitted: Vec<Omitted>,
    /// Older messages that were not looked at.
    pub unseen: Option<Unseen>,
    /// Length of the line with the channel's topic in Unicode scalars; 0 without one.
    pub topic: usize,
    /// Length of the rendered block in Unicode scalars, without its frame.
    pub chars: usize,
}

/// One entry of the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockEntry {
    /// A message.
    Message(BlockItem),
    /// Stands in for missing messages.
    Marker(Marker),
    /// Where the messages below it stand. Sanitised, on one line.
    Heading(String),
}

/// A message that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockItem {
    /// The message.
    pub message: Arc<Message>,
    /// Why it is in the block.
    pub place: BlockPlace,
    /// Whether we wrote it.
    pub ours: bool,
    /// Whether a person wrote it through an app.
    pub proxied: bool,
    /// The name shown, unique within the prompt.
    pub name: String,
    /// The rendered, sanitised and possibly shortened text.
    pub text: String,
    /// The cap that shortened the text; none if it is whole.
    pub cut: Option<OmitReason>,
}

/// Why a message is in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockPlace {
    /// The message a thread was started from, or the first message of a forum post.
    Starter,
    /// The message the trigger replies to.
    PointedAt,
    /// The message the answer replies to.
    Target,
    /// One of the last messages before the target.
    Tail,
    /// Thread history.
    History,
    /// A link of the reply chain.
    Chain,
    /// The message that a link leads to.
    Linked,
    /// A message around a linked one, or one of a linked thread's newest.
    LinkContext,
    /// A pinned message.
    Pinned,
    /// Part of the asker's conversation in a channel, and why it is: serialized as that alone.
    #[serde(untagged)]
    Conversation(Tie),
}

/// Why a message belongs to a conversation: how it hangs together with the next message on
/// the surest way from the newest one to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    /// One replies to the other.
    Reply,
    /// One names the author of the other.
    Named,
    /// One follows the other in turn: an answer, or more by the same author.
    Answers,
    /// Both contain rare words.
    SameTopic,
}

impl Tie {
    /// The words shown to people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Named => "named",
            Self::Answers => "answers",
            Self::SameTopic => "same topic",
        }
    }
}

impl BlockPlace {
    /// Whether the message is here for a specific reason, which the prompt states.
    pub const fn is_named(self) -> bool {
        matches!(
            self,
            Self::Starter | Self::PointedAt | Self::Target | Self::Linked
        )
    }
}

/// Stands in for missing messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// This many messages were left out (0 if the number is unknown), and the cap
    /// that excluded the newest of them.
    Gap(usize, Option<OmitReason>),
    /// Some messages between two that are shown were left out.
    Skipped,
    /// Older links of a reply chain exceed this cap; their number is unknown.
    EarlierChain(OmitReason),
    /// A message that was deleted.
    Deleted(MessageId, BlockPlace),
    /// A link of a chain that is not shown: an app's message or a system message.
    Ineligible(MessageId),
    /// A message that could not be fetched.
    Unavailable(Option<MessageId>, BlockPlace),
    /// This many adjacent messages whose authors opted out. A named one
    /// ([`BlockPlace::is_named`]) gets a marker of its own.
    Withheld(usize, BlockPlace),
    /// Links lead to what may not be shown here, or to nothing: which of them, how
    /// many and why is not told.
    ClosedLink,
}

/// Messages that were not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unseen {
    /// All of them are older than this message.
    pub before: MessageId,
    /// How many there are, if Discord's message count tells.
    pub count: Option<usize>,
    /// The cap that more messages would have exceeded; `None` if fetching stopped
    /// for another reason.
    pub cap: Option<OmitReason>,
}

/// A message that the collectors saw and left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// Which message.
    pub id: MessageId,
    /// Why it was left out.
    pub reason: OmitReason,
}

words! {
    /// Why a message was left out or, by a cap, shortened.
    OmitReason {
        /// Over `MEM_MAX_MSGS`.
        Msgs = "msgs",
        /// Over `MEM_MAX_CHARS`.
        Chars = "chars",
        /// Over `LONE_MAX_CHARS`, or its author's part of that.
        LoneChars = "lone_chars",
        /// Over `MEM_MAX_MSG_CHARS`: shortened, never left out.
        MsgChars = "msg_chars",
        /// Older than `MEM_MAX_AGE_MIN`.
        Age = "age",
        /// In a chain, older than `MEM_CHAIN_MAX_AGE_MIN`.
        ChainAge = "chain_age",
        /// Written by another bot or a webhook.
        App = "app",
        /// A system message, such as a join, a pin or a thread's notice of type 21.
        System = "system",
        /// It has nothing that can be shown.
        Empty = "empty",
        /// Our own refusal, progress line or note (`-# `), or an ephemeral message.
        Note = "note",
        /// Posted after the turn started.
        Newer = "newer",
        /// Deleted before it could be shown.
        Deleted = "deleted",
        /// It could not be read.
        Malformed = "malformed",
        /// Its author opted out.
        OptedOut = "opted_out",
        /// It seems to belong to another conversation than the asker's, or others belong more surely.
        OtherConversation = "other_conversation",
        /// None probably belongs with the question, which seems to begin a new conversation.
        NewConversation = "new_conversation",
        /// So much older than the question that only a reply, a name or rare words would tie it.
        LongAgo = "long_ago",
    }
}

impl OmitReason {
    /// What people read after a number of messages.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Msgs => "over MEM_MAX_MSGS",
            Self::Chars => "over MEM_MAX_CHARS",
            Self::LoneChars => "over LONE_MAX_CHARS",
            Self::MsgChars => "over MEM_MAX_MSG_CHARS",
            Self::Age => "over MEM_MAX_AGE_MIN",
            Self::ChainAge => "over MEM_CHAIN_MAX_AGE_MIN",
            Self::App => "of apps",
            Self::System => "notices of Discord",
            Self::Empty => "without anything to show",
            Self::Note => "notes of the bot",
            Self::Newer => "newer than the question",
            Self::Deleted => "deleted",
            Self::Malformed => "unreadable",
            Self::OptedOut => "kept private by their authors",
            Self::OtherConversation => "of other conversations",
            Self::NewConversation => "before a new conversation",
            Self::LongAgo => "from long ago",
        }
    }

    /// The setting behind a cap, which its text names; none of other reasons.
    pub fn setting(self) -> Option<&'static str> {
        self.text().strip_prefix("over ")
    }

    /// All that are caps.
    pub fn caps() -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|reason| reason.setting().is_some())
    }

    /// What older telemetry and receipts mean, where `age` stood for a chain's age, too.
    #[must_use]
    pub fn in_scene(self, scene: Option<Scene>) -> Self {
        match (self, scene) {
            (Self::Age, Some(Scene::ReplyChain | Scene::Direct | Scene::Lone)) => Self::ChainAge,
            (reason, _) => reason,
        }
    }
}

impl BlockEntry {
    /// The message, if it is one.
    pub const fn item(&self) -> Option<&BlockItem> {
        match self {
            Self::Message(item) => Some(item),
            Self::Marker(_) | Self::Heading(_) => None,
        }
    }

    /// The heading, if it is one.
    pub fn heading(&self) -> Option<&str> {
        match self {
            Self::Heading(heading) => Some(heading),
            Self::Message(_) | Self::Marker(_) => None,
        }
    }
}

impl Block {
    /// The messages shown, in the order of [`Block::entries`].
    pub fn items(&self) -> impl Iterator<Item = &BlockItem> {
        self.entries.iter().filter_map(BlockEntry::item)
    }

    /// At least how many messages a cap left out: those looked at, plus those not
    /// looked at because of the same cap.
    pub fn dropped_for(&self, cap: OmitReason) -> usize {
        let unseen = self.unseen.filter(|unseen| unseen.cap == Some(cap));
        self.omitted_for(cap) + unseen.map_or(0, |unseen| unseen.count.unwrap_or(1))
    }

    /// How many of the messages looked at were left out for this reason.
    pub fn omitted_for(&self, reason: OmitReason) -> usize {
        self.omitted
            .iter()
            .filter(|omitted| omitted.reason == reason)
            .count()
    }
}
