//! Writes what happened as plain lines for a terminal.

mod short;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use serde_json::Value;

use super::DemoOptions;
use super::line::DemoLine;
use super::scene::{CallPlayed, DemoCall, DemoScene, Played};
use clew_context::engine::sanitise;
use clew_context::model::OmitReason;

/// The most columns of a line.
const WIDTH: usize = 80;
/// The indentation before a label.
const MARGIN: &str = "   ";
/// The columns of a command to try.
const NEXT: usize = 40;
/// The columns of a label, with the space after it.
const LABEL: usize = 12;

pub(super) struct DemoPage<'a> {
    out: &'a mut dyn Write,
    styled: bool,
}

/// How a terminal emphasises a line.
#[derive(Clone, Copy)]
enum Style {
    Plain,
    Bold,
    Dim,
    Green,
}

impl<'a> DemoPage<'a> {
    pub(super) fn new(out: &'a mut dyn Write, styled: bool) -> Self {
        Self { out, styled }
    }

    /// Says what the demo is.
    pub(super) fn introduction(&mut self, options: &DemoOptions) -> io::Result<()> {
        self.line(
            Style::Bold,
            "Clew answers questions on Discord, knowing what they are about",
        )?;
        let who = if options.has_model() {
            "Your model answers."
        } else {
            "No model is set, so you see what one would read instead of what it answers; \
             where one has to act, a script does."
        };
        let text = format!(
            "The bot runs here, on a Discord that is simulated on this machine: the server of \
             a small waterworks. {who} Beside it stands what a chain bot sends its model: one that \
             follows replies, as many do."
        );
        self.paragraph("", &text)
    }

    /// Shows everything about one scene.
    pub(super) fn scene(
        &mut self,
        number: usize,
        scene: &DemoScene,
        played: &Played,
        complaints: &[String],
    ) -> io::Result<()> {
        self.heading(number, &scene.title)?;
        self.paragraph(MARGIN, &scene.setting)?;
        self.line(Style::Plain, "")?;
        self.asked(played)?;
        self.collected(scene, played)?;
        self.tools(played)?;
        self.gets(played)?;
        self.answers(played)?;
        self.telemetry(&played.lines)?;
        self.end(complaints)
    }

    /// Shows everything about a command.
    pub(super) fn call(
        &mut self,
        number: usize,
        call: &DemoCall,
        played: &CallPlayed,
        complaints: &[String],
    ) -> io::Result<()> {
        self.heading(number, &call.title)?;
        self.paragraph(MARGIN, &call.setting)?;
        self.line(Style::Plain, "")?;
        let CallPlayed { asker, place, .. } = played;
        self.labelled("called by", &format!("{asker} in {place}"))?;
        let mut typed = format!("/{}", call.command);
        for (option, value) in &call.options {
            let _ = write!(typed, " {option}:{value}");
        }
        self.labelled("command", &typed)?;
        let seen_by = if played.is_private {
            asker
        } else {
            "everybody there"
        };
        self.labelled("answer", &format!("as {seen_by} sees it"))?;
        self.quoted([played.told.as_str()].into_iter())?;
        for (index, roles) in played.requests.iter().enumerate() {
            let label = if index == 0 { "requests" } else { "" };
            self.labelled(label, &format!("to the model: {}", roles.join(", ")))?;
        }
        if !played.posted.is_empty() {
            self.labelled("posted", "in the run's thread")?;
            self.quoted(played.posted.iter().map(String::as_str))?;
        }
        self.end(complaints)
    }

    /// Says how it went and what to do next.
    pub(super) fn summary(
        &mut self,
        good: usize,
        all: usize,
        took: Duration,
        options: &DemoOptions,
    ) -> io::Result<()> {
        self.line(Style::Plain, "")?;
        let seconds = took.as_secs_f64();
        let went = format!("{good} of {all} went as expected, in {seconds:.1} s. What next:");
        self.line(Style::Bold, &went)?;
        let mut next = vec![
            ("demo --scene 4 --verbose", "all about one scene"),
            ("demo --ask \"...\"", "ask something else in the first"),
            ("playground", "try it yourself, in the browser"),
            ("tune EXPORT.json", "limits that suit your own channel"),
            ("run", "in your server: see README.md"),
        ];
        if !options.has_model() {
            next.insert(0, ("demo", "with LLM_BASE_URL set: a model answers"));
        }
        for (command, what) in next {
            let command = format!("  {} {command}", options.program);
            self.line(Style::Plain, &format!("{command:NEXT$}  {what}"))?;
        }
        self.out.flush()
    }

    fn heading(&mut self, number: usize, title: &str) -> io::Result<()> {
        self.line(Style::Plain, "")?;
        self.line(Style::Bold, &format!("{number}. {title}"))
    }

    fn end(&mut self, complaints: &[String]) -> io::Result<()> {
        for complaint in complaints {
            self.labelled("NOT AS EXPECTED", complaint)?;
        }
        self.out.flush()
    }

    fn quoted<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> io::Result<()> {
        for line in texts.flat_map(str::lines) {
            let (first, rest) = (format!("{MARGIN}  | "), format!("{MARGIN}  |   "));
            self.hanging(Style::Plain, &first, &rest, line)?;
        }
        Ok(())
    }

    fn asked(&mut self, played: &Played) -> io::Result<()> {
        if let Some(before) = &played.said_before {
            self.labelled("just before", before)?;
        }
        self.labelled("asked by", &format!("{} in {}", played.asker, played.place))?;
        if let Some(points_at) = &played.points_at {
            self.labelled("in reply to", points_at)?;
        }
        self.labelled("question", &played.text)
    }

    fn collected(&mut self, scene: &DemoScene, played: &Played) -> io::Result<()> {
        self.labelled("scene", &scene_words(played.detail("trigger")))?;
        self.labelled("rule", &scene.rule)?;
        if let Some(ok) = played.detail("collect_ok") {
            self.labelled("collected", &collected_words(ok, played.detail("tail_ok")))?;
            self.labelled("left out", &left_out(ok))?;
        }
        for fallback in played.details("collect_fallback") {
            let (stage, reason) = (&fallback["stage"], &fallback["reason"]);
            self.labelled("missing", &format!("{} ({})", bare(stage), bare(reason)))?;
        }
        let replied = match &played.replied_to {
            Some(_) if played.replied == Some(played.question) => "the question",
            Some(other) => other,
            None => "no message",
        };
        self.labelled("replies to", replied)
    }

    fn tools(&mut self, played: &Played) -> io::Result<()> {
        for call in played.details("tool_called") {
            let (tool, outcome, bytes) = (&call["tool"], &call["outcome"], &call["bytes"]);
            let words = format!("{}: {}, {bytes} bytes", bare(tool), bare(outcome));
            self.labelled("tool called", &words)?;
        }
        Ok(())
    }

    fn gets(&mut self, played: &Played) -> io::Result<()> {
        let gets = &played.gets;
        if gets.is_empty() {
            let source = played.detail("collect_ok").map(|ok| &ok["source"]);
            let none = if source.is_none_or(|source| source == "none") {
                "none"
            } else {
                "none: the gateway and earlier calls had told everything"
            };
            return self.labelled("GETs made", none);
        }
        let label = format!("{} made", count(gets.len() as u64, "GET", "GETs"));
        self.labelled(&label, &gets[0])?;
        for get in &gets[1..] {
            self.labelled("", get)?;
        }
        Ok(())
    }

    fn answers(&mut self, played: &Played) -> io::Result<()> {
        self.labelled("answer", "as posted")?;
        self.quoted(played.answers.iter().map(|answer| answer.content.as_str()))
    }

    fn telemetry(&mut self, lines: &[DemoLine]) -> io::Result<()> {
        self.labelled("telemetry", "a JSON line each; times and ids left out here")?;
        for line in lines {
            let (first, rest) = (format!("{MARGIN}  "), format!("{MARGIN}      "));
            self.hanging(Style::Dim, &first, &rest, &line.short)?;
        }
        Ok(())
    }

    fn labelled(&mut self, label: &str, text: &str) -> io::Result<()> {
        self.labelled_in(Style::Plain, label, text)
    }

    fn labelled_in(&mut self, style: Style, label: &str, text: &str) -> io::Result<()> {
        let gap = if label.len() < LABEL { "" } else { " " };
        let first = format!("{MARGIN}{label:LABEL$}{gap}");
        let rest = " ".repeat(MARGIN.len() + LABEL);
        self.hanging(style, &first, &rest, text)
    }

    fn paragraph(&mut self, lead: &str, text: &str) -> io::Result<()> {
        self.hanging(Style::Plain, lead, lead, text)
    }

    /// The first line begins with `first`, the others with `rest`.
    fn hanging(&mut self, style: Style, first: &str, rest: &str, text: &str) -> io::Result<()> {
        let width = WIDTH - first.chars().count().max(rest.chars().count());
        for (index, line) in wrap(text, width).into_iter().enumerate() {
            let lead = if index == 0 { first } else { rest };
            self.line(style, &format!("{lead}{line}"))?;
        }
        Ok(())
    }

    fn line(&mut self, style: Style, text: &str) -> io::Result<()> {
        // A model's words give no orders to the terminal.
        let text = sanitise::text(text);
        let text = text.trim_end();
        match style {
            Style::Bold if self.styled => writeln!(self.out, "\x1b[1m{text}\x1b[0m"),
            Style::Dim if self.styled => writeln!(self.out, "\x1b[2m{text}\x1b[0m"),
            Style::Green if self.styled => writeln!(self.out, "\x1b[32m{text}\x1b[0m"),
            _ => writeln!(self.out, "{text}"),
        }
    }
}

fn scene_words(trigger: Option<&Value>) -> String {
    let Some(trigger) = trigger else {
        return "none, the bot took no notice".to_owned();
    };
    let adopted = if trigger["adopted"] == true {
        ", without words of its own"
    } else {
        ""
    };
    let (scene, cause) = (bare(&trigger["scene"]), bare(&trigger["cause"]));
    format!("{scene} (cause: {cause}{adopted})")
}

fn collected_words(ok: &Value, tail: Option<&Value>) -> String {
    let messages = count(ok["msgs"].as_u64().unwrap_or(0), "message", "messages");
    let mut words = format!("{messages}, {} characters, in {} ms", ok["chars"], ok["ms"]);
    if let Some(tail) = tail {
        let (shown, asked) = (&tail["count"], &tail["k"]);
        let _ = write!(words, "; of the thread's tail {shown} of {asked}");
    }
    words
}

/// What was seen but left out, and by which rule.
fn left_out(ok: &Value) -> String {
    let counts = ok["omitted"].as_object().into_iter().flatten();
    let words: Vec<String> = counts
        .map(|(reason, count)| format!("{count} {}", why(reason, ok)))
        .collect();
    if words.is_empty() {
        return "nothing of what was looked at".to_owned();
    }
    words.join(", ")
}

/// A reason in words, a cap with its value.
fn why(reason: &str, ok: &Value) -> String {
    let Some(known) = OmitReason::from_word(reason) else {
        return reason.to_owned();
    };
    let value = known.setting().map(|name| &ok["caps"][name.to_lowercase()]);
    let value = value.map_or_else(String::new, |value| format!("={value}"));
    known.text().to_owned() + &value
}

/// A JSON value without quotation marks.
fn bare(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Wraps a text at spaces; a word longer than a line stays whole.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        let fits = used + 1 + length <= width;
        match lines.last_mut() {
            Some(line) if used == 0 || fits => {
                if used > 0 {
                    line.push(' ');
                    used += 1;
                }
                line.push_str(word);
                used += length;
            }
            _ => {
                lines.push(word.to_owned());
                used = length;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_break_at_spaces() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            assert_eq!(wrap(text, 9), expected, "{text}");
        }
        check("", &[""]);
        check("one", &["one"]);
        check("one three", &["one three"]);
        check("one three x", &["one three", "x"]);
        check("äöü äöü äöü", &["äöü äöü", "äöü"]);
        check("a waterworks b", &["a", "waterworks", "b"]);
    }
}
