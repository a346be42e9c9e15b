//! `clew demo`: the whole bot without Discord and without a model. It starts the
//! simulator and the bot on free ports, plays a few conversations at a small
//! waterworks, shows what was collected for each and why, and checks it.
//!
//! Invariant: nothing reaches beyond loopback and a temporary folder, but for a model
//! that was asked for; what is shown is read from the simulator's log and the bot's
//! telemetry, never assumed.

mod expect;
mod line;
mod model;
mod places;
mod scene;
mod show;
mod stage;
mod world;

use std::io::{self, Write};
use std::time::Instant;

use crate::config::ContextSetting;
use crate::sandbox::{self, Sandbox};
#[cfg(feature = "test-util")]
use clew_simulator::World;
use clew_simulator::{ScriptedModel, WaitError};

use expect::Judged;
use show::DemoPage;
use world::Script;

/// How many scenes are played unless more are asked for: what fits a terminal.
const SHORT: usize = 6;

/// Why the demo could not finish, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bot or its world cannot run.
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    /// There is no such scene.
    #[error("there is no scene {scene}: --scene takes 1 to {all}")]
    NoScene {
        scene: usize,
        /// The last scene's number.
        all: usize,
    },
    /// A command cannot be replaced by a question.
    #[error("scene {scene} is a command: --ask takes one of the scenes 1 to {questions}")]
    NoQuestion {
        scene: usize,
        /// The number of the last question.
        questions: usize,
    },
    /// The bot posted no answer.
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
        "{failed} of {all} scenes were not answered as expected, see \"NOT AS EXPECTED\" above"
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

/// What is played, and how it is shown.
#[derive(Debug, Default)]
pub struct DemoOptions {
    /// Pairs of variable and value that override the demo's own. If they include caps,
    /// figures are not compared with those of the default caps; if they name a model,
    /// it answers.
    pub settings: Vec<(String, String)>,
    /// The one scene to play, from 1.
    pub scene: Option<usize>,
    /// What is asked there, or in the first scene, instead of its question.
    pub ask: Option<String>,
    /// Every scene, with all that was collected and the telemetry.
    pub is_verbose: bool,
    /// Whether the terminal shows bold, dim and colours.
    pub is_styled: bool,
    /// What has to be typed to start the program.
    pub program: String,
}

impl DemoOptions {
    /// Whether a model of the person's own answers.
    fn has_model(&self) -> bool {
        sandbox::name_model(&self.settings)
    }

    /// Whether the person changes what is collected.
    fn has_own_caps(&self, script: &Script) -> bool {
        let caps = ContextSetting::all();
        let is_cap = |name: &String| caps.iter().any(|cap| cap.variable.name == name);
        let of_scenes = || script.scenes.iter().flat_map(|scene| &scene.settings);
        let is_of_scene = |name: &String| of_scenes().any(|(one, _)| one == name);
        let mut given = self.settings.iter().filter(|(_, value)| !value.is_empty());
        given.any(|(name, _)| is_cap(name) || is_of_scene(name))
    }

    fn numbers(&self, script: &Script) -> Result<Vec<usize>, Error> {
        let questions = script.scenes.len();
        let all = questions + script.calls.len();
        match (self.scene, &self.ask) {
            (Some(scene), _) if scene == 0 || scene > all => Err(Error::NoScene { scene, all }),
            (Some(scene), Some(_)) if scene > questions => {
                Err(Error::NoQuestion { scene, questions })
            }
            (Some(scene), _) => Ok(vec![scene]),
            (None, Some(_)) => Ok(vec![1]),
            (None, None) if self.is_verbose => Ok((1..=all).collect()),
            (None, None) => Ok((1..=SHORT).collect()),
        }
    }
}

/// Plays scenes and writes what happened, in lines of at most 80 characters.
///
/// # Errors
/// Whatever kept a scene from being played and answered as expected.
pub async fn run(options: DemoOptions, out: &mut dyn Write) -> Result<(), Error> {
    let began = Instant::now();
    let (_, script) = world::build();
    let numbers = options.numbers(&script)?;
    let mut page = DemoPage::new(out, options.is_styled);
    page.introduction(&options).map_err(Error::Output)?;
    let mut failed = 0;
    let alike = |a: &usize, b: &usize| {
        let model = options.has_model() || script.needs_model(*a) == script.needs_model(*b);
        model && script.settings(*a) == script.settings(*b)
    };
    for numbers in numbers.chunk_by(alike) {
        failed += play(numbers, &options, &mut page).await?;
    }
    let all = numbers.len();
    page.summary(all - failed, all, began.elapsed(), &options)
        .map_err(Error::Output)?;
    if failed > 0 {
        return Err(Error::Unexpected { failed, all });
    }
    Ok(())
}

/// Plays scenes with the same settings that all need a model, or none of which does, in a
/// world of their own. Returns how many were not answered as expected.
async fn play(
    numbers: &[usize],
    options: &DemoOptions,
    page: &mut DemoPage<'_>,
) -> Result<usize, Error> {
    let (world, mut script) = world::build();
    let needs_script = !options.has_model() && numbers.iter().any(|n| script.needs_model(*n));
    let model = if needs_script {
        Some(model::start().await.map_err(sandbox::Error::Port)?)
    } else {
        None
    };
    let mut settings = model.as_ref().map_or_else(Vec::new, model::settings);
    let own = numbers.iter().flat_map(|number| script.settings(*number));
    settings.extend(own.cloned());
    settings.extend(options.settings.iter().cloned());
    if let Some(text) = &options.ask {
        for number in numbers {
            script.ask(*number, text);
        }
    }
    let mut sandbox = Sandbox::start(world, settings, None).await?;
    let played = play_on(
        &mut sandbox,
        &script,
        numbers,
        model.as_ref(),
        options,
        page,
    );
    let played = played.await;
    let stopped = sandbox.stop().await;
    let failed = played?;
    stopped?;
    Ok(failed)
}

async fn play_on(
    sandbox: &mut Sandbox,
    script: &Script,
    numbers: &[usize],
    model: Option<&ScriptedModel>,
    options: &DemoOptions,
    page: &mut DemoPage<'_>,
) -> Result<usize, Error> {
    let judged = Judged {
        figures: !options.has_own_caps(script) && options.ask.is_none(),
        words: !options.has_model(),
    };
    let mut failed = 0;
    for &number in numbers {
        let complaints = if let Some(scene) = script.scene(number) {
            let played = stage::play(sandbox, number, scene, &script.cast).await?;
            let complaints = expect::complaints(&scene.expect, &played, judged);
            let shown = if options.is_verbose {
                page.scene(number, scene, &played, &complaints)
            } else {
                page.short(number, scene, &played, options, &complaints)
            };
            shown.map_err(Error::Output)?;
            complaints
        } else if let Some(call) = script.call(number) {
            let played = stage::play_call(sandbox, call, &script.cast, model).await?;
            let complaints = expect::complaints_of_call(call, &played, judged);
            page.call(number, call, &played, &complaints)
                .map_err(Error::Output)?;
            complaints
        } else {
            Vec::new()
        };
        failed += usize::from(!complaints.is_empty());
    }
    Ok(failed)
}

/// Plays the questions and the task, whatever is answered, and returns the world as they leave it.
///
/// # Errors
/// Whatever kept a scene from being played.
#[cfg(feature = "test-util")]
pub async fn played(settings: Vec<(String, String)>) -> Result<World, Error> {
    let (world, script) = world::build();
    let mut sandbox = Sandbox::start(world, settings, None).await?;
    for (number, scene) in (1..).zip(&script.scenes) {
        stage::play(&mut sandbox, number, scene, &script.cast).await?;
    }
    stage::play_call(&sandbox, &script.calls[0], &script.cast, None).await?;
    let discord = &sandbox.discord;
    let world = discord.world(|world| std::mem::replace(world, World::new()));
    sandbox.stop().await?;
    Ok(world)
}
