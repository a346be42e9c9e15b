//! One line of telemetry, as far as the report reads it. Every field may be missing:
//! older versions did not write all of them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, de};

/// A line. Its strings point into it if they hold no escapes.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) ts: Text<'a>,
    #[serde(borrow)]
    pub(super) event: Text<'a>,
    pub(super) guild_id: Option<Id>,
    pub(super) channel_id: Option<Id>,
    pub(super) user_id: Option<Id>,
    pub(super) turn_id: Option<Turn>,
    #[serde(borrow)]
    pub(super) detail: Option<Detail<'a>>,
}

/// The details of all events that the report reads: names are used alike in all of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Detail<'a> {
    #[serde(borrow)]
    pub(super) case: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) scene: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) cause: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) outcome: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) end: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) agent: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    pub(super) ms: Option<Number>,
    pub(super) ms_first: Option<Number>,
    pub(super) ms_to_model: Option<Number>,
    pub(super) queued_ms: Option<Number>,
    pub(super) prompt_tokens: Option<Number>,
    pub(super) completion_tokens: Option<Number>,
    pub(super) server: Option<Number>,
    pub(super) kept: Option<Number>,
    pub(super) dropped: Option<Number>,
    pub(super) shortened: Option<Number>,
    pub(super) fetches: Option<Number>,
    pub(super) count: Option<Number>,
}

/// A string. (serde borrows a `Cow` only where it is not inside an `Option`.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

/// An id: a decimal number in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(pub(super) u64);

/// A turn's id: `t` and a hexadecimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(pub(super) u64);

/// A number of milliseconds, tokens or messages: finite and not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Number(f64);

impl Number {
    /// As a count; what is beyond 64 bits counts as the most that fits.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and it is not negative"
    )]
    pub(super) fn whole(self) -> u64 {
        self.0 as u64
    }

    /// Milliseconds in tenths.
    pub(super) fn tenths(self) -> u64 {
        Self((self.0 * 10.0).round()).whole()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> Visitor<'de> for Borrowing {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        from.deserialize_str(Borrowing)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(from)?;
        let id = text.0.parse().map_err(|_| unexpected(&text, &"an id"))?;
        Ok(Self(id))
    }
}

impl<'de> Deserialize<'de> for Turn {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(from)?;
        let digits = text
            .0
            .strip_prefix('t')
            .filter(|rest| !rest.starts_with('+'));
        let id = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        id.map(Self)
            .ok_or_else(|| unexpected(&text, &"a turn's id"))
    }
}

fn unexpected<E: Error>(text: &Text<'_>, expected: &dyn de::Expected) -> E {
    E::invalid_value(de::Unexpected::Str(&text.0), expected)
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Counted;
        impl Visitor<'_> for Counted {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number that is not negative")
            }

            #[expect(
                clippy::cast_precision_loss,
                reason = "no count of ours is beyond 2^53"
            )]
            fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
                if number.is_finite() && number >= 0.0 {
                    return Ok(Number(number));
                }
                Err(E::invalid_value(de::Unexpected::Float(number), &self))
            }
        }
        from.deserialize_f64(Counted)
    }
}
