//! How many statements a database server was sent, as its log tells.

use std::fs;
use std::path::Path;

/// In statements that are not part of what the bot does: renewals, sessions, connections.
const NOT_BY_WORK: [&str; 7] = [
    "state_files",
    "leases",
    "nodes",
    "pg_locks",
    "pg_advisory_lock",
    "SET search",
    "SET tcp",
];

/// What has a server note each statement from now on.
pub(crate) const LOGGED: [&str; 2] = [
    "ALTER SYSTEM SET log_min_duration_statement = 0",
    "SELECT pg_reload_conf()",
];

/// How many statements the log in a server's folder has, but for those that go by time or by connection.
pub(crate) fn statements(folder: &Path) -> usize {
    let text = fs::read_to_string(folder.join("server.log")).unwrap();
    let is_meant = |line: &&str| {
        let is_statement = line.contains("execute ") || line.contains("statement: ");
        is_statement && !NOT_BY_WORK.iter().any(|word| line.contains(word))
    };
    text.lines().filter(is_meant).count()
}
