//! Unknown names, and files that cannot be read.

use clew::config::Config;

use super::{dotenv, load, owned, try_load};

#[track_caller]
fn check_hint(name: &str, expected: Option<&str>) {
    let config = load(&[(name, "x")]);
    let warning = config.warnings().first().map(String::as_str);
    match (warning, expected) {
        (None, None) => {}
        (Some(warning), Some(expected)) => assert!(warning.contains(expected), "{warning}"),
        _ => panic!("{name}: {warning:?}, expected {expected:?}"),
    }
}

#[test]
fn unknown_names_that_look_like_ours_get_a_hint() {
    for (name, meant) in [
        ("MEM_MAX_MESSAGES", "did you mean MEM_MAX_MSGS?"),
        ("MEM_MAX_CHAR", "did you mean MEM_MAX_CHARS?"),
        (
            "THREAD_TAIL_COUNT",
            "did you mean THREAD_CONTEXT_TAIL_COUNT?",
        ),
        ("mem_max_msgs", "did you mean MEM_MAX_MSGS?"),
        ("MENTIONS_ONLY", "did you mean MENTION_ONLY?"),
        ("DISCORD_BOT_TOKEN", "did you mean DISCORD_TOKEN?"),
        ("DISCORD_API_BASE", "did you mean DISCORD_API_URL?"),
        ("OPENAI_BASE_URL", "did you mean LLM_BASE_URL?"),
        ("CONTEXT_STORAGE", "did you mean CONTEXT_STORE?"),
        (
            "CONTEXT_ROLLING_WINDOW",
            "did you mean CONTEXT_ROLLING_WINDOW_S?",
        ),
        ("CONTEXT_SOMETHING_ELSE", "see .env.example"),
        ("RETENTION_DAY", "did you mean RETENTION_DAYS?"),
        ("TELEMETRY_SOMETHING_ELSE", "see .env.example"),
    ] {
        check_hint(name, Some(meant));
    }
    for others in [
        "PATH",
        "HOME",
        "LANG",
        "CI",
        "BOT_USER_ID",
        "PWD",
        "TERM",
        "EDITOR",
        "SHLVL",
    ] {
        check_hint(others, None);
    }
    let both = load(&[("DISCORD_TOKEN", "t"), ("DISCORD_BOT_TOKEN", "t")]);
    assert_eq!(both.warnings(), [""; 0], "the right name is set as well");
}

/// In the file even names that do not look like ours are reported.
#[test]
fn every_unknown_name_in_the_file_is_reported() {
    let (_dir, path) = dotenv("MEM_MAX_MSGS=7\nFOO=1\nPATH_TO=x\nDISCORD_TOKN=hush\nBOT_TOKEN=x\n");
    let environment = owned(&[("PATH", "/bin"), ("FOO", "2"), ("DISCORD_TOKEN", "t")]);
    let config = Config::load(environment, Some(&path)).unwrap();
    let told = |name: &str, hint: &str| format!("{name} (.env) is not a setting of Clew; {hint}");
    let expected = [
        told("BOT_TOKEN", "see .env.example for those that are"),
        told("DISCORD_TOKN", "did you mean DISCORD_TOKEN?"),
        told("FOO", "see .env.example for those that are"),
        told("PATH_TO", "see .env.example for those that are"),
    ];
    assert_eq!(config.warnings(), expected);
    assert_eq!(config.meant_as_token(), None, "it is set");
}

#[test]
fn a_name_that_is_meant_as_the_token_is_recognised() {
    let check = |pairs: &[(&str, &str)], expected: Option<&str>| {
        assert_eq!(load(pairs).meant_as_token(), expected, "{pairs:?}");
    };
    check(&[("DISCORD_TOKN", "x")], Some("DISCORD_TOKN (environment)"));
    check(
        &[("discord_token", "x")],
        Some("discord_token (environment)"),
    );
    check(&[("DISCORD_TOKN", " ")], None);
    check(&[("DISCORD_TOKN", "x"), ("DISCORD_TOKEN", "y")], None);
    check(&[("DISCORD_COLOUR", "x")], None);
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".env");
    std::fs::create_dir(&path).unwrap();
    let errors = Config::load([], Some(&path)).unwrap_err().to_string();
    let path = path.display().to_string();
    for part in [
        &path,
        "cannot be read",
        "a file that the user who runs clew may read",
    ] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
}

/// What was a setting says what to write instead; without a value it does no harm.
#[test]
fn a_setting_that_was_removed_says_what_to_write_instead() {
    let errors = try_load(&[("TOOL_OFFER_MAX", "3")]).unwrap_err();
    assert_eq!(
        errors.problems[0].to_string(),
        "TOOL_OFFER_MAX is not a setting any more (environment); accepted: nothing; it is always 8"
    );
    assert!(load(&[("TOOL_OFFER_MAX", "")]).warnings().is_empty());
    // A list that is not followed would let somebody in.
    for list in ["ALLOWED", "DENIED"] {
        for (kind, word) in [
            ("GUILDS", "guild"),
            ("CHANNELS", "channel"),
            ("USERS", "user"),
            ("ROLES", "role"),
        ] {
            let errors = try_load(&[(&format!("{list}_{kind}"), "1")]).unwrap_err();
            let instead = format!("accepted: {word}:ID for each in {list}");
            assert!(errors.to_string().contains(&instead), "{errors}");
        }
    }
}
