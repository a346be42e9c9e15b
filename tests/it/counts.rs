//! What was won is held: the counts in docs/counts.md, of the tree and of a turn. Whoever makes one dearer changes
//! the table, and says why.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clew::config::VARIABLES;
use tokio::time::sleep;

use crate::architecture::{production_lines, root};
use crate::faults::Place;
use crate::faults::process::{Process, connected};

/// Turns before those that are counted: afterwards nothing is done for the first time.
const WARM: usize = 10;
/// Turns that are counted.
const TURNS: usize = 20;
/// What nothing has been written for so long is not written any more. The session is noted each second.
const IDLE: Duration = Duration::from_millis(700);

/// Up to this many hundredths below its limit a count is as the table says: the tree's, and a turn's, which depends
/// on the time a little.
const TREE: u64 = 2;
const TURN: u64 = 25;

/// The limit of a row in docs/counts.md.
fn limit(what: &str) -> u64 {
    let table = fs::read_to_string(root().join("docs/counts.md")).unwrap();
    let mut rows = table.lines().filter_map(|line| line.strip_prefix("| "));
    let found = rows.find_map(|row| row.strip_prefix(what)?.strip_prefix(" | "));
    let limit = found.and_then(|rest| rest.split(" |").next());
    let limit = limit.and_then(|limit| limit.replace(',', "").parse().ok());
    limit.unwrap_or_else(|| panic!("docs/counts.md has no row `{what}` with a number"))
}

/// What is compared with the table.
#[derive(Default)]
struct Compared {
    all: Vec<String>,
    is_otherwise: bool,
}

impl Compared {
    fn row(&mut self, what: &str, is: u64, room: u64) {
        let most = limit(what);
        let told = if is > most {
            ": it became dearer; make it cheaper, or raise the limit and say why"
        } else if is * 100 < most * (100 - room) {
            ": it became cheaper; lower the limit, so that this is held"
        } else {
            ""
        };
        self.is_otherwise |= !told.is_empty();
        self.all.push(format!("{what}: {is}, limit {most}{told}"));
    }

    #[track_caller]
    fn done(self) {
        assert!(!self.is_otherwise, "docs/counts.md: {:#?}", self.all);
    }
}

/// Documents of the project.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", ".git"].contains(&name.as_str()) {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|of| of == "md") && name != "CHANGELOG.md" {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_tree_is_no_larger_than_the_table_says() {
    let mut compared = Compared::default();
    let mut row = |what: &str, is: usize| compared.row(what, is as u64, TREE);
    row("lines of code", production_lines());
    row("settings", VARIABLES.len());
    let words = documents(root());
    let words = words.iter().map(|path| fs::read_to_string(path).unwrap());
    row(
        "words of documents",
        words.map(|text| text.split_whitespace().count()).sum(),
    );
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    row(
        "packages",
        lock.lines().filter(|line| *line == "[[package]]").count(),
    );
    compared.done();
}

/// In a thread of 120 messages, with default settings and SQLite.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_costs_no_more_than_the_table_says() {
    let place = Place::new(&[
        ("CONTEXT_STORE", "sqlite:clew.db"),
        ("USER_TURNS_PER_MIN", "0"),
    ])
    .await;
    let bot = Process::start(&place.stage, &[]);
    connected(&place).await;
    let ask = async |from: usize, to: usize| {
        for number in from..to {
            place.ask(place.thread, "what is it about?");
            place.answers(place.thread, number + 1).await;
        }
        let mut before = bot.written();
        loop {
            sleep(IDLE).await;
            let now = bot.written();
            if now == before {
                return now;
            }
            before = now;
        }
    };
    let (calls, bytes) = ask(0, WARM).await;
    place.stage.discord.clear_requests();
    let (more_calls, more_bytes) = ask(WARM, WARM + TURNS).await;
    let each = |count: u64| count.div_ceil(TURNS as u64);
    let mut compared = Compared::default();
    compared.row("write calls of a turn", each(more_calls - calls), TURN);
    compared.row(
        "KiB written in a turn",
        each((more_bytes - bytes) / 1_024),
        TURN,
    );
    let requests = place.stage.discord.requests();
    // Typing is shown when an answer takes its time.
    let requests = requests
        .iter()
        .filter(|request| !request.path.ends_with("/typing"));
    compared.row(
        "calls to Discord in a turn",
        each(requests.count() as u64),
        TURN,
    );
    compared.done();
}
