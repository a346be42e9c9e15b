//! What was asked while nobody listened, and is not sent again: it is found in the channels.

use std::time::Duration;

use clew_simulator::{Draft, Fault, Permissions};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{Place, has, has_no};
use crate::support::bot::{Bot, lines, prompt};

/// What takes longer is taken to hang.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

impl Place {
    /// Stops the bot, whose session Discord then forgets.
    async fn away(&self, bot: Bot) -> Vec<Value> {
        let lines = bot.stop().await;
        self.stage.discord.forget_sessions();
        lines
    }

    /// A bot that has answered Ada in the thread.
    async fn begun(&self) -> Bot {
        let bot = self.stage.start().await;
        self.ask(self.thread, "before");
        self.wait_for_answer(self.thread, "ok").await;
        bot
    }

    /// Waits until a round of catching up is over.
    async fn caught_up(&self) {
        let folder = self.stage.folder.path().join("telemetry");
        let told = || {
            lines(&folder)
                .iter()
                .any(|line| line["event"] == "caught_up")
        };
        let until = Instant::now() + PATIENCE;
        while !told() {
            assert!(Instant::now() < until, "it is over in time");
            sleep(LOOK).await;
        }
    }

    fn last_prompts(&self, count: usize) -> Vec<String> {
        let requests = self.stage.model.requests();
        let last = requests.iter().rev().take(count).rev();
        last.map(prompt).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_meanwhile_is_found_where_it_was_asked() {
    let place = Place::new(&[]).await;
    let bot = place.begun().await;
    place.away(bot).await;
    place.ask(place.thread, "in the thread");
    let answered = place.stage.discord.answers(place.thread)[0].id;
    place.stage.discord.post(
        place.thread,
        place.boris,
        Draft::from("a reply").reply_to(answered),
    );
    place.ask(place.help, "in the channel");
    place
        .stage
        .discord
        .post(place.help, place.boris, "not asked");
    let bot = place.stage.launch();
    place.answers(place.thread, 3).await;
    place.answers(place.help, 1).await;
    place.caught_up().await;
    let lines = place.still_works(bot).await;
    has(&lines, "session_lost", &json!({}));
    let counts = json!({"how": "pages", "channels": 2, "failed": 0, "unread": 0,
        "questions": 3, "answered": 3, "too_old": 0, "too_many": 0});
    has(&lines, "caught_up", &counts);
    assert_eq!(place.stage.discord.answers(place.thread).len(), 4);
    assert_eq!(place.stage.discord.answers(place.help).len(), 2);
}

/// What is found counts against its asker's limit, and of two channels the one written in last is looked
/// at, if one request is all there is.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_has_limits() {
    let limits = [("USER_TURNS_PER_MIN", "1"), ("CATCH_UP_MAX_FETCHES", "1")];
    let place = Place::new(&limits).await;
    let bot = place.stage.start().await;
    place.away(bot).await;
    place.ask(place.thread, "in the thread");
    for text in ["one", "two"] {
        place.ask(place.help, text);
    }
    let bot = place.stage.launch();
    place.caught_up().await;
    place.answers(place.help, 2).await;
    let lines = bot.stop().await;
    has(
        &lines,
        "caught_up",
        &json!({"channels": 2, "fetches": 1, "unread": 1}),
    );
    has(&lines, "refused", &json!({"reason": "user_rate"}));
    assert!(place.stage.discord.answers(place.thread).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_lost_while_the_bot_runs_is_caught_up() {
    let place = Place::new(&[]).await;
    let bot = place.begun().await;
    place.stage.discord.forget_sessions();
    place.stage.discord.drop_gateway();
    place.ask(place.help, "unheard");
    place.answers(place.help, 1).await;
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "caught_up",
        &json!({"how": "pages", "questions": 1}),
    );
    assert_eq!(place.stage.discord.answers(place.help).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stop_took_back_is_asked_again_without_its_session() {
    let place = Place::new(&[("SHUTDOWN_TIMEOUT_S", "0.2")]).await;
    let bot = place.stage.start().await;
    let _gate = place.half_answered().await;
    place.ask(place.thread, "and this one waits");
    place.stage.discord.settled().await.unwrap();
    let lines = place.away(bot).await;
    has(&lines, "stopping", &json!({"drained": 0, "abandoned": 1}));
    assert!(place.stage.discord.answers(place.thread).is_empty());
    let bot = place.stage.launch();
    place.answers(place.thread, 2).await;
    place.still_works(bot).await;
    assert_eq!(place.stage.discord.answers(place.thread).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_is_not_asked_and_what_was_edited_is_asked_as_it_reads() {
    let place = Place::new(&[]).await;
    let bot = place.begun().await;
    place.away(bot).await;
    let gone = place.ask(place.help, "saffron");
    place.stage.discord.delete(place.help, gone);
    let edited = place.ask(place.help, "cinnamon");
    let us = place.stage.discord.bot();
    let now = format!("<@{us}> ginger");
    place.stage.discord.edit(place.help, edited, &now);
    let bot = place.stage.launch();
    place.answers(place.help, 1).await;
    let asked = place.last_prompts(1);
    assert!(asked[0].contains("ginger"), "{asked:?}");
    assert!(!asked[0].contains("cinnamon"), "{asked:?}");
    place.caught_up().await;
    let lines = place.still_works(bot).await;
    has(&lines, "caught_up", &json!({"questions": 1}));
    assert_eq!(place.stage.discord.answers(place.help).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_messages_are_looked_at_where_something_is_stored() {
    let mut direct = None;
    let place = Place::with(&[], |world| {
        let eve = world.user("Eve");
        direct = Some((world.direct(eve), eve));
    })
    .await;
    let (direct, eve) = direct.unwrap();
    let bot = place.stage.start().await;
    place.stage.discord.post(direct, eve, "hello");
    place.answers(direct, 1).await;
    place.away(bot).await;
    place.stage.discord.post(direct, eve, "are you there?");
    let bot = place.stage.launch();
    place.answers(direct, 2).await;
    place.caught_up().await;
    let lines = place.still_works(bot).await;
    has(&lines, "caught_up", &json!({"questions": 1, "answered": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_that_may_not_be_read_are_not_looked_at() {
    let place = Place::new(&[]).await;
    let bot = place.begun().await;
    place.away(bot).await;
    let hidden = Permissions::READ_MESSAGE_HISTORY;
    let (thread, help) = (place.thread, place.help);
    place
        .stage
        .discord
        .world(|world| world.deny_everyone(help, hidden));
    place.ask(thread, "unseen");
    let bot = place.stage.start().await;
    place.caught_up().await;
    let lines = bot.stop().await;
    has(&lines, "caught_up", &json!({"channels": 0, "questions": 0}));
    assert_eq!(place.stage.discord.answers(thread).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_ask_is_not_answered_later_either() {
    let mut denied = None;
    let mut place = Place::with(&[], |world| {
        let guild = world.guilds().next().unwrap().id;
        let role = world.role(guild, "muted", Permissions::NONE);
        denied = Some((guild, role));
    })
    .await;
    let (guild, role) = denied.unwrap();
    place.stage.set("DENIED", &format!("role:{role}"));
    let bot = place.begun().await;
    place.away(bot).await;
    let ada = place.ada;
    place
        .stage
        .discord
        .world(|world| world.give_role(guild, ada, role));
    let refused = place.ask(place.help, "let me").to_string();
    let bot = place.stage.start().await;
    place.caught_up().await;
    let lines = bot.stop().await;
    let told = |line: &Value| line["event"] == "refused" && line["msg_id"] == refused.as_str();
    assert!(lines.iter().any(told), "{lines:#?}");
    has(&lines, "caught_up", &json!({"questions": 0}));
    assert!(place.stage.discord.answers(place.help).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_fails_is_asked_for_again() {
    let place = Place::new(&[]).await;
    let bot = place.begun().await;
    place.away(bot).await;
    place.ask(place.help, "unheard");
    let path = format!("/channels/{}/messages", place.help);
    let fails = Fault::status("GET", &path, 502, 0, "bad gateway").once();
    place.stage.discord.fault(fails);
    let bot = place.stage.launch();
    place.answers(place.help, 1).await;
    place.caught_up().await;
    let lines = place.still_works(bot).await;
    has(&lines, "caught_up", &json!({"failed": 0, "questions": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_switched_off() {
    let place = Place::new(&[("CATCH_UP_MIN", "0")]).await;
    let bot = place.begun().await;
    place.away(bot).await;
    place.ask(place.thread, "unheard");
    let bot = place.stage.start().await;
    let lines = place.still_works(bot).await;
    has_no(&lines, "caught_up");
    assert_eq!(place.stage.discord.answers(place.thread).len(), 2);
}
