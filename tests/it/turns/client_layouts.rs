//! Layouts of a server that a seed determines, and what Discord lets somebody read there.

use clew_simulator::{ChannelKind, Id, OverwriteOf, Permissions, World};

use super::leaks::{Random, change};

const NONE: Permissions = Permissions::NONE;
const READS: Permissions =
    Permissions(Permissions::VIEW_CHANNEL.0 | Permissions::READ_MESSAGE_HISTORY.0);
/// Channels besides the one that all read.
const HOMES: usize = 4;
/// Members who have programs: without a role, with either, with both, the owner.
pub(super) const PEOPLE: usize = 5;

/// A server.
pub(super) struct Layout {
    pub(super) seed: u64,
    pub(super) guild: Id,
    /// A channel that all read, where commands are called.
    pub(super) lobby: Id,
    pub(super) owner: Id,
    pub(super) people: Vec<Id>,
    pub(super) roles: [Id; 2],
    /// They write, and have no programs; the second may opt out.
    pub(super) authors: [Id; 2],
    pub(super) has_opted_out: bool,
    pub(super) spots: Vec<Spot>,
}

/// A channel or thread.
pub(super) struct Spot {
    pub(super) id: Id,
    /// Itself, or a thread's channel.
    pub(super) home: Id,
    /// No other has it.
    pub(super) name: String,
    pub(super) said: Vec<Said>,
}

/// A message.
pub(super) struct Said {
    pub(super) id: Id,
    /// No other has it.
    pub(super) word: String,
    pub(super) author: Id,
    pub(super) is_deleted: bool,
    /// What it said before it was edited.
    pub(super) earlier: Option<String>,
}

impl Layout {
    /// Adds a server to the world.
    pub(super) fn new(world: &mut World, seed: u64) -> Self {
        let mut random = Random(seed);
        let random = &mut random;
        let guild = world.guild(&format!("Works {seed}"));
        let owner = world.guilds().find(|one| one.id == guild).unwrap().owner;
        let roles = roles(world, guild, random);
        let mut people: Vec<Id> = (0..PEOPLE - 1)
            .map(|set| {
                let person = world.member(guild, "Somebody");
                for (_, role) in roles
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| set >> at & 1 == 1)
                {
                    world.give_role(guild, person, *role);
                }
                person
            })
            .collect();
        people.push(owner);
        let authors = ["Ada", "Cleo"].map(|name| world.member(guild, name));
        let lobby = world.channel(guild, ChannelKind::Text, "lobby");
        world.overwrite(lobby, OverwriteOf::Role(guild), Permissions::EVERYONE, NONE);
        let mut layout = Self {
            seed,
            guild,
            lobby,
            owner,
            people,
            roles,
            authors,
            has_opted_out: false,
            spots: Vec::new(),
        };
        let category = world.channel(guild, ChannelKind::Category, "category");
        layout.allow(world, category, random);
        for _ in 0..HOMES {
            layout.home(world, category, random);
        }
        layout
    }

    /// Something that no other channel, thread or message has.
    fn unique(&self, what: &str, number: usize) -> String {
        format!("{what}{:06}x{number:03}", self.seed)
    }

    /// Random overwrites for everybody, the roles, one member; mostly such that we may read.
    fn allow(&self, world: &mut World, channel: Id, random: &mut Random) {
        for of in [self.guild, self.roles[0], self.roles[1]] {
            let (allow, deny) = change(random);
            // Else most would be closed to most.
            let deny = if random.below(2) == 0 { NONE } else { deny };
            world.overwrite(channel, OverwriteOf::Role(of), allow, deny);
        }
        if random.below(3) == 0 {
            let (allow, deny) = change(random);
            let who = self.people[random.below(PEOPLE)];
            world.overwrite(channel, OverwriteOf::Member(who), allow, deny);
        }
        let ours = if random.below(12) == 0 { NONE } else { READS };
        let ours = ours | Permissions::CONNECT;
        world.overwrite(channel, OverwriteOf::Member(world.bot), ours, NONE);
    }

    /// A channel of any kind, perhaps in the category, perhaps age-restricted, with its threads.
    fn home(&mut self, world: &mut World, category: Id, random: &mut Random) {
        use ChannelKind::{
            Announcement, AnnouncementThread, Forum, Media, PrivateThread, PublicThread, Text,
            Voice,
        };
        let kind = [Text, Text, Announcement, Forum, Media, Voice][random.below(6)];
        let name = self.unique("room", self.spots.len());
        let home = world.channel(self.guild, kind, &name);
        self.allow(world, home, random);
        if random.below(2) == 0 {
            world.set_category(home, category);
        }
        if random.below(8) == 0 {
            world.restrict_age(home);
        }
        if kind == Voice && random.below(2) == 0 {
            let of = [self.guild, self.roles[0]][random.below(2)];
            let (allow, deny) = change(random);
            let deny = deny | Permissions::CONNECT;
            world.overwrite(home, OverwriteOf::Role(of), allow, deny);
        }
        self.spot(world, home, home, name, random);
        let kinds: &[ChannelKind] = match kind {
            Text => &[PublicThread, PrivateThread, PrivateThread],
            Announcement => &[AnnouncementThread],
            Forum | Media => &[PublicThread, PublicThread],
            _ => &[],
        };
        for kind in kinds {
            let name = self.unique("talk", self.spots.len());
            let opener = self.authors[random.below(2)];
            let thread = world.thread(home, *kind, &name, opener);
            for who in self.people.clone() {
                if random.below(4) == 0 {
                    world.join_thread(thread, who);
                }
            }
            if random.below(6) > 0 {
                world.join_thread(thread, world.bot);
            }
            self.spot(world, thread, home, name, random);
            world.set_archived(thread, random.below(3) == 0, random.below(4) == 0);
        }
    }

    fn spot(&mut self, world: &mut World, id: Id, home: Id, name: String, random: &mut Random) {
        let holds = world
            .get_channel(id)
            .is_some_and(|one| !one.kind.is_forum());
        let mut said = Vec::new();
        for number in 0..if holds { 1 + random.below(2) } else { 0 } {
            let word = self.unique("kumquat", self.spots.len() * 10 + number);
            let author = self.authors[random.below(2)];
            let mut text = format!("order {word}");
            if !self.spots.is_empty() && random.below(3) == 0 {
                let other = &self.spots[random.below(self.spots.len())];
                text += &format!(" as in <#{}>", other.id);
            }
            said.push(Said {
                id: world.seed(id, author, text),
                word,
                author,
                is_deleted: false,
                earlier: None,
            });
        }
        self.spots.push(Spot {
            id,
            home,
            name,
            said,
        });
    }

    /// Whether a message may be told to who may read there.
    pub(super) fn stands(&self, said: &Said) -> bool {
        let is_withheld = self.has_opted_out && said.author == self.authors[1];
        !said.is_deleted && !is_withheld
    }

    /// The spots that a list has for somebody: no private threads and no archived ones.
    pub(super) fn listed(&self, world: &World, who: Id) -> Vec<Id> {
        let is_listed = |spot: &&Spot| {
            let found = world.get_channel(spot.id).unwrap();
            let is_open = found.thread.as_ref().is_none_or(|thread| !thread.archived);
            is_open
                && found.kind != ChannelKind::PrivateThread
                && reads(world, who, spot)
                && world.sees(world.bot, spot.id)
        };
        let listed = self.spots.iter().filter(is_listed);
        listed.map(|spot| spot.id).collect()
    }
}

/// Whether somebody may read there by us: as Discord has it, but nothing age-restricted.
pub(super) fn reads(world: &World, who: Id, spot: &Spot) -> bool {
    let home = world.get_channel(spot.home).unwrap();
    let needed = if home.kind == ChannelKind::Voice {
        READS | Permissions::CONNECT
    } else {
        READS
    };
    !home.nsfw && world.sees(who, spot.id) && world.permissions(who, spot.id).contains(needed)
}

/// Two roles. Some servers show channels to the first alone; the second may be an administrator's,
/// or of who manages threads.
fn roles(world: &mut World, guild: Id, random: &mut Random) -> [Id; 2] {
    let mut first = NONE;
    if random.below(4) == 0 {
        let closed = Permissions::EVERYONE.without(Permissions::VIEW_CHANNEL);
        world.set_role_permissions(guild, guild, closed);
        first = Permissions::VIEW_CHANNEL;
    }
    let second = [
        NONE,
        NONE,
        Permissions::MANAGE_THREADS,
        Permissions::ADMINISTRATOR,
    ][random.below(4)];
    [("guest", first), ("moderator", second)].map(|(name, may)| world.role(guild, name, may))
}
