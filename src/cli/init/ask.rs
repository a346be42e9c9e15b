//! Questions on a terminal, and secrets from files.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::Error;

/// Asks for a line.
pub(super) fn line(question: &str) -> io::Result<String> {
    let mut out = io::stdout();
    write!(out, "{question}")?;
    out.flush()?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim().to_owned())
}

/// Asks for a line that is not shown, from the moment the question is.
pub(super) fn secret(question: &str) -> io::Result<String> {
    let hidden = HiddenInput::new()?;
    let typed = line(question);
    drop(hidden);
    writeln!(io::stdout())?;
    typed
}

/// The terminal does not show what is typed until this is dropped.
struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Drain, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }
}

/// The first line of a file, `-` for standard input.
///
/// # Errors
/// [`Error::Read`].
pub(super) fn secret_from(path: &Path) -> Result<String, Error> {
    let text = if path == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
