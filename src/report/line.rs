//! One line of telemetry, as far as the report reads it. Every field may be missing:
//! older versions did not write all of them.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

use crate::model::shortened;
use crate::plot::visible;

/// The most characters of a name: of a model, an agent, a reason.
const LONGEST_NAME: usize = 64;

/// A line. Its strings point into it if they hold no escapes; one `borrow` says so of all.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) ts: Text<'a>,
    pub(super) event: Text<'a>,
    /// None outside of servers.
    #[serde(default, deserialize_with = "id")]
    pub(super) guild_id: Option<u64>,
    #[serde(default, deserialize_with = "id")]
    pub(super) channel_id: Option<u64>,
    #[serde(default, deserialize_with = "id")]
    pub(super) user_id: Option<u64>,
    #[serde(default, deserialize_with = "turn_id")]
    pub(super) turn_id: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) detail: Detail<'a>,
}

/// The details of all events that the report reads: names are used alike in all of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Detail<'a> {
    #[serde(borrow)]
    pub(super) case: Option<Text<'a>>,
    pub(super) scene: Option<Text<'a>>,
    pub(super) cause: Option<Text<'a>>,
    pub(super) reason: Option<Text<'a>>,
    pub(super) outcome: Option<Text<'a>>,
    pub(super) end: Option<Text<'a>>,
    pub(super) agent: Option<Text<'a>>,
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
    pub(super) msgs: Option<Number>,
    pub(super) chars: Option<Number>,
    pub(super) omitted: Option<Omitted>,
    pub(super) caps: Option<Caps>,
}

/// Messages that caps left out of a block.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Omitted {
    pub(super) msgs: Option<Number>,
    pub(super) chars: Option<Number>,
    pub(super) lone_chars: Option<Number>,
}

/// The caps on a block's characters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Caps {
    pub(super) mem_max_chars: Option<Number>,
    pub(super) lone_max_chars: Option<Number>,
}

/// A string as it can be shown: see [`printable`]. (serde borrows a `Cow` only where it
/// is not inside an `Option`.)
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

/// A number of milliseconds, tokens or messages: finite and not negative.
#[derive(Debug, Clone, Copy)]
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

/// At most [`LONGEST_NAME`] characters, none of which a terminal obeys.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    let is_plain = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if text.len() <= LONGEST_NAME && is_plain(text) {
        return Cow::Borrowed(text);
    }
    let short = shortened(text, LONGEST_NAME);
    Cow::Owned(short.chars().map(visible).collect())
}

/// A string as it stands in the line.
#[derive(Deserialize)]
struct RawText<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let RawText(text) = RawText::deserialize(from)?;
        Ok(Self(match text {
            Cow::Borrowed(text) => printable(text),
            Cow::Owned(text) => Cow::Owned(printable(&text).into_owned()),
        }))
    }
}

/// A name, if there is one.
pub(super) fn maybe<'a>(text: Option<&'a Text<'_>>) -> Option<&'a str> {
    text.map(|text| &*text.0).filter(|text| !text.is_empty())
}

/// A name that older versions may not have written.
pub(super) fn always<'a>(text: Option<&'a Text<'_>>) -> &'a str {
    text.map_or("unknown", |text| &*text.0)
}

/// An id: a decimal number in a string.
fn id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    parsed(from, "an id", |text| text.parse().ok())
}

/// A turn's id: `t` and a hexadecimal number.
fn turn_id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    parsed(from, "a turn's id", |text| {
        let digits = text.strip_prefix('t').filter(|rest| !rest.starts_with('+'));
        u64::from_str_radix(digits?, 16).ok()
    })
}

fn parsed<'de, D: Deserializer<'de>>(
    from: D,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<u64>,
) -> Result<Option<u64>, D::Error> {
    let Some(text) = Option::<Text<'_>>::deserialize(from)? else {
        return Ok(None);
    };
    let unexpected = || D::Error::invalid_value(Unexpected::Str(&text.0), &expected);
    parse(&text.0).ok_or_else(unexpected).map(Some)
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
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
                Err(E::invalid_value(Unexpected::Float(number), &self))
            }
        }
        from.deserialize_f64(Counted)
    }
}
