//! Posting to Discord: answers, edits, typing, reactions, and answers to
//! interactions.
//!
//! Nothing pings but a reply that is to ping whom it answers. A new message carries a nonce
//! that Discord enforces, so a POST whose reply was lost can be repeated
//! without posting twice.

mod answer;
mod direct;
mod interaction;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use twilight_http::request::channel::reaction::RequestReactionType;
use twilight_http::request::{Form, Method, Request, RequestBuilder};

pub use interaction::Callback;

use super::rest::{RateLimitPool, Rest, build, malformed};
use crate::model::AnswerButton;
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, Fallback, MessageFlags, MessageId};

/// Discord's limit for a nonce, in characters (Create Message, `nonce`).
const MAX_NONCE_CHARS: usize = 25;
/// Links show no previews. Also on edits, of which this is the only flag (Edit Message, `flags`).
const FLAGS: MessageFlags = MessageFlags::SUPPRESS_EMBEDS;
/// Waits before the first and the second retry: a dropped connection recovers
/// quickly, a server error takes longer.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// A file to attach: name and content.
pub type FileUpload = (String, Vec<u8>);

/// A message to post.
#[derive(Debug, Clone, Default)]
pub struct NewMessage {
    /// The text, up to 2,000 characters.
    pub content: String,
    /// The message it replies to.
    pub reply_to: Option<MessageId>,
    /// Whether the reply pings the author of that message.
    pub ping_replied: bool,
    /// Up to 25 characters: the same for every attempt at this message,
    /// different for every other.
    pub nonce: String,
    /// Files to attach.
    pub files: Vec<FileUpload>,
    /// Below the text, five a row; no two may have the same id.
    pub buttons: Vec<AnswerButton>,
}

/// A text that pings nobody.
#[derive(Debug, Clone, Copy)]
pub struct MessageText<'a> {
    /// Up to 2,000 characters.
    pub content: &'a str,
    /// Files to attach.
    pub files: &'a [FileUpload],
    /// Below the text; with none, an edit leaves those that are there.
    pub buttons: Option<&'a [AnswerButton]>,
    /// An edit takes away files and buttons that are not given here.
    pub replaces: bool,
}

impl<'a> MessageText<'a> {
    /// Text without files.
    pub const fn plain(content: &'a str) -> Self {
        Self {
            content,
            files: &[],
            buttons: None,
            replaces: false,
        }
    }

    /// The body of a new message, or of an edit; Discord keeps fields that an edit does not
    /// contain.
    fn body(&self) -> Value {
        let mut payload = json!({
            "content": self.content,
            "flags": FLAGS.0,
            "allowed_mentions": {"parse": []},
        });
        if !self.files.is_empty() || self.replaces {
            payload["attachments"] = answer::attachments(self.files);
        }
        if let Some(buttons) = self.buttons.or(self.replaces.then_some(&[])) {
            payload["components"] = answer::rows(buttons);
        }
        payload
    }
}

/// A message that was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedMessage {
    /// Its id.
    pub id: MessageId,
    /// Set if Discord refused the reply reference and it was posted without
    /// one.
    pub reference_dropped: Option<Fallback>,
    /// Whether it says something else: it was posted before, under the same nonce.
    pub is_other_text: bool,
}

impl Rest {
    /// Posts a message.
    ///
    /// If the reference is refused (160002, 50035 on `message_reference`,
    /// 10008), the message is posted without it. Server errors and broken
    /// connections are retried twice.
    ///
    /// # Errors
    /// [`Fallback::Archived`] and [`Fallback::Locked`] for threads,
    /// [`Fallback::Forbidden`] without permission, otherwise as for reads.
    pub async fn create_message(
        &self,
        channel: ChannelId,
        message: &NewMessage,
        deadline: Instant,
    ) -> Result<CreatedMessage, RestError> {
        let files = &message.files;
        let payload_to = |reply_to| payload(message, reply_to);
        let payload = payload_to(message.reply_to);
        let first = self.put(channel, None, &payload, files, deadline).await;
        let refused = match first {
            Err(error) if message.reply_to.is_some() => dropped_reference(&error),
            _ => None,
        };
        let (body, reference_dropped) = match refused {
            Some(reason) => {
                let alone = payload_to(None);
                let body = self.put(channel, None, &alone, files, deadline).await?;
                (body, Some(reason))
            }
            None => (first?, None),
        };
        let posted = posted(&body)?;
        let is_same = |text: String| text.trim() == message.content.trim();
        Ok(CreatedMessage {
            id: posted.id,
            reference_dropped,
            is_other_text: !posted.content.is_none_or(is_same),
        })
    }

    /// Posts a body with a nonce, or changes a message of ours.
    async fn put(
        &self,
        channel: ChannelId,
        message: Option<MessageId>,
        payload: &Value,
        files: &[FileUpload],
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let path = format!("channels/{channel}/messages");
        let (method, path) = match message {
            Some(id) => (Method::Patch, format!("{path}/{id}")),
            None => (Method::Post, path),
        };
        let make = || with_body(RequestBuilder::raw(method, path.clone()), payload, files);
        self.repeat(make, RateLimitPool::Main, deadline).await
    }

    /// Replaces a message's text, and may attach a file; pings nobody.
    ///
    /// # Errors
    /// As `create_message`.
    pub async fn edit_message(
        &self,
        channel: ChannelId,
        id: MessageId,
        text: &MessageText<'_>,
        deadline: Instant,
    ) -> Result<(), RestError> {
        let (body, files) = (text.body(), text.files);
        let changed = self.put(channel, Some(id), &body, files, deadline);
        changed.await.map(drop)
    }

    /// Replaces the buttons under a message of ours, and nothing else.
    ///
    /// # Errors
    /// As `create_message`.
    pub async fn set_buttons(
        &self,
        channel: ChannelId,
        id: MessageId,
        buttons: &[AnswerButton],
        deadline: Instant,
    ) -> Result<(), RestError> {
        let payload = answer::only_buttons(buttons);
        let changed = self.put(channel, Some(id), &payload, &[], deadline);
        changed.await.map(drop)
    }

    /// Deletes a message; it is no error if it is already gone.
    ///
    /// # Errors
    /// As `create_message`.
    pub async fn delete_message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> Result<(), RestError> {
        let path = format!("channels/{channel}/messages/{id}");
        let make = || build(RequestBuilder::raw(Method::Delete, path.clone()));
        match self.repeat(make, RateLimitPool::Main, deadline).await {
            Err(error) if error.reason != Fallback::Deleted => Err(error),
            _ => Ok(()),
        }
    }

    /// Reacts with a Unicode emoji.
    ///
    /// # Errors
    /// As for reads.
    pub async fn add_reaction(
        &self,
        channel: ChannelId,
        id: MessageId,
        emoji: &str,
        deadline: Instant,
    ) -> Result<(), RestError> {
        let emoji = RequestReactionType::Unicode { name: emoji };
        let path = format!("channels/{channel}/messages/{id}/reactions/{emoji}/@me");
        self.aside(Method::Put, path, deadline).await
    }

    /// Shows the typing indicator, for ten seconds or until we post.
    ///
    /// # Errors
    /// As for reads.
    pub async fn typing(&self, channel: ChannelId, deadline: Instant) -> Result<(), RestError> {
        let path = format!("channels/{channel}/typing");
        self.aside(Method::Post, path, deadline).await
    }

    /// Sends a request without a body once.
    async fn aside(
        &self,
        method: Method,
        path: String,
        deadline: Instant,
    ) -> Result<(), RestError> {
        let request = build(RequestBuilder::raw(method, path))?;
        let pool = RateLimitPool::Aside;
        self.reader().call(request, pool, deadline).await.map(drop)
    }

    /// Sends a request that is safe to repeat, until it is answered, refused,
    /// or [`BACK_OFF`] is used up.
    async fn repeat(
        &self,
        make: impl Fn() -> Result<Request, RestError>,
        pool: RateLimitPool,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let mut back_off = BACK_OFF.into_iter();
        loop {
            // Boxed, since turns hold what posts for them.
            let sent = Box::pin(self.reader().call(make()?, pool, deadline));
            let error = match sent.await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            match back_off.next() {
                Some(wait) if error.transient && Instant::now() + wait < deadline => {
                    sleep(wait).await;
                }
                _ => return Err(error),
            }
        }
    }
}

/// Why a message has to be posted without its reference, if it has.
fn dropped_reference(error: &RestError) -> Option<Fallback> {
    match error.reason {
        Fallback::Deleted => Some(Fallback::Deleted),
        Fallback::Forbidden if error.about_reference => Some(Fallback::Forbidden),
        // 50035 "Unknown message": the message to reply to is gone.
        _ if error.about_reference => Some(Fallback::Deleted),
        _ => None,
    }
}

/// Create Message's body. `allowed_mentions` is always complete: Discord parses
/// the text for any kind left out.
fn payload(message: &NewMessage, reply_to: Option<MessageId>) -> Value {
    let text = MessageText {
        content: &message.content,
        files: &message.files,
        buttons: (!message.buttons.is_empty()).then_some(&*message.buttons),
        replaces: false,
    };
    let mut payload = text.body();
    payload["allowed_mentions"]["users"] = json!([]);
    payload["allowed_mentions"]["replied_user"] = json!(message.ping_replied && reply_to.is_some());
    enforce_nonce(&mut payload, &message.nonce);
    if let Some(id) = reply_to {
        payload["message_reference"] = json!({"message_id": id});
    }
    payload
}

/// Makes Discord create the message once, however often we send it.
fn enforce_nonce(payload: &mut Value, nonce: &str) {
    let nonce: String = nonce.chars().take(MAX_NONCE_CHARS).collect();
    if !nonce.is_empty() {
        payload["nonce"] = json!(nonce);
        payload["enforce_nonce"] = json!(true);
    }
}

fn with_body(
    builder: RequestBuilder,
    payload: &Value,
    files: &[FileUpload],
) -> Result<Request, RestError> {
    let json = payload.to_string().into_bytes();
    if files.is_empty() {
        return build(builder.body(json));
    }
    let form = Form::new().json_part(b"payload_json", &json);
    let files = files.iter().enumerate();
    let form = files.fold(form, |form, (index, (name, bytes))| {
        let part = format!("files[{index}]");
        form.file_part(part.as_bytes(), header_safe(name).as_bytes(), bytes)
    });
    build(builder.form(form))
}

/// A file name that cannot break out of its quotes in a header.
fn header_safe(name: &str) -> String {
    let unsafe_char = |c: char| c.is_control() || matches!(c, '"' | '\\');
    name.replace(unsafe_char, "_")
}

/// A message as Discord answers with it.
#[derive(serde::Deserialize)]
struct Posted {
    id: MessageId,
    content: Option<String>,
}

fn posted(body: &[u8]) -> Result<Posted, RestError> {
    serde_json::from_slice(body).map_err(|_| malformed())
}

/// The message id in a response body.
fn message_id(body: &[u8]) -> Result<MessageId, RestError> {
    posted(body).map(|posted| posted.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ButtonStyle;

    #[test]
    fn nothing_pings_unasked() {
        let message = NewMessage {
            content: "@everyone <@5>".to_owned(),
            ping_replied: true,
            nonce: "n".repeat(40),
            ..NewMessage::default()
        };
        let expected = json!({"parse": [], "users": [], "replied_user": false});
        assert_eq!(payload(&message, None)["allowed_mentions"], expected);
        let sent = payload(&message, Some(MessageId::new(9)));
        let expected = json!({"parse": [], "users": [], "replied_user": true});
        assert_eq!(sent["allowed_mentions"], expected);
        assert_eq!(sent["message_reference"], json!({"message_id": "9"}));
        assert_eq!(sent["nonce"].as_str().unwrap().len(), MAX_NONCE_CHARS);
        assert_eq!(sent["enforce_nonce"], json!(true));
    }

    #[test]
    fn links_show_no_previews() {
        assert_eq!(payload(&NewMessage::default(), None)["flags"], 4);
        assert_eq!(MessageText::plain("https://example.org").body()["flags"], 4);
    }

    #[test]
    fn buttons_are_named_only_where_there_are_some() {
        let mut message = NewMessage::default();
        assert!(payload(&message, None).get("components").is_none());
        assert!(MessageText::plain("").body().get("components").is_none());
        message.buttons = vec![AnswerButton {
            label: "Stop".to_owned(),
            style: ButtonStyle::Danger,
            custom_id: "stop:1".to_owned(),
        }];
        let rows = json!([{"type": 1, "components": [
            {"type": 2, "style": 4, "label": "Stop", "custom_id": "stop:1"},
        ]}]);
        assert_eq!(payload(&message, None)["components"], rows);
        let taken_away = MessageText {
            buttons: Some(&[]),
            ..MessageText::plain("")
        };
        assert_eq!(taken_away.body()["components"], json!([]));
        let all_anew = MessageText {
            replaces: true,
            ..MessageText::plain("")
        };
        let body = all_anew.body();
        assert_eq!(
            (&body["components"], &body["attachments"]),
            (&json!([]), &json!([]))
        );
    }

    #[test]
    fn names_stay_in_their_places() {
        assert_eq!(header_safe("a\"\r\nX: y.md"), "a___X: y.md");
    }
}
