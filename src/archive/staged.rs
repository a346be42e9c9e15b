//! A scenario while its operations are being applied.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::carries;
use super::ops::{
    Op, ScenarioChannel, ScenarioGuild, ScenarioMessage, ScenarioReference, ScenarioThread,
    ScenarioUser,
};
use super::wire::mentioned_roles;
use clew_context::model::{
    Author, Channel, ChannelId, ChannelKind, GuildId, Mention, Message, MessageFlags, MessageId,
    Referenced, ThreadState, UnixMillis, UserId,
};

/// The recording after the operations so far.
#[derive(Default)]
pub(super) struct StagedScenario {
    /// Everyone, including the bot.
    pub(super) users: HashMap<UserId, ScenarioUser>,
    pub(super) bot: Option<UserId>,
    pub(super) channels: BTreeMap<ChannelId, Channel>,
    /// Channels that the bot cannot see.
    pub(super) hidden: BTreeSet<ChannelId>,
    /// Names of forum tags, by id.
    tags: HashMap<String, String>,
    /// By channel, then id.
    pub(super) messages: BTreeMap<(ChannelId, MessageId), Message>,
    deleted: BTreeSet<MessageId>,
}

impl StagedScenario {
    pub(super) fn new(
        bot: Option<ScenarioUser>,
        users: Vec<ScenarioUser>,
        guilds: Vec<ScenarioGuild>,
        dms: Vec<ScenarioChannel>,
    ) -> Self {
        let id = bot.as_ref().map(|bot| bot.id);
        let bot = bot.map(|bot| ScenarioUser { bot: true, ..bot });
        let users = users.into_iter().chain(bot);
        let mut stage = Self {
            users: users.map(|user| (user.id, user)).collect(),
            bot: id,
            ..Self::default()
        };
        for dm in dms {
            let kind = ChannelKind::Dm.number();
            stage.add_channel(ScenarioChannel { kind, ..dm }, None);
        }
        for guild in guilds {
            for channel in guild.channels {
                stage.add_channel(channel, Some(guild.id));
            }
            for thread in guild.threads {
                stage.add_thread(thread, Some(guild.id));
            }
        }
        stage
    }

    /// Applies one operation; the error says what is wrong with it.
    pub(super) fn apply(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Create { message } => self.create(*message)?,
            Op::Thread { thread, starter_id } => self.open_thread(thread, starter_id)?,
            Op::Edit {
                channel_id,
                id,
                content,
                ms,
            } => {
                let mentions = self.mentions_in(&content, None);
                let message = self.message(channel_id, id)?;
                message.edited = Some(ms.map_or(message.timestamp, UnixMillis));
                message.mentions = mentions.into();
                message.mention_roles = mentioned_roles(&content).into();
                message.content = content.into();
            }
            Op::Delete { channel_id, id } => {
                self.message(channel_id, id)?;
                self.messages.remove(&(channel_id, id));
                self.deleted.insert(id);
            }
            Op::Archive { channel_id, locked } => {
                let channel = self.channels.get_mut(&channel_id);
                let thread = channel.and_then(|channel| channel.thread.as_mut());
                let thread = thread.ok_or_else(|| format!("there is no thread {channel_id}"))?;
                (thread.archived, thread.locked) = (true, locked);
            }
            Op::React {} | Op::Typing {} => {}
        }
        Ok(())
    }

    /// The recording after the last operation.
    pub(super) fn finish(mut self) -> Self {
        for message in self.messages.values_mut() {
            let gone = message.reference.as_ref().and_then(|to| to.message);
            if carries(message.kind) && gone.is_some_and(|id| self.deleted.contains(&id)) {
                message.referenced = Referenced::Deleted;
            }
        }
        self
    }

    fn add_channel(&mut self, wire: ScenarioChannel, guild: Option<GuildId>) {
        for tag in wire.available_tags {
            self.tags.insert(tag.id, tag.name);
        }
        if wire.hidden {
            self.hidden.insert(wire.id);
        }
        let kind = ChannelKind::from_number(wire.kind);
        let channel = Channel {
            guild,
            name: if kind.is_direct() {
                String::new()
            } else {
                wire.name
            },
            parent: wire.parent_id,
            ..Channel::new(wire.id, kind)
        };
        self.channels.insert(wire.id, channel);
    }

    fn add_thread(&mut self, wire: ScenarioThread, guild: Option<GuildId>) {
        if self.hidden.contains(&wire.parent_id) {
            self.hidden.insert(wire.id);
        }
        let tags = wire.applied_tags.iter();
        let channel = Channel {
            guild,
            name: wire.name,
            parent: Some(wire.parent_id),
            tags: tags.filter_map(|id| self.tags.get(id).cloned()).collect(),
            thread: Some(ThreadState {
                applied_tags: Vec::new(),
                owner: wire.owner_id,
                archived: wire.archived,
                locked: wire.locked,
                message_count: None,
            }),
            ..Channel::new(wire.id, ChannelKind::from_number(wire.kind))
        };
        self.channels.insert(wire.id, channel);
    }

    fn open_thread(
        &mut self,
        wire: ScenarioThread,
        starter: Option<MessageId>,
    ) -> Result<(), String> {
        let (id, parent, owner) = (wire.id, wire.parent_id, wire.owner_id);
        let known = self.channels.get(&parent);
        let guild = known
            .ok_or_else(|| format!("there is no channel {parent}"))?
            .guild;
        self.add_thread(wire, guild);
        let Some(starter) = starter else {
            return Ok(());
        };
        let anchor = self.messages.get(&(parent, id.starter()));
        let author = anchor.map(|anchor| anchor.author.id).or(owner).or(self.bot);
        let author = author.ok_or("the thread has no owner")?;
        self.create(ScenarioMessage::starter(starter, id, parent, author))
    }

    fn create(&mut self, mut wire: ScenarioMessage) -> Result<(), String> {
        let unknown = || format!("there is no channel {} for messages", wire.channel_id);
        let channel = self.channels.get(&wire.channel_id);
        let channel = channel.filter(|channel| holds_messages(channel.kind));
        let guild = channel.ok_or_else(unknown)?.guild;
        let pinged = wire.reference.filter(|_| wire.ping);
        let extras = std::mem::take(&mut wire.extras).into_extras(Vec::new());
        let message = Message {
            id: wire.id,
            channel: wire.channel_id,
            guild,
            kind: wire.message_kind(),
            author: self.author(&wire, guild.is_some()),
            timestamp: wire.ms.map_or(wire.id.created(), UnixMillis),
            edited: wire.edited_ms.map(UnixMillis),
            flags: MessageFlags(wire.flags),
            reference: wire.reference.map(ScenarioReference::into_reference),
            referenced: Referenced::Absent,
            mentions: self
                .mentions_in(&wire.content, pinged.map(|to| (wire.channel_id, to)))
                .into(),
            mention_roles: mentioned_roles(&wire.content).into(),
            extras: (!extras.is_empty()).then(|| Box::new(extras)),
            withheld: false,
            content: wire.content.into(),
        };
        self.messages.insert((message.channel, message.id), message);
        Ok(())
    }

    fn message(&mut self, channel: ChannelId, id: MessageId) -> Result<&mut Message, String> {
        let message = self.messages.get_mut(&(channel, id));
        message.ok_or_else(|| format!("there is no message {id} in channel {channel}"))
    }

    fn author(&self, wire: &ScenarioMessage, in_guild: bool) -> Author {
        let user = self.users.get(&wire.author_id);
        let name = user.map_or_else(|| "unknown".to_owned(), |user| user.shown_name(in_guild));
        Author {
            id: wire.author_id,
            name: name.into(),
            bot: wire.webhook_id.is_some() || user.is_some_and(|user| user.bot),
            webhook: wire.webhook_id.is_some(),
            application: wire.application_id.filter(|_| wire.webhook_id.is_some()),
        }
    }

    /// The users mentioned in a text, and the one that a reply pings.
    fn mentions_in(
        &self,
        content: &str,
        pinged: Option<(ChannelId, ScenarioReference)>,
    ) -> Vec<Mention> {
        let named = content.split("<@").skip(1).filter_map(|rest| {
            let (id, _) = rest.split_once('>')?;
            id.strip_prefix('!').unwrap_or(id).parse().ok()
        });
        let pinged = pinged.and_then(|(channel, to)| {
            let key = (to.channel_id.unwrap_or(channel), to.message_id?);
            Some(self.messages.get(&key)?.author.id)
        });
        let mut mentions: Vec<Mention> = Vec::new();
        for id in named.chain(pinged) {
            let known = self.users.get(&id);
            let new = mentions.iter().all(|mention| mention.id != id);
            if let Some(user) = known.filter(|_| new) {
                let name = user.shown_name(true).into();
                mentions.push(Mention { id, name });
            }
        }
        mentions
    }
}

/// Whether a channel of this kind can hold messages at all.
const fn holds_messages(kind: ChannelKind) -> bool {
    !matches!(
        kind,
        ChannelKind::Category | ChannelKind::Forum | ChannelKind::Media
    )
}
