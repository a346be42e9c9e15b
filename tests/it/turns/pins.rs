//! `PLACE_CONTEXT` over real sockets: a channel's topic and pinned messages, kept as the gateway
//! tells of them, for those who may read them.

use clew::model::Receipt;
use clew_simulator::{ChannelKind, Draft, Fault, File, Id, OverwriteOf, Permissions, World};
use clew_store::{Kind, Record};
use serde_json::json;

use super::{Place, Seeds, assert_in_order, only, place_with};
use crate::support::bot::details;

const BOTH: [(&str, &str); 1] = [("PLACE_CONTEXT", "topic,pins")];

fn pinned(text: &str) -> Draft {
    Draft {
        pinned: true,
        ..Draft::new(text)
    }
}

/// A channel with a topic and two pins, Ada's and Boris's, long before anything else.
fn with_pins(world: &mut World, seeds: Seeds) -> [Id; 2] {
    world.set_topic(seeds.channel, "Pumps only");
    let ours = world.seed(seeds.channel, seeds.ada, pinned("turn the tap first"));
    let theirs = world.seed(seeds.channel, seeds.boris, pinned("never use kumquats"));
    for _ in 0..3 {
        world.seed(seeds.channel, seeds.boris, "hm");
    }
    [ours, theirs]
}

impl Place {
    /// Ada asks, is answered, and nothing is on its way any more.
    async fn prompted(&self, channel: Id, words: &str) -> String {
        let number = self.stage.model.requests().len() + 1;
        let answers = self.stage.discord.answers(channel).len();
        self.post(channel, self.ada, self.to_us(words));
        let prompt = self.prompt(number).await;
        self.answer(channel, answers + 1).await;
        self.seen().await;
        prompt
    }

    fn asked_for_pins(&self) -> usize {
        self.stage
            .discord
            .requests_to("GET", "/messages/pins")
            .len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pins_are_fetched_once_and_follow_the_gateway() {
    let (p, [ours, theirs]) = place_with(&BOTH, with_pins).await;
    let bot = p.start().await;
    let shown = [
        "<discord-context",
        "Topic of #help: Pumps only\n",
        "Pinned in this channel:\n",
        "Ada: turn the tap first\n",
        "Boris: never use kumquats\n",
        "</discord-context",
        "why?",
    ];
    for _ in 0..2 {
        assert_in_order(&p.prompted(p.channel, "why?").await, &shown);
        assert_eq!(p.asked_for_pins(), 1);
    }
    let discord = &p.stage.discord;
    discord.edit(p.channel, ours, "turn the valve first");
    discord.delete(p.channel, theirs);
    p.seen().await;
    let prompt = p.prompted(p.channel, "why?").await;
    assert_in_order(
        &prompt,
        &["Ada: turn the valve first\n", "</discord-context"],
    );
    assert!(!prompt.contains("kumquats") && !prompt.contains("the tap"));
    assert_eq!(p.asked_for_pins(), 1, "the events told");
    discord.unpin(p.channel, ours);
    p.seen().await;
    let prompt = p.prompted(p.channel, "why?").await;
    assert!(prompt.contains("Pumps only") && !prompt.contains("Pinned"));
    let late = p.post(p.channel, p.boris, "it is open at ten");
    discord.pin(p.channel, late, p.ada);
    p.seen().await;
    let prompt = p.prompted(p.channel, "why?").await;
    assert_in_order(&prompt, &["Pinned in this", "Boris: it is open at ten\n"]);
    assert_eq!(p.asked_for_pins(), 3);
    let lines = bot.stop().await;
    let collected = details(&lines, "collect_ok");
    let fetches: Vec<_> = collected
        .iter()
        .map(|one| &one["stages"]["pins"]["fetches"])
        .collect();
    let none = &json!(null);
    assert_eq!(fetches, [&json!(1), none, none, &json!(1), &json!(1)]);
    let counts: Vec<_> = collected.iter().map(|one| &one["msgs"]).collect();
    assert_eq!(counts, [2, 2, 1, 0, 1]);
    let sources: Vec<_> = collected.iter().map(|one| &one["source"]).collect();
    assert_eq!(sources, ["fetched", "window", "window", "none", "window"]);
    assert_eq!(collected[0]["caps"]["place_context"], "topic,pins");
    assert_eq!(collected[0]["age_s"], json!(null));
    let receipts = p.records(Kind::Receipts).await;
    let Record::Receipt(first) = &receipts[0] else {
        panic!("{receipts:?}");
    };
    let first: Receipt = serde_json::from_str(&first.body).unwrap();
    let places: Vec<_> = first
        .prompt
        .shown
        .iter()
        .map(|one| json!(one.place))
        .collect();
    assert_eq!(places, ["pinned", "pinned"]);
    assert_eq!(first.prompt.topic, "Topic of #help: Pumps only\n".len());
}

/// Off, nothing is asked for or shown, and a server has it as it wants.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_it_as_it_set_it() {
    let (p, _) = place_with(&[], |world, seeds| {
        let role = world.role(seeds.guild, "manager", Permissions::MANAGE_GUILD);
        world.give_role(seeds.guild, seeds.ada, role);
        with_pins(world, seeds)
    })
    .await;
    let bot = p.start().await;
    let off = p.prompted(p.channel, "why?").await;
    for (word, topic, pins) in [
        ("topic", true, 0),
        ("topic,pins", true, 1),
        ("off", false, 1),
    ] {
        let options = json!({"place-context": word});
        let discord = &p.stage.discord;
        let called = discord
            .call(p.ada, p.channel, "settings set", options)
            .await;
        called.unwrap().answer().await.unwrap();
        let prompt = p.prompted(p.channel, "why?").await;
        assert_eq!(prompt.contains("Pumps only"), topic, "{word}: {prompt}");
        assert_eq!(p.asked_for_pins(), pins, "{word}");
    }
    assert!(!off.contains("Pumps") && !off.contains("tap"), "{off}");
    let lines = bot.stop().await;
    let told = details(&lines, "collect_ok");
    assert_eq!(told.len(), 2, "without it nothing stands around a mention");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_shows_its_forums_guidelines_and_its_own_pins() {
    let (p, post) = place_with(&BOTH, |world, seeds| {
        let forum = world.channel(seeds.guild, ChannelKind::Forum, "questions");
        world.set_topic(forum, "One question a post");
        let post = world.forum_post(forum, seeds.boris, "Leak", &[], "it drips");
        for number in 0..8 {
            world.seed(post, seeds.boris, pinned(&format!("pin {number}")));
        }
        world.seed(seeds.channel, seeds.boris, pinned("kumquat"));
        post
    })
    .await;
    let bot = p.start().await;
    let prompt = p.prompted(post, "why?").await;
    let shown = ["Guidelines of #questions: One question a post\n"];
    assert_in_order(&prompt, &shown);
    assert!(!prompt.contains("kumquat"), "{prompt}");
    let asked = p.stage.discord.requests_to("GET", "/messages/pins");
    assert_eq!(asked.len(), 1);
    assert!(format!("{asked:?}").contains("limit=5"), "{asked:?}");
    bot.stop().await;
}

/// After a lost session nobody knows what was pinned meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_gap_they_are_fetched_again() {
    let (p, [ours, _]) = place_with(&BOTH, with_pins).await;
    let bot = p.start().await;
    p.prompted(p.channel, "why?").await;
    let discord = &p.stage.discord;
    let begun = discord.sessions_begun();
    discord.invalidate_sessions(false);
    discord.world(|world| world.seed_delete(p.channel, ours));
    discord.wait_sessions(begun + 1).await.unwrap();
    discord.settled().await.unwrap();
    let prompt = p.prompted(p.channel, "why?").await;
    assert!(
        prompt.contains("kumquats") && !prompt.contains("the tap"),
        "{prompt}"
    );
    assert_eq!(p.asked_for_pins(), 2);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_who_opted_out_is_shown() {
    let (p, _) = place_with(&BOTH, with_pins).await;
    let bot = p.start().await;
    for (opts_out, shows) in [(false, true), (true, false)] {
        if opts_out {
            p.opts_out(p.boris).await;
        }
        let prompt = p.prompted(p.channel, "why?").await;
        assert_eq!(prompt.contains("kumquats"), shows, "{prompt}");
        assert!(prompt.contains("turn the tap first"), "{prompt}");
    }
    bot.stop().await;
}

/// Without Read Message History only the topic may be had, and a failure costs the pins alone.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_not_asked_for() {
    let (p, _) = place_with(&BOTH, with_pins).await;
    let bot = p.start().await;
    let failing = Fault::status("GET", "/messages/pins", 403, 50_001, "Missing Access");
    p.stage.discord.fault(failing.once());
    let prompt = p.prompted(p.channel, "why?").await;
    assert!(
        prompt.contains("Pumps only") && !prompt.contains("the tap"),
        "{prompt}"
    );
    let lines = bot.stop().await;
    let failed = json!({"case": "lone", "reason": "forbidden", "stage": "pins"});
    assert_eq!(only(&lines, "collect_fallback"), failed);
    let bot = p.stage.start().await;
    let (us, none) = (OverwriteOf::Member(p.us), Permissions::NONE);
    let discord = &p.stage.discord;
    discord.overwrite(p.channel, us, none, Permissions::READ_MESSAGE_HISTORY);
    p.seen().await;
    discord.clear_requests();
    let prompt = p.prompted(p.channel, "why?").await;
    assert!(
        prompt.contains("Pumps only") && !prompt.contains("the tap"),
        "{prompt}"
    );
    assert_eq!(p.asked_for_pins(), 0);
    bot.stop().await;
}

/// What becomes of a pin while an image is fetched reaches the prompt before it is asked with.
#[tokio::test(flavor = "multi_thread")]
async fn what_changes_before_the_request_is_asked_with_as_it_is_then() {
    let (p, [ours, theirs]) = place_with(&BOTH, with_pins).await;
    let bot = p.start().await;
    let (held, gate) = Fault::held("GET", "/a.gif");
    p.stage.discord.fault(held.once());
    let image = File {
        name: "a.gif".to_owned(),
        content_type: "image/gif".to_owned(),
        bytes: b"GIF89a and more".to_vec(),
        description: None,
    };
    let question = Draft::new(p.to_us("what is this?")).attachment(image);
    p.post(p.channel, p.ada, question);
    let fetched = p.stage.discord.wait_request("GET", "/a.gif", 1).await;
    fetched.unwrap();
    p.stage
        .discord
        .edit(p.channel, ours, "turn the valve first");
    p.stage.discord.delete(p.channel, theirs);
    p.seen().await;
    gate.open();
    p.answer(p.channel, 1).await;
    let asked = p.stage.model.requests()[0].to_string();
    assert!(asked.contains("the valve"), "{asked}");
    assert!(
        !asked.contains("the tap") && !asked.contains("kumquats"),
        "{asked}"
    );
    bot.stop().await;
}
