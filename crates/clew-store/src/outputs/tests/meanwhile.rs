//! What is edited, erased or ended while a turn is under way, and the results that come later.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl Kept {
    pub(super) async fn purge(&self, purge: &Purge) -> u64 {
        self.outputs.purge(purge, self.now()).await.unwrap()
    }

    pub(super) async fn end_session(&self, user: UserId) -> u64 {
        let ended = self.outputs.end_session(scope(user), self.now());
        ended.await.unwrap()
    }

    /// The message 5 was edited now.
    fn edited(&self) -> Purge {
        Purge::Edited {
            channel: CHANNEL,
            message: MessageId::new(5),
            at: self.now(),
        }
    }

    /// Of a turn that was asked then; its tool begins and ends now.
    fn of_turn(&self, owner: UserId, asked: UnixMillis) -> NewOutput {
        NewOutput {
            asked,
            began: self.now(),
            ..of(owner, "tool")
        }
    }

    async fn refused(&self, output: NewOutput) -> SaveError {
        let refused = self.outputs.save_context(output).await.unwrap_err();
        assert!(self.files().is_empty());
        refused
    }
}

/// Made from the message 5 by a tool that began at that time.
fn read_at(began: UnixMillis) -> NewOutput {
    NewOutput {
        asked: began,
        began,
        ..made_from("read", vec![message(5, BOB)])
    }
}

#[tokio::test]
async fn what_a_tool_read_before_an_edit_is_not_kept() {
    let kept = Kept::new(|_| ()).await;
    let began = kept.now();
    kept.wait(SECOND);
    assert_eq!(kept.purge(&kept.edited()).await, 0);
    kept.wait(SECOND);
    let refused = kept.refused(read_at(began)).await;
    assert!(matches!(refused, SaveError::SourceRemoved), "{refused}");
    kept.save(read_at(kept.now())).await;
}

/// Discord may tell of an edit after the result is on disk.
#[tokio::test]
async fn an_edit_takes_what_a_tool_read_before_it_and_was_kept_since() {
    let resume = |settings: &mut OutputSettings| settings.resume = true;
    let mut kept = Kept::new(resume).await;
    for restarts in [false, true] {
        let began = kept.now();
        kept.wait(SECOND);
        let edited = kept.edited();
        kept.wait(SECOND);
        kept.save(read_at(began)).await;
        kept.save(read_at(kept.now())).await;
        if restarts {
            kept = kept.restart(resume).await;
        }
        kept.wait(SECOND);
        assert_eq!(kept.purge(&edited).await, 1, "{restarts}");
        assert_eq!(kept.purge(&Purge::User(ADA)).await, 1);
        kept.wait(SECOND);
    }
}

#[tokio::test]
async fn a_file_without_these_times_is_judged_by_its_own() {
    let resume = |settings: &mut OutputSettings| settings.resume = true;
    let kept = Kept::new(resume).await;
    let saved = kept.save(of(ADA, "old")).await;
    let text = std::fs::read(&saved.filepath).unwrap();
    let mut file: Value = serde_json::from_slice(&text).unwrap();
    for field in ["asked", "began"] {
        assert!(file.as_object_mut().unwrap().remove(field).is_some());
    }
    std::fs::write(&saved.filepath, file.to_string()).unwrap();
    let kept = kept.restart(resume).await;
    let found = kept.outputs.all_pointers().await.unwrap().remove(0);
    let times = (found.asked, found.began, found.time);
    assert_eq!(times, (START, START, START));
}

/// A turn asks for tools several times; the later ones begin after an erasure.
#[tokio::test]
async fn what_was_asked_before_an_erasure_is_not_kept() {
    for purge in [
        Purge::User(ADA),
        Purge::Guild(GUILD),
        Purge::Channel(CHANNEL),
        Purge::Member {
            guild: GUILD,
            user: ADA,
        },
    ] {
        let kept = Kept::new(|_| ()).await;
        let asked = kept.now();
        kept.wait(SECOND);
        kept.purge(&purge).await;
        kept.wait(SECOND);
        let refused = kept.refused(kept.of_turn(ADA, asked)).await;
        assert!(matches!(refused, SaveError::Erased), "{purge:?}: {refused}");
        kept.save(kept.of_turn(ADA, kept.now())).await;
    }
}

/// What is still there may be read again.
#[tokio::test]
async fn an_erasure_of_others_takes_only_what_was_read_before_it() {
    let kept = Kept::new(|_| ()).await;
    let asked = kept.now();
    kept.wait(SECOND);
    kept.purge(&Purge::User(BOB)).await;
    kept.wait(SECOND);
    let refused = kept.refused(read_at(asked)).await;
    assert!(matches!(refused, SaveError::SourceRemoved), "{refused}");
    let read_again = NewOutput {
        asked,
        ..read_at(kept.now())
    };
    kept.save(read_again).await;
}

#[tokio::test]
async fn what_was_asked_before_its_session_ended_is_not_kept() {
    let kept = Kept::new(|_| ()).await;
    let asked = kept.now();
    kept.wait(SECOND);
    assert_eq!(kept.end_session(ADA).await, 0);
    kept.wait(SECOND);
    let refused = kept.refused(kept.of_turn(ADA, asked)).await;
    assert!(matches!(refused, SaveError::Erased), "{refused}");
    kept.save(kept.of_turn(BOB, asked)).await;
    kept.save(kept.of_turn(ADA, kept.now())).await;
}

/// Turns may take longer than tools.
#[tokio::test]
async fn erasures_are_remembered_for_long_turns() {
    let kept = Kept::new(|_| ()).await;
    let asked = kept.now();
    kept.purge(&Purge::User(ADA)).await;
    kept.end_session(BOB).await;
    kept.wait(2 * PURGES_KEPT);
    kept.outputs.sweep().await.unwrap();
    for owner in [ADA, BOB] {
        let refused = kept.refused(kept.of_turn(owner, asked)).await;
        assert!(matches!(refused, SaveError::Erased), "{refused}");
    }
    let other = UserId::new(13);
    kept.save(kept.of_turn(other, asked)).await;
    kept.purge(&Purge::User(other)).await;
    // Of a turn from before all that is remembered nothing is known.
    kept.wait(2 * ERASURES_KEPT);
    kept.outputs.sweep().await.unwrap();
    let another = UserId::new(14);
    let refused = kept.refused(kept.of_turn(another, asked)).await;
    assert!(matches!(refused, SaveError::Erased), "{refused}");
}

/// The caller's clock never goes back, ours may.
#[tokio::test]
async fn a_clock_that_went_back_hides_no_purge() {
    let kept = Kept::new(|_| ()).await;
    let ahead = |seconds: i64| UnixMillis(START.0 + 3_600_000 + seconds * 1_000);
    let purge = Purge::User(BOB);
    kept.outputs.purge(&purge, ahead(1)).await.unwrap();
    let ended = kept.outputs.end_session(scope(ADA), ahead(1));
    ended.await.unwrap();
    let refused = kept.refused(read_at(ahead(0))).await;
    assert!(matches!(refused, SaveError::SourceRemoved), "{refused}");
    let refused = kept.refused(kept.of_turn(ADA, ahead(0))).await;
    assert!(matches!(refused, SaveError::Erased), "{refused}");
    kept.save(read_at(ahead(2))).await;
}
