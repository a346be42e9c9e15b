//! The settings: defaults, what every variable refuses, `.env`, unknown names, access lists, and
//! `.env.example`, which must agree with the table.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

mod example;
mod fallbacks;
mod memory;
mod secrets;
mod unknown;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clew::config::{Config, ConfigErrors, MessageContent, SettingOrigin, VARIABLES};
use clew_context::engine::admission::{Admission, Denied, admit};
use clew_context::model::{
    ChannelId, GuildId, Limits, LinkContext, LoneContext, PlaceContext, ReplyTarget, RoleId,
    ThreadSelect, UserId,
};

use example::example;

fn try_load(pairs: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    Config::load(owned(pairs), None)
}

#[track_caller]
fn load(pairs: &[(&str, &str)]) -> Config {
    try_load(pairs).unwrap_or_else(|errors| panic!("{errors}"))
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn dotenv(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".env");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

fn effective(config: &Config) -> BTreeMap<&'static str, String> {
    config
        .effective()
        .map(|effective| (effective.name, effective.shown))
        .collect()
}

#[test]
fn nothing_set_gives_the_documented_defaults() {
    let config = load(&[]);
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.window.per_channel, 200);
    assert_eq!(config.window.max_bytes, 8 * 1024 * 1024);
    assert_eq!(config.turns.queue_per_channel, 3);
    assert_eq!(config.turns.max_concurrent, 32);
    assert_eq!(config.turns.user_per_minute.map(u32::from), Some(10));
    assert_eq!(config.turns.shutdown_timeout, Duration::from_secs(20));
    assert_eq!(config.answers.max_messages, 4);
    assert_eq!(config.telemetry.context_subsys, "mem.ctx");
    assert_eq!(config.telemetry.keep_days, Some(30));
    assert_eq!(config.discord.message_content, MessageContent::Required);
    assert_eq!(config.reply_target, ReplyTarget::Newest);
    assert_eq!(config.memory.load_past, 30);
    assert_eq!(config.memory.recall, 4);
    assert_eq!(config.log.level, tracing::level_filters::LevelFilter::INFO);
    assert!(config.discord.token.is_none() && config.llm.is_none());
    assert!(config.access.direct_messages && !config.triggers.mention_only);
    assert!(config.prompt.contains("Discord"));
    assert_eq!(config.warnings(), [""; 0]);
}

#[test]
fn the_documented_blocks_load_verbatim() {
    let blocks = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/env");
    let tail = Config::load([], Some(&blocks.join("thread_tail.env"))).unwrap();
    assert_eq!(tail.limits.tail, 5);

    let memory = Config::load([], Some(&blocks.join("memory.env"))).unwrap();
    assert_eq!(memory.memory.max_context_messages, 30);
    assert!(!memory.memory.in_memory_only);
    assert_eq!(memory.memory.max_user_facts, 5);
    assert_eq!(memory.memory.max_server_facts, 100);
    assert_eq!(memory.memory.save_interval, Duration::from_secs(30));
    assert_eq!(memory.warnings(), [""; 0]);

    let text = std::fs::read_to_string(blocks.join("memory.env")).unwrap();
    let (_dir, path) = dotenv(&text.replace("\n#", "\n"));
    let optional = Config::load([], Some(&path)).unwrap_err();
    // "Optional paths and limits" is prose and the only line that is not a setting.
    assert_eq!(optional.problems.len(), 1, "{optional}");
    let (_dir, path) = dotenv(&text.replace("\n#", "\n").replace("\n Opt", "\n#Opt"));
    let optional = Config::load([], Some(&path)).unwrap();
    assert_eq!(optional.memory.max_log_bytes, Some(10_000));
    let logs = optional.memory.dm_logs_dir.as_deref();
    assert_eq!(logs, Some(Path::new("var/log/dm")));
    assert_eq!(
        optional.warnings(),
        [
            "USER_PROFILE_DIR has no effect without CONTEXT_STORE=files:DIR",
            "SERVER_PROFILE_DIR has no effect without CONTEXT_STORE=files:DIR",
            "TTS_PREFS_FILE is accepted and never used: Clew does not speak",
        ]
    );
}

#[test]
fn limits_have_the_values_set_and_zero_age_is_no_limit() {
    let config = load(&[
        ("THREAD_CONTEXT_TAIL_COUNT", "0"),
        ("MEM_MAX_MSGS", " 12 "),
        ("MEM_MAX_CHARS", "4000"),
        ("MEM_MAX_MSG_CHARS", "300"),
        ("MEM_MAX_AGE_MIN", "0"),
        ("MEM_FETCH_TIMEOUT_S", "0.25"),
        ("MEM_MAX_FETCHES", "2"),
        ("MEM_MAX_FILE_BYTES", "0"),
        ("MEM_INCLUDE_POINTED_APPS", "no"),
        ("LINK_CONTEXT", "10, 0"),
        ("LONE_CONTEXT", "Recent"),
        ("LONE_MAX_CHARS", "300"),
        ("PLACE_CONTEXT", "Topic,Pins"),
        ("THREAD_SELECT", "conversation"),
        ("MEM_LOG_SUBSYS", "memory.context"),
    ]);
    let expected = Limits {
        tail: 0,
        max_msgs: 12,
        max_chars: 4_000,
        max_msg_chars: 300,
        max_age: None,
        max_chain_age: None,
        fetch_timeout: Duration::from_millis(250),
        max_fetches: 2,
        max_file_bytes: 0,
        include_pointed_apps: false,
        link_context: LinkContext {
            before: 10,
            after: 0,
        },
        lone_context: LoneContext::Recent,
        lone_max_chars: 300,
        place_context: PlaceContext::TopicPins,
        thread_select: ThreadSelect::Conversation,
    };
    assert_eq!(config.limits, expected);
    assert_eq!(config.telemetry.context_subsys, "memory.context");
}

/// Unless it is set, a chain's age limit is the thread's if that is set.
#[test]
fn a_chains_age_inherits_the_threads() {
    let minutes = |minutes| Some(Duration::from_mins(minutes));
    let chain = ("MEM_CHAIN_MAX_AGE_MIN", "30");
    let thread = ("MEM_MAX_AGE_MIN", "60");
    let off = ("MEM_CHAIN_MAX_AGE_MIN", "0");
    for (set, expected) in [
        (&[][..], (minutes(240), minutes(10_080))),
        (
            &[("MEM_MAX_AGE_MIN", " ")][..],
            (minutes(240), minutes(10_080)),
        ),
        (&[thread][..], (minutes(60), minutes(60))),
        (&[chain][..], (minutes(240), minutes(30))),
        (&[thread, chain][..], (minutes(60), minutes(30))),
        (&[thread, off][..], (minutes(60), None)),
    ] {
        let limits = load(set).limits;
        assert_eq!((limits.max_age, limits.max_chain_age), expected, "{set:?}");
        let shown = &effective(&load(set))["MEM_CHAIN_MAX_AGE_MIN"];
        let expected = expected.1.map_or(0, |age| age.as_secs() / 60);
        assert_eq!(*shown, expected.to_string(), "{set:?}");
    }
    let refused = Config::load(owned(&[("MEM_MAX_AGE_MIN", "old")]), None).unwrap_err();
    assert_eq!(refused.problems.len(), 1, "{refused}");
}

/// For each variable a value that it refuses, and a part of the message.
const REFUSED: &[(&str, &str, &str)] = &[
    ("DISCORD_TOKEN", "two words", "portal"),
    ("DISCORD_API_URL", "http://host/api/v10", "without a path"),
    ("DISCORD_GATEWAY_URL", "http://host", "ws://host:port"),
    ("DISCORD_MESSAGE_CONTENT", "maybe", "required, off"),
    ("DISCORD_MEMBERS_INTENT", "2", "true, false"),
    (
        "ALLOWED",
        "guild:1,x",
        "guild:ID, channel:ID, user:ID or role:ID",
    ),
    ("ALLOWED", "*", "guild:ID, channel:ID"),
    ("ALLOWED", "direct", "guild:ID, channel:ID"),
    ("ALLOWED", "channel:#general", "each id 1 to 20 digits"),
    ("DENIED", "1", "guild:ID"),
    ("DENIED", "channel:0", "channel:ID"),
    ("DENIED", "role:-1", "role:ID"),
    ("DENIED", "user:@ada", "user:ID"),
    ("MENTION_ONLY", "si", "true, false"),
    ("AUTO_REPLY_CHANNELS", "*", "channel ids"),
    ("REPLY_TO_BOTS", "never", "true, false"),
    ("THREAD_REPLY_TARGET", "oldest", "newest, trigger"),
    ("PROXY_APPS", "pluralkit,irc", "pluralkit, tupperbox"),
    ("LLM_BASE_URL", "localhost:11434", "http://host:port/v1"),
    ("LLM_API_KEY", "two words", "printable"),
    (
        "LLM_FALLBACKS",
        "http://a/v1",
        "the model's name, and its key",
    ),
    ("LLM_TIMEOUT_S", "0", "from 1 to 3600"),
    ("LLM_MAX_OUTPUT_TOKENS", "1k", "from 1 to 1000000"),
    ("LLM_CONTEXT_TOKENS", "100", "from 512 to 100000000"),
    ("LLM_TEMPERATURE", "NaN", "from 0 to 2"),
    ("LLM_VISION", "yes", "auto"),
    ("LLM_PRICES", "cheap", "the prices of a million tokens"),
    ("LLM_PRICES", "0.15/1, big=", "MODEL=IN/OUT"),
    ("THREAD_CONTEXT_TAIL_COUNT", "41", "from 0 to 40"),
    ("MEM_MAX_MSGS", "0", "from 1 to 1000"),
    ("MEM_MAX_CHARS", "8_000", "from 100 to 1000000"),
    ("MEM_MAX_MSG_CHARS", "1", "from 20 to 100000"),
    ("MEM_MAX_AGE_MIN", "-1", "minutes"),
    ("MEM_CHAIN_MAX_AGE_MIN", "1.5", "minutes"),
    ("MEM_FETCH_TIMEOUT_S", "inf", "from 0.05 to 60"),
    ("MEM_MAX_FETCHES", "101", "from 0 to 100"),
    ("MEM_MAX_FILE_BYTES", "20KB", "bytes"),
    ("LINK_CONTEXT", "3,11", "two numbers from 0 to 10"),
    ("LONE_CONTEXT", "on", "off, recent, conversation"),
    ("LONE_MAX_CHARS", "99", "from 100 to 100000"),
    ("PLACE_CONTEXT", "pins", "off, topic, topic,pins"),
    ("THREAD_SELECT", "oldest", "newest, conversation"),
    ("MEM_INCLUDE_POINTED_APPS", "y", "true, false"),
    ("MEM_LOG_SUBSYS", "mem..ctx", "lower-case"),
    ("MEM_LOG_SUBSYS", "mem.thread", "another subsystem"),
    ("WINDOW_PER_CHANNEL", "10001", "from 0 to 10000"),
    ("WINDOW_MAX_MB", "0", "MiB"),
    ("TURN_QUEUE_PER_CHANNEL", "three", "from 0 to 100"),
    ("MAX_CONCURRENT_TURNS", "0", "from 1 to 10000"),
    ("USER_TURNS_PER_MIN", "-5", "from 0 to 1000"),
    ("MAX_AGENT_RUNS", "-1", "from 0 to 1000"),
    ("AGENT_RUN_MAX_TOKENS", "0", "from 1 to 1000000000"),
    ("TOKENS_PER_DAY", "-1,0", "from 0 to 1000000000000"),
    ("TOKENS_PER_DAY", "1000", "a person's and a server's"),
    ("TOKENS_TOTAL_DAY", "-1", "from 0 to 1000000000000"),
    ("ALERT_WEBHOOK", "ftp://hook", "an http or https URL"),
    ("MCP_CONFIG", "no/mcp.json", "may read"),
    ("APPROVER_ROLES", "approvers", "role ids"),
    ("MCP_LISTEN", "9470", "such as 127.0.0.1:9470"),
    ("ANSWER_MAX_MESSAGES", "0", "from 1 to 20"),
    ("RECEIPT_BUTTON", "maybe", "true, false"),
    ("SHUTDOWN_TIMEOUT_S", "601", "from 0 to 600"),
    ("CATCH_UP_MIN", "31", "from 0 to 30"),
    ("CATCH_UP_MAX_FETCHES", "0", "from 1 to 10000"),
    ("TELEMETRY_DIR", "a\0b", "a path"),
    ("TELEMETRY_KEEP_DAYS", "1.5", "days"),
    ("TELEMETRY_IDS", "hashed", "plain, keyed"),
    ("METRICS_ADDR", "9464", "such as 127.0.0.1:9464"),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "collector:4318",
        "before /v1/traces",
    ),
    ("OTEL_EXPORTER_OTLP_HEADERS", "key", "separated by commas"),
    ("STATE_DIR", "a\0b", "a path"),
    ("CLUSTER", "maybe", "true, false"),
    ("CLUSTER", "on", "CONTEXT_STORE=postgres://"),
    ("LOG_FORMAT", "xml", "text, json"),
    ("DEBUG", "clew", "true, false"),
    ("CONTEXT_STORE", "var/clew.db", "sqlite:PATH, postgres://"),
    ("TOOL_MAX_ROUNDS", "-1", "from 0 to 50"),
    ("SEARCH", "google", "discord, window, off"),
    ("TOOL_OUTPUT_DIR", "a\0b", "a path"),
    ("TOOL_OUTPUT_RESUME", "maybe", "true, false"),
    ("CONTEXT_SCOPE", "channel", "member, thread, user"),
    ("CONTEXT_ROLLING_WINDOW_S", "0", "from 1 to 316224000"),
    ("RETENTION_DAYS", "-1", "days"),
    ("RECEIPT_DAYS", "36501", "from 0 to 36500"),
    ("GUILD_RETENTION_DAYS", "a month", "from 0 to 36500"),
    ("AGENTS_DIR", "a\0b", "a path"),
    ("DEFAULT_AGENT", "ada", "on, off"),
    ("MEMORY_LEARN", "on", "off, model"),
    ("MAX_CONTEXT_MESSAGES", "many", "from 0 to 1000"),
    ("MAX_CONTEXT_CHARS", "99", "from 100 to 1000000"),
    ("IN_MEMORY_CONTEXT_ONLY", "ja", "true, false"),
    ("MAX_USER_MEMORY", "-1", "facts"),
    ("MAX_SERVER_MEMORY", "1e3", "facts"),
    ("MEMORY_SAVE_INTERVAL", "0", "seconds"),
    ("LOAD_PAST_CONVERSATIONS", "101", "from 0 to 100"),
    ("RECALL_MESSAGES", "21", "from 0 to 20"),
    ("USER_PROFILE_DIR", "a\0b", "a path"),
    ("SERVER_PROFILE_DIR", "a\0b", "a path"),
    ("DM_LOGS_DIR", "a\0b", "a path"),
    ("MAX_CONVERSATION_LOG_SIZE", "0", "bytes"),
    ("TTS_PREFS_FILE", "a\0b", "a path"),
];

/// Variables that accept any text.
const FREE_TEXT: [&str; 2] = ["LLM_MODEL", "SYSTEM_PROMPT"];

#[test]
fn every_variable_is_refused_by_its_own_name() {
    for (name, value, accepted) in REFUSED {
        let errors = try_load(&[(name, value), ("LLM_MODEL", "m")]).unwrap_err();
        let [problem] = errors.problems.as_slice() else {
            panic!("{name}={value:?} should be the only problem: {errors}");
        };
        assert_eq!(problem.subject, *name);
        assert!(problem.accepted.contains(accepted), "{problem}");
        let shown = match *name {
            // Only an address is shown.
            "DISCORD_API_URL"
            | "DISCORD_GATEWAY_URL"
            | "LLM_BASE_URL"
            | "OTEL_EXPORTER_OTLP_ENDPOINT"
                if !value.contains("://") =>
            {
                "is [set]".to_owned()
            }
            "DISCORD_TOKEN" | "LLM_API_KEY" | "OTEL_EXPORTER_OTLP_HEADERS" | "ALERT_WEBHOOK" => {
                "is [set]".to_owned()
            }
            "LLM_FALLBACKS" => "has an entry 1 that cannot be used".to_owned(),
            _ => format!("is {value:?}"),
        };
        assert_eq!(problem.shown, shown);
    }
    for variable in VARIABLES {
        let tested = REFUSED.iter().any(|(name, ..)| *name == variable.name);
        let free = FREE_TEXT.contains(&variable.name);
        assert!(tested != free, "{} needs a refused value", variable.name);
    }
}

#[test]
fn all_problems_are_named_at_once() {
    let errors = try_load(&[
        ("MEM_MAX_MSGS", "many"),
        ("LLM_BASE_URL", "http://localhost:1/v1"),
        ("SYSTEM_PROMPT_FILE", "b"),
        ("DISCORD_TOKN", "secret-in-a-misspelt-variable"),
    ])
    .unwrap_err();
    insta::assert_snapshot!(errors, @r#"
    the settings cannot be used:
      SYSTEM_PROMPT_FILE is not a setting any more (environment); accepted: the text in SYSTEM_PROMPT, or an agent in AGENTS_DIR
      LLM_MODEL is not set; accepted: a model's name, since LLM_BASE_URL is set
      MEM_MAX_MSGS is "many"; accepted: a number from 1 to 1000 (messages)
      note: DISCORD_TOKN (environment) is not a setting of Clew; did you mean DISCORD_TOKEN?
    "#);
}

/// Who looks at the rest finds defaults in place of what cannot be used.
#[test]
fn what_can_be_used_is_there_beside_what_cannot() {
    let errors = try_load(&[
        ("REPLY_TO_BOTS", "maybe"),
        ("LOG_FORMAT", "xml"),
        ("STATE_DIR", "a\0b"),
        ("MEM_MAX_MSGS", "many"),
        ("MEM_MAX_FETCHES", "3"),
        ("DISCORD_TOKEN", "t"),
    ])
    .unwrap_err();
    assert_eq!(errors.problems.len(), 4, "{errors}");
    let rest = *errors.rest;
    assert!(!rest.triggers.reply_to_bots);
    assert_eq!(rest.log, load(&[]).log);
    assert_eq!(rest.state_dir, load(&[]).state_dir);
    assert_eq!((rest.limits.max_msgs, rest.limits.max_fetches), (40, 3));
    assert!(rest.discord.token.is_some());
}

/// A shell and `.env` take quotes away; files of containers and units do not.
#[test]
fn quotes_from_the_environment_are_named() {
    let quoted = |errors: &ConfigErrors| {
        let accepted = &errors.problems[0].accepted;
        accepted.contains("without the quotes")
    };
    for value in ["\"7\"", "'7'"] {
        let errors = try_load(&[("MEM_MAX_MSGS", value)]).unwrap_err();
        assert!(quoted(&errors), "{errors}");
    }
    for value in ["\"7", "7'", "seven"] {
        let errors = try_load(&[("MEM_MAX_MSGS", value)]).unwrap_err();
        assert!(!quoted(&errors), "{errors}");
    }
    let told =
        |name: &str| format!("{name} (environment) has quotes, which are part of its value there");
    let config = load(&[("DISCORD_TOKEN", "\"t\"")]);
    assert_eq!(config.warnings(), [told("DISCORD_TOKEN")]);
    let (_dir, path) = dotenv("STATE_DIR=\"t\"\nMEM_MAX_MSGS='7'\n");
    let config = Config::load([], Some(&path)).unwrap();
    assert_eq!(config.warnings(), [""; 0]);
}

#[test]
fn switches_accept_eight_words() {
    for (text, expected) in [
        ("true", true),
        ("TRUE", true),
        ("1", true),
        ("yes", true),
        ("On", true),
        ("false", false),
        ("0", false),
        ("no", false),
        ("off", false),
        ("", false),
    ] {
        let config = load(&[("REPLY_TO_BOTS", text)]);
        assert_eq!(config.triggers.reply_to_bots, expected, "{text:?}");
    }
}

#[test]
fn a_base_url_is_taken_in_the_forms_people_write() {
    for (text, expected) in [
        ("http://127.0.0.1:8080/v1", Some("http://127.0.0.1:8080/v1")),
        ("http://[::1]:8080/v1/", Some("http://[::1]:8080/v1")),
        ("http://localhost:11434", Some("http://localhost:11434/v1")),
        (
            "https://example.org/api/v1",
            Some("https://example.org/api/v1"),
        ),
        (
            "https://example.org/v1beta/openai/",
            Some("https://example.org/v1beta/openai"),
        ),
        ("https://example.org/v1/chat/completions", None),
        ("https://example.org/v1?key=1", None),
        ("ftp://example.org/v1", None),
        ("example.org", None),
    ] {
        let loaded = try_load(&[("LLM_BASE_URL", text), ("LLM_MODEL", "m")]);
        let url = loaded.ok().and_then(|config| config.llm);
        let url = url.map(|llm| llm.base_url.to_string());
        assert_eq!(url.as_deref(), expected, "{text}");
    }
    let odd = load(&[("LLM_BASE_URL", "https://a/x"), ("LLM_MODEL", "m")]);
    assert_eq!(
        odd.warnings(),
        ["LLM_BASE_URL does not end in /v1; requests go to https://a/x/chat/completions"]
    );
}

#[test]
fn discords_addresses_are_split_for_its_client() {
    let config = load(&[
        ("DISCORD_API_URL", "http://127.0.0.1:4000/"),
        ("DISCORD_GATEWAY_URL", "wss://gateway.example"),
    ]);
    let api = config.discord.api.unwrap();
    assert_eq!(api.to_string(), "http://127.0.0.1:4000");
    let gateway = config.discord.gateway.unwrap();
    assert_eq!(gateway.to_string(), "wss://gateway.example");
}

#[test]
fn the_environment_wins_over_the_file_and_later_pairs_over_earlier() {
    let (_dir, path) = dotenv("MEM_MAX_MSGS=10\nMEM_MAX_FETCHES=3\nDEBUG=true\n");
    let environment = [
        ("MEM_MAX_MSGS", "20"),
        ("MEM_MAX_MSGS", "21"),
        ("DEBUG", ""),
    ];
    let config = Config::load(owned(&environment), Some(&path)).unwrap();
    assert_eq!(config.limits.max_msgs, 21);
    assert_eq!(config.limits.max_fetches, 3);
    assert!(!config.log.debug, "set to nothing means the default");
    let origins: BTreeMap<_, _> = config
        .effective()
        .map(|effective| (effective.name, effective.origin))
        .collect();
    assert_eq!(origins["MEM_MAX_MSGS"], SettingOrigin::Environment);
    assert_eq!(origins["MEM_MAX_FETCHES"], SettingOrigin::DotEnv);
    assert_eq!(origins["MEM_MAX_CHARS"], SettingOrigin::Default);
}

#[track_caller]
fn check_file(text: &str, expected: &[&str]) {
    let (dir, path) = dotenv(text);
    let errors = Config::load([], Some(&path)).unwrap_err();
    let dir = format!("{}/", dir.path().display());
    let subjects: Vec<_> = errors
        .problems
        .iter()
        .map(|problem| problem.subject.replace(&dir, ""))
        .collect();
    assert_eq!(subjects, expected, "{errors}");
    assert!(!errors.to_string().contains("hush"), "{errors}");
}

#[test]
fn a_line_that_cannot_be_read_is_named_without_its_text() {
    check_file("# a\n\nDEBUG=1\nhush\nMEM_MAX_MSGS=5\n", &[".env line 4"]);
    check_file("LLM_MODEL=m\nSYSTEM_PROMPT=hush I say\n", &[".env line 2"]);
    check_file("hush\r\nDEBUG=1\r\n=hush", &[".env line 1", ".env line 3"]);
    check_file(
        "DEBUG=1\nSYSTEM_PROMPT=don't hush\nLLM_MODEL=m\n\n",
        &[".env line 2"],
    );
    check_file("hush\nMEM_MAX_MSGS=x", &[".env line 1", "MEM_MAX_MSGS"]);
}

#[test]
fn a_file_is_read_as_people_write_it() {
    let text = "\u{feff}export LLM_MODEL='a $b'\r\nMEM_MAX_MSGS = 7 # few\n\
                SYSTEM_PROMPT=\"two\nlines\"\nDEBUG=0\nDEBUG=1 ";
    let (_dir, path) = dotenv(text);
    let config = Config::load([], Some(&path)).unwrap();
    assert_eq!(effective(&config)["LLM_MODEL"], "a $b");
    assert_eq!(config.limits.max_msgs, 7);
    assert_eq!(config.prompt, "two\nlines");
    assert_eq!(config.log.level, tracing::level_filters::LevelFilter::DEBUG);
    let twice = format!(
        "{} line 6 sets DEBUG again; the last one counts",
        path.display()
    );
    assert!(
        config.warnings().contains(&twice),
        "{:?}",
        config.warnings()
    );
    assert!(Config::load([], Some(Path::new("no/such/.env"))).is_ok());
}

#[test]
fn a_prompt_has_as_many_lines_as_it_needs() {
    let (_dir, path) = dotenv("SYSTEM_PROMPT=\"You are Ariadne.\nBe brief.\"\n");
    let config = Config::load([], Some(&path)).unwrap();
    assert_eq!(config.prompt, "You are Ariadne.\nBe brief.");
}

/// Settings, and the verdict they lead to.
type AccessCase = (&'static [(&'static str, &'static str)], Result<(), Denied>);

/// Server 1, thread 21 in channel 20, user 30 with role 40; or a direct message.
#[track_caller]
fn check_access(pairs: &[(&str, &str)], direct: bool, expected: Result<(), Denied>) {
    let roles = [RoleId::new(40)];
    let admission = Admission {
        guild: (!direct).then_some(GuildId::new(1)),
        channel: ChannelId::new(21),
        parent: (!direct).then_some(ChannelId::new(20)),
        user: UserId::new(30),
        roles: Some(if direct { &[] } else { &roles }),
    };
    assert_eq!(admit(&load(pairs).access, admission), expected, "{pairs:?}");
}

#[test]
fn lists_let_in_and_keep_out() {
    let table: &[AccessCase] = &[
        (&[], Ok(())),
        (&[("ALLOWED", "")], Ok(())),
        (&[("ALLOWED", "guild:1, guild:2")], Ok(())),
        (&[("ALLOWED", "guild:2")], Err(Denied::Guild)),
        (&[("DENIED", "guild:1")], Err(Denied::Guild)),
        (&[("ALLOWED", "channel:20")], Ok(())),
        (&[("ALLOWED", "channel:21")], Ok(())),
        (&[("ALLOWED", "channel:22")], Err(Denied::Channel)),
        (
            &[("ALLOWED", "channel:21"), ("DENIED", "channel:20")],
            Err(Denied::Channel),
        ),
        (&[("ALLOWED", "user:31")], Err(Denied::User)),
        (
            &[("ALLOWED", "user:30"), ("DENIED", "user:30")],
            Err(Denied::User),
        ),
        (&[("ALLOWED", "role:40")], Ok(())),
        (&[("ALLOWED", "role:41")], Err(Denied::User)),
        (&[("ALLOWED", "role:41,user:30")], Ok(())),
        (&[("ALLOWED", "role:40,user:31")], Ok(())),
        (&[("DENIED", "role:40")], Err(Denied::User)),
        (&[("DENIED", "direct")], Ok(())),
    ];
    for (pairs, expected) in table {
        check_access(pairs, false, *expected);
    }
}

#[test]
fn direct_messages_have_a_switch_and_no_roles() {
    let table: &[AccessCase] = &[
        (&[], Ok(())),
        (&[("DENIED", "direct")], Err(Denied::DirectMessages)),
        (&[("ALLOWED", "guild:2,channel:22")], Ok(())),
        (&[("DENIED", "channel:21")], Err(Denied::Channel)),
        (&[("DENIED", "user:30")], Err(Denied::User)),
        (&[("ALLOWED", "role:40")], Err(Denied::User)),
        (&[("ALLOWED", "role:40,user:30")], Ok(())),
    ];
    for (pairs, expected) in table {
        check_access(pairs, true, *expected);
    }
}

#[test]
fn settings_without_effect_are_warned_of() {
    let config = load(&[
        ("MENTION_ONLY", "true"),
        ("AUTO_REPLY_CHANNELS", "5"),
        ("LLM_MODEL", "m"),
        ("LLM_FALLBACKS", "https://b.example/v1 m"),
        ("LLM_CONTEXT_TOKENS", "1024"),
        ("THREAD_CONTEXT_TAIL_COUNT", "9"),
        ("MEM_MAX_MSGS", "3"),
    ]);
    assert_eq!(
        config.warnings(),
        [
            "AUTO_REPLY_CHANNELS has no effect with MENTION_ONLY=true",
            "LLM_MODEL has no effect without LLM_BASE_URL",
            "LLM_FALLBACKS has no effect without LLM_BASE_URL",
            "LLM_CONTEXT_TOKENS leaves no room for a question beside LLM_MAX_OUTPUT_TOKENS",
            "THREAD_CONTEXT_TAIL_COUNT is above MEM_MAX_MSGS, which holds",
        ]
    );
}

#[test]
fn the_example_file_is_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = std::fs::read_to_string(root.join(".env.example")).unwrap_or_default();
    if committed != example() {
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("env.example");
        std::fs::write(&made, example()).unwrap();
        panic!("the table has changed: cp {} .env.example", made.display());
    }
}

#[test]
fn the_example_file_uncommented_changes_nothing() {
    let active = example()
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect::<String>();
    let (_dir, path) = dotenv(&active);
    let config = Config::load([], Some(&path)).unwrap();
    assert_eq!(effective(&config), effective(&load(&[])));
    let set = config
        .effective()
        .filter(|effective| effective.origin == SettingOrigin::DotEnv)
        .count();
    let with_default = VARIABLES
        .iter()
        .filter(|variable| !variable.default.is_empty());
    assert_eq!(set, with_default.count());
}

/// A file with secrets that other accounts can read is warned of, with the remedy.
#[test]
fn an_open_file_of_secrets_is_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let warnings = |text: &str, mode| {
        let (_dir, path) = dotenv(text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Config::load([], Some(&path)).unwrap().warnings().join("\n")
    };
    let token = "DISCORD_TOKEN=hush.hush.hush\n";
    assert!(warnings(token, 0o644).contains("chmod 600 "));
    assert!(!warnings(token, 0o644).contains("hush"));
    assert_eq!(warnings(token, 0o640), "", "the group is the operator's");
    assert_eq!(warnings("DEBUG=true\n", 0o644), "");
    // With a key.
    let server = "LLM_BASE_URL=http://a/v1\nLLM_MODEL=m\nLLM_FALLBACKS=\"http://b/v1 m";
    assert_eq!(warnings(&format!("{server}\"\n"), 0o644), "");
    let told = warnings(&format!("{server} hush\"\n"), 0o644);
    assert!(
        told.contains("chmod 600 ") && !told.contains("hush"),
        "{told}"
    );
}
