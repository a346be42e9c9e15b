//! Mistakes in scripts are reported and never cause a panic.

use std::time::Duration;

use clew_simulator::{
    ChannelKind, Draft, Fault, FaultKind, File, Id, Limit, OverwriteOf, Permissions, Simulator,
    Use, WaitError, World,
};
use serde_json::{Value, json};

use crate::support::{Rest, small};

/// An id that does not exist.
const NOBODY: Id = Id(5);

#[tokio::test]
async fn a_world_of_unknown_ids_is_not_served() {
    let check = async |what: &str, wrong: fn(&mut World)| {
        let mut world = small().world;
        wrong(&mut world);
        let refused = Simulator::start(world).await.unwrap_err().to_string();
        let expected = format!("the script is wrong: the simulator knows no {what} 5");
        assert_eq!(refused, expected);
    };
    check("guild", |world| _ = world.member(NOBODY, "eve")).await;
    check("guild", |world| world.give_role(NOBODY, NOBODY, NOBODY)).await;
    check("channel", |world| _ = world.seed(NOBODY, NOBODY, "hello")).await;
    check("channel", |world| _ = world.tag(NOBODY, "bug")).await;
    check("thread", |world| world.set_archived(NOBODY, true, true)).await;
    check("channel", |world| {
        _ = world.thread(NOBODY, ChannelKind::PublicThread, "t", NOBODY);
    })
    .await;
    let whole = small().world;
    assert_eq!(whole.mistake(), None);
}

#[tokio::test]
async fn an_action_on_an_unknown_id_fails_every_wait() {
    let small = small();
    let simulator = Simulator::start(small.world).await.unwrap();
    simulator.wait_idle().await.unwrap();
    simulator.edit(small.channel, NOBODY, "other words");
    let ended = simulator.wait_answers(small.channel, 1).await.unwrap_err();
    assert!(matches!(ended, WaitError::Script(_)), "{ended}");
    let told = "the script is wrong: the simulator knows no message 5";
    assert_eq!(ended.to_string(), told);
    assert_eq!(simulator.mistake().unwrap().to_string(), told);
}

#[tokio::test]
async fn a_call_that_no_client_would_send_is_an_error() {
    let small = small();
    let simulator = Simulator::start(small.world).await.unwrap();
    let rest = Rest::new(&simulator);
    let path = format!("/applications/{}/commands", simulator.bot());
    let option = json!({"name": "question", "description": "q", "type": 3, "required": true});
    let ask = json!({"name": "ask", "description": "Ask", "type": 1, "options": [option]});
    rest.post(&path, ask).await;
    for (options, told) in [
        (json!({}), "`/ask` needs `question`"),
        (json!({"question": 5}), "`question` of `/ask` is no 5"),
        (json!({"other": "x"}), "`/ask` has no `other`"),
    ] {
        let called = simulator
            .call(small.alice, small.channel, "ask", options)
            .await;
        let refused = called.unwrap_err().to_string();
        assert_eq!(refused, format!("the script is wrong: {told}"));
    }
    let typed = simulator.complete(small.alice, small.channel, "ask", "question", "x");
    let refused = typed.await.unwrap_err().to_string();
    assert!(refused.ends_with("is not completed"), "{refused}");
    // These were calls that failed, not actions, so waits still work.
    simulator.wait_idle().await.unwrap();
}

/// Every action with every combination of ids that exist, exist as something
/// else, or do not exist; and with extreme values.
#[tokio::test]
async fn nothing_panics() {
    let small = small();
    let (guild, channel, alice) = (small.guild, small.channel, small.alice);
    let mut world = small.world;
    let message = world.seed(channel, alice, "first");
    let forum = world.channel(guild, ChannelKind::Forum, "forum");
    let thread = world.thread(channel, ChannelKind::PrivateThread, "thread", alice);
    let ids = [
        guild,
        channel,
        alice,
        message,
        forum,
        thread,
        NOBODY,
        Id(0),
        Id(u64::MAX),
    ];
    let simulator = Simulator::start(world).await.unwrap();
    simulator.world(|world| world.set_clock(i64::MAX, i64::MAX));
    for a in ids {
        for b in ids {
            act_on(&simulator, a, b);
            for c in ids {
                act_on_three(&simulator, a, b, c);
            }
        }
    }
    let rest = Rest::new(&simulator);
    let counted = format!("/channels/{channel}/messages");
    rest.call("GET", &counted, Value::Null).await;
    odd_values(&simulator, channel, alice);
    for a in ids {
        for path in [
            format!("/channels/{a}"),
            format!("/channels/{a}/messages?limit=100"),
            format!("/channels/{a}/threads/archived/public"),
            format!("/guilds/{a}"),
        ] {
            let (status, body) = rest.call("GET", &path, Value::Null).await;
            assert!(status < 500, "{path}: {status} {body}");
        }
    }
}

fn act_on(simulator: &Simulator, a: Id, b: Id) {
    let none = Permissions::NONE;
    simulator.edit(a, b, "x");
    simulator.unfurl(a, b, json!([1]));
    simulator.bulk_delete(a, &[b]);
    simulator.type_in(a, b);
    simulator.set_archived(a, true, false);
    simulator.rename(a, "x");
    simulator.join_thread(a, b);
    simulator.leave_thread(a, b);
    simulator.channel(a, ChannelKind::Text, "x");
    simulator.overwrite(a, OverwriteOf::Member(b), none, none);
    simulator.join(a, b);
    simulator.set_outage(a, true);
    simulator.set_outage(a, false);
    simulator.role(a, "x", none);
    simulator.set_role_permissions(a, b, none);
    simulator.message_object(a, b);
    simulator.press(a, b, "x");
    assert!(simulator.press_id(a, b, "x").is_err());
    simulator.offered(a, b);
    simulator.interact(a, b, &Use::slash("ask", &[("question", "x")]));
    simulator.interaction_answers(a);
    simulator.override_message(a, json!(null));
    simulator.world(|world| {
        world.direct(a);
        world.deny_everyone(a, none);
        world.seed_edit(a, b, "x");
        world.seed_delete(a, b);
        world.add_bot(a);
        world.advance(i64::MAX);
    });
}

fn act_on_three(simulator: &Simulator, a: Id, b: Id, c: Id) {
    simulator.post(a, b, Draft::new("x").reply_to(c));
    simulator.pin(a, b, c);
    simulator.react(a, b, "x", c);
    simulator.thread_from(a, b, "x", c);
    simulator.thread(a, ChannelKind::PublicThread, "x", b);
    simulator.forum_post(a, b, "x", &[c], "x");
    simulator.set_role(a, b, c, true);
    simulator.interact(a, b, &Use::on_message("Ask", c));
    simulator.delete_role(a, c);
}

fn odd_values(simulator: &Simulator, channel: Id, alice: Id) {
    let mut draft = Draft::new("<@> <@&> <@99999999999999999999999>");
    draft.at_ms = Some(i64::MIN);
    draft.embeds = vec![json!("no object")];
    draft.components = vec![json!(7)];
    draft.forward_of = Some((NOBODY, NOBODY));
    draft.attachments = vec![File::text("", "")];
    simulator.post(channel, alice, draft);
    // A limit below the number of calls already made.
    simulator.limit(Limit {
        method: "*".to_owned(),
        path: "/messages".to_owned(),
        calls: 0,
        window: Duration::MAX,
    });
    let fault = simulator.fault(Fault::new("GET", "**", FaultKind::Truncated).once());
    assert_eq!(simulator.hits(fault + 1), 0);
    simulator.end_faults();
    simulator.dispatch_raw("MESSAGE_CREATE", "{");
    simulator.invalidate_sessions(true);
    simulator.clear_requests();
}
