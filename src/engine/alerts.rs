//! What the operator is told of at once: each trouble once when it begins, and once when it is
//! over. Pure.
//!
//! Invariant: a trouble that comes and goes is not over until it has been away for a while, and
//! what could not be delivered is not told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clew_context::model::UnixMillis;
use serde::{Deserialize, Serialize};

/// How long a trouble must be away to be over.
const CALM: Duration = Duration::from_mins(1);
/// How long one shard must be down: short outages of several are none.
const SHARD_DOWN: Duration = Duration::from_mins(5);

/// A trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
            Self::Shard => "a shard has been down for 5 minutes, or Discord refuses it",
            Self::Disk => "the store's disk is nearly full",
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
    /// Since when a trouble that was told is away.
    away: BTreeMap<Trouble, UnixMillis>,
    told: BTreeSet<Trouble>,
}

impl Alerts {
    /// After a process that had told these.
    pub fn after(told: BTreeSet<Trouble>) -> Self {
        Self {
            told,
            ..Self::default()
        }
    }

    /// What was told and is not over.
    pub const fn told(&self) -> &BTreeSet<Trouble> {
        &self.told
    }

    /// Whether shards are a trouble, the longest of those that are down for this time.
    pub fn is_shard_down(&self, longest: Option<Duration>) -> bool {
        let is_told = self.told.contains(&Trouble::Shard);
        longest.is_some_and(|longest| is_told || longest >= SHARD_DOWN)
    }

    /// What to tell, now that these troubles are there; the same again until it is
    /// [delivered](Self::delivered).
    pub fn due(&mut self, there: &BTreeSet<Trouble>, now: UnixMillis) -> Vec<Alert> {
        self.away.retain(|trouble, _| !there.contains(trouble));
        let alert = |trouble: &Trouble, is_over| Alert {
            trouble: *trouble,
            is_over,
        };
        let new = there.difference(&self.told);
        let mut alerts: Vec<Alert> = new.map(|trouble| alert(trouble, false)).collect();
        for trouble in self.told.difference(there) {
            let since = self.away.entry(*trouble).or_insert(now);
            // A clock that was set back starts it anew.
            *since = (*since).min(now);
            if *since <= now.before(CALM) {
                alerts.push(alert(trouble, true));
            }
        }
        alerts
    }

    /// Somebody was told.
    pub fn delivered(&mut self, Alert { trouble, is_over }: Alert) {
        self.away.remove(&trouble);
        if is_over {
            self.told.remove(&trouble);
        } else {
            self.told.insert(trouble);
        }
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
            let due = alerts.due(&there, UnixMillis(second * 1_000));
            let told: Vec<_> = due.iter().map(|one| (one.trouble, one.is_over)).collect();
            assert_eq!(told, *expected, "at {second}");
            for one in due {
                alerts.delivered(one);
            }
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
    fn one_shard_is_down_for_five_minutes_first() {
        let mut alerts = Alerts::default();
        let down = |seconds| Some(Duration::from_secs(seconds));
        assert!(!alerts.is_shard_down(None) && !alerts.is_shard_down(down(299)));
        assert!(alerts.is_shard_down(down(300)));
        let due = alerts.due(&[Trouble::Shard].into(), UnixMillis(0));
        alerts.delivered(due[0]);
        // It is over once all are connected.
        assert!(alerts.is_shard_down(down(1)) && !alerts.is_shard_down(None));
    }

    #[test]
    fn what_is_not_delivered_stays_due_and_a_restart_repeats_nothing() {
        use Trouble::{Budget, Disk};
        let at = |second: i64| UnixMillis(second * 1_000);
        let (there, none) = (BTreeSet::from([Budget]), BTreeSet::new());
        let mut alerts = Alerts::default();
        let due = alerts.due(&there, at(0));
        assert_eq!(alerts.due(&there, at(9)), due);
        assert!(alerts.due(&none, at(10)).is_empty(), "nobody knows of it");
        let due = alerts.due(&there, at(11));
        alerts.delivered(due[0]);
        let mut next = Alerts::after(alerts.told().clone());
        assert!(next.due(&there, at(12)).is_empty());
        assert!(next.due(&none, at(13)).is_empty());
        let over = next.due(&none, at(73));
        assert_eq!(next.due(&none, at(80)), over);
        assert!(over[0].is_over && over.len() == 1);
        next.delivered(over[0]);
        assert!(next.due(&none, at(200)).is_empty() && next.told().is_empty());
        assert_eq!(next.due(&[Disk].into(), at(201)).len(), 1);
    }
}
