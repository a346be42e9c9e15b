//! Exit codes, and how an error is told before the process ends.

use std::error::Error;
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

/// Reports an error that only a person can fix, before the process ends.
pub(super) fn fail(error: &(dyn Error + 'static)) -> ExitCode {
    fail_with(CANNOT, error)
}

/// Reports an error, before the process ends.
pub(super) fn fail_with(code: u8, error: &(dyn Error + 'static)) -> ExitCode {
    let mut because = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        because.push(cause.to_string());
        source = cause.source();
    }
    match Config::log_format_of_process() {
        LogFormat::Text => tell_failure(error, &because),
        LogFormat::Json => match error.downcast_ref::<ConfigErrors>() {
            Some(ConfigErrors {
                problems, warnings, ..
            }) => {
                let fields = json!({"problems": problems, "notes": warnings});
                log_object(Level::ERROR, "the settings cannot be used", fields);
            }
            None => log_object(
                Level::ERROR,
                &error.to_string(),
                json!({"because": because}),
            ),
        },
    }
    ExitCode::from(code)
}

#[expect(clippy::print_stderr, reason = "there may be no log")]
fn tell_failure(error: &dyn Error, because: &[String]) {
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
