//! Images beside the question: which ones are fetched, and what of them models get.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use clew_simulator::{ChannelKind, Draft, Fault, FaultKind, File, Id, OverwriteOf, Permissions};
use serde_json::{Value, json};

use super::{Place, only, place, place_with};
use crate::support::bot::details;
use crate::support::model::Behaviour;

const NO_IMAGES: &str = "fake is not a multimodal model";

/// A file of 100 bytes that begins like an image and continues with its name.
fn gif(name: &str) -> File {
    let mut bytes = format!("GIF89a {name} ").into_bytes();
    bytes.resize(100, 7);
    File {
        name: name.to_owned(),
        content_type: "image/gif".to_owned(),
        bytes,
        description: None,
    }
}

fn with_gif(text: &str, name: &str) -> Draft {
    Draft::new(text).attachment(gif(name))
}

/// The parts of a request's only message that has some: its text, then its images.
fn parts(request: &Value) -> (String, Vec<String>) {
    let messages = request["messages"].as_array().unwrap().iter();
    let mut parts = messages.filter_map(|message| message["content"].as_array());
    let Some(with_images) = parts.next() else {
        return (String::new(), Vec::new());
    };
    assert!(parts.next().is_none(), "{request}");
    assert_eq!(with_images[0]["type"], "text");
    let text = with_images[0]["text"].as_str().unwrap().to_owned();
    let urls = with_images[1..].iter().map(|part| {
        assert_eq!(part["type"], "image_url");
        part["image_url"]["url"].as_str().unwrap().to_owned()
    });
    (text, urls.collect())
}

/// As a request shows these images.
fn urls(names: &[&str]) -> Vec<String> {
    let url = |name: &&str| {
        let bytes = gif(name).bytes;
        format!(
            "data:image/gif;base64,{}",
            Base64Display::new(&bytes, &STANDARD)
        )
    };
    names.iter().map(url).collect()
}

impl Place {
    /// Ada asks, and is answered.
    async fn asks(&self, channel: Id, draft: impl Into<Draft>) -> String {
        let answers = self.stage.discord.answers(channel).len();
        self.post(channel, self.ada, draft);
        let answer = self.answer(channel, answers + 1).await;
        self.seen().await;
        answer
    }

    /// The images of each request to the model so far.
    fn images(&self) -> Vec<Vec<String>> {
        let requests = self.stage.model.requests();
        requests.iter().map(|one| parts(one).1).collect()
    }

    fn fetched(&self) -> usize {
        self.stage.discord.requests_to("GET", "/attachments/").len()
    }
}

fn fallbacks(lines: &[Value]) -> Vec<String> {
    let fallbacks = details(lines, "collect_fallback").into_iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let words = fallbacks.map(|one| format!("{}:{}", word(&one["stage"]), word(&one["reason"])));
    words.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_image_of_a_question_is_sent_as_its_bytes() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.asks(p.channel, with_gif(&p.to_us("what is this?"), "le\"ak.gif"))
        .await;
    assert_eq!(p.asks(p.channel, p.to_us("and why?")).await, "ok");
    assert_eq!(p.fetched(), 1);
    assert_eq!(p.images(), [urls(&["le\"ak.gif"]), Vec::new()]);
    let requests = p.stage.model.requests();
    let (text, _) = parts(&requests[0]);
    let (question, lines) = text.split_once("\n\n[").unwrap();
    assert!(question.contains("what is this?"), "{question}");
    assert!(
        question.contains("[file: le\"ak.gif (image/gif, 100 bytes)]"),
        "{question}"
    );
    let (nonce, lines) = lines.split_once("] ").unwrap();
    let expected = format!(
        "The images beside this text, in order:\n<images {nonce}>\n\
         1: \"le'ak.gif\" of Ada's question\n</images {nonce}>"
    );
    assert_eq!(lines, expected);
    // What is stored has no trace of it.
    let later = requests[1].to_string();
    assert!(
        later.contains("what is this?") && !later.contains("base64"),
        "{later}"
    );
    let lines = bot.stop().await;
    let sent = details(&lines, "request_ok");
    let sent: Vec<_> = sent
        .iter()
        .map(|one| (&one["images"], &one["image_bytes"]))
        .collect();
    assert_eq!(sent, [(&json!(1), &json!(100)), (&json!(0), &json!(0))]);
    assert_eq!(details(&lines, "collect_ok")[0]["fetches"], 1);
    let told = serde_json::to_string(&lines).unwrap();
    assert!(
        !told.contains("R0lGOD") && !told.contains("ak.gif"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_and_what_it_points_at_come_first_then_the_newest() {
    let (p, (thread, first)) = place_with(&[], |world, seeds| {
        let thread = seeds.thread(world, "leaks");
        let first = world.seed(thread, seeds.boris, with_gif("one", "1.gif"));
        for number in 2..=5 {
            let draft = with_gif("one more", &format!("{number}.gif"));
            world.seed(thread, seeds.boris, draft);
        }
        (thread, first)
    })
    .await;
    let bot = p.start().await;
    let question = with_gif(&p.to_us("which?"), "q.gif");
    let question = question.attachment(gif("r.gif")).reply_to(first);
    p.asks(thread, question).await;
    let names = ["q.gif", "r.gif", "1.gif", "5.gif"];
    assert_eq!(p.images(), [urls(&names)]);
    assert_eq!(p.fetched(), 4);
    let (text, _) = parts(&p.stage.model.requests()[0]);
    let whose: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(".gif\" of "))
        .collect();
    assert!(
        whose[1].ends_with("2: \"r.gif\" of Ada's question"),
        "{whose:?}"
    );
    assert!(
        whose[2].starts_with("3: \"1.gif\" of Boris's message of 20"),
        "{whose:?}"
    );
    bot.stop().await;
}

/// A bare mention adopts the message that it points at, with its image.
#[tokio::test(flavor = "multi_thread")]
async fn the_image_of_a_message_that_is_pointed_at_is_sent() {
    let (p, shown) = place_with(&[], |world, seeds| {
        world.seed(seeds.channel, seeds.boris, with_gif("what is it?", "b.gif"))
    })
    .await;
    let bot = p.start().await;
    p.asks(p.channel, Draft::new(p.to_us("")).reply_to(shown))
        .await;
    assert_eq!(p.images(), [urls(&["b.gif"])]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_or_no_image_stays_a_name() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let large = File {
        bytes: vec![7; 4_000_001],
        ..gif("large.gif")
    };
    p.asks(p.channel, Draft::new(p.to_us("1?")).attachment(large))
        .await;
    assert_eq!(p.fetched(), 0, "its size says enough");
    // More comes than the message said.
    let more = FaultKind::Body(format!("GIF89a {}", "x".repeat(5_000_000)));
    p.stage
        .discord
        .fault(Fault::new("GET", "/attachments/", more).once());
    p.asks(p.channel, with_gif(&p.to_us("2?"), "grown.gif"))
        .await;
    assert_eq!(p.fetched(), 1);
    let text = File {
        bytes: b"<svg/>".to_vec(),
        ..gif("text.png")
    };
    p.asks(p.channel, Draft::new(p.to_us("3?")).attachment(text))
        .await;
    // Neither its name nor the message say what this one is.
    let renamed = File {
        content_type: "image/png".to_owned(),
        ..gif("really.gif")
    };
    p.asks(p.channel, Draft::new(p.to_us("4?")).attachment(renamed))
        .await;
    assert_eq!(p.images()[..3], [const { Vec::<String>::new() }; 3]);
    assert_eq!(p.images()[3], urls(&["really.gif"]));
    let named = p.stage.model.requests()[1].to_string();
    assert!(
        named.contains("[file: grown.gif (image/gif, 100 bytes)]"),
        "{named}"
    );
    let lines = bot.stop().await;
    assert_eq!(fallbacks(&lines), ["image:malformed", "image:malformed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_other_hosts_are_not_fetched() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let address = elsewhere.local_addr().unwrap();
    p.stage.discord.world(|world| {
        world.settings.cdn_base = Some(format!("http://{address}"));
    });
    assert_eq!(
        p.asks(p.channel, with_gif(&p.to_us("?"), "a.gif")).await,
        "ok"
    );
    assert_eq!(
        elsewhere.accept().unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    assert_eq!(p.images(), [Vec::<String>::new()]);
    assert_eq!(fallbacks(&bot.stop().await), ["image:forbidden"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_refuses_images_is_asked_without_them_and_that_is_remembered() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.stage.model.script(Behaviour::status(400, NO_IMAGES));
    assert_eq!(
        p.asks(p.channel, with_gif(&p.to_us("1?"), "a.gif")).await,
        "ok"
    );
    assert_eq!(p.images(), [urls(&["a.gif"]), Vec::new()]);
    assert_eq!(
        p.asks(p.channel, with_gif(&p.to_us("2?"), "b.gif")).await,
        "ok"
    );
    assert_eq!(p.images().len(), 3, "one request");
    assert_eq!(
        (p.images()[2].len(), p.fetched()),
        (0, 1),
        "nothing is fetched"
    );
    let lines = bot.stop().await;
    let refused = only(&lines, "request_failed");
    assert_eq!(
        (
            &refused["reason"],
            &refused["will_retry"],
            &refused["attempt"]
        ),
        (&json!("images_refused"), &json!(true), &json!(1))
    );
    let sent = details(&lines, "request_ok");
    assert_eq!(
        (&sent[0]["images"], &sent[0]["attempt"]),
        (&json!(0), &json!(2))
    );
}

/// Whoever posts an image that nobody can read takes images from nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn one_bad_image_says_nothing_of_a_model_that_took_others() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.asks(p.channel, with_gif(&p.to_us("1?"), "a.gif")).await;
    p.stage.model.script(Behaviour::status(400, NO_IMAGES));
    assert_eq!(
        p.asks(p.channel, with_gif(&p.to_us("2?"), "b.gif")).await,
        "ok"
    );
    p.asks(p.channel, with_gif(&p.to_us("3?"), "c.gif")).await;
    let expected = [
        urls(&["a.gif"]),
        urls(&["b.gif"]),
        Vec::new(),
        urls(&["c.gif"]),
    ];
    assert_eq!(p.images(), expected);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_vision_off_nothing_is_fetched_and_with_on_a_refusal_is_an_error() {
    let p = place(&[("LLM_VISION", "off")]).await;
    let bot = p.start().await;
    assert_eq!(
        p.asks(p.channel, with_gif(&p.to_us("1?"), "a.gif")).await,
        "ok"
    );
    assert_eq!((p.fetched(), &p.images()[0]), (0, &Vec::new()));
    bot.stop().await;
    let bot = p.stage.start_with(&[("LLM_VISION", "on")]).await;
    p.stage.model.script(Behaviour::status(400, NO_IMAGES));
    let line = p.asks(p.channel, with_gif(&p.to_us("2?"), "b.gif")).await;
    assert!(
        line.starts_with("-# The model can't read these images"),
        "{line}"
    );
    p.asks(p.channel, with_gif(&p.to_us("3?"), "c.gif")).await;
    assert_eq!(p.images()[1..], [urls(&["b.gif"]), urls(&["c.gif"])]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_who_opted_out_are_neither_fetched_nor_sent() {
    let (p, (thread, theirs)) = place_with(&[], |world, seeds| {
        let thread = seeds.thread(world, "leaks");
        let theirs = world.seed(thread, seeds.boris, with_gif("mine", "boris.gif"));
        world.seed(thread, seeds.ada, with_gif("mine, too", "ada.gif"));
        (thread, theirs)
    })
    .await;
    let bot = p.start().await;
    p.opts_out(p.boris).await;
    let forward = Draft::new("").forward_of(thread, theirs);
    p.post(thread, p.ada, forward);
    p.asks(thread, Draft::new(p.to_us("what?")).reply_to(theirs))
        .await;
    assert_eq!(p.images(), [urls(&["ada.gif"])]);
    assert_eq!(p.fetched(), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_behind_a_closed_link_are_not_fetched() {
    let (p, links) = place_with(&[], |world, seeds| {
        let mut link = |name: &str, denied: Permissions| {
            let channel = world.channel(seeds.guild, ChannelKind::Text, name);
            world.deny_everyone(channel, denied);
            let ours = OverwriteOf::Member(world.bot);
            world.overwrite(channel, ours, Permissions::VIEW_CHANNEL, Permissions::NONE);
            let file = format!("{name}.gif");
            let message = world.seed(channel, seeds.boris, with_gif("look", &file));
            format!(
                "https://discord.com/channels/{}/{channel}/{message}",
                seeds.guild
            )
        };
        let closed = link("staff", Permissions::VIEW_CHANNEL);
        format!("{closed} {}", link("news", Permissions::NONE))
    })
    .await;
    let bot = p.start().await;
    p.asks(p.channel, p.to_us(&format!("what? {links}"))).await;
    assert_eq!(p.images(), [urls(&["news.gif"])]);
    assert_eq!(p.fetched(), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_edit_and_a_tools_call_the_image_is_there_again() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (behaviour, gate) = Behaviour::gated(&["It is\n", "a cat."]);
    p.stage.model.script(behaviour);
    let search = [("search_messages", r#"{"query": "cat"}"#)];
    p.stage.model.script(Behaviour::calls("", &search));
    let trigger = p.post(p.channel, p.ada, with_gif(&p.to_us("this?"), "a.gif"));
    gate.step(1);
    p.answer(p.channel, 1).await;
    p.stage
        .discord
        .edit(p.channel, trigger, &p.to_us("and this?"));
    p.wait_for(p.channel, "ok").await;
    let image = urls(&["a.gif"]);
    assert_eq!(p.images(), [image.clone(), image.clone(), image]);
    assert_eq!(p.fetched(), 2);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_does_not_come_costs_its_part_only() {
    let p = place(&[("MEM_FETCH_TIMEOUT_S", "0.5")]).await;
    let bot = p.start().await;
    let hang = FaultKind::Hang(Duration::from_mins(1));
    p.stage.discord.fault(Fault::new("GET", "/a.gif", hang));
    let question = with_gif(&p.to_us("?"), "a.gif").attachment(gif("b.gif"));
    assert_eq!(p.asks(p.channel, question).await, "ok");
    assert_eq!(p.images(), [urls(&["b.gif"])]);
    assert_eq!(fallbacks(&bot.stop().await), ["image:timeout"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_count_against_the_budget_and_take_the_room_that_words_leave() {
    let p = place(&[("MEM_MAX_FETCHES", "1")]).await;
    let bot = p.start().await;
    let question = |text: &str| with_gif(&p.to_us(text), "a.gif").attachment(gif("b.gif"));
    p.asks(p.channel, question("1?")).await;
    assert_eq!(p.images(), [urls(&["a.gif"])]);
    assert_eq!(fallbacks(&bot.stop().await), ["image:fetch_budget"]);
    let small = [
        ("LLM_CONTEXT_TOKENS", "2500"),
        ("LLM_MAX_OUTPUT_TOKENS", "500"),
    ];
    let bot = p.stage.start_with(&small).await;
    p.stage.discord.clear_requests();
    p.asks(p.channel, question("2?")).await;
    assert_eq!(
        (p.images()[1].len(), p.fetched()),
        (1, 1),
        "there is room for one"
    );
    bot.stop().await;
}

/// Images go before words, and what is learnt of the model's room is about words.
#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_too_long_with_images_is_asked_without_them() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.stage.model.script(Behaviour::status(413, ""));
    assert_eq!(
        p.asks(p.channel, with_gif(&p.to_us("1?"), "a.gif")).await,
        "ok"
    );
    p.asks(p.channel, with_gif(&p.to_us("2?"), "b.gif")).await;
    assert_eq!(p.images(), [urls(&["a.gif"]), Vec::new(), urls(&["b.gif"])]);
    bot.stop().await;
}
