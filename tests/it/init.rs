//! `clew init`: by flags and by prompts, against the simulator.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use clew::config::Config;
use clew_context::model::LoneContext;
use clew_simulator::{Simulator, World};
use tempfile::TempDir;

use crate::support::model::{Behaviour, FakeModel};

/// Simulator, model, and the folder that gets `.env`.
struct Place {
    discord: Simulator,
    model: FakeModel,
    folder: TempDir,
}

impl Place {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("key"), "k-secret\n").unwrap();
        Self {
            discord: Simulator::start(World::new()).await.unwrap(),
            model: FakeModel::start().await,
            folder,
        }
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("DISCORD_API_URL", self.discord.url())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it with this standard input.
    async fn init(&self, arguments: &[&str], input: &str) -> Output {
        let all = [&["init"], arguments].concat();
        let mut command = self.command(env!("CARGO_BIN_EXE_clew"), &all);
        let input = input.to_owned();
        let run = move || {
            let mut child = command.spawn().unwrap();
            // A program that refuses does not read all of it.
            let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
            child.wait_with_output().unwrap()
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    fn dotenv(&self) -> std::path::PathBuf {
        self.folder.path().join(".env")
    }
}

fn told(output: &Output) -> String {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8(text).unwrap()
}

fn written(path: &Path) -> Config {
    let mode = fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    Config::load(Vec::new(), Some(path)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_are_tried_and_written_for_the_owner_alone() {
    let p = Place::new().await;
    let flags = [
        "--token-file",
        "-",
        "--model-url",
        &p.model.url(),
        "--model",
        "fake",
        "--model-key-file",
        "key",
        "--store",
        "sqlite:kept.db",
    ];
    let token = p.discord.token();
    let output = p.init(&flags, &format!("{token}\n")).await;
    let text = told(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in [
        "ok    token",
        "ok    intents",
        "ok    model",
        "ok    store",
        "scope=bot+applications.commands&permissions=309237746752",
        " doctor\n",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    for secret in [token.as_str(), "k-secret"] {
        assert!(!text.contains(secret), "{text}");
    }
    let config = written(&p.dotenv());
    assert_eq!(config.discord.token.unwrap().expose(), token);
    let model = config.llm.unwrap();
    assert_eq!(model.base_url.to_string(), p.model.url());
    assert_eq!(model.api_key.unwrap().expose(), "k-secret");
    assert_eq!(config.memory.store.to_string(), "sqlite:kept.db");
    // Unasked the default stays, and is not in the file.
    assert_eq!(config.limits.max_msgs, 40);
    assert!(!fs::read_to_string(p.dotenv()).unwrap().contains("MEM_MAX"));
    // It is never replaced unasked, and then kept.
    let before = fs::read(p.dotenv()).unwrap();
    let output = p.init(&flags, &format!("{token}\n")).await;
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("--force"));
    let output = p.init(&["--token-file", "-", "--force"], &token).await;
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(written(&p.dotenv()).llm.is_none());
    assert_eq!(fs::read(p.folder.path().join(".env.bak")).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_work_is_not_written() {
    let p = Place::new().await;
    let token = p.discord.token();
    let check = async |flags: &[&str], input: &str, parts: &[&str]| {
        let output = p.init(flags, input).await;
        let text = told(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        for part in parts {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        assert!(!text.contains("hush"), "{text}");
        assert!(!p.dotenv().exists());
    };
    check(&[], "", &["no terminal to ask on: give --token-file"]).await;
    let from_input = ["--token-file", "-"];
    check(
        &from_input,
        "hush\n",
        &["FAIL  token", "Reset Token", "nothing was written"],
    )
    .await;
    check(&["--token-file", "none"], "", &["cannot read none"]).await;
    let both = [
        "--token-file",
        "-",
        "--model-url",
        "http://127.0.0.1:1/v1",
        "--model-key-file",
        "-",
    ];
    check(&both, "", &["both secrets from standard input"]).await;
    let gone = [
        "--token-file",
        "-",
        "--model-url",
        "http://127.0.0.1:1/v1",
        "--model",
        "x",
    ];
    check(&gone, &token, &["FAIL  model", "LLM_BASE_URL"]).await;
    for (flag, value, setting) in [
        ("--store", "redis:x", "CONTEXT_STORE"),
        ("--lone-context", "perhaps", "LONE_CONTEXT"),
        ("--max-msgs", "0", "MEM_MAX_MSGS"),
        ("--model-url", "hush", "LLM_BASE_URL"),
    ] {
        let odd = ["--token-file", "-", flag, value];
        check(&odd, &token, &[setting]).await;
    }
}

/// Types each answer when its question is shown, and returns all that the terminal showed.
fn typed(mut terminal: Child, dialogue: &[(&str, &str)]) -> (String, ExitStatus) {
    let mut keys = terminal.stdin.take().unwrap();
    let mut screen = terminal.stdout.take().unwrap();
    let (mut shown, mut read) = (Vec::new(), 0);
    let mut next = [0; 1_024];
    for (question, answer) in dialogue {
        while !String::from_utf8_lossy(&shown[read..]).contains(question) {
            let bytes = screen.read(&mut next).unwrap();
            let so_far = String::from_utf8_lossy(&shown).into_owned();
            assert!(bytes > 0, "never asked {question:?} in {so_far}");
            shown.extend_from_slice(&next[..bytes]);
        }
        read = shown.len();
        keys.write_all(format!("{answer}\n").as_bytes()).unwrap();
    }
    screen.read_to_end(&mut shown).unwrap();
    let status = terminal.wait().unwrap();
    (String::from_utf8(shown).unwrap(), status)
}

/// `script` gives it a terminal, and its output is what that shows.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_again_and_secrets_are_not_shown() {
    let p = Place::new().await;
    let refusal = r#"{"error":{"message":"bad key"}}"#.to_owned();
    p.model.script(Behaviour::Status(401, refusal, Vec::new()));
    let (token, url) = (p.discord.token(), p.model.url());
    let text = "no database at all, but long enough to be read as one";
    fs::write(p.folder.path().join("no.db"), text).unwrap();
    let program = format!("{} init", env!("CARGO_BIN_EXE_clew"));
    let mut command = p.command("/usr/bin/script", &["-qec", &program, "/dev/null"]);
    let kept = token.clone();
    let run = move || {
        let dialogue = [
            ("Bot token", "hush"),
            ("Bot token", "hush two"),
            ("Bot token", &kept),
            ("Model server", "hush-no-address"),
            ("Model server", &url),
            ("Its key", "k-wrong"),
            ("Model (a number or a name): ", "fake"),
            ("Model server", &url),
            ("Its key", "k wrong"),
            ("Its key", "k-secret"),
            ("Model (a number or a name): ", ""),
            ("Model (a number or a name): ", "1"),
            ("Store", "redis:x"),
            ("Store", "sqlite:no.db"),
            ("Store", ""),
            ("With a plain mention", "perhaps"),
            ("With a plain mention", "recent"),
            (
                "short ones reach 40 before MEM_MAX_CHARS: 200 shows more",
                "many",
            ),
            ("Most messages of a thread", "200"),
        ];
        typed(command.spawn().unwrap(), &dialogue)
    };
    let (text, status) = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(status.success(), "{text}");
    for part in [
        "FAIL  token",
        "ok    token",
        "LLM_BASE_URL is [set]",
        "\r\n    1  fake\r\n",
        "FAIL  model",
        "LLM_API_KEY is [set]",
        "LLM_MODEL is not set",
        "ok    model",
        "CONTEXT_STORE is \"redis:x\"",
        "FAIL  store",
        "ok    store",
        "LONE_CONTEXT is \"perhaps\"",
        "MEM_MAX_MSGS is \"many\"",
        "Invite the bot",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    // The address is typed where all can see it, and not said again.
    assert_eq!(text.matches("hush-no-address").count(), 1, "{text}");
    let text = text.replace("hush-no-address", "");
    for secret in ["hush", &token, "k-wrong", "k wrong", "k-secret"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let config = written(&p.dotenv());
    assert_eq!(config.limits.lone_context, LoneContext::Recent);
    assert_eq!(config.limits.max_msgs, 200);
    assert_eq!(config.memory.store.to_string(), "sqlite:var/clew.db");
    let model = config.llm.unwrap();
    assert_eq!(
        (&*model.model, model.api_key.unwrap().expose()),
        ("fake", "k-secret")
    );
    assert_eq!(config.discord.token.unwrap().expose(), token);
}
