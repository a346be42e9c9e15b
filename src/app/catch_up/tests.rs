//! What is looked for, in which order, and when it is over.

use clew_context::discord::convert;
use clew_discord::session::ShardProgress;

use super::*;

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const MINUTE: i64 = 60_000;
const SETTINGS: CatchUpConfig = CatchUpConfig {
    within: Duration::from_mins(15),
    max_fetches: 5,
};

fn ago(minutes: i64) -> UnixMillis {
    UnixMillis(NOW.0 - minutes * MINUTE)
}

fn guild(id: u64) -> GuildId {
    GuildId::new(id)
}

/// After a process that had heard everything until then.
fn after(whole_until: UnixMillis) -> CatchUp {
    CatchUp::new(SETTINGS, Some(whole_until))
}

/// The event of a fresh session.
fn ready() -> Mark {
    ShardProgress::default().began(0, 1, NOW)
}

fn begin(catch_up: &mut CatchUp, guilds: &[u64], at: Instant) -> bool {
    let guilds: Vec<GuildId> = guilds.iter().copied().map(GuildId::new).collect();
    catch_up.identified(ready(), None, &guilds, [], (NOW, at))
}

fn look(catch_up: &mut CatchUp, of: u64, channels: &[u64], since: UnixMillis) {
    let channels = channels.iter().map(|id| (ChannelId::new(*id), None));
    catch_up.look_at(Some(guild(of)), channels, since);
}

/// The channels of the pages that are read now.
fn pages(catch_up: &mut CatchUp) -> Vec<u64> {
    let looks = std::iter::from_fn(|| catch_up.next(Instant::now()));
    looks.map(|look| look.channel.get()).collect()
}

fn question(minutes: i64) -> Message {
    let id = MessageId::first_at(ago(minutes));
    let text = format!(
        r#"{{"id":"{id}","channel_id":"7","type":0,"content":"","author":{{"id":"9","username":"ada"}}}}"#
    );
    convert::message(&text).unwrap()
}

fn asked(catch_up: &mut CatchUp) -> Vec<MessageId> {
    catch_up.questions().iter().map(|one| one.id).collect()
}

#[test]
fn a_round_begins_after_an_earlier_session_only() {
    let at = Instant::now();
    let mut fresh = CatchUp::new(SETTINGS, None);
    let mut lost = |since| fresh.identified(ready(), since, &[guild(1)], [], (NOW, at));
    assert!(!lost(Some(ago(1))), "there was no connection yet");
    assert!(lost(Some(ago(1))));
    let off = CatchUpConfig {
        within: Duration::ZERO,
        ..SETTINGS
    };
    assert!(!begin(&mut CatchUp::new(off, Some(ago(1))), &[1], at));
    let mut resumed = after(ago(1));
    assert!(resumed.resumed(0));
    assert!(!begin(&mut resumed, &[1], at));
    assert!(resumed.identified(ready(), Some(ago(3)), &[guild(1)], [], (NOW, at)));
    assert_eq!(resumed.guild_came(0, guild(1), None, NOW), Some(ago(5)));
    assert_eq!(resumed.guild_came(0, guild(1), None, NOW), None);
    let mut twice = after(ago(1));
    assert!(begin(&mut twice, &[1], at));
    assert!(begin(&mut twice, &[1], at), "READY may come twice");
    assert_eq!(twice.guild_came(0, guild(1), None, NOW), Some(ago(3)));
}

/// What a round had not looked at, and what shards of another number had not heard.
#[test]
fn another_number_of_shards_makes_up_for_what_there_was_to_make_up_for() {
    let at = Instant::now();
    let mut catch_up = CatchUp::new(SETTINGS, None);
    assert!(catch_up.resumed(0));
    let mut shard = |since, shards| {
        catch_up.renumbered(shards);
        catch_up.identified(ready(), since, &[guild(1)], [], (NOW, at))
    };
    assert!(!shard(None, 2));
    assert!(shard(Some(ago(1)), 3));
    assert!(shard(None, 2), "the round is not over");
    assert_eq!(catch_up.guild_came(0, guild(1), None, NOW), Some(ago(5)));
}

#[test]
fn what_is_older_than_twice_the_time_is_not_looked_for() {
    let mut catch_up = after(ago(300));
    begin(&mut catch_up, &[1], Instant::now());
    assert_eq!(catch_up.guild_came(0, guild(1), None, NOW), Some(ago(30)));
    assert_eq!(catch_up.direct_since(), Some(ago(30)));
}

#[test]
fn a_server_is_looked_at_after_its_outage() {
    let mut catch_up = CatchUp::new(SETTINGS, None);
    assert_eq!(
        catch_up.guild_came(0, guild(1), Some(ago(4)), NOW),
        Some(ago(6))
    );
    assert_eq!(catch_up.guild_came(0, guild(1), None, NOW), None);
}

#[test]
fn servers_take_turns_and_no_more_is_read_than_allowed() {
    let at = Instant::now();
    let mut catch_up = after(ago(1));
    begin(&mut catch_up, &[], at);
    look(&mut catch_up, 1, &[11, 12, 13, 14], ago(1));
    look(&mut catch_up, 2, &[21, 22], ago(1));
    assert_eq!(pages(&mut catch_up), [11, 21, 12, 22]);
    catch_up.ended();
    let long = Look {
        guild: Some(guild(2)),
        channel: ChannelId::new(22),
        after: MessageId::new(5),
        newest: None,
    };
    catch_up.goes_on(long, MessageId::new(9));
    assert_eq!(pages(&mut catch_up), [13]);
    for _ in 0..4 {
        catch_up.ended();
    }
    assert_eq!(pages(&mut catch_up), [0; 0]);
    let (sessions, counts) = catch_up.over(at, |_| false).unwrap();
    assert_eq!(sessions[0].mark, ready());
    assert_eq!((counts.channels, counts.fetches, counts.unread), (6, 5, 2));
    assert!(!catch_up.is_on());
}

#[test]
fn questions_without_an_answer_are_asked_in_order_once_all_is_read() {
    let mut catch_up = after(ago(20));
    begin(&mut catch_up, &[], Instant::now());
    look(&mut catch_up, 1, &[11], ago(20));
    assert_eq!(pages(&mut catch_up), [11]);
    let [late, early, answered, old] = [1, 9, 5, 16].map(question);
    for one in [&late, &early, &answered, &old] {
        catch_up.found(one.clone(), NOW);
    }
    catch_up.answered(answered.id);
    assert_eq!(asked(&mut catch_up), []);
    catch_up.ended();
    assert_eq!(asked(&mut catch_up), [early.id, late.id]);
    assert_eq!(asked(&mut catch_up), []);
    assert!(catch_up.take(early.id, NOW).is_some());
    assert!(catch_up.take(early.id, NOW).is_none());
    catch_up.asked(early.id);
    catch_up.turn_ended(early.id, true);
    let (_, counts) = catch_up.over(Instant::now(), |_| false).unwrap();
    assert_eq!(
        (counts.questions, counts.answered, counts.too_old),
        (1, 1, 1)
    );
}

#[test]
fn what_was_deleted_or_edited_meanwhile_counts() {
    let mut catch_up = after(ago(20));
    begin(&mut catch_up, &[], Instant::now());
    let [gone, edited, edited_before] = [3, 2, 1].map(question);
    let at = |text: &str, time: Option<UnixMillis>, of: &Message| Message {
        content: text.into(),
        edited: time,
        ..of.clone()
    };
    catch_up.gone(&[gone.id]);
    catch_up.edited(&at("back", Some(ago(1)), &gone));
    catch_up.edited(&at("new", Some(ago(1)), &edited));
    catch_up.edited(&at("old", Some(ago(2)), &edited_before));
    catch_up.found(gone.clone(), NOW);
    catch_up.found(edited.clone(), NOW);
    catch_up.found(at("newest", Some(ago(1)), &edited_before), NOW);
    assert_eq!(asked(&mut catch_up).len(), 3);
    assert_eq!(catch_up.take(gone.id, NOW), None);
    let text = |message: Option<Message>| message.unwrap().content;
    assert_eq!(&*text(catch_up.take(edited.id, NOW)), "new");
    assert_eq!(&*text(catch_up.take(edited_before.id, NOW)), "newest");
}

#[test]
fn a_round_lasts_until_its_servers_came_and_its_questions_are_over() {
    let at = Instant::now();
    let mut catch_up = after(ago(1));
    let before = MessageId::new(5);
    catch_up.identified(ready(), None, &[guild(1)], [before], (NOW, at));
    assert!(catch_up.over(at, |_| true).is_none());
    assert!(catch_up.over(at, |id| id != before).is_none());
    assert_eq!(catch_up.guild_came(0, guild(1), None, NOW), Some(ago(3)));
    catch_up.began();
    assert!(catch_up.over(at, |_| false).is_none());
    catch_up.ended();
    assert!(catch_up.over(at, |_| false).is_some());

    let mut catch_up = after(ago(1));
    begin(&mut catch_up, &[1, 2], at);
    assert!(catch_up.guild_came(0, guild(2), None, NOW).is_some());
    look(&mut catch_up, 2, &[21], ago(1));
    assert_eq!(catch_up.next(at), None, "all servers have their turn");
    assert!(catch_up.next(at + GATHERING).is_some());
    catch_up.ended();
    assert!(catch_up.over(at + GATHERING, |_| false).is_none());
    let (shards, _) = catch_up.over(at + PATIENCE, |_| false).unwrap();
    assert_eq!(shards[0].guilds, [guild(1)].into());
    assert_eq!(shards[0].since, ago(3));
}

#[test]
fn nobody_takes_the_room_of_others() {
    let mut catch_up = after(ago(20));
    begin(&mut catch_up, &[], Instant::now());
    for at in 0..2 * MOST_OF_PERSON as u64 {
        let mut one = question(9);
        one.id = MessageId::new(one.id.get() + at);
        catch_up.found(one, NOW);
    }
    let mut other = question(1);
    other.author.id = UserId::new(8);
    catch_up.found(other, NOW);
    assert_eq!(asked(&mut catch_up).len(), MOST_OF_PERSON + 1);
}
