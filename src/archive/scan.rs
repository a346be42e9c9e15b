//! Finds where JSON values begin and end in a file of any size, holding only one
//! of them at a time.
//!
//! It only knows brackets, strings and white space; the JSON parser checks the
//! values afterwards.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The number of bytes per read from the file: a few dozen messages.
const CHUNK: usize = 256 * 1024;
/// The largest value that is read, in bytes. A message that lists every reacting
/// user can reach a few MB; beyond this limit the file is damaged, not large.
const MAX_VALUE: usize = 64 * 1024 * 1024;
/// Enough bytes for a message's first key and value, even if indented.
const OPENING: usize = 256;

/// A position-aware reader of one file.
pub(super) struct Scanner {
    file: File,
    buffer: Vec<u8>,
    /// The next unread byte in `buffer`.
    next: usize,
    /// The offset in the file of the first byte of `buffer`.
    base: u64,
}

/// Why a value could not be read.
#[derive(Debug)]
pub(super) enum ScanError {
    /// The file ends inside the value.
    End,
    /// The file cannot be JSON from this offset on.
    Syntax(u64, &'static str),
    /// The file could not be read.
    Io(io::Error),
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Scanner {
    /// Starts at the beginning of the file, after a byte order mark.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let mut scanner = Self {
            file,
            buffer: Vec::with_capacity(CHUNK),
            next: 0,
            base: 0,
        };
        if scanner.at_least(3)?.starts_with(b"\xEF\xBB\xBF") {
            scanner.next += 3;
        }
        Ok(scanner)
    }

    /// The offset of the next unread byte.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.next as u64
    }

    /// The next byte that is not white space, without consuming it.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let rest = &self.buffer[self.next..];
            if let Some(skip) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) {
                self.next += skip;
                return Ok(Some(self.buffer[self.next]));
            }
            self.next = self.buffer.len();
            if !self.refill()? {
                return Ok(None);
            }
        }
    }

    /// Consumes `wanted` if it comes next.
    pub(super) fn take(&mut self, wanted: u8) -> io::Result<bool> {
        let found = self.peek()? == Some(wanted);
        self.next += usize::from(found);
        Ok(found)
    }

    /// Consumes `wanted`, which must come next.
    pub(super) fn expect(&mut self, wanted: u8, what: &'static str) -> Result<(), ScanError> {
        if self.take(wanted)? {
            return Ok(());
        }
        match self.peek()? {
            Some(_) => Err(ScanError::Syntax(self.offset(), what)),
            None => Err(ScanError::End),
        }
    }

    /// Reads the next value into `out`, which is cleared first; after an error it
    /// holds the part before the error.
    pub(super) fn value(&mut self, out: &mut Vec<u8>) -> Result<(), ScanError> {
        out.clear();
        self.walk(|bytes, offset| {
            if out.len() + bytes.len() > MAX_VALUE {
                return Err(ScanError::Syntax(offset, "a value of more than 64 MiB"));
            }
            out.extend_from_slice(bytes);
            Ok(())
        })
    }

    /// Skips the next value, of any size.
    pub(super) fn skip(&mut self) -> Result<(), ScanError> {
        self.walk(|_, _| Ok(()))
    }

    /// Goes back (or forward) to an offset.
    pub(super) fn rewind(&mut self, to: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(to))?;
        self.buffer.clear();
        self.next = 0;
        self.base = to;
        Ok(())
    }

    /// Goes to the next place at or after `from` where a message begins: an object
    /// whose first keys are an `id` of digits and a `type`. Authors, files and
    /// emoji have other second keys. False if there is none.
    pub(super) fn resync(&mut self, from: u64) -> io::Result<bool> {
        self.rewind(from)?;
        loop {
            let rest = &self.buffer[self.next..];
            match rest.iter().position(|byte| *byte == b'{') {
                None => self.next = self.buffer.len(),
                Some(skip) => {
                    self.next += skip;
                    if opens_message(self.at_least(OPENING)?) {
                        return Ok(true);
                    }
                    self.next += 1;
                }
            }
            if self.next >= self.buffer.len() && !self.refill()? {
                return Ok(false);
            }
        }
    }

    /// Passes the bytes of the next value to `sink`, chunk by chunk.
    fn walk(
        &mut self,
        mut sink: impl FnMut(&[u8], u64) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        if self.peek()?.is_none() {
            return Err(ScanError::End);
        }
        let mut walk = Walk::default();
        loop {
            let start = self.offset();
            let rest = &self.buffer[self.next..];
            let (used, done) = match walk.advance(rest) {
                Ok(advanced) => advanced,
                Err((at, what)) => {
                    sink(&rest[..at], start)?;
                    return Err(ScanError::Syntax(start + at as u64, what));
                }
            };
            sink(&rest[..used], start)?;
            self.next += used;
            if done {
                return Ok(());
            }
            if !self.refill()? {
                return if walk.ends_with_file() {
                    Ok(())
                } else {
                    Err(ScanError::End)
                };
            }
        }
    }

    /// The unread bytes, at least `count` of them unless the file ends.
    fn at_least(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.buffer.len() - self.next < count {
            self.buffer.drain(..self.next);
            self.base += self.next as u64;
            self.next = 0;
            while self.buffer.len() < count && self.append()? {}
        }
        Ok(&self.buffer[self.next..])
    }

    /// Replaces a used-up buffer; false at the end of the file.
    fn refill(&mut self) -> io::Result<bool> {
        self.base += self.buffer.len() as u64;
        self.buffer.clear();
        self.next = 0;
        self.append()
    }

    fn append(&mut self) -> io::Result<bool> {
        let before = self.buffer.len();
        let read = Read::by_ref(&mut self.file)
            .take(CHUNK as u64)
            .read_to_end(&mut self.buffer)?;
        debug_assert_eq!(self.buffer.len(), before + read);
        Ok(read > 0)
    }
}

/// The state of a walk over the bytes of a value.
#[derive(Default)]
struct Walk {
    depth: u32,
    in_string: bool,
    escaped: bool,
    in_scalar: bool,
}

impl Walk {
    /// Returns how many bytes belong to the value and whether it ends there; or, as
    /// an error, where in `bytes` it stops being JSON.
    fn advance(&mut self, bytes: &[u8]) -> Result<(usize, bool), (usize, &'static str)> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at = self.through_string(bytes, at)?;
                if self.in_string || self.depth > 0 {
                    continue;
                }
                return Ok((at, true));
            }
            match bytes[at] {
                b'"' if !self.in_scalar => self.in_string = true,
                b'{' | b'[' if !self.in_scalar => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Ok((at + 1, true));
                    }
                }
                b',' | b'}' | b']' | b':' if self.depth == 0 && !self.in_scalar => {
                    return Err((at, "a value is missing"));
                }
                b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' if self.depth == 0 => {
                    return Ok((at, true));
                }
                _ => self.in_scalar = self.depth == 0,
            }
            at += 1;
        }
        Ok((at, false))
    }

    /// Goes from `at` inside a string to the byte after its closing quote, or to
    /// the end of `bytes`. A raw line break means that a quote is missing.
    fn through_string(
        &mut self,
        bytes: &[u8],
        mut at: usize,
    ) -> Result<usize, (usize, &'static str)> {
        while at < bytes.len() {
            let byte = bytes[at];
            if byte < b' ' {
                return Err((at, "a control character inside a string"));
            }
            at += 1;
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
            } else if byte == b'"' {
                self.in_string = false;
                return Ok(at);
            }
        }
        Ok(at)
    }

    /// Whether the value may end with the file: only a number or word has no end mark.
    fn ends_with_file(&self) -> bool {
        self.in_scalar && self.depth == 0
    }
}

/// The id of the message that starts with these bytes, if one does.
pub(super) fn opening_id(bytes: &[u8]) -> Option<&str> {
    let rest = after(bytes, b"{")?;
    let rest = after(rest, b"\"id\"")?;
    let rest = after(rest, b":")?;
    let rest = after(rest, b"\"")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let closed = digits > 0 && rest.get(digits) == Some(&b'"');
    closed.then(|| std::str::from_utf8(&rest[..digits]).ok())?
}

fn opens_message(bytes: &[u8]) -> bool {
    let comma = bytes.iter().position(|byte| *byte == b',');
    let second = comma.and_then(|comma| after(&bytes[comma + 1..], b"\"type\""));
    opening_id(bytes).is_some() && second.is_some()
}

/// What follows `token`, which white space may precede.
fn after<'a>(bytes: &'a [u8], token: &[u8]) -> Option<&'a [u8]> {
    bytes.trim_ascii_start().strip_prefix(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn scanner(text: &str) -> Scanner {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        Scanner::new(file).unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let mut out = Vec::new();
        let found = match scanner(text).value(&mut out) {
            Ok(()) => Ok(String::from_utf8(out).unwrap()),
            Err(ScanError::End) => Err("end".to_owned()),
            Err(ScanError::Syntax(at, _)) => Err(at.to_string()),
            Err(ScanError::Io(error)) => Err(error.to_string()),
        };
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn values_are_cut_out_whole() {
        check(
            r#" {"a":[1,{"b":"}\"]"}]} , x"#,
            Ok(r#"{"a":[1,{"b":"}\"]"}]}"#),
        );
        check(r#""a\\",1"#, Ok(r#""a\\""#));
        check("12.5e3]", Ok("12.5e3"));
        check("null", Ok("null"));
        check("\u{feff}[ ]", Ok("[ ]"));
        check("", Err("end"));
        check("[1, 2", Err("end"));
        check(r#""open"#, Err("end"));
        check("{\"a\":\"b\n\"}", Err("7"));
        check(",1", Err("0"));
    }

    #[test]
    fn values_longer_than_a_chunk_are_cut_out_whole() {
        let long = format!("[\"{}\\\"]\",{{}}]", "x".repeat(3 * CHUNK - 5));
        check(&format!("{long}  "), Ok(&long));
    }

    #[test]
    fn a_message_is_found_again_after_damage() {
        let text = r#"[{"id":"1","x {"id":"2","name":"a"} {"id": "77", "type": "Reply"}]"#;
        let mut scanner = scanner(text);
        assert!(scanner.resync(0).unwrap());
        let mut out = Vec::new();
        scanner.value(&mut out).unwrap();
        assert_eq!(opening_id(&out), Some("77"));
        assert!(!scanner.resync(scanner.offset()).unwrap());
    }
}
