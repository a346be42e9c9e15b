//! What a run prints.

use std::collections::{BTreeMap, BTreeSet};

use crate::evidence::{Evidence, Post};
use crate::history::{MarkOf, What};
use crate::plan::{Act, FaultAct, Plan};
use crate::rules::{RULES, Verdict, losses};

/// How much of the history is shown of a world that fails.
const SHOWN: usize = 50;
/// And of one whose script was shortened.
pub(crate) const SHRUNK: usize = 400;
/// Of so few questions one lost says nothing.
const FEW: usize = 1_000;

/// What came of all worlds.
#[derive(Default)]
pub(crate) struct Totals {
    worlds: usize,
    failed: usize,
    /// In how many worlds each fault began.
    faults: BTreeMap<&'static str, usize>,
    /// In how many worlds each rule had something to judge.
    rules: BTreeMap<&'static str, usize>,
    acts: Vec<usize>,
    troubles: Vec<usize>,
    restarts: Vec<usize>,
    questions: usize,
    answers: usize,
    /// Questions that were lost as the documents say, by what they say.
    losses: BTreeMap<&'static str, usize>,
}

impl Totals {
    pub(crate) fn failed(&self) -> usize {
        self.failed
    }

    /// Adds a world. Returns the rule that it breaks.
    pub(crate) fn add(
        &mut self,
        plan: &Plan,
        ran: Result<Evidence, String>,
    ) -> Option<&'static str> {
        self.worlds += 1;
        let evidence = match ran {
            Ok(evidence) => evidence,
            Err(error) => {
                self.failed += 1;
                println!("seed {}: does not run: {error}", plan.seed);
                return Some("does_not_run");
            }
        };
        self.count(&evidence);
        let mut first = None;
        for rule in RULES {
            match (rule.check)(&evidence) {
                Verdict::Unreached => {}
                Verdict::Holds => *self.rules.entry(rule.name).or_default() += 1,
                Verdict::Broken(what) => {
                    println!(
                        "seed {} breaks {}: {what} (trace {})",
                        plan.seed,
                        rule.name,
                        evidence.hash()
                    );
                    if first.is_none() {
                        print_history(&evidence, SHOWN);
                        first = Some(rule.name);
                        self.failed += 1;
                    }
                }
            }
        }
        first
    }

    fn count(&mut self, evidence: &Evidence) {
        let met = evidence.history.iter().filter_map(|one| match one.what {
            What::Fault { name } => Some(name),
            What::Killed { .. } => Some("killed"),
            What::AskedToStop { .. } => Some("stopped"),
            _ => None,
        });
        for name in met.collect::<BTreeSet<_>>() {
            *self.faults.entry(name).or_default() += 1;
        }
        for why in losses(evidence) {
            *self.losses.entry(why).or_default() += 1;
        }
        let acts = |what: &What| {
            matches!(
                what,
                What::Said(_)
                    | What::Edited { .. }
                    | What::Deleted { .. }
                    | What::Called { .. }
                    | What::Seen { .. }
            )
        };
        self.acts.push(evidence.count(acts));
        let fault = |what: &What| matches!(what, What::Fault { .. });
        self.troubles.push(evidence.count(fault));
        let started = |what: &What| matches!(what, What::Started { .. });
        self.restarts
            .push(evidence.count(started).saturating_sub(1));
        let asked =
            |what: &What| matches!(what, What::Said(said) if said.mark.of == MarkOf::Question);
        self.questions += evidence.count(asked);
        let is_answer = |post: &&Post| post.marks.iter().any(|mark| mark.of == MarkOf::Answer);
        self.answers += evidence.posts.iter().filter(is_answer).count();
    }

    /// Whether as many questions are lost as should never be, but for those that belong to another
    /// process which has the store, and those where the bot may not answer.
    pub(crate) fn loses_many(&self) -> bool {
        let is_lost = |why: &str| !["store_held", "barred"].contains(&why);
        let lost = self.losses.iter().filter(|(why, _)| is_lost(why));
        let lost: usize = lost.map(|(_, count)| count).sum();
        self.questions > FEW && lost * 100 >= self.questions
    }

    pub(crate) fn print(&self) {
        let Self { worlds, failed, .. } = self;
        println!("{worlds} worlds, {failed} failed");
        println!(
            "a world, median: {} actions, {} faults, {} restarts; in all {} questions, {} answers; \
             lost: {:?}",
            median(&self.acts),
            median(&self.troubles),
            median(&self.restarts),
            self.questions,
            self.answers,
            self.losses
        );
        let share = |count: usize| 100 * count / (*worlds).max(1);
        println!("faults, in how many of a hundred worlds:");
        let known = FaultAct::NAMES.iter().copied().chain(["killed", "stopped"]);
        for name in known
            .chain(self.faults.keys().copied())
            .collect::<BTreeSet<_>>()
        {
            let count = self.faults.get(name).copied().unwrap_or_default();
            println!("  {name:<26} {:>3}", share(count));
        }
        println!("rules, in how many of a hundred worlds they judged and held:");
        for rule in RULES {
            let count = self.rules.get(rule.name).copied().unwrap_or_default();
            println!("  {:<26} {:>3}", rule.name, share(count));
        }
    }
}

fn median(numbers: &[usize]) -> usize {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The end of a world's history.
pub(crate) fn print_history(evidence: &Evidence, most: usize) {
    let from = evidence.history.len().saturating_sub(most);
    for happened in &evidence.history[from..] {
        println!("  {:>9} {:?}", happened.at, happened.what);
    }
    if most == usize::MAX {
        evidence
            .telemetry
            .iter()
            .for_each(|line| println!("{line}"));
    }
}

/// A script, to be read.
pub(crate) fn print_script(plan: &Plan) {
    println!(
        "seed {}, shrunk to {} steps ({:?}, {} servers, {} people, {:?}):",
        plan.seed,
        plan.script.len(),
        plan.store,
        plan.guilds,
        plan.people,
        plan.settings
    );
    for step in &plan.script {
        match step.what {
            Act::Person(act) => println!("  {:>9} {act:?}", step.at),
            Act::Fault(fault) => println!("  {:>9} {fault:?}", step.at),
            Act::Restart { how, down } => println!("  {:>9} {how:?}, down {down} ms", step.at),
        }
    }
}
