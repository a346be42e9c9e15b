//! `MEMORY_LEARN`: what is learnt about people, through whole turns. The odd-numbered requests to the model
//! are answers, the even ones extractions.

use std::time::Duration;

use clew::app::system_clock;
use clew_context::model::{GuildId, MessageId, UnixMillis, UserId};
use clew_simulator::{ChannelKind, Draft, Id, OverwriteOf, Permissions, Use, World};
use clew_store::model::{Fact, GuildSettings, Origin, StoreAddress, Subject};
use clew_store::{Folders, Store};
use serde_json::{Value, json};

use crate::support::bot::{Stage, details, prompt};
use crate::support::model::Behaviour;

/// In every text from which nothing may be learnt.
const MARK: &str = "kumquat";
/// What the asker says where the words do not matter.
const SAID: &str = "I work as a nurse on night shifts";
/// The fact that the model learns from `SAID`.
const FACT: &str = "Works as a nurse on night shifts.";

struct Place {
    stage: Stage,
    guild: Id,
    channel: Id,
    ada: Id,
    boris: Id,
    us: Id,
}

async fn place(settings: &[(&str, &str)]) -> Place {
    let mut world = World::new();
    let guild = world.guild("Works");
    let channel = world.channel(guild, ChannelKind::Text, "help");
    let ada = world.member(guild, "Ada");
    let boris = world.member(guild, "Boris");
    let us = world.bot;
    let stage = Stage::new(world, settings).await;
    Place {
        stage,
        guild,
        channel,
        ada,
        boris,
        us,
    }
}

async fn learning() -> Place {
    place(&[("MEMORY_LEARN", "model")]).await
}

/// The model's answer to an extraction.
fn facts(texts: &[&str]) -> String {
    let facts: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
    json!({"facts": facts}).to_string()
}

impl Place {
    /// Scripts the answer of the next turn and the reply to its extraction.
    fn script(&self, extraction: &str) {
        self.stage.model.script(Behaviour::text(&["ok"]));
        self.stage.model.script(Behaviour::text(&[extraction]));
    }

    fn ask(&self, who: Id, text: &str) -> Id {
        let text = format!("<@{}> {text}", self.us);
        self.stage.discord.post(self.channel, who, text)
    }

    /// Waits for this many messages of the bot; returns their texts.
    async fn said(&self, channel: Id, count: usize) -> Vec<String> {
        let all = self.stage.discord.wait_answers(channel, count).await;
        all.unwrap().into_iter().map(|one| one.content).collect()
    }

    /// The prompt of the `number`th request to the model, from 1.
    async fn prompt(&self, number: usize) -> String {
        prompt(&self.stage.model.wait_requests(number).await[number - 1])
    }

    /// Waits until the bot has handled all events so far.
    async fn seen(&self) {
        let stage = &self.stage.discord;
        let call = stage.interact(self.channel, self.boris, &Use::slash("gone", &[]));
        stage.wait_interaction(call, |_| true).await.unwrap();
    }

    /// The bot's store, opened separately.
    async fn store(&self) -> Store {
        let (address, folders) = self.address();
        Store::open(&address, &folders, system_clock())
            .await
            .unwrap()
    }

    fn address(&self) -> (StoreAddress, Folders) {
        let folder = self.stage.folder.path();
        let folders = Folders {
            agents: folder.join("agents"),
            users: folder.join("users"),
            servers: folder.join("servers"),
        };
        (StoreAddress::Sqlite(folder.join("clew.db")), folders)
    }

    /// What is stored about somebody; also while the bot runs.
    async fn known(&self, who: Id) -> Vec<Fact> {
        let (address, folders) = self.address();
        let store = Store::look(&address, &folders, system_clock())
            .await
            .unwrap();
        let facts = store
            .facts(Subject::User(user(who)), usize::MAX)
            .await
            .unwrap();
        store.close().await.unwrap();
        facts
    }
}

fn user(id: Id) -> UserId {
    UserId::new(id.0)
}

fn texts(facts: &[Fact]) -> Vec<&str> {
    facts.iter().map(|fact| fact.text.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_learnt_is_noted_once_and_in_the_next_prompt() {
    let p = learning().await;
    p.script(&facts(&[FACT]));
    p.script(&facts(&[]));
    let bot = p.stage.start().await;
    let trigger = p.ask(p.ada, SAID);
    assert_eq!(p.said(p.channel, 2).await, ["ok", "-# Noted 1 thing."]);
    let extraction = p.prompt(2).await;
    assert!(
        extraction.contains(r#""asker":"Ada","known":[]"#),
        "{extraction}"
    );
    assert!(extraction.contains(SAID), "{extraction}");

    p.ask(p.ada, "what should I cook this evening?");
    let second = p.prompt(3).await;
    assert!(second.contains(FACT), "{second}");
    assert!(!second.contains("Noted"), "notes stay out: {second}");
    let extraction = p.prompt(4).await;
    assert!(
        extraction.contains(&format!("\"known\":[\"{FACT}\"]")),
        "{extraction}"
    );
    let lines = bot.stop().await;

    let learnt = details(&lines, "learnt");
    let expected = [(1, 0), (0, 0)].map(|(n, refused)| json!({"facts": n, "refused": refused}));
    assert_eq!(learnt, expected);
    assert_eq!(p.said(p.channel, 3).await.len(), 3, "nothing new, no note");
    let known = p.known(p.ada).await;
    let fact = &known[0];
    assert_eq!(texts(&known), [FACT]);
    assert_eq!(fact.origin, Origin::Guild(GuildId::new(p.guild.0)));
    assert_eq!((fact.by, fact.pinned, fact.seen), (user(p.ada), false, 1));
    let (channel, message) = fact.link.unwrap();
    assert_eq!(
        (channel.get(), message),
        (p.channel.0, MessageId::new(trigger.0))
    );
}

/// Everyone sees how many facts were noted; only the person sees which.
#[tokio::test(flavor = "multi_thread")]
async fn the_note_says_how_many_and_pings_nobody() {
    let p = learning().await;
    p.script(&facts(&[FACT, "Speaks Norwegian."]));
    let bot = p.stage.start().await;
    p.ask(p.ada, &format!("{SAID}, and I speak Norwegian"));
    assert_eq!(p.said(p.channel, 2).await[1], "-# Noted 2 things.");
    let posts = p.stage.discord.requests_to("POST", "/messages");
    bot.stop().await;
    let note = posts.last().unwrap();
    let body = &note.body;
    assert_eq!(body["allowed_mentions"]["parse"], json!([]), "{body}");
    assert!(body.get("message_reference").is_none(), "{body}");
    let button = &body["components"][0]["components"][0];
    assert_eq!(button["label"], "Show", "{body}");
    let ids: Vec<String> = p
        .known(p.ada)
        .await
        .iter()
        .map(|one| one.id.to_string())
        .collect();
    let id = button["custom_id"].as_str().unwrap();
    assert!(
        ids.len() == 2 && ids.iter().all(|one| id.contains(one)),
        "{id}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_pattern_counts() {
    let p = learning().await;
    for again in [FACT, FACT, "works as a nurse on NIGHT shifts"] {
        p.script(&facts(&[again]));
    }
    let bot = p.stage.start().await;
    for turn in 1..=3 {
        p.ask(p.ada, SAID);
        p.prompt(2 * turn).await;
        p.said(p.channel, turn + 1).await;
    }
    p.stage.model.wait_ended(6).await;
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "learnt").len(), 3);
    let said = p.said(p.channel, 4).await;
    let notes = said.iter().filter(|text| text.starts_with("-#"));
    assert_eq!(notes.count(), 1);
    let known = p.known(p.ada).await;
    assert_eq!((texts(&known), known[0].seen), (vec![FACT], 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_learnt_from_a_malformed_reply() {
    let p = learning().await;
    let broken = [
        FACT.to_owned(),
        format!("{{\"facts\":[\"{FACT}\"]}}"),
        format!("Here: {}", facts(&[FACT])),
        facts(&["a b c d", "b c d e", "c d e f", "d e f g"]),
        facts(&[&"x".repeat(9_000)]),
    ];
    for extraction in &broken {
        p.script(extraction);
    }
    // A model server that refuses teaches nothing either.
    p.stage.model.script(Behaviour::text(&["ok"]));
    p.stage.model.script(Behaviour::status(401, "no"));
    let bot = p.stage.start().await;
    for turn in 1..=broken.len() + 1 {
        p.ask(p.ada, SAID);
        p.prompt(2 * turn).await;
        p.said(p.channel, turn).await;
    }
    p.stage.model.wait_ended(2 * broken.len() + 1).await;
    let lines = bot.stop().await;
    let refused = json!({"facts": 0, "refused": 1});
    assert_eq!(details(&lines, "learnt"), vec![refused; broken.len()]);
    assert!(p.said(p.channel, 1).await.iter().all(|text| text == "ok"));
    assert_eq!(p.known(p.ada).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_learnt_about_others() {
    let p = learning().await;
    p.script(&facts(&[
        FACT,
        "Works with Boris.",
        "Works with @somebody.",
    ]));
    let bot = p.stage.start().await;
    p.ask(
        p.ada,
        &format!("{SAID} with <@{}> and <@!{}>", p.boris, p.boris),
    );
    p.said(p.channel, 2).await;
    let extraction = p.prompt(2).await;
    assert!(!extraction.contains("Boris"), "{extraction}");
    let lines = bot.stop().await;
    assert_eq!(
        details(&lines, "learnt"),
        [json!({"facts": 1, "refused": 2})]
    );
    assert_eq!(texts(&p.known(p.ada).await), [FACT]);
    assert_eq!(p.known(p.boris).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_quoted_adopted_or_forwarded_is_given_to_the_extraction() {
    let p = learning().await;
    let discord = &p.stage.discord;
    let bot = p.stage.start().await;
    let theirs = discord.post(p.channel, p.boris, format!("I grow {MARK} trees in Oslo"));
    let mention = format!("<@{}>", p.us);
    let own = format!(
        "{mention} {SAID}\n> I eat a {MARK} a day\n```\n{MARK} = 1\n```\nhe said \"I do like {MARK}\""
    );
    discord.post(p.channel, p.ada, Draft::new(own).reply_to(theirs));
    let answer = p.prompt(1).await;
    assert!(answer.contains(MARK), "the answer sees it all: {answer}");
    let extraction = p.prompt(2).await;
    assert!(
        extraction.contains(SAID) && !extraction.contains(MARK),
        "{extraction}"
    );
    // Ada only points at the message and says nothing of her own: no extraction.
    p.said(p.channel, 1).await;
    discord.post(p.channel, p.ada, Draft::new(&mention).reply_to(theirs));
    p.prompt(3).await;
    p.said(p.channel, 2).await;
    // A forward in a direct message.
    let direct = discord.world(|world| world.direct(p.ada));
    discord.post(direct, p.ada, Draft::new("").forward_of(p.channel, theirs));
    p.said(direct, 1).await;
    bot.stop().await;
    let extractions = p.stage.model.requests();
    let extractions = extractions.iter().filter(|one| is_extraction(one));
    assert_eq!(extractions.count(), 1);
}

fn is_extraction(request: &Value) -> bool {
    prompt(request).starts_with("You keep short notes")
}

#[track_caller]
fn assert_no_extractions(p: &Place, turns: usize) {
    let requests = p.stage.model.requests();
    assert!(!requests.iter().any(is_extraction), "{requests:?}");
    assert_eq!(requests.len(), turns);
}

#[tokio::test(flavor = "multi_thread")]
async fn off_by_default() {
    let p = place(&[]).await;
    let bot = p.stage.start().await;
    p.ask(p.ada, SAID);
    p.said(p.channel, 1).await;
    bot.stop().await;
    assert_no_extractions(&p, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_or_an_opt_out_switches_it_off() {
    let p = learning().await;
    let store = p.store().await;
    let off = GuildSettings {
        learning: Some(false),
        ..GuildSettings::default()
    };
    let guild = GuildId::new(p.guild.0);
    store.set_settings(guild, &off).await.unwrap();
    let since = Some(UnixMillis(0));
    store.set_opt_out(user(p.boris), since).await.unwrap();
    store.close().await.unwrap();
    let bot = p.stage.start().await;
    p.ask(p.ada, SAID);
    p.said(p.channel, 1).await;
    let direct = p.stage.discord.world(|world| world.direct(p.boris));
    p.stage.discord.post(direct, p.boris, SAID);
    p.said(direct, 1).await;
    bot.stop().await;
    assert_no_extractions(&p, 2);
}

/// Facts learnt in a direct message are used only there; the note is posted there, too.
#[tokio::test(flavor = "multi_thread")]
async fn in_direct_messages_facts_stay_there() {
    let p = learning().await;
    p.script(&facts(&[FACT]));
    let bot = p.stage.start().await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    p.stage.discord.post(direct, p.ada, SAID);
    assert_eq!(p.said(direct, 2).await, ["ok", "-# Noted 1 thing."]);
    p.ask(p.ada, "what should I cook this evening?");
    for number in [3, 4] {
        let prompt = p.prompt(number).await;
        assert!(!prompt.contains(FACT), "{prompt}");
    }
    bot.stop().await;
    assert_eq!(p.known(p.ada).await[0].origin, Origin::Direct);
}

/// The note after a command is shown to the caller only; there is no message to link to.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_command_only_the_caller_sees_the_note() {
    let p = learning().await;
    p.script(&facts(&[FACT]));
    let bot = p.stage.start().await;
    let call = p
        .stage
        .discord
        .call(p.ada, p.channel, "ask", json!({"question": SAID}));
    let note = call.await.unwrap().follow_up(0).await.unwrap();
    assert_eq!(
        (note.content.as_str(), note.ephemeral),
        ("-# Noted 1 thing.", true)
    );
    assert_eq!(note.buttons()[0].0, "Show");
    bot.stop().await;
    assert_eq!(p.known(p.ada).await[0].link, None);
}

/// The same person's next turn does not wait for the extraction.
#[tokio::test(flavor = "multi_thread")]
async fn lessons_do_not_delay_answers() {
    let p = learning().await;
    p.stage.model.script(Behaviour::text(&["first"]));
    let (extraction, gate) = Behaviour::gated(&[&facts(&[FACT])]);
    p.stage.model.script(extraction);
    p.stage.model.script(Behaviour::text(&["second"]));
    let bot = p.stage.start().await;
    p.ask(p.ada, SAID);
    p.prompt(2).await;
    p.ask(p.ada, "ok?");
    assert_eq!(p.said(p.channel, 2).await, ["first", "second"]);
    gate.open();
    assert_eq!(p.said(p.channel, 3).await[2], "-# Noted 1 thing.");
    bot.stop().await;
}

/// The trigger is deleted before the extraction ends.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_learnt_from_a_deleted_trigger() {
    let p = learning().await;
    p.stage.model.script(Behaviour::text(&["ok"]));
    let (extraction, gate) = Behaviour::gated(&[&facts(&[FACT])]);
    p.stage.model.script(extraction);
    let bot = p.stage.start().await;
    let trigger = p.ask(p.ada, SAID);
    p.prompt(2).await;
    assert!(p.stage.discord.delete(p.channel, trigger));
    p.seen().await;
    gate.open();
    p.stage.model.wait_ended(2).await;
    let lines = bot.stop().await;
    assert_eq!(
        details(&lines, "learnt"),
        [json!({"facts": 0, "refused": 0})]
    );
    assert_eq!(p.known(p.ada).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_model_does_not_delay_the_shutdown() {
    let p = learning().await;
    p.stage.model.script(Behaviour::text(&["ok"]));
    p.stage.model.script(Behaviour::Hang);
    let bot = p.stage.start().await;
    p.ask(p.ada, SAID);
    p.prompt(2).await;
    let lines = bot.stop().await;
    let stopping = details(&lines, "stopping");
    assert_eq!(stopping[0]["abandoned"], 0, "{stopping:?}");
    assert_eq!(details(&lines, "learnt"), [] as [Value; 0]);
}

/// The bot loses the right to post there.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_post_there_is_no_note() {
    let p = learning().await;
    p.stage.model.script(Behaviour::text(&["ok"]));
    let (extraction, gate) = Behaviour::gated(&[&facts(&[FACT])]);
    p.stage.model.script(extraction);
    let bot = p.stage.start().await;
    p.ask(p.ada, SAID);
    p.prompt(2).await;
    let of_us = OverwriteOf::Member(p.us);
    let (none, send) = (Permissions::NONE, Permissions::SEND_MESSAGES);
    p.stage.discord.overwrite(p.channel, of_us, none, send);
    p.seen().await;
    let posts = || p.stage.discord.requests_to("POST", "/messages").len();
    let before = posts();
    gate.open();
    p.stage.model.wait_ended(2).await;
    bot.stop().await;
    assert_eq!(posts(), before);
    assert_eq!(texts(&p.known(p.ada).await), [FACT]);
}

/// After a save, not even a kill loses anything.
#[tokio::test(flavor = "multi_thread")]
async fn saved_every_interval() {
    let p = place(&[("MEMORY_LEARN", "model"), ("MEMORY_SAVE_INTERVAL", "1")]).await;
    p.script(&facts(&[FACT]));
    let bot = p.stage.start().await;
    p.ask(p.ada, SAID);
    p.said(p.channel, 2).await;
    let saved = async {
        while texts(&p.known(p.ada).await) != [FACT] {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let patience = Duration::from_secs(30);
    tokio::time::timeout(patience, saved)
        .await
        .expect("it is saved while the bot runs");
    bot.stop().await;
}
