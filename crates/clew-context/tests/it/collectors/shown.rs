//! What a message shows if names are unknown or it has little content.

use std::sync::Arc;

use clew_context::engine::render::{Directory, Nobody, Renderer};
use clew_context::model::{ChannelId, Embed, HistoryMessage, Message, Profiles, RoleId, UserId};

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, EVE, Shape, asked, id, said, text_channel, thread, thread_id, us,
};
use crate::support::world::{Start, World};

fn text(message: &Message) -> String {
    Renderer::new(&us(), &Nobody).message(message)
}

#[test]
fn unknown_mentions_have_no_name() {
    let message = said(
        1,
        ADA,
        "<@1> <@&2> <#3> https://discord.com/channels/1/22/333",
    );
    assert_eq!(
        text(&message),
        "@unknown user @unknown role #unknown channel (message in #unknown channel)"
    );
}

/// A line of links is ours, wherever it stands; what others quote stays.
#[test]
fn our_links_are_for_people() {
    let links = "-# [\\[1\\]](<https://discord.com/channels/1/2/3>) [\\[2\\]](<https://a.example>)";
    for (before, after, shown) in [
        ("Yes [1].\n\n", "", "Yes [1]."),
        ("Yes.\n", "\n-# More", "Yes.\n-# More"),
        ("", "", ""),
    ] {
        let said = |who| text(&said(1, who, &format!("{before}{links}{after}")));
        assert_eq!(said(CLEW), shown);
        assert!(said(ADA).contains("-# [\\[1\\]]("), "{}", said(ADA));
    }
}

/// Buttons under answers of ours are for people; those of others are part of what they show.
#[test]
fn our_buttons_are_for_people() {
    let said = |who| {
        let said = said(1, who, "Yes.").with_file("a.txt", None, 3);
        text(&said.with_extras(|extras| extras.component_text.push("Why?".into())))
    };
    let file = "[file: a.txt (unknown type, 3 bytes)]";
    assert_eq!(said(CLEW), format!("Yes.\n{file}"));
    assert_eq!(said(ALERT), format!("Yes.\nWhy?\n{file}"));
}

#[test]
fn each_mention_has_its_own_name() {
    assert_eq!(text(&said(1, EVE, "<@12> or <@11>?")), "@Bob or @Ada?");
}

/// Authors of shown messages are named wherever they are mentioned. A webhook can
/// use any name, and a withheld message has none.
#[test]
fn mentioned_authors_in_the_block_are_named() {
    let nameless = said(3, EVE, "").shaped(|message| message.author.name = "".into());
    let present = [said(1, ADA, "a"), said(2, ALERT, "b"), nameless];
    let us = us();
    let mut renderer = Renderer::new(&us, &Nobody);
    renderer.meet(&present);
    let kept = renderer.stored("<@11> <@92> <@13>");
    assert_eq!(kept, "@Ada @unknown user @unknown user");
}

/// Gives every user the same name.
struct Known;

impl Directory for Known {
    fn user(&self, _: UserId) -> Option<String> {
        Some("Grace".to_owned())
    }
    fn role(&self, _: RoleId) -> Option<String> {
        None
    }
    fn channel(&self, _: ChannelId) -> Option<String> {
        None
    }
}

#[test]
fn a_webhook_keeps_the_name_it_posts_under() {
    let us = us();
    let mut renderer = Renderer::new(&us, &Known);
    assert_eq!(renderer.author(&said(1, ALERT, "x")), "Alertmanager");
    assert_eq!(renderer.author(&said(2, ADA, "x")), "Grace");
}

#[test]
fn an_embed_is_shown_unless_it_is_empty() {
    let embed = |change: fn(&mut Embed)| {
        let mut embed = Embed::default();
        change(&mut embed);
        text(&said(1, ADA, "").with_extras(|extras| extras.embeds.push(embed)))
    };
    assert_eq!(embed(|_| ()), "");
    assert_eq!(embed(|one| one.media = true), "[embed: image or video]");
    assert_eq!(embed(|one| one.title = Some("T".into())), "[embed: T]");
    let described = embed(|one| one.description = Some("words".into()));
    assert_eq!(described, "[embed]\nwords");
    assert_eq!(embed(|one| one.footer = Some("end".into())), "[embed]\nend");
}

#[test]
fn sizes_of_files_are_short() {
    for (bytes, shown) in [
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (999_900, "999.9 kB"),
        (1_500_000, "1.5 MB"),
    ] {
        let message = said(1, ADA, "").with_file("a.bin", None, bytes);
        assert_eq!(
            text(&message),
            format!("[file: a.bin (unknown type, {shown})]")
        );
    }
}

/// The asker's mention contains no name, but the shown message does.
#[tokio::test]
async fn authors_in_the_block_are_named_in_the_question() {
    let trigger = asked(9, EVE, "is <@12> right?").replying(1);
    let trigger = trigger.shaped(|message| message.mentions = Box::default());
    let world = World::of([said(1, BOB, "a"), trigger.clone()]);
    let start = Start::within(text_channel());
    let collected = start.collect(&world, &trigger).await;
    let prompt = start.prepare(&collected).prompt;
    let question = prompt.messages.last().unwrap().content();
    assert!(question.contains("is @Bob right?"), "{question}");
}

/// What the block shows is not repeated as history.
#[tokio::test]
async fn stored_messages_that_are_shown_are_left_out() {
    let here = |n, text| said(n, BOB, text).into_channel(thread_id(0));
    let trigger = asked(3, EVE, "so?").into_channel(thread_id(0));
    let world = World::of([said(0, ADA, "start"), here(1, "a"), trigger.clone()]);
    let stored = |n: u64| HistoryMessage {
        message: Some(id(n)),
        author: Some((BOB.user(), "Bob".to_owned())),
        ours: false,
        timestamp: id(n).created(),
        restored: false,
        text: "stored".to_owned(),
    };
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    let history = [stored(1), stored(90), stored(91)];
    let prompt = start
        .prepare_with(&collected, &Profiles::default(), &history)
        .prompt;
    assert_eq!((prompt.history, prompt.dedup), (2, 1));
}

/// A question is words, a pointed-at message or a block.
#[tokio::test]
async fn a_question_is_words_or_what_replaces_them() {
    let asks = async |world: World, trigger: Message| {
        let start = Start::within(text_channel());
        let collected = start.collect(&world, &trigger).await;
        start.prepare(&collected).has_question
    };
    assert!(asks(World::default(), asked(9, EVE, "how tall?")).await);
    assert!(
        asks(
            World::of([said(1, ADA, "a"), asked(9, EVE, "")]),
            asked(9, EVE, "")
        )
        .await
    );
    assert!(!asks(World::of([asked(9, EVE, "")]), asked(9, EVE, "")).await);
    let kept = Arc::new(said(1, ADA, "a"));
    let reply = asked(9, EVE, "")
        .replying(1)
        .carrying(Message::clone(&kept));
    assert!(asks(World::of([]), reply).await);
}
