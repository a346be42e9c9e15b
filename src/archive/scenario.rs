//! Scenario files: a small world written by hand, and what happened in it.
//! [`archive`](super) describes the format.

use std::path::Path;

use serde::Deserialize;
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::error::{ArchiveError, FilePlace, Report, place, plain};
use super::export::position;
use super::ops::{Op, ScenarioChannel, ScenarioGuild, ScenarioUser};
use super::staged::StagedScenario;

/// The largest scenario, in bytes: unlike an export it is kept in memory.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Deserialize, Default)]
#[serde(default)]
struct ScenarioFile<'a> {
    bot: Option<ScenarioUser>,
    users: Vec<ScenarioUser>,
    guilds: Vec<ScenarioGuild>,
    dms: Vec<ScenarioChannel>,
    #[serde(borrow)]
    timeline: Vec<&'a RawValue>,
    trigger: Option<&'a RawValue>,
}

/// Reads a whole scenario and applies its timeline and trigger.
pub(super) fn read(
    path: &Path,
    lenient: bool,
    report: &mut Report,
) -> Result<StagedScenario, ArchiveError> {
    let text = text(path)?;
    let mut documents = Deserializer::from_str(&text).into_iter::<ScenarioFile<'_>>();
    let wire = match documents.next() {
        Some(wire) => wire.map_err(|error| refused(path, &text, &error))?,
        None => ScenarioFile::default(),
    };
    let mut leave_out = |place: FilePlace, problem: String| {
        if !lenient {
            return Err(ArchiveError::Bad { place, problem });
        }
        report.skipped += 1;
        report.note(|| place, &problem);
        Ok(())
    };
    let end = documents.byte_offset();
    let rest = text[end..].trim_start();
    if !rest.is_empty() {
        let place = place(path, (text.len() - rest.len()) as u64, None);
        let problem = "more follows after the end of the scenario";
        leave_out(place, problem.to_owned())?;
    }
    let mut stage = StagedScenario::new(wire.bot, wire.users, wire.guilds, wire.dms);
    for raw in wire.timeline.into_iter().chain(wire.trigger) {
        if let Err((place, problem)) = step(path, &text, raw, &mut stage) {
            leave_out(place, problem)?;
        }
    }
    Ok(stage.finish())
}

/// Applies one operation of the timeline.
fn step(
    path: &Path,
    text: &str,
    raw: &RawValue,
    stage: &mut StagedScenario,
) -> Result<(), (FilePlace, String)> {
    // `raw` is a slice of `text`.
    let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
    let at = |offset: u64, id: Option<&str>| place(path, start as u64 + offset, id);
    let op: Op = serde_json::from_str(raw.get()).map_err(|error| {
        let offset = position(raw.get().as_bytes(), &error);
        (at(offset, None), plain(&error))
    })?;
    let id = op.message().map(|id| id.to_string());
    let applied = stage.apply(op);
    applied.map_err(|problem| (at(0, id.as_deref()), problem))
}

fn text(path: &Path) -> Result<String, ArchiveError> {
    let read = |source| ArchiveError::read(path, source);
    let bytes = std::fs::metadata(path).map_err(read)?.len();
    if bytes > MAX_BYTES {
        return Err(ArchiveError::TooLarge {
            path: path.to_owned(),
            bytes,
            max: MAX_BYTES,
        });
    }
    let text = std::fs::read_to_string(path).map_err(read)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

fn refused(path: &Path, text: &str, error: &serde_json::Error) -> ArchiveError {
    let place = place(path, position(text.as_bytes(), error), None);
    if error.is_eof() {
        return ArchiveError::CutOff { place, messages: 0 };
    }
    ArchiveError::Bad {
        place,
        problem: plain(error),
    }
}
