//! Who may read what an answer was made from.

use super::*;
use clew_context::model::Readers;

/// Who of those who can read channel 10 may read `source`, if somebody with these roles
/// asks there.
fn readers_in_general(roles: Option<&[RoleId]>, is_private: bool, source: u64) -> Readers {
    let state = known();
    let source = ChannelId::new(source);
    let answer = AnswerPlace {
        asker: ANN,
        roles,
        channel: ChannelId::new(10),
        is_private,
    };
    let unknown = Channel::new(source, ChannelKind::Text);
    state.readers(&answer, &state.channel(source).unwrap_or(unknown))
}

#[test]
fn a_source_is_read_by_those_who_can_read_the_answers_place() {
    let everybody = |source| readers_in_general(Some(&[]), false, source);
    assert_eq!(everybody(10), Readers::Everybody);
    assert_eq!(everybody(12), Readers::Everybody);
    assert_eq!(everybody(20), Readers::Everybody);
    assert_eq!(everybody(11), Readers::Nobody);
    assert_eq!(everybody(21), Readers::Nobody);
    assert_eq!(everybody(22), Readers::Nobody);
    assert_eq!(everybody(99), Readers::Nobody);
}

#[test]
fn a_hidden_source_is_for_an_asker_who_may_read_it_alone() {
    let helper: &[RoleId] = &[HELPERS];
    for hidden in [11, 21] {
        assert_eq!(
            readers_in_general(Some(helper), false, hidden),
            Readers::AskerOnly
        );
        assert_eq!(
            readers_in_general(Some(helper), true, hidden),
            Readers::Everybody
        );
        assert_eq!(readers_in_general(None, true, hidden), Readers::Nobody);
    }
    // Membership of a private thread is not known.
    assert_eq!(readers_in_general(Some(helper), true, 22), Readers::Nobody);
}

#[test]
fn a_source_in_another_server_is_for_nobody() {
    let state = known();
    let other = r#"{"id":"2","name":"Other","owner_id":"200","roles":[
        {"id":"2","name":"@everyone","permissions":"66560"}],
        "channels":[{"id":"30","type":0,"name":"open"}]}"#;
    state.apply("GUILD_CREATE", other);
    let answer = AnswerPlace {
        asker: ANN,
        roles: Some(&[]),
        channel: ChannelId::new(10),
        is_private: true,
    };
    let source = state.channel(ChannelId::new(30)).unwrap();
    assert_eq!(state.readers(&answer, &source), Readers::Nobody);
    let here = AnswerPlace {
        channel: ChannelId::new(30),
        ..answer
    };
    assert_eq!(state.readers(&here, &source), Readers::Everybody);
}

#[test]
fn a_thread_that_only_rest_told_of_is_judged_by_its_known_parent() {
    let state = known();
    let thread = |parent| Channel {
        guild: Some(GUILD),
        parent: Some(ChannelId::new(parent)),
        ..Channel::new(ChannelId::new(90), ChannelKind::PublicThread)
    };
    let answer = AnswerPlace {
        asker: ANN,
        roles: Some(&[]),
        channel: ChannelId::new(12),
        is_private: false,
    };
    assert_eq!(state.readers(&answer, &thread(10)), Readers::Everybody);
    assert_eq!(state.readers(&answer, &thread(11)), Readers::Nobody);
    assert_eq!(state.readers(&answer, &thread(98)), Readers::Nobody);
}

#[test]
fn what_is_age_restricted_is_for_age_restricted_channels() {
    let state = known();
    let adult = |id: u64, nsfw: bool| {
        let channel = format!(r#"{{"id":"{id}","guild_id":"1","type":0,"nsfw":{nsfw}}}"#);
        state.apply("CHANNEL_CREATE", &channel);
    };
    adult(40, true);
    adult(41, true);
    adult(42, false);
    let thread = r#"{"id":"43","guild_id":"1","type":11,"parent_id":"40","name":"talk"}"#;
    state.apply("THREAD_CREATE", thread);
    let readers = |state: &GuildState, place: u64, source: u64| {
        let answer = AnswerPlace {
            asker: ANN,
            roles: Some(&[]),
            channel: ChannelId::new(place),
            is_private: false,
        };
        state.readers(&answer, &state.channel(ChannelId::new(source)).unwrap())
    };
    for (place, source, expected) in [
        (42, 40, Readers::Nobody),
        (42, 43, Readers::Nobody),
        (41, 40, Readers::Everybody),
        (41, 43, Readers::Everybody),
        (43, 41, Readers::Everybody),
        (43, 42, Readers::Everybody),
    ] {
        assert_eq!(readers(&state, place, source), expected, "{place} {source}");
    }
    // A process that resumes knows it from its file.
    let written = serde_json::to_string(&snapshot(&state)).unwrap();
    let resumed = GuildState::default();
    resumed.set_current_user(us());
    resumed.restore(serde_json::from_str(&written).unwrap());
    assert_eq!(readers(&resumed, 42, 40), Readers::Nobody);
    assert_eq!(readers(&resumed, 40, 42), Readers::Everybody);
    resumed.apply("CHANNEL_UPDATE", r#"{"id":"40","guild_id":"1","type":0}"#);
    assert_eq!(readers(&resumed, 42, 40), Readers::Everybody);
}

/// An archived thread that a search found.
#[test]
fn threads_that_rest_told_of_are_known_then() {
    let state = known();
    let thread = |id, parent| Channel {
        name: "talk".to_owned(),
        parent: Some(ChannelId::new(parent)),
        ..Channel::new(ChannelId::new(id), ChannelKind::PublicThread)
    };
    let known_thread = state.channel(ChannelId::new(20));
    let channel = Channel::new(ChannelId::new(93), ChannelKind::Text);
    let threads = vec![thread(90, 10), thread(91, 98), thread(20, 10), channel];
    state.meet_threads(GUILD, threads);
    let met = state.channel(ChannelId::new(90)).unwrap();
    assert_eq!((met.guild, met.name.as_str()), (Some(GUILD), "talk"));
    assert_eq!(state.channel(ChannelId::new(20)), known_thread);
    for unknown in [91, 93] {
        assert_eq!(state.channel(ChannelId::new(unknown)), None);
    }
}
