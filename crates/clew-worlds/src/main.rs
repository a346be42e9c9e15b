//! Runs the whole bot in seeded worlds: a Discord, people and faults of which nobody has
//! thought, in virtual time on one thread, and checks what must always hold. The same seed
//! is the same world, event by event.

mod chance;
mod clock;
mod evidence;
mod history;
mod people;
mod place;
mod plan;
mod process;
mod report;
mod rules;
mod run;
mod seams;
mod shrink;
mod world;

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::Parser;

use plan::Plan;
use report::Totals;
use world::lock;

/// Runs the bot in seeded worlds and checks what must always hold.
#[derive(Parser)]
struct Options {
    /// Which seeds: FROM..TO, without TO.
    #[arg(long, value_parser = seeds, default_value = "0..100")]
    seeds: Range<u64>,
    /// How many worlds at once.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Leaves out of a failing script what is not needed to fail.
    #[arg(long)]
    shrink: bool,
    /// Prints the whole history of each world, and its telemetry.
    #[arg(long)]
    history: bool,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let numbers = text.split_once("..");
    let numbers = numbers.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    numbers
        .filter(|seeds: &Range<u64>| !seeds.is_empty())
        .ok_or_else(|| "write FROM..TO, such as 0..1000".to_owned())
}

fn main() -> ExitCode {
    let options = Options::parse();
    let next = AtomicU64::new(options.seeds.start);
    let totals = Mutex::new(Totals::default());
    thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !options.seeds.contains(&seed) {
                        return;
                    }
                    let plan = Plan::of(seed);
                    let ran = run::run(&plan);
                    if options.history
                        && let Ok(evidence) = &ran
                    {
                        report::print_history(evidence, usize::MAX);
                    }
                    let failed = lock(&totals).add(&plan, ran);
                    if let Some(rule) = failed.filter(|_| options.shrink) {
                        report::print_script(&shrink::shrink(&plan, rule));
                    }
                }
            });
        }
    });
    let totals = lock(&totals);
    totals.print();
    if totals.failed() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
