//! The source that is Discord: one REST call each.

use tokio::time::Instant;

use crate::discord::error::RestError;
use crate::discord::facts::Facts;
use crate::discord::rest::{Rest, Side};
use crate::model::{Attachment, Channel, ChannelId, Message, MessageId};

use super::source::{Anchor, FetchError, Page, Source};

/// Reads over REST. A thread's parent is looked up among the known facts, so
/// that a channel costs one call.
#[derive(Debug, Clone, Copy)]
pub struct Live<'a> {
    /// The REST client.
    pub rest: &'a Rest,
    /// What the gateway told.
    pub facts: &'a Facts,
}

impl Source for Live<'_> {
    async fn page(
        &self,
        channel: ChannelId,
        anchor: Anchor,
        limit: usize,
        deadline: Instant,
    ) -> Result<Page, FetchError> {
        let side = match anchor {
            Anchor::Before(id) => Side::Before(id),
            Anchor::After(id) => Side::After(id),
        };
        let page = self
            .rest
            .page(channel, side, limit, deadline)
            .await
            .map_err(failed)?;
        Ok(Page {
            messages: page.messages,
            unreadable: page.unreadable,
            complete: page.complete,
        })
    }

    async fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> Result<Message, FetchError> {
        self.rest
            .message(channel, id, deadline)
            .await
            .map_err(failed)
    }

    async fn channel(&self, id: ChannelId, deadline: Instant) -> Result<Channel, FetchError> {
        let mut channel = self.rest.channel(id, deadline).await.map_err(failed)?;
        if let Some(parent) = channel.parent.and_then(|parent| self.facts.channel(parent)) {
            channel.parent_kind = Some(parent.kind);
            channel.parent_name = Some(parent.name);
        }
        Ok(channel)
    }

    async fn file(
        &self,
        file: &Attachment,
        max_bytes: u64,
        deadline: Instant,
    ) -> Result<String, FetchError> {
        self.rest
            .file(&file.url, max_bytes, deadline)
            .await
            .map_err(failed)
    }
}

fn failed(error: RestError) -> FetchError {
    FetchError {
        reason: error.reason,
        transient: error.transient,
    }
}
