//! What happens to a message elsewhere reaches, over the gateway, all that was made from
//! it: answers and those to which they were shown, results of tools, receipts.

use std::fs;

use clew_simulator::{ChannelKind, Id};
use clew_store::{Kind, Record};
use serde_json::json;

use super::tool_outputs::{ids, until_no_file};
use super::tools::results;
use super::{Place, place_with};
use crate::support::model::Behaviour;

/// What happens to the message, or to its author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Deleted,
    Edited,
    OptedOut,
    Erased,
}

/// The word that only the message has.
const WORD: &str = "kumquat";

impl Place {
    /// Ada asks, and the model makes these calls, one after the other, and says again
    /// whether it saw the word.
    async fn asked(&self, number: usize, words: &str, calls: &[(&str, &str)]) -> String {
        for call in calls {
            self.stage.model.script(Behaviour::calls("", &[*call]));
        }
        self.stage.model.script(Behaviour::repeat(&[WORD]));
        self.post(self.channel, self.ada, self.to_us(words));
        self.answer(self.channel, number).await
    }

    async fn happens(&self, fate: Fate, (channel, message): (Id, Id)) {
        let discord = &self.stage.discord;
        let (command, button) = match fate {
            Fate::Deleted => {
                discord.delete(channel, message);
                return;
            }
            Fate::Edited => {
                discord.edit(channel, message, "order something else");
                return;
            }
            Fate::OptedOut => ("privacy opt-out", "Opt out and erase"),
            Fate::Erased => ("privacy erase", "Erase everything"),
        };
        self.confirms(self.boris, command, button).await;
    }
}

async fn check(fate: Fate) {
    // Discord itself still shows what is only erased here.
    let settings = [
        ("USER_TURNS_PER_MIN", "0"),
        ("LINK_CONTEXT", "0,0"),
        ("SEARCH", "window"),
    ];
    let (p, of) = place_with(&settings, |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        (news, world.seed(news, seeds.boris, format!("order {WORD}")))
    })
    .await;
    let bot = p.start().await;
    let link = format!("https://discord.com/channels/{}/{}/{}", p.guild, of.0, of.1);
    let told = format!("I say {WORD}");
    assert_eq!(p.asked(1, &format!("what is {link}?"), &[]).await, told);
    let read = json!({ "message": link }).to_string();
    let calls = [("get_message", read.as_str()), ("search_outputs", "{}")];
    assert_eq!(p.asked(2, "well?", &calls).await, told);
    let last = p.stage.model.requests().pop().unwrap();
    let output = ids(&results(&last)[1]).remove(0);
    assert_eq!(p.asked(3, "again?", &[]).await, told);
    p.happens(fate, of).await;
    until_no_file(&p).await;
    let read = json!({ "id": output }).to_string();
    let calls = [
        ("search_messages", r#"{"words": "order"}"#),
        ("search_outputs", "{}"),
        ("read_output", &read),
    ];
    assert_eq!(p.asked(4, "and now?", &calls).await, "I say", "{fate:?}");
    bot.stop().await;
    let rows = p.rows().await;
    assert!(
        rows.len() > 4,
        "questions stay, and what was not made from it"
    );
    let files = fs::read_dir(p.stage.folder.path()).unwrap();
    for path in files
        .map(|file| file.unwrap().path())
        .filter(|path| path.is_file())
    {
        let bytes = fs::read(&path).unwrap();
        let holds = bytes
            .windows(WORD.len())
            .any(|some| some == WORD.as_bytes());
        assert!(!holds, "{fate:?}: {}", path.display());
    }
    // A receipt has only ids, which a person's erasure takes, too.
    let receipts = p.records(Kind::Receipts).await;
    assert!(!receipts.is_empty(), "{fate:?}");
    let boris = p.boris.to_string();
    let names_boris = |record: &Record| format!("{record:?}").contains(&boris);
    let named = receipts.iter().any(names_boris);
    assert_eq!(
        named,
        matches!(fate, Fate::Deleted | Fate::Edited),
        "{fate:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_message_comes_back_from_nowhere() {
    check(Fate::Deleted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_former_words_of_an_edited_message_come_back_from_nowhere() {
    check(Fate::Edited).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_who_opted_out_comes_back_from_nowhere() {
    check(Fate::OptedOut).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_who_had_it_erased_comes_back_from_nowhere() {
    check(Fate::Erased).await;
}

/// Something happens to a linked message while the model answers; only the question is stored.
async fn is_not_stored(happens: impl AsyncFnOnce(&Place, (Id, Id))) {
    let (p, of) = place_with(&[("LINK_CONTEXT", "0,0")], |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        (news, world.seed(news, seeds.boris, format!("order {WORD}")))
    })
    .await;
    let bot = p.start().await;
    let told = format!("I say {WORD}");
    let (answer, gate) = Behaviour::gated(&[&told]);
    p.stage.model.script(answer);
    let link = format!("https://discord.com/channels/{}/{}/{}", p.guild, of.0, of.1);
    p.post(p.channel, p.ada, p.to_us(&format!("what is {link}?")));
    assert!(p.prompt(1).await.contains(WORD));
    happens(&p, of).await;
    p.seen().await;
    gate.open();
    p.wait_for(p.channel, &told).await;
    bot.stop().await;
    let rows = p.rows().await;
    let said = rows.iter().map(|row| &row.content);
    assert!(said.clone().all(|words| !words.contains(WORD)), "{rows:?}");
    assert_eq!(rows.len(), 1, "the question stays: {rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_delete_meanwhile_makes_no_deletion_forgotten() {
    is_not_stored(async |p, of| {
        p.happens(Fate::Deleted, of).await;
        for number in 0..50_u64 {
            let first = 1_700_000_000_000_000_000 + number * 100;
            let ids: Vec<String> = (first..first + 100).map(|id| id.to_string()).collect();
            let event = json!({"ids": ids, "channel_id": "1600000000000000001",
                "guild_id": "1600000000000000000"});
            let discord = &p.stage.discord;
            discord.dispatch_raw("MESSAGE_DELETE_BULK", &event.to_string());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_cannot_be_read_reaches_the_turn_under_way() {
    for (author, content) in [
        (json!(7), json!("order something else")),
        (json!(null), json!(5)),
    ] {
        is_not_stored(async |p, (channel, message)| {
            let event = json!({"id": message.to_string(), "channel_id": channel.to_string(),
                "guild_id": p.guild.to_string(), "author": author, "content": content});
            let discord = &p.stage.discord;
            discord.dispatch_raw("MESSAGE_UPDATE", &event.to_string());
        })
        .await;
    }
}
