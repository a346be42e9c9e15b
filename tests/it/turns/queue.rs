//! Which turns wait for each other, and which questions are refused.

use std::time::Duration;

use clew_simulator::{ChannelKind, Fault, FaultKind, Id, Limit, Message, Use, World};

use super::{assert_in_order, place, place_with};
use crate::support::bot::details;
use crate::support::model::{Behaviour, Gate};

impl super::Place {
    /// The next request to the model is answered when the gate opens.
    pub(super) fn hold(&self, words: &str) -> Gate {
        let (behaviour, gate) = Behaviour::gated(&[words]);
        self.stage.model.script(behaviour);
        gate
    }
}

/// Two triggers in one place: the second waits if they share a queue.
async fn check(waits: bool, same_author: bool, kind: Kind) {
    let (p, thread) = place_with(&[], |world, seeds| seeds.thread(world, "pump")).await;
    let bot = p.start().await;
    let channel = match kind {
        Kind::Thread => thread,
        Kind::Channel => p.channel,
        Kind::Direct => p.stage.discord.world(|world| world.direct(p.ada)),
    };
    let second = if same_author { p.ada } else { p.boris };
    let gate = p.hold("first");
    p.post(channel, p.ada, p.to_us("one"));
    p.stage.model.wait_requests(1).await;
    p.post(channel, second, p.to_us("two"));
    p.seen().await;
    if waits {
        assert_eq!(p.stage.model.requests().len(), 1);
        gate.open();
        assert_eq!(p.answer(channel, 1).await, "first");
    } else {
        p.stage.model.wait_requests(2).await;
        gate.open();
    }
    p.answer(channel, 2).await;
    bot.stop().await;
}

#[derive(Clone, Copy)]
enum Kind {
    Thread,
    Channel,
    Direct,
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_direct_messages_and_members_are_served_one_by_one() {
    check(true, false, Kind::Thread).await;
    check(true, true, Kind::Direct).await;
    check(true, true, Kind::Channel).await;
    check(false, false, Kind::Channel).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_says_so_once_a_minute() {
    let (p, thread) = place_with(&[("TURN_QUEUE_PER_CHANNEL", "1")], |world, seeds| {
        seeds.thread(world, "pump")
    })
    .await;
    let bot = p.start().await;
    let gate = p.hold("first");
    p.post(thread, p.ada, p.to_us("one"));
    p.stage.model.wait_requests(1).await;
    for text in ["two", "three", "four"] {
        p.post(thread, p.ada, p.to_us(text));
    }
    let refusal = p.answer(thread, 1).await;
    assert!(
        refusal.starts_with("-# I'm still answering earlier questions"),
        "{refusal}"
    );
    p.seen().await;
    gate.open();
    p.answer(thread, 3).await;
    let lines = bot.stop().await;
    let answers = p.stage.discord.answers(thread);
    let refused = answers.iter().filter(|one| one.content.starts_with("-# "));
    assert_eq!(refused.count(), 1);
    let refused = details(&lines, "refused");
    let full = refused.iter().filter(|one| one["reason"] == "queue_full");
    assert_eq!(full.count(), 2, "both are counted");
    assert_eq!(details(&lines, "trigger").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_has_so_many_turns_a_minute() {
    let p = place(&[("USER_TURNS_PER_MIN", "2")]).await;
    let bot = p.start().await;
    for count in 1..=2 {
        p.post(p.channel, p.ada, p.to_us("and?"));
        assert_eq!(p.answer(p.channel, count).await, "ok");
    }
    p.post(p.channel, p.ada, p.to_us("and?"));
    let refusal = p.answer(p.channel, 3).await;
    assert_eq!(
        refusal,
        "-# That's a lot of questions. Try again in a minute."
    );
    p.post(p.channel, p.boris, p.to_us("and me?"));
    assert_eq!(p.answer(p.channel, 4).await, "ok");
    bot.stop().await;
}

/// One turn runs and one may wait. Of two people who ask, the one with more turns is
/// refused, although that question came first.
#[tokio::test(flavor = "multi_thread")]
async fn all_turns_together_stay_under_a_limit() {
    let settings = [
        ("MAX_CONCURRENT_TURNS", "1"),
        ("TURN_QUEUE_PER_CHANNEL", "0"),
    ];
    let (p, threads) = place_with(&settings, |world, seeds| {
        ["a", "b", "c"]
            .map(|title| world.thread(seeds.channel, ChannelKind::PublicThread, title, seeds.ada))
    })
    .await;
    let bot = p.start().await;
    let gate = p.hold("first");
    p.post(threads[0], p.ada, p.to_us("one"));
    p.stage.model.wait_requests(1).await;
    p.post(threads[1], p.ada, p.to_us("two"));
    p.post(threads[2], p.boris, p.to_us("three"));
    let refusal = p.answer(threads[1], 1).await;
    assert!(refusal.starts_with("-# I'm busy elsewhere"), "{refusal}");
    assert_eq!(p.stage.model.requests().len(), 1);
    gate.open();
    assert_eq!(p.answer(threads[2], 1).await, "ok");
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "refused").len(), 1);
}

/// Seven people of one server ask seventy questions at once and take all places. The
/// next free places go to another server and to a direct message.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_too_much_keeps_nobody_else_waiting() {
    let settings = [("MAX_CONCURRENT_TURNS", "4"), ("USER_TURNS_PER_MIN", "0")];
    let (p, (threads, people, elsewhere, carol)) = place_with(&settings, |world, seeds| {
        let thread = |world: &mut World, title: u64| {
            let kind = ChannelKind::PublicThread;
            world.thread(seeds.channel, kind, &title.to_string(), seeds.ada)
        };
        let threads: Vec<Id> = (0..10).map(|title| thread(world, title)).collect();
        let person = |world: &mut World, name: u64| world.member(seeds.guild, &format!("P{name}"));
        let people: Vec<Id> = (0..7).map(|name| person(world, name)).collect();
        let other = world.guild("Elsewhere");
        let elsewhere = world.channel(other, ChannelKind::Text, "help");
        (threads, people, elsewhere, world.member(other, "Carol"))
    })
    .await;
    let bot = p.start().await;
    let gates: Vec<Gate> = (0..4).map(|_| p.hold("at last")).collect();
    for thread in &threads {
        for person in &people {
            p.post(*thread, *person, p.to_us("and?"));
        }
    }
    p.stage.model.wait_requests(4).await;
    let direct = p.stage.discord.world(|world| world.direct(p.boris));
    p.post(elsewhere, carol, p.to_us("is anybody there?"));
    p.seen().await;
    p.post(direct, p.boris, "and for me?");
    p.seen().await;
    assert_eq!(
        p.stage.model.requests().len(),
        4,
        "one server uses all places"
    );
    gates[0].open();
    assert!(p.prompt(5).await.ends_with("is anybody there?"));
    assert!(p.prompt(6).await.ends_with("and for me?"));
    assert_eq!(p.answer(elsewhere, 1).await, "ok");
    assert_eq!(p.answer(direct, 1).await, "ok");
    gates.iter().for_each(Gate::open);
    let lines = bot.stop().await;
    let refused = lines.iter().filter(|line| line["event"] == "refused");
    let refused: Vec<_> = refused.map(|line| &line["guild_id"]).collect();
    assert!(!refused.is_empty());
    let here = p.guild.to_string();
    assert!(refused.iter().all(|guild| **guild == here), "{refused:?}");
}

/// Three questions at once: targets and blocks pass over the triggers of
/// turns that wait or run, and our own answers stay in the block.
#[tokio::test(flavor = "multi_thread")]
async fn three_triggers_queued_while_the_bot_answers_the_first() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let start = world.seed(seeds.channel, seeds.boris, "the pump leaks");
        let thread = world.thread_from(seeds.channel, start, "pump", seeds.boris);
        world.seed(thread, seeds.boris, "is 3 bar normal?");
        thread
    })
    .await;
    let bot = p.start().await;
    let question = p.stage.discord.messages(thread).last().unwrap().id;
    let gate = p.hold("Three bar is normal.");
    p.post(thread, p.ada, p.to_us(""));
    p.stage.model.wait_requests(1).await;
    let second = p.post(thread, p.ada, p.to_us("and four?"));
    let third = p.post(thread, p.boris, p.to_us(""));
    let fourth = p.post(thread, p.ada, p.to_us("and five?"));
    p.seen().await;
    gate.open();
    p.answer(thread, 4).await;
    let targets = p.targets(thread);
    // A question with words that waited is its own target. The third is a bare
    // mention: its target is the newest message that is not the trigger of a waiting or
    // running turn, and by then the second turn is done.
    assert_eq!(
        targets,
        [Some(question), Some(second), Some(second), Some(fourth)]
    );
    assert_in_order(
        &p.prompt(1).await,
        &["is 3 bar normal?", "points at the message"],
    );
    assert_in_order(
        &p.prompt(2).await,
        &["Three bar is normal.", " asks you:\nand four?"],
    );
    assert_ne!(Some(third), targets[3]);
    bot.stop().await;
}

/// Messages that arrive before the first turn's task runs are not its target.
#[tokio::test(flavor = "multi_thread")]
async fn triggers_at_once_are_each_their_own_target() {
    let (p, thread) = place_with(&[], |world, seeds| seeds.thread(world, "pump")).await;
    let bot = p.start().await;
    let askers = [p.ada, p.boris, p.ada, p.boris];
    let asked = askers.map(|asker| Some(p.post(thread, asker, p.to_us("why?"))));
    p.answer(thread, askers.len()).await;
    assert_eq!(p.targets(thread), asked);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_shows_from_the_start_and_holds_nothing_up() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let hang = FaultKind::Hang(Duration::from_secs(4));
    p.stage.discord.fault(Fault::new("POST", "/typing", hang));
    let gate = p.hold("slowly");
    p.post(p.channel, p.ada, p.to_us("why?"));
    let typing = p.stage.discord.wait_request("POST", "/typing", 1).await;
    assert_eq!(typing.unwrap()[0].status, None, "still open");
    p.stage.model.wait_requests(1).await;
    assert_eq!(
        p.stage.discord.requests_to("POST", "/typing")[0].status,
        None
    );
    gate.open();
    assert_eq!(p.answer(p.channel, 1).await, "slowly");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_is_renewed_as_long_as_the_turn_lasts() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let gate = p.hold("at last");
    p.post(p.channel, p.ada, p.to_us("why?"));
    // Typing shows for ten seconds, which a wait of the simulator lasts too.
    p.stage
        .discord
        .wait_request("POST", "/typing", 2)
        .await
        .unwrap();
    gate.open();
    assert_eq!(p.answer(p.channel, 1).await, "at last");
    bot.stop().await;
}

/// After the shutdown's deadline posted parts are taken back, and a command's first
/// response says to ask again.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_cannot_wait_leaves_no_partial_answers() {
    let p = place(&[("SHUTDOWN_TIMEOUT_S", "1")]).await;
    let bot = p.start().await;
    let (behaviour, gate) = Behaviour::gated(&["Partly\n", "never"]);
    p.stage.model.script(behaviour);
    p.post(p.channel, p.ada, p.to_us("why?"));
    p.stage.model.wait_requests(1).await;
    let (behaviour, _second) = Behaviour::gated(&["never"]);
    p.stage.model.script(behaviour);
    gate.step(1);
    assert_eq!(p.answer(p.channel, 1).await, "Partly");
    let ask = Use::slash("ask", &[("question", "why?")]);
    let call = p.stage.discord.interact(p.channel, p.boris, &ask);
    p.stage.model.wait_requests(2).await;
    let lines = bot.stop().await;
    let told = p.stage.discord.interaction_answers(call);
    assert_eq!(told[0].content, "-# I'm restarting. Try again in a moment.");
    let left = p.stage.discord.answers(p.channel);
    assert_eq!(left.len(), 1, "the command's alone: {left:?}");
    let outcomes = details(&lines, "turn_done");
    assert!(
        outcomes.iter().all(|one| one["outcome"] == "cancelled"),
        "{outcomes:?}"
    );
    // The next process answers the mention, and not the command.
    let bot = p.stage.start().await;
    p.wait_for(p.channel, "ok").await;
    bot.stop().await;
    assert_eq!(p.stage.model.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_wait_at_a_stop_are_told() {
    let p = place(&[("SHUTDOWN_TIMEOUT_S", "1")]).await;
    let bot = p.start().await;
    let _gate = p.hold("never");
    let ask = Use::slash("ask", &[("question", "why?")]);
    let first = p.stage.discord.interact(p.channel, p.ada, &ask);
    p.stage.model.wait_requests(1).await;
    let second = p.stage.discord.interact(p.channel, p.ada, &ask);
    p.seen().await;
    let lines = bot.stop().await;
    for call in [first, second] {
        let told = p.stage.discord.interaction_answers(call);
        assert_eq!(told[0].content, "-# I'm restarting. Try again in a moment.");
    }
    let refused = details(&lines, "refused");
    assert!(
        refused.iter().any(|one| one["reason"] == "stopping"),
        "{refused:?}"
    );
}

/// A raid: six hundred accounts mention us twice each in one channel, which takes five posts in
/// five seconds. Somebody who asks in another channel is answered meanwhile, and so is who
/// asks once in the raided channel; few of the raiders are told why they are not.
#[tokio::test(flavor = "multi_thread")]
async fn a_raid_keeps_nobody_else_of_its_server_waiting() {
    let settings = [("MAX_CONCURRENT_TURNS", "4"), ("USER_TURNS_PER_MIN", "0")];
    let (p, (raided, raiders)) = place_with(&settings, |world, seeds| {
        let raided = world.channel(seeds.guild, ChannelKind::Text, "raided");
        let raider = |name: usize| world.member(seeds.guild, &format!("R{name}"));
        (raided, (0..600).map(raider).collect::<Vec<Id>>())
    })
    .await;
    p.stage.discord.limit(Limit {
        method: "POST".to_owned(),
        path: "/channels/*/messages".to_owned(),
        calls: 5,
        window: Duration::from_secs(5),
    });
    let bot = p.start().await;
    let gates: Vec<Gate> = (0..2).map(|_| p.hold("at last")).collect();
    for _ in 0..2 {
        for raider in &raiders {
            p.post(raided, *raider, p.to_us("now!"));
        }
    }
    p.seen().await;
    assert_eq!(p.stage.model.requests().len(), 2, "half of the places");
    p.post(p.channel, p.boris, p.to_us("is anybody there?"));
    assert_eq!(p.answer(p.channel, 1).await, "ok");
    assert_eq!(p.stage.model.requests().len(), 3);
    let asked = p.post(raided, p.ada, p.to_us("what is going on?"));
    p.seen().await;
    gates[0].open();
    assert!(p.prompt(4).await.ends_with("what is going on?"));
    gates[1].open();
    let is_adas = |message: &Message| {
        message
            .reference
            .is_some_and(|of| of.message == Some(asked))
    };
    let answer = p.stage.discord.wait_for_message(raided, is_adas).await;
    assert_eq!(answer.unwrap().content, "ok");
    let refusals = p.stage.discord.answers(raided);
    let refusals = refusals.iter().filter(|one| one.content.starts_with("-# "));
    assert_eq!(refusals.count(), 5, "the rest of the posts is for answers");
    let lines = bot.stop().await;
    assert!(details(&lines, "refused").len() > 1_100, "all are counted");
}
