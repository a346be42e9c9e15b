//! One shard: receives, converts, forwards, and reconnects with back-off, which
//! twilight does not do once it has connected.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::link::{Before, Dial, Link, NextFrame};
use super::read::{self, Dispatch, Frame};
use super::{Gateway, GatewaySettings};
use crate::event::{
    Disconnect, DisconnectReason, Event, FatalReason, Ready, ShardEvent, UnreadableEvent,
};
use crate::session::ShardSession;
use clew_context::outside::blocking;

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
/// (replaying the same bad frame every time), so it is dropped, once. Where
/// nothing was reached, it is not.
const FAILURES_OF_A_SESSION: u32 = 5;
/// Larger events are read off the loop: most have a few KB, and one this large
/// takes some milliseconds.
const LARGE_EVENT_BYTES: usize = 500_000;

/// A shard and the state of its connection.
pub(super) struct ShardTask {
    context: Arc<Gateway>,
    dial: Arc<dyn Dial>,
    number: u32,
    /// How many shards there are.
    shards: u32,
    /// Ends it.
    closing: CancellationToken,
    backoff: Backoff,
    /// See [`FAILURES_OF_A_SESSION`].
    failures: u32,
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
    /// Why the connection last ended, in words for the log.
    ended_by: Option<String>,
}

impl ShardTask {
    pub(super) fn new(
        context: Arc<Gateway>,
        dial: Arc<dyn Dial>,
        number: u32,
        shards: u32,
        closing: CancellationToken,
    ) -> Self {
        let seed = context.settings.seed;
        Self {
            context,
            dial,
            number,
            shards,
            closing,
            backoff: Backoff::new(seed.wrapping_add(u64::from(number))),
            failures: 0,
            greeted: false,
            idle_polls: 0,
            since: None,
            announced: None,
            had_session: false,
            ended_by: None,
        }
    }

    /// It goes on in place of shards of another number.
    pub(super) fn replaces(&mut self) {
        self.had_session = true;
        self.ended_by = Some("there is another number of shards".to_owned());
    }

    /// Runs until it is to end, then closes so that it can be resumed.
    pub(super) async fn run(mut self, resume: Option<ShardSession>) -> Result<(), FatalReason> {
        let mut link = self.first_link(resume);
        let closing = self.closing.clone();
        tokio::select! {
            biased;
            reason = self.run_until_fatal(&mut link) => match reason {
                Ok(never) => match never {},
                Err(reason) => return Err(reason),
            },
            () = closing.cancelled() => {}
        }
        close(link.as_mut()).await;
        Ok(())
    }

    /// A link that resumes, if there is a session, or identifies.
    fn first_link(&mut self, resume: Option<ShardSession>) -> Box<dyn Link> {
        let Some(session) = resume else {
            return self.link(Before::default());
        };
        let link = self.link(Before {
            session: Some((session.id.clone(), session.sequence)),
            resume_url: session.resume_url.clone(),
        });
        self.had_session = true;
        let outages = session.outages.keys().copied();
        self.context.guild_state.loses(outages);
        self.context.progress().resumes(session);
        link
    }

    fn link(&self, before: Before) -> Box<dyn Link> {
        self.dial.dial(self.number, self.shards, before)
    }

    async fn run_until_fatal(
        &mut self,
        link: &mut Box<dyn Link>,
    ) -> Result<Infallible, FatalReason> {
        let mut last_close = None;
        loop {
            match self.next(link).await {
                NextFrame::Text(text) => self.receive(link, &text).await?,
                NextFrame::Unreadable => self.report_unreadable(link).await,
                NextFrame::Ended(code) => {
                    last_close = code;
                    if let Some(reason) = fatal(&self.context.settings, code) {
                        return Err(reason);
                    }
                    let announced = self.report_end(link, code).await;
                    let why = format!("ended with close code {code:?}");
                    self.wait_to_reconnect(&why, announced).await;
                    self.give_up_session(link, announced);
                }
                NextFrame::Unreached(cause) => {
                    let url = link.address();
                    tracing::warn!(shard = self.number, cause, url, "cannot reach Discord");
                    self.reconnect(link, &cause).await;
                }
                NextFrame::Failed(why) => {
                    let announced = self.reconnect(link, &why).await;
                    self.give_up_session(link, announced);
                }
                NextFrame::ClosedForGood => {
                    return Err(FatalReason::Closed(last_close.unwrap_or_default()));
                }
            }
        }
    }

    /// Replaces an unusable connection. Returns the reason Discord had announced.
    async fn reconnect(&mut self, link: &mut Box<dyn Link>, why: &str) -> Option<DisconnectReason> {
        let announced = self.report_end(link, None).await;
        *link = self.link(link.before());
        self.wait_to_reconnect(why, announced).await;
        announced
    }

    async fn next(&mut self, link: &mut Box<dyn Link>) -> NextFrame {
        self.idle_polls = 0;
        let settled = self.greeted && link.is_connected();
        let waits = poll_fn(|context| self.poll(link, context));
        if settled {
            return waits.await;
        }
        let greeted = timeout(HELLO_TIMEOUT, waits).await;
        greeted.unwrap_or(NextFrame::Failed("no HELLO came".to_owned()))
    }

    /// Polls the shard, and detects when twilight moves silently to a new
    /// connection: if the other side hangs up without a close frame, it
    /// reconnects immediately, again and again.
    fn poll(&mut self, link: &mut Box<dyn Link>, context: &mut Context<'_>) -> Poll<NextFrame> {
        let was_connected = link.is_connected();
        let polled = link.poll(context);
        if polled.is_ready() {
            return polled;
        }
        if link.is_connected() {
            self.idle_polls = 0;
            return Poll::Pending;
        }
        self.idle_polls += 1;
        if was_connected || self.idle_polls > POLLS_TO_CONNECT {
            return Poll::Ready(NextFrame::Failed("it broke off".to_owned()));
        }
        Poll::Pending
    }

    /// Reports the end of a connection, if HELLO had come. Returns the reason
    /// Discord had announced.
    async fn report_end(
        &mut self,
        link: &mut Box<dyn Link>,
        code: Option<u16>,
    ) -> Option<DisconnectReason> {
        let announced = self.announced.take();
        if !self.greeted {
            return announced;
        }
        let reason = match (announced, code) {
            (Some(announced), _) => announced,
            _ if link.awaits_ack() => DisconnectReason::Heartbeat,
            (None, Some(_)) => DisconnectReason::Closed,
            (None, None) => DisconnectReason::Network,
        };
        self.context.guild_state.hears_no_more(self.number);
        let code = code.filter(|_| reason == DisconnectReason::Closed);
        let sequence = link.before().sequence();
        self.forward(sequence, Event::Disconnected(Disconnect { reason, code }))
            .await;
        announced
    }

    /// Drops the session once it may be the cause. An invalid one is no failure, as for the back-off.
    fn give_up_session(&mut self, link: &mut Box<dyn Link>, announced: Option<DisconnectReason>) {
        if announced == Some(DisconnectReason::InvalidSession) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures == FAILURES_OF_A_SESSION {
            *link = self.link(Before::default());
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
        let why = match announced {
            Some(DisconnectReason::InvalidSession) => {
                "Discord does not know the session (any more)"
            }
            Some(DisconnectReason::Reconnect) => "Discord asked for it",
            _ => why,
        };
        tracing::info!(
            shard = self.number,
            why,
            milliseconds = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            "the gateway connection ended: connecting again"
        );
        self.ended_by = Some(why.to_owned());
        sleep(wait).await;
    }

    async fn receive(&mut self, link: &mut Box<dyn Link>, text: &str) -> Result<(), FatalReason> {
        match read::frame(text) {
            Some(Frame::Hello) => self.hello(link).await,
            Some(Frame::Reconnect) => self.announced = Some(DisconnectReason::Reconnect),
            Some(Frame::InvalidSession) => self.announced = Some(DisconnectReason::InvalidSession),
            Some(Frame::Dispatch(dispatch)) => self.dispatch(link, &dispatch).await?,
            Some(Frame::Other) => {}
            None => self.report_unreadable(link).await,
        }
        Ok(())
    }

    /// Reports a lost frame, which may have held a message of any channel.
    async fn report_unreadable(&self, link: &mut Box<dyn Link>) {
        tracing::warn!(shard = self.number, "a frame could not be read");
        let sequence = link.before().sequence();
        let frame = UnreadableEvent {
            event: "frame".to_owned(),
            ..UnreadableEvent::default()
        };
        self.forward(sequence, Event::MessagesMissed(frame)).await;
    }

    /// A second HELLO without an end in between: the connection broke off
    /// silently and twilight reconnected by itself.
    async fn hello(&mut self, link: &mut Box<dyn Link>) {
        if self.greeted {
            let announced = self.report_end(link, None).await;
            self.wait_to_reconnect("broken off", announced).await;
        }
        self.greeted = true;
    }

    async fn dispatch(
        &mut self,
        link: &mut Box<dyn Link>,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), FatalReason> {
        let sequence = dispatch.sequence;
        match dispatch.event_type {
            "READY" => return self.ready(link, dispatch).await,
            "RESUMED" => {
                self.connected();
                self.context.guild_state.hears(self.number, self.shards);
                self.forward(sequence, Event::Resumed).await;
            }
            _ => match self.event(dispatch).await {
                Some(event) => self.forward(sequence, event).await,
                None => self.context.progress().seen(self.number, sequence),
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
        let reading = blocking(move || {
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
        link: &mut Box<dyn Link>,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), FatalReason> {
        let Some(ready) = read::ready(dispatch.data) else {
            tracing::error!(shard = self.number, "READY could not be read");
            // The session is a fresh one, so messages may have been missed.
            let event = UnreadableEvent::new(dispatch.event_type, dispatch.data, Vec::new());
            let event = Event::MessagesMissed(event);
            self.forward(dispatch.sequence, event).await;
            return Ok(());
        };
        self.is_us(&ready)?;
        let (number, shards) = (self.number, self.shards);
        let Before {
            session,
            resume_url,
        } = link.before();
        if let Some((id, _)) = session {
            self.context.progress().opened(ShardSession {
                shard: number,
                shards,
                id,
                resume_url,
                sequence: dispatch.sequence.saturating_sub(1),
                unfinished_since: None,
                outages: BTreeMap::new(),
            });
        }
        self.context.guild_state.set_current_user(ready.us());
        let guild_state = &self.context.guild_state;
        guild_state.keep_only(number, shards, &ready.guilds);
        guild_state.hears_anew(number, shards, &ready.guilds);
        if self.had_session {
            tracing::warn!(
                shard = number,
                why = self.ended_by.as_deref(),
                "the session is lost, and with it what was sent since the connection ended: \
                 questions are looked for in the channels (CATCH_UP_MIN)"
            );
            self.forward(dispatch.sequence, Event::SessionLost).await;
        }
        self.had_session = true;
        self.connected();
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
        self.ended_by = None;
        self.failures = 0;
        self.backoff.connected();
    }

    /// Forwards an event. It counts as begun before it enters the queue, so
    /// that one lost in a shutdown is replayed.
    async fn forward(&self, sequence: u64, event: Event) {
        // A message that was replayed is as old as it is: who looks for it looks from then on.
        let mut since = (self.context.clock)();
        if let Event::Message(incoming) = &event {
            since = since.min(incoming.message.id.created());
        }
        let mark = self.context.progress().began(self.number, sequence, since);
        let event = ShardEvent { mark, event };
        if self.context.events.send(event).await.is_err() {
            // The receiver is gone without having cancelled the token.
            self.context.shutdown.cancel();
        }
    }
}

/// Why Discord closes with this code whoever it will not have (Discord's reference, "Gateway Close Event
/// Codes").
pub(super) fn fatal(settings: &GatewaySettings, code: Option<u16>) -> Option<FatalReason> {
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

/// Closes so that the session can be resumed, and briefly waits for Discord to
/// confirm.
async fn close(link: &mut dyn Link) {
    if !link.is_identified() {
        return;
    }
    link.close();
    // If the server hangs up without a close frame, the link connects again. Its
    // HELLO then ends the wait too; the session is unchanged.
    let closed = async {
        while let NextFrame::Text(text) = poll_fn(|context| link.poll(context)).await {
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
mod tests;
