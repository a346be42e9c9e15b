//! The short form of a scene: what is asked, what a bot that reads nothing else has, what
//! Clew sends, and the answer.

use std::io;

use serde_json::Value;

use super::{DemoPage, Style, count, why};
use crate::demo::DemoOptions;
use crate::demo::places::short as shortened;
use crate::demo::scene::{DemoScene, Played};

/// The most of an answer, in Unicode scalars.
const ANSWER: usize = 240;
/// The most of a quoted message, in Unicode scalars.
const QUOTED: usize = 58;

impl DemoPage<'_> {
    /// Shows one scene in a few lines.
    pub(in crate::demo) fn short(
        &mut self,
        number: usize,
        scene: &DemoScene,
        played: &Played,
        options: &DemoOptions,
        complaints: &[String],
    ) -> io::Result<()> {
        self.heading(number, &scene.title)?;
        if let Some(before) = &played.said_before {
            self.labelled("just before", before)?;
        }
        let asks = format!("\"{}\"", played.text);
        self.labelled(&format!("{} asks", played.asker), &asks)?;
        // For another question what it leaves open does not hold.
        let by_replies = match options.ask {
            Some(_) => scene.by_replies.split(':').next().unwrap_or_default(),
            None => &scene.by_replies,
        };
        self.labelled_in(Style::Dim, "a chain bot", by_replies)?;
        self.labelled_in(Style::Green, "Clew", &sent(scene, played))?;
        self.short_answer(played)?;
        self.end(complaints)
    }

    /// What the model says; without a model, the first and the last of what it would read.
    fn short_answer(&mut self, played: &Played) -> io::Result<()> {
        let asked_model = played
            .detail("turn_done")
            .is_some_and(|done| !done["model"].is_null());
        let text = played.answers.iter().map(|answer| answer.content.as_str());
        let text = text.collect::<Vec<_>>().join("\n");
        if asked_model {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            return self.labelled("answer", &shortened(&words, ANSWER));
        }
        let quotes = text.lines().filter_map(|line| line.strip_prefix("> "));
        let quotes: Vec<&str> = quotes.filter(|line| !line.starts_with("*...")).collect();
        let (Some(first), Some(last)) = (quotes.first(), quotes.last()) else {
            return Ok(());
        };
        let (first, last) = (without_reason(first), without_reason(last));
        let first = shortened(&first, QUOTED);
        if quotes.len() == 1 {
            return self.labelled("it reads", &first);
        }
        self.labelled("it reads", &first)?;
        self.labelled("", &format!("... {}", shortened(&last, QUOTED)))
    }
}

/// A quoted line without why it belongs to the conversation, which stands after the name.
fn without_reason(line: &str) -> String {
    let parts = line.split_once(" *(");
    let parts = parts.and_then(|(name, rest)| Some((name, rest.split_once(")*")?.1)));
    parts.map_or_else(|| line.to_owned(), |(name, words)| format!("{name}{words}"))
}

/// What the model gets besides the question, and why.
fn sent(scene: &DemoScene, played: &Played) -> String {
    let because = &scene.because;
    let calls = played.details("tool_called");
    let called: Vec<&str> = calls.filter_map(|call| call["tool"].as_str()).collect();
    let collected = played.detail("collect_ok");
    let messages = collected.map_or(0, |ok| number(&ok["msgs"]));
    match (collected, called.as_slice()) {
        (Some(ok), _) if messages > 0 => {
            let calls = match number(&ok["fetches"]) {
                0 => "nothing fetched".to_owned(),
                calls => count(calls, "request", "requests"),
            };
            let more = played.detail("collect_truncated");
            let over = more.map_or_else(String::new, |more| over(more, ok));
            format!("sends {messages} more, {calls}: {because}{over}")
        }
        (_, []) => format!("sends no more: {because}"),
        (_, called) => format!("has the model call {}: {because}", called.join(", ")),
    }
}

/// How many messages a cap kept out.
fn over(more: &Value, ok: &Value) -> String {
    let (dropped, reason) = (number(&more["dropped"]), &more["reason"]);
    match reason.as_str() {
        Some(reason) if dropped > 0 => format!("; {dropped} left out, {}", why(reason, ok)),
        _ => String::new(),
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
