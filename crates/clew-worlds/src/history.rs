//! What happened in a world, in order.

use std::fmt;
use std::path::PathBuf;

use clew_simulator::Id;

use crate::plan::Command;

/// A word that occurs in one text of the world only, so that the text is recognised wherever
/// it turns up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) of: MarkOf,
    /// Counts the texts of the world; an answer has its question's number.
    pub(crate) number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MarkOf {
    /// A person's words.
    Words,
    /// A question to the bot.
    Question,
    /// The model's answer.
    Answer,
    /// What somebody had remembered.
    Fact,
    /// What an agent is to do.
    Task,
}

impl MarkOf {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Words, "wd"),
        (Self::Question, "qs"),
        (Self::Answer, "an"),
        (Self::Fact, "fc"),
        (Self::Task, "tk"),
    ];

    /// Whether the model is asked by it.
    pub(crate) fn is_asked(self) -> bool {
        matches!(self, Self::Question | Self::Task)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, letters) = MarkOf::ALL[self.of as usize];
        write!(f, "{letters}{}z", self.number)
    }
}

/// All marks in a text, in order.
pub(crate) fn marks(text: &str) -> Vec<Mark> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter_map(mark).collect()
}

fn mark(word: &str) -> Option<Mark> {
    let word = word.strip_suffix('z')?;
    let (of, letters) = MarkOf::ALL
        .into_iter()
        .find(|(_, letters)| word.starts_with(letters))?;
    let number = word.strip_prefix(letters)?.parse().ok()?;
    Some(Mark { of, number })
}

/// Something that happened, and when, in milliseconds since the world's beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) at: i64,
    pub(crate) what: What,
}

/// Why a process of a cluster is the bot no more: it, or others, may be again.
pub(crate) const GAVE_BACK: &str = "it is the bot no more";

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A person wrote a message.
    Said(Said),
    /// A message got other words.
    Edited { message: Id, was: Mark, is: Mark },
    /// Messages were deleted.
    Deleted { messages: Vec<Id> },
    /// A thread was archived.
    Archived { thread: Id },
    /// A person used a command.
    Called {
        interaction: Id,
        user: Id,
        guild: Id,
        command: Command,
        /// Of the words that it was given.
        mark: Option<Mark>,
    },
    /// The bot answered a command.
    CallAnswered { interaction: Id, text: String },
    /// A person pressed a button of the bot's message.
    Pressed {
        user: Id,
        message: Id,
        label: String,
    },
    /// Who may see a channel changed: these may. Of a role of a person's the bot hears with the
    /// next message only.
    Seen {
        channel: Id,
        by: Vec<Id>,
        by_role: bool,
    },
    /// Whether the bot may do in a channel all that it needs there, when that may have changed.
    BotMay { channel: Id, all: bool },
    /// A server's outage began, or is over.
    Outage { guild: Id, is_on: bool },
    /// A process of the bot began.
    Started { process: u32 },
    /// It was killed, after so many crossings of its seams.
    Killed { process: u32, crossings: u64 },
    /// It ended by itself or as asked; with its error.
    Ended { process: u32, error: Option<String> },
    /// The process was asked to stop.
    AskedToStop { process: u32 },
    /// The process was greeted with a new session of one of its shards.
    Greeted { process: u32, shards: u32 },
    /// It resumed a session.
    Resumed { process: u32 },
    /// An event about messages reached the process, with the marks of the words in it.
    Told {
        process: u32,
        event: String,
        messages: Vec<Id>,
        marks: Vec<Mark>,
    },
    /// A process could not be the bot: until then it is in no other's place.
    Unable { until: i64 },
    /// On so many machines there is a process now, whether it is the bot or not.
    Machines { up: usize },
    /// What a process sent arrived when it was not the bot, or not any more.
    Late { process: u32, what: String },
    /// A process was told of a channel, and whether it is hidden from a role.
    ToldOfChannel {
        channel: Id,
        /// If it is: who may see it all the same.
        hidden_but: Option<Vec<Id>>,
    },
    /// A request reached the model.
    Prompted(Prompted),
    /// The model failed the request for a question.
    ModelFailed { question: Option<Mark> },
    /// The bot posted or changed a message.
    Posted {
        message: Id,
        channel: Id,
        marks: Vec<Mark>,
        replies_to: Option<Id>,
        text: String,
    },
    /// The bot took a message back.
    TakenBack { messages: Vec<Id> },
    /// What the store does for the process, when that changes.
    StoreDid {
        process: u32,
        call: StoreCall,
        operation: &'static str,
        is_done: bool,
    },
    /// A call takes longer than the process waits.
    StoreHangs { process: u32, call: StoreCall },
    /// What the process says of its store, when that changes.
    StoreSeems {
        process: u32,
        is_read: bool,
        is_written: bool,
    },
    /// What a process holds, when one of it is more than it ever was: messages in windows, and
    /// turns that wait for the store.
    Holds {
        process: u32,
        messages: usize,
        unsaved: usize,
    },
    /// What is on the bot's disk without telemetry, file by file: looked at when a process has
    /// ended, and when somebody's words are erased.
    OnDisk { files: Vec<(PathBuf, Vec<Mark>)> },
    /// The process has noticed that it does not reach Discord.
    CutOff { process: u32 },
    /// A fault was injected.
    Fault { name: &'static str },
    /// The faults are over; the world is left alone.
    Quiet,
}

/// What is asked of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StoreCall {
    Reads,
    Writes,
}

/// A message of a person, maybe through an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) message: Id,
    pub(crate) channel: Id,
    /// The server, if the channel is one of its and no thread.
    pub(crate) in_channel_of: Option<Id>,
    /// Whether it is a direct message.
    pub(crate) is_direct: bool,
    pub(crate) author: Id,
    /// What somebody wrote for an app, which has posted this in its place and deleted that.
    pub(crate) in_place_of: Option<Id>,
    pub(crate) mark: Mark,
    pub(crate) replies_to: Option<Id>,
}

/// A request to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompted {
    pub(crate) process: u32,
    /// The question that it asks, if it is a turn's.
    pub(crate) question: Option<Mark>,
    /// All marks in it but the question's own.
    pub(crate) shows: Vec<Mark>,
    /// Characters of all messages.
    pub(crate) chars: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_in_texts() {
        let of = |of, number| Mark { of, number };
        let text = format!(
            "<@1> {}, **{}** qs z wd12 {}s",
            of(MarkOf::Question, 7),
            of(MarkOf::Words, 12),
            of(MarkOf::Answer, 3)
        );
        let expected = [of(MarkOf::Question, 7), of(MarkOf::Words, 12)];
        assert_eq!(marks(&text), expected);
    }
}
