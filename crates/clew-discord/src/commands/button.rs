//! What a press of a button means, encoded in its `custom_id` with everything
//! needed, so that buttons work after a restart.

use crate::model::{Button, Paged};
use clew_store::model::FactId;

/// Most facts that a [`Button::ShowNoted`] can name; the rest are left out. A
/// `custom_id` holds 100 characters (Discord's reference, "Custom ID").
pub(super) const MAX_NOTED: usize = 5;

/// Characters of a fact's id as written here.
const FACT_CHARS: usize = 16;

/// The `custom_id` of a button, at most 100 ASCII characters.
pub(crate) fn custom_id(button: &Button) -> String {
    match button {
        Button::Page(list, page) => format!("page:{}:{page}", list_word(*list)),
        Button::SnapshotsOf(agent, page) => format!("snapshots-of:{agent}:{page}"),
        Button::ClearContext => "clear-context".to_owned(),
        Button::Forget(fact) => format!("forget:{fact}"),
        Button::ForgetOfServer(fact) => format!("forget-of-server:{fact}"),
        Button::Erase => "erase".to_owned(),
        Button::OptOut => "opt-out".to_owned(),
        Button::ShowNoted(facts) => {
            let facts = facts.iter().take(MAX_NOTED).map(FactId::to_string);
            format!("noted:{}", facts.collect::<String>())
        }
        Button::Cancel => "cancel".to_owned(),
    }
}

/// The button for a `custom_id`; `None` if this version does not write it.
pub(super) fn button(custom_id: &str) -> Option<Button> {
    let (word, rest) = match custom_id.split_once(':') {
        Some((word, rest)) => (word, Some(rest)),
        None => (custom_id, None),
    };
    match (word, rest) {
        ("page", Some(rest)) => {
            let (list, page) = rest.split_once(':')?;
            Some(Button::Page(list_of(list)?, page.parse().ok()?))
        }
        ("snapshots-of", Some(rest)) => {
            let (agent, page) = rest.split_once(':')?;
            Some(Button::SnapshotsOf(agent.parse().ok()?, page.parse().ok()?))
        }
        ("clear-context", None) => Some(Button::ClearContext),
        ("forget", Some(fact)) => fact.parse().ok().map(Button::Forget),
        ("forget-of-server", Some(fact)) => fact.parse().ok().map(Button::ForgetOfServer),
        ("erase", None) => Some(Button::Erase),
        ("opt-out", None) => Some(Button::OptOut),
        ("noted", Some(facts)) => noted(facts).map(Button::ShowNoted),
        ("cancel", None) => Some(Button::Cancel),
        _ => None,
    }
}

/// Reads ids written without separators.
fn noted(facts: &str) -> Option<Vec<FactId>> {
    if !facts.is_ascii() {
        return None;
    }
    let facts = (0..facts.len()).step_by(FACT_CHARS).map(|at| {
        let fact = facts.get(at..at + FACT_CHARS)?;
        fact.parse().ok()
    });
    facts.collect()
}

const LISTS: [Paged; 3] = [Paged::Facts, Paged::ServerFacts, Paged::Snapshots];

const fn list_word(list: Paged) -> &'static str {
    match list {
        Paged::Facts => "facts",
        Paged::ServerFacts => "server-facts",
        Paged::Snapshots => "snapshots",
    }
}

fn list_of(word: &str) -> Option<Paged> {
    LISTS.into_iter().find(|list| list_word(*list) == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clew_store::model::AgentName;

    #[test]
    fn every_button_comes_back() {
        #[track_caller]
        fn check(sent: Button) {
            let id = custom_id(&sent);
            assert!(id.is_ascii() && id.len() <= 100, "{id}");
            assert_eq!(button(&id), Some(sent), "{id}");
        }
        for list in LISTS {
            check(Button::Page(list, 0));
            check(Button::Page(list, u16::MAX));
        }
        let longest: AgentName = "a".repeat(32).parse().unwrap();
        check(Button::SnapshotsOf(longest, u16::MAX));
        check(Button::ClearContext);
        check(Button::Forget(FactId(0)));
        check(Button::ForgetOfServer(FactId(u64::MAX)));
        check(Button::Erase);
        check(Button::OptOut);
        check(Button::ShowNoted(Vec::new()));
        check(Button::ShowNoted(vec![FactId(7); MAX_NOTED]));
        check(Button::Cancel);
    }

    #[test]
    fn more_facts_than_fit_are_left_out() {
        let many: Vec<FactId> = (0..20).map(FactId).collect();
        let id = custom_id(&Button::ShowNoted(many.clone()));
        assert!(id.len() <= 100);
        let kept = many[..MAX_NOTED].to_vec();
        assert_eq!(button(&id), Some(Button::ShowNoted(kept)));
    }

    #[test]
    fn what_we_did_not_write_is_no_button() {
        for id in [
            "",
            ":",
            "page",
            "page:",
            "page:facts",
            "page:facts:-1",
            "page:facts:65536",
            "page:others:1",
            "snapshots-of:Nobody:1",
            "snapshots-of:nobody",
            "forget",
            "forget:xyz",
            "forget:0000000000000001:2",
            "erase:",
            "noted",
            "noted:000000000000000",
            "noted:00000000000000010",
            "noted:ÄÄÄÄÄÄÄÄ",
            "Erase",
            "somebody-else",
        ] {
            assert_eq!(button(id), None, "{id}");
        }
    }
}
