//! A model that does whatever it is told, and says again all that it was shown: what is
//! delivered is for those who may read then where it comes from.

use std::collections::BTreeSet;

use clew_simulator::{ChannelKind, Choice, Id, Message, OverwriteOf, Permissions, Use, World};
use clew_store::Kind;
use serde_json::json;

use super::leaks::{Random, change, channel, members};
use super::tool_outputs::ids;
use super::tools::results;
use super::{Place, Seeds, place_with};
use crate::support::model::Behaviour;

const CASES: usize = 100;

/// Where questions are asked, what they are to fetch, and who asks.
struct Town {
    rooms: Vec<Id>,
    /// Channels and threads.
    sources: Vec<Id>,
    roles: [Id; 2],
    people: Vec<Id>,
}

fn town(world: &mut World, seeds: Seeds, random: &mut Random) -> Town {
    let (roles, people) = members(world, seeds);
    let rooms = (0..2)
        .map(|_| channel(world, seeds, roles, random, "room"))
        .collect();
    let sources = (0..4).flat_map(|_| {
        let source = channel(world, seeds, roles, random, "plans");
        let thread = world.thread(source, ChannelKind::PublicThread, "talk", seeds.ada);
        [source, thread]
    });
    Town {
        rooms,
        sources: sources.collect(),
        roles,
        people,
    }
}

/// A message with a word that nothing else has.
struct Secret {
    source: Id,
    message: Id,
    word: String,
}

/// An answer, and who asked for it.
#[derive(Debug)]
struct Delivered {
    asker: Id,
    room: Id,
    is_private: bool,
    text: String,
}

struct Fuzz<'a> {
    p: &'a Place,
    town: &'a Town,
    random: Random,
    secrets: Vec<Secret>,
    /// Results of tools that were named, for whomever.
    outputs: Vec<String>,
}

impl Fuzz<'_> {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len())]
    }

    /// Somebody writes a new secret somewhere.
    fn write(&mut self) {
        let source = self.one(&self.town.sources);
        let word = format!("kumquat{:03}", self.secrets.len());
        let message = self.p.post(source, self.p.ada, format!("order {word}"));
        self.secrets.push(Secret {
            source,
            message,
            word,
        });
    }

    /// Somebody changes who may read a source; half of the time everybody then may.
    async fn change(&mut self) {
        let source = self.one(&self.town.sources);
        let opens = self.random.below(2) == 0;
        for of in [self.p.guild, self.town.roles[0], self.town.roles[1]] {
            let (allow, deny) = if opens {
                (Permissions::NONE, Permissions::NONE)
            } else {
                change(&mut self.random)
            };
            let of = OverwriteOf::Role(of);
            self.p.stage.discord.overwrite(source, of, allow, deny);
        }
        self.p.seen().await;
    }

    fn link(&mut self) -> String {
        let newest = self.secrets.len().saturating_sub(4);
        let secret = &self.secrets[newest + self.random.below(self.secrets.len() - newest)];
        let (guild, source, message) = (self.p.guild, secret.source, secret.message);
        format!("https://discord.com/channels/{guild}/{source}/{message}")
    }

    fn call(&mut self) -> (&'static str, String) {
        let source = self.one(&self.town.sources).to_string();
        let (tool, arguments) = match self.random.below(8) {
            0 | 1 => ("get_message", json!({"message": self.link()})),
            2 => ("list_thread", json!({ "thread": source })),
            3 => ("list_thread", json!({"thread": "#plans"})),
            4 => ("search_messages", json!({"words": "order"})),
            5 => ("search_outputs", json!({})),
            6 => ("catch_up", json!({ "thread": source })),
            _ => {
                let at = self.random.below(self.outputs.len() + 1);
                ("read_output", json!({"id": self.outputs.get(at)}))
            }
        };
        (tool, arguments.to_string())
    }

    /// Somebody asks, by a mention or a command, for what the model then calls.
    async fn ask(&mut self) -> Delivered {
        let discord = &self.p.stage.discord;
        let (asker, room) = loop {
            let (asker, room) = (self.one(&self.town.people), self.one(&self.town.rooms));
            if discord.world(|world| world.sees(asker, room)) {
                break (asker, room);
            }
        };
        // Without a call it says again what it said before.
        let calls: Vec<_> = (0..self.random.below(4)).map(|_| self.call()).collect();
        if !calls.is_empty() {
            let calls = calls.iter().map(|(tool, of)| (*tool, of.as_str()));
            let calls: Vec<_> = calls.collect();
            self.p.stage.model.script(Behaviour::calls("", &calls));
        }
        let words: Vec<&str> = self.secrets.iter().map(|one| one.word.as_str()).collect();
        self.p.stage.model.script(Behaviour::repeat(&words));
        let link = self.link();
        let question = ["do that".to_owned(), format!("do that: {link}")];
        let question = &question[self.random.below(2)];
        let is_answer = |one: &Message| one.content.starts_with("I say");
        let (text, is_private) = match self.random.below(4) {
            0 | 1 => {
                let asked = self.p.post(room, asker, self.p.to_us(question));
                let is_answer = |one: &Message| one.id > asked && is_answer(one);
                (discord.wait_for_message(room, is_answer).await, false)
            }
            by_option => {
                let flag = Choice {
                    kind: 5,
                    value: (by_option == 3).into(),
                    ..Choice::text("private", "")
                };
                let used = Use::Slash {
                    name: "ask".to_owned(),
                    options: vec![Choice::text("question", question), flag],
                };
                let call = discord.interact(room, asker, &used);
                let text = discord.wait_interaction(call, is_answer).await;
                let callback = discord.interaction(call).unwrap().callback.unwrap();
                (text, callback["data"]["flags"] == 64)
            }
        };
        discord.wait_idle().await.unwrap();
        let last = self.p.stage.model.requests().pop().unwrap();
        self.outputs
            .extend(results(&last).iter().flat_map(|text| ids(text)));
        Delivered {
            asker,
            room,
            is_private,
            text: text.unwrap().content,
        }
    }

    /// The secrets that an answer tells, each readable for whoever is shown it.
    fn told(&self, answer: &Delivered) -> usize {
        let told = self
            .secrets
            .iter()
            .filter(|one| answer.text.contains(&one.word));
        let reads = |world: &World, who: Id, source: Id| {
            let history = Permissions::READ_MESSAGE_HISTORY;
            world.sees(who, source) && world.permissions(who, source).contains(history)
        };
        told.inspect(|secret| {
            self.p.stage.discord.world(|world| {
                for who in &self.town.people {
                    let is_shown = if answer.is_private {
                        *who == answer.asker
                    } else {
                        world.sees(*who, answer.room)
                    };
                    let may = !is_shown || reads(world, *who, secret.source);
                    assert!(may, "{who} may not read {}: {answer:?}", secret.word);
                }
            });
        })
        .count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_obedient_model_tells_nobody_what_they_may_not_read() {
    for seed in [1, 2] {
        let mut random = Random(seed);
        let settings = [("USER_TURNS_PER_MIN", "0")];
        let (p, town) = place_with(&settings, |world, seeds| town(world, seeds, &mut random)).await;
        let bot = p.start().await;
        let mut fuzz = Fuzz {
            p: &p,
            town: &town,
            random,
            secrets: Vec::new(),
            outputs: Vec::new(),
        };
        let (mut in_public, mut in_private, mut nothing) = (0, 0, 0);
        for _ in 0..CASES {
            fuzz.write();
            if fuzz.random.below(2) == 0 {
                fuzz.change().await;
            }
            let answer = fuzz.ask().await;
            match (fuzz.told(&answer), answer.is_private) {
                (0, _) => nothing += 1,
                (_, true) => in_private += 1,
                (_, false) => in_public += 1,
            }
        }
        let many = CASES / 20;
        assert!(
            in_public > many && in_private > many && nothing > many,
            "seed {seed}: {in_public} in public, {in_private} in private, {nothing} told nothing"
        );
        bot.stop().await;
    }
}

/// A private answer's results of tools, and the words with which it called them, stay
/// where only its asker sees them, until all may read what they were made from.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_private_answer_gets_into_a_shared_one() {
    let settings = [("USER_TURNS_PER_MIN", "0")];
    let (p, (staff, secret)) = place_with(&settings, |world, seeds| {
        let staff = world.channel(seeds.guild, ChannelKind::Text, "staff");
        let view = Permissions::VIEW_CHANNEL;
        world.deny_everyone(staff, view);
        for member in [seeds.boris, world.bot] {
            world.overwrite(staff, OverwriteOf::Member(member), view, Permissions::NONE);
        }
        (staff, world.seed(staff, seeds.ada, "order kumquat"))
    })
    .await;
    let bot = p.start().await;
    let (discord, model) = (&p.stage.discord, &p.stage.model);
    let link = format!("https://discord.com/channels/{}/{staff}/{secret}", p.guild);
    let read = json!({ "message": link }).to_string();
    for call in [
        ("get_message", read.as_str()),
        ("search_messages", r#"{"words": "kumquat"}"#),
        ("search_outputs", "{}"),
    ] {
        model.script(Behaviour::calls("", &[call]));
    }
    model.script(Behaviour::repeat(&["kumquat"]));
    let ask = Use::slash("ask", &[("question", &format!("what is {link}?"))]);
    let call = discord.interact(p.channel, p.boris, &ask);
    let is_answer = |one: &Message| one.content == "I say kumquat";
    discord.wait_interaction(call, is_answer).await.unwrap();
    let outputs = ids(&results(&model.requests()[3])[2]);
    assert_eq!(outputs.len(), 2);
    assert!(discord.answers(p.channel).is_empty());

    let shared = async |number: usize, told: &str| {
        let read = outputs.iter().map(|id| json!({ "id": id }).to_string());
        let read: Vec<String> = read.collect();
        let mut calls = vec![
            ("search_outputs", "{}"),
            ("search_messages", r#"{"words": "order"}"#),
        ];
        calls.extend(read.iter().map(|id| ("read_output", id.as_str())));
        model.script(Behaviour::calls("", &calls));
        model.script(Behaviour::repeat(&["kumquat"]));
        // Both results would be offered for these words.
        p.post(p.channel, p.boris, p.to_us("which words of which message?"));
        assert_eq!(p.answer(p.channel, number).await, told);
        model.requests()[2 + 2 * number].to_string()
    };
    let first = shared(1, "I say").await;
    assert!(!first.contains("Results of your tools"), "{first}");
    let everyone = OverwriteOf::Role(p.guild);
    let view = Permissions::VIEW_CHANNEL;
    discord.overwrite(staff, everyone, view, Permissions::NONE);
    p.seen().await;
    let first = shared(2, "I say kumquat").await;
    assert!(first.contains("search messages words: kumquat"), "{first}");
    bot.stop().await;
    // The private answer leaves its receipt, for its asker, and no row.
    assert_eq!(p.records(Kind::Receipts).await.len(), 3);
    let turns: BTreeSet<_> = p.rows().await.iter().map(|row| row.turn).collect();
    assert_eq!(turns.len(), 2);
}
