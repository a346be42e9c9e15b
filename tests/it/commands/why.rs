//! `/context why` and the button under answers: what an answer was made from, and who is
//! shown it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use clew::app::system_clock;
use clew_context::model::UnixMillis;
use clew_simulator::{ChannelKind, Draft, Id, OverwriteOf, Permissions, Shown, World};
use clew_store::model::{StoreAddress, StoredReceipt};
use clew_store::{Folders, Kind, Record, Store};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Place, assert_refused, assert_says, field, labels, place};
use crate::support::START;
use crate::support::bot::{Bot, Stage, details};
use crate::support::model::Behaviour;
use crate::support::receipt::body;

/// What is said of an answer without a receipt, and of one that is not for the caller.
const NONE: &str = "No record: it expired, or you can't see that channel.";

/// The place, with a channel that only Ada can see, beside us.
async fn place_with_staff(settings: &[(&str, &str)]) -> (Place, Id) {
    let mut world = World::new();
    let guild = world.guild("Works");
    let channel = world.channel(guild, ChannelKind::Text, "help");
    let [ada, boris, maria] = ["Ada", "Boris", "Maria"].map(|name| world.member(guild, name));
    let (us, view) = (world.bot, Permissions::VIEW_CHANNEL);
    let staff = world.channel(guild, ChannelKind::Text, "staff");
    world.deny_everyone(staff, view);
    for who in [us, ada] {
        world.overwrite(staff, OverwriteOf::Member(who), view, Permissions::NONE);
    }
    let stage = Stage::new(world, settings).await;
    let place = Place {
        stage,
        guild,
        channel,
        ada,
        boris,
        maria,
        us,
    };
    (place, staff)
}

impl Place {
    async fn why(&self, who: Id, channel: Id, answer: &str) -> Shown {
        let options = match answer {
            "" => json!({}),
            answer => json!({ "answer": answer }),
        };
        self.call(who, channel, "context why", options).await
    }

    fn link(&self, channel: Id, message: Id) -> String {
        format!(
            "https://discord.com/channels/{}/{channel}/{message}",
            self.guild
        )
    }

    fn last_answer(&self, channel: Id) -> Id {
        self.stage.discord.answers(channel).last().unwrap().id
    }

    async fn store(&self) -> Store {
        let folder = self.stage.folder.path();
        let folders = Folders {
            agents: folder.join("agents"),
            users: folder.join("users"),
            servers: folder.join("servers"),
        };
        let address = StoreAddress::Sqlite(folder.join("clew.db"));
        Store::open(&address, &folders, system_clock())
            .await
            .unwrap()
    }

    /// What is stored, while no bot runs.
    async fn receipts(&self) -> Vec<StoredReceipt> {
        let store = self.store().await;
        let records = store.list(Kind::Receipts).await.unwrap();
        store.close().await.unwrap();
        let receipts = records.into_iter().map(|record| match record {
            Record::Receipt(receipt) => receipt,
            other => panic!("{other:?}"),
        });
        receipts.collect()
    }

    /// Changes the body of the only receipt, while no bot runs.
    async fn change(&self, change: impl FnOnce(&mut Value)) {
        let mut receipts = self.receipts().await;
        let mut receipt = receipts.pop().unwrap();
        assert_eq!(receipts, []);
        let mut body = serde_json::from_str(&receipt.body).unwrap();
        change(&mut body);
        receipt.body = body.to_string();
        let store = self.store().await;
        store.write(&[Record::Receipt(receipt)]).await.unwrap();
        store.close().await.unwrap();
    }
}

fn description(shown: &Shown) -> &str {
    shown.embeds[0]["description"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_tells_what_it_was_made_from() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    assert_refused(&p.why(p.ada, p.channel, "").await, NONE);
    let question = discord.post(p.channel, p.boris, "is 3 bar normal?");
    let reply = format!("<@{}> is it?", p.us);
    let trigger = Draft::new(reply).reply_to(question);
    let trigger = p.ask(p.ada, p.channel, trigger).await;
    let answer = p.last_answer(p.channel);
    let shown = p.why(p.boris, p.channel, "").await;
    let links = [question, trigger, answer].map(|message| p.link(p.channel, message));
    assert_eq!(
        description(&shown),
        format!("1 message read\n**Pointed at** [1]({})", links[0])
    );
    let about = field(&shown, "Question and answer");
    for part in [
        &format!("[question]({})", links[1]),
        &format!("[answer]({})", links[2]),
        "a reply",
        "agent `default`",
    ] {
        assert!(about.contains(part), "{part} is missing in {about}");
    }
    let model = field(&shown, "Model");
    assert!(
        model.starts_with("`fake` · 7 + 3 tokens · first words after"),
        "{model}"
    );
    assert_eq!(shown.embeds[0].get("footer"), None);
    // By id and by link; of what is no answer there is none.
    for named in [
        answer.to_string(),
        format!("<{}>", links[2]),
        links[1].clone(),
    ] {
        assert_eq!(p.why(p.ada, p.channel, &named).await.embeds, shown.embeds);
    }
    assert_refused(&p.why(p.ada, p.channel, &links[0]).await, NONE);
    assert_refused(
        &p.why(p.ada, p.channel, "the last").await,
        "neither a message's link",
    );
    // The next answer is the last one.
    p.talk(p.ada, p.channel, "thank you").await;
    let shown = p.why(p.ada, p.channel, "").await;
    assert_eq!(description(&shown), "0 messages read");
    assert_eq!(
        field(&shown, "Remembered"),
        "2 messages of our conversation"
    );
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "recorded").len(), 2);
    let told = serde_json::to_string(&p.receipts().await[0].body).unwrap();
    assert!(!told.contains("normal"), "no text: {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_read_the_answer_now_may_see_its_receipt() {
    let (p, staff) = place_with_staff(&[]).await;
    let bot = p.stage.start().await;
    p.talk(p.ada, staff, "hello").await;
    let answer = p.link(staff, p.last_answer(staff));
    assert_says(&p.why(p.ada, p.channel, &answer).await, "0 messages read");
    let hidden = p.why(p.boris, p.channel, &answer).await;
    assert_refused(&hidden, NONE);
    let unknown = p.why(p.boris, p.channel, &p.link(staff, Id(9))).await;
    assert_eq!(hidden.content, unknown.content, "closed cases tell nothing");
    let nowhere = p.why(p.boris, p.channel, &p.link(Id(9), Id(9))).await;
    assert_eq!(hidden.content, nowhere.content);
    // In direct messages it is unknown what somebody may read in a server.
    let direct = p.direct(p.ada);
    assert_refused(&p.why(p.ada, direct, &answer).await, NONE);
    // Everybody's own direct messages are their own.
    p.talk(p.ada, direct, "hello").await;
    let in_direct = format!(
        "https://discord.com/channels/@me/{direct}/{}",
        p.last_answer(direct)
    );
    assert_says(&p.why(p.ada, direct, "").await, "a direct message");
    let of_boris = p.direct(p.boris);
    for (who, channel) in [
        (p.boris, of_boris),
        (p.boris, p.channel),
        (p.ada, p.channel),
    ] {
        assert_refused(&p.why(who, channel, &in_direct).await, NONE);
    }
    // Rights that are taken count at once.
    let ours = OverwriteOf::Member(p.ada);
    let history = Permissions::READ_MESSAGE_HISTORY;
    let discord = &p.stage.discord;
    discord.overwrite(staff, ours, Permissions::VIEW_CHANNEL, history);
    discord.settled().await.unwrap();
    assert_refused(&p.why(p.ada, p.channel, &answer).await, NONE);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_about_what_the_caller_may_not_read_are_counted_only() {
    let (p, staff) = place_with_staff(&[]).await;
    let bot = p.stage.start().await;
    p.talk(p.ada, p.channel, "hello").await;
    bot.stop().await;
    let elsewhere = |channel: Id, id: Id| {
        json!({
            "channel": channel.to_string(), "id": id.to_string(), "author": p.ada.to_string(),
            "place": "history", "cut": false,
        })
    };
    // Too long to occur in other ids by chance.
    let ids = [501, 502, 503, 504, 505, 506, 507, 508].map(|id| Id(770_000_000_000 + id));
    let [
        first,
        second,
        third,
        left_out,
        left_out_here,
        read,
        read_there,
        read_here,
    ] = ids;
    let unknown = Id(880_000_000_000);
    p.change(|body| {
        body["prompt"]["shown"] = json!([elsewhere(staff, first), elsewhere(unknown, second)]);
        body["prompt"]["quoted"] = elsewhere(staff, third);
        let omitted = |channel: Id, id: Id| {
            let mut omitted = elsewhere(channel, id);
            omitted["reason"] = json!("msgs");
            omitted
        };
        let sources = [(unknown, read), (staff, read_there), (p.channel, read_here)];
        let sources = sources.map(|(channel, message)| {
            json!({"channel": channel.to_string(), "message": message.to_string()})
        });
        body["prompt"]["left_out"] = json!([{"reason": "msgs", "seen": 2, "all": 7}]);
        let both = [omitted(staff, left_out), omitted(p.channel, left_out_here)];
        body["prompt"]["omitted"] = json!(both);
        body["read"] = json!(sources);
    })
    .await;
    let bot = p.stage.start().await;
    let shown = p.why(p.boris, p.channel, "").await;
    assert_eq!(
        description(&shown),
        format!(
            "0 messages read\n**Read by tools** [1]({})",
            p.link(p.channel, read_here)
        )
    );
    let link = p.link(p.channel, left_out_here);
    assert_eq!(
        field(&shown, "Left out"),
        format!("7 over MEM_MAX_MSGS [1]({link})\nA higher MEM_MAX_MSGS shows more.")
    );
    let footer = shown.embeds[0]["footer"]["text"].as_str().unwrap();
    assert!(footer.starts_with("6 messages not shown"), "{footer}");
    let told = serde_json::to_string(&shown.embeds).unwrap();
    for id in [
        staff, unknown, first, second, third, left_out, read, read_there,
    ] {
        assert!(!told.contains(&id.to_string()), "{id} in {told}");
    }
    let shown = p.why(p.ada, p.channel, "").await;
    assert_says(&shown, "2 messages read");
    for (channel, id) in [
        (staff, first),
        (staff, third),
        (staff, left_out),
        (p.channel, left_out_here),
        (staff, read_there),
        (p.channel, read_here),
    ] {
        assert_says(&shown, &p.link(channel, id));
    }
    assert_says(&shown, "2 messages not shown");
    bot.stop().await;
}

/// Others are shown what they were shown before, and learn nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_of_a_private_answer_is_the_askers() {
    let (p, bot) = place(&[("RECEIPT_BUTTON", "true")]).await;
    p.talk(p.boris, p.channel, "hello").await;
    let public = p.why(p.boris, p.channel, "").await.embeds;
    let options = json!({"question": "why?", "private": true});
    let discord = &p.stage.discord;
    let called = discord.call(p.ada, p.channel, "ask", options).await;
    let answer = called.unwrap().answer().await.unwrap();
    assert!(answer.ephemeral);
    // The receipt is kept after the answer is posted.
    let kept = async {
        loop {
            let shown = p.why(p.ada, p.channel, "").await.embeds;
            if shown != public {
                return shown;
            }
        }
    };
    let hers = timeout(Duration::from_secs(20), kept).await.unwrap();
    let id = answer.message.to_string();
    assert_eq!(p.why(p.ada, p.channel, &id).await.embeds, hers);
    let link = p.link(p.channel, answer.message);
    assert!(hers[0].to_string().contains(&link), "{hers:?}");
    assert_eq!(p.why(p.boris, p.channel, "").await.embeds, public);
    let hidden = p.why(p.boris, p.channel, &id).await;
    assert_refused(&hidden, NONE);
    let unknown = p.why(p.boris, p.channel, "9").await;
    assert_eq!(hidden.content, unknown.content);
    bot.stop().await;
    let receipts = p.receipts().await;
    let private: Vec<bool> = receipts.iter().map(|one| one.is_private).collect();
    assert_eq!(private, [false, true]);
    let rows = p.store().await.list(Kind::Messages).await.unwrap();
    assert_eq!(rows.len(), 2, "of a private turn nothing else is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_out_is_linked_but_not_of_who_opted_out() {
    let (p, _) = place_with_staff(&[("MEM_MAX_MSGS", "6")]).await;
    let discord = &p.stage.discord;
    let (thread, first, hers) = discord.world(|world| {
        let thread = world.thread(p.channel, ChannelKind::PublicThread, "leak", p.ada);
        world.seed(thread, p.boris, "there is a leak");
        let first = world.seed(thread, p.boris, "below the tank");
        let hers = world.seed(thread, p.maria, "I saw it");
        for _ in 0..10 {
            world.seed(thread, p.boris, "it leaks");
        }
        (thread, first, hers)
    });
    let bot = p.stage.start().await;
    let asked = p.plain(p.maria, "privacy opt-out").await;
    p.press(p.maria, &asked, &labels(&asked)[0]).await;
    p.talk(p.ada, thread, "where is it?").await;
    let shown = p.why(p.ada, thread, "").await;
    let left_out = field(&shown, "Left out");
    assert!(left_out.contains(&p.link(thread, first)), "{left_out}");
    assert!(left_out.contains("over MEM_MAX_MSGS [1]("), "{left_out}");
    bot.stop().await;
    let receipt = p.receipts().await.remove(0);
    let body = body(&receipt).to_string();
    assert!(body.contains(&first.to_string()));
    assert!(!body.contains(&hers.to_string()), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_under_the_answer_shows_it_too() {
    let (p, bot) = place(&[("RECEIPT_BUTTON", "true")]).await;
    let discord = &p.stage.discord;
    discord.post(p.channel, p.ada, format!("<@{}> hello", p.us));
    let has_button = |message: &clew_simulator::Message| !message.components.is_empty();
    let answer = discord
        .wait_for_message(p.channel, has_button)
        .await
        .unwrap();
    assert_eq!(answer.content, "ok");
    let pressed = discord.press(p.boris, answer.id, "Why?");
    let shown = pressed.answer().await.unwrap();
    assert!(
        shown.ephemeral && shown.message != answer.id,
        "the answer stays"
    );
    assert_eq!(shown.embeds, p.why(p.ada, p.channel, "").await.embeds);
    // The answer to a command has one as well.
    let called = discord.call(p.ada, p.channel, "ask", json!({"question": "why?"}));
    called.await.unwrap();
    let of_call = |message: &clew_simulator::Message| {
        message.id > answer.id && !message.components.is_empty()
    };
    let answer = discord.wait_for_message(p.channel, of_call).await.unwrap();
    let shown = discord.press(p.boris, answer.id, "Why?").answer().await;
    assert_says(&shown.unwrap(), "0 messages read");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_kept_of_who_opted_out_or_if_the_operator_wants_none() {
    let (mut p, bot) = place(&[("RECEIPT_BUTTON", "true")]).await;
    let asked = p.plain(p.ada, "privacy opt-out").await;
    p.press(p.ada, &asked, &labels(&asked)[0]).await;
    ask_and_stop(&p, bot, 1).await;
    p.stage.set("RECEIPT_DAYS", "0");
    let bot = p.stage.start().await;
    let text = format!("<@{}> hello", p.us);
    p.stage.discord.post(p.channel, p.boris, text);
    p.stage.discord.wait_answers(p.channel, 2).await.unwrap();
    assert_refused(&p.why(p.boris, p.channel, "").await, NONE);
    bot.stop().await;
    assert_eq!(p.receipts().await, []);
    let answers = p.stage.discord.answers(p.channel);
    assert!(answers.iter().all(|answer| answer.components.is_empty()));
}

/// Ada asks; afterwards nobody finds a receipt.
async fn ask_and_stop(p: &Place, bot: Bot, answers: usize) {
    let text = format!("<@{}> hello", p.us);
    p.stage.discord.post(p.channel, p.ada, text);
    p.stage
        .discord
        .wait_answers(p.channel, answers)
        .await
        .unwrap();
    for who in [p.ada, p.boris] {
        assert_refused(&p.why(who, p.channel, "").await, NONE);
    }
    bot.stop().await;
    assert_eq!(p.receipts().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_expire() {
    let (mut p, _) = place_with_staff(&[("RECEIPT_DAYS", "2")]).await;
    let clock = Arc::new(AtomicI64::new(START.0));
    let shown = Arc::clone(&clock);
    p.stage.clock = Arc::new(move || UnixMillis(shown.load(Ordering::SeqCst)));
    let bot = p.stage.start().await;
    p.talk(p.ada, p.channel, "hello").await;
    bot.stop().await;
    for (days, left) in [(1, 1), (3, 0)] {
        clock.store(START.0 + days * 86_400_000, Ordering::SeqCst);
        let bot = p.stage.start().await;
        bot.stop().await;
        assert_eq!(p.receipts().await.len(), left, "after {days} days");
    }
}

/// A folder of files finds no receipt by its messages.
#[tokio::test(flavor = "multi_thread")]
async fn files_keep_no_receipts() {
    let folder = tempfile::TempDir::new().unwrap();
    let address = format!("files:{}", folder.path().join("files").display());
    let (p, bot) = place(&[("CONTEXT_STORE", &address), ("RECEIPT_BUTTON", "true")]).await;
    p.talk(p.ada, p.channel, "hello").await;
    assert_refused(&p.why(p.ada, p.channel, "").await, "need a database");
    bot.stop().await;
    assert!(p.stage.discord.answers(p.channel)[0].components.is_empty());
}

/// A receipt tells no more about a closed link than the answer does.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_link_leaves_the_same_receipt_whether_there_is_anything_behind_it() {
    let (p, staff) = place_with_staff(&[]).await;
    let secret = p
        .stage
        .discord
        .world(|world| world.seed(staff, p.ada, "secret"));
    let bot = p.stage.start().await;
    let mut told = Vec::new();
    for link in [
        p.link(staff, secret),
        p.link(staff, Id(9)),
        p.link(Id(8), Id(9)),
    ] {
        p.talk(p.boris, p.channel, &format!("what is {link} about?"))
            .await;
        let shown = p.why(p.boris, p.channel, "").await;
        let calls = field(&shown, "Calls to Discord");
        let calls = calls
            .lines()
            .map(|line| line.split(" in ").next().unwrap().to_owned());
        let calls: Vec<String> = calls.filter(|line| !line.ends_with(" ms")).collect();
        told.push((
            description(&shown).to_owned(),
            field(&shown, "Not read"),
            calls,
        ));
    }
    assert_eq!(told[0].1, "link: closed");
    assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    bot.stop().await;
}

/// Where the model took no more, no cap is to blame.
#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_was_full_is_told() {
    let (p, bot) = place(&[]).await;
    let long = "is 3 bar normal? ".repeat(100);
    let question = p.stage.discord.post(p.channel, p.boris, long.as_str());
    p.stage.model.script(Behaviour::context_too_long());
    let asked = Draft::new(format!("<@{}> is it?", p.us)).reply_to(question);
    p.ask(p.ada, p.channel, asked).await;
    let shown = p.why(p.ada, p.channel, "").await;
    let told = field(&shown, "Left out");
    assert!(told.contains("The model's context was full"), "{told}");
    assert!(
        told.contains("A higher LLM_CONTEXT_TOKENS shows more"),
        "{told}"
    );
    assert_eq!(told.matches("A higher").count(), 1, "{told}");
    bot.stop().await;
}
