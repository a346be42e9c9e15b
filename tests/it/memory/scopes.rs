//! `CONTEXT_SCOPE=thread`: the people in a thread share what was said in it.

use clew_simulator::{OverwriteOf, Permissions};

use super::loading::keys;
use super::place::{Kind, Place, assert_says, assert_says_nothing_of, on_each_database};
use crate::support::model::Behaviour;

on_each_database! {
    a_thread_is_shared_by_its_people
    a_shared_history_is_only_for_who_may_read_the_thread
}

async fn a_thread_is_shared_by_its_people(kind: Kind) {
    let p = Place::new(
        kind,
        &[
            ("CONTEXT_SCOPE", "thread"),
            ("THREAD_CONTEXT_TAIL_COUNT", "0"),
            ("MEM_MAX_MSGS", "1"),
        ],
    )
    .await;
    let bot = p.start().await;
    p.ask(p.thread, p.ada, "saffron").await;
    p.ask(p.thread, p.ada, "turmeric").await;
    p.ask(p.help, p.ada, "cinnamon").await;
    let prompt = p.prompt(p.thread, p.boris).await;
    // Each message comes with its author's name.
    assert_says(
        &prompt,
        &[
            "Ada [first message]: ",
            "saffron",
            "so: saffron",
            "] Ada | ",
            "turmeric",
            "] Boris | ",
        ],
    );
    assert_says_nothing_of(&prompt, &["cinnamon"]);
    // Outside of threads everyone has their own conversation.
    assert_says_nothing_of(&p.prompt(p.help, p.boris).await, &["cinnamon", "saffron"]);
    assert_says(&p.prompt(p.help, p.ada).await, &["cinnamon"]);
    let bot = p.restart(bot).await;
    assert_says(
        &p.prompt(p.thread, p.boris).await,
        &["Ada [first message]: ", "saffron"],
    );
    p.ask(p.direct, p.ada, "ginger").await;
    bot.stop().await;
    let expected = [
        "dm/111".to_owned(),
        format!("member/{}/{}/111", p.guild, p.help),
        format!("member/{}/{}/222", p.guild, p.help),
        format!("thread/{}/{}", p.guild, p.thread),
    ];
    assert_eq!(keys(&p).await, expected);
}

/// The asker's rights count as they are when the turn starts, not when it was queued.
async fn a_shared_history_is_only_for_who_may_read_the_thread(kind: Kind) {
    let p = Place::new(kind, &[("CONTEXT_SCOPE", "thread")]).await;
    let bot = p.start().await;
    p.ask(p.thread, p.ada, "saffron").await;
    assert_says(&p.prompt(p.thread, p.boris).await, &["so: saffron"]);
    let (slow, gate) = Behaviour::gated(&["so: ginger"]);
    p.stage.model.script(slow);
    let before = p.stage.model.requests().len();
    p.say(p.thread, p.ada, "ginger");
    p.stage.model.wait_requests(before + 1).await;
    p.stage.model.script(Behaviour::text(&["ok"]));
    // Boris's turn waits for Ada's; when it starts he may no longer read the thread.
    p.say(p.thread, p.boris, "and now?");
    let (nothing, history) = (Permissions::NONE, Permissions::READ_MESSAGE_HISTORY);
    let boris = OverwriteOf::Member(p.boris);
    p.stage.discord.overwrite(p.help, boris, nothing, history);
    p.stage.discord.settled().await.unwrap();
    gate.open();
    let requests = p.stage.model.wait_requests(before + 2).await;
    let prompt = crate::support::bot::prompt(&requests[before + 1]);
    assert_says(&prompt, &["and now?"]);
    assert_says_nothing_of(&prompt, &["saffron", "ginger"]);
    p.until("three stored turns", || p.event_count("recorded") == 4)
        .await;
    let prompt = p.prompt(p.thread, p.boris).await;
    assert_says_nothing_of(&prompt, &["saffron", "ginger", "and now?"]);
    assert_says(&p.prompt(p.thread, p.ada).await, &["saffron", "ginger"]);
    bot.stop().await;
}
