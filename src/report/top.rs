//! Lists that cannot grow without bound: of servers, channels, models, people.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;

/// What is counted for each name of a list.
pub(super) trait Row: Default {
    /// What the list is sorted by, the most first.
    fn weight(&self) -> [u64; 2];
    /// Adds what was counted elsewhere.
    fn add(&mut self, other: &Self);
}

/// Adds these fields of another row, which are counts.
macro_rules! add_fields {
    ($row:expr, $other:expr; $($field:ident),+) => {
        $($row.$field = $row.$field.saturating_add($other.$field);)+
    };
}
pub(super) use add_fields;

/// Defines a row of counts, and by what its list is sorted.
macro_rules! counts {
    ($(#[$meta:meta])* $row:ident by $weight:expr; $($(#[$about:meta])* $field:ident,)+) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(super) struct $row {
            $($(#[$about])* pub(super) $field: u64,)+
        }

        impl Row for $row {
            fn weight(&self) -> [u64; 2] {
                let weight: fn(&Self) -> [u64; 2] = $weight;
                weight(self)
            }

            fn add(&mut self, other: &Self) {
                add_fields!(self, other; $($field),+);
            }
        }
    };
}
pub(super) use counts;

/// Names with what was counted for each, at least `KEPT` of them. While the bot's
/// telemetry has at most twice as many names, all is exact; when it has more, those that
/// weigh least are added together, and a name of them that comes again begins anew.
#[derive(Debug, Default)]
pub(super) struct Top<K, R, const KEPT: usize> {
    rows: HashMap<K, R>,
    others: Others<R>,
}

/// What the names that are not listed have together.
#[derive(Debug, Default, Serialize)]
pub(super) struct Others<R> {
    /// How many there are; a name that was dropped and came again counts twice.
    pub(super) names: u64,
    #[serde(flatten)]
    pub(super) row: R,
}

impl<K: Hash + Ord, R: Row, const KEPT: usize> Top<K, R, KEPT> {
    /// The row of a name.
    pub(super) fn at<Q>(&mut self, name: &Q) -> &mut R
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if !self.rows.contains_key(name) {
            if self.rows.len() >= 2 * KEPT {
                self.rows = self.heaviest(KEPT).into_iter().collect();
            }
            self.rows.insert(name.to_owned(), R::default());
        }
        match self.rows.get_mut(name) {
            Some(row) => row,
            None => &mut self.others.row,
        }
    }

    /// The first names, and what the others have together, if there are any.
    pub(super) fn first(mut self, count: usize) -> (Vec<(K, R)>, Option<Others<R>>) {
        let rows = self.heaviest(count);
        let others = (self.others.names > 0).then_some(self.others);
        (rows, others)
    }

    /// Takes out all rows; those beyond so many are added to the others.
    fn heaviest(&mut self, count: usize) -> Vec<(K, R)> {
        let mut rows: Vec<(K, R)> = self.rows.drain().collect();
        rows.sort_by(|(name, row), (other_name, other)| {
            let by_weight = Reverse(row.weight()).cmp(&Reverse(other.weight()));
            by_weight.then_with(|| name.cmp(other_name))
        });
        for (_, row) in rows.split_off(rows.len().min(count)) {
            self.others.names += 1;
            self.others.row.add(&row);
        }
        rows
    }
}

/// A number of events.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count(pub(super) u64);

impl Row for Count {
    fn weight(&self) -> [u64; 2] {
        [self.0, 0]
    }

    fn add(&mut self, other: &Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_bounded_and_loses_no_count() {
        let mut top = Top::<String, Count, 3>::default();
        for (name, count) in [("a", 5), ("b", 1), ("c", 9), ("d", 2), ("e", 2), ("f", 1)] {
            top.at(name).0 += count;
        }
        assert_eq!(top.rows.len(), 6);
        // The seventh name makes room: a, b and c are kept.
        top.at("b").0 += 1;
        top.at("g").0 += 4;
        assert_eq!(top.rows.len(), 4);
        top.at("b").0 += 1;
        let (rows, others) = top.first(3);
        let rows: Vec<(&str, u64)> = rows.iter().map(|(name, row)| (&**name, row.0)).collect();
        assert_eq!(rows, [("c", 9), ("a", 5), ("g", 4)]);
        let others = others.unwrap();
        assert_eq!((others.names, others.row), (4, Count(8)));
    }
}
