//! Receipts as tests read them.

use clew::model::Receipt;
use clew_store::model::StoredReceipt;
use serde_json::{Value, json};

/// The body with its lists message by message, as nobody keeps them.
pub(crate) fn body(stored: &StoredReceipt) -> Value {
    let receipt: Receipt = serde_json::from_str(&stored.body).unwrap();
    let mut body: Value = stored.body.parse().unwrap();
    body["collectors"] = json!(receipt.collectors);
    body["tools"] = json!(receipt.tools);
    body["read"] = json!(receipt.read);
    body["prompt"]["shown"] = json!(receipt.prompt.shown);
    body["prompt"]["omitted"] = json!(receipt.prompt.omitted);
    body
}
