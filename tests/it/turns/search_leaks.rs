//! Over layouts of channels, threads and rights: what a search gives is for all who read the
//! answer, and what is hidden changes neither the result nor what Discord is asked.
//!
//! Two worlds are compared that differ in nothing but hidden messages: the texts of the pages
//! that one turn asks for, byte by byte, and in place of time the requests with their queries.
//! Up to ten hidden messages change nothing. More may cost a page one request more, which an
//! asker can only see as time; of more than 35 among 50 a page may have a gap.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clew::agents::Agents;
use clew::config::Search;
use clew::memory::{ExtractionInput, Memory, Place};
use clew::telemetry::{Ids, Telemetry};
use clew::tools::{self, Arguments, Asker, DiscordSearch, SearchedServers, TurnSearches};
use clew_context::collect::{NegativeCache, Reads};
use clew_context::discord::Live;
use clew_context::discord::rest::RestReader;
use clew_context::engine::eligible::Us;
use clew_context::engine::render::Directory;
use clew_context::engine::window::{Window, WindowLimits};
use clew_context::model::{
    ApplicationId, ChannelId, GuildId, Limits, MessageId, OptOuts, OptedOut, Proxies, Readers,
    RoleId, UserId, fixed_clock,
};
use clew_context::outside::{SendError, Transport};
use clew_discord::guild_state::{AnswerPlace, CurrentUser, GuildState};
use clew_simulator::{ChannelKind, Id, OverwriteOf, Permissions, Simulator, World};
use clew_store::model::{AgentName, Scope};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::{Request, Response};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Seeds;
use super::leaks::{Random, channel, everybody_reads, members};
use super::opt_out::memory;
use crate::support::START;

/// In each of two tests, which run beside each other.
const LAYOUTS: u64 = 5_000;
/// Of so many layouts one has more messages than a page, and one turn asks for these pages.
const CROWDED: u64 = 40;
const PAGES: usize = 3;
const API: &str = "/api/v10";

/// Leads to the simulator of the layout that is looked at, and keeps what it was asked.
#[derive(Debug, Clone, Default)]
struct Wire(Arc<Mutex<Line>>);

#[derive(Debug, Default)]
struct Line {
    simulator: Option<Arc<Simulator>>,
    asked: Vec<String>,
}

impl Transport for Wire {
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, SendError>> {
        let mut wire = self.0.lock().unwrap();
        let path = request.url().as_str().split_once(API).unwrap().1.to_owned();
        let (status, body) = wire.simulator.as_ref().unwrap().peek(&path);
        wire.asked.push(path);
        let mut answer = axum::http::Response::new(body);
        *answer.status_mut() = status.try_into().unwrap();
        async move { Ok(answer.into()) }.boxed()
    }
}

/// A server, and who asks where.
struct Layout {
    simulator: Arc<Simulator>,
    state: GuildState,
    guild: Id,
    room: Id,
    asker: Id,
    roles: Vec<RoleId>,
    is_private: bool,
    arguments: Value,
    trigger: Id,
    /// Words of messages, with whether all who read the answer may read them.
    said: Vec<(String, bool)>,
}

/// Channels and threads with a message each; the first is where is asked.
fn places(world: &mut World, seeds: Seeds, roles: [Id; 2], random: &mut Random) -> Vec<Id> {
    let mut places = Vec::new();
    for _ in 0..2 {
        let source = channel(world, seeds, roles, random, "plans");
        if random.below(4) == 0 {
            world.restrict_age(source);
        }
        let open = world.thread(source, ChannelKind::PublicThread, "talk", seeds.ada);
        world.set_archived(open, random.below(2) == 0, false);
        let secret = world.thread(source, ChannelKind::PrivateThread, "secret", seeds.ada);
        world.join_thread(secret, world.bot);
        places.extend([source, open, secret]);
    }
    places
}

/// More messages of a layout, one after the other in places of either kind as long as there are
/// any.
#[derive(Debug, Clone, Copy, Default)]
struct Crowd {
    shown: usize,
    hidden: usize,
}

impl Crowd {
    /// Seeds it in places, each with its word and whether all may read it.
    fn seed(
        mut self,
        world: &mut World,
        random: &mut Random,
        author: Id,
        places: &[(Id, &str, bool)],
        whole: bool,
    ) {
        let (open, closed): (Vec<_>, Vec<_>) =
            places.iter().partition(|(_, _, is_shown)| *is_shown);
        while self.shown + self.hidden > 0 {
            let is_hidden = random.below(self.shown + self.hidden) < self.hidden;
            let (of, left) = if is_hidden {
                (&closed, &mut self.hidden)
            } else {
                (&open, &mut self.shown)
            };
            *left -= 1;
            let Some((place, word, _)) = of.get(random.below(of.len().max(1))) else {
                continue;
            };
            let message = world.seed(*place, author, format!("order {word}"));
            if is_hidden && !whole {
                world.seed_delete(*place, message);
            }
        }
    }
}

/// The layout of a seed, `whole` or as if there were no messages that are hidden.
fn layout(seed: u64, whole: bool, crowd: Crowd) -> Layout {
    let mut random = Random(seed);
    let mut world = World::new();
    world.set_clock(START.0, 1_000);
    world.settings.search_covers_threads = random.below(2) == 0;
    let guild = world.guild("Works");
    let ada = world.member(guild, "Ada");
    let seeds = Seeds {
        guild,
        channel: guild,
        ada,
        boris: ada,
    };
    let (roles, people) = members(&mut world, seeds);
    let places = places(&mut world, seeds, roles, &mut random);
    let room = places[random.below(2)];
    world.overwrite(
        room,
        OverwriteOf::Member(people[3]),
        Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY,
        Permissions::NONE,
    );
    let asker = people[3];
    let is_private = random.below(4) == 0;
    let readers = if is_private { vec![asker] } else { people };
    let mut said = Vec::new();
    for (number, place) in places.iter().enumerate() {
        let word = format!("kumquat{number}");
        let message = world.seed(*place, ada, format!("order {word}"));
        let is_shown = *place == room || may_read(&world, &readers, room, *place);
        if !is_shown && !whole {
            world.seed_delete(*place, message);
        }
        said.push((word, is_shown));
    }
    let all: Vec<(Id, &str, bool)> = places
        .iter()
        .zip(&said)
        .map(|(place, (word, is_shown))| (*place, word.as_str(), *is_shown))
        .collect();
    crowd.seed(&mut world, &mut random, ada, &all, whole);
    let trigger = world.fresh_id();
    let source = places[random.below(places.len())].to_string();
    let arguments = [
        json!({"words": "order"}),
        json!({"words": "order", "order": "time"}),
        json!({"words": format!("kumquat{}", random.below(places.len()))}),
        json!({"author": "Ada"}),
        json!({"words": "order", "channel": source}),
        json!({"words": "order", "channel": "#talk"}),
    ];
    let arguments = arguments[random.below(arguments.len())].clone();
    let simulator = Simulator::without_sockets(world).unwrap();
    let state = state(&simulator, guild);
    state.hear(GuildId::new(guild.0), [(UserId::new(ada.0), "Ada")]);
    Layout {
        state,
        simulator: Arc::new(simulator),
        guild,
        room,
        asker,
        roles: roles.map(|role| RoleId::new(role.0)).to_vec(),
        is_private,
        arguments,
        trigger,
        said,
    }
}

/// Whether all of these who see the room may read a place, and its age is the room's.
fn may_read(world: &World, readers: &[Id], room: Id, place: Id) -> bool {
    let age = |id: Id| {
        let found = world.get_channel(id).unwrap();
        let judged = found.parent.filter(|_| found.kind.is_thread());
        world.get_channel(judged.unwrap_or(id)).unwrap().nsfw
    };
    everybody_reads(world, readers, room, place) && (age(room) || !age(place))
}

/// What the gateway tells of a server.
fn state(simulator: &Simulator, guild: Id) -> GuildState {
    let peek = |path: &str| -> Value {
        let (_, body) = simulator.peek(&format!("/guilds/{guild}{path}"));
        serde_json::from_slice(&body).unwrap()
    };
    let mut created = peek("");
    created["channels"] = peek("/channels");
    created["threads"] = peek("/threads/active")["threads"].clone();
    created["members"] = json!([peek(&format!("/members/{}", simulator.bot()))]);
    let state = GuildState::default();
    let us = simulator.bot().0;
    state.set_current_user(CurrentUser {
        user: UserId::new(us),
        name: "Clew".to_owned(),
        application: ApplicationId::new(us),
    });
    state.apply("GUILD_CREATE", &created.to_string());
    state
}

impl Layout {
    fn readers(&self, source: ChannelId) -> Readers {
        let room = ChannelId::new(self.room.0);
        let answer = AnswerPlace {
            asker: UserId::new(self.asker.0),
            roles: Some(&self.roles),
            channel: room,
            is_private: self.is_private,
        };
        let known = self.state.channel(source);
        match known {
            _ if source == room => Readers::Everybody,
            Some(source) => self.state.readers(&answer, &source),
            None => Readers::Nobody,
        }
    }
}

impl Directory for Layout {
    fn user(&self, id: UserId) -> Option<String> {
        self.state.user_name(GuildId::new(self.guild.0), id)
    }

    fn role(&self, _: RoleId) -> Option<String> {
        None
    }

    fn channel(&self, id: ChannelId) -> Option<String> {
        let is_open = self.readers(id) == Readers::Everybody;
        self.state.channel_name(id).filter(|_| is_open)
    }
}

/// What a search is made with in all layouts.
struct Bench {
    wire: Wire,
    rest: RestReader,
    memory: Memory,
    agents: Agents,
}

impl Bench {
    async fn new() -> Self {
        let wire = Wire::default();
        let transport = Arc::new(wire.clone());
        let (telemetry, _) = Telemetry::to_memory("mem.ctx", fixed_clock(START));
        Self {
            wire,
            rest: RestReader::through("token", None, transport.into()).unwrap(),
            memory: memory(Arc::default(), telemetry).await,
            agents: Agents::load(None, Some("Be helpful.".to_owned()), Instant::now()).await,
        }
    }

    /// What the tool gives as these pages in a layout, and what Discord was asked for it.
    async fn search(&self, layout: &Layout, pages: usize) -> (Vec<String>, Vec<String>) {
        self.wire.0.lock().unwrap().simulator = Some(Arc::clone(&layout.simulator));
        let live = Live::new(&self.rest);
        let (cache, opted_out) = (NegativeCache::default(), OptedOut::default());
        let reads = Reads::new(&live, &cache, &opted_out, &Limits::default());
        let (guild, asker) = (GuildId::new(layout.guild.0), UserId::new(layout.asker.0));
        let room = ChannelId::new(layout.room.0);
        let place = Place {
            scope: Scope::User(asker),
            agent: AgentName::default_agent(),
            guild: Some(guild),
            channel: room,
            asker,
            rolling_window: Duration::ZERO,
        };
        let ids = Ids {
            guild: Some(guild),
            channel: Some(room),
            user: Some(asker),
            message: None,
            turn: None,
        };
        let said = ExtractionInput {
            ids,
            place: place.clone(),
            asker: String::new(),
            words: String::new(),
            others: Vec::new(),
            message: None,
            asked: START,
            worded: START,
        };
        let us = Us {
            user: UserId::new(layout.simulator.bot().0),
            name: "Clew".to_owned(),
            roles: Vec::new(),
            proxies: Proxies::default(),
        };
        let (servers, turn) = (SearchedServers::default(), TurnSearches::default());
        let window = parking_lot::Mutex::new(Window::new(WindowLimits::default()));
        let agent = self.agents.named(&AgentName::default_agent()).unwrap();
        let asker = Asker {
            ids,
            place: &place,
            docs: &agent.docs,
            task: None,
            // Nothing is kept.
            owns_nothing: true,
            trigger: MessageId::new(layout.trigger.0),
            said: &said,
            seen: &BTreeSet::new(),
            us: &us,
            max_message_chars: 1_000,
            names: layout,
            readers: &|channel| layout.readers(channel),
            guild_state: &layout.state,
            reads: &reads,
            search: Some(DiscordSearch {
                rest: &self.rest,
                servers: &servers,
                turn: &turn,
                is_program: false,
            }),
            of_servers: None,
            window: &window,
            opt_outs: &Arc::<OptOuts>::default(),
            memory: &self.memory,
        };
        let offered = tools::offered(&agent, Search::Discord);
        let time = Duration::from_mins(1);
        let mut texts = Vec::new();
        for page in 1..=pages {
            let mut arguments = layout.arguments.clone();
            arguments["page"] = json!(page.to_string());
            let arguments = Arguments::parse(&arguments.to_string()).unwrap();
            let result = tools::call(&offered, &asker, "search_messages", &arguments, time);
            texts.push(result.await.text);
        }
        let asked = std::mem::take(&mut self.wire.0.lock().unwrap().asked);
        (texts, asked)
    }
}

/// So many layouts from this seed.
async fn fuzz(first: u64) {
    let bench = Bench::new().await;
    // Discord's limits take no time then.
    tokio::time::pause();
    let (mut told, mut kept, mut last) = (0, 0, 0);
    for seed in first..first + LAYOUTS {
        // Another five are hidden in any layout.
        let crowd = Crowd {
            shown: 40,
            hidden: 5,
        };
        let (crowd, pages) = if seed % CROWDED == 0 {
            (crowd, PAGES)
        } else {
            (Crowd::default(), 1)
        };
        let whole = layout(seed, true, crowd);
        let (texts, asked) = bench.search(&whole, pages).await;
        for (word, is_shown) in &whole.said {
            let is_told = texts.concat().contains(&format!("order {word}"));
            assert!(
                *is_shown || !is_told,
                "seed {seed}: {word} of {asked:?} in {texts:?}"
            );
            told += u64::from(is_told);
            kept += u64::from(!is_shown);
        }
        last += u64::from(pages == PAGES && texts[PAGES - 1].contains("order kumquat"));
        let without = bench.search(&layout(seed, false, crowd), pages).await;
        assert_eq!((texts, asked), without, "seed {seed}: {}", whole.arguments);
    }
    assert!(
        told > LAYOUTS / 4 && kept > LAYOUTS && last > LAYOUTS / CROWDED / 4,
        "{told} told, {kept} kept, {last} last pages"
    );
}

/// A page is filled although most of what Discord gives is hidden, at the cost of one request.
#[tokio::test]
async fn pages_have_no_gaps_where_much_is_hidden() {
    let bench = Bench::new().await;
    tokio::time::pause();
    let (mut full, mut costly) = (0, 0);
    for seed in 0..100 {
        let crowd = Crowd {
            shown: 20,
            hidden: 30,
        };
        let whole = bench.search(&layout(seed, true, crowd), 1).await;
        let without = bench.search(&layout(seed, false, crowd), 1).await;
        assert_eq!(whole.0, without.0, "seed {seed}");
        let (more, less) = (whole.1.len(), without.1.len());
        assert!(less <= more && more <= 2, "seed {seed}: {less} and {more}");
        full += usize::from(whole.0[0].contains("may have more"));
        costly += more - less;
    }
    assert!(full > 10 && costly > 0, "{full} full, {costly} more");
}

#[tokio::test]
async fn what_is_hidden_changes_nothing() {
    fuzz(0).await;
}

#[tokio::test]
async fn nor_does_it_in_other_layouts() {
    fuzz(LAYOUTS).await;
}
