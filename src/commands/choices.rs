//! Choices for the options that want an id.

use super::call::Call;
use super::done::Done;
use super::words;
use clew_context::engine::sanitise;

/// The most choices that Discord shows.
const MOST: usize = 25;
/// The most characters in a choice's name.
pub(super) const NAME_CHARS: usize = 100;

/// Those of the choices, by name and value, that hold what was typed.
pub(super) fn matching(call: &Call, all: impl Iterator<Item = (String, String)>) -> Done {
    let typed = call.data.typed().unwrap_or_default().trim().to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&typed);
    let fits = all.filter(|(name, value)| holds(name) || holds(value));
    let choices = fits.map(|(name, value)| (shown(&name, &value), value));
    Done::choices(choices.take(MOST).collect())
}

/// A name as people see it, or its value: for one choice without a name Discord refuses all.
fn shown(name: &str, value: &str) -> String {
    let name = sanitise::line(name);
    let name = if name.is_empty() { value } else { &name };
    words::shortened(name, NAME_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_named_by_what_is_seen_of_its_name() {
        for (name, expected) in [
            ("lunch  plan", "lunch plan"),
            ("\u{202E}nalp\u{2066} hcnul\n", "nalp hcnul"),
            ("\u{202E}\u{200F}", "7"),
        ] {
            assert_eq!(shown(name, "7"), expected);
        }
        assert_eq!(shown(&"x".repeat(101), "7").chars().count(), NAME_CHARS);
    }
}
