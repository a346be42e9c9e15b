//! Tests of the fake Discord itself: its REST routes with a plain HTTP client,
//! its gateway and objects with twilight.

mod faults;
mod gateway;
mod interactions;
pub(crate) mod messages;
mod refusals;
mod script;
mod search;
mod threads;

use clew_simulator::Simulator;
use serde_json::{Value, json};

use crate::support::{Rest, Small, small};

#[tokio::test]
async fn the_bot_finds_itself_and_its_gateway() {
    let Small {
        mut world, guild, ..
    } = small();
    world.settings.session_starts_remaining = 7;
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let gateway = rest.get("/gateway/bot").await;
    assert_eq!(gateway["url"], simulator.gateway_url());
    assert_eq!(gateway["session_start_limit"]["remaining"], 7);
    let bot = simulator.bot().to_string();
    assert_eq!(rest.get("/users/@me").await["id"], bot);
    assert_eq!(rest.get("/applications/@me").await["id"], bot);
    let path = format!("/guilds/{guild}");
    assert_eq!(rest.get(&path).await["name"], "Guild");
    assert_eq!(
        rest.get(&format!("{path}/channels")).await[0]["name"],
        "general"
    );
    assert_eq!(
        rest.get(&format!("{path}/roles")).await[1]["tags"]["bot_id"],
        bot
    );
    let member = rest.get(&format!("{path}/members/{bot}")).await;
    assert_eq!(member["roles"].as_array().unwrap().len(), 1);
    let refused = rest.refused("GET", "/guilds/1", Value::Null).await;
    assert_eq!(refused, (404, 10004));
}

#[tokio::test]
async fn a_wrong_token_is_refused() {
    let simulator = Simulator::start(small().world).await.unwrap();
    let mut rest = Rest::new(&simulator);
    rest.token = "Bot wrong".to_owned();
    assert_eq!(
        rest.refused("GET", "/users/@me", json!(null)).await,
        (401, 0)
    );
}

#[tokio::test]
async fn commands_are_kept_by_guild_type_and_name() {
    let Small { world, guild, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let global = format!("/applications/{}/commands", simulator.bot());
    let of_guild = format!("/applications/{}/guilds/{guild}/commands", simulator.bot());
    let ask = json!({"name": "ask", "description": "Ask", "type": 1});
    let (status, first) = rest.call("POST", &global, ask.clone()).await;
    assert_eq!(status, 201);
    let (status, second) = rest.call("POST", &global, ask.clone()).await;
    assert_eq!((status, &second["id"]), (200, &first["id"]));
    let (_, set) = rest
        .call(
            "PUT",
            &of_guild,
            json!([ask, {"name": "Ask about this", "type": 3}]),
        )
        .await;
    assert_eq!(set.as_array().unwrap().len(), 2);
    assert_eq!(rest.get(&global).await.as_array().unwrap().len(), 1);
    let one = format!("{global}/{}", first["id"].as_str().unwrap());
    let (_, patched) = rest
        .call("PATCH", &one, json!({"description": "Better"}))
        .await;
    assert_eq!(patched["description"], "Better");
    assert_eq!(rest.call("DELETE", &one, Value::Null).await.0, 204);
    assert_eq!(rest.refused("GET", &one, Value::Null).await, (404, 10063));
    let bad = json!({"name": "ask"});
    assert_eq!(rest.refused("POST", &global, bad).await, (400, 50035));
}
