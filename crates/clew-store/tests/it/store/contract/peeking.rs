//! What a process beside the bot sees of a store, and leaves of itself.

use std::slice::from_ref;

use clew_context::model::{ApplicationId, ChannelId, MessageId};
use clew_store::model::GuildSettings;
use clew_store::{Backend, Error, Record, Store};

use crate::store::build::{at, channel, guild, member, message, receipt, turn, user};
use crate::store::fixture::{Fixture, on_each_store};

on_each_store! {
    what_stands_is_seen_whether_or_not_somebody_has_the_store
    peeking_leaves_no_trace_and_takes_no_lock
    what_is_not_there_is_not_made
    another_bots_store_is_not_read
}

async fn peek<F: Fixture>(
    place: &F,
    answer: Option<(ChannelId, MessageId)>,
) -> Result<Vec<Record>, Error> {
    let (address, ground) = (place.address(), place.ground());
    let us = ApplicationId::new(9);
    Store::peek(&address, &ground.folders(), ground.clock(), us, answer).await
}

/// Beside whoever writes, and after.
async fn what_stands_is_seen_whether_or_not_somebody_has_the_store<F: Fixture>(place: &F) {
    let store = place.open().await;
    assert_eq!(peek(place, None).await.unwrap(), []);
    let out = Record::OptOut(user(3), at(1));
    let settings = GuildSettings {
        blocked: [user(4)].into(),
        ..GuildSettings::default()
    };
    let settings = Record::Settings(guild(1), settings);
    let made = Record::Receipt(receipt(member(1, 2, 3), 10, at(0), &[]));
    store.write(&[out.clone(), settings.clone()]).await.unwrap();
    store
        .append(&turn(member(1, 2, 3), 20, at(0)))
        .await
        .unwrap();
    let mut all = vec![out, settings];
    assert_eq!(peek(place, None).await.unwrap(), all);
    let answer = F::IS_DATABASE.then(|| (channel(2), message(11)));
    if F::IS_DATABASE {
        store.write(from_ref(&made)).await.unwrap();
        all.push(made);
    }
    assert_eq!(peek(place, answer).await.unwrap(), all);
    store.close().await.unwrap();
    drop(store);
    assert_eq!(peek(place, answer).await.unwrap(), all);
    let elsewhere = answer.map(|(_, message)| (channel(3), message));
    assert_eq!(peek(place, elsewhere).await.unwrap(), all[..2]);
}

async fn peeking_leaves_no_trace_and_takes_no_lock<F: Fixture>(place: &F) {
    let store = place.open().await;
    let out = Record::OptOut(user(3), at(1));
    store.write(&[out]).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let before = place.ground().bytes();
    let peeking = peek(place, None).await;
    assert_eq!(peeking.unwrap().len(), 1);
    assert!(place.ground().bytes() == before);
    // The bot may start.
    let store = place.open().await;
    store.close().await.unwrap();
}

async fn what_is_not_there_is_not_made<F: Fixture>(place: &F) {
    let error = peek(place, None).await.unwrap_err().to_string();
    assert!(error.contains("start the bot"), "{error}");
    assert_eq!(place.ground().folder().read_dir().unwrap().count(), 0);
}

async fn another_bots_store_is_not_read<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.claim(ApplicationId::new(9)).await.unwrap();
    assert_eq!(peek(place, None).await.unwrap(), []);
    store.close().await.unwrap();
    drop(store);
    let (address, ground) = (place.address(), place.ground());
    let other = ApplicationId::new(8);
    let refused = Store::peek(&address, &ground.folders(), ground.clock(), other, None).await;
    assert!(matches!(refused, Err(Error::Owned { .. })), "{refused:?}");
}
