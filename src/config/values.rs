//! The texts of the variables that are set, and where they come from.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::problem::{Problem, show};
use super::unknown::{self, Guess};
use super::variable::{DISCORD_TOKEN, FOLLOWS};
use super::{Effective, VARIABLES, Variable};

/// The settings as text: only known names, trimmed, none empty.
#[derive(Clone, Default)]
pub(super) struct Values {
    texts: BTreeMap<&'static str, (String, SettingOrigin)>,
    /// Values under other names: a file of the operator's may name them.
    others: BTreeMap<String, String>,
    /// What went wrong while gathering.
    pub(super) problems: Vec<Problem>,
    /// Warnings about unknown and duplicate names, and of a file that others can read.
    pub(super) warnings: Vec<String>,
    /// A name that seems to be meant as the token, if the token is not set.
    pub(super) meant_as_token: Option<String>,
}

/// A name that is not ours.
struct Unknown {
    origin: SettingOrigin,
    /// Where it stands, if it is shown by that alone.
    place: String,
    value: String,
}

/// An entry of a `.env` file.
struct Entry {
    name: String,
    value: String,
    /// The file and line, for people.
    place: String,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Not set.
    Default,
    /// `.env`.
    DotEnv,
    Environment,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::DotEnv => ".env",
            Self::Environment => "environment",
        })
    }
}

/// Values may be secrets, so only names are printed.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.texts.keys()).finish()
    }
}

impl Values {
    /// Reads the known names from file and environment; the environment wins.
    pub(super) fn gather(
        environment: impl IntoIterator<Item = (String, String)>,
        dotenv: Option<&Path>,
    ) -> Self {
        let mut values = Self::default();
        let mut unknown = BTreeMap::new();
        for entry in dotenv.map_or_else(Vec::new, |path| values.read_file(path)) {
            values.put(entry, SettingOrigin::DotEnv, &mut unknown);
        }
        for (name, value) in environment {
            let place = SettingOrigin::Environment.to_string();
            let entry = Entry { name, value, place };
            values.put(entry, SettingOrigin::Environment, &mut unknown);
        }
        values.texts.retain(|_, (text, _)| !text.is_empty());
        for (name, found) in unknown {
            values.judge(&name, &found);
            values.others.insert(name, found.value);
        }
        values.warn_of_quotes();
        values
    }

    /// The value under any name, ours or not. What was said of a name that is not ours is
    /// taken back.
    pub(super) fn of_any(&self, name: &str, warnings: &mut Vec<String>) -> Option<String> {
        let own = VARIABLES.iter().find(|variable| variable.name == name);
        if let Some(variable) = own {
            return self.texts.get(variable.name).map(|(text, _)| text.clone());
        }
        let said = format!("{name} (");
        warnings.retain(|warning| !warning.starts_with(&said));
        self.others.get(name).cloned()
    }

    fn warn_of_quotes(&mut self) {
        let names = self.texts.keys().copied();
        let quoted: Vec<_> = names.filter(|name| self.is_quoted(name)).collect();
        self.warnings.extend(quoted.iter().map(|name| {
            format!("{name} (environment) has quotes, which are part of its value there")
        }));
    }

    /// Whether the environment has a variable's value in quotes: a file would have lost them.
    pub(super) fn is_quoted(&self, name: &str) -> bool {
        let Some((text, SettingOrigin::Environment)) = self.texts.get(name) else {
            return false;
        };
        let within = |quote| {
            let opened = text.strip_prefix(quote);
            opened.is_some_and(|rest: &str| rest.ends_with(quote))
        };
        within('"') || within('\'')
    }

    /// In the file every name is meant for us; in the environment only those that
    /// look like ours.
    fn judge(&mut self, name: &str, found: &Unknown) {
        let origin = found.origin;
        if let Some(instead) = unknown::instead_of_removed(name) {
            if !found.value.is_empty() {
                let shown = format!("is not a setting any more ({origin})");
                self.problems.push(Problem::new(name, shown, instead));
            }
            return;
        }
        let guess = unknown::guess(name, |name| self.texts.contains_key(name));
        let in_file = (origin == SettingOrigin::DotEnv).then_some(Guess::Ours);
        let Some(guess) = guess.or(in_file) else {
            return;
        };
        let is_token = guess == Guess::Meant(DISCORD_TOKEN.name);
        if is_token && !found.value.is_empty() && !self.texts.contains_key(DISCORD_TOKEN.name) {
            self.meant_as_token = Some(format!("{name} ({origin})"));
        }
        self.warnings.push(match guess {
            // A name that is nearly ours cannot hold a key.
            Guess::Ours if !unknown::is_plain(name) => format!(
                "{} has a name that is not a setting of Clew, and is not shown since it may be a \
                 key; write NAME=value",
                found.place
            ),
            guess => format!("{name} ({origin}) is not a setting of Clew; {guess}"),
        });
    }

    /// All variables that are set, for `envy`.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.texts
            .iter()
            .map(|(name, (text, _))| ((*name).to_owned(), text.clone()))
    }

    /// The same with other values of some variables.
    pub(super) fn changed<'a>(
        &self,
        pairs: impl IntoIterator<Item = (&'static Variable, &'a str)>,
    ) -> Self {
        let mut values = self.clone();
        for (variable, text) in pairs {
            let given = (text.trim().to_owned(), SettingOrigin::Environment);
            values.texts.insert(variable.name, given);
        }
        values.texts.retain(|_, (text, _)| !text.is_empty());
        values
    }

    /// The variable that a variable takes its value from: itself, or the one that it
    /// follows if only that is set.
    pub(super) fn source<'a>(&self, variable: &'a Variable) -> &'a Variable {
        let is_set = |one: &Variable| self.texts.contains_key(one.name);
        let mut follows = FOLLOWS.iter();
        match follows.find(|(one, _)| one.name == variable.name) {
            Some((_, other)) if !is_set(variable) && is_set(other) => other,
            _ => variable,
        }
    }

    /// One variable with the value in effect.
    pub(super) fn effective(&self, variable: &Variable) -> Effective {
        let text = self.texts.get(self.source(variable).name);
        let text = text.map_or(variable.default, |(text, _)| text.as_str());
        let own = self.texts.get(variable.name);
        let origin = own.map_or(SettingOrigin::Default, |(_, origin)| *origin);
        let shown = match text {
            "" => "[not set]".to_owned(),
            text => show(variable, text).unwrap_or_else(|| "[set]".to_owned()),
        };
        Effective {
            name: variable.name,
            shown,
            origin,
        }
    }

    fn put(
        &mut self,
        entry: Entry,
        origin: SettingOrigin,
        unknown: &mut BTreeMap<String, Unknown>,
    ) {
        let Entry { name, value, place } = entry;
        let known = VARIABLES.iter().find(|variable| variable.name == name);
        let text = value.trim();
        if let Some(variable) = known {
            self.texts.insert(variable.name, (text.to_owned(), origin));
            return;
        }
        // The file was read first, so its entry stays.
        unknown.entry(name).or_insert(Unknown {
            origin,
            place,
            value: text.to_owned(),
        });
    }

    /// The entries of a `.env` file, in order. A missing file has none.
    fn read_file(&mut self, path: &Path) -> Vec<Entry> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                let shown = format!("cannot be read ({error})");
                let accepted = "a file that the user who runs clew may read, or none";
                let problem = Problem::new(place(path, None), shown, accepted);
                self.problems.push(problem);
                return Vec::new();
            }
        };
        if let Ok(text) = String::from_utf8(bytes) {
            self.parse_file(path, &text)
        } else {
            self.file_problem(path, None, "is not UTF-8");
            Vec::new()
        }
    }

    fn parse_file(&mut self, path: &Path, text: &str) -> Vec<Entry> {
        // The parser refuses a last line that ends in a space without a line
        // feed, and a byte order mark would become part of the first name.
        let text = format!("{}\n", text.trim_start_matches('\u{feff}'));
        let lines = Cell::new(0);
        let reader = LineByLine {
            rest: text.as_bytes(),
            lines: &lines,
        };
        let mut entries: Vec<Entry> = Vec::new();
        for pair in dotenvy::Iter::new(reader) {
            match pair {
                Ok((name, value)) => {
                    let place = place(path, Some(lines.get()));
                    if entries.iter().any(|other| other.name == name) {
                        let shown = if unknown::is_plain(&name) {
                            &name
                        } else {
                            "a name"
                        };
                        let warning = format!("{place} sets {shown} again; the last one counts");
                        self.warnings.push(warning);
                    }
                    entries.push(Entry { name, value, place });
                }
                Err(dotenvy::Error::LineParse(bad, _)) => {
                    // An open quote swallows all lines to the end; only then
                    // does the last one keep its line feed.
                    let ends = usize::from(bad.ends_with('\n'));
                    let line = lines.get() + ends - bad.matches('\n').count();
                    self.file_problem(path, Some(line), "cannot be read");
                }
                Err(error) => self.file_problem(path, None, &error.to_string()),
            }
        }
        self.warn_if_open(path, &entries);
        entries
    }

    /// A file with secrets is not ours to close, but to warn of.
    fn warn_if_open(&mut self, path: &Path, entries: &[Entry]) {
        let is_secret = |entry: &Entry| {
            let mut ours = VARIABLES.iter().filter(|one| one.name == entry.name);
            ours.any(|one| show(one, &entry.value).is_none())
        };
        let found = std::fs::metadata(path).map(|file| file.permissions().mode());
        let is_open = found.is_ok_and(|mode| mode & 0o007 != 0);
        if is_open && entries.iter().any(is_secret) {
            let path = path.display();
            let warning =
                format!("other accounts can read {path}, which holds secrets: chmod 600 {path}");
            self.warnings.push(warning);
        }
    }

    /// Never shows the text of a line, which may hold a secret.
    fn file_problem(&mut self, path: &Path, line: Option<usize>, what: &str) {
        let accepted = "lines NAME=value; a value with spaces or an apostrophe in double quotes";
        let problem = Problem::new(place(path, line), what, accepted);
        self.problems.push(problem);
    }
}

fn place(path: &Path, line: Option<usize>) -> String {
    match line {
        Some(line) => format!("{} line {line}", path.display()),
        None => path.display().to_string(),
    }
}

/// Returns one line per read, so that the number of lines returned is the
/// line that the parser is at; its own errors only give a column.
struct LineByLine<'a> {
    rest: &'a [u8],
    lines: &'a Cell<usize>,
}

impl Read for LineByLine<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let line = match self.rest.iter().position(|byte| *byte == b'\n') {
            Some(end) => &self.rest[..=end],
            None => self.rest,
        };
        let taken = line.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&line[..taken]);
        if taken > 0 && line[taken - 1] == b'\n' {
            self.lines.set(self.lines.get() + 1);
        }
        self.rest = &self.rest[taken..];
        Ok(taken)
    }
}
