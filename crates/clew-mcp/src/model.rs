//! A server's tools, and what a call of one gave.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// `server__tool`, of letters that models take.
    pub name: Arc<str>,
    /// The server that has it.
    pub server: Arc<str>,
    /// Its name there.
    pub remote: Arc<str>,
    /// What it does, in its server's words.
    pub description: String,
    /// A JSON schema of its arguments, an object's.
    pub schema: Map<String, Value>,
    /// Whether its server says that it changes nothing: a stranger's hint.
    pub says_read_only: bool,
}

impl Tool {
    /// A hash of what its server says of it: another one may be another tool.
    pub fn fingerprint(&self) -> String {
        let said = format!(
            "{} {}",
            self.description,
            Value::Object(self.schema.clone())
        );
        fingerprint(&said)
    }
}

/// Half of a text's SHA-256, in hexadecimal.
pub fn fingerprint(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let half = hash.first_chunk().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(half))
}

/// What a look at a server found.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The protocol's version.
    pub version: String,
    /// The tools that are offered.
    pub tools: Vec<Tool>,
    /// The names of its other tools.
    pub others: Vec<String>,
    /// Why allowed tools are not offered.
    pub problems: Vec<String>,
    /// How long it took to connect and list.
    pub took: Duration,
}

/// What a call gave. It is a stranger's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Texts in their order, a blank line between them.
    pub text: String,
    /// Images.
    pub images: Vec<Image>,
    /// Whether the server says that the call failed; the text says why.
    pub is_error: bool,
    /// Whether the server asked people for input meanwhile, which was declined.
    pub asked_for_input: bool,
    /// What was not taken: a word for each kind, "audio", "image".
    pub left_out: Vec<&'static str>,
}

/// An image, as the server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its bytes in base64.
    pub base64: String,
    /// Its type, `image/png`.
    pub mime: String,
}

/// Why a call gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no connection at the moment.
    #[error("its server cannot be reached at the moment")]
    Unreachable,
    /// No tool of this name is offered.
    #[error("there is no such tool")]
    Unknown,
    /// The time was over; the server was told so.
    #[error("it took too long")]
    Timeout,
    /// The server refused the call, in its words.
    #[error("its server refused: {0}")]
    Refused(String),
}
