//! `CONTEXT_SCOPE=thread`: a thread's people share what was said in it.

use super::loading::keys;
use super::place::{Kind, Place, on_each_database, says, says_nothing_of};

on_each_database! {
    a_thread_is_shared_by_its_people
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
    // With the name of who said it.
    says(
        &prompt,
        &["] Ada | ", "saffron", "so: saffron", "] Boris | ", "go on"],
    );
    says_nothing_of(&prompt, &["cinnamon"]);
    // Outside of threads everybody has his own.
    says_nothing_of(&p.prompt(p.help, p.boris).await, &["cinnamon", "saffron"]);
    says(&p.prompt(p.help, p.ada).await, &["cinnamon"]);
    let bot = p.restart(bot).await;
    says(&p.prompt(p.thread, p.boris).await, &["] Ada | ", "saffron"]);
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
