//! The waterworks: its people, channels and conversations, and the scenes played
//! there, with a model and without. Every run is the same, except that its time is now.

mod earlier;

use serde_json::json;

use super::scene::{Answered, DemoRun, DemoScene, Expect, JustBefore};
use super::talk::DemoTalk;
use super::words;
use clew_simulator::{ChannelKind, Draft, Id, World};

/// The number of messages in the long thread.
const THREAD: usize = 300;
/// How many of them are from yesterday.
const YESTERDAY: usize = 180;
/// The number of other messages around the chain of replies.
const AROUND_CHAIN: usize = 400;

/// The app through which some of them write, by its id.
const PROXY: u64 = 466_378_653_216_014_359;
/// The same as the bot is told of it.
const PROXY_APPS: (&str, &str) = ("PROXY_APPS", "pluralkit");

/// What is played, in order, numbered from 1: the questions, then the task.
pub(super) struct Script {
    /// Who is asked.
    bot: Id,
    /// The questions; the short demo shows the first few.
    pub(super) scenes: Vec<DemoScene>,
    /// The task.
    pub(super) run: DemoRun,
}

impl Script {
    /// The question with this number; none if it is the task's.
    pub(super) fn scene(&self, number: usize) -> Option<&DemoScene> {
        self.scenes.get(number.checked_sub(1)?)
    }

    /// Whether a model has to call tools in it.
    pub(super) fn needs_model(&self, number: usize) -> bool {
        self.scene(number).is_none_or(|scene| scene.needs_model)
    }

    /// The settings with which it is played.
    pub(super) fn settings(&self, number: usize) -> &'static [(&'static str, &'static str)] {
        self.scene(number).map_or(&[], |scene| scene.settings)
    }

    /// Asks something else there.
    pub(super) fn ask(&mut self, number: usize, text: &str) {
        let scene = self.scenes.get_mut(number.saturating_sub(1));
        if let Some(scene) = scene {
            scene.question.content = format!("<@{}> {text}", self.bot);
        }
    }
}

/// The world before anybody asks, and what is played in it.
pub(super) fn build() -> (World, Script) {
    let mut plant = Plant::new();
    let (filter, filter_again) = plant.filter();
    let scenes = vec![
        filter,
        filter_again,
        plant.link(),
        plant.chain(),
        plant.busy(),
        plant.tool(),
        plant.forum(),
        plant.alert(),
        plant.lone_with_text(),
        plant.lone(),
        plant.proxied(),
        plant.direct(),
        plant.recalled(),
        plant.missed(),
    ];
    let run = DemoRun {
        title: "A task",
        setting: "With /agent run the bot works on a task in a thread of its own. It starts clean: \
                  no history, no facts, nothing of the channel. What it needs it reads with tools.",
        channel: plant.control_room,
        asker: plant.ines,
        task: "Find out where the sampling log is. The crew writes in #gate.",
        quoted: "blue folder",
    };
    let bot = plant.world.bot;
    (plant.world, Script { bot, scenes, run })
}

/// The world while it is being built.
struct Plant {
    world: World,
    works: Id,
    /// The three people on the shift.
    crew: [Id; 3],
    /// New here, and asks a lot.
    ines: Id,
    /// A channel in which there is some talk.
    control_room: Id,
}

impl Plant {
    fn new() -> Self {
        let mut world = World::new();
        let works = world.guild("Waterworks");
        let crew = ["Ada", "Boris", "Chidi"].map(|name| world.member(works, name));
        let ines = world.member(works, "Ines");
        let control_room = world.channel(works, ChannelKind::Text, "control-room");
        let mut talk = DemoTalk::ago(&world, control_room, 30, 4 * 60);
        for nth in 0..6 {
            talk.say(&mut world, crew[nth % 3], words::chatter(nth));
        }
        Self {
            world,
            works,
            crew,
            ines,
            control_room,
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
        let mut talk = DemoTalk::ago(&self.world, house, 27 * 60, 100);
        let complaint = "Turbidity after filter 3 is creeping up: 0.28 NTU since the morning.";
        let starter = talk.say(&mut self.world, ada, complaint);
        let thread = self
            .world
            .thread_from(house, starter, "Filter 3: turbidity", ada);
        talk.go_on_in(thread);
        let end = words::FILTER_END;
        for nth in 0..THREAD - end.len() {
            if nth == YESTERDAY {
                talk.resume(&self.world, 250, 240 * 60 / (THREAD - YESTERDAY));
            }
            let author = self.crew[nth * 5 % 3];
            talk.say(&mut self.world, author, words::filter(nth));
        }
        for (who, text) in end {
            talk.say(&mut self.world, self.crew[who], text);
        }
        let first = DemoScene {
            title: "A question in a thread of 300 messages that began yesterday",
            setting: "The thread hangs on a message of the channel above it. The bot has just \
                      started and has seen none of it.",
            rule: "in a thread the message it hangs on and the last messages; since it was \
                   mentioned also the thread's history, newest first up to the caps; older pages \
                   are not fetched",
            alone: "what is \"it\"?",
            because: "a question in a thread is about the thread",
            needs_model: false,
            settings: &[],
            channel: thread,
            asked_before: Vec::new(),
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
            title: "In the same thread, a mention without a word",
            setting: "Somebody asks, somebody else only points the bot at it. By now the bot \
                      knows the thread from the gateway and its earlier calls.",
            rule: "the same; without words of his own the asker points at the newest message \
                   of a person, which is then what the bot answers",
            alone: "it has no words",
            because: "the mention means what was said last",
            asked_before: Vec::new(),
            before: Some(JustBefore::Said(
                boris,
                "Head loss is at 47 kPa now. Do we backwash or wait?",
            )),
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
        let mut talk = DemoTalk::ago(&self.world, forum, 50 * 60, 6 * 60);
        let text = "How do we switch to the second well? I have the night shift alone on Friday.";
        let draft = Draft::new(text).at_ms(talk.next_ms());
        let title = "Switching to well 2";
        let post = self.world.forum_post(forum, boris, title, &tags, draft);
        talk.go_on_in(post);
        for (who, text) in words::WELL_POST {
            talk.say(&mut self.world, self.crew[who], text);
        }
        DemoScene {
            title: "A question in a forum post of the day before yesterday",
            setting: "A post, its tags and six replies.",
            rule: "a post is a thread whose first message is the post itself; its title and \
                   the names of its tags are told as well",
            alone: "which valves, of what?",
            because: "title, tags and answers belong to the question",
            needs_model: false,
            settings: &[],
            channel: post,
            asked_before: Vec::new(),
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
        let mut talk = DemoTalk::ago(&self.world, pumps, 30 * 60, 150);
        let mut last = None;
        for (link, (who, text)) in words::BEARING.into_iter().enumerate() {
            if link == links / 2 {
                talk.resume(&self.world, 300, 300 * 60 * 2 / (all + 2));
            }
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
            title: "The last of 20 replies, among 400 other messages",
            setting: "Three people talk about a pump by replying to each other, one reply in \
                      21 messages; Ines replies to the last.",
            rule: "the line of replies from the question up to its root, and nothing of what \
                   was said in between",
            alone: "which pump?",
            because: "the line of replies, and nothing of what stood between",
            needs_model: false,
            settings: &[],
            channel: pumps,
            asked_before: Vec::new(),
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

    /// Two conversations in one channel, and a question about one of them.
    fn busy(&mut self) -> DemoScene {
        let yard = self.channel(ChannelKind::Text, "yard");
        let mut talk = DemoTalk::ago(&self.world, yard, 20, 60);
        let [_, boris, _] = self.crew;
        for (who, text) in words::YARD {
            let author = self.crew.get(who).copied().unwrap_or(self.ines);
            talk.say(&mut self.world, author, text);
        }
        DemoScene {
            title: "A mention in a busy channel, with LONE_CONTEXT=conversation",
            setting: "Two pairs of people talk across each other, about a pump and about a visit, \
                      without replying to each other; one of them asks.",
            rule: "of the channel's last 200 messages those that belong to the asker's conversation, \
                   by who names, answers and shares rare words with whom",
            alone: "order what?",
            because: "what belongs to Boris's conversation",
            needs_model: false,
            settings: &[("LONE_CONTEXT", "conversation")],
            channel: yard,
            asked_before: Vec::new(),
            before: None,
            asker: boris,
            question: self.to_bot("can we order it today?"),
            expect: Expect {
                case: "lone",
                messages: 6,
                gets: 1,
                answered: Answered::Question,
                tools: &[],
                quoted: &["mechanical seal", "(answers)"],
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
            alone: "which alert?",
            because: "what somebody points at is shown, even if an app wrote it",
            needs_model: false,
            settings: &[],
            channel: alarms,
            asked_before: Vec::new(),
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
        DemoScene {
            title: "A lone mention with a question",
            setting: "A mention in a channel, no thread and no reply.",
            rule: "nothing: the question stands for itself, and what others talk about in the \
                   channel is not its business",
            alone: "that is enough",
            because: "the question stands for itself",
            needs_model: false,
            settings: &[],
            channel: self.control_room,
            asked_before: Vec::new(),
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
        let mut talk = DemoTalk::ago(&self.world, lab, 26 * 60, 4 * 60);
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
            alone: "the model cannot open a link",
            because: "what it links to, as everybody here may read it",
            needs_model: false,
            settings: &[],
            channel: workshop,
            asked_before: Vec::new(),
            before: None,
            asker: self.ines,
            question: self.to_bot(&format!("is this urgent? {link}")),
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
            alone: "it has no words",
            because: "there is nothing else to go by",
            needs_model: false,
            settings: &[],
            channel: office,
            asked_before: Vec::new(),
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

    /// A question in a thread that Discord sends to nobody: the connection is lost.
    fn missed(&mut self) -> DemoScene {
        let pumps = self.channel(ChannelKind::Text, "pump-house");
        let [_, boris, chidi] = self.crew;
        let mut talk = DemoTalk::ago(&self.world, pumps, 40, 5 * 60);
        let starter = talk.say(&mut self.world, boris, words::PUMP_4);
        let thread = self
            .world
            .thread_from(pumps, starter, "Pump 4 is loud", boris);
        talk.go_on_in(thread);
        talk.say(&mut self.world, chidi, words::PUMP_4_ANSWER);
        DemoScene {
            title: "A question that was asked while the connection was lost",
            setting: "Discord has dropped the session, as after a crash and a long pause: it never \
                      sends this question.",
            rule: "in a new session the bot looks in the channels that have newer messages for \
                   what it was asked within CATCH_UP_MIN, and answers it once",
            alone: "none, it never hears of it",
            because: "no question is lost with a connection",
            needs_model: false,
            settings: &[],
            channel: thread,
            asked_before: Vec::new(),
            before: Some(JustBefore::SessionLost),
            asker: self.ines,
            question: self.to_bot("was it the bearing?"),
            expect: Expect {
                case: "thread",
                messages: 2,
                gets: 4,
                answered: Answered::Question,
                tools: &[],
                quoted: &["loud since the night shift", "the coupling was loose"],
            },
        }
    }

    /// A thread in which two people write through an app.
    fn proxied(&mut self) -> DemoScene {
        let wells = self.channel(ChannelKind::Text, "wells");
        let [_, boris, _] = self.crew;
        let mut talk = DemoTalk::ago(&self.world, wells, 60, 5 * 60);
        let starter = talk.say(&mut self.world, boris, words::WELL_1);
        let title = "Well 1 draws air";
        let thread = self.world.thread_from(wells, starter, title, boris);
        talk.go_on_in(thread);
        let webhook = self.world.fresh_id();
        for (name, text) in words::WELL_1_PROXIED {
            let draft = Draft::new(text).webhook(name).application(PROXY);
            talk.say(&mut self.world, webhook, draft);
        }
        DemoScene {
            title: "A thread in which two people write through an app",
            setting: "Luna and Sol write through PluralKit: what they type appears as a webhook's \
                      messages, under their names. PROXY_APPS=pluralkit makes them people.",
            rule: "what a listed app posts counts as people's words, whatever its name; the \
                   prompt marks it as written through an app",
            alone: "what was found where?",
            because: "who writes through a listed app is a person",
            needs_model: false,
            settings: &[PROXY_APPS],
            channel: thread,
            asked_before: Vec::new(),
            before: None,
            asker: self.ines,
            question: self.to_bot("what was it, and is it fixed?"),
            expect: Expect {
                case: "thread",
                messages: 3,
                gets: 2,
                answered: Answered::Question,
                tools: &[],
                quoted: &["the foot valve sticks", "new spring"],
            },
        }
    }

    /// A question about another channel, which the model reads with a tool.
    fn tool(&mut self) -> DemoScene {
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
            alone: "the model cannot look there",
            because: "to read what all here may",
            needs_model: true,
            settings: &[],
            channel: self.control_room,
            asked_before: Vec::new(),
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
