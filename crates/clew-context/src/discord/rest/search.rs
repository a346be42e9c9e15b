//! Search Guild Messages: finds messages of a server by Discord's index, which may lag behind.
//!
//! Invariant: how many messages fit (`total_results`) is not read: it counts those that not
//! everybody may read.

use std::fmt::Write as _;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use twilight_http::request::{Method, RequestBuilder};

use super::{RateLimitPool, RestReader, build, malformed};
use crate::discord::convert;
use crate::discord::error::RestError;
use crate::model::{Channel, ChannelId, GuildId, Message, MessageId, UserId};
use crate::words;

/// The most messages of a page (`limit`).
pub const SEARCH_LIMIT: usize = 25;
/// The most that goes before a page (`offset`).
pub const MAX_SEARCH_OFFSET: usize = 9_975;
/// The most channels of a query (`channel_id`).
pub const MAX_SEARCH_CHANNELS: usize = 500;
/// The most people of a list of a query (`author_id`, `replied_to_user_id`).
pub const MAX_SEARCH_USERS: usize = 100;
/// The most Unicode scalars of the words (`content`), and how much of the query they take.
const MAX_CONTENT: usize = 1_024;
const MAX_CONTENT_BYTES: usize = 4_096;
/// The most bytes of a query: in front of Discord is Cloudflare, which has refused addresses of
/// more than 16 KB (of 32 KB by now). 500 channels with ids of 19 digits fit.
const MAX_QUERY: usize = 16_000;
/// Words need not stand beside each other (`slop`, the most that may be skipped).
const MAX_SLOP: u8 = 100;
/// "Index not yet available. Try again later".
const NOT_INDEXED: u64 = 110_000;

words! {
    /// What a message may have (Search Guild Messages, "Search Has Types").
    SearchHas {
        /// An attachment.
        File = "file",
        /// An image.
        Image = "image",
        /// A link.
        Link = "link",
    }
}

/// What is looked for; what is empty or none stands for anything. Longer lists and texts
/// than Discord takes are cut, and of channels the last for which an address has no room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// All of these words.
    pub content: String,
    /// In one of these channels. Whether that covers their threads Discord does not say.
    pub channels: Vec<ChannelId>,
    /// By one of these people.
    pub authors: Vec<UserId>,
    /// Replies to one of these people.
    pub replied_to: Vec<UserId>,
    /// With all of these.
    pub has: Vec<SearchHas>,
    /// Whether it is pinned.
    pub pinned: Option<bool>,
    /// Newer than this.
    pub after: Option<MessageId>,
    /// Older than this.
    pub before: Option<MessageId>,
    /// The most relevant first, else the newest.
    pub by_relevance: bool,
    /// Whether age-restricted channels are searched, too.
    pub with_age_restricted: bool,
    /// Messages of the page, 1 to [`SEARCH_LIMIT`].
    pub limit: usize,
    /// Messages before it, at most [`MAX_SEARCH_OFFSET`].
    pub offset: usize,
}

/// What came of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Searched {
    /// A page, in Discord's order. It may have fewer messages than asked for and not be
    /// the last; without those that cannot be read.
    Found {
        /// The messages.
        messages: Vec<Message>,
        /// The threads that they are in.
        threads: Vec<Channel>,
    },
    /// The server's index is being built.
    NotIndexed {
        /// When to try again; zero: after a short while.
        retry_after: Duration,
    },
}

/// Either body, the fields we read.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default)]
    code: u64,
    #[serde(default)]
    retry_after: f64,
    #[serde(borrow)]
    messages: Option<Vec<Vec<&'a RawValue>>>,
    #[serde(borrow)]
    threads: Option<Vec<&'a RawValue>>,
}

impl RestReader {
    /// A page of a server's messages that fit a query (Search Guild Messages; it needs Read
    /// Message History and the message content intent). It is sent once: how often it may be
    /// is not documented, so a 429 is the caller's to wait out.
    ///
    /// # Errors
    /// Why Discord refused, or why there was no answer.
    pub async fn search(
        &self,
        guild: GuildId,
        query: &SearchQuery,
        deadline: Instant,
    ) -> Result<Searched, RestError> {
        let path = format!("guilds/{guild}/messages/search?{}", query.pairs());
        let request = build(RequestBuilder::raw(Method::Get, path))?;
        let pool = RateLimitPool::Singles;
        let body = self.pools.call(request, pool, deadline, 1).await?;
        searched(&body)
    }
}

fn searched(body: &[u8]) -> Result<Searched, RestError> {
    let body: Body<'_> = serde_json::from_slice(body).map_err(|_| malformed())?;
    if body.code == NOT_INDEXED {
        let retry_after = Duration::try_from_secs_f64(body.retry_after).unwrap_or_default();
        return Ok(Searched::NotIndexed { retry_after });
    }
    let found = body.messages.ok_or(malformed())?.into_iter().flatten();
    let messages = found.filter_map(|message| convert::message(message.get()).ok());
    let threads = body.threads.unwrap_or_default().into_iter();
    let threads = threads.filter_map(|thread| convert::channel(thread.get(), None).ok());
    Ok(Searched::Found {
        messages: messages.collect(),
        threads: threads.collect(),
    })
}

impl SearchQuery {
    /// As a query string; lists repeat their key.
    fn pairs(&self) -> String {
        let sort = if self.by_relevance {
            "relevance"
        } else {
            "timestamp"
        };
        let limit = self.limit.clamp(1, SEARCH_LIMIT);
        let offset = self.offset.min(MAX_SEARCH_OFFSET);
        let mut pairs = format!("limit={limit}&offset={offset}&sort_by={sort}");
        let mut add = |key: &str, value: &dyn std::fmt::Display| {
            let _ = write!(pairs, "&{key}={value}");
        };
        if !self.content.is_empty() {
            let words = self.content.chars().take(MAX_CONTENT);
            let words = words.scan(0, |bytes, one| {
                // A byte that is escaped takes three.
                *bytes += one.len_utf8() * 3;
                (*bytes <= MAX_CONTENT_BYTES).then_some(one)
            });
            let words: String = words.collect();
            add("content", &utf8_percent_encode(&words, NON_ALPHANUMERIC));
            add("slop", &MAX_SLOP);
        }
        let people = [
            ("author_id", &self.authors),
            ("replied_to_user_id", &self.replied_to),
        ];
        for (key, users) in people {
            for user in users.iter().take(MAX_SEARCH_USERS) {
                add(key, user);
            }
        }
        for thing in &self.has {
            add("has", thing);
        }
        if let Some(pinned) = self.pinned {
            add("pinned", &pinned);
        }
        for (key, id) in [("min_id", self.after), ("max_id", self.before)] {
            if let Some(id) = id {
                add(key, &id);
            }
        }
        if self.with_age_restricted {
            add("include_nsfw", &true);
        }
        for channel in self.channels.iter().take(MAX_SEARCH_CHANNELS) {
            let pair = format!("&channel_id={channel}");
            if pairs.len() + pair.len() > MAX_QUERY {
                break;
            }
            pairs += &pair;
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_written_as_discord_reads_it() {
        let query = SearchQuery {
            content: "Ö b&".to_owned(),
            channels: vec![ChannelId::new(1), ChannelId::new(2)],
            authors: vec![UserId::new(3)],
            replied_to: vec![UserId::new(4)],
            has: vec![SearchHas::File, SearchHas::Link],
            pinned: Some(false),
            after: Some(MessageId::new(5)),
            before: Some(MessageId::new(6)),
            with_age_restricted: true,
            limit: 99,
            offset: 99_999,
            ..SearchQuery::default()
        };
        let expected = "limit=25&offset=9975&sort_by=timestamp&content=%C3%96%20b%26&slop=100\
            &author_id=3&replied_to_user_id=4&has=file&has=link&pinned=false&min_id=5&max_id=6\
            &include_nsfw=true&channel_id=1&channel_id=2";
        assert_eq!(query.pairs(), expected);
        let bare = SearchQuery::default().pairs();
        assert_eq!(bare, "limit=1&offset=0&sort_by=timestamp");
    }

    #[test]
    fn an_address_is_not_too_long() {
        const ID: u64 = 1_234_567_890_123_456_789;
        let channels = |query: &SearchQuery| {
            let pairs = query.pairs();
            assert!(pairs.len() <= MAX_QUERY, "{}", pairs.len());
            pairs.matches("channel_id=").count()
        };
        let mut query = SearchQuery {
            content: "seven words that people look for, Grüße!".to_owned(),
            channels: (0..600).map(|at| ChannelId::new(ID + at)).collect(),
            authors: vec![UserId::new(ID)],
            after: Some(MessageId::new(ID)),
            before: Some(MessageId::new(ID)),
            offset: 9_975,
            ..SearchQuery::default()
        };
        assert_eq!(channels(&query), MAX_SEARCH_CHANNELS);
        query.content = "字".repeat(2_000);
        query.authors = (0..200).map(|at| UserId::new(ID + at)).collect();
        query.replied_to.clone_from(&query.authors);
        assert!(channels(&query) > 100);
    }

    #[test]
    fn what_cannot_be_read_costs_only_itself() {
        let body =
            br#"{"messages":[[{"id":"7","channel_id":"8","author":{"id":"9"}}],[{"id":1}],[]],
            "threads":null,"total_results":"many"}"#;
        let Searched::Found { messages, threads } = searched(body).unwrap() else {
            panic!("nothing was found");
        };
        assert_eq!((messages.len(), threads.len()), (1, 0));
        let wait = br#"{"code":110000,"message":"m","documents_indexed":0,"retry_after":2}"#;
        let retry_after = Duration::from_secs(2);
        let expected = Searched::NotIndexed { retry_after };
        assert_eq!(searched(wait).unwrap(), expected);
        for body in [&b"[]"[..], b"{}", b"{\"messages\":1}"] {
            assert_eq!(searched(body), Err(malformed()));
        }
    }
}
