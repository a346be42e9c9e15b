//! Splitting an answer into messages: properties of every answer, and how particular ones are cut.

use clew::engine::deliver::{self, CONTINUED, CUT, Delivery, MAX_MESSAGE_UNITS, Overflow};
use proptest::prelude::*;

/// More messages than any text of these tests needs.
const MANY: usize = 1000;

fn split(text: &str, max_messages: usize) -> Delivery {
    deliver::split(text, max_messages, Overflow::Attached)
}

fn messages(text: &str) -> Vec<String> {
    let delivery = split(text, MANY);
    assert_eq!(delivery.overflow, None);
    delivery.messages
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// `text` without white space and without lines that are only a fence.
fn essence(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim().starts_with("```"))
        .flat_map(str::chars)
        .filter(|character| !character.is_whitespace())
        .collect()
}

/// Asserts that the text becomes two messages: how the first ends and the second starts.
#[track_caller]
fn check_cut(text: &str, end: &str, start: &str) {
    let messages = messages(text);
    assert!(messages[0].ends_with(end), "{:?}", messages[0]);
    assert!(messages[1].starts_with(start), "{:?}", messages[1]);
}

#[test]
fn a_short_answer_is_one_message() {
    assert_eq!(messages("Hello."), ["Hello."]);
    assert_eq!(messages("\n\n  indented\n\n"), ["  indented"]);
    for blank in ["", " ", "\n\n\t", "\u{3000}"] {
        assert_eq!(messages(blank), Vec::<String>::new());
    }
    assert_eq!(messages(&" ".repeat(9000)), Vec::<String>::new());
}

#[test]
fn cuts_fall_between_paragraphs_then_lines_sentences_words() {
    let words = "word ".repeat(300);
    check_cut(&format!("{words}end.\n\nNext {words}"), "end.", "Next");
    check_cut(&format!("{words}end\nNext {words}"), "end", "Next");
    check_cut(&format!("{words}End. Next {words}"), "End.", "Next");
    check_cut(&format!("{words}{words}"), "word", "word");
    check_cut(
        &format!("{}終わり。{}", "字".repeat(1500), "字".repeat(900)),
        "終わり。",
        "字",
    );
    check_cut(
        &format!("{words}\n\n## Title\n\n{words}"),
        "word",
        "## Title",
    );
}

#[test]
fn list_items_are_not_torn() {
    let item = format!("- {}\n  more of it\n", "word ".repeat(120));
    for message in messages(&item.repeat(9)) {
        assert!(
            message.starts_with("- ") && message.ends_with("  more of it"),
            "{message}"
        );
    }
    let nested = format!("- a\n{}", format!("  - {}\n", "b".repeat(700)).repeat(4));
    check_cut(&nested, "bbb", "  - b");
    let steps: Vec<String> = (1..200)
        .map(|step| format!("{step}. Do the thing of number {step}."))
        .collect();
    for message in messages(&steps.join("\n")) {
        assert!(message.starts_with(|c: char| c.is_ascii_digit()) && message.ends_with('.'));
    }
}

#[test]
fn a_cut_code_block_is_closed_and_opened_again() {
    let code = "    let value = compute(1, 2);\n".repeat(100);
    let parts = messages(&format!("See:\n```rust\n{code}```\nDone."));
    assert_eq!(parts.len(), 2);
    assert!(parts[0].starts_with("See:\n```rust\n") && parts[0].ends_with(";\n```"));
    assert!(parts[1].starts_with("```rust\n    let") && parts[1].ends_with(";\n```\nDone."));
}

#[test]
fn a_code_block_that_fits_is_not_cut() {
    let code = format!("```py\n{}```", "print(1)\n".repeat(100));
    check_cut(
        &format!("{}\n{code}", "word ".repeat(260)),
        "word",
        "```py\nprint",
    );
}

#[test]
fn a_closing_fence_never_starts_a_message() {
    for lines in 0..80 {
        let text = format!(
            "```\n{}\n{}```",
            "x".repeat(1950 - lines),
            "y\n".repeat(lines)
        );
        for message in messages(&text) {
            assert!(!message.starts_with("```\n```"), "{message:?}");
            assert!(message.starts_with("```\n") && message.ends_with("\n```"));
        }
    }
}

#[test]
fn a_longer_fence_is_opened_again_as_long() {
    let text = format!("````md\n```rust\n{}```\n````", "let x = 1;\n".repeat(300));
    for message in messages(&text) {
        assert!(
            message.starts_with("````md\n") && message.ends_with("\n````"),
            "{message}"
        );
    }
}

#[test]
fn an_unclosed_block_is_closed() {
    assert_eq!(messages("```rust\nlet x;"), ["```rust\nlet x;\n```"]);
    assert_eq!(messages("```rust\nlet x;\n``"), ["```rust\nlet x;\n```"]);
    assert_eq!(messages("~~~\nx"), ["~~~\nx"]);
}

#[test]
fn a_spoiler_that_is_cut_is_closed_and_opened_again() {
    let paragraph = "WORD ".repeat(180);
    let paragraphs = [paragraph.trim_end(); 3].join("\n\n");
    for (text, starts) in [
        (format!("it ends: ||{paragraphs}|| so."), "||WORD"),
        (
            format!("{}\n||\n{paragraphs}\n||\nso.", "word ".repeat(200)),
            "||WORD",
        ),
        (
            format!("||```rust\n{paragraphs}\n```||\nso."),
            "||```rust\nWORD",
        ),
    ] {
        let parts = messages(&text);
        assert!(parts.len() > 1 && parts[1].starts_with(starts), "{parts:?}");
        check_hidden(&parts).unwrap();
    }
    // Nothing may be hidden that nobody meant to hide.
    let text = format!("a || b {}", "word ".repeat(900));
    assert_eq!(messages(&text).concat().matches("||").count(), 1);
}

/// Asserts that all capital letters are within spoilers, and no others.
fn check_hidden(messages: &[String]) -> Result<(), TestCaseError> {
    for message in messages {
        let pieces: Vec<&str> = message.split("||").collect();
        prop_assert!(pieces.len() % 2 == 1, "{message}");
        for (at, piece) in pieces.into_iter().enumerate() {
            let is_hidden = at % 2 == 1;
            let is_other = |c: char| c.is_alphabetic() && c.is_uppercase() != is_hidden;
            let words = piece.lines().filter(|line| !line.starts_with("```"));
            let found = words.flat_map(str::chars).find(|c| is_other(*c));
            prop_assert!(
                found.is_none() && !(is_hidden && piece.trim().is_empty()),
                "{message}"
            );
        }
        prop_assert!(units(message) <= MAX_MESSAGE_UNITS);
    }
    Ok(())
}

/// Asserts that `piece` is never split, wherever the cut would fall.
#[track_caller]
fn check_whole(piece: &str) {
    for filler in (1900..2000).step_by(3) {
        for space in [" ", ""] {
            let text = format!(
                "{}{space}{piece}{space}{}",
                "ß".repeat(filler),
                "ß".repeat(300)
            );
            let parts = messages(&text);
            assert!(
                parts.iter().any(|part| part.contains(piece)),
                "{piece} after {filler} {space:?}"
            );
        }
    }
}

#[test]
fn joined_characters_mentions_and_markup_stay_whole() {
    for piece in ["👨‍👩‍👧‍👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🇩🇪", "👍🏽", "1️⃣", "𝒳", "e\u{301}\u{302}"]
    {
        check_whole(piece);
    }
    for piece in [
        "<@123456789012345678>",
        "<:name:123456789012345678>",
        "<t:1700000000:R>",
        "</ask now:123456789012345678>",
    ] {
        check_whole(piece);
    }
    check_whole("https://example.org/a/long/path?with=a&query=b#anchor");
    let filler = "ß ".repeat(965);
    for piece in [
        "`some code here`",
        "**some bold text here**",
        "[some text](https://example.org)",
    ] {
        for extra in 0..50 {
            let text = format!("{filler}{}{piece} {filler}", "ß".repeat(extra));
            assert!(
                messages(&text).iter().any(|part| part.contains(piece)),
                "{extra}"
            );
        }
    }
}

#[test]
fn what_does_not_fit_is_a_file() {
    let text = format!("```rust\n{}```", "let value = 1;\n".repeat(1000));
    let delivery = split(&text, 3);
    assert_eq!(delivery.messages.len(), 3);
    assert!(delivery.messages[2].ends_with(&format!("\n```\n{CONTINUED}")));
    assert!(
        delivery
            .messages
            .iter()
            .all(|message| units(message) <= MAX_MESSAGE_UNITS)
    );
    assert_eq!(delivery.overflow.as_deref(), Some(text.as_str()));
    assert_eq!(split(&text, MANY).messages[..2], delivery.messages[..2]);

    let none = split("text", 0);
    assert!(none.messages.is_empty() && none.overflow.as_deref() == Some("text"));
}

#[test]
fn without_files_the_rest_is_cut_and_a_line_says_so() {
    let prose = "All work and no play. ".repeat(1_000);
    let code = format!("```rust\n{}```", "let value = 1;\n".repeat(1000));
    for text in [prose, code] {
        let cut = deliver::split(&text, 3, Overflow::Cut);
        assert_eq!((cut.messages.len(), cut.overflow), (3, None));
        let small_print = cut.messages[2].lines().last().unwrap();
        assert_eq!(small_print, CUT);
        assert!(units(&cut.messages[2]) <= MAX_MESSAGE_UNITS);
        let shown = &text[..cut.cut_at.unwrap()];
        let posted = cut.messages.join("\n").replace(CUT, "");
        assert_eq!(essence(shown), essence(&posted));
    }
    let short = deliver::split("short", 3, Overflow::Cut);
    assert_eq!((short.messages.len(), short.cut_at), (1, None));
}

/// As many as an answer cites, with the longest ids.
fn links() -> String {
    let id = u64::MAX;
    let link = |number| format!(" [\\[{number}\\]](<https://discord.com/channels/{id}/{id}/{id}>)");
    let links: String = (1..=8).map(link).collect();
    format!("\n\n-#{links}")
}

#[test]
fn links_are_never_torn_and_never_in_the_file_alone() {
    let line = links().trim().to_owned();
    let words = "word ".repeat(1_500);
    for length in (0..1_990)
        .chain(1_990..2_010)
        .step_by(7)
        .chain([3_950, 7_000])
    {
        let text = format!("{}{}", words[..length].trim_end(), links());
        let messages = messages(&text);
        let with = messages.iter().filter(|text| text.contains(&line));
        let some = messages.iter().filter(|text| text.contains("-#"));
        assert_eq!(
            (with.count(), some.count()),
            (1, 1),
            "{length}: {messages:?}"
        );
    }
    for (overflow, note) in [(Overflow::Attached, CONTINUED), (Overflow::Cut, CUT)] {
        for why in ["", "\nIt broke off, which is a pity."] {
            let text = format!("{words}{}{why}", links());
            let delivery = deliver::split(&text, 2, overflow);
            let last = &delivery.messages[1];
            assert!(last.ends_with(&format!("\n{note}\n{line}{why}")), "{last}");
            assert!(units(last) <= MAX_MESSAGE_UNITS);
        }
    }
    let too_many = format!("{words}{}", links().repeat(3));
    let last = deliver::split(&too_many, 1, Overflow::Attached).messages;
    assert!(last[0].contains(&line) && units(&last[0]) <= MAX_MESSAGE_UNITS);
}

/// A part of an answer as models write them.
fn part() -> impl Strategy<Value = String> {
    let prose = "([a-zäß日本。,]{1,12}[ .!]){1,160}";
    let code = "([ ]{0,8}[a-z(){};<>&\"=\t]{1,60}\n){0,60}";
    let items = "((  )?[-*] ([a-z]{1,9} ){1,40}\n){1,12}";
    let emoji = prop::collection::vec(
        prop::sample::select(vec!["👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "e\u{301}", "字"]),
        1..400,
    );
    prop_oneof![
        4 => prose,
        2 => (prop::sample::select(vec!["", "rust", "c++", "py"]), code)
            .prop_map(|(language, code)| format!("```{language}\nx\n{code}```")),
        2 => items,
        1 => emoji.prop_map(|emoji| emoji.concat()),
        1 => "[a-zA-Z0-9+/]{1,3000}",
        1 => "(<@[0-9]{17,19}>|`[a-z ]{1,30}`|https://[a-z/]{1,80}|[*]{2}[a-z ]{1,30}[*]{2}| ){1,60}",
        1 => "## [a-z ]{1,40}",
    ]
}

fn answer() -> impl Strategy<Value = String> {
    let gap = prop::sample::select(vec!["\n", "\n\n", "\n\n\n"]);
    prop::collection::vec((part(), gap), 1..9)
        .prop_map(|parts| parts.into_iter().map(|(part, gap)| part + gap).collect())
}

/// Text with backticks anywhere.
fn chaos() -> impl Strategy<Value = String> {
    "([a-z<>@*#:. -]{1,40}|`{1,5}|\n{1,3}|```[a-z]{0,4}\n|[ ]{1,50}|>|👍🏽|\u{200D}|\u{301}){0,500}"
}

fn check_sizes(text: &str) -> Result<(), TestCaseError> {
    for max in [1, 2, 4, MANY] {
        let delivery = split(text, max);
        prop_assert!(delivery.messages.len() <= max);
        prop_assert_eq!(delivery.messages.is_empty(), text.trim().is_empty());
        for message in &delivery.messages {
            prop_assert!(units(message) <= MAX_MESSAGE_UNITS && !message.trim().is_empty());
        }
    }
    Ok(())
}

/// Asserts that a message never changes once another follows it, while the text grows.
fn check_growth(text: &str, steps: usize) -> Result<(), TestCaseError> {
    let ends: Vec<usize> = text
        .char_indices()
        .map(|(index, _)| index)
        .chain([text.len()])
        .collect();
    for max in [3, MANY] {
        let mut frozen: Vec<String> = Vec::new();
        for end in ends
            .iter()
            .step_by(ends.len().div_ceil(steps))
            .chain(ends.last())
        {
            let now = split(&text[..*end], max).messages;
            prop_assert!(now.starts_with(&frozen), "{:?} then {:?}", frozen, now);
            frozen = now;
            frozen.pop();
        }
    }
    Ok(())
}

/// Spoilers in capital letters, among other words.
fn spoilers() -> impl Strategy<Value = String> {
    let hidden = "\\|\\|[A-Z]([A-Z. ]{1,60}\n{0,2}){1,40}[A-Z]\\|\\|";
    let code = "\\|\\|```(rust)?\n([A-Z ]{1,40}\n){1,60}```\\|\\|";
    let open = "([a-z]{1,9}[. ]){1,120}";
    let gap = prop::sample::select(vec![" ", "\n", "\n\n"]);
    // A line that gets its first bar waits, since it may begin a table.
    let line = prop::sample::select(vec!["\n", "\n\n"]);
    let part = prop_oneof![
        2 => (hidden, gap.clone()),
        1 => (code, gap),
        3 => (open, line),
    ];
    prop::collection::vec(part, 1..9)
        .prop_map(|parts| parts.into_iter().map(|(part, gap)| part + gap).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_hold_the_whole_answer(text in answer()) {
        check_sizes(&text)?;
        let parts = messages(&text);
        prop_assert_eq!(essence(&parts.join("\n")), essence(&text));
        for part in &parts {
            prop_assert_eq!(part.matches("```").count() % 2, 0, "{}", part);
        }
    }

    #[test]
    fn what_is_hidden_stays_hidden(text in spoilers()) {
        let ends = text.char_indices().map(|(index, _)| index);
        let mut frozen: Vec<String> = Vec::new();
        for end in ends.step_by(97) {
            let shown = deliver::readable(&text[..end], false).text;
            let now = messages(&shown);
            check_hidden(&now)?;
            prop_assert!(now.starts_with(&frozen), "{:?} then {:?}", frozen, now);
            frozen = now;
            frozen.pop();
        }
        let whole = messages(&text);
        check_hidden(&whole)?;
        let plain = |text: &str| -> String {
            let text = text.replace("```rust", "");
            text.chars().filter(|c| !c.is_whitespace() && !"|`".contains(*c)).collect()
        };
        prop_assert_eq!(plain(&whole.join("\n")), plain(&text));
    }

    #[test]
    fn no_text_breaks_the_limits(text in chaos()) {
        check_sizes(&text)?;
        let plain = |text: &str| -> String {
            text.chars().filter(|c| !c.is_whitespace() && !"`>".contains(*c)).collect()
        };
        // A reopened block repeats its language; without fences there is none to repeat.
        let mut bare = text;
        while bare.contains("```") {
            bare = bare.replace("```", "``");
        }
        prop_assert_eq!(plain(&messages(&bare).concat()), plain(&bare));
    }

    #[test]
    fn a_growing_answer_keeps_its_messages(text in answer()) {
        check_growth(&text, 30)?;
    }

    #[test]
    fn a_growing_text_with_stray_backticks_keeps_its_messages(text in chaos()) {
        check_growth(&text, 30)?;
    }
}

#[test]
fn a_growing_answer_keeps_its_messages_at_small_steps() {
    let code = "let v = \"``\"; // `x`\n".repeat(99);
    let text = format!(
        "{}\n\n```rust\n{code}```\n\nAnd **so** on 👨‍👩‍👧.\n{}",
        "Word, ".repeat(300),
        "- item\n".repeat(200)
    );
    check_growth(&text, 2_000).unwrap();
}
