//! Lenient field readers for `deserialize_with`: what cannot be read costs
//! itself only.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Reads anything unreadable as the default.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Reads a list, skipping unreadable items.
pub(crate) fn each<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<Box<RawValue>> = lenient(deserializer)?;
    Ok(items
        .iter()
        .filter_map(|item| serde_json::from_str(item.get()).ok())
        .collect())
}
