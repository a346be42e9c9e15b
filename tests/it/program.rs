//! What the program itself tells: its version, completions, manual page, example settings and queries, and
//! its log as JSON.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};
use tokio::task;

use crate::architecture::root;
use crate::support::mcp::McpServer;

/// Standard output and error, and the exit code.
fn program(arguments: &[&str], variables: &[(&str, &str)]) -> (String, String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_clew"))
        .args(arguments)
        .current_dir(folder.path())
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
        output.status.code(),
    )
}

/// Two servers, one of which is not there.
#[tokio::test(flavor = "multi_thread")]
async fn each_server_of_tools_is_tried() {
    let server = McpServer::start(&[("find", "found it"), ("note", "noted")]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    let there = json!({"url": server.url(), "private": true, "allow": ["find", "note"],
        "auto": ["find"], "askerApproves": true});
    let check = |servers: Value| {
        fs::write(&file, json!({"mcpServers": servers}).to_string()).unwrap();
        let file = file.display().to_string();
        task::spawn_blocking(move || program(&["mcp", "check"], &[("MCP_CONFIG", &file)]))
    };
    let (told, errors, code) = check(json!({"web": there})).await.unwrap();
    assert_eq!((errors.as_str(), code), ("", Some(0)), "{told}");
    for said in [
        "web speaks 2026-07-28, 2 tools offered",
        "web__find: runs alone; asks the asker after reading elsewhere",
        "web__note: asks the asker",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    let gone = json!({"url": "http://127.0.0.1:9/mcp", "private": true, "allow": ["find"]});
    let (told, _, code) = check(json!({"web": there, "gone": gone})).await.unwrap();
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("gone") && told.contains("2026-07-28"),
        "{told}"
    );
    let (_, errors, code) = program(&["mcp", "check"], &[]);
    assert!(
        code == Some(2) && errors.contains("docs/mcp.md"),
        "{errors}"
    );
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let (text, errors, code) = program(arguments, &[]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    text
}

#[test]
fn without_a_bot_a_program_reads_nothing() {
    let arguments = ["mcp", "serve", "--as", "1", "--guild", "2"];
    let (out, told, code) = program(&arguments, &[("STATE_DIR", "/nowhere")]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(told.contains("MCP_LISTEN=socket"), "{told}");
}

#[test]
fn the_version_says_which_build_it_is() {
    let expected = format!("clew {} (debug build)\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed(&["--version"]), expected);
}

#[test]
fn it_brings_completions_and_its_manual_page() {
    for (shell, part) in [
        ("bash", "complete -F _clew"),
        ("zsh", "#compdef clew"),
        ("fish", "complete -c clew"),
    ] {
        let text = printed(&["completions", shell]);
        assert!(text.contains(part), "{text}");
        assert!(text.contains("doctor"), "{text}");
    }
    let page = printed(&["man"]);
    assert!(page.contains(".TH clew 1"), "{page}");
}

#[test]
fn it_brings_the_example_settings_and_the_queries() {
    let example = fs::read_to_string(root().join(".env.example")).unwrap();
    assert_eq!(printed(&["settings"]), example);
    let folder = root().join("telemetry/queries");
    let files = folder.read_dir().unwrap();
    let names: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let listed: BTreeSet<String> = printed(&["queries"]).lines().map(str::to_owned).collect();
    assert_eq!(listed, names, "each file has its line in cli/print.rs");
    for name in names {
        let text = fs::read_to_string(folder.join(&name)).unwrap();
        assert_eq!(printed(&["queries", &name]), text);
    }
    let (_, errors, code) = program(&["queries", "none"], &[]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("no query `none`: `clew queries` lists them"));
}

#[test]
fn its_log_can_be_json() {
    let variables = [
        ("DISCORD_TOKEN", "x"),
        ("DISCORD_API_URL", "http://127.0.0.1:1"),
        ("STATE_DIR", "/dev/null/state"),
        ("LOG_FORMAT", "json"),
    ];
    let (_, errors, code) = program(&["run"], &variables);
    assert_eq!(code, Some(2), "{errors}");
    let lines = objects(&errors);
    let (first, last) = (&lines[0], lines.last().unwrap());
    assert_eq!(first["message"], "the settings in effect");
    assert_eq!(first["level"], "INFO");
    assert_eq!(
        first["settings"]["LOG_FORMAT"],
        json!(["json", "environment"])
    );
    assert_eq!(last["level"], "ERROR");
    let message = last["message"].as_str().unwrap();
    assert!(message.contains("STATE_DIR"), "{last}");
    let because = last["because"].as_array().unwrap();
    assert!(!because.is_empty(), "{last}");
}

#[track_caller]
fn objects(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.map(|line| line.expect(text)).collect()
}

/// Also where the settings themselves cannot be used.
#[test]
fn with_a_log_in_json_errors_are_objects() {
    let variables = [
        ("MEM_MAX_MSGS", "many"),
        ("DISCORD_TOKN", "x"),
        ("LOG_FORMAT", "json"),
    ];
    for command in ["run", "report", "health"] {
        let (_, errors, code) = program(&[command], &variables);
        assert_eq!(code, Some(2), "{errors}");
        let lines = objects(&errors);
        let [line] = lines.as_slice() else {
            panic!("{errors}");
        };
        assert_eq!(line["message"], "the settings cannot be used");
        assert_eq!(line["problems"][0]["subject"], "MEM_MAX_MSGS");
        assert_eq!(line["problems"][0]["shown"], "is \"many\"");
        let note = line["notes"][0].as_str().unwrap();
        assert!(note.contains("did you mean DISCORD_TOKEN?"), "{note}");
    }
    let (_, errors, code) = program(&["health"], &[("LOG_FORMAT", "json")]);
    assert_eq!(code, Some(2));
    assert_eq!(objects(&errors).len(), 1, "{errors}");
}

#[test]
fn without_a_token_one_line_says_so() {
    let (_, errors, code) = program(&["run"], &[]);
    assert_eq!(code, Some(2));
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(
        errors.starts_with("clew: DISCORD_TOKEN is not set: put"),
        "{errors}"
    );
    let (_, errors, _) = program(&["run"], &[("LOG_FORMAT", "json")]);
    assert_eq!(objects(&errors).len(), 1, "{errors}");
}

/// The running bot is asked, which says why it is not alive.
#[test]
fn health_is_what_the_bot_says() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = |status: &'static str, body: &'static str| {
        let listener = listener.try_clone().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let read = stream.read(&mut request).unwrap();
            assert!(request[..read].starts_with(b"GET /healthz HTTP/1.1\r\n"));
            write!(stream, "HTTP/1.1 {status}\r\n\r\n{body}").unwrap();
        })
    };
    let check = |address: &str, code: i32, expected: &str| {
        let (out, errors, found) = program(&["health"], &[("METRICS_ADDR", address)]);
        assert_eq!((out.as_str(), found), ("", Some(code)), "{errors}");
        assert!(errors.starts_with(expected), "{errors}");
        errors
    };
    let served = serve("200 OK", "alive\n");
    assert_eq!(check(&address, 0, ""), "");
    served.join().unwrap();
    let served = serve("503 Service Unavailable", "the loop hangs: restart it\n");
    assert_eq!(check(&address, 1, ""), "clew: the loop hangs: restart it\n");
    served.join().unwrap();
    // A bot that listens on all addresses.
    let served = serve("200 OK", "");
    check(&address.replace("127.0.0.1", "0.0.0.0"), 0, "");
    served.join().unwrap();
    drop(listener);
    check(&address, 1, "clew: no answer at METRICS_ADDR=127.0.0.1:");
    check("", 2, "clew: METRICS_ADDR is not set");
}
