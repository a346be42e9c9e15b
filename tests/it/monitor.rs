//! What the bot says of itself over HTTP at `METRICS_ADDR`, scraped over real sockets: metrics that agree with
//! telemetry to the number and name nobody, and checks that fail while something is wrong.

mod alerts;
mod counts;
mod documents;
mod health;
mod promql;
mod scrape;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use clew_simulator::{ChannelKind, Id, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::support::bot::Stage;
use scrape::Scrape;

/// How long to wait for a condition before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// What Prometheus 2.42 accepts.
const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0,\
                            application/openmetrics-text;version=0.0.1;q=0.75,\
                            text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
/// Below the ports that systems hand out.
const FIRST_PORT: u16 = 20_000;

/// A bot in a server, and the address at which it is looked at.
struct Place {
    stage: Stage,
    address: SocketAddr,
    guild: Id,
    help: Id,
    thread: Id,
    other_thread: Id,
    ada: Id,
}

/// An answer over HTTP.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Place {
    async fn new(settings: &[(&str, &str)]) -> Self {
        let mut world = World::new();
        // 0 skips the five seconds between two identifies.
        world.settings.max_concurrency = 0;
        let guild = world.guild("Waterworks");
        let help = world.channel(guild, ChannelKind::Text, "lounge");
        let ada = world.member(guild, "Adelheid");
        let start = world.seed(help, ada, "the pump is leaking");
        let thread = world.thread_from(help, start, "pump failure", ada);
        for count in 0..60 {
            world.seed(thread, ada, format!("reading {count}"));
        }
        let start = world.seed(help, ada, "the valve is stuck");
        let other_thread = world.thread_from(help, start, "valve failure", ada);
        world.seed(other_thread, ada, "since Monday");
        let mut stage = Stage::new(world, settings).await;
        let address = own_address();
        stage.set("METRICS_ADDR", &address.to_string());
        Self {
            stage,
            address,
            guild,
            help,
            thread,
            other_thread,
            ada,
        }
    }

    /// Ada mentions the bot, and has its answer.
    async fn ask(&self, channel: Id, text: &str) {
        let before = self.stage.discord.answers(channel).len();
        self.ask_only(channel, text);
        let answered = self.stage.discord.wait_answers(channel, before + 1).await;
        answered.unwrap();
    }

    fn ask_only(&self, channel: Id, text: &str) {
        let us = self.stage.discord.bot();
        let text = format!("<@{us}> {text}");
        self.stage.discord.post(channel, self.ada, text);
    }

    async fn get(&self, path: &str) -> Answer {
        self.get_as(path, "*/*").await
    }

    async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\naccept: {accept}\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        answer(stream).await
    }

    async fn scrape(&self) -> Scrape {
        let answer = self.get_as("/metrics", OPEN_METRICS).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert!(answer.head.contains(kind), "{}", answer.head);
        Scrape::parse(&answer.body)
    }

    /// The first scrape of which this is true.
    async fn scraped(&self, fits: impl Fn(&Scrape) -> bool) -> Scrape {
        let fitting = async || Some(self.scrape().await).filter(&fits);
        self.until("no scrape fits", fitting).await
    }

    /// Waits until a path is answered with this status and text.
    async fn says(&self, path: &str, status: u16, body: &str) {
        let said = async || {
            let answer = self.get(path).await;
            (answer.status == status && answer.body == body).then_some(())
        };
        self.until(body, said).await;
    }

    async fn until<T>(&self, missed: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            if Instant::now() > deadline {
                let (ready, metrics) = (self.get("/readyz").await, self.get("/metrics").await);
                panic!("{missed}: {ready:?}\n{}", metrics.body);
            }
            sleep(LOOK).await;
        }
    }
}

/// Reads an answer to its end: connections are not kept.
async fn answer(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut text)).await;
    read.expect("an answer in time").unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

/// An address that no other test and no other process has: this process's own part of the loopback network.
pub(crate) fn own_address() -> SocketAddr {
    static PORTS: AtomicU16 = AtomicU16::new(FIRST_PORT);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, high | 0x40, middle, low.max(1));
    SocketAddr::from((host, PORTS.fetch_add(1, Ordering::SeqCst)))
}
