//! Tests of starts that wait or fail, with a webhook that takes nothing at first.

use std::sync::Mutex;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::{Request, Response};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use super::*;
use clew_context::model::UnixMillis;
use clew_context::outside::{SendError, Transport};

/// Refuses so many alerts, then takes them.
#[derive(Debug, Default)]
struct Webhook {
    refuses: Mutex<u32>,
    /// What it got, by its word, and after how many seconds.
    got: Mutex<Vec<(String, u64)>>,
    since: Mutex<Option<Instant>>,
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
        async move { Ok(answer.into()) }.boxed()
    }
}

fn teller(folder: &TempDir, webhook: &Arc<Webhook>) -> Option<Teller> {
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
    Teller::new(&config, &outside)
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
    let mut first = teller(&folder, &webhook);
    let waits = || async {
        sleep(Duration::from_mins(10)).await;
        Some(Ok(7))
    };
    let done = Teller::during(&mut first, Trouble::Disk, waits()).await;
    assert_eq!(done.unwrap().unwrap(), 7);
    let disk = |at| ("disk".to_owned(), at);
    let told = [10, 14, 22, 38].map(disk);
    assert_eq!(*webhook.got.lock().unwrap(), told);
    let mut next = teller(&folder, &webhook);
    drop(Teller::during(&mut next, Trouble::Disk, waits()).await);
    assert_eq!(*webhook.got.lock().unwrap(), told);
}

/// One that fails is told before the process ends, unless another process is why.
#[tokio::test(start_paused = true)]
async fn a_start_that_fails_for_want_of_a_folder_is_told() {
    let folder = TempDir::new().unwrap();
    let webhook = Arc::new(Webhook::default());
    let mut teller = teller(&folder, &webhook);
    let held = LockError::Held {
        path: PathBuf::new(),
        pid: "7".to_owned(),
    };
    for (error, told) in [
        (Error::from(held), 0),
        (
            Error::State {
                path: PathBuf::new(),
                source: io::ErrorKind::ReadOnlyFilesystem.into(),
            },
            1,
        ),
    ] {
        let start = async { Some(Err::<(), _>(error)) };
        let done = Teller::during(&mut teller, Trouble::Disk, start).await;
        assert!(done.unwrap().is_err());
        assert_eq!(webhook.got.lock().unwrap().len(), told);
    }
    assert_eq!(webhook.got.lock().unwrap()[0].0, "store");
}
