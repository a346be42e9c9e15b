//! Reads the files: one thread cuts them into chunks, some parse, and this one counts.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use super::chunks::{self, Chunk, Chunks};
use super::parse::{self, Parsed};
use super::summary::{BrokenFile, Report};
use super::tally::Tally;
use super::{Error, Options, files, finish};

/// How many chunks wait before and behind each parsing thread.
const WAITING: usize = 2;

/// Reads the telemetry of the given files and folders.
///
/// # Errors
/// If one of them cannot be opened, or none has a line of telemetry. A file that
/// breaks off later is named in the report.
pub fn read(paths: &[PathBuf], options: &Options) -> Result<Report, Error> {
    let files = files::find(paths)?;
    let (tally, broken) = count(&files, options);
    let is_any = tally.lines > tally.unreadable + tally.cut_off;
    if !is_any && tally.lines > 0 {
        let first = tally.named.first();
        return Err(Error::NoLines {
            files: files.len(),
            place: first.map_or_else(
                || "all are cut off".to_owned(),
                |(file, line, why)| {
                    let file = files.get(*file).map(|path| path.display().to_string());
                    format!("{}:{line}: {why}", file.unwrap_or_default())
                },
            ),
        });
    }
    Ok(finish::report(tally, &files, broken))
}

/// Chunk n goes to thread n modulo their number and is awaited there, which keeps the
/// order of the lines.
fn count<'a>(files: &[PathBuf], options: &'a Options) -> (Tally<'a>, Vec<BrokenFile>) {
    let mut tally = Tally::new(options);
    let mut broken = Vec::new();
    thread::scope(|scope| {
        let (used, reusable) = channel();
        let mut inputs = Vec::new();
        let mut outputs = Vec::new();
        for _ in 0..options.threads.max(1) {
            let (to_parse, chunks) = sync_channel(WAITING);
            let (parsed, to_count) = sync_channel(WAITING);
            let used = used.clone();
            scope.spawn(move || parse_all(&chunks, &parsed, &used, options));
            inputs.push(to_parse);
            outputs.push(to_count);
        }
        scope.spawn(move || cut(files, &inputs, &reusable, options.chunk_bytes));
        for output in outputs.iter().cycle() {
            let Ok(parsed) = output.recv() else { break };
            tally.add(&parsed);
            broken.extend(parsed.error.map(|error| BrokenFile {
                file: files[parsed.file].display().to_string(),
                error: error.to_string(),
            }));
        }
    });
    (tally, broken)
}

/// Gives the chunks of all files to the parsing threads in turn.
fn cut(
    files: &[PathBuf],
    inputs: &[SyncSender<Chunk>],
    reusable: &Receiver<Vec<u8>>,
    length: usize,
) {
    let mut inputs = inputs.iter().cycle();
    for (file, path) in files.iter().enumerate() {
        let mut chunks = match chunks::open(path) {
            Ok(reader) => Chunks::new(file, reader, length),
            Err(error) => Chunks::broken(file, error),
        };
        while let Some(chunk) = chunks.next(reusable.try_recv().unwrap_or_default()) {
            let Some(Ok(())) = inputs.next().map(|input| input.send(chunk)) else {
                return;
            };
        }
    }
}

fn parse_all(
    chunks: &Receiver<Chunk>,
    parsed: &SyncSender<Parsed>,
    used: &Sender<Vec<u8>>,
    options: &Options,
) {
    for mut chunk in chunks {
        let result = parse::parse(&mut chunk, options);
        // Whoever cuts may be done, and nobody counts after a panic.
        let _ = used.send(chunk.bytes);
        if parsed.send(result).is_err() {
            return;
        }
    }
}
