//! Earlier exchanges in prompts, found by the question.

use clew_simulator::{Draft, Id, Message};

use super::place::{
    Asked, Kind, Place, assert_says, assert_says_nothing_of, on_each_database, on_each_store,
};

on_each_store! {
    what_was_said_before_the_history_is_in_the_prompt
    without_recall_prompts_are_as_before
}

on_each_database! {
    what_the_block_shows_is_not_recalled
    what_is_cleared_or_deleted_is_not_recalled
}

const SHORT: (&str, &str) = ("MAX_CONTEXT_MESSAGES", "2");
const QUESTION: &str = "where does the saffron grow?";
/// The line above what is recalled.
const HEAD: &str = "found because it resembles the question";

/// Something to recall, and what the history shows.
async fn long_ago(p: &Place, who: Id) -> Asked {
    let told = p.ask(p.help, who, "the saffron grows in the yard").await;
    p.ask(p.help, who, "ginger").await;
    told
}

async fn asked(p: &Place, who: Id) -> String {
    p.ask_for(p.help, who, QUESTION, "there").await.prompt
}

/// Whether the bot has seen it, or has just started.
async fn what_was_said_before_the_history_is_in_the_prompt(kind: Kind) {
    let p = Place::new(kind, &[SHORT]).await;
    let bot = p.start().await;
    long_ago(&p, p.ada).await;
    let prompt = asked(&p, p.ada).await;
    let told = [
        HEAD,
        "Ada: the saffron grows in the yard\n",
        "Clew [you]: so: the saffron grows in the yard\n",
    ];
    assert_says(&prompt, &told);
    let bot = p.restart(bot).await;
    p.ask(p.help, p.ada, "cumin").await;
    assert_says(&asked(&p, p.ada).await, &told);
    // Nobody else's question finds it.
    assert_says_nothing_of(&asked(&p, p.boris).await, &["yard"]);
    // Nor does one about something else.
    let other = p.ask(p.help, p.ada, "turmeric").await;
    assert_says_nothing_of(&other.prompt, &["yard", HEAD]);
    bot.stop().await;
    let recalled = p.details("merge_ok");
    let recalled = recalled.iter().map(|one| one["recalled_msgs"].as_u64());
    let recalled: Vec<u64> = recalled.flatten().collect();
    assert_eq!((recalled[0], recalled[1]), (0, 2), "{recalled:?}");
}

/// Without a model the answer says what it would be asked with.
#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_names_what_is_recalled() {
    let p = Place::new(Kind::Sqlite, &[SHORT]).await;
    let bot = p.start().await;
    long_ago(&p, p.ada).await;
    bot.stop().await;
    p.time.pass(1_000);
    let bot = p.stage.start_with(&[("LLM_BASE_URL", "")]).await;
    let (discord, us) = (&p.stage.discord, p.stage.discord.bot());
    for (author, is_found) in [(p.boris, false), (p.ada, true)] {
        let trigger = p.say(p.help, author, QUESTION);
        let is_answer = |one: &Message| one.author == us && one.id > trigger;
        let answer = discord.wait_for_message(p.help, is_answer).await.unwrap();
        let recalled = [
            "found by your question (RECALL_MESSAGES):",
            "**Ada**: the saffron grows in the yard",
        ];
        for line in recalled {
            assert_eq!(
                answer.content.contains(line),
                is_found,
                "{}",
                answer.content
            );
        }
    }
    bot.stop().await;
}

async fn without_recall_prompts_are_as_before(kind: Kind) {
    let p = Place::new(kind, &[SHORT, ("RECALL_MESSAGES", "0")]).await;
    let bot = p.start().await;
    long_ago(&p, p.ada).await;
    assert_says_nothing_of(&asked(&p, p.ada).await, &["yard", HEAD]);
    bot.stop().await;
}

async fn what_the_block_shows_is_not_recalled(kind: Kind) {
    let p = Place::new(kind, &[SHORT]).await;
    let bot = p.start().await;
    let told = long_ago(&p, p.ada).await;
    let us = p.stage.discord.bot();
    let question = Draft::new(format!("<@{us}> {QUESTION}")).reply_to(told.answer);
    let asked = p.post_for(p.help, p.ada, question, "there").await;
    let times = asked
        .prompt
        .matches("the saffron grows in the yard")
        .count();
    assert_eq!(times, 2, "{}", asked.prompt);
    assert_says_nothing_of(&asked.prompt, &[HEAD]);
    bot.stop().await;
}

async fn what_is_cleared_or_deleted_is_not_recalled(kind: Kind) {
    let p = Place::new(kind, &[SHORT]).await;
    let bot = p.start().await;
    let told = long_ago(&p, p.ada).await;
    assert_says(&asked(&p, p.ada).await, &[HEAD]);
    p.stage.discord.delete(p.help, told.trigger);
    p.until_gone("grows in the yard").await;
    p.ask(p.help, p.ada, "cumin").await;
    assert_says_nothing_of(&asked(&p, p.ada).await, &["yard"]);
    bot.stop().await;
}
