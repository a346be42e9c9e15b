//! What `ALERT_WEBHOOK` gets. A model server of the tests plays the webhook: it takes any JSON.

use serde_json::Value;

use super::Place;
use crate::support::model::{Behaviour, FakeModel};

async fn place(webhook: &FakeModel, settings: &[(&str, &str)]) -> Place {
    let mut place = Place::new(settings).await;
    let url = format!("{}/chat/completions", webhook.url());
    place.stage.set("ALERT_WEBHOOK", &url);
    place
}

fn told(alerts: &[Value]) -> Vec<(&str, bool)> {
    let told = alerts.iter();
    told.map(|one| (one["alert"].as_str().unwrap(), one["over"] == true))
        .collect()
}

/// A try that fails is repeated, and the next look does not tell it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_is_nearly_used_is_told_once() {
    let webhook = FakeModel::start().await;
    webhook.script(Behaviour::Status(500, String::new(), Vec::new()));
    let mut place = place(&webhook, &[("TOKENS_TOTAL_DAY", "12")]).await;
    let bot = place.stage.start().await;
    place.ask(place.help, "why?").await;
    let alerts = webhook.wait_requests(2).await;
    assert_eq!(told(&alerts), [("budget", false); 2]);
    let text = alerts[1].to_string();
    assert_eq!(
        alerts[1]["content"],
        "Clew: 80 % of TOKENS_TOTAL_DAY are used"
    );
    assert!(!text.contains("why?") && !text.contains(&place.ada.to_string()));
    // The URL stands nowhere.
    let lines = bot.stop().await;
    let url = webhook.url();
    assert!(lines.iter().all(|line| !line.to_string().contains(&url)));
    // The next process finds it told; of one that cannot begin something else is told.
    let bot = place.stage.start().await;
    place.ask(place.help, "and now?").await;
    bot.stop().await;
    assert_eq!(webhook.requests().len(), 2);
    let blocked = place.stage.state().join("alerts.json");
    assert_eq!(std::fs::read_to_string(&blocked).unwrap(), r#"["budget"]"#);
    place.stage.set(
        "CONTEXT_STORE",
        &format!("sqlite:{}/clew.db", blocked.display()),
    );
    assert!(place.stage.launch().ended().await.is_err());
    let alerts = webhook.requests();
    assert_eq!(told(&alerts)[2..], [("store", false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_refuses_is_told() {
    let webhook = FakeModel::start().await;
    let place = place(&webhook, &[]).await;
    for _ in 0..3 {
        let refusal = Behaviour::Status(401, "{}".to_owned(), Vec::new());
        place.stage.model.script(refusal);
    }
    let bot = place.stage.start().await;
    for _ in 0..3 {
        place.ask(place.help, "why?").await;
    }
    let alerts = webhook.wait_requests(1).await;
    assert_eq!(told(&alerts), [("model", false)]);
    bot.stop().await;
}

/// Without waiting for five minutes: it does not come back.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_revoked_is_told() {
    let webhook = FakeModel::start().await;
    let place = place(&webhook, &[]).await;
    let bot = place.stage.start().await;
    place.stage.discord.close_gateway(4004);
    assert!(bot.ended().await.is_err());
    assert_eq!(told(&webhook.requests()), [("shard", false)]);
}
