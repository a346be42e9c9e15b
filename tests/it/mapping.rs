//! Checks the tables of `docs/behaviour.md`: every test that they name exists and runs on each back end of
//! its row, and each test of the rolling window that was specified by name has a row.
//!
//! A row is `rule | tests | back ends`. Tests are module paths below `tests/it` or `src` of any package, in
//! backticks; braces share a prefix, as in `use`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use crate::architecture::root;

const DOCUMENT: &str = "docs/behaviour.md";
/// Where the modules of a path may be: each package's tests and sources.
const FOLDERS: [&str; 10] = [
    "tests/it",
    "src",
    "crates/clew-context/tests/it",
    "crates/clew-context/src",
    "crates/clew-discord/tests/it",
    "crates/clew-discord/src",
    "crates/clew-mcp/tests/it",
    "crates/clew-mcp/src",
    "crates/clew-store/tests/it",
    "crates/clew-store/src",
];
/// The headings that have a table.
const SECTIONS: [&str; 14] = [
    "Triggers",
    "What is answered",
    "What is collected",
    "The block and the prompt",
    "The model and its answer",
    "Who may read what",
    "What comes from elsewhere",
    "Context files",
    ROLLING_WINDOW,
    "Memory and context",
    "History across restarts",
    "Stored results of tools",
    "Replay and tune",
    "Metrics and health",
];
const ROLLING_WINDOW: &str = "Rolling window in a database";
/// The tests that were specified by name.
const WINDOW_TESTS: [&str; 38] = [
    "test_message_persisted_to_sqlite",
    "test_message_includes_agent_name_and_thread_id",
    "test_message_includes_timestamp",
    "test_messages_queryable_by_agent",
    "test_rolling_window_returns_messages_within_window",
    "test_rolling_window_excludes_old_messages",
    "test_rolling_window_default_is_one_day",
    "test_rolling_window_configurable",
    "test_clear_advances_last_clear_time",
    "test_clear_excludes_messages_before_clear_time",
    "test_clear_does_not_delete_messages_from_db",
    "test_messages_after_clear_are_included",
    "test_multiple_clears_use_most_recent",
    "test_context_includes_system_prompt",
    "test_context_includes_agent_docs",
    "test_context_includes_thread_status",
    "test_context_includes_rolling_window_messages",
    "test_context_window_bounded_by_clear_time_or_rolling_window",
    "test_save_creates_session_json_file",
    "test_save_stores_metadata_in_sqlite",
    "test_save_generates_summary",
    "test_save_does_not_clear_context",
    "test_save_filename_format",
    "test_save_with_custom_description",
    "test_restore_loads_saved_messages",
    "test_restore_nonexistent_id_raises",
    "test_list_sessions_returns_all_snapshots",
    "test_list_sessions_ordered_by_timestamp_desc",
    "test_context_survives_restart_via_sqlite",
    "test_clear_time_survives_restart",
    "test_generate_summary_calls_llm",
    "test_generate_summary_returns_short_text",
    "test_generate_summary_handles_llm_failure_gracefully",
    "test_context_clear_command_advances_clear_time",
    "test_context_save_command_creates_snapshot",
    "test_context_history_command_returns_embed",
    "test_context_restore_command_loads_session",
    "test_context_commands_no_active_agent_in_channel",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Store {
    Sqlite,
    Postgres,
    Files,
}

/// A row of a table.
#[derive(Debug)]
struct Row {
    section: String,
    rule: String,
    tests: Vec<String>,
    stores: String,
}

/// The stores of the last column; a dash means that nothing is stored.
fn stores(cell: &str) -> Option<&'static [Store]> {
    use Store::{Files, Postgres, Sqlite};
    match cell {
        "all" => Some(&[Sqlite, Postgres, Files]),
        "databases" => Some(&[Sqlite, Postgres]),
        "SQLite" => Some(&[Sqlite]),
        "PostgreSQL" => Some(&[Postgres]),
        "files" => Some(&[Files]),
        "-" => Some(&[]),
        _ => None,
    }
}

/// The rows of all tables.
fn rows(document: &str) -> Vec<Row> {
    let mut section = "";
    let mut rows = Vec::new();
    for line in document.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        }
        let Some(cells) = line.strip_prefix("| ") else {
            continue;
        };
        let cells: Vec<&str> = cells.trim_end_matches('|').split(" | ").collect();
        let [rule, tests, stores] = cells[..] else {
            panic!("not three cells: {line}");
        };
        if rule == "---" || tests == "tests" {
            continue;
        }
        rows.push(Row {
            section: section.to_owned(),
            rule: rule.to_owned(),
            tests: quoted(tests).into_iter().flat_map(spread).collect(),
            stores: stores.trim().to_owned(),
        });
    }
    rows
}

/// The texts in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Expands `a::{b, c}` to `a::b` and `a::c`.
fn spread(path: &str) -> Vec<String> {
    match path.strip_suffix('}').and_then(|path| path.split_once('{')) {
        Some((module, names)) => names
            .split(',')
            .map(|name| format!("{module}{}", name.trim()))
            .collect(),
        None => vec![path.to_owned()],
    }
}

/// The stores that a test runs on, or nothing if there is no such test.
fn runs_on(path: &str) -> Option<BTreeSet<Store>> {
    let (module, name) = path.rsplit_once("::")?;
    let module = module.replace("::", "/");
    FOLDERS.iter().find_map(|folder| {
        let file: PathBuf = root().join(folder).join(format!("{module}.rs"));
        found_in(&fs::read_to_string(file).ok()?, &module, name)
    })
}

fn found_in(text: &str, module: &str, name: &str) -> Option<BTreeSet<Store>> {
    use Store::{Files, Postgres, Sqlite};
    let lines: Vec<&str> = text.lines().collect();
    let is_it = |line: &str| {
        let rest = line.trim_start().trim_start_matches("async ");
        let rest = rest
            .strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['(', '<']))
    };
    let at = lines.iter().position(|line| is_it(line))?;
    if is_listed(&lines, "on_each_store! {", name) {
        return Some([Sqlite, Postgres, Files].into());
    }
    if is_listed(&lines, "on_each_database! {", name) {
        return Some([Sqlite, Postgres].into());
    }
    let above = lines[..at].iter().rev();
    let mut attributes = above.take_while(|line| line.trim_start().starts_with("#["));
    let is_test = attributes.any(|line| line.contains("test]") || line.contains("::test("));
    // A test of a single store has it in its own name or its module's; the others use the default store.
    let words: Vec<&str> = module.split('/').chain(name.split('_')).collect();
    let store = match () {
        () if words.contains(&"postgres") => Postgres,
        () if words.contains(&"files") => Files,
        () => Sqlite,
    };
    is_test.then(|| [store].into())
}

/// Whether the name is listed in an invocation of this macro.
fn is_listed(lines: &[&str], opening: &str, name: &str) -> bool {
    let mut rest = lines.iter();
    while rest.any(|line| line.trim() == opening) {
        let mut names = rest.by_ref().take_while(|line| line.trim() != "}");
        if names.any(|line| line.trim() == name) {
            return true;
        }
    }
    false
}

/// What is wrong with the document.
fn problems(document: &str) -> Vec<String> {
    let rows = rows(document);
    let mut problems = Vec::new();
    for section in SECTIONS {
        if !rows.iter().any(|row| row.section == section) {
            problems.push(format!("{section} has no table"));
        }
    }
    for wanted in WINDOW_TESTS {
        let has_row =
            |row: &Row| row.section == ROLLING_WINDOW && quoted(&row.rule).contains(&wanted);
        if !rows.iter().any(has_row) {
            problems.push(format!("{wanted} has no row"));
        }
    }
    problems.extend(rows.iter().flat_map(of_row));
    problems
}

fn of_row(row: &Row) -> Vec<String> {
    let place = format!("{}, \"{}\"", row.section, row.rule);
    let Some(wanted) = stores(&row.stores) else {
        return vec![format!("{place}: no such back ends: {}", row.stores)];
    };
    if row.tests.is_empty() {
        return vec![format!("{place}: no test")];
    }
    let mut problems = Vec::new();
    let mut run = BTreeSet::new();
    for test in &row.tests {
        match runs_on(test) {
            Some(stores) => run.extend(stores),
            None => problems.push(format!("{place}: no test {test}")),
        }
    }
    let missing = wanted.iter().filter(|store| !run.contains(store));
    problems.extend(missing.map(|store| format!("{place}: no test on {store:?}")));
    problems
}

#[test]
fn every_row_has_its_tests() {
    let document = fs::read_to_string(root().join(DOCUMENT)).unwrap();
    let problems = problems(&document).into_iter();
    let list = problems.fold(String::new(), |mut list, problem| {
        let _ = write!(list, "\n  {problem}");
        list
    });
    assert!(list.is_empty(), "{DOCUMENT}:{list}");
}

#[track_caller]
fn check(rows: &str, expected: &[&str]) {
    let document = format!("# x\n\n## Triggers\n\n{rows}\n\n## Next\n\n| a | `b` | c |");
    let found = problems(&document).into_iter();
    let found: Vec<_> = found
        .filter(|problem| problem.starts_with("Triggers"))
        .collect();
    assert_eq!(found, expected);
}

/// Each kind of mistake is reported.
#[test]
fn wrong_rows_are_found() {
    let head = "| rule | tests | back ends |\n| --- | --- | --- |\n";
    let table = |row: &str| format!("{head}{row}");
    let each = "store::contract::clearing";
    check(
        &table(&format!("| a | `{each}::markers_are_separate` | all |")),
        &[],
    );
    let both = "| a | `store::isolation::{no_read_crosses_a_scope_in_sqlite, \
                no_read_crosses_a_scope_in_postgres}` | databases |";
    check(&table(both), &[]);
    let unit = "| a | `engine::history::few_and_none_are_possible` | - |";
    check(&table(unit), &[]);
    check(head, &["Triggers has no table"]);
    check(
        &table("| a | nobody | all |"),
        &["Triggers, \"a\": no test"],
    );
    // Neither a helper nor a missing function is a test.
    for name in [
        format!("{each}::cleared"),
        format!("{each}::nothing"),
        "own".to_owned(),
    ] {
        let problem = format!("Triggers, \"a\": no test {name}");
        check(&table(&format!("| a | `{name}` | - |")), &[&problem]);
    }
    let plain = "| a | `store::files::concurrent_writers_lose_nothing` | databases |";
    let problems = [
        "Triggers, \"a\": no test on Sqlite",
        "Triggers, \"a\": no test on Postgres",
    ];
    check(&table(plain), &problems);
    let column = "| a | `config::switches_accept_eight_words` | some |";
    check(
        &table(column),
        &["Triggers, \"a\": no such back ends: some"],
    );
}
