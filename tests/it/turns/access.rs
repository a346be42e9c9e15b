//! What an asker may read if the gateway did not tell: it is looked up, and denied if
//! that fails.

use clew_simulator::{ChannelKind, Fault, Id, OverwriteOf, Permissions, Use};
use serde_json::json;

use super::{Place, assert_in_order, place_with};
use crate::support::bot::details;

/// An archived thread, of which no event tells, in a channel for the role `staff`, which
/// Boris has.
async fn archived() -> (Place, Id) {
    place_with(&[], |world, seeds| {
        let staff = world.role(seeds.guild, "staff", Permissions::NONE);
        world.give_role(seeds.guild, seeds.boris, staff);
        let plans = world.channel(seeds.guild, ChannelKind::Text, "plans");
        world.deny_everyone(plans, Permissions::VIEW_CHANNEL);
        let view = Permissions::VIEW_CHANNEL;
        for of in [OverwriteOf::Role(staff), OverwriteOf::Member(world.bot)] {
            world.overwrite(plans, of, view, Permissions::NONE);
        }
        let start = world.seed(plans, seeds.boris, "the pump goes");
        let thread = world.thread_from(plans, start, "layoffs", seeds.boris);
        world.seed(thread, seeds.boris, "and the boiler");
        world.set_archived(thread, true, false);
        thread
    })
    .await
}

fn ask() -> Use {
    Use::slash("ask", &[("question", "what goes?")])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_is_not_known_is_asked_for() {
    let (p, thread) = archived().await;
    let bot = p.start().await;
    p.stage.discord.interact(thread, p.boris, &ask());
    let prompt = p.prompt(1).await;
    assert_in_order(
        &prompt,
        &["layoffs", "the pump goes", "and the boiler", "what goes?"],
    );
    p.stage.discord.interact(thread, p.ada, &ask());
    let prompt = p.prompt(2).await;
    assert_in_order(&prompt, &["what goes?"]);
    for word in ["layoffs", "plans", "pump", "boiler"] {
        assert!(!prompt.contains(word), "{word} is in {prompt}");
    }
    let lines = bot.stop().await;
    let fetches = details(&lines, "collect_ok");
    assert!(fetches.iter().all(|one| one["fetches"].as_u64() <= Some(8)));
    let denied = json!({"case": "thread", "reason": "forbidden", "stage": "asker"});
    assert_eq!(details(&lines, "collect_fallback"), [denied]);
}

/// A thread that everybody may read.
async fn open() -> (Place, Id) {
    place_with(&[], |world, seeds| {
        let kind = ChannelKind::PublicThread;
        let thread = world.thread(seeds.channel, kind, "pumps", seeds.boris);
        world.seed(thread, seeds.boris, "the pump leaks");
        thread
    })
    .await
}

/// Gives Ada a role without an event.
fn unseen_role(p: &Place) -> Id {
    p.stage.discord.world(|world| {
        let guests = world.role(p.guild, "guests", Permissions::NONE);
        world.give_role(p.guild, p.ada, guests);
        guests
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_judged_reads_nothing() {
    let (p, thread) = open().await;
    let bot = p.start().await;
    unseen_role(&p);
    let refused = Fault::status("GET", "/guilds/", 500, 0, "no");
    let number = p.stage.discord.fault(refused);
    p.post(thread, p.ada, p.to_us("what leaks?"));
    p.answer(thread, 1).await;
    let prompt = p.prompt(1).await;
    assert!(!prompt.contains("the pump"), "{prompt}");
    assert!(p.stage.discord.hits(number) > 0, "it was asked");
    p.stage.discord.end_faults();
    p.post(thread, p.ada, p.to_us("and now?"));
    p.answer(thread, 2).await;
    assert_in_order(&p.prompt(2).await, &["the pump leaks", "and now?"]);
    bot.stop().await;
}

/// Neither the role nor the channel's overwrite for it came in an event.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_not_known_lets_nobody_in() {
    let (p, thread) = open().await;
    let bot = p.start().await;
    let guests = unseen_role(&p);
    p.stage.discord.world(|world| {
        let (nothing, history) = (Permissions::NONE, Permissions::READ_MESSAGE_HISTORY);
        world.overwrite(p.channel, OverwriteOf::Role(guests), nothing, history);
    });
    p.post(thread, p.ada, p.to_us("what leaks?"));
    p.answer(thread, 1).await;
    let prompt = p.prompt(1).await;
    assert!(!prompt.contains("the pump"), "{prompt}");
    // Known rights need no call.
    p.post(thread, p.boris, p.to_us("what leaks?"));
    p.answer(thread, 2).await;
    assert_in_order(&p.prompt(2).await, &["the pump leaks"]);
    p.seen().await;
    p.stage.discord.clear_requests();
    p.post(thread, p.boris, p.to_us("still?"));
    p.answer(thread, 3).await;
    p.prompt(3).await;
    assert_eq!(p.stage.discord.requests_to("GET", "/").len(), 0, "warm");
    bot.stop().await;
}
