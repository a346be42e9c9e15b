//! Documents of an agent that are too long for a prompt: what of them goes in, what more the
//! model can read, and what is told of it.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::tools::results;
use super::{Place, only, place};

const LEAKS: &str = "A leaking pump wants a new gasket, size 14.";

/// A manual of so many chapters, each with a few hundred characters of its own.
fn manual(chapters: usize) -> String {
    let mut text = String::from("# Pumps\n\nPumps move water.\n\n## Leaks\n\n");
    text.push_str(LEAKS);
    for chapter in 1..=chapters {
        let filler = format!(" valve{chapter}").repeat(50);
        let _ = write!(text, "\n\n## Valve {chapter}\n\nThis is{filler}");
    }
    text
}

/// The agent that answers everywhere, with one document.
fn write_agent(p: &Place, fields: &Value, text: &str) {
    let folder = p.stage.folder.path().join("agents/default");
    fs::create_dir_all(folder.join("docs")).unwrap();
    let mut agent = json!({"system_prompt": "Be kind."});
    for (name, value) in fields.as_object().unwrap() {
        agent[name] = value.clone();
    }
    fs::write(folder.join("agent.json"), agent.to_string()).unwrap();
    fs::write(folder.join("docs/manual.md"), text).unwrap();
}

fn offers_read_doc(request: &Value) -> bool {
    let tools = request["tools"].as_array().unwrap();
    tools
        .iter()
        .any(|tool| tool["function"]["name"] == "read_doc")
}

#[tokio::test(flavor = "multi_thread")]
async fn short_documents_go_in_whole() {
    let p = place(&[]).await;
    let text = manual(5);
    write_agent(&p, &json!({}), &text);
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us("why does my pump leak?"));
    let prompt = p.prompt(1).await;
    let whole = format!("Be kind.\n\n# manual.md\n\n{text}\n\nYour name here is ");
    assert!(prompt.starts_with(&whole), "{prompt}");
    assert!(!offers_read_doc(&p.stage.model.requests()[0]));
    let request = p
        .ask_calling("well?", &[("read_doc", r#"{"doc": "manual.md"}"#)])
        .await;
    assert!(results(&request)[0].contains("There is no tool of that name."));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_documents_go_in_by_passage_and_the_receipt_names_them() {
    let p = place(&[]).await;
    let text = manual(100);
    write_agent(&p, &json!({}), &text);
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us("why does my pump leak?"));
    let said = p.prompt(1).await;
    let list = "Be kind.\n\n# Documents\n\n- manual.md: Pumps, Leaks, Valve 1, ";
    assert!(said.starts_with(list), "{said}");
    let passage = format!("\n\n# manual.md > Pumps > Leaks\n\n{LEAKS}\n\nYour name here is ");
    assert!(said.contains(&passage), "{said}");
    assert!(!said.contains("valve1 "), "{said}");
    assert!(text.len() > 30_000 && said.len() < 6_000, "{}", said.len());
    let answers = p.stage.discord.wait_answers(p.channel, 1).await.unwrap();
    let shown = p.why(answers[0].id).await;
    let field = "Documents\nmanual.md > Pumps > Leaks\nModel";
    assert!(shown.contains(field), "{shown}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_budget_is_the_agents_and_messages_around_the_question_count() {
    let p = place(&[("LONE_CONTEXT", "recent")]).await;
    write_agent(&p, &json!({"docs_chars": 1_000}), &manual(20));
    let bot = p.start().await;
    p.post(p.channel, p.boris, "valve7 is stuck again, valve7!");
    p.seen().await;
    p.post(p.channel, p.ada, p.to_us("and now?"));
    let said = p.prompt(1).await;
    assert!(
        said.contains("# manual.md > Pumps > Valve 7\n\nThis is valve7 "),
        "{said}"
    );
    // All of them have the word; there is room for two.
    p.post(p.channel, p.ada, p.to_us("which valve, 3, 4, 5, or 6?"));
    let said = p.prompt(2).await;
    assert_eq!(said.matches("# manual.md > ").count(), 2, "{said}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_reads_more_of_them_by_heading_and_page() {
    let p = place(&[]).await;
    write_agent(&p, &json!({}), &manual(100));
    let bot = p.start().await;
    let read = p.tool("read_doc", &json!({"doc": "manual > leaks"})).await;
    let head = "From your operator's documents, manual.md > Pumps > Leaks:\n(page 1 of 1)\n";
    assert!(
        read.contains(&format!(
            "{head}# manual.md > Pumps > Leaks\n\n{LEAKS}\n</tool-result "
        )),
        "{read}"
    );
    let read = p
        .tool("read_doc", &json!({"doc": "manual.md", "page": 2}))
        .await;
    assert!(read.contains("manual.md:\n(page 2 of 6)\n"), "{read}");
    assert!(read.chars().count() < 8_200, "{}", read.len());
    for wrong in [
        json!({"doc": "prices.md"}),
        json!({"doc": "manual.md > Boilers"}),
    ] {
        let read = p.tool("read_doc", &wrong).await;
        assert!(
            read.contains("There is no such document or heading, and no passage"),
            "{read}"
        );
    }
    let found = p.tool("read_doc", &json!({"doc": "gasket size"})).await;
    assert!(
        found.contains(LEAKS) && !found.contains("valve1"),
        "{found}"
    );
    let beyond = p
        .tool("read_doc", &json!({"doc": "manual.md", "page": 0}))
        .await;
    assert!(
        beyond.contains("The argument `page` is missing or wrong."),
        "{beyond}"
    );
    assert!(offers_read_doc(&p.stage.model.requests()[0]));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn telemetry_names_the_tool() {
    let p = place(&[]).await;
    write_agent(&p, &json!({}), &manual(100));
    let bot = p.start().await;
    let request = p
        .ask_calling("pump?", &[("read_doc", r#"{"doc": "manual"}"#)])
        .await;
    assert!(results(&request)[0].contains("(page 1 of "));
    p.answer(p.channel, 1).await;
    let lines = bot.stop().await;
    let called = only(&lines, "tool_called");
    assert_eq!(
        (&called["tool"], &called["outcome"]),
        (&json!("read_doc"), &json!("ok"))
    );
}
