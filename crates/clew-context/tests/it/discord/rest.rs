//! Reads: their results, their errors, and how many requests they take.

use std::time::Duration;

use clew_context::collect::{PageCursor, Source};
use clew_context::discord::Live;
use clew_context::discord::error::RestError;
use clew_context::discord::rest::{RateLimitPool, RestReader, SearchQuery};
use clew_context::model::{
    ChannelId, ChannelKind, Fallback, GuildId, MessageId, Parent, TagId, UserId,
};
use clew_simulator::{Draft, Fault, FaultKind, File, Id, Limit, Simulator};
use serde_json::json;
use tokio::time::Instant;

use crate::simulator::{Small, small};

pub(super) fn channel_id(id: Id) -> ChannelId {
    ChannelId::new(id.0)
}

pub(super) fn message_id(id: Id) -> MessageId {
    MessageId::new(id.0)
}

pub(super) fn in_seconds(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

/// A deadline that only a hanging request can exceed.
pub(super) fn patient() -> Instant {
    in_seconds(20)
}

pub(super) fn rest(simulator: &Simulator) -> RestReader {
    RestReader::new(&simulator.token(), Some(&simulator.url())).unwrap()
}

/// A simulator whose channel has `count` messages by alice.
async fn filled(count: usize) -> (Simulator, Small, Vec<Id>) {
    let mut small = small();
    let seeded = (0..count)
        .map(|n| {
            small
                .world
                .seed(small.channel, small.alice, format!("m{n}"))
        })
        .collect();
    let world = std::mem::take(&mut small.world);
    let simulator = Simulator::start(world).await.unwrap();
    (simulator, small, seeded)
}

#[tokio::test]
async fn a_page_is_read_oldest_first_from_both_sides() {
    let (simulator, small, ids) = filled(12).await;
    let (rest, channel) = (rest(&simulator), channel_id(small.channel));
    let before = PageCursor::Before(message_id(ids[10]));
    let page = rest.page(channel, before, 5, patient()).await.unwrap();
    let read: Vec<u64> = page
        .messages
        .iter()
        .map(|message| message.id.get())
        .collect();
    let expected: Vec<u64> = ids[5..10].iter().map(|id| id.0).collect();
    assert_eq!(read, expected);
    assert!(!page.complete);
    let after = PageCursor::After(message_id(ids[9]));
    let page = rest.page(channel, after, 5, patient()).await.unwrap();
    assert_eq!((page.messages.len(), page.complete), (2, true));
    assert_eq!(&*page.messages[0].author.name, "alice");
}

#[tokio::test]
async fn a_message_that_twilight_rejects_does_not_cost_its_page() {
    let (simulator, small, ids) = filled(3).await;
    let bad = json!({"id": ids[1].0.to_string(), "channel_id": "1", "content": {"no": "text"},
        "author": {"id": "1", "avatar": "bad hash"}, "type": 0});
    simulator.override_message(ids[1], bad);
    simulator.override_message(ids[2], json!({"id": ids[2].0.to_string()}));
    let rest = rest(&simulator);
    let side = PageCursor::After(MessageId::new(1));
    let page = rest
        .page(channel_id(small.channel), side, 50, patient())
        .await
        .unwrap();
    assert_eq!(page.messages.len(), 2);
    assert_eq!(
        page.messages[1].extras.as_ref().unwrap().unread,
        ["content"]
    );
    assert_eq!(page.unreadable, [message_id(ids[2])]);
    assert!(page.complete);
}

#[tokio::test]
async fn single_objects_are_read() {
    let mut small = small();
    let forum = small
        .world
        .channel(small.guild, clew_simulator::ChannelKind::Forum, "help");
    let tags = ["rust", "solved"].map(|name| small.world.tag(forum, name));
    let post = small
        .world
        .forum_post(forum, small.alice, "How?", &tags, "like this");
    let file = File::text("a.txt", "fn main() {}");
    let asked = small
        .world
        .seed(small.channel, small.alice, Draft::new("q").attachment(file));
    let kind = clew_simulator::ChannelKind::PublicThread;
    let thread = small
        .world
        .thread(small.channel, kind, "A thread", small.alice);
    let world = std::mem::take(&mut small.world);
    let simulator = Simulator::start(world).await.unwrap();
    let rest = rest(&simulator);

    let found = rest
        .message(channel_id(small.channel), message_id(asked), patient())
        .await;
    let file = found.unwrap().extras.unwrap().attachments.remove(0);
    let text = rest.file(&file.url, 5, patient()).await.unwrap();
    assert_eq!(text, "fn ma");
    let elsewhere = rest.file("http://127.0.0.1:1/a", 5, patient()).await;
    assert_eq!(elsewhere.unwrap_err().reason, Fallback::Forbidden);

    let channel = rest.channel(channel_id(thread), patient()).await.unwrap();
    assert_eq!(channel.kind, ChannelKind::PublicThread);
    assert_eq!(channel.parent, Some(channel_id(small.channel)));
    let forum = rest.channel(channel_id(forum), patient()).await.unwrap();
    assert_eq!((forum.kind, &*forum.name), (ChannelKind::Forum, "help"));

    let parents = |_| {
        Some(Parent {
            kind: forum.kind,
            name: forum.name.clone(),
            topic: String::new(),
            tags: vec![(TagId::new(tags[0].0), "rust".to_owned())],
        })
    };
    let source = Live::new(&rest).with_parents(&parents);
    let post = source.channel(channel_id(post), patient()).await.unwrap();
    assert_eq!(post.parent_kind, Some(ChannelKind::Forum));
    assert_eq!(post.parent_name.as_deref(), Some("help"));
    assert_eq!(
        post.tags,
        ["rust"],
        "a tag that the forum lacks has no name"
    );

    let member = |user: Id| rest.thread_member(channel_id(thread), UserId::new(user.0), patient());
    assert!(member(small.alice).await.unwrap());
    assert!(!member(small.bob).await.unwrap());
}

#[tokio::test]
async fn every_fault_has_its_reason() {
    let (simulator, small, ids) = filled(2).await;
    let rest = rest(&simulator);
    let any = "/channels/**";
    let check = async |fault: Fault, reason: Fallback, transient: bool| {
        simulator.fault(fault.clone());
        let before = PageCursor::Before(message_id(ids[1]));
        let page = rest
            .page(channel_id(small.channel), before, 9, patient())
            .await;
        let error = page.unwrap_err();
        simulator.end_faults();
        assert_eq!(
            (error.reason, error.transient),
            (reason, transient),
            "{fault:?}"
        );
    };
    check(
        Fault::status("GET", any, 500, 0, "oops"),
        Fallback::Unavailable,
        true,
    )
    .await;
    check(
        Fault::status("GET", any, 403, 50_001, "Missing Access"),
        Fallback::Forbidden,
        false,
    )
    .await;
    check(
        Fault::status("GET", any, 404, 10_003, "Unknown Channel"),
        Fallback::NotFound,
        false,
    )
    .await;
    check(
        Fault::new("GET", any, FaultKind::Truncated),
        Fallback::Unavailable,
        true,
    )
    .await;
    check(
        Fault::new("GET", any, FaultKind::DroppedBefore),
        Fallback::Unavailable,
        true,
    )
    .await;
    check(
        Fault::new("GET", any, FaultKind::Body("{\"no\":\"page\"}".to_owned())),
        Fallback::Malformed,
        false,
    )
    .await;
    let unknown = rest
        .message(channel_id(small.channel), MessageId::new(5), patient())
        .await;
    assert_eq!(unknown.unwrap_err().reason, Fallback::Deleted);
}

#[tokio::test]
async fn a_refused_token_is_reported_and_not_retried() {
    let (simulator, ..) = filled(0).await;
    let rest = RestReader::new("not.the.token", Some(&simulator.url())).unwrap();
    for _ in 0..2 {
        let path = "gateway/bot".to_owned();
        let error = rest
            .get(path, RateLimitPool::Main, patient())
            .await
            .unwrap_err();
        assert!(error.unauthorized, "{error:?}");
        assert!(!format!("{error:?}{error}").contains("not.the.token"));
    }
    assert!(!format!("{rest:?}").contains("not.the.token"));
    assert_eq!(simulator.requests_to("GET", "/gateway/bot").len(), 1);
}

#[tokio::test]
async fn tokens_and_addresses_that_cannot_be_used_are_refused() {
    assert!(RestReader::new("", None).is_err());
    assert!(RestReader::new("a\nb", None).is_err());
    assert!(RestReader::new("token", Some("ws://127.0.0.1:1")).is_err());
    assert!(RestReader::new("token", None).is_ok());
}

#[tokio::test]
async fn a_hang_is_a_timeout_and_delays_nothing_after_it() {
    let (simulator, small, ids) = filled(2).await;
    let rest = rest(&simulator);
    let hang = FaultKind::Hang(Duration::from_mins(1));
    simulator.fault(Fault::new("GET", "/channels/**", hang).once());
    let channel = channel_id(small.channel);
    let before = PageCursor::Before(message_id(ids[1]));
    let soon = Instant::now() + Duration::from_millis(150);
    let late = rest.page(channel, before, 9, soon).await.unwrap_err();
    assert_eq!(late.reason, Fallback::Timeout);
    let page = rest.page(channel, before, 9, patient()).await.unwrap();
    assert_eq!(page.messages.len(), 1);
}

#[tokio::test]
async fn a_hanging_check_delays_no_turn() {
    let (simulator, small, ids) = filled(3).await;
    let rest = rest(&simulator);
    let channel = channel_id(small.channel);
    let path = format!("/channels/{channel}/messages/{}", ids[0].0);
    let hang = FaultKind::Hang(Duration::from_mins(1));
    let fault = simulator.fault(Fault::new("GET", &path, hang));
    let check = rest.check(channel, message_id(ids[0]), patient());
    let turn = async {
        while simulator.hits(fault) == 0 {
            tokio::task::yield_now().await;
        }
        let before = PageCursor::Before(message_id(ids[2]));
        tokio::join!(
            rest.message(channel, message_id(ids[1]), patient()),
            rest.page(channel, before, 9, patient()),
        )
    };
    tokio::select! {
        (message, page) = turn => {
            assert_eq!(message.unwrap().id, message_id(ids[1]));
            assert_eq!(page.unwrap().messages.len(), 2);
        }
        _ = check => panic!("the check was answered"),
    }
}

#[tokio::test]
async fn a_limit_that_outlasts_the_deadline_is_rate_limited() {
    let (simulator, small, ids) = filled(2).await;
    let rest = rest(&simulator);
    simulator.limit(Limit {
        method: "GET".to_owned(),
        path: "/messages".to_owned(),
        calls: 1,
        window: Duration::from_mins(1),
    });
    let channel = channel_id(small.channel);
    let page = |deadline| rest.page(channel, PageCursor::Before(message_id(ids[1])), 9, deadline);
    page(patient()).await.unwrap();
    // The second attempt gets a 429; the third waits for our own limiter.
    for _ in 0..2 {
        let soon = Instant::now() + Duration::from_millis(300);
        let late: RestError = page(soon).await.unwrap_err();
        assert_eq!(late.reason, Fallback::RateLimited);
    }
    let path = format!("/channels/{channel}/messages");
    assert_eq!(simulator.requests_to("GET", &path).len(), 2);
}

#[tokio::test]
async fn a_limit_that_ends_in_time_costs_only_the_wait() {
    let (simulator, small, ids) = filled(2).await;
    let rest = rest(&simulator);
    simulator.limit(Limit {
        method: "GET".to_owned(),
        path: "/messages".to_owned(),
        calls: 1,
        window: Duration::from_millis(400),
    });
    let channel = channel_id(small.channel);
    for _ in 0..2 {
        let before = PageCursor::Before(message_id(ids[1]));
        rest.page(channel, before, 9, patient()).await.unwrap();
    }
}

#[tokio::test]
async fn a_search_is_sent_once() {
    let (simulator, small, _) = filled(2).await;
    let rest = rest(&simulator);
    let limited = Fault::rate_limited("GET", "/guilds/*/messages/search", 1.0);
    let fault = simulator.fault(limited.once());
    let guild = GuildId::new(small.guild.0);
    let query = SearchQuery {
        limit: 25,
        ..SearchQuery::default()
    };
    let late = rest.search(guild, &query, patient()).await.unwrap_err();
    let told = (late.reason, late.retry_after);
    assert_eq!(told, (Fallback::RateLimited, Some(Duration::from_secs(1))));
    assert_eq!(simulator.hits(fault), 1);
    assert_eq!(simulator.requests_to("GET", "/messages/search").len(), 1);
}

#[tokio::test]
async fn limits_without_a_wait_are_not_hit_again() {
    let (simulator, small, ids) = filled(2).await;
    let rest = rest(&simulator);
    let body = json!({"message": "limited", "retry_after": 1.0, "global": true, "code": 0});
    let kind = FaultKind::Status {
        status: 429,
        body,
        retry_after: None,
    };
    let fault = simulator.fault(Fault::new("GET", "/channels/**", kind));
    let before = PageCursor::Before(message_id(ids[1]));
    let soon = Instant::now() + Duration::from_millis(1_500);
    let page = rest.page(channel_id(small.channel), before, 9, soon).await;
    assert_eq!(page.unwrap_err().reason, Fallback::RateLimited);
    // The attempts are one second apart, then two: a third would come too late.
    assert_eq!(simulator.hits(fault), 2);
}

#[tokio::test]
async fn equal_reads_at_the_same_time_share_one_request() {
    let (simulator, small, ids) = filled(3).await;
    simulator.set_latency(Duration::from_millis(200));
    let rest = rest(&simulator);
    let channel = channel_id(small.channel);
    let page = |end: usize| {
        rest.page(
            channel,
            PageCursor::Before(message_id(ids[end])),
            9,
            patient(),
        )
    };
    let (first, second, other) = tokio::join!(page(2), page(2), page(1));
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(other.unwrap().messages.len(), 1);
    let path = format!("/channels/{channel}/messages");
    assert_eq!(simulator.requests_to("GET", &path).len(), 2);
    page(2).await.unwrap();
    assert_eq!(
        simulator.requests_to("GET", &path).len(),
        3,
        "an answer is not cached"
    );
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_cancel_the_others() {
    let (simulator, small, ids) = filled(2).await;
    simulator.set_latency(Duration::from_millis(300));
    let rest = rest(&simulator);
    let channel = channel_id(small.channel);
    let before = PageCursor::Before(message_id(ids[1]));
    let soon = Instant::now() + Duration::from_millis(50);
    let (hasty, patient) = tokio::join!(
        rest.page(channel, before, 9, soon),
        rest.page(channel, before, 9, patient()),
    );
    assert_eq!(hasty.unwrap_err().reason, Fallback::Timeout);
    assert_eq!(patient.unwrap().messages.len(), 1);
    let path = format!("/channels/{channel}/messages");
    assert_eq!(simulator.requests_to("GET", &path).len(), 1);
}
