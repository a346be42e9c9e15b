//! Servers that stand in for others, over real sockets: which errors make the next one be asked, and
//! what each is sent.

use std::time::Duration;

use clew::llm::{ModelServers, ModelSettings};
use clew::model::Payer;
use clew_context::engine::echo::Echo;
use clew_context::model::{Secret, UserId};
use futures_util::StreamExt;
use tokio::net::TcpListener;

use super::{IMPATIENT, KEY, PATIENT, ask, prompt, settings, whole};
use crate::support::model::{Behaviour, FakeModel};

const OTHER_KEY: &str = "sk-of-the-other-server";

/// Two servers: the first is asked for "small" with one key, the second for "other" with another.
struct Pair {
    first: FakeModel,
    second: FakeModel,
    servers: ModelServers,
}

async fn pair(timeout: Duration) -> Pair {
    let (first, second) = (FakeModel::start().await, FakeModel::start().await);
    let servers = in_order(&first.url(), &second.url(), timeout);
    Pair {
        first,
        second,
        servers,
    }
}

fn in_order(first: &str, second: &str, timeout: Duration) -> ModelServers {
    let fallback = ModelSettings {
        api_key: Some(Secret::new(OTHER_KEY)),
        model: "other".to_owned(),
        ..settings(second.to_owned(), timeout)
    };
    ModelServers::new(settings(first.to_owned(), timeout), vec![fallback], 0).unwrap()
}

impl Pair {
    /// How many requests each server got.
    fn requests(&self) -> (usize, usize) {
        (self.first.requests().len(), self.second.requests().len())
    }

    /// Asks once, and asserts the text or the error's reason, and the number of requests to each.
    async fn check(&self, expected: Result<&str, &str>, requests: (usize, usize), what: &str) {
        let before = self.requests();
        let outcome = whole(&self.servers).await;
        let outcome = outcome.as_ref().map(|done| done.text.as_str());
        assert_eq!(
            outcome.map_err(|error| error.reason().as_str()),
            expected,
            "{what}"
        );
        let (first, second) = self.requests();
        assert_eq!((first - before.0, second - before.1), requests, "{what}");
    }
}

/// A fault that may pass gets one more attempt at once. The wait that a 429 asks for is not waited out.
#[tokio::test]
async fn the_next_server_is_asked_where_it_may_answer() {
    for (what, fault, times) in [
        ("401", (|| Behaviour::status(401, "no")) as fn() -> _, 1),
        ("402", || Behaviour::status(402, "no credit"), 1),
        ("403", || Behaviour::status(403, "no"), 1),
        ("404", || Behaviour::status(404, "no such model"), 1),
        ("429", || Behaviour::status(429, "busy"), 2),
        ("429 with a wait", || Behaviour::rate_limited("4"), 1),
        ("429 with a long wait", || Behaviour::rate_limited("600"), 1),
        ("500", || Behaviour::status(500, "broken"), 2),
        ("503", || Behaviour::status(503, "overloaded"), 2),
        ("not JSON", Behaviour::malformed, 1),
        ("a page", || Behaviour::Raw("text/html", b"<p>".into()), 1),
        ("cut", || Behaviour::cut(&[]), 1),
        ("dropped", || Behaviour::drop(&[]), 1),
    ] {
        let pair = pair(PATIENT).await;
        for _ in 0..times {
            pair.first.script(fault());
        }
        pair.check(Ok("ok"), (times, 1), what).await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_passed() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", gone.local_addr().unwrap());
    drop(gone);
    let second = FakeModel::start().await;
    let servers = in_order(&url, &second.url(), PATIENT);
    assert_eq!(
        ask(&servers).await.0.unwrap_err().reason().as_str(),
        "unavailable"
    );
    assert_eq!(whole(&servers).await.unwrap().text, "ok");
    assert_eq!(second.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_silent_before_the_first_word_is_passed() {
    for silent in [Behaviour::Hang, Behaviour::stall(&[])] {
        let pair = pair(IMPATIENT).await;
        pair.first.script(silent);
        pair.check(Ok("ok"), (1, 1), "silence").await;
    }
}

#[tokio::test]
async fn what_the_prompt_causes_is_for_the_caller() {
    for (what, fault, reason) in [
        ("length", Behaviour::context_too_long(), "context_too_long"),
        ("400", Behaviour::status(400, "no"), "rejected"),
        ("422", Behaviour::status(422, "no"), "rejected"),
        ("no words", Behaviour::empty(), "empty"),
    ] {
        let pair = pair(PATIENT).await;
        pair.first.script(fault);
        pair.check(Err(reason), (1, 0), what).await;
    }
}

#[tokio::test]
async fn after_the_first_word_nobody_else_is_asked() {
    for (behaviour, reason) in [
        (Behaviour::stall(&["The pump"]), "timeout"),
        (Behaviour::drop(&["The pump"]), "truncated"),
        (Behaviour::cut(&["The pump"]), "truncated"),
    ] {
        let pair = pair(IMPATIENT).await;
        pair.first.script(behaviour);
        pair.check(Err(reason), (1, 0), reason).await;
    }
}

/// The last server is asked twice, as the only one is: nobody is left to be asked sooner.
#[tokio::test]
async fn if_all_fail_the_last_error_counts() {
    let pair = pair(PATIENT).await;
    pair.first.script(Behaviour::status(401, "no"));
    pair.second.script(Behaviour::rate_limited("0.3"));
    pair.second.script(Behaviour::status(500, "broken"));
    pair.check(Err("unavailable"), (1, 2), "all fail").await;
}

#[tokio::test]
async fn each_server_gets_its_own_key_model_and_parameters_alone() {
    let pair = pair(PATIENT).await;
    let tokens = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    pair.first.script(Behaviour::status(400, tokens));
    pair.first.script(Behaviour::status(401, "no"));
    pair.check(Ok("ok"), (2, 1), "the first refuses").await;
    for (server, model, key, limit) in [
        (&pair.first, "small", KEY, "max_completion_tokens"),
        (&pair.second, "other", OTHER_KEY, "max_tokens"),
    ] {
        let recorded = server.recorded();
        let last = recorded.last().unwrap();
        assert_eq!(last.body["model"], model);
        assert!(last.body.get(limit).is_some(), "{}", last.body);
        for request in &recorded {
            let bearer = format!("Bearer {key}");
            assert_eq!(request.authorization, Some(bearer));
        }
    }
    let shown = format!("{:?}", pair.servers);
    assert!(
        !shown.contains(KEY) && !shown.contains(OTHER_KEY),
        "{shown}"
    );
}

#[tokio::test]
async fn what_fits_one_server_says_nothing_of_another() {
    let pair = pair(PATIENT).await;
    pair.servers.first().learn_room(100, None);
    let rooms: Vec<_> = pair
        .servers
        .clients()
        .map(clew::llm::Client::prompt_room)
        .collect();
    assert_eq!(rooms, [Some(100), None]);
}

/// An agent's model is asked for where the operator's is; those that stand in keep their own.
#[tokio::test]
async fn an_agents_model_falls_back_to_the_servers_own() {
    let pair = pair(PATIENT).await;
    let payer = Payer {
        spender: UserId::new(1).into(),
        guild: None,
        limits: clew_store::model::RoleLimits::default(),
    };
    let of_agent = pair.servers.asked_by(payer, Some("deep"));
    for _ in 0..4 {
        pair.first.script(Behaviour::status(404, "no such model"));
        assert_eq!(whole(&of_agent).await.unwrap().text, "ok");
    }
    assert_eq!(pair.first.requests()[0]["model"], "deep");
    assert_eq!(pair.second.requests()[0]["model"], "other");
    assert_eq!(pair.requests(), (4, 4), "a refused name opens no breaker");
}

/// The time for one answer is that of one server: four time-outs.
#[tokio::test]
async fn further_servers_get_no_more_time() {
    let servers: Vec<_> = futures_util::future::join_all((0..6).map(|_| FakeModel::start())).await;
    let mut all = servers.iter().map(|server| {
        server.script(Behaviour::Hang);
        settings(server.url(), IMPATIENT)
    });
    let first = all.next().unwrap();
    let chain = ModelServers::new(first, all.collect(), 0).unwrap();
    let error = whole(&chain).await.unwrap_err();
    assert_eq!(error.reason().as_str(), "timeout");
    let asked = servers
        .iter()
        .filter(|server| !server.requests().is_empty());
    assert!((4..6).contains(&asked.count()));
}

/// Three failures in a row: from then on the second server is asked first.
#[tokio::test]
async fn a_server_that_keeps_failing_is_asked_last() {
    let pair = pair(PATIENT).await;
    for _ in 0..3 {
        pair.first.script(Behaviour::status(401, "no"));
        pair.check(Ok("ok"), (1, 1), "closed").await;
    }
    pair.check(Ok("ok"), (0, 1), "open").await;
    assert_eq!(pair.servers.first().model(), "other");
    pair.second.script(Behaviour::status(401, "no"));
    pair.check(Ok("ok"), (1, 1), "a breaker costs no answer")
        .await;
    pair.check(Ok("ok"), (1, 0), "closed again").await;
}

/// Only an answer ends a row: what is cancelled says nothing.
#[tokio::test]
async fn a_question_that_is_given_up_says_nothing_of_the_server() {
    let pair = pair(PATIENT).await;
    for _ in 0..5 {
        pair.first.script(Behaviour::Hang);
        let seen = pair.first.requests().len() + 1;
        let question = prompt();
        let mut attempts = pair.servers.attempts();
        let mut steps = Box::pin(attempts.answer(&question, &[], Echo::default()));
        tokio::select! {
            step = steps.next() => panic!("{step:?}"),
            _ = pair.first.wait_requests(seen) => {}
        }
    }
    pair.check(Ok("ok"), (1, 0), "still the first").await;
}
