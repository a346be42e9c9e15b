//! `catch_up`: what was written in a thread or channel since the asker last wrote there, in
//! conversations, those that concern the asker first.

use std::sync::Arc;

use super::asker::Asker;
use super::list_thread::{TARGET, target};
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::engine::catch_up::{self, Backlog, Reader, Since};
use crate::engine::citations::{mark, without_marks};
use crate::model::{BuiltIn, ToolDefinition, ToolParameter};
use clew_context::collect::{PAGE_LIMIT, PageCursor};
use clew_context::model::{ContentSource, Message};

pub(super) const CATCH_UP: Tool = Tool {
    definition: ToolDefinition::built_in(
        BuiltIn::CatchUp,
        "Reads what was written in a Discord thread or channel since the asker last wrote \
                there, grouped into conversations. Use it to tell what they missed: what was \
                decided, asked and left open.",
        &[
            TARGET,
            ToolParameter::optional(
                SINCE,
                "How far back instead, like `30m`, `2h`, `3d` or `1w`.",
            ),
        ],
    ),
    run: run!(catch_up),
    is_kept: true,
};

const SINCE: &str = "since";
/// The newest messages that are shown: a turn is made from a few hundred.
const MAX_MESSAGES: usize = 120;
const OLDER: &str = "There are older ones that are not shown.";
/// The most pages of [`PAGE_LIMIT`] messages.
const MAX_PAGES: usize = 5;
const FORUM: &str = "A forum has nothing but posts: name one of them.";

async fn catch_up(asker: &Asker<'_>, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let channel = target(asker, arguments)?;
    let since = Since::read(arguments.text(SINCE).as_deref(), asker.memory.now());
    let since = since.ok_or(ToolError::Argument(SINCE))?;
    asker.must_read(channel)?;
    let place = asker.guild_state.channel(channel);
    if place.as_ref().is_some_and(|place| place.kind.is_forum()) {
        return Ok(ToolOutput::line(FORUM));
    }
    let name = asker.names.user(asker.place.asker);
    let name = name.unwrap_or_else(|| asker.said.asker.clone());
    let reader = Reader::new(asker.place.asker, name, place.as_ref());
    let (mut backlog, mut before) = (Backlog::default(), asker.trigger);
    let mut older = OLDER;
    for page in 0..MAX_PAGES {
        let read = asker
            .reads
            .page(channel, PageCursor::Before(before), PAGE_LIMIT)
            .await;
        let read = match read {
            Err(error) if page == 0 => return Err(ToolError::of_read(error)),
            Err(_) => break,
            Ok(read) => read,
        };
        let Some(oldest) = backlog.take(read, |message| since.wants(message, reader.user)) else {
            older = "There are no older ones.";
            break;
        };
        before = oldest;
    }
    let spoken = |message: &Message| !message.withheld && asker.us.rejects(message).is_none();
    let Backlog {
        mut missed,
        mut earlier,
    } = backlog;
    missed.retain(spoken);
    earlier.retain(spoken);
    if missed.len() > MAX_MESSAGES {
        missed.truncate(MAX_MESSAGES);
        earlier.clear();
        older = OLDER;
    }
    let count = earlier.len();
    let oldest_first = missed.into_iter().chain(earlier).rev();
    let mut messages: Vec<Arc<Message>> = oldest_first.map(Arc::new).collect();
    let mut said = catch_up::said(asker.us, asker.names, &messages, count, &reader);
    let messages = messages.split_off(count);
    for (said, message) in said.iter_mut().zip(&messages) {
        let (id, line) = (message.id, without_marks(&said.line));
        said.line = format!("{id} {} {line}", mark(id));
    }
    let Some(portion) = catch_up::portions(&said).into_iter().next() else {
        return Ok(ToolOutput::line("Nothing was written there since."));
    };
    let (data, given) = portion.data(&said, |_| true);
    let source = |at: &usize| ContentSource {
        guild: asker.guild(),
        channel,
        message: Some(messages[*at].id),
        author: Some(messages[*at].author.id),
    };
    let rest = messages.len() - given.len();
    Ok(ToolOutput {
        content: format!("{data}\n({rest} more messages are not shown. {older})\n").into_bytes(),
        sources: given.iter().map(source).collect(),
        ..ToolOutput::default()
    })
}
