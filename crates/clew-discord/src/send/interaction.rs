//! Answers to interactions. They need no permission but the interaction's
//! token, valid for 15 minutes; the first is due within 3 seconds.

use serde_json::{Value, json};
use tokio::time::Instant;
use twilight_http::request::{Method, Request, RequestBuilder};

use super::answer::{flags, message, new_message, only_buttons};
use super::{FLAGS, FileUpload, MessageText, build, message_id, with_body};
use crate::model::{Answer, AnswerButton};
use crate::rest::{RateLimitPool, Rest};
use clew_context::discord::error::RestError;
use clew_context::model::{Interaction, MessageId};

/// Most choices in an autocompletion (Discord's reference, "Autocomplete").
const MAX_CHOICES: usize = 25;
/// Characters in a choice's name or value.
const MAX_CHOICE: usize = 100;

/// The first answer to an interaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callback {
    /// A message.
    Message(Answer),
    /// "... is thinking"; [`edit_original`](Rest::edit_original) fills in the
    /// message.
    Deferred {
        /// Visible to the caller only.
        ephemeral: bool,
    },
    /// For a button: replaces its whole message. Who can see it stays.
    Update(Answer),
    /// For a button: shows nothing yet;
    /// [`edit_original_answer`](Rest::edit_original_answer) replaces its
    /// message.
    DeferredUpdate,
    /// The only answer to an autocompletion: choices as name and value. Those
    /// beyond 25 are dropped, as are values over 100 characters; names are cut
    /// there.
    Autocomplete(Vec<(String, String)>),
}

impl Callback {
    /// Types as in Discord's reference, "Interaction Callback Type".
    fn payload(&self) -> Value {
        match self {
            Self::Message(answer) => json!({"type": 4, "data": new_message(answer)}),
            Self::Deferred { ephemeral } => {
                json!({"type": 5, "data": {"flags": flags(*ephemeral)}})
            }
            Self::DeferredUpdate => json!({"type": 6}),
            Self::Update(answer) => json!({"type": 7, "data": message(answer)}),
            Self::Autocomplete(choices) => {
                let choices: Vec<Value> = choices
                    .iter()
                    .filter(|(name, value)| sendable(name, value))
                    .take(MAX_CHOICES)
                    .map(|(name, value)| {
                        let name: String = name.chars().take(MAX_CHOICE).collect();
                        json!({"name": name, "value": value})
                    })
                    .collect();
                json!({"type": 8, "data": {"choices": choices}})
            }
        }
    }

    fn files(&self) -> &[FileUpload] {
        match self {
            Self::Message(answer) | Self::Update(answer) => &answer.files,
            Self::Deferred { .. } | Self::DeferredUpdate | Self::Autocomplete(_) => &[],
        }
    }
}

/// Discord refuses the whole list if one value is too long, or one name or
/// value is blank.
fn sendable(name: &str, value: &str) -> bool {
    !name.trim().is_empty() && !value.trim().is_empty() && value.chars().nth(MAX_CHOICE).is_none()
}

impl Rest {
    /// Sends the first answer, without retries: Discord accepts only one.
    ///
    /// # Errors
    /// As for reads; [`NotFound`](clew_context::model::Fallback::NotFound)
    /// after three seconds.
    pub async fn answer_interaction(
        &self,
        interaction: &Interaction,
        callback: &Callback,
        deadline: Instant,
    ) -> Result<(), RestError> {
        let token = interaction.token.expose();
        let path = format!("interactions/{}/{token}/callback", interaction.id);
        let payload = callback.payload();
        let files = callback.files();
        let body = self.hook(Method::Post, path, &payload, files, deadline);
        body.await.map(drop)
    }

    /// Fills in or replaces the first answer's text.
    ///
    /// # Errors
    /// As for reads.
    pub async fn edit_original(
        &self,
        interaction: &Interaction,
        text: &MessageText<'_>,
        deadline: Instant,
    ) -> Result<MessageId, RestError> {
        let payload = text.body();
        let path = webhook(interaction, "/messages/@original");
        let make = || hook(Method::Patch, path.clone(), &payload, text.files);
        let body = self.repeat(make, RateLimitPool::Aside, deadline);
        message_id(&body.await?)
    }

    /// Deletes the first answer (Delete Original Interaction Response).
    ///
    /// # Errors
    /// As for reads.
    pub async fn delete_original(
        &self,
        interaction: &Interaction,
        deadline: Instant,
    ) -> Result<(), RestError> {
        let path = webhook(interaction, "/messages/@original");
        let request = RequestBuilder::raw(Method::Delete, path).use_authorization_token(false);
        let (request, pool) = (build(request)?, RateLimitPool::Aside);
        self.reader().call(request, pool, deadline).await.map(drop)
    }

    /// Replaces the whole first answer: the message after a deferred one, the
    /// button's message after an update.
    ///
    /// # Errors
    /// As for reads.
    pub async fn edit_original_answer(
        &self,
        interaction: &Interaction,
        answer: &Answer,
        deadline: Instant,
    ) -> Result<MessageId, RestError> {
        let payload = message(answer);
        let path = webhook(interaction, "/messages/@original");
        let body = self.hook(Method::Patch, path, &payload, &answer.files, deadline);
        message_id(&body.await?)
    }

    /// Replaces the buttons under one of the messages that answer an interaction.
    ///
    /// # Errors
    /// As for reads.
    pub async fn set_buttons_of_answer(
        &self,
        interaction: &Interaction,
        id: MessageId,
        buttons: &[AnswerButton],
        deadline: Instant,
    ) -> Result<(), RestError> {
        let path = webhook(interaction, &format!("/messages/{id}"));
        let payload = only_buttons(buttons);
        let body = self.hook(Method::Patch, path, &payload, &[], deadline);
        body.await.map(drop)
    }

    /// Sends a follow-up text.
    ///
    /// # Errors
    /// As for reads.
    pub async fn follow_up(
        &self,
        interaction: &Interaction,
        text: &MessageText<'_>,
        ephemeral: bool,
        deadline: Instant,
    ) -> Result<MessageId, RestError> {
        let mut payload = text.body();
        payload["flags"] = json!(FLAGS.0 | flags(ephemeral));
        let path = webhook(interaction, "?wait=true");
        let body = self.hook(Method::Post, path, &payload, text.files, deadline);
        message_id(&body.await?)
    }

    /// Sends a follow-up answer.
    ///
    /// # Errors
    /// As for reads.
    pub async fn follow_up_answer(
        &self,
        interaction: &Interaction,
        answer: &Answer,
        deadline: Instant,
    ) -> Result<MessageId, RestError> {
        let payload = new_message(answer);
        let path = webhook(interaction, "?wait=true");
        let body = self.hook(Method::Post, path, &payload, &answer.files, deadline);
        message_id(&body.await?)
    }

    /// A request authorised by the interaction token in its path, not by ours.
    async fn hook(
        &self,
        method: Method,
        path: String,
        payload: &Value,
        files: &[FileUpload],
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let request = hook(method, path, payload, files)?;
        self.reader()
            .call(request, RateLimitPool::Aside, deadline)
            .await
    }
}

fn hook(
    method: Method,
    path: String,
    payload: &Value,
    files: &[FileUpload],
) -> Result<Request, RestError> {
    let builder = RequestBuilder::raw(method, path).use_authorization_token(false);
    with_body(builder, payload, files)
}

/// A path of the webhook that answers an interaction.
fn webhook(interaction: &Interaction, rest: &str) -> String {
    let token = interaction.token.expose();
    format!("webhooks/{}/{token}{rest}", interaction.application)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_that_discord_would_refuse_are_left_out() {
        let choice = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut choices = vec![
            choice(&"n".repeat(200), "1"),
            choice("long", &"v".repeat(101)),
            choice(" ", "2"),
            choice("blank", ""),
        ];
        choices.extend((0..40).map(|value| choice("name", &value.to_string())));
        let sent = Callback::Autocomplete(choices).payload();
        let sent = sent["data"]["choices"].as_array().unwrap();
        assert_eq!(sent.len(), MAX_CHOICES);
        assert_eq!(sent[0]["name"].as_str().unwrap().len(), MAX_CHOICE);
        assert_eq!(sent[1], json!({"name": "name", "value": "0"}));
    }

    #[test]
    fn an_update_leaves_nothing_of_before() {
        let sent = Callback::Update(Answer::for_all("gone")).payload();
        assert_eq!(
            (&sent["type"], &sent["data"]["components"]),
            (&json!(7), &json!([]))
        );
        assert_eq!(Callback::DeferredUpdate.payload(), json!({"type": 6}));
    }
}
