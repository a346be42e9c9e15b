//! One scene: who asks what and where, and what is expected.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::line::DemoLine;
use clew_simulator::{Id, Message};

/// A question and the conversation around it; texts and names are those of a
/// [`Cast`](crate::sandbox::plan::Cast).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DemoScene {
    pub(super) title: String,
    /// What a reader needs to know about the conversation.
    pub(super) setting: String,
    /// The rule by which the bot collects here.
    pub(super) rule: String,
    /// What a bot that follows replies and nothing else sends its model.
    pub(super) by_replies: String,
    /// The rule in a few words.
    pub(super) because: String,
    /// Whether it needs a model: one that calls tools, or whose answers are remembered.
    #[serde(default)]
    pub(super) needs_model: bool,
    /// Variables and values with which it is played.
    #[serde(default)]
    pub(super) settings: Vec<(String, String)>,
    /// Where the question is asked.
    pub(super) place: String,
    /// What the asker asked there before, each answered.
    #[serde(default)]
    pub(super) asked_before: Vec<String>,
    /// What happens just before.
    pub(super) before: Option<JustBefore>,
    pub(super) asker: String,
    pub(super) question: String,
    /// The message that it replies to.
    pub(super) reply_to: Option<String>,
    pub(super) expect: Expect,
}

/// What happens just before a question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JustBefore {
    /// Somebody else says something, seen by the bot.
    Said(String),
    /// Discord forgets the bot's session, so that no event tells of the question.
    SessionLost,
}

/// A command that is called.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DemoCall {
    pub(super) title: String,
    /// What a reader needs to know.
    pub(super) setting: String,
    /// Where it is called.
    pub(super) place: String,
    pub(super) asker: String,
    /// Without a slash, such as `agent run`.
    pub(super) command: String,
    /// The values of its options, by name.
    pub(super) options: BTreeMap<String, String>,
    /// What must be told, or posted in its thread.
    pub(super) quoted: Vec<String>,
}

/// What came of a command.
#[derive(Debug)]
pub(super) struct CallPlayed {
    pub(super) asker: String,
    /// Where it was called, in words.
    pub(super) place: String,
    /// What the asker was told, with names.
    pub(super) told: String,
    /// Nobody else sees that.
    pub(super) is_private: bool,
    /// What the bot posted in the thread that it began, with names, oldest first.
    pub(super) posted: Vec<String>,
    /// The roles of the messages in each request to the model.
    pub(super) requests: Vec<Vec<String>>,
}

/// What is expected of a scene.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    /// The scene's name in telemetry.
    pub(super) case: String,
    /// The number of messages in the block, with the default caps.
    pub(super) messages: u64,
    /// The most GET requests.
    pub(super) gets: usize,
    /// The message that the answer replies to.
    #[serde(default)]
    pub(super) answered: Answered,
    /// The tools that the model calls.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    /// What the answer must quote, with the default caps.
    pub(super) quoted: Vec<String>,
}

/// The message that an answer replies to.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answered {
    #[default]
    Question,
    /// What was said just before it.
    Before,
}

/// What happened in a scene.
#[derive(Debug)]
pub(super) struct Played {
    /// What was said just before the question, if anything.
    pub(super) before: Option<Id>,
    pub(super) question: Id,
    pub(super) asker: String,
    /// Where it was asked, in words.
    pub(super) place: String,
    /// The question's text, with names in its mentions.
    pub(super) text: String,
    /// What was said just before it, author first.
    pub(super) said_before: Option<String>,
    /// The message that the question replies to, author first.
    pub(super) points_at: Option<String>,
    /// The messages that the bot posted, with names, oldest first.
    pub(super) answers: Vec<Message>,
    /// The message that the first answer replies to.
    pub(super) replied: Option<Id>,
    /// The same message in words, author first.
    pub(super) replied_to: Option<String>,
    /// All GET requests of the turn, in words.
    pub(super) gets: Vec<String>,
    /// The turn's telemetry.
    pub(super) lines: Vec<DemoLine>,
}

impl Played {
    /// The detail of the turn's first event with this name.
    pub(super) fn detail(&self, event: &str) -> Option<&Value> {
        self.details(event).next()
    }

    /// The details of the turn's events with this name.
    pub(super) fn details(&self, event: &str) -> impl Iterator<Item = &Value> {
        let of = move |line: &&DemoLine| line.event == event;
        self.lines.iter().filter(of).map(|line| &line.detail)
    }
}
