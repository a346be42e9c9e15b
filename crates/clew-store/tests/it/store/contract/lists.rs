//! Opt-outs, server settings, departures.

use std::collections::BTreeSet;
use std::time::Duration;

use clew_context::model::{
    ChannelId, LinkContext, LoneContext, PlaceContext, ReplyTarget, RoleId, UserId,
};
use clew_store::model::{GuildSettings, RoleLimits};
use clew_store::{Backend, Purge};

use crate::store::build::{at, direct, direct_channel, guild, member, turn, user};
use crate::store::fixture::{Fixture, on_each_store};

on_each_store! {
    opt_outs_are_stored_and_removed
    settings_come_back_with_every_field
    departures_are_stored_and_removed
    recent_direct_channels_come_newest_first
}

async fn opt_outs_are_stored_and_removed<F: Fixture>(place: &F) {
    let store = place.open().await;
    assert_eq!(store.opt_outs().await.unwrap(), []);
    for (id, since) in [(3, 1), (4, 2), (3, 5)] {
        store.set_opt_out(user(id), Some(at(since))).await.unwrap();
    }
    let mut all = store.opt_outs().await.unwrap();
    all.sort_unstable();
    assert_eq!(all, [(user(3), at(5)), (user(4), at(2))]);
    for _ in 0..2 {
        store.set_opt_out(user(3), None).await.unwrap();
        assert_eq!(store.opt_outs().await.unwrap(), [(user(4), at(2))]);
    }
}

async fn settings_come_back_with_every_field<F: Fixture>(place: &F) {
    let store = place.open().await;
    assert_eq!(store.settings().await.unwrap(), []);
    let channels = |ids: &[u64]| {
        ids.iter()
            .copied()
            .map(ChannelId::new)
            .collect::<BTreeSet<_>>()
    };
    let full = GuildSettings {
        rolling_window: Some(Duration::from_secs(3_601)),
        channels_off: channels(&[1, u64::MAX]),
        channels_answered: channels(&[2, 3]),
        reply_target: Some(ReplyTarget::Trigger),
        learning: Some(false),
        link_context: Some(LinkContext {
            before: 0,
            after: 10,
        }),
        lone_context: Some(LoneContext::Recent),
        lone_contexts: [(ChannelId::new(4), LoneContext::Off)].into(),
        place_context: Some(PlaceContext::TopicPins),
        buttons: Some(true),
        programs: Some(true),
        prompt: Some("Answer in Czech.\n\u{1f375} \"Tea\" first.".to_owned()),
        blocked: [UserId::new(7), UserId::new(u64::MAX)].into(),
        role_limits: [
            (RoleId::new(8), RoleLimits::default()),
            (
                RoleId::new(9),
                RoleLimits {
                    questions: Some(3),
                    tokens: Some(u64::MAX),
                },
            ),
        ]
        .into(),
    };
    let other = GuildSettings {
        reply_target: Some(ReplyTarget::Newest),
        learning: Some(true),
        lone_context: Some(LoneContext::Off),
        ..GuildSettings::default()
    };
    store
        .set_settings(guild(2), &GuildSettings::default())
        .await
        .unwrap();
    store.set_settings(guild(1), &other).await.unwrap();
    store.set_settings(guild(1), &full).await.unwrap();
    store.set_settings(guild(2), &other).await.unwrap();
    let mut all = store.settings().await.unwrap();
    all.sort_by_key(|(guild, _)| *guild);
    assert_eq!(all, [(guild(1), full), (guild(2), other)]);
}

async fn departures_are_stored_and_removed<F: Fixture>(place: &F) {
    let store = place.open().await;
    for (id, when) in [(1, 1), (2, 2), (1, 9)] {
        store
            .set_departure(guild(id), Some(at(when)))
            .await
            .unwrap();
    }
    let mut all = store.departures().await.unwrap();
    all.sort_unstable();
    assert_eq!(all, [(guild(1), at(9)), (guild(2), at(2))]);
    store.set_departure(guild(1), None).await.unwrap();
    store.set_departure(guild(7), None).await.unwrap();
    assert_eq!(store.departures().await.unwrap(), [(guild(2), at(2))]);
}

async fn recent_direct_channels_come_newest_first<F: Fixture>(place: &F) {
    let store = place.open().await;
    assert_eq!(store.recent_direct(9).await.unwrap(), []);
    let turns = [
        (direct(3), 10, 0),
        (member(1, 2, 3), 20, 10),
        (direct(4), 30, 20),
        (direct(5), 40, 30),
        (direct(3), 50, 40),
    ];
    for (scope, number, when) in turns {
        store.append(&turn(scope, number, at(when))).await.unwrap();
    }
    let of = |users: &[u64]| -> Vec<ChannelId> {
        let users = users.iter().copied().map(user);
        users.map(direct_channel).collect()
    };
    assert_eq!(store.recent_direct(9).await.unwrap(), of(&[3, 5, 4]));
    assert_eq!(store.recent_direct(2).await.unwrap(), of(&[3, 5]));
    store.purge(&Purge::User(user(5))).await.unwrap();
    assert_eq!(store.recent_direct(9).await.unwrap(), of(&[3, 4]));
}
