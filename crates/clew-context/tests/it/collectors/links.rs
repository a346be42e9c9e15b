//! Links: what is brought from where they lead, what that costs, and that what may not
//! be read reads like what does not exist.

use clew_context::collect::{FetchError, NegativeCache};
use clew_context::engine::turn::Collected;
use clew_context::model::{
    Access, Channel, ChannelId, ChannelKind, Fallback, GuildId, Limits, LinkContext, Message,
    OptedOut, Readers, Rights, Stage, ThreadState,
};
use tokio::time::Duration;

use crate::support::build::{
    ADA, BOB, DICE, EVE, GENERAL, GUILD, Shape, asked, id, post, private_thread, said,
    text_channel, thread, thread_id,
};
use crate::support::world::{Start, World, failures, outline, window};

/// Where the linked messages are.
const NEWS: ChannelId = ChannelId::new(700);

fn news() -> Channel {
    Channel {
        id: NEWS,
        name: "news".to_owned(),
        ..text_channel()
    }
}

fn link(guild: &str, channel: ChannelId, message: Option<u64>) -> String {
    let message = message.map_or_else(String::new, |n| format!("/{}", id(n)));
    format!("https://discord.com/channels/{guild}/{channel}{message}")
}

fn to(channel: ChannelId, n: u64) -> String {
    link(&GUILD.to_string(), channel, Some(n))
}

fn within(n: u64, text: &str) -> Message {
    said(n, BOB, text).into_channel(NEWS)
}

/// Messages 1 to 9 of a channel that `readers` may read, and a question in another.
fn world(readers: Readers) -> World {
    let mut world = World::of((1..10).map(|n| within(n, &format!("news {n}"))));
    world.known.insert(NEWS, (news(), readers));
    world
}

/// REST calls made for links.
fn link_calls(collected: &Collected) -> usize {
    let mut stages = collected.stages.iter();
    let links = stages.find(|one| one.stage == Stage::Link);
    links.map_or(0, |one| one.fetches)
}

fn here() -> Start {
    Start::within(text_channel())
}

/// Expects what a question in [`GENERAL`] gets, and the calls.
#[track_caller]
fn check(world: &World, question: &str, shown: &str, calls: &[&str]) {
    check_from(&here(), world, &asked(20, EVE, question), shown, calls);
}

#[track_caller]
fn check_from(start: &Start, world: &World, trigger: &Message, shown: &str, calls: &[&str]) {
    let collected = start.collected(world, trigger);
    assert_eq!(outline(&start.prepare(&collected).block), shown);
    assert_eq!(world.calls(), calls);
}

fn block(start: &Start, collected: &Collected) -> String {
    let prompt = start.prepare(collected).prompt;
    let texts = prompt.messages.iter().map(|one| one.content().to_owned());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_linked_message_comes_with_those_around_it() {
    let world = world(Readers::Everybody);
    let question = format!("is {} still true?", to(NEWS, 5));
    check(&world, &question, "| 2 3 4 l5 6", &["page around 5"]);
    let collected = here().collected(&world, &asked(20, EVE, &question));
    let text = block(&here(), &collected);
    assert!(
        text.contains(
            "Linked message, #news, 2026-01-02 10:00 UTC:\n2026-01-02\n10:00 Bob: news 2\n"
        ),
        "{text}"
    );
    assert!(text.contains("10:00 Bob [linked]: news 5\n"), "{text}");
    assert_eq!(link_calls(&collected), 1);
}

#[test]
fn link_context_says_how_many_around_it() {
    for (before, after, shown) in [
        (0, 0, "| l5"),
        (1, 0, "| 4 l5"),
        (10, 10, "| 1 2 3 4 l5 6 7 8 9"),
    ] {
        let limits = Limits {
            link_context: LinkContext { before, after },
            ..Limits::default()
        };
        let start = Start { limits, ..here() };
        let trigger = asked(20, EVE, &to(NEWS, 5));
        check_from(
            &start,
            &world(Readers::Everybody),
            &trigger,
            shown,
            &["page around 5"],
        );
    }
}

#[test]
fn messages_of_apps_around_it_are_passed_over() {
    let mut world = world(Readers::Everybody);
    world.add([
        said(3, DICE, "42").into_channel(NEWS),
        said(4, DICE, "1").into_channel(NEWS),
    ]);
    check(&world, &to(NEWS, 6), "| 1 2 5 l6 7", &["page around 6"]);
    check(&world, &to(NEWS, 4), "| 1 2 l4 5", &["page around 4"]);
}

#[test]
fn a_link_in_the_message_pointed_at_counts_after_the_triggers() {
    let world = world(Readers::Everybody);
    let about = said(15, ADA, &format!("see {}", to(NEWS, 3)));
    let trigger = asked(20, EVE, &format!("and {}?", to(NEWS, 8)));
    let trigger = trigger.replying(15).carrying(about);
    let calls = ["page around 8", "page around 3"];
    check_from(
        &here(),
        &world,
        &trigger,
        "p15 | 5 6 7 l8 9 | 1 2 l3 4",
        &calls,
    );
}

#[test]
fn three_links_are_followed_each_target_once() {
    let mut world = world(Readers::Everybody);
    let of = |n| to(NEWS, n);
    let same = of(5).replace("discord.com", "ptb.discord.com");
    let question = format!("{} {same} {} <{}> {}", of(5), of(1), of(9), of(7));
    let calls = ["page around 5", "page around 1", "page around 9"];
    let limits = Limits {
        link_context: LinkContext {
            before: 1,
            after: 0,
        },
        ..Limits::default()
    };
    let start = Start { limits, ..here() };
    check_from(
        &start,
        &world,
        &asked(20, EVE, &question),
        "| 4 l5 | l1 | 8 l9",
        &calls,
    );
    // Messages that two of them would show are shown once.
    world.known.insert(NEWS, (news(), Readers::Everybody));
    check(
        &world,
        &format!("{} {}", of(4), of(5)),
        "| 1 2 3 l4 | l5 6",
        &calls_of(&[4, 5]),
    );
}

fn calls_of(around: &[u64]) -> Vec<&'static str> {
    let name = |n: &u64| &*format!("page around {n}").leak();
    around.iter().map(name).collect()
}

#[test]
fn a_message_of_the_own_channel_is_labelled_where_it_stands() {
    let all: Vec<Message> = (1..15).map(|n| said(n, BOB, "x")).collect();
    let world = World::of(all);
    check(&world, &to(GENERAL, 5), "| 2 3 4 l5 6", &["page around 5"]);
    let inside = |n: u64| said(n, BOB, "x").into_channel(thread_id(0));
    let start = Start::within(private_thread(0));
    let trigger = asked(20, EVE, &to(thread_id(0), 3)).into_channel(thread_id(0));
    let world = World::of((1..5).map(inside).chain([trigger.clone()]));
    let watched: Vec<Message> = (1..5).map(inside).chain([trigger.clone()]).collect();
    let start = start.watching(&watched, true);
    check_from(&start, &world, &trigger, "s1 2 l3 4", &[]);
}

#[test]
fn what_the_window_holds_is_not_fetched() {
    let mut world = world(Readers::Everybody);
    let mut held = window();
    for n in 4..10 {
        held.created(within(n, "held"));
    }
    world.views.insert(NEWS, held.view(NEWS));
    check(&world, &to(NEWS, 8), "| 5 6 7 l8 9", &[]);
    // Before message 4 the window knows nothing.
    check(&world, &to(NEWS, 5), "| 2 3 4 l5 6", &["page around 5"]);
    held.deleted(NEWS, &[id(8)]);
    world.views.insert(NEWS, held.view(NEWS));
    check(&world, &to(NEWS, 8), "| deleted", &[]);
}

#[test]
fn a_linked_thread_comes_with_title_starter_and_newest_messages() {
    let inside = |n: u64| said(n, BOB, "x").into_channel(thread_id(2));
    let mut world = World::of((3..12).map(inside).chain([said(2, ADA, "start")]));
    let known = (thread(2), Readers::Everybody);
    world.known.insert(thread_id(2), known);
    let calls = ["page before 20", "message 2"];
    let of = link(&GUILD.to_string(), thread_id(2), None);
    for question in [of, format!("<#{}>", thread_id(2))] {
        check(&world, &question, "| s2 ..0.. 7 8 9 10 11", &calls);
    }
    let collected = here().collected(&world, &asked(20, EVE, &format!("<#{}>", thread_id(2))));
    let text = block(&here(), &collected);
    let heading = "Linked, Thread \"Release day\" in #general, 2026-01-02 10:00 UTC:\n";
    assert!(text.contains(heading), "{text}");
    assert!(text.contains("Ada [first message]: start\n"), "{text}");
    world.calls();

    let inside = |n: u64| said(n, BOB, "x").into_channel(thread_id(2));
    let mut world = World::of([inside(2), inside(3)]);
    world
        .known
        .insert(thread_id(2), (post(2), Readers::Everybody));
    let collected = here().collected(&world, &asked(20, EVE, &format!("<#{}>", thread_id(2))));
    assert_eq!(outline(&here().prepare(&collected).block), "| s2 3");
    let text = block(&here(), &collected);
    let heading = "Linked, Forum post \"App crashes on start\" in #help · tags: bug, android, ";
    assert!(text.contains(heading), "{text}");
}

/// The one call that is left brings the page, and that shows the post's first message.
#[test]
fn a_linked_threads_starter_that_its_page_shows_is_not_missing() {
    let inside = |n: u64| said(n, BOB, "x").into_channel(thread_id(2));
    let mut world = World::of([inside(2), inside(3)]);
    let known = (post(2), Readers::Everybody);
    world.known.insert(thread_id(2), known);
    let mut start = here();
    start.limits.max_fetches = 1;
    let collected = start.collected(&world, &asked(20, EVE, &format!("<#{}>", thread_id(2))));
    assert_eq!(outline(&start.prepare(&collected).block), "| s2 3");
    assert_eq!(failures(&collected), [""; 0]);
}

#[test]
fn a_linked_thread_without_starter_begins_with_its_first_message() {
    let inside = |n: u64| said(n, BOB, "x").into_channel(thread_id(2));
    let mut world = World::of((3..40).map(inside));
    world
        .known
        .insert(thread_id(2), (thread(2), Readers::Everybody));
    let question = asked(50, EVE, &format!("<#{}>", thread_id(2)));
    let calls = ["page before 50", "message 2", "page after 2 limit 1"];
    check_from(
        &here(),
        &world,
        &question,
        "| s3 ..0.. 35 36 37 38 39",
        &calls,
    );
}

#[test]
fn an_archived_thread_is_looked_up() {
    let inside = |n: u64| said(n, BOB, "x").into_channel(thread_id(2));
    let mut world = World::of((2..4).map(inside)).with_channel(post(2));
    let of = link(&GUILD.to_string(), thread_id(2), None);
    world.of_unknown = Some(Readers::Everybody);
    check(
        &world,
        &of,
        "| s2 3",
        &["channel", "page before 20", "message 2"],
    );
    world.of_unknown = Some(Readers::AskerOnly);
    check(&world, &of, "closed", &["channel"]);
    // A mention of what the gateway did not tell of is not looked up.
    check(&world, &format!("<#{}>", thread_id(2)), "", &[]);
}

/// An ordinary channel is named all the time, and nothing of it is asked for.
#[test]
fn ordinary_channels_bring_nothing() {
    let world = world(Readers::Everybody);
    check(&world, &format!("post it in <#{NEWS}>"), "", &[]);
    check(&world, &link(&GUILD.to_string(), NEWS, None), "", &[]);
    check(&world, &link(&GUILD.to_string(), GENERAL, None), "", &[]);
    let other = World::default();
    check(&other, &format!("who reads <#{NEWS}>?"), "", &[]);
}

/// Everything that leads to a channel that not everybody here may read.
#[test]
fn closed_links_read_the_same_whether_they_exist_or_not() {
    let elsewhere = Channel {
        guild: Some(GuildId::new(78)),
        ..news()
    };
    let foreign = |mut world: World| {
        world
            .known
            .insert(NEWS, (elsewhere.clone(), Readers::Everybody));
        world
    };
    let guild = GUILD.to_string();
    let (here_and, there) = (link(&guild, NEWS, Some(5)), link("78", NEWS, Some(5)));
    let direct = link("@me", NEWS, Some(5));
    let secret = Channel {
        name: "kumquat".to_owned(),
        ..private_thread(2)
    };
    let mut private = World::default();
    private
        .known
        .insert(NEWS, (Channel { id: NEWS, ..secret }, Readers::Nobody));
    let missing = World::default().with_channel(Channel::new(ChannelId::new(1), ChannelKind::Text));
    let cases = [
        (world(Readers::AskerOnly), &here_and),
        (world(Readers::Nobody), &here_and),
        (private, &here_and),
        (missing, &here_and),
        (foreign(world(Readers::Everybody)), &here_and),
        (foreign(world(Readers::Everybody)), &there),
        (world(Readers::Everybody), &there),
        (world(Readers::Everybody), &direct),
        (World::default(), &there),
        (World::default(), &direct),
        (World::default(), &here_and),
    ];
    let mut told: Option<(String, Vec<String>)> = None;
    for (at, (world, link)) in cases.into_iter().enumerate() {
        let trigger = asked(20, EVE, link);
        let collected = here().collected(&world, &trigger);
        // What a link says of its server is all that the calls depend on.
        let calls = if link == &here_and {
            &["channel"][..]
        } else {
            &[]
        };
        assert_eq!(world.calls(), calls, "{at}");
        assert!(collected.links.closed && collected.links.targets.is_empty());
        assert!(collected.window_update.single.is_empty());
        let text = block(&here(), &collected).replace(&**link, "LINK");
        let this = (text, failures(&collected));
        assert!(
            this.0
                .contains("(a link leads to what cannot be shown here)")
        );
        assert_eq!(this.1, ["link:forbidden"]);
        assert_eq!(told.get_or_insert_with(|| this.clone()), &this, "{at}");
    }
}

#[test]
fn an_asker_without_the_history_gets_no_link_into_it() {
    let world = World::of((1..9).map(|n| said(n, BOB, "kumquat")));
    let start = Start {
        asker_access: Access::Allowed(Rights {
            read_history: false,
            send: true,
            react: true,
            attach: true,
            open_threads: true,
        }),
        ..here()
    };
    check_from(
        &start,
        &world,
        &asked(20, EVE, &to(GENERAL, 5)),
        "closed",
        &[],
    );
}

#[test]
fn links_within_a_direct_message_are_of_that_one_only() {
    let world = world(Readers::Everybody);
    let dm = ChannelId::new(800);
    let said = |n: u64| {
        said(n, EVE, "x")
            .into_channel(dm)
            .shaped(|one| one.guild = None)
    };
    let mut world = world;
    world.add((1..6).map(said));
    let start = Start {
        kind: Some(ChannelKind::Dm),
        ..Start::default()
    };
    let ask = |text: &str| {
        let trigger = asked(20, EVE, text).into_channel(dm);
        trigger.shaped(|one| one.guild = None)
    };
    let own = ask(&link("@me", dm, Some(3)));
    check_from(&start, &world, &own, "| 1 2 l3 4", &["page around 3"]);
    let collected = start.collected(&world, &own);
    assert!(block(&start, &collected).contains("Linked message, this conversation, 2026-"));
    world.calls();
    for closed in [link("@me", NEWS, Some(3)), to(NEWS, 3), to(dm, 3)] {
        check_from(&start, &world, &ask(&closed), "closed", &[]);
    }
}

#[test]
fn a_deleted_or_refused_target_is_marked() {
    let mut broken = world(Readers::Everybody);
    broken.remove(NEWS, id(5));
    check(&broken, &to(NEWS, 5), "| deleted", &["page around 5"]);
    let mut refused = world(Readers::Everybody);
    refused.hidden.insert(NEWS);
    check(&refused, &to(NEWS, 5), "| unavailable", &["page around 5"]);
    let mut barred = world(Readers::Everybody);
    barred.barred.insert(NEWS);
    check(&barred, &to(NEWS, 5), "| unavailable", &[]);
    let error = FetchError::lasting(Fallback::Unavailable);
    let failing = world(Readers::Everybody).failing("page", error);
    let collected = here().collected(&failing, &asked(20, EVE, &to(NEWS, 5)));
    assert_eq!(failures(&collected), ["link:unavailable"]);
    let mut unreadable = world(Readers::Everybody);
    unreadable.unreadable.insert(id(5));
    check(
        &unreadable,
        &to(NEWS, 5),
        "| unavailable",
        &["page around 5"],
    );
}

#[test]
fn links_come_last_within_the_budget_and_the_deadline() {
    let question = format!("{} {} {}", to(NEWS, 2), to(NEWS, 5), to(NEWS, 9));
    let limits = Limits {
        max_fetches: 3,
        ..Limits::default()
    };
    let mut world = world(Readers::Everybody);
    world.add([said(10, ADA, "root"), said(11, BOB, "reply").replying(10)]);
    let trigger = asked(20, EVE, &question).replying(11);
    let start = Start { limits, ..here() };
    let collected = start.collected(&world, &trigger);
    assert_eq!(
        world.calls(),
        ["page to 11", "page around 2", "page around 5"]
    );
    let shown = outline(&start.prepare(&collected).block);
    assert_eq!(shown, "10 p11 | 1 l2 3 | 4 l5 6 | unavailable");
    assert_eq!(failures(&collected), ["link:fetch_budget"]);
    assert_eq!(link_calls(&collected), 2);

    let mut slow = world;
    slow.latency = Duration::from_secs(3);
    let start = Start {
        limits: Limits::default(),
        ..here()
    };
    let collected = start.collected(&slow, &trigger);
    assert_eq!(failures(&collected), ["link:timeout"]);
    assert!(outline(&start.prepare(&collected).block).starts_with("10 p11 | unavailable"));
}

/// A question without links asks for nothing and gets the whole block.
#[test]
fn at_most_half_of_the_block_is_for_links() {
    let long = "x".repeat(1_900);
    let mut world = World::of((1..10).map(|n| within(n, &long)));
    world.known.insert(NEWS, (news(), Readers::Everybody));
    let mine: Vec<Message> = (1..30)
        .map(|n| said(n, ADA, &long).into_channel(thread_id(0)))
        .collect();
    world.add(mine);
    let question = format!("{} {} {}", to(NEWS, 2), to(NEWS, 5), to(NEWS, 9));
    let trigger = asked(40, EVE, &question).into_channel(thread_id(0));
    world.add([trigger.clone()]);
    let start = Start::within(private_thread(0));
    let collected = start.collected(&world, &trigger);
    for (max_chars, max_msgs) in [(8_000, 40), (8_000, 4), (600, 40), (100, 1)] {
        let limits = Limits {
            max_chars,
            max_msgs,
            ..Limits::default()
        };
        let turn = clew_context::engine::turn::TurnInput {
            limits,
            ..collected.turn.clone()
        };
        let block = start
            .prepare(&Collected {
                turn,
                ..collected.clone()
            })
            .block;
        assert!(block.chars <= max_chars, "{max_chars}: {}", block.chars);
        assert!(block.items().count() <= max_msgs, "{max_msgs}");
        let linked = block.items().filter(|one| one.message.channel == NEWS);
        assert!(linked.count() <= max_msgs / 2);
        if max_chars == 8_000 && max_msgs == 40 {
            let shown = outline(&block);
            assert!(shown.contains("l2") && shown.contains("l5") && shown.contains("l9"));
            let texts = block.items().filter(|one| one.message.channel == NEWS);
            let texts: usize = texts.map(|one| one.text.chars().count()).sum();
            assert!(texts <= 4_000, "{texts}");
        }
    }
}

#[test]
fn people_who_opted_out_are_withheld_behind_links_too() {
    let mut world = World::of([
        said(1, ADA, "fine").into_channel(NEWS),
        said(2, BOB, "kumquat").into_channel(NEWS),
        said(3, ADA, "fine").into_channel(NEWS),
        said(4, BOB, "kumquat").into_channel(NEWS),
        said(5, ADA, "fine").into_channel(NEWS),
    ]);
    world.known.insert(NEWS, (news(), Readers::Everybody));
    let titled = Channel {
        name: "kumquat".to_owned(),
        thread: Some(ThreadState {
            owner: Some(BOB.user()),
            ..ThreadState::default()
        }),
        ..thread(2)
    };
    world
        .known
        .insert(thread_id(2), (titled, Readers::Everybody));
    let opted_out: OptedOut = [BOB.user()].into_iter().collect();
    let start = Start {
        opted_out,
        ..here()
    };
    let question = format!("{} <#{}>", to(NEWS, 3), thread_id(2));
    let collected = start.collected(&world, &asked(20, EVE, &question));
    let prepared = start.prepare(&collected);
    assert_eq!(outline(&prepared.block), "| 1 private l3 private 5 |");
    assert!(!format!("{collected:?}{prepared:?}").contains("kumquat"));
    let of = asked(20, EVE, &to(NEWS, 2));
    let collected = start.collected(&world, &of);
    assert!(outline(&start.prepare(&collected).block).starts_with("| 1 private 3"));
}

#[test]
fn the_window_keeps_a_linked_message_without_taking_its_channel_for_complete() {
    let world = world(Readers::Everybody);
    let mut window = window();
    window.created(asked(20, EVE, &to(NEWS, 5)));
    let start = Start {
        view: Some(window.view(GENERAL)),
        ..here()
    };
    start
        .collected(&world, &asked(20, EVE, &to(NEWS, 5)))
        .update(&mut window);
    let view = window.view(NEWS);
    assert!(view.recent.is_empty() && view.whole_from.is_none());
    assert_eq!(view.linked.keys().copied().collect::<Vec<_>>(), [id(5)]);
}

/// What the process found out once is not asked for again for a minute, whatever it was.
#[test]
fn a_closed_link_costs_one_look_up_a_minute_whatever_is_behind_it() {
    let refusing = |reason| World::default().failing("channel", FetchError::lasting(reason));
    let archived = World::default().with_channel(post(2));
    let cases = [
        (refusing(Fallback::Forbidden), NEWS),
        (refusing(Fallback::NotFound), NEWS),
        (world(Readers::Nobody), NEWS),
        (world(Readers::AskerOnly), NEWS),
        (archived, thread_id(2)),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    for (at, (world, channel)) in cases.into_iter().enumerate() {
        let cache = NegativeCache::default();
        for (calls, then) in [(&["channel"][..], 59), (&[], 2), (&["channel"], 0)] {
            let trigger = asked(20, EVE, &to(channel, 5));
            runtime.block_on(async {
                here().collect_with(&world, &cache, &trigger).await;
                assert_eq!(world.calls(), calls, "{at}");
                tokio::time::advance(Duration::from_secs(then)).await;
            });
        }
    }
}
