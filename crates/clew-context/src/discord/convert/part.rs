//! Lenient reading: a part that does not parse is lost alone, the rest is kept.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

thread_local! {
    /// Whether the second attempt of [`read`] is running.
    static APART: Cell<bool> = const { Cell::new(false) };
}

/// Reads an object of [`Part`]s. Nearly always everything is as expected, and one
/// pass suffices; otherwise each part is first cut out as a slice of the text.
///
/// # Errors
/// The text is not such an object, even when read part by part.
pub(super) fn read<'a, T: Deserialize<'a>>(json: &'a str) -> serde_json::Result<T> {
    /// Ends the second attempt, however it turns out.
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            APART.set(false);
        }
    }
    serde_json::from_str(json).or_else(|_| {
        let _done = Done;
        APART.set(true);
        serde_json::from_str(json)
    })
}

/// A field of an object. If its type is wrong, the object stays readable; see [`read`].
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) enum Part<T> {
    /// Not in the object.
    #[default]
    Absent,
    /// `null`.
    Null,
    /// A value of the expected type.
    Read(T),
    /// A value of any other type.
    Unread,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Part<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if APART.get() {
            return <&'de RawValue>::deserialize(deserializer).map(Self::of);
        }
        let value = Option::<T>::deserialize(deserializer)?;
        Ok(value.map_or(Self::Null, Self::Read))
    }
}

impl<T> Part<T> {
    fn of<'a>(raw: &'a RawValue) -> Self
    where
        T: Deserialize<'a>,
    {
        match raw.get() {
            "null" => Self::Null,
            text => serde_json::from_str(text).map_or(Self::Unread, Self::Read),
        }
    }

    /// The value, if there is one.
    pub(super) fn get(self) -> Option<T> {
        match self {
            Self::Read(value) => Some(value),
            Self::Absent | Self::Null | Self::Unread => None,
        }
    }

    /// The value, if there is one; notes its name if it was unreadable.
    pub(super) fn noting(self, name: &'static str, unread: &mut Vec<&'static str>) -> Option<T> {
        if matches!(self, Self::Unread) {
            note(name, unread);
        }
        self.get()
    }

    /// Whether there is a value, readable or not.
    pub(super) fn is_given(&self) -> bool {
        matches!(self, Self::Read(_) | Self::Unread)
    }
}

impl<T> Part<List<T>> {
    /// The readable elements; notes the name if any element was not.
    pub(super) fn elements(self, name: &'static str, unread: &mut Vec<&'static str>) -> Vec<T> {
        let list = self.noting(name, unread).unwrap_or_default();
        if list.skipped {
            note(name, unread);
        }
        list.items
    }
}

/// Notes a name, once.
pub(super) fn note(name: &'static str, unread: &mut Vec<&'static str>) {
    if !unread.contains(&name) {
        unread.push(name);
    }
}

/// An array, read element by element.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct List<T> {
    /// The elements that could be read, in order.
    pub(super) items: Vec<T>,
    /// Whether some could not be read.
    pub(super) skipped: bool,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            skipped: false,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts = Vec::<Part<T>>::deserialize(deserializer)?;
        let skipped = parts.iter().any(|part| matches!(part, Part::Unread));
        let items = parts.into_iter().filter_map(Part::get).collect();
        Ok(Self { items, skipped })
    }
}

/// Accepts objects only: serde's derive would also accept an array with the fields in order.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// A string, borrowed if it contains no escapes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl From<Text<'_>> for Box<str> {
    fn from(text: Text<'_>) -> Self {
        text.0.into()
    }
}

/// A count: a whole number; a fraction is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count(pub(super) u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor).map(Count)
    }
}

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, not negative")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<u64, E> {
        // Larger floats are not exact, and no file is that large.
        if (0.0..9_007_199_254_740_992.0).contains(&number) {
            format!("{number:.0}").parse().map_err(E::custom)
        } else {
            Err(E::invalid_value(de::Unexpected::Float(number), &self))
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        text.parse()
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}
