//! Agents from real folders: what is read, what changes while the bot runs,
//! what is refused and how, and who answers where.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clew::agents::Agents;
use clew::model::{Agent, AgentChannels};
use clew_context::model::ChannelId;
use clew_store::model::{AgentName, ScopeKind};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::support::log::Log;

/// An `AGENTS_DIR` with the agents loaded from it; tests move the clock by hand.
struct Start {
    folder: TempDir,
    agents: Agents,
    now: Instant,
}

impl Start {
    /// With these files and the built-in agent.
    async fn with(files: &[(&str, &str)]) -> Self {
        Self::new(files, Some("The operator's prompt.")).await
    }

    async fn new(files: &[(&str, &str)], builtin: Option<&str>) -> Self {
        let folder = TempDir::new().unwrap();
        for (path, text) in files {
            write(folder.path(), path, text);
        }
        let now = Instant::now();
        let root = folder.path().to_owned();
        let agents = Agents::load(Some(root), builtin.map(str::to_owned), now).await;
        Self {
            folder,
            agents,
            now,
        }
    }

    fn write(&self, path: &str, text: &str) {
        write(self.folder.path(), path, text);
    }

    /// Moves the clock by two seconds, enough for the files to be looked at again.
    async fn refresh(&mut self) {
        self.now += Duration::from_secs(2);
        self.agents.refresh(self.now).await;
    }

    fn prompt(&self, name: &str) -> Option<String> {
        self.agent(name).map(|agent| agent.system.clone())
    }

    fn agent(&self, name: &str) -> Option<Arc<Agent>> {
        self.agents.named(&name.parse().unwrap())
    }

    /// The problems, with paths relative to `AGENTS_DIR`.
    fn problems(&self) -> Vec<String> {
        let root = self.folder.path().display().to_string();
        let said = self.agents.problems();
        let said = said.iter().map(ToString::to_string);
        said.map(|problem| problem.replace(&format!("{root}/"), ""))
            .collect()
    }

    /// Asserts that there is exactly one problem, which contains all of these parts.
    #[track_caller]
    fn check_problem(&self, parts: &[&str]) {
        let problems = self.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        for part in parts {
            assert!(problems[0].contains(part), "{problems:?} lacks {part:?}");
        }
    }

    fn names(&self) -> Vec<String> {
        let names = self.agents.names();
        names.iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn check_pick(&self, channel: u64, parent: Option<u64>, expected: Option<&str>) {
        let parent = parent.map(ChannelId::new);
        let picked = self.agents.pick(ChannelId::new(channel), parent);
        let name = picked.as_ref().map(|agent| agent.name.as_str());
        assert_eq!(name, expected, "{channel} in {parent:?}");
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn prompt(text: &str) -> String {
    format!(r#"{{"system_prompt": "{text}"}}"#)
}

fn channels(text: &str, list: &str) -> String {
    format!(r#"{{"system_prompt": "{text}", "channels": {list}}}"#)
}

#[tokio::test]
async fn a_folder_is_an_agent() {
    let start = Start::with(&[
        (
            "support/agent.json",
            r#"{"system_prompt_file": "prompt.txt", "model": "big", "rolling_window_s": 3600,
                "scope": "user", "channels": ["5", "6"]}"#,
        ),
        ("support/prompt.txt", "\u{FEFF}Help people.\n"),
        ("support/docs/b.md", "second\n"),
        ("support/docs/10.md", "first"),
        ("support/docs/C.MD", "between"),
        ("support/docs/empty.md", "\n"),
        ("support/docs/notes.txt", "not a doc"),
        ("support/docs/.b.md.swp", "not a doc"),
        ("support/docs/old/a.md", "not a doc"),
        ("README.md", "not an agent"),
        (".git/config", "not an agent"),
    ])
    .await;
    assert_eq!(start.problems(), Vec::<String>::new());
    let agent = start.agent("support").unwrap();
    let docs: Vec<(&str, &str)> = agent
        .docs
        .all()
        .iter()
        .map(|doc| (doc.name.as_str(), doc.text.as_str()))
        .collect();
    assert_eq!(
        docs,
        [("10.md", "first"), ("C.MD", "between"), ("b.md", "second")]
    );
    assert_eq!(agent.system, "Help people.");
    assert_eq!(agent.model.as_deref(), Some("big"));
    assert_eq!(agent.rolling_window, Some(Duration::from_hours(1)));
    assert_eq!(agent.scope, Some(ScopeKind::User));
    let served = [5, 6].map(ChannelId::new);
    assert_eq!(agent.channels, AgentChannels::Only(served.into()));
}

#[tokio::test]
async fn no_folder_no_agents() {
    let now = Instant::now();
    let folder = TempDir::new().unwrap();
    for root in [None, Some(folder.path().join("missing"))] {
        let agents = Agents::load(root, None, now).await;
        assert!(agents.names().is_empty() && agents.problems().is_empty());
        assert!(agents.pick(ChannelId::new(1), None).is_none());
    }
}

#[tokio::test]
async fn the_built_in_agent_is_on_or_off_or_replaced() {
    let on = Start::with(&[]).await;
    assert_eq!(on.prompt("default").unwrap(), "The operator's prompt.");
    assert_eq!(on.names(), ["default"]);
    on.check_pick(1, None, Some("default"));

    let off = Start::new(&[], None).await;
    assert!(off.agents.named(&AgentName::default_agent()).is_none());
    off.check_pick(1, None, None);

    let mut replaced = Start::with(&[("default/agent.json", &channels("Mine.", "[\"7\"]"))]).await;
    assert_eq!(replaced.names(), ["default"]);
    assert_eq!(replaced.prompt("default").unwrap(), "Mine.");
    replaced.check_pick(7, None, Some("default"));
    replaced.check_pick(8, None, None);
    fs::remove_dir_all(replaced.folder.path().join("default")).unwrap();
    replaced.refresh().await;
    replaced.check_pick(8, None, Some("default"));
}

#[tokio::test]
async fn the_most_specific_agent_answers_then_the_first_by_name() {
    let start = Start::with(&[
        ("all-b/agent.json", &prompt("x")),
        ("all-a/agent.json", &channels("x", "\"*\"")),
        ("parent-z/agent.json", &channels("x", "[\"5\"]")),
        ("parent-a/agent.json", &channels("x", "[\"5\", \"6\"]")),
        ("zthread/agent.json", &channels("x", "[\"51\"]")),
        ("silent/agent.json", &channels("x", "[]")),
    ])
    .await;
    assert_eq!(start.problems(), Vec::<String>::new());
    start.check_pick(51, Some(5), Some("zthread"));
    start.check_pick(52, Some(5), Some("parent-a"));
    start.check_pick(5, None, Some("parent-a"));
    start.check_pick(9, Some(8), Some("all-a"));
    start.check_pick(9, None, Some("all-a"));
    assert!(start.agent("silent").is_some());
}

#[tokio::test]
async fn changes_are_seen_while_the_bot_runs() {
    let mut start = Start::with(&[("a/agent.json", &prompt("one"))]).await;
    start.write("a/agent.json", &prompt("two, and longer"));
    start.write("b/agent.json", &prompt("new"));
    start.now += Duration::from_millis(1_999);
    start.agents.refresh(start.now).await;
    assert_eq!(start.prompt("a").unwrap(), "one", "it looked too early");
    start.now -= Duration::from_millis(1_999);
    start.refresh().await;
    assert_eq!(start.prompt("a").unwrap(), "two, and longer");
    assert_eq!(start.names(), ["a", "b", "default"]);

    start.write("a/docs/x.md", "a doc");
    start.refresh().await;
    assert_eq!(start.agent("a").unwrap().docs.all()[0].text, "a doc");
    fs::remove_file(start.folder.path().join("a/docs/x.md")).unwrap();
    start.refresh().await;
    assert!(start.agent("a").unwrap().docs.all().is_empty());

    start.write("b/agent.json", r#"{"system_prompt_file": "p"}"#);
    start.write("b/p", "from a file");
    start.refresh().await;
    assert_eq!(start.prompt("b").unwrap(), "from a file");
    start.write("b/p", "from a file, changed");
    start.refresh().await;
    assert_eq!(start.prompt("b").unwrap(), "from a file, changed");

    fs::remove_dir_all(start.folder.path().join("a")).unwrap();
    start.refresh().await;
    assert_eq!(start.names(), ["b", "default"]);
    assert_eq!(start.problems(), Vec::<String>::new());
}

/// Two writes within one tick of a coarse clock: same file, size and time.
#[tokio::test]
async fn a_change_within_one_tick_of_the_clock_is_seen() {
    let mut start = Start::with(&[("a/agent.json", &prompt("one"))]).await;
    let path = start.folder.path().join("a/agent.json");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    start.write("a/agent.json", &prompt("two"));
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(before).unwrap();
    start.refresh().await;
    assert_eq!(start.prompt("a").unwrap(), "two");
}

/// An agent whose files did not change stays the same value.
#[tokio::test]
async fn an_unchanged_agent_stays_the_same_value() {
    let mut start = Start::with(&[("a/agent.json", &prompt("one"))]).await;
    let first = start.agent("a").unwrap();
    for _ in 0..3 {
        start.refresh().await;
        assert!(Arc::ptr_eq(&first, &start.agent("a").unwrap()));
    }
}

#[tokio::test]
async fn the_last_good_version_stays() {
    let mut start = Start::with(&[("a/agent.json", &prompt("good"))]).await;
    start.write(
        "a/agent.json",
        r#"{"system_prompt": "bad", "modle": "big"}"#,
    );
    start.refresh().await;
    assert_eq!(start.prompt("a").unwrap(), "good");
    start.check_problem(&[
        "a/agent.json: ",
        "field \"modle\" is unknown",
        "did you mean \"model\"?",
    ]);
    start.write("a/agent.json", "{");
    start.refresh().await;
    assert_eq!(start.prompt("a").unwrap(), "good");
    start.check_problem(&["a/agent.json: is not JSON", "line 1"]);
    fs::remove_file(start.folder.path().join("a/agent.json")).unwrap();
    start.refresh().await;
    assert_eq!(start.prompt("a").unwrap(), "good");
    start.check_problem(&["a/agent.json: is not there; accepted: a UTF-8 text file"]);
    start.write("a/agent.json", &prompt("better"));
    start.refresh().await;
    assert_eq!(start.prompt("a").unwrap(), "better");
    assert_eq!(start.problems(), Vec::<String>::new());
}

#[tokio::test]
async fn a_new_agent_that_is_broken_is_left_out_alone() {
    let start = Start::with(&[
        ("bad/agent.json", &channels("x", "[\"general\"]")),
        ("good/agent.json", &prompt("x")),
    ])
    .await;
    assert_eq!(start.names(), ["default", "good"]);
    start.check_problem(&["bad/agent.json: field \"channels\" has \"general\""]);
}

#[tokio::test]
async fn exceeding_a_limit_is_an_error_that_names_it() {
    let kib = |n: usize| "x".repeat(n * 1024);
    let mut start = Start::with(&[("a/agent.json", &prompt("good"))]).await;
    start.write("a/agent.json", &prompt(&kib(64)));
    start.refresh().await;
    start.check_problem(&["a/agent.json: is larger; ", "at most 65536 bytes"]);

    start.write("a/agent.json", &prompt("good"));
    start.write("a/docs/1.md", &kib(200));
    start.write("a/docs/2.md", &kib(56));
    start.refresh().await;
    assert_eq!(start.agent("a").unwrap().docs.all().len(), 2);
    start.write("a/docs/3.md", "x");
    start.refresh().await;
    start.check_problem(&["a/docs: docs hold more than 262144 bytes"]);
    assert_eq!(start.agent("a").unwrap().docs.all().len(), 2);
    fs::remove_dir_all(start.folder.path().join("a/docs")).unwrap();

    for n in 0..64 {
        start.write(&format!("b{n:02}/agent.json"), &prompt("x"));
    }
    start.refresh().await;
    start.check_problem(&["has 65 agents; accepted: at most 64"]);
    assert_eq!(start.names().len(), 64 + 1);
    assert!(start.agent("b63").is_none());
}

#[tokio::test]
async fn a_file_where_a_folder_should_be() {
    let mut start = Start::with(&[("a/agent.json", &prompt("good"))]).await;
    start.write("support.json", &prompt("x"));
    start.refresh().await;
    start.check_problem(&["support.json: is a file; accepted: a folder support with agent.json"]);
    fs::remove_file(start.folder.path().join("support.json")).unwrap();

    start.write("a/docs", "x");
    start.refresh().await;
    start.check_problem(&["a/docs: is a file; accepted: a folder of .md files"]);
    fs::remove_file(start.folder.path().join("a/docs")).unwrap();

    fs::create_dir_all(start.folder.path().join("a/docs/x.md")).unwrap();
    start.refresh().await;
    start.check_problem(&["a/docs/x.md: is not a file"]);

    let root = start.folder.path().to_owned();
    fs::remove_dir_all(&root).unwrap();
    fs::write(&root, "x").unwrap();
    start.refresh().await;
    let problems = start.problems();
    let of_root = "is a file; accepted: a folder with a folder for each agent";
    assert!(problems[0].contains(of_root), "{problems:?}");
    assert_eq!(start.prompt("a").unwrap(), "good");
    fs::remove_file(&root).unwrap();
    start.refresh().await;
    assert_eq!(start.names(), ["default"]);
}

#[tokio::test]
async fn odd_files_are_refused_by_name() {
    let start = Start::with(&[("Sales Team/agent.json", &prompt("x"))]).await;
    start.check_problem(&["Sales Team: `Sales Team` cannot be an agent's name: 1 to 32 of a-z"]);

    let start = Start::with(&[("a/agent.json", r#"{"system_prompt_file": "no.md"}"#)]).await;
    start.check_problem(&[
        "a/agent.json: field \"system_prompt_file\" names no.md, which is not there",
    ]);

    let start = Start::with(&[("a/agent.json", &prompt("x"))]).await;
    fs::create_dir(start.folder.path().join("a/docs")).unwrap();
    fs::write(start.folder.path().join("a/docs/x.md"), b"\xFF\xFE").unwrap();
    let mut start = start;
    start.refresh().await;
    start.check_problem(&["a/docs/x.md: is not UTF-8"]);
}

#[tokio::test]
async fn a_prompt_file_does_not_link_out_of_the_folder() {
    let mut start = Start::with(&[("a/agent.json", &prompt("good"))]).await;
    start.write("secret.txt", "secret");
    let link = start.folder.path().join("a/p.txt");
    std::os::unix::fs::symlink("../secret.txt", link).unwrap();
    start.write("a/agent.json", r#"{"system_prompt_file": "p.txt"}"#);
    start.refresh().await;
    start.check_problem(&["names p.txt, which links to a file elsewhere"]);
    assert_eq!(start.prompt("a").unwrap(), "good");
}

/// A problem is logged when it appears, not at each look, and again when it changes.
#[tokio::test]
async fn a_problem_is_logged_once_for_each_change() {
    let bad = r#"{"system_prompt": "a private prompt", "scope": "guild"}"#;
    // Registers the log line with tracing before anybody listens.
    drop(Start::with(&[("a/agent.json", bad)]).await);
    let log = Log::default();
    let _guards = log.start();
    let mut start = Start::with(&[("a/agent.json", bad)]).await;
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("a/agent.json: field \"scope\""));
    assert!(!lines[0].contains("private"), "{lines:?}");
    for _ in 0..3 {
        start.refresh().await;
        assert_eq!(log.take(), Vec::<String>::new());
    }
    start.write("a/agent.json", &bad.replace("guild", "server"));
    start.write("b", "x");
    start.refresh().await;
    let lines = log.take();
    assert_eq!(lines.len(), 2, "{lines:?}");
    start.refresh().await;
    start.refresh().await;
    assert_eq!(log.take(), Vec::<String>::new());
    assert_eq!(start.problems().len(), 2);
    start.write("a/agent.json", &prompt("good"));
    start.refresh().await;
    start.write("a/agent.json", &bad.replace("guild", "server"));
    start.refresh().await;
    assert_eq!(log.take().len(), 1, "the problem changed");
}

/// A folder that holds only snapshots of the built-in agent's conversations is no agent.
#[tokio::test]
async fn a_folder_of_snapshots_alone_is_no_agent() {
    let mut start = Start::with(&[
        ("default/sessions/20260102T000000Z_x.json", "{}"),
        ("a/agent.json", &prompt("x")),
        ("a/sessions/20260102T000000Z_x.json", "{}"),
    ])
    .await;
    assert_eq!(start.problems(), Vec::<String>::new());
    assert_eq!(start.names(), ["a", "default"]);
    fs::remove_file(start.folder.path().join("a/agent.json")).unwrap();
    start.refresh().await;
    assert_eq!(start.problems(), Vec::<String>::new());
    assert_eq!(start.names(), ["default"]);
}
