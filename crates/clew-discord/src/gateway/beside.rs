//! Another number of shards: the new ones connect beside those that run, keep what they receive, and go
//! on from there once all are ready and the others are closed. What both received is told again in order, as
//! by a RESUME: questions and calls are known by their ids. In case neither did, it is looked for as after a
//! lost session.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::link::{Before, Dial, Link, NextFrame};
use super::plan::{ANSWER_TIMEOUT, await_starts};
use super::read::{self, Frame};
use super::shard::fatal;
use super::{Gateway, ShardSet};
use crate::rest::Rest;
use clew_context::model::UnixMillis;

/// The most bytes that new shards may keep together.
const MOST_BYTES: usize = 256 << 20;
/// How long servers may still come once all shards are ready.
const SETTLE: Duration = Duration::from_secs(3);
/// How long the shards may take, and each one more: IDENTIFYs are five seconds apart.
const PATIENCE: Duration = Duration::from_mins(2);
const PATIENCE_EACH: Duration = Duration::from_secs(6);
/// How much earlier those that run may have heard for the last time, without knowing it yet: Discord's
/// heartbeats are less than a minute apart.
const UNNOTICED: Duration = Duration::from_mins(1);
/// How long after a failure it is tried again; doubled...
const AGAIN: Duration = Duration::from_mins(1);
/// ...up to this: each try costs a session start a shard.
const LONGEST: Duration = Duration::from_hours(1);

/// Waits until another number of shards is wanted, and these are ready. They go on once the gate is
/// opened.
pub(super) async fn next_set(
    context: &Arc<Gateway>,
    dial: &Arc<dyn Dial>,
    rest: &Rest,
    running: u32,
) -> (ShardSet, Arc<Gate>) {
    let mut wanted = context.shards.clone();
    loop {
        let is_other = |wanted: &u32| ![0, running].contains(wanted);
        let Ok(count) = wanted.wait_for(is_other).await.map(|count| *count) else {
            // Nobody is there who could want it.
            return pending().await;
        };
        tokio::select! {
            biased;
            _ = wanted.wait_for(|wanted| *wanted != count) => {}
            next = made(context, dial, rest, (running, count)) => return next,
        }
    }
}

/// So many shards, once all are ready.
async fn made(
    context: &Arc<Gateway>,
    dial: &Arc<dyn Dial>,
    rest: &Rest,
    (running, count): (u32, u32),
) -> (ShardSet, Arc<Gate>) {
    let mut pause = AGAIN;
    loop {
        tracing::info!(running, count, "other shards connect beside those that run");
        match ready(context, dial, rest, (running, count)).await {
            Ok(next) => return next,
            Err(Why::Never(why)) => {
                tracing::warn!(
                    running,
                    count,
                    why,
                    "the number of shards stays: want another"
                );
                return pending().await;
            }
            Err(Why::Now(why)) => {
                let seconds = pause.as_secs();
                let said = "the number of shards stays: trying again";
                tracing::warn!(running, count, why, seconds, "{said}");
            }
        }
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST);
    }
}

/// Why there are no new shards.
enum Why {
    Now(String),
    /// Nor will there be.
    Never(String),
}

async fn ready(
    context: &Arc<Gateway>,
    dial: &Arc<dyn Dial>,
    rest: &Rest,
    (running, count): (u32, u32),
) -> Result<(ShardSet, Arc<Gate>), Why> {
    let info = rest.gateway(Instant::now() + ANSWER_TIMEOUT).await;
    let info = info.map_err(|error| Why::Now(error.to_string()))?;
    let mut limit = info.session_start_limit;
    // Those that run may need a session each meanwhile.
    let starts = count.saturating_add(running);
    if starts > limit.total {
        let total = limit.total;
        let why = format!("Discord allows {total} session starts a day");
        return Err(Why::Never(why));
    }
    await_starts(&mut limit, starts).await;
    let (told, mut news) = mpsc::unbounded_channel();
    let gate = Arc::new(Gate {
        since: (context.clock)().before(UNNOTICED),
        opened: CancellationToken::new(),
        has_failed: AtomicBool::new(false),
        bytes: AtomicUsize::new(0),
        told,
    });
    let held = HeldDial {
        context: Arc::clone(context),
        dial: Arc::clone(dial),
        gate: Arc::clone(&gate),
    };
    let held: Arc<dyn Dial> = Arc::new(held);
    let mut set = ShardSet::begin(context, &held, count, false);
    let ready = async {
        for _ in 0..count {
            news.recv().await.unwrap_or(Ok(()))?;
        }
        // A shard that is ready tells no more unless it fails.
        match timeout(SETTLE, news.recv()).await {
            Ok(Some(Err(why))) => Err(why),
            _ => Ok(()),
        }
    };
    let ready = timeout(PATIENCE + PATIENCE_EACH * count, ready);
    let ready = tokio::select! {
        biased;
        ready = ready => ready.unwrap_or_else(|_| Err(Why::Now("they took too long".to_owned()))),
        ended = set.ended() => Err(match ended {
            Err(reason) => Why::Never(reason.to_string()),
            Ok(()) => Why::Now("they ended".to_owned()),
        }),
    };
    ready.map(|()| (set, gate))
}

/// Holds back what new shards receive.
pub(super) struct Gate {
    /// Since when what was sent may have reached neither.
    pub(super) since: UnixMillis,
    opened: CancellationToken,
    has_failed: AtomicBool,
    /// That wait, of all shards.
    bytes: AtomicUsize,
    /// That a shard is ready, or why none of them can go on.
    told: mpsc::UnboundedSender<Result<(), Why>>,
}

impl Gate {
    /// They go on from here.
    pub(super) fn open(&self) {
        self.opened.cancel();
    }

    /// Whether one of them broke off, which may be after all were ready.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn tell(&self, news: Result<(), Why>) {
        // Nobody listens once it is decided.
        let _ = self.told.send(news);
    }
}

struct HeldDial {
    context: Arc<Gateway>,
    dial: Arc<dyn Dial>,
    gate: Arc<Gate>,
}

impl Dial for HeldDial {
    fn dial(&self, shard: u32, shards: u32, before: Before) -> Box<dyn Link> {
        let inner = self.dial.dial(shard, shards, before);
        if self.gate.opened.is_cancelled() {
            return inner;
        }
        Box::new(HeldLink {
            context: Arc::clone(&self.context),
            inner,
            gate: Arc::clone(&self.gate),
            opening: Box::pin(self.gate.opened.clone().cancelled_owned()),
            frames: VecDeque::new(),
            stage: Stage::Connects,
        })
    }
}

/// How far a held link has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connects,
    Greeted,
    Ready,
    Failed,
    /// It goes on as what is in it.
    Open,
}

struct HeldLink {
    context: Arc<Gateway>,
    inner: Box<dyn Link>,
    gate: Arc<Gate>,
    opening: Pin<Box<WaitForCancellationFutureOwned>>,
    /// What it received.
    frames: VecDeque<NextFrame>,
    stage: Stage,
}

impl HeldLink {
    /// Keeps a frame; HELLO is passed on, since whoever reads waits for it.
    fn keep(&mut self, text: String) -> Option<NextFrame> {
        match (read::frame(&text), self.stage) {
            (Some(Frame::Hello), Stage::Connects) => {
                self.stage = Stage::Greeted;
                return Some(NextFrame::Text(text));
            }
            (Some(Frame::Hello | Frame::Reconnect | Frame::InvalidSession), _) => {
                self.fail(Why::Now("a new session did not last".to_owned()));
            }
            (Some(Frame::Other), _) => return None,
            (Some(Frame::Dispatch(_)) | None, _) => {
                let bytes = self.gate.bytes.fetch_add(text.len(), Ordering::Relaxed);
                if bytes + text.len() > MOST_BYTES {
                    let most = MOST_BYTES >> 20;
                    self.fail(Why::Never(format!("they received more than {most} MiB")));
                } else if self.stage == Stage::Greeted && self.inner.is_identified() {
                    self.stage = Stage::Ready;
                    self.gate.tell(Ok(()));
                }
            }
        }
        self.frames.push_back(NextFrame::Text(text));
        None
    }

    fn fail(&mut self, why: Why) {
        self.stage = Stage::Failed;
        self.gate.has_failed.store(true, Ordering::Relaxed);
        self.gate.tell(Err(why));
    }
}

impl Link for HeldLink {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<NextFrame> {
        while self.stage != Stage::Open {
            if self.opening.as_mut().poll(context).is_ready() {
                self.stage = Stage::Open;
            } else if self.stage == Stage::Failed {
                return Poll::Pending;
            } else {
                match self.inner.poll(context) {
                    Poll::Ready(NextFrame::Text(text)) => {
                        if let Some(hello) = self.keep(text) {
                            return Poll::Ready(hello);
                        }
                    }
                    Poll::Ready(other) if self.stage == Stage::Connects => {
                        return Poll::Ready(other);
                    }
                    Poll::Ready(other) => {
                        let why = format!("a new session ended: {other:?}");
                        let settings = &self.context.settings;
                        self.fail(match other {
                            NextFrame::ClosedForGood => Why::Never(why),
                            NextFrame::Ended(code) if fatal(settings, code).is_some() => {
                                Why::Never(why)
                            }
                            _ => Why::Now(why),
                        });
                        self.frames.push_back(other);
                    }
                    Poll::Pending if self.is_connected() || self.stage == Stage::Connects => {
                        return Poll::Pending;
                    }
                    Poll::Pending => {
                        self.fail(Why::Now("a new session broke off".to_owned()));
                    }
                }
            }
        }
        match self.frames.pop_front() {
            Some(frame) => Poll::Ready(frame),
            None => self.inner.poll(context),
        }
    }

    fn is_connected(&self) -> bool {
        self.stage == Stage::Failed || self.inner.is_connected()
    }

    fn is_identified(&self) -> bool {
        self.inner.is_identified()
    }

    fn before(&self) -> Before {
        self.inner.before()
    }

    fn awaits_ack(&self) -> bool {
        self.inner.awaits_ack()
    }

    fn address(&self) -> String {
        self.inner.address()
    }

    fn close(&mut self) {
        self.inner.close();
    }
}
