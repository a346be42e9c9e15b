//! The system prompt: who the bot is.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;

use super::check::Checker;
use super::problem::Problem;
use super::variable as var;

/// The largest prompt file, in bytes: a larger one is surely the wrong file.
const LARGEST_FILE: u64 = 256 * 1024;

/// The prompt if neither variable is set.
const BUILT_IN: &str = "You take part in conversations on Discord. Answer the person who \
addressed you, in that person's language, briefly and to the point. Use the conversation that you \
are shown; where it does not hold what is needed, say so instead of guessing. Discord's Markdown \
works, tables do not.";

#[derive(Default, Deserialize)]
struct RawPrompt {
    system_prompt: Option<String>,
    system_prompt_file: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> String {
    let raw: RawPrompt = check.raw();
    match (raw.system_prompt, raw.system_prompt_file) {
        (None, None) => BUILT_IN.to_owned(),
        (Some(text), None) => text,
        (None, Some(path)) => read_checked(check, &path),
        (Some(_), Some(path)) => {
            let accepted = "one of SYSTEM_PROMPT and SYSTEM_PROMPT_FILE, not both";
            check.problem(Problem::value(&var::SYSTEM_PROMPT_FILE, &path, accepted));
            String::new()
        }
    }
}

fn read_checked(check: &mut Checker, path: &str) -> String {
    let text = read_file(Path::new(path)).unwrap_or_else(|error| {
        let accepted = format!("a UTF-8 text file of at most {LARGEST_FILE} bytes ({error})");
        check.problem(Problem::value(&var::SYSTEM_PROMPT_FILE, path, accepted));
        String::from("-")
    });
    if text.trim().is_empty() {
        let accepted = "a file with text in it";
        check.problem(Problem::value(&var::SYSTEM_PROMPT_FILE, path, accepted));
    }
    text.trim().to_owned()
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?
        .take(LARGEST_FILE + 1)
        .read_to_string(&mut text)?;
    if read as u64 > LARGEST_FILE {
        return Err(io::Error::other("it is larger"));
    }
    Ok(text)
}
