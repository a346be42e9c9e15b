//! No secret is shown, wherever it was typed.

use clew::config::Config;

use super::{dotenv, effective, load, try_load};

/// Keys of the kinds that people have.
const KEYS: [&str; 4] = [
    "sk-hush-0123456789abcdef",
    "MTA1NjQzMjE5ODc2NTQzMjEw.Ghush1.x-y_z0123456789",
    "gsk_hush0123456789ABCDEFGHIJ",
    "0123456789abcdef0123456789abhush",
];

/// All that is said of settings, whether they can be used or not.
fn told(pairs: &[(&str, &str)]) -> String {
    match try_load(pairs) {
        Ok(config) => said(&config),
        Err(errors) => format!("{errors} {}", said(&errors.rest)),
    }
}

fn said(config: &Config) -> String {
    let shown: Vec<_> = config.effective().collect();
    let meant = config.meant_as_token();
    format!("{shown:?} {:?} {meant:?}", config.warnings())
}

#[track_caller]
fn check(told: &str, name: &str, secret: &str) {
    assert!(!told.contains(secret), "{name}: {told}");
}

#[test]
fn secrets_are_never_shown() {
    let pairs = [
        ("DISCORD_TOKEN", "Bot hush.hush.hush"),
        ("LLM_API_KEY", "hush-key"),
        ("LLM_BASE_URL", "https://example.org/v1"),
        ("LLM_MODEL", "m"),
        ("LLM_FALLBACKS", "https://b.example/v1 m hush-other"),
    ];
    let config = load(&pairs);
    let token = config.discord.token.clone().unwrap();
    assert_eq!(token.expose(), "hush.hush.hush");
    let shown: Vec<_> = config.effective().collect();
    let everything = format!("{config:?} {shown:?}");
    assert!(!everything.contains("hush"), "{everything}");
    assert_eq!(effective(&config)["DISCORD_TOKEN"], "[set]");
    assert_eq!(effective(&config)["DISCORD_API_URL"], "[not set]");
    let refused = try_load(&[("LLM_API_KEY", "hush hush")]).unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains("hush"));
    for (name, value) in [
        ("LLM_FALLBACKS", "https://b.example/v1 m hush hush"),
        ("LLM_FALLBACKS", "https://b.example/v1 m hüsh-hush"),
        ("LLM_FALLBACKS", "https://u:hush@b.example/v1 m"),
    ] {
        let refused = try_load(&[(name, value)]).unwrap_err();
        let shown = format!("{refused} {refused:?}");
        assert!(!shown.contains("hush") && shown.contains(name), "{shown}");
    }
    for name in ["DISCORD_API_URL", "DISCORD_GATEWAY_URL", "LLM_BASE_URL"] {
        for value in [
            "https://u:hush@example.org/v1",
            "https://hush@example.org/v1",
            "wss://example.org?key=hush",
            "https://example.org/v1?api_key=hush",
            "https://example.org/v1#hush",
            "https://example.org/v1 hush",
            "hush",
            "key:hush",
        ] {
            let refused = try_load(&[(name, value)]).unwrap_err();
            assert!(!format!("{refused} {refused:?}").contains("hush"), "{name}");
        }
    }
}

/// A key in the place of another setting.
#[test]
fn a_key_is_not_shown_whichever_setting_has_it() {
    for variable in clew::config::VARIABLES {
        for key in KEYS {
            let told = told(&[(variable.name, key), ("LLM_MODEL", "m")]);
            check(&told, variable.name, key);
        }
    }
    let model = told(&[("LLM_BASE_URL", "http://h/v1"), ("LLM_MODEL", KEYS[0])]);
    check(&model, "LLM_MODEL", KEYS[0]);
}

/// A gateway in front of a model server may have its key in the path.
#[test]
fn a_key_in_an_address_is_sent_and_not_shown() {
    let key = KEYS[3];
    let url = format!("https://gateway.example/{key}/openai");
    let pairs = [("LLM_BASE_URL", url.as_str()), ("LLM_MODEL", "m")];
    check(&told(&pairs), "LLM_BASE_URL", key);
    let config = load(&pairs);
    assert_eq!(
        effective(&config)["LLM_BASE_URL"],
        "https://gateway.example/[secret]/openai"
    );
    let address = config.llm.unwrap().base_url;
    assert_eq!(address.url(), url);
    assert_eq!(
        address.to_string(),
        "https://gateway.example/[secret]/openai"
    );
    let fallbacks = format!("{url} m, http://b.example/v1 n");
    let pairs = [pairs[0], pairs[1], ("LLM_FALLBACKS", &fallbacks)];
    check(&told(&pairs), "LLM_FALLBACKS", key);
}

/// A line of the file or a variable of the environment that is a key and has no name.
#[test]
fn a_key_that_was_typed_as_a_name_is_not_shown() {
    for name in KEYS.into_iter().chain([
        "AbcDefGhiJkl",
        "AKIAIOSFODNN7EXAMPLE",
        "JBSWY3DPEHPK3PXPJBSWY3DP",
        "LLM_sk_hush0123456789abcdef",
        "DISCORD_MTA1NjQzMjE5ODc2NTQzMjEw",
    ]) {
        check(&told(&[(name, "x")]), "the environment", name);
        let text = format!("MEM_MAX_MSGS=7\n{name}=\n{name}==\n");
        let (_dir, path) = dotenv(&text);
        let (told, is_named) = match Config::load([], Some(&path)) {
            Ok(config) => (
                said(&config),
                config.warnings().iter().any(|warning| {
                    warning.contains(".env line 2 has a name that is not a setting of Clew")
                }),
            ),
            // The parser takes no such name.
            Err(errors) => (
                errors.to_string(),
                errors.problems[0].subject.ends_with(".env line 2"),
            ),
        };
        check(&told, "the file", name);
        assert!(is_named, "{told}");
    }
}
