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
        "```\na    b\n---  -----\n1|2  3 | 4\n5\n```\nno cells",
    );
    // Joined emoji are one of two columns.
    check("|👨‍👩‍👧|x|\n|-|-|\n|ab|y|\n", "```\n👨‍👩‍👧  x\n--  -\nab  y\n```\n");
    // Wide characters take two columns.
    check("|猫|x|\n|-|-|\n|a|y|\n", "```\n猫  x\n--  -\na   y\n```\n");
}

/// What stands between backticks is shown to the letter, bars, asterisks and tags as well.
#[test]
fn code_in_a_cell_stays_as_it_is() {
    check(
        "|what|code|\n|-|-|\n|power|`2**3**4`|\n|or|`a || b`|\n|break|`<br>`|\n",
        "```\nwhat   code\n-----  -------\npower  2**3**4\nor     a || b\nbreak  <br>\n```\n",
    );
    // Asterisks that make nothing bold mean themselves; a tick that nothing closes, too.
    check(
        "|a|b|\n|-|-|\n|2 ** 3|**x** **|\n|5` | 6|\n",
        "```\na       b\n------  ----\n2 ** 3  x **\n5       6\n```\n",
    );
    check(
        "|a|b|\n|-|-|\n|x<br>y|z<br />|\n",
        "```\na    b\n---  -\nx y  z\n```\n",
    );
}

/// In a code block nobody could click an address or see whom a mention names.
#[test]
fn a_table_with_mentions_or_addresses_becomes_a_list() {
    check(
        "|who|where|\n|-|-|\n|<@12>|`x*y*`|\n",
        "- **<@12>** · where: `x*y*`\n",
    );
    check(
        "|what|page|\n|-|-|\n|**tea**|<https://a.example/b> or [c](https://c.example)|\n",
        "- **tea** · page: <https://a.example/b> or [c](https://c.example)\n",
    );
    check(
        "|a|b|\n|-|-|\n|`<@12>`|`x://`|\n",
        "```\na      b\n-----  ----\n<@12>  x://\n```\n",
    );
}

/// Its bars are no columns, and in a code block it would be read.
#[test]
fn a_table_with_a_spoiler_becomes_a_list() {
    check(
        "|who|end|\n|-|-|\n|Ada|||dies||, or ||flees `x`|||\n| Bob | ||x||\n",
        "- **Ada** · end: ||dies||, or ||flees `x`||\n- **Bob** · end: ||x||\n",
    );
    check(
        "|a|b|\n|-|-|\n|\\|\\|x\\|\\||2|\n||x|| | 3\n",
        "- **||x||** · b: 2\n- **||x||** · b: 3\n",
    );
    // Two bars may be an empty cell, or mean themselves.
    check(
        "|a|b|c|\n|-|-|-|\n|x||z|\n|| y | z |\n| p || q |\n|a \\|\\| b|||\n",
        "```\na       b  c\n------  -  -\nx          z\n        y  z\np          q\na || b\n```\n",
    );
}

#[test]
fn what_a_spoiler_may_hide_waits_for_its_end() {
    for (text, shown) in [
        ("It ends: ||he\n\n", "It ends: "),
        (
            "It ends: ||he\n\ndies||.\nSo",
            "It ends: ||he\n\ndies||.\nSo",
        ),
        ("`a || b`\nSo", "`a || b`\nSo"),
        ("```\na || b", "```\na || b"),
        (
            "|a|b|\n|-|-|\n||1|\n\nEnd",
            "```\na  b\n-  -\n   1\n```\n\nEnd",
        ),
    ] {
        assert_eq!(readable(text, false).text, shown);
    }
    check("a || b\n", "a || b\n");
}

/// A table longer than a message goes on in the next, as code.
#[test]
fn a_table_crosses_the_limit_of_a_message() {
    let rows: Vec<String> = (0..200)
        .map(|n| format!("| reading {n} | {} |\n", n * n))
        .collect();
    let rows = rows.concat();
    let table = format!("Readings:\n\n| what | value |\n|---|--:|\n{rows}\nDone.");
    let shown = readable(&table, true);
    let delivery =
        crate::engine::deliver::split(&shown.text, 10, crate::engine::deliver::Overflow::Cut);
    assert_eq!(delivery.messages.len(), 2);
    for message in &delivery.messages {
        assert!(message.encode_utf16().count() <= 2_000);
        assert_eq!(message.matches("```").count() % 2, 0, "{message}");
    }
    let all = delivery.messages.concat();
    for n in 0..200 {
        assert!(all.contains(&format!("reading {n} ")), "{n}");
    }
    assert!(all.ends_with("Done."), "{all}");
}

#[test]
fn what_is_no_table_stays() {
    for text in [
        "a | b\nc | d\n",
        "| a | b |\n|---|\n",
        "```\n| a | b |\n|---|---|\n```\n",
        "    | a | b |\n    |---|---|\n",
        "> | a | b |\n> |---|---|\n> | 1 | 2 |\n",
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
