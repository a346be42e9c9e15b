//! The gateway without a socket, as twilight's shard behaves: it identifies or resumes,
//! heartbeats, keeps the session, and connects again by itself when it is polled.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use clew_discord::gateway::{Before, Dial, Link, NextFrame};
use clew_simulator::{Id, LocalConnection, Received};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, interval_at, sleep};

use super::net::Net;
use crate::history::{What, marks};
use crate::process::Lack;
use crate::world::lock;

/// The longest way of an event, in milliseconds.
const LATENCY: u64 = 40;
/// Intents that the bot needs: servers, messages in servers and in direct messages, their
/// content.
const INTENTS: u64 = 1 | 1 << 9 | 1 << 12 | 1 << 15;
/// What an overwrite says that takes or gives the right to view a channel, and no other.
const VIEW: &str = "1024";
/// Close codes after which twilight does not connect again (Discord's documentation, "Gateway
/// Close Event Codes").
const FINAL: [u16; 6] = [4004, 4010, 4011, 4012, 4013, 4014];

/// Dials within the process.
pub(crate) struct Dialer {
    pub(crate) net: Net,
    pub(crate) token: String,
}

impl Dial for Dialer {
    fn dial(&self, shard: u32, shards: u32, before: Before) -> Box<dyn Link> {
        let shared = Arc::new(Shared {
            net: self.net.clone(),
            shards,
            state: Mutex::new(LinkState {
                before,
                ..LinkState::default()
            }),
            wanted: Notify::new(),
            closing: Notify::new(),
        });
        let (frames, received) = mpsc::unbounded_channel();
        let connecting = Connecting {
            net: self.net.clone(),
            token: self.token.clone(),
            shard: (shard, shards),
            shared: Arc::clone(&shared),
            frames,
        };
        self.net.process.dials(shards, 1);
        Box::new(LocalLink {
            shared,
            frames: received,
            task: tokio::spawn(connecting.run()),
        })
    }
}

struct LocalLink {
    shared: Arc<Shared>,
    frames: mpsc::UnboundedReceiver<NextFrame>,
    task: JoinHandle<()>,
}

struct Shared {
    net: Net,
    /// How many shards there are.
    shards: u32,
    state: Mutex<LinkState>,
    /// The link is polled while there is no connection.
    wanted: Notify,
    /// The link is to close.
    closing: Notify,
}

#[derive(Default)]
struct LinkState {
    before: Before,
    is_connected: bool,
    is_identified: bool,
    awaits_ack: bool,
    /// What it received while other shards were heard.
    unheard: Vec<What>,
}

impl Shared {
    /// Notes what the bot received, once it hears it.
    fn note(&self, what: impl IntoIterator<Item = What>) {
        let unheard = {
            let mut state = lock(&self.state);
            state.unheard.extend(what);
            if state.unheard.is_empty() || !self.net.process.hears(self.shards) {
                return;
            }
            std::mem::take(&mut state.unheard)
        };
        for what in unheard {
            self.net.world.note(what);
        }
    }
}

impl Link for LocalLink {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<NextFrame> {
        self.shared.note([]);
        let polled = self.frames.poll_recv(context);
        if polled.is_pending() && !self.is_connected() {
            self.shared.wanted.notify_one();
        }
        polled.map(|frame| frame.unwrap_or(NextFrame::ClosedForGood))
    }

    fn is_connected(&self) -> bool {
        lock(&self.shared.state).is_connected
    }

    fn is_identified(&self) -> bool {
        lock(&self.shared.state).is_identified
    }

    fn before(&self) -> Before {
        lock(&self.shared.state).before.clone()
    }

    fn awaits_ack(&self) -> bool {
        lock(&self.shared.state).awaits_ack
    }

    fn address(&self) -> String {
        "the simulator".to_owned()
    }

    fn close(&mut self) {
        self.shared.closing.notify_one();
    }
}

impl Drop for LocalLink {
    fn drop(&mut self) {
        self.shared.net.process.dials(self.shared.shards, -1);
        self.task.abort();
    }
}

/// The other side of a link.
struct Connecting {
    net: Net,
    token: String,
    shard: (u32, u32),
    shared: Arc<Shared>,
    frames: mpsc::UnboundedSender<NextFrame>,
}

/// Why a connection is over.
enum End {
    Code(Option<u16>),
    /// The bot is gone.
    Unheard,
}

impl Connecting {
    async fn run(self) {
        loop {
            self.shared.wanted.notified().await;
            self.travel().await;
            let world = &self.net.world;
            let is_offline = self.net.process.lacks(Lack::Discord);
            let reached = (!is_offline).then(|| world.local.connect());
            let Some(connection) = reached.flatten() else {
                let unreached = NextFrame::Unreached("it is not reached".to_owned());
                let _ = self.frames.send(unreached);
                continue;
            };
            lock(&self.shared.state).is_connected = true;
            let end = self.serve(connection).await;
            {
                let mut state = lock(&self.shared.state);
                state.is_connected = false;
                state.is_identified = false;
                state.awaits_ack = false;
            }
            let End::Code(code) = end else { return };
            let _ = self.frames.send(NextFrame::Ended(code));
            if code.is_some_and(|code| FINAL.contains(&code)) {
                return;
            }
        }
    }

    async fn travel(&self) {
        let late = {
            let mut troubles = self.net.world.troubles();
            let (events, ms) = troubles.late_events;
            troubles.late_events.0 = events.saturating_sub(1);
            if events > 0 { ms } else { 0 }
        };
        let wait = self.net.world.between(1, LATENCY) + late;
        sleep(Duration::from_millis(wait)).await;
        self.net.process.cross().await;
    }

    /// Serves a connection to its end.
    async fn serve(&self, mut connection: LocalConnection) -> End {
        let mut heartbeats: Option<Interval> = None;
        loop {
            let beat = async {
                match &mut heartbeats {
                    Some(heartbeats) => drop(heartbeats.tick().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.shared.closing.notified() => {
                    self.net.process.cross().await;
                    connection.close(4000);
                    return End::Code(Some(4000));
                }
                () = beat => {
                    if self.heartbeat(&connection).await {
                        continue;
                    }
                    return End::Code(None);
                }
                () = self.net.process.lacking(Lack::Discord) => {
                    let process = self.net.process.number();
                    self.shared.note([What::CutOff { process }]);
                    return End::Code(None);
                }
                received = connection.next() => match received {
                    Received::Text(text) => {
                        self.travel().await;
                        if let Some(end) = self.take(&connection, &text, &mut heartbeats) {
                            return end;
                        }
                    }
                    Received::Close(code) => return End::Code(Some(code)),
                    Received::Dropped => return End::Code(None),
                },
            }
        }
    }

    /// Sends a heartbeat. False if the one before was not answered: the connection is dead.
    async fn heartbeat(&self, connection: &LocalConnection) -> bool {
        self.net.process.cross().await;
        let sequence = {
            let mut state = lock(&self.shared.state);
            if std::mem::replace(&mut state.awaits_ack, true) {
                return false;
            }
            state.before.session.as_ref().map(|(_, sequence)| *sequence)
        };
        connection.send(&json!({"op": 1, "d": sequence}).to_string());
        true
    }

    /// Takes a frame as twilight does, and passes it on.
    fn take(
        &self,
        connection: &LocalConnection,
        text: &str,
        heartbeats: &mut Option<Interval>,
    ) -> Option<End> {
        let frame: Value = serde_json::from_str(text).unwrap_or_default();
        let mut end = None;
        match frame["op"].as_u64() {
            Some(0) => self.dispatch(&frame),
            Some(10) => {
                let every = frame["d"]["heartbeat_interval"].as_u64().unwrap_or(41_250);
                let every = Duration::from_millis(every);
                let jitter = self.net.world.between(0, 100);
                let first = Instant::now() + every.mul_f64(f64_of(jitter) / 100.0);
                *heartbeats = Some(interval_at(first, every));
                connection.send(&self.greeting());
            }
            Some(11) => lock(&self.shared.state).awaits_ack = false,
            Some(7) => {
                connection.close(4000);
                end = Some(End::Code(Some(4000)));
            }
            Some(9) => {
                if frame["d"] != true {
                    lock(&self.shared.state).before = Before::default();
                }
                connection.close(4000);
                end = Some(End::Code(Some(4000)));
            }
            _ => {}
        }
        if self.frames.send(NextFrame::Text(text.to_owned())).is_err() {
            return Some(End::Unheard);
        }
        let twice = frame["op"] == 0 && {
            let mut troubles = self.net.world.troubles();
            let doubled = troubles.doubled_events;
            troubles.doubled_events = doubled.saturating_sub(1);
            doubled > 0
        };
        if twice {
            let _ = self.frames.send(NextFrame::Text(text.to_owned()));
        }
        end
    }

    /// IDENTIFY, or RESUME if there is a session.
    fn greeting(&self) -> String {
        let before = lock(&self.shared.state).before.clone();
        let token = &self.token;
        if let Some((id, sequence)) = before.session {
            let data = json!({"token": token, "session_id": id, "seq": sequence});
            return json!({"op": 6, "d": data}).to_string();
        }
        let (shard, shards) = self.shard;
        let data = json!({
            "token": token, "intents": INTENTS, "shard": [shard, shards],
            "properties": {"os": "", "browser": "", "device": ""},
        });
        json!({"op": 2, "d": data}).to_string()
    }

    fn dispatch(&self, frame: &Value) {
        let sequence = frame["s"].as_u64().unwrap_or_default();
        let (name, data) = (frame["t"].as_str().unwrap_or_default(), &frame["d"]);
        let process = self.net.process.number();
        {
            let mut state = lock(&self.shared.state);
            if let Some((_, seen)) = &mut state.before.session {
                *seen = sequence;
            }
            match name {
                "READY" => {
                    let text = |key: &str| data[key].as_str().map(str::to_owned);
                    state.before = Before {
                        session: text("session_id").map(|id| (id, sequence)),
                        resume_url: text("resume_gateway_url"),
                    };
                    state.is_identified = true;
                }
                "RESUMED" => state.is_identified = true,
                _ => {}
            }
        }
        // It is the bot no more, and about to close.
        if process == 0 {
            return;
        }
        match name {
            "READY" => self.shared.note([What::Greeted {
                process,
                shards: self.shared.shards,
            }]),
            "RESUMED" => self.shared.note([What::Resumed { process }]),
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" | "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => {
                let id = |value: &Value| value.as_str()?.parse().ok().map(Id);
                let many = data["ids"].as_array().into_iter().flatten();
                let messages = id(&data["id"]).into_iter().chain(many.filter_map(id));
                self.shared.note([What::Told {
                    process,
                    event: name.to_owned(),
                    messages: messages.collect(),
                    marks: marks(data["content"].as_str().unwrap_or_default()),
                }]);
            }
            "CHANNEL_UPDATE" => self.told_of(data),
            "GUILD_CREATE" => {
                let channels = data["channels"].as_array();
                channels
                    .into_iter()
                    .flatten()
                    .for_each(|channel| self.told_of(channel));
            }
            _ => {}
        }
    }

    /// Notes who may see a channel.
    fn told_of(&self, channel: &Value) {
        let id = |of: &Value| of["id"].as_str()?.parse().ok().map(Id);
        let overwrites = channel["permission_overwrites"].as_array();
        let mut overwrites = overwrites.into_iter().flatten();
        let but = overwrites.clone();
        let but = but.filter(|one| one["type"] == 1 && one["allow"] == VIEW);
        let is_hidden = overwrites.any(|one| one["type"] == 0 && one["deny"] == VIEW);
        if let Some(channel) = id(channel) {
            let hidden_but = is_hidden.then(|| but.filter_map(id).collect());
            let told = What::ToldOfChannel {
                channel,
                hidden_but,
            };
            self.shared.note([told]);
        }
    }
}

fn f64_of(number: u64) -> f64 {
    u32::try_from(number).map_or(0.0, f64::from)
}
