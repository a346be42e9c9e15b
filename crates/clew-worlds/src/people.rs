//! What people do in a world.

mod wording;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use clew_simulator::{ChannelKind, Draft, Id, OverwriteOf, Permissions};
use serde_json::Value;

use self::wording::{mark_of, wording, words};
use crate::history::{Mark, MarkOf, Said, What};
use crate::place::{Guild, Places};
use crate::plan::{APP_ID, Command, PersonAct, Right};
use crate::world::World;

/// How far back people look for a message to reply to, to edit or to delete.
const IN_SIGHT: u64 = 25;

/// The people of a world, and what they have said.
pub(crate) struct People {
    world: Arc<World>,
    places: Places,
    /// What can still be seen, oldest first.
    said: Vec<Said>,
    /// Direct channels by person.
    direct: Vec<(Id, Id)>,
    /// When messages were edited, in Unix milliseconds.
    written: BTreeMap<Id, i64>,
    /// What an app is still to post.
    for_app: VecDeque<Id>,
    /// Its webhooks by channel.
    webhooks: Vec<(Id, Id)>,
    /// What was pinned, by channel.
    pinned: Vec<(Id, Id)>,
    /// Servers in an outage.
    outages: BTreeSet<Id>,
    numbers: u32,
}

impl People {
    pub(crate) fn new(world: Arc<World>, places: Places) -> Self {
        Self {
            world,
            places,
            said: Vec::new(),
            direct: Vec::new(),
            written: BTreeMap::new(),
            for_app: VecDeque::new(),
            webhooks: Vec::new(),
            pinned: Vec::new(),
            outages: BTreeSet::new(),
            numbers: 0,
        }
    }

    /// Somebody does something; nothing happens where it is not possible.
    pub(crate) fn act(&mut self, act: PersonAct) {
        // What is not possible is not done.
        let _ = self.try_act(act);
    }

    fn try_act(&mut self, act: PersonAct) -> Option<()> {
        match act {
            PersonAct::Says { who, place } => {
                let (who, place) = (self.person(who)?, self.channel(place)?);
                self.say(who, place, MarkOf::Words, None)
            }
            PersonAct::Asks { who, place } => {
                let (who, place) = (self.person(who)?, self.channel(place)?);
                self.say(who, place, MarkOf::Question, None)
            }
            PersonAct::AsksDirectly { who } => {
                let who = self.person(who)?;
                let channel = self.direct(who);
                self.say(who, channel, MarkOf::Question, None)
            }
            PersonAct::Replies { who, to } => {
                let (message, channel) = self.post_of_bot(to)?;
                let who = self.person(who)?;
                self.say(who, channel, MarkOf::Question, Some(message))
            }
            PersonAct::AsksAbout { who, to } => {
                let about = self.seen(to)?.clone();
                let who = self.person(who)?;
                self.say(who, about.channel, MarkOf::Question, Some(about.message))
            }
            PersonAct::AsksWithLink { who, to, place } => {
                let about = self.seen(to)?.clone();
                let (who, channel) = (self.person(who)?, self.channel(place)?);
                let is_there = |(_, of): &(&Guild, Id)| *of == about.channel;
                let guild = self.places.channels().find(is_there)?.0.id;
                let link = format!(
                    " https://discord.com/channels/{guild}/{}/{}",
                    about.channel, about.message
                );
                self.say_with(who, channel, MarkOf::Question, None, &link)
            }
            PersonAct::WritesForApp { who, place, asks } => {
                let (who, place) = (self.person(who)?, self.channel(place)?);
                let of = if asks {
                    MarkOf::Question
                } else {
                    MarkOf::Words
                };
                self.say(who, place, of, None)?;
                self.for_app
                    .extend(self.said.last().map(|said| said.message));
                Some(())
            }
            PersonAct::AppPosts { is_late } => self.post_for(is_late),
            PersonAct::Edits { which } => self.edit(which),
            PersonAct::Deletes { which } => {
                let said = self.seen_at(which).map(|at| self.said.remove(at))?;
                self.delete(said.channel, vec![said.message]);
                Some(())
            }
            PersonAct::DeletesMany { place, count } => self.delete_many(place, count),
            PersonAct::Pins { which } => self.pin(which),
            PersonAct::Unpins { which } => self.unpin(which),
            PersonAct::Uses {
                who,
                place,
                command,
            } => self.call(who, place, command),
            PersonAct::Presses { who, on, which } => self.press(who, on, which),
            PersonAct::StartsThread { who, place } => self.start_thread(who, place),
            PersonAct::ArchivesThread { place } => self.archive(place),
            PersonAct::DeletesThread { place } => self.delete_thread(place),
            PersonAct::LosesRole { who } => self.set_role(who, false),
            PersonAct::GetsRole { who } => self.set_role(who, true),
            PersonAct::HidesChannel { place } => self.show(place, false),
            PersonAct::ShowsChannel { place } => self.show(place, true),
            PersonAct::BarsBot { place, right } => self.bar(place, of_right(right)),
            PersonAct::AllowsBot { place } => self.bar(place, Permissions::NONE),
            PersonAct::Outage { place, is_on } => self.set_outage(place, is_on),
        }
    }

    fn say(&mut self, who: Id, channel: Id, of: MarkOf, reply: Option<Id>) -> Option<()> {
        self.say_with(who, channel, of, reply, "")
    }

    /// Says something that ends with this.
    fn say_with(
        &mut self,
        who: Id,
        channel: Id,
        of: MarkOf,
        reply: Option<Id>,
        end: &str,
    ) -> Option<()> {
        let discord = &self.world.discord;
        let bot = discord.bot();
        if !discord.world(|world| world.sees(who, channel)) {
            return None;
        }
        let mark = self.mark(of);
        let text = words(mark, bot) + end;
        let mut draft = Draft::new(text);
        if let Some(message) = reply {
            draft = draft.reply_to(message);
        }
        let message = self.world.discord.post(channel, who, draft);
        let said = Said {
            message,
            channel,
            in_channel_of: self.places.guild_of_channel(channel),
            is_direct: self.places.channels().all(|(_, of)| of != channel),
            author: who,
            in_place_of: None,
            mark,
            replies_to: reply,
        };
        self.world.note(What::Said(said.clone()));
        self.said.push(said);
        Some(())
    }

    /// An app posts somebody's message in its place.
    fn post_for(&mut self, is_late: bool) -> Option<()> {
        let original = self.for_app.pop_front()?;
        let at = self.said.iter().position(|said| said.message == original)?;
        let Said { channel, mark, .. } = self.said[at];
        let webhook = self.webhook(channel);
        let discord = &self.world.discord;
        let application = APP_ID.parse().map(Id).ok()?;
        let draft = Draft::new(words(mark, discord.bot()))
            .webhook("Luna")
            .application(application);
        if !is_late {
            discord.delete(channel, original);
        }
        let message = discord.post(channel, webhook, draft);
        if is_late {
            discord.delete(channel, original);
        }
        let said = &mut self.said[at];
        said.message = message;
        said.author = webhook;
        said.in_place_of = Some(original);
        self.world.note(What::Said(said.clone()));
        Some(())
    }

    fn webhook(&mut self, channel: Id) -> Id {
        if let Some((_, webhook)) = self.webhooks.iter().find(|(of, _)| *of == channel) {
            return *webhook;
        }
        let webhook = self.world.discord.world(clew_simulator::World::fresh_id);
        self.webhooks.push((channel, webhook));
        webhook
    }

    fn edit(&mut self, which: u64) -> Option<()> {
        let at = self.seen_at(which)?;
        let now = self.world.clock.now_ms();
        let written = &mut self.written;
        let last = written.insert(self.said[at].message, now);
        // Nobody edits twice, or what is just written, within the millisecond.
        if last.unwrap_or(self.said[at].message.unix_ms()) >= now {
            return None;
        }
        let was = self.said[at].mark;
        let is = self.mark(was.of);
        let bot = self.world.discord.bot();
        let said = &mut self.said[at];
        said.mark = is;
        let text = match is.of {
            MarkOf::Question => format!("<@{bot}> {is} what about it, to be exact"),
            _ => format!("{is} is what I meant"),
        };
        let (channel, message) = (said.channel, said.message);
        self.world.discord.edit(channel, message, &text);
        self.world.note(What::Edited { message, was, is });
        Some(())
    }

    fn pin(&mut self, which: u64) -> Option<()> {
        let said = self.seen(which).filter(|said| !said.is_direct)?;
        let (channel, message) = (said.channel, said.message);
        let by = self.person(which)?;
        self.world.discord.pin(channel, message, by);
        self.pinned.push((channel, message));
        Some(())
    }

    fn unpin(&mut self, which: u64) -> Option<()> {
        let at = index(self.pinned.len(), which)?;
        let (channel, message) = self.pinned.remove(at);
        self.world.discord.unpin(channel, message);
        Some(())
    }

    fn delete_many(&mut self, place: u64, count: u64) -> Option<()> {
        let channel = self.channel(place)?;
        let here = self
            .said
            .iter()
            .rev()
            .filter(|said| said.channel == channel);
        let count = usize::try_from(count).ok()?;
        let messages: Vec<Id> = here.take(count).map(|said| said.message).collect();
        if messages.len() < 2 {
            return None;
        }
        self.said.retain(|said| !messages.contains(&said.message));
        self.delete(channel, messages);
        Some(())
    }

    fn delete(&self, channel: Id, messages: Vec<Id>) {
        match messages[..] {
            [one] => drop(self.world.discord.delete(channel, one)),
            _ => self.world.discord.bulk_delete(channel, &messages),
        }
        self.world.note(What::Deleted { messages });
    }

    fn start_thread(&mut self, who: u64, place: u64) -> Option<()> {
        let who = self.person(who)?;
        let at = self.guild_at(place)?;
        let guild = self.places.guilds.get_mut(at)?;
        let general = *guild.channels.first()?;
        let kind = ChannelKind::PublicThread;
        let thread = self.world.discord.thread(general, kind, "aside", who);
        guild.channels.insert(1, thread);
        let guild = self.places.guilds.get(at)?;
        self.note_who_sees(guild, false);
        self.note_what_bot_may(guild.id);
        Some(())
    }

    fn archive(&self, place: u64) -> Option<()> {
        let (_, thread) = self.thread(place)?;
        self.world.discord.set_archived(thread, true, false);
        self.world.note(What::Archived { thread });
        Some(())
    }

    fn delete_thread(&mut self, place: u64) -> Option<()> {
        let (at, thread) = self.thread(place)?;
        let guild = self.places.guilds.get_mut(at)?;
        guild.channels.retain(|channel| *channel != thread);
        let messages = self.said.extract_if(.., |said| said.channel == thread);
        let messages = messages.map(|said| said.message).collect();
        self.world.discord.delete_channel(thread);
        self.world.note(What::Deleted { messages });
        Some(())
    }

    /// Uses a command, in the background, and presses a button of its answer.
    fn call(&mut self, who: u64, place: u64, command: Command) -> Option<()> {
        let user = self.user_of(who, command)?;
        let guild = self.guild(who)?;
        let (guild, first) = (guild.id, guild.channels.first().copied()?);
        let here = self.channel_of(who, place);
        let sees = |channel: &Id| self.world.discord.world(|world| world.sees(user, *channel));
        let channel = here.filter(sees).unwrap_or(first);
        // Nobody is there to answer.
        tokio::runtime::Handle::try_current().ok()?;
        let mark = mark_of(command).map(|of| self.mark(of));
        let world = Arc::clone(&self.world);
        tokio::spawn(async move {
            let discord = &world.discord;
            let (name, options, button) = wording(command, mark);
            let Ok(called) = discord.call(user, channel, name, options).await else {
                return;
            };
            let interaction = called.id;
            world.note(What::Called {
                interaction,
                user,
                guild,
                command,
                mark,
            });
            let Ok(mut shown) = called.answer().await else {
                return;
            };
            if let Some(button) = button
                && shown.buttons().iter().any(|(label, _)| label == button)
            {
                let pressed = discord.press(user, shown.message, button);
                let Ok(after) = pressed.answer().await else {
                    return;
                };
                shown = after;
            }
            let text = shown.text();
            world.note(What::CallAnswered { interaction, text });
            if matches!(command, Command::Erase | Command::OptOut) {
                // A file may go meanwhile; another look follows.
                let _ = world.look_at_disk();
            }
        });
        Some(())
    }

    /// Presses a button that is there, mostly of an answer to oneself.
    fn press(&self, who: u64, on: u64, which: u64) -> Option<()> {
        let (message, channel) = self.post_of_bot(on)?;
        let discord = &self.world.discord;
        let posts = discord.messages(channel);
        let post = posts.iter().find(|post| post.id == message)?;
        let asked = post.reference.as_ref().and_then(|to| to.message);
        let asker = self.said.iter().find(|said| Some(said.message) == asked);
        let asker = asker
            .map(|said| said.author)
            .filter(|_| !who.is_multiple_of(4));
        let user = asker.or_else(|| self.person(who))?;
        let rows = post.components.iter();
        let buttons = rows.filter_map(|row| row["components"].as_array());
        let buttons: Vec<&Value> = buttons.flatten().collect();
        let button = buttons.get(index(buttons.len(), which)?)?;
        let id = button["custom_id"].as_str()?;
        discord.press_id(user, message, id).ok()?;
        let label = button["label"].as_str()?.to_owned();
        self.world.note(What::Pressed {
            user,
            message,
            label,
        });
        Some(())
    }

    /// Who uses it: settings are for those who manage the server.
    fn user_of(&self, who: u64, command: Command) -> Option<Id> {
        match command {
            Command::SetLone(_) | Command::SetLearning(_) | Command::SetButtons => {
                self.places.people.first().copied()
            }
            _ => self.person(who),
        }
    }

    fn set_role(&self, who: u64, given: bool) -> Option<()> {
        let user = self.person(who)?;
        let guild = self.guild(who)?;
        self.world
            .discord
            .set_role(guild.id, user, guild.role, given);
        self.note_who_sees(guild, true);
        Some(())
    }

    fn show(&self, place: u64, shown: bool) -> Option<()> {
        let guild = self.guild(place)?;
        let channel = guild.channels.first().copied()?;
        let (view, none) = (Permissions::VIEW_CHANNEL, Permissions::NONE);
        let of = OverwriteOf::Role(guild.role);
        let (allow, deny) = if shown { (none, none) } else { (none, view) };
        self.world.discord.overwrite(channel, of, allow, deny);
        self.note_who_sees(guild, false);
        Some(())
    }

    /// An outage begins or is over, unless it is so already.
    fn set_outage(&mut self, place: u64, is_on: bool) -> Option<()> {
        let guild = self.guild(place)?.id;
        let changes = if is_on {
            self.outages.insert(guild)
        } else {
            self.outages.remove(&guild)
        };
        changes.then(|| self.note_outage(guild, is_on))
    }

    /// All outages are over.
    pub(crate) fn end_outages(&mut self) {
        for guild in std::mem::take(&mut self.outages) {
            self.note_outage(guild, false);
        }
    }

    fn note_outage(&self, guild: Id, is_on: bool) {
        self.world.discord.set_outage(guild, is_on);
        self.world.note(What::Outage { guild, is_on });
    }

    /// The bot may not do this in a channel and its threads.
    fn bar(&self, place: u64, deny: Permissions) -> Option<()> {
        let guild = self.guild(place)?;
        let ends = [*guild.channels.first()?, *guild.channels.last()?];
        let channel = choose(&ends, place / 8)?;
        let discord = &self.world.discord;
        let bot = discord.bot();
        let of = OverwriteOf::Member(bot);
        // It is let into the private channel by an overwrite of its own.
        let view = Permissions::VIEW_CHANNEL;
        discord.overwrite(channel, of, view.without(deny), deny);
        self.note_what_bot_may(guild.id);
        Some(())
    }

    fn note_what_bot_may(&self, guild: Id) {
        let discord = &self.world.discord;
        let bot = discord.bot();
        let all = ALL_RIGHTS.map(of_right);
        let all = all
            .into_iter()
            .fold(Permissions::NONE, |all, right| all | right);
        // Also the threads that agent runs have begun.
        let may: Vec<(Id, bool)> = discord.world(|world| {
            let here = world.channels().filter(|one| one.guild == Some(guild));
            let may = here.map(|one| (one.id, world.permissions(bot, one.id).contains(all)));
            may.collect()
        });
        for (channel, all) in may {
            self.world.note(What::BotMay { channel, all });
        }
    }

    /// Notes who may see what in all servers.
    pub(crate) fn note_all_who_see(&self) {
        self.places
            .guilds
            .iter()
            .for_each(|guild| self.note_who_sees(guild, false));
    }

    fn note_who_sees(&self, guild: &Guild, by_role: bool) {
        for channel in guild.channels.iter().copied() {
            let people = self.places.people.iter().copied();
            let by = self.world.discord.world(|world| {
                people
                    .filter(|person| world.sees(*person, channel))
                    .collect()
            });
            self.world.note(What::Seen {
                channel,
                by,
                by_role,
            });
        }
    }

    fn mark(&mut self, of: MarkOf) -> Mark {
        self.numbers += 1;
        Mark {
            of,
            number: self.numbers,
        }
    }

    fn person(&self, which: u64) -> Option<Id> {
        choose(&self.places.people, which)
    }

    fn guild(&self, which: u64) -> Option<&Guild> {
        self.places.guilds.get(self.guild_at(which)?)
    }

    fn guild_at(&self, which: u64) -> Option<usize> {
        index(self.places.guilds.len(), which)
    }

    /// A channel of one server.
    fn channel_of(&self, guild: u64, which: u64) -> Option<Id> {
        choose(&self.guild(guild)?.channels, which)
    }

    /// A thread, and where its server is in the list: the first and the last of its channels
    /// are none.
    fn thread(&self, which: u64) -> Option<(usize, Id)> {
        let at = self.guild_at(which)?;
        let channels = &self.places.guilds.get(at)?.channels;
        let threads = channels.get(1..channels.len() - 1)?;
        Some((at, choose(threads, which / 8)?))
    }

    fn channel(&self, which: u64) -> Option<Id> {
        let channels: Vec<Id> = self.places.channels().map(|(_, channel)| channel).collect();
        choose(&channels, which)
    }

    fn direct(&mut self, who: Id) -> Id {
        if let Some((_, channel)) = self.direct.iter().find(|(person, _)| *person == who) {
            return *channel;
        }
        let channel = self.world.discord.world(|world| world.direct(who));
        self.direct.push((who, channel));
        channel
    }

    fn seen_at(&self, which: u64) -> Option<usize> {
        let newest = self.said.len().checked_sub(1)?;
        let back = index(self.said.len(), which % IN_SIGHT)?;
        Some(newest - back)
    }

    fn seen(&self, which: u64) -> Option<&Said> {
        self.said.get(self.seen_at(which)?)
    }

    fn post_of_bot(&self, which: u64) -> Option<(Id, Id)> {
        let posts = self.world.posts_of_bot();
        let newest = posts.len().checked_sub(1)?;
        posts
            .get(newest - index(posts.len(), which % IN_SIGHT)?)
            .copied()
    }
}

const ALL_RIGHTS: [Right; 3] = [Right::View, Right::Send, Right::ReadHistory];

fn of_right(right: Right) -> Permissions {
    match right {
        Right::View => Permissions::VIEW_CHANNEL,
        Right::Send => Permissions::SEND_MESSAGES | Permissions::SEND_MESSAGES_IN_THREADS,
        Right::ReadHistory => Permissions::READ_MESSAGE_HISTORY,
    }
}

fn choose<T: Copy>(from: &[T], which: u64) -> Option<T> {
    from.get(index(from.len(), which)?).copied()
}

fn index(length: usize, which: u64) -> Option<usize> {
    usize::try_from(which.checked_rem(length as u64)?).ok()
}
