//! Makes texts fit: a single text by cutting its middle, several by sharing a
//! budget. All lengths are in Unicode scalars.

use super::cluster;

/// If less than this would remain around the marker, the marker is not worth its
/// space and the text is simply cut off.
const MIN_KEPT_CHARS: usize = 12;

/// `text` cut to at most `max_chars`, or `None` if it fits. About two thirds of
/// what is left are its head and one third its tail, with
/// ` [... 1,234 characters cut ...] ` in between; only the head if there is no
/// room for that. Joined characters stay whole.
pub fn head_and_tail(text: &str, max_chars: usize) -> Option<String> {
    let length = text.chars().count();
    if length <= max_chars {
        return None;
    }
    let room = max_chars.saturating_sub(marker(length).len());
    if room < MIN_KEPT_CHARS {
        return Some(cluster::head(text, max_chars).to_owned());
    }
    let tail = cluster::tail(text, room / 3);
    let head = cluster::head(text, room - room / 3);
    let cut = length - head.chars().count() - tail.chars().count();
    Some(format!("{head}{}{tail}", marker(cut)))
}

/// The same for a text of which only the two ends are left; `cut` scalars between
/// them have already been removed.
pub fn ends(head: &str, tail: &str, cut: usize, max_chars: usize) -> String {
    let kept = head.chars().count() + tail.chars().count();
    if kept + marker(cut).len() <= max_chars {
        return format!("{head}{}{tail}", marker(cut));
    }
    let room = max_chars.saturating_sub(marker(kept + cut).len());
    if room < MIN_KEPT_CHARS {
        return cluster::head(head, max_chars).to_owned();
    }
    let tail = cluster::tail(tail, room / 3);
    let head = cluster::head(head, room - room / 3);
    let cut = cut + kept - head.chars().count() - tail.chars().count();
    format!("{head}{}{tail}", marker(cut))
}

/// How much of each text may be kept if all together may have `budget`
/// characters: the largest level at which texts up to that length stay whole and
/// longer ones are cut to it.
///
/// If not even `floor` characters of each fit, such a level would leave nothing
/// readable. Then each gets up to `floor`, the last (newest) first, until the
/// budget is used up. The sum never exceeds `budget`, and a larger budget never
/// gives any text less.
pub fn fit(lengths: &[usize], budget: usize, floor: usize) -> Vec<usize> {
    if filled(lengths, floor) > budget {
        return newest_first(lengths, budget, floor);
    }
    let mut level = floor;
    let mut too_high = lengths
        .iter()
        .max()
        .map_or(0, |longest| longest + 1)
        .max(floor + 1);
    while too_high - level > 1 {
        let middle = level + (too_high - level) / 2;
        if filled(lengths, middle) <= budget {
            level = middle;
        } else {
            too_high = middle;
        }
    }
    lengths.iter().map(|length| (*length).min(level)).collect()
}

fn filled(lengths: &[usize], level: usize) -> usize {
    lengths
        .iter()
        .fold(0, |sum, length| sum.saturating_add((*length).min(level)))
}

fn newest_first(lengths: &[usize], budget: usize, floor: usize) -> Vec<usize> {
    let mut left = budget;
    let mut allowances: Vec<usize> = lengths
        .iter()
        .rev()
        .map(|length| {
            let allowance = (*length).min(floor).min(left);
            left -= allowance;
            allowance
        })
        .collect();
    allowances.reverse();
    allowances
}

fn marker(cut: usize) -> String {
    format!(" [... {} characters cut ...] ", with_thousands(cut as u64))
}

/// `1234567` as `1,234,567`.
pub fn with_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, max_chars: usize, expected: Option<&str>) {
        assert_eq!(head_and_tail(text, max_chars).as_deref(), expected);
    }

    #[test]
    fn the_middle_is_cut_and_counted() {
        check("short", 5, None);
        check("", 0, None);
        let text = format!("{}{}", "h".repeat(1000), "t".repeat(1000));
        let cut = format!(
            "{} [... 1,930 characters cut ...] {}",
            "h".repeat(47),
            "t".repeat(23)
        );
        check(&text, 102, Some(&cut));
    }

    #[test]
    fn two_ends_are_shown_as_the_whole_would_be() {
        let text = format!("{}{}", "h".repeat(1000), "t".repeat(1000));
        for max in [0, 5, 40, 60, 102, 500] {
            let whole = head_and_tail(&text, max).unwrap();
            assert_eq!(ends(&text[..600], &text[1500..], 900, max), whole, "{max}");
        }
        let short = ends("head", "tail", 9, 100);
        assert_eq!(short, "head [... 9 characters cut ...] tail");
    }

    #[test]
    fn where_there_is_no_room_the_head_is_left() {
        check("characters", 0, Some(""));
        check("characters", 1, Some("c"));
        check("characters", 5, Some("chara"));
        check("a👨‍👩‍👧b", 5, Some("a"));
        check(&"👨‍👩‍👧".repeat(99), 1, Some(""));
    }

    #[test]
    fn joined_characters_stay_whole() {
        let cut = head_and_tail(&"👨‍👩‍👧".repeat(99), 60).unwrap();
        let kept = cut.replace("👨‍👩‍👧", "");
        assert!(
            kept.starts_with(" [... ") && kept.ends_with(" ...] "),
            "{cut}"
        );
    }

    #[test]
    fn thousands_are_grouped() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(with_thousands(number), expected);
        }
    }

    #[track_caller]
    fn check_fit(lengths: &[usize], budget: usize, floor: usize, expected: &[usize]) {
        assert_eq!(fit(lengths, budget, floor), expected);
    }

    #[test]
    fn long_texts_give_way_first() {
        check_fit(&[], 10, 5, &[]);
        check_fit(&[3, 4], 10, 5, &[3, 4]);
        check_fit(&[1, 100, 3, 50], 24, 2, &[1, 10, 3, 10]);
        check_fit(&[10, 10, 10], 29, 0, &[9, 9, 9]);
        check_fit(&[10, 10, 10], 12, 5, &[2, 5, 5]);
        check_fit(&[10, 2], 0, 5, &[0, 0]);
        check_fit(&[0, 0], 0, 0, &[0, 0]);
    }

    proptest! {
        #[test]
        fn a_cut_text_never_exceeds_its_limit(text in "(\\PC|\u{301}|👨‍👩‍👧|🇩🇪){0,200}", max in 0_usize..200) {
            match head_and_tail(&text, max) {
                Some(cut) => prop_assert!(cut.chars().count() <= max && text.chars().count() > max),
                None => prop_assert!(text.chars().count() <= max),
            }
        }

        #[test]
        fn allowances_keep_to_the_budget(
            lengths in prop::collection::vec(0_usize..500, 0..12),
            budget in 0_usize..3000,
            floor in 0_usize..100,
        ) {
            let allowances = fit(&lengths, budget, floor);
            let more = fit(&lengths, budget + 1, floor);
            prop_assert!(allowances.iter().sum::<usize>() <= budget);
            let possible = filled(&lengths, floor) <= budget;
            for (index, length) in lengths.iter().enumerate() {
                prop_assert!(allowances[index] <= *length);
                prop_assert!(allowances[index] <= more[index]);
                prop_assert!(!possible || allowances[index] >= floor.min(*length));
            }
            if let Some(level) = allowances.iter().zip(&lengths).filter(|(a, l)| a < l).map(|(a, _)| *a).max()
                && possible
            {
                prop_assert!(filled(&lengths, level + 1) > budget, "the level is the largest");
            }
        }
    }
}
