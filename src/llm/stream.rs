//! Reads an accepted answer as it arrives: server-sent events, or plain JSON from
//! servers that do not stream.

use std::time::Duration;

use bytes::Bytes;
use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use tokio::time::timeout;

use super::thinking::Thinking;
use super::wire::{self, NoPiece, Piece};
use super::{Completion, Error, FinishReason, Usage, fault};
use clew_context::engine::echo::Echo;

/// The most bytes of a whole body. A long answer with all its reasoning has a few
/// million; a server that sends more is broken.
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// The most bytes in one line of a stream; each packet makes the line be scanned again.
const MAX_LINE_BYTES: usize = 1024 * 1024;

/// How long a finished answer waits for the usage that should follow.
const USAGE_WAIT: Duration = Duration::from_secs(3);

/// How long to wait for the end of the body after the end of the stream;
/// otherwise the connection could not be reused.
const DRAIN_WAIT: Duration = Duration::from_millis(300);

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How an error describes a body of more than [`MAX_BODY_BYTES`].
const WITHOUT_END: &str = "an answer without end";

/// An answer that is arriving.
#[derive(Debug)]
pub(super) struct Answer {
    text: String,
    /// [`super::Settings::max_answer_bytes`].
    max_bytes: usize,
    /// Whether there was more than that.
    is_cut_off: bool,
    refused: bool,
    finish_reason: Option<FinishReason>,
    usage: Option<Usage>,
    thinking: Thinking,
    echo: Echo,
}

impl Answer {
    /// An empty answer that will take at most this many bytes of text.
    pub(super) fn of_at_most(max_bytes: usize, echo: Echo) -> Self {
        Self {
            text: String::new(),
            max_bytes,
            is_cut_off: false,
            refused: false,
            finish_reason: None,
            usage: None,
            thinking: Thinking::default(),
            echo,
        }
    }

    /// The whole answer.
    ///
    /// # Errors
    /// [`Error::Empty`] if it has no text.
    pub(super) fn complete(self) -> Result<Completion, Error> {
        let finish_reason = if self.is_cut_off {
            FinishReason::CutOff
        } else {
            self.finish_reason.unwrap_or(FinishReason::Stop)
        };
        if self.text.is_empty() {
            return Err(Error::Empty { finish_reason });
        }
        Ok(Completion {
            text: self.text,
            finish_reason,
            refused: self.refused,
            usage: self.usage,
        })
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn take(&mut self, piece: &Piece, on_delta: &mut impl FnMut(&str)) {
        let text = self.echo.strip(&self.thinking.strip(&piece.text));
        self.say(&text, on_delta);
        self.refused |= piece.refused;
        self.finish_reason = piece.finish_reason.or(self.finish_reason);
        self.usage = piece.usage.or(self.usage);
    }

    /// Passes on what the filters have held back.
    pub(super) fn end(&mut self, on_delta: &mut impl FnMut(&str)) {
        let text = self.echo.strip(&self.thinking.finish()) + &self.echo.finish();
        self.say(&text, on_delta);
    }

    /// Passes text on, without white space before the first letter, so that
    /// whatever has been passed on is an answer.
    fn say(&mut self, text: &str, on_delta: &mut impl FnMut(&str)) {
        let text = if self.text.is_empty() {
            text.trim_start()
        } else {
            text
        };
        let room = self.max_bytes - self.text.len();
        let fitting = &text[..text.floor_char_boundary(room)];
        self.is_cut_off |= fitting.len() < text.len();
        if !fitting.is_empty() {
            self.text.push_str(fitting);
            on_delta(fitting);
        }
    }
}

/// Reads the body of an accepted request into `answer` until it is complete
/// or cut off; the rest of the body is not waited for. `stall` is the longest
/// silence between two packets.
pub(super) async fn read(
    response: Response,
    stall: Duration,
    answer: &mut Answer,
    on_delta: &mut (impl FnMut(&str) + Send),
) -> Result<(), Error> {
    let mut body = Body::new(response, stall);
    let head = body.head().await?;
    let outcome = match head.trim_ascii_start().first() {
        Some(b'{') => read_json(body, head, answer, on_delta).await,
        Some(b'<') => Err(malformed("a page for browsers")),
        _ => read_events(body, head, answer, on_delta).await,
    };
    answer.end(on_delta);
    match outcome {
        Err(Error::Malformed { what: WITHOUT_END }) if !answer.text.is_empty() => {
            answer.is_cut_off = true;
            Ok(())
        }
        outcome => outcome,
    }
}

async fn read_json(
    mut body: Body,
    head: Vec<u8>,
    answer: &mut Answer,
    on_delta: &mut (impl FnMut(&str) + Send),
) -> Result<(), Error> {
    let mut json = head;
    while let Some(chunk) = body.chunk().await? {
        json.extend_from_slice(&chunk);
    }
    let json = String::from_utf8(json).map_err(|_| malformed("not UTF-8"))?;
    let piece = wire::piece(&json).map_err(no_piece)?;
    answer.take(&piece, on_delta);
    Ok(())
}

async fn read_events(
    body: Body,
    head: Vec<u8>,
    answer: &mut Answer,
    on_delta: &mut (impl FnMut(&str) + Send),
) -> Result<(), Error> {
    let mut events = Box::pin(lines(body, head).eventsource());
    let mut done = false;
    while !answer.is_cut_off {
        let wait = match answer.finish_reason {
            _ if done => DRAIN_WAIT,
            Some(_) => USAGE_WAIT,
            None => Duration::MAX,
        };
        let complete = done || answer.finish_reason.is_some();
        match timeout(wait, events.next()).await {
            Ok(Some(Ok(event))) if event.data.trim() == wire::DONE => done = true,
            Ok(Some(Ok(event))) if !done => answer.take(&piece(&event)?, on_delta),
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(error))) if !complete => return Err(broken(error)),
            Ok(None) if !complete => return Err(Error::broken_off(None)),
            Ok(Some(Err(_)) | None) | Err(_) => break,
        }
    }
    Ok(())
}

fn piece(event: &Event) -> Result<Piece, Error> {
    if event.event == "error" {
        return Err(fault::of_event(wire::fault(&event.data)));
    }
    wire::piece(&event.data).map_err(no_piece)
}

fn no_piece(why: NoPiece) -> Error {
    match why {
        NoPiece::Fault(fault) => fault::of_event(fault),
        NoPiece::Malformed => malformed("not the JSON of a chat completion"),
    }
}

fn broken(error: EventStreamError<Error>) -> Error {
    match error {
        EventStreamError::Transport(error) => error,
        EventStreamError::Utf8(_) => malformed("not UTF-8"),
        EventStreamError::Parser(_) => malformed("not a stream of events"),
    }
}

fn malformed(what: &'static str) -> Error {
    Error::Malformed { what }
}

/// The body with a line break before it and an empty line after it. The first
/// keeps the parser from looking for a byte order mark, on which it panics;
/// the last ends an event that the server left open.
fn lines(body: Body, head: Vec<u8>) -> impl Stream<Item = Result<Bytes, Error>> {
    let around = |bytes: Bytes| stream::once(async move { Ok(bytes) });
    let rest = stream::try_unfold(body, async |mut body| {
        Ok(body.line_chunk().await?.map(|chunk| (chunk, body)))
    });
    around(Bytes::from_static(b"\n"))
        .chain(around(Bytes::from(head)))
        .chain(rest)
        .chain(around(Bytes::from_static(b"\n\n")))
}

/// A body with limits on silence and size.
struct Body {
    response: Response,
    stall: Duration,
    bytes: usize,
    line_bytes: usize,
}

impl Body {
    fn new(response: Response, stall: Duration) -> Self {
        Self {
            response,
            stall,
            bytes: 0,
            line_bytes: 0,
        }
    }

    /// Everything up to and including the packet that shows what the body is,
    /// without a byte order mark. Empty only if the body is.
    async fn head(&mut self) -> Result<Vec<u8>, Error> {
        let mut head = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            head.extend_from_slice(&chunk);
            if BYTE_ORDER_MARK.starts_with(&head) {
                continue;
            }
            if let Some(rest) = head.strip_prefix(BYTE_ORDER_MARK) {
                head = rest.to_vec();
            }
            if !head.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(head)
    }

    async fn line_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = self.chunk().await?;
        let bytes = chunk.as_deref().unwrap_or_default();
        self.line_bytes = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => bytes.len() - end,
            None => self.line_bytes + bytes.len(),
        };
        if self.line_bytes > MAX_LINE_BYTES {
            return Err(malformed("a line without end"));
        }
        Ok(chunk)
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = timeout(self.stall, self.response.chunk())
            .await
            .map_err(|_| Error::timeout())?
            .map_err(|error| Error::broken_off(Some(error)))?;
        self.bytes += chunk.as_ref().map_or(0, Bytes::len);
        if self.bytes > MAX_BODY_BYTES {
            return Err(malformed(WITHOUT_END));
        }
        Ok(chunk)
    }
}
