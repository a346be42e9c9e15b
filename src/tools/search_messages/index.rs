//! Discord's own search: which channels are asked for, and what of its answer may be shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::asker::Asker;
use super::query::{PAGE_SIZE, Person, Query};
use super::{Found, thread_parent};
use crate::memory::Became;
use crate::telemetry::event::SearchedBy;
use clew_context::discord::rest::{MAX_SEARCH_CHANNELS, MAX_SEARCH_USERS, SearchQuery, Searched};
use clew_context::engine::window::View;
use clew_context::model::{ChannelId, ChannelKind, GuildId, Message, Referenced};

/// How long a search may take, a wait for the index included: less than a tool may.
const TIME: Duration = Duration::from_secs(12);
/// How long the index is waited for where Discord names no time.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// A page of what Discord finds, as it may be shown, or why it is not asked or gives nothing.
pub(super) async fn search(
    asker: &Asker<'_>,
    query: &Query,
    views: &[(ChannelId, View)],
) -> Result<Found, SearchedBy> {
    let (Some(guild), Some(_)) = (asker.guild(), &asker.search) else {
        return Err(SearchedBy::Window);
    };
    let channels = channels(asker, guild, query.channel).await;
    if channels.is_empty() {
        // An empty list would stand for anything.
        return Ok(Found::new());
    }
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
    if no_author || no_parent {
        return Ok(Found::new());
    }
    // Discord knows people by id; who is only named is looked for in its page.
    let author = query.author.as_ref().filter(|_| authors.is_empty());
    let parent = query.replies_to.as_ref().filter(|_| replied_to.is_empty());
    let asked = SearchQuery {
        content: query
            .words
            .as_ref()
            .map_or_else(String::new, |words| words.0.clone()),
        channels: channels.iter().copied().collect(),
        authors,
        replied_to,
        has: query.has.clone(),
        pinned: query.pinned,
        after: query.after,
        before: Some(query.before),
        by_relevance: query.by_relevance,
        with_age_restricted: asker.guild_state.is_age_restricted(asker.place.channel),
        limit: PAGE_SIZE,
        offset: query.page * PAGE_SIZE,
    };
    let since = asker.memory.noted().revision();
    let mut messages = ask(asker, guild, &asked).await?;
    // Somebody may have opted out meanwhile.
    let opted_out = asker.opt_outs.current();
    for message in &mut messages {
        opted_out.withhold(message);
    }
    let hits = messages.into_iter().filter(|message| {
        may_show(asker, query, &channels, message)
            && author.is_none_or(|person| person.wrote(message))
            && parent.is_none_or(|person| {
                matches!(&message.referenced, Referenced::Known(parent) if person.wrote(parent))
            })
    });
    Ok(as_known(asker, query, since, hits.collect()))
}

/// The channels and threads that everybody who reads the answer may read, channels first and
/// then the newest threads; or one with its threads. Discord does not say whether a channel
/// covers its threads.
async fn channels(
    asker: &Asker<'_>,
    guild: GuildId,
    only: Option<ChannelId>,
) -> BTreeSet<ChannelId> {
    let mut known: Vec<_> = asker
        .guild_state
        .channels_of(guild)
        .into_iter()
        .filter_map(|channel| Some((channel, asker.guild_state.kind_and_parent(channel)?)))
        .filter(|(channel, (kind, parent))| {
            let is_of = |only| *channel == only || kind.is_thread() && *parent == Some(only);
            *kind != ChannelKind::Category && only.is_none_or(is_of)
        })
        .map(|(channel, (kind, _))| (kind.is_thread(), std::cmp::Reverse(channel)))
        .collect();
    known.sort_unstable();
    let mut channels = BTreeSet::new();
    for (_, std::cmp::Reverse(channel)) in known {
        if channels.len() == MAX_SEARCH_CHANNELS {
            break;
        }
        if asker.may_read(channel) {
            channels.insert(channel);
        }
        // With many roles a channel takes a millisecond.
        tokio::task::yield_now().await;
    }
    channels
}

/// Asks Discord, once more if it builds the index and says when to.
async fn ask(
    asker: &Asker<'_>,
    guild: GuildId,
    query: &SearchQuery,
) -> Result<Vec<Message>, SearchedBy> {
    let search = asker.search.as_ref().ok_or(SearchedBy::Window)?;
    let deadline = Instant::now() + TIME;
    let mut may_wait = true;
    loop {
        search.take(guild, Instant::now())?;
        match search.rest.search(guild, query, deadline).await {
            Ok(Searched::Found { messages, threads }) => {
                asker.guild_state.meet_threads(guild, threads);
                return Ok(messages);
            }
            Ok(Searched::NotIndexed { retry_after }) => {
                let told = Some(retry_after).filter(|wait| !wait.is_zero());
                let wait = told.unwrap_or(SHORT_WAIT);
                if !may_wait || Instant::now() + wait >= deadline {
                    return Err(SearchedBy::NotIndexed);
                }
                may_wait = false;
                sleep(wait).await;
            }
            Err(error) => return Err(search.refused(guild, &error, Instant::now())),
        }
    }
}

/// Whether a message is of a channel that was asked for, or of a thread of one, and everybody
/// who reads the answer may read it.
fn may_show(
    asker: &Asker<'_>,
    query: &Query,
    channels: &BTreeSet<ChannelId>,
    message: &Message,
) -> bool {
    let is_asked = channels.contains(&message.channel)
        || thread_parent(asker, message.channel).is_some_and(|parent| channels.contains(&parent));
    is_asked
        && query.is_within(message.id)
        && !message.flags.is_private()
        && asker.may_read(message.channel)
}

/// Messages as they read now: without those that were deleted or edited since they were
/// indexed, as far as we were told, and without withheld ones.
fn as_known(asker: &Asker<'_>, query: &Query, since: u64, hits: Vec<Message>) -> Found {
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
