//! The settings of memory and history: the stores' addresses, which scopes each store knows, that passwords
//! are never shown, and what has no effect.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clew_store::model::{ScopeKind, StoreAddress};

use super::{load, try_load};

const DAY: Duration = Duration::from_hours(24);

#[test]
fn by_default_sqlite_remembers_for_ever() {
    let memory = load(&[]).memory;
    assert_eq!(
        memory.store,
        StoreAddress::Sqlite(PathBuf::from("var/clew.db"))
    );
    assert_eq!(memory.scope, ScopeKind::Member);
    assert_eq!(memory.rolling_window, DAY);
    assert_eq!(memory.retention, None);
    assert_eq!(memory.guild_retention, DAY * 30);
    assert_eq!(memory.agents_dir, Path::new("var/agents"));
    assert!(memory.default_agent && !memory.learn && !memory.in_memory_only);
    assert_eq!((memory.dm_logs_dir, memory.max_log_bytes), (None, None));
}

#[test]
fn every_setting_is_loaded() {
    let config = load(&[
        ("CONTEXT_STORE", "files:context"),
        ("CONTEXT_ROLLING_WINDOW_S", "3600"),
        ("RETENTION_DAYS", "90"),
        ("GUILD_RETENTION_DAYS", "0"),
        ("AGENTS_DIR", "personas"),
        ("DEFAULT_AGENT", "off"),
        ("MEMORY_LEARN", "Model"),
        ("LLM_BASE_URL", "http://localhost:1"),
        ("LLM_MODEL", "m"),
        ("USER_PROFILE_DIR", "users"),
        ("SERVER_PROFILE_DIR", "servers"),
        ("DM_LOGS_DIR", "dm"),
        ("MAX_CONVERSATION_LOG_SIZE", "10000"),
    ]);
    assert_eq!(config.warnings(), [""; 0]);
    let memory = config.memory;
    assert_eq!(memory.store, StoreAddress::Files(PathBuf::from("context")));
    assert_eq!(memory.rolling_window, Duration::from_hours(1));
    assert_eq!(memory.retention, Some(DAY * 90));
    assert_eq!(memory.guild_retention, Duration::ZERO);
    assert_eq!(memory.agents_dir, Path::new("personas"));
    assert!(!memory.default_agent && memory.learn);
    assert_eq!(memory.user_profile_dir, Path::new("users"));
    assert_eq!(memory.server_profile_dir, Path::new("servers"));
    assert_eq!(memory.dm_logs_dir.as_deref(), Some(Path::new("dm")));
    assert_eq!(memory.max_log_bytes, Some(10_000));
}

#[track_caller]
fn check_scope(store: &str, scope: &str, expected: Result<ScopeKind, &str>) {
    let loaded = try_load(&[("CONTEXT_STORE", store), ("CONTEXT_SCOPE", scope)]);
    let found = loaded.map(|config| config.memory.scope);
    let found = found.map_err(|errors| errors.to_string());
    let expected = expected.map_err(|line| format!("the settings cannot be used:\n  {line}"));
    assert_eq!(found, expected, "{store} {scope}");
}

#[test]
fn files_know_the_scope_member_only() {
    check_scope("sqlite:a.db", "thread", Ok(ScopeKind::Thread));
    check_scope("sqlite:a.db", "USER", Ok(ScopeKind::User));
    check_scope("files:a", "member", Ok(ScopeKind::Member));
    check_scope("files:a", "", Ok(ScopeKind::Member));
    for scope in ["thread", "user"] {
        let refused = format!(
            "CONTEXT_SCOPE is \"{scope}\"; accepted: member, since CONTEXT_STORE is files:DIR; \
             another scope needs a database"
        );
        check_scope("files:a", scope, Err(&refused));
    }
}

/// An address with a password, twice.
const DATABASE: &str = "postgres://ada:hush@db.example:5432/clew?password=hush";

#[cfg(feature = "postgres")]
#[test]
fn a_databases_password_is_kept_and_never_shown() {
    let config = load(&[("CONTEXT_STORE", DATABASE), ("CONTEXT_SCOPE", "thread")]);
    let address = StoreAddress::Postgres(clew_context::model::Secret::new(DATABASE));
    assert_eq!(config.memory.store, address);
    assert_eq!(
        super::effective(&config)["CONTEXT_STORE"],
        "postgres://ada:[secret]@db.example:5432/clew?[secret]"
    );
    let listed: Vec<_> = config.effective().collect();
    let everything = format!("{config:?} {listed:?} {address}");
    assert!(!everything.contains("hush"), "{everything}");
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_build_without_postgresql_says_how_to_get_it() {
    let errors = try_load(&[("CONTEXT_STORE", DATABASE)]).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "the settings cannot be used:\n  CONTEXT_STORE is \
         \"postgres://ada:[secret]@db.example:5432/clew?[secret]\"; accepted: sqlite:PATH or \
         files:DIR, since this build is without PostgreSQL; build with `--features postgres`"
    );
}

#[track_caller]
fn check_refused(address: &str, shown: &str) {
    let errors = try_load(&[("CONTEXT_STORE", address)]).unwrap_err();
    assert!(!format!("{errors:?}").contains("hush"), "{errors:?}");
    assert_eq!(
        errors.to_string(),
        format!(
            "the settings cannot be used:\n  CONTEXT_STORE is {shown}; accepted: sqlite:PATH, \
             postgres://user:password@host/database with special characters percent-encoded, or \
             files:DIR"
        )
    );
}

#[test]
fn a_refused_address_is_repeated_only_without_a_login() {
    check_refused("sqllite:var/clew.db", "\"sqllite:var/clew.db\"");
    check_refused("sqlite://var/clew.db", "[set]");
    check_refused("postgres://ada:hu/hush@host/db", "[set]");
    check_refused("postgres:ada:hush", "[set]");
    check_refused("mysql://ada:hush@host/db", "[set]");
    check_refused("host=db password=hush", "[set]");
}

#[test]
fn every_problem_of_memory_is_named_at_once() {
    let errors = try_load(&[
        ("CONTEXT_STORE", "files:context"),
        ("CONTEXT_SCOPE", "user"),
        ("CONTEXT_ROLLING_WINDOW_S", "316224001"),
        ("RETENTION_DAYS", "36501"),
        ("GUILD_RETENTION_DAYS", "-1"),
        ("DEFAULT_AGENT", "maybe"),
        ("MEMORY_LEARN", "yes"),
    ])
    .unwrap_err();
    insta::assert_snapshot!(errors, @r#"
    the settings cannot be used:
      CONTEXT_SCOPE is "user"; accepted: member, since CONTEXT_STORE is files:DIR; another scope needs a database
      CONTEXT_ROLLING_WINDOW_S is "316224001"; accepted: a number from 1 to 316224000 (seconds)
      RETENTION_DAYS is "36501"; accepted: a number from 0 to 36500 (days)
      GUILD_RETENTION_DAYS is "-1"; accepted: a number from 0 to 36500 (days)
      DEFAULT_AGENT is "maybe"; accepted: true, false, 1, 0, yes, no, on, off
      MEMORY_LEARN is "yes"; accepted: off, model
    "#);
}

#[track_caller]
fn check_warned(pairs: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(load(pairs).warnings(), expected, "{pairs:?}");
}

#[test]
fn what_has_no_effect_is_warned_of() {
    check_warned(
        &[("IN_MEMORY_CONTEXT_ONLY", "true"), ("DM_LOGS_DIR", "dm")],
        &["DM_LOGS_DIR has no effect with IN_MEMORY_CONTEXT_ONLY=true: no log is written"],
    );
    check_warned(
        &[("MAX_CONVERSATION_LOG_SIZE", "10000")],
        &["MAX_CONVERSATION_LOG_SIZE has no effect without DM_LOGS_DIR"],
    );
    check_warned(
        &[("MEMORY_LEARN", "model")],
        &["MEMORY_LEARN has no effect without LLM_BASE_URL"],
    );
    check_warned(
        &[("USER_PROFILE_DIR", "users")],
        &["USER_PROFILE_DIR has no effect without CONTEXT_STORE=files:DIR"],
    );
    check_warned(&[("IN_MEMORY_CONTEXT_ONLY", "true")], &[]);
    check_warned(&[("DM_LOGS_DIR", "dm")], &[]);
}
