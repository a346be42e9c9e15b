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
    /// By Boris, or by Ada.
    is_boris: bool,
    is_deleted: bool,
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
            let is_boris = random.below(3) == 0;
            let author = if is_boris { seeds.boris } else { seeds.ada };
            let message = world.seed(place, author, format!("order {word}"));
            let is_out = |who: &&Id| is_adult || is_private && **who != inside;
            let closed_to = people.iter().filter(is_out).copied().collect();
            sources.push(Source {
                place,
                home,
                message,
                word,
                is_boris,
                is_deleted: false,
                closed_to,
            });
        }
    }
    (sources, roles, people)
}

/// A call about a source, perhaps with a link to another, or to an answer.
fn call(
    p: &Place,
    [source, other]: [&Source; 2],
    answer: Id,
    random: &mut Random,
) -> (&'static str, Value) {
    let place = source.place;
    let link = p.link(place, source.message);
    let linked = p.link(other.place, other.message);
    let here = [place.to_string(), link.clone(), "#plans".to_owned()];
    let here = &here[random.below(here.len())];
    match random.below(8) {
        0 => ("list_channels", json!({})),
        1 | 2 => ("read_thread", json!({ "channel": here })),
        3 => ("search", json!({ "words": "order" })),
        4 => ("search", json!({ "words": "order", "channel": here })),
        5 => ("read_context", json!({ "channel": here })),
        6 => ("why", json!({ "answer": p.link(p.channel, answer) })),
        _ => (
            "read_context",
            json!({ "channel": here, "question": format!("and {linked}?") }),
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
    p.lets_programs_read().await;
    let mut sources = sources;
    // An answer that may be made from two places.
    let linked = p.link(sources[0].place, sources[0].message);
    p.post(p.channel, p.ada, p.to_us(&format!("and {linked}?")));
    p.answer(p.channel, 1).await;
    let answer = p.stage.discord.answers(p.channel)[0].id;
    let mut is_out = false;
    let mut clients = Vec::new();
    for person in &people {
        clients.push(Client::new(address, &p.token(*person, "editor").await));
    }
    for number in 0..CALLS {
        let at = random.below(sources.len());
        match random.below(12) {
            0 if !sources[at].is_deleted => {
                sources[at].is_deleted = true;
                let source = &sources[at];
                p.stage.discord.delete(source.place, source.message);
                p.seen().await;
            }
            1 if !is_out && number > 20 => {
                is_out = true;
                p.opts_out(p.boris).await;
            }
            _ => {}
        }
        let source = &sources[at];
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
        let other = &sources[random.below(sources.len())];
        let (tool, arguments) = call(&p, [source, other], answer, &mut random);
        let given = clients[who].call(tool, arguments.clone()).await;
        let given = given.unwrap_or_else(|why| why);
        for source in &sources {
            let reads = p.stage.discord.world(|world| {
                let rights = world.permissions(people[who], source.home);
                let history = Permissions::READ_MESSAGE_HISTORY | Permissions::VIEW_CHANNEL;
                rights.contains(history) && !source.closed_to.contains(&people[who])
            });
            let is_gone = source.is_deleted || (is_out && source.is_boris);
            let may = reads && !is_gone;
            let is_named = tool == "why" && given.contains(&format!("/{}/", source.place));
            assert!(reads || !is_named, "seed {seed}: {given}");
            let is_told = given.contains(&source.word);
            assert!(may || !is_told, "seed {seed}: {tool} {arguments}: {given}");
            // Discord's search is asked 20 times a minute.
            let is_meant = tool != "search"
                && arguments["question"].is_null()
                && arguments["channel"] == source.place.to_string();
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
