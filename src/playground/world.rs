//! The playground's world: two small servers with channels, threads, a forum and direct
//! conversations. Every run is the same, except that its time is now.

use serde_json::json;

use super::words::{self, Said};
use clew_simulator::{ChannelKind, Draft, File, Id, Permissions, User, World};

/// A minute and a day, in milliseconds.
const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// The world before anybody asks, and what a newcomer may ask where.
pub(super) fn build() -> (World, (Id, String)) {
    let mut harbour = Harbour::new();
    harbour.general();
    let thread = harbour.boat();
    harbour.forum();
    harbour.pump();
    harbour.alarms();
    harbour.direct();
    harbour.garden();
    let ask = format!(
        "<@{}> what is this about, and what was tried so far?",
        harbour.world.bot
    );
    (harbour.world, (thread, ask))
}

/// The world while it is being built.
struct Harbour {
    world: World,
    guild: Id,
    /// By their number in [`words`]: Mira, Tomás, Aiko, Samuel, Noor.
    people: Vec<Id>,
}

impl Harbour {
    fn new() -> Self {
        let mut world = World::new();
        let (guild, owner) = server(&mut world, "Harbour Workshop", words::PEOPLE[0]);
        let others = words::PEOPLE[1..].iter();
        let others = others.map(|(name, display)| {
            let id = world.member(guild, name);
            world.add_user(person(id, name, display));
            id
        });
        let people: Vec<Id> = std::iter::once(owner)
            .chain(others.collect::<Vec<_>>())
            .collect();
        let crew = world.role(guild, "boat crew", Permissions::NONE);
        for person in &people[..3] {
            world.give_role(guild, *person, crew);
        }
        Self {
            world,
            guild,
            people,
        }
    }

    /// People talk, `minutes` ago and then every few minutes. Returns the ids.
    fn talk(&mut self, channel: Id, ago_ms: i64, every_ms: i64, said: &[Said]) -> Vec<Id> {
        let mut at_ms = self.world.now_ms() - ago_ms;
        let mut ids = Vec::new();
        for (who, text) in said {
            let draft = Draft::new(*text).at_ms(at_ms);
            ids.push(self.world.seed(channel, self.people[*who], draft));
            at_ms += every_ms;
        }
        ids
    }

    fn channel(&mut self, kind: ChannelKind, name: &str) -> Id {
        self.world.channel(self.guild, kind, name)
    }

    fn general(&mut self) {
        let general = self.channel(ChannelKind::Text, "general");
        self.talk(general, 3 * DAY, 7 * MINUTE, &words::GENERAL_BEFORE);
        self.talk(general, 50 * MINUTE, 4 * MINUTE, &words::GENERAL);
    }

    /// A thread that began yesterday.
    fn boat(&mut self) -> Id {
        let boats = self.channel(ChannelKind::Text, "boats");
        let said = self.talk(boats, DAY, 9 * MINUTE, &words::BOATS);
        let starter = said[said.len() - 1];
        let owner = self.people[1];
        let thread = self
            .world
            .thread_from(boats, starter, "Leak at the stern", owner);
        self.talk(
            thread,
            DAY - 50 * MINUTE,
            11 * MINUTE,
            &words::LEAK_YESTERDAY,
        );
        self.talk(thread, 230 * MINUTE, 8 * MINUTE, &words::LEAK_MORNING);
        self.talk(thread, 95 * MINUTE, 6 * MINUTE, &words::LEAK_NOW);
        thread
    }

    /// A forum with tags and posts, one of them archived.
    fn forum(&mut self) {
        let forum = self.channel(ChannelKind::Forum, "how-to");
        let tags = ["tools", "wood", "electric", "answered"];
        let tags = tags.map(|tag| self.world.tag(forum, tag));
        let posts = [
            (words::SANDER, vec![tags[0], tags[1]], 26 * 60 * MINUTE),
            (words::BATTERY, vec![tags[2]], 5 * 60 * MINUTE),
            (words::GLUE, vec![tags[1], tags[3]], 9 * DAY),
        ];
        for (post, tags, ago_ms) in posts {
            let (title, said) = post;
            let [(who, first), rest @ ..] = said else {
                continue;
            };
            let draft = Draft::new(*first).at_ms(self.world.now_ms() - ago_ms);
            let author = self.people[*who];
            let id = self.world.forum_post(forum, author, title, &tags, draft);
            self.talk(id, ago_ms - 12 * MINUTE, 13 * MINUTE, rest);
            if ago_ms > 7 * DAY {
                self.world.set_archived(id, true, false);
            }
        }
    }

    /// A chain of replies among other messages, with a file.
    fn pump(&mut self) {
        let workshop = self.channel(ChannelKind::Text, "workshop");
        let mut at_ms = self.world.now_ms() - 130 * MINUTE;
        let mut last = None;
        for (nth, (who, text)) in words::PUMP.into_iter().enumerate() {
            let mut draft = Draft::new(text).at_ms(at_ms);
            if nth == 2 {
                draft = draft.attachment(File::text("pump-log.txt", words::PUMP_LOG));
            }
            if let Some(last) = last {
                draft = draft.reply_to(last);
            }
            last = Some(self.world.seed(workshop, self.people[who], draft));
            for (who, text) in words::BETWEEN.into_iter().skip(nth * 2).take(2) {
                at_ms += 3 * MINUTE;
                let draft = Draft::new(text).at_ms(at_ms);
                self.world.seed(workshop, self.people[who], draft);
            }
            at_ms += 4 * MINUTE;
        }
    }

    /// What a webhook posts, as embeds.
    fn alarms(&mut self) {
        let alarms = self.channel(ChannelKind::Text, "alarms");
        let webhook = self.world.fresh_id();
        let alarm = |title: &str, text: &str| {
            let embed = json!({"title": title, "description": text, "color": 15_158_332});
            Draft::new("").webhook("Tide station").embed(embed)
        };
        let now_ms = self.world.now_ms();
        let first = alarm("Gale warning", "South-west 8, gusts 9, from 18:00.");
        self.world
            .seed(alarms, webhook, first.at_ms(now_ms - 6 * 60 * MINUTE));
        self.talk(alarms, 5 * 60 * MINUTE, 5 * MINUTE, &words::ALARMS);
        let second = alarm(
            "High water 4.9 m",
            "At 21:40, 0.6 m above the mean. Gate 2 closes by itself.",
        );
        self.world
            .seed(alarms, webhook, second.at_ms(now_ms - 30 * MINUTE));
    }

    /// A conversation with the bot from yesterday.
    fn direct(&mut self) {
        let mira = self.people[0];
        let channel = self.world.direct(mira);
        let at_ms = self.world.now_ms() - DAY;
        let asked = Draft::new("How long does epoxy need at 12 degrees?").at_ms(at_ms);
        let asked = self.world.seed(channel, mira, asked);
        let said = "About twice as long as at 20: two days until you can sand it, a week until it \
                    is hard.";
        let said = Draft::new(said).reply_to(asked).at_ms(at_ms + MINUTE);
        let bot = self.world.bot;
        self.world.seed(channel, bot, said);
    }

    /// A second server, in which only some of them are.
    fn garden(&mut self) {
        let (garden, owner) = server(&mut self.world, "Moss & Fern", words::GARDENER);
        for person in [0, 4] {
            self.world.join(garden, self.people[person]);
        }
        let beds = self.world.channel(garden, ChannelKind::Text, "beds");
        let (mira, noor) = (self.people[0], self.people[4]);
        let mut at_ms = self.world.now_ms() - 4 * 60 * MINUTE;
        for (who, text) in words::BEDS {
            let author = [owner, mira, noor][who];
            let draft = Draft::new(text).at_ms(at_ms);
            self.world.seed(beds, author, draft);
            at_ms += 6 * MINUTE;
        }
    }
}

/// A server that belongs to a person.
fn server(world: &mut World, name: &str, (user, display): (&str, &str)) -> (Id, Id) {
    let guild = world.guild(name);
    let owners = world.guilds().filter(|one| one.id == guild);
    let owner = owners.map(|one| one.owner).next().unwrap_or(guild);
    world.add_user(person(owner, user, display));
    (guild, owner)
}

fn person(id: Id, name: &str, display: &str) -> User {
    User {
        id,
        name: name.to_owned(),
        global_name: Some(display.to_owned()),
        bot: false,
    }
}
