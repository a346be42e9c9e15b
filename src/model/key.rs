//! What looks like a key, a token or a password: it is not shown, wherever it was typed.

/// What is shown instead.
const HIDDEN: &str = "[secret]";
/// How well-known kinds of keys begin.
const BEGINNINGS: [&str; 8] = [
    "sk-",
    "ghp_",
    "gho_",
    "github_pat",
    "xox",
    "akia",
    "eyj",
    "-----begin",
];
/// Shorter words that begin so are none.
const SHORTEST: usize = 8;
/// So many letters and digits without anything between them are no name: those of models
/// and folders have dashes, dots and underscores.
const RUN_CHARS: usize = 20;

/// Whether a word begins as well-known kinds of keys do.
pub fn begins_as_key(word: &str) -> bool {
    let begins = |with: &&str| {
        let start = word.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    word.len() >= SHORTEST && BEGINNINGS.iter().any(begins)
}

/// The text without words that look like keys.
pub fn without_keys(text: &str) -> String {
    let is_between = |c: char| c.is_whitespace() || "\"'`,;:()[]{}<>=&?/@#|%".contains(c);
    let words = text.split_inclusive(is_between).map(|part| {
        let word = part.trim_end_matches(is_between);
        if looks_like_key(word) {
            format!("{HIDDEN}{}", &part[word.len()..])
        } else {
            part.to_owned()
        }
    });
    words.collect()
}

fn looks_like_key(word: &str) -> bool {
    let is_key = |run: &str| {
        let has = |fits: fn(&u8) -> bool| run.bytes().any(|byte| fits(&byte));
        run.len() >= RUN_CHARS && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    };
    let mut runs = word.split(|c: char| !c.is_ascii_alphanumeric());
    begins_as_key(word) || runs.any(is_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_shown() {
        for (text, shown) in [
            ("sk-proj-abc", "[secret]"),
            ("SK-ABCDEFGH, m", "[secret], m"),
            ("MTA1NjQzMjE5ODc2NTQzMjEw.Gabc12.x_y-z", "[secret]"),
            (
                "https://gateway.example/9f86d081884c7d659a2f/v1",
                "https://gateway.example/[secret]/v1",
            ),
            ("key=AbCdEfGhIjKlMnOpQrSt1", "key=[secret]"),
        ] {
            assert_eq!(without_keys(text), shown);
        }
    }

    #[test]
    fn names_of_models_paths_and_ids_are_shown() {
        for text in [
            "",
            "Qwen2.5-72B-Instruct-AWQ",
            "claude-3-5-sonnet-20241022",
            "ft:gpt-4o-mini-2024-07-18:org::9AbCdEf1",
            "/srv/clew/2026-01-01/backup_of_clew.db",
            "123456789012345678,234567890123456789",
            "postgres://ada:[secret]@host:5432/db",
            "Donaudampfschifffahrtsgesellschaft",
            "sk-SK",
            "größer als 20 Zeichen, ohne Schlüssel",
        ] {
            assert_eq!(without_keys(text), text);
        }
    }
}
