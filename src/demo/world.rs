//! The waterworks: its people, channels and conversations (`world.json`), and the scenes
//! played there, with a model and without (`scenes.json`). Every run is the same, except
//! that its time is now.

use serde::Deserialize;

use super::scene::{DemoCall, DemoScene};
use crate::sandbox::plan::{self, Cast, Said, WorldPlan};
use clew_simulator::World;

/// The channel whose thread is long, and how many of its messages are chatter.
const LONG: (&str, usize) = ("filter-house", 293);
/// How many of them are from yesterday.
const YESTERDAY: usize = 180;
/// The channel with a long line of replies, and how many other messages follow each.
const LINE: (&str, usize) = ("pumps", 20);
/// The three people on the shift.
const CREW: [&str; 3] = ["Ada", "Boris", "Chidi"];
/// The step through the remarks of a shift: coprime to their number, so that all come up
/// in an order that looks random.
const STRIDE: usize = 11;

/// What is played, in order, numbered from 1: the questions, then the commands.
pub(super) struct Script {
    /// Who and what the scenes name.
    pub(super) cast: Cast,
    /// The questions; the short demo shows the first few.
    pub(super) scenes: Vec<DemoScene>,
    /// The commands, first the task of an agent run.
    pub(super) calls: Vec<DemoCall>,
}

/// The scenes, and what fills up the long conversations.
#[derive(Deserialize)]
struct DemoFile {
    scenes: Vec<DemoScene>,
    calls: Vec<DemoCall>,
    /// Everyday remarks of a shift.
    remarks: Vec<String>,
    /// Remarks between the readings in the long thread.
    between_readings: Vec<String>,
}

impl Script {
    /// The question with this number; none if it is a command's.
    pub(super) fn scene(&self, number: usize) -> Option<&DemoScene> {
        self.scenes.get(number.checked_sub(1)?)
    }

    /// The command with this number.
    pub(super) fn call(&self, number: usize) -> Option<&DemoCall> {
        self.calls.get(number.checked_sub(self.scenes.len() + 1)?)
    }

    /// Whether it needs a model.
    pub(super) fn needs_model(&self, number: usize) -> bool {
        self.scene(number).is_none_or(|scene| scene.needs_model)
    }

    /// The settings with which it is played.
    pub(super) fn settings(&self, number: usize) -> &[(String, String)] {
        self.scene(number).map_or(&[], |scene| &scene.settings)
    }

    /// Asks something else there.
    pub(super) fn ask(&mut self, number: usize, text: &str) {
        let scene = self.scenes.get_mut(number.saturating_sub(1));
        if let Some(scene) = scene {
            scene.question = format!("{{bot}} {text}");
        }
    }
}

/// The world before anybody asks, and what is played in it.
pub(super) fn build() -> (World, Script) {
    let mut plan: WorldPlan = plan::read(include_str!("world.json"));
    let file: DemoFile = plan::read(include_str!("scenes.json"));
    for channel in &mut plan.channels {
        if channel.name == LONG.0 {
            let talks = channel.threads.iter_mut().flat_map(|one| &mut one.talks);
            for (talk, part) in talks.zip([0..YESTERDAY, YESTERDAY..LONG.1]) {
                let said = part.map(|nth| filter(nth, &file.between_readings));
                talk.said.splice(0..0, said);
            }
        }
        if channel.name == LINE.0 {
            let mut nth = 0;
            for talk in &mut channel.talks {
                for reply in std::mem::take(&mut talk.said) {
                    talk.said.push(reply);
                    for _ in 0..LINE.1 {
                        let who = (nth / LINE.1 + nth % LINE.1) % CREW.len();
                        let remark = &file.remarks[nth * STRIDE % file.remarks.len()];
                        let said = format!("{}: {remark}", CREW[who]);
                        talk.said.push(Said::Plain(said));
                        nth += 1;
                    }
                }
            }
        }
    }
    let (world, cast) = plan.build();
    let script = Script {
        cast,
        scenes: file.scenes,
        calls: file.calls,
    };
    (world, script)
}

/// The nth message of the long thread: every third one is a reading.
fn filter(nth: usize, remarks: &[String]) -> Said {
    let who = CREW[nth * 5 % CREW.len()];
    Said::Plain(if nth.is_multiple_of(3) {
        let turbidity = 28 + nth / 16 + nth * 7 % 4;
        let loss = 31 + nth / 25;
        format!("{who}: Outlet 0.{turbidity} NTU, head loss {loss} kPa.")
    } else {
        format!("{who}: {}", remarks[(nth - nth / 3) % remarks.len()])
    })
}
