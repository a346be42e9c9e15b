//! A stranger's words in a line of ours: short, without what cannot be seen, without secrets.

/// Characters at most.
const MAX: usize = 300;
/// What is shorter is no secret: hiding it would tear words apart.
const SHORTEST_SECRET: usize = 6;

/// The words on one line, with each of the secrets hidden.
pub(crate) fn line(words: &str, secrets: &[String]) -> String {
    let mut words = words.to_owned();
    for secret in secrets.iter().filter(|one| one.len() >= SHORTEST_SECRET) {
        words = words.replace(secret, "***");
    }
    words.retain(|one| !one.is_control());
    if let Some((end, _)) = words.char_indices().nth(MAX) {
        words.truncate(end);
        words.push('…');
    }
    words
}
