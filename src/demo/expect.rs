//! Whether a scene was answered as expected.

use super::scene::{Answered, CallPlayed, DemoCall, Expect, Played};

/// What is compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged {
    /// Figures, and what they follow from: not with caps of one's own or another question.
    pub(super) figures: bool,
    /// What answers say and which tools are called: not with a model of one's own.
    pub(super) words: bool,
}

/// What is not as expected, one line each.
pub(super) fn complaints(expect: &Expect, played: &Played, judged: Judged) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut check = |holds: bool, complaint: String| {
        if !holds {
            complaints.push(complaint);
        }
    };
    let outcome = played.detail("turn_done").map(|done| &done["outcome"]);
    check(
        outcome.is_some_and(|outcome| outcome == "answered"),
        format!("outcome: {}", shown(outcome)),
    );
    check(
        !played.answers.is_empty(),
        "no answer was posted".to_owned(),
    );
    let case = played.detail("trigger").map(|trigger| &trigger["scene"]);
    check(
        case.is_some_and(|case| *case == expect.case),
        format!("scene: {}, expected {}", shown(case), expect.case),
    );
    let made = played.gets.len();
    check(
        made <= expect.gets || !judged.figures || !judged.words,
        format!("GETs: {made}, expected at most {}", expect.gets),
    );
    if judged.figures {
        // Without a block there is no such line.
        let collected = played.detail("collect_ok");
        let messages = collected.map_or(Some(0), |ok| ok["msgs"].as_u64());
        check(
            messages == Some(expect.messages),
            format!("messages: {messages:?}, expected {}", expect.messages),
        );
        let wanted = match expect.answered {
            Answered::Question => Some(played.question),
            Answered::Before => played.before,
        };
        check(
            played.replied == wanted,
            "the answer replies to another message".to_owned(),
        );
        for fallback in played.details("collect_fallback") {
            check(false, format!("something is missing: {fallback}"));
        }
    }
    if judged.figures && judged.words {
        let called = played.details("tool_called").map(|call| &call["tool"]);
        check(
            called.eq(&expect.tools),
            format!("not these tools were called: {}", expect.tools.join(", ")),
        );
        for quoted in &expect.quoted {
            let quotes = played
                .answers
                .iter()
                .any(|a| a.content.contains(quoted.as_str()));
            check(quotes, format!("the answer does not quote \"{quoted}\""));
        }
    }
    complaints
}

/// What is not as expected of a command.
pub(super) fn complaints_of_call(
    call: &DemoCall,
    played: &CallPlayed,
    judged: Judged,
) -> Vec<String> {
    if !judged.words {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for quoted in &call.quoted {
        let mut texts = played.posted.iter().chain([&played.told]);
        if !texts.any(|text| text.contains(quoted)) {
            complaints.push(format!("the answer does not quote \"{quoted}\""));
        }
    }
    let first = played.requests.first();
    if first.is_none_or(|roles| roles != &["system", "user"]) {
        complaints.push("the first request holds more than was asked".to_owned());
    }
    complaints
}

fn shown(value: Option<&serde_json::Value>) -> String {
    value.map_or_else(|| "none".to_owned(), ToString::to_string)
}
