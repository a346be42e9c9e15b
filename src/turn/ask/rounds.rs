//! What a model called so far, and how later requests show it: the newest results whole, of
//! older ones a line once there is no more room.

use clew_context::engine::frame::{self, FrameKind};
use clew_context::model::{ChatMessage, ToolCall};

use crate::memory::ToolRound;
use crate::tools::{Arguments, ToolError, ToolResult};
use crate::turn::gather::Judged;

/// The longest name of a tool that servers accept, in bytes.
pub(super) const MAX_NAME: usize = 64;
/// Beside results with messages.
const CITE: &str = "After what you take from a message, repeat its mark, such as [msg:ab2cd].";

/// Calls that a model made together.
pub(super) struct Round {
    /// The number of its server.
    pub(super) server: usize,
    pub(super) said: String,
    pub(super) calls: Vec<Called>,
    /// By what its results were judged last.
    pub(super) judged: Judged,
}

impl Round {
    /// The images that the tools gave, with the names of the tools.
    pub(super) fn images(&self, nonce: &str) -> Option<ChatMessage> {
        let (mut lines, mut images) = (String::new(), Vec::new());
        for called in &self.calls {
            for one in &called.result.images {
                images.push(one.image.clone());
                let (number, name) = (images.len(), &called.call.name);
                lines.push_str(&format!("{number}: from {name}\n"));
            }
        }
        let head = "The images that the tools gave, in order:";
        (!images.is_empty()).then(|| ChatMessage::WithImages {
            content: frame::headed(head, FrameKind::Images, nonce, &lines),
            images,
        })
    }
}

/// A call and what came of it.
pub(super) struct Called {
    pub(super) call: ToolCall,
    pub(super) result: ToolResult,
}

impl Called {
    /// A result with what to do about its messages, outside of its frame.
    pub(super) fn with_advice(&self, framed: String, nonce: &str) -> String {
        let mut sources = self.result.sources.iter();
        if sources.any(|source| source.message.is_some()) {
            format!("{framed}\n{}", frame::marked(nonce, CITE))
        } else {
            framed
        }
    }
}

/// The rounds with as much of their results as fits, the newest first.
pub(super) fn fitting(rounds: &[Round], max_chars: usize) -> Vec<ToolRound> {
    let mut room = max_chars;
    let mut fitting: Vec<ToolRound> = Vec::with_capacity(rounds.len());
    for round in rounds.iter().rev() {
        let calls = round.calls.iter().rev();
        let calls = calls.map(|called| (called.call.clone(), within(called, &mut room)));
        let mut calls: Vec<(ToolCall, String)> = calls.collect();
        calls.reverse();
        let said = round.said.clone();
        fitting.push(ToolRound { said, calls });
    }
    fitting.reverse();
    fitting
}

/// A result, or a line in its place. Once one had no room, no older one has any.
fn within(called: &Called, room: &mut usize) -> String {
    let chars = called.result.text.chars().count();
    if chars <= *room {
        *room -= chars;
        return called.result.text.clone();
    }
    *room = 0;
    match &called.result.output {
        Some(id) => format!("(Left out for want of room: `read_output` with `id` {id} reads it.)"),
        None => "(Left out for want of room.)".to_owned(),
    }
}

/// A result as material, not orders. No result can end its frame.
pub(super) fn framed(nonce: &str, text: &str) -> String {
    let mut inside = text.replace(nonce, "");
    if !inside.ends_with('\n') {
        inside.push('\n');
    }
    frame::wrap(FrameKind::ToolResult, nonce, &inside)
}

/// A call as it can be sent back. It gets an id of its own: servers give the same ones
/// again in each round, and some accept nothing but nine letters and digits.
pub(super) fn sendable(
    number: usize,
    call: ToolCall,
    arguments: &Result<Arguments, ToolError>,
) -> ToolCall {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_name = (1..=MAX_NAME).contains(&call.name.len()) && call.name.bytes().all(is_plain);
    let no_arguments = |_: &ToolError| "{}".to_owned();
    ToolCall {
        id: format!("call{:05}", number + 1),
        name: if is_name {
            call.name
        } else {
            "unknown".to_owned()
        },
        arguments: arguments
            .as_ref()
            .map_or_else(no_arguments, Arguments::canonical),
        extra: call.extra,
    }
}
