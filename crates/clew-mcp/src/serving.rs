//! Clew as a server of MCP: what a client's message is answered with, whichever way it came, in
//! both generations: 2026-07-28, where each request says what it speaks, and those before it,
//! which begin with `initialize`.
//!
//! Invariant: nothing is kept between two messages, and nothing is called but tools that are
//! offered, with an object.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

/// The generation in which each request stands for itself.
const MODERN: &str = "2026-07-28";
/// Those that begin with `initialize`, newest first; not 2025-03-26, in which messages come in
/// batches.
const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2024-11-05"];
/// Fields of `_meta`.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// How long a list of tools may be kept, in milliseconds: they change with the program.
const FRESH_MS: u32 = 3_600_000;

/// Codes of JSON-RPC and of the protocol.
const PARSE: i32 = -32_700;
const INVALID: i32 = -32_600;
const NO_METHOD: i32 = -32_601;
const PARAMS: i32 = -32_602;
const HEADERS: i32 = -32_020;
const UNSUPPORTED: i32 = -32_022;
/// Ours: JSON-RPC and the protocol keep -32,768 to -32,000 for themselves.
const FULL: i32 = 1;

/// A header of the HTTP request that a message came in, by its lower-case name.
pub type Header<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// Who we say we are, and what we offer.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// The program's name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// For the model of the client.
    pub instructions: &'static str,
    /// In the order in which they are listed.
    pub tools: Vec<ServedTool>,
}

/// A tool that only reads.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedTool {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: String,
    /// A JSON schema of its arguments, an object's.
    pub schema: Value,
}

/// What is to be done for a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// It is answered.
    Answer(Reply),
    /// A tool is to be called.
    Call(Asked),
    /// Nobody waits any more for the answer to the request with this id; nothing is answered.
    Cancel(Value),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its HTTP status.
    pub status: u16,
    /// None to a notification.
    pub body: Option<Value>,
}

/// A call of a tool that is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Its name.
    pub tool: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
    to: To,
}

/// What is answered: the id of a request, and in which generation.
#[derive(Debug, Clone, PartialEq)]
struct To {
    id: Value,
    /// Who we are; none in the generations that were told it at the beginning.
    server: Option<Value>,
}

impl Reply {
    /// To a notification.
    pub const ACCEPTED: Self = Self {
        status: 202,
        body: None,
    };

    /// To a client for which there is no place.
    pub fn full() -> Self {
        Self::error(503, None, FULL, "Too many programs are connected.")
    }

    fn error(status: u16, id: Option<&Value>, code: i32, message: &str) -> Self {
        Self::refused(status, id, &json!({ "code": code, "message": message }))
    }

    fn refused(status: u16, id: Option<&Value>, error: &Value) -> Self {
        let mut body = json!({ "jsonrpc": "2.0", "error": error });
        if let Some(id) = id {
            body["id"] = id.clone();
        }
        Self {
            status,
            body: Some(body),
        }
    }
}

impl Asked {
    /// The request's id.
    pub const fn id(&self) -> &Value {
        &self.to.id
    }

    /// What the call gave.
    pub fn answered(self, text: &str, is_error: bool) -> Reply {
        let content = json!([{ "type": "text", "text": text }]);
        self.to
            .result(json!({ "content": content, "isError": is_error }))
    }
}

impl To {
    fn result(self, mut result: Value) -> Reply {
        if let Some(server) = self.server {
            result["resultType"] = "complete".into();
            result["_meta"] = json!({ SERVER: server });
        }
        let body = json!({ "jsonrpc": "2.0", "id": self.id, "result": result });
        Reply {
            status: 200,
            body: Some(body),
        }
    }

    /// In the newer generation the status says, too, what was wrong.
    fn error(&self, status: u16, code: i32, message: &str) -> Reply {
        let status = if self.server.is_some() { status } else { 200 };
        Reply::error(status, Some(&self.id), code, message)
    }
}

impl Served {
    /// What is to be done for a message. Without HTTP there are no headers.
    pub fn step(&self, message: &[u8], header: Option<Header<'_>>) -> Step {
        self.read(message, header).unwrap_or_else(Step::Answer)
    }

    /// The error is an answer as well.
    fn read(&self, message: &[u8], header: Option<Header<'_>>) -> Result<Step, Reply> {
        let Ok(message) = serde_json::from_slice::<Value>(message) else {
            return Err(Reply::error(400, None, PARSE, "This is not JSON."));
        };
        let method = message["method"].as_str();
        let (Some(method), true) = (method, message["jsonrpc"] == "2.0") else {
            let why = "This is not one JSON-RPC request or notification.";
            return Err(Reply::error(400, None, INVALID, why));
        };
        let Some(id) = message.get("id") else {
            let cancelled = message["params"].get("requestId");
            let cancelled = cancelled.filter(|_| method == "notifications/cancelled");
            return Ok(match cancelled {
                Some(id) => Step::Cancel(id.clone()),
                None => Step::Answer(Reply::ACCEPTED),
            });
        };
        if !(id.is_string() || id.is_i64() || id.is_u64()) {
            let why = "An id is a text or an integer.";
            return Err(Reply::error(400, None, INVALID, why));
        }
        let params = &message["params"];
        let is_modern = is_modern(id, method, params, header)?;
        let to = To {
            id: id.clone(),
            server: is_modern.then(|| self.info()),
        };
        self.asked(to, method, params)
    }

    fn asked(&self, to: To, method: &str, params: &Value) -> Result<Step, Reply> {
        let is_modern = to.server.is_some();
        let result = match (method, is_modern) {
            ("initialize", false) => self.initialized(params),
            ("ping", false) => json!({}),
            ("server/discover", true) => json!({
                "supportedVersions": supported(),
                "capabilities": { "tools": {} },
                "instructions": self.instructions,
                "ttlMs": FRESH_MS,
                "cacheScope": "public",
            }),
            ("tools/list", _) => self.listed(is_modern),
            ("tools/call", _) => return self.called(to, params).map(Step::Call),
            _ => return Err(to.error(404, NO_METHOD, "There is no such method.")),
        };
        Ok(Step::Answer(to.result(result)))
    }

    fn info(&self) -> Value {
        json!({ "name": self.name, "version": self.version })
    }

    fn initialized(&self, params: &Value) -> Value {
        let wanted = params["protocolVersion"].as_str();
        let version = LEGACY.into_iter().find(|one| Some(*one) == wanted);
        json!({
            "protocolVersion": version.unwrap_or(LEGACY[0]),
            "capabilities": { "tools": {} },
            "serverInfo": self.info(),
            "instructions": self.instructions,
        })
    }

    fn listed(&self, is_modern: bool) -> Value {
        let tools = self.tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.schema,
                "annotations": { "readOnlyHint": true },
            })
        });
        let tools: Vec<Value> = tools.collect();
        if is_modern {
            json!({ "tools": tools, "ttlMs": FRESH_MS, "cacheScope": "public" })
        } else {
            json!({ "tools": tools })
        }
    }

    fn called(&self, to: To, params: &Value) -> Result<Asked, Reply> {
        let name = params["name"].as_str();
        let tool = self.tools.iter().find(|tool| Some(tool.name) == name);
        let Some(tool) = tool else {
            return Err(to.error(400, PARAMS, "There is no such tool."));
        };
        let arguments = match params.get("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(_) => return Err(to.error(400, PARAMS, "Arguments are an object.")),
        };
        Ok(Asked {
            tool: tool.name.to_owned(),
            arguments,
            to,
        })
    }
}

fn supported() -> Vec<&'static str> {
    [MODERN].into_iter().chain(LEGACY).collect()
}

/// Whether a request stands for itself; an error if it says something else than its headers, or
/// not enough.
fn is_modern(
    id: &Value,
    method: &str,
    params: &Value,
    header: Option<Header<'_>>,
) -> Result<bool, Reply> {
    let meta = &params["_meta"];
    let told = header.and_then(|header| header("mcp-protocol-version"));
    let unsupported = |version: &str| {
        let data = json!({ "supported": supported(), "requested": version });
        let error = json!({
            "code": UNSUPPORTED,
            "message": "Unsupported protocol version",
            "data": data,
        });
        Reply::refused(400, Some(id), &error)
    };
    let Some(version) = meta.get(VERSION) else {
        return match told.as_deref() {
            Some(MODERN) => {
                let why = format!("`_meta` lacks `{VERSION}`.");
                Err(Reply::error(400, Some(id), PARAMS, &why))
            }
            Some(told) if !LEGACY.contains(&told) => Err(unsupported(told)),
            _ => Ok(false),
        };
    };
    let version = version.as_str().unwrap_or_default();
    if let Some(header) = header {
        let differs = |name: &str| {
            let why = format!("Header mismatch: {name} is missing or differs from the body.");
            Reply::error(400, Some(id), HEADERS, &why)
        };
        if told.as_deref() != Some(version) {
            return Err(differs("MCP-Protocol-Version"));
        }
        if header("mcp-method").as_deref() != Some(method) {
            return Err(differs("Mcp-Method"));
        }
        let name = header("mcp-name").and_then(decoded);
        if method == "tools/call" && name.as_deref() != params["name"].as_str() {
            return Err(differs("Mcp-Name"));
        }
    }
    if version != MODERN {
        return Err(unsupported(version));
    }
    if !meta[CAPABILITIES].is_object() {
        let why = format!("`_meta` lacks `{CAPABILITIES}`.");
        return Err(Reply::error(400, Some(id), PARAMS, &why));
    }
    Ok(true)
}

/// A header's value, which may be in base64; none if that is broken.
fn decoded(value: String) -> Option<String> {
    let inside = value.strip_prefix("=?base64?");
    let Some(encoded) = inside.and_then(|inside| inside.strip_suffix("?=")) else {
        return Some(value);
    };
    let bytes = BASE64_STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> Served {
        let tool = ServedTool {
            name: "look",
            description: "Looks.".to_owned(),
            schema: json!({ "type": "object" }),
        };
        Served {
            name: "clew",
            version: "1",
            instructions: "Look.",
            tools: vec![tool],
        }
    }

    fn request(method: &str, mut params: Value, version: Option<&str>) -> Value {
        if let Some(version) = version {
            params["_meta"] = json!({ VERSION: version, CAPABILITIES: {} });
        }
        json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
    }

    /// What a message over HTTP is answered with.
    #[track_caller]
    fn answer(message: &Value, headers: &[(&str, &str)]) -> (u16, Value) {
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let message = message.to_string();
        match served().step(message.as_bytes(), Some(&header)) {
            Step::Answer(Reply { status, body }) => (status, body.unwrap_or_default()),
            step => panic!("{step:?}"),
        }
    }

    #[test]
    fn older_generations_begin_with_initialize() {
        for (wanted, version) in [
            ("2025-06-18", "2025-06-18"),
            ("2025-03-26", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
        ] {
            let params = json!({ "protocolVersion": wanted });
            let (status, body) = answer(&request("initialize", params, None), &[]);
            assert_eq!((status, &body["id"]), (200, &json!(7)));
            assert_eq!(body["result"]["protocolVersion"], version);
            assert_eq!(body["result"]["serverInfo"]["name"], "clew");
        }
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(answer(&ready, &[]), (202, Value::Null));
        let cancelled = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 },
        });
        let step = served().step(cancelled.to_string().as_bytes(), None);
        assert_eq!(step, Step::Cancel(json!(7)));
        let told = [("mcp-protocol-version", "2025-11-25")];
        let (_, body) = answer(&request("tools/list", json!({}), None), &told);
        assert_eq!(body["result"]["tools"][0]["name"], "look");
        assert_eq!(body["result"].get("resultType"), None);
        let (status, body) = answer(&request("resources/list", json!({}), None), &told);
        assert_eq!((status, &body["error"]["code"]), (200, &json!(NO_METHOD)));
    }

    #[test]
    fn in_the_newer_one_each_request_stands_for_itself() {
        let headers =
            |method: &'static str| [("mcp-protocol-version", MODERN), ("mcp-method", method)];
        let discover = request("server/discover", json!({}), Some(MODERN));
        let (status, body) = answer(&discover, &headers("server/discover"));
        assert_eq!(status, 200);
        let result = &body["result"];
        assert_eq!(result["supportedVersions"][0], MODERN);
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["_meta"][SERVER]["version"], "1");
        for method in ["ping", "initialize", "subscriptions/listen"] {
            let (status, body) =
                answer(&request(method, json!({}), Some(MODERN)), &headers(method));
            assert_eq!((status, &body["error"]["code"]), (404, &json!(NO_METHOD)));
        }
    }

    #[test]
    fn headers_say_what_the_body_says() {
        let call = request("tools/call", json!({ "name": "look" }), Some(MODERN));
        let version = ("mcp-protocol-version", MODERN);
        let method = ("mcp-method", "tools/call");
        for headers in [
            vec![],
            vec![version],
            vec![version, ("mcp-method", "tools/list")],
            vec![version, method],
            vec![version, method, ("mcp-name", "other")],
            vec![("mcp-protocol-version", "2025-11-25"), method],
        ] {
            let (status, body) = answer(&call, &headers);
            assert_eq!((status, &body["error"]["code"]), (400, &json!(HEADERS)));
        }
        for name in ["look", "=?base64?bG9vaw==?="] {
            let headers = [version, method, ("mcp-name", name)];
            let header = |asked: &str| {
                let found = headers.iter().find(|(known, _)| *known == asked);
                found.map(|(_, value)| (*value).to_owned())
            };
            let step = served().step(call.to_string().as_bytes(), Some(&header));
            assert!(matches!(step, Step::Call(asked) if asked.tool == "look"));
        }
    }

    #[test]
    fn what_is_not_spoken_is_refused_by_its_code() {
        let code = |message: &Value, headers: &[(&str, &str)]| {
            let (status, body) = answer(message, headers);
            assert_eq!(status, 400, "{message}");
            body["error"]["code"].clone()
        };
        let old = [
            ("mcp-protocol-version", "1900-01-01"),
            ("mcp-method", "ping"),
        ];
        for version in [None, Some("1900-01-01")] {
            assert_eq!(
                code(&request("ping", json!({}), version), &old),
                UNSUPPORTED
            );
        }
        let modern = [("mcp-protocol-version", MODERN), ("mcp-method", "ping")];
        assert_eq!(code(&request("ping", json!({}), None), &modern), PARAMS);
        let meta = json!({ "_meta": { VERSION: MODERN } });
        assert_eq!(code(&request("ping", meta, None), &modern), PARAMS);
        for message in [
            json!([]),
            json!({}),
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        ] {
            assert_eq!(code(&message, &[]), INVALID);
        }
        for id in [Value::Null, json!(1.5), json!([])] {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
            assert_eq!(code(&request, &[]), INVALID);
        }
        let Step::Answer(broken) = served().step(b"{", None) else {
            panic!("nothing is called");
        };
        assert_eq!(broken.body.unwrap()["error"]["code"], PARSE);
    }

    #[test]
    fn a_call_is_of_a_tool_that_is_offered_with_an_object() {
        for params in [
            json!({ "name": "other" }),
            json!({}),
            json!({ "name": "look", "arguments": [] }),
        ] {
            let (status, body) = answer(&request("tools/call", params, None), &[]);
            assert_eq!((status, &body["error"]["code"]), (200, &json!(PARAMS)));
        }
        let params = json!({ "name": "look", "arguments": { "at": 1 } });
        for version in [None, Some(MODERN)] {
            let call = request("tools/call", params.clone(), version);
            let Step::Call(asked) = served().step(call.to_string().as_bytes(), None) else {
                panic!("it is a call");
            };
            assert_eq!(asked.arguments["at"], 1);
            let body = asked.answered("seen", false).body.unwrap();
            assert_eq!(body["result"]["content"][0]["text"], "seen");
            assert_eq!(
                body["result"].get("resultType").is_some(),
                version.is_some()
            );
        }
    }
}
