//! Where documents are cut, and what of them goes into a prompt.

use proptest::prelude::*;

use super::*;

fn doc(name: &str, text: &str) -> AgentDoc {
    AgentDoc {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

/// Titles and texts of the passages.
fn cut(text: &str) -> Vec<(String, String)> {
    let docs = [doc("a.md", text)];
    let all = passages(&docs).into_iter();
    all.map(|one| (one.name, one.text)).collect()
}

fn titles(text: &str) -> Vec<String> {
    cut(text).into_iter().map(|(title, _)| title).collect()
}

/// So many words of one letter.
fn words(letter: &str, count: usize) -> String {
    vec![letter; count].join(" ")
}

const MANUAL: &str = "Read it all.

# Pumps

Pumps move water.

## Leaks

A leaking pump wants a new gasket.

## Noise

A noisy pump wants oil.

# Boilers

Boilers heat water.";

#[test]
fn headings_cut_and_stand_above_what_follows() {
    let expected = [
        "a.md",
        "a.md > Pumps",
        "a.md > Pumps > Leaks",
        "a.md > Pumps > Noise",
        "a.md > Boilers",
    ];
    assert_eq!(titles(MANUAL), expected);
    assert_eq!(cut(MANUAL)[2].1, "A leaking pump wants a new gasket.");
    // A heading without a text of its own is no passage.
    assert_eq!(titles("# A\n## B ##\ntext\n# C"), ["a.md > A > B"]);
    assert_eq!(titles("#no heading\n####### none either"), ["a.md"]);
}

#[test]
fn a_long_section_is_cut_at_blank_lines() {
    let (first, second) = (words("a", 400), words("b", 400));
    let text = format!("# A\n\n{first}\n\nshort\n\n{second}\n");
    let expected = [format!("{first}\n\nshort"), second];
    let passages = cut(&text);
    assert_eq!(
        passages.iter().map(|(_, text)| text).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    assert!(passages.iter().all(|(title, _)| title == "a.md > A"));
}

#[test]
fn a_block_of_code_stays_whole_unless_it_is_too_long() {
    let code = |lines: usize| format!("```sh\n{}```", "# a line\n\n".repeat(lines));
    let text = format!("{}\n{}\nafter", words("a", 300), code(80));
    let passages = cut(&text);
    assert_eq!(passages.len(), 2, "{passages:?}");
    assert!(passages[1].1.starts_with(&code(80)), "{passages:?}");
    assert!(
        passages.iter().all(|(title, _)| title == "a.md"),
        "`#` is no heading in it"
    );
    let long = cut(&code(300));
    assert!(long.len() > 2, "{long:?}");
    let lines = long.iter().flat_map(|(_, text)| text.lines());
    assert!(
        lines
            .clone()
            .all(|line| ["```sh", "# a line", "", "```"].contains(&line))
    );
    assert_eq!(lines.filter(|line| !line.is_empty()).count(), 302);
    // One that nothing ends goes to the end.
    assert_eq!(titles("~~~\n# A\n```\n# B"), ["a.md"]);
}

/// What goes into a prompt, by its titles.
fn given(docs: &Docs, question: &str, halvings: u32) -> Vec<String> {
    let given = docs.for_prompt(halvings, || (question.to_owned(), String::new()));
    given.iter().map(|doc| doc.name.clone()).collect()
}

#[test]
fn documents_within_the_budget_go_in_whole() {
    let all = vec![doc("a.md", MANUAL), doc("b.md", "text")];
    let chars = MANUAL.chars().count() + 4;
    let docs = Docs::new(all.clone(), chars);
    assert!(!docs.are_cut());
    assert_eq!(*docs.for_prompt(3, || panic!("nothing is compared")), *all);
    assert!(Docs::new(all, chars - 1).are_cut());
}

#[test]
fn of_longer_ones_titles_and_what_matches_go_in() {
    let docs = Docs::new(vec![doc("a.md", MANUAL), doc("b.md", "Cats purr.")], 120);
    let list = "- a.md: Pumps, Leaks, Noise, Boilers\n- b.md";
    assert_eq!(docs.for_prompt(0, <_>::default)[0].text, list);
    // In their order, not by how well they match.
    let both = ["Documents", "a.md > Pumps", "a.md > Pumps > Leaks"];
    assert_eq!(given(&docs, "My pump leaks!", 0), both);
    // With less room what matches best stays.
    assert_eq!(given(&docs, "My pump leaks!", 1), [both[0], both[2]]);
    for (question, halvings) in [("Hello?", 0), ("pump", 40), ("", 0)] {
        assert_eq!(
            given(&docs, question, halvings),
            ["Documents"],
            "{question}"
        );
    }
}

#[test]
fn messages_around_the_question_count_less_than_it() {
    let docs = Docs::new(vec![doc("a.md", MANUAL)], 60);
    let first = |question, around| {
        docs.best(question, around)
            .first()
            .map(|(_, doc)| doc.name.clone())
    };
    let title = |heading: &str| Some(format!("a.md > {heading}"));
    assert_eq!(
        first("and then?", "my pump is noisy"),
        title("Pumps > Noise")
    );
    assert_eq!(
        first("what of leaks?", "my pump is noisy"),
        title("Pumps > Leaks")
    );
}

#[test]
fn words_with_which_people_ask_are_passed_over() {
    assert_eq!(
        asked_for("Can’t I get it to use (only) oil?"),
        "I it to oil?"
    );
}

#[test]
fn documents_are_read_by_name_by_heading_and_by_words() {
    let docs = Docs::new(vec![doc("A.md", MANUAL)], 100);
    let found = |title: &str| docs.read(title).map(|one| (one.name, one.text));
    let whole = Some(("A.md".to_owned(), MANUAL.to_owned()));
    for title in ["a.md", " A ", "A > "] {
        assert_eq!(found(title), whole, "{title}");
    }
    let leaks = "# A.md > Pumps > Leaks\n\nA leaking pump wants a new gasket.";
    let leaks = Some(("A.md > Pumps > Leaks".to_owned(), leaks.to_owned()));
    for title in ["A.md > Pumps > Leaks", "a.md > leaks", "a > leak"] {
        assert_eq!(found(title), leaks, "{title}");
    }
    let (name, text) = found("a > pumps").unwrap();
    assert_eq!(name, "A.md > Pumps");
    assert!(
        text.contains("Pumps move water.\n\n# A.md > Pumps > Leaks\n\nA leaking"),
        "{text}"
    );
    assert!(text.ends_with("A noisy pump wants oil."), "{text}");
    // Neither a document nor a heading.
    let leaks = leaks.map(|(_, text)| ("gaskets for leaks".to_owned(), text));
    assert_eq!(found("gaskets for leaks"), leaks);
    for title in ["b.txt", "a > Pipes", ""] {
        assert_eq!(found(title), None, "{title}");
    }
}

#[test]
fn the_list_of_titles_is_bounded() {
    let name = |at: usize| format!("a-document-with-a-name-{at}.md");
    let all = (0..256).map(|at| doc(&name(at), "# One\ntext\n# Two\ntext"));
    let docs = Docs::new(all.collect(), 100);
    let list = &docs.for_prompt(0, <_>::default)[0].text;
    assert!(list.chars().count() <= TITLES_CHARS + 20, "{list}");
    assert!(
        list.starts_with("- a-document-with-a-name-0.md: One, Two\n"),
        "{list}"
    );
    assert!(list.ends_with(" more"), "{list}");
}

proptest! {
    /// No text is lost but headings and blank lines, and no passage is too long.
    #[test]
    fn passages_hold_all_that_is_said(lines in prop::collection::vec("(# |## |```|~~~|)[ab]{0,9}( x{0,1500})?", 0..30)) {
        let text = lines.join("\n");
        let passages = cut(&text);
        for (_, text) in &passages {
            prop_assert!(text.chars().count() <= 1_200 && !text.trim().is_empty());
        }
        let count = |text: &str| text.matches('x').count();
        let in_headings = lines.iter().filter(|line| line.starts_with('#'));
        let most = count(&text);
        let least = most - in_headings.map(|line| count(line)).sum::<usize>();
        let found: usize = passages.iter().map(|(_, text)| count(text)).sum();
        prop_assert!((least..=most).contains(&found));
    }

    /// Whatever is asked, the budget holds.
    #[test]
    fn the_budget_is_never_exceeded(budget in 0..3_000_usize, halvings in 0..4_u32, question in "[a-e ]{0,12}") {
        let text = ["a b", "# c\na d\n\ne e", "## d\nb", "# e\na a a b"].join("\n\n").repeat(80);
        let docs = Docs::new(vec![doc("a.md", &text)], budget);
        prop_assume!(docs.are_cut());
        let given = docs.for_prompt(halvings, || (question, "b".to_owned()));
        let passages = given.iter().skip(1);
        let chars: usize = passages.map(|doc| doc.name.chars().count() + doc.text.chars().count()).sum();
        prop_assert!(chars <= budget >> halvings);
    }
}
