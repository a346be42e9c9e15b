//! `LLM_FALLBACKS` and its keys.

use clew::config::FallbackConfig;

use super::{load, try_load};

/// Address, model and key of each further server.
fn read(servers: &str, keys: &str) -> Vec<(String, String, Option<String>)> {
    let config = load(&[
        ("LLM_BASE_URL", "https://a.example/v1"),
        ("LLM_MODEL", "m"),
        ("LLM_API_KEY", "first"),
        ("LLM_FALLBACKS", servers),
        ("LLM_FALLBACK_KEYS", keys),
    ]);
    let shown = |fallback: FallbackConfig| {
        let key = fallback.api_key.map(|key| key.expose().to_owned());
        (fallback.base_url.to_string(), fallback.model, key)
    };
    config
        .llm
        .unwrap()
        .fallbacks
        .into_iter()
        .map(shown)
        .collect()
}

fn fallback(url: &str, model: &str, key: Option<&str>) -> (String, String, Option<String>) {
    (url.to_owned(), model.to_owned(), key.map(str::to_owned))
}

#[test]
fn servers_are_listed_in_order_and_keys_belong_to_hosts() {
    assert_eq!(read("", ""), []);
    let servers = "https://b.example/api/v1  org/model:free ,\n http://10.0.0.2:8080 local,\
        https://B.example/api/v1 small,";
    let b = Some("k=1");
    assert_eq!(
        read(servers, "B.EXAMPLE = k=1"),
        [
            fallback("https://b.example/api/v1", "org/model:free", b),
            fallback("http://10.0.0.2:8080/v1", "local", None),
            fallback("https://b.example/api/v1", "small", b),
        ]
    );
    let keys = "10.0.0.2:8080=k2\nb.example=k=1";
    assert_eq!(read(servers, keys)[1].2.as_deref(), Some("k2"));
}

#[test]
fn each_wrong_entry_is_named_by_its_number() {
    let errors = try_load(&[
        ("LLM_BASE_URL", "https://a.example/v1"),
        ("LLM_MODEL", "m"),
        (
            "LLM_FALLBACKS",
            "https://b.example/v1 m, c.example m, https://d.example/v1",
        ),
        (
            "LLM_FALLBACK_KEYS",
            "b.example=k, a.example=hush, b.example=other, d.example=two words",
        ),
    ]);
    insta::assert_snapshot!(errors.unwrap_err(), @"
    the settings cannot be used:
      LLM_FALLBACKS has an entry 2 that cannot be used; accepted: for each server its address as in LLM_BASE_URL, a space, and the model's name; a comma between servers; keys in LLM_FALLBACK_KEYS
      LLM_FALLBACKS has an entry 3 that cannot be used; accepted: for each server its address as in LLM_BASE_URL, a space, and the model's name; a comma between servers; keys in LLM_FALLBACK_KEYS
      LLM_FALLBACK_KEYS has an entry 2 that cannot be used; accepted: one key for each host (with its port, if it has one) that LLM_FALLBACKS names
      LLM_FALLBACK_KEYS has an entry 3 that cannot be used; accepted: one key for each host (with its port, if it has one) that LLM_FALLBACKS names
      LLM_FALLBACK_KEYS has an entry 4 that cannot be used; accepted: for each key its server's host as in LLM_FALLBACKS, =, and the key in printable ASCII; a comma between keys
    ");
}

#[test]
fn there_are_at_most_three() {
    let server = "https://b.example/v1 m,";
    assert_eq!(read(&server.repeat(3), "").len(), 3);
    let errors = try_load(&[("LLM_FALLBACKS", &server.repeat(4))]).unwrap_err();
    assert!(errors.to_string().contains("at most 3 servers"), "{errors}");
}

#[test]
fn an_unusual_path_is_warned_of() {
    let config = load(&[
        ("LLM_BASE_URL", "https://a.example/v1"),
        ("LLM_MODEL", "m"),
        ("LLM_FALLBACKS", "https://b.example/x m"),
    ]);
    assert_eq!(
        config.warnings(),
        ["LLM_FALLBACKS does not end in /v1; requests go to https://b.example/x/chat/completions"]
    );
}
