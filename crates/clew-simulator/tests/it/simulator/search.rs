//! Search Guild Messages: what is found, in which order, and what is refused.

use clew_simulator::{ChannelKind, Draft, Fault, File, Id, Permissions, Simulator};
use serde_json::{Value, json};

use crate::openapi::Document;
use crate::support::{Rest, Small, small};

/// The ids of a search's messages.
async fn found(rest: &Rest, guild: Id, query: &str) -> Vec<u64> {
    let page = rest.get(&path(guild, query)).await;
    let messages = page["messages"].as_array().unwrap().iter();
    let ids = messages.map(|around| around[0]["id"].as_str().unwrap().parse().unwrap());
    ids.collect()
}

fn path(guild: Id, query: &str) -> String {
    format!("/guilds/{guild}/messages/search?{query}")
}

#[tokio::test]
async fn a_search_finds_what_fits_by_relevance_or_time() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        bob,
    } = small();
    let twice = world.seed(channel, alice, "a boiler, another boiler");
    let file = world.seed(
        channel,
        bob,
        Draft {
            content: "the boiler: https://example.org".to_owned(),
            attachments: vec![File::text("log.txt", "x")],
            pinned: true,
            ..Draft::default()
        },
    );
    let reply = world.seed(
        channel,
        bob,
        Draft {
            content: "Boiler?".to_owned(),
            reply_to: Some(twice),
            ..Draft::default()
        },
    );
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let by = |query: String| {
        let rest = &rest;
        async move { found(rest, guild, &query).await }
    };
    assert_eq!(
        by("content=boiler".into()).await,
        [reply.0, file.0, twice.0]
    );
    let relevant = by("content=boiler&sort_by=relevance".into()).await;
    assert_eq!(relevant, [twice.0, reply.0, file.0]);
    let oldest = by("content=boiler&sort_order=asc&limit=1&offset=1".into()).await;
    assert_eq!(oldest, [file.0]);
    assert_eq!(by("content=another%20boiler".into()).await, [twice.0]);
    assert_eq!(by("has=file".into()).await, [file.0]);
    assert_eq!(by("has=link&pinned=true".into()).await, [file.0]);
    assert_eq!(by(format!("author_id={alice}")).await, [twice.0]);
    assert_eq!(by(format!("replied_to_user_id={alice}")).await, [reply.0]);
    let between = format!("content=boiler&min_id={twice}&max_id={reply}");
    assert_eq!(by(between).await, [file.0]);
    let document = Document::load();
    let page = rest.get(&path(guild, "content=boiler")).await;
    document.check("GuildSearchResponse", &page);
    assert_eq!(page["total_results"], 3);
    for refused in ["limit=26", "limit=0", "offset=9976", "channel_id=x"] {
        let refused = rest
            .refused("GET", &path(guild, refused), Value::Null)
            .await;
        assert_eq!(refused, (400, 50_035));
    }
    let many: Vec<String> = (1..=501).map(|id| format!("channel_id={id}")).collect();
    let refused = rest
        .refused("GET", &path(guild, &many.join("&")), Value::Null)
        .await;
    assert_eq!(refused, (400, 50_035));
}

#[tokio::test]
async fn a_search_finds_what_the_bot_may_read_of_what_it_asks_for() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let hidden = world.channel(guild, ChannelKind::Text, "hidden");
    world.deny_everyone(hidden, Permissions::READ_MESSAGE_HISTORY);
    let adult = world.channel(guild, ChannelKind::Text, "adult");
    world.restrict_age(adult);
    let thread = world.thread(channel, ChannelKind::PublicThread, "talk", alice);
    let secret = world.thread(channel, ChannelKind::PrivateThread, "secret", alice);
    let seeded = [channel, hidden, adult, thread, secret];
    let [open, _, age, inside, _] = seeded.map(|place| world.seed(place, alice, "boiler").0);
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let all = found(&rest, guild, "content=boiler").await;
    assert_eq!(all, [inside, open]);
    let all = found(&rest, guild, "content=boiler&include_nsfw=true").await;
    assert_eq!(all, [inside, age, open]);
    let of_channel = format!("content=boiler&channel_id={channel}");
    assert_eq!(found(&rest, guild, &of_channel).await, [inside, open]);
    let page = rest.get(&path(guild, &of_channel)).await;
    assert_eq!(page["threads"][0]["id"], json!(thread.to_string()));
    simulator.world(|world| world.settings.search_covers_threads = false);
    assert_eq!(found(&rest, guild, &of_channel).await, [open]);
    let of_both = format!("{of_channel}&channel_id={thread}");
    assert_eq!(found(&rest, guild, &of_both).await, [inside, open]);
    simulator.set_role_permissions(guild, guild, Permissions::VIEW_CHANNEL);
    let refused = rest.refused("GET", &path(guild, ""), Value::Null).await;
    assert_eq!(refused, (403, 50_013));
    simulator.world(|world| world.settings.disallowed_intents = 1 << 15);
    let refused = rest.refused("GET", &path(guild, ""), Value::Null).await;
    assert_eq!(refused, (403, 50_001));
}

#[tokio::test]
async fn an_index_lags_behind_or_is_not_there_yet() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let gone = world.seed(channel, alice, "old boiler");
    world.hold_search_index(true);
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    simulator.world(|world| world.seed_delete(channel, gone));
    let new = simulator.post(channel, alice, "new boiler");
    assert_eq!(found(&rest, guild, "content=boiler").await, [gone.0]);
    simulator.world(|world| world.hold_search_index(false));
    assert_eq!(found(&rest, guild, "content=boiler").await, [new.0]);
    simulator.fault(Fault::not_indexed(2).once());
    let (status, body) = rest.call("GET", &path(guild, ""), Value::Null).await;
    assert_eq!((status, &body["retry_after"]), (202, &json!(2)));
    Document::load().check("SearchIndexNotReadyResponse", &body);
    assert_eq!(found(&rest, guild, "").await, [new.0]);
}
