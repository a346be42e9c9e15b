//! A headless Chromium under a chromedriver of its own. Both end with it, also when a test fails.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::error::CmdError;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a condition may take to come true, in milliseconds.
const PATIENCE_MS: u32 = 25_000;
/// What a browser in a container needs, and what keeps it off the network.
const FLAGS: [&str; 12] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--force-prefers-reduced-motion",
    "--window-size=1440,900",
];

/// A browser with one window.
pub(super) struct Chrome {
    client: Client,
    // Dropped in this order: the folder goes when nothing writes there any more.
    _driver: Driver,
    _home: TempDir,
}

/// The chromedriver; the browser is in its process group.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.0.wait();
    }
}

impl Chrome {
    /// Starts one, and opens a page in it.
    pub(super) async fn open(link: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (driver, port) = start_driver(&home);
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let client = builder
            .capabilities(capabilities(&home))
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("chromedriver starts Chromium (.ci/packages installs both)");
        let chrome = Self {
            client,
            _driver: driver,
            _home: home,
        };
        chrome.size(1440, 900).await;
        chrome.go(link).await;
        chrome
    }

    /// Opens a page, and waits until its messages are there.
    pub(super) async fn go(&self, link: &str) {
        // Another fragment alone would not load it again.
        self.client.goto("about:blank").await.unwrap();
        self.client.goto(link).await.unwrap();
        self.until("document.querySelectorAll('.message').length > 3")
            .await;
    }

    /// Runs a script in the page.
    pub(super) async fn run(&self, script: &str) -> Value {
        let result = self.client.execute(script, Vec::new()).await;
        result.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    pub(super) async fn value(&self, expression: &str) -> Value {
        self.run(&format!("return ({expression});")).await
    }

    /// Waits until an expression is true. Returns its value.
    #[track_caller]
    pub(super) fn until(&self, expression: &str) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        let script = format!(
            "const done = arguments[arguments.length - 1];
             const end = Date.now() + {PATIENCE_MS};
             const value = () => {{ try {{ return {expression}; }} catch {{ return null; }} }};
             const look = () => {{
                 const found = value();
                 if (found || Date.now() > end) done(found || null);
                 else setTimeout(look, 20);
             }};
             look();"
        );
        let expression = expression.to_owned();
        async move {
            let found = self.client.execute_async(&script, Vec::new()).await;
            match found {
                Ok(Value::Null) => {
                    panic!("{place}: never: {expression}\n{}", self.situation().await)
                }
                Ok(found) => found,
                Err(error) => panic!("{place}: {expression}: {error}"),
            }
        }
    }

    /// What a failed test wants to know.
    async fn situation(&self) -> String {
        let script = "const text = (node) => node?.innerText?.slice(0, 1500) ?? '';
             return [location.href, document.activeElement?.outerHTML?.slice(0, 200), `field: ${document.getElementById('text').value}`,
                 text(document.getElementById('toasts')), text(document.getElementById('side')),
                 text(document.querySelector('#messages > :last-child'))].join('\\n---\\n');";
        let shown = self.run(script).await;
        let mut text = shown.as_str().unwrap_or_default().to_owned();
        for line in self.console().await {
            let _ = write!(text, "\nconsole: {line}");
        }
        text
    }

    /// Runs a script that calls `done` with its result.
    pub(super) async fn run_async(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1]; {script}");
        let result = self.client.execute_async(&script, Vec::new()).await;
        result.unwrap()
    }

    /// Clicks the first element that fits.
    pub(super) async fn click(&self, selector: &str) {
        self.until(&format!("document.querySelector({})", json!(selector)))
            .await;
        self.run(&format!(
            "document.querySelector({}).click()",
            json!(selector)
        ))
        .await;
    }

    /// Types into whatever has the focus; [`Key`](fantoccini::key::Key) gives the special ones.
    pub(super) async fn keys(&self, text: &str) {
        let mut keys = KeyActions::new("keyboard".to_owned());
        for value in text.chars() {
            keys = keys.then(KeyAction::Down { value });
            keys = keys.then(KeyAction::Up { value });
        }
        self.client.perform_actions(keys).await.unwrap();
    }

    /// Types a key while others are held.
    pub(super) async fn chord(&self, held: char, key: char) {
        let keys = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value: held })
            .then(KeyAction::Down { value: key })
            .then(KeyAction::Up { value: key })
            .then(KeyAction::Up { value: held });
        self.client.perform_actions(keys).await.unwrap();
    }

    /// The size of the window's inside.
    pub(super) async fn size(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size)
            .await;
    }

    /// What the system wants: `light` or `dark`.
    pub(super) async fn scheme(&self, scheme: &str) {
        let features = json!({"features": [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]});
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// Whether the browser holds the page's content security policy.
    pub(super) async fn hold_policy(&self, held: bool) {
        self.devtools("Page.setBypassCSP", json!({"enabled": !held}))
            .await;
    }

    /// What the console has said of errors and warnings since the last look.
    pub(super) async fn console(&self) -> Vec<String> {
        let log = self.command("se/log", json!({"type": "browser"})).await;
        let lines = log.as_array().into_iter().flatten();
        let lines = lines.filter(|line| line["level"] != "INFO" && line["level"] != "DEBUG");
        lines.map(|line| line["message"].to_string()).collect()
    }

    async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.command("goog/cdp/execute", body).await
    }

    async fn command(&self, path: &'static str, body: Value) -> Value {
        let result = self.client.issue_cmd(DriverCommand { path, body }).await;
        result.unwrap_or_else(|error: CmdError| panic!("{path}: {error}"))
    }
}

/// A command of chromedriver's own.
#[derive(Debug)]
struct DriverCommand {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for DriverCommand {
    fn endpoint(
        &self,
        base: &Url,
        session: Option<&str>,
    ) -> Result<Url, <Url as std::str::FromStr>::Err> {
        base.join(&format!(
            "session/{}/{}",
            session.unwrap_or_default(),
            self.path
        ))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}

/// Starts the driver on a free port. It takes the same port of IPv4 and of IPv6 and ends where
/// one of them is in use, so it is tried again.
fn start_driver(home: &TempDir) -> (Driver, u16) {
    (0..10)
        .find_map(|_| try_driver(home))
        .expect("chromedriver says its port")
}

fn try_driver(home: &TempDir) -> Option<(Driver, u16)> {
    let child = Command::new("chromedriver")
        .arg("--port=0")
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .env_remove("DISPLAY")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver (.ci/packages installs it)");
    let mut driver = Driver(child);
    let said = BufReader::new(driver.0.stdout.take()?).lines();
    // "ChromeDriver was started successfully on port 40123."
    let port = said.map(Result::unwrap).find_map(|line| {
        let (_, port) = line.split_once("successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    })?;
    Some((driver, port))
}

fn capabilities(home: &TempDir) -> Capabilities {
    let mut flags: Vec<String> = FLAGS.map(str::to_owned).to_vec();
    flags.push(format!(
        "--user-data-dir={}",
        home.path().join("data").display()
    ));
    let wanted = json!({
        "goog:loggingPrefs": {"browser": "ALL"},
        "goog:chromeOptions": {"args": flags},
        "timeouts": {"script": 40_000},
    });
    match wanted {
        Value::Object(wanted) => wanted,
        _ => Capabilities::new(),
    }
}
