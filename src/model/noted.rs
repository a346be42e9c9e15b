//! The button under "Noted 1 thing".

use std::fmt;
use std::str::FromStr;

use clew_store::model::FactId;

/// The facts that the button shows, as the argument of its `custom_id`: ids without
/// separators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted(pub Vec<FactId>);

/// Characters of a fact's id as written here.
const FACT_CHARS: usize = 16;

impl Noted {
    /// Its `custom_id` up to the argument.
    pub const ID: &'static str = "noted:";
    /// The most facts that are written; the rest are left out. A `custom_id` holds 100
    /// characters (Discord's reference, "Custom ID").
    const MOST: usize = 5;
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut facts = self.0.iter().take(Self::MOST);
        facts.try_for_each(|fact| write!(f, "{fact}"))
    }
}

impl FromStr for Noted {
    type Err = ();

    fn from_str(facts: &str) -> Result<Self, ()> {
        let all = (0..facts.len()).step_by(FACT_CHARS).map(|at| {
            let fact = facts.get(at..at + FACT_CHARS).ok_or(())?;
            fact.parse().map_err(|_| ())
        });
        all.collect::<Result<_, ()>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back_and_more_than_fit_are_left_out() {
        #[track_caller]
        fn check(facts: &[FactId], expected: &[FactId]) {
            let written = Noted(facts.to_vec()).to_string();
            assert!(written.is_ascii() && Noted::ID.len() + written.len() <= 100);
            assert_eq!(written.parse(), Ok(Noted(expected.to_vec())));
        }
        check(&[], &[]);
        check(
            &[FactId(7), FactId(u64::MAX)],
            &[FactId(7), FactId(u64::MAX)],
        );
        let many: Vec<FactId> = (0..20).map(FactId).collect();
        check(&many, &many[..Noted::MOST]);
    }

    #[test]
    fn what_we_did_not_write_is_refused() {
        for text in [
            "000000000000000",
            "00000000000000010",
            "ÄÄÄÄÄÄÄÄ",
            "0000000x00000000",
        ] {
            assert_eq!(text.parse::<Noted>(), Err(()), "{text}");
        }
    }
}
