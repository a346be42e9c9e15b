//! Reads and writes JSON objects field by field: errors can name the field that they are about.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::model::{AgentName, FactId, ReceiptPerson, RoleLimits, Scope, SnapshotId, StoredRole};
use clew_context::model::{
    ChannelId, ContentSource, GuildId, LinkContext, LoneContext, MessageId, PlaceContext,
    ReplyTarget, RoleId, TurnId, UnixMillis, UserId,
};

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
    pub(crate) fn need<T: Plain>(&self, name: &str) -> Result<T, FormError> {
        let found = self.maybe(name)?;
        found.ok_or_else(|| FormError::Missing(self.name(name)))
    }

    /// Reads a field that may be absent or null.
    pub(crate) fn maybe<T: Plain>(&self, name: &str) -> Result<Option<T>, FormError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let unfit = || self.unfit(name, T::EXPECTED);
                T::read(value).map(Some).ok_or_else(unfit)
            }
        }
    }

    /// The error for a field that is not what it should be.
    pub(crate) fn unfit(&self, name: &str, expected: &'static str) -> FormError {
        FormError::Unfit {
            field: self.name(name),
            expected,
        }
    }

    /// Reads a required list of objects: one that is absent may have been lost.
    pub(crate) fn objects(&mut self, name: &str) -> Result<Vec<Self>, FormError> {
        let values = match self.map.remove(name) {
            None | Some(Value::Null) => return Err(FormError::Missing(self.name(name))),
            Some(Value::Array(values)) => values,
            Some(_) => return Err(self.unfit(name, "a list")),
        };
        let each = values.into_iter().enumerate().map(|(at, value)| {
            let name = format!("{}[{at}]", self.name(name));
            Self::of(value, &name, format!("{name}."))
        });
        each.collect()
    }

    /// The same, as what they are the objects of.
    pub(crate) fn forms<T: Form>(&mut self, name: &str) -> Result<Vec<T>, FormError> {
        self.objects(name)?.iter_mut().map(T::read).collect()
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.within)
    }
}

/// A value of a field.
pub(crate) trait Plain: Sized {
    /// What it should be.
    const EXPECTED: &'static str;

    fn written(&self) -> impl Serialize;

    /// What was written.
    fn read(value: &Value) -> Option<Self>;
}

/// Implements [`Plain`] by what is written of a value, and how that is read.
macro_rules! plain {
    ($($expected:literal: $($kind:ty),+ = |$one:ident| $written:expr, |$value:ident| $read:expr;)+) => {
        $($(
            impl Plain for $kind {
                const EXPECTED: &'static str = $expected;

                fn written(&self) -> impl Serialize {
                    let $one = self;
                    $written
                }

                fn read($value: &Value) -> Option<Self> {
                    $read
                }
            }
        )+)+
    };
}

plain! {
    "a text": String = |text| text, |value| Self::deserialize(value).ok();
    "a whole number": u32, u64, usize = |number| number, |value| Self::deserialize(value).ok();
    "true or false": bool = |flag| flag, |value| value.as_bool();
    // As text or number.
    "a Discord id": ChannelId, GuildId, MessageId, UserId =
        |id| id, |value| Self::deserialize(value).ok();
    "a list of Discord ids": Vec<MessageId>, BTreeSet<ChannelId>, BTreeSet<UserId> =
        |ids| ids, |value| Self::deserialize(value).ok();
    "a list of messages and channels": Vec<ContentSource> =
        |sources| sources, |value| Self::deserialize(value).ok();
    "a list of servers and authors": BTreeSet<ReceiptPerson> =
        |people| people, |value| Self::deserialize(value).ok();
    "`user`, `assistant`, `tool_use` or `tool_result`": StoredRole =
        |role| role, |value| Self::deserialize(value).ok();
    "`off`, `recent` or `conversation`": LoneContext =
        |context| context, |value| Self::deserialize(value).ok();
    "a Discord id each with `off`, `recent` or `conversation`": BTreeMap<ChannelId, LoneContext> =
        |contexts| contexts, |value| Self::deserialize(value).ok();
    "`off`, `topic` or `topic,pins`": PlaceContext =
        |context| context, |value| Self::deserialize(value).ok();
    "a Discord id each with limits": BTreeMap<RoleId, RoleLimits> =
        |limits| limits, |value| Self::deserialize(value).ok();
    "the key of a conversation": Scope = |scope| scope.to_string(), |value| parsed(value);
    "the name of an agent": AgentName = |name| name.to_string(), |value| parsed(value);
    "the id of a snapshot": SnapshotId = |id| id.to_string(), |value| parsed(value);
    "the id of a fact": FactId = |id| id.to_string(), |value| parsed(value);
    "two numbers such as `3,1`": LinkContext =
        |context| context.to_string(), |value| Self::parse(value.as_str()?);
    // `t` and a hexadecimal number.
    "the id of a turn": TurnId = |turn| turn.to_string(), |value| {
        let digits = value.as_str()?.strip_prefix('t')?;
        let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(digits, 16).ok()?;
        valid.then_some(Self(number))
    };
    "a time (RFC 3339 or milliseconds)": UnixMillis = |time| Time(*time), |value| match value {
        Value::String(text) => Self::parse(text),
        value => value.as_i64().map(Self),
    };
    "`newest` or `trigger`": ReplyTarget = |target| match target {
        ReplyTarget::Newest => "newest",
        ReplyTarget::Trigger => "trigger",
    }, |value| match value.as_str()? {
        "newest" => Some(Self::Newest),
        "trigger" => Some(Self::Trigger),
        _ => None,
    };
}

fn parsed<T: FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}

/// A field of an object: a value, which it needs, or one that may be absent.
pub(crate) trait Field: Sized {
    /// Writes it.
    fn put<M: SerializeMap>(&self, name: &str, object: &mut Object<M>) -> Result<(), M::Error>;

    /// Reads it.
    fn take(name: &str, fields: &mut Fields) -> Result<Self, FormError>;
}

impl<T: Plain> Field for T {
    fn put<M: SerializeMap>(&self, name: &str, object: &mut Object<M>) -> Result<(), M::Error> {
        object.field(name, self.written())
    }

    fn take(name: &str, fields: &mut Fields) -> Result<Self, FormError> {
        fields.need(name)
    }
}

impl<T: Plain> Field for Option<T> {
    fn put<M: SerializeMap>(&self, name: &str, object: &mut Object<M>) -> Result<(), M::Error> {
        self.as_ref()
            .map_or(Ok(()), |value| value.put(name, object))
    }

    fn take(name: &str, fields: &mut Fields) -> Result<Self, FormError> {
        fields.maybe(name)
    }
}

/// What is written as an object.
pub(crate) trait Form: Sized {
    /// Writes its fields, in this order.
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error>;

    fn read(fields: &mut Fields) -> Result<Self, FormError>;
}

/// Implements [`Form`] by the fields in the order they are written, each with its name, if that is
/// another than the field's, and how it is kept: `list` is left out if it is empty, `whole` is
/// not, and read as empty if it is absent; `objects` are forms of their own; of `flat` the fields
/// stand among the others.
macro_rules! form {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@write [list] $value:expr, $name:expr, $object:ident) => {
        if !$value.is_empty() {
            $value.put($name, $object)?;
        }
    };
    (@write [flat] $value:expr, $name:expr, $object:ident) => { $value.write($object)?; };
    (@write [objects] $value:expr, $name:expr, $object:ident) => {
        $object.field($name, $value.iter().map(Written).collect::<Vec<_>>())?;
    };
    (@write [$(whole)?] $value:expr, $name:expr, $object:ident) => { $value.put($name, $object)?; };
    (@read [] $name:expr, $fields:ident) => { Field::take($name, $fields)? };
    (@read [objects] $name:expr, $fields:ident) => { $fields.forms($name)? };
    (@read [flat] $name:expr, $fields:ident) => { Form::read($fields)? };
    (@read [$how:ident] $name:expr, $fields:ident) => { $fields.maybe($name)?.unwrap_or_default() };
    ($($form:ident { $($field:ident $(= $name:literal)? $(: $how:ident)?),+ $(,)? })+) => {$(
        impl Form for $form {
            fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
                $(form!(@write [$($how)?] self.$field, form!(@name $field $($name)?), object);)+
                Ok(())
            }

            fn read(fields: &mut Fields) -> Result<Self, FormError> {
                Ok(Self {
                    $($field: form!(@read [$($how)?] form!(@name $field $($name)?), fields),)+
                })
            }
        }
    )+};
}
pub(crate) use form;

/// An object that is being written.
pub(crate) struct Object<M>(M);

impl<M: SerializeMap> Object<M> {
    /// An object without fields yet.
    pub(crate) fn new<S: Serializer<SerializeMap = M>>(serializer: S) -> Result<Self, S::Error> {
        serializer.serialize_map(None).map(Self)
    }

    /// It has all its fields.
    pub(crate) fn end(self) -> Result<M::Ok, M::Error> {
        self.0.end()
    }

    /// Writes a field.
    pub(crate) fn field(&mut self, name: &str, value: impl Serialize) -> Result<(), M::Error> {
        self.0.serialize_entry(name, &value)
    }

    /// Writes a list unless it is empty.
    pub(crate) fn list(&mut self, name: &str, values: &[impl Serialize]) -> Result<(), M::Error> {
        if values.is_empty() {
            return Ok(());
        }
        self.field(name, values)
    }
}

/// Something as its object.
pub(crate) struct Written<'a, F>(pub(crate) &'a F);

impl<F: Form> Serialize for Written<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer)?;
        self.0.write(&mut object)?;
        object.end()
    }
}

/// A time as RFC 3339 text, to the millisecond; outside RFC 3339's years, as a
/// number of milliseconds.
struct Time(UnixMillis);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match jiff::Timestamp::from_millisecond(self.0.0) {
            Ok(time) => serializer.collect_str(&time),
            Err(_) => serializer.serialize_i64(self.0.0),
        }
    }
}
