//! One scene: who asks what where, and what has to come of it.

use serde_json::Value;

use super::line::Line;
use clew_simulator::{Draft, Id, Message};

/// A question and the conversation around it.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    /// Its heading.
    pub(super) title: &'static str,
    /// What a reader has to know about the conversation.
    pub(super) setting: &'static str,
    /// The rule by which the bot collects here.
    pub(super) rule: &'static str,
    /// Where it is asked.
    pub(super) channel: Id,
    /// What others say right before, seen by the bot.
    pub(super) before: Option<(Id, &'static str)>,
    /// Who asks.
    pub(super) asker: Id,
    /// The message that asks.
    pub(super) question: Draft,
    /// What has to come of it.
    pub(super) expect: Expect,
}

/// What has to come of a scene.
#[derive(Debug, Clone)]
pub(super) struct Expect {
    /// The scene's word in telemetry.
    pub(super) case: &'static str,
    /// Messages in the block, with the default caps.
    pub(super) messages: u64,
    /// GETs at most.
    pub(super) gets: usize,
    /// The message that the answer replies to.
    pub(super) answered: Answered,
    /// What the inspector's answer has to quote, with the default caps.
    pub(super) quoted: &'static [&'static str],
}

/// The message that an answer replies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    /// The question.
    Question,
    /// What was said right before it.
    Before,
}

/// What came of a scene.
#[derive(Debug)]
pub(super) struct Played {
    /// What was said right before the question, if anything was.
    pub(super) before: Option<Id>,
    /// The question.
    pub(super) question: Id,
    /// The asker's name.
    pub(super) asker: String,
    /// Where it was asked, in words.
    pub(super) place: String,
    /// The question's text, mentions as names.
    pub(super) text: String,
    /// What was said right before it, author first.
    pub(super) said_before: Option<String>,
    /// The message that the question replies to, author first.
    pub(super) points_at: Option<String>,
    /// The messages that the bot posted, oldest first.
    pub(super) answers: Vec<Message>,
    /// The message that the first of them replies to.
    pub(super) replied: Option<Id>,
    /// The same, author first.
    pub(super) replied_to: Option<String>,
    /// Every GET of the turn, in words.
    pub(super) gets: Vec<String>,
    /// The turn's telemetry.
    pub(super) lines: Vec<Line>,
}

impl Played {
    /// The detail of the turn's first event of a name.
    pub(super) fn detail(&self, event: &str) -> Option<&Value> {
        self.details(event).next()
    }

    /// The details of the turn's events of a name.
    pub(super) fn details(&self, event: &str) -> impl Iterator<Item = &Value> {
        let of = move |line: &&Line| line.event == event;
        self.lines.iter().filter(of).map(|line| &line.detail)
    }
}
