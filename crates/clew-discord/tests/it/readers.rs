//! Who may read what comes from elsewhere, compared with how the simulator computes
//! permissions: over random layouts, whatever is let in can be read by every member who
//! can see the answer.

use clew_context::model::{Channel, ChannelId, ChannelKind, GuildId, Readers, RoleId, UserId};
use clew_discord::guild_state::{AnswerPlace, GuildState};
use clew_simulator::{ChannelKind as Kind, Id, OverwriteOf, Permissions, World};
use serde_json::{Value, json};

const ROLES: usize = 4;
const CHANNELS: usize = 5;
const THREADS: usize = 5;
const READ: Permissions = Permissions::READ_MESSAGE_HISTORY;
/// What roles and overwrites consist of.
const BITS: [Permissions; 4] = [
    Permissions::VIEW_CHANNEL,
    READ,
    Permissions::CONNECT,
    Permissions::MANAGE_THREADS,
];

/// Numbers that a seed determines (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn permissions(&mut self) -> Permissions {
        let bits = BITS.into_iter().filter(|_| self.one_in(2));
        bits.fold(Permissions::NONE, |all, bit| all | bit)
    }
}

/// A member, with roles.
#[derive(Clone)]
struct Person {
    id: Id,
    roles: Vec<Id>,
}

/// A server as the simulator has it and as the gateway told of it.
struct Layout {
    world: World,
    state: GuildState,
    guild: Id,
    people: Vec<Person>,
    /// Channels and threads of the server that are known or archived.
    places: Vec<Id>,
    /// What a link may lead to besides: another server's, a direct message, nothing.
    others: Vec<Id>,
}

impl Layout {
    fn new(random: &mut Random) -> Self {
        let mut world = World::new();
        let guild = world.guild("Guild");
        let everyone = if random.one_in(4) {
            random.permissions()
        } else {
            Permissions::VIEW_CHANNEL | READ | Permissions::CONNECT
        };
        world.set_role_permissions(guild, guild, everyone);
        let mut roles = vec![(guild, everyone)];
        for _ in 0..ROLES {
            let permissions = if random.one_in(12) {
                Permissions::ADMINISTRATOR
            } else {
                random.permissions()
            };
            roles.push((world.role(guild, "role", permissions), permissions));
        }
        let people = people(&mut world, guild, &roles);
        let channels = channels(&mut world, random, guild, &roles, &people);
        let threads = threads(&mut world, random, &channels, &people);
        let elsewhere = world.guild("Elsewhere");
        let asker = people[0].id;
        world.join(elsewhere, asker);
        let foreign = world.channel(elsewhere, Kind::Text, "open");
        let others = vec![foreign, world.direct(asker), world.fresh_id()];
        let state = GuildState::default();
        let places: Vec<Id> = channels.into_iter().chain(threads).collect();
        state.apply(
            "GUILD_CREATE",
            &created(&world, guild, &roles, &places).to_string(),
        );
        let open = [(elsewhere, Permissions::VIEW_CHANNEL | READ)];
        let other = created(&world, elsewhere, &open, &[foreign]);
        state.apply("GUILD_CREATE", &other.to_string());
        Self {
            world,
            state,
            guild,
            people,
            places,
            others,
        }
    }

    /// What a turn knows of a channel: from the gateway, or fetched.
    fn channel(&self, id: Id) -> Channel {
        let known = self.state.channel(ChannelId::new(id.0));
        known.unwrap_or_else(|| {
            let found = self.world.get_channel(id);
            let kind = found.map_or(Kind::Text, |one| one.kind);
            let parent = found.and_then(|one| one.parent);
            let guild = found.and_then(|one| one.guild);
            Channel {
                guild: guild.map(|guild| GuildId::new(guild.0)),
                parent: parent.map(|parent| ChannelId::new(parent.0)),
                ..Channel::new(ChannelId::new(id.0), ChannelKind::from_number(kind as u8))
            }
        })
    }

    /// Whether a channel is age-restricted, or the one of a thread.
    fn is_adult(&self, channel: Id) -> bool {
        let found = self.world.get_channel(channel).unwrap();
        let judged = found.parent.filter(|_| found.kind.is_thread());
        let judged = self.world.get_channel(judged.unwrap_or(channel));
        judged.is_some_and(|one| one.nsfw)
    }

    /// Whether the simulator lets somebody read a channel's history.
    fn reads(&self, user: Id, channel: Id) -> bool {
        let held = self.world.permissions(user, channel);
        let found = self.world.get_channel(channel);
        let judged = found.and_then(|one| one.parent.filter(|_| one.kind.is_thread()));
        let judged = self.world.get_channel(judged.unwrap_or(channel));
        let speaks = judged.is_some_and(|one| one.kind == Kind::Voice);
        let connect = if speaks {
            Permissions::CONNECT
        } else {
            Permissions::NONE
        };
        self.world.sees(user, channel) && held.contains(READ | connect)
    }
}

/// A member for each set of roles.
fn people(world: &mut World, guild: Id, roles: &[(Id, Permissions)]) -> Vec<Person> {
    let sets = 0..1_usize << ROLES;
    let people = sets.map(|set| {
        let id = world.member(guild, "somebody");
        let held = roles[1..].iter().enumerate();
        let held = held.filter(|(at, _)| (set >> at) & 1 == 1);
        let roles: Vec<Id> = held.map(|(_, (role, _))| *role).collect();
        for role in &roles {
            world.give_role(guild, id, *role);
        }
        Person { id, roles }
    });
    people.collect()
}

fn channels(
    world: &mut World,
    random: &mut Random,
    guild: Id,
    roles: &[(Id, Permissions)],
    people: &[Person],
) -> Vec<Id> {
    let kinds = [
        Kind::Text,
        Kind::Text,
        Kind::Announcement,
        Kind::Voice,
        Kind::Forum,
    ];
    let channels = (0..CHANNELS).map(|number| {
        // At least one can have threads.
        let kind = if number == 0 {
            Kind::Text
        } else {
            random.of(&kinds)
        };
        let channel = world.channel(guild, kind, "channel");
        if random.one_in(4) {
            world.restrict_age(channel);
        }
        for _ in 0..random.below(5) {
            let of = if random.one_in(4) {
                OverwriteOf::Member(people[random.below(people.len())].id)
            } else {
                OverwriteOf::Role(random.of(roles).0)
            };
            world.overwrite(channel, of, random.permissions(), random.permissions());
        }
        channel
    });
    channels.collect()
}

/// Threads, which a voice channel has none of.
fn threads(world: &mut World, random: &mut Random, channels: &[Id], people: &[Person]) -> Vec<Id> {
    let is_voice = |id: &&Id| {
        world
            .get_channel(**id)
            .is_some_and(|one| one.kind == Kind::Voice)
    };
    let parents: Vec<Id> = channels
        .iter()
        .filter(|id| !is_voice(id))
        .copied()
        .collect();
    let threads = (0..THREADS).map(|_| {
        let kind = random.of(&[
            Kind::PublicThread,
            Kind::PublicThread,
            Kind::AnnouncementThread,
            Kind::PrivateThread,
        ]);
        let owner = people[random.below(people.len())].id;
        let thread = world.thread(random.of(&parents), kind, "thread", owner);
        for _ in 0..random.below(4) {
            world.join_thread(thread, people[random.below(people.len())].id);
        }
        world.set_archived(thread, random.one_in(3), false);
        thread
    });
    threads.collect()
}

/// `GUILD_CREATE`, which tells of no archived thread.
fn created(world: &World, guild: Id, roles: &[(Id, Permissions)], places: &[Id]) -> Value {
    let roles = roles.iter().map(|(id, permissions)| {
        json!({"id": id.0.to_string(), "name": "role", "permissions": permissions.0.to_string()})
    });
    let known = places.iter().filter_map(|id| world.get_channel(*id));
    let object = |channel: &clew_simulator::Channel| {
        let overwrites = channel.overwrites.iter().map(|one| {
            let (id, kind) = match one.of {
                OverwriteOf::Role(role) => (role, 0),
                OverwriteOf::Member(user) => (user, 1),
            };
            json!({"id": id.0.to_string(), "type": kind,
                "allow": one.allow.0.to_string(), "deny": one.deny.0.to_string()})
        });
        json!({"id": channel.id.0.to_string(), "type": channel.kind as u8, "name": "channel",
            "parent_id": channel.parent.map(|parent| parent.0.to_string()),
            "nsfw": channel.nsfw, "permission_overwrites": overwrites.collect::<Vec<Value>>()})
    };
    let (threads, channels): (Vec<_>, Vec<_>) = known.partition(|one| one.kind.is_thread());
    let is_active =
        |one: &&clew_simulator::Channel| one.thread.as_ref().is_some_and(|thread| !thread.archived);
    let threads = threads.into_iter().filter(is_active).map(object);
    json!({"id": guild.0.to_string(), "name": "Guild",
        "roles": roles.collect::<Vec<Value>>(),
        "channels": channels.into_iter().map(object).collect::<Vec<Value>>(),
        "threads": threads.collect::<Vec<Value>>(), "members": []})
}

/// One question: who asks where, and what it leads to. Returns who may read it.
fn judged(layout: &Layout, random: &mut Random, why: &str) -> Readers {
    let place = random.of(&layout.places);
    let source = if random.one_in(10) {
        random.of(&layout.others)
    } else {
        random.of(&layout.places)
    };
    let asker = layout.people[random.below(layout.people.len())].clone();
    let roles: Vec<RoleId> = asker.roles.iter().map(|role| RoleId::new(role.0)).collect();
    let is_private = random.one_in(4);
    let answer = AnswerPlace {
        asker: UserId::new(asker.id.0),
        roles: (!random.one_in(10)).then_some(&roles),
        channel: ChannelId::new(place.0),
        is_private,
    };
    let readers = layout.state.readers(&answer, &layout.channel(source));
    if source == place {
        return readers;
    }
    if readers != Readers::Nobody {
        assert!(layout.reads(asker.id, source), "{why}: the asker");
        let guild = layout.world.get_channel(source).and_then(|one| one.guild);
        assert_eq!(guild, Some(layout.guild), "{why}: another server");
        let is_open = layout.is_adult(place) || !layout.is_adult(source);
        assert!(is_open, "{why}: age-restricted");
    }
    if readers == Readers::Everybody && !is_private {
        for person in &layout.people {
            let sees = layout.world.sees(person.id, place);
            let reads = layout.reads(person.id, source);
            assert!(
                !sees || reads,
                "{why}: {:?} of {place:?} and {source:?}",
                person.id
            );
        }
    }
    readers
}

/// So many layouts, a few questions each, from this seed.
fn fuzz(seed: u64, layouts: usize) {
    let mut counts = [0_usize; 3];
    for number in 0..layouts {
        let mut random = Random(seed.wrapping_add(number as u64));
        let layout = Layout::new(&mut random);
        for question in 0..8 {
            let why = format!("seed {seed}, layout {number}, question {question}");
            counts[judged(&layout, &mut random, &why) as usize] += 1;
        }
    }
    // Each outcome occurs: the test would see a judge that always says no.
    let all = layouts * 8;
    assert!(counts.iter().all(|count| *count > all / 50), "{counts:?}");
}

#[test]
fn whatever_is_let_in_every_reader_of_the_answer_may_read() {
    fuzz(11, 10_000);
}
