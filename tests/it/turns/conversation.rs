//! `LONE_CONTEXT=conversation` over real sockets: what a mention in an ordinary channel
//! costs, what the bot says about it, and that a replay chooses the same.

use clew_simulator::{Draft, Use, World};

use serde_json::json;

use super::{Seeds, assert_in_order, place_with};
use crate::replay::at;
use crate::replay::run::{CHANNEL, Row, export, ids, lines, row};
use crate::support::bot::details;

const SETTINGS: [(&str, &str); 2] = [("LONE_CONTEXT", "conversation"), ("LLM_BASE_URL", "")];

/// Ada and Boris talk about a pump, and somebody about a cake.
fn pump(world: &mut World, seeds: Seeds) {
    let cay = world.member(seeds.guild, "Cay");
    let said = [
        (seeds.ada, "my pump only hums, does anybody know why?"),
        (cay, "who takes the cake out of the oven?"),
        (seeds.boris, "Ada: is the phase of the pump connected?"),
        (
            seeds.ada,
            "Boris: yes, I measured the pump at the terminals",
        ),
    ];
    for (author, text) in said {
        world.seed(seeds.channel, author, text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_mention_gets_its_conversation_for_one_call_at_most() {
    let (p, ()) = place_with(&SETTINGS, pump).await;
    let bot = p.start().await;
    p.stage.discord.clear_requests();
    p.post(
        p.channel,
        p.ada,
        p.to_us("what did Boris ask about the pump?"),
    );
    let answer = p.answer(p.channel, 1).await;
    assert!(
        answer.contains("**3 messages of this channel**"),
        "{answer}"
    );
    assert!(answer.contains("> Boris *(named)*: "), "{answer}");
    assert!(!answer.contains("cake"), "{answer}");
    let others = "- 1 message of other conversations";
    assert!(answer.contains(others), "{answer}");
    assert_eq!(p.gets(), 1);
    // Now the window holds it.
    p.stage.discord.clear_requests();
    p.post(
        p.channel,
        p.boris,
        p.to_us("what did Ada measure at the pump?"),
    );
    let answer = p.answer(p.channel, 2).await;
    assert!(answer.contains("> Ada *("), "{answer}");
    assert_eq!(p.gets(), 0);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cap_that_leaves_out_is_told() {
    let [conversation, model] = SETTINGS;
    let caps = [("MEM_MAX_MSGS", "1"), ("LONE_MAX_CHARS", "150")];
    let (p, ()) = place_with(&[conversation, model, caps[0], caps[1]], pump).await;
    let bot = p.start().await;
    let question = "what did Boris ask about the pump?";
    p.post(p.channel, p.ada, p.to_us(question));
    let answer = p.answer(p.channel, 1).await;
    for told in [
        "**1 message of this channel**",
        "- 1 message of other conversations",
        "- 1 message over MEM_MAX_MSGS",
        "- 1 message over LONE_MAX_CHARS",
    ] {
        assert!(answer.contains(told), "{told}: {answer}");
    }
    bot.stop().await;
}

/// A question that begins something new leaves behind what was said, in the same words everywhere.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_new_conversation_leaves_behind_is_told() {
    let (p, ()) = place_with(&SETTINGS, |world, seeds| {
        let cay = world.member(seeds.guild, "Cay");
        let ago = world.now_ms() - 10 * 60 * 60 * 1_000;
        let cake = Draft::new("who takes the cake out of the oven?").at_ms(ago);
        world.seed(seeds.channel, cay, cake);
    })
    .await;
    let bot = p.start().await;
    let question = "which holidays does Norway have in May?";
    p.post(p.channel, p.ada, p.to_us(question));
    let answer = p.answer(p.channel, 1).await;
    let told = "- 1 message before a new conversation";
    assert!(answer.contains(told), "{answer}");
    let lines = bot.stop().await;
    let collected = &details(&lines, "collect_ok")[0];
    assert_eq!(collected["omitted"], json!({"new_conversation": 1}));
}

/// What each says, two people at each of two conversations, a minute apart.
const SAID: [(u64, &str); 14] = [
    (1, "my pump only hums, does anybody know why?"),
    (3, "User 4: who takes the cake out of the oven?"),
    (2, "User 1: is the phase of the pump connected?"),
    (4, "User 3: I do, at four"),
    (1, "User 2: yes, I measured the pump at the terminals"),
    (5, "the gate is open again"),
    (3, "User 4: thanks, and the lemon tart?"),
    (2, "User 1: then the capacitor, or the impeller is stuck"),
    (4, "User 3: stays in the fridge until Sunday"),
    (1, "User 2: how do I see whether the impeller is stuck?"),
    (5, "somebody should oil the gate"),
    (2, "User 1: turn it by hand at the fan"),
    (3, "User 4: good"),
    (1, "User 2: it turns, so the capacitor"),
];

/// The same channel, asked live and replayed from an export.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_chooses_what_the_bot_chooses() {
    const MINUTE: i64 = 60;
    let question = "where do I buy a capacitor for the pump?";
    let (p, people) = place_with(&SETTINGS[..1], |world, seeds| {
        let people = [1, 2, 3, 4, 5].map(|n| world.member(seeds.guild, &format!("User {n}")));
        let began = world.now_ms() - 14 * MINUTE * 1_000;
        for ((author, text), minute) in SAID.into_iter().zip(0..) {
            let author = people[usize::try_from(author).unwrap() - 1];
            let draft = Draft::new(text).at_ms(began + minute * MINUTE * 1_000);
            world.seed(seeds.channel, author, draft);
        }
        people
    })
    .await;
    let bot = p.start().await;
    p.post(p.channel, people[0], p.to_us(question));
    let prompt = p.prompt(1).await;
    let chosen: Vec<usize> = (0..SAID.len())
        .filter(|index| prompt.contains(SAID[*index].1))
        .collect();
    assert_eq!(chosen, [0, 2, 4, 7, 9, 11, 13]);
    bot.stop().await;

    let folder = tempfile::tempdir().unwrap();
    let said = (0..).zip(SAID);
    let rows = said.map(|(minute, (author, text))| row(minute * MINUTE, author, text));
    let asked = row(14 * MINUTE, 1, format!("<@900> {question}"));
    let rows: Vec<Row> = rows.chain([asked]).collect();
    let files = [export(folder.path(), CHANNEL, &rows)];
    for flags in ["--lone conversation", "--lone conversation --warm"] {
        // A replay has a runtime of its own.
        let replayed = tokio::task::block_in_place(|| lines(&files, flags));
        let replayed = ids(&replayed[0], "included");
        let expected = chosen.iter().map(|index| at(rows[*index].second));
        assert_eq!(replayed, expected.collect::<Vec<_>>(), "{flags}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_its_askers_conversation_too() {
    let (p, ()) = place_with(&SETTINGS[..1], |world, seeds| {
        world.seed(seeds.channel, seeds.ada, "my pump only hums");
        world.seed(seeds.channel, seeds.boris, "Ada: is the pump connected?");
    })
    .await;
    let bot = p.start().await;
    let ask = Use::slash("ask", &[("question", "what did Boris ask about the pump?")]);
    for number in [1, 2] {
        p.stage.discord.clear_requests();
        p.stage.discord.interact(p.channel, p.ada, &ask);
        let prompt = p.prompt(number).await;
        assert_in_order(&prompt, &["my pump only hums", "is the pump connected?"]);
        p.answer(p.channel, number).await;
        assert!(p.gets() <= 1, "{}", p.gets());
    }
    bot.stop().await;
}
