//! Programs of members over several servers, and while servers, members and tokens come and go.

use clew_simulator::{ChannelKind, Fault, Id, Permissions, World};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::clients::{Town, closed, town_with};
use super::{Place, Seeds};
use crate::support::bot::{Bot, details};
use crate::support::client::{Client, given};

/// A channel of another server, which Boris manages.
struct Harbour {
    guild: Id,
    channel: Id,
    message: Id,
}

fn harbour(world: &mut World, seeds: Seeds) -> Harbour {
    let guild = world.guild("Harbour");
    world.join(guild, seeds.ada);
    world.join(guild, seeds.boris);
    let role = world.role(guild, "manager", Permissions::MANAGE_GUILD);
    world.give_role(guild, seeds.boris, role);
    let channel = world.channel(guild, ChannelKind::Text, "quay");
    let message = world.seed(channel, seeds.boris, "the crane is stuck");
    Harbour {
        guild,
        channel,
        message,
    }
}

/// Both servers, and Ada's program, which reads both.
async fn both() -> (Place, Harbour, Bot, Client) {
    let (p, (_, harbour), bot, ada) =
        town_with(|world, seeds| (closed(world, seeds), harbour(world, seeds))).await;
    let client = json!({ "client": "editor" });
    let add = |at: Id| p.command_in(at, p.ada, "connect add", client.clone());
    let refused = add(harbour.channel).await;
    assert!(refused.contains("/settings set programs"), "{refused}");
    let lets = json!({ "programs": "on" });
    p.command_in(harbour.channel, p.boris, "settings set", lets)
        .await;
    let added = add(harbour.channel).await;
    assert!(added.contains("reads what you may read here"), "{added}");
    (p, harbour, bot, ada)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_reads_the_servers_that_were_chosen() {
    let (p, harbour, bot, ada) = both().await;
    let choice = ada.call("list_channels", json!({})).await.unwrap_err();
    for guild in [p.guild, harbour.guild] {
        assert!(choice.contains(&guild.to_string()), "{choice}");
    }
    assert!(choice.contains("Harbour"), "{choice}");
    let of = |guild: Id| json!({ "guild": guild.to_string() });
    let there = ada.call("list_channels", of(harbour.guild)).await.unwrap();
    assert!(there.contains("#quay") && !there.contains("#help"));
    let here = ada.call("list_channels", of(p.guild)).await.unwrap();
    assert!(here.contains("#help") && !here.contains("#quay"));
    // A link names the server, too.
    let link = format!(
        "https://discord.com/channels/{}/{}/{}",
        harbour.guild, harbour.channel, harbour.message
    );
    for tool in ["read_thread", "read_context"] {
        let read = ada.call(tool, json!({ "channel": link })).await.unwrap();
        assert!(read.contains("crane"), "{read}");
        // Each server's channels are read there alone.
        let mut elsewhere = of(p.guild);
        elsewhere["channel"] = harbour.channel.to_string().into();
        assert!(ada.call(tool, elsewhere).await.is_err());
    }
    for wrong in ["1", "here", ""] {
        let wrong = json!({ "guild": wrong });
        assert!(ada.call("list_channels", wrong).await.is_err());
    }
    let listed = p.command(p.ada, "connect list", json!({})).await;
    assert!(listed.contains("Works, Harbour"), "{listed}");
    // A new token ends the old one, and is for its own server.
    let new = Client::new(ada.address(), &p.token(p.ada, "editor").await);
    assert_eq!(ada.status().await, StatusCode::UNAUTHORIZED);
    let alone = new.call("list_channels", json!({})).await.unwrap();
    assert!(alone.contains("#help"), "{alone}");
    assert!(new.call("list_channels", of(harbour.guild)).await.is_err());
    let none = json!({ "client": "other" });
    let refused = p.command(p.ada, "connect add", none).await;
    assert!(refused.contains("No program"), "{refused}");
    let served = details(&bot.stop().await, "served");
    let read = served.iter().filter_map(|one| one.get("read"));
    let read: Vec<&Value> = read.collect();
    let message = json!([harbour.message.to_string()]);
    assert_eq!(
        read,
        vec![&json!({ harbour.channel.to_string(): message }); 2]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_is_not_read_when_somebody_comes_back() {
    let (p, harbour, bot, ada) = both().await;
    let there = json!({ "guild": harbour.guild.to_string() });
    assert!(ada.call("list_channels", there.clone()).await.is_ok());
    let discord = &p.stage.discord;
    discord.kick_bot(harbour.guild);
    let us = p.us;
    discord.join(harbour.guild, us);
    discord.set_outage(harbour.guild, false);
    // A command comes after what it follows.
    let listed = p.command(p.ada, "connect list", json!({})).await;
    assert!(!listed.contains("Harbour"), "{listed}");
    assert!(ada.call("list_channels", there).await.is_err());
    // The only server is left.
    let here = ada.call("list_channels", json!({})).await.unwrap();
    assert!(here.contains("#help"), "{here}");
    let proxy = Fault::status("GET", "/members/", 404, 0, "not found").once();
    discord.fault(proxy);
    assert!(ada.call("list_channels", json!({})).await.is_err());
    assert_eq!(ada.status().await, StatusCode::OK, "no proof that she left");
    discord.leave(p.guild, p.ada);
    assert!(ada.call("list_channels", json!({})).await.is_err());
    discord.join(p.guild, p.ada);
    assert_eq!(ada.status().await, StatusCode::UNAUTHORIZED);
    bot.stop().await;
}

/// Nobody was there to hear that we were removed; READY does not name the server.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_unheard_is_not_read_when_we_come_back() {
    let (p, harbour, bot, ada) = both().await;
    bot.stop().await;
    let (discord, us) = (&p.stage.discord, p.us);
    discord.kick_bot(harbour.guild);
    discord.forget_sessions();
    let bot = p.stage.start().await;
    discord.settled().await.unwrap();
    discord.join(harbour.guild, us);
    discord.set_outage(harbour.guild, false);
    let listed = p.command(p.ada, "connect list", json!({})).await;
    assert!(
        listed.contains("Works") && !listed.contains("Harbour"),
        "{listed}"
    );
    drop(ada);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_while_the_gateway_is_silent() {
    let (p, _, bot, ada) = town_with(closed).await;
    let help = json!({ "channel": p.channel.to_string() });
    assert!(ada.call("read_thread", help.clone()).await.is_ok());
    let discord = &p.stage.discord;
    discord.set_outage(p.guild, true);
    discord.settled().await.unwrap();
    for (tool, arguments) in [("read_thread", help.clone()), ("list_channels", json!({}))] {
        let refused = ada.call(tool, arguments).await.unwrap_err();
        assert!(refused.contains("Discord doesn't say"), "{refused}");
    }
    discord.set_outage(p.guild, false);
    discord.settled().await.unwrap();
    assert!(ada.call("read_thread", help).await.is_ok());
    bot.stop().await;
}

/// What a page is answered with where something happens while it is fetched.
async fn meanwhile(
    p: &Place,
    town: &Town,
    ada: &Client,
    done: impl AsyncFnOnce(),
) -> reqwest::Response {
    let path = format!("/channels/{}/messages", town.closed);
    let (held, gate) = Fault::held("GET", &path);
    p.stage.discord.fault(held.once());
    let params = json!({
        "name": "read_thread", "arguments": { "channel": town.closed.to_string() },
    });
    let sent = tokio::spawn(ada.modern("tools/call", params).send());
    let asked = p.stage.discord.wait_request("GET", &path, 1).await;
    asked.unwrap();
    done().await;
    gate.open();
    sent.await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_back_during_a_call_gives_nothing() {
    let (p, town, bot, ada) = town_with(closed).await;
    let changed = |given: Result<String, String>| {
        let refused = given.unwrap_err();
        assert!(refused.contains("may not be read any more"), "{refused}");
    };
    let silent = json!({ "programs": "off" });
    let off = async || p.settles(silent).await;
    changed(given(meanwhile(&p, &town, &ada, off).await).await);
    p.lets_programs_read().await;
    p.stage.discord.clear_requests();
    let client = json!({ "client": "editor" });
    let revoke = async || drop(p.command(p.ada, "connect revoke", client).await);
    let response = meanwhile(&p, &town, &ada, revoke).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let ada = Client::new(ada.address(), &p.token(p.ada, "editor").await);
    // Last: the bot fetches the same page when the server is back.
    let out = async || {
        p.stage.discord.set_outage(p.guild, true);
        p.stage.discord.settled().await.unwrap();
    };
    p.stage.discord.clear_requests();
    changed(given(meanwhile(&p, &town, &ada, out).await).await);
    bot.stop().await;
}
