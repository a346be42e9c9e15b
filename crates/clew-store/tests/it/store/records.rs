//! Entries as lines of JSON: nothing is lost, errors name the field.

use std::time::Duration;

use clew_context::model::{
    ChannelId, ContentSource, GuildId, LinkContext, LoneContext, MessageId, PlaceContext,
    ReplyTarget, RoleId, TurnId, UnixMillis, UserId,
};
use clew_store::Record;
use clew_store::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, GuildSettings, Origin,
    ReceiptPerson, RoleLimits, Scope, StoredMessage, StoredReceipt, StoredRole, Subject,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

fn id<T>(make: fn(u64) -> T) -> impl Strategy<Value = T>
where
    T: std::fmt::Debug,
{
    (1..=u64::MAX).prop_map(make)
}

fn time() -> impl Strategy<Value = UnixMillis> {
    any::<i64>().prop_map(UnixMillis)
}

fn agent() -> impl Strategy<Value = AgentName> {
    "[a-z0-9_-]{1,32}".prop_map(|name| name.parse().unwrap())
}

fn snapshot_id() -> impl Strategy<Value = clew_store::model::SnapshotId> {
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
        .prop_map(|text| text.parse().unwrap())
}

fn scope() -> impl Strategy<Value = Scope> {
    let ids = (id(GuildId::new), id(ChannelId::new), id(UserId::new));
    (0..4, ids).prop_map(|(kind, (guild, channel, user))| match kind {
        0 => Scope::Member {
            guild,
            channel,
            user,
        },
        1 => Scope::Thread { guild, channel },
        2 => Scope::User(user),
        _ => Scope::Direct(user),
    })
}

fn role() -> impl Strategy<Value = StoredRole> {
    proptest::sample::select(StoredRole::ALL)
}

fn message() -> impl Strategy<Value = StoredMessage> {
    let key = (scope(), agent(), any::<u64>(), any::<u64>(), role());
    let place = (
        option::of(id(GuildId::new)),
        id(ChannelId::new),
        id(UserId::new),
    );
    let texts = (
        option::of(any::<String>()),
        any::<String>(),
        option::of(any::<String>()),
        option::of(any::<String>()),
    );
    let links = (
        time(),
        option::of(id(MessageId::new)),
        vec(id(MessageId::new), 0..3),
        option::of(id(MessageId::new)),
        option::of(snapshot_id()),
        vec(source(), 0..3),
    );
    (key, place, texts, links).prop_map(|(key, place, texts, links)| StoredMessage {
        scope: key.0,
        agent: key.1,
        turn: TurnId(key.2),
        ordinal: key.3,
        role: key.4,
        guild: place.0,
        channel: place.1,
        owner: place.2,
        author_name: texts.0,
        content: texts.1,
        tool_calls: texts.2,
        tool_call_id: texts.3,
        timestamp: links.0,
        message: links.1,
        parts: links.2,
        target: links.3,
        restored_from: links.4,
        sources: links.5,
    })
}

fn source() -> impl Strategy<Value = ContentSource> {
    let ids = (
        option::of(id(GuildId::new)),
        id(ChannelId::new),
        option::of(id(MessageId::new)),
        option::of(id(UserId::new)),
    );
    ids.prop_map(|(guild, channel, message, author)| ContentSource {
        guild,
        channel,
        message,
        author,
    })
}

pub(super) fn snapshot() -> impl Strategy<Value = ContextSnapshot> {
    let key = (
        snapshot_id(),
        agent(),
        id(UserId::new),
        option::of(id(GuildId::new)),
    );
    let texts = (option::of(any::<String>()), any::<String>());
    let times = (time(), time(), time());
    (key, texts, times, vec(message(), 0..4)).prop_map(|(key, texts, times, messages)| {
        let info = ContextSnapshotInfo {
            id: key.0,
            agent: key.1,
            owner: key.2,
            guild: key.3,
            timestamp: times.0,
            description: texts.0,
            summary: texts.1,
            message_count: messages.len(),
            window_start: times.1,
            window_end: times.2,
        };
        ContextSnapshot { info, messages }
    })
}

fn person() -> impl Strategy<Value = ReceiptPerson> {
    let ids = (option::of(id(GuildId::new)), option::of(id(UserId::new)));
    ids.prop_map(|(guild, author)| ReceiptPerson { guild, author })
}

fn receipt() -> impl Strategy<Value = StoredReceipt> {
    let place = (
        scope(),
        option::of(id(GuildId::new)),
        id(ChannelId::new),
        id(UserId::new),
    );
    let messages = (
        option::of(id(MessageId::new)),
        vec(id(MessageId::new), 0..3),
        btree_set(person(), 0..3),
    );
    (
        any::<u64>(),
        place,
        messages,
        time(),
        any::<(bool, String)>(),
    )
        .prop_map(
            |(turn, place, messages, at, (is_private, body))| StoredReceipt {
                turn: TurnId(turn),
                scope: place.0,
                guild: place.1,
                channel: place.2,
                owner: place.3,
                is_private,
                trigger: messages.0,
                messages: messages.1,
                at,
                people: messages.2,
                body,
            },
        )
}

fn fact() -> impl Strategy<Value = Fact> {
    let origin = prop_oneof![
        Just(Origin::Direct),
        Just(Origin::Everywhere),
        id(GuildId::new).prop_map(Origin::Guild),
    ];
    let subject = prop_oneof![
        id(UserId::new).prop_map(Subject::User),
        id(GuildId::new).prop_map(Subject::Server),
    ];
    let numbers = (any::<u64>(), any::<bool>(), any::<u32>());
    let link = option::of((id(ChannelId::new), id(MessageId::new)));
    let said = (id(UserId::new), time(), time(), link);
    (subject, origin, any::<String>(), numbers, said).prop_map(
        |(subject, origin, text, numbers, said)| Fact {
            id: FactId(numbers.0),
            subject,
            text,
            origin,
            by: said.0,
            at: said.1,
            link: said.3,
            pinned: numbers.1,
            seen: numbers.2,
            last_used: said.2,
        },
    )
}

fn role_limits() -> impl Strategy<Value = RoleLimits> {
    (option::of(any::<u32>()), option::of(any::<u64>()))
        .prop_map(|(questions, tokens)| RoleLimits { questions, tokens })
}

fn lone_context() -> impl Strategy<Value = LoneContext> {
    prop_oneof![
        Just(LoneContext::Off),
        Just(LoneContext::Recent),
        Just(LoneContext::Conversation)
    ]
}

fn settings() -> impl Strategy<Value = GuildSettings> {
    let target = prop_oneof![Just(ReplyTarget::Newest), Just(ReplyTarget::Trigger)];
    (
        option::of(any::<Duration>()),
        btree_set(id(ChannelId::new), 0..3),
        btree_set(id(ChannelId::new), 0..3),
        option::of(target),
        [
            option::of(any::<bool>()),
            option::of(any::<bool>()),
            option::of(any::<bool>()),
        ],
        option::of((0..=LinkContext::MOST, 0..=LinkContext::MOST)),
        option::of(lone_context()),
        btree_map(id(ChannelId::new), lone_context(), 0..3),
        option::of(prop_oneof![
            Just(PlaceContext::Topic),
            Just(PlaceContext::TopicPins)
        ]),
        option::of(any::<String>()),
        btree_set(id(UserId::new), 0..3),
        btree_map(id(RoleId::new), role_limits(), 0..3),
    )
        .prop_map(
            |(
                rolling_window,
                off,
                answered,
                reply_target,
                [learning, buttons, programs],
                linked,
                lone_context,
                lone_contexts,
                place_context,
                prompt,
                blocked,
                role_limits,
            )| {
                let around = |(before, after)| LinkContext { before, after };
                GuildSettings {
                    rolling_window,
                    channels_off: off,
                    channels_answered: answered,
                    reply_target,
                    learning,
                    link_context: linked.map(around),
                    lone_context,
                    lone_contexts,
                    place_context,
                    buttons,
                    programs,
                    prompt,
                    blocked,
                    role_limits,
                }
            },
        )
}

fn record() -> impl Strategy<Value = Record> {
    let key = (
        agent(),
        option::of(id(GuildId::new)),
        option::of(id(UserId::new)),
    );
    let key = key.prop_map(|(agent, guild, user)| ClearKey { agent, guild, user });
    prop_oneof![
        message().prop_map(Record::Message),
        (key, time()).prop_map(|(key, at)| Record::Marker(key, at)),
        snapshot().prop_map(Record::Snapshot),
        receipt().prop_map(Record::Receipt),
        fact().prop_map(Record::Fact),
        (id(UserId::new), time()).prop_map(|(user, since)| Record::OptOut(user, since)),
        (id(GuildId::new), settings()).prop_map(|(guild, set)| Record::Settings(guild, set)),
        (agent(), time()).prop_map(|(agent, created)| Record::Agent(agent, created)),
        (id(GuildId::new), time()).prop_map(|(guild, at)| Record::Departure(guild, at)),
    ]
}

proptest! {
    #[test]
    fn a_line_loses_nothing(record in record()) {
        let line = record.to_line();
        prop_assert!(line.starts_with(r#"{"kind":""#) && !line.contains('\n'), "{}", line);
        prop_assert_eq!(Record::from_line(&line).unwrap(), record);
    }
}

#[track_caller]
fn check_error(line: &str, expected: &str) {
    assert_eq!(Record::from_line(line).unwrap_err().to_string(), expected);
}

#[test]
fn an_error_names_the_field_and_holds_no_text() {
    check_error("{", "no valid JSON at line 1 column 1");
    check_error("[]", "`the text` is not an object");
    check_error("{}", "`kind` is missing");
    check_error(r#"{"kind":"secret"}"#, "`kind` is not a kind of entry");
    check_error(r#"{"kind":"opt_out","user":"7"}"#, "`since` is missing");
    check_error(
        r#"{"kind":"opt_out","user":"secret","since":1}"#,
        "`user` is not a Discord id",
    );
    check_error(
        r#"{"kind":"snapshot","messages":[{"role":"secret"}]}"#,
        "`session_id` is missing",
    );
}

#[test]
fn unknown_fields_and_times_as_numbers_are_accepted() {
    let line = r#"{"kind":"opt_out","user":7,"since":1000,"later":[1]}"#;
    let expected = Record::OptOut(UserId::new(7), UnixMillis(1000));
    assert_eq!(Record::from_line(line).unwrap(), expected);
}
