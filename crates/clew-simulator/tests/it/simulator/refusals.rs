//! What the fake Discord refuses because Discord does: wrong lengths, counts and
//! shapes in commands, embeds, buttons and choices.

use clew_simulator::{Choice, Simulator, Use};
use serde_json::{Value, json};

use crate::support::{Rest, Small, small};

#[tokio::test]
async fn wrong_definitions_of_commands_are_refused() {
    let simulator = Simulator::start(small().world).await.unwrap();
    let rest = Rest::new(&simulator);
    let path = format!("/applications/{}/commands", simulator.bot());
    let with = |options: Value| json!({"name": "ask", "description": "Ask", "options": options});
    let option = |kind: u8, name: &str| json!({"type": kind, "name": name, "description": "d"});
    let sub = |name: &str, inner: Value| {
        let mut sub = option(1, name);
        sub["options"] = inner;
        sub
    };
    let mut both = option(3, "both");
    both["autocomplete"] = true.into();
    both["choices"] = json!([{"name": "n", "value": "v"}]);
    let mut crowded = option(3, "crowded");
    crowded["choices"] = vec![json!({"name": "n", "value": "v"}); 26].into();
    let mut late = option(3, "late");
    late["required"] = true.into();
    let mut endless = option(3, "endless");
    endless["max_length"] = 6_001.into();
    for bad in [
        json!({"name": "", "description": "d"}),
        json!({"name": "two words", "description": "d"}),
        json!({"name": "Upper", "description": "d"}),
        json!({"name": "a", "description": "d".repeat(101)}),
        json!({"name": "a"}),
        with(json!([option(3, "text"), sub("show", json!([]))])),
        with(json!([sub("show", json!([sub("deep", json!([]))]))])),
        with(json!([option(3, "text"), option(3, "text")])),
        with(json!([option(3, "text"), late])),
        with(json!([option(12, "text")])),
        with(json!([both])),
        with(json!([crowded])),
        with(json!([endless])),
        with(json!(
            (0..26)
                .map(|n| option(3, &format!("o{n}")))
                .collect::<Vec<_>>()
        )),
    ] {
        let refused = rest.refused("POST", &path, bad.clone()).await;
        assert_eq!(refused, (400, 50_035), "{bad}");
        let refused = rest.refused("PUT", &path, json!([bad])).await;
        assert_eq!(refused, (400, 50_035));
    }
    let good = with(json!([sub("show", json!([option(3, "text")]))]));
    assert_eq!(rest.call("PUT", &path, json!([good])).await.0, 200);
    assert_eq!(
        rest.refused("PUT", &path, json!([{"name": ""}])).await.0,
        400
    );
    assert_eq!(
        simulator.commands().len(),
        1,
        "nothing is lost by a refusal"
    );
}

#[tokio::test]
async fn wrong_parts_of_messages_are_refused() {
    let Small { world, channel, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let path = format!("/channels/{channel}/messages");
    let embed = |embed: Value| json!({"embeds": [embed]});
    let rows = |rows: Value| json!({"content": "x", "components": rows});
    let button = |id: &str| json!({"type": 2, "style": 1, "label": "l", "custom_id": id});
    let row = |buttons: Vec<Value>| json!({"type": 1, "components": buttons});
    let field = |name: &str, value: &str| json!({"fields": [{"name": name, "value": value}]});
    let many = |count: usize| (0..count).map(|n| button(&n.to_string())).collect();
    for bad in [
        embed(json!({"title": "t".repeat(257)})),
        embed(json!({"description": "d".repeat(4_097)})),
        embed(json!({"footer": {"text": "f".repeat(2_049)}})),
        embed(field("", "v")),
        embed(field("n", " ")),
        embed(field(&"n".repeat(257), "v")),
        embed(field("n", &"v".repeat(1_025))),
        embed(json!({"fields": vec![json!({"name": "n", "value": "v"}); 26]})),
        embed(json!({"fields": vec![json!({"name": "n", "value": "v".repeat(1_000)}); 6]})),
        json!({"embeds": vec![json!({"title": "t"}); 11]}),
        rows(json!([button("a")])),
        rows(json!([row(vec![])])),
        rows(json!([row(many(6))])),
        rows((0..6).map(|n| row(vec![button(&n.to_string())])).collect()),
        rows(json!([row(vec![button(&"i".repeat(101))])])),
        rows(json!([row(vec![button("")])])),
        rows(json!([row(vec![button("a"), button("a")])])),
        rows(json!([row(vec![
            json!({"type": 2, "style": 1, "custom_id": "a"})
        ])])),
        rows(json!([row(vec![
            json!({"type": 2, "style": 9, "label": "l", "custom_id": "a"})
        ])])),
    ] {
        let refused = rest.refused("POST", &path, bad.clone()).await;
        assert_eq!(refused, (400, 50_035), "{bad}");
    }
    let sent = rest.post(&path, rows(json!([row(many(5))]))).await;
    let edit = format!("{path}/{}", sent["id"].as_str().unwrap());
    let bad = rows(json!([row(many(6))]));
    assert_eq!(rest.refused("PATCH", &edit, bad).await, (400, 50_035));
    let full = json!({"description": "d".repeat(4_096), "fields": [
        {"name": "n".repeat(256), "value": "v".repeat(1_024)}]});
    rest.post(&path, embed(full)).await;
}

#[tokio::test]
async fn wrong_callbacks_are_refused() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let message = world.seed(channel, alice, "m");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let typed = Use::Autocomplete {
        name: "ask".to_owned(),
        options: vec![Choice::text("question", "w")],
    };
    let pressed = Use::Component {
        message,
        custom_id: "a".to_owned(),
        values: Vec::new(),
    };
    let named =
        |name: String| json!({"type": 8, "data": {"choices": [{"name": name, "value": "v"}]}});
    let crowd =
        json!({"type": 8, "data": {"choices": vec![json!({"name": "n", "value": "v"}); 26]}});
    let valued = json!({"type": 8, "data": {"choices": [{"name": "n", "value": "v".repeat(101)}]}});
    let text = json!({"type": 4, "data": {"content": "x"}});
    for (used, bad) in [
        (Use::slash("ask", &[]), json!({"type": 6})),
        (
            Use::slash("ask", &[]),
            json!({"type": 7, "data": {"content": "x"}}),
        ),
        (Use::slash("ask", &[]), named("n".to_owned())),
        (pressed, named("n".to_owned())),
        (typed.clone(), text),
        (typed.clone(), named("n".repeat(101))),
        (typed.clone(), named(String::new())),
        (typed.clone(), crowd),
        (typed, valued),
    ] {
        let id = simulator.interact(channel, alice, &used);
        let token = simulator.interaction(id).unwrap().token;
        let path = format!("/interactions/{id}/{token}/callback");
        let refused = rest.refused("POST", &path, bad.clone()).await;
        assert_eq!(refused, (400, 50_035), "{bad}");
        assert!(simulator.interaction(id).unwrap().callback.is_none());
    }
}
