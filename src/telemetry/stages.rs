//! How long the stages of a turn took. Events do not say it; metrics and traces do.

use std::time::Duration;

use clew_context::words;
use tokio::time::Instant;

words! {
    /// A part of a turn. One follows the other; a question that is edited begins anew.
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
