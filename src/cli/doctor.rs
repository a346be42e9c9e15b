//! `clew doctor`: findings as lines or JSON, and the exit code.

use std::io::{self, Write};

use clap::Args;
use serde_json::json;
use tracing::level_filters::LevelFilter;

use super::exit::{self, Ended, printed};
use crate::config::{Config, ConfigErrors, LogFormat};
use crate::doctor::{self, Finding, Outcome};
use crate::telemetry::init_log;
use clew_context::engine::sanitise;

/// How the findings are shown.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Tries everything. Exit codes: 0 all works; 1 something does not, or the output
/// cannot be written.
pub(super) async fn run(args: &DoctorArgs, config: Result<Config, ConfigErrors>) -> Ended {
    init_log(LevelFilter::ERROR, LogFormat::Text);
    let mut findings = Vec::new();
    let mut out = io::stdout().lock();
    let mut written = Ok(());
    let mut tell = |finding: Finding| {
        if !args.json && written.is_ok() {
            written = line(&mut out, &finding);
        }
        findings.push(finding);
    };
    doctor::run(config, &mut tell).await;
    let count = |outcome| findings.iter().filter(|one| one.outcome == outcome).count();
    let (failed, warnings) = (count(Outcome::Failed), count(Outcome::Warning));
    let written = written.and_then(|()| {
        if args.json {
            let all = json!({"findings": findings, "failed": failed, "warnings": warnings});
            writeln!(out, "{all}")
        } else {
            writeln!(out, "{failed} failed, {warnings} to look at")
        }
    });
    printed(written)?;
    Ok(exit::found(failed == 0))
}

/// One line, and one for the remedy.
pub(super) fn line(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let outcome = match finding.outcome {
        Outcome::Ok => "ok",
        Outcome::Warning => "look",
        Outcome::Failed => "FAIL",
    };
    // Names are Discord's and the model server's.
    let found = sanitise::line(&finding.found);
    writeln!(out, "{outcome:4}  {:9}  {found}", finding.subject)?;
    if let Some(remedy) = &finding.remedy {
        writeln!(out, "      {:9}  -> {}", "", sanitise::line(remedy))?;
    }
    Ok(())
}
