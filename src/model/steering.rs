//! The buttons under answers that steer them: what each carries in its `custom_id`, so that it
//! works after a restart.

use std::fmt;
use std::str::FromStr;

use clew_context::model::{Cause, InteractionId, MessageId, UserId};

/// Ends an answer that grows; the question's id follows.
pub const STOP_ANSWER: &str = "stop-answer:";
/// What a `custom_id` holds, in characters (Discord's reference, "Custom ID").
const MOST_CHARS: usize = 100;

/// The answer to a posted question that is to be given anew. Discord passes on presses of buttons
/// that stand there only, so that the messages are those of the answer.
#[derive(Debug, Clone)]
pub struct Regenerate {
    pub question: MessageId,
    /// Why the question was one; a posted question's.
    pub cause: Cause,
    /// The answer's messages before the one with the button, oldest first.
    pub earlier: Vec<MessageId>,
}

/// An answer that is given anew, in the messages of the one before.
#[derive(Debug, Clone)]
pub struct Again {
    /// The press of the button.
    pub press: InteractionId,
    /// Oldest first.
    pub messages: Vec<MessageId>,
}

/// The answer in the message with the button, which is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continue {
    /// What it answers; none for a command's.
    pub question: Option<MessageId>,
    pub asker: UserId,
}

impl Regenerate {
    /// Its `custom_id` up to the argument.
    pub const ID: &'static str = "regenerate:";

    /// Its `custom_id`; none if it has more messages than one can name.
    pub fn custom_id(&self) -> Option<String> {
        let id = format!("{}{self}", Self::ID);
        (id.len() <= MOST_CHARS).then_some(id)
    }
}

impl Continue {
    /// Its `custom_id` up to the argument.
    pub const ID: &'static str = "continue:";
}

/// A letter for the cause, then in hexadecimal the question's id and how far those of the
/// messages are above it.
impl fmt::Display for Regenerate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match self.cause {
            Cause::Direct => 'd',
            Cause::AutoReply => 'a',
            _ => 'm',
        };
        let question = self.question.get();
        write!(f, "{cause}{question:x}")?;
        let mut above = self.earlier.iter().map(|id| id.get() - question);
        above.try_for_each(|above| write!(f, ".{above:x}"))
    }
}

impl FromStr for Regenerate {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (cause, ids) = text.split_at_checked(1).ok_or(())?;
        let cause = match cause {
            "m" => Cause::Mention,
            "d" => Cause::Direct,
            "a" => Cause::AutoReply,
            _ => return Err(()),
        };
        let mut ids = ids.split('.').map(number);
        let question = ids.next().ok_or(())??;
        let earlier = ids.map(|above| question.checked_add(above?).map(MessageId::new).ok_or(()));
        Ok(Self {
            question: MessageId::new(question),
            cause,
            earlier: earlier.collect::<Result<_, ()>>()?,
        })
    }
}

impl fmt::Display for Continue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let question = self.question.map_or(0, MessageId::get);
        write!(f, "{question:x}.{:x}", self.asker.get())
    }
}

impl FromStr for Continue {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (question, asker) = text.split_once('.').ok_or(())?;
        let question = number(question)?;
        Ok(Self {
            question: (question > 0).then(|| MessageId::new(question)),
            asker: UserId::new(number(asker)?),
        })
    }
}

fn number(hexadecimal: &str) -> Result<u64, ()> {
    u64::from_str_radix(hexadecimal, 16).map_err(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_button_carries_comes_back() {
        const QUESTION: u64 = 1_300_000_000_000_000_000;
        let answer = |cause, parts: Vec<MessageId>| Regenerate {
            question: MessageId::new(QUESTION),
            cause,
            earlier: parts,
        };
        let at = |minute: u64| MessageId::new(QUESTION + ((minute * 60_000) << 22));
        for (cause, most) in [
            (Cause::Mention, 0),
            (Cause::Direct, 1),
            (Cause::AutoReply, 5),
        ] {
            let given = answer(cause, (1..=most).map(at).collect());
            let id = given.custom_id().unwrap();
            let read: Regenerate = id.strip_prefix(Regenerate::ID).unwrap().parse().unwrap();
            assert_eq!(
                (read.question, &read.earlier),
                (given.question, &given.earlier)
            );
            assert_eq!(read.to_string(), given.to_string());
        }
        assert_eq!(
            answer(Cause::Mention, (1..20).map(at).collect()).custom_id(),
            None
        );
        for question in [None, Some(MessageId::new(u64::MAX))] {
            let asker = UserId::new(u64::MAX);
            let given = Continue { question, asker };
            let text = given.to_string();
            assert!(Continue::ID.len() + text.len() <= MOST_CHARS);
            assert_eq!(text.parse(), Ok(given));
        }
    }

    #[test]
    fn what_we_did_not_write_is_refused() {
        for text in ["", "m", "x1", "mz", "m1.", "m1.ffffffffffffffff", "ä1"] {
            assert!(text.parse::<Regenerate>().is_err(), "{text}");
        }
        for text in ["", "1", "1.", ".1", "g.1"] {
            assert!(text.parse::<Continue>().is_err(), "{text}");
        }
    }
}
