//! How a receipt's lists of messages are kept: some ten bytes a message instead of two hundred.
//!
//! Ids and words stand once each. Of every message follow four numbers: how far its id is from
//! the one before, and which of those its channel, its author and its word are. They are written
//! as source maps write theirs ("Base64 VLQ" of ECMA-426), without separators.

use clew_context::model::{BlockPlace, ChannelId, MessageId, OmitReason, UserId};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{OmittedMessage, ShownMessage};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A message in such a list.
pub(super) trait Listed: Sized {
    /// What is said of it.
    type Word: Copy + PartialEq + Serialize + DeserializeOwned;

    fn parts(&self) -> (ChannelId, MessageId, UserId, Self::Word);

    fn of(channel: ChannelId, id: MessageId, author: UserId, word: Self::Word) -> Self;
}

impl Listed for ShownMessage {
    type Word = (BlockPlace, bool);

    fn parts(&self) -> (ChannelId, MessageId, UserId, Self::Word) {
        (self.channel, self.id, self.author, (self.place, self.cut))
    }

    fn of(
        channel: ChannelId,
        id: MessageId,
        author: UserId,
        (place, cut): (BlockPlace, bool),
    ) -> Self {
        Self {
            channel,
            id,
            author,
            place,
            cut,
        }
    }
}

impl Listed for OmittedMessage {
    type Word = OmitReason;

    fn parts(&self) -> (ChannelId, MessageId, UserId, OmitReason) {
        (self.channel, self.id, self.author, self.reason)
    }

    fn of(channel: ChannelId, id: MessageId, author: UserId, reason: OmitReason) -> Self {
        Self {
            channel,
            id,
            author,
            reason,
        }
    }
}

/// A list as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept<W> {
    channels: Vec<ChannelId>,
    authors: Vec<UserId>,
    words: Vec<W>,
    rows: String,
}

/// Or as it was kept up to 0.1: message by message.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form<T, W> {
    Kept(Kept<W>),
    Plain(Vec<T>),
}

pub(super) fn serialize<T: Listed, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    let mut kept = Kept {
        channels: Vec::new(),
        authors: Vec::new(),
        words: Vec::new(),
        rows: String::new(),
    };
    let mut before = 0;
    for message in list {
        let (channel, id, author, word) = message.parts();
        let distance = id.get().wrapping_sub(before).cast_signed();
        before = id.get();
        for number in [
            distance,
            place(&mut kept.channels, channel),
            place(&mut kept.authors, author),
            place(&mut kept.words, word),
        ] {
            write_number(&mut kept.rows, number);
        }
    }
    kept.serialize(to)
}

pub(super) fn deserialize<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: Listed + DeserializeOwned,
    D: Deserializer<'de>,
{
    match Form::<T, T::Word>::deserialize(from)? {
        Form::Plain(list) => Ok(list),
        Form::Kept(kept) => read(&kept).ok_or_else(|| D::Error::custom("a list that is broken")),
    }
}

fn read<T: Listed>(kept: &Kept<T::Word>) -> Option<Vec<T>> {
    let (mut digits, mut list, mut before) = (kept.rows.bytes(), Vec::new(), 0_u64);
    while let Some(distance) = read_number(&mut digits)? {
        before = before.wrapping_add(distance.cast_unsigned());
        let id = MessageId::new(before);
        let mut place = || usize::try_from(read_number(&mut digits)??).ok();
        list.push(T::of(
            *kept.channels.get(place()?)?,
            id,
            *kept.authors.get(place()?)?,
            *kept.words.get(place()?)?,
        ));
    }
    Some(list)
}

/// The place of a value among those that stand once each.
fn place<T: Copy + PartialEq>(values: &mut Vec<T>, value: T) -> i64 {
    let place = values.iter().position(|one| *one == value);
    let place = place.unwrap_or_else(|| {
        values.push(value);
        values.len() - 1
    });
    i64::try_from(place).unwrap_or(i64::MAX)
}

/// Five bits a digit, the lowest first; the sixth says that more follow. The lowest bit of all
/// says that the number is negative.
fn write_number(to: &mut String, number: i64) {
    let mut left = u128::from(number.unsigned_abs()) << 1 | u128::from(number < 0);
    loop {
        let more = if left > 31 { 32 } else { 0 };
        to.push(char::from(DIGITS[(left & 31) as usize | more]));
        left >>= 5;
        if more == 0 {
            return;
        }
    }
}

/// The next number; `Some(None)` at the end, `None` if it is broken.
#[expect(clippy::option_option, reason = "the end is no fault")]
fn read_number(digits: &mut impl Iterator<Item = u8>) -> Option<Option<i64>> {
    let (mut number, mut shift) = (0_u128, 0);
    loop {
        let Some(digit) = digits.next() else {
            return (shift == 0).then_some(None);
        };
        let digit = DIGITS.iter().position(|one| *one == digit)? as u128;
        if shift > 65 {
            return None;
        }
        number |= (digit & 31) << shift;
        shift += 5;
        if digit < 32 {
            let size = i64::try_from(number >> 1).ok();
            let is_negative = number & 1 == 1;
            // The lowest number has no positive counterpart.
            let lowest = (is_negative && number >> 1 == 1 << 63).then_some(i64::MIN);
            return size
                .map(|size| if is_negative { -size } else { size })
                .or(lowest)
                .map(Some);
        }
    }
}

#[cfg(test)]
mod tests {
    use clew_context::model::Tie;
    use proptest::prelude::*;

    use super::*;

    fn written(number: i64) -> String {
        let mut text = String::new();
        write_number(&mut text, number);
        text
    }

    /// The examples are those of source maps.
    #[test]
    fn numbers_are_written_as_in_source_maps() {
        for (number, text) in [
            (0, "A"),
            (1, "C"),
            (-1, "D"),
            (15, "e"),
            (16, "gB"),
            (1_000, "w+B"),
        ] {
            assert_eq!(written(number), text);
        }
    }

    proptest! {
        #[test]
        fn any_number_is_read_as_it_was_written(number: i64) {
            let text = written(number);
            let mut digits = text.bytes();
            prop_assert_eq!(read_number(&mut digits), Some(Some(number)));
            prop_assert_eq!(read_number(&mut digits), Some(None));
        }

        #[test]
        fn no_text_is_read_with_a_panic(text in "[A-Za-z0-9+/ -]{0,40}") {
            let mut digits = text.bytes();
            while let Some(Some(_)) = read_number(&mut digits) {}
        }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct List(#[serde(with = "super")] Vec<ShownMessage>);

    /// Messages of some minutes, by five people, as Discord numbers them.
    fn list(count: u64) -> Vec<ShownMessage> {
        let noise = |nth: u64| nth.wrapping_mul(2_654_435_761) % (1 << 22);
        let message = |nth: u64| ShownMessage {
            channel: ChannelId::new(1_575_841_210_994_524_167),
            id: MessageId::new(1_575_841_210_994_524_167 + ((nth * 41_000) << 22) + noise(nth)),
            author: UserId::new(1_575_841_210_994_524_100 + nth % 5),
            place: BlockPlace::History,
            cut: nth == 3,
        };
        (0..count).map(message).collect()
    }

    #[test]
    fn a_list_is_read_as_it_was_and_is_small() {
        let mut messages = list(41);
        messages[0].place = BlockPlace::Conversation(Tie::Reply);
        let kept = serde_json::to_string(&List(messages)).unwrap();
        let read: List = serde_json::from_str(&kept).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), kept);
        assert_eq!(read.0[1..], list(41)[1..]);
        assert!(kept.len() < 750, "{} {kept}", kept.len());
    }

    #[test]
    fn a_list_of_before_is_read() {
        let messages = list(2);
        let plain = serde_json::to_string(&messages).unwrap();
        assert!(plain.starts_with("[{"));
        let read: List = serde_json::from_str(&plain).unwrap();
        assert_eq!(read.0, messages);
    }

    #[test]
    fn a_broken_list_is_an_error() {
        let kept = serde_json::to_string(&List(list(2))).unwrap();
        let rows = kept.find("\"rows\":\"").unwrap() + 8;
        for broken in ["", "/"] {
            let cut = format!("{}{broken}\"}}", &kept[..kept.len() - 3]);
            assert!(serde_json::from_str::<List>(&cut).is_err(), "{cut}");
        }
        let empty = format!("{}\"}}", &kept[..rows]);
        assert_eq!(serde_json::from_str::<List>(&empty).unwrap().0, []);
    }
}
