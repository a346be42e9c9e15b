//! The waterworks: its people, channels and conversations, and the scenes played
//! there, with a model and without. Every run is the same, except that its time is now.

use serde_json::json;

use super::scene::{Answered, DemoRun, DemoScene, Expect};
use super::talk::DemoTalk;
use super::words;
use clew_simulator::{ChannelKind, Draft, Id, World};

/// The number of messages in the long thread.
const THREAD: usize = 300;
/// The number of other messages around the chain of replies.
const AROUND_CHAIN: usize = 400;

/// The world before anybody asks, and the scenes in order.
pub(super) fn build() -> (World, Vec<DemoScene>) {
    let mut plant = Plant::new();
    let (filter, filter_again) = plant.filter();
    let scenes = vec![
        filter,
        filter_again,
        plant.forum(),
        plant.chain(),
        plant.alert(),
        plant.lone_with_text(),
        plant.link(),
        plant.lone(),
        plant.direct(),
    ];
    (plant.world, scenes)
}

/// The same for what needs a model: a scene, and a task in the same channel.
pub(super) fn with_model() -> (World, DemoScene, DemoRun) {
    let mut plant = Plant::new();
    let scene = plant.tool();
    let run = DemoRun {
        title: "A task",
        setting: "With /agent run the bot works on a task in a thread of its own. It starts clean: \
                  no history, no facts, nothing of the channel. What it needs it reads with tools.",
        channel: scene.channel,
        asker: plant.ines,
        task: "Find out where the sampling log is. The crew writes in #gate.",
        quoted: "blue folder",
    };
    (plant.world, scene, run)
}

/// The world while it is being built.
struct Plant {
    world: World,
    works: Id,
    /// The three people on the shift.
    crew: [Id; 3],
    /// New here, and asks a lot.
    ines: Id,
}

impl Plant {
    fn new() -> Self {
        let mut world = World::new();
        let works = world.guild("Waterworks");
        let crew = ["Ada", "Boris", "Chidi"].map(|name| world.member(works, name));
        let ines = world.member(works, "Ines");
        Self {
            world,
            works,
            crew,
            ines,
        }
    }

    fn channel(&mut self, kind: ChannelKind, name: &str) -> Id {
        self.world.channel(self.works, kind, name)
    }

    /// A message that mentions the bot.
    fn to_bot(&self, text: &str) -> Draft {
        Draft::new(format!("<@{}> {text}", self.world.bot).trim_end())
    }

    /// A thread started from a message, in which two questions are asked.
    fn filter(&mut self) -> (DemoScene, DemoScene) {
        let house = self.channel(ChannelKind::Text, "filter-house");
        let [ada, boris, chidi] = self.crew;
        let mut talk = DemoTalk::ago(&self.world, house, 225, 225 * 60 / (THREAD + 2));
        let complaint = "Turbidity after filter 3 is creeping up: 0.28 NTU since the morning.";
        let starter = talk.say(&mut self.world, ada, complaint);
        let thread = self
            .world
            .thread_from(house, starter, "Filter 3: turbidity", ada);
        talk.go_on_in(thread);
        let end = words::FILTER_END;
        for nth in 0..THREAD - end.len() {
            let author = self.crew[nth * 5 % 3];
            talk.say(&mut self.world, author, words::filter(nth));
        }
        for (who, text) in end {
            talk.say(&mut self.world, self.crew[who], text);
        }
        let first = DemoScene {
            title: "A question in a thread of 300 messages",
            setting: "The thread hangs on a message of the channel above it. The bot has just \
                      started and has seen none of it.",
            rule: "in a thread the message it hangs on and the last messages; since it was \
                   mentioned also the thread's history, newest first up to the caps; older pages \
                   are not fetched",
            channel: thread,
            before: None,
            asker: self.ines,
            question: self.to_bot("I come on at two. What is it about and what was tried?"),
            expect: Expect {
                case: "thread",
                messages: 40,
                gets: 2,
                answered: Answered::Question,
                tools: &[],
                quoted: &["Turbidity after filter 3", "Check the nozzles"],
            },
        };
        let second = DemoScene {
            title: "The same thread a moment later: a mention without a word",
            setting: "Somebody asks, somebody else only points the bot at it. By now the bot \
                      knows the thread from the gateway and its earlier calls.",
            rule: "the same; without words of his own the asker points at the newest message \
                   of a person, which is then what the bot answers",
            before: Some((boris, "Head loss is at 47 kPa now. Do we backwash or wait?")),
            asker: chidi,
            question: self.to_bot(""),
            expect: Expect {
                case: "thread",
                messages: 40,
                gets: 0,
                answered: Answered::Before,
                tools: &[],
                quoted: &["Head loss is at 47 kPa"],
            },
            ..first.clone()
        };
        (first, second)
    }

    /// A forum post with tags.
    fn forum(&mut self) -> DemoScene {
        let forum = self.channel(ChannelKind::Forum, "how-do-we");
        let tags = ["procedure", "wells"].map(|tag| self.world.tag(forum, tag));
        let [_, boris, _] = self.crew;
        let mut talk = DemoTalk::ago(&self.world, forum, 50, 6 * 60);
        let text = "How do we switch to the second well? I have the night shift alone on Friday.";
        let draft = Draft::new(text).at_ms(talk.next_ms());
        let title = "Switching to well 2";
        let post = self.world.forum_post(forum, boris, title, &tags, draft);
        talk.go_on_in(post);
        for (who, text) in words::WELL_POST {
            talk.say(&mut self.world, self.crew[who], text);
        }
        DemoScene {
            title: "A forum post with tags",
            setting: "A post, its tags and six replies.",
            rule: "a post is a thread whose first message is the post itself; its title and \
                   the names of its tags are told as well",
            channel: post,
            before: None,
            asker: boris,
            question: self.to_bot("so which valve comes first?"),
            expect: Expect {
                case: "thread",
                messages: 7,
                gets: 2,
                answered: Answered::Question,
                tools: &[],
                quoted: &["Switching to well 2", "procedure", "wells", "V7 first"],
            },
        }
    }

    /// Twenty replies, each to the one before, among other messages.
    fn chain(&mut self) -> DemoScene {
        let pumps = self.channel(ChannelKind::Text, "pumps");
        let links = words::BEARING.len();
        let all = AROUND_CHAIN + links;
        let between = AROUND_CHAIN / links;
        let mut talk = DemoTalk::ago(&self.world, pumps, 220, 220 * 60 / (all + 2));
        let mut last = None;
        for (link, (who, text)) in words::BEARING.into_iter().enumerate() {
            let draft = Draft::new(text);
            let draft = match last {
                Some(last) => draft.reply_to(last),
                None => draft,
            };
            last = Some(talk.say(&mut self.world, self.crew[who], draft));
            for nth in 0..between {
                let author = self.crew[(link + nth) % 3];
                talk.say(
                    &mut self.world,
                    author,
                    words::chatter(link * between + nth),
                );
            }
        }
        let question = self.to_bot("what is wrong with the pump, and is the part there?");
        DemoScene {
            title: "A chain of 20 replies among 400 other messages",
            setting: "Three people talk about a pump by replying to each other, one reply in \
                      21 messages; Ines replies to the last.",
            rule: "the line of replies from the question up to its root, and nothing of what \
                   was said in between",
            channel: pumps,
            before: None,
            asker: self.ines,
            question: match last {
                Some(last) => question.reply_to(last),
                None => question,
            },
            expect: Expect {
                case: "reply_chain",
                messages: 20,
                gets: 6,
                answered: Answered::Question,
                tools: &[],
                quoted: &["Pump 2 sounds wrong", "gives me a hand"],
            },
        }
    }

    /// A reply to a webhook's message.
    fn alert(&mut self) -> DemoScene {
        let alarms = self.channel(ChannelKind::Text, "alarms");
        let webhook = self.world.fresh_id();
        let mut talk = DemoTalk::ago(&self.world, alarms, 40, 8 * 60);
        let alert = |title: &str, text: &str| {
            let embed = json!({"title": title, "description": text, "color": 15_158_332});
            Draft::new("").webhook("Plant alarms").embed(embed)
        };
        let old = alert("Gate 1 open", "Open for 10 minutes.");
        talk.say(&mut self.world, webhook, old);
        talk.say(&mut self.world, self.crew[0], "That is the delivery.");
        let level = alert(
            "LAH-204 high level, clear water tank B",
            "Level 96.2 % (limit 95 %), rising 0.4 %/min. Inlet valve V12 open.",
        );
        let level = talk.say(&mut self.world, webhook, level);
        talk.say(&mut self.world, self.crew[2], "Lunch?");
        DemoScene {
            title: "A reply to an alert that a webhook posted",
            setting: "Alerts come as embeds from a webhook, without any text.",
            rule: "what apps write is left out, except what the asker points at: that is \
                   shown, marked as an app's",
            channel: alarms,
            before: None,
            asker: self.ines,
            question: self.to_bot("what is this alert?").reply_to(level),
            expect: Expect {
                case: "reply_chain",
                messages: 1,
                gets: 0,
                answered: Answered::Question,
                tools: &[],
                quoted: &["LAH-204", "96.2 %"],
            },
        }
    }

    /// A question unrelated to the conversation around it.
    fn lone_with_text(&mut self) -> DemoScene {
        let room = self.channel(ChannelKind::Text, "control-room");
        let mut talk = DemoTalk::ago(&self.world, room, 30, 4 * 60);
        for nth in 0..6 {
            let author = self.crew[nth % 3];
            talk.say(&mut self.world, author, words::chatter(nth));
        }
        DemoScene {
            title: "A lone mention with a question",
            setting: "A mention in a channel, no thread and no reply.",
            rule: "nothing: the question stands for itself, and what others talk about in the \
                   channel is not its business",
            channel: room,
            before: None,
            asker: self.ines,
            question: self.to_bot("how many litres are in a cubic metre?"),
            expect: Expect {
                case: "lone",
                messages: 0,
                gets: 0,
                answered: Answered::Question,
                tools: &[],
                quoted: &[],
            },
        }
    }

    /// A question that links to a message in another channel.
    fn link(&mut self) -> DemoScene {
        let workshop = self.channel(ChannelKind::Text, "workshop");
        let lab = self.channel(ChannelKind::Text, "lab");
        let mut talk = DemoTalk::ago(&self.world, lab, 30, 4 * 60);
        let said = words::LAB.map(|(who, text)| talk.say(&mut self.world, self.crew[who], text));
        let link = format!(
            "https://discord.com/channels/{}/{lab}/{}",
            self.works, said[3]
        );
        DemoScene {
            title: "A question with a link to a message elsewhere",
            setting: "The link leads to another channel, which everybody who reads this one may \
                      read, too.",
            rule: "the message behind the link, three before it and one after it, under the name \
                   of its channel",
            channel: workshop,
            before: None,
            asker: self.ines,
            question: self.to_bot(&format!("what is to be done about this? {link}")),
            expect: Expect {
                case: "lone",
                messages: 5,
                gets: 2,
                answered: Answered::Question,
                tools: &[],
                quoted: &["#lab", "since Monday", "flush it"],
            },
        }
    }

    /// A mention and nothing else.
    fn lone(&mut self) -> DemoScene {
        let office = self.channel(ChannelKind::Text, "office");
        let mut talk = DemoTalk::ago(&self.world, office, 30, 4 * 60);
        for (who, text) in words::GATE {
            talk.say(&mut self.world, self.crew[who], text);
        }
        DemoScene {
            title: "A lone mention without a word",
            setting: "Six messages of a morning, then only the bot's name.",
            rule: "the channel's last messages, as there is nothing else to go by",
            channel: office,
            before: None,
            asker: self.crew[1],
            question: self.to_bot(""),
            expect: Expect {
                case: "lone",
                messages: 5,
                gets: 1,
                answered: Answered::Question,
                tools: &[],
                quoted: &["before noon"],
            },
        }
    }

    /// A reply to an earlier answer of the bot.
    fn direct(&mut self) -> DemoScene {
        let channel = self.world.direct(self.ines);
        let mut talk = DemoTalk::ago(&self.world, channel, 12, 60);
        let asked = "How long does clear water tank B last if the inflow stops?";
        let asked = talk.say(&mut self.world, self.ines, asked);
        let said = "About six hours: 1,400 m3 at a demand of 230 m3/h.";
        let bot = self.world.bot;
        let said = talk.say(&mut self.world, bot, Draft::new(said).reply_to(asked));
        DemoScene {
            title: "A direct message",
            setting: "Ines replies to an answer of the bot. Nobody has to mention it there.",
            rule: "in a direct conversation the line of replies, the bot's own words in it",
            channel,
            before: None,
            asker: self.ines,
            question: Draft::new("And at night, with half of that?").reply_to(said),
            expect: Expect {
                case: "direct",
                messages: 2,
                gets: 1,
                answered: Answered::Question,
                tools: &[],
                quoted: &["tank B last", "1,400 m3"],
            },
        }
    }

    /// A question about another channel, which the model reads with a tool.
    fn tool(&mut self) -> DemoScene {
        let room = self.channel(ChannelKind::Text, "control-room");
        let gate = self.channel(ChannelKind::Text, "gate");
        let mut talk = DemoTalk::ago(&self.world, gate, 30, 4 * 60);
        for (who, text) in words::GATE {
            talk.say(&mut self.world, self.crew[who], text);
        }
        DemoScene {
            title: "A question about another channel",
            setting: "The answer is in a channel that everybody who reads this one may read, too.",
            rule: "nothing is collected; the model gets tools, calls one, and is asked again with \
                   its result",
            channel: room,
            before: None,
            asker: self.ines,
            question: self.to_bot(&format!("where is the sampling log? See <#{gate}>.")),
            expect: Expect {
                case: "lone",
                messages: 0,
                gets: 1,
                answered: Answered::Question,
                tools: &["list_thread"],
                quoted: &["blue folder"],
            },
        }
    }
}
