//! `LLM_FALLBACKS`.

use clew::config::FallbackConfig;

use super::{load, try_load};

/// Address, model and key of each further server.
fn read(servers: &str) -> Vec<(String, String, Option<String>)> {
    let config = load(&[
        ("LLM_BASE_URL", "https://a.example/v1"),
        ("LLM_MODEL", "m"),
        ("LLM_API_KEY", "first"),
        ("LLM_FALLBACKS", servers),
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
fn servers_are_listed_in_order_each_with_its_key() {
    assert_eq!(read(""), []);
    let servers = "https://b.example/api/v1  org/model:free k=1 ,\n http://10.0.0.2:8080 local,\
        https://B.example/api/v1 small k2,";
    assert_eq!(
        read(servers),
        [
            fallback("https://b.example/api/v1", "org/model:free", Some("k=1")),
            fallback("http://10.0.0.2:8080/v1", "local", None),
            fallback("https://b.example/api/v1", "small", Some("k2")),
        ]
    );
}

#[test]
fn each_wrong_entry_is_named_by_its_number() {
    let errors = try_load(&[
        ("LLM_BASE_URL", "https://a.example/v1"),
        ("LLM_MODEL", "m"),
        (
            "LLM_FALLBACKS",
            "https://b.example/v1 m, c.example m, https://d.example/v1, https://e.example/v1 m two words",
        ),
    ]);
    let errors = errors.unwrap_err().to_string();
    for number in [2, 3, 4] {
        let named =
            format!("LLM_FALLBACKS has an entry {number} that cannot be used; accepted: for");
        assert!(errors.contains(&named), "{errors}");
    }
    assert!(
        !errors.contains("entry 1") && !errors.contains("two words"),
        "{errors}"
    );
}

#[test]
fn there_are_at_most_three() {
    let server = "https://b.example/v1 m,";
    assert_eq!(read(&server.repeat(3)).len(), 3);
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
