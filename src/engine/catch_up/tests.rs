//! Tests of what a model is asked about messages, and of what its points stand by.

use super::*;

fn said(conversation: usize, concerns_reader: bool, line: &str) -> Said {
    Said {
        line: line.to_owned(),
        conversation,
        concerns_reader,
    }
}

#[test]
fn what_concerns_the_reader_comes_first_then_what_is_latest() {
    let said = [
        said(0, false, "a"),
        said(1, false, "b"),
        said(0, true, "c"),
        said(3, false, "d"),
        said(1, false, "e"),
    ];
    let portions = portions(&said);
    assert_eq!(portions.len(), 1);
    let (data, given) = portions[0].data(&said, |_| true);
    assert_eq!(given, [0, 2, 1, 4, 3]);
    let expected = r#"{"conversations":[{"concerns_reader":true,"messages":["0 a","2 c"]},"#;
    assert!(data.starts_with(expected), "{data}");
    // What was edited meanwhile is left out, and nothing else.
    let (data, given) = portions[0].data(&said, |at| at != 2 && at != 3);
    assert_eq!(given, [0, 1, 4]);
    assert!(data.ends_with(r#""messages":["1 b","4 e"]}]}"#), "{data}");
}

#[test]
fn however_much_was_said_the_requests_are_bounded() {
    let long = "x".repeat(1_000);
    let said: Vec<Said> = (0..2_000).map(|at| said(at % 7, at == 3, &long)).collect();
    let portions = portions(&said);
    assert_eq!(portions.len(), MAX_PORTIONS);
    for portion in &portions {
        let (data, given) = portion.data(&said, |_| true);
        assert!(data.len() <= PORTION_BYTES + 1_000, "{}", data.len());
        assert!(!given.is_empty());
    }
    // The conversation that concerns the reader fills all of it, with its end.
    let given = |at: usize| portions[at].data(&said, |_| true).1;
    assert_eq!(given(0).last(), Some(&1_998));
    assert!(given(0).is_sorted() && given(1).last() < given(0).first());
    assert!(super::portions(&[]).is_empty());
}

#[test]
fn a_point_stands_by_messages_that_were_given() {
    let answer = "```json\n{\"points\":[
        {\"kind\":\"decided\",\"text\":\"the pump is [sold](https://evil.example)\",\"from\":[9,1,1,2,3]},
        {\"kind\":\"open\",\"text\":\"who pays\",\"from\":[9]},
        {\"kind\":\"asked\",\"text\":\" \",\"from\":[1]}]}\n```";
    let points = points(answer, |at| at < 4).unwrap();
    assert_eq!(points.len(), 1);
    assert_eq!(
        (points[0].kind, &*points[0].from),
        (PointKind::Decided, &[1, 2][..])
    );
    assert_eq!(points[0].text, "the pump is [sold] (https:/ /evil.example)");
    let many: Vec<Point> = (0..30).map(|_| points[0].clone()).collect();
    assert_eq!(
        super::points(&joined(many), |_| true).unwrap().len(),
        MAX_POINTS
    );
    for other in ["", "[]", "{\"points\":[{}]}", "They talked."] {
        assert!(super::points(other, |_| true).is_none(), "{other}");
    }
}

#[test]
fn a_span_is_read_as_the_time_before_now() {
    let now = UnixMillis(1_800_000_000_000);
    let read = |span| Since::read(span, now);
    let before = |ms: i64| Some(Since::Message(MessageId::first_at(UnixMillis(now.0 - ms))));
    assert_eq!(read(None), Some(Since::LastOwn));
    assert_eq!(read(Some("30m")), before(1_800_000));
    assert_eq!(read(Some(" 2 h")), before(7_200_000));
    assert_eq!(read(Some("1w")), before(604_800_000));
    assert_eq!(read(Some("2 years")), None);
}
