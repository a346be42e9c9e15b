//! Reads and writes JSON objects field by field: errors can name the field that they are about.

use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use clew_context::model::UnixMillis;

/// Why a JSON text was rejected. Holds none of its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// It is not JSON.
    #[error("no valid JSON at line {line} column {column}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// A required field is missing.
    #[error("`{0}` is missing")]
    Missing(String),
    /// A field has an invalid value.
    #[error("`{field}` is not {expected}")]
    Unfit {
        /// Its name, prefixed with those of the enclosing fields.
        field: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// The fields of one object; unread ones are ignored.
pub(crate) struct Fields {
    /// Prefix for field names in errors.
    within: String,
    map: Map<String, Value>,
}

/// A function that reads a value, and what it expects.
pub(crate) type Reader<T> = (fn(&Value) -> Option<T>, &'static str);

impl Fields {
    /// Parses a whole text.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, FormError> {
        let value = serde_json::from_slice(text).map_err(|error| FormError::Syntax {
            line: error.line(),
            column: error.column(),
        })?;
        Self::of(value, "the text", String::new())
    }

    fn of(value: Value, name: &str, within: String) -> Result<Self, FormError> {
        match value {
            Value::Object(map) => Ok(Self { within, map }),
            _ => Err(FormError::Unfit {
                field: name.to_owned(),
                expected: "an object",
            }),
        }
    }

    /// Reads a required field.
    pub(crate) fn need<T>(&self, name: &str, read: Reader<T>) -> Result<T, FormError> {
        let found = self.maybe(name, read)?;
        found.ok_or_else(|| FormError::Missing(self.name(name)))
    }

    /// Reads a field that may be absent or null.
    pub(crate) fn maybe<T>(
        &self,
        name: &str,
        (read, expected): Reader<T>,
    ) -> Result<Option<T>, FormError> {
        let value = match self.map.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        let unfit = || FormError::Unfit {
            field: self.name(name),
            expected,
        };
        read(value).map(Some).ok_or_else(unfit)
    }

    /// Reads a required list of objects: one that is absent may have been lost.
    pub(crate) fn objects(&mut self, name: &str) -> Result<Vec<Self>, FormError> {
        let values = match self.map.remove(name) {
            None | Some(Value::Null) => return Err(FormError::Missing(self.name(name))),
            Some(Value::Array(values)) => values,
            Some(_) => {
                return Err(FormError::Unfit {
                    field: self.name(name),
                    expected: "a list",
                });
            }
        };
        let each = values.into_iter().enumerate().map(|(at, value)| {
            let name = format!("{}[{at}]", self.name(name));
            Self::of(value, &name, format!("{name}."))
        });
        each.collect()
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.within)
    }
}

/// A text.
pub(crate) const TEXT: Reader<String> = (|value| value.as_str().map(str::to_owned), "a text");
/// A non-negative whole number.
pub(crate) const NUMBER: Reader<u64> = (Value::as_u64, "a whole number");
/// A boolean.
pub(crate) const SWITCH: Reader<bool> = (Value::as_bool, "true or false");
/// A time: RFC 3339, or milliseconds since 1970.
pub(crate) const TIME: Reader<UnixMillis> = (read_time, "a time (RFC 3339 or milliseconds)");

/// A Discord id, as text or number.
pub(crate) const fn id<T: DeserializeOwned>() -> Reader<T> {
    (|value| T::deserialize(value).ok(), "a Discord id")
}

/// Discord ids.
pub(crate) const fn ids<C: DeserializeOwned>() -> Reader<C> {
    (|value| C::deserialize(value).ok(), "a list of Discord ids")
}

/// A text that is parsed further.
pub(crate) const fn parsed<T: FromStr>(expected: &'static str) -> Reader<T> {
    (|value| value.as_str()?.parse().ok(), expected)
}

fn read_time(value: &Value) -> Option<UnixMillis> {
    match value {
        Value::String(text) => UnixMillis::parse(text),
        value => value.as_i64().map(UnixMillis),
    }
}

/// What is written as an object.
pub(crate) trait Form {
    /// Writes its fields, in this order.
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error>;
}

/// An object that is being written.
pub(crate) struct Object<M>(M);

impl<M: SerializeMap> Object<M> {
    /// Writes a field.
    pub(crate) fn field(&mut self, name: &str, value: impl Serialize) -> Result<(), M::Error> {
        self.0.serialize_entry(name, &value)
    }

    /// Writes a field if there is a value.
    pub(crate) fn maybe(
        &mut self,
        name: &str,
        value: Option<impl Serialize>,
    ) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.field(name, value))
    }

    /// Writes a list unless it is empty.
    pub(crate) fn list(&mut self, name: &str, values: &[impl Serialize]) -> Result<(), M::Error> {
        self.maybe(name, (!values.is_empty()).then_some(values))
    }
}

/// Something as its object.
pub(crate) struct Written<'a, F>(pub(crate) &'a F);

impl<F: Form> Serialize for Written<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object(serializer.serialize_map(None)?);
        self.0.write(&mut object)?;
        object.0.end()
    }
}

/// A time as RFC 3339 text, to the millisecond; outside RFC 3339's years, as a
/// number of milliseconds.
pub(crate) struct Time(pub(crate) UnixMillis);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match jiff::Timestamp::from_millisecond(self.0.0) {
            Ok(time) => serializer.collect_str(&time),
            Err(_) => serializer.serialize_i64(self.0.0),
        }
    }
}
