//! Tools: what a model may call in a turn. Each is a file below with one [`Tool`], and
//! a line in `TOOLS`.
//!
//! [`call()`] runs one call for the asker of a turn, under a deadline, and makes of
//! whatever comes a text of bounded size for the model.
//!
//! Invariant: a tool does what its asker may do now and nothing else; who that is comes
//! from the turn, never from the model.

mod address;
mod asker;
mod catch_up;
mod discord_search;
mod forget;
mod get_message;
mod kept;
mod list_thread;
mod read_doc;
mod read_output;
mod reading;
mod remember;
mod result;
mod search_messages;
mod search_outputs;
mod servers;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures_util::TryFutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::config::Search;
use crate::model::{Agent, BuiltIn, ToolDefinition};
use crate::telemetry::event::ToolOutcome;

pub use address::Address;
pub use asker::{Asker, MAX_FETCHES};
pub use discord_search::{DiscordSearch, SearchedServers, TurnSearches};
pub use kept::line;
pub use result::{ToolError, ToolImage, ToolOutput, ToolResult};
pub use servers::{AgreedTool, Caller, CallerTools, SeenTools, Terms, ToolServers};

/// A tool: what the model is told of it, and what it does.
#[derive(Debug)]
pub struct Tool {
    definition: ToolDefinition,
    run: Run,
    /// Whether its results are kept: not those that show what is kept already.
    is_kept: bool,
}

/// What a tool does, for the asker of a turn.
type Run = for<'a> fn(&'a Asker<'a>, &'a Arguments) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

/// A tool's function as a [`Run`].
macro_rules! run {
    ($function:path) => {
        |asker, arguments| Box::pin($function(asker, arguments))
    };
}
use run;

/// Every tool, in the order in which models are told of them.
static TOOLS: [Tool; 9] = [
    get_message::GET_MESSAGE,
    list_thread::LIST_THREAD,
    search_messages::SEARCH_MESSAGES,
    catch_up::CATCH_UP,
    remember::REMEMBER,
    forget::FORGET,
    search_outputs::SEARCH_OUTPUTS,
    read_output::READ_OUTPUT,
    read_doc::READ_DOC,
];

/// The arguments of a call: a JSON object.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// The arguments as the model wrote them; none if they are no JSON object.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// Those that came as an object.
    pub const fn of(object: Map<String, Value>) -> Self {
        Self(object)
    }

    /// The same with another text.
    #[must_use]
    pub fn with(mut self, name: &str, text: &str) -> Self {
        self.0.insert(name.to_owned(), text.into());
        self
    }

    /// The same arguments in one form, whatever order and spaces the model used.
    pub fn canonical(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// The same, for people.
    pub fn pretty(&self) -> String {
        serde_json::to_string_pretty(&self.0).unwrap_or_default()
    }

    /// A text, without white space around it; none if there is none. Models write ids as
    /// numbers, too.
    pub fn text(&self, name: &str) -> Option<String> {
        let text = match self.0.get(name)? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    }

    /// A text that the tool needs.
    fn required(&self, name: &'static str) -> Result<String, ToolError> {
        self.text(name).ok_or(ToolError::Argument(name))
    }
}

/// The tools that an agent is offered. It reads its documents only if prompts do not have
/// all of them, and searches unless `SEARCH` is off.
pub fn offered(agent: &Agent, search: Search) -> Vec<ToolDefinition> {
    let definitions = TOOLS.iter().map(|tool| &tool.definition);
    let is_named = |tool: &&ToolDefinition| {
        let names = agent.tools.as_ref();
        let has_use = match tool.name.built_in() {
            Some(BuiltIn::ReadDoc) => agent.docs.are_cut(),
            Some(BuiltIn::SearchMessages) => search != Search::Off,
            _ => true,
        };
        has_use && names.is_none_or(|names| names.contains(&tool.name))
    };
    definitions.filter(is_named).cloned().collect()
}

/// Runs a call of one of our tools that were offered.
pub async fn call(
    offered: &[ToolDefinition],
    asker: &Asker<'_>,
    name: &str,
    arguments: &Arguments,
    time: Duration,
) -> ToolResult {
    let is_offered = |tool: &&Tool| {
        let own = &tool.definition.name;
        own.as_str() == name && offered.iter().any(|one| one.name == *own)
    };
    let Some(tool) = TOOLS.iter().find(is_offered) else {
        return ToolResult::of_error(&ToolError::Unknown);
    };
    let run = (tool.run)(asker, arguments);
    kept(asker, name, arguments, time, tool.is_kept, run).await
}

/// Runs a call of a server's tool, as it was agreed on.
pub async fn call_of_server(
    asker: &Asker<'_>,
    tools: CallerTools<'_>,
    agreed: &AgreedTool,
    (name, arguments): (&str, &Arguments),
    time: Duration,
) -> ToolResult {
    let run = tools.call(agreed, arguments, time);
    kept(asker, name, arguments, time, true, run).await
}

/// Runs a call within its time, and keeps what it gives.
async fn kept(
    asker: &Asker<'_>,
    name: &str,
    arguments: &Arguments,
    time: Duration,
    is_kept: bool,
    run: impl Future<Output = Result<ToolOutput, ToolError>>,
) -> ToolResult {
    let began = asker.memory.now();
    let run = run.inspect_err(|error| {
        if let ToolError::Store(error) = error {
            asker.memory.note_failed_request(error);
        }
    });
    let result = within(time, run).await;
    if is_kept && result.outcome == ToolOutcome::Ok {
        let args = arguments.0.clone();
        kept::kept(asker, name, args, began, result).await
    } else {
        result
    }
}

/// What models are told of a tool of ours.
pub fn definition(name: BuiltIn) -> Option<&'static ToolDefinition> {
    let mut tools = TOOLS.iter().map(|tool| &tool.definition);
    tools.find(|tool| tool.name.built_in() == Some(name))
}

/// Runs a tool of ours for somebody who reads by themselves: nothing is kept.
pub async fn read(
    asker: &Asker<'_>,
    name: BuiltIn,
    arguments: &Arguments,
    time: Duration,
) -> ToolResult {
    let tool = TOOLS
        .iter()
        .find(|tool| tool.definition.name.built_in() == Some(name));
    match tool {
        Some(tool) => within(time, (tool.run)(asker, arguments)).await,
        None => ToolResult::of_error(&ToolError::Unknown),
    }
}

async fn within(
    time: Duration,
    run: impl Future<Output = Result<ToolOutput, ToolError>>,
) -> ToolResult {
    match timeout(time, run).await {
        Ok(Ok(output)) => ToolResult::of_output(output),
        Ok(Err(error)) => ToolResult::of_error(&error),
        Err(_) => ToolResult::of_error(&ToolError::Timeout),
    }
}
