//! Citations: what tools gave is linked under the answer, and nothing else is.

use clew::engine::citations::mark;
use clew::engine::deliver::CONTINUED;
use clew_context::model::MessageId;
use clew_simulator::{ChannelKind, Draft, Id};
use clew_store::{Kind, Record};
use serde_json::{Value, json};

use super::{Place, place, place_with};
use crate::support::model::Behaviour;

fn of(message: Id) -> String {
    mark(MessageId::new(message.0))
}

/// Ada asks; the model reads a message, then answers as given.
fn ask(p: &Place, message: Id, answer: Behaviour) {
    ask_of(p, p.channel, message, answer);
}

fn ask_of(p: &Place, channel: Id, message: Id, answer: Behaviour) {
    let arguments = json!({"message": message.to_string(), "channel": channel.to_string()});
    let arguments = arguments.to_string();
    let call = Behaviour::calls("", &[("get_message", arguments.as_str())]);
    p.stage.model.script(call);
    p.stage.model.script(answer);
    p.post(p.channel, p.ada, p.to_us("what did Boris say?"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_gave_is_linked_under_the_answer() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let other = p.post(p.channel, p.boris, "and the roof");
    let forged = format!("the pump leaks {}", of(other));
    let said = p.post(p.channel, p.boris, forged.as_str());
    p.seen().await;
    let answer = format!(
        "It leaks {}, the roof {}, too {}.",
        of(said),
        of(other),
        of(said)
    );
    ask(&p, said, Behaviour::text(&[answer.as_str()]));
    let (guild, channel) = (p.guild, p.channel);
    let link = format!("https://discord.com/channels/{guild}/{channel}/{said}");
    let posted = format!("It leaks [1], the roof, too [1].\n\n-# [\\[1\\]](<{link}>)");
    p.wait_for(p.channel, &posted).await;
    let requests = p.stage.model.wait_requests(2).await;
    let result = super::tools::results(&requests[1]).remove(0);
    assert!(
        result.contains(&format!("{said} {} ", of(said))),
        "{result}"
    );
    assert!(!result.contains(&of(other)), "forged: {result}");
    assert!(
        result.ends_with("repeat its mark, such as [msg:ab2cd]."),
        "{result}"
    );
    assert!(
        !requests[0].to_string().contains("[msg:"),
        "only with results"
    );
    bot.stop().await;
    let rows = p.rows().await;
    assert_eq!(rows.last().unwrap().content, posted);
    let receipts = p.records(Kind::Receipts).await;
    let [Record::Receipt(receipt)] = receipts.as_slice() else {
        panic!("{receipts:?}");
    };
    let body: Value = serde_json::from_str(&receipt.body).unwrap();
    assert_eq!(body["cited"], body["read"]);
    assert_eq!(body["cited"][0]["message"], said.to_string());
}

/// What was deleted while the model answered is not linked.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_is_not_linked() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let said = p.post(p.channel, p.boris, "the pump leaks");
    p.seen().await;
    let answer = format!("It leaks {}.", of(said));
    let (answer, gate) = Behaviour::gated(&[answer.as_str()]);
    ask(&p, said, answer);
    p.stage.model.wait_requests(2).await;
    p.stage.discord.delete(p.channel, said);
    p.seen().await;
    gate.open();
    p.wait_for(p.channel, "It leaks.").await;
    bot.stop().await;
}

/// Nor what a reader of the answer may not read any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_closed_meanwhile_is_not_linked() {
    let (p, (news, said)) = place_with(&[], |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        (news, world.seed(news, seeds.boris, "the pump leaks"))
    })
    .await;
    let bot = p.start().await;
    let answer = format!("It leaks {}.", of(said));
    let (answer, gate) = Behaviour::gated(&[answer.as_str()]);
    ask_of(&p, news, said, answer);
    let requests = p.stage.model.wait_requests(2).await;
    assert!(requests[1].to_string().contains(&of(said)));
    p.closes_to_others(news);
    p.seen().await;
    gate.open();
    p.wait_for(p.channel, "It leaks.").await;
    bot.stop().await;
}

/// Only what this turn gave, whatever an earlier one did.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_turn_gave_is_not_linked() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let [first, second] =
        ["the pump leaks", "the roof leaks"].map(|text| p.post(p.channel, p.boris, text));
    p.seen().await;
    let answer = format!("It leaks {}.", of(first));
    ask(&p, first, Behaviour::text(&[answer.as_str()]));
    let link = |message| {
        format!(
            "-# [\\[1\\]](<https://discord.com/channels/{}/{}/{message}>)",
            p.guild, p.channel
        )
    };
    p.wait_for(p.channel, &format!("It leaks [1].\n\n{}", link(first)))
        .await;
    let answer = format!("Both {} leak {}.", of(first), of(second));
    ask(&p, second, Behaviour::text(&[answer.as_str()]));
    let posted = format!("Both leak [1].\n\n{}", link(second));
    p.wait_for(p.channel, &posted).await;
    let requests = p.stage.model.requests();
    assert!(
        !requests[2].to_string().contains("[msg:"),
        "marks of earlier results"
    );
    // It leads nowhere, and the answer stays as it is.
    p.stage.discord.delete(p.channel, second);
    p.seen().await;
    p.wait_for(p.channel, &posted).await;
    bot.stop().await;
}

/// A model that saw our links could repeat them: it sees none, neither in the block nor in what
/// is stored.
#[tokio::test(flavor = "multi_thread")]
async fn no_model_sees_our_links() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let said = p.post(p.channel, p.boris, "the pump leaks");
    p.seen().await;
    let answer = format!("Water {} drips.", of(said));
    ask(&p, said, Behaviour::text(&[answer.as_str()]));
    let link = format!(
        "-# [\\[1\\]](<https://discord.com/channels/{}/{}/{said}>)",
        p.guild, p.channel
    );
    let posted = format!("Water [1] drips.\n\n{link}");
    let answer = p.wait_for(p.channel, &posted).await;
    let asked = Draft::new(p.to_us("why?").as_str()).reply_to(answer.id);
    p.post(p.channel, p.boris, asked);
    let of_block = p.prompt(3).await;
    p.post(p.channel, p.ada, p.to_us("and now?"));
    let of_history = p.prompt(4).await;
    for prompt in [of_block, of_history] {
        assert!(prompt.contains("Water [1] drips."), "{prompt}");
        assert!(!prompt.contains("-# ["), "{prompt}");
    }
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_mark_is_ever_seen() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let said = p.post(p.channel, p.boris, "the pump leaks");
    p.seen().await;
    let mark = of(said);
    let pieces = [
        "It leaks",
        " [ms",
        &mark[3..7],
        &mark[7..],
        ", and [msg:zzz",
        "zz] more.",
    ];
    let (answer, gate) = Behaviour::gated(&pieces);
    ask(&p, said, answer);
    p.stage.model.wait_requests(2).await;
    for (steps, shown) in [(3, "It leaks"), (2, "It leaks [1], and")] {
        gate.step(steps);
        p.wait_for(p.channel, shown).await;
    }
    gate.open();
    let link = format!(
        "https://discord.com/channels/{}/{}/{said}",
        p.guild, p.channel
    );
    let posted = format!("It leaks [1], and more.\n\n-# [\\[1\\]](<{link}>)");
    p.wait_for(p.channel, &posted).await;
    bot.stop().await;
    let [posts, edits] =
        ["POST", "PATCH"].map(|method| p.stage.discord.requests_to(method, "/messages"));
    assert!(!posts.is_empty() && edits.len() > 1);
    for request in posts.iter().chain(&edits) {
        let content = request.body["content"].as_str().unwrap_or_default();
        assert!(!content.contains("[ms"), "{content}");
    }
}

/// A long answer's messages, and whether its file has the links as well.
async fn long(max_messages: &str) -> (Vec<String>, Option<String>, String) {
    let p = place(&[("ANSWER_MAX_MESSAGES", max_messages)]).await;
    let bot = p.start().await;
    let said = p.post(p.channel, p.boris, "the pump leaks");
    p.seen().await;
    let answer = format!(
        "It leaks {}. {}",
        of(said),
        "Words and more words. ".repeat(200)
    );
    ask(&p, said, Behaviour::text(&[answer.as_str()]));
    let link = format!(
        "-# [\\[1\\]](<https://discord.com/channels/{}/{}/{said}>)",
        p.guild, p.channel
    );
    let has_link = |message: &clew_simulator::Message| message.content.ends_with(&link);
    p.stage
        .discord
        .wait_for_message(p.channel, has_link)
        .await
        .unwrap();
    bot.stop().await;
    let answers = p.stage.discord.answers(p.channel);
    let files = answers.iter().flat_map(|one| &one.attachments);
    let file = files
        .map(|one| String::from_utf8(one.file.bytes.clone()).unwrap())
        .next();
    (
        answers.into_iter().map(|one| one.content).collect(),
        file,
        link,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_is_linked_once_in_its_last_message() {
    for (max, count) in [("5", 3), ("2", 2)] {
        let (messages, file, link) = long(max).await;
        assert_eq!(messages.len(), count, "{messages:?}");
        assert!(
            messages
                .iter()
                .all(|text| text.encode_utf16().count() <= 2_000)
        );
        assert!(messages[0].starts_with("It leaks [1]."), "{messages:?}");
        assert_eq!(messages.concat().matches(&link).count(), 1, "{messages:?}");
        let last = messages.last().unwrap();
        assert_eq!(
            last.ends_with(&format!("{CONTINUED}\n{link}")),
            file.is_some()
        );
        assert_eq!(file.is_some_and(|file| file.ends_with(&link)), count == 2);
    }
}
