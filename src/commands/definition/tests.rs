//! The table of commands, and what calls of other versions lead to.

use std::collections::BTreeSet;

use clew_discord::model::OptionValue;
use clew_store::model::{AgentName, FactId};

use super::*;
use crate::model::Noted;

#[test]
fn everything_is_described_in_a_hundred_characters() {
    #[track_caller]
    fn check(name: &str, description: &str) {
        let length = description.chars().count();
        assert!((1..=100).contains(&length), "{name}: {description}");
    }
    fn check_options(options: &[OptionSpec]) {
        assert!(options.is_sorted_by_key(|option| !option.required));
        for option in options {
            check(option.name, option.description);
            if let OptionKind::Sub(options) = option.kind {
                check_options(options);
            }
        }
    }
    for command in COMMANDS {
        if command.kind == CommandKind::Slash {
            check(command.name, command.description);
        }
        check_options(&command.spec().options);
    }
}

#[test]
fn names_are_given_once() {
    let names: BTreeSet<&str> = COMMANDS.iter().map(|command| command.name).collect();
    assert_eq!(names.len(), COMMANDS.len());
    let buttons = COMMANDS.iter().flat_map(|command| command.buttons);
    let buttons: Vec<&str> = buttons.chain(BUTTONS).map(|button| button.id).collect();
    for (at, button) in buttons.iter().enumerate() {
        let others = buttons.iter().enumerate().filter(|(other, _)| *other != at);
        let mut others = others.map(|(_, other)| *other);
        assert!(
            others.all(
                |other| !(button.ends_with(':') && other.starts_with(button)) && other != *button
            ),
            "{button}"
        );
    }
}

/// The actions of all commands.
fn actions() -> impl Iterator<Item = &'static Action> {
    COMMANDS.iter().flat_map(|command| match &command.body {
        Body::Action(action) => vec![action],
        Body::Subs(subs) => subs.iter().collect(),
    })
}

#[test]
fn what_wants_choices_gets_some() {
    for action in actions() {
        let completed = |option: &OptionSpec| matches!(option.kind, OptionKind::Completed);
        let wanted = action.options.iter().any(completed);
        assert_eq!(action.complete.is_some(), wanted, "{action:?}");
    }
}

fn call(name: &str, sub: Option<&str>, options: &[(&str, OptionValue)]) -> CommandData {
    let options = options.iter().cloned();
    CommandData {
        name: name.to_owned(),
        sub: sub.map(str::to_owned),
        options: options
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        ..CommandData::default()
    }
}

fn text(text: &str) -> OptionValue {
    OptionValue::Text(text.to_owned())
}

#[test]
fn a_call_leads_to_its_command() {
    #[track_caller]
    fn check(call: CommandData, expected: &str) {
        let found = find(&InteractionData::Command(call)).unwrap();
        assert_eq!(found.called.word.to_string(), expected);
        assert_eq!(
            found.for_everybody,
            ["privacy", "connect", "help"]
                .iter()
                .any(|one| expected.starts_with(one))
        );
        let asks = ["context_save", "catch_up", "summarise_from_here"].contains(&expected);
        assert_eq!(
            found.called.work != Work::Short,
            asks || expected == "privacy_export"
        );
        assert_eq!(found.called.work == Work::Model, asks);
    }
    let pump = || [("text", text("pump"))];
    check(call("help", None, &[]), "help");
    check(call("catch-up", None, &[]), "catch_up");
    check(
        call("Summarise from here", None, &[]),
        "summarise_from_here",
    );
    check(call("clear-context", None, &[]), "clear_context");
    check(call("context", Some("show"), &[]), "context_show");
    check(call("context", Some("save"), &[]), "context_save");
    check(call("memory", Some("remember"), &pump()), "memory_remember");
    check(
        call("server-memory", Some("remember"), &pump()),
        "server_memory_remember",
    );
    check(call("settings", Some("set"), &[]), "settings_set");
    check(call("connect", Some("list"), &[]), "connect_list");
    check(call("privacy", Some("opt-out"), &[]), "privacy_opt_out");
    check(call("privacy", Some("export"), &[]), "privacy_export");
}

#[test]
fn what_is_missing_or_of_another_version_is_unknown() {
    #[track_caller]
    fn check(call: CommandData) {
        let data = InteractionData::Command(call);
        assert!(find(&data).is_none(), "{data:?}");
    }
    check(call("old", None, &[]));
    check(call("ask", None, &[]));
    check(call("memory", None, &[]));
    check(call("memory", Some("remember"), &[]));
    check(call(
        "memory",
        Some("forget"),
        &[("fact", OptionValue::Flag(true))],
    ));
    check(call("context", Some("restore"), &[]));
    check(call("context", Some("other"), &[]));
    check(call("privacy", Some(""), &[]));
    check(call("help", Some("show"), &[]));
    let mode = [("channel", text("42")), ("mode", text("sometimes"))];
    check(call("settings", Some("set"), &mode));
    assert!(find(&InteractionData::Other).is_none());
}

#[test]
fn options_are_completed_where_that_was_promised() {
    #[track_caller]
    fn check(name: &str, sub: &str, option: &str, expected: bool) {
        let typed = CommandData {
            focused: Some(option.to_owned()),
            ..call(name, Some(sub), &[(option, text("pi"))])
        };
        let found = find(&InteractionData::Autocomplete(typed));
        assert_eq!(found.is_some(), expected);
        assert!(found.is_none_or(|found| found.called.deferral == Deferral::NoChoices));
    }
    check("memory", "forget", "fact", true);
    check("server-memory", "forget", "fact", true);
    check("context", "restore", "snapshot", true);
    check("context", "history", "agent", true);
    check("memory", "remember", "text", false);
    check("memory", "forget", "other", false);
    check("context", "forget", "fact", false);
}

/// The ids that any version ever posted. Messages with them stay in channels and
/// conversations for years: nothing may leave this list.
#[test]
fn a_button_that_was_posted_once_keeps_working() {
    #[track_caller]
    fn check(custom_id: &str, argument: &str, for_everybody: bool) {
        assert!(custom_id.is_ascii() && custom_id.len() <= 100);
        let found = find(&InteractionData::Button(custom_id.to_owned())).unwrap();
        assert_eq!(
            (&*found.called.argument, found.for_everybody),
            (argument, for_everybody)
        );
        let stays = ["noted:", "stop-", "regenerate:"];
        let stays = stays.iter().any(|id| custom_id.starts_with(id));
        assert_eq!(found.called.deferral == Deferral::Thinking, stays);
        let long = ["erase", "opt-out"].contains(&custom_id);
        assert_eq!(found.called.work == Work::Long, long);
    }
    check("page:facts:0", "0", false);
    check("page:server-facts:65535", "65535", false);
    check("page:snapshots:1", "1", false);
    let agent: AgentName = "a".repeat(32).parse().unwrap();
    let of_agent = format!("{agent}:65535");
    check(&format!("snapshots-of:{of_agent}"), &of_agent, false);
    check("clear-context", "", false);
    let fact = FactId(u64::MAX).to_string();
    check(&format!("forget:{fact}"), &fact, true);
    check(&format!("forget-of-server:{fact}"), &fact, false);
    check("erase", "", true);
    check("opt-out", "", true);
    let noted = Noted(vec![FactId(7); 9]).to_string();
    check(&format!("noted:{noted}"), &noted, true);
    check("cancel", "", true);
    check("stop-run:7", "7", false);
    check("stop-answer:7", "7", false);
    check("regenerate:m7.1a", "m7.1a", false);
    check("continue:7.8", "7.8", false);
}

#[test]
fn what_we_did_not_post_is_no_button() {
    for id in [
        "",
        ":",
        "page",
        "page:",
        "page:others:1",
        "forget",
        "erase:",
        "Erase",
        "noted",
        "somebody-else",
    ] {
        assert!(
            find(&InteractionData::Button(id.to_owned())).is_none(),
            "{id}"
        );
    }
}
