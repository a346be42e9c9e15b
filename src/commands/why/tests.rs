//! What a receipt says, within Discord's limits.

use std::collections::BTreeSet;

use clew_context::model::{Fallback, OmitReason, TurnId, UnixMillis, UserId};
use clew_store::model::Scope;

use super::*;
use crate::model::{CollectorReceipt, ImagesSent, ModelReceipt, OmittedMessage, ReadSource};

const HERE: ChannelId = ChannelId::new(u64::MAX - 1);

const READ: ReadSource = ReadSource {
    channel: HERE,
    message: Some(MessageId::new(u64::MAX)),
};
const OMITTED: OmittedMessage = OmittedMessage {
    channel: HERE,
    id: MessageId::new(u64::MAX),
    author: UserId::new(1),
    reason: OmitReason::Msgs,
};

fn message(id: u64, place: BlockPlace) -> ShownMessage {
    ShownMessage {
        channel: HERE,
        id: MessageId::new(u64::MAX - 5_000 + id),
        author: UserId::new(1),
        place,
        cut: false,
    }
}

fn stored() -> StoredReceipt {
    StoredReceipt {
        turn: TurnId(1),
        scope: Scope::User(UserId::new(1)),
        guild: Some(GuildId::new(u64::MAX)),
        channel: HERE,
        owner: UserId::new(1),
        is_private: false,
        trigger: Some(MessageId::new(u64::MAX)),
        messages: vec![MessageId::new(u64::MAX)],
        at: UnixMillis(0),
        people: BTreeSet::new(),
        body: String::new(),
    }
}

fn receipt(shown: Vec<ShownMessage>) -> Receipt {
    let left_out = |reason| LeftOut {
        reason,
        seen: 1_000,
        all: 5_000,
    };
    let every = [OmitReason::Msgs, OmitReason::App, OmitReason::OptedOut];
    Receipt {
        scene: Scene::Thread,
        agent: Some("x".repeat(64)),
        target: Some(MessageId::new(u64::MAX)),
        adopted: true,
        is_private: false,
        collected_in: Duration::from_secs(5),
        collectors: Stage::ALL
            .iter()
            .map(|stage| CollectorReceipt {
                stage: *stage,
                fetches: 8,
                took: Duration::from_secs(5),
            })
            .collect(),
        missing: Stage::ALL
            .iter()
            .map(|stage| (*stage, Fallback::FetchBudget))
            .collect(),
        tools: Vec::new(),
        read: vec![READ; 300],
        cited: Vec::new(),
        prompt: PromptReceipt {
            shown,
            left_out: every.map(left_out).to_vec(),
            omitted: vec![OMITTED; 100],
            passages: vec!["d".repeat(300); 40],
            ..PromptReceipt::default()
        },
        model: Some(ModelReceipt {
            name: "m".repeat(100),
            ..ModelReceipt::default()
        }),
        took: Duration::from_secs(99),
    }
}

#[test]
fn it_says_why_messages_belong_to_a_conversation() {
    let named = message(1, BlockPlace::Conversation(Tie::Named));
    let topic = message(2, BlockPlace::Conversation(Tie::SameTopic));
    let text = embed(&stored(), &receipt(vec![named, topic]), 0).description;
    let named = text.find("**In your conversation, named** [1](");
    assert!(named.is_some(), "{text}");
    assert!(
        text.contains("**In your conversation, same topic** [2]("),
        "{text}"
    );
}

#[test]
fn it_links_what_is_pinned_and_tells_of_the_topic() {
    let mut receipt = receipt(vec![message(1, BlockPlace::Pinned)]);
    receipt.prompt.topic = 30;
    let text = embed(&stored(), &receipt, 0).description;
    assert!(text.contains("**Pinned** [1]("), "{text}");
    assert!(text.contains("\n**Topic** 30 characters"), "{text}");
}

/// Older receipts, and those of answers that cite nothing, name nothing that is cited.
#[test]
fn a_receipt_without_citations_is_read() {
    let mut receipt = receipt(Vec::new());
    let body = serde_json::to_value(&receipt).unwrap();
    assert!(body.get("cited").is_none());
    assert_eq!(serde_json::from_value::<Receipt>(body).unwrap(), receipt);
    receipt.cited = vec![READ];
    let body = serde_json::to_value(&receipt).unwrap();
    assert_eq!(serde_json::from_value::<Receipt>(body).unwrap(), receipt);
    let text = embed(&stored(), &receipt, 0).description;
    assert!(text.contains("\n**Cited** [1]("), "{text}");
}

/// Discord's limits cut nothing that we wrote.
#[test]
fn a_long_receipt_is_cut_by_us_and_says_so() {
    let mut shown: Vec<ShownMessage> = (1..1_000)
        .map(|id| message(id, BlockPlace::History))
        .collect();
    shown.insert(0, message(0, BlockPlace::Starter));
    let embed = embed(&stored(), &receipt(shown), 3);
    assert_eq!(embed.fitted(), embed);
    let text = &embed.description;
    assert!(
        text.starts_with("1000 messages read\n**Starter** [1]("),
        "{text}"
    );
    assert!(text.contains("[1000]("), "the newest are shown: {text}");
    let (shown, read) = text.split_once("\n**Read by tools** ").unwrap();
    let links = shown.matches("https://").count();
    assert!(
        shown.ends_with(&format!("and {} older messages", 1_000 - links)),
        "{text}"
    );
    let links = read.matches("https://").count();
    assert!(
        read.ends_with(&format!(" and {} more", 300 - links)),
        "{text}"
    );
    let mut fields = embed.fields.iter();
    let (_, left_out) = fields.find(|(name, _)| name == "Left out").unwrap();
    assert!(left_out.matches("https://").count() >= 8, "{left_out}");
    assert!(embed.footer.starts_with("3 messages not shown"));
}

#[test]
fn what_cut_the_answer_off_is_told_and_older_receipts_have_none() {
    let mut receipt = receipt(Vec::new());
    for (cut, told) in [
        (CutBy::Tokens, " · cut off by the model's token limit · "),
        (CutBy::Filter, " · cut off by its content filter · "),
        (CutBy::Length, " · cut off by its length · "),
    ] {
        receipt.model.as_mut().unwrap().cut_by = Some(cut);
        assert!(model(&receipt).contains(told), "{}", model(&receipt));
    }
    let mut json = serde_json::to_value(&receipt).unwrap();
    json["model"].as_object_mut().unwrap().remove("cut_by");
    let older: Receipt = serde_json::from_value(json).unwrap();
    assert!(!model(&older).contains("cut off"));
}

#[test]
fn images_are_counted_and_older_receipts_have_none() {
    let mut receipt = receipt(Vec::new());
    receipt.model.as_mut().unwrap().images = ImagesSent {
        count: 2,
        bytes: 4_001,
    };
    let told = model(&receipt);
    assert!(told.contains(" · 2 images of 5 kB · "), "{told}");
    let mut json = serde_json::to_value(&receipt).unwrap();
    json["model"].as_object_mut().unwrap().remove("images");
    let older: Receipt = serde_json::from_value(json).unwrap();
    assert!(!model(&older).contains("image"));
}

#[test]
fn passages_of_documents_are_named_and_older_receipts_have_none() {
    let mut receipt = receipt(Vec::new());
    let told = documents(&receipt.prompt);
    assert!(told.chars().count() < 500, "{told}");
    assert!(told.ends_with("…\nand 34 more"), "{told}");
    receipt.prompt.passages = vec!["a.md".to_owned(), "b.md > C".to_owned()];
    assert_eq!(documents(&receipt.prompt), "a.md\nb.md > C");
    let mut json = serde_json::to_value(&receipt).unwrap();
    json["prompt"].as_object_mut().unwrap().remove("passages");
    let older: Receipt = serde_json::from_value(json).unwrap();
    assert_eq!(documents(&older.prompt), "");
}

#[test]
fn a_receipt_comes_back_from_its_json() {
    let ties = [Tie::Reply, Tie::Named, Tie::Answers, Tie::SameTopic];
    let places = ties.map(BlockPlace::Conversation).into_iter();
    let places = (1..).zip(places.chain([BlockPlace::Linked]));
    let receipt = receipt(places.map(|(id, place)| message(id, place)).collect());
    let json = serde_json::to_string(&receipt).unwrap();
    assert_eq!(serde_json::from_str::<Receipt>(&json).unwrap(), receipt);
}

/// Each reason has its own words; what older receipts call `age` is in a chain the chain's.
#[test]
fn it_says_why_messages_are_left_out() {
    let told = |scene: Scene, reason: &str| {
        let mut receipt = serde_json::to_value(receipt(Vec::new())).unwrap();
        receipt["prompt"]["left_out"] =
            serde_json::json!([{"reason": reason, "seen": 2, "all": 7}]);
        let receipt: Receipt = serde_json::from_value(receipt).unwrap();
        left_out(None, &receipt.prompt, scene)
    };
    for (scene, reason, expected) in [
        (Scene::Thread, "chars", "7 over MEM_MAX_CHARS"),
        (Scene::Lone, "lone_chars", "7 over LONE_MAX_CHARS"),
        (Scene::Thread, "age", "7 over MEM_MAX_AGE_MIN"),
        (Scene::ReplyChain, "age", "7 over MEM_CHAIN_MAX_AGE_MIN"),
        (Scene::Direct, "age", "7 over MEM_CHAIN_MAX_AGE_MIN"),
        (
            Scene::ReplyChain,
            "chain_age",
            "7 over MEM_CHAIN_MAX_AGE_MIN",
        ),
        (
            Scene::Lone,
            "other_conversation",
            "7 of other conversations",
        ),
        (
            Scene::Lone,
            "new_conversation",
            "7 before a new conversation",
        ),
        (Scene::Lone, "long_ago", "7 from long ago"),
    ] {
        let setting = expected.strip_prefix("7 over ");
        let advice = setting.map(|setting| format!("\nA higher {setting} shows more."));
        let expected = format!("{expected}{}", advice.unwrap_or_default());
        assert_eq!(told(scene, reason), expected, "{reason}");
    }
    let mut cut = receipt(Vec::new());
    cut.prompt.left_out.clear();
    cut.prompt.shortened = [(OmitReason::MsgChars, 2), (OmitReason::LoneChars, 1)].into();
    let json = serde_json::to_string(&cut).unwrap();
    let cut: Receipt = serde_json::from_str(&json).unwrap();
    assert_eq!(
        left_out(None, &cut.prompt, Scene::Lone),
        "1 shortened, over LONE_MAX_CHARS\n2 shortened, over MEM_MAX_MSG_CHARS"
    );
    let texts: BTreeSet<&str> = OmitReason::ALL.iter().map(|one| one.text()).collect();
    assert_eq!(texts.len(), OmitReason::ALL.len());
    let caps: BTreeSet<&str> = OmitReason::caps().filter_map(OmitReason::setting).collect();
    let settings = crate::config::VARIABLES.iter().map(|one| one.name);
    assert_eq!(settings.filter(|name| caps.contains(name)).count(), 6);
}

/// Of more messages that count let in, characters would leave out all the same.
#[test]
fn the_setting_that_is_named_is_the_one_that_binds() {
    let of = |reason, all| LeftOut {
        reason,
        seen: all,
        all,
    };
    let mut receipt = receipt(Vec::new());
    receipt.prompt.left_out = vec![
        of(OmitReason::Age, 200),
        of(OmitReason::Msgs, 140),
        of(OmitReason::Chars, 10),
    ];
    let told = left_out(None, &receipt.prompt, Scene::Thread);
    assert!(
        told.ends_with("A higher MEM_MAX_CHARS shows more."),
        "{told}"
    );
    // Where all of them were halved, none of them is.
    receipt.prompt.halvings = 1;
    let told = left_out(None, &receipt.prompt, Scene::Thread);
    assert!(
        told.contains("10 over MEM_MAX_CHARS") && told.ends_with(FULL),
        "{told}"
    );
    receipt.prompt.halvings = 0;
    assert!(
        !serde_json::to_string(&receipt)
            .unwrap()
            .contains("halvings")
    );
    receipt.prompt.left_out.pop();
    let told = left_out(None, &receipt.prompt, Scene::Thread);
    assert!(
        told.ends_with("A higher MEM_MAX_MSGS shows more."),
        "{told}"
    );
}

#[test]
fn an_answer_is_named_by_its_link_or_id() {
    let id = |channel, message| Some((ChannelId::new(channel), MessageId::new(message)));
    for (text, expected) in [
        ("12", id(7, 12)),
        ("https://discord.com/channels/1/2/3", id(2, 3)),
        ("<https://ptb.discord.com/channels/@me/2/3>", id(2, 3)),
        ("https://discord.com/channels/1/2", id(1, 2)),
        ("the last one", None),
        ("a/3", None),
    ] {
        assert_eq!(address(text, ChannelId::new(7)), expected, "{text}");
    }
}
