//! What becomes of a question and its copy, in whatever order they come.

mod over;

use clew_context::discord::convert;
use clew_context::model::{Cause, Proxies, UnixMillis};
use clew_discord::session::ShardProgress;
use serde_json::{Value, json};

use super::*;

const WAIT: Duration = Duration::from_millis(1_500);
const HOME: ChannelId = ChannelId::new(7);

/// Questions, and the time.
struct Watched {
    holds: Holds,
    progress: ShardProgress,
    start: Instant,
    /// Milliseconds since then, by what was last told.
    ms: u64,
}

/// The ids of what is asked, and how many events are finished.
type Told = (Vec<u64>, usize);

impl Watched {
    /// An app has posted at `HOME`.
    fn new() -> Self {
        let mut holds = Holds::new(WAIT);
        holds.see(HOME);
        Self {
            holds,
            progress: ShardProgress::default(),
            start: Instant::now(),
            ms: 0,
        }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn mark(&mut self, id: u64) -> Mark {
        self.progress.began(0, id, UnixMillis(0))
    }

    /// A question comes; the id of one that is asked at once.
    fn asks(&mut self, id: u64, user: u64, text: &str, ms: u64) -> Told {
        self.ms = ms;
        let (mark, now) = (self.mark(id), self.at(ms));
        let request = request(&message(id, user, text));
        told(self.holds.take(request, HOME, mark, now))
    }

    /// An app posts; none if that is no copy of a question.
    fn copies(&mut self, id: u64, text: &str) -> Option<Told> {
        let copy = message(id, 99, text);
        let original = self.holds.original_of(&copy, &us())?;
        let mark = self.mark(id);
        let (request, now) = (request(&joined(&copy, &original)), self.at(self.ms));
        let steps = self.holds.take_copy(original.id, request, mark, false, now);
        Some(told(steps))
    }

    fn deleted(&mut self, id: u64, progress: Progress) -> Told {
        told(
            self.holds
                .deleted(&[MessageId::new(id)], &us(), |_| progress),
        )
    }

    fn ended(&mut self, id: u64, was_cancelled: bool) -> Told {
        told(
            self.holds
                .ended(MessageId::new(id), &us(), was_cancelled, None),
        )
    }

    fn expired(&mut self, ms: u64) -> Told {
        self.ms = ms;
        let now = self.at(ms);
        told(self.holds.expire(now))
    }
}

fn us() -> Us {
    Us {
        user: UserId::new(9),
        name: "Clew".to_owned(),
        roles: Vec::new(),
        proxies: Proxies::default(),
    }
}

fn message(id: u64, user: u64, text: &str) -> Message {
    read(&json!({
        "id": id.to_string(), "channel_id": "7", "guild_id": "1", "content": text,
        "author": {"id": user.to_string(), "username": "somebody"},
    }))
}

fn read(json: &Value) -> Message {
    convert::message(&json.to_string()).unwrap()
}

fn request(message: &Message) -> TurnRequest {
    TurnRequest::new(Arc::new(message.clone()), Cause::Mention)
}

fn told(steps: impl IntoIterator<Item = Step>) -> Told {
    let (mut asked, mut finished) = (Vec::new(), 0);
    for step in steps {
        match step {
            Step::Ask(request, _) => asked.push(request.trigger.id.get()),
            Step::Finish(_) => finished += 1,
            Step::Over(_) => {}
        }
    }
    (asked, finished)
}

const NOTHING: Told = (Vec::new(), 0);

fn asked(id: u64) -> Told {
    (vec![id], 0)
}

#[test]
fn a_copy_is_asked_once_its_original_is_deleted() {
    for copy_first in [true, false] {
        let mut all = Watched::new();
        assert_eq!(all.asks(10, 1, "<@9> L: what leaks?", 0), NOTHING);
        assert_eq!(all.holds.due(), Some(all.at(1_500)));
        let told = if copy_first {
            assert_eq!(all.copies(11, "<@9> what leaks?"), Some(NOTHING));
            all.deleted(10, Progress::Over)
        } else {
            assert_eq!(
                all.deleted(10, Progress::Over),
                (vec![], 1),
                "its event leads to nothing"
            );
            all.copies(11, "<@9> what leaks?").unwrap()
        };
        assert_eq!(told, (vec![11], usize::from(copy_first)));
        assert_eq!(all.expired(99_000), NOTHING);
        assert_eq!(all.holds.due(), None);
    }
}

#[test]
fn without_a_copy_the_question_is_asked_and_what_is_deleted_is_not() {
    let mut all = Watched::new();
    assert_eq!(all.asks(10, 1, "<@9> one", 0), NOTHING);
    assert_eq!(all.asks(11, 1, "<@9> two", 100), NOTHING);
    assert_eq!(all.deleted(10, Progress::Over), (vec![], 1));
    assert_eq!(all.expired(1_499), NOTHING);
    assert_eq!(all.expired(1_600), asked(11));
    assert_eq!(all.expired(1_600), NOTHING);
}

#[test]
fn a_copy_whose_original_stays_is_not_asked() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    assert_eq!(all.copies(11, "why?"), Some(NOTHING));
    assert_eq!(all.holds.copies_in(HOME).count(), 1);
    assert_eq!(
        all.expired(1_500),
        (vec![10], 1),
        "the copy's event is over"
    );
    assert_eq!(all.deleted(10, Progress::Over), NOTHING, "it was answered");
    assert_eq!(all.expired(6_500), NOTHING);
    assert_eq!(all.holds.copies_in(HOME).count(), 0);
}

/// After its wait a question is asked; what comes later hands over at most.
#[test]
fn what_comes_late_hands_over_and_never_doubles() {
    let begun = || {
        let mut all = Watched::new();
        all.asks(10, 1, "<@9> why?", 0);
        assert_eq!(all.expired(1_500), asked(10));
        all
    };
    for copy_first in [true, false] {
        let mut all = begun();
        if copy_first {
            assert_eq!(all.copies(11, "why?"), Some((vec![], 1)));
            assert_eq!(all.deleted(10, Progress::Queued(None)), asked(11));
        } else {
            assert_eq!(all.deleted(10, Progress::Queued(None)), NOTHING);
            assert_eq!(all.copies(11, "why?"), Some(asked(11)));
        }
    }
    // While it is being answered, the end of its turn tells whether it was.
    for (was_cancelled, expected) in [(true, asked(11)), (false, NOTHING)] {
        let mut all = begun();
        assert_eq!(all.deleted(10, Progress::Running), NOTHING);
        assert_eq!(all.copies(11, "why?"), Some((vec![], 1)));
        assert_eq!(all.ended(10, was_cancelled), expected);
        let mut all = begun();
        assert_eq!(all.ended(10, true), NOTHING, "it was not deleted");
    }
    let mut all = begun();
    all.deleted(10, Progress::Running);
    assert_eq!(all.ended(10, true), NOTHING);
    assert_eq!(all.copies(11, "why?"), Some(asked(11)));
    let mut all = begun();
    assert_eq!(all.deleted(10, Progress::Over), NOTHING);
    assert_eq!(all.copies(11, "why?"), Some((vec![], 1)));
    let mut all = begun();
    all.expired(6_500);
    assert_eq!(all.copies(11, "why?"), None, "nobody knows it any more");
}

#[test]
fn only_what_the_question_says_is_a_copy_of_it() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> what leaks? -L", 0);
    for (id, text) in [
        (11, "<@9> what creaks?"),
        (12, "<@9>"),
        (13, ""),
        (9, "what leaks?"),
    ] {
        assert_eq!(all.copies(id, text), None, "{id} {text}");
    }
    let elsewhere = Message {
        channel: ChannelId::new(8),
        ..message(14, 99, "what leaks?")
    };
    assert!(all.holds.original_of(&elsewhere, &us()).is_none());
    all.asks(15, 2, "what leaks?", 0);
    let original = all
        .holds
        .original_of(&message(16, 99, "what leaks?"), &us());
    assert_eq!(
        original.unwrap().id.get(),
        15,
        "the one that says least besides"
    );
    assert_eq!(all.copies(16, "what leaks?"), Some(NOTHING));
    assert_eq!(all.copies(17, "what leaks?"), Some(NOTHING), "the other's");
    assert_eq!(all.copies(18, "what leaks?"), None);
}

/// A few words that somebody else's question has, too, are not its copy.
#[test]
fn a_short_text_copies_what_is_the_same_but_for_tags() {
    #[track_caller]
    fn check(asked: &str, said: &str, is_copy: bool) {
        let mut all = Watched::new();
        all.asks(10, 1, asked, 0);
        assert_eq!(all.copies(11, said).is_some(), is_copy, "while it is there");
        let mut all = Watched::new();
        all.asks(10, 1, asked, 0);
        all.deleted(10, Progress::Over);
        assert_eq!(all.copies(11, said).is_some(), is_copy, "once it is gone");
    }
    for tagged in [
        "why",
        "L: why",
        "why -L",
        "[why]",
        "{{L}} why",
        "🌙why",
        "ル：why",
    ] {
        check(&format!("<@9> {tagged}"), "why", true);
    }
    check("<@9> ル：なぜ漏れるの", "なぜ漏れるの", true);
    for (asked, said) in [
        ("<@9> is it late?", "it"),
        ("<@9> is it late?", "is it"),
        ("<@9> is it late?", "late?"),
        ("<@9> theremin", "here"),
        ("<@9> why does the pump leak?", "why"),
        ("<@9> the great Luna said: why", "why"),
        ("<@9> なぜ漏れるの", "なぜ"),
    ] {
        check(asked, said, false);
    }
}

/// A longer text that is part of a question is its copy once that is deleted, behind a long
/// tag; before that it has to be half of it.
#[test]
fn a_part_of_a_question_copies_it_only_once_it_is_deleted() {
    let said = "what leaks at night?";
    let mut all = Watched::new();
    all.asks(
        10,
        1,
        "<@9> Luna who minds the pump: what leaks at night?",
        0,
    );
    assert_eq!(all.copies(11, said), None);
    all.deleted(10, Progress::Over);
    assert_eq!(all.copies(11, said), Some(asked(11)));
    all.asks(12, 1, "<@9> Luna of the pump: what leaks at night?", 0);
    assert_eq!(all.copies(13, said), Some(NOTHING));
}

#[test]
fn where_no_app_was_seen_nothing_waits_and_nothing_doubles() {
    let mut all = Watched::new();
    all.holds = Holds::new(WAIT);
    assert_eq!(all.asks(10, 1, "<@9> why?", 0), asked(10));
    assert_eq!(all.copies(11, "<@9> why?"), Some((vec![], 1)));
    all.holds = Holds::new(Duration::ZERO);
    all.holds.see(HOME);
    assert_eq!(all.asks(12, 1, "<@9> why?", 0), asked(12));
}

#[test]
fn an_edit_while_it_waits_is_what_is_asked_and_copied() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> tow", 0);
    all.holds.edited(&message(10, 1, "<@9> two"));
    assert_eq!(all.copies(11, "tow"), None);
    assert_eq!(all.copies(12, "two"), Some(NOTHING));
    all.holds.edited(&message(12, 99, "two!"));
    let gone = [MessageId::new(10)];
    let steps = all.holds.deleted(&gone, &us(), |_| Progress::Over);
    let Some(Step::Ask(request, _)) = steps.into_iter().next_back() else {
        panic!("the copy is asked");
    };
    assert_eq!(&*request.trigger.content, "two!");
}

#[test]
fn a_copy_that_is_deleted_is_none() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    all.copies(11, "why?");
    assert_eq!(all.deleted(11, Progress::Over), (vec![], 1));
    assert_eq!(
        all.deleted(10, Progress::Over),
        (vec![], 1),
        "and nothing is asked"
    );
}

#[test]
fn a_copy_means_what_its_original_replied_to() {
    let original = read(&json!({
        "id": "10", "channel_id": "7", "content": "L: why?", "type": 19,
        "author": {"id": "1", "username": "ada"},
        "mentions": [{"id": "9", "username": "Clew"}],
        "message_reference": {"message_id": "5", "channel_id": "7"},
    }));
    let joined = joined(&message(11, 99, "why?"), &original);
    assert_eq!(joined.replies_to(), Some(MessageId::new(5)));
    assert!(us().mentioned(&joined));
    assert_eq!((joined.id.get(), &*joined.content), (11, "why?"));
}

/// What is beyond the room of a person or a server is asked at once.
#[test]
fn what_waits_is_bounded_for_each_person_and_server() {
    let mut all = Watched::new();
    let mut waiting = 0;
    for id in 0..20 {
        waiting += usize::from(all.asks(100 + id, 1, "<@9> why?", 0) == NOTHING);
    }
    assert_eq!(waiting, PER_PERSON);
    // None overtakes those before it.
    let oldest = 120 - PER_PERSON as u64;
    assert_eq!(all.asks(120, 1, "<@9> why?", 0), asked(oldest));
    for id in 0..2_000 {
        waiting += usize::from(all.asks(1_000 + id, 50 + id, "<@9> why?", 0) == NOTHING);
    }
    assert_eq!(waiting, PER_GUILD);
    assert_eq!(all.holds.questions.len(), PER_GUILD);
    let (asked, _) = all.expired(1_500);
    assert_eq!(asked.len(), PER_GUILD);
    // Those that no longer wait give way.
    assert_eq!(all.asks(5_000, 1, "<@9> why?", 1_500), NOTHING);
    assert_eq!(all.holds.questions.len(), PER_GUILD);
}

#[test]
fn an_event_that_comes_twice_is_one_question() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    assert_eq!(all.asks(10, 1, "<@9> why?", 10), (vec![], 1));
    assert_eq!(all.expired(1_500), asked(10));
}

/// Two people ask the same, and only one of them through the app: whose copy it is tells
/// the deletion, be it before the copy or after.
#[test]
fn of_two_that_say_the_same_the_one_that_goes_is_copied() {
    for (gone, stays) in [(10, 11), (11, 10)] {
        for copy_first in [true, false] {
            let mut all = Watched::new();
            all.asks(10, 1, "<@9> why?", 0);
            all.asks(11, 2, "<@9> why?", 10);
            let told = if copy_first {
                assert_eq!(all.copies(12, "<@9> why?"), Some(NOTHING));
                all.deleted(gone, Progress::Over)
            } else {
                assert_eq!(all.deleted(gone, Progress::Over), (vec![], 1));
                all.copies(12, "<@9> why?").unwrap()
            };
            assert_eq!(told, (vec![12], usize::from(copy_first)));
            assert_eq!(all.expired(1_600), asked(stays), "the other is asked, too");
        }
    }
    // Both are copied, and the copies come in the other order.
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    all.asks(11, 2, "<@9> why?", 10);
    all.copies(12, "<@9> why?");
    assert_eq!(all.deleted(11, Progress::Over), (vec![12], 1));
    assert_eq!(all.copies(13, "<@9> why?"), Some(NOTHING));
    assert_eq!(all.deleted(10, Progress::Over), (vec![13], 1));
    assert_eq!(all.expired(99_000), NOTHING);
}

#[test]
fn a_copy_whose_event_comes_twice_is_one() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    assert_eq!(all.copies(11, "why?"), Some(NOTHING));
    assert_eq!(all.copies(11, "why?"), Some((vec![], 1)));
    assert_eq!(all.deleted(10, Progress::Over), (vec![11], 1));
}

/// A mention without words, behind a tag, is copied as well; it is none of a question.
#[test]
fn a_mention_alone_copies_a_mention_alone() {
    let mut all = Watched::new();
    all.asks(10, 1, "L: <@9>", 0);
    assert_eq!(all.copies(11, ""), None, "a picture, say");
    assert_eq!(all.copies(12, "<@9>"), Some(NOTHING));
    assert_eq!(all.deleted(10, Progress::Over), (vec![12], 1));
}

/// While its original is there, a copy is shown nowhere; then it is all that is left.
#[test]
fn the_copy_of_an_answered_question_is_shown_when_that_is_deleted() {
    let copies = |all: &Watched| all.holds.copies_in(message(10, 1, "").channel).count();
    for was_running in [false, true] {
        let mut all = Watched::new();
        all.asks(10, 1, "<@9> why?", 0);
        assert_eq!(all.expired(1_500), asked(10));
        assert_eq!(all.copies(11, "<@9> why?"), Some((vec![], 1)));
        assert_eq!(copies(&all), 1);
        if was_running {
            assert_eq!(all.deleted(10, Progress::Running), NOTHING);
            assert_eq!(all.ended(10, false), NOTHING);
        } else {
            assert_eq!(all.deleted(10, Progress::Over), NOTHING);
        }
        assert_eq!(copies(&all), 0);
    }
    // It comes when its original is gone: it is not asked either.
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    assert_eq!(all.expired(1_500), asked(10));
    assert_eq!(all.deleted(10, Progress::Over), NOTHING);
    assert_eq!(all.copies(11, "<@9> why?"), Some((vec![], 1)));
    assert_eq!(copies(&all), 0);
}

/// Its app may not ask: it is shown nowhere beside its original, and asks nothing after it.
#[test]
fn a_copy_that_is_refused_is_known_and_not_asked() {
    let refused = || {
        let mut all = Watched::new();
        all.asks(10, 1, "<@9> why?", 0);
        all.holds
            .refuse_copy(MessageId::new(10), MessageId::new(11));
        assert_eq!(all.holds.copies_in(HOME).count(), 1);
        assert_eq!(all.copies(12, "<@9> why?"), None, "its copy is known");
        all
    };
    let mut all = refused();
    assert_eq!(all.expired(1_500), asked(10));
    assert_eq!(all.deleted(11, Progress::Over), NOTHING);
    assert_eq!(all.holds.copies_in(HOME).count(), 0);
    let mut all = refused();
    assert_eq!(all.deleted(10, Progress::Over), (vec![], 1));
    assert_eq!(all.expired(99_000), NOTHING);
}

/// Until the turn that is being cancelled has ended, neither time nor other questions make
/// it forgotten.
#[test]
fn what_is_cancelled_gives_way_to_none() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    assert_eq!(all.expired(1_500), asked(10));
    all.copies(11, "<@9> why?");
    all.deleted(10, Progress::Running);
    assert_eq!(all.holds.due(), None);
    assert_eq!(all.expired(99_000), NOTHING);
    for id in 20..30 {
        all.asks(id, 1, "<@9> how?", 99_000);
    }
    assert_eq!(all.ended(10, true), asked(11));
}

/// The copy's own event is finished already: until it is asked, that of its original is not,
/// so that the next process gets both again.
#[test]
fn a_copy_takes_over_the_event_of_its_original() {
    for is_running in [false, true] {
        let mut all = Watched::new();
        all.asks(10, 1, "<@9> why?", 0);
        all.expired(1_500);
        assert_eq!(all.copies(11, "why?"), Some((vec![], 1)));
        let (id, mark) = (MessageId::new(10), all.mark(10));
        let steps = if is_running {
            all.deleted(10, Progress::Running);
            all.holds.ended(id, &us(), true, Some(mark))
        } else {
            let queued = Progress::Queued(Some(mark));
            all.holds.deleted(&[id], &us(), |_| queued)
        };
        let [Step::Ask(_, taken)] = steps[..] else {
            panic!("the copy is asked: {steps:?}");
        };
        assert_eq!(taken, Some(mark));
    }
}

/// For five seconds after its wait it is known whose copy comes.
#[test]
fn a_question_is_known_for_as_long_as_its_copy_may_come() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    assert_eq!(all.holds.due(), Some(all.at(1_500)));
    assert_eq!(all.expired(1_500), asked(10));
    assert_eq!(all.holds.due(), Some(all.at(6_500)));
    assert_eq!(all.expired(6_499), NOTHING);
    assert!(!all.holds.is_empty());
    assert_eq!(all.expired(6_500), NOTHING);
    assert!(all.holds.is_empty());
}

/// What says the same after the copy of a deleted question is no further copy of it.
#[test]
fn a_deleted_question_has_one_copy() {
    let mut all = Watched::new();
    all.asks(10, 1, "<@9> why?", 0);
    assert_eq!(all.expired(1_500), asked(10));
    assert_eq!(all.deleted(10, Progress::Queued(None)), NOTHING);
    assert_eq!(all.copies(11, "<@9> why?"), Some(asked(11)));
    assert_eq!(all.copies(12, "<@9> why?"), None);
}

/// Apps copy neither a reply nor a mention.
#[test]
fn a_copy_means_what_its_original_replied_to_and_mentioned() {
    let reply = |id: u64, to: u64, mentioned: &[u64]| {
        let mentions = mentioned
            .iter()
            .map(|id| json!({"id": id.to_string(), "username": "x"}));
        read(&json!({
            "id": id.to_string(), "channel_id": "7", "guild_id": "1", "content": "<@9> what leaks?",
            "type": 19, "author": {"id": "1", "username": "somebody"},
            "message_reference": {"message_id": to.to_string(), "channel_id": "7"},
            "mentions": mentions.collect::<Vec<_>>(),
        }))
    };
    let means = |copy: &Message, original: &Message| {
        let joined = joined(copy, original);
        let to = joined.reference.and_then(|to| to.message);
        let mentions = joined.mentions.iter().map(|one| one.id.get());
        (
            joined.kind,
            to.map(MessageId::get),
            mentions.collect::<Vec<_>>(),
        )
    };
    let copy = message(11, 99, "<@9> what leaks?");
    let original = reply(10, 4, &[9, 3]);
    let meant = (MessageKind::Reply, Some(4), vec![9, 3]);
    assert_eq!(means(&copy, &original), meant);
    // What it has of its own stays, once.
    let meant = (MessageKind::Reply, Some(5), vec![3, 9]);
    assert_eq!(means(&reply(11, 5, &[3]), &original), meant);
}

/// Those that wait are asked by the next process.
#[test]
fn nothing_is_known_once_closed() {
    let mut all = Watched::new();
    assert!(all.holds.is_empty());
    assert_eq!(all.asks(10, 1, "<@9> L: what leaks?", 0), NOTHING);
    assert!(!all.holds.is_empty());
    all.holds.close();
    assert!(all.holds.is_empty());
    assert_eq!(all.expired(99_000), NOTHING);
}
