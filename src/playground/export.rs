//! An exported channel as a server of its own in the playground: its people, its channels and
//! threads, and its newest messages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::archive::{ArchiveError, ReadOptions, Recording};
use clew_context::model::{
    Attachment, Channel, ChannelId, ChannelKind, Embed, Message, MessageId, MessageKind,
};
use clew_simulator::{ChannelKind as Kind, Draft, File, Id, User, World};

/// The most messages that are opened, the newest of each channel.
pub(super) const MOST_MESSAGES: usize = 5_000;
/// The most channels; a scenario can have any number.
const MOST_CHANNELS: usize = 100;
/// The most people, of those who wrote or are named in what is opened.
const MOST_PEOPLE: usize = 5_000;
/// The longest name of a server, in characters, as on Discord.
const MOST_NAME_CHARS: usize = 100;

/// What was read of an export.
#[derive(Debug)]
pub(super) struct OpenedExport {
    name: String,
    people: Vec<User>,
    /// Channels first, then threads.
    channels: Vec<OpenedChannel>,
    /// How many older messages are not among them.
    pub(super) left_out: usize,
}

#[derive(Debug)]
struct OpenedChannel {
    channel: Channel,
    /// Oldest first.
    messages: Vec<Message>,
}

impl OpenedExport {
    /// Reads an export or a scenario. Blocking.
    pub(super) fn read(path: PathBuf) -> Result<Self, ArchiveError> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name: String = stem.chars().take(MOST_NAME_CHARS).collect();
        let recording = Recording::open(&[path], ReadOptions::default())?;
        let mut channels: Vec<Channel> = recording.channels().cloned().collect();
        channels.sort_by_key(|channel| (channel.kind.is_thread(), channel.id));
        channels.truncate(MOST_CHANNELS);
        let each = MOST_MESSAGES / channels.len().max(1);
        let mut left_out = 0;
        let channels = channels.into_iter().map(|channel| {
            let all = recording.messages(channel.id).size_hint().0;
            left_out += all.saturating_sub(each);
            let newest = MessageId::new(u64::MAX);
            let messages = recording.page_before(channel.id, newest, each)?;
            Ok(OpenedChannel { channel, messages })
        });
        let channels = channels.collect::<Result<Vec<_>, ArchiveError>>()?;
        let mut shown = BTreeSet::new();
        for message in channels.iter().flat_map(|opened| &opened.messages) {
            shown.insert(message.author.id);
            shown.extend(message.mentions.iter().map(|one| one.id));
        }
        let people = recording.participants();
        let people = people.filter(|one| !one.webhook && shown.contains(&one.id));
        let people = people.take(MOST_PEOPLE);
        let people = people.map(|one| User {
            id: Id(one.id.get()),
            name: one.name.to_string(),
            global_name: Some(one.name.to_string()),
            bot: one.bot,
        });
        Ok(Self {
            name,
            people: people.collect(),
            channels,
            left_out,
        })
    }

    /// Adds it to the world. Returns the new server, and the channel with the newest message.
    pub(super) fn put_into(self, world: &mut World) -> Option<(Id, Id)> {
        let newest = self.channels.iter();
        let newest = newest.max_by_key(|one| one.messages.last().map(|message| message.id))?;
        let newest = newest.channel.id;
        let guild = world.guild(&self.name);
        for person in self.people {
            if person.id != world.bot {
                let id = person.id;
                if world.get_user(id).is_none() {
                    world.add_user(person);
                }
                world.join(guild, id);
            }
        }
        let mut placed = BTreeMap::new();
        for opened in &self.channels {
            let id = place(world, guild, opened, &mut placed);
            placed.insert(opened.channel.id, id);
            for message in &opened.messages {
                // The first message of a post is there already; a thread's notice comes by itself.
                let is_there = world.message(id, Id(message.id.get())).is_some();
                if !is_there && message.kind != MessageKind::ThreadStarter {
                    world.seed(id, Id(message.author.id.get()), draft(message));
                }
            }
        }
        Some((guild, *placed.get(&newest)?))
    }
}

/// Adds the channel or thread, and returns its id in the world: a new one, but for threads
/// that hang on a message.
fn place(
    world: &mut World,
    guild: Id,
    opened: &OpenedChannel,
    placed: &mut BTreeMap<ChannelId, Id>,
) -> Id {
    let OpenedChannel { channel, messages } = opened;
    if !channel.kind.is_thread() {
        return world.channel(guild, kind(channel.kind), &channel.name);
    }
    let own = Id(channel.id.get());
    let first = messages.first().filter(|first| first.id.get() == own.0);
    let parent = channel.parent.unwrap_or(channel.id);
    let parent = *placed.entry(parent).or_insert_with(|| {
        let is_post = channel
            .parent_kind
            .map_or(first.is_some(), ChannelKind::is_forum);
        let kind = if is_post { Kind::Forum } else { Kind::Text };
        let name = channel.parent_name.as_deref().unwrap_or("opened");
        world.channel(guild, kind, name)
    });
    let owner = channel.thread.as_ref().and_then(|thread| thread.owner);
    let owner = owner.or(messages.first().map(|first| first.author.id));
    let owner = owner.map_or(world.bot, |owner| Id(owner.get()));
    let is_forum = world
        .get_channel(parent)
        .is_some_and(|one| one.kind.is_forum());
    let is_free = world.get_channel(own).is_none();
    match first {
        Some(first) if is_forum && is_free => {
            let author = Id(first.author.id.get());
            world.forum_post(parent, author, &channel.name, &[], draft(first))
        }
        _ if !is_forum && is_free && world.message(parent, own).is_some() => {
            world.thread_from(parent, own, &channel.name, owner)
        }
        _ => world.thread(parent, Kind::PublicThread, &channel.name, owner),
    }
}

/// A channel's kind; what has none here, as direct messages of others, becomes a text channel.
const fn kind(kind: ChannelKind) -> Kind {
    if kind.is_forum() {
        Kind::Forum
    } else {
        Kind::Text
    }
}

/// A message with its own id. Files come without their contents: exports have none.
fn draft(message: &Message) -> Draft {
    let mut draft = Draft::new(&*message.content).id(message.id.get());
    if let Some(to) = message.replies_to() {
        draft = draft.reply_to(Id(to.get()));
    } else if let Ok(kind @ 1..) = u8::try_from(message.kind.number()) {
        draft = draft.kind(kind);
    }
    if let Some(edited) = message.edited {
        draft = draft.edited_ms(edited.0);
    }
    if message.author.webhook {
        draft = draft.webhook(&message.author.name);
    }
    let Some(extras) = message.extras.as_deref() else {
        return draft;
    };
    draft.embeds = extras.embeds.iter().map(embed).collect();
    draft.attachments = extras.attachments.iter().map(file).collect();
    draft.stickers = extras.stickers.iter().map(ToString::to_string).collect();
    draft
}

fn embed(embed: &Embed) -> Value {
    let fields = embed.fields.iter();
    let fields = fields.map(|field| json!({"name": field.name, "value": field.value}));
    let named = |name: &Option<Box<str>>| name.as_ref().map(|name| json!({"name": name}));
    json!({
        "title": embed.title, "description": embed.description, "url": embed.url,
        "provider": named(&embed.provider), "author": named(&embed.author),
        "fields": fields.collect::<Vec<_>>(),
        "footer": embed.footer.as_ref().map(|text| json!({"text": text})),
    })
}

fn file(file: &Attachment) -> File {
    let kind = file
        .content_type
        .as_deref()
        .unwrap_or("application/octet-stream");
    File {
        name: file.filename.to_string(),
        content_type: kind.to_owned(),
        bytes: Vec::new(),
        description: file.description.as_ref().map(ToString::to_string),
    }
}
