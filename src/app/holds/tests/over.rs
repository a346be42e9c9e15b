//! When the copy of a question is not asked any more, by this process or a later one.

use super::*;

/// The next process, or a look at the channel's page, would ask it.
#[test]
fn the_copy_of_a_question_that_was_asked_is_over_with_it() {
    let over = |steps: Vec<Step>| {
        let over = steps.iter().filter_map(|step| match step {
            Step::Over(copy) => Some(copy.get()),
            _ => None,
        });
        over.collect::<Vec<_>>()
    };
    let asked = || {
        let mut all = Watched::new();
        all.asks(10, 1, "<@9> why?", 0);
        all.expired(1_500);
        all
    };
    let copied = |all: &mut Watched, is_over| {
        let (mark, request) = (all.mark(11), request(&message(11, 99, "why?")));
        let original = MessageId::new(10);
        let now = all.at(all.ms);
        let steps = all.holds.take_copy(original, request, mark, is_over, now);
        over(steps)
    };
    let mut all = asked();
    assert_eq!(copied(&mut all, true), [11]);
    let mut all = asked();
    assert!(copied(&mut all, false).is_empty());
    let ended = |all: &mut Watched, was_cancelled| {
        let steps = all
            .holds
            .ended(MessageId::new(10), &us(), was_cancelled, None);
        over(steps)
    };
    // It was given up, and may be asked again.
    assert!(ended(&mut all, true).is_empty());
    assert_eq!(ended(&mut all, false), [11]);
    // A turn that takes longer than a copy is known.
    let late = all.at(1_500 + 1_500 + 5_001);
    assert_eq!(over(all.holds.expire(late)), [11]);
    assert!(all.holds.is_empty());
    // A question that is deleted gives way, and its copy is no longer over.
    let mut all = asked();
    assert!(copied(&mut all, false).is_empty());
    all.deleted(10, Progress::Running);
    assert_eq!(all.ended(10, true), (vec![11], 0));
}

/// A deletion may come as late after a copy as that after its question.
#[test]
fn a_copy_that_came_late_is_known_for_as_long() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    all.expired(1_500);
    all.expired(6_000);
    assert_eq!(all.copies(11, "why?"), Some((vec![], 1)));
    all.expired(12_000);
    assert_eq!(all.deleted(10, Progress::Queued(None)), (vec![11], 0));
}
