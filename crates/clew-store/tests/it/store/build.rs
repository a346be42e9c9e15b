//! Short constructors for stored values.

use std::collections::BTreeSet;

use clew_context::model::{
    ChannelId, ContentSource, GuildId, MessageId, TurnId, UnixMillis, UserId,
};
use clew_store::WindowQuery;
use clew_store::model::{
    AgentName, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, Origin, ReceiptPerson, Scope,
    SnapshotId, StoredMessage, StoredReceipt, StoredRole, Subject,
};

/// 2026-05-28, where a fixture's clock starts.
pub(super) const NOW: UnixMillis = UnixMillis(1_780_000_000_000);

pub(super) fn user(id: u64) -> UserId {
    UserId::new(id)
}

pub(super) fn guild(id: u64) -> GuildId {
    GuildId::new(id)
}

pub(super) fn channel(id: u64) -> ChannelId {
    ChannelId::new(id)
}

pub(super) fn message(id: u64) -> MessageId {
    MessageId::new(id)
}

pub(super) fn agent(name: &str) -> AgentName {
    name.parse().unwrap()
}

pub(super) fn default_agent() -> AgentName {
    AgentName::default_agent()
}

/// A number of milliseconds after [`NOW`].
pub(super) fn at(after: i64) -> UnixMillis {
    UnixMillis(NOW.0 + after)
}

pub(super) fn member(guild_id: u64, channel_id: u64, user_id: u64) -> Scope {
    Scope::Member {
        guild: guild(guild_id),
        channel: channel(channel_id),
        user: user(user_id),
    }
}

pub(super) fn thread(guild_id: u64, channel_id: u64) -> Scope {
    Scope::Thread {
        guild: guild(guild_id),
        channel: channel(channel_id),
    }
}

pub(super) fn direct(user_id: u64) -> Scope {
    Scope::Direct(user(user_id))
}

/// The channel of a user's direct messages.
pub(super) fn direct_channel(user_id: UserId) -> ChannelId {
    ChannelId::new(user_id.get() + 900_000)
}

/// A question by the scope's owner, or by user 1, and its answer, a millisecond
/// later. Message ids derive from the turn's number: trigger `n`, answer `n +
/// 1`, further part `n + 2`.
pub(super) fn turn(scope: Scope, number: u64, when: UnixMillis) -> Vec<StoredMessage> {
    let owner = scope.owner().unwrap_or(user(1));
    let (guild, channel) = match scope {
        Scope::Member { guild, channel, .. } | Scope::Thread { guild, channel } => {
            (Some(guild), channel)
        }
        Scope::User(user) | Scope::Direct(user) => (None, direct_channel(user)),
    };
    let question = StoredMessage {
        scope,
        agent: default_agent(),
        turn: TurnId(number),
        ordinal: 0,
        role: StoredRole::User,
        guild,
        channel,
        owner,
        author_name: Some("Ada".to_owned()),
        content: format!("question {number}"),
        tool_calls: None,
        tool_call_id: None,
        timestamp: when,
        message: Some(message(number)),
        parts: Vec::new(),
        target: Some(message(number)),
        restored_from: None,
        sources: Vec::new(),
    };
    let answer = StoredMessage {
        role: StoredRole::Assistant,
        author_name: None,
        content: format!("answer {number}"),
        timestamp: UnixMillis(when.0 + 1),
        message: Some(message(number + 1)),
        parts: vec![message(number + 2)],
        target: None,
        ..question.clone()
    };
    vec![question, answer]
}

/// The same turn by another agent.
pub(super) fn of_agent(mut turn: Vec<StoredMessage>, agent: &AgentName) -> Vec<StoredMessage> {
    for row in &mut turn {
        row.agent = agent.clone();
    }
    turn
}

/// The same turn with a tool call and its result before the answer.
pub(super) fn with_tools(mut turn: Vec<StoredMessage>) -> Vec<StoredMessage> {
    let (question, answer) = (turn[0].clone(), turn.pop().unwrap());
    let call = StoredMessage {
        role: StoredRole::ToolUse,
        author_name: None,
        content: String::new(),
        tool_calls: Some(r#"[{"id":"call_1","name":"clock","arguments":"{}"}]"#.to_owned()),
        message: None,
        target: None,
        ..question.clone()
    };
    let result = StoredMessage {
        role: StoredRole::ToolResult,
        author_name: None,
        content: "noon".to_owned(),
        tool_call_id: Some("call_1".to_owned()),
        message: None,
        target: None,
        ..question
    };
    turn.extend([call, result, answer]);
    turn
}

/// The same turn, answered from these sources.
pub(super) fn made_from(
    mut turn: Vec<StoredMessage>,
    sources: &[ContentSource],
) -> Vec<StoredMessage> {
    for row in turn.iter_mut().filter(|row| row.role != StoredRole::User) {
        row.sources = sources.to_vec();
    }
    turn
}

/// The receipt of [`turn`] `number` in this scope, which names these sources.
pub(super) fn receipt(
    scope: Scope,
    number: u64,
    when: UnixMillis,
    sources: &[ContentSource],
) -> StoredReceipt {
    let rows = turn(scope, number, when);
    let (question, answer) = (&rows[0], &rows[1]);
    StoredReceipt {
        turn: question.turn,
        scope,
        guild: question.guild,
        channel: question.channel,
        owner: question.owner,
        is_private: false,
        trigger: question.message,
        messages: answer
            .message
            .iter()
            .chain(&answer.parts)
            .copied()
            .collect(),
        at: when,
        people: named(sources, question),
        body: format!("{{\"number\":{number}}}"),
    }
}

/// The authors of sources, and who asked.
fn named(sources: &[ContentSource], question: &StoredMessage) -> BTreeSet<ReceiptPerson> {
    let of = |guild, author| ReceiptPerson { guild, author };
    let asker = of(question.guild, Some(question.owner));
    let named = sources.iter().map(|one| of(one.guild, one.author));
    named.chain([asker]).collect()
}

/// The turn as expected back, with its ordinal.
pub(super) fn numbered(mut turn: Vec<StoredMessage>, ordinal: u64) -> Vec<StoredMessage> {
    for row in &mut turn {
        row.ordinal = ordinal;
    }
    turn
}

/// A whole conversation with the default agent.
pub(super) fn all_of(scope: Scope) -> WindowQuery {
    WindowQuery {
        scope,
        agent: default_agent(),
        since: UnixMillis(0),
        cleared: None,
        with_tools: true,
        limit: 1_000,
    }
}

pub(super) fn texts(rows: &[StoredMessage]) -> Vec<&str> {
    rows.iter().map(|row| row.content.as_str()).collect()
}

pub(super) fn user_fact(id: u64, about: u64, text: &str) -> Fact {
    Fact {
        id: FactId(id),
        subject: Subject::User(user(about)),
        text: text.to_owned(),
        origin: Origin::Everywhere,
        by: user(about),
        at: at(0),
        link: None,
        pinned: false,
        seen: 1,
        last_used: at(0),
    }
}

pub(super) fn server_fact(id: u64, about: u64, text: &str) -> Fact {
    Fact {
        subject: Subject::Server(guild(about)),
        origin: Origin::Guild(guild(about)),
        ..user_fact(id, 1, text)
    }
}

pub(super) fn snapshot_id(number: u64) -> SnapshotId {
    format!("00000000-0000-4000-8000-{number:012x}")
        .parse()
        .unwrap()
}

/// A snapshot of these rows, by their owner, in their server, saved at `when`.
pub(super) fn snapshot(
    number: u64,
    messages: Vec<StoredMessage>,
    when: UnixMillis,
) -> ContextSnapshot {
    let first = &messages[0];
    let info = ContextSnapshotInfo {
        id: snapshot_id(number),
        agent: first.agent.clone(),
        owner: first.owner,
        guild: first.guild,
        timestamp: when,
        description: Some(format!("description {number}")),
        summary: format!("summary {number}"),
        message_count: messages.len(),
        window_start: first.timestamp,
        window_end: messages[messages.len() - 1].timestamp,
    };
    ContextSnapshot { info, messages }
}
