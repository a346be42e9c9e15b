//! Autocompletion of options.

use serde_json::json;

use super::{outcomes, place};
use crate::support::bot::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn facts_snapshots_and_agents_are_proposed() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let folder = p.stage.folder.path().join("agents/poet");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = json!({"system_prompt": "Rhyme.", "channels": []});
    std::fs::write(folder.join("agent.json"), agent.to_string()).unwrap();
    for text in ["I have a pump", "I like tea"] {
        let options = json!({"text": text});
        p.call(p.ada, p.channel, "memory remember", options).await;
    }
    let options = json!({"text": "We make pumps"});
    p.call(p.maria, p.channel, "server-memory remember", options)
        .await;
    p.talk(p.ada, p.channel, "hello").await;
    let options = json!({"description": "pumps"});
    p.call(p.ada, p.channel, "context save", options).await;

    let facts = |who, typed| discord.complete(who, p.channel, "memory forget", "fact", typed);
    let found = facts(p.ada, "").await.unwrap();
    let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["I like tea", "I have a pump"], "newest first");
    let found = facts(p.ada, "PUMP").await.unwrap();
    assert_eq!(found.len(), 1);
    let options = json!({"fact": found[0].1});
    let asked = p.call(p.ada, p.channel, "memory forget", options).await;
    assert!(asked.text().contains("> I have a pump"));
    assert_eq!(facts(p.boris, "").await.unwrap(), []);

    let of_server = |who| discord.complete(who, p.channel, "server-memory forget", "fact", "pumps");
    assert_eq!(of_server(p.maria).await.unwrap().len(), 1);
    assert_eq!(of_server(p.ada).await.unwrap(), []);

    let saved = |who, typed| discord.complete(who, p.channel, "context restore", "snapshot", typed);
    let found = saved(p.ada, "pump").await.unwrap();
    assert!(found[0].0.ends_with(" · pumps"), "{found:?}");
    assert_eq!(found[0].1.len(), 36);
    assert_eq!(saved(p.ada, "tea").await.unwrap(), []);
    assert_eq!(saved(p.boris, "").await.unwrap(), []);

    let agents = discord.complete(p.ada, p.channel, "context history", "agent", "");
    let names: Vec<String> = agents
        .await
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"default".to_owned()), "{names:?}");
    let lines = bot.stop().await;
    assert!(outcomes(&lines, "complete").iter().all(|one| one == "done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_proposed_by_name() {
    let (p, bot) = place(&[]).await;
    bot.stop().await;
    let folder = p.stage.folder.path().join("agents/poet");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = json!({"system_prompt": "Rhyme.", "channels": []});
    std::fs::write(folder.join("agent.json"), agent.to_string()).unwrap();
    let bot = Stage::start(&p.stage).await;
    let agents = |typed| {
        let discord = &p.stage.discord;
        discord.complete(p.ada, p.channel, "context history", "agent", typed)
    };
    let choice = |name: &str| (name.to_owned(), name.to_owned());
    assert_eq!(
        agents("").await.unwrap(),
        [choice("default"), choice("poet")]
    );
    assert_eq!(agents("PO").await.unwrap(), [choice("poet")]);
    bot.stop().await;
}

/// Discord takes no line as the answer to an option that is being typed.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_call_gets_no_choices() {
    let (p, bot) = place(&[]).await;
    let options = json!({"text": "I have a pump"});
    p.call(p.ada, p.channel, "memory remember", options).await;
    bot.stop().await;
    let bot = p.stage.start_with(&[("ALLOWED", "user:1")]).await;
    let discord = &p.stage.discord;
    let typed = discord.complete(p.ada, p.channel, "memory forget", "fact", "pump");
    assert_eq!(typed.await.unwrap(), []);
    bot.stop().await;
}
