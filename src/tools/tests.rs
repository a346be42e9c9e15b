//! Each tool is named once, and whatever a tool does, a text of bounded size comes of it.

use std::collections::BTreeSet;

use super::*;
use crate::model::ToolName;
use crate::telemetry::event::ToolOutcome;

#[test]
fn every_tool_is_in_the_list_once() {
    let names: BTreeSet<ToolName> = TOOLS
        .iter()
        .map(|tool| tool.definition.name.clone())
        .collect();
    assert_eq!(names.len(), TOOLS.len());
    assert_eq!(
        names,
        BuiltIn::ALL
            .iter()
            .copied()
            .map(ToolName::BuiltIn)
            .collect()
    );
}

#[tokio::test]
async fn a_tool_that_hangs_is_stopped() {
    let result = within(Duration::from_millis(1), std::future::pending()).await;
    assert_eq!(result.outcome, ToolOutcome::Timeout);
    assert!(result.text.contains("too long"), "{}", result.text);
}

#[tokio::test]
async fn a_huge_result_and_bytes_that_are_no_text_are_taken_in_part() {
    let output = ToolOutput {
        content: vec![0xff; 50 << 20],
        ..ToolOutput::default()
    };
    let result = within(Duration::from_mins(1), async { Ok(output) }).await;
    assert_eq!((result.outcome, result.bytes), (ToolOutcome::Ok, 50 << 20));
    assert!(result.text.len() <= 3 * (4 << 20));
    assert!(result.text.chars().all(|one| one == '\u{fffd}'));
}

#[test]
fn arguments_are_equal_whatever_their_order_and_spaces() {
    let canonical = |text: &str| Arguments::parse(text).unwrap().canonical();
    assert_eq!(
        canonical(r#"{"a": 1, "b":"x"}"#),
        canonical(r#"{ "b":"x","a":1}"#)
    );
    for broken in ["", "{", "[]", "null", r#""{}""#, "{} {}"] {
        assert_eq!(Arguments::parse(broken), None, "{broken}");
    }
}

/// Models write ids as numbers, and white space around what they quote.
#[test]
fn an_argument_is_a_text_or_a_number() {
    let text = r#"{"id": " 12 ", "number": 12, "blank": " ", "list": ["12"], "yes": true}"#;
    let arguments = Arguments::parse(text).unwrap();
    for name in ["id", "number"] {
        assert_eq!(arguments.text(name).as_deref(), Some("12"), "{name}");
    }
    for name in ["blank", "list", "yes", "missing"] {
        assert_eq!(arguments.text(name), None, "{name}");
    }
}
