//! The buttons under answers: what is stopped, given anew and continued, for whom, and what survives a
//! restart.

use clew_simulator::{Id, Message, Permissions, Shown, Use};
use serde_json::{Value, json};

use super::{Place, assert_in_order, only, place_with};
use crate::support::bot::{Bot, details};
use crate::support::model::{Behaviour, Gate};

const NOT_THEIRS: &str = "-# That is for whoever asked, and for who has Manage Messages.";
const TOO_OLD: &str = "-# That button is too old.";
const AGAIN: &str = "I'll answer again.";

/// A place whose server wants buttons; Maria manages it.
async fn steered(settings: &[(&str, &str)]) -> (Place, Bot, Id) {
    let (p, maria) = place_with(settings, |world, seeds| {
        let maria = world.member(seeds.guild, "Maria");
        let rights = Permissions::MANAGE_GUILD | Permissions::MANAGE_MESSAGES;
        let role = world.role(seeds.guild, "manager", rights);
        world.give_role(seeds.guild, maria, role);
        maria
    })
    .await;
    let bot = p.start().await;
    let options = json!({"buttons": "on"});
    let called = p
        .stage
        .discord
        .call(maria, p.channel, "settings set", options);
    let set = called.await.unwrap().answer().await.unwrap();
    assert_in_order(&set.text(), &["Buttons under my answers", "on"]);
    (p, bot, maria)
}

fn labels(message: &Message) -> Vec<&str> {
    let rows = message.components.iter();
    let buttons = rows.flat_map(|row| row["components"].as_array().unwrap());
    buttons.map(|one| one["label"].as_str().unwrap()).collect()
}

/// The question of a message whose buttons say that its turn is over.
fn over(message: &Message) -> Option<Id> {
    let id = message.components.first()?["components"][0]["custom_id"].as_str()?;
    let id = match id.split_once(':')? {
        ("regenerate", of) => u64::from_str_radix(of.get(1..)?.split('.').next()?, 16),
        ("continue", of) => of.split('.').next()?.parse(),
        _ => return None,
    };
    Some(Id(id.unwrap()))
}

impl Place {
    /// Has an answer given anew that comes in two parts, after the first.
    async fn comes_anew(&self, who: Id, on: Id) -> (Shown, Gate) {
        let (behaviour, gate) = Behaviour::gated(&["Ro\n", "me."]);
        self.stage.model.script(behaviour);
        let told = self.presses(who, on, "Regenerate").await;
        assert_eq!(told.text(), AGAIN);
        gate.step(1);
        (told, gate)
    }

    /// Presses a button; returns what only the presser sees.
    async fn presses(&self, who: Id, on: Id, label: &str) -> Shown {
        let pressed = self.stage.discord.press(who, on, label);
        let shown = pressed.answer().await.unwrap();
        assert!(shown.ephemeral && shown.message != on);
        shown
    }

    /// Waits for the message that says this under exactly these buttons.
    async fn shown(&self, text: &str, buttons: &[&str]) -> Message {
        let fits = |message: &Message| message.content == text && labels(message) == buttons;
        let found = self
            .stage
            .discord
            .wait_for_message(self.channel, fits)
            .await;
        found.unwrap_or_else(|error| {
            panic!("{error}: {:?}", self.stage.discord.answers(self.channel))
        })
    }

    /// The same; if its buttons say that its turn is over, until the bot takes it for over, too.
    async fn with(&self, text: &str, buttons: &[&str]) -> Message {
        let shown = self.shown(text, buttons).await;
        if let Some(question) = over(&shown) {
            self.stops_in_vain(self.boris, question, shown.id).await;
        }
        shown
    }

    /// A question of Ada's whose answer grows.
    async fn growing(&self) -> (Id, Message, Gate) {
        let (behaviour, gate) = Behaviour::gated(&["Paris is\n", "the capital."]);
        self.stage.model.script(behaviour);
        let question = self.post(self.channel, self.ada, self.to_us("capital of France?"));
        gate.step(1);
        let grows = self.with("Paris is", &["Stop"]).await;
        (question, grows, gate)
    }

    /// Presses Stop under an answer until its turn is over.
    async fn stops_in_vain(&self, who: Id, question: Id, on: Id) {
        let used = Use::Component {
            message: on,
            custom_id: format!("stop-answer:{question}"),
            values: Vec::new(),
        };
        for _ in 0..1_000 {
            let pressed = self.stage.discord.interact(self.channel, who, &used);
            let told = self.stage.discord.wait_interaction(pressed, |_| true).await;
            if told.unwrap().content == TOO_OLD {
                return;
            }
        }
        panic!("the turn is still under way");
    }

    /// A question of Ada's with its answer.
    async fn answered(&self, text: &str) -> (Id, Message) {
        self.stage.model.script(Behaviour::text(&[text]));
        let question = self.post(self.channel, self.ada, self.to_us("capital of France?"));
        (question, self.with(text, &["Regenerate"]).await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_stopped_by_its_asker_and_by_moderators() {
    let (p, bot, maria) = steered(&[]).await;
    for who in [p.ada, maria] {
        let (question, grows, _gate) = p.growing().await;
        assert_eq!(
            p.presses(p.boris, grows.id, "Stop").await.text(),
            NOT_THEIRS
        );
        assert_eq!(
            p.presses(who, grows.id, "Stop").await.text(),
            "Stopping it."
        );
        let buttons = ["Regenerate", "Continue"];
        let over = p.with("Paris is\n-# I was stopped here.", &buttons).await;
        assert_eq!(over.id, grows.id);
        // Of a turn that is over, or of another process.
        p.stops_in_vain(who, question, grows.id).await;
        p.stage.discord.delete(p.channel, grows.id);
    }
    p.stage.model.wait_ended(2).await;
    let lines = bot.stop().await;
    for done in details(&lines, "turn_done") {
        assert_eq!(
            (&done["outcome"], &done["order"]),
            (&json!("cancelled"), &json!("stop"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_block_ends_before_the_line_that_says_it_was_stopped() {
    let (p, bot, _) = steered(&[]).await;
    let (behaviour, gate) = Behaviour::gated(&["```rust\nlet x\n", "= 1;"]);
    p.stage.model.script(behaviour);
    p.post(p.channel, p.ada, p.to_us("code?"));
    gate.step(1);
    let code = "```rust\nlet x\n```";
    let grows = p.with(code, &["Stop"]).await;
    p.presses(p.ada, grows.id, "Stop").await;
    let over = format!("{code}\n-# I was stopped here.");
    p.with(&over, &["Regenerate", "Continue"]).await;
    bot.stop().await;
}

/// A model would repeat what stands on them.
#[tokio::test(flavor = "multi_thread")]
async fn what_buttons_say_is_in_no_prompt() {
    let settings = [("RECEIPT_BUTTON", "true")];
    let (p, thread) = place_with(&settings, |world, seeds| seeds.thread(world, "leak")).await;
    let bot = p.start().await;
    p.post(thread, p.ada, p.to_us("where is it?"));
    let has_button = |message: &Message| labels(message) == ["Why?"];
    let answer = p.stage.discord.wait_for_message(thread, has_button).await;
    assert_eq!(answer.unwrap().content, "ok");
    p.seen().await;
    p.post(thread, p.ada, p.to_us("and now?"));
    let prompt = p.prompt(2).await;
    assert!(
        prompt.contains("ok") && !prompt.contains("Why?"),
        "{prompt}"
    );
    p.answer(thread, 2).await;
    bot.stop().await;
}

/// The same question and answer by their ids; what is asked is as it reads now, and is judged anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_again_in_the_same_messages() {
    let (p, bot, maria) = steered(&[]).await;
    p.post(p.channel, p.boris, "a word before");
    let (question, answer) = p.answered("Paris.").await;
    assert_eq!(
        p.presses(p.boris, answer.id, "Regenerate").await.text(),
        NOT_THEIRS
    );
    let edited = p.to_us("capital of Italy?");
    p.stage.discord.edit(p.channel, question, &edited);
    bot.stop().await;
    let bot = p.stage.start().await;
    let (_, gate) = p.comes_anew(p.ada, answer.id).await;
    gate.open();
    let again = p.with("Ro\nme.", &["Regenerate"]).await;
    assert_eq!(again.id, answer.id);
    let prompt = p.prompt(2).await;
    assert!(prompt.ends_with("capital of Italy?"), "{prompt}");
    assert!(!prompt.contains("Paris"), "{prompt}");
    // A moderator's press counts as theirs; what is stored is the last answer.
    p.stage.model.script(Behaviour::text(&["Roma."]));
    assert_eq!(
        p.presses(maria, answer.id, "Regenerate").await.text(),
        AGAIN
    );
    p.with("Roma.", &["Regenerate"]).await;
    p.post(p.channel, p.ada, p.to_us("and then?"));
    let prompt = p.prompt(4).await;
    assert!(
        prompt.contains("Roma.") && !prompt.contains("Ro\nme."),
        "{prompt}"
    );
    p.with("ok", &["Regenerate"]).await;
    let lines = bot.stop().await;
    let orders: Vec<Value> = details(&lines, "turn_done");
    let orders: Vec<&Value> = orders.iter().map(|done| &done["order"]).collect();
    let again = json!("regenerate");
    assert_eq!(orders, [&Value::Null, &again, &again, &Value::Null]);
    assert_eq!(p.stage.discord.answers(p.channel).len(), 2);
}

/// Its context is that of the question: neither the answer before nor what was said after it.
#[tokio::test(flavor = "multi_thread")]
async fn what_came_after_the_question_is_not_read() {
    let (mut p, bot, _) = steered(&[]).await;
    let discord = &p.stage.discord;
    let anchor = discord.post(p.channel, p.boris, "capitals");
    let thread = discord.thread_from(p.channel, anchor, "capitals", p.boris);
    p.channel = thread;
    p.post(thread, p.boris, "of countries in the south");
    let (_, answer) = p.answered("Paris.").await;
    p.post(thread, p.boris, "nonsense");
    p.presses(p.ada, answer.id, "Regenerate").await;
    p.with("ok", &["Regenerate"]).await;
    let prompt = p.prompt(2).await;
    assert!(prompt.contains("in the south"), "{prompt}");
    assert!(
        !prompt.contains("Paris") && !prompt.contains("nonsense"),
        "{prompt}"
    );
    bot.stop().await;
}

/// What is not whole replaces nothing, whatever ends it: the model, whoever asked, or the process.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_answer_that_is_not_whole_leaves_the_old_one() {
    let (p, bot, _) = steered(&[("SHUTDOWN_TIMEOUT_S", "0")]).await;
    let (question, answer) = p.answered("Paris.").await;
    let stands = async || drop(p.with("Paris.", &["Regenerate"]).await);
    p.stage.model.script(Behaviour::drop(&["Ro"]));
    p.presses(p.ada, answer.id, "Regenerate").await;
    let is_line = |one: &Message| one.content.starts_with("-# ") && one.id > answer.id;
    let discord = &p.stage.discord;
    let line = discord.wait_for_message(p.channel, is_line).await.unwrap();
    stands().await;
    discord.delete(p.channel, line.id);

    let (told, _gate) = p.comes_anew(p.ada, answer.id).await;
    let pressed = discord.press(p.ada, told.message, "Stop");
    assert_eq!(pressed.answer().await.unwrap().text(), "Stopping it.");
    p.stops_in_vain(p.ada, question, answer.id).await;
    stands().await;

    let (_, _gate) = p.comes_anew(p.ada, answer.id).await;
    bot.stop().await;
    p.shown("Paris.", &["Regenerate"]).await;
    let bot = p.stage.start().await;
    let asked = p.stage.model.requests().len();
    p.post(p.channel, p.ada, p.to_us("and then?"));
    let prompt = p.prompt(asked + 1).await;
    assert!(
        prompt.contains("Paris.") && !prompt.contains("Ro"),
        "{prompt}"
    );
    bot.stop().await;
}

/// An answer to a command cannot be given anew: its question stands nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_command_is_stopped_and_goes_on() {
    let (p, bot, _) = steered(&[]).await;
    let (behaviour, gate) = Behaviour::gated(&["One, two,", " three."]);
    p.stage.model.script(behaviour);
    let discord = &p.stage.discord;
    let question = json!({"question": "count"});
    discord
        .call(p.ada, p.channel, "ask", question)
        .await
        .unwrap();
    gate.step(1);
    let grows = p.with("One, two,", &["Stop"]).await;
    assert_eq!(
        p.presses(p.ada, grows.id, "Stop").await.text(),
        "Stopping it."
    );
    p.with("One, two,\n-# I was stopped here.", &["Continue"])
        .await;
    let asked = p.stage.model.requests().len();
    p.stage.model.script(Behaviour::text(&["three."]));
    discord.press(p.ada, grows.id, "Continue");
    p.with("three.", &[]).await;
    assert!(p.prompt(asked + 1).await.contains("One, two,"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longer_answer_gets_messages_and_a_shorter_one_gives_them_back() {
    let (p, bot, _) = steered(&[("ANSWER_MAX_MESSAGES", "2")]).await;
    let (_, answer) = p.answered("Paris.").await;
    let long = "A sentence of some length. ".repeat(300);
    p.stage.model.script(Behaviour::text(&[&long]));
    p.presses(p.ada, answer.id, "Regenerate").await;
    let is_last = |one: &Message| one.id > answer.id && labels(one) == ["Regenerate"];
    let last = p
        .stage
        .discord
        .wait_for_message(p.channel, is_last)
        .await
        .unwrap();
    assert_eq!(last.attachments.len(), 1);
    let answers = p.stage.discord.answers(p.channel);
    assert!(answers.len() == 2 && answers[0].id == answer.id);
    assert!(answers[0].content.starts_with("A sentence") && labels(&answers[0]).is_empty());
    p.stage.model.script(Behaviour::text(&["Short."]));
    p.presses(p.ada, last.id, "Regenerate").await;
    let short = p.with("Short.", &["Regenerate"]).await;
    assert_eq!(short.id, answer.id);
    assert_eq!(p.stage.discord.answers(p.channel).len(), 1);
    assert!(short.attachments.is_empty());
    bot.stop().await;
}

/// A new answer that does not come leaves the old one.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_answered_again_stays_as_it_was() {
    let (p, bot, maria) = steered(&[("USER_TURNS_PER_MIN", "3")]).await;
    let (question, answer) = p.answered("Paris.").await;
    p.stage.model.script(Behaviour::status(400, "no"));
    p.presses(p.ada, answer.id, "Regenerate").await;
    let is_line = |one: &Message| one.content.starts_with("-# The model rejected this.");
    p.stage
        .discord
        .wait_for_message(p.channel, is_line)
        .await
        .unwrap();
    p.with("Paris.", &["Regenerate"]).await;
    let why = p.why(answer.id).await;
    assert!(!why.contains("No record"), "{why}");
    // It is being answered.
    let (behaviour, gate) = Behaviour::text(&["Rome."]).held();
    p.stage.model.script(behaviour);
    assert_eq!(
        p.presses(p.ada, answer.id, "Regenerate").await.text(),
        AGAIN
    );
    p.stage.model.wait_requests(3).await;
    let busy = "-# I'm answering this question just now.";
    assert_eq!(p.presses(maria, answer.id, "Regenerate").await.text(), busy);
    gate.open();
    p.with("Rome.", &["Regenerate"]).await;
    let rate = "-# That's a lot of questions. Try again in a minute.";
    assert_eq!(p.presses(p.ada, answer.id, "Regenerate").await.text(), rate);
    p.stage.discord.delete(p.channel, question);
    let gone = "-# The question is deleted.";
    assert_eq!(p.presses(maria, answer.id, "Regenerate").await.text(), gone);
    assert_eq!(p.stage.model.requests().len(), 3);
    bot.stop().await;
}

/// Whoever presses, the tokens are the asker's.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_given_anew_without_tokens_of_whoever_asked() {
    let (p, bot, maria) = steered(&[("TOKENS_PER_DAY", "10,0")]).await;
    let (_, answer) = p.answered("Paris.").await;
    let spent = "-# Whoever asked that has no tokens left today, or is blocked.";
    assert_eq!(
        p.presses(maria, answer.id, "Regenerate").await.text(),
        spent
    );
    assert_eq!(p.stage.model.requests().len(), 1);
    bot.stop().await;
}

/// One that waits for another of its asker's is not begun.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_to_be_given_anew_is_stopped_before_it_begins() {
    let (p, bot, _) = steered(&[]).await;
    let (question, answer) = p.answered("Paris.").await;
    let (behaviour, gate) = Behaviour::text(&["Rome."]).held();
    p.stage.model.script(behaviour);
    p.post(p.channel, p.ada, p.to_us("and of Italy?"));
    p.stage.model.wait_requests(2).await;
    assert_eq!(
        p.presses(p.ada, answer.id, "Regenerate").await.text(),
        AGAIN
    );
    let used = Use::Component {
        message: answer.id,
        custom_id: format!("stop-answer:{question}"),
        values: Vec::new(),
    };
    let pressed = p.stage.discord.interact(p.channel, p.ada, &used);
    let told = p.stage.discord.wait_interaction(pressed, |_| true).await;
    assert_eq!(told.unwrap().content, "Stopping it.");
    gate.open();
    p.shown("Rome.", &["Regenerate"]).await;
    p.shown("Paris.", &["Regenerate"]).await;
    assert_eq!(p.stage.model.requests().len(), 2);
    bot.stop().await;
}

/// Blocks hold for who presses; what somebody wrote who opted out is asked again by themselves only.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_and_opt_outs_hold() {
    let (p, bot, maria) = steered(&[]).await;
    let discord = &p.stage.discord;
    let (_, answer) = p.answered("Paris.").await;
    p.opts_out(p.ada).await;
    assert_eq!(
        p.presses(maria, answer.id, "Regenerate").await.text(),
        NOT_THEIRS
    );
    assert_eq!(
        p.presses(p.ada, answer.id, "Regenerate").await.text(),
        AGAIN
    );
    p.with("ok", &["Regenerate"]).await;
    p.stage.model.script(Behaviour::drop(&["Ro"]));
    p.post(p.channel, p.ada, p.to_us("and of Italy?"));
    let line = "-# The answer broke off here. Ask again for the rest.";
    let buttons = ["Regenerate", "Continue"];
    let broken = p.with(&format!("Ro\n{line}"), &buttons).await;
    let asked = p.stage.model.requests().len();
    let role = discord.role(p.guild, "mod", Permissions::MODERATE_MEMBERS);
    discord.set_role(p.guild, maria, role, true);
    let ada = json!({"member": p.ada.to_string()});
    let blocked = discord.call(maria, p.channel, "block member", ada).await;
    blocked.unwrap().answer().await.unwrap();
    for label in ["Regenerate", "Continue"] {
        let told = p.presses(p.ada, broken.id, label).await.text();
        assert!(told.contains("don't let you ask me here"), "{told}");
    }
    assert_eq!(p.stage.model.requests().len(), asked);
    bot.stop().await;
}

/// A moderator does not ask for somebody whom the operator keeps out by now.
#[tokio::test(flavor = "multi_thread")]
async fn the_operators_lists_hold_for_whoever_asked() {
    let (p, bot, maria) = steered(&[]).await;
    let (_, answer) = p.answered("Paris.").await;
    bot.stop().await;
    let denied = format!("user:{}", p.ada);
    let bot = p.stage.start_with(&[("DENIED", &denied)]).await;
    let told = p.presses(maria, answer.id, "Regenerate").await.text();
    assert_eq!(told, "-# I may not answer whoever asked that.");
    assert_eq!(p.stage.model.requests().len(), 1);
    bot.stop().await;
}

/// As if the answer had been asked about, also after a restart; an answer that is whole offers none.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_broke_off_goes_on() {
    let (p, bot, _) = steered(&[]).await;
    p.stage.model.script(Behaviour::drop(&["One, two,"]));
    p.post(p.channel, p.ada, p.to_us("count"));
    let line = "-# The answer broke off here. Ask again for the rest.";
    let buttons = ["Regenerate", "Continue"];
    let answer = p.with(&format!("One, two,\n{line}"), &buttons).await;
    assert_eq!(
        p.presses(p.boris, answer.id, "Continue").await.text(),
        NOT_THEIRS
    );
    bot.stop().await;
    let bot = p.stage.start().await;
    let asked = p.stage.model.requests().len();
    p.stage.model.script(Behaviour::text(&["three."]));
    let pressed = p.stage.discord.press(p.ada, answer.id, "Continue");
    let shown = pressed.answer().await.unwrap();
    assert_eq!((shown.text().as_str(), shown.ephemeral), ("three.", false));
    let prompt = p.prompt(asked + 1).await;
    let parts = [
        "count",
        "One, two,",
        "Continue this answer exactly where it ends",
    ];
    assert_in_order(&prompt, &parts);
    p.with(&format!("One, two,\n{line}"), &buttons).await;
    let lines = bot.stop().await;
    let outcomes: Vec<Value> = details(&lines, "turn_done");
    let outcomes: Vec<&Value> = outcomes.iter().map(|done| &done["outcome"]).collect();
    assert_eq!(outcomes, ["failed", "answered"]);
}

/// What somebody gets who wants no buttons is to the byte what it was.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_nothing_is_offered() {
    let (p, bot, maria) = steered(&[]).await;
    let off = json!({"buttons": "off"});
    let called = p.stage.discord.call(maria, p.channel, "settings set", off);
    called.await.unwrap().answer().await.unwrap();
    p.stage.discord.clear_requests();
    let (behaviour, gate) = Behaviour::gated(&["Paris is\n", "the capital."]);
    p.stage.model.script(behaviour);
    p.post(p.channel, p.ada, p.to_us("capital of France?"));
    gate.step(1);
    p.with("Paris is", &[]).await;
    gate.open();
    p.with("Paris is\nthe capital.", &[]).await;
    let lines = bot.stop().await;
    assert!(only(&lines, "turn_done").get("order").is_none());
    let path = format!("/channels/{}/messages", p.channel.0);
    for method in ["POST", "PATCH"] {
        for request in p.stage.discord.requests_to(method, &path) {
            assert!(
                request.body.get("components").is_none(),
                "{:?}",
                request.body
            );
        }
    }
}
