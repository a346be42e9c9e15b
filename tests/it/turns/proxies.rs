//! People who write through apps: what they may ask and see, and what they may not.

use std::time::Duration;

use clew_simulator::{ChannelKind, Draft, Id, World};
use clew_store::Kind;
use serde_json::{Value, json};

use super::tools::results;
use super::{Seeds, assert_in_order, place_with};
use crate::support::bot::details;
use crate::support::model::Behaviour;

/// The application of `pluralkit`.
const PLURALKIT: u64 = 466_378_653_216_014_359;
/// With it listed.
pub(super) const LISTED: (&str, &str) = ("PROXY_APPS", "pluralkit");

/// What the app posts for whoever bears this name.
pub(super) fn proxied(name: &str, text: &str) -> Draft {
    Draft::new(text).webhook(name).application(PLURALKIT)
}

pub(super) fn webhook(world: &mut World, _: Seeds) -> Id {
    world.fresh_id()
}

/// The names of the tools that a request offers.
fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap());
    names.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn they_ask_in_channels_by_replies_and_in_threads() {
    let (p, (hook, thread)) = place_with(&[LISTED], |world, seeds| {
        (world.fresh_id(), seeds.thread(world, "pump"))
    })
    .await;
    let bot = p.start().await;
    let asked = p.post(p.channel, hook, proxied("Luna", &p.to_us("why?")));
    p.answer(p.channel, 1).await;
    let prompt = p.prompt(1).await;
    assert_in_order(&prompt, &["Luna [through an app] | ", "asks you:\nwhy?"]);
    assert_eq!(p.targets(p.channel), [Some(asked)]);
    let hint = p.post(p.channel, p.boris, "the valve is stuck");
    let reply = proxied("Luna", &p.to_us("so what?")).reply_to(hint);
    p.post(p.channel, hook, reply);
    p.answer(p.channel, 2).await;
    assert_in_order(&p.prompt(2).await, &["the valve is stuck", "so what?"]);
    p.post(thread, hook, proxied("Sol", "the pump leaks"));
    p.post(thread, p.boris, "since when?");
    p.post(thread, hook, proxied("Luna", "since noon"));
    let asked = p.post(thread, hook, proxied("Luna", &p.to_us("what leaks?")));
    p.answer(thread, 1).await;
    let prompt = p.prompt(3).await;
    let expected = [
        "Sol [through an app] [first message]: the pump leaks",
        "Boris: since when?",
        "Luna [through an app]: since noon",
        "what leaks?",
    ];
    assert_in_order(&prompt, &expected);
    assert_eq!(p.targets(thread), [Some(asked)]);
    bot.stop().await;
}

/// What was written before the start is fetched, and read in the same way.
#[tokio::test(flavor = "multi_thread")]
async fn what_they_wrote_before_the_start_is_read_too() {
    let (p, (hook, thread)) = place_with(&[LISTED], |world, seeds| {
        let (hook, thread) = (world.fresh_id(), seeds.thread(world, "pump"));
        world.seed(thread, seeds.boris, "hello");
        world.seed(thread, hook, proxied("Sol", "the pump leaks"));
        (hook, thread)
    })
    .await;
    let bot = p.start().await;
    p.post(thread, p.ada, p.to_us("what leaks?"));
    p.answer(thread, 1).await;
    let cold = "Sol [through an app]: the pump leaks";
    assert_in_order(&p.prompt(1).await, &[cold, "what leaks?"]);
    assert!(p.gets() > 0, "it was fetched");
    p.seen().await;
    p.stage.discord.clear_requests();
    p.post(thread, hook, proxied("Luna", &p.to_us("and now?")));
    p.answer(thread, 2).await;
    assert_in_order(&p.prompt(2).await, &[cold, "and now?"]);
    assert_eq!(p.gets(), 0, "warm");
    bot.stop().await;
}

/// What they say is answered like anybody's words in a thread.
#[tokio::test(flavor = "multi_thread")]
async fn their_words_stand_in_for_a_bare_mention_of_somebody_else() {
    let (p, (hook, thread)) = place_with(&[LISTED], |world, seeds| {
        (world.fresh_id(), seeds.thread(world, "pump"))
    })
    .await;
    let bot = p.start().await;
    let said = p.post(thread, hook, proxied("Luna", "what leaks?"));
    p.post(thread, p.ada, p.to_us(""));
    p.answer(thread, 1).await;
    assert_eq!(p.targets(thread), [Some(said)]);
    bot.stop().await;
}

/// Without the setting, or by another app, whatever its name: as if nobody had written.
#[tokio::test(flavor = "multi_thread")]
async fn ids_decide_and_no_name_does() {
    for (settings, application) in [(vec![], PLURALKIT), (vec![LISTED], 77)] {
        let (p, (hook, thread)) = place_with(&settings, |world, seeds| {
            (world.fresh_id(), seeds.thread(world, "pump"))
        })
        .await;
        let bot = p.start().await;
        let posted = |text: &str| {
            Draft::new(text)
                .webhook("PluralKit")
                .application(application)
        };
        p.post(thread, p.boris, "hello");
        p.post(thread, hook, posted("the pump leaks"));
        p.post(thread, hook, posted(&p.to_us("what leaks?")));
        p.post(thread, p.ada, p.to_us("anything new?"));
        p.answer(thread, 1).await;
        assert!(!p.prompt(1).await.contains("leaks"));
        p.seen().await;
        assert_eq!(p.stage.model.requests().len(), 1);
        bot.stop().await;
    }
}

/// A bridge's webhook may belong to nobody: it is listed by its own id.
#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_is_listed_by_its_webhook() {
    let (mut p, hook) = place_with(&[], webhook).await;
    p.stage.set("PROXY_APPS", &hook.to_string());
    let bot = p.start().await;
    let text = p.to_us("why?");
    p.post(p.channel, hook, Draft::new(text).webhook("ada on IRC"));
    p.answer(p.channel, 1).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_bears_a_members_name_gets_nothing_of_the_member() {
    let settings = [LISTED, ("RECEIPT_BUTTON", "true")];
    let (p, (hook, other)) = place_with(&settings, |world, seeds| {
        let other = world.channel(seeds.guild, ChannelKind::Text, "other");
        (world.fresh_id(), other)
    })
    .await;
    let bot = p.start().await;
    p.post(other, p.boris, "the boiler is new");
    p.post(p.channel, p.ada, p.to_us("my cat is called Tom"));
    p.answer(p.channel, 1).await;
    p.stage.model.wait_ended(1).await;
    let list = json!({"thread": other.to_string()}).to_string();
    let search = json!({"words": "boiler"}).to_string();
    let calls = [("list_thread", list.as_str()), ("search_messages", &search)];
    p.stage.model.script(Behaviour::calls("", &calls));
    let question = p.to_us("what is my cat called?");
    p.post(p.channel, hook, proxied("Ada", &question));
    let requests = p.stage.model.wait_requests(3).await;
    p.answer(p.channel, 2).await;
    let request = &requests[2];
    let expected = ["get_message", "list_thread", "search_messages", "catch_up"];
    assert_eq!(offered(request), expected);
    let text = request.to_string();
    assert!(text.contains("Ada [through an app]"), "{text}");
    assert!(!text.contains("Tom") && !text.contains("is new"), "{text}");
    assert_eq!(results(request).len(), 2);
    p.seen().await;
    bot.stop().await;
    let answers = p.stage.discord.answers(p.channel);
    let buttons: Vec<bool> = answers
        .iter()
        .map(|one| !one.components.is_empty())
        .collect();
    assert_eq!(buttons, [true, false], "only the member's has a button");
    let rows = p.rows().await;
    assert_eq!(rows.len(), 2, "only the member's turn: {rows:?}");
    assert_eq!(p.records(Kind::Receipts).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_count_an_app_by_channel() {
    let settings = [LISTED, ("USER_TURNS_PER_MIN", "1")];
    let (mut p, (hook, thread, elsewhere)) = place_with(&settings, |world, seeds| {
        let other = world.guild("Elsewhere");
        let elsewhere = world.channel(other, ChannelKind::Text, "help");
        (world.fresh_id(), seeds.thread(world, "pump"), elsewhere)
    })
    .await;
    super::proxy_holds::holds(&mut p, Duration::ZERO);
    let bot = p.start().await;
    let why = p.to_us("why?");
    p.post(p.channel, hook, proxied("Luna", &why));
    p.answer(p.channel, 1).await;
    // Another name, another webhook, a thread of the channel: the same app and channel.
    let second = p.stage.discord.world(World::fresh_id);
    p.post(p.channel, second, proxied("Sol", &why));
    p.post(thread, hook, proxied("Luna", &why));
    // The same name of the same app elsewhere is somebody else, and so is a member.
    p.post(elsewhere, hook, proxied("Luna", &why));
    p.post(p.channel, p.ada, why);
    p.answer(elsewhere, 1).await;
    p.prompt(3).await;
    p.seen().await;
    let lines = bot.stop().await;
    let refused = details(&lines, "refused");
    let rated = refused.iter().filter(|one| one["reason"] == "user_rate");
    assert_eq!(rated.count(), 2, "{refused:?}");
    assert_eq!(p.stage.model.requests().len(), 3);
}

/// A webhook posts in every thread of its channel: that makes nobody a member.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_private_thread_they_read_nothing() {
    let (p, (hook, thread)) = place_with(&[LISTED], |world, seeds| {
        let thread = world.thread(
            seeds.channel,
            ChannelKind::PrivateThread,
            "plans",
            seeds.ada,
        );
        let us = world.bot;
        world.join_thread(thread, us);
        world.seed(thread, seeds.ada, "the pump goes");
        (world.fresh_id(), thread)
    })
    .await;
    let bot = p.start().await;
    p.post(thread, hook, proxied("Ada", &p.to_us("what goes?")));
    p.answer(thread, 1).await;
    let prompt = p.prompt(1).await;
    assert!(
        !prompt.contains("pump") && !prompt.contains("plans"),
        "{prompt}"
    );
    p.post(thread, p.ada, p.to_us("and for me?"));
    p.answer(thread, 2).await;
    assert_in_order(&p.prompt(2).await, &["the pump goes", "[through an app]: "]);
    bot.stop().await;
}
