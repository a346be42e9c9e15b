//! One line: its keys in their fixed order, the ids, and durations.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::event::{Event, Subsys};
use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, TurnRequest, UnixMillis, UserId};

/// Where an event belongs; what does not apply is `null` on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ids {
    /// The server.
    pub guild: Option<GuildId>,
    /// The channel or thread.
    pub channel: Option<ChannelId>,
    /// The asker.
    pub user: Option<UserId>,
    /// The trigger.
    pub message: Option<MessageId>,
    /// The turn.
    pub turn: Option<TurnId>,
}

/// A duration, written in milliseconds with one decimal.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ms(pub Duration);

/// The line with its end, or nothing if it cannot be written as JSON.
pub(super) fn render(
    time: UnixMillis,
    log_subsys: &str,
    ids: &Ids,
    event: &Event,
) -> Option<String> {
    let subsys = match event.subsys() {
        Subsys::MemCtx => log_subsys,
        other => other.as_str(),
    };
    let line = Line {
        ts: &time.rfc3339(),
        level: event.level(),
        subsys,
        event: event.name(),
        guild_id: ids.guild,
        channel_id: ids.channel,
        user_id: ids.user,
        msg_id: ids.message,
        turn_id: ids.turn,
        detail: event,
    };
    let mut text = serde_json::to_string(&line).ok()?;
    text.push('\n');
    Some(text)
}

/// The keys, in the order they are written.
#[derive(Serialize)]
struct Line<'a> {
    ts: &'a str,
    level: &'static str,
    subsys: &'a str,
    event: &'static str,
    guild_id: Option<GuildId>,
    channel_id: Option<ChannelId>,
    user_id: Option<UserId>,
    msg_id: Option<MessageId>,
    turn_id: Option<TurnId>,
    detail: &'a Event,
}

impl Ids {
    /// Of a turn; the server as far as the trigger says it.
    pub fn of(request: &TurnRequest) -> Self {
        Self {
            guild: request.trigger.guild,
            channel: Some(request.trigger.channel),
            user: Some(request.asker()),
            message: Some(request.trigger.id),
            turn: Some(request.turn()),
        }
    }
}

impl From<Duration> for Ms {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl Serialize for Ms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tenths = (self.0.as_secs_f64() * 10_000.0).round();
        serializer.serialize_f64(tenths / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_decimal() {
        for (micros, expected) in [
            (0, "0.0"),
            (49, "0.0"),
            (50, "0.1"),
            (1_234, "1.2"),
            (123_456, "123.5"),
            (5_000_000, "5000.0"),
            (86_400_000_049, "86400000.0"),
        ] {
            let ms = Ms(Duration::from_micros(micros));
            assert_eq!(serde_json::to_string(&ms).unwrap(), expected, "{micros} µs");
        }
    }
}
