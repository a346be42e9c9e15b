//! Makes a failing script shorter, as long as it breaks the same rule.

use crate::plan::Plan;
use crate::rules::{RULES, Verdict};
use crate::run;

/// The rule that a plan breaks first, and by what.
pub(crate) fn broken(plan: &Plan) -> Option<(&'static str, String)> {
    let evidence = match run::run(plan) {
        Ok(evidence) => evidence,
        Err(error) => return Some(("does_not_run", error)),
    };
    RULES.iter().find_map(|rule| match (rule.check)(&evidence) {
        Verdict::Broken(what) => Some((rule.name, what)),
        Verdict::Unreached | Verdict::Holds => None,
    })
}

/// Leaves out as many steps as possible, larger pieces first.
pub(crate) fn shrink(plan: &Plan, rule: &str) -> Plan {
    let mut plan = plan.clone();
    let mut piece = plan.script.len().div_ceil(2);
    while piece > 0 {
        let mut from = 0;
        while from < plan.script.len() {
            let mut shorter = plan.clone();
            let to = (from + piece).min(shorter.script.len());
            shorter.script.drain(from..to);
            if broken(&shorter).is_some_and(|(name, _)| name == rule) {
                plan = shorter;
            } else {
                from += piece;
            }
        }
        piece /= 2;
    }
    plan
}
