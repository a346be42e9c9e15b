//! Exported channels: one, several, or parts of one.

use std::cell::Cell;

use clew::archive::{ReadOptions, Recording};
use clew_context::model::{
    ChannelId, ChannelKind, GuildId, Message, MessageId, MessageKind, ReferenceKind, Referenced,
    UserId,
};

use super::{GENERAL, POST, THREAD, at, contents, fixture, message, world};

#[test]
fn several_files_make_one_recording() {
    let world = world(&[
        "thread.json",
        "general.json",
        "forum_post.json",
        "direct.json",
    ]);
    let thread = world.channel(THREAD).unwrap();
    assert_eq!(thread.kind, ChannelKind::PublicThread);
    assert_eq!(thread.name, "Pump talk");
    assert_eq!(thread.parent, Some(GENERAL));
    assert_eq!(thread.parent_kind, Some(ChannelKind::Text));
    assert_eq!(thread.parent_name.as_deref(), Some("general"));
    assert!(thread.thread.is_some());
    let post = world.channel(POST).unwrap();
    assert_eq!(post.parent, Some(ChannelId::new(710)));
    assert_eq!(post.parent_kind, Some(ChannelKind::Forum));
    assert_eq!(post.parent_name.as_deref(), Some("questions"));
    let direct = world.channel(ChannelId::new(720)).unwrap();
    assert_eq!((direct.kind, direct.guild), (ChannelKind::Dm, None));
    assert_eq!((direct.name.as_str(), direct.parent), ("", None));
    let general = world.channel(GENERAL).unwrap();
    assert_eq!(general.guild, Some(GuildId::new(800)));
    assert_eq!(world.channels().count(), 4);
    assert_eq!(world.channel_of(at(70)), Some(THREAD));
    assert_eq!(world.report().messages, 17);
    assert_eq!(world.report().files, 4);
}

#[test]
fn a_thread_without_its_parent_still_knows_its_starter() {
    let thread = world(&["thread.json"]);
    let thread = thread.channel(THREAD).unwrap();
    assert_eq!(thread.parent_kind, Some(ChannelKind::Text));
    assert_eq!(thread.parent_name.as_deref(), Some("general"));
}

#[test]
fn a_type_21_message_gets_its_starter_from_the_parent() {
    let world = world(&["thread.json", "general.json"]);
    let first = world.page_after(THREAD, MessageId::new(1), 1).unwrap();
    let mut first = first.into_iter().next().unwrap();
    assert_eq!(first.kind, MessageKind::ThreadStarter);
    assert_eq!(first.referenced, Referenced::Absent);
    world.carry(&mut first).unwrap();
    let starter = first.referenced_message().unwrap();
    assert_eq!(starter.id, THREAD.starter());
    let text = "Is anybody on the **pump** today? `Vec<String>` & a < b";
    assert_eq!(&*starter.content, text);
    // A system message of another type gets no content from what it points at.
    let mut notice = message(&world, GENERAL, at(61));
    assert_eq!(notice.kind, MessageKind::System(18));
    world.carry(&mut notice).unwrap();
    assert_eq!(notice.referenced, Referenced::Absent);
}

#[test]
fn pages_run_from_old_to_new_around_their_anchor() {
    let world = world(&["general.json"]);
    let ids: Vec<MessageId> = world.ids(GENERAL).collect();
    assert!(ids.is_sorted());
    let page = world.page_before(GENERAL, at(125), 2).unwrap();
    assert_eq!(
        page.iter().map(|m| m.id).collect::<Vec<_>>(),
        [at(90), at(120)]
    );
    let page = world.page_after(GENERAL, at(125), 100).unwrap();
    assert_eq!(page.first().unwrap().id, at(150));
    assert_eq!(page.len(), 3);
    let nowhere = ChannelId::new(1);
    assert!(world.page_before(nowhere, at(125), 2).unwrap().is_empty());
    assert_eq!(world.message(nowhere, at(0)).unwrap(), None);
    assert_eq!(world.message(GENERAL, at(1)).unwrap(), None);
}

#[test]
fn names_bots_and_webhooks_are_told_apart() {
    let world = world(&["general.json"]);
    let of = |seconds| message(&world, GENERAL, at(seconds)).author;
    let cases = [
        (0, "Maya R.", false, false),
        (60, "Tomás", false, false),
        (90, "Alerts", true, true),
        (125, "Clew", true, false),
    ];
    for (seconds, name, bot, webhook) in cases {
        let author = of(seconds);
        assert_eq!(
            (&*author.name, author.bot, author.webhook),
            (name, bot, webhook)
        );
    }
    let people: Vec<(&str, bool, u64)> = world
        .participants()
        .map(|one| (&*one.name, one.bot, one.messages))
        .collect();
    let expected = [
        ("Maya R.", false, 2),
        ("Tomás", false, 3),
        ("Ines", false, 3),
        ("Clew", true, 1),
        ("Alerts", true, 1),
    ];
    assert_eq!(people, expected);
}

#[test]
fn a_reply_has_its_mentions_and_its_reference() {
    let world = world(&["general.json"]);
    let mut reply = message(&world, GENERAL, at(120));
    assert_eq!(reply.kind, MessageKind::Reply);
    assert_eq!(&*reply.content, "<@900> what is this alert?");
    assert_eq!(reply.mentions[0].id, UserId::new(900));
    assert_eq!(&*reply.mentions[0].name, "Clew");
    assert_eq!(reply.replies_to(), Some(at(90)));
    world.carry(&mut reply).unwrap();
    let embed = &reply
        .referenced_message()
        .unwrap()
        .extras
        .as_ref()
        .unwrap()
        .embeds[0];
    assert_eq!(embed.title.as_deref(), Some("Pressure low"));
    assert_eq!(embed.description.as_deref(), Some("Line 3 at 1.2 bar"));
    assert_eq!(embed.author.as_deref(), Some("Sensors"));
    assert_eq!(embed.footer.as_deref(), Some("rev 4"));
    assert_eq!(&*embed.fields[0].value, "north");
    assert!(embed.media);
    // The text does not name whom the reply pings.
    let answer = message(&world, GENERAL, at(125));
    assert_eq!(&*answer.content, "Line 3 lost pressure at 10:01.");
    assert_eq!(answer.mentions.len(), 1);
    assert_eq!(answer.replies_to(), Some(at(120)));
}

#[test]
fn everything_beside_the_text_is_read() {
    let world = world(&["general.json"]);
    let forward = message(&world, GENERAL, at(150));
    let reference = forward.reference.as_ref().unwrap();
    assert_eq!(reference.kind, ReferenceKind::Forward);
    assert_eq!(forward.replies_to(), None);
    let snapshot = &forward.extras.as_ref().unwrap().snapshots[0];
    assert_eq!(&*snapshot.content, "Valve list is in the binder");
    assert_eq!(snapshot.timestamp, Some(at(5).created()));
    let file = &snapshot.extras.as_ref().unwrap().attachments[0];
    assert_eq!((&*file.filename, file.size), ("valves.txt", 421));

    let rich = message(&world, GENERAL, at(180));
    assert_eq!(rich.edited, Some(at(200).created()));
    assert_eq!(rich.timestamp, at(180).created());
    let extras = rich.extras.unwrap();
    assert_eq!(&*extras.attachments[0].filename, "log.txt");
    assert_eq!(&*extras.stickers[0], "Thumbs");
    assert_eq!(&*extras.component_text[0], "Open log");
    let poll = extras.poll.unwrap();
    assert_eq!(&*poll.question, "Restart?");
    assert_eq!(poll.answers[0], ("yes".into(), Some(3)));
    assert_eq!(poll.answers[1], ("no".into(), None));
    let command = message(&world, GENERAL, at(210));
    assert_eq!(command.kind, MessageKind::ChatInputCommand);
}

#[test]
fn parts_of_a_channel_are_merged_in_the_order_of_their_ids() {
    let watch = ChannelId::new(730);
    let world = world(&["parts/newest_first.json", "parts/older.json"]);
    let streamed: Vec<Message> = world.messages(watch).map(Result::unwrap).collect();
    let expected = [
        "watch 4000",
        "watch 4001",
        "watch 4002",
        "watch 4003, as first exported",
        "watch 4004",
        "watch 4005",
    ];
    assert_eq!(contents(&streamed), expected);
    assert_eq!(world.report().duplicates, 1);
    let paged = world.page_before(watch, at(9999), 100).unwrap();
    assert_eq!(paged, streamed);
}

#[test]
fn of_a_message_in_two_files_the_last_counts() {
    let watch = ChannelId::new(730);
    let world = world(&["parts/older.json", "parts/newest_first.json"]);
    assert_eq!(&*message(&world, watch, at(4003)).content, "watch 4003");
}

#[test]
fn parts_that_cannot_be_read_are_skipped_alone() {
    let world = world(&["damaged/odd_parts.json"]);
    let odd = message(&world, GENERAL, at(5000));
    assert_eq!(&*odd.content, "");
    let mut unread = odd.extras.unwrap().unread;
    unread.sort_unstable();
    assert_eq!(unread, ["content", "embeds", "mentions"]);
}

#[test]
fn progress_runs_to_the_end_over_all_files() {
    let paths = [fixture("general.json"), fixture("thread.json")];
    let total: u64 = paths
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    let last = Cell::new((0, 0));
    let progress = |done, all| {
        assert!(done >= last.get().0);
        last.set((done, all));
    };
    let options = ReadOptions {
        lenient: false,
        progress: Some(&progress),
    };
    Recording::open(&paths, options).unwrap();
    assert_eq!(last.get(), (total, total));
}

#[test]
fn a_world_can_be_shared_between_tasks() {
    let world = world(&["general.json", "thread.json"]);
    let start = MessageId::new(1);
    let read = || [GENERAL, THREAD].map(|channel| world.page_after(channel, start, 100).unwrap());
    let alone = read();
    assert!(alone.iter().all(|page| page.len() > 1));
    let many = || (0..50).map(|_| read()).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..8).map(|_| scope.spawn(many)).collect();
        for task in tasks {
            assert!(task.join().unwrap().iter().all(|pages| *pages == alone));
        }
    });
}
