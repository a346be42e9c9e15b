//! Exit codes, and how an error is told before the process ends.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use serde_json::{Value, json};
use tracing::Level;

use crate::app::system_clock;
use crate::config::{Config, ConfigErrors, LogFormat};

/// The exit code for settings and input that only a person can fix.
pub(super) const CANNOT: u8 = 2;
/// The exit code for failures while running.
pub(super) const FAILED: u8 = 1;
/// The exit code for work that was refused without consent.
pub(super) const NEEDS_CONSENT: u8 = 3;

/// How a command ends.
pub(super) type Ended = Result<ExitCode, Failure>;

/// Why a command ends early.
#[derive(Debug)]
pub(super) enum Failure {
    /// An error, and the exit code for it.
    Error(u8, anyhow::Error),
    /// Whoever read the output went away, which is no error.
    ReaderGone,
}

/// The end of what ran to its end, whether or not it found all well.
pub(super) fn found(is_well: bool) -> ExitCode {
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}

/// What only a person can fix.
pub(super) fn cannot(error: impl Into<anyhow::Error>) -> Failure {
    Failure::Error(CANNOT, error.into())
}

/// What failed while running.
pub(super) fn failed(error: impl Into<anyhow::Error>) -> Failure {
    Failure::Error(FAILED, error.into())
}

/// Why the output cannot be written.
pub(super) fn unprinted(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => failed(error),
    }
}

/// Passes over that the reader of the output went away.
pub(super) fn printed(written: io::Result<()>) -> Result<(), Failure> {
    match written.map_err(unprinted) {
        Err(Failure::ReaderGone) => Ok(()),
        written => written,
    }
}

impl From<io::Error> for Failure {
    /// Of the output.
    fn from(error: io::Error) -> Self {
        unprinted(error).context("cannot write the output")
    }
}

impl Failure {
    /// The same, as the cause of what is said first.
    pub(super) fn context(self, said: impl Display + Send + Sync + 'static) -> Self {
        match self {
            Self::Error(code, error) => Self::Error(code, error.context(said)),
            Self::ReaderGone => Self::ReaderGone,
        }
    }

    /// The same as a failure while running.
    pub(super) fn while_running(self) -> Self {
        match self {
            Self::Error(_, error) => Self::Error(FAILED, error),
            Self::ReaderGone => Self::ReaderGone,
        }
    }

    /// Reports it, before the process ends.
    pub(super) fn told(self) -> ExitCode {
        let Self::Error(code, error) = self else {
            return ExitCode::SUCCESS;
        };
        let because: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
        let top = error.chain().next();
        let settings = top.and_then(|top| top.downcast_ref::<ConfigErrors>());
        match (Config::log_format_of_process(), settings) {
            (LogFormat::Text, _) => tell_failure(&error, &because),
            (LogFormat::Json, Some(errors)) => {
                let fields = json!({"problems": errors.problems, "notes": errors.rest.warnings()});
                log_object(Level::ERROR, "the settings cannot be used", fields);
            }
            (LogFormat::Json, None) => log_object(
                Level::ERROR,
                &error.to_string(),
                json!({"because": because}),
            ),
        }
        ExitCode::from(code)
    }
}

#[expect(clippy::print_stderr, reason = "there may be no log")]
fn tell_failure(error: &anyhow::Error, because: &[String]) {
    eprintln!("clew: {error}");
    for cause in because {
        eprintln!("  because: {cause}");
    }
}

/// Writes an object with these fields, as the log in JSON writes lines, whose fields are
/// texts and numbers only.
#[expect(clippy::print_stderr, reason = "the log's writer takes no objects")]
pub(super) fn log_object(level: Level, message: &str, fields: Value) {
    let mut line = json!({
        "timestamp": system_clock()().rfc3339(),
        "level": level.as_str(),
        "message": message,
        "target": "clew",
    });
    if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
        line.extend(fields);
    }
    eprintln!("{line}");
}
