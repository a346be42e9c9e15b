//! What the operator is told of at once: each trouble once when it begins, and once when it is
//! over. Pure.
//!
//! Invariant: a trouble that comes and goes is not over until it has been away for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clew_context::model::UnixMillis;

/// How long a trouble must be away to be over.
const CALM: Duration = Duration::from_mins(1);
/// How long a shard must be down.
const SHARD_DOWN: Duration = Duration::from_mins(5);

/// A trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// No model server answers.
    Model,
    /// The store fails or takes nothing.
    Store,
    /// Most of `TOKENS_TOTAL_DAY` is used.
    Budget,
    /// A shard is not connected.
    Shard,
    /// The store's disk is nearly full.
    Disk,
}

impl Trouble {
    /// Its word in an alert.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Store => "store",
            Self::Budget => "budget",
            Self::Shard => "shard",
            Self::Disk => "disk",
        }
    }

    /// What the operator reads.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Model => "no model server answers",
            Self::Store => "the store fails or is read-only",
            Self::Budget => "80 % of TOKENS_TOTAL_DAY are used",
            Self::Shard => "a shard has been down for 5 minutes",
            Self::Disk => "the store's disk is nearly full",
        }
    }

    /// How long it must last before it is told.
    const fn patience(self) -> Duration {
        match self {
            Self::Shard => SHARD_DOWN,
            Self::Model | Self::Store | Self::Budget | Self::Disk => Duration::ZERO,
        }
    }
}

/// What to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alert {
    /// What it is about.
    pub trouble: Trouble,
    /// Whether it is over.
    pub is_over: bool,
}

/// Which troubles there are, and which were told.
#[derive(Debug, Default)]
pub struct Alerts {
    /// Since when a trouble is there and not told, or told and away.
    changing: BTreeMap<Trouble, UnixMillis>,
    told: BTreeSet<Trouble>,
}

impl Alerts {
    /// What to tell, now that these troubles are there.
    pub fn look(&mut self, there: &BTreeSet<Trouble>, now: UnixMillis) -> Vec<Alert> {
        let of_interest: BTreeSet<Trouble> = there.union(&self.told).copied().collect();
        self.changing
            .retain(|trouble, _| of_interest.contains(trouble));
        let mut alerts = Vec::new();
        for trouble in of_interest {
            let (is_there, is_told) = (there.contains(&trouble), self.told.contains(&trouble));
            if is_there == is_told {
                self.changing.remove(&trouble);
                continue;
            }
            let since = self.changing.entry(trouble).or_insert(now);
            // A clock that was set back starts it anew.
            *since = (*since).min(now);
            let lasts = if is_told { CALM } else { trouble.patience() };
            if *since > now.before(lasts) {
                continue;
            }
            self.changing.remove(&trouble);
            if is_told {
                self.told.remove(&trouble);
            } else {
                self.told.insert(trouble);
            }
            alerts.push(Alert {
                trouble,
                is_over: is_told,
            });
        }
        alerts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second, what is wrong then, and what is told of it.
    type Step<'a> = (i64, &'a [Trouble], &'a [(Trouble, bool)]);

    #[track_caller]
    fn check(steps: &[Step<'_>]) {
        let mut alerts = Alerts::default();
        for (second, there, expected) in steps {
            let there = there.iter().copied().collect();
            let told = alerts.look(&there, UnixMillis(second * 1_000));
            let told: Vec<_> = told.iter().map(|one| (one.trouble, one.is_over)).collect();
            assert_eq!(told, *expected, "at {second}");
        }
    }

    #[test]
    fn each_is_told_once_and_once_when_it_is_over() {
        use Trouble::{Disk, Store};
        check(&[
            (0, &[], &[]),
            (1, &[Store], &[(Store, false)]),
            (2, &[Store, Disk], &[(Disk, false)]),
            (3, &[Store, Disk], &[]),
            (10, &[Disk], &[]),
            (69, &[Disk], &[]),
            (70, &[Disk], &[(Store, true)]),
            (71, &[Disk], &[]),
            (72, &[Store, Disk], &[(Store, false)]),
        ]);
    }

    #[test]
    fn what_comes_and_goes_is_one_trouble() {
        use Trouble::Model;
        check(&[
            (0, &[Model], &[(Model, false)]),
            (30, &[], &[]),
            (60, &[Model], &[]),
            (100, &[], &[]),
            (159, &[], &[]),
            (160, &[], &[(Model, true)]),
        ]);
    }

    #[test]
    fn a_shard_is_down_for_five_minutes_first() {
        use Trouble::Shard;
        check(&[
            (0, &[Shard], &[]),
            (200, &[], &[]),
            (210, &[Shard], &[]),
            (509, &[Shard], &[]),
            (510, &[Shard], &[(Shard, false)]),
            (600, &[], &[]),
            (660, &[], &[(Shard, true)]),
        ]);
    }
}
