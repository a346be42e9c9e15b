//! What is recalled in a conversation that follows its user: only what everybody who reads
//! the answer may read.

use clew_simulator::{Id, World};

use super::leaks::{Random, channel, everybody_reads, members};
use super::{Place, Seeds, place_with};

const QUESTIONS: usize = 24;

/// Channels that some may read and others not, and the members.
fn layout(world: &mut World, seeds: Seeds, random: &mut Random) -> (Vec<Id>, Vec<Id>) {
    let (roles, people) = members(world, seeds);
    let channels = (0..6).map(|_| channel(world, seeds, roles, random, "plans"));
    (channels.collect(), people)
}

/// One person tells a secret in each channel that they see, then asks for all of them in
/// each; returns how often one from elsewhere was recalled.
async fn recalled(p: &Place, channels: &[Id], people: &[Id]) -> usize {
    let asker = people[3];
    let sees = |channel: &&Id| p.stage.discord.world(|world| world.sees(asker, **channel));
    let seen: Vec<Id> = channels.iter().filter(sees).copied().collect();
    let (mut number, mut recalled) = (0, 0);
    for (at, channel) in seen.iter().enumerate() {
        number += 1;
        p.post(
            *channel,
            asker,
            p.to_us(&format!("kumquat{at} is a fruit of the yard")),
        );
        p.prompt(number).await;
        p.stage.discord.wait_idle().await.unwrap();
    }
    for here in seen.iter().cycle().take(QUESTIONS) {
        number += 1;
        p.post(*here, asker, p.to_us("which fruit of the yard?"));
        let prompt = p.prompt(number).await;
        p.stage.discord.wait_idle().await.unwrap();
        for (at, source) in seen.iter().enumerate() {
            if source == here || !prompt.contains(&format!("kumquat{at}")) {
                continue;
            }
            recalled += 1;
            let may = |world: &mut World| everybody_reads(world, people, *here, *source);
            assert!(p.stage.discord.world(may), "question {number}: {prompt}");
        }
    }
    recalled
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_recalled_that_readers_may_not_read() {
    let settings = [
        ("USER_TURNS_PER_MIN", "0"),
        ("CONTEXT_SCOPE", "user"),
        ("MAX_CONTEXT_MESSAGES", "2"),
        ("RECALL_MESSAGES", "20"),
    ];
    let mut all = 0;
    for seed in [5, 6, 7] {
        let mut random = Random(seed);
        let laid = |world: &mut World, seeds| layout(world, seeds, &mut random);
        let (p, (channels, people)) = place_with(&settings, laid).await;
        let bot = p.start().await;
        all += recalled(&p, &channels, &people).await;
        bot.stop().await;
    }
    assert!(all > 0);
}
