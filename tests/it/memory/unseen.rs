//! Where conversations are written: nowhere (`IN_MEMORY_CONTEXT_ONLY`), or also into logs of direct messages
//! (`DM_LOGS_DIR`).

use std::fs;

use serde_json::Value;

use super::place::{Kind, Place, assert_says, assert_says_nothing_of, on_each_store};

on_each_store! {
    in_memory_context_only_leaves_no_byte
    direct_messages_are_logged
}

async fn in_memory_context_only_leaves_no_byte(kind: Kind) {
    let mut p = Place::new(kind, &[("IN_MEMORY_CONTEXT_ONLY", "true")]).await;
    let logs = p.path("dm-logs").display().to_string();
    p.stage.set("DM_LOGS_DIR", &logs);
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.direct, p.ada, "saffron too").await;
    assert_says(&p.prompt(p.help, p.ada).await, &["saffron", "so: saffron"]);
    assert_says(&p.prompt(p.direct, p.ada).await, &["saffron too"]);
    assert_eq!(p.traces("saffron"), [""; 0]);
    let asked = p.ask(p.help, p.ada, "turmeric").await;
    p.stage.discord.delete(p.help, asked.trigger);
    p.until("a purge", || p.event_count("purged") > 0).await;
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["turmeric"]);
    let bot = p.restart(bot).await;
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["saffron"]);
    bot.stop().await;
    for word in ["saffron", "turmeric", "go on"] {
        assert_eq!(p.traces(word), [""; 0]);
    }
}

async fn direct_messages_are_logged(kind: Kind) {
    let mut p = Place::new(kind, &[("MAX_CONVERSATION_LOG_SIZE", "2000")]).await;
    let logs = p.path("dm-logs");
    p.stage.set("DM_LOGS_DIR", &logs.display().to_string());
    let bot = p.start().await;
    p.ask(p.help, p.ada, "turmeric").await;
    p.ask(p.direct, p.ada, "saffron").await;
    let log = logs.join(format!("{}.jsonl", p.ada));
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let said: Vec<&str> = lines
        .iter()
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["saffron", "so: saffron"]);
    // Logs are rotated, so that no file exceeds the limit.
    for number in 0..10 {
        let words = format!("word{number}. {}", "x".repeat(200));
        p.ask(p.direct, p.ada, &words).await;
    }
    bot.stop().await;
    let mut names: Vec<String> = fs::read_dir(&logs)
        .unwrap()
        .map(|entry| entry.unwrap())
        .inspect(|entry| assert!(entry.metadata().unwrap().len() <= 2_000))
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.contains(".jsonl"))
        .collect();
    names.sort();
    assert_eq!(names, ["111.1.jsonl", "111.jsonl"]);
    assert!(fs::read_to_string(log).unwrap().contains("word9."));
    let in_logs = |mark: &str| {
        let traces = p.traces(mark).into_iter();
        traces.filter(|file| file.contains("dm-logs")).count()
    };
    assert_eq!(in_logs("turmeric"), 0);
    assert_eq!(in_logs("saffron"), 0);
}
