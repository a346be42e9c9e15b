//! `kill -9` at the moments at which an answer could be lost, or shown although nobody saw it.

use std::path::PathBuf;
use std::sync::Arc;

use clew::app;
use clew_context::model::UnixMillis;
use clew_simulator::{Fault, FaultKind};
use clew_store::model::StoreAddress;
use clew_store::{Folders, Kind, Record, Store};
use serde_json::json;
use tokio::time::{Duration, Instant, sleep};

use super::process::{Process, connected, written};
use super::{Place, has};
use crate::support::model::Behaviour;

const POST: &str = "/channels/*/messages";
/// What takes longer is taken to hang.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
/// How much later the next process starts, by its clock: nothing is on its way any more.
const LATER_MS: i64 = 60_000;

/// A store, by its form in `CONTEXT_STORE`.
#[derive(Clone, Copy)]
enum Form {
    Sqlite,
    Files,
}

async fn place(form: Form) -> Place {
    let mut place = Place::new(&[]).await;
    let address = match form {
        Form::Sqlite => format!("sqlite:{}", path(&place, "clew.db").display()),
        Form::Files => format!("files:{}", path(&place, "context").display()),
    };
    place.stage.set("CONTEXT_STORE", &address);
    place
}

fn path(place: &Place, name: &str) -> PathBuf {
    place.stage.folder.path().join(name)
}

/// The texts that are stored, and those that are early.
async fn stored(place: &Place, form: Form) -> [Vec<String>; 2] {
    let folders = Folders {
        agents: path(place, "agents"),
        users: path(place, "users"),
        servers: path(place, "servers"),
    };
    let address = match form {
        Form::Sqlite => StoreAddress::Sqlite(path(place, "clew.db")),
        Form::Files => StoreAddress::Files(path(place, "context")),
    };
    let store = Store::look(&address, &folders, app::system_clock())
        .await
        .unwrap();
    let found = store
        .records(Kind::Messages, None, None, 100)
        .await
        .unwrap();
    let shown = found.records.into_iter().filter_map(|record| match record {
        Record::Message(row) => Some(row.content),
        _ => None,
    });
    let early = store.early(100).await.unwrap().into_iter();
    let found = [shown.collect(), early.map(|row| row.content).collect()];
    store.close().await.unwrap();
    found
}

/// The time of the processes from now on.
fn later(place: &mut Place) {
    let system = app::system_clock();
    place.stage.clock = Arc::new(move || UnixMillis(system().0 + LATER_MS));
}

pub(super) async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    until_within(PATIENCE, what, is_so).await;
}

pub(crate) async fn until_within(
    patience: Duration,
    what: &str,
    mut is_so: impl AsyncFnMut() -> bool,
) {
    let deadline = Instant::now() + patience;
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what}");
        sleep(LOOK).await;
    }
}

/// Asks, and kills the process while it waits for the answer to this many POSTs.
async fn killed_at_post(place: &Place, posts: usize) {
    let mut process = Process::start(&place.stage, &[]);
    connected(place).await;
    place.stage.model.script(Behaviour::text(&["it is fine"]));
    place.ask(place.help, "how is the pump?");
    let posted = place.stage.discord.wait_request("POST", POST, posts).await;
    posted.unwrap();
    process.signal("KILL");
    assert_eq!(process.ended().await.code(), None);
    place.stage.discord.end_faults();
}

/// Discord has the answer, but the process does not know yet.
async fn posted(form: Form) {
    let mut place = place(form).await;
    let discord = &place.stage.discord;
    discord.fault(Fault::new("POST", POST, FaultKind::DroppedAfter).once());
    let (held, _gate) = Fault::held("POST", POST);
    discord.fault(held.after(1));
    killed_at_post(&place, 2).await;
    let words = ["how is the pump?", "it is fine"];
    let [shown, early] = stored(&place, form).await;
    assert_eq!((shown.len(), early), (0, words.map(str::to_owned).to_vec()));
    later(&mut place);
    let bot = place.stage.start().await;
    until("it is settled", async || {
        !written(&place)
            .iter()
            .all(|line| line["event"] != "recorded")
    })
    .await;
    bot.stop().await;
    let [shown, early] = stored(&place, form).await;
    assert_eq!((shown, early.len()), (words.map(str::to_owned).to_vec(), 0));
    has(
        &written(&place),
        "recorded",
        &json!({"rows": 2, "early": true}),
    );
    assert_eq!(place.stage.discord.answers(place.help).len(), 1);
}

/// Discord never got the answer, so the next process answers.
async fn unposted(form: Form) {
    let mut place = place(form).await;
    let (held, _gate) = Fault::held("POST", POST);
    place.stage.discord.fault(held);
    killed_at_post(&place, 1).await;
    let [shown, early] = stored(&place, form).await;
    assert_eq!((shown.len(), early.len()), (0, 2));
    later(&mut place);
    let bot = place.stage.start().await;
    until("it is taken back", async || {
        stored(&place, form).await[1].is_empty()
    })
    .await;
    place.wait_for_answer(place.help, "ok").await;
    place.stage.model.script(Behaviour::text(&["still fine"]));
    place.ask(place.help, "and now?");
    place.wait_for_answer(place.help, "still fine").await;
    let asked = place.stage.model.requests()[1..].to_vec();
    assert!(!format!("{asked:?}").contains("it is fine"));
    bot.stop().await;
    let [shown, early] = stored(&place, form).await;
    let words = ["how is the pump?", "ok", "and now?", "still fine"];
    assert_eq!((shown, early.len()), (words.map(str::to_owned).to_vec(), 0));
}

/// The process goes on.
async fn refused(form: Form) {
    let place = place(form).await;
    let bot = place.stage.start().await;
    let refused = Fault::status("POST", POST, 403, 50_013, "Missing Permissions");
    place.stage.discord.fault(refused);
    place.stage.model.script(Behaviour::text(&["it is fine"]));
    place.ask(place.help, "how is the pump?");
    until("it has failed", async || {
        let mut lines = written(&place).into_iter();
        lines.any(|line| line["event"] == "turn_done" && line["detail"]["outcome"] == "failed")
    })
    .await;
    until("it is taken back", async || {
        stored(&place, form).await[1].is_empty()
    })
    .await;
    place.still_works(bot).await;
    let [shown, early] = stored(&place, form).await;
    assert!(!shown.iter().any(|text| text == "it is fine"), "{shown:?}");
    assert_eq!(early.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_posted_right_before_a_kill_is_kept() {
    posted(Form::Sqlite).await;
    posted(Form::Files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_a_kill_kept_from_being_posted_is_never_shown() {
    unposted(Form::Sqlite).await;
    unposted(Form::Files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_post_takes_its_rows_back() {
    refused(Form::Sqlite).await;
    refused(Form::Files).await;
}
