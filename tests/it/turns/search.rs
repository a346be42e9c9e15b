//! `search_messages` by Discord's search: what is asked for, what of it is shown, and what is
//! done where Discord does not answer.

use clew::config::Search;
use clew_simulator::{ChannelKind, Draft, Fault, FaultKind, File, OverwriteOf, Permissions};
use serde_json::{Value, json};

use super::tools::{offers, results};
use super::{Place, place, place_with};
use crate::support::bot::details;
use crate::support::model::Behaviour;

const VIEW: Permissions = Permissions::VIEW_CHANNEL;
const ROUTE: &str = "/messages/search";
/// The settings: as many questions as a test asks.
const FREE: [(&str, &str); 1] = [("USER_TURNS_PER_MIN", "0")];

impl Place {
    async fn search(&self, arguments: Value) -> String {
        self.tool("search_messages", &arguments).await
    }

    /// The queries that Discord's search got.
    fn searched(&self) -> Vec<String> {
        let requests = self.stage.discord.requests_to("GET", ROUTE).into_iter();
        requests.map(|request| request.query).collect()
    }
}

/// A message from before the bot came.
fn said(words: &str) -> Draft {
    words.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_window_does_not_have_is_found_by_all_that_is_known_of_it() {
    let (p, news) = place_with(&FREE, |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        let first = world.seed(news, seeds.ada, "first boiler");
        let reply = Draft {
            pinned: true,
            ..Draft::new("second boiler").reply_to(first)
        };
        world.seed(news, seeds.boris, reply);
        let third = Draft {
            attachments: vec![File::text("log.txt", "x")],
            ..said("third boiler, see https://example.org")
        };
        world.seed(seeds.channel, seeds.boris, third);
        news
    })
    .await;
    let bot = p.start().await;
    let (boris, channel) = (p.boris.to_string(), p.channel.to_string());
    for (arguments, expected) in [
        (json!({"words": "boiler"}), vec!["third", "second", "first"]),
        (
            json!({"words": "boiler", "order": "time"}),
            vec!["third", "second", "first"],
        ),
        (json!({"author": "@ada", "words": "boiler"}), vec!["first"]),
        (json!({"author": boris, "channel": "#news"}), vec!["second"]),
        (
            json!({"author": "Boris", "channel": channel}),
            vec!["third"],
        ),
        (
            json!({"replies_to": format!("<@{}>", p.ada)}),
            vec!["second"],
        ),
        (json!({"has": "file, link"}), vec!["third"]),
        (json!({"pinned": "true"}), vec!["second"]),
        (json!({"words": "boiler", "before": "2015-02-01"}), vec![]),
        (json!({"words": "boiler", "after": "2099-02-01"}), vec![]),
        (json!({"author": "Nobody", "words": "boiler"}), vec![]),
    ] {
        let found = p.search(arguments.clone()).await;
        let words = ["first", "second", "third"];
        let mut order: Vec<_> = words
            .iter()
            .filter_map(|word| Some((found.find(&format!("{word} boiler"))?, *word)))
            .collect();
        order.sort_unstable();
        let order: Vec<&str> = order.into_iter().map(|(_, word)| word).collect();
        assert_eq!(order, expected, "{arguments}: {found}");
        assert!(!found.contains("may have more"), "{found}");
    }
    let queries = p.searched();
    assert!(
        queries[0].contains(&format!("channel_id={news}")),
        "{queries:?}"
    );
    assert!(queries[0].contains("content=boiler") && queries[0].contains("max_id="));
    assert!(!queries[0].contains("include_nsfw"), "{queries:?}");
    // Whether there is more, what may be shown tells, and not how much Discord gave.
    assert!(queries[1].contains("offset=25"), "{queries:?}");
    for (name, wrong) in [("has", "sticker"), ("pinned", "perhaps"), ("order", "size")] {
        let told = p.search(json!({"words": "boiler", name: wrong})).await;
        assert!(
            told.contains(&format!("`{name}` is missing or wrong")),
            "{told}"
        );
    }
    let told = p.search(json!({"order": "time"})).await;
    assert!(told.contains("`words` is missing or wrong"), "{told}");
    let lines = bot.stop().await;
    let called = details(&lines, "tool_called");
    assert_eq!(called[0]["search"], "discord");
    assert!(called.last().unwrap().get("search").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_seen_since_the_index_was_made_counts() {
    let (p, (old, gone, edited)) = place_with(&FREE, |world, seeds| {
        let [old, gone, edited] = ["an old valve", "a lost valve", "a dear valve"]
            .map(|text| world.seed(seeds.channel, seeds.boris, text));
        world.hold_search_index(true);
        (old, gone, edited)
    })
    .await;
    let bot = p.start().await;
    let discord = &p.stage.discord;
    discord.delete(p.channel, gone);
    discord.edit(p.channel, edited, "a dear tap");
    let new = p.post(p.channel, p.boris, "a new valve");
    p.seen().await;
    let found = p.search(json!({"words": "valve"})).await;
    for (id, text) in [(old, "an old valve"), (new, "a new valve")] {
        assert_eq!(found.matches(text).count(), 1, "{found}");
        assert_eq!(found.matches(&id.to_string()).count(), 1, "{found}");
    }
    assert!(
        !found.contains("lost") && !found.contains("dear"),
        "{found}"
    );
    assert!(
        found.find("a new valve") < found.find("an old valve"),
        "{found}"
    );
    discord.world(|world| world.hold_search_index(false));
    // Now both have it.
    let found = p.search(json!({"words": "new valve"})).await;
    assert_eq!(found.matches("a new valve").count(), 1, "{found}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_message_is_judged_by_its_own_channel_or_thread() {
    let (p, [staff, old, open, secret]) = place_with(&FREE, |world, seeds| {
        let staff = world.channel(seeds.guild, ChannelKind::Text, "staff");
        world.deny_everyone(staff, VIEW);
        for member in [seeds.ada, world.bot] {
            world.overwrite(staff, OverwriteOf::Member(member), VIEW, Permissions::NONE);
        }
        let old = seeds.thread(world, "old");
        world.seed(old, seeds.boris, "valve of old");
        world.set_archived(old, true, false);
        let open = seeds.thread(world, "open");
        world.seed(open, seeds.boris, "valve of now");
        let secret = world.thread(
            seeds.channel,
            ChannelKind::PrivateThread,
            "secret",
            seeds.ada,
        );
        world.join_thread(secret, world.bot);
        for hidden in [staff, secret] {
            world.seed(hidden, seeds.ada, "valve of gold");
        }
        [staff, old, open, secret]
    })
    .await;
    let bot = p.start().await;
    let found = p.search(json!({"words": "valve"})).await;
    assert!(
        found.contains("#old\n") && found.contains("valve of old"),
        "{found}"
    );
    assert!(
        found.contains("valve of now") && !found.contains("gold"),
        "{found}"
    );
    let query = p.searched().remove(0);
    for (id, is_asked) in [(staff, false), (secret, false), (old, false), (open, true)] {
        assert_eq!(query.contains(&id.to_string()), is_asked, "{query}");
    }
    // The thread is known by now, and asked for by itself.
    let discord = &p.stage.discord;
    discord.world(|world| world.settings.search_covers_threads = false);
    let found = p
        .search(json!({"words": "valve of", "channel": p.channel.0}))
        .await;
    assert!(
        found.contains("valve of old") && found.contains("valve of now"),
        "{found}"
    );
    let query = p.searched().pop().unwrap();
    assert_eq!(query.matches("channel_id=").count(), 3, "{query}");
    let refused = p
        .search(json!({"words": "valve", "channel": staff.0}))
        .await;
    assert!(refused.contains("There is nothing there"), "{refused}");
    assert_eq!(p.searched().len(), 4);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn age_restricted_channels_are_for_age_restricted_channels() {
    let (p, (adult, message)) = place_with(&FREE, |world, seeds| {
        let adult = world.channel(seeds.guild, ChannelKind::Text, "adult");
        world.restrict_age(adult);
        (adult, world.seed(adult, seeds.boris, "an adult valve"))
    })
    .await;
    let bot = p.start().await;
    let found = p.search(json!({"words": "valve"})).await;
    assert!(!found.contains("adult"), "{found}");
    let query = p.searched().remove(0);
    assert!(!query.contains(&adult.to_string()), "{query}");
    let read = json!({"message": message.0, "channel": adult.0});
    let told = p.tool("get_message", &read).await;
    assert!(told.contains("There is nothing there"), "{told}");
    let thread = p
        .stage
        .discord
        .thread(adult, ChannelKind::PublicThread, "inside", p.ada);
    let calls = [("search_messages", r#"{"words": "valve"}"#)];
    p.stage.model.script(Behaviour::calls("", &calls));
    let before = p.stage.model.requests().len();
    p.post(thread, p.ada, p.to_us("which?"));
    let requests = p.stage.model.wait_requests(before + 2).await;
    let found = results(&requests[before + 1]).remove(0);
    assert!(found.contains("an adult valve"), "{found}");
    let query = p.searched().pop().unwrap();
    assert!(query.contains("include_nsfw=true"), "{query}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_who_opted_out_are_not_found() {
    let (p, ()) = place_with(&FREE, |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        world.seed(news, seeds.boris, "a private valve");
    })
    .await;
    let bot = p.start().await;
    p.opts_out(p.boris).await;
    let found = p.search(json!({"words": "valve"})).await;
    assert!(
        found.contains("No message with these words was found."),
        "{found}"
    );
    assert!(
        !found.contains("private") && !found.contains("Boris"),
        "{found}"
    );
    bot.stop().await;
}

/// What a search of the words gives while Discord's fails so, and its requests.
async fn failing(fault: Fault) -> (Place, String, usize, Value) {
    let (p, ()) = place_with(&FREE, |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        world.seed(news, seeds.boris, "an old valve");
    })
    .await;
    let bot = p.start().await;
    p.post(p.channel, p.boris, "a new valve");
    p.stage.discord.fault(fault);
    let found = p.search(json!({"words": "valve"})).await;
    let requests = p.searched().len();
    p.search(json!({"words": "valves valve"})).await;
    assert!(found.contains("a new valve"), "{found}");
    let lines = bot.stop().await;
    let called = details(&lines, "tool_called");
    let by = json!([called[0]["search"], called[1]["search"]]);
    (p, found, requests, by)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_not_ready_is_waited_for_once() {
    let (p, found, requests, by) = failing(Fault::not_indexed(0).once()).await;
    assert!(found.contains("an old valve"), "{found}");
    // Three and then two: each looks whether more may be shown.
    assert_eq!((requests, p.searched().len()), (3, 5));
    assert_eq!(by, json!(["discord", "discord"]));
    let (_, found, requests, by) = failing(Fault::not_indexed(1).times(2)).await;
    assert!(!found.contains("an old valve"), "{found}");
    assert!(
        found.contains("is still being prepared for this server: only recent"),
        "{found}"
    );
    assert_eq!((requests, &by[0]), (2, &json!("not_indexed")));
    // What else the turn searches does not wait again, nor does a later page of it.
    let (p, ()) = place_with(&FREE, |_, _| ()).await;
    let bot = p.start().await;
    p.stage.discord.fault(Fault::not_indexed(3).times(4));
    let [first, second] = [1, 2].map(|page| json!({"words": "valve", "page": page}));
    for found in calling(&p, &[first, second, json!({"words": "boiler"})]).await {
        assert!(found.contains("is still being prepared"), "{found}");
    }
    assert_eq!(p.searched().len(), 2);
    bot.stop().await;
    // Nobody waits for minutes.
    let (_, _, requests, by) = failing(Fault::not_indexed(600).once()).await;
    assert_eq!((requests, by), (1, json!(["not_indexed", "not_indexed"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_search_is_not_asked_again_for_a_while() {
    // Longer than these calls take, and less than a search may.
    for seconds in [10.0, 600.0] {
        let limited = Fault::rate_limited("GET", "/guilds/*/messages/search", seconds);
        let (p, found, _, by) = failing(limited.once()).await;
        assert!(
            found.contains("was asked too often: only recent messages"),
            "{found}"
        );
        assert_eq!(by, json!(["rate_limited", "rate_limited"]));
        assert_eq!(p.searched().len(), 1);
    }
    let refused = Fault::status(
        "GET",
        "/guilds/*/messages/search",
        403,
        50_001,
        "Missing Access",
    );
    let (p, found, _, by) = failing(refused).await;
    assert!(found.contains("is closed to this bot"), "{found}");
    assert_eq!(by, json!(["forbidden", "forbidden"]));
    assert_eq!(p.searched().len(), 1);
    let odd = FaultKind::Body("[]".to_owned());
    let odd = Fault::new("GET", "/guilds/*/messages/search", odd).once();
    let (p, found, _, by) = failing(odd).await;
    assert!(found.contains("did not answer"), "{found}");
    assert_eq!(by, json!(["failed", "discord"]));
    assert_eq!(p.searched().len(), 3);
}

/// What each of the calls of one turn gave.
async fn calling(p: &Place, calls: &[Value]) -> Vec<String> {
    let calls: Vec<String> = calls.iter().map(Value::to_string).collect();
    let calls = calls.iter().map(|call| ("search_messages", call.as_str()));
    let request = p.ask_calling("well?", &calls.collect::<Vec<_>>()).await;
    results(&request)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_searches_four_times() {
    let (p, ()) = place_with(&FREE, |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        world.seed(news, seeds.boris, "an old valve");
    })
    .await;
    let bot = p.start().await;
    let found = calling(
        &p,
        &["old", "valve", "old valve", "an", "an old", "an old valve"]
            .map(|words| json!({"words": words})),
    )
    .await;
    // Each looks whether more may be shown.
    assert_eq!(p.searched().len(), 8);
    let too_often = found.iter().filter(|one| one.contains("asked too often"));
    assert_eq!(too_often.count(), 2);
    p.answer(p.channel, 1).await;
    bot.stop().await;
}

/// The numbers of the `valve`s in a result.
fn valves(found: &str) -> Vec<usize> {
    let words = found.split("valve ").skip(1);
    let numbers = words.map(|rest| rest.split('.').next().unwrap().parse().unwrap());
    numbers.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_on_until_there_is_no_more() {
    let (p, ()) = place_with(&FREE, |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        for number in 1..=40 {
            world.seed(news, seeds.boris, format!("valve {number}."));
        }
    })
    .await;
    let bot = p.start().await;
    let page = |page| json!({"words": "valve", "order": "time", "page": page});
    let found = calling(&p, &[page(1), page(2), page(3), page(4)]).await;
    let expected: Vec<usize> = (1..=40).rev().collect();
    let pages: Vec<Vec<usize>> = found.iter().map(|one| valves(one)).collect();
    assert_eq!(
        pages[..3],
        [&expected[..15], &expected[15..30], &expected[30..]]
    );
    assert!(found[1].contains("(`page` 3 may have more.)"), "{found:?}");
    assert!(
        found[3].contains("No more messages were found."),
        "{found:?}"
    );
    let offsets = p.searched();
    let offset = |query: &String| query.split('&').nth(1).unwrap().to_owned();
    let offsets: Vec<String> = offsets.iter().map(offset).collect();
    assert_eq!(offsets, ["offset=0", "offset=25", "offset=50", "offset=75"]);
    // Another turn begins with any of them.
    assert_eq!(valves(&p.search(page(2)).await), expected[15..30]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_window_go_on_too() {
    let p = place(&[("USER_TURNS_PER_MIN", "0"), ("SEARCH", "window")]).await;
    let bot = p.start().await;
    for number in 1..=20 {
        p.post(p.channel, p.boris, format!("valve {number}."));
    }
    p.seen().await;
    let found = calling(
        &p,
        &[1, 2, 3].map(|page| json!({"words": "valve", "page": page})),
    )
    .await;
    let expected: Vec<usize> = (1..=20).rev().collect();
    assert_eq!(valves(&found[0]), expected[..15], "{found:?}");
    assert!(found[0].contains("(`page` 2 may have more.)"), "{found:?}");
    assert_eq!(valves(&found[1]), expected[15..], "{found:?}");
    assert!(!found[1].contains("may have more"), "{found:?}");
    let nothing = found[2].contains("\nNo more messages were found.\n");
    assert!(nothing && !found[2].contains("may have more"), "{found:?}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_more_channels_than_discord_takes_is_searched_where_it_is_active() {
    let (p, (news, quiet)) = place_with(&FREE, |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        let mut threads = (0..600).map(|number| seeds.thread(world, &format!("talk {number}")));
        let quiet = threads.next().unwrap();
        threads.for_each(drop);
        (news, quiet)
    })
    .await;
    let bot = p.start().await;
    p.post(quiet, p.boris, "no longer quiet");
    p.seen().await;
    p.search(json!({"words": "valve"})).await;
    let query = p.searched().remove(0);
    assert_eq!(query.matches("channel_id=").count(), 500);
    for id in [news, quiet, p.channel] {
        assert!(query.contains(&format!("channel_id={id}")), "{query}");
    }
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_searches_the_window_alone_or_nothing() {
    let (p, ()) = place_with(&[("SEARCH", "window")], |world, seeds| {
        world.seed(seeds.channel, seeds.boris, "an old valve");
    })
    .await;
    let bot = p.start().await;
    let found = p.search(json!({"words": "valve"})).await;
    assert!(
        found.contains("No message with these words was found."),
        "{found}"
    );
    assert_eq!(p.searched().len(), 0);
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "tool_called")[0]["search"], "window");

    let p = place(&[("SEARCH", "off")]).await;
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us("well?"));
    let request = p.stage.model.wait_requests(1).await.remove(0);
    assert!(offers(&request) && !request["tools"].to_string().contains("search_messages"));
    bot.stop().await;

    let p = place(&[("DISCORD_MESSAGE_CONTENT", "off")]).await;
    assert_eq!(p.stage.config().tools.search, Search::Window);
    let p = place(&[("DISCORD_MESSAGE_CONTENT", "off"), ("SEARCH", "off")]).await;
    assert_eq!(p.stage.config().tools.search, Search::Off);
}
