//! Tune: which caps suit the channels of a recording.
//!
//! Replays the same questions under every combination of the values to be tried and
//! compares what they show with what it costs. Which settings there are, and what they
//! accept, is the configuration's to say; how a block is made, the replay's.
//!
//! Invariant: `tune` knows no setting by its effect: a new cap can be swept without a
//! change here. Texts alone name `MEM_MAX_MSGS` and `MEM_MAX_CHARS`.

mod choose;
mod env;
mod grid;
mod json;
mod labels;
mod page;
mod text;
mod totals;

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::config::Config;
use crate::model::ModelPrice;
use crate::replay::{Figures, ReplayStep, Sweep, SweepSettings, sweep};
use clew_context::model::Scene;

pub use choose::{Choice, Reason};
#[cfg(feature = "test-util")]
pub use env::{lines, suggestions};
#[cfg(feature = "test-util")]
pub use grid::Point;
pub use grid::{Axis, Grid};
pub use json::json;
pub use page::page;
pub use text::text;

/// What to tune, and how.
#[derive(Debug, Clone)]
pub struct TuneSettings {
    /// What is replayed; the labels are read from the file below.
    pub sweep: SweepSettings,
    /// What varies, each `NAME=VALUE,VALUE`; if empty, the main caps.
    pub sweeps: Vec<String>,
    /// A file of labels.
    pub labels: Option<PathBuf>,
    /// The most tokens for nineteen of twenty questions.
    pub budget: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct Tuned {
    pub grid: Grid,
    /// What was collected under each combination.
    pub swept: Sweep,
    pub choice: Choice,
    /// The budget, if there was one.
    pub budget: Option<u32>,
    /// What the tokens of `LLM_MODEL` cost, if that is known.
    pub price: Option<ModelPrice>,
}

/// Replays, blocking on the disk, and chooses. `config` is what is set now.
///
/// # Errors
/// A sentence for the person at the terminal: about `--sweep`, the labels or the recording.
pub fn tune(
    settings: TuneSettings,
    config: &Config,
    progress: &dyn Fn(ReplayStep, u64, u64),
) -> anyhow::Result<Tuned> {
    let grid = Grid::new(&settings.sweeps, config)?;
    let labels = settings.labels.as_deref().map(labels::read).transpose()?;
    let caps: Vec<_> = grid.points.iter().map(|point| point.caps).collect();
    let settings_of_sweep = SweepSettings {
        labels,
        ..settings.sweep
    };
    let swept = sweep(&settings_of_sweep, &caps, progress)?;
    let model = config.llm.as_ref().map(|llm| llm.model.as_str());
    let choice = choose::choose(&grid, &swept.figures, settings.budget);
    Ok(Tuned {
        grid,
        swept,
        choice,
        budget: settings.budget,
        price: config.prices.of(model.unwrap_or_default()),
    })
}

/// A setting that makes a difference in a scene, while the others are as suggested.
struct Varied<'a> {
    axis: &'a Axis,
    /// The number of each combination, its value and figures.
    rows: Vec<(usize, &'a str, &'a Figures)>,
}

impl Tuned {
    fn scenes(&self) -> BTreeSet<Scene> {
        let figures = self.swept.figures.iter();
        let scenes = figures.flat_map(|figures| figures.scenes.keys().copied());
        scenes.collect()
    }

    /// The figures of all questions under what is set now.
    fn now(&self) -> &Figures {
        &self.swept.figures[self.grid.now].all
    }

    /// The combination around which each setting is varied: what is suggested, or else
    /// the cheapest.
    fn base(&self) -> usize {
        let cheapest = self.choice.frontier.first().copied();
        let base = self.choice.suggested.or(cheapest);
        base.unwrap_or(self.grid.now)
    }

    /// The settings that make a difference in a scene.
    fn varied(&self, scene: Scene) -> Vec<Varied<'_>> {
        let of = |point: usize| self.swept.figures[point].scenes.get(&scene);
        let varied = self.grid.axes.iter().enumerate().map(|(number, axis)| {
            let along = self.grid.along(number, self.base());
            let rows = along.into_iter().zip(&axis.values);
            let rows = rows.filter_map(|(point, value)| Some((point, value.as_str(), of(point)?)));
            Varied {
                axis,
                rows: rows.collect(),
            }
        });
        let differs = |varied: &Varied<'_>| {
            let rows = &varied.rows;
            rows.iter().any(|(_, _, figures)| *figures != rows[0].2)
        };
        varied.filter(differs).collect()
    }
}
