//! One agent's folder: whether it has changed, and what is in it. Blocking.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::model::Agent;
use clew_context::engine::docs::Docs;
use clew_context::model::AgentDoc;
use clew_store::model::AgentName;

use super::fields::{LARGEST_DOCS, PromptField, parse};
use super::problem::AgentProblem;

/// The file that makes a folder an agent.
pub(super) const AGENT_FILE: &str = "agent.json";
/// The folder of its docs.
const DOCS: &str = "docs";
/// The extension of a doc's name.
const DOC_EXTENSION: &str = "md";
/// The folder for snapshots of conversations, which the built-in agent has too: a
/// folder with nothing else in it is not an agent.
const SNAPSHOTS: &str = "sessions";
/// The largest `agent.json` or prompt file, in bytes.
const LARGEST_FILE: u64 = 64 * 1024;
/// The most docs of an agent.
const MOST_DOCS: usize = 256;
/// The most entries that are looked at; a folder with more is surely the wrong one.
pub(super) const MOST_ENTRIES: usize = 4_096;

/// What an agent's files looked like: if a file changes, its stamp does too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Seen {
    files: BTreeMap<PathBuf, Stamp>,
    docs: DocFiles,
    /// There is no agent here: the folder only holds snapshots.
    pub(super) is_kept_for_snapshots: bool,
}

/// What the file system tells about a version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stamp {
    /// Something of that name is there, maybe not a file.
    There {
        len: u64,
        modified: Option<SystemTime>,
        inode: u64,
        is_file: bool,
    },
    /// Nothing is there, or it cannot be looked at.
    Not(ErrorKind),
}

impl Stamp {
    fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(metadata) => Self::There {
                len: metadata.len(),
                modified: metadata.modified().ok(),
                inode: metadata.ino(),
                is_file: metadata.is_file(),
            },
            Err(error) => Self::Not(error.kind()),
        }
    }
}

/// The contents of `docs`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum DocFiles {
    /// There is no such folder.
    #[default]
    None,
    /// These files, sorted.
    Files(Vec<PathBuf>),
    /// It cannot be used, for this reason.
    Bad(String),
}

/// What the folder looks like now, without opening any file. `prompt_file` is the
/// one that `agent.json` named when it was last read, if any.
pub(super) fn look(folder: &Path, prompt_file: Option<&Path>) -> Seen {
    let docs = list_docs(&folder.join(DOCS));
    let mut paths = vec![folder.join(AGENT_FILE)];
    paths.extend(prompt_file.map(|file| folder.join(file)));
    if let DocFiles::Files(files) = &docs {
        paths.extend_from_slice(files);
    }
    let stamps = paths.into_iter().map(|path| {
        let stamp = Stamp::of(&path);
        (path, stamp)
    });
    let files: BTreeMap<PathBuf, Stamp> = stamps.collect();
    let has_no_agent_file =
        files.get(&folder.join(AGENT_FILE)) == Some(&Stamp::Not(ErrorKind::NotFound));
    Seen {
        is_kept_for_snapshots: has_no_agent_file
            && docs == DocFiles::None
            && folder.join(SNAPSHOTS).is_dir(),
        files,
        docs,
    }
}

fn list_docs(folder: &Path) -> DocFiles {
    let entries = match list(folder) {
        Ok(entries) => entries,
        Err(ListError::None) => return DocFiles::None,
        Err(problem) => return DocFiles::Bad(problem.what("a folder of .md files")),
    };
    let is_doc = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case(DOC_EXTENSION))
    };
    let files: Vec<PathBuf> = entries.into_iter().filter(is_doc).collect();
    if files.len() > MOST_DOCS {
        return DocFiles::Bad(format!(
            "has {} docs; accepted: at most {MOST_DOCS}",
            files.len()
        ));
    }
    DocFiles::Files(files)
}

/// Why a folder could not be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListError {
    /// It does not exist.
    None,
    /// It is not a folder.
    NoFolder,
    /// It has more than [`MOST_ENTRIES`].
    TooMany,
    /// It cannot be read.
    Unreadable(ErrorKind),
}

impl ListError {
    /// The problem in words for the operator; `accepted` is what may be there.
    pub(super) fn what(self, accepted: &str) -> String {
        match self {
            Self::None => format!("is not there; accepted: {accepted}"),
            Self::NoFolder => format!("is a file; accepted: {accepted}"),
            Self::TooMany => format!("has more than {MOST_ENTRIES} entries; accepted: {accepted}"),
            Self::Unreadable(kind) => {
                format!("cannot be read ({kind}); accepted: {accepted} that clew may read")
            }
        }
    }
}

/// The entries of a folder, sorted by name, without hidden ones, which editors and
/// mounted volumes leave behind.
pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>, ListError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => ListError::None,
        ErrorKind::NotADirectory => ListError::NoFolder,
        kind => ListError::Unreadable(kind),
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if paths.len() == MOST_ENTRIES {
            return Err(ListError::TooMany);
        }
        paths.push(entry.path());
    }
    paths.sort();
    Ok(paths)
}

/// What was read, with what the files looked like just before: a file that changes
/// meanwhile looks different at the next look.
pub(super) struct Reading {
    pub(super) seen: Seen,
    pub(super) prompt_file: Option<PathBuf>,
    pub(super) agent: Result<Agent, Vec<AgentProblem>>,
}

/// Reads the folder of the agent `name`.
pub(super) fn read(folder: &Path, name: &AgentName) -> Reading {
    let mut seen = look(folder, None);
    let path = folder.join(AGENT_FILE);
    let text = read_text(&path, LARGEST_FILE).map_err(|problem| vec![problem]);
    let fields = text.and_then(|text| parse(&path, &text, name));
    let prompt_file = match &fields {
        Ok((PromptField::File(file), _)) => Some(file.clone()),
        _ => None,
    };
    if let Some(file) = &prompt_file {
        let path = folder.join(file);
        let stamp = Stamp::of(&path);
        seen.files.insert(path, stamp);
    }
    let docs = read_docs(folder, &seen.docs);
    let agent = both(fields, docs).and_then(|((prompt, agent), docs)| {
        let system = match prompt {
            PromptField::Text(text) => text,
            PromptField::File(file) => prompt_text(folder, &file).map_err(|one| vec![one])?,
        };
        Ok(Agent {
            system,
            docs: Docs::new(docs, agent.docs.budget()),
            ..agent
        })
    });
    Reading {
        seen,
        prompt_file,
        agent,
    }
}

/// Both values, or the problems of both.
fn both<A, B>(
    a: Result<A, Vec<AgentProblem>>,
    b: Result<B, AgentProblem>,
) -> Result<(A, B), Vec<AgentProblem>> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Ok(_), Err(problem)) => Err(vec![problem]),
        (Err(problems), b) => Err(problems.into_iter().chain(b.err()).collect()),
    }
}

fn prompt_text(folder: &Path, file: &Path) -> Result<String, AgentProblem> {
    let path = folder.join(file);
    let about = |what: String| {
        let what = format!("names {}, which {what}", file.display());
        AgentProblem::field(&folder.join(AGENT_FILE), "system_prompt_file", what)
    };
    let is_inside = match (folder.canonicalize(), path.canonicalize()) {
        (Ok(folder), Ok(path)) => path.starts_with(folder),
        _ => true,
    };
    if !is_inside {
        let what = "links to a file elsewhere; accepted: one inside of the agent's folder";
        return Err(about(what.to_owned()));
    }
    let text = read_text(&path, LARGEST_FILE).map_err(|problem| about(problem.what))?;
    match text.trim() {
        "" => Err(about("is empty; accepted: a text".to_owned())),
        text => Ok(text.to_owned()),
    }
}

fn read_docs(folder: &Path, docs: &DocFiles) -> Result<Vec<AgentDoc>, AgentProblem> {
    let folder = folder.join(DOCS);
    let files = match docs {
        DocFiles::None => return Ok(Vec::new()),
        DocFiles::Bad(what) => return Err(AgentProblem::of(&folder, what.clone())),
        DocFiles::Files(files) => files,
    };
    let mut left = LARGEST_DOCS;
    let mut docs = Vec::new();
    for path in files {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| {
            AgentProblem::of(path, "has a name that is not UTF-8; accepted: UTF-8")
        })?;
        let size = fs::metadata(path).map_or(0, |metadata| metadata.len());
        if size > left {
            let what = format!("docs hold more than {LARGEST_DOCS} bytes; accepted: at most that");
            return Err(AgentProblem::of(&folder, what));
        }
        let text = read_text(path, left)?;
        left = left.saturating_sub(text.len() as u64);
        let text = text.trim();
        if !text.is_empty() {
            docs.push(AgentDoc {
                name: name.to_owned(),
                text: text.to_owned(),
            });
        }
    }
    Ok(docs)
}

/// Reads a text file of at most `most` bytes, without its byte order mark.
fn read_text(path: &Path, most: u64) -> Result<String, AgentProblem> {
    let accepted = format!("accepted: a UTF-8 text file of at most {most} bytes");
    let about = |what: String| AgentProblem::of(path, format!("{what}; {accepted}"));
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => about("is not there".to_owned()),
        ErrorKind::InvalidData => about("is not UTF-8".to_owned()),
        kind => about(format!("cannot be read ({kind})")),
    };
    // Checked first: reading a pipe could block.
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(about("is not a file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    let read = file.take(most + 1).read_to_end(&mut bytes);
    if read.map_err(failed)? as u64 > most {
        return Err(about("is larger".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| about("is not UTF-8".to_owned()))?;
    Ok(match text.strip_prefix('\u{FEFF}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}
