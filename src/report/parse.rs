//! A chunk of lines becomes events. Chunks are parsed at the same time, so nothing
//! here depends on any other chunk.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use clew_context::engine::sanitise;
use clew_context::model::UnixMillis;

use super::chunks::{Chunk, LONGEST_LINE};
use super::line::{Detail, Line, Text};
use super::{Guild, Options};

/// The most characters of a name: of a model, an agent, a reason.
const LONGEST_NAME: usize = 64;
/// The most unreadable lines of a chunk that are named.
pub(super) const NAMED: usize = 5;
/// How the bot's lines begin: where one was cut off, the next may follow on the same line.
const BEGINNING: &[u8] = b"{\"ts\":\"";
/// What stands before an event's name.
const BEFORE_EVENT: &[u8] = b"\"event\":\"";

/// What a chunk says.
pub(super) struct Parsed {
    /// The number of its file.
    pub(super) file: usize,
    pub(super) bytes: usize,
    pub(super) lines: u64,
    pub(super) events: Vec<Event>,
    pub(super) names: Names,
    /// Lines that end too early: the last of their file, or before another on the same line.
    pub(super) cut_off: u64,
    pub(super) unreadable: u64,
    /// The first unreadable ones: which line of the chunk, from 0, and why.
    pub(super) named: Vec<(u64, String)>,
    pub(super) error: Option<io::Error>,
}

/// An event that the report counts.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) time: UnixMillis,
    /// None outside of servers.
    pub(super) guild: Option<u64>,
    pub(super) channel: Option<u64>,
    pub(super) user: Option<u64>,
    pub(super) turn: Option<u64>,
    pub(super) what: What,
}

/// What happened. Times are in tenths of a millisecond.
#[derive(Debug)]
pub(super) enum What {
    Trigger {
        scene: Option<Name>,
        cause: Option<Name>,
        queued: Option<u64>,
    },
    Collected {
        took: Option<u64>,
        fetches: u64,
    },
    Truncated {
        cap: Name,
        kept: u64,
        dropped: u64,
        shortened: u64,
    },
    Fallback {
        kind: FallbackKind,
        reason: Name,
    },
    TurnDone {
        outcome: Name,
        took: Option<u64>,
        to_model: Option<u64>,
        scene: Option<Name>,
        agent: Option<Name>,
        model: Option<Name>,
    },
    RequestOk {
        to_first: Option<u64>,
        took: Option<u64>,
        tokens: Option<(u64, u64)>,
        asked: Asked,
    },
    RequestFailed {
        reason: Name,
        asked: Asked,
    },
    ToolCalled {
        took: Option<u64>,
    },
    Recorded {
        took: Option<u64>,
    },
    Refused {
        reason: Name,
    },
    RunDone {
        end: Name,
    },
    Started,
    Dropped {
        lines: u64,
    },
}

/// Whom a request went to, and from whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) model: Option<Name>,
    pub(super) agent: Option<Name>,
    /// 1 for the first of the model servers.
    pub(super) server: Option<u64>,
}

/// What a turn had to do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FallbackKind {
    Collect,
    Tail,
    Send,
}

/// A name among those of its chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(usize);

/// The names of a chunk, each once.
#[derive(Debug, Default)]
pub(super) struct Names {
    texts: Vec<String>,
    by_text: HashMap<String, Name>,
}

impl Names {
    pub(super) fn text(&self, name: Name) -> &str {
        self.texts.get(name.0).map_or("", String::as_str)
    }

    fn name(&mut self, text: &Text<'_>) -> Name {
        if let Some(known) = self.by_text.get(&*text.0) {
            return *known;
        }
        let printable = printable(&text.0);
        let name = Name(self.texts.len());
        self.texts.push(printable);
        self.by_text.insert(text.0.clone().into_owned(), name);
        name
    }

    fn maybe(&mut self, text: Option<&Text<'_>>) -> Option<Name> {
        let named = text.filter(|text| !text.0.is_empty());
        named.map(|text| self.name(text))
    }

    /// A name that older versions may not have written.
    fn always(&mut self, text: Option<&Text<'_>>) -> Name {
        const UNKNOWN: Text<'static> = Text(Cow::Borrowed("unknown"));
        self.name(text.unwrap_or(&UNKNOWN))
    }
}

/// The character as a terminal shows it, which obeys nothing that a file says.
pub(super) fn visible(next: char) -> char {
    match next {
        '\n' | '\t' => '\u{FFFD}',
        hidden if sanitise::is_invisible(hidden) => '\u{FFFD}',
        next => next,
    }
}

/// At most [`LONGEST_NAME`] characters, none of which a terminal obeys.
fn printable(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST_NAME).map(visible).collect();
    if text.chars().nth(LONGEST_NAME).is_some() {
        short.pop();
        short.push('…');
    }
    short
}

/// serde's message without the line, which is always the first. It may quote the file.
fn why(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let (what, _) = message.rsplit_once(" at line ").unwrap_or((&message, ""));
    format!("{} (column {})", printable(what), error.column())
}

/// Parses a chunk; of its lines only those that the options ask for become events.
pub(super) fn parse(chunk: &mut Chunk, options: &Options) -> Parsed {
    let mut parsed = Parsed {
        file: chunk.file,
        bytes: chunk.bytes.len() + chunk.passed_over,
        lines: 0,
        events: Vec::with_capacity(chunk.bytes.len() / 512),
        names: Names::default(),
        cut_off: 0,
        unreadable: 0,
        named: Vec::new(),
        error: chunk.error.take(),
    };
    let mut rest = chunk.bytes.as_slice();
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest);
        let is_whole = end.is_some() || !chunk.is_last;
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.get(1..).unwrap_or_default();
        parsed.line(line, is_whole, options);
        parsed.lines += 1;
    }
    parsed
}

impl Parsed {
    fn line(&mut self, line: &[u8], is_whole: bool, options: &Options) {
        if line.len() > LONGEST_LINE {
            self.cannot_read(format!("it is longer than {LONGEST_LINE} bytes"));
            return;
        }
        if is_of_no_interest(line) || line.trim_ascii().is_empty() {
            return;
        }
        let Err(error) = self.event(line, options) else {
            return;
        };
        if !is_whole {
            self.cut_off += 1;
            return;
        }
        let next = memchr::memmem::rfind(line, BEGINNING).filter(|at| *at > 0);
        match next.map(|at| self.event(&line[at..], options)) {
            Some(Ok(())) => self.cut_off += 1,
            _ => self.cannot_read(error),
        }
    }

    fn cannot_read(&mut self, why: String) {
        self.unreadable += 1;
        if self.named.len() < NAMED {
            self.named.push((self.lines, why));
        }
    }

    fn event(&mut self, line: &[u8], options: &Options) -> Result<(), String> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|error| why(&error))?;
        let time = UnixMillis::parse(&line.ts.0).ok_or("its `ts` is no time")?;
        let guild = line.guild_id.map(|id| id.0);
        let is_in_time = options.since.is_none_or(|since| time >= since)
            && options.until.is_none_or(|until| time < until);
        if !is_in_time {
            return Ok(());
        }
        let detail = line.detail.unwrap_or_default();
        let Some(what) = what(&line.event.0, &detail, &mut self.names) else {
            return Ok(());
        };
        // The process serves all servers.
        let of_process = matches!(what, What::Started | What::Dropped { .. });
        if of_process || options.guild.is_none_or(|wanted| wanted.is(guild)) {
            self.events.push(Event {
                time,
                guild,
                channel: line.channel_id.map(|id| id.0),
                user: line.user_id.map(|id| id.0),
                turn: line.turn_id.map(|id| id.0),
                what,
            });
        }
        Ok(())
    }
}

impl Guild {
    fn is(self, guild: Option<u64>) -> bool {
        match self {
            Self::Server(id) => guild == Some(id),
            Self::DirectMessages => guild.is_none(),
        }
    }
}

/// Whether a line is whole and of an event that the report does not count. Of such a
/// line nothing else is looked at, which spares a third of the work.
fn is_of_no_interest(line: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(line, BEFORE_EVENT) else {
        return false;
    };
    let after = &line[at + BEFORE_EVENT.len()..];
    let name = memchr::memchr(b'"', after).map(|end| &after[..end]);
    let is_known = name.is_some_and(|name| PASSED_OVER.contains(&name));
    is_known && line.starts_with(b"{") && line.trim_ascii_end().ends_with(b"}}")
}

/// The frequent events that the report does not count.
const PASSED_OVER: [&[u8]; 5] = [b"merge_ok", b"tail_ok", b"sent", b"learnt", b"answered"];

/// None for an event that the report does not count.
fn what(event: &str, detail: &Detail<'_>, names: &mut Names) -> Option<What> {
    let tenths = |number: Option<super::line::Number>| number.map(super::line::Number::tenths);
    let whole = |number: Option<super::line::Number>| number.map_or(0, super::line::Number::whole);
    let scene = detail.case.as_ref().or(detail.scene.as_ref());
    let reason = detail.reason.as_ref();
    let took = tenths(detail.ms);
    Some(match event {
        "trigger" => What::Trigger {
            scene: names.maybe(scene),
            cause: names.maybe(detail.cause.as_ref()),
            queued: tenths(detail.queued_ms),
        },
        "collect_ok" => What::Collected {
            took,
            fetches: whole(detail.fetches),
        },
        "collect_truncated" => What::Truncated {
            cap: names.always(reason),
            kept: whole(detail.kept),
            dropped: whole(detail.dropped),
            shortened: whole(detail.shortened),
        },
        "collect_fallback" => fallback(FallbackKind::Collect, names.always(reason)),
        "tail_fallback" => fallback(FallbackKind::Tail, names.always(reason)),
        "send_fallback" => fallback(FallbackKind::Send, names.always(reason)),
        "turn_done" => What::TurnDone {
            outcome: names.always(detail.outcome.as_ref()),
            took,
            to_model: tenths(detail.ms_to_model),
            scene: names.maybe(scene),
            agent: names.maybe(detail.agent.as_ref()),
            model: names.maybe(detail.model.as_ref()),
        },
        "request_ok" => What::RequestOk {
            to_first: tenths(detail.ms_first),
            took,
            tokens: match (detail.prompt_tokens, detail.completion_tokens) {
                (None, None) => None,
                (prompt, completion) => Some((whole(prompt), whole(completion))),
            },
            asked: asked(detail, names),
        },
        "request_failed" => What::RequestFailed {
            reason: names.always(reason),
            asked: asked(detail, names),
        },
        "tool_called" => What::ToolCalled { took },
        "recorded" => What::Recorded { took },
        "refused" => What::Refused {
            reason: names.always(reason),
        },
        "run_done" => What::RunDone {
            end: names.always(detail.end.as_ref()),
        },
        "started" => What::Started,
        "dropped" => What::Dropped {
            lines: whole(detail.count),
        },
        _ => return None,
    })
}

fn fallback(kind: FallbackKind, reason: Name) -> What {
    What::Fallback { kind, reason }
}

fn asked(detail: &Detail<'_>, names: &mut Names) -> Asked {
    Asked {
        model: names.maybe(detail.model.as_ref()),
        agent: names.maybe(detail.agent.as_ref()),
        server: detail.server.map(super::line::Number::whole),
    }
}
