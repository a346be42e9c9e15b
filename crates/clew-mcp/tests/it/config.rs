//! The file of servers.

use clew_mcp::{Config, Transport};
use serde_json::{Value, json};

fn parse(file: &Value) -> Result<Config, String> {
    let variable = |name: &str| (name == "KEY").then(|| "s3cret-value".to_owned());
    Config::parse(&file.to_string(), &variable).map_err(|error| error.to_string())
}

fn error(entry: &Value) -> String {
    parse(&json!({"mcpServers": {"one": entry}})).unwrap_err()
}

#[test]
fn commands_and_addresses_are_read_with_their_variables() {
    let file = json!({"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "a${KEY}b"}, "allow": ["read"]},
        "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${KEY}"}, "allow": ["search"]},
        "old": {"command": "gone", "disabled": true},
    }});
    let config = parse(&file).unwrap();
    assert_eq!(config.servers.len(), 2);
    let Transport::Stdio { env, .. } = &config.servers["files"].transport else {
        panic!("{config:?}")
    };
    assert_eq!(env["TOKEN"], "as3cret-valueb");
    let Transport::Http {
        headers, private, ..
    } = &config.servers["web"].transport
    else {
        panic!("{config:?}")
    };
    assert_eq!(headers["Authorization"], "Bearer s3cret-value");
    assert!(!private);
    // Secrets are in no log.
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_the_remedy() {
    let no_json = Config::parse("{\n  x", &|_| None).unwrap_err();
    assert_eq!(no_json.place, "line 2, column 3");
    let missing = parse(&json!({})).unwrap_err();
    assert!(missing.starts_with("mcpServers: missing"), "{missing}");
    let neither = error(&json!({"allow": ["a"]}));
    assert_eq!(
        neither,
        "mcpServers.one: missing: command (a program) or url (an address)"
    );
    let unset = error(&json!({"command": "x", "env": {"A": "${GONE}"}, "allow": ["a"]}));
    assert_eq!(
        unset,
        "mcpServers.one.env.A: `${GONE}`: the environment has no GONE; set it"
    );
    let key = error(&json!({"comand": "x"}));
    assert!(key.starts_with("mcpServers.one.comand: no such key; there are type, command"));
    let none = error(&json!({"command": "x"}));
    assert!(none.starts_with("mcpServers.one.allow: missing"), "{none}");
    let same = error(&json!({"command": "x", "allow": ["a.b", "a_b"]}));
    assert!(same.contains("read the same for a model"), "{same}");
    let auto = error(&json!({"command": "x", "allow": ["a"], "auto": ["b"]}));
    assert_eq!(
        auto,
        "mcpServers.one.auto: \"b\" is not in allow: write it there, too"
    );
    let role = error(&json!({"command": "x", "allow": ["a"], "roles": ["mods"]}));
    assert!(
        role.starts_with("mcpServers.one.roles: \"mods\" is no id"),
        "{role}"
    );
    let sse = error(&json!({"type": "sse", "url": "https://example.org", "allow": ["a"]}));
    assert!(
        sse.starts_with("mcpServers.one.type: the transport of 2024"),
        "{sse}"
    );
    let password = error(&json!({"url": "https://me:pw@example.org", "allow": ["a"]}));
    assert!(
        password.contains("write a header") && !password.contains("pw"),
        "{password}"
    );
    let name = parse(&json!({"mcpServers": {"a__b": {}}})).unwrap_err();
    assert!(
        name.starts_with("mcpServers.a__b: a server's name is"),
        "{name}"
    );
}
