//! The block: what the collectors give a turn, oldest to newest, and what was
//! left out and why. The trigger is not in it.

use std::sync::Arc;

use serde::Serialize;

use super::{Message, MessageId};

/// Items and gap markers from oldest to newest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// Title line: thread title, parent, forum tags. Sanitised, one line.
    pub title: Option<String>,
    /// What is shown, in order.
    pub entries: Vec<Entry>,
    /// What was looked at and is not shown, and why.
    pub omitted: Vec<Omitted>,
    /// Older messages that were not even looked at.
    pub unseen: Option<Unseen>,
    /// Unicode scalars of the rendered block without its frame.
    pub chars: usize,
}

/// One line of the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A message.
    Message(Item),
    /// Something that stands where messages are missing.
    Marker(Marker),
}

/// A message that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The message.
    pub message: Arc<Message>,
    /// Why it is here.
    pub place: Place,
    /// We wrote it.
    pub ours: bool,
    /// The name shown, unique within the prompt.
    pub name: String,
    /// The rendered, sanitised and possibly shortened text.
    pub text: String,
    /// It was shortened.
    pub cut: bool,
}

/// Why a message is in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The message a thread hangs on, or a post's first.
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
}

impl Place {
    /// A rule asks for the message by name, and the prompt says so.
    pub const fn is_named(self) -> bool {
        matches!(self, Self::Starter | Self::PointedAt | Self::Target)
    }
}

/// Something that stands where messages are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// So many messages were left out, 0 if nobody knows, and the cap that the
    /// newest of them met.
    Gap(usize, Option<OmitReason>),
    /// Older links of a reply chain are over this cap; nobody knows how many.
    EarlierChain(OmitReason),
    /// A message that was deleted.
    Deleted(MessageId, Place),
    /// A message of somebody whose messages are not shown (an app, a system
    /// notice), walked through in a chain.
    Ineligible(MessageId),
    /// A message that could not be fetched.
    Unavailable(Option<MessageId>, Place),
    /// So many adjacent messages whose authors opted out. One that a rule asks
    /// for by name stands alone.
    Withheld(usize, Place),
}

/// Messages that nobody looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unseen {
    /// They are older than this one.
    pub before: MessageId,
    /// How many, if Discord's count tells.
    pub count: Option<usize>,
    /// The cap that more of them would have been over; none where fetching
    /// ended for another reason.
    pub cap: Option<OmitReason>,
}

/// A message that the collectors saw and left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// Which.
    pub id: MessageId,
    /// Why.
    pub reason: OmitReason,
}

/// Why a message was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OmitReason {
    /// Over `MEM_MAX_MSGS`.
    Msgs,
    /// Over `MEM_MAX_CHARS`.
    Chars,
    /// Older than `MEM_MAX_AGE_MIN`, or `MEM_CHAIN_MAX_AGE_MIN` in a chain.
    Age,
    /// Another bot or a webhook.
    App,
    /// Not a conversation message.
    System,
    /// Nothing in it can be shown.
    Empty,
    /// Our own refusal, progress or note (`-# `), or an ephemeral message.
    Note,
    /// Posted after the turn's start.
    Newer,
    /// Deleted before it could be shown.
    Deleted,
    /// It could not be read.
    Malformed,
    /// Its author opted out.
    OptedOut,
}

impl OmitReason {
    /// The word used in telemetry and replay.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Msgs => "msgs",
            Self::Chars => "chars",
            Self::Age => "age",
            Self::App => "app",
            Self::System => "system",
            Self::Empty => "empty",
            Self::Note => "note",
            Self::Newer => "newer",
            Self::Deleted => "deleted",
            Self::Malformed => "malformed",
            Self::OptedOut => "opted_out",
        }
    }
}

impl OmitReason {
    /// The setting behind a cap; chains have an age of their own.
    pub const fn setting(self, in_chain: bool) -> Option<&'static str> {
        match self {
            Self::Msgs => Some("MEM_MAX_MSGS"),
            Self::Chars => Some("MEM_MAX_CHARS"),
            Self::Age if in_chain => Some("MEM_CHAIN_MAX_AGE_MIN"),
            Self::Age => Some("MEM_MAX_AGE_MIN"),
            Self::App
            | Self::System
            | Self::Empty
            | Self::Note
            | Self::Newer
            | Self::Deleted
            | Self::Malformed
            | Self::OptedOut => None,
        }
    }
}

impl Block {
    /// The messages shown, oldest to newest.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Message(item) => Some(item),
            Entry::Marker(_) => None,
        })
    }

    /// How many messages a cap left out at the least: those looked at, and those
    /// not looked at for the same reason.
    pub fn dropped_for(&self, cap: OmitReason) -> usize {
        let unseen = self.unseen.filter(|unseen| unseen.cap == Some(cap));
        self.omitted_for(cap) + unseen.map_or(0, |unseen| unseen.count.unwrap_or(1))
    }

    /// How many of the messages looked at were left out for one reason.
    pub fn omitted_for(&self, reason: OmitReason) -> usize {
        self.omitted
            .iter()
            .filter(|omitted| omitted.reason == reason)
            .count()
    }
}
