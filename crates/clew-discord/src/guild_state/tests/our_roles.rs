//! Roles of ours that are deleted.

use super::*;

const GONE: &str = r#"{"guild_id":"1","role_id":"2"}"#;

/// We have two roles, of which one lets us see channel 11.
fn helping() -> GuildState {
    let state = known();
    let ours = r#"{"guild_id":"1","user":{"id":"100","username":"clew"},"roles":["2","3"]}"#;
    state.apply("GUILD_MEMBER_UPDATE", ours);
    assert!(state.our_access(id(11)).may_view());
    state
}

#[track_caller]
fn check_hidden(told: Option<Event>, is_hidden: [bool; 2]) {
    let Some(Event::PermissionsChanged { hidden, .. }) = told else {
        panic!("{told:?}");
    };
    let found = [10, 11].map(|channel| hidden.contains(&id(channel)));
    assert_eq!(found, is_hidden, "{hidden:?}");
}

/// Discord does not tell our member anew.
#[test]
fn a_deleted_role_of_ours_leaves_what_the_others_allow() {
    let state = helping();
    check_hidden(state.apply("GUILD_ROLE_DELETE", GONE), [false, true]);
    assert_eq!(word(state.our_access(id(10))), "view send");
    assert_eq!(word(state.our_access(id(11))), "nothing");
    assert!(state.apply("GUILD_ROLE_DELETE", GONE).is_none());
}

/// A list may lack a role that could not be read or came after it: only its deletion is sure.
#[test]
fn a_role_of_ours_that_a_list_lacks_is_not_known_until_it_is_deleted() {
    let state = helping();
    let list = format!(
        r#"{{"id":"1","name":"Guild","owner_id":"300","roles":[
        {{"id":"1","name":"@everyone","permissions":"{ALL}"}},
        {{"id":"3","name":"clew","permissions":"0"}}]}}"#
    );
    check_hidden(state.apply("GUILD_UPDATE", &list), [true, true]);
    check_hidden(state.apply("GUILD_ROLE_DELETE", GONE), [false, true]);
}
