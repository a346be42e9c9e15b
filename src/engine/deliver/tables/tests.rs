//! Tables as Discord can show them, whole and while they grow.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(readable(text, true).text, expected);
}

#[test]
fn a_table_becomes_an_aligned_code_block() {
    check(
        "Prices:\n\n| what | price |\n|:-----|------:|\n| **tea** | 2 |\n| `coffee` | 13 |\n\nEnd.",
        "Prices:\n\n```\nwhat    price\n------  -----\ntea         2\ncoffee     13\n```\n\nEnd.",
    );
    // Without bars at the ends, with too few and too many cells, with an escaped bar.
    check(
        "a | b\n--- | ---\n1\\|2 | 3 | 4\n| 5\nno cells",
        "```\na    b\n---  -\n1|2  3\n5\n```\nno cells",
    );
    // Wide characters take two columns.
    check("|猫|x|\n|-|-|\n|a|y|\n", "```\n猫  x\n--  -\na   y\n```\n");
}

#[test]
fn what_is_no_table_stays() {
    for text in [
        "a | b\nc | d\n",
        "| a | b |\n|---|\n",
        "```\n| a | b |\n|---|---|\n```\n",
        "    | a | b |\n    |---|---|\n",
        "a || b\n\n|---|\n",
        "---\n",
        "",
    ] {
        check(text, text);
    }
}

#[test]
fn a_table_that_is_too_wide_becomes_a_list() {
    let long = "word ".repeat(30);
    let long = long.trim_end();
    check(
        &format!("| name | what | |\n|---|---|---|\n| tea | {long} | new |\n| x | | |\n"),
        &format!("- **tea** · what: {long} · new\n- **x**\n"),
    );
}

#[test]
fn a_table_that_grows_waits_for_its_end() {
    let text = "One.\n| a | b |\n|---|---|\n| 1 | 2 |\n| longer | 3 |\nTwo.\nThree.";
    let whole = readable(text, true).text;
    let mut last = String::new();
    for (end, _) in text.char_indices().skip(1) {
        let shown = readable(&text[..end], false).text;
        assert!(whole.starts_with(&shown), "{shown:?}");
        assert!(shown.starts_with(&last), "{shown:?} after {last:?}");
        last = shown;
    }
    assert!(last.ends_with("Three"), "{last}");
}

#[test]
fn a_place_in_the_text_is_one_in_the_original() {
    let text = "One.\n| a | b |\n|---|---|\n| 1 | 2 |\nTwo.";
    let shown = readable(text, true);
    assert_eq!(shown.original(3), 3);
    assert_eq!(shown.original(shown.text.len()), text.len());
    let two = shown.text.find("Two").unwrap();
    assert_eq!(&text[shown.original(two)..], "Two.");
    let within = shown.original(two - 2);
    assert!(within > 5 && within <= text.len() - 4, "{within}");
}

proptest! {
    #[test]
    fn any_text_is_taken(text in "[|\\-: a\\\\`\n猫]{0,60}") {
        let whole = readable(&text, true);
        prop_assert_eq!(whole.original(whole.text.len()), text.len());
        for end in 0..=whole.text.len() {
            prop_assert!(whole.original(end) <= text.len());
        }
        let growing = readable(&text, false).text;
        prop_assert!(whole.text.starts_with(&growing), "{:?} {:?}", growing, whole.text);
    }
}
