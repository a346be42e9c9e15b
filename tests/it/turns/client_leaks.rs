//! Over layouts of channels, threads and rights: what a member's program is told, its member may
//! read at that moment.

use clew_simulator::{ChannelKind, Id, OverwriteOf, Permissions, World};
use serde_json::{Value, json};

use super::leaks::{Random, change, channel, members};
use super::{Place, Seeds, place_with};
use crate::monitor::own_address;
use crate::support::client::Client;

/// Servers; in each so many calls, as many as one may get in a minute.
const SERVERS: u64 = 12;
const CALLS: usize = 60;

/// Where something is said, its word, and who is never told, whatever their roles are.
struct Source {
    place: Id,
    home: Id,
    message: Id,
    word: String,
    closed_to: Vec<Id>,
}

fn sources(
    world: &mut World,
    seeds: Seeds,
    random: &mut Random,
) -> (Vec<Source>, [Id; 2], Vec<Id>) {
    let (roles, people) = members(world, seeds);
    let mut sources = Vec::new();
    for _ in 0..3 {
        let home = channel(world, seeds, roles, random, "plans");
        let is_adult = random.below(4) == 0;
        if is_adult {
            world.restrict_age(home);
        }
        let open = world.thread(home, ChannelKind::PublicThread, "talk", seeds.ada);
        world.set_archived(open, random.below(2) == 0, false);
        let secret = world.thread(home, ChannelKind::PrivateThread, "secret", seeds.ada);
        world.join_thread(secret, world.bot);
        let inside = people[random.below(people.len())];
        world.join_thread(secret, inside);
        for (place, is_private) in [(home, false), (open, false), (secret, true)] {
            let word = format!("kumquat{}", sources.len());
            let message = world.seed(place, seeds.ada, format!("order {word}"));
            let is_out = |who: &&Id| is_adult || is_private && **who != inside;
            let closed_to = people.iter().filter(is_out).copied().collect();
            sources.push(Source {
                place,
                home,
                message,
                word,
                closed_to,
            });
        }
    }
    (sources, roles, people)
}

fn call(p: &Place, source: &Source, random: &mut Random) -> (&'static str, Value) {
    let (guild, place, message) = (p.guild, source.place, source.message);
    let link = format!("https://discord.com/channels/{guild}/{place}/{message}");
    let here = [place.to_string(), link.clone(), "#plans".to_owned()];
    let here = &here[random.below(here.len())];
    match random.below(7) {
        0 => ("list_channels", json!({})),
        1 | 2 => ("read_thread", json!({ "channel": here })),
        3 => ("search", json!({ "words": "order" })),
        4 => ("search", json!({ "words": "order", "channel": here })),
        5 => ("read_context", json!({ "channel": here })),
        _ => (
            "read_context",
            json!({ "channel": here, "question": format!("and {link}?") }),
        ),
    }
}

/// Calls in one server; returns how often something was told, and how often not.
async fn explored(seed: u64) -> (usize, usize) {
    let mut random = Random(seed);
    let (address, mut told, mut hidden) = (own_address(), 0, 0);
    let listen = address.to_string();
    let laid = |world: &mut World, seeds| sources(world, seeds, &mut random);
    let (p, (sources, roles, people)) = place_with(&[("MCP_LISTEN", &listen)], laid).await;
    let bot = p.start().await;
    let mut clients = Vec::new();
    for person in &people {
        clients.push(Client::new(address, &p.token(*person, "editor").await));
    }
    for number in 0..CALLS {
        let source = &sources[random.below(sources.len())];
        if random.below(4) == 0 {
            let of = [p.guild, roles[0], roles[1]][random.below(3)];
            let (allow, deny) = change(&mut random);
            p.stage
                .discord
                .overwrite(source.home, OverwriteOf::Role(of), allow, deny);
            p.seen().await;
        }
        // Each has its share of a minute.
        let who = number % people.len();
        let (tool, arguments) = call(&p, source, &mut random);
        let given = clients[who].call(tool, arguments.clone()).await;
        let given = given.unwrap_or_else(|why| why);
        for source in &sources {
            let may = p.stage.discord.world(|world| {
                let rights = world.permissions(people[who], source.home);
                let history = Permissions::READ_MESSAGE_HISTORY | Permissions::VIEW_CHANNEL;
                rights.contains(history) && !source.closed_to.contains(&people[who])
            });
            let is_told = given.contains(&source.word);
            assert!(may || !is_told, "seed {seed}: {tool} {arguments}: {given}");
            // Discord's search is asked 20 times a minute.
            let is_meant = tool != "search" && arguments["channel"] == source.place.to_string();
            assert!(
                !may || is_told || !is_meant,
                "seed {seed}: {tool} {arguments}: {given}"
            );
            told += usize::from(is_told);
            hidden += usize::from(!may);
        }
    }
    bot.stop().await;
    (told, hidden)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_told_what_its_member_may_read_and_nothing_else() {
    let (mut told, mut hidden) = (0, 0);
    for seed in 0..SERVERS {
        let (one_told, one_hidden) = explored(seed).await;
        told += one_told;
        hidden += one_hidden;
    }
    assert!(told > 100 && hidden > 100, "{told}, {hidden}");
}
