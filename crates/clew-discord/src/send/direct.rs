//! Answers outside of interactions: to a person by direct message, or into a
//! channel.

use serde_json::json;
use twilight_http::request::{Method, RequestBuilder};

use tokio::time::Instant;

use super::answer::message;
use super::{enforce_nonce, message_id, with_body};
use crate::model::Answer;
use crate::rest::{Lane, Rest, malformed};
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, MessageId, UserId};

impl Rest {
    /// The channel of our direct messages with a user (Create DM); it exists
    /// from then on. That the user takes none shows only when something is
    /// sent into it.
    ///
    /// # Errors
    /// As a read.
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
        let body = self.repeat(make, Lane::Aside, deadline).await?;
        let opened: Opened = serde_json::from_slice(&body).map_err(|_| malformed())?;
        Ok(opened.id)
    }

    /// Posts an answer with its files and buttons into a channel, where all
    /// see it. The nonce, up to 25 characters, is the same for every attempt
    /// at this message and for no other.
    ///
    /// # Errors
    /// [`Fallback::Forbidden`](clew_context::model::Fallback::Forbidden) where the
    /// person takes no direct messages; otherwise as
    /// [`create_message`](Rest::create_message).
    pub async fn post_answer(
        &self,
        channel: ChannelId,
        answer: &Answer,
        nonce: &str,
        deadline: Instant,
    ) -> Result<MessageId, RestError> {
        let path = format!("channels/{channel}/messages");
        let mut payload = message(answer);
        enforce_nonce(&mut payload, nonce);
        let make = || {
            let builder = RequestBuilder::raw(Method::Post, path.clone());
            with_body(builder, &payload, &answer.files)
        };
        message_id(&self.repeat(make, Lane::Main, deadline).await?)
    }
}
