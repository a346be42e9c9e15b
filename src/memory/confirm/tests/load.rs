//! More turns at once than may wait for Discord.

use super::*;

/// They ask nothing and go on without what is not confirmed, which is asked for later.
#[tokio::test]
async fn beyond_a_few_at_once_a_turn_does_not_wait() {
    let channel = channel().await;
    let (s, rows) = channel.doubted().await;
    let asked = (&channel.rest, &unedited as EditOf<'_>);
    let others = u32::try_from(MOST_TURNS).unwrap();
    let _waiting = s.memory.confirms.acquire_many(others).await.unwrap();
    let mut shown = rows;
    confirm(&s.memory, &mut shown, &BTreeSet::new(), asked, soon()).await;
    assert_eq!(shown, []);
    let event = &s.told("confirmed")[0];
    let names = ["asked", "calls", "gone", "unanswered"];
    assert_eq!(names.map(|name| &event[name]), [2, 0, 0, 2]);
    assert_eq!(channel.discord.requests_to("GET", "/messages").len(), 0);
    let due = s.memory.doubts.due().now_or_never();
    assert_eq!(due.map_or(0, |asking| asking.keys.len()), 2);
}
