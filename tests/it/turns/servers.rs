//! Tools of MCP servers in turns: who is offered which, on whose consent they are called,
//! and what the model, the channel, telemetry and receipts are told.

use std::fs;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clew_simulator::{ChannelKind, Draft, Fault, Id, Message, Permissions, Use};
use serde_json::{Value, json};

use super::tools::results;
use super::{Place, place_with};
use crate::faults::process::Process;
use crate::support::bot::{Bot, details};
use crate::support::mcp::McpServer;
use crate::support::model::Behaviour;

/// A place with a server of tools, a thread, and somebody who approves.
struct Tools {
    p: Place,
    server: McpServer,
    thread: Id,
    /// A link to a message in another channel.
    link: String,
    maria: Id,
    approvers: Id,
}

const DENIED: &str = "-# You may not decide on this.";
const OVER: &str = "-# This is over: nothing waits for it any more.";

/// The server `web` with the tools `find`, `note` and `hidden`, under these rules.
async fn tools(rules: Value) -> Tools {
    let (mut p, (thread, maria, approvers, news)) =
        place_with(&[("USER_TURNS_PER_MIN", "0")], |world, seeds| {
            let maria = world.member(seeds.guild, "Maria");
            let approvers = world.role(seeds.guild, "approvers", Permissions::NONE);
            world.give_role(seeds.guild, maria, approvers);
            let news = world.channel(seeds.guild, ChannelKind::Text, "news");
            let news = (news, world.seed(news, seeds.boris, "the boiler is new"));
            (seeds.thread(world, "pumps"), maria, approvers, news)
        })
        .await;
    let texts = [("find", "found it"), ("note", "noted"), ("hidden", "")];
    let server = McpServer::start(&texts).await;
    let mut entry = json!({"url": server.url(), "private": true, "allow": ["find", "note"]});
    for (key, value) in rules.as_object().unwrap() {
        entry[key] = value.clone();
    }
    let path = p.stage.folder.path().join("mcp.json");
    let file = json!({"mcpServers": {"web": entry}}).to_string();
    fs::write(&path, file.replace("APPROVERS", &approvers.to_string())).unwrap();
    p.stage.set("MCP_CONFIG", &path.display().to_string());
    if rules.get("askerApproves").is_none() {
        p.stage.set("APPROVER_ROLES", &approvers.to_string());
    }
    let link = format!(
        "https://discord.com/channels/{}/{}/{}",
        p.guild, news.0, news.1
    );
    Tools {
        p,
        server,
        thread,
        link,
        maria,
        approvers,
    }
}

impl Tools {
    async fn start(&self) -> Bot {
        let bot = self.p.start().await;
        self.server.listed(1).await;
        bot
    }

    /// Ada asks, and the model calls a tool. Returns how often the model was asked before.
    fn asks(&self, channel: Id, words: &str, tool: &str, arguments: &Value) -> usize {
        let before = self.p.stage.model.requests().len();
        let arguments = arguments.to_string();
        self.p
            .stage
            .model
            .script(Behaviour::calls("", &[(tool, &arguments)]));
        self.p.post(channel, self.p.ada, self.p.to_us(words));
        before
    }

    /// What the call gave, once the model was asked again.
    async fn gave(&self, before: usize) -> String {
        let requests = self.p.stage.model.wait_requests(before + 2).await;
        results(&requests[before + 1]).pop().unwrap()
    }

    /// The message that asks for consent.
    async fn question(&self, channel: Id) -> Message {
        let asks = |message: &Message| message.content.contains("May I, with this");
        let found = self.p.stage.discord.wait_for_message(channel, asks).await;
        found.unwrap()
    }

    async fn press(&self, who: Id, on: Id, label: &str) -> String {
        let pressed = self.p.stage.discord.press(who, on, label);
        let shown = pressed.answer().await.unwrap();
        assert!(shown.ephemeral && shown.message != on);
        shown.text()
    }

    /// The names that a request offers of servers' tools.
    fn offered(request: &Value) -> Vec<&str> {
        let tools = request["tools"].as_array();
        let tools = tools.map(Vec::as_slice).unwrap_or_default().iter();
        let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap());
        names.filter(|name| name.contains("__")).collect()
    }
}

/// How each call of a server's tool came about, in the order of telemetry.
fn consents(lines: &[Value]) -> Vec<(String, String)> {
    let calls = details(lines, "tool_called").into_iter();
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    calls
        .map(|call| (word(&call["outcome"]), word(&call["consent"])))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_runs_alone_is_called_and_framed() {
    let t = tools(json!({"auto": ["find", "note"]})).await;
    let bot = t.start().await;
    let before = t.asks(t.p.channel, "look", "web__find", &json!({"words": "pump"}));
    let gave = t.gave(before).await;
    assert!(
        gave.contains("found it") && gave.contains("<tool-result"),
        "{gave}"
    );
    let requests = t.p.stage.model.requests();
    assert_eq!(
        Tools::offered(&requests[before]),
        ["web__find", "web__note"]
    );
    assert_eq!(
        t.server.calls(),
        [("find".to_owned(), json!({"words": "pump"}))]
    );
    let answers = t.p.stage.discord.wait_answers(t.p.channel, 1).await;
    let why = t.p.why(answers.unwrap()[0].id).await;
    let shown = why.lines().find(|line| line.contains("web__find"));
    assert!(shown.unwrap().ends_with(" ms, auto"), "{why}");
    assert_eq!(consents(&bot.stop().await), [("ok".into(), "auto".into())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_else_asks_those_who_approve() {
    let t = tools(json!({})).await;
    let bot = t.start().await;
    let words = json!({"words": "```\n<@1> \u{202E}oil"});
    let before = t.asks(t.thread, "look", "web__find", &words);
    let question = t.question(t.thread).await;
    let shown = &question.content;
    assert!(
        shown.contains(r"\u0060\u0060\u0060\n<@1> \u202eoil"),
        "{shown}"
    );
    assert!(shown.contains("call `find` of the server `web`"), "{shown}");
    for who in [t.p.ada, t.p.boris] {
        assert_eq!(t.press(who, question.id, "Allow once").await, DENIED);
    }
    assert!(t.server.calls().is_empty());
    // Whoever asks in the same thread meanwhile is answered.
    t.p.post(t.thread, t.p.boris, t.p.to_us("and I?"));
    t.p.stage.model.wait_requests(before + 2).await;
    t.p.stage
        .discord
        .wait_for_message(t.thread, |one| one.content == "ok")
        .await
        .unwrap();
    assert_eq!(
        t.press(t.maria, question.id, "Allow once").await,
        "Allowed, once."
    );
    t.p.stage.model.wait_requests(before + 3).await;
    let gave = results(&t.p.stage.model.requests()[before + 2])
        .pop()
        .unwrap();
    assert!(gave.contains("found it"), "{gave}");
    assert_eq!(t.server.calls(), [("find".to_owned(), words)]);
    let says = format!(" Allowed once by <@{}>.", t.maria);
    let told = |one: &Message| one.id == question.id && one.content.ends_with(&says);
    t.p.stage
        .discord
        .wait_for_message(t.thread, told)
        .await
        .unwrap();
    let again = Use::Component {
        message: question.id,
        custom_id: question.components[0]["components"][0]["custom_id"]
            .as_str()
            .unwrap()
            .to_owned(),
        values: Vec::new(),
    };
    let pressed = t.p.stage.discord.interact(t.thread, t.maria, &again);
    let over = |one: &Message| one.content == OVER;
    t.p.stage
        .discord
        .wait_interaction(pressed, over)
        .await
        .unwrap();
    assert_eq!(t.server.calls().len(), 1);
    assert_eq!(
        consents(&bot.stop().await),
        [("ok".into(), "allowed".into())]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_denied_or_unanswered_is_not_done() {
    let mut t = tools(json!({"askerApproves": true})).await;
    let bot = t.start().await;
    let before = t.asks(t.p.channel, "look", "web__find", &json!({}));
    let question = t.question(t.p.channel).await;
    assert_eq!(t.press(t.maria, question.id, "Allow once").await, DENIED);
    assert_eq!(t.press(t.p.ada, question.id, "Deny").await, "Denied.");
    assert!(t.gave(before).await.contains("Somebody denied this"));
    let mut lines = consents(&bot.stop().await);
    assert_eq!(lines.pop(), Some(("refused".into(), "denied".into())));
    t.p.stage.adjust(|config| {
        let mcp = config.mcp.as_mut().unwrap();
        mcp.patience = Duration::from_millis(50);
    });
    let bot = t.p.stage.start().await;
    t.server.listed(2).await;
    let before = t.asks(t.p.channel, "look again", "web__find", &json!({}));
    assert!(t.gave(before).await.contains("Nobody gave consent in time"));
    let says = |one: &Message| {
        one.content
            .ends_with(" Nobody answered, so it was not done.")
    };
    t.p.stage
        .discord
        .wait_for_message(t.p.channel, says)
        .await
        .unwrap();
    assert!(t.server.calls().is_empty());
    let lines = consents(&bot.stop().await);
    assert_eq!(lines.last(), Some(&("refused".into(), "expired".into())));
}

/// What the model read elsewhere could be carried away in arguments.
#[tokio::test(flavor = "multi_thread")]
async fn after_reading_elsewhere_what_runs_alone_asks_too() {
    let t = tools(json!({"auto": ["find", "note"], "local": ["note"]})).await;
    let bot = t.start().await;
    let link = &t.link;
    let before = t.asks(t.p.channel, &format!("see {link}"), "web__note", &json!({}));
    assert!(t.gave(before).await.contains("noted"), "a local tool runs");
    t.p.answer(t.p.channel, 1).await;
    let before = t.asks(t.p.channel, &format!("and {link}"), "web__find", &json!({}));
    let question = t.question(t.p.channel).await;
    assert_eq!(
        t.press(t.maria, question.id, "Allow once").await,
        "Allowed, once."
    );
    assert!(t.gave(before).await.contains("found it"));
    // A tool of ours counts, too.
    let listed = (
        "list_thread",
        json!({"thread": t.thread.to_string()}).to_string(),
    );
    let calls = Behaviour::calls("", &[(listed.0, &listed.1)]);
    t.p.stage.model.script(calls);
    t.p.stage
        .model
        .script(Behaviour::calls("", &[("web__find", "{}")]));
    t.p.post(t.p.channel, t.p.boris, t.p.to_us("what is there?"));
    let asks = |one: &Message| one.content.contains("May I, with this") && one.id != question.id;
    let asked =
        t.p.stage
            .discord
            .wait_for_message(t.p.channel, asks)
            .await
            .unwrap();
    t.press(t.maria, asked.id, "Deny").await;
    let last = |one: &Message| one.content == "ok" && one.id > asked.id;
    let answered = t.p.stage.discord.wait_for_message(t.p.channel, last);
    answered.await.unwrap();
    let lines = bot.stop().await;
    let of_servers: Vec<String> = consents(&lines).into_iter().map(|(_, word)| word).collect();
    assert_eq!(of_servers, ["auto", "allowed", "-", "denied"]);
}

/// So could what an answer repeats to somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn after_an_answer_that_was_made_from_results_what_runs_alone_asks_too() {
    let t = tools(json!({"auto": ["find"]})).await;
    let bot = t.start().await;
    let before = t.asks(t.p.channel, "find the pump", "web__find", &json!({}));
    assert!(t.gave(before).await.contains("found it"));
    t.p.answer(t.p.channel, 1).await;
    t.p.post(t.p.channel, t.p.boris, t.p.to_us("hello"));
    t.p.answer(t.p.channel, 2).await;
    // What they were made from is stored by then.
    bot.stop().await;
    let bot = t.p.stage.start().await;
    t.server.listed(2).await;
    let [found, plain] = [0, 1].map(|at| t.p.stage.discord.answers(t.p.channel)[at].id);
    let lotte =
        t.p.stage
            .discord
            .world(|world| world.member(t.p.guild, "Lotte"));
    for answer in [plain, found] {
        let before = t.p.stage.model.requests().len();
        let calls = Behaviour::calls("", &[("web__find", "{}")]);
        t.p.stage.model.script(calls);
        let reply = Draft::new(t.p.to_us("and the valve?")).reply_to(answer);
        t.p.post(t.p.channel, lotte, reply);
        if answer == found {
            let question = t.question(t.p.channel).await;
            t.press(t.maria, question.id, "Deny").await;
            assert!(t.gave(before).await.contains("denied"));
        } else {
            assert!(t.gave(before).await.contains("found it"));
        }
    }
    bot.stop().await;
}

/// So could what the history repeats, which no block shows.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_stored_answer_that_was_made_from_results_what_runs_alone_asks_too() {
    let t = tools(json!({"auto": ["find"]})).await;
    let bot = t.start().await;
    let before = t.asks(t.p.channel, "find the pump", "web__find", &json!({}));
    assert!(t.gave(before).await.contains("found it"));
    t.p.answer(t.p.channel, 1).await;
    let before = t.asks(t.p.channel, "and the valve?", "web__find", &json!({}));
    let question = t.question(t.p.channel).await;
    t.press(t.maria, question.id, "Deny").await;
    assert!(t.gave(before).await.contains("denied"));
    assert_eq!(t.server.calls().len(), 1);
    bot.stop().await;
}

/// What a server gave may be written to carry away what else the model knows.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_result_of_its_own_server_a_tool_asks_too() {
    let t = tools(json!({"auto": ["find"]})).await;
    let bot = t.start().await;
    for words in ["pump", "valve"] {
        let arguments = json!({ "words": words }).to_string();
        let calls = Behaviour::calls("", &[("web__find", &arguments)]);
        t.p.stage.model.script(calls);
    }
    t.p.post(t.p.channel, t.p.ada, t.p.to_us("look"));
    let question = t.question(t.p.channel).await;
    assert_eq!(t.server.calls().len(), 1);
    t.press(t.maria, question.id, "Deny").await;
    t.p.wait_for(t.p.channel, "ok").await;
    let lines = bot.stop().await;
    let words: Vec<String> = consents(&lines).into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, ["auto", "denied"]);
}

/// Who may is judged again after the wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_was_taken_away_meanwhile_counts() {
    let t = tools(json!({"roles": ["APPROVERS"], "askerApproves": true})).await;
    let bot = t.start().await;
    t.p.stage
        .model
        .script(Behaviour::calls("", &[("web__find", "{}")]));
    t.p.post(t.p.channel, t.maria, t.p.to_us("look"));
    let question = t.question(t.p.channel).await;
    let discord = &t.p.stage.discord;
    discord.set_role(t.p.guild, t.maria, t.approvers, false);
    t.press(t.maria, question.id, "Allow once").await;
    t.p.wait_for(t.p.channel, "ok").await;
    assert!(t.server.calls().is_empty());
    // The message does not go on saying that it was allowed.
    let says = |one: &Message| {
        one.id == question.id && one.content.ends_with("changed meanwhile: it was not done.")
    };
    discord.wait_for_message(t.p.channel, says).await.unwrap();
    let lines = consents(&bot.stop().await);
    assert_eq!(lines, [("refused".into(), "overruled".into())]);
}

/// Who has no role has none to lose, but may leave.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_for_an_asker_who_left_meanwhile() {
    let t = tools(json!({})).await;
    let bot = t.start().await;
    t.asks(t.p.channel, "look", "web__find", &json!({}));
    let question = t.question(t.p.channel).await;
    t.p.stage.discord.leave(t.p.guild, t.p.ada);
    t.press(t.maria, question.id, "Allow once").await;
    t.p.wait_for(t.p.channel, "ok").await;
    assert!(t.server.calls().is_empty());
    let lines = consents(&bot.stop().await);
    assert_eq!(lines, [("refused".into(), "overruled".into())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_question_withdraws_what_it_asked_for() {
    let t = tools(json!({})).await;
    let bot = t.start().await;
    let before = t.asks(t.p.channel, "look", "web__find", &json!({}));
    let question = t.question(t.p.channel).await;
    let messages = t.p.stage.discord.messages(t.p.channel);
    let asked = messages
        .iter()
        .find(|one| one.author == t.p.ada)
        .unwrap()
        .id;
    let edited = t.p.to_us("never mind");
    t.p.stage.discord.edit(t.p.channel, asked, &edited);
    let withdrawn = |one: &Message| one.id == question.id && one.content.contains("withdrawn");
    t.p.stage
        .discord
        .wait_for_message(t.p.channel, withdrawn)
        .await
        .unwrap();
    t.p.stage.model.wait_requests(before + 2).await;
    assert!(t.server.calls().is_empty());
    t.p.wait_for(t.p.channel, "ok").await;
    assert_eq!(
        consents(&bot.stop().await),
        [("refused".into(), "withdrawn".into())]
    );
}

/// A kill forgets who allowed what: nothing that waited is done, nothing that was allowed is
/// done twice.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_nothing_is_done_that_was_asked_for_before() {
    for (is_allowed, told, gave) in [
        (
            false,
            "I was restarted, so it was not done.",
            "this was not done",
        ),
        (
            true,
            "It was allowed, and then cut off: it may have been done.",
            "may have been done or not",
        ),
    ] {
        let t = tools(json!({"askerApproves": true})).await;
        t.server.gives("find", Value::Null);
        let process = Process::start(&t.p.stage, &[]);
        t.p.stage.discord.wait_sessions(1).await.unwrap();
        t.p.stage.discord.settled().await.unwrap();
        t.server.listed(1).await;
        let before = t.asks(t.thread, "look", "web__find", &json!({"words": "pump"}));
        let question = t.question(t.thread).await;
        if is_allowed {
            t.press(t.p.ada, question.id, "Allow once").await;
            t.server.called().await;
        }
        let calls = t.server.calls();
        drop(process);
        let arguments = json!({"words": "pump"}).to_string();
        t.p.stage
            .model
            .script(Behaviour::calls("", &[("web__find", &arguments)]));
        // The question comes again once the next process has its tools.
        let (held, gate) = Fault::held("GET", "/gateway/bot");
        t.p.stage.discord.fault(held);
        let bot = t.p.stage.launch();
        t.server.listed(2).await;
        gate.open();
        let says = |one: &Message| one.id == question.id && one.content.contains(told);
        t.p.stage
            .discord
            .wait_for_message(t.thread, says)
            .await
            .unwrap();
        assert!(t.gave(before + 1).await.contains(gave), "{is_allowed}");
        t.p.wait_for(t.thread, "ok").await;
        assert_eq!(t.server.calls(), calls, "{is_allowed}");
        let lines = consents(&bot.stop().await);
        assert_eq!(lines.last(), Some(&("refused".into(), "cut_off".into())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn images_go_to_a_model_that_takes_them_and_to_the_answer() {
    let mut t = tools(json!({"auto": ["find"], "attach": true})).await;
    t.p.stage.set("LLM_VISION", "on");
    let png = BASE64_STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    t.server
        .gives("find", json!({"content": [image(&png), image("AAAA")]}));
    let bot = t.start().await;
    let before = t.asks(t.p.channel, "draw", "web__find", &json!({}));
    let gave = t.gave(before).await;
    assert!(
        gave.contains("(It gave 1 image.)\n(Not shown: image.)"),
        "{gave}"
    );
    let request = &t.p.stage.model.requests()[before + 1];
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let text = last["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("1: from web__find"), "{last}");
    let url = last["content"][1]["image_url"]["url"].as_str().unwrap();
    assert_eq!(url, format!("data:image/png;base64,{png}"));
    let answers =
        t.p.stage
            .discord
            .wait_answers(t.p.channel, 1)
            .await
            .unwrap();
    t.p.stage.discord.wait_idle().await.unwrap();
    let answer = t.p.stage.discord.answers(t.p.channel).pop().unwrap();
    assert_eq!(answer.id, answers[0].id);
    let files: Vec<_> = answer
        .attachments
        .iter()
        .map(|file| file.file.name.clone())
        .collect();
    assert_eq!(files, ["web__find-1.png"]);
    bot.stop().await;
}

/// By agent, role, server and channel; without anybody to ask, only what runs alone.
#[tokio::test(flavor = "multi_thread")]
async fn tools_are_for_those_whom_the_file_names() {
    let offers = async |rules: Value, who: &str| {
        let t = tools(rules).await;
        let bot = t.start().await;
        let author = if who == "Maria" { t.maria } else { t.p.ada };
        t.p.post(t.p.channel, author, t.p.to_us("hello"));
        let requests = t.p.stage.model.wait_requests(1).await;
        let offered = Tools::offered(&requests[0]).join(" ");
        t.p.answer(t.p.channel, 1).await;
        bot.stop().await;
        offered
    };
    let both = "web__find web__note";
    let nobody = json!({"auto": ["find"], "askerApproves": false});
    assert_eq!(
        offers(nobody, "Ada").await,
        "web__find",
        "nobody could be asked"
    );
    assert_eq!(offers(json!({"agents": ["other"]}), "Ada").await, "");
    assert_eq!(offers(json!({"agents": ["default"]}), "Ada").await, both);
    assert_eq!(offers(json!({"guilds": ["1"]}), "Ada").await, "");
    assert_eq!(offers(json!({"channels": ["1"]}), "Ada").await, "");
    assert_eq!(offers(json!({"roles": ["APPROVERS"]}), "Ada").await, "");
    assert_eq!(offers(json!({"roles": ["APPROVERS"]}), "Maria").await, both);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_tools_those_that_share_words_with_the_question_are_offered() {
    let mut p = place_with(&[], |_, _| ()).await.0;
    let names: Vec<String> = (0..25).map(|number| format!("count_{number}")).collect();
    let mut texts: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "1")).collect();
    texts.push(("pump_finder", "found"));
    let server = McpServer::start(&texts).await;
    let allow: Vec<&str> = texts.iter().map(|(name, _)| *name).collect();
    let entry = json!({"url": server.url(), "private": true, "allow": allow, "auto": allow});
    let path = p.stage.folder.path().join("mcp.json");
    fs::write(&path, json!({"mcpServers": {"web": entry}}).to_string()).unwrap();
    p.stage.set("MCP_CONFIG", &path.display().to_string());
    let bot = p.start().await;
    server.listed(1).await;
    p.post(p.channel, p.ada, p.to_us("where is the pump?"));
    p.answer(p.channel, 1).await;
    let request = p.stage.model.wait_requests(1).await.remove(0);
    let tools = request["tools"].as_array().unwrap().iter();
    let names = tools.filter_map(|tool| tool["function"]["name"].as_str());
    let offered: Vec<&str> = names.filter(|name| name.starts_with("web__")).collect();
    assert_eq!(offered.len(), 20);
    assert!(offered.contains(&"web__pump_finder"), "{offered:?}");
    bot.stop().await;
}
