//! Cuts files into chunks of whole lines, so that they can be read at the same time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// The longest line that is read, in bytes without its line break: thirty times what
/// the bot writes. Longer ones are counted and passed over.
pub(super) const LONGEST_LINE: usize = 64 * 1024;
/// How much is read from a file at once.
const BUFFER: usize = 128 * 1024;
/// How gzip files begin, whatever their name.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Some whole lines of a file.
pub(super) struct Chunk {
    /// The file's number, from 0.
    pub(super) file: usize,
    pub(super) bytes: Vec<u8>,
    /// How many bytes of a line that is too long are left out.
    pub(super) passed_over: usize,
    /// Whether the last line may lack its end: it is the file's last.
    pub(super) is_last: bool,
    /// Why nothing follows, if the file could not be read to its end.
    pub(super) error: Option<io::Error>,
}

/// The chunks of one file.
pub(super) struct Chunks {
    file: usize,
    reader: Box<dyn Read + Send>,
    /// About how long a chunk is, in bytes.
    length: usize,
    /// Of the next chunk: what follows the last line break.
    begun: Vec<u8>,
    is_over: bool,
    passed_over: usize,
    error: Option<io::Error>,
}

/// Opens a file, compressed or not.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
    if file.fill_buf()?.starts_with(&GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(file)));
    }
    Ok(Box::new(file))
}

impl Chunks {
    pub(super) fn new(file: usize, reader: Box<dyn Read + Send>, length: usize) -> Self {
        Self {
            file,
            reader,
            length,
            begun: Vec::new(),
            is_over: false,
            passed_over: 0,
            error: None,
        }
    }

    /// A file that cannot be opened: it has one chunk, empty, with the error.
    pub(super) fn broken(file: usize, error: io::Error) -> Self {
        let mut chunks = Self::new(file, Box::new(io::empty()), 1);
        chunks.error = Some(error);
        chunks
    }

    /// The next chunk, made in a buffer that is no longer used.
    pub(super) fn next(&mut self, mut bytes: Vec<u8>) -> Option<Chunk> {
        if self.is_over {
            return None;
        }
        bytes.clear();
        bytes.append(&mut self.begun);
        let filled = self.fill(&mut bytes);
        self.is_over |= filled.is_err();
        Some(Chunk {
            file: self.file,
            bytes,
            passed_over: std::mem::take(&mut self.passed_over),
            is_last: self.is_over,
            error: filled.err().or_else(|| self.error.take()),
        })
    }

    fn fill(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let before = bytes.len();
            let wanted = self.length.max(1);
            let mut part = self.reader.by_ref().take(wanted as u64);
            if part.read_to_end(bytes)? < wanted {
                self.is_over = true;
                return Ok(());
            }
            if let Some(end) = memchr::memrchr(b'\n', &bytes[before..]) {
                self.begun.extend_from_slice(&bytes[before + end + 1..]);
                bytes.truncate(before + end + 1);
                return Ok(());
            }
            let line = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
            if bytes.len() - line > LONGEST_LINE {
                // What is kept is too long all the same.
                self.passed_over = bytes.len() - line - LONGEST_LINE - 1;
                bytes.truncate(line + LONGEST_LINE + 1);
                return self.pass_over_line(bytes);
            }
        }
    }

    /// Reads up to the line's end and keeps what follows.
    fn pass_over_line(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut part = Vec::with_capacity(BUFFER);
        loop {
            part.clear();
            let read = self
                .reader
                .by_ref()
                .take(BUFFER as u64)
                .read_to_end(&mut part)?;
            if let Some(end) = memchr::memchr(b'\n', &part) {
                bytes.push(b'\n');
                self.passed_over += end;
                self.begun.extend_from_slice(&part[end + 1..]);
                return Ok(());
            }
            self.passed_over += read;
            if read < BUFFER {
                self.is_over = true;
                return Ok(());
            }
        }
    }
}
