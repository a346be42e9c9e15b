//! The file of MCP servers, in the form that other clients read, too: an object
//! `mcpServers`, by name a command or an address, and who may use which of its tools.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// Servers at most; each keeps a connection and perhaps a process.
pub const MAX_SERVERS: usize = 16;

/// What a server inherits of our environment.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Characters of a server's name, so that `server__tool` stays within what models take.
pub const MAX_NAME: usize = 24;

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// The servers by name, those with `disabled` left out.
    pub servers: BTreeMap<String, ServerConfig>,
}

/// What is wrong with the file: the place in it, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Error {
    /// Where, as keys with dots between them.
    pub place: String,
    /// What is wrong, and the remedy.
    pub what: String,
}

/// A server: how it is reached, and who may use what.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// How it is reached.
    pub transport: Transport,
    /// Whose tools they are, and which.
    pub rules: Rules,
    /// What is never told of how it is reached: values of variables and headers, and the address.
    pub secrets: Secrets,
}

/// Texts that no log and no error shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub(crate) Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secrets")
    }
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A process of ours that reads requests on its standard input.
    Stdio {
        /// The program, looked for in PATH.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// What it inherits of the environment.
        inherited: BTreeMap<String, String>,
        /// The environment that it has beside that.
        env: BTreeMap<String, String>,
        /// The folder that it runs in; ours if there is none.
        cwd: Option<PathBuf>,
    },
    /// Requests by HTTP, "streamable HTTP" in the protocol.
    Http {
        /// The address, http or https.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
        /// Whether the address may be one of a private network or this machine.
        private: bool,
    },
}

// Environment, arguments and headers may be secrets.
impl std::fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdio { command, .. } => write!(formatter, "Stdio({command})"),
            Self::Http { .. } => formatter.write_str("Http"),
        }
    }
}

/// Who may use which of a server's tools, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rules {
    /// The tools that are offered, by the server's own names; the rest does not exist.
    pub allow: Vec<String>,
    /// Of these, the tools that run without asking anybody.
    pub auto: Vec<String>,
    /// Of those, the tools that send nothing away, so that they run without asking in turns
    /// that have read elsewhere, too.
    pub local: Vec<String>,
    /// The agents that have them; all if there are none.
    pub agents: Vec<String>,
    /// The roles, guilds and channels (ids) where a question may use them; everywhere and
    /// everybody if there are none.
    pub roles: Vec<String>,
    /// Guilds, as `roles`.
    pub guilds: Vec<String>,
    /// Channels, as `roles`; threads of a channel belong to it.
    pub channels: Vec<String>,
    /// Whether the asker may allow a call, beside those who approve for everybody.
    pub asker_approves: bool,
    /// Whether images that a call gives are attached to the answer.
    pub attach: bool,
}

/// A server's entry as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    r#type: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    disabled: bool,
    #[serde(flatten)]
    rules: Rules,
}

/// Every key of an entry.
const KEYS: [&str; 18] = [
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "private",
    "disabled",
    "allow",
    "auto",
    "local",
    "agents",
    "roles",
    "guilds",
    "channels",
    "askerApproves",
    "attach",
];

impl Config {
    /// Reads the file's text. `variable` gives the value of an environment variable, for
    /// `${NAME}` in arguments, environment, address and headers.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let file: Value = serde_json::from_str(text).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            at(&place, "", format!("this is no JSON ({error})"))
        })?;
        let Some(servers) = file.get("mcpServers").and_then(Value::as_object) else {
            let what = "missing: an object with a server by name";
            return Err(at("mcpServers", "", what));
        };
        if servers.len() > MAX_SERVERS {
            let what = format!("{} servers, at most {MAX_SERVERS} are kept", servers.len());
            return Err(at("mcpServers", "", what));
        }
        let mut read = BTreeMap::new();
        for (name, entry) in servers {
            let place = format!("mcpServers.{name}");
            check_name(name).map_err(|what| at(&place, "", what))?;
            if let Some(server) = server(&place, entry, variable)? {
                read.insert(name.clone(), server);
            }
        }
        Ok(Self { servers: read })
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || one == '-' || one == '_';
    let fits = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain);
    if fits && !name.contains("__") && !name.starts_with('_') && !name.ends_with('_') {
        return Ok(());
    }
    Err(format!(
        "a server's name is 1 to {MAX_NAME} of a-z, A-Z, 0-9, - and single _ between them"
    ))
}

/// An error at a key of a server.
fn at(place: &str, key: &str, what: impl Into<String>) -> Error {
    let place = if key.is_empty() {
        place.to_owned()
    } else {
        format!("{place}.{key}")
    };
    Error {
        place,
        what: what.into(),
    }
}

fn server(
    place: &str,
    value: &Value,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<ServerConfig>, Error> {
    if let Some(entry) = value.as_object()
        && let Some(key) = entry.keys().find(|key| !KEYS.contains(&key.as_str()))
    {
        let what = format!("no such key; there are {}", KEYS.join(", "));
        return Err(at(place, key, what));
    }
    let entry = Entry::deserialize(value).map_err(|error| at(place, "", error.to_string()))?;
    if entry.disabled {
        return Ok(None);
    }
    if entry.rules.allow.is_empty() {
        let what = "missing: the names of the tools that are offered (`clew mcp check` lists them)";
        return Err(at(place, "allow", what));
    }
    check_rules(&entry.rules).map_err(|(key, what)| at(place, key, what))?;
    let used = RefCell::new(Vec::new());
    let noted = |name: &str| {
        let value = variable(name)?;
        used.borrow_mut().push(value.clone());
        Some(value)
    };
    let rules = entry.rules.clone();
    let transport = transport(place, entry, variable, &noted)?;
    let mut secrets = used.take();
    match &transport {
        Transport::Stdio { env, .. } => secrets.extend(env.values().cloned()),
        Transport::Http { url, headers, .. } => {
            secrets.push(url.clone());
            secrets.extend(headers.values().cloned());
        }
    }
    // What holds another one goes first.
    secrets.sort_by_key(|one| Reverse(one.len()));
    Ok(Some(ServerConfig {
        transport,
        rules,
        secrets: Secrets(secrets),
    }))
}

/// `noted` gives the values of variables that the entry names.
fn transport(
    place: &str,
    entry: Entry,
    variable: &dyn Fn(&str) -> Option<String>,
    noted: &dyn Fn(&str) -> Option<String>,
) -> Result<Transport, Error> {
    let filled = |key: &str, text: &str| fill(text, noted).map_err(|what| at(place, key, what));
    let filled_map = |key: &str, map: &BTreeMap<String, String>| {
        let fill = |(name, text): (&String, &String)| {
            Ok((name.clone(), filled(&format!("{key}.{name}"), text)?))
        };
        map.iter()
            .map(fill)
            .collect::<Result<BTreeMap<_, _>, Error>>()
    };
    match (&entry.command, &entry.url, entry.r#type.as_deref()) {
        (Some(command), None, None | Some("stdio")) => {
            let args = entry.args.iter().map(|one| filled("args", one));
            let inherited = INHERITED.iter();
            let inherited =
                inherited.filter_map(|name| Some(((*name).to_owned(), variable(name)?)));
            Ok(Transport::Stdio {
                command: filled("command", command)?,
                args: args.collect::<Result<_, _>>()?,
                inherited: inherited.collect(),
                env: filled_map("env", &entry.env)?,
                cwd: entry.cwd,
            })
        }
        (None, Some(url), None | Some("http" | "streamable-http" | "streamableHttp")) => {
            let url = filled("url", url)?;
            check_url(&url).map_err(|what| at(place, "url", what))?;
            Ok(Transport::Http {
                url,
                headers: filled_map("headers", &entry.headers)?,
                private: entry.private,
            })
        }
        (None, Some(_), Some("sse")) => {
            let what = "the transport of 2024, replaced by streamable HTTP: write \"http\" and \
                        the server's address for that";
            Err(at(place, "type", what))
        }
        (Some(_), Some(_), _) => Err(at(place, "", "either command or url, not both")),
        (None, None, _) => {
            let what = "missing: command (a program) or url (an address)";
            Err(at(place, "", what))
        }
        (_, _, Some(other)) => {
            let what = format!("{other:?} does not fit; leave it out, or write stdio or http");
            Err(at(place, "type", what))
        }
    }
}

fn check_rules(rules: &Rules) -> Result<(), (&'static str, String)> {
    for (key, part, of, whole) in [
        ("auto", &rules.auto, "allow", &rules.allow),
        ("local", &rules.local, "auto", &rules.auto),
    ] {
        if let Some(name) = part.iter().find(|name| !whole.contains(name)) {
            return Err((key, format!("{name:?} is not in {of}: write it there, too")));
        }
    }
    for (at, name) in rules.allow.iter().enumerate() {
        let same = rules.allow[..at]
            .iter()
            .find(|one| *one != name && plain(one) == plain(name));
        if let Some(same) = same {
            let what = format!("{same:?} and {name:?} read the same for a model: name one of them");
            return Err(("allow", what));
        }
    }
    for (key, ids) in [
        ("roles", &rules.roles),
        ("guilds", &rules.guilds),
        ("channels", &rules.channels),
    ] {
        if let Some(id) = ids.iter().find(|id| id.parse::<u64>().is_err()) {
            return Err((key, format!("{id:?} is no id: digits between quotes")));
        }
    }
    Ok(())
}

/// A tool's name in the letters that models take.
pub(crate) fn plain(name: &str) -> String {
    let plain = |one: char| {
        let fits = one.is_ascii_alphanumeric() || matches!(one, '_' | '-');
        if fits { one } else { '_' }
    };
    name.chars().map(plain).collect()
}

fn check_url(url: &str) -> Result<(), String> {
    let parsed = reqwest::Url::parse(url).map_err(|error| format!("no address: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err("an address begins with https:// or http://".to_owned());
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("no name and password in an address: write a header".to_owned());
    }
    Ok(())
}

/// A text with its `${NAME}` replaced.
fn fill(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            return Err("a `${` without its `}`".to_owned());
        };
        let Some(value) = variable(name) else {
            return Err(format!(
                "`${{{name}}}`: the environment has no {name}; set it"
            ));
        };
        filled.push_str(before);
        filled.push_str(&value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}
