//! Turns that were made from messages elsewhere: what happens to those happens to
//! what was made from them, and the question stays.

use super::*;
use crate::memory::reconcile::traces;
use crate::memory::{Edit, Fetched};
use clew_context::model::ContentSource;
use clew_discord::session::Missed;
use clew_store::WindowQuery;

const ELSEWHERE: ChannelId = ChannelId::new(70);
const SOURCE: MessageId = MessageId::new(5);

impl Scene {
    /// A turn whose answer was made from Boris's message, after an hour.
    async fn told_of(&self, place: &Place, question: u64) {
        let exchange = self.made_from_source(question);
        self.pass(HOUR_MS);
        self.memory
            .record(&Ids::default(), place, &exchange, None)
            .await;
    }

    fn made_from_source(&self, question: u64) -> Exchange {
        let source = ContentSource {
            guild: Some(GUILD),
            channel: ELSEWHERE,
            message: Some(SOURCE),
            author: Some(BORIS),
        };
        Exchange {
            sources: vec![source],
            ..self.exchange(question, "saffron")
        }
    }

    /// What is left in prompts at once, and in the store once it was told.
    async fn left_after(&self, place: &Place, change: DiscordChange) -> [Vec<String>; 2] {
        self.memory.reconcile(change);
        let at_once = self.rows(place).await;
        self.memory.reconcile_all().await;
        let store = &self.memory.stores.conversations;
        let stored = store.window(&all_of(place)).await.unwrap();
        [at_once, stored].map(|rows| words(&rows).into_iter().map(str::to_owned).collect())
    }
}

fn all_of(place: &Place) -> WindowQuery {
    WindowQuery {
        scope: place.scope,
        agent: place.agent.clone(),
        since: UnixMillis(0),
        cleared: None,
        with_tools: true,
        limit: 9,
    }
}

const HOUR_MS: i64 = 60 * 60 * 1_000;

fn edited(words: Option<&str>, at: Option<UnixMillis>) -> DiscordChange {
    DiscordChange::Edited {
        guild: Some(GUILD),
        channel: ELSEWHERE,
        edit: Edit {
            message: SOURCE,
            words: words.map(str::to_owned),
            at,
        },
    }
}

#[tokio::test]
async fn a_deleted_source_takes_the_answer() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.told_of(&here, 10).await;
    let elsewhere = |id| DiscordChange::Deleted {
        guild: Some(GUILD),
        channel: ELSEWHERE,
        ids: vec![MessageId::new(id)],
    };
    let both = ["saffron", "so: saffron"];
    assert_eq!(s.left_after(&here, elsewhere(4)).await, [both, both]);
    let question = ["saffron"];
    assert_eq!(
        s.left_after(&here, elsewhere(5)).await,
        [question, question]
    );
}

#[tokio::test]
async fn an_edited_source_takes_answers_that_were_begun_before() {
    let both: &[&str] = &["saffron", "so: saffron"];
    let question: &[&str] = &["saffron"];
    for (words, after_ms, left) in [
        (Some("ginger"), Some(2 * HOUR_MS), question),
        // While the turn ran; another bot's message.
        (None, Some(1), question),
        (Some("ginger"), Some(-1), both),
        // A preview.
        (Some("ginger"), None, both),
    ] {
        let s = scene().await;
        let here = place(GUILD, HERE, ADA);
        let asked = s.memory.now();
        s.told_of(&here, 10).await;
        let at = after_ms.map(|ms| UnixMillis(asked.0 + ms));
        let found = s.left_after(&here, edited(words, at)).await;
        assert_eq!(found, [left, left], "{words:?} {after_ms:?}");
    }
}

/// The page of a collector, or Discord's answer about the message.
#[tokio::test]
async fn an_edit_that_a_page_shows_takes_the_answer_too() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    let at = Some(UnixMillis(s.memory.now().0 + 1));
    s.told_of(&here, 10).await;
    let DiscordChange::Edited { edit, .. } = edited(Some("ginger"), at) else {
        unreachable!("it is an edit");
    };
    let page = Fetched::one(s.memory.now(), ELSEWHERE, edit);
    let left = s.left_after(&here, DiscordChange::Fetched(page)).await;
    assert_eq!(left, [["saffron"], ["saffron"]]);
}

#[tokio::test]
async fn what_happens_to_a_source_while_the_turn_runs_is_not_missed() {
    for nth in 0..3 {
        let s = scene().await;
        let here = place(GUILD, HERE, ADA);
        let exchange = s.made_from_source(10);
        s.pass(1);
        let change = match nth {
            0 => DiscordChange::Deleted {
                guild: Some(GUILD),
                channel: ELSEWHERE,
                ids: vec![SOURCE],
            },
            1 => edited(Some("ginger"), Some(s.memory.now())),
            _ => channel_deleted(ELSEWHERE),
        };
        s.reconcile(change).await;
        s.pass(1);
        s.memory
            .record(&Ids::default(), &here, &exchange, None)
            .await;
        assert_eq!(words(&s.rows(&here).await), ["saffron"], "{nth}");
    }
}

#[tokio::test]
async fn an_opted_out_author_is_left_out_at_once_and_purged() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.told_of(&here, 10).await;
    s.opt_outs.set([BORIS].into_iter().collect());
    assert_eq!(words(&s.rows(&here).await), ["saffron"]);
    let searched = s.memory.said_before(&here).await.unwrap();
    assert_eq!(words(&searched), ["saffron"]);
    s.opt_outs.set([].into_iter().collect());
    assert_eq!(s.rows(&here).await.len(), 2);
    s.memory.opt_out(BORIS).await.unwrap();
    s.memory.opt_in(BORIS).await.unwrap();
    assert_eq!(words(&s.rows(&here).await), ["saffron"]);
}

/// As for the row's own message: a deletion may have been missed.
#[tokio::test]
async fn a_source_from_before_a_gap_is_asked_for() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.told_of(&here, 10).await;
    s.pass(1);
    s.memory.missed(Missed::Channel {
        guild: Some(GUILD),
        channel: ELSEWHERE,
    });
    let mut rows = s.rows(&here).await;
    let traces = rows.iter().flat_map(traces);
    let asking = s.memory.doubts.take_unconfirmed(traces, 9);
    assert_eq!(asking.hand_over(), [(ELSEWHERE, SOURCE)]);
    s.memory.doubts.gone((ELSEWHERE, SOURCE));
    s.memory.leave_out_doubtful(&mut rows);
    assert_eq!(words(&rows), ["saffron"]);
}

/// Turns that wait for a store that fails.
#[tokio::test]
async fn a_turn_that_waits_is_reached_by_its_source() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    let wait = || {
        let rows = history::rows(&here, &s.made_from_source(10), s.memory.limits());
        let turn = UnsavedTurn::new(Ids::default(), s.memory.now(), &here.agent, rows, None);
        s.memory.unsaved.keep(turn.unwrap());
    };
    let at = UnixMillis(s.memory.now().0 + 1);
    for purge in [
        Purge::Messages {
            channel: ELSEWHERE,
            ids: vec![SOURCE],
        },
        Purge::Edited {
            channel: ELSEWHERE,
            message: SOURCE,
            at,
        },
        Purge::Channel(ELSEWHERE),
        Purge::Member {
            guild: GUILD,
            user: BORIS,
        },
        Purge::User(BORIS),
    ] {
        wait();
        assert!(s.memory.unsaved.messages(ELSEWHERE).contains(&SOURCE));
        s.memory.unsaved.purge(&purge);
        assert!(s.memory.unsaved.messages(ELSEWHERE).is_empty(), "{purge:?}");
        assert_eq!(s.memory.unsaved.messages(HERE).len(), 1, "{purge:?}");
    }
}

/// Nothing is kept of him but in an answer to her.
#[tokio::test]
async fn an_opt_out_that_was_broken_off_reaches_answers_to_others() {
    let s = scene().await;
    let of_ada = place(GUILD, HERE, ADA);
    s.told_of(&of_ada, 10).await;
    let lasting = &s.memory.stores.lasting;
    let now = s.memory.now();
    lasting.set_opt_out(BORIS, Some(now)).await.unwrap();
    s.memory.finish_opt_outs().await.unwrap();
    let store = &s.memory.stores.conversations;
    let stored = store.window(&all_of(&of_ada)).await.unwrap();
    assert_eq!(words(&stored), ["saffron"]);
}
