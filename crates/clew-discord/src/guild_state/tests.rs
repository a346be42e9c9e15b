//! What events make of the guild state, valid and malformed ones.

mod our_roles;
mod readers;
mod topic;

use super::partial::Bits;
use super::*;
use crate::event::Event;
use clew_context::model::ChannelKind;

const GUILD: GuildId = GuildId::new(1);
const US: UserId = UserId::new(100);
const ANN: UserId = UserId::new(200);
const HELPERS: RoleId = RoleId::new(2);

/// View Channel, Read Message History, Send Messages, Send in Threads.
const ALL: u64 = 1 << 10 | 1 << 16 | 1 << 11 | 1 << 38;
const VIEW: u64 = 1 << 10;

fn us() -> CurrentUser {
    CurrentUser {
        user: US,
        name: "clew".to_owned(),
        application: ApplicationId::new(101),
    }
}

/// A server with an open channel (10), one hidden from all but helpers (11), a
/// forum (12) with a post (20), a public thread (21) in 11 and a private one
/// (22) in 10.
fn known() -> GuildState {
    let state = GuildState::default();
    state.set_current_user(us());
    let text = format!(
        r#"{{"id":"1","name":"Guild","owner_id":"300","roles":[
        {{"id":"1","name":"@everyone","permissions":"{ALL}"}},
        {{"id":"2","name":"helpers","permissions":"0"}},
        {{"id":"3","name":"clew","permissions":"0","tags":{{"bot_id":"100"}}}},
        {{"id":"4","name":"admins","permissions":"8"}},
        {{"id":"5","name":"movers","permissions":"{movers}"}}],
        "channels":[{{"id":"10","type":0,"name":"general"}},
        {{"id":"11","type":0,"name":"hidden","permission_overwrites":[
          {{"id":"1","type":0,"allow":"0","deny":"{VIEW}"}},
          {{"id":"2","type":0,"allow":"{VIEW}","deny":"0"}}]}},
        {{"id":"12","type":15,"name":"help","available_tags":[{{"id":"70","name":"bug"}},
          {{"id":"71","name":"done"}}]}}],
        "threads":[{{"id":"20","type":11,"name":"It breaks","parent_id":"12",
          "applied_tags":["71"],"owner_id":"200","message_count":3,
          "thread_metadata":{{"archived":false,"locked":true}}}},
        {{"id":"21","type":11,"name":"inside","parent_id":"11"}},
        {{"id":"22","type":12,"name":"secret","parent_id":"10","member":{{"flags":0}}}}],
        "members":[{{"user":{{"id":"100","username":"clew"}},"nick":"Clew","roles":["3"]}}]}}"#,
        movers = 1_u64 << 34,
    );
    let event = state.apply("GUILD_CREATE", &text);
    assert!(matches!(event, Some(Event::GuildAvailable { .. })));
    state
}

fn owner(state: &GuildState, guild: GuildId) -> Option<UserId> {
    state.read().guild(guild)?.owner_id
}

fn id(id: u64) -> ChannelId {
    ChannelId::new(id)
}

#[test]
fn a_forum_post_is_known_with_its_forum_and_tags() {
    let channel = known().channel(id(20)).unwrap();
    assert_eq!(channel.parent_kind, Some(ChannelKind::Forum));
    assert_eq!(channel.parent_name.as_deref(), Some("help"));
    assert_eq!(channel.tags, ["done"]);
    let thread = channel.thread.unwrap();
    assert!(thread.locked && !thread.archived);
    assert_eq!((thread.owner, thread.message_count), (Some(ANN), Some(3)));
}

#[test]
fn names_and_our_managed_role_are_known() {
    let state = known();
    assert_eq!(state.our_role_ids(GUILD), [RoleId::new(3)]);
    assert_eq!(state.role_name(GUILD, HELPERS).as_deref(), Some("helpers"));
    assert_eq!(state.channel_name(id(10)).as_deref(), Some("general"));
    assert_eq!(state.user_name(GUILD, US).as_deref(), Some("Clew"));
    assert_eq!(state.guild_of(id(21)), Some(GUILD));
    assert_eq!(owner(&state, GUILD), Some(UserId::new(300)));
}

const fn word(access: Access) -> &'static str {
    match access {
        Access::Unknown(Missing::Facts) => "unknown",
        Access::Unknown(Missing::Membership(_)) => "member?",
        Access::Allowed(rights) if rights.send => "view send",
        Access::Allowed(_) => "view",
        Access::Denied => "nothing",
    }
}

/// Checks what Ann may do, as (view, send); `?` if membership decides.
#[track_caller]
fn check(user: UserId, roles: &[u64], channel: u64, expected: &str) {
    let roles: Vec<RoleId> = roles.iter().copied().map(RoleId::new).collect();
    assert_eq!(
        word(known().access(user, Some(&roles), id(channel))),
        expected
    );
}

#[test]
fn the_asker_is_judged_by_the_roles_of_the_event() {
    check(ANN, &[], 10, "view send");
    check(ANN, &[], 11, "nothing");
    check(ANN, &[2], 11, "view send");
    check(ANN, &[4], 11, "view send");
    check(UserId::new(300), &[], 11, "view send");
    check(ANN, &[], 20, "view send");
    check(ANN, &[], 21, "nothing");
    check(ANN, &[2], 21, "view send");
    check(ANN, &[], 22, "member?");
    check(ANN, &[5], 22, "view send");
    check(ANN, &[4], 22, "view send");
    check(ANN, &[], 99, "unknown");
    check(ANN, &[999], 10, "unknown");
    let untold = known().access(ANN, None, id(10));
    assert_eq!(word(untold), "unknown");
}

/// Where something that could decide is missing, nobody gets access.
#[test]
fn what_was_not_told_is_unknown() {
    let state = known();
    let thread = r#"{"id":"30","guild_id":"1","type":11,"parent_id":"99","name":"orphan"}"#;
    state.apply("THREAD_CREATE", thread);
    let odd = r#"{"id":"31","guild_id":"1","type":0,"name":"odd",
        "permission_overwrites":[{"id":"1","type":0,"allow":"0"}]}"#;
    state.apply("CHANNEL_CREATE", odd);
    let bare = r#"{"id":"8","owner_id":"300","channels":[{"id":"80","type":0,"name":"open"}]}"#;
    state.apply("GUILD_CREATE", bare);
    for channel in [30, 31, 80] {
        let access = state.access(ANN, Some(&[]), id(channel));
        assert_eq!(word(access), "unknown", "{channel}");
        assert!(!state.our_access(id(channel)).may_view(), "{channel}");
    }
    let owner = state.access(UserId::new(300), Some(&[]), id(31));
    assert_eq!(word(owner), "view send", "no overwrite binds the owner");
}

#[test]
fn our_own_membership_of_private_threads_is_followed() {
    let state = known();
    assert!(state.our_access(id(22)).may_view());
    let left = r#"{"id":"22","guild_id":"1","member_count":1,"removed_member_ids":["100"]}"#;
    let Some(Event::PermissionsChanged { hidden, .. }) = state.apply("THREAD_MEMBERS_UPDATE", left)
    else {
        panic!("leaving is a change");
    };
    assert!(hidden.contains(&id(22)), "{hidden:?}");
    assert_eq!(state.our_access(id(22)), Access::Denied);
    let back = r#"{"id":"22","guild_id":"1","user_id":"100"}"#;
    state.apply("THREAD_MEMBER_UPDATE", back);
    assert!(state.our_access(id(22)).may_view());
    let update = r#"{"id":"22","guild_id":"1","type":12,"parent_id":"10","name":"renamed"}"#;
    state.apply("THREAD_UPDATE", update);
    assert!(state.our_access(id(22)).may_view());
}

#[test]
fn changes_of_permissions_are_told_and_others_are_not() {
    let state = known();
    let told = |event: &str, data: &str| {
        matches!(
            state.apply(event, data),
            Some(Event::PermissionsChanged { guild: GUILD, .. })
        )
    };
    let topic = r#"{"id":"10","guild_id":"1","type":0,"name":"general","topic":"new"}"#;
    // The first event had no overwrites, which equals an empty list.
    assert!(!told("CHANNEL_UPDATE", topic));
    let hidden = r#"{"id":"10","guild_id":"1","type":0,"name":"general",
        "permission_overwrites":[{"id":"1","type":0,"allow":"0","deny":"1024"}]}"#;
    assert!(told("CHANNEL_UPDATE", hidden));
    assert!(!state.our_access(id(10)).may_view());
    let role = r#"{"guild_id":"1","role":{"id":"2","name":"helpers","permissions":"8"}}"#;
    assert!(told("GUILD_ROLE_UPDATE", role));
    assert!(!told("GUILD_ROLE_UPDATE", role));
    assert!(told(
        "GUILD_ROLE_DELETE",
        r#"{"guild_id":"1","role_id":"2"}"#
    ));
    let ours = r#"{"guild_id":"1","user":{"id":"100","username":"clew"},"roles":["3","4"]}"#;
    assert!(told("GUILD_MEMBER_UPDATE", ours));
    assert!(!told("GUILD_MEMBER_UPDATE", ours));
    let other = r#"{"guild_id":"1","user":{"id":"200","username":"ann"},"roles":[]}"#;
    assert!(!told("GUILD_MEMBER_UPDATE", other));
    assert!(state.our_access(id(10)).may_view(), "administrator now");
}

#[test]
fn what_is_deleted_is_forgotten_with_its_threads() {
    let state = known();
    let gone = state.apply("CHANNEL_DELETE", r#"{"id":"11","guild_id":"1","type":0}"#);
    let Some(Event::ChannelDeleted {
        guild,
        channel,
        threads,
    }) = gone
    else {
        panic!("{gone:?}");
    };
    assert_eq!(
        (guild, channel, threads),
        (Some(GUILD), id(11), vec![id(21)])
    );
    assert!(state.channel(id(11)).is_none() && state.channel(id(21)).is_none());
    assert_eq!(state.guild_of(id(21)), None);
    let gone = state.apply(
        "THREAD_DELETE",
        r#"{"id":"20","guild_id":"1","type":11,"parent_id":"12"}"#,
    );
    let Some(Event::ThreadDeleted { guild, thread }) = gone else {
        panic!("{gone:?}");
    };
    assert_eq!((guild, thread), (Some(GUILD), id(20)));
    assert!(state.channel(id(20)).is_none());
    let outage = state.apply("GUILD_DELETE", r#"{"id":"1","unavailable":true}"#);
    assert!(matches!(outage, Some(Event::GuildUnavailable(GUILD))));
    assert!(state.channel(id(10)).is_some());
    let left = state.apply("GUILD_DELETE", r#"{"id":"1"}"#);
    assert!(matches!(left, Some(Event::GuildRemoved(GUILD))));
    assert!(state.channel(id(10)).is_none() && state.guild_name(GUILD).is_none());
}

#[test]
fn a_list_of_threads_replaces_those_of_its_channels() {
    let state = known();
    let list = r#"{"guild_id":"1","channel_ids":["10"],"members":[{"id":"24"}],"threads":[
        {"id":"24","type":12,"parent_id":"10","name":"new"}]}"#;
    state.apply("THREAD_LIST_SYNC", list);
    assert!(state.channel(id(22)).is_none());
    assert!(state.channel(id(20)).is_some());
    assert!(state.our_access(id(24)).may_view());
}

#[test]
fn one_odd_part_costs_only_itself() {
    let state = GuildState::default();
    state.set_current_user(us());
    let text = r#"{"id":"1","name":7,"owner_id":"300","emojis":[{"bad":true}],
        "roles":[{"id":"1","name":"@everyone","permissions":"66560"},{"nonsense":1}],
        "channels":["what",{"id":"10","type":0,"name":"general"},
          {"id":"11","type":0,"name":"odd","available_tags":"none","parent_id":{}},
          {"id":"12","type":0,"name":"closed","permission_overwrites":[{"id":"x"}]},
          {"id":"13","type":"new"}],
        "members":[{"user":{"id":"100","username":"clew"},"roles":["0"]},{"user":null}]}"#;
    let event = state.apply("GUILD_CREATE", text);
    assert!(matches!(event, Some(Event::GuildAvailable { .. })));
    assert_eq!(state.channels_of(GUILD).len(), 3);
    assert!(state.our_access(id(10)).may_view());
    assert!(state.our_access(id(11)).may_view());
    // Unreadable overwrites may be the ones that hide the channel.
    assert!(!state.our_access(id(12)).may_view());
    let bare = state.apply("GUILD_CREATE", r#"{"id":"2","name":"Bare"}"#);
    let Some(Event::GuildIncomplete { guild, parts }) = bare else {
        panic!("{bare:?}");
    };
    assert_eq!(
        (guild.get(), &*parts),
        (2, &["owner_id", "channels", "roles"][..])
    );
}

#[test]
fn what_cannot_be_read_is_told_with_its_ids() {
    #[track_caller]
    fn check(state: &GuildState, event_type: &str, data: &str, ids: (Option<u64>, Option<u64>)) {
        let Some(Event::Unreadable(found)) = state.apply(event_type, data) else {
            panic!("{event_type} was read");
        };
        assert_eq!(found.event, event_type.to_ascii_lowercase());
        let channel = found.channel.map(ChannelId::get);
        assert_eq!((found.guild.map(GuildId::get), channel), ids);
    }
    let state = known();
    check(&state, "CHANNEL_UPDATE", "[]", (None, None));
    let odd = r#"{"id":"10","guild_id":"1","type":[]}"#;
    check(&state, "CHANNEL_UPDATE", odd, (Some(1), Some(10)));
    check(
        &state,
        "GUILD_UPDATE",
        r#"{"id":"1","roles":"#,
        (None, None),
    );
    check(
        &state,
        "GUILD_ROLE_CREATE",
        r#"{"guild_id":"1"}"#,
        (Some(1), None),
    );
    assert!(state.apply("TYPING_START", "[]").is_none(), "not in use");
}

#[test]
fn guilds_that_ready_does_not_name_are_forgotten() {
    let state = known();
    state.keep_only(0, 1, &[GUILD]);
    assert!(state.guild_name(GUILD).is_some());
    state.keep_only(1, 2, &[]);
    assert!(state.guild_name(GUILD).is_some(), "another shard's");
    state.keep_only(0, 1, &[]);
    assert!(state.guild_name(GUILD).is_none());
}

/// Through the session file and back, including what this version does not
/// know and what it cannot read.
fn snapshot(state: &GuildState) -> Vec<PartialGuild> {
    let guilds = state.guilds().into_iter();
    guilds.filter_map(|id| state.snapshot(id)).collect()
}

#[test]
fn nothing_is_lost_on_the_way_through_the_session_file() {
    let first = known();
    let odd = format!(
        r#"{{"id":"7","name":"Odd","roles":[
        {{"id":"7","name":"@everyone","permissions":"{new_bit}"}}],
        "channels":[{{"id":"71","type":200,"name":"of a new type"}},
          {{"id":"72","type":0,"permission_overwrites":[{{"id":"x"}}]}},
          {{"id":"73","type":0,"permission_overwrites":[
            {{"id":"5","type":9,"allow":"{new_bit}","deny":"0"}}]}}]}}"#,
        new_bit = 1_u64 << 63,
    );
    first.apply("GUILD_CREATE", &odd);
    assert_eq!(owner(&first, GuildId::new(7)), None);
    let written = snapshot(&first);
    let text = serde_json::to_string(&written).unwrap();
    let (known, odd) = (&written[0], &written[1]);
    assert!(
        known
            .channels
            .iter()
            .any(|channel| channel.member.is_some())
    );
    assert_eq!(odd.roles[0].permissions, Bits(1 << 63));
    assert_eq!(odd.channels[0].type_number, 200);
    assert_eq!(odd.channels[1].permission_overwrites, None);
    let second = GuildState::default();
    second.set_current_user(us());
    second.restore(serde_json::from_str(&text).unwrap());
    assert_eq!(snapshot(&second), written);
    assert!(second.our_access(id(22)).may_view());
    assert_eq!(second.channel(id(20)), first.channel(id(20)));
    assert_eq!(second.our_role_ids(GUILD), first.our_role_ids(GUILD));
}

#[test]
fn a_server_that_comes_anew_replaces_the_old() {
    let state = known();
    let anew = r#"{"id":"1","name":"New","owner_id":"300","roles":[{"id":"1"}],
        "channels":[{"id":"10","type":0,"name":"general"}]}"#;
    state.apply("GUILD_CREATE", anew);
    assert_eq!(state.channels_of(GUILD), [id(10)]);
    assert!(state.channel(id(11)).is_none() && state.channel(id(20)).is_none());
    assert_eq!(state.role_name(GUILD, HELPERS), None);
    assert_eq!(
        state.our_access(id(10)),
        Access::Unknown(Missing::Facts),
        "our roles came with the old"
    );
}

#[test]
fn a_server_that_changes_keeps_what_is_in_it() {
    let state = known();
    let renamed = r#"{"id":"1","name":"Renamed","owner_id":"300","roles":[]}"#;
    assert!(state.apply("GUILD_UPDATE", renamed).is_none());
    assert_eq!(state.guild_name(GUILD).as_deref(), Some("Renamed"));
    assert_eq!(state.role_name(GUILD, HELPERS).as_deref(), Some("helpers"));
    assert!(state.our_access(id(22)).may_view());
    assert_eq!(state.user_name(GUILD, US).as_deref(), Some("Clew"));
    let given = r#"{"id":"1","name":"Renamed","owner_id":"200","roles":[]}"#;
    let told = state.apply("GUILD_UPDATE", given);
    assert!(matches!(
        told,
        Some(Event::PermissionsChanged { guild: GUILD, .. })
    ));
    assert_eq!(owner(&state, GUILD), Some(ANN));
}

#[test]
fn roles_that_come_with_a_server_take_the_place_of_all() {
    let state = known();
    let update = r#"{"id":"1","name":"One","owner_id":"300",
        "roles":[{"id":"1","name":"@everyone","permissions":"1024"}]}"#;
    let told = state.apply("GUILD_UPDATE", update);
    assert!(matches!(told, Some(Event::PermissionsChanged { .. })));
    assert_eq!(state.role_name(GUILD, HELPERS), None);
    assert_eq!(
        state.role_name(GUILD, RoleId::new(1)).as_deref(),
        Some("@everyone")
    );
    assert!(state.apply("GUILD_UPDATE", update).is_none());
}

#[test]
fn a_thread_counts_what_is_posted_and_deleted() {
    let (state, post) = (known(), id(20));
    let count = || {
        let channel = state.channel(post).unwrap();
        channel.thread.unwrap().message_count
    };
    assert_eq!(count(), Some(3));
    state.count_messages(post, 1);
    state.count_messages(post, 3);
    state.count_messages(post, -1);
    assert_eq!(count(), Some(6));
}

/// As the versions before this one wrote it, byte for byte: a process that
/// resumes after an update starts with it.
const WRITTEN_BEFORE: &str = concat!(
    r#"[{"id":"1","name":"Guild","owner_id":"300","#,
    r#""roles":[{"id":"1","name":"@everyone","permissions":"66560","tags":{"bot_id":null}},"#,
    r#"{"id":"3","name":"clew","permissions":"0","tags":{"bot_id":"100"}}],"#,
    r#""channels":[{"id":"10","type":0,"name":"general","parent_id":null,"owner_id":null,"#,
    r#""permission_overwrites":[{"id":"1","type":0,"allow":"0","deny":"2048"}],"#,
    r#""available_tags":[],"applied_tags":[],"#,
    r#""thread_metadata":{"archived":false,"locked":false},"message_count":null,"member":null},"#,
    r#"{"id":"12","type":15,"name":"help","parent_id":null,"owner_id":null,"#,
    r#""permission_overwrites":null,"available_tags":[{"id":"71","name":"done"}],"#,
    r#""applied_tags":[],"thread_metadata":{"archived":false,"locked":false},"#,
    r#""message_count":null,"member":null},"#,
    r#"{"id":"22","type":12,"name":"secret","parent_id":"10","owner_id":"200","#,
    r#""permission_overwrites":[],"available_tags":[],"applied_tags":["71"],"#,
    r#""thread_metadata":{"archived":true,"locked":false},"message_count":3,"member":{}}],"#,
    r#""threads":[],"members":[{"user":{"id":"100","username":"","global_name":null},"#,
    r#""nick":"Clew","roles":["3"]}]},"#,
    r#"{"id":"2","name":"","owner_id":null,"roles":[],"channels":[],"threads":[],"members":[]}]"#,
);

#[test]
fn what_was_written_before_is_read_and_written_the_same() {
    let state = GuildState::default();
    state.set_current_user(us());
    state.restore(serde_json::from_str(WRITTEN_BEFORE).unwrap());
    let written = serde_json::to_string(&snapshot(&state)).unwrap();
    assert_eq!(written, WRITTEN_BEFORE);
    assert_eq!(state.user_name(GUILD, US).as_deref(), Some("Clew"));
    assert!(state.our_access(id(22)).may_view());
    assert_eq!(state.channel(id(22)).unwrap().tags, Vec::<String>::new());
}

#[test]
fn a_channel_makes_its_server_known() {
    let state = GuildState::default();
    state.set_current_user(us());
    let text = r#"{"id":"10","guild_id":"1","type":0,"name":"general"}"#;
    assert!(state.apply("CHANNEL_CREATE", text).is_none());
    assert_eq!(state.guilds(), [GUILD]);
    assert_eq!(state.guild_name(GUILD).as_deref(), Some(""));
    assert_eq!(owner(&state, GUILD), None);
    assert_eq!(state.guild_of(id(10)), Some(GUILD));
    assert_eq!(state.our_access(id(10)), Access::Unknown(Missing::Facts));
    let direct = r#"{"id":"11","type":1}"#;
    assert!(state.apply("CHANNEL_CREATE", direct).is_none());
    assert!(state.channel(id(11)).is_none());
}

/// Nothing else makes a server known.
#[test]
fn of_an_unknown_server_roles_members_and_names_are_not_kept() {
    let state = GuildState::default();
    state.set_current_user(us());
    for (event_type, data) in [
        ("GUILD_UPDATE", r#"{"id":"1","name":"New","owner_id":"3"}"#),
        (
            "GUILD_ROLE_CREATE",
            r#"{"guild_id":"1","role":{"id":"1","name":"@everyone","permissions":"8"}}"#,
        ),
        ("GUILD_ROLE_DELETE", r#"{"guild_id":"1","role_id":"1"}"#),
        (
            "GUILD_MEMBER_UPDATE",
            r#"{"guild_id":"1","user":{"id":"100","username":"clew"},"roles":["3"]}"#,
        ),
        ("CHANNEL_DELETE", r#"{"id":"10","guild_id":"1","type":0}"#),
        ("THREAD_DELETE", r#"{"id":"10","guild_id":"1","type":11}"#),
        (
            "THREAD_MEMBER_UPDATE",
            r#"{"id":"10","guild_id":"1","user_id":"100"}"#,
        ),
        (
            "THREAD_MEMBERS_UPDATE",
            r#"{"id":"10","guild_id":"1","removed_member_ids":["100"]}"#,
        ),
    ] {
        let event = state.apply(event_type, data);
        let told = matches!(event, Some(Event::PermissionsChanged { .. }));
        assert!(!told, "{event_type}");
        assert_eq!(state.guilds(), [], "{event_type}");
        assert_eq!(state.role_name(GUILD, RoleId::new(1)), None, "{event_type}");
        assert_eq!(state.user_name(GUILD, US), None, "{event_type}");
    }
}

#[test]
fn a_role_is_one_servers_alone() {
    let state = known();
    let other = GuildId::new(9);
    state.apply("GUILD_CREATE", r#"{"id":"9","roles":[{"id":"9"}]}"#);
    assert_eq!(state.role_name(other, HELPERS), None);
    let gone = r#"{"guild_id":"9","role_id":"2"}"#;
    assert!(state.apply("GUILD_ROLE_DELETE", gone).is_none());
    assert_eq!(state.role_name(GUILD, HELPERS).as_deref(), Some("helpers"));
}

#[test]
fn names_outlast_a_server_that_comes_anew_and_go_when_it_is_left() {
    let state = known();
    state.hear(GUILD, [(ANN, "Ann")]);
    state.apply("GUILD_CREATE", r#"{"id":"1","name":"New"}"#);
    let name = || state.user_name(GUILD, US);
    let heard = || state.heard_name(GUILD, ANN);
    assert_eq!(name().as_deref(), Some("Clew"));
    assert_eq!(heard().as_deref(), Some("Ann"));
    state.apply("GUILD_DELETE", r#"{"id":"1"}"#);
    assert_eq!((name(), heard()), (None, None));
}

/// Names of members keep those that came first, names heard those that came
/// last.
#[test]
fn a_server_has_room_for_five_hundred_names_of_either_kind() {
    let state = known();
    let user = |number: u64| UserId::new(1_000 + number);
    for number in 0..500 {
        let update = format!(
            r#"{{"guild_id":"1","user":{{"id":"{}","username":"u{number}"}},"roles":[]}}"#,
            user(number)
        );
        state.apply("GUILD_MEMBER_UPDATE", &update);
        state.hear(GUILD, [(user(number), "heard")]);
    }
    let name = |number| state.user_name(GUILD, user(number));
    assert_eq!(name(498).as_deref(), Some("u498"));
    assert_eq!(name(499), None, "our own name took a place");
    assert_eq!(
        state.heard_name(GUILD, user(0)).as_deref(),
        Some("heard"),
        "five hundred fit"
    );
    state.hear(GUILD, [(user(0), "anew")]);
    assert_eq!(
        state.heard_name(GUILD, user(1)).as_deref(),
        Some("heard"),
        "a new name of somebody known needs no room"
    );
    state.hear(GUILD, [(user(500), "last")]);
    assert_eq!(state.heard_name(GUILD, user(0)), None);
    assert_eq!(state.heard_name(GUILD, user(500)).as_deref(), Some("last"));
}

#[test]
fn a_count_from_discord_starts_counting_anew_and_membership_does_not() {
    let (state, post) = (known(), id(20));
    let count = || {
        let channel = state.channel(post).unwrap();
        channel.thread.unwrap().message_count
    };
    state.count_messages(post, 2);
    state.apply(
        "THREAD_MEMBER_UPDATE",
        r#"{"id":"20","guild_id":"1","user_id":"100"}"#,
    );
    assert_eq!(count(), Some(5));
    state.apply(
        "THREAD_UPDATE",
        r#"{"id":"20","guild_id":"1","type":11,"parent_id":"12","message_count":9}"#,
    );
    assert_eq!(count(), Some(9));
    state.count_messages(post, -10);
    assert_eq!(count(), Some(0));
    state.count_messages(id(10), 1);
    state.count_messages(id(99), 1);
    assert_eq!(state.read().posted(id(10)), 0, "no thread");
    assert_eq!(state.read().posted(id(99)), 0, "not known");
}

#[test]
fn a_list_of_all_threads_replaces_those_of_the_server_alone() {
    let state = known();
    let other = r#"{"id":"9","threads":[{"id":"90","type":11,"parent_id":"91"}]}"#;
    state.apply("GUILD_CREATE", other);
    state.apply("THREAD_LIST_SYNC", r#"{"guild_id":"1"}"#);
    let mut left = state.channels_of(GUILD);
    left.sort_unstable();
    assert_eq!(left, [10, 11, 12].map(id));
    assert_eq!(state.channels_of(GuildId::new(9)), [id(90)]);
}
