//! How often, and when, an edited running question is asked again. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// The most restarts of one question; a further edit ends the turn.
const MOST: u32 = 5;
/// A question is asked again after this long without an edit...
const QUIET: Duration = Duration::from_secs(1);
/// ...or after this long, so that nobody keeps a place by editing endlessly.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The restarts of one running question.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    count: u32,
    pause: Option<Pause>,
}

/// The time from an edit until the question is asked again.
#[derive(Debug, Clone, Copy)]
struct Pause {
    began: Instant,
    ends: Instant,
}

impl Restarts {
    /// When to ask again after an edit; `None` if not at all. Edits within a pause
    /// postpone its end and count as one restart; `may_ask` is called once per
    /// restart.
    pub(super) fn edited(
        &mut self,
        now: Instant,
        may_ask: impl FnOnce() -> bool,
    ) -> Option<Instant> {
        let began = match self.pause.filter(|pause| now < pause.ends) {
            Some(pause) => pause.began,
            None if self.count < MOST && may_ask() => {
                self.count += 1;
                now
            }
            None => return None,
        };
        let ends = (now + QUIET).min(began + LONGEST_PAUSE);
        self.pause = Some(Pause { began, ends });
        Some(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For edits at these milliseconds: when the question will be asked again.
    fn asked(edits: &[u64]) -> Vec<Option<u128>> {
        let (mut restarts, start) = (Restarts::default(), Instant::now());
        let edited = |at: &u64| restarts.edited(start + Duration::from_millis(*at), || true);
        let asked = edits.iter().map(edited);
        asked
            .map(|at| Some((at? - start).as_millis()))
            .collect::<Vec<_>>()
    }

    #[test]
    fn a_question_is_asked_after_a_second_without_edits() {
        assert_eq!(asked(&[0, 999]), [Some(1_000), Some(1_999)]);
    }

    #[test]
    fn five_restarts_are_the_most() {
        let apart = [0, 2_000, 4_000, 6_000, 8_000, 10_000, 12_000];
        let times = asked(&apart);
        assert!(times[..5].iter().all(Option::is_some), "{times:?}");
        assert_eq!(times[5..], [None, None]);
    }

    #[test]
    fn edits_within_a_pause_are_one_restart() {
        let close: Vec<u64> = (0..10).map(|edit| edit * 500).collect();
        assert!(asked(&close).iter().all(Option::is_some));
    }

    #[test]
    fn editing_on_and_on_does_not_put_the_question_off_for_ever() {
        let on_and_on: Vec<u64> = (0..14).map(|edit| edit * 900).collect();
        let times = asked(&on_and_on);
        assert_eq!(times[11], Some(10_000), "edited at 9.9 s");
        assert_eq!(times[12], Some(11_800), "a second restart");
    }

    #[test]
    fn each_restart_asks_whether_it_may_be_and_edits_within_a_pause_do_not() {
        let (mut restarts, now) = (Restarts::default(), Instant::now());
        let mut asked = 0;
        let mut edited = |at: Duration, may: bool| {
            let edited = restarts.edited(now + at, || {
                asked += 1;
                may
            });
            (edited.is_some(), asked)
        };
        assert_eq!(edited(Duration::ZERO, true), (true, 1));
        assert_eq!(edited(Duration::from_millis(500), true), (true, 1));
        assert_eq!(edited(Duration::from_secs(3), false), (false, 2));
    }
}
