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
