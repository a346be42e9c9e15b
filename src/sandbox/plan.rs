//! Worlds that a file describes: servers, their people and channels, and what was said
//! there. Every run is the same, except that its time is now.

use std::borrow::Cow;
use std::collections::BTreeMap;

use clew_simulator::{ChannelKind, Draft, File, Id, Permissions, User, World};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What the bot is called.
const BOT: &str = "Clew";

/// A world before it is built.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldPlan {
    guilds: Vec<GuildPlan>,
    /// Channels, made in this order.
    pub channels: Vec<ChannelPlan>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GuildPlan {
    name: String,
    owner: Option<PersonPlan>,
    #[serde(default)]
    people: Vec<PersonPlan>,
    /// People of earlier servers who are here as well.
    #[serde(default)]
    joined: Vec<String>,
    #[serde(default)]
    roles: Vec<RolePlan>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PersonPlan {
    name: String,
    display: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RolePlan {
    name: String,
    people: Vec<String>,
}

/// A channel, and what was said there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelPlan {
    /// Of a direct conversation the person's.
    pub name: String,
    /// The first server unless named.
    guild: Option<String>,
    #[serde(default)]
    kind: Kind,
    topic: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    /// What was said, oldest first.
    #[serde(default)]
    pub talks: Vec<Talk>,
    /// Threads; one that is no forum's hangs on the channel's last message.
    #[serde(default)]
    pub threads: Vec<ThreadPlan>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Text,
    Forum,
    Direct,
}

/// A thread or a forum's post.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadPlan {
    title: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    is_archived: bool,
    /// What was said, oldest first; a post is a talk of its own.
    pub talks: Vec<Talk>,
}

/// People talking at a steady pace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Talk {
    /// When it began; it goes on after the talk before it unless this is set.
    ago_min: Option<i64>,
    /// From one message to the next; as in the talk before it unless this is set.
    every_s: Option<i64>,
    pub said: Vec<Said>,
}

/// A message: as a rule `Ada: what she said`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Said {
    /// By a person.
    Plain(String),
    /// With more than words.
    Full(Box<Message>),
}

/// A message with more than words.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Message {
    /// With a person's name before it, unless a webhook posted it.
    text: String,
    /// What others call it.
    key: Option<String>,
    /// Whether it replies to the message before it that is in the line of replies, too.
    in_line: bool,
    webhook: Option<String>,
    application: Option<u64>,
    is_pinned: bool,
    embed: Option<Value>,
    /// Name and text.
    file: Option<(String, String)>,
}

/// What the parts of a world are called. A name that it does not have is a mistake in a
/// file of the program, and a panic.
#[derive(Debug, Default)]
pub struct Cast {
    people: BTreeMap<String, Id>,
    /// Channels by name, threads by title.
    places: BTreeMap<String, Id>,
    /// Server, channel and id.
    messages: BTreeMap<String, (Id, Id, Id)>,
}

impl Cast {
    pub fn person(&self, name: &str) -> Id {
        self.people[name]
    }

    /// The id of a channel or thread.
    pub fn place(&self, name: &str) -> Id {
        self.places[name]
    }

    pub fn message(&self, key: &str) -> Id {
        self.messages[key].2
    }

    /// `Ada: what she said`: who, and what.
    pub fn said<'a>(&self, text: &'a str) -> (Id, &'a str) {
        let (who, words) = text.split_once(": ").unwrap_or(("", text));
        (self.person(who), words)
    }

    /// A text with ids for what it names: `{bot}`, `{#gate}`, `{link KEY}`.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.replace("{bot}", &format!("<@{}>", self.person(BOT)));
        for (name, id) in &self.places {
            text = text.replace(&format!("{{#{name}}}"), &format!("<#{id}>"));
        }
        for (key, (guild, channel, id)) in &self.messages {
            let link = format!("https://discord.com/channels/{guild}/{channel}/{id}");
            text = text.replace(&format!("{{link {key}}}"), &link);
        }
        text
    }
}

/// What a file of the program holds.
///
/// # Panics
/// If it is not what is read: each file is part of the program.
#[expect(clippy::expect_used, reason = "the tests read every such file")]
pub fn read<T: DeserializeOwned>(file: &str) -> T {
    serde_json::from_str(file).expect("a file of the program is what its reader takes it for")
}

impl WorldPlan {
    pub fn build(&self) -> (World, Cast) {
        let world = World::new();
        let mut cast = Cast::default();
        cast.people.insert(BOT.to_owned(), world.bot);
        let mut building = Building {
            world,
            cast,
            guilds: BTreeMap::new(),
        };
        for guild in &self.guilds {
            building.guild(guild);
        }
        for channel in &self.channels {
            let guild = channel.guild.as_ref().unwrap_or(&self.guilds[0].name);
            building.channel(building.guilds[guild], channel);
        }
        (building.world, building.cast)
    }
}

struct Building {
    world: World,
    cast: Cast,
    guilds: BTreeMap<String, Id>,
}

/// A place in which people talk.
struct Room {
    guild: Id,
    channel: Id,
    next_ms: i64,
    every_ms: i64,
    webhook: Option<Id>,
    /// The newest message of the line of replies.
    line: Option<Id>,
    /// The newest message, and who wrote it.
    newest: Option<(Id, Id)>,
}

impl Building {
    fn guild(&mut self, plan: &GuildPlan) {
        let guild = self.world.guild(&plan.name);
        self.guilds.insert(plan.name.clone(), guild);
        let made = self.world.guilds().find(|one| one.id == guild);
        let owner = made.map(|one| one.owner).zip(plan.owner.as_ref());
        if let Some((id, owner)) = owner {
            self.person(id, owner);
        }
        for person in &plan.people {
            let id = self.world.member(guild, &person.name);
            self.person(id, person);
        }
        for name in &plan.joined {
            self.world.join(guild, self.cast.person(name));
        }
        for RolePlan { name, people } in &plan.roles {
            let role = self.world.role(guild, name, Permissions::NONE);
            for person in people {
                let person = self.cast.person(person);
                self.world.give_role(guild, person, role);
            }
        }
    }

    fn person(&mut self, id: Id, plan: &PersonPlan) {
        self.world.add_user(User {
            id,
            name: plan.name.clone(),
            global_name: plan.display.clone(),
            bot: false,
        });
        let shown = plan.display.as_ref().unwrap_or(&plan.name);
        self.cast.people.insert(shown.clone(), id);
    }

    fn channel(&mut self, guild: Id, plan: &ChannelPlan) {
        let name = &plan.name;
        let channel = match plan.kind {
            Kind::Text => self.world.channel(guild, ChannelKind::Text, name),
            Kind::Forum => self.world.channel(guild, ChannelKind::Forum, name),
            Kind::Direct => self.world.direct(self.cast.person(name)),
        };
        if let Some(topic) = &plan.topic {
            self.world.set_topic(channel, topic);
        }
        let tags = plan.tags.iter();
        let tags: BTreeMap<&String, Id> = tags
            .map(|tag| (tag, self.world.tag(channel, tag)))
            .collect();
        let mut place = Room {
            guild,
            channel,
            next_ms: 0,
            every_ms: 0,
            webhook: None,
            line: None,
            newest: None,
        };
        self.talks(&mut place, name, &plan.talks);
        for thread in &plan.threads {
            let tags: Vec<Id> = thread.tags.iter().map(|tag| tags[tag]).collect();
            self.thread(&mut place, &tags, thread);
        }
    }

    fn thread(&mut self, parent: &mut Room, tags: &[Id], plan: &ThreadPlan) {
        let (title, talks) = (&plan.title, &plan.talks[..]);
        let (thread, talks) = match (parent.newest, talks) {
            (None, [Talk { said, .. }, rest @ ..]) if let [post] = &said[..] => {
                parent.begin(&self.world, &talks[0]);
                let (author, draft) = self.draft(parent, &post.message());
                let forum = parent.channel;
                let post = self.world.forum_post(forum, author, title, tags, draft);
                (post, rest)
            }
            (Some((message, author)), talks) => {
                let channel = parent.channel;
                let thread = self.world.thread_from(channel, message, title, author);
                (thread, talks)
            }
            (None, _) => return,
        };
        let mut place = Room {
            channel: thread,
            webhook: None,
            line: None,
            newest: None,
            ..*parent
        };
        self.talks(&mut place, title, talks);
        if plan.is_archived {
            self.world.set_archived(thread, true, false);
        }
    }

    fn talks(&mut self, place: &mut Room, name: &str, talks: &[Talk]) {
        self.cast.places.insert(name.to_owned(), place.channel);
        for talk in talks {
            place.begin(&self.world, talk);
            for said in &talk.said {
                let message = said.message();
                let (author, draft) = self.draft(place, &message);
                let id = self.world.seed(place.channel, author, draft);
                place.newest = Some((id, author));
                if message.in_line {
                    place.line = Some(id);
                }
                if let Some(key) = &message.key {
                    let found = (place.guild, place.channel, id);
                    self.cast.messages.insert(key.clone(), found);
                }
            }
        }
    }

    /// The next message, and who writes it.
    fn draft(&mut self, place: &mut Room, message: &Message) -> (Id, Draft) {
        let (author, mut draft) = if let Some(name) = &message.webhook {
            let webhook = *place.webhook.get_or_insert_with(|| self.world.fresh_id());
            (webhook, Draft::new(message.text.as_str()).webhook(name))
        } else {
            let (author, words) = self.cast.said(&message.text);
            (author, Draft::new(words))
        };
        draft.pinned = message.is_pinned;
        if let Some(application) = message.application {
            draft = draft.application(application);
        }
        if let Some(embed) = &message.embed {
            draft = draft.embed(embed.clone());
        }
        if let Some((name, text)) = &message.file {
            draft = draft.attachment(File::text(name, text));
        }
        if let Some(before) = place.line.filter(|_| message.in_line) {
            draft = draft.reply_to(before);
        }
        let at_ms = place.next_ms;
        place.next_ms += place.every_ms;
        (author, draft.at_ms(at_ms))
    }
}

impl Room {
    fn begin(&mut self, world: &World, talk: &Talk) {
        if let Some(ago) = talk.ago_min {
            self.next_ms = world.now_ms() - ago * 60_000;
        }
        if let Some(every) = talk.every_s {
            self.every_ms = every * 1_000;
        }
    }
}

impl Said {
    fn message(&self) -> Cow<'_, Message> {
        match self {
            Self::Full(message) => Cow::Borrowed(message),
            Self::Plain(text) => Cow::Owned(Message {
                text: text.clone(),
                ..Message::default()
            }),
        }
    }
}
