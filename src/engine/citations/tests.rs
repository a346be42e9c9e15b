//! Marks: which become numbers, which are cut, and what is shown while an answer grows.

use super::*;
use clew_context::engine::render::without_links;
use clew_context::model::{ChannelId, GuildId, UserId};

fn given(message: u64) -> ContentSource {
    ContentSource {
        guild: Some(GuildId::new(1)),
        channel: ChannelId::new(2),
        message: Some(MessageId::new(message)),
        author: Some(UserId::new(9)),
    }
}

fn of(message: u64) -> String {
    mark(MessageId::new(message))
}

fn read(text: &str, messages: &[u64]) -> (String, Vec<u64>) {
    let cited = cited(text, true, messages.iter().copied().map(given));
    let ids = cited.messages.iter().filter_map(|source| source.message);
    (cited.text, ids.map(MessageId::get).collect())
}

#[test]
fn marks_become_numbers_in_their_order() {
    let text = format!(
        "Tuesday {}. By Ada {} and {}{}.",
        of(31),
        of(32),
        of(31),
        of(33)
    );
    let wanted = "Tuesday [1]. By Ada [2] and [1][3].".to_owned();
    assert_eq!(read(&text, &[33, 32, 31]), (wanted, vec![31, 32, 33]));
}

#[test]
fn models_put_several_marks_into_brackets() {
    let (one, other) = (of(31), of(32));
    let text = format!("Yes {}, {}.", &one[..one.len() - 1], &other[1..]);
    assert_eq!(
        read(&text, &[31, 32]),
        ("Yes [1][2].".to_owned(), vec![31, 32])
    );
}

#[test]
fn what_was_not_given_is_cut() {
    let text = format!("Yes {}, no [msg:xxxxx] and [msg:].", of(31));
    assert_eq!(read(&text, &[32]), ("Yes, no and.".to_owned(), vec![]));
    let withheld = ContentSource {
        author: None,
        ..given(31)
    };
    assert_eq!(cited(&text, true, [withheld].into_iter()).messages, []);
}

#[test]
fn other_brackets_stay() {
    for text in ["[m", "a[1] [link](x) [msg", "see ["] {
        let complete = format!("{text} .");
        assert_eq!(read(&complete, &[31]), (complete.clone(), vec![]), "{text}");
    }
    assert_eq!(read("press [", &[31]).0, "press [");
    assert_eq!(read("press [msg", &[31]).0, "press ");
}

#[test]
fn a_mark_that_is_not_closed_goes_and_nothing_after_it() {
    let (one, other) = (of(31), of(32));
    let (one, other) = (one.trim_end_matches(']'), other.trim_end_matches(']'));
    for (text, wanted) in [
        ("Yes [msg:x\nand more]".to_owned(), "Yes\nand more]"),
        (format!("Yes {one}\nand more"), "Yes [1]\nand more"),
        (format!("Yes {one}, {other}\nmore"), "Yes [1][2]\nmore"),
        (format!("Yes {one} as she said."), "Yes [1] as she said."),
        ("Yes [msg:".to_owned(), "Yes"),
    ] {
        assert_eq!(read(&text, &[31, 32]).0, wanted, "{text}");
    }
    let long = "a".repeat(LONGEST);
    assert_eq!(
        read(&format!("{one} {long}"), &[31]).0,
        format!("[1] {long}")
    );
}

#[test]
fn an_unfinished_mark_is_never_seen() {
    let whole = format!("It is Tuesday {}{}, she said.", of(31), of(32));
    let (wanted, _) = read(&whole, &[31, 32]);
    for end in 0..whole.len() {
        let Cited { text, .. } = cited(&whole[..end], false, [31, 32].map(given).into_iter());
        assert!(wanted.starts_with(&text), "{text}");
    }
}

#[test]
fn so_many_are_cited_and_no_more() {
    let ids: Vec<u64> = (31..50).collect();
    let marks: Vec<String> = ids.iter().map(|id| of(*id)).collect();
    let text = marks.join(" a ");
    let (text, cited) = read(&text, &ids);
    assert_eq!(cited, ids[..MAX_CITED]);
    assert!(
        text.contains("[8]") && !text.contains("[9]") && !text.contains("msg:"),
        "{text}"
    );
}

#[test]
fn a_mark_of_two_messages_leads_nowhere() {
    let ids = || (1..40_000_u64).map(|at| at * at * 1_000_003);
    let known: HashMap<String, u64> = ids().map(|id| (of(id), id)).collect();
    let twin = ids().find(|id| known[&of(*id)] != *id).unwrap();
    let ids = [twin, known[&of(twin)]];
    assert_eq!(
        read(&format!("Yes {}.", of(twin)), &ids),
        ("Yes.".to_owned(), vec![])
    );
}

#[test]
fn links_stand_under_the_answer() {
    let direct = ContentSource {
        guild: None,
        ..given(32)
    };
    let text = format!("Yes {} {}.\n", of(31), of(32));
    let cited = cited(&text, true, [given(31), direct].into_iter());
    let linked = cited.with_links();
    assert_eq!(without_links(&linked), "Yes [1] [2].");
    assert_eq!(
        linked,
        "Yes [1] [2].\n\n-# [\\[1\\]](<https://discord.com/channels/1/2/31>) \
         [\\[2\\]](<https://discord.com/channels/@me/2/32>)"
    );
    let plain = Cited {
        text: "No.".to_owned(),
        messages: Vec::new(),
    };
    assert_eq!(plain.with_links(), "No.");
}
