//! What is found, passed over and kept.

use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3_600_000;

/// Exchanges a day apart, with turns from 1.
fn entries<'a>(texts: &[&'a str]) -> Vec<RecallEntry<'a>> {
    let texts = (1..).zip(texts);
    let entries = texts.map(|(turn, text)| entry(turn, 24 * HOUR, text));
    entries.collect()
}

fn entry(turn: u64, apart: i64, text: &str) -> RecallEntry<'_> {
    RecallEntry {
        turn: TurnId(turn),
        at: UnixMillis(i64::try_from(turn).unwrap() * apart),
        author: "",
        texts: vec![text],
    }
}

fn index(entries: &[RecallEntry<'_>]) -> RecallIndex {
    let mut index = RecallIndex::default();
    index.add_newer(entries);
    index
}

fn best(index: &RecallIndex, question: &str) -> Vec<u64> {
    found(index, question, UnixMillis(i64::MIN), &[])
}

fn found(index: &RecallIndex, question: &str, since: UnixMillis, shown: &[u64]) -> Vec<u64> {
    let shown = shown.iter().map(|turn| TurnId(*turn)).collect();
    let matches = index.best(question, since, &shown, 3);
    matches.iter().map(|turn| turn.0).collect()
}

const TALK: [&str; 6] = [
    "My cat is called Pixel. Nice name!",
    "The pump leaks on Mondays. Try the valve.",
    "We camped at the lake. Sounds lovely.",
    "Release day is Friday. Noted.",
    "Pixel ate the cable. Oh no!",
    "東京タワーに行きました。",
];

#[test]
fn what_contains_the_rarer_words_comes_first() {
    let index = index(&entries(&TALK));
    assert_eq!(best(&index, "What is the name of my cat?"), [1]);
    assert_eq!(best(&index, "When did we go camping?"), [3]);
    assert_eq!(best(&index, "東京タワー"), [6]);
    // Of two that match alike the newer one.
    let alike = ["red pump", "blue pump", "x", "y", "z"];
    assert_eq!(best(&self::index(&entries(&alike)), "pump"), [2, 1]);
}

#[test]
fn one_rare_word_outweighs_two_common_ones() {
    let talk = [
        "cat dog",
        "cat dog",
        "cat dog bird",
        "valve",
        "cat dog fish",
    ];
    let question = "which cat, dog or valve?";
    assert_eq!(best(&index(&entries(&talk)), question)[0], 4);
}

#[test]
fn nothing_matches_what_nobody_said() {
    let index = index(&entries(&TALK));
    assert_eq!(best(&index, "Which planet has the most moons?"), [0; 0]);
    assert_eq!(best(&index, "What did you do?"), [0; 0]);
    assert_eq!(best(&index, ""), [0; 0]);
    assert_eq!(best(&RecallIndex::default(), "pixel"), [0; 0]);
    // One common word of many is too little.
    let question = "Does Friday suit planets, moons, comets, stars, rings, dust and probes?";
    assert_eq!(best(&index, question), [0; 0]);
}

#[test]
fn what_is_shown_or_cleared_is_passed_over() {
    let mut all = entries(&TALK);
    all.push(entry(7, 24 * HOUR, TALK[0]));
    let index = index(&all);
    let ever = UnixMillis(i64::MIN);
    assert_eq!(found(&index, "cat pixel", ever, &[]), [7, 5]);
    // Nor is what says the same as something shown.
    assert_eq!(found(&index, "cat pixel", ever, &[7]), [5]);
    assert_eq!(
        found(&index, "cat pixel", UnixMillis(5 * 24 * HOUR), &[]),
        [7]
    );
    assert_eq!(
        found(&index, "cat pixel", UnixMillis(7 * 24 * HOUR), &[]),
        [0; 0]
    );
}

#[test]
fn what_is_taken_out_is_not_found_and_leaves_the_rest() {
    let mut index = index(&entries(&TALK));
    index.remove(TurnId(5));
    assert_eq!(best(&index, "pixel"), [1]);
    assert!(!index.contains(TurnId(5)));
    assert_eq!(best(&index, "東京タワー"), [6]);
    index.remove(TurnId(77));
    assert_eq!(index.len(), 5);
    (1..=6).for_each(|turn| index.remove(TurnId(turn)));
    assert!(index.is_empty());
    assert_eq!(best(&index, "pixel"), [0; 0]);
}

#[test]
fn an_answer_beside_the_words_asked_for_is_found_in_the_same_sitting() {
    let talk = [
        "which tent did Ada bring",
        "the green one",
        "unrelated words",
    ];
    let sitting: Vec<RecallEntry<'_>> = (1..)
        .zip(talk)
        .map(|(turn, text)| entry(turn, HOUR / 10, text))
        .collect();
    assert_eq!(best(&index(&sitting), "Which tent was it?"), [1, 2]);
    assert_eq!(best(&index(&entries(&talk)), "Which tent was it?"), [1]);
}

/// The same at midnight of these days of 2026.
fn said<'a>(of: &[(&str, &'a str, &'a str)]) -> Vec<RecallEntry<'a>> {
    let of = (1..).zip(of);
    let entries = of.map(|(turn, (day, author, text))| RecallEntry {
        turn: TurnId(turn),
        at: UnixMillis::parse(&format!("2026-{day}T00:00:00Z")).unwrap(),
        author,
        texts: vec![text],
    });
    entries.collect()
}

#[test]
fn whoever_the_question_names_counts_more() {
    let talk = [
        ("01-01", "Ada", "I planted roses here"),
        ("01-02", "Bob", "I planted roses here"),
        ("01-03", "Cy", "nothing here"),
        ("01-04", "Cy", "nor here"),
        ("01-05", "Cy", "or there"),
    ];
    let all = index(&said(&talk));
    assert_eq!(best(&all, "Who planted roses?"), [2, 1]);
    assert_eq!(best(&all, "What has ada planted?"), [1, 2]);
    // A name that all have says nothing.
    let own = index(&said(&talk.map(|(day, _, text)| (day, "Ada", text))));
    let question = "Ada, do roses suit planets, moons and comets?";
    assert_eq!(best(&own, question), [0; 0]);
}

#[test]
fn of_what_matches_what_is_about_the_same_as_the_best_comes_first() {
    let talk = [
        "my budgie hatched, with millet and cuttlebone",
        "a budgie was drawn on the mug",
        "millet for the budgie",
        "cuttlebone and millet alone",
        "the valve leaks",
        "x",
        "y",
    ];
    let index = index(&entries(&talk));
    assert_eq!(best(&index, "Has my budgie hatched?"), [1, 3, 2]);
    // What only others' words lead to does not match.
    assert_eq!(best(&index, "leaks"), [5]);
}

#[test]
fn a_month_finds_what_was_said_in_it() {
    let talk = [
        ("02-03", "Ada", "we went camping"),
        ("06-03", "Ada", "we went camping again, farther up"),
        ("09-03", "Ada", "we went camping"),
        ("10-03", "Ada", "rain"),
        ("11-03", "Ada", "snow"),
    ];
    let index = index(&said(&talk));
    assert_eq!(best(&index, "Where did we camp in June?")[0], 2);
    // Texts that are alike stay so in any month.
    let found = best(&index, "camping");
    assert!(found.contains(&2) && found.len() == 2, "{found:?}");
}

#[test]
fn repeating_words_helps_little() {
    let flood = "pump ".repeat(10_000);
    let texts = ["the pump and its valve leak", flood.as_str(), "x", "y", "z"];
    assert_eq!(best(&index(&entries(&texts)), "pump valve leak"), [1, 2]);
    // No more is looked at than the limits allow.
    let index = index(&entries(&[flood.as_str()]));
    let and_the_month = TEXT.words + 1;
    assert_eq!(index.segments[0].words(), and_the_month);
}

#[test]
fn the_oldest_go_when_room_is_short() {
    let texts: Vec<String> = (0..2_000).map(|at| format!("word{at} said")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut index = index(&entries(&texts));
    assert_eq!(best(&index, "word3"), [4]);
    let before = index.bytes();
    assert!(!index.shrink_to(before));
    assert!(index.shrink_to(before / 2));
    assert!(index.bytes() <= before / 2);
    assert_eq!(best(&index, "word3"), [0; 0]);
    assert_eq!(best(&index, "word1999"), [2_000]);
    // The newest stay, however little room there is.
    assert!(index.shrink_to(0));
    assert!(index.contains(TurnId(2_000)) && !index.contains(TurnId(4)));
}

proptest! {
    /// However it was filled, an index finds the same.
    #[test]
    fn older_and_newer_ones_may_come_in_any_parts(
        texts in prop::collection::vec("[a-f]{1,2}( [a-f]{1,2}){0,5}", 1..40),
        question in "[a-f]{1,2}( [a-f]{1,2}){0,3}",
        first in 0_usize..40,
        older in 0_usize..40,
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all = entries(&texts);
        let first = first.min(all.len());
        let older = older.min(first);
        let mut parts = index(&all[first..]);
        parts.add_older(&all[older..first]);
        parts.add_older(&all[..older]);
        let ever = UnixMillis(i64::MIN);
        let (of_all, of_parts) = (index(&all), parts);
        prop_assert_eq!(of_all.len(), of_parts.len());
        prop_assert_eq!(
            of_all.best(&question, ever, &BTreeSet::new(), 5),
            of_parts.best(&question, ever, &BTreeSet::new(), 5)
        );
    }
}
