//! Answers outside interactions: to a user by direct message, or in a channel.

use serde_json::json;
use twilight_http::request::{Method, RequestBuilder};

use tokio::time::Instant;

use super::answer::message;
use super::{enforce_nonce, message_id, with_body};
use crate::model::Answer;
use crate::rest::{RateLimitPool, Rest, malformed};
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, MessageId, UserId};

impl Rest {
    /// Our direct message channel with a user (Create DM), created if need be.
    /// Whether the user accepts direct messages only shows when one is sent.
    ///
    /// # Errors
    /// As for reads.
    pub async fn direct_channel(
        &self,
        user: UserId,
        deadline: Instant,
    ) -> Result<ChannelId, RestError> {
        #[derive(serde::Deserialize)]
        struct Opened {
            id: ChannelId,
        }
        let payload = json!({"recipient_id": user});
        let make = || {
            let path = "users/@me/channels".to_owned();
            with_body(RequestBuilder::raw(Method::Post, path), &payload, &[])
        };
        let body = self.repeat(make, RateLimitPool::Aside, deadline).await?;
        let opened: Opened = serde_json::from_slice(&body).map_err(|_| malformed())?;
        Ok(opened.id)
    }

    /// Posts an answer with its files and buttons in a channel, visible to
    /// everyone there. The nonce, up to 25 characters, is the same for every
    /// attempt at this message and different for every other.
    ///
    /// # Errors
    /// [`Fallback::Forbidden`](clew_context::model::Fallback::Forbidden) if the
    /// user accepts no direct messages; otherwise as for
    /// [`create_message`](Rest::create_message).
    pub async fn post_answer(
        &self,
        channel: ChannelId,
        answer: &Answer,
        nonce: &str,
        deadline: Instant,
    ) -> Result<MessageId, RestError> {
        let mut payload = message(answer);
        enforce_nonce(&mut payload, nonce);
        let posted = self.put(channel, None, &payload, &answer.files, deadline);
        message_id(&posted.await?)
    }

    /// Replaces such an answer, buttons included.
    ///
    /// # Errors
    /// As for [`create_message`](Rest::create_message).
    pub async fn edit_answer(
        &self,
        channel: ChannelId,
        id: MessageId,
        answer: &Answer,
        deadline: Instant,
    ) -> Result<(), RestError> {
        let payload = message(answer);
        let changed = self.put(channel, Some(id), &payload, &answer.files, deadline);
        changed.await.map(drop)
    }
}
