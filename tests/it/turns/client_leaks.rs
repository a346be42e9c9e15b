//! Over layouts of channels, threads and rights that change: what a member's program is told,
//! its member may read on Discord at that moment.

use std::ops::Range;
use std::{env, mem};

use clew_simulator::{Id, OverwriteOf, Permissions, Simulator, World};
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use super::client_layouts::{Layout, PEOPLE, Said, Spot, reads};
use super::leaks::{Random, change};
use super::{Place, place_with};
use crate::monitor::own_address;
use crate::support::client::Client;

/// Layouts, unless `CLIENT_LEAKS=FIRST..END` names others; one bot has so many of them, and so
/// many bots run at once: each asks Discord 50 times a second at most.
const SEEDS: Range<u64> = 0..40;
const PER_BOT: usize = 10;
const AT_ONCE: usize = 24;
/// Calls in a layout: a server has 60 in a minute, a member 20.
const CALLS: usize = 20;
/// So many before anything changes.
const UNCHANGED: usize = 8;

/// How often a message was told; how often one that the member may not read was not; how often
/// one that they may read was not, though they asked for its place before anything changed.
#[derive(Debug, Default)]
struct Counted {
    told: usize,
    hidden: usize,
    missed: usize,
}

impl Counted {
    fn add(&mut self, other: &Self) {
        self.told += other.told;
        self.hidden += other.hidden;
        self.missed += other.missed;
    }
}

/// One layout while it is explored.
struct Explored<'a> {
    p: &'a Place,
    layout: Layout,
    clients: Vec<Client>,
    /// Another server's place.
    foreign: Id,
    /// An answer in the lobby, if there is one.
    answer: Option<Id>,
    random: Random,
    /// What the bot knows of a channel that it could not read may be older.
    is_changed: bool,
    counted: Counted,
}

impl Explored<'_> {
    fn link(&self, place: Id, message: Id) -> String {
        let guild = self.layout.guild;
        format!("https://discord.com/channels/{guild}/{place}/{message}")
    }

    fn any(&mut self) -> usize {
        self.random.below(self.layout.spots.len())
    }

    /// A link to a message of a spot, or to the spot.
    fn linked(&self, spot: &Spot) -> String {
        self.link(spot.id, spot.said.first().map_or(spot.id, |said| said.id))
    }

    /// A call about a place, perhaps with a link to another, or to an answer.
    fn call(&mut self) -> (&'static str, Value) {
        let (at, other) = (self.any(), self.any());
        let dice = self.random.below(24);
        let spot = &self.layout.spots[at];
        let here = match dice % 4 {
            0 => format!("#{}", spot.name),
            1 => self.linked(spot),
            _ => spot.id.to_string(),
        };
        match dice {
            0..4 => ("list_channels", json!({})),
            4..6 => ("search", json!({ "words": "order" })),
            6..8 => ("search", json!({ "words": "order", "channel": here })),
            8 => (
                "read_thread",
                json!({ "channel": self.foreign.to_string() }),
            ),
            9..16 => ("read_thread", json!({ "channel": here })),
            16..19 => ("read_context", json!({ "channel": here })),
            19..23 => {
                let linked = self.linked(&self.layout.spots[other]);
                let question = format!("and {linked}?");
                (
                    "read_context",
                    json!({ "channel": here, "question": question }),
                )
            }
            _ => {
                let link = match self.answer {
                    Some(answer) => self.link(self.layout.lobby, answer),
                    None => self.linked(spot),
                };
                ("why", json!({ "answer": link }))
            }
        }
    }

    /// Something that changes who may read what, or what there is.
    async fn change(&mut self) {
        let at = self.any();
        let (allow, deny) = change(&mut self.random);
        let (who, role) = (self.random.below(PEOPLE - 1), self.random.below(2));
        let (kind, is_on) = (self.random.below(12), self.random.below(2) == 0);
        let (p, layout) = (self.p, &mut self.layout);
        let (discord, guild) = (&p.stage.discord, layout.guild);
        let (who, role) = (layout.people[who], layout.roles[role]);
        let spot = &mut layout.spots[at];
        match kind {
            0..2 => {
                let of = OverwriteOf::Role([guild, role][usize::from(is_on)]);
                discord.overwrite(spot.home, of, allow, deny);
            }
            2 => discord.overwrite(spot.home, OverwriteOf::Member(who), allow, deny),
            3 => discord.set_role(guild, who, role, is_on),
            4 => {
                let permissions =
                    [Permissions::NONE, Permissions::MANAGE_THREADS][usize::from(is_on)];
                discord.set_role_permissions(guild, role, permissions);
            }
            5 => discord.world(|world| {
                for other in &layout.people {
                    world.time_out(guild, *other, None);
                }
                let until = is_on.then(|| world.now_ms() + 3_600_000);
                world.time_out(guild, who, until);
            }),
            6 => {
                // The event comes with the overwrite.
                discord.world(|world| world.restrict_age(spot.home));
                discord.overwrite(spot.home, OverwriteOf::Member(who), allow, deny);
            }
            7 if spot.id != spot.home => discord.set_archived(spot.id, is_on, false),
            8 if spot.id != spot.home && is_on => discord.join_thread(spot.id, who),
            8 if spot.id != spot.home => discord.leave_thread(spot.id, who),
            9 => {
                if let Some(said) = spot.said.iter_mut().find(|said| !said.is_deleted) {
                    said.is_deleted = true;
                    discord.delete(spot.id, said.id);
                }
            }
            10 => {
                let mut said = spot.said.iter_mut();
                let fits = |said: &&mut Said| !said.is_deleted && said.earlier.is_none();
                if let Some(said) = said.find(fits) {
                    let word = said.word.replace("kumquat", "persimmon");
                    discord.edit(spot.id, said.id, &format!("order {word}"));
                    said.earlier = Some(mem::replace(&mut said.word, word));
                }
            }
            11 if is_on && !layout.has_opted_out => {
                layout.has_opted_out = true;
                let who = layout.authors[1];
                opts_out(discord, who, layout.lobby).await;
            }
            _ => return,
        }
        p.seen().await;
    }

    /// Compares what a call gave with what its member may read.
    fn judge(&mut self, who: Id, tool: &str, arguments: &Value, given: &str) {
        let asked = arguments.to_string();
        let layout = &self.layout;
        let case = || format!("seed {}: {who}: {tool} {asked}: {given}", layout.seed);
        let mut counted = Counted::default();
        let is_own = |text: &str| text.starts_with(&format!("{:06}x", layout.seed));
        for what in ["kumquat", "persimmon", "room", "talk"] {
            assert!(given.split(what).skip(1).all(is_own), "{}", case());
        }
        self.p.stage.discord.world(|world| {
            for spot in &layout.spots {
                let may_read = reads(world, who, spot);
                let names = given.contains(&spot.name);
                assert!(world.sees(who, spot.id) || !names, "name: {}", case());
                let has_id = given.contains(&spot.id.to_string());
                assert!(
                    may_read || !has_id || asked.contains(&spot.id.to_string()),
                    "id: {}",
                    case()
                );
                let named = json!({ "channel": spot.id.to_string() });
                let is_meant = *arguments == named;
                let ours = reads(world, world.bot, spot);
                for said in &spot.said {
                    let is_told = given.contains(&said.word);
                    let may = may_read && layout.stands(said);
                    assert!(may || !is_told, "{}: {}", said.word, case());
                    let has_id = given.contains(&said.id.to_string());
                    assert!(
                        may_read || !has_id || asked.contains(&said.id.to_string()),
                        "id: {}",
                        case()
                    );
                    let is_past = said
                        .earlier
                        .as_ref()
                        .is_some_and(|word| given.contains(word));
                    assert!(!is_past, "earlier: {}", case());
                    let is_due = may && ours && is_meant && !self.is_changed;
                    counted.told += usize::from(is_told);
                    counted.hidden += usize::from(!may);
                    counted.missed += usize::from(is_due && !is_told);
                }
            }
            if tool == "list_channels" && !self.is_changed {
                let listed = layout.listed(world, who);
                let is_due = |id: &&Id| !given.contains(&id.to_string());
                let missing: Vec<&Id> = listed.iter().filter(is_due).collect();
                assert!(missing.is_empty(), "{missing:?} are missing: {}", case());
            }
        });
        self.counted.add(&counted);
    }

    async fn run(mut self) -> Counted {
        for number in 0..CALLS {
            self.is_changed = number >= UNCHANGED;
            if self.is_changed && self.random.below(2) == 0 {
                self.change().await;
            }
            let (tool, arguments) = self.call();
            let at = number % PEOPLE;
            let given = self.clients[at].call(tool, arguments.clone()).await;
            let given = given.unwrap_or_else(|why| why);
            self.judge(self.layout.people[at], tool, &arguments, &given);
        }
        self.counted
    }
}

async fn opts_out(discord: &Simulator, who: Id, lobby: Id) {
    let called = discord.call(who, lobby, "privacy opt-out", json!({})).await;
    let asked = called.unwrap().answer().await.unwrap();
    let pressed = discord.press(who, asked.message, "Opt out and erase");
    pressed.answer().await.unwrap();
}

/// The programs of a layout's members.
async fn programs(p: &Place, layout: &Layout, first: &Client) -> Vec<Client> {
    let says = async |who: Id, command: &str, options: Value| {
        let called = p
            .stage
            .discord
            .call(who, layout.lobby, command, options)
            .await;
        called.unwrap().answer().await.unwrap().content
    };
    says(layout.owner, "settings set", json!({ "programs": "on" })).await;
    let mut clients = Vec::new();
    for who in &layout.people {
        let shown = says(*who, "connect new", json!({ "client": "editor" })).await;
        let token = shown
            .split("```")
            .nth(1)
            .unwrap_or_else(|| panic!("{shown}"));
        clients.push(first.with_token(token.trim()));
    }
    clients
}

/// A question with a link in a lobby; who owns the server asks.
async fn answered(p: &Place, layout: &Layout) -> Id {
    let spot = &layout.spots[0];
    let link = format!(
        "https://discord.com/channels/{}/{}/{}",
        layout.guild, spot.id, spot.id
    );
    p.post(layout.lobby, layout.owner, p.to_us(&format!("and {link}?")));
    let answers = p.stage.discord.wait_answers(layout.lobby, 1).await;
    answers.unwrap()[0].id
}

/// One bot in many servers.
async fn explored(seeds: Range<u64>) -> Counted {
    let address = own_address();
    let listen = address.to_string();
    let laid = |world: &mut World, _| {
        let layouts = seeds.map(|seed| Layout::new(world, seed));
        layouts.collect::<Vec<Layout>>()
    };
    let (p, layouts) = place_with(&[("MCP_LISTEN", &listen)], laid).await;
    let bot = p.start().await;
    let first = Client::new(address, "");
    let foreign = layouts[0].spots[0].id;
    let mut all = Counted::default();
    for layout in layouts {
        let clients = programs(&p, &layout, &first).await;
        let answer = if layout.seed % 4 == 0 {
            Some(answered(&p, &layout).await)
        } else {
            None
        };
        let explored = Explored {
            p: &p,
            random: Random(!layout.seed),
            layout,
            clients,
            foreign,
            answer,
            is_changed: false,
            counted: Counted::default(),
        };
        all.add(&explored.run().await);
    }
    bot.stop().await;
    all
}

/// The seeds that the environment names.
fn seeds() -> Range<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever runs more layouts says which"
    )]
    let named = env::var("CLIENT_LEAKS").ok();
    named.map_or(SEEDS, |named| {
        let (first, end) = named.split_once("..").expect("FIRST..END");
        first.parse().unwrap()..end.parse().unwrap()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_told_what_its_member_may_read_and_nothing_else() {
    let Range { start, end } = seeds();
    let bots = (start..end).step_by(PER_BOT);
    let bots = bots.map(|first| explored(first..end.min(first + PER_BOT as u64)));
    let mut counted = stream::iter(bots).buffer_unordered(AT_ONCE);
    let mut all = Counted::default();
    while let Some(one) = counted.next().await {
        all.add(&one);
    }
    println!("{} layouts: {all:?}", end - start);
    assert!(all.told > 100 && all.hidden > 100, "{all:?}");
    // Archived private threads are not always known to be for somebody.
    assert!(all.missed * 20 < all.told, "{all:?}");
}
