//! What the model gets in each scene, and what it costs.

use clew_simulator::{
    ChannelKind, Draft, File, Id, OverwriteOf, Permissions, Reference, Referenced,
};
use serde_json::json;

use super::{Place, Seeds, assert_in_order, only, place, place_with};
use crate::support::bot::details;

/// Asks in a channel and gives the prompt and the GETs it cost.
pub(super) async fn asked(p: &Place, channel: Id, draft: impl Into<Draft>) -> (String, usize) {
    let answers = p.stage.discord.answers(channel).len();
    p.stage.discord.clear_requests();
    p.post(channel, p.ada, draft);
    p.answer(channel, answers + 1).await;
    let number = p.stage.model.requests().len();
    // By then the gateway has delivered the answer, too.
    p.seen().await;
    (p.prompt(number).await, p.gets())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forum_post_shows_title_tags_and_its_first_message() {
    for kind in [ChannelKind::Forum, ChannelKind::Media] {
        let (p, post) = place_with(&[], |world, seeds| {
            let forum = world.channel(seeds.guild, kind, "questions");
            let tags = [world.tag(forum, "urgent"), world.tag(forum, "pumps")];
            world.tag(forum, "unused");
            let post = world.forum_post(forum, seeds.boris, "Pump leaks", &tags, "It drips.");
            for count in 0..130 {
                world.seed(post, seeds.ada, format!("reading {count}"));
            }
            post
        })
        .await;
        let bot = p.start().await;
        let (prompt, gets) = asked(&p, post, p.to_us("why?")).await;
        assert_in_order(
            &prompt,
            &[
                "Forum post \"Pump leaks\" in #questions · tags: urgent, pumps",
                "Boris [first message]: It drips.",
                "messages omitted",
                "reading 129",
                " asks you:\nwhy?",
            ],
        );
        assert_eq!(gets, 2);
        let (_, gets) = asked(&p, post, p.to_us("and now?")).await;
        assert_eq!(gets, 0, "warm");
        let lines = bot.stop().await;
        assert_eq!(details(&lines, "collect_fallback").len(), 0);
        assert_eq!(details(&lines, "collect_ok")[1]["source"], "window");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn starters_are_found_wherever_they_stand() {
    let (p, (announced, private, voice, loose)) = place_with(&[], |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Announcement, "news");
        let start = world.seed(news, seeds.boris, "We move in May.");
        let announced = world.thread_from(news, start, "the move", seeds.boris);
        world.seed(announced, seeds.boris, "To the new hall.");
        let kind = ChannelKind::PrivateThread;
        let private = world.thread(seeds.channel, kind, "salaries", seeds.boris);
        world.join_thread(private, world.bot);
        world.seed(private, seeds.boris, "First secret.");
        world.seed(private, seeds.boris, "Second secret.");
        let voice = world.channel(seeds.guild, ChannelKind::Voice, "Standup");
        world.seed(voice, seeds.boris, "link to the agenda");
        let loose = seeds.thread(world, "loose");
        for count in 0..130 {
            world.seed(loose, seeds.boris, format!("note {count}"));
        }
        (announced, private, voice, loose)
    })
    .await;
    let bot = p.start().await;
    let (prompt, gets) = asked(&p, announced, p.to_us("when?")).await;
    assert_in_order(
        &prompt,
        &[
            "\"the move\" in #news",
            " [first message]: We move in May.",
            "To the new hall.",
        ],
    );
    assert_eq!(gets, 2);
    let (prompt, gets) = asked(&p, private, p.to_us("how many?")).await;
    assert_in_order(
        &prompt,
        &[
            "\"salaries\"",
            " [first message]: First secret.",
            "Second secret.",
        ],
    );
    assert_eq!(gets, 1);
    let (prompt, gets) = asked(&p, voice, p.to_us("")).await;
    assert_in_order(&prompt, &["link to the agenda"]);
    assert_eq!(gets, 1);
    let (prompt, gets) = asked(&p, loose, p.to_us("first?")).await;
    assert_in_order(
        &prompt,
        &[" [first message]: note 0\n", "omitted", "note 129"],
    );
    assert_eq!(gets, 3, "page, anchor that is missing, first message");
    let (_, gets) = asked(&p, loose, p.to_us("again?")).await;
    assert_eq!(gets, 0, "what is missing is remembered");
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "collect_fallback").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_starter_is_said_to_be_deleted() {
    let (p, (post, thread)) = place_with(&[], |world, seeds| {
        let forum = world.channel(seeds.guild, ChannelKind::Forum, "questions");
        let post = world.forum_post(forum, seeds.boris, "Pump leaks", &[], "It drips.");
        world.seed(post, seeds.boris, "still there");
        world.seed_delete(post, post);
        let start = world.seed(seeds.channel, seeds.boris, "gone soon");
        let thread = world.thread_from(seeds.channel, start, "gone", seeds.boris);
        world.seed(thread, seeds.boris, "still here");
        world.seed_delete(seeds.channel, start);
        (post, thread)
    })
    .await;
    let bot = p.start().await;
    for channel in [post, thread] {
        let (prompt, _) = asked(&p, channel, p.to_us("what?")).await;
        assert_in_order(&prompt, &["(the first message was deleted)", "still "]);
        let (_, gets) = asked(&p, channel, p.to_us("what?")).await;
        assert_eq!(gets, 0, "asked for once");
    }
    let lines = bot.stop().await;
    let fallbacks = details(&lines, "collect_fallback");
    assert!(
        fallbacks
            .iter()
            .all(|one| one["reason"] == "deleted" && one["stage"] == "starter")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_starter_that_was_seen_deleted_is_not_asked_for() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let start = p.post(p.channel, p.boris, "gone soon");
    let discord = &p.stage.discord;
    let thread = discord.thread_from(p.channel, start, "gone", p.boris);
    p.post(thread, p.boris, "still here");
    discord.delete(p.channel, start);
    let (prompt, gets) = asked(&p, thread, p.to_us("what?")).await;
    assert_in_order(&prompt, &["(the first message was deleted)", "still here"]);
    assert!(!prompt.contains("gone soon"));
    assert_eq!(gets, 0);
    bot.stop().await;
}

/// In the channel nobody wrote, so that only what was fetched is known of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_starter_that_is_deleted_in_an_outage_is_not_shown_after_it() {
    let (p, (start, thread)) = place_with(&[], |world, seeds| {
        let start = world.seed(seeds.channel, seeds.boris, "gone soon");
        let thread = world.thread_from(seeds.channel, start, "gone", seeds.boris);
        world.seed(thread, seeds.boris, "still here");
        (start, thread)
    })
    .await;
    let bot = p.start().await;
    let discord = &p.stage.discord;
    let (prompt, _) = asked(&p, thread, p.to_us("what?")).await;
    assert!(prompt.contains("gone soon"), "{prompt}");
    discord.set_outage(p.guild, true);
    discord.world(|world| world.seed_delete(p.channel, start));
    discord.set_outage(p.guild, false);
    let (prompt, _) = asked(&p, thread, p.to_us("what?")).await;
    assert!(!prompt.contains("gone soon"), "{prompt}");
    bot.stop().await;
}

/// The cap by characters shortens messages without leaving any out.
#[tokio::test(flavor = "multi_thread")]
async fn shortened_messages_are_truncation() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let thread = seeds.thread(world, "long");
        for _ in 0..5 {
            world.seed(thread, seeds.boris, "valve ".repeat(330));
        }
        thread
    })
    .await;
    let bot = p.start().await;
    asked(&p, thread, p.to_us("well?")).await;
    let truncated = only(&bot.stop().await, "collect_truncated");
    let expected = json!({"reason": "chars", "kept": 5, "dropped": 0, "shortened": 5});
    assert_eq!(truncated, expected);
}

/// Everything a message can show.
#[tokio::test(flavor = "multi_thread")]
async fn parts_of_messages_are_text_in_the_prompt() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let other = world.channel(seeds.guild, ChannelKind::Text, "ops");
        let source = world.seed(other, seeds.boris, "pressure is at 3 bar");
        let thread = seeds.thread(world, "parts");
        let mut post = |draft: Draft| world.seed(thread, seeds.boris, draft);
        post(Draft::new("").forward_of(other, source));
        post(
            Draft::new("see").embed(json!({"title": "Manual", "description": "Turn it left.",
            "fields": [{"name": "Step 1", "value": "Open it."}]})),
        );
        post(
            Draft::new("").components(vec![json!({"type": 17, "components": [
            {"type": 10, "content": "Deployed **v2** to production"}]})]),
        );
        post(Draft::new("").sticker("Party parrot"));
        post(Draft::new("").poll("Which valve?", &["left one", "right one"]));
        post(Draft::new("photo").attachment(File {
            name: "leak.png".to_owned(),
            content_type: "image/png".to_owned(),
            bytes: vec![0; 2_048],
            description: Some("water on the floor".to_owned()),
        }));
        post(Draft::new(format!(
            "ask <@{}> in <#{}>: `a < b && c`",
            seeds.ada, seeds.channel
        )));
        thread
    })
    .await;
    let bot = p.start().await;
    let (prompt, _) = asked(&p, thread, p.to_us("well?")).await;
    assert_in_order(
        &prompt,
        &[
            "pressure is at 3 bar",
            "Manual",
            "Turn it left.",
            "Step 1",
            "Open it.",
            "Deployed **v2** to production",
            "Party parrot",
            "Which valve?",
            "right one",
            "leak.png",
            "water on the floor",
            "ask @Ada in #help: `a < b && c`",
        ],
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhooks_alert_is_shown_to_who_replies_to_it() {
    let (p, alert) = place_with(&[], |world, seeds| {
        let hook = world.fresh_id();
        let alert = Draft::new("").webhook("Alertmanager").embed(json!({
            "title": "PumpDown", "description": "pump 7 has stopped"}));
        world.seed(seeds.channel, hook, alert)
    })
    .await;
    let bot = p.start().await;
    let reply = Draft::new(p.to_us("what is this alert?")).reply_to(alert);
    let (prompt, gets) = asked(&p, p.channel, reply).await;
    assert_in_order(
        &prompt,
        &[
            "Alertmanager [app]",
            "PumpDown",
            "pump 7 has stopped",
            "what is this alert?",
        ],
    );
    assert_eq!(gets, 0);
    bot.stop().await;
}

/// Only from Discord's own host, which here is the simulator.
#[tokio::test(flavor = "multi_thread")]
async fn short_text_files_are_shown_inline() {
    let (p, thread) = place_with(&[("MEM_MAX_FILE_BYTES", "1000")], |world, seeds| {
        seeds.thread(world, "files")
    })
    .await;
    let bot = p.start().await;
    let log = File::text("pump.log", "ERROR: valve 3 stuck");
    let draft = Draft::new(p.to_us("why?")).attachment(log);
    let (prompt, _) = asked(&p, thread, draft).await;
    assert_in_order(&prompt, &["why?", "pump.log", "ERROR: valve 3 stuck"]);
    let long = File::text("long.log", &"x".repeat(2_000));
    let (prompt, _) = asked(&p, thread, Draft::new(p.to_us("this?")).attachment(long)).await;
    assert!(
        prompt.contains("long.log") && !prompt.contains("xxxx"),
        "{prompt}"
    );
    p.stage.discord.world(|world| {
        world.settings.cdn_base = Some("http://127.0.0.1:9".to_owned());
    });
    let file = File::text("elsewhere.log", "not fetched");
    let (prompt, _) = asked(&p, thread, Draft::new(p.to_us("and?")).attachment(file)).await;
    assert!(
        prompt.contains("elsewhere.log") && !prompt.contains("not fetched"),
        "{prompt}"
    );
    let lines = bot.stop().await;
    let fallback = only(&lines, "collect_fallback");
    assert_eq!(
        (&fallback["stage"], &fallback["reason"]),
        (&"file".into(), &"forbidden".into())
    );
}

/// Twenty links with twenty messages between each two.
fn chain(world: &mut clew_simulator::World, seeds: Seeds) -> Id {
    let mut last = None;
    for link in 0..20 {
        let author = if link % 2 == 0 {
            seeds.ada
        } else {
            seeds.boris
        };
        let draft = Draft::new(format!("link {link}."));
        let draft = match last {
            Some(last) => draft.reply_to(last),
            None => draft,
        };
        last = Some(world.seed(seeds.channel, author, draft));
        for chatter in 0..20 {
            world.seed(
                seeds.channel,
                seeds.boris,
                format!("chatter {link}/{chatter}"),
            );
        }
    }
    last.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_twenty_among_four_hundred_costs_few_calls() {
    let (p, last) = place_with(&[], chain).await;
    let bot = p.start().await;
    let reply = || Draft::new(p.to_us("so?")).reply_to(last);
    let (prompt, gets) = asked(&p, p.channel, reply()).await;
    let links: Vec<String> = (0..20).map(|link| format!("link {link}.")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    assert_in_order(&prompt, &links);
    assert!(!prompt.contains("chatter"), "{prompt}");
    assert!(gets <= 6, "{gets}");
    let (prompt, gets) = asked(&p, p.channel, reply()).await;
    assert_in_order(&prompt, &links);
    assert_eq!(gets, 0, "warm");
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "collect_ok")[0]["msgs"], 20);
}

/// `referenced_message` can be absent, null or another message.
#[tokio::test(flavor = "multi_thread")]
async fn references_are_trusted_only_as_far_as_they_go() {
    let p = place(&[]).await;
    let wanted = p.stage.discord.seed(p.channel, p.boris, "is 3 bar normal?");
    let other = p.stage.discord.seed(p.channel, p.boris, "unrelated");
    let bot = p.start().await;
    let reply = |referenced| {
        let draft = Draft::new(p.to_us("is it?")).reply_to(wanted);
        draft.referenced(referenced)
    };
    let (prompt, gets) = asked(&p, p.channel, reply(Referenced::Null)).await;
    assert_in_order(&prompt, &["(the message pointed at was deleted)", "is it?"]);
    assert_eq!(gets, 0);
    for referenced in [Referenced::Other(other), Referenced::Absent] {
        let (prompt, gets) = asked(&p, p.channel, reply(referenced)).await;
        assert_in_order(&prompt, &["is 3 bar normal?", "is it?"]);
        assert!(!prompt.contains("unrelated"), "{prompt}");
        assert!(gets <= 1, "{gets}");
    }
    bot.stop().await;
}

/// The reference of a pin notice is not followed.
#[tokio::test(flavor = "multi_thread")]
async fn system_references_are_no_chain() {
    let p = place(&[]).await;
    let pinned = p.stage.discord.seed(p.channel, p.boris, "pinned text");
    let reference = Reference {
        kind: 0,
        channel: p.channel,
        message: Some(pinned),
    };
    let notice = Draft::system(6).reference(reference);
    let notice = p.stage.discord.seed(p.channel, p.boris, notice);
    let bot = p.start().await;
    let reply = Draft::new(p.to_us("what was it?")).reply_to(notice);
    let (prompt, _) = asked(&p, p.channel, reply).await;
    assert!(!prompt.contains("pinned text"), "{prompt}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_opened_while_connected_costs_nothing() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let start = p.post(p.channel, p.boris, "the pump leaks");
    let thread = p
        .stage
        .discord
        .thread_from(p.channel, start, "pump", p.boris);
    p.post(thread, p.boris, "since Monday");
    let (prompt, gets) = asked(&p, thread, p.to_us("since when?")).await;
    assert_in_order(
        &prompt,
        &[
            "Thread \"pump\" in #help",
            " [first message]: the pump leaks",
            "since Monday",
        ],
    );
    assert_eq!(gets, 0);
    let forum = p
        .stage
        .discord
        .channel(p.guild, ChannelKind::Forum, "questions");
    let post = p
        .stage
        .discord
        .forum_post(forum, p.boris, "Valves", &[], "Which way round?");
    let (prompt, gets) = asked(&p, post, p.to_us("well?")).await;
    assert_in_order(
        &prompt,
        &[
            "Forum post \"Valves\"",
            " [first message]: Which way round?",
        ],
    );
    assert_eq!(gets, 0);
    bot.stop().await;
}

/// Messages written while we could not view the channel are fetched afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn loss_of_sight_breaks_the_window() {
    let (p, thread) = place_with(&[], |world, seeds| seeds.thread(world, "pump")).await;
    let bot = p.start().await;
    p.post(thread, p.boris, "before");
    asked(&p, thread, p.to_us("one?")).await;
    let own = OverwriteOf::Member(p.us);
    let view = Permissions::VIEW_CHANNEL;
    p.stage
        .discord
        .overwrite(p.channel, own, Permissions::NONE, view);
    p.post(thread, p.boris, "meanwhile");
    p.stage
        .discord
        .overwrite(p.channel, own, Permissions::NONE, Permissions::NONE);
    let (prompt, gets) = asked(&p, thread, p.to_us("two?")).await;
    assert_in_order(&prompt, &["before", "one?", "meanwhile"]);
    assert!(gets >= 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_thread_that_was_left_is_read_anew() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let kind = ChannelKind::PrivateThread;
        let thread = world.thread(seeds.channel, kind, "salaries", seeds.ada);
        world.join_thread(thread, world.bot);
        thread
    })
    .await;
    let bot = p.start().await;
    p.post(thread, p.ada, "before");
    asked(&p, thread, p.to_us("one?")).await;
    p.stage.discord.leave_thread(thread, p.us);
    p.post(thread, p.ada, "meanwhile");
    p.stage.discord.join_thread(thread, p.us);
    let (prompt, gets) = asked(&p, thread, p.to_us("two?")).await;
    assert_in_order(&prompt, &["before", "one?", "meanwhile"]);
    assert!(gets >= 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_begins_cold_and_misses_nothing() {
    let (p, thread) = place_with(&[], |world, seeds| seeds.thread(world, "pump")).await;
    let bot = p.start().await;
    p.post(thread, p.boris, "before");
    asked(&p, thread, p.to_us("one?")).await;
    bot.stop().await;
    p.post(thread, p.boris, "meanwhile");
    let bot = p.stage.start().await;
    let (prompt, gets) = asked(&p, thread, p.to_us("two?")).await;
    assert_in_order(&prompt, &["before", "one?", "ok", "meanwhile", "two?"]);
    assert!(gets >= 1);
    bot.stop().await;
}

/// Edits and deletions are seen, warm and cold.
#[tokio::test(flavor = "multi_thread")]
async fn the_block_shows_what_is_there_now() {
    let (p, thread) = place_with(&[], |world, seeds| seeds.thread(world, "pump")).await;
    let bot = p.start().await;
    let wrong = p.post(thread, p.boris, "3 bar");
    let secret = p.post(thread, p.boris, "the password is swordfish");
    asked(&p, thread, p.to_us("one?")).await;
    p.stage.discord.edit(thread, wrong, "4 bar");
    p.stage.discord.delete(thread, secret);
    let (prompt, gets) = asked(&p, thread, p.to_us("two?")).await;
    assert!(
        prompt.contains("4 bar") && !prompt.contains("3 bar"),
        "{prompt}"
    );
    assert!(!prompt.contains("swordfish"), "{prompt}");
    assert_eq!(gets, 0);
    bot.stop().await;
}

/// A thread full of other bots needs a second page.
#[tokio::test(flavor = "multi_thread")]
async fn bots_fill_a_page_and_people_are_found_behind_it() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let robot = world.other_bot("Robot");
        world.join(seeds.guild, robot);
        let thread = seeds.thread(world, "pump");
        for count in 0..30 {
            world.seed(thread, seeds.boris, format!("note {count}."));
        }
        for count in 0..110 {
            world.seed(thread, robot, format!("beep {count}"));
        }
        thread
    })
    .await;
    let bot = p.start().await;
    let (prompt, gets) = asked(&p, thread, p.to_us("what?")).await;
    assert_in_order(&prompt, &["note 0.", "note 29."]);
    assert!(!prompt.contains("beep"), "{prompt}");
    assert!(gets <= 3, "{gets}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_messages_hold_their_own_question_alone() {
    let p = place(&[]).await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    let bot = p.start().await;
    let (prompt, gets) = asked(&p, direct, "what is a pump?").await;
    assert!(prompt.ends_with(" asks you:\nwhat is a pump?"), "{prompt}");
    assert_eq!(gets, 0);
    let own = p.stage.discord.answers(direct)[0].id;
    let (prompt, _) = asked(&p, direct, Draft::new("and a valve?").reply_to(own)).await;
    assert_in_order(&prompt, &["what is a pump?", "[you]", "ok", "and a valve?"]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_without_the_right_to_read_history_still_answers() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let own = OverwriteOf::Member(world.bot);
        let history = Permissions::READ_MESSAGE_HISTORY;
        world.overwrite(seeds.channel, own, Permissions::NONE, history);
        let thread = seeds.thread(world, "pump");
        world.seed(thread, seeds.boris, "hidden");
        thread
    })
    .await;
    let bot = p.start().await;
    let (prompt, gets) = asked(&p, thread, p.to_us("well?")).await;
    assert!(
        !prompt.contains("hidden") && prompt.ends_with("well?"),
        "{prompt}"
    );
    assert_eq!(gets, 0, "Discord is not asked for what it would refuse");
    let lines = bot.stop().await;
    assert!(
        details(&lines, "collect_fallback")
            .iter()
            .all(|one| one["reason"] == "forbidden")
    );
    assert_eq!(only(&lines, "tail_fallback")["reason"], "forbidden");
}

/// Threads that are archived when the bot starts come in no list.
#[tokio::test(flavor = "multi_thread")]
async fn an_archived_thread_is_known_once_somebody_writes_in_it() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let start = world.seed(seeds.channel, seeds.boris, "the pump leaks");
        let thread = world.thread_from(seeds.channel, start, "old pump", seeds.boris);
        world.seed(thread, seeds.boris, "since Monday");
        world.set_archived(thread, true, false);
        thread
    })
    .await;
    let bot = p.start().await;
    let (prompt, gets) = asked(&p, thread, p.to_us("since when?")).await;
    let expected = ["\"old pump\" in #help", "the pump leaks", "since Monday"];
    assert_in_order(&prompt, &expected);
    assert!(gets <= 3, "{gets}");
    bot.stop().await;
}
