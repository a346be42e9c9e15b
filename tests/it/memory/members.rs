//! Members who left unnoticed, since without the members intent there is no event. They are found when
//! something of theirs is used elsewhere, and by the daily membership check.

use std::time::Duration;

use clew_context::model::GuildId;
use clew_simulator::{Fault, Id};
use clew_store::model::Origin;

use super::facts::{of_ada, put};
use super::place::{DAY, Kind, Place, assert_says, assert_says_nothing_of, on_each_store};

on_each_store! {
    a_member_who_left_unseen_is_forgotten_at_next_use
    an_unclear_answer_does_not_prove_that_a_member_left
}

/// Stores facts learnt about Ada in each server and in her direct messages.
async fn known(p: &Place) {
    let (works, abroad) = (GuildId::new(p.guild.0), GuildId::new(p.other_guild.0));
    let facts = [
        of_ada(p, 1, "likes saffron", Origin::Guild(works)),
        of_ada(p, 2, "likes cinnamon", Origin::Guild(abroad)),
        of_ada(p, 3, "likes turmeric", Origin::Direct),
    ];
    put(p, &facts).await;
}

/// How often the bot asked Discord whether Ada is a member there.
fn looked_up(p: &Place, guild: Id) -> usize {
    let path = format!("/guilds/{guild}/members/{}", p.ada);
    p.stage.discord.requests_to("GET", &path).len()
}

async fn a_member_who_left_unseen_is_forgotten_at_next_use(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    known(&p).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "ginger").await;
    p.ask(p.help, p.boris, "nutmeg").await;
    p.stage.discord.leave(p.guild, p.ada);
    p.stage.discord.settled().await.unwrap();
    assert!(!p.traces("saffron").is_empty() && !p.traces("ginger").is_empty());
    // This turn is answered before Discord replies.
    p.prompt(p.direct, p.ada).await;
    p.until_gone("saffron").await;
    p.until_gone("ginger").await;
    p.until("a look abroad", || looked_up(&p, p.other_guild) == 1)
        .await;
    let prompt = p.prompt(p.direct, p.ada).await;
    assert_says(&prompt, &["cinnamon", "turmeric"]);
    assert_says_nothing_of(&prompt, &["saffron", "ginger"]);
    assert_says(&p.prompt(p.help, p.boris).await, &["nutmeg"]);
    // A member is looked up only once a day.
    p.prompt(p.direct, p.ada).await;
    p.prompt(p.abroad, p.ada).await;
    assert_eq!(looked_up(&p, p.other_guild), 1);
    assert_eq!(looked_up(&p, p.guild), 1);
    p.time.pass(DAY);
    p.prompt(p.direct, p.ada).await;
    p.until("another look", || looked_up(&p, p.other_guild) == 2)
        .await;
    bot.stop().await;
    assert_eq!(looked_up(&p, p.guild), 1);
    assert!(!p.traces("cinnamon").is_empty());
}

async fn an_unclear_answer_does_not_prove_that_a_member_left(kind: Kind) {
    let refusals = [
        (404, 10004, "Unknown Guild"),
        (403, 50001, "Missing Access"),
        (500, 0, "500: Internal Server Error"),
    ];
    for (status, code, message) in refusals {
        let p = Place::new(kind, &[]).await;
        known(&p).await;
        let fault = Fault::status("GET", "/guilds/*/members/*", status, code, message);
        let fault = p.stage.discord.fault(fault);
        let bot = p.start().await;
        p.ask(p.help, p.ada, "ginger").await;
        p.prompt(p.direct, p.ada).await;
        // The bot asks about both servers; after an unclear answer it tries again.
        p.until("looked up", || {
            looked_up(&p, p.guild) > 0 && looked_up(&p, p.other_guild) > 0
        })
        .await;
        assert!(p.stage.discord.hits(fault) >= 2);
        p.stage.discord.wait_idle().await.unwrap();
        let prompt = p.prompt(p.direct, p.ada).await;
        assert_says(&prompt, &["saffron", "cinnamon", "turmeric"]);
        assert_says(&p.prompt(p.help, p.ada).await, &["saffron", "ginger"]);
        bot.stop().await;
        assert_eq!(p.event_count("purged"), 0);
    }
}

/// On a single thread, so that the test can advance the time.
#[tokio::test]
async fn a_membership_check_finds_members_who_left_unseen() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.abroad, p.ada, "cinnamon").await;
    p.ask(p.help, p.boris, "turmeric").await;
    p.stage.discord.leave(p.guild, p.ada);
    p.stage.discord.settled().await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(59)).await;
    tokio::time::resume();
    assert_says(&p.prompt(p.help, p.boris).await, &["turmeric"]);
    assert_eq!(looked_up(&p, p.guild), 0);
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(2)).await;
    tokio::time::resume();
    p.until_gone("saffron").await;
    p.until("all called", || looked_up(&p, p.other_guild) == 1)
        .await;
    assert_says(&p.prompt(p.help, p.boris).await, &["turmeric"]);
    assert_says(&p.prompt(p.abroad, p.ada).await, &["cinnamon"]);
    bot.stop().await;
    assert_eq!(looked_up(&p, p.guild), 1);
}
