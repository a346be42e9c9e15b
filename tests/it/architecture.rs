//! The shape of the source tree, where the compiler does not enforce it: the layers inside a package, which
//! modules may name other packages, the only places that may read the environment, time and chance, file heads,
//! lengths.
//!
//! The tables of layers are those of ARCHITECTURE.md; a new edge in them changes the architecture and is a
//! commit of its own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what fails in a helper fails the test"
)]

mod circles;
mod time_and_chance;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules by layer. A module imports lower layers only, none of its own.
type Layers = &'static [(u8, &'static [&'static str])];

const BOT: Package = Package {
    folder: "src",
    layers: &[
        (9, &["main", "cli"]),
        (8, &["demo", "playground", "doctor", "tune"]),
        (7, &["sandbox"]),
        (6, &["app"]),
        (5, &["turn", "commands", "replay", "report"]),
        (4, &["tools"]),
        (3, &["memory"]),
        (
            2,
            &["llm", "archive", "agents", "runs", "telemetry", "http"],
        ),
        (1, &["engine", "config", "plot"]),
        (0, &["model"]),
    ],
};
/// What bots of other people can use.
const CONTEXT: Package = Package {
    folder: "crates/clew-context/src",
    layers: &[
        (3, &["discord"]),
        (2, &["collect"]),
        (1, &["engine"]),
        (0, &["model", "outside"]),
    ],
};
/// One layer: the gateway and REST calls to Discord.
const DISCORD: Package = Package {
    folder: "crates/clew-discord/src",
    layers: &[],
};
/// One layer: the back ends side by side, under one contract.
const STORE: Package = Package {
    folder: "crates/clew-store/src",
    layers: &[],
};
/// One layer: connections to other people's tools.
const MCP: Package = Package {
    folder: "crates/clew-mcp/src",
    layers: &[],
};
/// One layer: the fake Discord and its state.
const SIMULATOR: Package = Package {
    folder: "crates/clew-simulator/src",
    layers: &[],
};
/// One layer: the bot in seeded worlds, and the rules that they are checked by.
const WORLDS: Package = Package {
    folder: "crates/clew-worlds/src",
    layers: &[],
};
const PACKAGES: [&Package; 7] = [&BOT, &CONTEXT, &DISCORD, &MCP, &STORE, &SIMULATOR, &WORLDS];
/// In lines.
const LONGEST_FILE: usize = 600;
/// In lines, from its `fn` to its closing brace.
const LONGEST_FUNCTION: usize = 80;

/// A package's sources and its layers.
struct Package {
    /// Relative to the workspace's root.
    folder: &'static str,
    layers: Layers,
}

struct Source {
    /// Relative to the workspace's root.
    path: PathBuf,
    text: String,
    /// Without comments and the contents of strings, line for line.
    code: String,
}

impl Source {
    fn new(path: impl Into<PathBuf>, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.to_owned(),
            code: without_comments_and_strings(text),
        }
    }

    /// The parts of the path below the package's `src`.
    fn inside(&self) -> impl Iterator<Item = &str> {
        let parts = self.path.iter().filter_map(|part| part.to_str());
        parts.skip_while(|part| *part != "src").skip(1)
    }

    /// `engine` for `src/engine.rs` and everything below `src/engine/`.
    fn module(&self) -> &str {
        let first = self.inside().next();
        first.unwrap_or_default().trim_end_matches(".rs")
    }

    /// 1 for `src/engine.rs`, 2 for `src/engine/route.rs`.
    fn depth(&self) -> usize {
        self.inside().count()
    }

    /// `src/engine.rs:12`, counted from 1.
    fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    /// Lines of code with their numbers, counted from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
    }

    /// Whether it holds nothing but tests.
    fn is_test(&self) -> bool {
        self.inside()
            .any(|part| part.trim_end_matches(".rs") == "tests")
    }

    /// The code up to its tests.
    fn production(&self) -> &str {
        let start = self.code.find("\n#[cfg(test)]");
        start.map_or(&self.code, |start| &self.code[..start])
    }

    /// The places of a text in the code, whole words only.
    fn find_all<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = String> + 'a {
        self.lines()
            .filter(move |(_, line)| starts_of(line, wanted).next().is_some())
            .map(|(at, _)| self.place(at))
    }
}

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every `.rs` file below a folder, in order.
fn sources(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the package") {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source::new(path.strip_prefix(root()).unwrap(), &text));
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// The source files of all packages.
fn all_sources() -> Vec<Source> {
    let folders = PACKAGES.iter().map(|package| package.folder);
    folders.flat_map(sources).collect()
}

/// Lines of code of what is built on: without tests, comments, blank lines and clew-worlds.
pub(crate) fn production_lines() -> usize {
    let built_on = PACKAGES
        .iter()
        .filter(|package| package.folder != WORLDS.folder);
    let sources = built_on.flat_map(|package| sources(package.folder));
    let mut lines = 0;
    for source in sources {
        if !source.is_test() {
            let code = source.production().lines();
            lines += code.filter(|line| !line.trim().is_empty()).count();
        }
    }
    lines
}

#[track_caller]
fn none(problems: &[String], remedy: &str) {
    let list = problems.iter().fold(String::new(), |mut list, problem| {
        let _ = write!(list, "\n  {problem}");
        list
    });
    assert!(problems.is_empty(), "{remedy}{list}");
}

/// Blanks what is not code; keeps every line break, so that line numbers stay.
fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let blank = blank_length(rest);
        if blank == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            let breaks = rest[..blank].matches('\n').count();
            code.push_str(&"\n".repeat(breaks));
            rest = &rest[blank..];
        }
    }
    code
}

/// The length in bytes of the comment, string or character literal at the start of a text.
fn blank_length(text: &str) -> usize {
    let until = |end: &str, from: usize| {
        let found = text[from..].find(end);
        found.map_or(text.len(), |at| from + at + end.len())
    };
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until("*/", 2);
    }
    if let Some(hashes) = raw_string_hashes(text) {
        return until(&format!("\"{}", "#".repeat(hashes)), hashes + 2);
    }
    match text.as_bytes() {
        [b'"', ..] => quoted_length(text, '"'),
        [b'\'', b'\\', ..] => quoted_length(text, '\''),
        [b'\'', ..] => {
            let mut chars = text.char_indices().skip(2);
            match chars.next() {
                Some((end, '\'')) => end + 1,
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// The number of `#` in `r#"`, if a text begins with a raw string.
fn raw_string_hashes(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('r')?;
    let hashes = rest.bytes().take_while(|byte| *byte == b'#').count();
    rest[hashes..].starts_with('"').then_some(hashes)
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            next if next == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Where `wanted` occurs in a line, except in the middle of a word.
fn starts_of<'a>(line: &'a str, wanted: &'a str) -> impl Iterator<Item = usize> + 'a {
    line.match_indices(wanted).map(|(at, _)| at).filter(|at| {
        !line[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
    })
}

fn word(text: &str) -> &str {
    let end = text.find(|next: char| !next.is_alphanumeric() && next != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The top-level modules that a file names, each with its line.
fn imports(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for root in ["crate::", "clew::"] {
        for at in starts_of(&source.code, root) {
            let line = source.code[..at].matches('\n').count() + 1;
            let rest = &source.code[at + root.len()..];
            found.extend(first_names(rest).into_iter().map(|name| (line, name)));
        }
    }
    found.extend(climbing_imports(source));
    found.sort();
    found
}

/// `a` of `a::b`, `a` and `b` of `{a::{x, y}, b::z}`.
fn first_names(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return vec![word(path).to_owned()];
    };
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut expects_name = true;
    for (at, next) in group.char_indices() {
        match next {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => expects_name = true,
            next if expects_name && (next.is_alphabetic() || next == '_') => {
                names.push(word(&group[at..]).to_owned());
                expects_name = false;
            }
            _ => {}
        }
    }
    names
}

/// Paths such as `super::super::x` that leave their top-level module.
fn climbing_imports(source: &Source) -> Vec<(usize, String)> {
    let mut inner = 0;
    let mut found = Vec::new();
    for (at, line) in source.lines() {
        let opens_module =
            line.trim_end().ends_with('{') && starts_of(line, "mod ").next().is_some();
        inner += usize::from(opens_module);
        let Some(start) = starts_of(line, "super::").next() else {
            continue;
        };
        let mut rest = &line[start..];
        let mut climbed = 0;
        while let Some(next) = rest.strip_prefix("super::") {
            climbed += 1;
            rest = next;
        }
        if climbed >= source.depth() + inner {
            found.extend(first_names(rest).into_iter().map(|name| (at, name)));
        }
    }
    found
}

impl Package {
    fn layer(&self, module: &str) -> Option<u8> {
        let row = self.layers.iter().find(|(_, row)| row.contains(&module));
        row.map(|(layer, _)| *layer)
    }

    /// Why one module may not name another, if so.
    fn refusal(&self, from: &str, to: &str) -> Option<String> {
        if from == to {
            return None;
        }
        let (above, below) = (self.layer(from)?, self.layer(to)?);
        (below >= above).then(|| format!("{from} (layer {above}) imports {to} (layer {below})"))
    }

    /// The source files of its modules, without `lib.rs`.
    fn modules(&self) -> Vec<Source> {
        let mut sources = sources(self.folder);
        sources.retain(|source| source.module() != "lib");
        sources
    }
}

#[test]
fn arrows_go_downwards() {
    let mut problems = Vec::new();
    for package in PACKAGES {
        for source in package.modules() {
            for (line, to) in imports(&source) {
                if let Some(refusal) = package.refusal(source.module(), &to) {
                    problems.push(format!("{}: {refusal}", source.place(line)));
                }
            }
        }
    }
    none(
        &problems,
        "imports go to a lower layer: move the word to `model`, or take it as an argument",
    );
}

#[test]
fn every_module_has_a_layer() {
    let layered = PACKAGES.iter().filter(|package| !package.layers.is_empty());
    let unknown: Vec<String> = layered
        .flat_map(|package| {
            let mut modules = package.modules();
            modules.retain(|source| package.layer(source.module()).is_none());
            modules
        })
        .map(|source| source.place(1))
        .collect();
    none(
        &unknown,
        "give the module a layer here and in ARCHITECTURE.md",
    );
}

/// Where the bot names something of another package, outside the modules that may.
fn uses_outside(what: &str, allowed: &[&str]) -> Vec<String> {
    let mut sources = sources(BOT.folder);
    sources.retain(|source| !allowed.contains(&source.module()));
    let found = sources.iter().flat_map(|source| {
        let found: Vec<String> = source.find_all(what).collect();
        found
    });
    found.collect()
}

#[test]
fn only_demo_and_playground_use_the_simulator() {
    let mut problems = uses_outside("clew_simulator", &["demo", "playground", "sandbox"]);
    // Unit tests may name it.
    problems.retain(|place| !place.contains("/tests.rs:"));
    none(
        &problems,
        "the bot knows no simulator: it is pointed at one by its settings",
    );
}

/// Everybody may use the types of `clew_store::model`; the stores themselves only memory, and those who wire
/// them, query them by hand or try them out.
#[test]
fn stores_are_reached_through_memory() {
    let mut problems = uses_outside(
        "clew_store",
        &["memory", "app", "cli", "commands", "doctor"],
    );
    problems.retain(|place| {
        let (path, line) = place.split_once(':').expect("a place has its line");
        let text = fs::read_to_string(root().join(path)).expect("a file of the package");
        let line: usize = line.parse().expect("a line's number");
        !text
            .lines()
            .nth(line - 1)
            .unwrap()
            .contains("clew_store::model::")
    });
    none(&problems, "take `clew_store::model` only, and ask `memory`");
}

#[test]
fn only_config_reads_the_environment() {
    let problems: Vec<String> = all_sources()
        .iter()
        .filter(|source| !source.path.starts_with("src/config"))
        .filter(|source| source.path != Path::new("src/config.rs"))
        .flat_map(|source| {
            let whole = source.find_all("std::env");
            let short = source.find_all("env::var");
            whole.chain(short).collect::<Vec<_>>()
        })
        .collect();
    none(
        &problems,
        "add the variable to `config` and take its value as an argument",
    );
}

#[test]
fn every_file_begins_with_what_it_is() {
    let problems: Vec<String> = sources("src")
        .iter()
        .chain(&sources("tests"))
        .chain(&sources("crates"))
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| source.place(1))
        .collect();
    none(
        &problems,
        "begin the file with a `//!` line that says what it is",
    );
}

#[test]
fn every_module_states_its_invariant() {
    // A package without layers is one module; its invariant is in the head of `lib.rs`.
    let heads = PACKAGES.iter().flat_map(|package| {
        let mut sources = sources(package.folder);
        sources.retain(|source| {
            let top = source.depth() == 1 && source.module() != "main";
            top && package.layers.is_empty() == (source.module() == "lib")
        });
        sources
    });
    let problems: Vec<String> = heads
        .filter(|source| {
            let mut head = source
                .text
                .lines()
                .take_while(|line| line.starts_with("//!"));
            !head.any(|line| line.starts_with("//! Invariant: "))
        })
        .map(|source| source.place(1))
        .collect();
    none(
        &problems,
        "say in the head what always holds: `//! Invariant: ...`",
    );
}

#[test]
fn files_stay_readable() {
    let problems: Vec<String> = all_sources()
        .iter()
        .map(|source| (source, source.text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(source, lines)| format!("{} has {lines} lines", source.place(1)))
        .collect();
    none(&problems, "split the file by cases; the most is 600 lines");
}

/// Functions longer than `limit`: place, name and length. Relies on rustfmt, which puts the closing brace at
/// the indentation of the `fn`. A function with clippy's exception is skipped: its reason stands there.
fn long_functions(source: &Source, limit: usize) -> Vec<String> {
    let lines: Vec<&str> = source.code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(start) = starts_of(line, "fn ").next() else {
            continue;
        };
        let indent = &line[..line.len() - line.trim_start().len()];
        let brace = format!("{indent}}}");
        let ends =
            |line: &&str| line.starts_with(&brace) || line.trim_end() == format!("{indent};");
        let opens = lines[at..]
            .iter()
            .position(|line| line.contains(['{', ';']));
        let body = opens.map_or(at, |opens| at + opens);
        let declared = lines[body].trim_end().ends_with([';', '}']);
        let Some(length) = lines[body + 1..]
            .iter()
            .position(ends)
            .filter(|_| !declared)
        else {
            continue;
        };
        let length = body + 1 + length - at + 1;
        let excepted = lines[at.saturating_sub(8)..at]
            .iter()
            .any(|line| line.contains("clippy::too_many_lines"));
        if length > limit && !excepted {
            let name = word(&line[start + 3..]);
            found.push(format!(
                "{}: {name} has {length} lines",
                source.place(at + 1)
            ));
        }
    }
    found
}

#[test]
fn functions_stay_readable() {
    let problems: Vec<String> = all_sources()
        .iter()
        .flat_map(|source| long_functions(source, LONGEST_FUNCTION))
        .collect();
    none(
        &problems,
        "take steps out into functions; a flat match may say \
         `#[expect(clippy::too_many_lines, reason = ...)]`; the most is 80 lines",
    );
}

#[track_caller]
fn check_imports(path: &str, text: &str, expected: &[(usize, &str)]) {
    let found = imports(&Source::new(path, text));
    let found: Vec<(usize, &str)> = found
        .iter()
        .map(|(at, name)| (*at, name.as_str()))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn imports_are_found_in_every_form() {
    check_imports("src/turn.rs", "use crate::model::Block;", &[(1, "model")]);
    check_imports("src/turn.rs", "\nlet x = crate::llm::ask();", &[(2, "llm")]);
    check_imports(
        "src/turn.rs",
        "use crate::{\n    engine::{plan, route},\n    model::Block,\n};",
        &[(1, "engine"), (1, "model")],
    );
    check_imports("src/main.rs", "clew::main()", &[(1, "main")]);
    check_imports("src/a/b.rs", "use super::super::app::App;", &[(1, "app")]);
    check_imports("src/a/b.rs", "use super::{Checker, log};", &[]);
    check_imports("src/a.rs", "use super::app;", &[(1, "app")]);
    check_imports("src/a.rs", "mod tests {\n    use super::app;\n}", &[]);
    check_imports(
        "src/a.rs",
        "// crate::app\n/// [`crate::app`]\n\"crate::app\"",
        &[],
    );
    check_imports(
        "src/a.rs",
        "my_crate::app; r#\"crate::app\"#; '\"'; crate::b",
        &[(1, "b")],
    );
}

#[test]
fn imports_upwards_and_sideways_are_refused() {
    for (package, from, to, allowed) in [
        (&BOT, "turn", "memory", true),
        (&BOT, "turn", "turn", true),
        (&BOT, "engine", "model", true),
        (&BOT, "engine", "config", false),
        (&BOT, "engine", "llm", false),
        (&BOT, "llm", "memory", false),
        (&BOT, "llm", "telemetry", false),
        (&BOT, "turn", "commands", false),
        (&BOT, "model", "engine", false),
        (&CONTEXT, "discord", "collect", true),
        (&CONTEXT, "collect", "discord", false),
        (&CONTEXT, "model", "engine", false),
    ] {
        let is_allowed = package.refusal(from, to).is_none();
        assert_eq!(is_allowed, allowed, "{from} -> {to}");
    }
}

#[test]
fn long_functions_are_measured_from_fn_to_brace() {
    let text = "impl A {\n    fn declared(&self);\n    fn one() {}\n    pub async fn long(\n        \
                a: u8,\n    ) -> u8 {\n        a\n    }\n}\nfn last() {\n    x();\n}\n";
    let source = Source::new("src/a.rs", text);
    assert_eq!(long_functions(&source, 3), ["src/a.rs:4: long has 5 lines"]);
    let excepted = "#[expect(clippy::too_many_lines, reason = \"flat\")]\nfn f() {\n    x();\n}\n";
    assert!(long_functions(&Source::new("src/a.rs", excepted), 2).is_empty());
}
