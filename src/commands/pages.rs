//! Lists in pages of ten, with buttons to turn the pages.

use clew_discord::model::{Answer, ButtonStyle};

/// The number of entries per page.
const PER_PAGE: usize = 10;

/// One page of a list.
#[derive(Debug)]
pub(super) struct Page<'a, T> {
    items: &'a [T],
    number: u16,
    last: u16,
}

impl<'a, T> Page<'a, T> {
    /// The page with this number, from 0; the last page if there are fewer.
    pub(super) fn of(all: &'a [T], number: u16) -> Self {
        let last = all.len().saturating_sub(1) / PER_PAGE;
        let last = u16::try_from(last).unwrap_or(u16::MAX);
        let number = number.min(last);
        let from = usize::from(number) * PER_PAGE;
        let to = all.len().min(from + PER_PAGE);
        Self {
            items: &all[from..to],
            number,
            last,
        }
    }

    /// Its entries, numbered from 1 within the whole list.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &'a T)> {
        let from = usize::from(self.number) * PER_PAGE;
        (from + 1..).zip(self.items)
    }

    /// `Page 1 of 2`; empty if there is only one page.
    pub(super) fn footer(&self) -> String {
        if self.last == 0 {
            String::new()
        } else {
            format!("Page {} of {}", self.number + 1, u32::from(self.last) + 1)
        }
    }

    /// Adds buttons for the previous and the next page, by the `custom_id` of each.
    pub(super) fn with_buttons(&self, mut answer: Answer, to: impl Fn(u16) -> String) -> Answer {
        if let Some(before) = self.number.checked_sub(1) {
            answer = answer.with_button("Back", ButtonStyle::Secondary, to(before));
        }
        if self.number < self.last {
            answer = answer.with_button("Next", ButtonStyle::Secondary, to(self.number + 1));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entries: usize, number: u16, expected: (&[usize], &str, &[&str])) {
        let all: Vec<usize> = (1..=entries).collect();
        let page = Page::of(&all, number);
        let numbers: Vec<usize> = page.numbered().map(|(number, _)| number).collect();
        let same: Vec<usize> = page.numbered().map(|(_, entry)| *entry).collect();
        assert_eq!(numbers, same);
        let ends = [numbers[0], numbers[numbers.len() - 1]];
        let turned = page.with_buttons(Answer::default(), |to| to.to_string());
        let labels: Vec<&str> = turned.buttons.iter().map(|one| &*one.label).collect();
        assert_eq!((&ends[..], &*page.footer(), &labels[..]), expected);
    }

    #[test]
    fn a_list_is_cut_into_tens() {
        check(1, 0, (&[1, 1], "", &[]));
        check(10, 0, (&[1, 10], "", &[]));
        check(10, 7, (&[1, 10], "", &[]));
        check(11, 0, (&[1, 10], "Page 1 of 2", &["Next"]));
        check(11, 1, (&[11, 11], "Page 2 of 2", &["Back"]));
        check(25, 1, (&[11, 20], "Page 2 of 3", &["Back", "Next"]));
        check(25, u16::MAX, (&[21, 25], "Page 3 of 3", &["Back"]));
    }
}
