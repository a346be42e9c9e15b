//! One shard: receives, converts, forwards, and reconnects with back-off, which
//! twilight does not do once it has connected.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use twilight_gateway::error::{ReceiveMessageError, ReceiveMessageErrorType};
use twilight_gateway::{
    CloseFrame, Config, ConfigBuilder, Message, Session, Shard, ShardId, ShardState,
};

use super::Gateway;
use super::backoff::Backoff;
use super::plan::Identifies;
use super::read::{self, Dispatch, Frame};
use crate::event::{
    Disconnect, DisconnectReason, Event, FatalReason, Ready, ShardEvent, UnreadableEvent,
};
use crate::session::ShardSession;

/// From the start of a connection to HELLO. twilight gives up connecting after
/// 10 s, but waits for HELLO forever.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// Wait for Discord to answer our close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Connecting polls us only a few times (address, TCP, TLS, upgrade). More
/// polls mean that twilight keeps reconnecting, each time cut off before
/// anything was said.
const POLLS_TO_CONNECT: u32 = 50;
/// After this many failures in a row the session itself may be the cause
/// (replaying the same bad frame every time), so it is dropped, once.
const FAILURES_OF_A_SESSION: u32 = 5;
/// Larger events are read off the loop: most have a few KB, and one this large
/// takes some milliseconds.
const LARGE_EVENT_BYTES: usize = 500_000;

/// A shard and the state of its connection.
pub(super) struct ShardTask {
    context: Arc<Gateway>,
    config: Config<Identifies>,
    id: ShardId,
    backoff: Backoff,
    /// HELLO was received on this connection.
    greeted: bool,
    /// Polls while connecting; see [`POLLS_TO_CONNECT`].
    idle_polls: u32,
    /// When this connection got its session.
    since: Option<Instant>,
    /// Why Discord said this connection would end.
    announced: Option<DisconnectReason>,
    /// This process had a session before, so another READY means it was lost.
    had_session: bool,
}

/// What came of waiting for a frame.
enum NextFrame {
    /// A text frame.
    Text(String),
    /// A frame that could not be read; the connection stays open.
    Unreadable,
    /// The connection ended, with its close code; twilight reconnects.
    Ended(Option<u16>),
    /// Could not connect, for these causes; a new shard has to try.
    Unreached(String),
    /// The connection is unusable; a new shard has to reconnect.
    Failed(String),
    /// twilight's stream ended: the close code forbids reconnecting.
    ClosedForGood,
}

impl ShardTask {
    pub(super) fn new(
        context: Arc<Gateway>,
        config: Config<Identifies>,
        number: u32,
        shards: u32,
    ) -> Self {
        let seed = context.settings.seed;
        Self {
            context,
            config,
            id: ShardId::new(number, shards),
            backoff: Backoff::new(seed.wrapping_add(u64::from(number))),
            greeted: false,
            idle_polls: 0,
            since: None,
            announced: None,
            had_session: false,
        }
    }

    /// Runs until shutdown, then closes so that it can be resumed.
    pub(super) async fn run(mut self, resume: Option<ShardSession>) -> Result<(), FatalReason> {
        let mut shard = self.first_shard(resume);
        let shutdown = self.context.shutdown.clone();
        tokio::select! {
            reason = self.run_until_fatal(&mut shard) => match reason {
                Ok(never) => match never {},
                Err(reason) => return Err(reason),
            },
            () = shutdown.cancelled() => {}
        }
        close(&mut shard).await;
        Ok(())
    }

    /// A shard that resumes, if there is a session, or identifies.
    fn first_shard(&mut self, resume: Option<ShardSession>) -> Shard<Identifies> {
        let Some(session) = resume else {
            return self.shard(None, None);
        };
        let shard = self.shard(
            Some(Session::new(session.sequence, session.id.clone())),
            session.resume_url.clone(),
        );
        self.had_session = true;
        self.context.progress().opened(session);
        shard
    }

    fn shard(&self, session: Option<Session>, resume_url: Option<String>) -> Shard<Identifies> {
        let mut builder = ConfigBuilder::from(self.config.clone());
        if let Some(session) = session {
            builder = builder.session(session);
        }
        if let Some(url) = resume_url {
            builder = builder.resume_url(url);
        }
        Shard::with_config(self.id, builder.build())
    }

    async fn run_until_fatal(
        &mut self,
        shard: &mut Shard<Identifies>,
    ) -> Result<Infallible, FatalReason> {
        let mut last_close = None;
        loop {
            match self.next(shard).await {
                NextFrame::Text(text) => self.receive(shard, &text).await?,
                NextFrame::Unreadable => self.report_unreadable(shard).await,
                NextFrame::Ended(code) => {
                    last_close = code;
                    if let Some(reason) = self.fatal(code) {
                        return Err(reason);
                    }
                    let announced = self.report_end(shard, code).await;
                    let why = format!("ended with close code {code:?}");
                    self.wait_to_reconnect(&why, announced).await;
                    self.give_up_session(shard);
                }
                NextFrame::Unreached(cause) => {
                    let url = shard.resume_url().or(self.config.proxy_url());
                    tracing::warn!(
                        shard = self.id.number(),
                        cause,
                        url = without_login(url.unwrap_or_default()),
                        "cannot reach Discord"
                    );
                    self.reconnect(shard, &cause).await;
                }
                NextFrame::Failed(why) => self.reconnect(shard, &why).await,
                NextFrame::ClosedForGood => {
                    return Err(FatalReason::Closed(last_close.unwrap_or_default()));
                }
            }
        }
    }

    /// Replaces an unusable connection.
    async fn reconnect(&mut self, shard: &mut Shard<Identifies>, why: &str) {
        let announced = self.report_end(shard, None).await;
        let resume_url = shard.resume_url().map(str::to_owned);
        *shard = self.shard(shard.session().cloned(), resume_url);
        self.wait_to_reconnect(why, announced).await;
        self.give_up_session(shard);
    }

    async fn next(&mut self, shard: &mut Shard<Identifies>) -> NextFrame {
        self.idle_polls = 0;
        let settled = self.greeted && !is_disconnected(shard);
        let waits = poll_fn(|context| self.poll(shard, context));
        if settled {
            return waits.await;
        }
        let greeted = timeout(HELLO_TIMEOUT, waits).await;
        greeted.unwrap_or(NextFrame::Failed("no HELLO came".to_owned()))
    }

    /// Polls the shard, and detects when twilight moves silently to a new
    /// connection: if the other side hangs up without a close frame, it
    /// reconnects immediately, again and again.
    fn poll(
        &mut self,
        shard: &mut Shard<Identifies>,
        context: &mut Context<'_>,
    ) -> Poll<NextFrame> {
        let connected = !is_disconnected(shard);
        let polled = shard.poll_next_unpin(context);
        match polled {
            Poll::Ready(Some(Ok(Message::Text(text)))) => Poll::Ready(NextFrame::Text(text)),
            Poll::Ready(Some(Ok(Message::Close(frame)))) => {
                Poll::Ready(NextFrame::Ended(frame.map(|frame| frame.code)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(after_error(shard, &error)),
            Poll::Ready(None) => Poll::Ready(NextFrame::ClosedForGood),
            Poll::Pending if !is_disconnected(shard) => {
                self.idle_polls = 0;
                Poll::Pending
            }
            Poll::Pending => {
                self.idle_polls += 1;
                if connected || self.idle_polls > POLLS_TO_CONNECT {
                    Poll::Ready(NextFrame::Failed("it broke off".to_owned()))
                } else {
                    Poll::Pending
                }
            }
        }
    }

    /// Reports the end of a connection, if HELLO had come. Returns the reason
    /// Discord had announced.
    async fn report_end(
        &mut self,
        shard: &mut Shard<Identifies>,
        code: Option<u16>,
    ) -> Option<DisconnectReason> {
        let announced = self.announced.take();
        if !self.greeted {
            return announced;
        }
        let latency = shard.latency();
        let unanswered = latency.sent().is_some() && latency.received().is_none();
        let reason = match (announced, code) {
            (Some(announced), _) => announced,
            _ if unanswered => DisconnectReason::Heartbeat,
            (None, Some(_)) => DisconnectReason::Closed,
            (None, None) => DisconnectReason::Network,
        };
        let code = code.filter(|_| reason == DisconnectReason::Closed);
        let sequence = shard.session().map_or(0, Session::sequence);
        self.forward(sequence, Event::Disconnected(Disconnect { reason, code }))
            .await;
        announced
    }

    fn give_up_session(&self, shard: &mut Shard<Identifies>) {
        if self.backoff.failures() == FAILURES_OF_A_SESSION {
            *shard = self.shard(None, None);
        }
    }

    /// Waits before reconnecting: as Discord asks after an invalid session,
    /// else by the back-off.
    async fn wait_to_reconnect(&mut self, why: &str, announced: Option<DisconnectReason>) {
        let lasted = self.since.take().map(|since| since.elapsed());
        self.greeted = false;
        let wait = if announced == Some(DisconnectReason::InvalidSession) {
            self.backoff.after_invalid_session()
        } else {
            self.backoff.after(lasted)
        };
        tracing::info!(
            shard = self.id.number(),
            why,
            milliseconds = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            "the gateway connection ended: connecting again"
        );
        sleep(wait).await;
    }

    fn fatal(&self, code: Option<u16>) -> Option<FatalReason> {
        let settings = &self.context.settings;
        match code? {
            4004 => Some(FatalReason::TokenRefused),
            code @ (4010 | 4011) => Some(FatalReason::ShardingRefused(code)),
            4012 => Some(FatalReason::Closed(4012)),
            4013 => Some(FatalReason::IntentsInvalid),
            4014 => Some(FatalReason::IntentsRefused {
                message_content: settings.message_content,
                members: settings.members,
            }),
            _ => None,
        }
    }

    async fn receive(
        &mut self,
        shard: &mut Shard<Identifies>,
        text: &str,
    ) -> Result<(), FatalReason> {
        match read::frame(text) {
            Some(Frame::Hello) => self.hello(shard).await,
            Some(Frame::Reconnect) => self.announced = Some(DisconnectReason::Reconnect),
            Some(Frame::InvalidSession) => self.announced = Some(DisconnectReason::InvalidSession),
            Some(Frame::Dispatch(dispatch)) => self.dispatch(shard, &dispatch).await?,
            Some(Frame::Other) => {}
            None => self.report_unreadable(shard).await,
        }
        Ok(())
    }

    /// Reports a lost frame, which may have held a message of any channel.
    async fn report_unreadable(&self, shard: &mut Shard<Identifies>) {
        tracing::warn!(shard = self.id.number(), "a frame could not be read");
        let sequence = shard.session().map_or(0, Session::sequence);
        let frame = UnreadableEvent {
            event: "frame".to_owned(),
            ..UnreadableEvent::default()
        };
        self.forward(sequence, Event::MessagesMissed(frame)).await;
    }

    /// A second HELLO without an end in between: the connection broke off
    /// silently and twilight reconnected by itself.
    async fn hello(&mut self, shard: &mut Shard<Identifies>) {
        if self.greeted {
            let announced = self.report_end(shard, None).await;
            self.wait_to_reconnect("broken off", announced).await;
        }
        self.greeted = true;
    }

    async fn dispatch(
        &mut self,
        shard: &mut Shard<Identifies>,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), FatalReason> {
        let sequence = dispatch.sequence;
        match dispatch.event_type {
            "READY" => return self.ready(shard, dispatch).await,
            "RESUMED" => {
                self.connected();
                self.forward(sequence, Event::Resumed).await;
            }
            _ => match self.event(dispatch).await {
                Some(event) => self.forward(sequence, event).await,
                None => self.context.progress().seen(self.id.number(), sequence),
            },
        }
        Ok(())
    }

    /// Reads an event; a very large one (a server with thousands of channels)
    /// on another thread, so that the loop stays free.
    async fn event(&self, dispatch: &Dispatch<'_>) -> Option<Event> {
        if dispatch.data.len() <= LARGE_EVENT_BYTES {
            return read::event(dispatch, &self.context.guild_state);
        }
        let guild_state = Arc::clone(&self.context.guild_state);
        let (kind, data) = (dispatch.event_type.to_owned(), dispatch.data.to_owned());
        let sequence = dispatch.sequence;
        let reading = spawn_blocking(move || {
            let dispatch = Dispatch {
                event_type: &kind,
                sequence,
                data: &data,
            };
            read::event(&dispatch, &guild_state)
        });
        reading.await.ok().flatten()
    }

    async fn ready(
        &mut self,
        shard: &mut Shard<Identifies>,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), FatalReason> {
        let Some(ready) = read::ready(dispatch.data) else {
            tracing::error!(shard = self.id.number(), "READY could not be read");
            // The session is a fresh one, so messages may have been missed.
            let event = UnreadableEvent::new(dispatch.event_type, dispatch.data, Vec::new());
            let event = Event::MessagesMissed(event);
            self.forward(dispatch.sequence, event).await;
            return Ok(());
        };
        self.is_us(&ready)?;
        self.connected();
        let (number, shards) = (self.id.number(), self.id.total());
        if let Some(session) = shard.session() {
            self.context.progress().opened(ShardSession {
                shard: number,
                shards,
                id: session.id().to_owned(),
                resume_url: shard.resume_url().map(str::to_owned),
                sequence: dispatch.sequence.saturating_sub(1),
            });
        }
        self.context.guild_state.set_current_user(ready.us());
        self.context
            .guild_state
            .keep_only(number, shards, &ready.guilds);
        if self.had_session {
            self.forward(dispatch.sequence, Event::SessionLost).await;
        }
        self.had_session = true;
        self.forward(dispatch.sequence, Event::Ready(Box::new(ready)))
            .await;
        Ok(())
    }

    /// Who we are does not change: what is remembered, claimed and allowed is this user's.
    fn is_us(&self, ready: &Ready) -> Result<(), FatalReason> {
        let us = self.context.guild_state.current_user();
        match us.map(|us| us.user).filter(|user| *user != ready.user) {
            None => Ok(()),
            Some(was) => {
                let says = ready.user;
                tracing::error!(%was, %says, "READY names another user: it is refused");
                Err(FatalReason::AnotherUser { was, says })
            }
        }
    }

    fn connected(&mut self) {
        self.since = Some(Instant::now());
        self.backoff.connected();
    }

    /// Forwards an event. It counts as begun before it enters the queue, so
    /// that one lost in a shutdown is replayed.
    async fn forward(&self, sequence: u64, event: Event) {
        let mark = self.context.progress().began(self.id.number(), sequence);
        let event = ShardEvent { mark, event };
        if self.context.events.send(event).await.is_err() {
            // The receiver is gone without having cancelled the token.
            self.context.shutdown.cancel();
        }
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

fn is_disconnected(shard: &Shard<Identifies>) -> bool {
    matches!(shard.state(), ShardState::Disconnected { .. })
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

/// Closes so that the session can be resumed, and briefly waits for Discord to
/// confirm.
async fn close(shard: &mut Shard<Identifies>) {
    if !shard.state().is_identified() {
        return;
    }
    shard.close(CloseFrame::RESUME);
    // If the server hangs up without a close frame, twilight reconnects. Its
    // HELLO then ends the wait too; the session is unchanged.
    let closed = async {
        while let Some(Ok(Message::Text(text))) = shard.next().await {
            if matches!(read::frame(&text), Some(Frame::Hello)) {
                break;
            }
        }
    };
    if timeout(CLOSE_TIMEOUT, closed).await.is_err() {
        tracing::warn!("Discord did not answer the close frame in time");
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::gateway::plan::Plan;
    use crate::gateway::{GatewaySettings, twilight_config};

    #[tokio::test]
    async fn an_unreadable_ready_leaves_a_gap_everywhere() {
        let plan = Plan {
            url: "ws://127.0.0.1:1".to_owned(),
            shards: 1,
            identifies: Identifies::new(1, 1, Duration::ZERO, 1),
        };
        let (events, mut told) = mpsc::channel(1);
        let gateway = Gateway {
            settings: GatewaySettings {
                token: "token".to_owned(),
                api: String::new(),
                url: None,
                message_content: true,
                members: false,
                resume: Vec::new(),
                seed: 1,
            },
            guild_state: Arc::default(),
            progress: Arc::default(),
            events,
            shutdown: CancellationToken::new(),
        };
        let config = twilight_config(&gateway.settings, &plan);
        let mut task = ShardTask::new(Arc::new(gateway), config, 0, 1);
        let mut shard = task.shard(None, None);
        let ready = Dispatch {
            event_type: "READY",
            sequence: 1,
            data: r#"{"user":{"id":[]},"guilds":[]}"#,
        };
        task.dispatch(&mut shard, &ready).await.unwrap();
        let Some(Event::MessagesMissed(found)) = told.recv().await.map(|next| next.event) else {
            panic!("it was read");
        };
        assert_eq!((&*found.event, found.channel), ("ready", None));
    }

    #[test]
    fn addresses_are_logged_without_a_login() {
        let check = |url: &str, expected: &str| assert_eq!(without_login(url), expected);
        check("wss://gateway.discord.gg", "wss://gateway.discord.gg");
        check("ws://ada:hush@host:81/path?v=10", "ws://host:81");
        check("ws://host?key=hu@sh", "ws://host");
    }
}
