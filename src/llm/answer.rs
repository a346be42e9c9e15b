//! An answer as it arrives: the server's pieces go in, the steps that the caller
//! sees come out.

use std::collections::VecDeque;

use super::calls::ArrivingCalls;
use super::thinking::Thinking;
use super::wire::AnswerPiece;
use super::{AnswerEnd, AnswerStep, Error, FinishReason, Usage};
use clew_context::engine::echo::Echo;

#[derive(Debug, Default)]
pub(super) struct ArrivingAnswer {
    thinking: Thinking,
    echo: Echo,
    /// Bytes of text passed on so far.
    bytes: usize,
    /// [`super::ModelSettings::max_answer_bytes`].
    max_bytes: usize,
    is_cut_off: bool,
    refused: bool,
    calls: ArrivingCalls,
    finish_reason: Option<FinishReason>,
    usage: Option<Usage>,
    model: Option<String>,
    steps: VecDeque<AnswerStep>,
}

impl ArrivingAnswer {
    /// An answer of which nothing has arrived, and at most this many bytes of text
    /// are taken.
    pub(super) fn of_at_most(max_bytes: usize, echo: Echo) -> Self {
        Self {
            echo,
            max_bytes,
            ..Self::default()
        }
    }

    /// The next step that is ready.
    pub(super) fn next_step(&mut self) -> Option<AnswerStep> {
        self.steps.pop_front()
    }

    pub(super) fn has_text(&self) -> bool {
        self.bytes > 0
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether the rest is not taken any more.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Notes that the rest will not be read.
    pub(super) fn cut_off(&mut self) {
        self.is_cut_off = true;
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// If the model calls tools without end.
    pub(super) fn take(&mut self, piece: AnswerPiece) -> Result<(), Error> {
        let text = self.echo.strip(&self.thinking.strip(&piece.text));
        self.say(&text);
        self.refused |= piece.refused;
        self.finish_reason = piece.finish_reason.or(self.finish_reason);
        self.usage = piece.usage.or(self.usage);
        self.model = piece.model.or(self.model.take());
        piece
            .calls
            .into_iter()
            .try_for_each(|(index, call)| self.calls.take(index, call))
    }

    /// Passes on the text that the filters have held back; after that nothing may be
    /// taken.
    pub(super) fn flush(&mut self) {
        let text = self.echo.strip(&self.thinking.finish()) + &self.echo.finish();
        self.say(&text);
    }

    /// Ends the answer: passes on what is left, the calls, and the end.
    ///
    /// # Errors
    /// [`Error::Empty`] if it has neither text nor calls.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.flush();
        let finish_reason = self.finish_reason();
        if !self.has_text() && !self.has_calls() {
            return Err(Error::Empty { finish_reason });
        }
        // Of an answer that was cut off, the last call may be incomplete.
        if !self.is_cut_off {
            let calls = self.calls.finish().map(AnswerStep::ToolCall);
            self.steps.extend(calls);
        }
        self.steps.push_back(AnswerStep::End(AnswerEnd {
            finish_reason,
            refused: self.refused,
            usage: self.usage,
            model: self.model.take(),
        }));
        Ok(())
    }

    /// Some servers say `stop` along with calls.
    fn finish_reason(&self) -> FinishReason {
        let reason = self.finish_reason.unwrap_or(FinishReason::Stop);
        match reason {
            _ if self.is_cut_off => FinishReason::CutOff,
            FinishReason::Stop | FinishReason::Other if self.has_calls() => FinishReason::ToolCalls,
            reason => reason,
        }
    }

    /// Passes text on, without white space before the first letter, so that
    /// whatever has been passed on is an answer.
    fn say(&mut self, text: &str) {
        let text = if self.has_text() {
            text
        } else {
            text.trim_start()
        };
        let room = self.max_bytes - self.bytes;
        let fitting = &text[..text.floor_char_boundary(room)];
        self.is_cut_off |= fitting.len() < text.len();
        if !fitting.is_empty() {
            self.bytes += fitting.len();
            self.steps.push_back(AnswerStep::Text(fitting.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests;
