//! Choices for the options that want an id.

use super::call::Call;
use super::done::Done;
use super::words;

/// The most choices that Discord shows.
const MOST: usize = 25;
/// The most characters in a choice's name.
pub(super) const NAME_CHARS: usize = 100;

/// Those of the choices, by name and value, that hold what was typed.
pub(super) fn matching(call: &Call, all: impl Iterator<Item = (String, String)>) -> Done {
    let typed = call.data.typed().unwrap_or_default().trim().to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&typed);
    let fits = all.filter(|(name, value)| holds(name) || holds(value));
    let short = fits.map(|(name, value)| (words::short(&name, NAME_CHARS), value));
    Done::choices(short.take(MOST).collect())
}
