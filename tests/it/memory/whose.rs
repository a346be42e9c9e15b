//! A store serves one bot and one application at a time, whatever `STATE_DIR` is.

use clew_context::model::ApplicationId;

use super::place::{Kind, Place, on_each_store};

on_each_store! {
    a_second_bot_on_a_store_is_refused_and_the_first_keeps_running
    a_store_of_another_application_is_refused_and_left_unchanged
}

/// The error with which a refused bot ends; of PostgreSQL it takes a minute and a half.
async fn refusal(p: &Place) -> String {
    p.stage.launch().ended().await.err().unwrap().to_string()
}

async fn a_second_bot_on_a_store_is_refused_and_the_first_keeps_running(kind: Kind) {
    let mut p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    let telemetry = p.path("telemetry").display().to_string();
    for (name, folder) in [
        ("STATE_DIR", "elsewhere"),
        ("TELEMETRY_DIR", "told"),
        ("TOOL_OUTPUT_DIR", "outputs"),
    ] {
        let folder = p.path(folder).display().to_string();
        p.stage.set(name, &folder);
    }
    let text = refusal(&p).await;
    assert!(text.contains("in use"), "{text}");
    assert!(text.contains("another process"), "{text}");
    p.stage.set("TELEMETRY_DIR", &telemetry);
    p.ask(p.help, p.ada, "turmeric").await;
    bot.stop().await;
    // Once the first bot has ended, the store is free.
    p.start().await.stop().await;
}

async fn a_store_of_another_application_is_refused_and_left_unchanged(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    bot.stop().await;
    // The bot claimed the store for its application.
    let store = p.open().await;
    let refused = store.claim(ApplicationId::new(999)).await;
    assert!(refused.is_err());
    let ours = store.guilds().await.unwrap();
    assert_eq!(ours.len(), 1);
    store.close().await.unwrap();
    // A claim of another application is respected.
    let other = Place::new(kind, &[]).await;
    let store = other.open().await;
    store.claim(ApplicationId::new(999)).await.unwrap();
    store.close().await.unwrap();
    let text = refusal(&other).await;
    assert!(text.contains("application 999"), "{text}");
    assert!(text.contains("CONTEXT_STORE"), "{text}");
    let store = other.open().await;
    assert_eq!(store.departures().await.unwrap(), []);
}
