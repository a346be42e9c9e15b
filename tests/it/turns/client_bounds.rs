//! Programs of members: what time and failures do not tell, what they may take, and who lets them.

use std::fs;
use std::time::Duration;

use clew_simulator::{ChannelKind, Id};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixStream};

use super::clients::{NOTHING, closed, town_with};
use super::{Place, place_with};
use crate::support::client::Client;

/// The requests of a call that gets nothing, without the ids.
async fn asked(p: &Place, client: &Client, tool: &str, arguments: Value, of: Id) -> Vec<String> {
    let discord = &p.stage.discord;
    discord.clear_requests();
    assert_eq!(client.call(tool, arguments).await, Err(NOTHING.to_owned()));
    let requests = discord.requests_to("GET", "").into_iter();
    let paths = requests.map(|one| one.path.replace(&of.to_string(), "it"));
    paths.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_do_not_tell_which_channels_there_are() {
    let (p, (town, elsewhere, secret), bot, ada) = town_with(|world, seeds| {
        let other = world.guild("Elsewhere");
        let elsewhere = world.channel(other, ChannelKind::Text, "elsewhere");
        let secret = world.thread(
            seeds.channel,
            ChannelKind::PrivateThread,
            "secret",
            seeds.ada,
        );
        world.join_thread(secret, world.bot);
        (closed(world, seeds), elsewhere, secret)
    })
    .await;
    let boris = Client::new(ada.address(), &p.token(p.boris, "editor").await);
    let unknown = Id(p.guild.0 + 12_345);
    for tool in ["read_thread", "read_context"] {
        let mut seen = Vec::new();
        for of in [unknown, town.closed, elsewhere, secret] {
            let named = json!({ "channel": of.to_string() });
            seen.push(asked(&p, &boris, tool, named, of).await);
        }
        assert!(
            !seen[0].is_empty() && seen.iter().all(|one| *one == seen[0]),
            "{seen:?}"
        );
    }
    let link = format!("https://discord.com/channels/1/{elsewhere}/2");
    let before = asked(&p, &boris, "why", json!({ "answer": link }), elsewhere).await;
    assert!(
        before.iter().all(|path| !path.contains("it/")),
        "{before:?}"
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_is_said_and_written_later() {
    let (p, _, bot, ada) = town_with(closed).await;
    p.token(p.ada, "other").await;
    p.command(p.ada, "connect revoke", json!({ "client": "other" }))
        .await;
    let (file, new) = ("connections.json", "connections.json.new");
    let [file, new] = [file, new].map(|name| p.stage.state().join(name));
    fs::create_dir(&new).unwrap();
    let told = p
        .command(p.ada, "connect revoke", json!({ "client": "editor" }))
        .await;
    assert!(told.contains("not saved yet"), "{told}");
    assert_eq!(ada.status().await, StatusCode::UNAUTHORIZED);
    assert!(fs::read_to_string(&file).unwrap().contains("editor"));
    fs::remove_dir(&new).unwrap();
    // Erasing waits for the file, too.
    p.confirms(p.ada, "privacy erase", "Erase everything").await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_manages_a_server_decides_whether_programs_read() {
    let (p, town, bot, ada) = town_with(closed).await;
    let closed = json!({ "channel": town.closed.to_string() });
    assert!(ada.call("read_thread", closed.clone()).await.is_ok());
    let silent = json!({ "channel": town.closed.to_string(), "mode": "off" });
    p.settles(silent).await;
    let nothing = Err(NOTHING.to_owned());
    assert_eq!(ada.call("read_thread", closed).await, nothing);
    let listed = ada.call("list_channels", json!({})).await.unwrap();
    assert!(!listed.contains("engine-room"), "{listed}");
    p.settles(json!({ "programs": "off" })).await;
    let refused = ada.call("list_channels", json!({})).await.unwrap_err();
    assert!(refused.contains("managers decide"), "{refused}");
    let refused = p
        .command(p.ada, "connect new", json!({ "client": "x" }))
        .await;
    assert!(refused.contains("/settings set programs"), "{refused}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_has_archived_threads_behind_links() {
    let (p, (thread, message), bot, ada) = town_with(|world, seeds| {
        let thread = seeds.thread(world, "pump");
        let message = world.seed(thread, seeds.boris, "the seal is worn");
        world.set_archived(thread, true, false);
        (thread, message)
    })
    .await;
    let question = format!("what of {}?", p.link(thread, message));
    let read = json!({ "channel": p.channel.to_string(), "question": question });
    let context = ada.call("read_context", read).await.unwrap();
    assert!(context.contains("the seal is worn"), "{context}");
    let search = json!({ "words": "seal", "page": 5 });
    let refused = ada.call("search", search).await.unwrap_err();
    assert!(refused.contains("4 pages"), "{refused}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_through_the_socket_is_dropped_when_it_is_cancelled() {
    let (p, _) = place_with(&[("MCP_LISTEN", "socket")], closed).await;
    let bot = p.stage.start().await;
    let path = p.stage.state().join("mcp.sock");
    let program = UnixStream::connect(&path).await.unwrap();
    let mut program = BufReader::new(program);
    // It would be answered much later.
    p.stage.discord.set_latency(Duration::from_secs(10));
    let params = json!({ "name": "list_channels" });
    for line in [
        json!({ "user": p.ada.to_string(), "guild": p.guild.to_string() }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }),
        json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
        }),
    ] {
        let line = format!("{line}\n");
        program.write_all(line.as_bytes()).await.unwrap();
    }
    program.shutdown().await.unwrap();
    let mut said = String::new();
    program.read_to_string(&mut said).await.unwrap();
    assert!(
        said.contains("\"id\":2") && !said.contains("\"id\":1"),
        "{said}"
    );
    p.stage.discord.set_latency(Duration::ZERO);
    bot.stop().await;
}

/// Requests whose bodies do not come.
async fn trickle(client: &Client, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(client.address()).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {token}\r\n\
         content-length: 99\r\nexpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // It says so when it waits for the body.
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 100");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_member_are_bounded() {
    let (p, _, bot, ada) = town_with(closed).await;
    let token = p.token(p.ada, "slow").await;
    let boris = Client::new(ada.address(), &p.token(p.boris, "editor").await);
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(trickle(&ada, &token).await);
    }
    assert_eq!(ada.status().await, StatusCode::TOO_MANY_REQUESTS);
    for _ in 0..120 {
        assert_eq!(boris.status().await, StatusCode::OK);
    }
    assert_eq!(boris.status().await, StatusCode::TOO_MANY_REQUESTS);
    drop(open);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_a_server_are_bounded() {
    let (p, more, bot, ada) = town_with(|world, seeds| {
        closed(world, seeds);
        ["Maria", "Otto"].map(|name| world.member(seeds.guild, name))
    })
    .await;
    let mut clients = vec![ada];
    for who in [p.boris, more[0], more[1]] {
        let token = p.token(who, "editor").await;
        clients.push(Client::new(clients[0].address(), &token));
    }
    for client in &clients[..3] {
        for _ in 0..20 {
            assert!(client.call("list_channels", json!({})).await.is_ok());
        }
    }
    let refused = clients[3].call("list_channels", json!({})).await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("60 in a server"), "{refused}");
    bot.stop().await;
}
