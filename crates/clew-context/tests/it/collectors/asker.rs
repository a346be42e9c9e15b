//! Access of the asker where the caller does not know it: it is looked up alongside everything else, and
//! nothing is shown before the answer allows it. Also messages included from other channels, which the asker
//! may not be able to view.

use std::time::Duration;

use clew_context::collect::FetchError;
use clew_context::engine::access::bits;
use clew_context::engine::turn::Collected;
use clew_context::model::{
    Access, Cause, Channel, ChannelId, ChannelKind, Fallback, Guild, Message, Missing, Overwrite,
    OverwriteTarget, ReferenceKind, Referenced, RoleId,
};

use crate::collectors::target::ask_command;
use crate::support::build::{
    ADA, BOB, EVE, GENERAL, GUILD, OTHER_ROLE, OUR_ROLE, Shape, asked, post, private_thread, said,
    text_channel, thread, thread_id,
};
use crate::support::world::{Start, World, failures, outline};

const READ: u64 = bits::VIEW_CHANNEL | bits::READ_MESSAGE_HISTORY;
const UNKNOWN: Access = Access::Unknown(Missing::Facts);

fn here(n: u64) -> Message {
    said(n, BOB, "talk").into_channel(thread_id(0))
}

fn ask(n: u64) -> Message {
    asked(n, EVE, "so?").into_channel(thread_id(0))
}

fn hidden_from(role: RoleId) -> Vec<Overwrite> {
    vec![Overwrite {
        target: OverwriteTarget::Role(role),
        allow: 0,
        deny: bits::VIEW_CHANNEL,
    }]
}

/// A thread in a channel that everybody may read, and Eve's roles.
fn world(channel: Channel, overwrites: Option<Vec<Overwrite>>) -> World {
    let mut world = World::of([said(0, ADA, "start"), here(1), here(2), ask(3)]);
    world.guild = Some(Guild {
        id: GUILD,
        owner: Some(ADA.user()),
        roles: vec![(RoleId::new(GUILD.get()), READ), (OTHER_ROLE, 0)],
    });
    world.members.insert(EVE.user(), vec![OTHER_ROLE]);
    let parent = Channel {
        overwrites,
        ..text_channel()
    };
    world.with_channel(channel).with_channel(parent)
}

/// Nothing is known except what the event said.
fn unknown() -> Start {
    Start {
        asker_access: UNKNOWN,
        ..Start::default()
    }
}

fn shown(start: &Start, collected: &Collected) -> String {
    outline(&start.prepare(collected).block)
}

#[tokio::test]
async fn unknown_access_is_looked_up_alongside_everything_else() {
    tokio::time::pause();
    let mut world = world(thread(0), Some(Vec::new()));
    world.latency = Duration::from_millis(100);
    let start = Start {
        kind: Some(ChannelKind::PublicThread),
        ..unknown()
    };
    let began = tokio::time::Instant::now();
    let collected = start.collect(&world, &ask(3)).await;
    assert_eq!(shown(&start, &collected), "s0 1 2");
    assert!(collected.turn.asker_access.may_read());
    let mut calls = world.calls();
    calls.sort();
    // The thread and its parent, once each.
    let all = [
        "channel",
        "channel",
        "guild",
        "member",
        "message 0",
        "page to 3",
    ];
    assert_eq!(calls, all);
    assert_eq!(collected.fetches, all.len());
    assert!(
        began.elapsed() < Duration::from_millis(300),
        "the calls were made one by one"
    );
}

/// What the caller knows is not asked for.
#[tokio::test]
async fn only_missing_facts_are_looked_up() {
    let open = Channel {
        overwrites: Some(Vec::new()),
        ..text_channel()
    };
    let world = world(thread(0), Some(Vec::new()));
    let start = Start {
        channel: Some(open),
        asker_roles: Some(vec![OTHER_ROLE]),
        ..unknown()
    };
    let collected = start.collect(&world, &asked(3, EVE, "so?")).await;
    assert!(collected.turn.asker_access.may_read());
    assert_eq!(world.calls(), ["guild"]);
}

#[track_caller]
fn refused(collected: &Collected, start: &Start) {
    assert!(!collected.turn.asker_access.may_view());
    assert_eq!(collected.turn.channel, None, "not even its title");
    assert_eq!(collected.turn.asker_access, Access::Denied, "known by now");
    assert_eq!(shown(start, collected), "");
    let failures = failures(collected);
    assert!(
        failures.contains(&"asker:forbidden".to_owned()),
        "{failures:?}"
    );
}

#[tokio::test]
async fn who_may_not_view_the_channel_gets_nothing_of_it() {
    for role in [RoleId::new(GUILD.get()), OTHER_ROLE] {
        let world = world(thread(0), Some(hidden_from(role)));
        let start = unknown();
        let collected = start.collect(&world, &ask(3)).await;
        refused(&collected, &start);
        assert!(
            collected.window_update.pages.is_some(),
            "others may be shown it"
        );
    }
    let world = world(thread(0), Some(hidden_from(OUR_ROLE)));
    let collected = unknown().collect(&world, &ask(3)).await;
    assert!(collected.turn.asker_access.may_read(), "another's role");
}

/// Access is denied whichever call fails.
#[tokio::test]
async fn what_cannot_be_found_out_is_denied() {
    for call in ["guild", "member", "channel"] {
        let failed = FetchError::lasting(Fallback::Unavailable);
        let world = world(thread(0), Some(Vec::new())).failing(call, failed);
        let start = unknown();
        refused(&start.collect(&world, &ask(3)).await, &start);
    }
    // Overwrites that cannot be read, a role that the server does not list, no server.
    let start = unknown();
    let odd = world(thread(0), None);
    refused(&start.collect(&odd, &ask(3)).await, &start);
    let mut odd = world(thread(0), Some(Vec::new()));
    odd.members.insert(EVE.user(), vec![OUR_ROLE]);
    refused(&start.collect(&odd, &ask(3)).await, &start);
    let orphan = Channel {
        parent: None,
        ..thread(0)
    };
    let odd = world(orphan, Some(Vec::new()));
    refused(&start.collect(&odd, &ask(3)).await, &start);
}

#[tokio::test]
async fn lookups_keep_to_the_budget_and_the_deadline() {
    tokio::time::pause();
    let mut world = world(thread(0), Some(Vec::new()));
    let mut start = unknown();
    start.limits.max_fetches = 3;
    let collected = start.collect(&world, &ask(3)).await;
    refused(&collected, &start);
    assert_eq!(collected.fetches, 3);
    world.latency = Duration::from_secs(3);
    start.limits.max_fetches = 8;
    let began = tokio::time::Instant::now();
    let collected = start.collect(&world, &ask(3)).await;
    refused(&collected, &start);
    assert!(began.elapsed() <= start.limits.fetch_timeout + Duration::from_millis(100));
}

/// Somebody who writes in a private thread is a member of it; somebody who uses a
/// command there need not be.
#[tokio::test]
async fn a_private_thread_is_for_its_members() {
    let mut world = world(private_thread(0), Some(Vec::new()));
    let start = unknown();
    let collected = start.collect(&world, &ask(3)).await;
    assert!(collected.turn.asker_access.may_read());
    assert!(!world.calls().contains(&"thread member".to_owned()));
    let command = Start {
        cause: ask_command(),
        ..unknown()
    };
    refused(&command.collect(&world, &ask(3)).await, &command);
    assert!(world.calls().contains(&"thread member".to_owned()));
    world.thread_members.insert(EVE.user());
    assert!(
        command
            .collect(&world, &ask(3))
            .await
            .turn
            .asker_access
            .may_read()
    );
    // Everything is known except the membership.
    let Access::Allowed(rights) = Access::FULL else {
        unreachable!("it is what is allowed");
    };
    let known = Start {
        channel: Some(private_thread(0)),
        asker_access: Access::Unknown(Missing::Membership(rights)),
        ..command
    };
    world.calls();
    assert!(
        known
            .collect(&world, &ask(3))
            .await
            .turn
            .asker_access
            .may_read()
    );
    assert!(!world.calls().contains(&"guild".to_owned()));
    world.thread_members.clear();
    refused(&known.collect(&world, &ask(3)).await, &known);
}

#[tokio::test]
async fn a_direct_message_needs_no_lookup_of_access() {
    let direct = Channel {
        guild: None,
        kind: ChannelKind::Dm,
        ..text_channel()
    };
    let trigger = said(3, EVE, "so?").replying(1);
    let world = World::of([said(1, EVE, "mine"), trigger.clone()]).with_channel(direct);
    for kind in [None, Some(ChannelKind::Dm)] {
        let start = Start {
            kind,
            cause: Cause::Direct,
            ..unknown()
        };
        let collected = start.collect(&world, &trigger).await;
        assert_eq!(shown(&start, &collected), "p1");
        let calls: &[&str] = if kind.is_some() {
            &["page to 1"]
        } else {
            &["channel", "page to 1"]
        };
        assert_eq!(world.calls(), calls);
    }
}

const ELSEWHERE: ChannelId = ChannelId::new(900);

/// A message included in a reply is used only if it is the one replied to, in the same channel.
#[tokio::test]
async fn nothing_included_from_another_channel_is_shown() {
    let foreign = || said(1, BOB, "of elsewhere").into_channel(ELSEWHERE);
    let reply = || asked(3, EVE, "so?").replying(1);
    let by_reference = reply().carrying(foreign()).shaped(|message| {
        if let Some(reference) = &mut message.reference {
            reference.channel = Some(ELSEWHERE);
        }
    });
    let forward = by_reference.clone().shaped(|message| {
        if let Some(reference) = &mut message.reference {
            reference.kind = ReferenceKind::Forward;
        }
    });
    let world = World::of([said(1, BOB, "of here"), reply()]);
    for access in [Access::FULL, Access::Denied] {
        for trigger in [
            reply().carrying(foreign()),
            by_reference.clone(),
            forward.clone(),
        ] {
            let start = Start {
                channel: Some(text_channel()),
                asker_access: access,
                ..Start::default()
            };
            let collected = start.collect(&world, &trigger).await;
            let prompt = format!("{:?}", start.prepare(&collected).prompt.messages);
            assert!(!prompt.contains("of elsewhere"), "{prompt}");
            let kept = format!("{:?}", collected.window_update);
            assert!(!kept.contains("of elsewhere"), "{kept}");
        }
    }
    let start = Start::within(text_channel());
    let collected = start.collect(&world, &reply().carrying(foreign())).await;
    assert_eq!(shown(&start, &collected), "p1", "it is fetched from here");
}

/// A starter must have the thread's id and be in its parent.
#[tokio::test]
async fn a_message_from_another_channel_is_no_starter() {
    for (channel, starter) in [
        (thread(0), said(0, ADA, "foreign").into_channel(ELSEWHERE)),
        (thread(0), said(9, ADA, "foreign").into_channel(GENERAL)),
        (post(0), said(0, ADA, "foreign").into_channel(ELSEWHERE)),
    ] {
        let first = said(1, ADA, "").into_channel(thread_id(0)).of_type(21);
        let world = World::of([first.carrying(starter), here(2), ask(3)]);
        let start = Start::within(channel);
        let collected = start.collect(&world, &ask(3)).await;
        let prompt = format!("{:?}", start.prepare(&collected).prompt.messages);
        assert!(!prompt.contains("foreign"), "{prompt}");
    }
}

/// A run starts clean, whatever stands around its task, in a thread too.
#[tokio::test]
async fn nothing_is_collected_for_an_agent_run() {
    let task = Message {
        referenced: Referenced::Known(Box::new(here(1))),
        ..ask(3)
    };
    for channel in [thread(0), post(0)] {
        let world = World::of([said(0, ADA, "start"), here(1), here(2)]);
        let start = Start {
            cause: Cause::AgentRun,
            ..Start::within(channel)
        };
        let collected = start.collect(&world, &task).await;
        assert_eq!(
            (shown(&start, &collected).as_str(), collected.fetches),
            ("", 0)
        );
        assert!(collected.turn.channel.is_none() && collected.target.reply_to.is_none());
        let prompt = start.prepare(&collected).prompt;
        assert_eq!(prompt.messages.len(), 2, "{prompt:?}");
        assert!(!format!("{prompt:?}").contains("talk"), "{prompt:?}");
    }
}

/// A server that returns messages of other channels is not believed.
#[tokio::test]
async fn messages_of_other_channels_in_a_page_are_dropped() {
    let mut world = World::of([said(0, ADA, "start"), here(1), ask(3)]);
    world.misplace(
        thread_id(0),
        said(2, BOB, "of elsewhere").into_channel(ELSEWHERE),
    );
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &ask(3)).await;
    assert_eq!(shown(&start, &collected), "s0 1");
    assert_eq!(failures(&collected), ["history:malformed"]);
}
