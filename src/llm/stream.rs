//! Reads an accepted answer as it arrives: server-sent events, or plain JSON from
//! servers that do not stream.

use std::time::Duration;

use bytes::Bytes;
use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use tokio::time::timeout;

use super::wire::{self, AnswerPiece, PieceError};
use super::{Error, server_error};

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
pub(super) const WITHOUT_END: &str = "an answer without end";

/// The pieces of an answer, up to its end. The stream ends after an error.
pub(super) type AnswerPieces = BoxStream<'static, Result<AnswerPiece, Error>>;

/// Reads the body of an accepted request until the answer is complete; the rest of
/// the body is not waited for. `stall` is the longest silence between two packets.
pub(super) async fn pieces(response: Response, stall: Duration) -> Result<AnswerPieces, Error> {
    let mut body = ResponseBody::new(response, stall);
    let head = body.head().await?;
    match head.trim_ascii_start().first() {
        Some(b'{') => Ok(stream::once(read_json(body, head)).boxed()),
        Some(b'<') => Err(Error::malformed("a page for browsers")),
        _ => Ok(stream::try_unfold(EventPieces::new(body, head), EventPieces::next).boxed()),
    }
}

async fn read_json(mut body: ResponseBody, head: Vec<u8>) -> Result<AnswerPiece, Error> {
    let mut json = head;
    while let Some(chunk) = body.chunk().await? {
        json.extend_from_slice(&chunk);
    }
    let json = String::from_utf8(json).map_err(|_| Error::malformed("not UTF-8"))?;
    wire::piece(&json).map_err(piece_error)
}

/// An answer in server-sent events.
struct EventPieces {
    events: BoxStream<'static, Result<Event, EventStreamError<Error>>>,
    /// Whether there was a finish reason.
    finished: bool,
    /// Whether there was [`wire::DONE`].
    done: bool,
}

impl EventPieces {
    fn new(body: ResponseBody, head: Vec<u8>) -> Self {
        Self {
            events: lines(body, head).eventsource().boxed(),
            finished: false,
            done: false,
        }
    }

    /// The next piece, if there is one, and the events after it.
    async fn next(mut self) -> Result<Option<(AnswerPiece, Self)>, Error> {
        loop {
            let wait = match (self.done, self.finished) {
                (true, _) => DRAIN_WAIT,
                (false, true) => USAGE_WAIT,
                (false, false) => Duration::MAX,
            };
            let complete = self.done || self.finished;
            match timeout(wait, self.events.next()).await {
                Ok(Some(Ok(event))) if event.data.trim() == wire::DONE => self.done = true,
                Ok(Some(Ok(event))) if !self.done => {
                    let piece = piece(&event)?;
                    self.finished |= piece.finish_reason.is_some();
                    return Ok(Some((piece, self)));
                }
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) if !complete => return Err(broken(error)),
                Ok(None) if !complete => return Err(Error::broken_off(None)),
                Ok(Some(Err(_)) | None) | Err(_) => return Ok(None),
            }
        }
    }
}

fn piece(event: &Event) -> Result<AnswerPiece, Error> {
    if event.event == "error" {
        return Err(server_error::of_event(wire::server_error(&event.data)));
    }
    wire::piece(&event.data).map_err(piece_error)
}

fn piece_error(why: PieceError) -> Error {
    match why {
        PieceError::ServerError(fault) => server_error::of_event(fault),
        PieceError::Malformed => Error::malformed("not the JSON of a chat completion"),
    }
}

fn broken(error: EventStreamError<Error>) -> Error {
    match error {
        EventStreamError::Transport(error) => error,
        EventStreamError::Utf8(_) => Error::malformed("not UTF-8"),
        EventStreamError::Parser(_) => Error::malformed("not a stream of events"),
    }
}

/// The body with a line break before it and an empty line after it. The first
/// keeps the parser from looking for a byte order mark, on which it panics;
/// the last ends an event that the server left open.
fn lines(body: ResponseBody, head: Vec<u8>) -> impl Stream<Item = Result<Bytes, Error>> {
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
struct ResponseBody {
    response: Response,
    stall: Duration,
    bytes: usize,
    line_bytes: usize,
}

impl ResponseBody {
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
            return Err(Error::malformed("a line without end"));
        }
        Ok(chunk)
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = timeout(self.stall, self.response.chunk())
            .await
            .map_err(|_| Error::Timeout)?
            .map_err(|error| Error::broken_off(Some(error)))?;
        self.bytes += chunk.as_ref().map_or(0, Bytes::len);
        if self.bytes > MAX_BODY_BYTES {
            return Err(Error::malformed(WITHOUT_END));
        }
        Ok(chunk)
    }
}
