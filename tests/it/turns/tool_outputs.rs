//! Results of tools are kept at once, found again in the same conversation, and reached by
//! whatever reaches their sources.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clew_simulator::{ChannelKind, Id, OverwriteOf, Permissions};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::tools::results;
use super::{Place, place, place_with};
use crate::support::model::Behaviour;

/// The files of outputs.
fn files(p: &Place) -> Vec<String> {
    let folder = p.stage.folder.path().join("tool_outputs");
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let outputs = paths.filter(|path| path.extension().is_some_and(|one| one == "json"));
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = outputs.map(name).collect();
    names.sort();
    names
}

pub(super) async fn until_no_file(p: &Place) {
    let gone = async {
        while !files(p).is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), gone)
        .await
        .expect("the file goes");
}

/// A channel that everybody may read, with a message of Boris's.
async fn with_news(settings: &[(&str, &str)]) -> (Place, (Id, Id)) {
    place_with(settings, |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        (news, world.seed(news, seeds.boris, "the boiler is new"))
    })
    .await
}

/// Has a tool read Boris's message.
async fn read_news(p: &Place, (news, message): (Id, Id)) -> String {
    let arguments = json!({"message": message.to_string(), "channel": news.to_string()});
    let said = p.tool("get_message", &arguments).await;
    assert!(said.contains("the boiler is new"), "{said}");
    said
}

/// The ids of outputs that a text names at the beginning of lines.
pub(super) fn ids(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(" UTC | "));
    lines
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

async fn search(p: &Place) -> String {
    p.tool("search_outputs", &json!({})).await
}

/// Of one of them a question is stored, of the other nothing but a result.
#[tokio::test(flavor = "multi_thread")]
async fn deletions_together_take_the_results_of_each() {
    let (p, (news, read)) = with_news(&[]).await;
    let bot = p.start().await;
    let asked = p.post(news, p.ada, p.to_us("well?"));
    p.answer(news, 1).await;
    let arguments = json!({"message": read.to_string(), "channel": news.to_string()}).to_string();
    let calls = Behaviour::calls("", &[("get_message", &arguments)]);
    p.stage.model.script(calls);
    let question = p.post(p.channel, p.ada, p.to_us("what is new?"));
    p.answer(p.channel, 1).await;
    assert_eq!(files(&p).len(), 1);
    p.stage.discord.delete(p.channel, question);
    p.stage.discord.bulk_delete(news, &[read, asked]);
    until_no_file(&p).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_result_is_a_file_until_the_end() {
    let (p, news) = with_news(&[]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    let names = files(&p);
    assert_eq!(names.len(), 1);
    assert!(names[0].starts_with("get_message_"), "{names:?}");
    let folder = p.stage.folder.path().join("tool_outputs");
    let kept: Value = serde_json::from_slice(&fs::read(folder.join(&names[0])).unwrap()).unwrap();
    assert_eq!(kept["toolName"], "get_message");
    assert!(
        kept["result"]
            .as_str()
            .unwrap()
            .contains("the boiler is new")
    );
    assert_eq!(kept["owner"], p.ada.to_string());
    assert_eq!(kept["sources"][0]["message"], news.1.to_string());
    // What only shows what is kept is not kept again.
    let id = ids(&search(&p).await).remove(0);
    let read = p.tool("read_output", &json!({"id": id})).await;
    assert!(
        read.contains("(page 1 of 1)") && read.contains("the boiler is new"),
        "{read}"
    );
    assert_eq!(files(&p), names);
    bot.stop().await;
    assert!(files(&p).is_empty());
}

/// A model that guesses the wrong words still sees what there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_matches_nothing_says_so_and_lists_the_newest() {
    let (p, news) = with_news(&[]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    let newest = ids(&search(&p).await).remove(0);
    let found = p.tool("search_outputs", &json!({"words": "message"})).await;
    assert!(
        !found.contains("Nothing matches") && found.contains(&newest),
        "{found}"
    );
    let none = p.tool("search_outputs", &json!({"words": "zebra"})).await;
    let told = none.find("Nothing matches. The newest results:\n");
    assert!(told < none.find(&newest) && told.is_some(), "{none}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_resume_the_next_process_finds_them() {
    let (p, news) = with_news(&[("TOOL_OUTPUT_RESUME", "true")]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    bot.stop().await;
    assert_eq!(files(&p).len(), 1);
    let bot = p.stage.start().await;
    assert_eq!(ids(&search(&p).await).len(), 1);
    bot.stop().await;
    // Without it, what is left goes at the start.
    let bot = p.stage.start_with(&[("TOOL_OUTPUT_RESUME", "false")]).await;
    assert!(files(&p).is_empty());
    bot.stop().await;
}

/// Boris, whose words it is made from, opts out before anybody asks for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_opt_out_reaches_what_an_earlier_process_left() {
    let (p, news) = with_news(&[("TOOL_OUTPUT_RESUME", "true")]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    bot.stop().await;
    assert_eq!(files(&p).len(), 1);
    let bot = p.stage.start().await;
    p.opts_out(p.boris).await;
    assert!(files(&p).is_empty());
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_only_what_an_earlier_process_left_on_disk_goes() {
    let (p, news) = with_news(&[("TOOL_OUTPUT_RESUME", "true")]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    bot.stop().await;
    assert_eq!(files(&p).len(), 1);
    let bot = p
        .stage
        .start_with(&[("IN_MEMORY_CONTEXT_ONLY", "true")])
        .await;
    assert!(files(&p).is_empty());
    bot.stop().await;
}

/// Its file went, or the process that kept it ended: the history is there, the results are
/// not.
#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_is_gone_is_told_to_be_gone() {
    let (p, news) = with_news(&[("USER_TURNS_PER_MIN", "0")]).await;
    let mut bot = p.start().await;
    let (mut gone, mut asked) = (Vec::new(), 0);
    for is_restarted in [false, true] {
        read_news(&p, news).await;
        gone.push(ids(&search(&p).await).remove(0));
        if is_restarted {
            bot.stop().await;
            asked = p.stage.model.requests().len();
            bot = p.stage.start().await;
        } else {
            let folder = p.stage.folder.path().join("tool_outputs");
            fs::remove_file(folder.join(&files(&p)[0])).unwrap();
        }
        for id in &gone {
            let read = p.tool("read_output", &json!({"id": id})).await;
            assert!(read.contains("There is no such output any more."), "{read}");
        }
    }
    let told = p.prompt(asked + 1).await;
    assert!(told.matches("well?").count() > 1, "{told}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_is_shown_by_its_ends_and_read_by_page() {
    let (p, ()) = place_with(&[], |world, seeds| {
        for at in 0..25 {
            world.seed(
                seeds.channel,
                seeds.boris,
                format!("{at} {}", "pump ".repeat(390)),
            );
        }
    })
    .await;
    let bot = p.start().await;
    let said = p.tool("list_thread", &json!({})).await;
    assert!(
        said.contains("(This result is long. `read_output` with `id` "),
        "{said}"
    );
    assert!(said.contains(" characters cut ...]"), "{said}");
    assert!(said.chars().count() < 5_000);
    let id = ids(&search(&p).await).remove(0);
    let read = p.tool("read_output", &json!({"id": id, "page": 3})).await;
    assert!(
        read.contains("(page 3 of 7)") && read.contains("pump"),
        "{read}"
    );
    let beyond = p.tool("read_output", &json!({"id": id, "page": "0"})).await;
    assert!(
        beyond.contains("The argument `page` is missing or wrong."),
        "{beyond}"
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_room_in_a_request_shrinks_to_a_line() {
    let (p, ()) = place_with(&[("TOOL_MAX_ROUNDS", "20")], |world, seeds| {
        for _ in 0..2 {
            world.seed(seeds.channel, seeds.boris, "pump ".repeat(390));
        }
    })
    .await;
    let bot = p.start().await;
    // Some 4,000 characters each.
    for nth in 0..13 {
        let arguments = json!({"before": (9_000_000_000_000_000_000_u64 + nth).to_string()});
        p.stage.model.script(Behaviour::calls(
            "",
            &[("list_thread", &arguments.to_string())],
        ));
    }
    p.post(p.channel, p.ada, p.to_us("well?"));
    p.answer(p.channel, 1).await;
    let requests = p.stage.model.requests();
    assert!(results(&requests[1])[0].contains("pump pump"));
    let said = results(&requests[13]);
    assert!(
        said[0].contains("(Left out for want of room: `read_output` with `id` "),
        "{said:?}"
    );
    assert!(said[12].contains("pump pump"), "{said:?}");
    bot.stop().await;
    let rows = p.rows().await;
    assert!(
        rows.iter()
            .any(|row| row.content.contains("Left out for want of room"))
    );
}

/// When the model says that a request is too long, its results take half of the room: the
/// newest stays.
#[tokio::test(flavor = "multi_thread")]
async fn results_that_make_a_request_too_long_are_halved() {
    let (p, ()) = place_with(&[], |world, seeds| {
        world.seed(seeds.channel, seeds.boris, "pump ".repeat(300));
    })
    .await;
    let bot = p.start().await;
    for before in [None, Some("9000000000000000000")] {
        let arguments = json!({"before": before}).to_string();
        p.stage
            .model
            .script(Behaviour::calls("", &[("list_thread", &arguments)]));
    }
    p.stage.model.script(Behaviour::context_too_long());
    p.post(p.channel, p.ada, p.to_us("well?"));
    p.answer(p.channel, 1).await;
    let requests = p.stage.model.requests();
    assert_eq!(requests.len(), 4);
    for said in results(&requests[2]) {
        assert!(said.contains("pump pump"), "{said}");
    }
    let said = results(&requests[3]);
    assert!(said[0].contains("(Left out for want of room"), "{said:?}");
    assert!(said[1].contains("pump pump"), "{said:?}");
    bot.stop().await;
}

/// Of two calls and their results four rows are stored between question and answer.
#[tokio::test(flavor = "multi_thread")]
async fn tools_push_no_turn_out_of_later_prompts() {
    let (p, _) = with_news(&[("MAX_CONTEXT_MESSAGES", "4")]).await;
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us("where is the valve?"));
    p.answer(p.channel, 1).await;
    let calls = [("search_outputs", "{}"), ("list_thread", "{}")];
    p.ask_calling("well?", &calls).await;
    p.answer(p.channel, 2).await;
    let number = p.stage.model.requests().len() + 1;
    p.post(p.channel, p.ada, p.to_us("and the pump?"));
    let told = p.prompt(number).await;
    assert!(told.contains("where is the valve?"), "{told}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn later_prompts_name_results_that_match_and_may_be_read() {
    let (p, (news, _)) = with_news(&[("USER_TURNS_PER_MIN", "0")]).await;
    let bot = p.start().await;
    p.post(news, p.boris, "a gasket for the boiler");
    p.seen().await;
    p.tool("search_messages", &json!({"words": "gasket"})).await;
    let prompt = async |words: &str| {
        let number = p.stage.model.requests().len() + 1;
        p.post(p.channel, p.ada, p.to_us(words));
        p.prompt(number).await
    };
    let head = "Results of your tools from earlier in this conversation";
    let told = prompt("which gasket?").await;
    assert!(
        told.contains(head) && told.contains("search messages words: gasket"),
        "{told}"
    );
    let id = ids(&told).remove(0);
    let told = prompt("and the weather?").await;
    assert!(!told.contains(head), "{told}");
    // Boris's results would be his.
    let number = p.stage.model.requests().len() + 1;
    p.post(p.channel, p.boris, p.to_us("which gasket?"));
    let told = p.prompt(number).await;
    assert!(!told.contains(head), "{told}");
    // Somebody who reads the answer may not read its source any more.
    let deny = Permissions::VIEW_CHANNEL;
    let of = OverwriteOf::Member(p.boris);
    p.stage.discord.overwrite(news, of, Permissions::NONE, deny);
    p.seen().await;
    let told = prompt("which gasket?").await;
    assert!(!told.contains(head), "{told}");
    let read = p.tool("read_output", &json!({"id": id})).await;
    assert!(read.contains("There is no such output any more."), "{read}");
    assert!(search(&p).await.contains("No earlier result was found."));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_source_takes_its_results() {
    let (p, news) = with_news(&[]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    p.stage.discord.delete(news.0, news.1);
    until_no_file(&p).await;
    bot.stop().await;
}

/// A search shows what was said earlier, too, and an answer goes with its question.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_question_takes_the_results_that_show_it_or_its_answer() {
    for words in ["kumquat", "rambutan"] {
        // No window and no index: only what is stored is found.
        let (p, _) = with_news(&[("WINDOW_PER_CHANNEL", "0"), ("SEARCH", "window")]).await;
        let bot = p.start().await;
        p.stage.model.script(Behaviour::text(&["a rambutan"]));
        let question = p.post(p.channel, p.ada, p.to_us("what is like a kumquat?"));
        p.answer(p.channel, 1).await;
        let found = p.tool("search_messages", &json!({"words": words})).await;
        assert!(found.contains("(said earlier)"), "{found}");
        p.answer(p.channel, 2).await;
        assert_eq!(files(&p).len(), 1);
        p.stage.discord.delete(p.channel, question);
        until_no_file(&p).await;
        bot.stop().await;
        let rows = p.rows().await;
        let texts: Vec<&str> = rows.iter().map(|row| row.content.as_str()).collect();
        assert_eq!(texts, ["well?"], "the question that asked for the search");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_source_takes_its_results() {
    let (p, news) = with_news(&[]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    p.stage.discord.edit(news.0, news.1, "the boiler is old");
    until_no_file(&p).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opting_out_takes_what_was_made_from_ones_words_and_what_one_asked_for() {
    for boris in [true, false] {
        let (p, news) = with_news(&[]).await;
        let bot = p.start().await;
        read_news(&p, news).await;
        p.answer(p.channel, 1).await;
        let who = if boris { p.boris } else { p.ada };
        p.opts_out(who).await;
        assert!(files(&p).is_empty());
        // Of who opted out nothing is kept, but their tools run.
        p.tool("list_thread", &json!({})).await;
        assert_eq!(files(&p).len(), usize::from(boris));
        bot.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clearing_the_conversation_ends_its_results() {
    let (p, news) = with_news(&[]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    p.answer(p.channel, 1).await;
    let called = p
        .stage
        .discord
        .call(p.ada, p.channel, "clear-context", json!({}));
    let asked = called.await.unwrap().answer().await.unwrap();
    p.stage
        .discord
        .press(p.ada, asked.message, "Delete")
        .answer()
        .await
        .unwrap();
    assert!(files(&p).is_empty());
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_them() {
    let (p, news) = with_news(&[]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    p.answer(p.channel, 1).await;
    let called = p
        .stage
        .discord
        .call(p.ada, p.channel, "privacy export", json!({}));
    called.await.unwrap().answer().await.unwrap();
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    let sent = p.stage.discord.answers(direct).pop().unwrap();
    let document: Value = serde_json::from_slice(&sent.attachments[0].file.bytes).unwrap();
    let entries = document["entries"].as_array().unwrap().iter();
    let outputs: Vec<&Value> = entries.filter(|one| one["kind"] == "tool_output").collect();
    assert_eq!(outputs.len(), 1);
    assert!(
        outputs[0]["result"]
            .as_str()
            .unwrap()
            .contains("the boiler is new")
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_costs_no_answer_and_is_told() {
    let (p, ()) = place_with(&[], |world, seeds| {
        for at in 0..25 {
            world.seed(
                seeds.channel,
                seeds.boris,
                format!("{at} {}", "pump ".repeat(390)),
            );
        }
    })
    .await;
    let bot = p.start().await;
    // A folder that nothing can be written to, whoever runs the test.
    let folder = p.stage.folder.path().join("tool_outputs");
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    let said = p.tool("list_thread", &json!({})).await;
    assert!(
        said.contains("could not be kept: the rest is lost"),
        "{said}"
    );
    assert!(said.contains(" characters cut ...]"), "{said}");
    p.answer(p.channel, 1).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_only_no_result_reaches_a_disk() {
    let (p, news) = with_news(&[("IN_MEMORY_CONTEXT_ONLY", "true")]).await;
    let bot = p.start().await;
    read_news(&p, news).await;
    assert!(!p.stage.folder.path().join("tool_outputs").exists());
    assert_eq!(ids(&search(&p).await).len(), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tools_there_is_no_folder() {
    let p = place(&[("TOOL_MAX_ROUNDS", "0")]).await;
    let bot = p.start().await;
    bot.stop().await;
    assert!(!p.stage.folder.path().join("tool_outputs").exists());
}
