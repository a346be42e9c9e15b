//! Questions for which an app posts a copy: one of the two is asked, once.

use std::time::Duration;

use clew_simulator::{Draft, Id, Message, Permissions, Use};
use serde_json::json;

use super::proxies::{LISTED, proxied};
use super::{Place, place_with};
use crate::support::bot::Bot;
use crate::support::model::Behaviour;

/// Longer than anything takes here: what is not decided by events never is.
const LONG: Duration = Duration::from_secs(10);
/// Over before anybody acts.
const SHORT: Duration = Duration::from_millis(20);

/// A running bot and a thread in which the app has posted.
struct Talk {
    p: Place,
    bot: Bot,
    hook: Id,
    thread: Id,
    /// Who manages the server, if anybody does.
    maria: Id,
}

async fn talk(hold: Duration) -> Talk {
    let (mut p, (hook, thread, maria)) = place_with(&[LISTED], |world, seeds| {
        let maria = world.member(seeds.guild, "Maria");
        let manager = world.role(seeds.guild, "manager", Permissions::MANAGE_GUILD);
        world.give_role(seeds.guild, maria, manager);
        (world.fresh_id(), seeds.thread(world, "pump"), maria)
    })
    .await;
    holds(&mut p, hold);
    let bot = p.start().await;
    p.post(thread, hook, proxied("Luna", "hello all"));
    Talk {
        p,
        bot,
        hook,
        thread,
        maria,
    }
}

/// How long a question waits for its copy.
pub(super) fn holds(p: &mut Place, hold: Duration) {
    p.stage
        .adjust(move |config| config.triggers.proxy_hold = hold);
}

impl Talk {
    /// Ada's question as she types it, with her tag.
    fn asks(&self, words: &str) -> Id {
        let text = format!("L: {}", self.p.to_us(words));
        self.p.post(self.thread, self.p.ada, text)
    }

    /// What the app makes of it.
    fn copies(&self, words: &str) -> Id {
        let text = self.p.to_us(words);
        self.p.post(self.thread, self.hook, proxied("Luna", &text))
    }

    fn deletes(&self, message: Id) {
        self.p.stage.discord.delete(self.thread, message);
    }

    /// Exactly one answer was given, to this message, and the prompt says this once.
    async fn answered(self, target: Id, words: &str) {
        self.p.answer(self.thread, 1).await;
        self.p.seen().await;
        assert_eq!(self.p.targets(self.thread), [Some(target)]);
        let prompt = self.p.prompt(1).await;
        assert_eq!(prompt.matches(words).count(), 1, "{prompt}");
        self.bot.stop().await;
        assert_eq!(self.p.stage.model.requests().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_copy_of_a_deleted_question_is_asked() {
    for copy_first in [true, false] {
        let talk = talk(LONG).await;
        let original = talk.asks("what leaks?");
        let copy = if copy_first {
            let copy = talk.copies("what leaks?");
            talk.p.seen().await;
            assert!(talk.p.stage.model.requests().is_empty(), "both wait");
            talk.deletes(original);
            copy
        } else {
            talk.deletes(original);
            talk.copies("what leaks?")
        };
        talk.answered(copy, "what leaks?").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_without_a_copy_is_asked_after_a_while() {
    let talk = talk(SHORT).await;
    let original = talk.asks("what leaks?");
    talk.answered(original, "what leaks?").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_deleted_without_a_copy_is_not_asked() {
    let talk = talk(LONG).await;
    let original = talk.asks("what leaks?");
    talk.p
        .post(talk.thread, talk.hook, proxied("Sol", "nice weather"));
    talk.deletes(original);
    talk.p.seen().await;
    assert!(talk.p.stage.model.requests().is_empty());
    let copy = talk.copies("something else?");
    talk.answered(copy, "something else?").await;
}

/// What others say while it waits is not what it is about.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_waited_is_what_is_answered() {
    let talk = talk(Duration::from_millis(500)).await;
    let original = talk.asks("what leaks?");
    talk.p.post(talk.thread, talk.p.boris, "nice weather");
    talk.answered(original, "what leaks?").await;
}

/// What waits is answered by itself, not along with somebody else's question.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_waits_is_no_target() {
    let talk = talk(LONG).await;
    let said = talk.p.post(talk.thread, talk.p.boris, "the pump leaks");
    talk.asks("what else?");
    talk.copies("");
    talk.p.answer(talk.thread, 1).await;
    assert_eq!(talk.p.targets(talk.thread), [Some(said)]);
    talk.bot.stop().await;
}

/// Whether the copy comes before the question is asked or after, it is shown nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_beside_its_original_is_neither_asked_nor_shown() {
    let talk = talk(Duration::from_millis(500)).await;
    let original = talk.asks("what leaks?");
    talk.copies("what leaks?");
    talk.answered(original, "what leaks?").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_deleted_late_is_handed_over_to_its_copy() {
    let talk = talk(SHORT).await;
    let (behaviour, _gate) = Behaviour::gated(&["It is ", "the valve."]);
    talk.p.stage.model.script(behaviour);
    let original = talk.asks("what leaks?");
    talk.p.stage.model.wait_requests(1).await;
    let copy = talk.copies("what leaks?");
    talk.p.seen().await;
    assert_eq!(
        talk.p.stage.model.requests().len(),
        1,
        "it is asked already"
    );
    talk.deletes(original);
    talk.p.prompt(2).await;
    talk.p.answer(talk.thread, 1).await;
    talk.p.seen().await;
    assert_eq!(talk.p.targets(talk.thread), [Some(copy)]);
    talk.bot.stop().await;
}

/// There is an answer, which stands as it was: the copy is not asked beside it.
#[tokio::test(flavor = "multi_thread")]
async fn the_copy_of_a_question_that_is_answered_anew_is_not_asked() {
    let talk = talk(SHORT).await;
    let (p, discord) = (&talk.p, &talk.p.stage.discord);
    let buttons = json!({"buttons": "on"});
    let set = discord.call(talk.maria, p.channel, "settings set", buttons);
    set.await.unwrap().answer().await.unwrap();
    let original = talk.asks("what leaks?");
    let answers = discord.wait_answers(talk.thread, 1).await.unwrap();
    let answer = answers[0].clone();
    // Its turn is over once it has another button than Stop.
    let is_over = |message: &Message| {
        let text = serde_json::to_string(&message.components).unwrap();
        message.id == answer.id && text.contains("Regenerate")
    };
    discord
        .wait_for_message(talk.thread, is_over)
        .await
        .unwrap();
    let (behaviour, _gate) = Behaviour::gated(&["It is ", "the valve."]);
    p.stage.model.script(behaviour);
    let pressed = discord.press(p.ada, answer.id, "Regenerate");
    pressed.answer().await.unwrap();
    p.stage.model.wait_requests(2).await;
    talk.copies("what leaks?");
    talk.deletes(original);
    // What is asked then is the next to be answered.
    let other = p.post(talk.thread, p.boris, p.to_us("and the other one?"));
    discord.wait_answers(talk.thread, 2).await.unwrap();
    p.seen().await;
    assert_eq!(p.targets(talk.thread), [Some(original), Some(other)]);
    talk.bot.stop().await;
    assert_eq!(talk.p.stage.model.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_while_it_waits_counts() {
    let talk = talk(LONG).await;
    let original = talk.asks("what leeks?");
    let text = format!("L: {}", talk.p.to_us("what leaks?"));
    talk.p.stage.discord.edit(talk.thread, original, &text);
    let copy = talk.copies("what leaks?");
    talk.deletes(original);
    talk.answered(copy, "what leaks?").await;
}

/// Apps cannot reply: the copy has neither a reference nor a mention.
#[tokio::test(flavor = "multi_thread")]
async fn the_copy_of_a_reply_to_us_is_asked_too() {
    let talk = talk(LONG).await;
    let own = talk.p.post(talk.thread, talk.p.us, "It leaks.");
    let reply = Draft::new("L: since when?").reply_to(own);
    let original = talk.p.post(talk.thread, talk.p.ada, reply);
    let copy = proxied("Luna", "since when?");
    let copy = talk.p.post(talk.thread, talk.hook, copy);
    talk.deletes(original);
    talk.p.prompt(1).await;
    talk.p.answer(talk.thread, 2).await;
    let targets = talk.p.targets(talk.thread);
    assert_eq!(targets.last(), Some(&Some(copy)), "{targets:?}");
    talk.bot.stop().await;
}

/// Where the app was not seen yet nothing waits; what is asked then is asked once, too.
#[tokio::test(flavor = "multi_thread")]
async fn where_no_app_was_seen_a_question_is_asked_at_once() {
    let (mut p, hook) = place_with(&[LISTED], super::proxies::webhook).await;
    holds(&mut p, LONG);
    let bot = p.start().await;
    let original = p.post(p.channel, p.ada, p.to_us("L: why?"));
    p.answer(p.channel, 1).await;
    // Her next question is asked when the turn before it is over.
    p.post(p.channel, p.ada, p.to_us("and how?"));
    p.prompt(2).await;
    p.post(p.channel, hook, proxied("Luna", &p.to_us("why?")));
    p.stage.discord.delete(p.channel, original);
    p.seen().await;
    assert_eq!(p.stage.model.requests().len(), 2);
    bot.stop().await;
}

/// What a bridge posts was written elsewhere: a question here has no copy to wait for, and
/// what the bridge posts is a question of its own.
#[tokio::test(flavor = "multi_thread")]
async fn where_a_bridge_posts_nothing_waits() {
    let (mut p, hook) = place_with(&[], super::proxies::webhook).await;
    holds(&mut p, LONG);
    p.stage.set("PROXY_APPS", &hook.to_string());
    let bot = p.start().await;
    let bridged = |text: &str| Draft::new(text).webhook("ada on IRC");
    p.post(p.channel, hook, bridged("hello all"));
    p.post(p.channel, p.ada, p.to_us("why?"));
    p.seen().await;
    p.post(p.channel, hook, bridged(&p.to_us("why?")));
    p.seen().await;
    bot.stop().await;
    assert_eq!(p.stage.model.requests().len(), 2);
}

/// The bot stops while a question waits: the next process asks it.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_at_the_end_is_asked_by_the_next_process() {
    let talk = talk(LONG).await;
    let original = talk.asks("what leaks?");
    talk.p.seen().await;
    let Talk { p, bot, thread, .. } = talk;
    bot.stop().await;
    assert!(p.stage.model.requests().is_empty());
    let bot = p.stage.launch();
    p.answer(thread, 1).await;
    assert_eq!(p.targets(thread), [Some(original)]);
    bot.stop().await;
}

/// A copy waits in the place of its original when the bot stops: the next process asks it.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_waits_in_its_originals_place_is_asked_by_the_next_process() {
    let (p, (hook, thread)) = place_with(&[LISTED], |world, seeds| {
        (world.fresh_id(), seeds.thread(world, "pump"))
    })
    .await;
    let bot = p.start().await;
    let gate = p.hold("It is dry.");
    p.post(thread, p.boris, p.to_us("is it dry?"));
    p.stage.model.wait_requests(1).await;
    let original = p.post(thread, p.ada, p.to_us("L: what leaks?"));
    let copy = p.post(thread, hook, proxied("Luna", &p.to_us("what leaks?")));
    p.stage.discord.delete(thread, original);
    let ask = Use::slash("ask", &[("question", "and you?")]);
    let call = p.stage.discord.interact(thread, p.boris, &ask);
    p.seen().await;
    let closed = async {
        let is_told = |told: &Message| told.content.contains("restarting");
        let told = p.stage.discord.wait_interaction(call, is_told).await;
        told.unwrap();
        gate.open();
    };
    tokio::join!(bot.stop(), closed);
    let (behaviour, gate) = Behaviour::text(&["It is the valve."]).held();
    p.stage.model.script(behaviour);
    let bot = p.stage.launch();
    p.seen().await;
    gate.open();
    p.answer(thread, 3).await;
    assert_eq!(p.targets(thread).last(), Some(&Some(copy)));
    bot.stop().await;
}

/// The bot stops while a question and its copy wait, and the question is deleted while
/// nobody is there: the next process answers the copy.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_deleted_between_two_processes_gives_way_to_its_copy() {
    let talk = talk(LONG).await;
    let original = talk.asks("what leaks?");
    let copy = talk.copies("what leaks?");
    talk.p.seen().await;
    let (behaviour, gate) = Behaviour::text(&["It is the valve."]).held();
    let Talk { p, bot, thread, .. } = talk;
    bot.stop().await;
    p.stage.discord.delete(thread, original);
    p.stage.model.script(behaviour);
    let bot = p.stage.launch();
    p.seen().await;
    gate.open();
    p.answer(thread, 1).await;
    p.seen().await;
    assert_eq!(p.targets(thread), [Some(copy)]);
    bot.stop().await;
}

/// Lists of who may ask refuse the app: its copy is a copy all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_copy_is_not_shown_beside_its_original() {
    let (mut p, (hook, thread)) = place_with(&[LISTED], |world, seeds| {
        (world.fresh_id(), seeds.thread(world, "pump"))
    })
    .await;
    holds(&mut p, Duration::from_millis(500));
    p.stage.set("DENIED", &format!("user:{hook}"));
    let bot = p.start().await;
    p.post(thread, hook, proxied("Luna", "hello all"));
    let talk = Talk {
        p,
        bot,
        hook,
        thread,
        maria: Id(0),
    };
    let original = talk.asks("what leaks?");
    talk.copies("what leaks?");
    talk.answered(original, "what leaks?").await;
}

/// Somebody replies to the copy: then it is shown, whether its original is there or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_somebody_points_at_is_shown() {
    let talk = talk(Duration::from_millis(300)).await;
    talk.asks("what leaks?");
    let copy = talk.copies("what leaks?");
    let reply = Draft::new(talk.p.to_us("and since when?")).reply_to(copy);
    talk.p.post(talk.thread, talk.p.boris, reply);
    talk.p.answer(talk.thread, 2).await;
    let prompt = talk.p.prompt(2).await;
    let said = "Luna [through an app] [pointed at by the asker]";
    assert!(prompt.contains(said), "{prompt}");
    talk.bot.stop().await;
}
