//! `clew demo`: the whole bot without Discord and without a model. It starts the
//! simulator and the bot on free ports, plays a few conversations at a small
//! waterworks, shows what was collected for each and why, and checks it.
//!
//! Invariant: nothing reaches beyond loopback and a temporary folder; what is shown
//! is read from the simulator's log and the bot's telemetry, never assumed.

mod expect;
mod line;
mod model;
mod places;
mod scene;
mod show;
mod stage;
mod talk;
mod words;
mod world;

use std::io::{self, Write};
use std::time::Instant;

use crate::app;
use crate::config::ConfigErrors;
#[cfg(feature = "test-util")]
use clew_simulator::World;
use clew_simulator::{ScriptedModel, WaitError};

use show::DemoPage;
use stage::DemoStage;

/// Why the demo could not finish, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caps in the environment cannot be used.
    #[error(transparent)]
    Settings(#[from] ConfigErrors),
    /// There is no temporary folder, or its files cannot be read.
    #[error("cannot use a temporary folder: set TMPDIR to one that is writable")]
    Folder(#[source] io::Error),
    /// No port could be opened on loopback.
    #[error("cannot open a port on 127.0.0.1 for the simulator")]
    Port(#[source] io::Error),
    /// The bot did not start, or stopped by itself.
    #[error("the bot stopped")]
    Bot(#[source] Option<app::Error>),
    /// The bot did not connect, or posted no answer.
    #[error("the bot does not do what it should")]
    Silent(#[from] WaitError),
    /// A turn did not end in time.
    #[error("scene {scene} had no end within {seconds} s")]
    Endless {
        /// The scene's number, from 1.
        scene: usize,
        /// How long the demo waited.
        seconds: u64,
    },
    /// Scenes were not answered as expected; the differences were shown.
    #[error(
        "{failed} of {all} scenes were not answered as expected, see \"not as expected\" above"
    )]
    Unexpected {
        /// How many were not answered as expected.
        failed: usize,
        /// How many were played.
        all: usize,
    },
    /// The output cannot be written.
    #[error("cannot write the demo's output")]
    Output(#[source] io::Error),
}

/// Plays all scenes and writes what happened, in lines of at most 90 characters.
/// `settings` are pairs of variable and value that override the demo's own; if
/// they include caps, figures are not compared with those of the default caps.
/// `styled` uses the terminal's bold and dim.
///
/// # Errors
/// Whatever kept a scene from being played and answered as expected.
pub async fn run(
    settings: Vec<(String, String)>,
    out: &mut dyn Write,
    styled: bool,
) -> Result<(), Error> {
    let began = Instant::now();
    let mut page = DemoPage::new(out, styled);
    let (world, scenes) = world::build();
    let mut stage = DemoStage::start(world, settings.clone()).await?;
    let compare = stage.has_default_caps();
    page.introduction(compare).map_err(Error::Output)?;
    let played = play(&mut stage, &scenes, 0, &mut page).await;
    let stopped = stage.stop().await;
    let mut failed = played?;
    stopped?;
    page.about_model().map_err(Error::Output)?;
    let model = model::start().await.map_err(Error::Port)?;
    let (world, scene, run) = world::with_model();
    let with_model = [
        ("LLM_BASE_URL", model.url()),
        ("LLM_MODEL", "script".to_owned()),
    ];
    let with_model = with_model.map(|(name, value)| (name.to_owned(), value));
    let settings = with_model.into_iter().chain(settings).collect();
    let mut stage = DemoStage::start(world, settings).await?;
    let before = scenes.len();
    let played = play(&mut stage, &[scene], before, &mut page).await;
    let all = before + 2;
    let ran = match &played {
        Ok(_) => play_run(&stage, &run, &model, all, &mut page).await,
        Err(_) => Ok(0),
    };
    let stopped = stage.stop().await;
    failed += played? + ran?;
    stopped?;
    page.summary(all - failed, all, began.elapsed())
        .map_err(Error::Output)?;
    if failed > 0 {
        return Err(Error::Unexpected { failed, all });
    }
    Ok(())
}

/// Plays the scenes without a model, whatever is answered, and returns the world as they
/// leave it.
///
/// # Errors
/// Whatever kept a scene from being played.
#[cfg(feature = "test-util")]
pub async fn played(settings: Vec<(String, String)>) -> Result<World, Error> {
    let (world, scenes) = world::build();
    play_all(world, &scenes, settings).await
}

/// The same for the scenes that need a model.
///
/// # Errors
/// Whatever kept a scene from being played.
#[cfg(feature = "test-util")]
pub async fn played_with_model(settings: Vec<(String, String)>) -> Result<World, Error> {
    let (world, scene, _) = world::with_model();
    play_all(world, &[scene], settings).await
}

#[cfg(feature = "test-util")]
async fn play_all(
    world: World,
    scenes: &[scene::DemoScene],
    settings: Vec<(String, String)>,
) -> Result<World, Error> {
    let mut stage = DemoStage::start(world, settings).await?;
    for (number, scene) in (1..).zip(scenes) {
        stage.play(number, scene).await?;
    }
    let world = stage.take_world();
    stage.stop().await?;
    Ok(world)
}

/// Plays scenes, of which `before` were played already. Returns how many were not
/// answered as expected.
async fn play(
    stage: &mut DemoStage,
    scenes: &[scene::DemoScene],
    before: usize,
    page: &mut DemoPage<'_>,
) -> Result<usize, Error> {
    let limits = stage.limits();
    let compare = stage.has_default_caps();
    let mut failed = 0;
    for (number, scene) in (before + 1..).zip(scenes) {
        let played = stage.play(number, scene).await?;
        let complaints = expect::complaints(&scene.expect, &played, compare);
        failed += usize::from(!complaints.is_empty());
        page.scene(number, scene, &played, &limits, &complaints)
            .map_err(Error::Output)?;
    }
    Ok(failed)
}

/// Plays an agent run. Returns 1 if it did not go as expected.
async fn play_run(
    stage: &DemoStage,
    run: &scene::DemoRun,
    model: &ScriptedModel,
    number: usize,
    page: &mut DemoPage<'_>,
) -> Result<usize, Error> {
    let played = stage.play_run(run, model).await?;
    let complaints = expect::complaints_of_run(run, &played);
    page.run(number, run, &played, &complaints)
        .map_err(Error::Output)?;
    Ok(usize::from(!complaints.is_empty()))
}
