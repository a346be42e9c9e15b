//! What an answer was made from: ids, counts and times, never a message's text.

mod listed;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Consent;
use clew_context::model::{
    Block, BlockItem, BlockPlace, ChannelId, ChatMessage, ContentSource, Fallback, MessageId,
    OmitReason, Scene, Stage, UserId,
};

/// What an answer was made from. The events of the turn are taken from it, and it is
/// kept as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// What the trigger is.
    pub scene: Scene,
    /// The agent that answers; none if none does.
    pub agent: Option<String>,
    /// The message that the answer replies to.
    pub target: Option<MessageId>,
    /// Whether another message's words stand in for the trigger's.
    pub adopted: bool,
    /// Whether nobody but the asker sees the answer; kept beside the JSON.
    #[serde(skip)]
    pub is_private: bool,
    #[serde(with = "millis")]
    pub collected_in: Duration,
    /// The REST calls made for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<CollectorReceipt>,
    /// What could not be got, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<(Stage, Fallback)>,
    /// The tools that the model called, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolReceipt>,
    /// The messages and channels that the tools read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ReadSource>,
    /// Those of them that the answer cites, by its numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cited: Vec<ReadSource>,
    /// What the model that was asked last got; before that, what it will get.
    pub prompt: PromptReceipt,
    /// That model; none if the inspector answers.
    pub model: Option<ModelReceipt>,
    /// From the trigger to now.
    #[serde(with = "millis")]
    pub took: Duration,
}

impl Receipt {
    /// As it is stored; none if this version cannot read it.
    pub fn parse(body: &str) -> Option<Self> {
        serde_json::from_str(body).ok()
    }

    /// Whether the answer, in that channel, was made from what came from elsewhere: what tools gave,
    /// or messages of other channels.
    pub fn is_of_elsewhere(&self, channel: ChannelId) -> bool {
        let mut shown = self.prompt.shown.iter();
        !self.tools.is_empty() || !self.read.is_empty() || shown.any(|one| one.channel != channel)
    }
}

/// The REST calls of one collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectorReceipt {
    /// What they were for.
    pub stage: Stage,
    /// How many there were.
    pub fetches: usize,
    /// From the first call to the last answer.
    #[serde(with = "millis")]
    pub took: Duration,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReceipt {
    /// The tool; none if there is no such tool.
    pub name: Option<String>,
    /// From the call to the result.
    #[serde(with = "millis")]
    pub took: Duration,
    /// Of a tool of another's server: how it came to be called, or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
}

/// Something that a tool read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadSource {
    pub channel: ChannelId,
    /// The message; none if it was the channel itself, its name or title.
    pub message: Option<MessageId>,
}

/// What a prompt was made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptReceipt {
    /// The messages of the block, oldest first.
    #[serde(with = "listed")]
    pub shown: Vec<ShownMessage>,
    /// The message whose words stand in for the trigger's, unless it is in the block.
    pub quoted: Option<ShownMessage>,
    /// How many of the block's messages are the thread's tail.
    pub tail: usize,
    /// The messages that are not in the block, by reason.
    pub left_out: Vec<LeftOut>,
    /// How many of those shown each cap shortened; none up to 0.1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shortened: BTreeMap<OmitReason, usize>,
    /// The newest of those left out, oldest first, as far as they may be named.
    #[serde(default, with = "listed")]
    pub omitted: Vec<OmittedMessage>,
    /// Unicode scalars of the channel's topic that the block shows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub topic: usize,
    /// Unicode scalars of the server's own instructions (`/settings prompt`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub server_prompt: usize,
    /// Unicode scalars of the block.
    pub block_chars: usize,
    /// Facts about the asker.
    pub user_facts: usize,
    /// Facts about the server.
    pub server_facts: usize,
    /// Stored messages of the conversation.
    pub history: usize,
    /// Stored messages from before that, which resemble the question.
    #[serde(default)]
    pub recalled: usize,
    /// Stored messages left out because the block shows them.
    pub dedup: usize,
    /// The titles of passages of the agent's docs, if it has not all of them: document and
    /// headings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<String>,
    /// How often caps and history were halved for the model.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub halvings: usize,
    /// Unicode scalars of the whole prompt.
    pub chars: usize,
}

/// A message in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownMessage {
    pub channel: ChannelId,
    pub id: MessageId,
    pub author: UserId,
    /// Why it is shown.
    pub place: BlockPlace,
    /// Whether its text was shortened.
    pub cut: bool,
}

/// A message that is not in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedMessage {
    pub channel: ChannelId,
    pub id: MessageId,
    pub author: UserId,
    /// Why it is left out.
    pub reason: OmitReason,
}

/// Messages left out for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The cap that they exceed, or why else.
    pub reason: OmitReason,
    /// How many of those that were looked at.
    pub seen: usize,
    /// At least how many, with those that were not looked at because of the cap.
    pub all: usize,
}

/// What the model was asked, and how it answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelReceipt {
    pub name: String,
    /// The number of the server, from 1; 0 before it is asked.
    pub server: usize,
    /// Tokens of all its prompts in this turn, as far as the servers counted them.
    pub prompt_tokens: u64,
    /// Tokens of all its answers, likewise.
    pub completion_tokens: u64,
    /// The images that it got in the last request.
    #[serde(default)]
    pub images: ImagesSent,
    /// From the trigger to the first words; none before.
    #[serde(with = "maybe_millis")]
    pub first_words: Option<Duration>,
    /// What ended the answer before the model did; none if it was done.
    #[serde(default)]
    pub cut_by: Option<CutBy>,
}

/// What cut an answer off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutBy {
    /// The model's limit of tokens.
    Tokens,
    /// The provider's content filter.
    Filter,
    /// We did: it was too long, or did not end.
    Length,
}

/// The images of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImagesSent {
    pub count: usize,
    /// Of the files together.
    pub bytes: usize,
}

/// The button under an answer that shows its receipt: what comes back with a press.
pub const RECEIPT_BUTTON: &str = "why:";

impl PromptReceipt {
    /// The messages and omissions of a block.
    pub fn of_block(block: &Block) -> Self {
        let unseen = block.unseen.and_then(|unseen| unseen.cap);
        let seen = block.omitted.iter().map(|omitted| omitted.reason);
        let reasons: BTreeSet<OmitReason> = seen.chain(unseen).collect();
        let left_out = reasons.into_iter().map(|reason| LeftOut {
            reason,
            seen: block.omitted_for(reason),
            all: block.dropped_for(reason),
        });
        let mut shortened = BTreeMap::new();
        for cap in block.items().filter_map(|item| item.cut) {
            *shortened.entry(cap).or_default() += 1;
        }
        Self {
            shown: block.items().map(ShownMessage::from).collect(),
            shortened,
            left_out: left_out.collect(),
            topic: block.topic,
            block_chars: block.chars,
            ..Self::default()
        }
    }

    /// At least how many messages a cap left out.
    pub fn dropped_for(&self, cap: OmitReason) -> usize {
        let mut left_out = self.left_out.iter();
        let left_out = left_out.find(|one| one.reason == cap);
        left_out.map_or(0, |one| one.all)
    }
}

impl ImagesSent {
    /// Those of a request's messages.
    pub fn of(messages: &[ChatMessage]) -> Self {
        let images = messages.iter().flat_map(ChatMessage::images);
        images.fold(Self::default(), |sent, image| Self {
            count: sent.count + 1,
            bytes: sent.bytes + image.bytes.len(),
        })
    }
}

impl From<&BlockItem> for ShownMessage {
    fn from(item: &BlockItem) -> Self {
        Self {
            channel: item.message.channel,
            id: item.message.id,
            author: item.message.author.id,
            place: item.place,
            cut: item.cut.is_some(),
        }
    }
}

impl From<&ContentSource> for ReadSource {
    fn from(source: &ContentSource) -> Self {
        Self {
            channel: source.channel,
            message: source.message,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde gives the field by reference"
)]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A span in whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(span.as_millis().try_into().unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

/// The same, if there is one.
mod maybe_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde gives the field by reference")]
    pub(super) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let millis = span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        millis.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let millis = Option::<u64>::deserialize(from)?;
        Ok(millis.map(Duration::from_millis))
    }
}
