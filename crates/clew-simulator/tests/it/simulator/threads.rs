//! Threads: how each kind starts, who can enter, and what archived and locked mean.

use clew_simulator::{ChannelKind, Draft, Id, OverwriteOf, Permissions, Simulator};
use serde_json::{Value, json};
use twilight_model::channel::Channel;

use crate::support::{Rest, Small, small};

fn id_of(object: &Value) -> Id {
    Id(object["id"].as_str().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_thread_on_a_message_has_its_id_and_a_starter() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let anchor = world.seed(channel, alice, "anchor");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let path = format!("/channels/{channel}/messages/{anchor}/threads");
    let (status, thread) = rest.call("POST", &path, json!({"name": "Talk"})).await;
    assert_eq!((status, id_of(&thread)), (201, anchor));
    let read: Channel = serde_json::from_value(thread).unwrap();
    assert_eq!(read.parent_id.unwrap().get(), channel.0);
    let page = rest.get(&format!("/channels/{anchor}/messages")).await;
    let starter = &page[0];
    assert_eq!(starter["type"], 21);
    assert_eq!(starter["referenced_message"]["content"], "anchor");
    assert_eq!(
        starter["message_reference"]["channel_id"],
        channel.to_string()
    );
    let again = rest.refused("POST", &path, json!({"name": "Talk"})).await;
    assert_eq!(again, (400, 160_004));
    simulator.delete(channel, anchor);
    let page = rest.get(&format!("/channels/{anchor}/messages")).await;
    assert_eq!(page[0]["referenced_message"], Value::Null);
    let object = rest.get(&format!("/channels/{anchor}")).await;
    assert_eq!(
        (&object["message_count"], &object["total_message_sent"]),
        (&json!(0), &json!(0))
    );
}

#[tokio::test]
async fn a_post_starts_with_a_message_of_its_own_id() {
    let Small {
        mut world,
        guild,
        alice,
        ..
    } = small();
    let forum = world.channel(guild, ChannelKind::Forum, "help");
    let tag = world.tag(forum, "rust");
    let post = world.forum_post(forum, alice, "How?", &[tag], "like this");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let object = rest.get(&format!("/channels/{post}")).await;
    assert_eq!(object["applied_tags"], json!([tag.to_string()]));
    let starter = rest.get(&format!("/channels/{post}/messages/{post}")).await;
    assert_eq!(
        (&starter["type"], &starter["content"]),
        (&json!(0), &json!("like this"))
    );
    let forum_object = rest.get(&format!("/channels/{forum}")).await;
    assert_eq!(forum_object["available_tags"][0]["name"], "rust");
    let refused = rest
        .refused(
            "POST",
            &format!("/channels/{forum}/messages"),
            json!({"content": "x"}),
        )
        .await;
    assert_eq!(refused, (400, 50008));
    let body =
        json!({"name": "Mine", "message": {"content": "first"}, "applied_tags": [tag.to_string()]});
    let (status, made) = rest
        .call("POST", &format!("/channels/{forum}/threads"), body)
        .await;
    assert_eq!(
        (status, &made["message"]["content"]),
        (201, &json!("first"))
    );
    assert_eq!(made["message"]["id"], made["id"]);
}

#[tokio::test]
async fn a_thread_without_a_message_leaves_a_notice() {
    let Small { world, channel, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let body = json!({"name": "Apart", "type": 11});
    let thread = rest
        .post(&format!("/channels/{channel}/threads"), body)
        .await;
    let notice = rest.get(&format!("/channels/{channel}/messages")).await[0].clone();
    assert_eq!(
        (&notice["type"], &notice["content"]),
        (&json!(18), &json!("Apart"))
    );
    assert_eq!(notice["message_reference"]["channel_id"], thread["id"]);
    let inside = rest
        .get(&format!("/channels/{}/messages", id_of(&thread)))
        .await;
    assert_eq!(inside, json!([]));
}

#[tokio::test]
async fn a_channel_has_threads_of_one_public_kind() {
    let Small {
        mut world,
        guild,
        channel,
        ..
    } = small();
    let news = world.channel(guild, ChannelKind::Announcement, "news");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    for (parent, kind, status) in [
        (channel, 11, 201),
        (channel, 10, 400),
        (news, 10, 201),
        (news, 11, 400),
    ] {
        let path = format!("/channels/{parent}/threads");
        let body = json!({"name": "Apart", "type": kind});
        let (answered, made) = rest.call("POST", &path, body).await;
        assert_eq!(answered, status, "{kind} in {parent}: {made}");
        assert!(status != 201 || made["type"] == kind, "{made}");
    }
}

#[tokio::test]
async fn private_threads_are_for_members_and_moderators() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let secret = world.thread(channel, ChannelKind::PrivateThread, "Secret", alice);
    world.seed(secret, alice, "psst");
    let bot = world.bot;
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = format!("/channels/{secret}/messages");
    let own = format!("/channels/{secret}/thread-members/@me");
    assert_eq!(rest.refused("GET", &page, Value::Null).await, (403, 50001));
    let role = simulator.world(|world| world.bot_role(guild).unwrap());
    simulator.set_role_permissions(guild, role, Permissions::MANAGE_THREADS);
    assert_eq!(rest.get(&page).await.as_array().unwrap().len(), 1);
    assert_eq!(rest.refused("GET", &own, Value::Null).await, (404, 10007));
    simulator.set_role_permissions(guild, role, Permissions::NONE);
    simulator.join_thread(secret, bot);
    assert_eq!(rest.get(&own).await["user_id"], bot.to_string());
    assert_eq!(rest.get(&page).await.as_array().unwrap().len(), 1);
    assert_eq!(rest.call("DELETE", &own, Value::Null).await.0, 204);
    assert_eq!(rest.refused("GET", &page, Value::Null).await, (403, 50001));
}

#[tokio::test]
async fn archived_threads_reopen_and_locked_ones_refuse() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let thread = world.thread(channel, ChannelKind::PublicThread, "Talk", alice);
    let mine = world.seed(thread, world.bot, "mine");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = format!("/channels/{thread}/messages");
    let (edit, typing) = (
        format!("{page}/{mine}"),
        format!("/channels/{thread}/typing"),
    );
    let hello = json!({"content": "hello"});
    let archived = async || {
        rest.get(&format!("/channels/{thread}")).await["thread_metadata"]["archived"] == true
    };

    simulator.set_archived(thread, true, false);
    assert_eq!(
        rest.refused("POST", &typing, Value::Null).await,
        (400, 50083)
    );
    assert_eq!(
        rest.refused("PATCH", &edit, hello.clone()).await,
        (400, 50083)
    );
    assert!(archived().await);
    rest.post(&page, hello.clone()).await;
    assert!(!archived().await);

    simulator.set_archived(thread, true, true);
    assert_eq!(
        rest.refused("POST", &page, hello.clone()).await,
        (400, 50083)
    );
    simulator.set_archived(thread, false, true);
    assert_eq!(
        rest.refused("POST", &page, hello.clone()).await,
        (400, 160_005)
    );
    let role = simulator.world(|world| world.bot_role(guild).unwrap());
    simulator.set_role_permissions(guild, role, Permissions::MANAGE_THREADS);
    rest.post(&page, hello.clone()).await;

    simulator.set_archived(thread, false, false);
    let everyone = OverwriteOf::Role(guild);
    simulator.overwrite(
        channel,
        everyone,
        Permissions::NONE,
        Permissions::SEND_MESSAGES,
    );
    rest.post(&page, hello.clone()).await;
    simulator.overwrite(
        channel,
        everyone,
        Permissions::NONE,
        Permissions::SEND_MESSAGES_IN_THREADS,
    );
    assert_eq!(rest.refused("POST", &page, hello).await, (403, 50013));
}

#[tokio::test]
async fn active_and_archived_threads_are_listed() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let mut made = Vec::new();
    for number in 0..3 {
        let anchor = world.seed(channel, alice, Draft::new("anchor"));
        made.push(world.thread_from(channel, anchor, &format!("Talk {number}"), alice));
    }
    for &thread in &made[..2] {
        world.advance(60_000);
        world.set_archived(thread, true, false);
    }
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let names = |listing: &Value| -> Vec<String> {
        let threads = listing["threads"].as_array().unwrap().iter();
        threads
            .map(|t| t["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let active = rest.get(&format!("/guilds/{guild}/threads/active")).await;
    assert_eq!(names(&active), ["Talk 2"]);
    let path = format!("/channels/{channel}/threads/archived/public");
    let all = rest.get(&path).await;
    assert_eq!(names(&all), ["Talk 1", "Talk 0"]);
    let one = rest.get(&format!("{path}?limit=1")).await;
    assert_eq!(
        (names(&one), &one["has_more"]),
        (vec!["Talk 1".to_owned()], &json!(true))
    );
    let time = one["threads"][0]["thread_metadata"]["archive_timestamp"]
        .as_str()
        .unwrap();
    let time = time.replace('+', "%2B");
    let rest_of = rest.get(&format!("{path}?before={time}")).await;
    assert_eq!(names(&rest_of), ["Talk 0"]);
    let private = format!("/channels/{channel}/threads/archived/private");
    assert_eq!(
        rest.refused("GET", &private, Value::Null).await,
        (403, 50013)
    );
    let joined = format!("/channels/{channel}/users/@me/threads/archived/private");
    assert_eq!(names(&rest.get(&joined).await), Vec::<String>::new());
}
