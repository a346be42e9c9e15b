//! `/catch-up` and "Summarise from here": what is read, what the model is asked, and who sees what
//! comes of it.

use std::collections::BTreeSet;

use clew_simulator::{ChannelKind, Draft, Id, OverwriteOf, Permissions, Shown, Use, World};
use serde_json::{Value, json};

use super::{Place, assert_refused, assert_says, outcomes, place};
use crate::support::bot::{Bot, Stage, details, prompt};
use crate::support::model::Behaviour;

/// What is said of a channel that does not exist, and of one that may not be read.
const UNREADABLE: &str = "There is no channel there that you can read.";

/// A place with more in it, what that is, and the bot; `build` gets world, server and people.
async fn place_with<T>(build: impl FnOnce(&mut World, Id, [Id; 3]) -> T) -> (Place, T, Bot) {
    let mut world = World::new();
    let guild = world.guild("Works");
    let channel = world.channel(guild, ChannelKind::Text, "help");
    let [ada, boris, maria] = ["Ada", "Boris", "Maria"].map(|name| world.member(guild, name));
    let us = world.bot;
    let more = build(&mut world, guild, [ada, boris, maria]);
    let stage = Stage::new(world, &[]).await;
    let bot = stage.start().await;
    let place = Place {
        stage,
        guild,
        channel,
        ada,
        boris,
        maria,
        us,
    };
    (place, more, bot)
}

/// A channel that only Ada and we can see.
fn staff(world: &mut World, guild: Id, ada: Id) -> Id {
    let (us, view) = (world.bot, Permissions::VIEW_CHANNEL);
    let staff = world.channel(guild, ChannelKind::Text, "staff");
    world.deny_everyone(staff, view);
    for who in [us, ada] {
        world.overwrite(staff, OverwriteOf::Member(who), view, Permissions::NONE);
    }
    staff
}

impl Place {
    /// Waits until the bot has dealt with every event so far.
    async fn seen(&self) {
        let discord = &self.stage.discord;
        let call = discord.interact(self.channel, self.ada, &Use::slash("gone", &[]));
        discord.wait_interaction(call, |_| true).await.unwrap();
    }

    async fn catch_up(&self, who: Id, options: Value) -> Shown {
        self.call(who, self.channel, "catch-up", options).await
    }

    fn answers(&self, points: &Value) {
        let answer = json!({ "points": points }).to_string();
        self.stage.model.script(Behaviour::text(&[&answer]));
    }

    /// The data of a request to the model.
    fn data(&self, request: usize) -> Value {
        let requests = self.stage.model.requests();
        let data = requests[request]["messages"][1]["content"]
            .as_str()
            .unwrap();
        serde_json::from_str(data).unwrap()
    }
}

fn point(kind: &str, text: &str, from: &[usize]) -> Value {
    json!({"kind": kind, "text": text, "from": from})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_is_told_with_links() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    discord.seed(p.channel, p.boris, "long before");
    discord.seed(p.channel, p.ada, "I am off");
    let pump = discord.seed(p.channel, p.boris, "we take the red pump");
    let asked = discord.seed(
        p.channel,
        p.maria,
        format!("<@{}> who pays the pump?", p.ada).as_str(),
    );
    p.answers(&json!([
        point("decided", "The red pump is taken", &[0, 7]),
        point("open", "Who pays is open", &[1]),
        point("asked", "Nobody said this", &[2]),
    ]));
    let shown = p.catch_up(p.ada, json!({})).await;
    let link = |message: Id| {
        format!(
            "](https://discord.com/channels/{}/{}/{message})",
            p.guild, p.channel
        )
    };
    assert_says(
        &shown,
        &format!("**Decided**\n- The red pump is taken [1{}\n", link(pump)),
    );
    assert_says(
        &shown,
        &format!("**Left open**\n- Who pays is open [2{}\n", link(asked)),
    );
    assert_says(&shown, "2 messages in");
    assert!(
        !shown.text().contains("Nobody said this"),
        "{}",
        shown.text()
    );
    let data = p.data(0);
    assert_eq!(data["conversations"][0]["concerns_reader"], true);
    let text = prompt(&p.stage.model.requests()[0]);
    assert!(text.contains("we take the red pump") && text.contains("who pays"));
    assert!(
        !text.contains("long before") && !text.contains("I am off"),
        "{text}"
    );
    assert_refused(&p.catch_up(p.ada, json!({})).await, "Try again in about");
    assert_refused(
        &p.catch_up(p.boris, json!({"since": "soon"})).await,
        "30m, 2h",
    );
    let lines = bot.stop().await;
    assert_eq!(outcomes(&lines, "catch_up"), ["done", "refused", "refused"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_neither_told_nor_shared() {
    let (p, staff, bot) = place_with(|world, guild, [ada, ..]| staff(world, guild, ada)).await;
    p.stage.discord.seed(staff, p.maria, "the boss leaves");
    let of_staff = json!({"channel": staff.to_string(), "since": "1d"});
    assert_refused(&p.catch_up(p.boris, of_staff.clone()).await, UNREADABLE);
    let shared = json!({"channel": staff.to_string(), "since": "1d", "share": true});
    assert_refused(&p.catch_up(p.ada, shared).await, "can't share it");
    assert!(p.stage.model.requests().is_empty());
    p.answers(&json!([point("decided", "The boss leaves", &[0])]));
    assert_says(&p.catch_up(p.ada, of_staff).await, "The boss leaves");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_taken_away_meanwhile_counts() {
    let (p, (staff, role), bot) = place_with(|world, guild, [ada, ..]| {
        let staff = staff(world, guild, world.bot);
        let role = world.role(guild, "Staff", Permissions::NONE);
        let view = Permissions::VIEW_CHANNEL;
        world.overwrite(staff, OverwriteOf::Role(role), view, Permissions::NONE);
        world.give_role(guild, ada, role);
        (staff, role)
    })
    .await;
    let discord = &p.stage.discord;
    discord.seed(staff, p.maria, "the boss leaves");
    let answer = json!({"points": [point("decided", "The boss leaves", &[0])]}).to_string();
    let (held, gate) = Behaviour::text(&[&answer]).held();
    p.stage.model.script(held);
    let of_staff = json!({"channel": staff.to_string(), "since": "1d"});
    let call = discord.call(p.ada, p.channel, "catch-up", of_staff);
    let call = call.await.unwrap();
    p.stage.model.wait_requests(1).await;
    discord.set_role(p.guild, p.ada, role, false);
    gate.open();
    assert_refused(&call.answer().await.unwrap(), UNREADABLE);
    bot.stop().await;
}

/// A point that has no room takes neither its heading nor its numbers with it.
#[tokio::test(flavor = "multi_thread")]
async fn points_stand_under_their_headings_however_long_they_are() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    for number in 0..12 {
        discord.seed(p.channel, p.boris, format!("pump {number}").as_str());
    }
    // Each is shown with a backslash.
    let long = "_".repeat(400);
    let of = |kind, at: usize| point(kind, &long, &[at, at + 1, at + 2, at + 3]);
    let mut points: Vec<Value> = (0..6).map(|at| of("decided", at)).collect();
    points.push(of("asked", 8));
    points.push(point("asked", "Who pays?", &[11]));
    p.answers(&Value::Array(points));
    let shown = p.catch_up(p.ada, json!({})).await;
    let text = shown.text();
    let (decided, asked) = text.split_once("**Asked**\n").expect(&text);
    assert_eq!(asked.matches("- ").count(), 1, "{text}");
    let cited = (1..=12).rfind(|number| decided.contains(&format!("[{number}](")));
    let next = format!("- Who pays? [{}](", cited.unwrap() + 1);
    assert!(asked.starts_with(&next), "{text}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_answer_is_seen_by_everybody_there() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    discord.seed(p.channel, p.boris, "we take the red pump");
    p.answers(&json!([point("decided", "The red pump is taken", &[0])]));
    let call = discord.call(p.ada, p.channel, "catch-up", json!({"share": true}));
    let call = call.await.unwrap();
    let shown = call.follow_up(0).await.unwrap();
    assert!(!shown.ephemeral);
    assert_says(&shown, "The red pump is taken");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_message_on_without_those_who_opted_out() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let asked = p.plain(p.maria, "privacy opt-out").await;
    p.press(p.maria, &asked, "Opt out and erase").await;
    discord.seed(p.channel, p.boris, "long before");
    let from = discord.seed(p.channel, p.boris, "the valve is open");
    discord.seed(p.channel, p.maria, "my secret");
    discord.seed(p.channel, p.ada, "I close it");
    p.answers(&json!([point("decided", "Ada closes the valve", &[1])]));
    let call = Use::on_message("Summarise from here", from);
    let call = discord.interact(p.channel, p.ada, &call);
    let told = |message: &clew_simulator::Message| !message.embeds.is_empty();
    discord.wait_interaction(call, told).await.unwrap();
    let text = prompt(&p.stage.model.requests()[0]);
    assert!(text.contains("the valve is open") && text.contains("I close it"));
    assert!(
        !text.contains("long before") && !text.contains("my secret"),
        "{text}"
    );
    let lines = bot.stop().await;
    assert_eq!(outcomes(&lines, "summarise_from_here"), ["done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn however_much_was_missed_the_requests_are_bounded() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let long = "pump ".repeat(190);
    for number in 0..2_100 {
        let who = [p.boris, p.maria][number % 2];
        discord.seed(p.channel, who, long.as_str());
    }
    for _ in 0..8 {
        p.answers(&json!([point("open", "pumps", &[1_999])]));
    }
    let shown = p.catch_up(p.ada, json!({})).await;
    assert_says(&shown, "I stopped there, at the most that I read");
    assert_says(&shown, "more I didn't get to");
    let pages = p.stage.discord.requests_to("GET", "/messages");
    assert_eq!(pages.len(), 20);
    assert!(p.stage.model.requests().len() <= 8);
    bot.stop().await;
}

/// What the caller took part in before goes on without naming them.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_caller_took_part_in_concerns_them() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let to = |text: &str, message: Id| Draft::new(text).reply_to(message);
    let hours_ago = discord.world(|world| world.now_ms()) - 5 * 3_600_000;
    let lunch = Draft::new("lunch at one, who comes?").at_ms(hours_ago);
    let lunch = discord.seed(p.channel, p.maria, lunch);
    let pump = discord.seed(p.channel, p.boris, "the red pump drips");
    discord.seed(p.channel, p.ada, to("I look after it", pump));
    discord.seed(p.channel, p.maria, to("the valve is stuck", pump));
    discord.seed(p.channel, p.maria, to("I come, there is soup", lunch));
    p.catch_up(p.ada, json!({})).await;
    let data = p.data(0);
    let conversations = data["conversations"].as_array().unwrap();
    for (conversation, text, concerns) in [
        (&conversations[0], "the valve is stuck", true),
        (&conversations[1], "there is soup", false),
    ] {
        let messages = conversation["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 1, "{data}");
        assert!(messages[0].as_str().unwrap().contains(text), "{data}");
        assert_eq!(conversation["concerns_reader"], concerns, "{data}");
    }
    bot.stop().await;
}

/// A name is one wherever it stands, and however long its bearer has been away.
#[tokio::test(flavor = "multi_thread")]
async fn what_names_the_caller_concerns_them() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let hours_ago = discord.world(|world| world.now_ms()) - 5 * 3_600_000;
    let off = Draft::new("I am off").at_ms(hours_ago - 60_000);
    discord.seed(p.channel, p.ada, off);
    for minute in 0..45 {
        let talk = Draft::new("the lunch is soup").at_ms(hours_ago + minute * 60_000);
        discord.seed(
            p.channel,
            [p.boris, p.maria][usize::from(minute % 2 == 0)],
            talk,
        );
    }
    let first = discord.seed(p.channel, p.boris, "the valve is stuck, who knows it?");
    discord.seed(
        p.channel,
        p.maria,
        Draft::new("only ada does").reply_to(first),
    );
    discord.seed(p.channel, p.maria, "nothing at the canada end");
    p.catch_up(p.ada, json!({})).await;
    let data = p.data(0);
    let conversations = data["conversations"].as_array().unwrap();
    let concerning = conversations
        .iter()
        .filter(|one| one["concerns_reader"] == true);
    let concerning: Vec<String> = concerning.map(|one| one["messages"].to_string()).collect();
    assert_eq!(concerning.len(), 1, "{data}");
    assert!(
        concerning[0].contains("valve") && !concerning[0].contains("soup"),
        "{data}"
    );
    bot.stop().await;
}

/// Threads and posts, also archived ones; a private thread for its members; what is age-restricted
/// is not read from elsewhere, and a forum has nothing but posts.
#[tokio::test(flavor = "multi_thread")]
async fn threads_and_posts_are_chosen_like_channels() {
    let (p, [news, thread, private, forum, post, adult, secret], bot) =
        place_with(|world, guild, [ada, boris, maria]| {
            let news = world.channel(guild, ChannelKind::Text, "news");
            let first = world.seed(news, boris, "a new boiler");
            let thread = world.thread_from(news, first, "Boiler", ada);
            world.seed(thread, boris, "it is blue");
            world.set_archived(thread, true, false);
            let private = world.thread(news, ChannelKind::PrivateThread, "Price", boris);
            world.seed(private, boris, "it was dear");
            let forum = world.channel(guild, ChannelKind::Forum, "how-to");
            let post = world.forum_post(forum, maria, "Valves", &[], "which valve first?");
            let adult = world.channel(guild, ChannelKind::Text, "adult");
            world.seed(adult, boris, "the price again");
            world.restrict_age(adult);
            let staff = staff(world, guild, ada);
            let price = world.seed(staff, ada, "the price once more");
            let secret = world.thread_from(staff, price, "Secret", ada);
            world.set_archived(secret, true, false);
            [news, thread, private, forum, post, adult, secret]
        })
        .await;
    let of = |channel: Id| json!({"channel": channel.to_string()});
    for closed in [private, adult, secret] {
        assert_refused(&p.catch_up(p.maria, of(closed)).await, UNREADABLE);
    }
    assert_refused(&p.catch_up(p.maria, of(forum)).await, "Choose one of them");
    for (who, place, text, concerns) in [
        (p.ada, thread, "it is blue", true),
        (p.boris, post, "which valve first?", false),
        (p.maria, news, "a new boiler", false),
    ] {
        p.answers(&json!([point("open", "This", &[0])]));
        let shown = p.catch_up(who, of(place)).await;
        assert_says(&shown, &format!("in <#{place}>"));
        let data = p.data(p.stage.model.requests().len() - 1);
        let conversation = &data["conversations"][0];
        assert!(
            conversation["messages"].to_string().contains(text),
            "{data}"
        );
        assert_eq!(conversation["concerns_reader"], concerns, "{data}");
    }
    bot.stop().await;
}

/// Thirty long messages of Boris's, the one with this number of Maria's: two portions, the later
/// first.
fn two_portions(p: &Place, marias: usize) -> Vec<Id> {
    let words = "pump ".repeat(180);
    let said = |number: usize| format!("no{number}: {words}");
    let by = |number| if number == marias { p.maria } else { p.boris };
    let discord = &p.stage.discord;
    (0..30)
        .map(|number| discord.seed(p.channel, by(number), said(number).as_str()))
        .collect()
}

fn is_in(text: &str, number: usize) -> bool {
    text.contains(&format!("no{number}: pump"))
}

/// An answer with a point that these messages show.
fn answer(text: &str, from: &[usize]) -> String {
    json!({"points": [point("decided", text, from)]}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_meanwhile_is_asked_about_anew_without_it() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let seeded = two_portions(&p, 29);
    let (held, gate) = Behaviour::text(&[&answer("Maria's secret", &[28])]).held();
    p.stage.model.script(held);
    let call = discord.call(p.ada, p.channel, "catch-up", json!({}));
    let call = call.await.unwrap();
    let first = prompt(&p.stage.model.wait_requests(1).await[0]);
    let later: Vec<usize> = (0..30).filter(|one| !is_in(&first, *one)).collect();
    let [.., stays, edited] = later[..] else {
        panic!("{later:?}")
    };
    assert!(is_in(&first, 29) && edited < 28);
    discord.edit(p.channel, seeded[edited], "never mind");
    let asked = p.plain(p.maria, "privacy opt-out").await;
    p.press(p.maria, &asked, "Opt out and erase").await;
    p.seen().await;
    for (text, from) in [("pumps", vec![28]), ("taps", vec![edited, stays])] {
        let answer = answer(text, &from);
        p.stage.model.script(Behaviour::text(&[&answer]));
    }
    gate.open();
    let shown = call.answer().await.unwrap();
    let text = shown.text();
    assert!(
        !text.contains("secret") && !text.contains("left out"),
        "{text}"
    );
    let requests = p.stage.model.requests();
    let [second, third] = [1, 2].map(|at| prompt(&requests[at]));
    assert!(!is_in(&second, 29) && is_in(&second, 28), "{second}");
    assert!(!is_in(&third, edited) && is_in(&third, stays), "{third}");
    for (number, is_cited) in [(29, false), (28, true), (edited, false), (stays, true)] {
        let link = format!("/{})", seeded[number]);
        assert_eq!(text.contains(&link), is_cited, "{number}: {text}");
    }
    bot.stop().await;
}

/// What the model was given may be in any point: all of that portion go, and it is said.
#[tokio::test(flavor = "multi_thread")]
async fn what_changes_at_the_end_costs_its_portion() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let seeded = two_portions(&p, 29);
    for (text, from) in [("Maria's secret", [28]), ("taps", [0])] {
        let answer = answer(text, &from);
        p.stage.model.script(Behaviour::text(&[&answer]));
    }
    let (held, gate) = Behaviour::text(&[&answer("The secret is of taps", &[0, 28])]).held();
    p.stage.model.script(held);
    let call = discord.call(p.ada, p.channel, "catch-up", json!({}));
    let call = call.await.unwrap();
    p.stage.model.wait_requests(3).await;
    discord.delete(p.channel, seeded[29]);
    p.seen().await;
    gate.open();
    let shown = call.answer().await.unwrap();
    assert_says(&shown, "- taps [1](");
    assert_says(&shown, "30 messages in");
    assert_says(&shown, "deleted, edited or made private meanwhile");
    assert!(!shown.text().contains("didn't get to"), "{}", shown.text());
    assert!(!shown.text().contains("secret"), "{}", shown.text());
    assert_eq!(p.stage.model.requests().len(), 3);
    bot.stop().await;
}

/// What is tried again is a request like any other.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_tried_again_counts() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let long = "pump ".repeat(190);
    for number in 0..400 {
        let who = [p.boris, p.maria][number % 2];
        discord.seed(p.channel, who, long.as_str());
    }
    for _ in 0..20 {
        p.stage.model.script(Behaviour::status(503, "busy"));
        p.answers(&json!([point("open", "pumps", &[399])]));
    }
    p.catch_up(p.ada, json!({})).await;
    // The last is kept for joining.
    assert_eq!(p.stage.model.requests().len(), 8);
    let lines = bot.stop().await;
    let failed = details(&lines, "request_failed");
    let answered = details(&lines, "request_ok");
    let attempts: BTreeSet<u64> = failed
        .iter()
        .chain(&answered)
        .map(|one| one["attempt"].as_u64().unwrap())
        .collect();
    assert_eq!(attempts, (1..=8).collect());
    assert_eq!((failed.len(), answered.len()), (4, 4));
    assert!(answered.iter().all(|one| one["agent"].is_null()));
}
