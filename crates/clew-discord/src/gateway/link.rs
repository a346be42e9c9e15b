//! A shard's connection: twilight's, or one within a simulation's process.

use std::error::Error;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use twilight_gateway::error::{ReceiveMessageError, ReceiveMessageErrorType};
use twilight_gateway::{
    CloseFrame, Config, ConfigBuilder, Message, Session, Shard, ShardId, ShardState,
};

use super::plan::Identifies;

/// Makes connections to the gateway.
pub trait Dial: Send + Sync {
    /// A link that connects when it is polled: it resumes if there is a session, or identifies.
    fn dial(&self, shard: u32, shards: u32, before: Before) -> Box<dyn Link>;
}

/// What a connection before has left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Before {
    /// The session to resume, and the last sequence number that was received.
    pub session: Option<(String, u64)>,
    /// Where to resume.
    pub resume_url: Option<String>,
}

/// A shard's link: connects again by itself, and keeps its session up to date.
pub trait Link: Send {
    /// What comes next.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<NextFrame>;
    /// Whether there is a connection, identified or not.
    fn is_connected(&self) -> bool;
    /// Whether it has a session on this connection.
    fn is_identified(&self) -> bool;
    /// The session and where to resume it.
    fn before(&self) -> Before;
    /// Whether the last heartbeat has not been answered.
    fn awaits_ack(&self) -> bool;
    /// Where it connects to, for the log.
    fn address(&self) -> String;
    /// Closes so that the session can be resumed.
    fn close(&mut self);
}

/// What came of waiting for a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextFrame {
    /// A text frame.
    Text(String),
    /// A frame that could not be read; the connection stays open.
    Unreadable,
    /// The connection ended, with its close code; the link connects again.
    Ended(Option<u16>),
    /// Could not connect, for these causes; a new link has to try.
    Unreached(String),
    /// The connection is unusable; a new link has to connect.
    Failed(String),
    /// The close code forbids connecting again.
    ClosedForGood,
}

impl Before {
    /// The last sequence number; 0 without a session.
    pub(super) fn sequence(&self) -> u64 {
        self.session.as_ref().map_or(0, |(_, sequence)| *sequence)
    }
}

/// twilight's shards.
pub(super) struct Twilight(pub(super) Config<Identifies>);

struct TwilightLink {
    shard: Shard<Identifies>,
    /// The address of new sessions.
    address: String,
}

impl Dial for Twilight {
    fn dial(&self, shard: u32, shards: u32, before: Before) -> Box<dyn Link> {
        let mut builder = ConfigBuilder::from(self.0.clone());
        if let Some((id, sequence)) = before.session {
            builder = builder.session(Session::new(sequence, id));
        }
        if let Some(url) = before.resume_url {
            builder = builder.resume_url(url);
        }
        let address = self.0.proxy_url().unwrap_or_default().to_owned();
        let shard = Shard::with_config(ShardId::new(shard, shards), builder.build());
        Box::new(TwilightLink { shard, address })
    }
}

impl Link for TwilightLink {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<NextFrame> {
        self.shard
            .poll_next_unpin(context)
            .map(|polled| match polled {
                Some(Ok(Message::Text(text))) => NextFrame::Text(text),
                Some(Ok(Message::Close(frame))) => NextFrame::Ended(frame.map(|frame| frame.code)),
                Some(Err(error)) => after_error(&self.shard, &error),
                None => NextFrame::ClosedForGood,
            })
    }

    fn is_connected(&self) -> bool {
        !matches!(self.shard.state(), ShardState::Disconnected { .. })
    }

    fn is_identified(&self) -> bool {
        self.shard.state().is_identified()
    }

    fn before(&self) -> Before {
        let session = self.shard.session();
        Before {
            session: session.map(|session| (session.id().to_owned(), session.sequence())),
            resume_url: self.shard.resume_url().map(str::to_owned),
        }
    }

    fn awaits_ack(&self) -> bool {
        let latency = self.shard.latency();
        latency.sent().is_some() && latency.received().is_none()
    }

    fn address(&self) -> String {
        let url = self.shard.resume_url().unwrap_or(&self.address);
        without_login(url)
    }

    fn close(&mut self) {
        self.shard.close(CloseFrame::RESUME);
    }
}

/// What a twilight error means for the connection. The frame it quotes is not
/// logged.
fn after_error(shard: &Shard<Identifies>, error: &ReceiveMessageError) -> NextFrame {
    match error.kind() {
        ReceiveMessageErrorType::Reconnect => NextFrame::Unreached(causes(error)),
        ReceiveMessageErrorType::Deserializing { .. } if shard.session().is_some() => {
            NextFrame::Unreadable
        }
        ReceiveMessageErrorType::Deserializing { .. } => {
            NextFrame::Failed("HELLO or READY could not be read".to_owned())
        }
        // Decompression failed; twilight is already closing.
        _ => NextFrame::Ended(None),
    }
}

/// The chain of causes behind an error, without the error itself.
fn causes(error: &dyn Error) -> String {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes.join(": ")
}

/// Scheme, host and port of an address.
fn without_login(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (_, host) = rest[..end].rsplit_once('@').unwrap_or(("", &rest[..end]));
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::without_login;

    #[test]
    fn addresses_are_logged_without_a_login() {
        let check = |url: &str, expected: &str| assert_eq!(without_login(url), expected);
        check("wss://gateway.discord.gg", "wss://gateway.discord.gg");
        check("ws://ada:hush@host:81/path?v=10", "ws://host:81");
        check("ws://host?key=hu@sh", "ws://host");
    }
}
