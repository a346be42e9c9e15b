//! What becomes of a shard's session.

use std::sync::Mutex;

use clew_context::model::UnixMillis;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::gateway::link::Twilight;
use crate::gateway::plan::{Identifies, Plan};
use crate::gateway::{GatewaySettings, twilight_config};

fn gateway(events: mpsc::Sender<ShardEvent>) -> Gateway {
    Gateway {
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
        clock: Arc::new(|| UnixMillis(0)),
        shutdown: CancellationToken::new(),
        shards: tokio::sync::watch::channel(0).1,
        dial: None,
    }
}

#[tokio::test]
async fn an_unreadable_ready_leaves_a_gap_everywhere() {
    let plan = Plan {
        url: "ws://127.0.0.1:1".to_owned(),
        shards: 1,
        identifies: Identifies::new(1, 1, Duration::ZERO, 1),
    };
    let (events, mut told) = mpsc::channel(1);
    let gateway = gateway(events);
    let dial = Arc::new(Twilight(twilight_config(&gateway.settings, &plan)));
    let mut task = ShardTask::new(Arc::new(gateway), dial, 0, 1, CancellationToken::new());
    let mut link = task.link(Before::default());
    let ready = Dispatch {
        event_type: "READY",
        sequence: 1,
        data: r#"{"user":{"id":[]},"guilds":[]}"#,
    };
    task.dispatch(&mut link, &ready).await.unwrap();
    let Some(Event::MessagesMissed(found)) = told.recv().await.map(|next| next.event) else {
        panic!("it was read");
    };
    assert_eq!((&*found.event, found.channel), ("ready", None));
}

/// Connections that receive, one after the other, what the test sends.
#[derive(Clone)]
struct Scripted {
    frames: Arc<Mutex<mpsc::UnboundedReceiver<NextFrame>>>,
    /// What each began with.
    dialled: Arc<Mutex<Vec<Before>>>,
    before: Before,
    is_connected: bool,
}

impl Dial for Scripted {
    fn dial(&self, _: u32, _: u32, before: Before) -> Box<dyn Link> {
        self.dialled.lock().unwrap().push(before.clone());
        let is_connected = false;
        Box::new(Self {
            before,
            is_connected,
            ..self.clone()
        })
    }
}

impl Link for Scripted {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<NextFrame> {
        let polled = self.frames.lock().unwrap().poll_recv(context);
        polled.map(|frame| {
            let frame = frame.unwrap_or(NextFrame::ClosedForGood);
            self.is_connected = matches!(frame, NextFrame::Text(_));
            if frame == text(READY) {
                self.before.session = Some(("one".to_owned(), 1));
            }
            frame
        })
    }

    fn is_connected(&self) -> bool {
        self.is_connected
    }

    fn is_identified(&self) -> bool {
        false
    }

    fn before(&self) -> Before {
        self.before.clone()
    }

    fn awaits_ack(&self) -> bool {
        false
    }

    fn address(&self) -> String {
        String::new()
    }

    fn close(&mut self) {}
}

const HELLO: &str = r#"{"op":10,"d":{"heartbeat_interval":45000}}"#;
const READY: &str =
    r#"{"op":0,"s":1,"t":"READY","d":{"user":{"id":"100","username":"clew"},"guilds":[]}}"#;

fn text(text: &str) -> NextFrame {
    NextFrame::Text(text.to_owned())
}

/// Whether a session that lasted is resumed after these ends.
async fn is_resumed_after(ends: &[&[NextFrame]]) -> bool {
    let (send, frames) = mpsc::unbounded_channel();
    let script = Scripted {
        frames: Arc::new(Mutex::new(frames)),
        dialled: Arc::default(),
        before: Before::default(),
        is_connected: false,
    };
    let (events, _told) = mpsc::channel(100);
    let dial = Arc::new(script.clone());
    let closing = CancellationToken::new();
    let task = ShardTask::new(Arc::new(gateway(events)), dial, 0, 1, closing);
    tokio::spawn(task.run(None));
    for frames in [vec![text(HELLO), text(READY)], ends.concat()] {
        for frame in frames {
            send.send(frame).unwrap();
        }
        sleep(Duration::from_mins(10)).await;
    }
    let dialled = script.dialled.lock().unwrap();
    dialled.last().unwrap().session.is_some()
}

#[tokio::test(start_paused = true)]
async fn only_what_a_session_may_be_the_cause_of_drops_it() {
    let failed = vec![NextFrame::Failed(String::new()); 5];
    let outage = vec![NextFrame::Unreached(String::new()); 5];
    let ended = vec![NextFrame::Ended(None); 4];
    let invalid = [text(r#"{"op":9,"d":true}"#), NextFrame::Ended(None)];
    let invalid = vec![invalid; 5].concat();
    let back = [text(HELLO), text(READY)];
    let hello = &back[..1];
    assert!(is_resumed_after(&[&failed[..1], &outage, hello]).await);
    assert!(is_resumed_after(&[&failed[..1], &invalid, hello]).await);
    assert!(is_resumed_after(&[&failed[..3], &back, &failed[..3], hello]).await);
    assert!(is_resumed_after(&[&failed[..1], &outage, &ended[1..], hello]).await);
    assert!(!is_resumed_after(&[&failed[..1], &outage, &ended, hello]).await);
    assert!(!is_resumed_after(&[&failed, hello]).await);
}
