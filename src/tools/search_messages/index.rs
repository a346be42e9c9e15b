//! Discord's own search: which channels are asked for, and what of its pages may be shown.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::asker::Asker;
use super::super::discord_search::{Alone, DiscordSearch};
use super::query::{Person, Query};
use super::{Matches, is_searched};
use crate::memory::Became;
use crate::telemetry::event::SearchedBy;
use clew_context::discord::rest::{
    MAX_SEARCH_CHANNELS, MAX_SEARCH_OFFSET, MAX_SEARCH_USERS, SEARCH_LIMIT, SearchQuery, Searched,
};
use clew_context::engine::window::View;
use clew_context::model::{ChannelId, ChannelKind, GuildId, Message, Referenced};

/// How long a search may take, what it waits for and judges included: less than a tool may.
const TIME: Duration = Duration::from_secs(12);
/// Pages of Discord that one call asks for.
const MAX_PAGES: usize = 4;

/// Discord's pages for a query, one after the other.
pub(super) struct Index<'a> {
    asker: &'a Asker<'a>,
    query: &'a Query,
    search: DiscordSearch<'a>,
    guild: GuildId,
    asked: SearchQuery,
    /// Who is only named: Discord knows people by id, so they are looked for in its pages.
    author: Option<&'a Person>,
    parent: Option<&'a Person>,
    deadline: Instant,
    /// Pages read, and those of them that were asked for now.
    pub(super) read: usize,
    sent: usize,
    _alone: Alone,
}

impl<'a> Index<'a> {
    /// None if nothing can be found; an error if Discord may not be asked.
    pub(super) async fn of(
        asker: &'a Asker<'a>,
        query: &'a Query,
        views: &[(ChannelId, View)],
    ) -> Result<Option<Self>, SearchedBy> {
        let (Some(guild), Some(search)) = (asker.guild(), asker.search) else {
            return Err(SearchedBy::Window);
        };
        let deadline = Instant::now() + TIME;
        let alone = search.alone(guild, deadline).await?;
        let channels = channels(asker, query, search, guild, deadline).await;
        let opted_out = asker.opt_outs.current();
        let users = |person: &Option<Person>| {
            let users = person.as_ref().map(|person| person.users(asker, views));
            let mut users = users.unwrap_or_default();
            let known = users.len();
            users.retain(|user| !opted_out.contains(*user));
            let are_withheld = known > 0 && users.is_empty();
            users.truncate(MAX_SEARCH_USERS);
            (users, are_withheld)
        };
        let (authors, no_author) = users(&query.author);
        let (replied_to, no_parent) = users(&query.replies_to);
        // An empty list would stand for anything.
        if channels.is_empty() || no_author || no_parent {
            return Ok(None);
        }
        Ok(Some(Self {
            asker,
            query,
            search,
            guild,
            author: query.author.as_ref().filter(|_| authors.is_empty()),
            parent: query.replies_to.as_ref().filter(|_| replied_to.is_empty()),
            asked: SearchQuery {
                content: query
                    .words
                    .as_ref()
                    .map_or_else(String::new, |words| words.0.clone()),
                channels,
                authors,
                replied_to,
                has: query.has.clone(),
                pinned: query.pinned,
                after: query.after,
                before: Some(query.before),
                by_relevance: query.by_relevance,
                with_age_restricted: asker.guild_state.is_age_restricted(asker.place.channel),
                limit: SEARCH_LIMIT,
                offset: 0,
            },
            deadline,
            read: 0,
            sent: 0,
            _alone: alone,
        }))
    }

    /// Whether somebody is looked for whose id is not known.
    pub(super) const fn is_by_name(&self) -> bool {
        self.author.is_some() || self.parent.is_some()
    }

    /// What may be shown of the next page; none if no more are asked for.
    pub(super) async fn next(&mut self) -> Result<Option<Matches>, SearchedBy> {
        let pages = self.search.turn().pages(&self.asked).clone();
        let (since, messages) = match pages.given.get(self.read) {
            Some(page) => page.clone(),
            None if pages.over == Some(SearchedBy::Discord) => return Ok(None),
            None if self.read * SEARCH_LIMIT > MAX_SEARCH_OFFSET => return Ok(None),
            None if self.sent >= MAX_PAGES => return Err(SearchedBy::Limit),
            None => {
                if let Some(why) = pages.over {
                    return Err(why);
                }
                let page = (self.asker.memory.noted().revision(), self.ask().await?);
                let mut turn = self.search.turn();
                turn.pages(&self.asked).given.push(page.clone());
                page
            }
        };
        self.read += 1;
        let opted_out = self.asker.opt_outs.current();
        let mut hits = messages.to_vec();
        for message in &mut hits {
            opted_out.withhold(message);
        }
        hits.retain(|message| self.may_show(message));
        Ok(Some(as_known(self.asker, self.query, since, hits)))
    }

    /// What comes later in the turn would stand between what is shown now. A limit lets the
    /// next call go on.
    pub(super) fn ends(&self, by: SearchedBy) {
        if by != SearchedBy::Limit {
            self.search.turn().pages(&self.asked).over = Some(by);
        }
    }

    /// Asks Discord for the next page, once more if it builds the index.
    async fn ask(&mut self) -> Result<Arc<[Message]>, SearchedBy> {
        let (search, guild) = (self.search, self.guild);
        let asked = SearchQuery {
            offset: self.read * SEARCH_LIMIT,
            ..self.asked.clone()
        };
        loop {
            search.take(guild, self.sent == 0, Instant::now())?;
            self.sent += 1;
            match search.rest.search(guild, &asked, self.deadline).await {
                Ok(Searched::Found { messages, threads }) => {
                    self.asker.guild_state.meet_threads(guild, threads);
                    return Ok(messages.into());
                }
                Ok(Searched::NotIndexed { retry_after }) => {
                    let until = (Instant::now(), self.deadline);
                    sleep(search.not_indexed(guild, retry_after, until)?).await;
                }
                Err(error) => return Err(search.refused(guild, &error, Instant::now())),
            }
        }
    }

    /// Whether a message is looked for, and everybody who reads the answer may read it.
    fn may_show(&self, message: &Message) -> bool {
        let is_parent = |person: &Person| matches!(&message.referenced, Referenced::Known(parent) if person.wrote(parent));
        self.query.is_within(message.id)
            && !message.flags.is_private()
            && is_searched(self.asker, self.query, message.channel)
            && self.author.is_none_or(|person| person.wrote(message))
            && self.parent.is_none_or(is_parent)
    }
}

/// The channels and threads that everybody who reads the answer may read, channels first, of
/// either those in use last and then the newest; or one with its threads. Discord does not say
/// whether a channel covers its threads. They are the same for all calls of a turn, and open
/// threads of a channel are judged together.
async fn channels(
    asker: &Asker<'_>,
    query: &Query,
    search: DiscordSearch<'_>,
    guild: GuildId,
    deadline: Instant,
) -> Vec<ChannelId> {
    if let Some(judged) = search.turn().channels.get(&query.channel) {
        return judged.clone();
    }
    let used = asker.held(guild).into_iter().zip(0..);
    let used: HashMap<ChannelId, usize> = used.collect();
    let known = asker.guild_state.channels_of(guild).into_iter();
    let known = known.filter_map(|channel| {
        let (kind, parent) = asker.guild_state.kind_and_parent(channel)?;
        let is_asked = kind != ChannelKind::Category && query.covers(asker, channel);
        is_asked.then_some((channel, kind, parent))
    });
    let mut known: Vec<_> = known.collect();
    known.sort_unstable_by_key(|(channel, kind, _)| {
        let used = used.get(channel).copied().unwrap_or(usize::MAX);
        (kind.is_thread(), used, Reverse(*channel))
    });
    let (mut channels, mut judged) = (BTreeSet::new(), HashMap::new());
    for (channel, kind, parent) in known {
        if channels.len() == MAX_SEARCH_CHANNELS || Instant::now() >= deadline {
            break;
        }
        let is_open = kind.is_thread() && kind != ChannelKind::PrivateThread;
        let parent = parent.filter(|_| is_open && channel != asker.place.channel);
        let known = parent.and_then(|parent| judged.get(&parent).copied());
        let may_read = known.unwrap_or_else(|| asker.may_read(channel));
        if may_read {
            channels.insert(channel);
        }
        if known.is_none() {
            judged.extend(parent.map(|parent| (parent, may_read)));
            // With many roles a channel takes a millisecond.
            tokio::task::yield_now().await;
        }
    }
    let channels: Vec<ChannelId> = channels.into_iter().collect();
    let judged = &mut search.turn().channels;
    judged.insert(query.channel, channels.clone());
    channels
}

/// Messages as they read now: without those that were deleted or edited since they were
/// indexed, as far as we were told, and without withheld ones.
fn as_known(asker: &Asker<'_>, query: &Query, since: u64, hits: Vec<Message>) -> Matches {
    let channels: BTreeSet<ChannelId> = hits.iter().map(|hit| hit.channel).collect();
    let views = channels.into_iter().map(|one| (one, asker.view(one)));
    let views: BTreeMap<ChannelId, View> = views.collect();
    let noted = asker.memory.noted().after(since);
    let known = hits.into_iter().filter_map(|hit| {
        let view = views.get(&hit.channel)?;
        if let Some(held) = view.get(hit.id) {
            // What reads as it was found needs no second look.
            let is_same = held.content == hit.content && !held.withheld;
            let same = is_same.then(|| query.shared_with(&held.content));
            return Some((same.or_else(|| query.score(held, view))?, Arc::clone(held)));
        }
        let is_whole = view.whole_from.is_some_and(|from| from <= hit.id);
        let became = noted.became(asker.guild(), &hit);
        if is_whole || view.deleted.contains(&hit.id) || became != Became::Unchanged {
            return None;
        }
        let score = query.shared_with(&hit.content);
        (!hit.withheld).then(|| (score, Arc::new(hit)))
    });
    known.map(|one| (one.1.id, one)).collect()
}
