//! Answers to interactions, which need no permission but a token that lasts
//! 15 minutes, and come first within three seconds.

use serde_json::{Value, json};
use tokio::time::Instant;
use twilight_http::request::{Method, RequestBuilder};

use super::{File, message_id, silent, with_body};
use crate::discord::error::RestError;
use crate::discord::rest::{Lane, Rest};
use crate::model::{Interaction, MessageFlags, MessageId};

/// Most choices of an autocompletion (Discord's reference, "Autocomplete").
const MAX_CHOICES: usize = 25;

/// The first answer to an interaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callback {
    /// A message.
    Message {
        /// Its text, up to 2,000 characters.
        content: String,
        /// Seen by the caller alone.
        ephemeral: bool,
    },
    /// "... is thinking": the message comes by
    /// [`edit_original`](Rest::edit_original).
    Deferred {
        /// Seen by the caller alone.
        ephemeral: bool,
    },
    /// Choices as name and value; beyond 25 they are left out.
    Autocomplete(Vec<(String, String)>),
}

impl Callback {
    /// Discord's reference, "Interaction Callback Type".
    fn payload(&self) -> Value {
        match self {
            Self::Message { content, ephemeral } => {
                json!({"type": 4, "data": message(content, *ephemeral)})
            }
            Self::Deferred { ephemeral } => {
                json!({"type": 5, "data": {"flags": flags(*ephemeral)}})
            }
            Self::Autocomplete(choices) => {
                let choices: Vec<Value> = choices
                    .iter()
                    .take(MAX_CHOICES)
                    .map(|(name, value)| json!({"name": name, "value": value}))
                    .collect();
                json!({"type": 8, "data": {"choices": choices}})
            }
        }
    }
}

const fn flags(ephemeral: bool) -> u32 {
    if ephemeral {
        MessageFlags::EPHEMERAL.0
    } else {
        0
    }
}

fn message(content: &str, ephemeral: bool) -> Value {
    json!({
        "content": content,
        "flags": flags(ephemeral),
        "allowed_mentions": {"parse": []},
    })
}

impl Rest {
    /// The first answer. It is sent once: Discord takes one.
    ///
    /// # Errors
    /// As a read; [`NotFound`](crate::model::Fallback::NotFound) after three
    /// seconds.
    pub async fn answer_interaction(
        &self,
        interaction: &Interaction,
        callback: &Callback,
        deadline: Instant,
    ) -> Result<(), RestError> {
        let Interaction { id, token, .. } = interaction;
        let path = format!("interactions/{id}/{token}/callback");
        let payload = callback.payload();
        let body = self.hook(Method::Post, path, Some(&payload), deadline);
        body.await.map(drop)
    }

    /// Fills or replaces the first answer.
    ///
    /// # Errors
    /// As a read.
    pub async fn edit_original(
        &self,
        interaction: &Interaction,
        content: &str,
        file: Option<&File>,
        deadline: Instant,
    ) -> Result<MessageId, RestError> {
        let payload = silent(content, file);
        let path = original(interaction);
        let body = self.hook_with_file(Method::Patch, path, Some(&payload), file, deadline);
        message_id(&body.await?)
    }

    /// One more message after the first answer.
    ///
    /// # Errors
    /// As a read.
    pub async fn follow_up(
        &self,
        interaction: &Interaction,
        content: &str,
        ephemeral: bool,
        file: Option<&File>,
        deadline: Instant,
    ) -> Result<MessageId, RestError> {
        let Interaction {
            application, token, ..
        } = interaction;
        let path = format!("webhooks/{application}/{token}?wait=true");
        let mut payload = silent(content, file);
        payload["flags"] = json!(flags(ephemeral));
        let body = self.hook_with_file(Method::Post, path, Some(&payload), file, deadline);
        message_id(&body.await?)
    }

    async fn hook(
        &self,
        method: Method,
        path: String,
        payload: Option<&Value>,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        self.hook_with_file(method, path, payload, None, deadline)
            .await
    }

    /// The token in the path stands for ours.
    async fn hook_with_file(
        &self,
        method: Method,
        path: String,
        payload: Option<&Value>,
        file: Option<&File>,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let builder = RequestBuilder::raw(method, path).use_authorization_token(false);
        let request = match payload {
            Some(payload) => with_body(builder, payload, file)?,
            None => super::build(builder)?,
        };
        self.call(request, Lane::Aside, deadline).await
    }
}

fn original(interaction: &Interaction) -> String {
    let Interaction {
        application, token, ..
    } = interaction;
    format!("webhooks/{application}/{token}/messages/@original")
}
