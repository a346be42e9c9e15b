//! Interactions: every use can be parsed, and answers are kept where they belong.

use clew_simulator::{Choice, Simulator, Use};
use serde_json::{Value, json};
use twilight_model::application::interaction::InteractionData;
use twilight_model::gateway::event::Event;

use super::gateway::next_message;
use crate::support::{Rest, Small, all_intents, greeted, shard, small, until};

#[tokio::test]
async fn an_ephemeral_answer_comes_back_without_its_guild() {
    let Small {
        world,
        channel,
        alice,
        ..
    } = small();
    let bot = world.bot;
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let mut shard = shard(&simulator, all_intents());
    greeted(&mut shard).await;
    let used = simulator.interact(channel, alice, &Use::slash("ask", &[("question", "why?")]));
    let event = until(&mut shard, |event| {
        matches!(event, Event::InteractionCreate(_))
    })
    .await;
    let Event::InteractionCreate(interaction) = event else {
        unreachable!()
    };
    let base = format!("/interactions/{used}/{}/callback", interaction.token);
    let hidden = json!({"type": 5, "data": {"flags": 64}});
    assert_eq!(rest.call("POST", &base, hidden.clone()).await.0, 204);
    assert_eq!(rest.refused("POST", &base, hidden).await, (400, 40060));
    let loading = next_message(&mut shard).await;
    assert_eq!(
        (loading.guild_id, loading.channel_id.get()),
        (None, channel.0)
    );
    assert_eq!(loading.flags.unwrap().bits(), 64 | 128);

    let original = format!("/webhooks/{bot}/{}/messages/@original", interaction.token);
    let (_, edited) = rest
        .call("PATCH", &original, json!({"content": "because"}))
        .await;
    assert_eq!(
        (&edited["content"], &edited["flags"]),
        (&json!("because"), &json!(64))
    );
    until(
        &mut shard,
        |event| matches!(event, Event::MessageUpdate(m) if m.guild_id.is_none()),
    )
    .await;
    let more = format!("/webhooks/{bot}/{}", interaction.token);
    rest.post(&more, json!({"content": "public"})).await;
    assert_eq!(next_message(&mut shard).await.content, "public");
    assert_eq!(simulator.ephemeral().len(), 1);
    let answers = simulator.interaction_answers(used);
    let texts: Vec<&str> = answers
        .iter()
        .map(|answer| answer.content.as_str())
        .collect();
    assert_eq!(texts, ["because", "public"]);
    // The channel contains only the public one.
    assert_eq!(simulator.answers(channel).len(), 1);
    assert_eq!(rest.call("DELETE", &original, Value::Null).await.0, 204);
    assert_eq!(
        rest.refused("GET", &original, Value::Null).await,
        (404, 10008)
    );
    let unknown = format!("/interactions/{used}/wrong/callback");
    assert_eq!(
        rest.refused("POST", &unknown, json!({"type": 4})).await,
        (404, 10062)
    );
}

#[tokio::test]
async fn every_interaction_parses() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let asked = world.seed(channel, alice, "ask");
    let direct = world.direct(alice);
    let simulator = Simulator::start(world).await.unwrap();
    let mut shard = shard(&simulator, all_intents());
    greeted(&mut shard).await;
    let mut user = Choice::text("who", &alice.to_string());
    user.kind = 6;
    let uses = [
        (channel, Use::slash("ask", &[("question", "why?")])),
        (direct, Use::slash("ask", &[("question", "why?")])),
        (
            channel,
            Use::Slash {
                name: "context".to_owned(),
                options: vec![Choice::subcommand("show", vec![user])],
            },
        ),
        (
            channel,
            Use::Autocomplete {
                name: "ask".to_owned(),
                options: vec![Choice::text("question", "wh")],
            },
        ),
        (channel, Use::on_message("Ask about this", asked)),
        (
            channel,
            Use::Component {
                message: asked,
                custom_id: "again".to_owned(),
                values: Vec::new(),
            },
        ),
    ];
    for (place, used) in uses {
        simulator.interact(place, alice, &used);
        let event = until(&mut shard, |event| {
            matches!(event, Event::InteractionCreate(_))
        })
        .await;
        let Event::InteractionCreate(interaction) = event else {
            unreachable!()
        };
        assert_eq!(interaction.author_id().unwrap().get(), alice.0);
        if let (Use::OnMessage { .. }, Some(InteractionData::ApplicationCommand(data))) =
            (&used, &interaction.data)
        {
            let messages = &data.resolved.as_ref().unwrap().messages;
            assert_eq!(messages.values().next().unwrap().content, "ask");
        }
    }
}
