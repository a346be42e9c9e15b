//! What must hold in every world. A rule is a function of the evidence, in a file of
//! `rules/`, and its line here.

mod answers;
mod gone;
mod hidden;
mod process;
mod stored;
mod telemetry;

pub(crate) use answers::losses;

use crate::evidence::Evidence;

/// A rule: its name, and what it is broken by.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) check: fn(&Evidence) -> Verdict,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// There was nothing to judge.
    Unreached,
    /// It holds, for something.
    Holds,
    /// It is broken: by what, and where in the history.
    Broken(String),
}

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "answered_once",
        check: answers::answered_once,
    },
    Rule {
        name: "answered",
        check: answers::answered,
    },
    Rule {
        name: "answers_reply",
        check: answers::answers_reply,
    },
    Rule {
        name: "deleted_is_not_shown",
        check: gone::deleted_is_not_shown,
    },
    Rule {
        name: "edited_is_not_shown",
        check: gone::edited_is_not_shown,
    },
    Rule {
        name: "opted_out_is_not_shown",
        check: gone::opted_out_is_not_shown,
    },
    Rule {
        name: "hidden_is_not_shown",
        check: hidden::hidden_is_not_shown,
    },
    Rule {
        name: "gone_is_not_kept",
        check: gone::gone_is_not_kept,
    },
    Rule {
        name: "stops",
        check: process::stops,
    },
    Rule {
        name: "runs",
        check: process::runs,
    },
    Rule {
        name: "one_is_the_bot",
        check: process::one_is_the_bot,
    },
    Rule {
        name: "goes_on_soon",
        check: process::goes_on_soon,
    },
    Rule {
        name: "gives_way",
        check: process::gives_way,
    },
    Rule {
        name: "hands_over",
        check: process::hands_over,
    },
    Rule {
        name: "memory_is_bounded",
        check: process::memory_is_bounded,
    },
    Rule {
        name: "no_words_in_telemetry",
        check: telemetry::no_words,
    },
    Rule {
        name: "turns_are_told",
        check: telemetry::turns_are_told,
    },
    Rule {
        name: "collects_in_time",
        check: telemetry::collects_in_time,
    },
    Rule {
        name: "caps_hold",
        check: telemetry::caps_hold,
    },
    Rule {
        name: "people_have_limits",
        check: answers::people_have_limits,
    },
    Rule {
        name: "servers_have_limits",
        check: telemetry::servers_have_limits,
    },
    Rule {
        name: "people_have_tokens",
        check: telemetry::people_have_tokens,
    },
    Rule {
        name: "erased_is_not_kept",
        check: gone::erased_is_not_kept,
    },
    Rule {
        name: "cleared_is_not_shown",
        check: gone::cleared_is_not_shown,
    },
    Rule {
        name: "stored_once",
        check: stored::stored_once,
    },
    Rule {
        name: "stored_as_posted",
        check: stored::stored_as_posted,
    },
    Rule {
        name: "stored_in_order",
        check: stored::stored_in_order,
    },
    Rule {
        name: "answered_is_kept",
        check: stored::answered_is_kept,
    },
    Rule {
        name: "stores_agree",
        check: stored::stores_agree,
    },
    Rule {
        name: "quiet_drains",
        check: process::quiet_drains,
    },
    Rule {
        name: "health_follows_store",
        check: process::health_follows_store,
    },
    Rule {
        name: "store_is_well",
        check: process::store_is_well,
    },
];

/// Holds if anything was judged and nothing was found.
pub(crate) fn verdict(judged: usize, found: Option<String>) -> Verdict {
    match (judged, found) {
        (_, Some(what)) => Verdict::Broken(what),
        (0, None) => Verdict::Unreached,
        (_, None) => Verdict::Holds,
    }
}
