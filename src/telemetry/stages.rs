//! How long the stages of a turn took. Events do not say it; metrics and traces do.

use std::time::Duration;

use clew_context::words;
use tokio::time::Instant;

words! {
    /// A part of a turn, in the words of metrics, traces, report and playground. Up to the
    /// last one follows the other, and a question that is edited begins anew; then parts of these.
    TurnStage {
        /// It waits for other turns.
        Queue = "queue",
        /// What the prompt is made of is gathered.
        Gather = "gather",
        /// The model is asked, and answers are posted while they stream.
        Ask = "ask",
        /// The rest of the answer is posted.
        Deliver = "deliver",
        /// The turn is stored.
        Record = "record",
        /// What stands around the question is collected.
        Collect = "collect",
        /// From the question to the first request to a model.
        ToModel = "to_model",
        /// From a request to its first words.
        FirstWords = "first_words",
        /// From the question to the first words.
        ToFirstWords = "to_first_words",
        /// From a request to its end.
        Request = "request",
        /// A tool is called.
        Tool = "tool",
        /// All of it.
        Turn = "turn",
    }
}

impl TurnStage {
    /// The words shown to people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Queue => "waiting for other turns",
            Self::Gather => "gathering",
            Self::Ask => "asking the model",
            Self::Deliver => "posting the rest",
            Self::Record => "storing the turn",
            Self::Collect => "collecting",
            Self::ToModel => "question to first request",
            Self::FirstWords => "request to first words",
            Self::ToFirstWords => "question to first words",
            Self::Request => "request to the model",
            Self::Tool => "call of a tool",
            Self::Turn => "whole turn",
        }
    }
}

/// One stage of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTime {
    /// Which.
    pub stage: TurnStage,
    /// How long it took.
    pub took: Duration,
}

/// All stages of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTimes {
    /// In order, without a pause between them.
    pub all: Vec<StageTime>,
    /// When the last one ended.
    #[cfg(feature = "otel")]
    pub ended: Instant,
}

/// Times the stages of one turn.
#[derive(Debug)]
pub struct Stopwatch {
    over: Vec<StageTime>,
    stage: TurnStage,
    began: Instant,
}

impl Stopwatch {
    /// Begins with the wait of a trigger that came then.
    pub fn new(came: Instant) -> Self {
        Self {
            over: Vec::with_capacity(TurnStage::ALL.len()),
            stage: TurnStage::Queue,
            began: came,
        }
    }

    /// Another stage begins, and so the one before ends.
    pub fn enters(&mut self, stage: TurnStage, now: Instant) {
        self.over.push(self.current(now));
        self.stage = stage;
        self.began = now;
    }

    /// All stages, the current one up to now.
    pub fn read(&self, now: Instant) -> StageTimes {
        let mut all = self.over.clone();
        all.push(self.current(now));
        StageTimes {
            all,
            #[cfg(feature = "otel")]
            ended: now,
        }
    }

    fn current(&self, now: Instant) -> StageTime {
        StageTime {
            stage: self.stage,
            took: now - self.began,
        }
    }
}
