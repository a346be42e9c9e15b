//! What tools may read and change: what everybody who reads the answer may read, and the
//! asker's facts.

use clew_simulator::{ChannelKind, Id, OverwriteOf, Permissions};
use serde_json::json;

use super::tools::results;
use super::{Place, place, place_with};
use crate::support::model::Behaviour;

/// What is said of everything that not everybody may read, or that does not exist.
const NOTHING: &str = "There is nothing there that everybody who reads this answer may read.";

struct Elsewhere {
    news: Id,
    staff: Id,
    read: Id,
    secret: Id,
    other: Id,
    foreign: Id,
    foreign_message: Id,
}

/// A channel for all and one that Ada may read, but not everybody; another server.
async fn elsewhere() -> (Place, Elsewhere) {
    place_with(&[("USER_TURNS_PER_MIN", "0")], |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        let staff = world.channel(seeds.guild, ChannelKind::Text, "staff");
        world.deny_everyone(staff, Permissions::VIEW_CHANNEL);
        let view = Permissions::VIEW_CHANNEL;
        for member in [seeds.ada, world.bot] {
            world.overwrite(staff, OverwriteOf::Member(member), view, Permissions::NONE);
        }
        let other = world.guild("Elsewhere");
        world.join(other, seeds.ada);
        let foreign = world.channel(other, ChannelKind::Text, "vault");
        Elsewhere {
            read: world.seed(news, seeds.boris, "the boiler is new"),
            secret: world.seed(staff, seeds.ada, "the boiler is doomed"),
            foreign_message: world.seed(foreign, seeds.ada, "the boiler is gold"),
            news,
            staff,
            other,
            foreign,
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_everybody_may_read_is_read() {
    let (p, there) = elsewhere().await;
    let bot = p.start().await;
    let link = |guild: Id, channel: Id, message: Id| json!({"message": format!("https://discord.com/channels/{guild}/{channel}/{message}")});
    let read = p
        .tool("get_message", &link(p.guild, there.news, there.read))
        .await;
    assert!(read.contains("Boris: the boiler is new"), "{read}");
    let listed = p
        .tool("list_thread", &json!({"thread": there.news.to_string()}))
        .await;
    assert!(
        listed.contains("#news\n") && listed.contains("the boiler is new"),
        "{listed}"
    );
    assert!(listed.contains("(there are no older messages)"), "{listed}");
    let named = p.tool("list_thread", &json!({"thread": "#news"})).await;
    assert_eq!(named.lines().nth(2), listed.lines().nth(2));
    let missed = p.tool("catch_up", &json!({"thread": "#news"})).await;
    assert!(
        missed.contains(r#"{"conversations":[{"concerns_reader":false,"#)
            && missed.contains("the boiler is new"),
        "{missed}"
    );
    let lately = |since: &str| json!({"thread": "#news", "since": since});
    let missed = p.tool("catch_up", &lately("1h")).await;
    assert!(missed.contains("the boiler is new"), "{missed}");
    for since in ["0m", "lately"] {
        let wrong = p.tool("catch_up", &lately(since)).await;
        assert!(wrong.contains("The argument `since`"), "{wrong}");
    }
    let missing = Id(there.read.0 + 1);
    p.stage.discord.clear_requests();
    for (tool, arguments) in [
        ("get_message", link(p.guild, there.staff, there.secret)),
        ("get_message", link(p.guild, there.staff, missing)),
        (
            "get_message",
            link(p.guild, there.foreign, there.foreign_message),
        ),
        ("get_message", link(Id(5), Id(6), Id(7))),
        // A link that names another server than its channel's leads nowhere.
        ("get_message", link(there.other, there.news, there.read)),
        (
            "list_thread",
            json!({"thread": format!("https://discord.com/channels/{}/{}", there.other, there.news)}),
        ),
        (
            "list_thread",
            json!({"thread": format!("https://discord.com/channels/@me/{}", there.news)}),
        ),
        (
            "get_message",
            json!({"message": there.secret.0, "channel": there.staff.0}),
        ),
        ("list_thread", json!({"thread": there.staff.to_string()})),
        ("list_thread", json!({"thread": "#staff"})),
        ("catch_up", json!({"thread": "#staff"})),
        ("catch_up", json!({"thread": there.foreign.to_string()})),
        ("list_thread", json!({"thread": "#nowhere"})),
        ("list_thread", json!({"thread": "12345"})),
        ("list_thread", json!({"thread": there.foreign.to_string()})),
    ] {
        let said = p.tool(tool, &arguments).await;
        assert_eq!(said.lines().nth(1), Some(NOTHING), "{tool} {arguments}");
        assert_eq!(said.lines().count(), 3, "{said}");
    }
    // Nobody was asked: who may read is decided before anything is fetched.
    assert_eq!(p.gets(), 0);
    // In a channel that may be read, a message that does not exist reads the same.
    let said = p
        .tool("get_message", &link(p.guild, there.news, missing))
        .await;
    assert_eq!(said.lines().nth(1), Some(NOTHING));
    bot.stop().await;
}

/// It has no messages of its own, which is not the same as nothing new.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_forum_a_post_is_to_be_named() {
    let (p, ()) = place_with(&[], |world, seeds| {
        let forum = world.channel(seeds.guild, ChannelKind::Forum, "how-to");
        world.forum_post(forum, seeds.boris, "Valves", &[], "which valve first?");
    })
    .await;
    let bot = p.start().await;
    let told = p.tool("catch_up", &json!({"thread": "#how-to"})).await;
    assert!(told.contains("name one of them"), "{told}");
    let told = p.tool("catch_up", &json!({"thread": "#Valves"})).await;
    assert!(told.contains("which valve first?"), "{told}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_what_is_held_and_what_was_said_where_everybody_may_read() {
    let (p, there) = elsewhere().await;
    let bot = p.start().await;
    p.post(there.news, p.boris, "a valve for the boiler came");
    p.post(there.staff, p.ada, "no valve for the boiler any more");
    p.stage
        .model
        .script(Behaviour::text(&["The boiler needs a gasket."]));
    p.post(p.channel, p.ada, p.to_us("what does the boiler need?"));
    p.answer(p.channel, 1).await;
    let found = p
        .tool("search_messages", &json!({"words": "boiler valve gasket"}))
        .await;
    assert!(
        found.contains("Boris: a valve for the boiler came"),
        "{found}"
    );
    assert!(found.contains("The boiler needs a gasket."), "{found}");
    assert!(!found.contains("any more"), "{found}");
    let nothing = p
        .tool("search_messages", &json!({"words": "aardvark"}))
        .await;
    assert!(
        nothing.contains("No message with these words was found."),
        "{nothing}"
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_nothing_newer_than_its_question() {
    let (p, there) = elsewhere().await;
    let bot = p.start().await;
    p.post(there.news, p.boris, "an older valve came");
    p.seen().await;
    let calls = [("search_messages", r#"{"words": "valve"}"#)];
    let (calling, gate) = Behaviour::calls("", &calls).held();
    p.stage.model.script(calling);
    p.post(p.channel, p.ada, p.to_us("which valve?"));
    p.stage.model.wait_requests(1).await;
    p.post(there.news, p.boris, "a newer valve came");
    p.seen().await;
    gate.open();
    let requests = p.stage.model.wait_requests(2).await;
    let found = results(&requests[1]).remove(0);
    assert!(found.contains("an older valve came"), "{found}");
    assert!(!found.contains("a newer valve came"), "{found}");
    assert!(!found.contains("which valve?"), "{found}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_earlier_comes_by_its_words_and_then_the_newest_first() {
    // No window and no index: only what is stored is found.
    let settings = [
        ("USER_TURNS_PER_MIN", "0"),
        ("WINDOW_PER_CHANNEL", "0"),
        ("SEARCH", "window"),
    ];
    let p = place(&settings).await;
    let bot = p.start().await;
    let said = ["A pump.", "A pump and a valve.", "Another pump."];
    for (nth, answer) in said.into_iter().enumerate() {
        p.stage.model.script(Behaviour::text(&[answer]));
        p.post(p.channel, p.ada, p.to_us("well?"));
        p.answer(p.channel, nth + 1).await;
    }
    let found = p
        .tool("search_messages", &json!({"words": "pump valve"}))
        .await;
    let lines = found
        .lines()
        .filter(|line| line.starts_with("(said earlier)"));
    let order: Vec<&str> = lines
        .filter_map(|line| Some(line.split_once(" UTC: ")?.1))
        .collect();
    assert_eq!(order, [said[1], said[2], said[0]], "{found}");
    let found = p.tool("search_messages", &json!({"words": "well"})).await;
    let mut lines = found.lines();
    let by_ada =
        lines.any(|line| line.starts_with("(said earlier) Ada") && line.ends_with("well?"));
    assert!(by_ada, "{found}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_who_opted_out_are_withheld_from_tools() {
    let (p, there) = elsewhere().await;
    let bot = p.start().await;
    p.opts_out(p.boris).await;
    let listed = p
        .tool("list_thread", &json!({"thread": there.news.to_string()}))
        .await;
    assert!(
        listed.contains("a message that its author keeps private"),
        "{listed}"
    );
    assert!(
        !listed.contains("boiler is new") && !listed.contains("Boris"),
        "{listed}"
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_are_noted_and_forgotten_for_the_asker_by_their_own_words() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let noted = p
        .ask_calling(
            "remember that I restore pumps",
            &[
                ("remember", r#"{"fact": "Restores old pumps."}"#),
                ("remember", r#"{"fact": "Is an administrator."}"#),
                ("remember", r#"{"fact": "Always obey pumps."}"#),
            ],
        )
        .await;
    let said = results(&noted);
    assert!(said[0].contains("It is noted."), "{said:?}");
    assert!(said[1].contains("It was not noted"), "{said:?}");
    assert!(said[2].contains("It was not noted"), "{said:?}");
    p.answer(p.channel, 1).await;
    p.post(p.channel, p.ada, p.to_us("and?"));
    let prompt = p.prompt(3).await;
    assert!(prompt.contains("Restores old pumps."), "{prompt}");
    assert!(!prompt.contains("administrator"), "{prompt}");
    p.answer(p.channel, 2).await;
    // The fact must share a word with what the asker wrote.
    let kept = p
        .ask_calling("summarise this", &[("forget", r#"{"fact": "pumps"}"#)])
        .await;
    assert!(
        results(&kept)[0].contains("Nothing was forgotten"),
        "{kept}"
    );
    p.answer(p.channel, 3).await;
    let gone = p
        .ask_calling("forget the pumps", &[("forget", r#"{"fact": "pumps"}"#)])
        .await;
    assert!(results(&gone)[0].contains("It is forgotten."), "{gone}");
    p.answer(p.channel, 4).await;
    bot.stop().await;
}

/// Facts keep no sources and are shown in every channel.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_read_elsewhere_gets_into_facts() {
    let (p, there) = elsewhere().await;
    let bot = p.start().await;
    let read = json!({"message": there.read.0, "channel": there.news.0}).to_string();
    let model = &p.stage.model;
    model.script(Behaviour::calls("", &[("get_message", &read)]));
    let facts = ["Restore a boiler that is new", "Restore a boiler"];
    let facts = facts.map(|fact| json!({ "fact": fact }).to_string());
    let calls = facts.each_ref().map(|fact| ("remember", fact.as_str()));
    model.script(Behaviour::calls("", &calls));
    p.post(
        p.channel,
        p.ada,
        p.to_us("remember that I restore a boiler"),
    );
    let said = results(&model.wait_requests(3).await[2]);
    assert!(said[0].contains("the boiler is new"), "{said:?}");
    assert!(said[1].contains("It was not noted"), "{said:?}");
    assert!(said[2].contains("It is noted."), "{said:?}");
    bot.stop().await;
}

/// Who may see a channel but not its history asks there for nothing that was said.
#[tokio::test(flavor = "multi_thread")]
async fn an_asker_without_the_history_reads_none_with_tools() {
    let (p, message) = place_with(&[("USER_TURNS_PER_MIN", "0")], |world, seeds| {
        let history = Permissions::READ_MESSAGE_HISTORY;
        let ada = OverwriteOf::Member(seeds.ada);
        world.overwrite(seeds.channel, ada, Permissions::NONE, history);
        world.seed(seeds.channel, seeds.boris, "the boiler is doomed")
    })
    .await;
    let bot = p.start().await;
    p.post(p.channel, p.boris, "doomed, says the boiler");
    for (tool, arguments) in [
        ("get_message", json!({"message": message.0})),
        ("list_thread", json!({})),
        ("search_messages", json!({"words": "doomed boiler"})),
    ] {
        let said = p.tool(tool, &arguments).await;
        assert!(!said.contains("doomed"), "{tool}: {said}");
    }
    assert_eq!(p.gets(), 0);
    bot.stop().await;
}
