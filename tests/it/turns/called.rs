//! `/ask` and "Ask about this message".

use clew_simulator::{Choice, Draft, Fault, File, OverwriteOf, Permissions, Use, World};

use super::{assert_in_order, only, place, place_with};
use crate::support::bot::details;
use crate::support::model::Behaviour;

const ASK_ABOUT: &str = "Ask about this message";

fn ask(question: &str) -> Use {
    Use::slash("ask", &[("question", question)])
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_registered_once() {
    let p = place(&[]).await;
    let bot = p.start().await;
    assert!(!p.stage.discord.commands().is_empty());
    bot.stop().await;
    let bot = p.stage.start().await;
    // A turn: by its end the start is long over.
    p.post(p.channel, p.ada, p.to_us("hello"));
    p.answer(p.channel, 1).await;
    assert_eq!(p.stage.discord.requests_to("PUT", "/commands").len(), 0);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_is_deferred_and_answered_by_an_edit_with_the_threads_context() {
    let (p, thread) = place_with(&[("DISCORD_MESSAGE_CONTENT", "off")], |world, seeds| {
        let start = world.seed(seeds.channel, seeds.ada, "the pump leaks");
        let thread = world.thread_from(seeds.channel, start, "pump", seeds.ada);
        world.seed(thread, seeds.boris, "only at night");
        thread
    })
    .await;
    let bot = p.start().await;
    let call = p
        .stage
        .discord
        .interact(thread, p.ada, &ask("what is it about?"));
    let fits = |message: &clew_simulator::Message| message.content == "ok";
    let answer = p.stage.discord.wait_interaction(call, fits).await.unwrap();
    assert_eq!(
        answer.reference, None,
        "a command's answer replies to nothing"
    );
    let callback = p.stage.discord.interaction(call).unwrap().callback.unwrap();
    assert_eq!(callback["type"], 5, "{callback}");
    assert_eq!(p.stage.discord.requests_to("POST", "/typing").len(), 0);
    let prompt = p.prompt(1).await;
    assert_in_order(
        &prompt,
        &[
            "Thread \"pump\" in #help",
            " asks you:",
            "what is it about?",
        ],
    );
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "trigger")["cause"], "ask");
    assert_eq!(only(&lines, "sent")["reply"], false);
}

/// It takes some ten seconds: the edit of what says "thinking" may be repeated.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_command_waits_out_an_outage() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let path = "/webhooks/*/*/messages/@original";
    let outage = Fault::status("PATCH", path, 503, 0, "no").times(9);
    p.stage.discord.fault(outage);
    let call = p
        .stage
        .discord
        .interact(p.channel, p.ada, &ask("what is it about?"));
    let fits = |message: &clew_simulator::Message| message.content == "ok";
    p.stage.discord.wait_interaction(call, fits).await.unwrap();
    bot.stop().await;
}

/// The answer to a command begins as a loading message without text; its edit must
/// reach the window.
#[tokio::test(flavor = "multi_thread")]
async fn a_commands_answer_is_part_of_the_conversation() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let thread = seeds.thread(world, "pump");
        world.seed(thread, seeds.ada, "the pump leaks");
        thread
    })
    .await;
    let bot = p.start().await;
    p.stage.model.script(Behaviour::text(&["Seal it."]));
    p.post(thread, p.ada, p.to_us("hm?"));
    p.answer(thread, 1).await;
    p.stage.model.script(Behaviour::text(&["Use tape."]));
    p.stage
        .discord
        .interact(thread, p.boris, &ask("with what?"));
    p.stage
        .discord
        .wait_for_message(thread, |message| message.content == "Use tape.")
        .await
        .unwrap();
    p.seen().await;
    p.stage.discord.clear_requests();
    p.post(thread, p.ada, p.to_us("which one?"));
    p.answer(thread, 3).await;
    assert_in_order(&p.prompt(3).await, &["Seal it.", "Use tape.", "which one?"]);
    assert_eq!(p.gets(), 0, "warm");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_answers_to_commands_follow_up() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let long = "All work and no play. ".repeat(200);
    p.stage.model.script(Behaviour::text(&[&long]));
    let call = p
        .stage
        .discord
        .interact(p.channel, p.ada, &ask("tell me all"));
    p.stage
        .discord
        .wait_request("POST", "/webhooks/", 2)
        .await
        .unwrap();
    let lines = bot.stop().await;
    let answers = p.stage.discord.interaction_answers(call);
    assert_eq!(answers.len(), 3);
    let words: usize = answers
        .iter()
        .map(|answer| answer.content.split_whitespace().count())
        .sum();
    assert_eq!(words, long.split_whitespace().count());
    assert_eq!(only(&lines, "sent")["messages"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_works_in_channels_and_direct_messages() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    for (count, channel) in [p.channel, direct].into_iter().enumerate() {
        let call = p.stage.discord.interact(channel, p.ada, &ask("why?"));
        let fits = |message: &clew_simulator::Message| message.content == "ok";
        p.stage.discord.wait_interaction(call, fits).await.unwrap();
        assert!(p.prompt(count + 1).await.ends_with(" asks you:\nwhy?"));
    }
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_command_shows_its_message_even_without_message_content() {
    let (p, (thread, about)) = place_with(&[("DISCORD_MESSAGE_CONTENT", "off")], |world, seeds| {
        let thread = seeds.thread(world, "pump");
        world.seed(thread, seeds.ada, "before");
        (thread, world.seed(thread, seeds.boris, "is 3 bar normal?"))
    })
    .await;
    let bot = p.start().await;
    for channel in [thread, p.channel] {
        let about = if channel == thread {
            about
        } else {
            p.post(channel, p.boris, "is 3 bar normal?")
        };
        let call = p
            .stage
            .discord
            .interact(channel, p.ada, &Use::on_message(ASK_ABOUT, about));
        let fits = |message: &clew_simulator::Message| message.content == "ok";
        p.stage.discord.wait_interaction(call, fits).await.unwrap();
        let requests = p.stage.model.requests().len();
        assert_in_order(
            &p.prompt(requests).await,
            &[
                "Boris",
                "is 3 bar normal?",
                "points at the message",
                "Boris's text, not Ada's",
            ],
        );
    }
    let lines = bot.stop().await;
    assert!(
        details(&lines, "trigger")
            .iter()
            .all(|one| one["cause"] == "ask_about")
    );
}

/// A server that the bot is not in: the caller has installed it for themselves.
#[tokio::test(flavor = "multi_thread")]
async fn elsewhere_is_refused_in_one_line_that_only_the_caller_sees() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let call = p.stage.discord.interact(p.channel, p.ada, &ask("why?"));
    let fits = |message: &clew_simulator::Message| message.content == "ok";
    p.stage.discord.wait_interaction(call, fits).await.unwrap();
    let known = p.stage.discord.interaction(call).unwrap();
    let (id, token) = (p.stage.discord.world(World::fresh_id), "elsewhere");
    let data = serde_json::json!({
        "id": id.to_string(), "application_id": p.us.to_string(), "type": 2, "token": token,
        "version": 1, "channel_id": known.channel.to_string(), "context": 2,
        "channel": {"id": known.channel.to_string(), "type": 3},
        "authorizing_integration_owners": {"1": p.ada.to_string()},
        "user": {"id": p.ada.to_string(), "username": "Ada", "discriminator": "0", "avatar": null},
        "data": {"id": "1", "name": "ask", "type": 1,
                 "options": [{"name": "question", "type": 3, "value": "why?"}]},
    });
    p.stage
        .discord
        .dispatch_raw("INTERACTION_CREATE", &data.to_string());
    let path = format!("/interactions/{id}/{token}/callback");
    let calls = p
        .stage
        .discord
        .wait_request("POST", &path, 1)
        .await
        .unwrap();
    let body = &calls[0].body;
    assert_eq!(
        (&body["type"], &body["data"]["flags"]),
        (&4.into(), &64.into())
    );
    let line = body["data"]["content"].as_str().unwrap();
    assert!(line.starts_with("-# ") && !line.contains('\n'), "{line}");
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "refused")["reason"], "context");
    assert_eq!(p.stage.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_hold_for_commands_too() {
    let p = place(&[("ALLOWED", "user:1")]).await;
    let bot = p.start().await;
    let call = p.stage.discord.interact(p.channel, p.ada, &ask("why?"));
    let told = p
        .stage
        .discord
        .wait_interaction(call, |_| true)
        .await
        .unwrap();
    assert!(
        told.content.starts_with("-# I may not answer you here"),
        "{}",
        told.content
    );
    assert_eq!(told.flags & 64, 64);
    assert_eq!(only(&bot.stop().await, "refused")["reason"], "not_allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_the_history_gets_only_what_the_trigger_carries() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let start = world.seed(seeds.channel, seeds.ada, "the secret is 7");
        let thread = world.thread_from(seeds.channel, start, "pump", seeds.ada);
        world.seed(thread, seeds.ada, "another secret");
        let boris = OverwriteOf::Member(seeds.boris);
        let history = Permissions::READ_MESSAGE_HISTORY;
        world.overwrite(seeds.channel, boris, Permissions::NONE, history);
        thread
    })
    .await;
    let bot = p.start().await;
    p.stage
        .discord
        .interact(thread, p.boris, &ask("what was said?"));
    let prompt = p.prompt(1).await;
    assert!(!prompt.contains("secret"), "{prompt}");
    p.answer(thread, 1).await;
    let shown = p.post(thread, p.ada, "come tomorrow");
    p.post(
        thread,
        p.boris,
        Draft::new(p.to_us("when?")).reply_to(shown),
    );
    let prompt = p.prompt(2).await;
    assert!(!prompt.contains("secret"), "{prompt}");
    assert_in_order(&prompt, &["come tomorrow", "when?"]);
    p.answer(thread, 2).await;
    assert_eq!(p.gets(), 0, "nothing is fetched for it either");
    let lines = bot.stop().await;
    let fallbacks = details(&lines, "collect_fallback");
    assert!(
        fallbacks
            .iter()
            .all(|one| one["stage"] == "asker" && one["reason"] == "forbidden")
    );
    assert_eq!(fallbacks.len(), 2);
}

/// A file that somebody uploads with `/ask`: here one of a message elsewhere.
async fn asked_about(settings: &[(&str, &str)], file: File) -> (String, usize) {
    let (p, file) = place_with(settings, |world, seeds| {
        let drawer = world.direct(seeds.boris);
        let holder = world.seed(drawer, seeds.boris, Draft::new("").attachment(file));
        world.message(drawer, holder).unwrap().attachments[0].id
    })
    .await;
    let bot = p.start().await;
    let used = Use::Slash {
        name: "ask".to_owned(),
        options: vec![
            Choice::text("question", "what is it?"),
            Choice::file("file", file),
        ],
    };
    let call = p.stage.discord.interact(p.channel, p.ada, &used);
    let fits = |message: &clew_simulator::Message| message.content == "ok";
    p.stage.discord.wait_interaction(call, fits).await.unwrap();
    let request = p.stage.model.requests()[0].to_string();
    let fetched = p.stage.discord.requests_to("GET", "/attachments/").len();
    bot.stop().await;
    (request, fetched)
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_takes_a_text_file_within_the_cap() {
    let file = || File::text("notes.txt", "the pump leaks");
    let (prompt, fetched) = asked_about(&[], file()).await;
    assert_in_order(
        &prompt,
        &[" asks you:", "what is it?", "notes.txt", "the pump leaks"],
    );
    assert_eq!(fetched, 1);
    let (prompt, fetched) = asked_about(&[("MEM_MAX_FILE_BYTES", "5")], file()).await;
    assert!(
        prompt.contains("notes.txt") && !prompt.contains("the pump"),
        "{prompt}"
    );
    assert_eq!(fetched, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_takes_an_image_for_models_that_do() {
    let image = || File {
        name: "a.gif".to_owned(),
        content_type: "image/gif".to_owned(),
        bytes: b"GIF89a and more".to_vec(),
        description: None,
    };
    for (vision, images) in [("on", 1), ("off", 0)] {
        let (request, fetched) = asked_about(&[("LLM_VISION", vision)], image()).await;
        assert!(request.contains("a.gif"), "{request}");
        assert_eq!(
            request.matches("data:image/gif;base64,").count(),
            images,
            "{vision}"
        );
        assert_eq!(fetched, images, "{vision}");
    }
}
