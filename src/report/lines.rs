//! The lines of a file, compressed or not, one at a time.

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

/// A file that is read line by line.
pub(super) struct Lines {
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    /// Why the file could not be read to its end, if it could not.
    pub(super) error: Option<io::Error>,
}

/// One line, without its line break.
pub(super) struct RawLine<'a> {
    /// More than [`LONGEST_LINE`] bytes if it is too long, not all of them.
    pub(super) text: &'a [u8],
    /// How many bytes it takes in the file.
    pub(super) bytes: usize,
    /// Whether a line break ends it: otherwise it is the file's last, and may be cut off.
    pub(super) is_ended: bool,
}

impl Lines {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
        let is_packed = file.fill_buf()?.starts_with(&GZIP);
        Ok(Self {
            reader: if is_packed {
                let unpacked = MultiGzDecoder::new(file);
                Box::new(BufReader::with_capacity(BUFFER, unpacked))
            } else {
                Box::new(file)
            },
            line: Vec::new(),
            error: None,
        })
    }

    /// The next line; where a file breaks off, also what stands before that.
    pub(super) fn next(&mut self) -> Option<RawLine<'_>> {
        if self.error.is_some() {
            return None;
        }
        self.line.clear();
        let mut part = self.reader.by_ref().take(LONGEST_LINE as u64 + 1);
        let read = part.read_until(b'\n', &mut self.line);
        let is_ended = self.line.pop_if(|last| *last == b'\n').is_some();
        let passed_over = match read {
            Ok(_) if self.line.len() > LONGEST_LINE => self.reader.skip_until(b'\n'),
            read => read.map(|_| 0),
        };
        let passed_over = passed_over.unwrap_or_else(|error| {
            self.error = Some(error);
            0
        });
        let bytes = self.line.len() + usize::from(is_ended) + passed_over;
        (bytes > 0).then_some(RawLine {
            text: &self.line,
            bytes,
            is_ended,
        })
    }
}
