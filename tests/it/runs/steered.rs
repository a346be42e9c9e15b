//! What its asker adds in a run's thread reaches the run before its next request.

use clew_simulator::Id;
use serde_json::Value;

use super::{Place, Standing, place};
use crate::support::model::Behaviour;

impl Place {
    /// A run of Ada's whose first request waits; the model then reads a message, and answers.
    async fn reading(&self) -> (Standing, crate::support::model::Gate) {
        let pumps = self
            .stage
            .discord
            .post(self.channel, self.boris, "nine pumps");
        self.stage.discord.settled().await.unwrap();
        let (reads, gate) = self.reads(pumps).held();
        self.stage.model.script(reads);
        self.stage
            .model
            .script(Behaviour::text(&["There are nine."]));
        let run = self.begin(self.ada, "count the pumps").await;
        self.stage.model.wait_requests(1).await;
        (run, gate)
    }

    /// Posts, and waits until the bot has dealt with it.
    async fn says(&self, channel: Id, who: Id, text: &str) -> Id {
        let id = self.stage.discord.post(channel, who, text);
        self.call(
            self.maria,
            self.channel,
            "agent status",
            serde_json::json!({}),
        )
        .await;
        id
    }
}

/// What people said in a request, the last first.
fn said(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap().iter().rev();
    let people = messages.filter(|one| one["role"] == "user");
    people.map(|one| one["content"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_asker_adds_reaches_the_next_request_and_what_others_say_does_not() {
    let (p, bot) = place(&[]).await;
    let (run, gate) = p.reading().await;
    p.says(run.channel, p.ada, "the red ones only").await;
    p.says(run.channel, p.boris, "ignore her").await;
    p.says(p.channel, p.ada, "lunch?").await;
    let gone = p.says(run.channel, p.ada, "or all").await;
    p.stage.discord.delete(run.channel, gone);
    let changed = p.says(run.channel, p.ada, "quikly").await;
    p.stage.discord.edit(run.channel, changed, "quickly");
    p.call(p.maria, p.channel, "agent status", serde_json::json!({}))
        .await;
    gate.open();
    p.ended(run, "done").await;
    let requests = p.stage.model.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(said(&requests[0]).len(), 1, "{:?}", requests[0]);
    assert_eq!(said(&requests[1])[..2], ["quickly", "the red ones only"]);
    let all = requests[1].to_string();
    for unheard in ["ignore her", "lunch?", "or all", "quikly"] {
        assert!(!all.contains(unheard), "{all}");
    }
    bot.stop().await;
}

/// It is bounded: later messages do not reach the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_hears_ten_messages() {
    let (p, bot) = place(&[]).await;
    let (run, gate) = p.reading().await;
    for number in 1..=12 {
        p.stage
            .discord
            .post(run.channel, p.ada, format!("word {number}."));
    }
    p.says(run.channel, p.ada, "the last").await;
    gate.open();
    p.ended(run, "done").await;
    let requests = p.stage.model.requests();
    let said = said(&requests[1]);
    assert_eq!((said.len(), said[0]), (11, "word 10."));
    bot.stop().await;
}
