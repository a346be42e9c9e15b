//! What a model looks for, and which message is that.

use super::super::address::Address;
use super::super::asker::Asker;
use super::super::result::ToolError;
use super::{
    AFTER, AUTHOR, Arguments, BEFORE, CHANNEL, HAS, ORDER, PAGE, PINNED, REPLIES_TO, WORDS,
};
use crate::memory::Keywords;
use clew_context::discord::rest::{MAX_SEARCH_OFFSET, SearchHas};
use clew_context::engine::sanitise;
use clew_context::engine::window::View;
use clew_context::model::{ChannelId, ChannelKind, Message, MessageId, UnixMillis, UserId};

/// Messages of one page.
pub(super) const PAGE_SIZE: usize = 15;

/// What is looked for; what is none or empty stands for anything.
pub(super) struct Query {
    pub(super) words: Option<(String, Keywords)>,
    pub(super) channel: Option<ChannelId>,
    pub(super) author: Option<Person>,
    pub(super) replies_to: Option<Person>,
    pub(super) has: Vec<SearchHas>,
    pub(super) pinned: Option<bool>,
    pub(super) after: Option<MessageId>,
    /// Never newer than the trigger.
    pub(super) before: MessageId,
    pub(super) by_relevance: bool,
    /// From 0.
    pub(super) page: usize,
}

/// A person, as models name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Person {
    /// By id or mention.
    Id(UserId),
    /// By the name that prompts show.
    Named(String),
}

impl Query {
    pub(super) fn read(asker: &Asker<'_>, arguments: &Arguments) -> Result<Self, ToolError> {
        let words = arguments.text(WORDS);
        let person = |name| arguments.text(name).as_deref().map(Person::read);
        let mut query = Self {
            words: words.map(|text| (text.clone(), Keywords::of(&text))),
            channel: channel(asker, arguments)?,
            author: person(AUTHOR),
            replies_to: person(REPLIES_TO),
            has: has(arguments)?,
            pinned: flag(arguments)?,
            after: moment(arguments, AFTER)?,
            before: moment(arguments, BEFORE)?.map_or(asker.trigger, |at| at.min(asker.trigger)),
            by_relevance: false,
            page: page(arguments)?,
        };
        if query.words.is_none() && query.channel.is_none() && query.names_nobody() {
            return Err(ToolError::Argument(WORDS));
        }
        query.by_relevance = match arguments.text(ORDER).as_deref() {
            None | Some("relevance") => query.words.is_some(),
            Some("time") => false,
            Some(_) => return Err(ToolError::Argument(ORDER)),
        };
        Ok(query)
    }

    /// The results up to the end of the page.
    pub(super) const fn end(&self) -> usize {
        (self.page + 1) * PAGE_SIZE
    }

    /// Whether it names no people and no things.
    pub(super) fn names_nobody(&self) -> bool {
        self.author.is_none()
            && self.replies_to.is_none()
            && self.has.is_empty()
            && self.pinned.is_none()
    }

    /// How many of the words a text has.
    pub(super) fn shared_with(&self, text: &str) -> usize {
        let words = self.words.as_ref();
        words.map_or(0, |(_, words)| words.shared_with(text))
    }

    /// How many of the words a message has, if it is looked for; of its pins nothing is known
    /// here. `view` has what it replies to.
    pub(super) fn score(&self, message: &Message, view: &View) -> Option<usize> {
        let score = self.shared_with(&message.content);
        let is_by = |person: &Option<Person>, message: Option<&Message>| {
            person
                .as_ref()
                .is_none_or(|person| message.is_some_and(|message| person.wrote(message)))
        };
        let parent = message.replies_to().and_then(|id| view.get(id));
        let fits = (score > 0 || self.words.is_none())
            && !message.withheld
            && self.is_within(message.id)
            && is_by(&self.author, Some(message))
            && is_by(&self.replies_to, parent.map(AsRef::as_ref))
            && self.has.iter().all(|thing| has_thing(message, *thing));
        fits.then_some(score)
    }

    /// Whether a channel is asked for: any, or one with its threads.
    pub(super) fn covers(&self, asker: &Asker<'_>, channel: ChannelId) -> bool {
        self.channel.is_none_or(|of| {
            let known = asker.guild_state.kind_and_parent(channel);
            let is_in = |(kind, parent): (ChannelKind, _)| kind.is_thread() && parent == Some(of);
            channel == of || known.is_some_and(is_in)
        })
    }

    /// Whether a message is of the time that is asked for.
    pub(super) fn is_within(&self, id: MessageId) -> bool {
        id < self.before && self.after.is_none_or(|after| id > after)
    }
}

impl Person {
    fn read(text: &str) -> Self {
        let id = text.trim_start_matches(['<', '@', '!']);
        let id = id.trim_end_matches('>').parse();
        id.map_or_else(|_| Self::Named(plain(text)), Self::Id)
    }

    /// Whether they wrote a message, as far as it names them.
    pub(super) fn wrote(&self, message: &Message) -> bool {
        if message.withheld {
            return false;
        }
        match self {
            Self::Id(id) => message.author.id == *id,
            Self::Named(_) => self.is_named(&message.author.name),
        }
    }

    fn is_named(&self, shown: &str) -> bool {
        matches!(self, Self::Named(name) if *name == plain(shown))
    }

    /// Whom Discord is asked for, as far as their names are known to everybody here.
    pub(super) fn users(&self, asker: &Asker<'_>, views: &[(ChannelId, View)]) -> Vec<UserId> {
        if let Self::Id(id) = self {
            return vec![*id];
        }
        let guild = asker.guild();
        let told = guild.map(|guild| {
            let is_named = |name: &str| self.is_named(name);
            asker.guild_state.users_named(guild, is_named)
        });
        let recent = views.iter().flat_map(|(_, view)| &view.recent);
        let wrote = recent.filter(|message| !message.withheld && self.wrote(message));
        let ours = self.is_named(&asker.us.name).then_some(asker.us.user);
        let mut users: Vec<UserId> = wrote.map(|message| message.author.id).collect();
        users.extend(told.into_iter().flatten().chain(ours));
        users.sort_unstable();
        users.dedup();
        users
    }
}

/// A name as prompts show it, in lower case and without `@`.
fn plain(name: &str) -> String {
    sanitise::name(name.trim_start_matches('@')).to_lowercase()
}

/// Which channel is meant; it must be open to everybody who reads the answer.
fn channel(asker: &Asker<'_>, arguments: &Arguments) -> Result<Option<ChannelId>, ToolError> {
    let Some(text) = arguments.text(CHANNEL) else {
        return Ok(None);
    };
    let channel = match Address::parse(&text) {
        Some(Address::Id(id)) => Some(ChannelId::new(id)),
        Some(Address::Link(link)) => asker.is_here(link).then_some(link.channel),
        None => asker.named(&text),
    };
    let channel = channel.ok_or(ToolError::NotForEverybody)?;
    asker.must_read(channel)?;
    Ok(Some(channel))
}

fn has(arguments: &Arguments) -> Result<Vec<SearchHas>, ToolError> {
    let text = arguments.text(HAS).unwrap_or_default().to_lowercase();
    let things = text.split([',', ' ']).filter(|thing| !thing.is_empty());
    let things = things.map(|thing| SearchHas::from_word(thing.trim_end_matches('s')));
    things
        .collect::<Option<_>>()
        .ok_or(ToolError::Argument(HAS))
}

fn flag(arguments: &Arguments) -> Result<Option<bool>, ToolError> {
    let text = arguments.text(PINNED);
    let flag = text.map(|text| text.to_lowercase().parse());
    flag.transpose().map_err(|_| ToolError::Argument(PINNED))
}

/// Pages from 1, as far as Discord would have them.
fn page(arguments: &Arguments) -> Result<usize, ToolError> {
    let Some(text) = arguments.text(PAGE) else {
        return Ok(0);
    };
    let page = text.parse::<usize>().ok();
    let page = page.filter(|page| (1..=1 + MAX_SEARCH_OFFSET / PAGE_SIZE).contains(page));
    page.map(|page| page - 1).ok_or(ToolError::Argument(PAGE))
}

/// The first id of a time in UTC, or an id.
fn moment(arguments: &Arguments, name: &'static str) -> Result<Option<MessageId>, ToolError> {
    let Some(text) = arguments.text(name) else {
        return Ok(None);
    };
    let text = text.trim_end_matches(" UTC").replacen(' ', "T", 1);
    let forms = ["", "Z", ":00Z", "T00:00:00Z"];
    let mut times = forms
        .iter()
        .map(|end| UnixMillis::parse(&format!("{text}{end}")));
    // Shorter numbers are years or days.
    let id = Some(&text).filter(|text| text.len() >= 15);
    let id = id.and_then(|text| text.parse().ok());
    let id = id.or_else(|| times.find_map(|time| time).map(MessageId::first_at));
    id.map(Some).ok_or(ToolError::Argument(name))
}

/// As Discord's "Search Has Types" say, as far as a message here tells it.
fn has_thing(message: &Message, thing: SearchHas) -> bool {
    let extras = message.extras.as_deref();
    let mut files = extras.into_iter().flat_map(|extras| &extras.attachments);
    match thing {
        SearchHas::File => files.next().is_some(),
        SearchHas::Image => {
            let endings = ["png", "jpg", "jpeg", "gif", "webp"];
            let has_type = |kind: &str| kind.starts_with("image/");
            files.any(|file| file.claims_to_be(has_type, &endings))
                || extras.is_some_and(|extras| extras.embeds.iter().any(|embed| embed.media))
        }
        SearchHas::Link => ["http://", "https://"]
            .iter()
            .any(|scheme| message.content.contains(scheme)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_and_prompts_write_them() {
        let read = |text: &str| {
            let arguments = serde_json::json!({ "after": text }).to_string();
            moment(&Arguments::parse(&arguments).unwrap(), AFTER).map_err(|error| error.to_string())
        };
        let day = UnixMillis::parse("2026-03-19T00:00:00Z").unwrap();
        let minute = UnixMillis::parse("2026-03-19T10:30:00Z").unwrap();
        for (text, time) in [
            ("2026-03-19", day),
            ("2026-03-19 10:30", minute),
            ("2026-03-19 10:30 UTC", minute),
            ("2026-03-19T10:30:00Z", minute),
            ("2026-03-19T12:30:00+02:00", minute),
        ] {
            assert_eq!(read(text), Ok(Some(MessageId::first_at(time))), "{text}");
        }
        assert_eq!(
            read("175928847299117063"),
            Ok(Some(MessageId::new(175_928_847_299_117_063)))
        );
        assert!(read("last week").is_err());
        assert_eq!(read(" "), Ok(None));
    }

    #[test]
    fn people_are_named_or_numbered() {
        for text in ["<@7>", "<@!7>", "7"] {
            assert_eq!(Person::read(text), Person::Id(UserId::new(7)), "{text}");
        }
        assert!(Person::read("@Ada L").is_named("ada l"));
        assert!(!Person::read("Ada").is_named("Boris"));
    }

    #[test]
    fn things_are_a_list() {
        let read = |text: &str| {
            let arguments = serde_json::json!({ "has": text }).to_string();
            has(&Arguments::parse(&arguments).unwrap()).ok()
        };
        assert_eq!(read(""), Some(vec![]));
        let both = vec![SearchHas::File, SearchHas::Link];
        assert_eq!(read("file, links"), Some(both));
        assert_eq!(read("sticker"), None);
    }
}
