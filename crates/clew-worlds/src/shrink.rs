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

/// Leaves out as many steps as possible, larger pieces first, as long as the script fails.
pub(crate) fn shrink(plan: &Plan, fails: impl Fn(&Plan) -> bool) -> Plan {
    let mut plan = plan.clone();
    let mut piece = plan.script.len().div_ceil(2);
    while piece > 0 {
        let mut from = 0;
        while from < plan.script.len() {
            let mut shorter = plan.clone();
            let to = (from + piece).min(shorter.script.len());
            shorter.script.drain(from..to);
            if fails(&shorter) {
                plan = shorter;
            } else {
                from += piece;
            }
        }
        piece /= 2;
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps far from each other are needed.
    #[test]
    fn what_is_not_needed_to_fail_goes() {
        let plan = Plan::of(3);
        let needed = [7, plan.script.len() - 2].map(|step| plan.script[step].at);
        let fails = |plan: &Plan| {
            let has = |at: &i64| plan.script.iter().any(|step| step.at == *at);
            needed.iter().all(has)
        };
        let left = shrink(&plan, fails).script;
        let left: Vec<i64> = left.iter().map(|step| step.at).collect();
        assert_eq!(left, needed);
    }
}
