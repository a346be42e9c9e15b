//! Puts tool calls together from the pieces in which they arrive. Servers number
//! the calls of an answer and send the id and the name of each once; some number
//! none or all alike, leave ids out, or repeat them.

use serde::de::IgnoredAny;

use super::Error;
use clew_context::model::ToolCall;

/// The most calls in one answer; models that mean it make a few.
const MAX_CALLS: usize = 64;

/// The most bytes of all the calls of an answer. A model may write a file's content
/// into an argument, but one in a loop writes for ever.
const MAX_BYTES: usize = 1024 * 1024;

/// The tool calls of an answer that is arriving.
#[derive(Debug, Default)]
pub(super) struct ArrivingCalls {
    /// Each under its number; several may have the same.
    calls: Vec<(usize, ToolCall)>,
    bytes: usize,
}

impl ArrivingCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes the next piece of the call with a number.
    ///
    /// # Errors
    /// If there are more calls, or more bytes of them, than an answer may have.
    pub(super) fn take(&mut self, index: usize, piece: ToolCall) -> Result<(), Error> {
        let extra = piece.extra.as_ref().map_or(0, |extra| extra.len());
        self.bytes += piece.id.len() + piece.name.len() + piece.arguments.len() + extra;
        if self.bytes > MAX_BYTES {
            return Err(Error::malformed("tool calls without end"));
        }
        let calls = self.calls.iter_mut();
        let mut same = calls.rev().filter(|(known, _)| *known == index);
        if let Some((_, call)) = same.next()
            && !begins_another(&piece, call)
        {
            continue_with(call, piece);
            return Ok(());
        }
        if self.calls.len() == MAX_CALLS {
            return Err(Error::malformed("too many tool calls"));
        }
        self.calls.push((index, piece));
        Ok(())
    }

    /// All calls, once the answer has ended; each has an id and arguments.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = ToolCall> {
        let calls = std::mem::take(&mut self.calls).into_iter().enumerate();
        calls.map(|(position, (_, mut call))| {
            if call.id.is_empty() {
                call.id = format!("call_{position}");
            }
            if call.arguments.trim().is_empty() {
                "{}".clone_into(&mut call.arguments);
            }
            call
        })
    }
}

/// Whether a piece that has the number of a call belongs to a further call: it gives
/// a name although the call has one, and it is not the same call's repeated.
fn begins_another(piece: &ToolCall, call: &ToolCall) -> bool {
    if piece.name.is_empty() || call.name.is_empty() {
        return false;
    }
    if piece.id.is_empty() || call.id.is_empty() {
        return piece.name != call.name || is_json(&call.arguments);
    }
    piece.id != call.id
}

fn is_json(arguments: &str) -> bool {
    arguments.ends_with('}') && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
}

fn continue_with(call: &mut ToolCall, piece: ToolCall) {
    if call.id.is_empty() {
        call.id = piece.id;
    }
    if call.name.is_empty() {
        call.name = piece.name;
    }
    call.arguments.push_str(&piece.arguments);
    if call.extra.is_none() {
        call.extra = piece.extra;
    }
}
