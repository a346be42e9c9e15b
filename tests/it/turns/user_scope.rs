//! A conversation that follows its user from channel to channel: only to where everybody may read where it
//! was had.

use clew_simulator::{ChannelKind, OverwriteOf, Permissions};

use super::place_with;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_in_a_closed_channel_stays_there() {
    let scope = [("CONTEXT_SCOPE", "user")];
    let (p, (plans, office)) = place_with(&scope, |world, seeds| {
        let plans = world.channel(seeds.guild, ChannelKind::Text, "plans");
        let view = Permissions::VIEW_CHANNEL;
        world.deny_everyone(plans, view);
        for who in [seeds.boris, world.bot] {
            world.overwrite(plans, OverwriteOf::Member(who), view, Permissions::NONE);
        }
        let office = world.channel(seeds.guild, ChannelKind::Text, "office");
        (plans, office)
    })
    .await;
    // A bot that has stopped has stored its turns.
    let ask = async |number: usize, channel, text: &str| {
        let bot = p.stage.start().await;
        p.post(channel, p.boris, p.to_us(text));
        let prompt = p.prompt(number).await;
        bot.stop().await;
        prompt
    };
    ask(1, plans, "saffron").await;
    let there = ask(2, plans, "turmeric").await;
    assert!(there.contains("saffron"), "{there}");
    let open = ask(3, p.channel, "cumin").await;
    for closed in ["saffron", "turmeric"] {
        assert!(!open.contains(closed), "{open}");
    }
    let elsewhere = ask(4, office, "well?").await;
    assert!(elsewhere.contains("cumin"), "{elsewhere}");
    assert!(!elsewhere.contains("saffron"), "{elsewhere}");
    let there = ask(5, plans, "well?").await;
    for said in ["saffron", "turmeric", "cumin"] {
        assert!(there.contains(said), "{there}");
    }
}
