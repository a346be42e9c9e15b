//! What one process notes, as the next one finds it.

use std::fs;

use super::*;

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const KEY: [u8; 32] = [7; 32];

/// A folder, and the claims of one process after the other in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("claims.jsonl")
    }

    fn open(&self, now: UnixMillis) -> Claims {
        Claims::open(&self.path(), &KEY, now)
    }
}

fn message(id: u64) -> MessageId {
    MessageId::new(id)
}

fn later(time: Duration) -> UnixMillis {
    UnixMillis(NOW.0 + i64::try_from(time.as_millis()).unwrap())
}

#[test]
fn a_question_is_claimed_once() {
    let claims = Claims::in_memory();
    assert!(claims.claim(message(1), NOW, NOW));
    assert!(!claims.claim(message(1), NOW, NOW));
    assert!(claims.claim(message(2), NOW, NOW));
}

#[tokio::test]
async fn the_next_process_knows_what_is_answered_and_what_is_not() {
    let place = Place::new();
    let claims = place.open(NOW);
    for id in 1..=4 {
        assert!(claims.claim(message(id), NOW, NOW));
    }
    claims.posting(message(1), 0, NOW).await;
    claims.posted(message(1), message(11), NOW).await;
    claims.over(message(1), NOW).await;
    claims.posting(message(2), 3, NOW).await;
    claims.posted(message(2), message(21), NOW).await;
    claims.posted(message(2), message(22), NOW).await;
    claims.posting(message(3), 0, NOW).await;
    claims.posted(message(3), message(31), NOW).await;
    claims.taken_back(message(3), NOW).await;
    drop(claims);

    let claims = place.open(NOW);
    assert!(!claims.claim(message(1), NOW, NOW));
    for id in 2..=4 {
        assert!(claims.claim(message(id), NOW, NOW), "{id}");
    }
    let unfinished = |restarts, posted: &[u64]| {
        Some(Unfinished {
            restarts,
            posted: posted.iter().map(|id| message(*id)).collect(),
            at: NOW,
        })
    };
    assert_eq!(claims.unfinished(message(1)), None);
    assert_eq!(claims.unfinished(message(2)), unfinished(3, &[21, 22]));
    // Discord posts nothing again under the nonce of what was deleted.
    assert_eq!(claims.unfinished(message(3)), unfinished(1, &[]));
    assert_eq!(claims.unfinished(message(4)), None, "nothing was posted");
    assert_eq!(claims.unfinished(message(2)), None, "asked for once");
    for (ours, is_explained) in [(11, true), (21, true), (31, false), (41, false)] {
        assert_eq!(claims.explains(message(ours)), is_explained, "{ours}");
    }
    // Killed again before it came to anything.
    drop(claims);
    let claims = place.open(NOW);
    assert_eq!(claims.unfinished(message(2)), unfinished(3, &[21, 22]));
}

#[tokio::test]
async fn a_call_is_taken_once_over_processes() {
    let place = Place::new();
    let call = InteractionId::new(5);
    let claims = place.open(NOW);
    assert!(claims.claim_call(call, NOW));
    assert!(!claims.claim_call(call, NOW));
    claims.note_call(call).await;
    let claims = place.open(NOW);
    assert!(!claims.claim_call(call, NOW));
    assert!(claims.claim(message(5), NOW, NOW), "another kind of id");
}

/// What a claim says of somebody must not have to be erased.
#[tokio::test]
async fn no_id_is_in_the_file() {
    let place = Place::new();
    let (question, answer) = (
        message(1_460_000_000_000_000_001),
        message(1_460_000_000_000_000_002),
    );
    let claims = place.open(NOW);
    claims.posted(question, answer, NOW).await;
    let text = fs::read_to_string(place.path()).unwrap();
    assert!(text.contains("posted"), "{text}");
    for id in [question, answer] {
        assert!(!text.contains(&id.to_string()), "{text}");
    }
    // Nor for who has the file, but another key.
    let other = Claims::open(&place.path(), &[8; 32], NOW);
    assert_eq!(other.unfinished(question), None);
}

#[tokio::test]
async fn claims_go_after_an_hour_and_older_questions_are_not_asked_again() {
    let place = Place::new();
    let claims = place.open(NOW);
    claims.over(message(1), NOW).await;
    drop(claims);
    let hour = later(Duration::from_mins(61));
    let claims = place.open(hour);
    assert_eq!(fs::read_to_string(place.path()).unwrap(), "");
    assert!(!claims.claim(message(1), NOW, hour), "nobody knows");
    assert!(claims.claim(message(2), later(Duration::from_mins(40)), hour));
}

#[test]
fn a_clock_that_was_ahead_at_the_start_makes_no_question_old() {
    let place = Place::new();
    let claims = place.open(later(Duration::from_hours(2)));
    assert!(claims.claim(message(1), NOW, NOW));
    let long_ago = NOW.before(ASKED_AGAIN * 2);
    assert!(!claims.claim(message(2), long_ago, NOW), "nobody knows");
}

/// A quiet process writes nothing, and keeps nothing longer all the same.
#[tokio::test]
async fn what_is_kept_no_longer_leaves_the_file() {
    let place = Place::new();
    let claims = place.open(NOW);
    claims.over(message(1), NOW).await;
    let hour = later(Duration::from_mins(61));
    claims.over(message(2), hour).await;
    let lines = || fs::read_to_string(place.path()).unwrap().lines().count();
    claims.tidy(later(Duration::from_mins(119))).await;
    assert_eq!(lines(), 2);
    claims.tidy(later(Duration::from_mins(121))).await;
    assert_eq!(lines(), 1);
    assert!(place.open(hour).is_taken(message(2)));
}

#[tokio::test]
async fn a_question_that_is_over_without_an_answer_was_given_up() {
    let place = Place::new();
    let claims = place.open(NOW);
    for id in 1..=3 {
        claims.claim(message(id), NOW, NOW);
    }
    claims.over(message(1), NOW).await;
    claims.posted(message(2), message(21), NOW).await;
    claims.over(message(2), NOW).await;
    for claims in [claims, place.open(NOW)] {
        let given_up = (1..=4).filter(|id| claims.is_given_up(message(*id)));
        assert_eq!(given_up.collect::<Vec<_>>(), [1]);
    }
}

#[tokio::test]
async fn a_line_that_was_cut_off_costs_only_itself() {
    let place = Place::new();
    let claims = place.open(NOW);
    claims.over(message(1), NOW).await;
    claims.over(message(2), NOW).await;
    let text = fs::read_to_string(place.path()).unwrap();
    fs::write(place.path(), &text[..text.len() - 9]).unwrap();
    let claims = place.open(NOW);
    assert!(!claims.claim(message(1), NOW, NOW));
    assert!(claims.claim(message(2), NOW, NOW));
    claims.over(message(2), NOW).await;
    assert!(!place.open(NOW).claim(message(2), NOW, NOW));
}

/// The file is written anew once most of its lines are superseded.
#[tokio::test]
async fn what_a_claim_said_last_is_in_the_shorter_file() {
    let place = Place::new();
    let claims = place.open(NOW);
    for id in 1..=2_100 {
        claims.claim(message(id), NOW, NOW);
        claims.posting(message(id), 0, NOW).await;
        claims.posted(message(id), message(10_000 + id), NOW).await;
        if id > 1 {
            claims.over(message(id), NOW).await;
        }
    }
    drop(claims);
    let lines = fs::read_to_string(place.path()).unwrap().lines().count();
    assert!(lines < 3 * 2_100 - 1, "{lines}");
    let claims = place.open(NOW);
    let unfinished = claims.unfinished(message(1)).unwrap();
    assert_eq!(unfinished.posted, [message(10_001)]);
    for id in 2..=2_100 {
        assert!(!claims.claim(message(id), NOW, NOW), "{id}");
    }
}

#[tokio::test]
async fn memory_and_file_are_bounded() {
    let place = Place::new();
    let claims = place.open(NOW);
    for id in 1..=20_000 {
        claims.claim(message(id), NOW, NOW);
        claims
            .over(message(id), later(Duration::from_millis(id * 1_000)))
            .await;
    }
    let state = claims.lock();
    assert_eq!(state.taken.ids.len(), REMEMBERED);
    assert!(state.kept.len() <= 3_601, "{}", state.kept.len());
    let lines = fs::read_to_string(place.path()).unwrap().lines().count();
    assert!(lines <= 3 * 3_601 + 4_096, "{lines}");
}

#[tokio::test]
async fn the_next_process_knows_what_was_asked_before_an_erasure() {
    let place = Place::new();
    let (ada, ben) = (UserId::new(1), UserId::new(2));
    place.open(NOW).erased(ada, NOW).await;
    let text = fs::read_to_string(place.path()).unwrap();
    assert!(!text.contains("\"claim\":1,"), "no id: {text}");

    let claims = place.open(later(Duration::from_mins(1)));
    assert_eq!(
        claims.erased_since(ada, NOW.before(Duration::from_secs(1))),
        Some(NOW)
    );
    assert_eq!(claims.erased_since(ada, NOW), None);
    assert_eq!(claims.erased_since(ben, UnixMillis(0)), None);
    let later_still = later(Duration::from_mins(2));
    claims.erased(ada, later_still).await;
    assert_eq!(claims.erased_since(ada, NOW), Some(later_still));
}
