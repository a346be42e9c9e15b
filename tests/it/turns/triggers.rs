//! Which messages trigger a turn, and with which cause.

use clew_simulator::{ChannelKind, Draft, Id, Permissions, Use, World};
use serde_json::{Value, json};

use super::{Place, Seeds, place, place_with};
use crate::support::bot::{details, prompt};

/// Posts something in a new place and compares the causes of the turns that followed.
async fn check(settings: &[(&str, &str)], expected: &[&str], post: impl FnOnce(&Place)) {
    let place = place(settings).await;
    let bot = place.start().await;
    post(&place);
    place.seen().await;
    let causes = causes(&bot.stop().await);
    assert_eq!(causes, expected);
}

fn causes(lines: &[Value]) -> Vec<String> {
    let triggers = details(lines, "trigger");
    let cause = |trigger: &Value| trigger["cause"].as_str().unwrap().to_owned();
    triggers.iter().map(cause).collect()
}

/// Our own message, as the gateway brings it.
fn ours(place: &Place, text: &str) -> Id {
    place.post(place.channel, place.us, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn people_ask_by_mention_role_reply_and_direct_message() {
    check(&[], &["mention"], |p| {
        p.post(p.channel, p.ada, p.to_us("why?"));
    })
    .await;
    check(&[], &["mention"], |p| {
        let role = p.stage.discord.world(|world| world.bot_role(p.guild));
        p.post(p.channel, p.ada, format!("<@&{}> why?", role.unwrap()));
    })
    .await;
    check(&[], &["mention"], |p| {
        let own = ours(p, "It is so.");
        p.post(p.channel, p.ada, Draft::new("why?").reply_to(own));
    })
    .await;
    check(&[], &["mention"], |p| {
        let own = ours(p, "It is so.");
        let reply = Draft::new("why?").reply_to(own).without_ping();
        p.post(p.channel, p.ada, reply);
    })
    .await;
    check(&[], &["direct"], |p| {
        let direct = p.stage.discord.world(|world| world.direct(p.ada));
        p.post(direct, p.ada, "why?");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chatter_system_messages_and_everyone_are_no_triggers() {
    check(&[], &[], |p| {
        p.post(p.channel, p.ada, "nice weather");
        p.post(p.channel, p.ada, "@everyone look");
        p.post(p.channel, p.ada, Draft::system(7));
        let other = p.post(p.channel, p.boris, "hm");
        p.post(p.channel, p.ada, Draft::new("hm?").reply_to(other));
        ours(p, &p.to_us("is my name"));
        p.stage.discord.pin(p.channel, other, p.ada);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_never_makes_a_trigger() {
    check(&[], &[], |p| {
        let message = p.post(p.channel, p.ada, "hello");
        p.stage.discord.edit(p.channel, message, &p.to_us("hello"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mention_only_leaves_replies_and_auto_reply_out() {
    let settings = [("MENTION_ONLY", "true")];
    check(&settings, &["mention", "mention"], |p| {
        let own = ours(p, "It is so.");
        let reply = Draft::new("why?").reply_to(own);
        p.post(p.channel, p.ada, reply.clone().without_ping());
        p.post(p.channel, p.ada, reply);
        p.post(p.channel, p.boris, p.to_us("why?"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_reply_channels_answer_every_person_in_them_and_their_threads() {
    let (mut p, (other, thread, robot)) = place_with(&[], |world, seeds| {
        let other = world.channel(seeds.guild, ChannelKind::Text, "chatter");
        let robot = world.other_bot("Robot");
        world.join(seeds.guild, robot);
        let kind = ChannelKind::PublicThread;
        (
            other,
            world.thread(seeds.channel, kind, "pump", seeds.ada),
            robot,
        )
    })
    .await;
    p.stage.set("AUTO_REPLY_CHANNELS", &p.channel.to_string());
    let bot = p.start().await;
    p.post(p.channel, p.ada, "one");
    p.post(thread, p.ada, "two");
    p.post(other, p.ada, "not here");
    p.post(p.channel, robot, "nor a bot");
    p.seen().await;
    let causes = causes(&bot.stop().await);
    assert_eq!(causes, ["auto_reply", "auto_reply"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bots_are_answered_if_wanted_named_and_not_too_often() {
    let prepare = |world: &mut World, seeds: Seeds| {
        let robot = world.other_bot("Robot");
        world.join(seeds.guild, robot);
        robot
    };
    for (settings, expected) in [(vec![], 0), (vec![("REPLY_TO_BOTS", "true")], 3)] {
        let (p, robot) = place_with(&settings, prepare).await;
        let bot = p.start().await;
        for count in 1..=5 {
            p.post(p.channel, robot, p.to_us("and?"));
            if count <= expected {
                p.answer(p.channel, count).await;
            }
        }
        // A reply's ping alone is no mention by a bot.
        let own = ours(&p, "So.");
        p.post(p.channel, robot, Draft::new("and?").reply_to(own));
        p.seen().await;
        let turns = details(&bot.stop().await, "trigger").len();
        assert_eq!(turns, expected, "{settings:?}");
    }
}

/// Turns in a row for bots are counted per server as well, and messages of people who
/// may not use the bot do not reset the count.
#[tokio::test(flavor = "multi_thread")]
async fn a_bot_that_opens_threads_begins_no_new_row() {
    let (mut p, (robot, threads)) = place_with(&[], |world, seeds| {
        let robot = world.other_bot("Robot");
        world.join(seeds.guild, robot);
        let kind = ChannelKind::PublicThread;
        let thread = |number| world.thread(seeds.channel, kind, &format!("row {number}"), robot);
        (robot, (0..12).map(thread).collect::<Vec<Id>>())
    })
    .await;
    p.stage.set("REPLY_TO_BOTS", "true");
    p.stage
        .set("ALLOWED", &format!("user:{},user:{robot}", p.ada));
    let bot = p.start().await;
    for (at, thread) in threads.iter().enumerate() {
        p.post(*thread, robot, p.to_us("and?"));
        if at < 3 {
            p.answer(*thread, 1).await;
        }
        p.post(*thread, p.boris, "chatter of somebody who may not");
        p.post(p.channel, p.boris, "and elsewhere");
    }
    p.seen().await;
    let answered = |p: &Place| {
        let of = |thread: &Id| p.stage.discord.answers(*thread).len();
        threads.iter().map(of).sum::<usize>()
    };
    assert_eq!(answered(&p), 3);
    p.post(threads[11], p.ada, "chatter of somebody who may");
    p.post(threads[11], robot, p.to_us("and?"));
    p.answer(threads[11], 1).await;
    bot.stop().await;
    assert_eq!(answered(&p), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_say_who_and_where() {
    let (p, (role, thread)) = place_with(&[], |world, seeds| {
        let role = world.role(seeds.guild, "staff", Permissions::NONE);
        world.give_role(seeds.guild, seeds.ada, role);
        (role, seeds.thread(world, "pump"))
    })
    .await;
    let cases: [(&str, String, &[&str]); 8] = [
        ("ALLOWED", format!("user:{}", p.ada), &["one"]),
        ("ALLOWED", String::new(), &["one", "two", "three", "four"]),
        (
            "DENIED",
            format!("user:{}", p.ada),
            &["two", "three", "four"],
        ),
        ("ALLOWED", format!("role:{role}"), &["one"]),
        ("DENIED", format!("role:{role}"), &["two", "three", "four"]),
        (
            "ALLOWED",
            format!("channel:{}", p.channel),
            &["one", "two", "three", "four"],
        ),
        ("DENIED", format!("channel:{}", p.channel), &["four"]),
        ("DENIED", format!("guild:{}", p.guild), &["four"]),
    ];
    for (name, value, expected) in cases {
        let asked = asked(&p, thread, &[(name, &value)]).await;
        assert_eq!(asked, expected, "{name}={value}");
    }
}

/// Nothing is said in the channel, and messages that are no questions are not reported.
#[tokio::test(flavor = "multi_thread")]
async fn whom_a_list_turns_away_is_in_the_telemetry() {
    let (p, thread) = place_with(&[], |world, seeds| seeds.thread(world, "pump")).await;
    let lists = [
        ("DENIED", format!("direct, user:{}", p.ada)),
        ("ALLOWED", format!("channel:{thread}")),
    ];
    let lists = lists.each_ref().map(|(name, value)| (*name, &**value));
    let bot = p.stage.start_with(&lists).await;
    let direct = p.stage.discord.world(|world| world.direct(p.boris));
    p.post(direct, p.boris, "one");
    p.post(p.channel, p.boris, "chatter");
    let two = p.post(p.channel, p.boris, p.to_us("two"));
    p.post(thread, p.ada, p.to_us("three"));
    let call = Use::slash("ask", &[("question", "four?")]);
    p.stage.discord.interact(thread, p.ada, &call);
    p.post(thread, p.boris, p.to_us("five"));
    p.answer(thread, 1).await;
    let lines = bot.stop().await;
    let refused = details(&lines, "refused");
    let parent = p.channel.to_string();
    let of = |list: &str, parent: Option<&String>| json!({"reason": "not_allowed", "list": list, "parent_channel_id": parent});
    let people = of("people", Some(&parent));
    let expected = [
        of("direct_messages", None),
        of("channels", None),
        people.clone(),
        people,
    ];
    assert_eq!(refused, expected);
    let line = lines
        .iter()
        .filter(|line| line["event"] == "refused")
        .nth(1);
    assert_eq!(line.unwrap()["msg_id"], two.to_string());
    let trigger = details(&lines, "trigger");
    assert_eq!(trigger.len(), 1);
    assert_eq!(trigger[0]["parent_channel_id"], parent);
    assert_eq!(trigger[0]["agent"], "default");
    assert!(p.stage.discord.answers(p.channel).is_empty());
}

/// Starts the bot with more settings and asks four times; gives the questions
/// that the model got.
async fn asked(p: &Place, thread: Id, settings: &[(&str, &str)]) -> Vec<&'static str> {
    let before = p.stage.model.requests().len();
    let bot = p.stage.start_with(settings).await;
    p.post(p.channel, p.ada, p.to_us("one"));
    p.post(p.channel, p.boris, p.to_us("two"));
    p.post(thread, p.boris, p.to_us("three"));
    let direct = p.stage.discord.world(|world| world.direct(p.boris));
    p.post(direct, p.boris, "four");
    p.seen().await;
    bot.stop().await;
    let requests = p.stage.model.requests();
    let prompts: Vec<String> = requests[before..].iter().map(prompt).collect();
    let asked = |word: &&str| prompts.iter().any(|prompt| prompt.ends_with(word));
    ["one", "two", "three", "four"]
        .into_iter()
        .filter(asked)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_messages_can_be_switched_off() {
    check(&[("DENIED", "direct")], &["mention"], |p| {
        let direct = p.stage.discord.world(|world| world.direct(p.ada));
        p.post(direct, p.ada, "why?");
        p.post(p.channel, p.ada, p.to_us("why?"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_content_intent_mentions_work_and_it_says_so_once() {
    let (p, other) = place_with(&[("DISCORD_MESSAGE_CONTENT", "off")], |world, seeds| {
        world.channel(seeds.guild, ChannelKind::Text, "other")
    })
    .await;
    let bot = p.start().await;
    let own = ours(&p, "It is so.");
    for _ in 0..2 {
        let reply = Draft::new("why?").reply_to(own).without_ping();
        p.post(p.channel, p.ada, reply);
    }
    let note = p.answer(p.channel, 2).await;
    assert!(
        note.starts_with("-# I only see messages that mention me"),
        "{note}"
    );
    p.post(p.channel, p.ada, p.to_us("why is it so?"));
    assert_eq!(p.answer(p.channel, 3).await, "ok");
    assert!(p.prompt(1).await.ends_with("why is it so?"));
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    p.post(direct, p.ada, "and in here?");
    assert_eq!(p.answer(direct, 1).await, "ok");
    // Discord hides the text of other messages: telemetry says why the block is empty.
    p.post(other, p.boris, "the pump leaks");
    p.post(other, p.ada, p.to_us(""));
    p.answer(other, 1).await;
    assert_eq!(p.stage.discord.answers(p.channel).len(), 3, "said once");
    let lines = bot.stop().await;
    let fallbacks = details(&lines, "collect_fallback");
    assert!(
        fallbacks.iter().any(|one| one["reason"] == "no_content"),
        "{fallbacks:?}"
    );
    assert_eq!(details(&lines, "refused")[0]["reason"], "no_content");
}

/// Discord sends our ephemeral and loading messages without a server id: they are not
/// taken for direct messages, and no block shows them.
#[tokio::test(flavor = "multi_thread")]
async fn our_own_ephemeral_messages_enter_nothing() {
    let (p, thread) = place_with(&[], |world, seeds| seeds.thread(world, "pump")).await;
    let bot = p.start().await;
    let call = p
        .stage
        .discord
        .interact(thread, p.ada, &Use::slash("nonsense", &[]));
    let told = p
        .stage
        .discord
        .wait_interaction(call, |_| true)
        .await
        .unwrap();
    assert_eq!(
        told.content,
        "-# That command is gone. Type / for the current ones."
    );
    assert_eq!(told.flags & 64, 64, "only the caller sees it");
    p.post(thread, p.ada, p.to_us("why?"));
    p.answer(thread, 1).await;
    let prompt = p.prompt(1).await;
    assert!(!prompt.contains("That command is gone"), "{prompt}");
    let lines = bot.stop().await;
    assert_eq!(causes(&lines), ["mention"]);
}

/// Discord's reference does not promise `channel_type`.
#[tokio::test(flavor = "multi_thread")]
async fn a_direct_message_without_a_channel_type_costs_one_look() {
    let p = place(&[]).await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    let bot = p.start().await;
    let send = |id: &str, channel: Id| {
        let event = json!({
            "id": id, "channel_id": channel.to_string(), "type": 0, "content": "why?",
            "author": {"id": p.ada.to_string(), "username": "ada"},
            "timestamp": "2026-01-01T00:00:00Z",
        });
        let discord = &p.stage.discord;
        discord.dispatch_raw("MESSAGE_CREATE", &event.to_string());
    };
    send("1600000000000000001", direct);
    p.answer(direct, 1).await;
    send("1600000000000000002", p.channel);
    send("1600000000000000003", direct);
    p.answer(direct, 2).await;
    assert_eq!(p.gets(), 1, "a server's channels are known");
    assert_eq!(causes(&bot.stop().await), ["direct", "direct"]);
}
