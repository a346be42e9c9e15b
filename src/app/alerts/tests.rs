//! Tests of starts that wait and of ends, with a webhook that takes nothing at first.

use std::sync::Mutex;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::{Request, Response};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::*;
use clew_context::model::UnixMillis;
use clew_context::outside::{SendError, Transport};
use clew_discord::event::FatalReason;

/// Refuses so many alerts, then takes them.
#[derive(Debug, Default)]
struct Webhook {
    refuses: Mutex<u32>,
    /// What it got, by its word, and after how many seconds.
    got: Mutex<Vec<(String, u64)>>,
    since: Mutex<Option<Instant>>,
    /// How long it takes to answer.
    takes: Duration,
}

impl Transport for Webhook {
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, SendError>> {
        let body = request.body().unwrap().as_bytes().unwrap();
        let body: Value = serde_json::from_slice(body).unwrap();
        let since = *self.since.lock().unwrap().get_or_insert_with(Instant::now);
        let word = body["alert"].as_str().unwrap().to_owned();
        self.got
            .lock()
            .unwrap()
            .push((word, since.elapsed().as_secs()));
        let mut left = self.refuses.lock().unwrap();
        let status = if *left > 0 { 503 } else { 204 };
        *left = left.saturating_sub(1);
        let mut answer = axum::http::Response::new(Vec::new());
        *answer.status_mut() = status.try_into().unwrap();
        let takes = self.takes;
        async move {
            sleep(takes).await;
            Ok(answer.into())
        }
        .boxed()
    }
}

fn alerter(folder: &TempDir, webhook: &Arc<Webhook>) -> Alerter {
    let path = folder.path().display().to_string();
    let settings = [
        ("STATE_DIR", &*path),
        ("ALERT_WEBHOOK", "http://127.0.0.1:9/"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = Config::load(settings, None).unwrap();
    let began = Instant::now();
    let now = move || UnixMillis(i64::try_from(began.elapsed().as_millis()).unwrap());
    let outside = Outside {
        transport: Some(webhook.clone()),
        ..Outside::of_system(Arc::new(now))
    };
    Alerter::new(&config, &outside)
}

/// A start that waits, for a store or for room, is told; it is asked again later and later until
/// somebody listens, and neither then nor in the next process again.
#[tokio::test(start_paused = true)]
async fn a_start_that_waits_is_told_once_somebody_listens() {
    let folder = TempDir::new().unwrap();
    let webhook = Arc::new(Webhook {
        refuses: Mutex::new(3),
        since: Mutex::new(Some(Instant::now())),
        ..Webhook::default()
    });
    let first = alerter(&folder, &webhook);
    let waits = || sleep(Duration::from_mins(10));
    first.during(Trouble::Disk, waits()).await;
    first.end(&Ok(())).await;
    let disk = |at| ("disk".to_owned(), at);
    let told = [10, 14, 22, 38].map(disk);
    assert_eq!(*webhook.got.lock().unwrap(), told);
    let next = alerter(&folder, &webhook);
    next.during(Trouble::Disk, waits()).await;
    next.end(&Ok(())).await;
    assert_eq!(*webhook.got.lock().unwrap(), told);
}

/// One that is over while it is being told is not told again, and does not wait for that.
#[tokio::test(start_paused = true)]
async fn a_start_that_is_over_meanwhile_is_told_once() {
    let folder = TempDir::new().unwrap();
    let webhook = Arc::new(Webhook {
        takes: Duration::from_secs(5),
        ..Webhook::default()
    });
    let alerter = alerter(&folder, &webhook);
    let began = Instant::now();
    let waits = |seconds| sleep(Duration::from_secs(seconds));
    alerter.during(Trouble::Store, waits(12)).await;
    assert_eq!(began.elapsed().as_secs(), 12);
    alerter.during(Trouble::Store, waits(60)).await;
    alerter.end(&Ok(())).await;
    assert_eq!(webhook.got.lock().unwrap().len(), 1);
}

/// Why a process ends is told, unless another process is why.
#[tokio::test(start_paused = true)]
async fn an_end_for_want_of_a_folder_or_by_discord_is_told() {
    let folder = TempDir::new().unwrap();
    let webhook = Arc::new(Webhook::default());
    let held = LockError::Held {
        path: PathBuf::new(),
        pid: "7".to_owned(),
    };
    let read_only = Error::State {
        path: PathBuf::new(),
        source: io::ErrorKind::ReadOnlyFilesystem.into(),
    };
    for error in [held.into(), read_only, Error::Fatal(FatalReason::Broken)] {
        alerter(&folder, &webhook).end(&Err(error)).await;
    }
    let got = webhook.got.lock().unwrap();
    let words: Vec<&str> = got.iter().map(|(word, _)| word.as_str()).collect();
    assert_eq!(words, ["store", "shard"]);
}

/// The store is back, and another process is the bot.
#[tokio::test(start_paused = true)]
async fn a_standby_tells_that_the_store_is_back() {
    let folder = TempDir::new().unwrap();
    let webhook = Arc::new(Webhook::default());
    let alerter = alerter(&folder, &webhook);
    for _ in 0..2 {
        alerter.stands_by(Some(Trouble::Store));
        sleep(Duration::from_secs(30)).await;
        alerter.stands_by(None);
        sleep(Duration::from_mins(3)).await;
    }
    alerter.end(&Ok(())).await;
    let got = webhook.got.lock().unwrap();
    assert_eq!(got.len(), 4, "twice begun, twice over: {got:?}");
}
