//! A connection to one server: opened in the protocol's generation that the server speaks,
//! its tools listed, its tools called.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::pending;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{error, io};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::model::{
    CallToolRequestParams, ErrorCode, PaginatedRequestParams, ProtocolVersion, SubscriptionFilter,
};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _,
    RoleClient, RunningService, ServiceError, Subscription,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};

use crate::child::{MAX_MESSAGE, Process, ShortLines};
use crate::client::Client;
use crate::config::{ServerConfig, Transport};
use crate::model::{CallError, Given};
use crate::words;

/// What servers may ask a client for, and not this one: refused with its method's name.
const NOT_GIVEN: [&str; 2] = ["roots/list", "sampling/createMessage"];
/// How long a server has to answer the first requests; a program may have to be fetched first.
const OPENING: Duration = Duration::from_mins(1);

/// How long it has for a page of its tools, and pages at most.
const LISTING: Duration = Duration::from_secs(20);
const MAX_PAGES: usize = 10;

/// After how long they are listed again by HTTP: if the server has no wish (`ttlMs`), and at least
/// and at most if it has. Up to a tenth is added, so that not all clients come at once.
const AGAIN: Duration = Duration::from_mins(5);
const SOONEST: Duration = Duration::from_mins(1);
const LATEST: Duration = Duration::from_hours(1);

/// Times that a call may be asked for more input, which is declined each time.
const MAX_ROUNDS: usize = 2;

/// The generation of the protocol that a server was found to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// It is greeted with `initialize`.
    Handshake,
    /// Each request stands for itself.
    Stateless,
}

/// An open connection; it ends when this is dropped.
pub(crate) struct Connection {
    running: RunningService<RoleClient, Client>,
    client: Client,
    /// Held by each call that runs.
    calls: Arc<()>,
    pub(crate) generation: Generation,
    /// The protocol's version that both speak.
    pub(crate) version: String,
    /// Of a server that is a program; it ends with this.
    process: Option<Process>,
}

impl Connection {
    /// Opens a connection. `known` is the generation it spoke the last time, which spares
    /// the look for it. The error is for an operator: it holds no secrets.
    pub(crate) async fn open(
        name: &str,
        config: &ServerConfig,
        known: Option<Generation>,
    ) -> Result<Self, String> {
        let client = Client {
            secrets: Arc::from(&*config.secrets.0),
            ..Client::default()
        };
        let secrets = &*config.secrets.0;
        let mode = mode(known);
        let opened = async {
            match &config.transport {
                Transport::Stdio {
                    command,
                    args,
                    inherited,
                    env,
                    cwd,
                } => {
                    let variables = (inherited, env);
                    let (process, stdout, stdin) =
                        Process::start(name, command, args, variables, cwd.as_deref(), secrets)
                            .map_err(|error| format!("{command} cannot be started: {error}"))?;
                    let pipes = (ShortLines::new(stdout), stdin);
                    match client.clone().serve_with_lifecycle(pipes, mode).await {
                        Ok(running) => Ok((running, Some(process))),
                        Err(error) => Err(told(&error, &process.said.text(), secrets)),
                    }
                }
                Transport::Http {
                    url,
                    headers,
                    private,
                } => {
                    let transport = http(url, headers, *private)?;
                    let running = client.clone().serve_with_lifecycle(transport, mode).await;
                    running
                        .map(|running| (running, None))
                        .map_err(|error| told(&error, "", secrets))
                }
            }
        };
        let (running, process) = timeout(OPENING, opened)
            .await
            .map_err(|_| format!("no answer within {} s", OPENING.as_secs()))??;
        // From its cache rmcp would answer with old lists, also where the server fails.
        running
            .set_response_cache_config(ClientCacheConfig::disabled())
            .await;
        let version = running
            .peer_info()
            .map(|info| info.protocol_version.clone());
        let version = version.unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE);
        let generation = if version.has_initialize() {
            Generation::Handshake
        } else {
            Generation::Stateless
        };
        let version = version.as_str().to_owned();
        Ok(Self {
            running,
            client,
            calls: Arc::default(),
            generation,
            version,
            process,
        })
    }

    /// The server's tools, as it lists them, and after how long they are to be listed again.
    pub(crate) async fn tools(&self) -> Result<(Vec<rmcp::model::Tool>, Duration), String> {
        let mut tools = Vec::new();
        let mut fresh = Duration::MAX;
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let listed = timeout(LISTING, self.running.list_tools(Some(params))).await;
            let listed = listed.map_err(|_| "its tools were not listed in time".to_owned())?;
            let page = listed.map_err(|error| {
                let error = words::line(&error.to_string(), &self.client.secrets);
                format!("its tools were not listed: {error}")
            })?;
            tools.extend(page.tools);
            if self.process.is_none() {
                fresh = fresh.min(again(page.ttl_ms));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok((tools, fresh))
    }

    /// Waits until the server's tools may have changed.
    pub(crate) async fn changed(&self) {
        self.client.changed.notified().await;
    }

    /// Has them listed again.
    pub(crate) fn look_again(&self) {
        self.client.changed.notify_one();
    }

    /// Waits until the connection ended.
    pub(crate) async fn closed(&self) {
        while !(self.running.is_closed() || self.running.is_transport_closed()) {
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// A server without a handshake tells of changes only to whoever asked for it.
    pub(crate) async fn subscribe(&self) -> Option<Subscription> {
        if self.generation == Generation::Handshake {
            return None;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let asked = timeout(LISTING, self.running.listen(filter)).await;
        asked.ok()?.ok()
    }

    /// Calls a tool by its server's name for it. The server is told when the time is over.
    /// `progress` is told what the server says of how far it is, while it has no other call to
    /// speak of.
    pub(crate) async fn call(
        &self,
        remote: &str,
        arguments: Map<String, Value>,
        time: Duration,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Given, CallError> {
        let own = Arc::clone(&self.calls);
        let is_alone = || Arc::strong_count(&own) == 2;
        let mut params = CallToolRequestParams::new(remote.to_owned());
        params.arguments = Some(arguments);
        let declined = self.client.declined.load(Ordering::Relaxed);
        let call = self
            .running
            .call_tool_with_mrtr_max_rounds(params, MAX_ROUNDS);
        let mut told = self.client.progress.subscribe();
        let telling = async {
            while told.changed().await.is_ok() {
                if is_alone() {
                    progress(&told.borrow_and_update());
                }
            }
            pending::<Infallible>().await
        };
        let result = tokio::select! {
            result = timeout(time, call) => result.map_err(|_| CallError::Timeout)?,
            never = telling => match never {},
        };
        let mut given = Given::of(result.map_err(|error| refused(error, &self.client.secrets))?);
        given.asked_for_input = self.client.declined.load(Ordering::Relaxed) > declined;
        Ok(given)
    }
}

/// After how long a page is listed again whose server takes it to be fresh for so long.
fn again(ttl_ms: Option<u64>) -> Duration {
    let wished = ttl_ms.filter(|ttl| *ttl > 0).map(Duration::from_millis);
    let fresh = wished.map_or(AGAIN, |wished| wished.clamp(SOONEST, LATEST));
    let later = RandomState::new().hash_one(0) % (fresh.as_secs() / 10);
    fresh + Duration::from_secs(later)
}

fn mode(known: Option<Generation>) -> ClientLifecycleMode {
    let newest = vec![ProtocolVersion::LATEST];
    match known {
        Some(Generation::Handshake) => ClientLifecycleMode::Initialize,
        Some(Generation::Stateless) => ClientLifecycleMode::Discover {
            preferred_versions: newest,
        },
        None => ClientLifecycleMode::Auto {
            preferred_versions: newest,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

fn refused(error: ServiceError, secrets: &[String]) -> CallError {
    match error {
        // Ours, to what a server asks for within its answer.
        ServiceError::McpError(error) if NOT_GIVEN.contains(&&*error.message) => {
            CallError::Refused("it asks for a model or for files, which it does not get".to_owned())
        }
        ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            CallError::Unknown
        }
        ServiceError::McpError(error) => CallError::Refused(words::line(&error.message, secrets)),
        ServiceError::InputRequiredRoundsExceeded { .. } => {
            CallError::Refused("it asks people for more input, which is declined".to_owned())
        }
        _ => CallError::Unreachable,
    }
}

/// An error of opening, for an operator.
fn told(error: &ClientInitializeError, said: &str, secrets: &[String]) -> String {
    if error.is_authorization_required() {
        let what = "it wants to be authorised (OAuth), which is not supported: use a token in \
                    `headers` if the server takes one";
        return what.to_owned();
    }
    let mut told = words::line(&error.to_string(), secrets);
    if !said.is_empty() {
        told = format!("{told}; it said: {said}");
    }
    told
}

fn http(
    url: &str,
    headers: &std::collections::BTreeMap<String, String>,
    private: bool,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let place = |_| format!("header {name:?} cannot be sent");
        let mut value = HeaderValue::from_str(value).map_err(|error| place(error.to_string()))?;
        value.set_sensitive(true);
        let name = HeaderName::from_bytes(name.as_bytes());
        custom.insert(name.map_err(|error| place(error.to_string()))?, value);
    }
    // A client without a provider of TLS panics; the first one of the process stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .no_proxy();
    if !private {
        let parsed = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
        let literal = parsed
            .host_str()
            .unwrap_or_default()
            .trim_matches(['[', ']']);
        if literal.parse().is_ok_and(|address| !is_public(address)) {
            return Err(PRIVATE.to_owned());
        }
        client = client.dns_resolver(Arc::new(Public));
    }
    let client = client.build().map_err(|error| error.to_string())?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_owned());
    config = config.custom_headers(custom);
    config.max_json_response_size = MAX_MESSAGE;
    config.max_sse_event_size = MAX_MESSAGE;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

const PRIVATE: &str = "its address is one of a private network: write \"private\": true if that \
                       is meant";

/// Finds public addresses only.
struct Public;

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<_> = found.filter(|one| is_public(one.ip())).collect();
            if public.is_empty() {
                let error: Box<dyn error::Error + Send + Sync> = io::Error::other(PRIVATE).into();
                return Err(error);
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            let shared = first == 100 && (64..128).contains(&second);
            let reserved = first == 0 || first >= 240 || (first, second, third) == (192, 0, 0);
            let benchmark = first == 198 && (second == 18 || second == 19);
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_documentation()
                || shared
                || reserved
                || benchmark)
        }
        IpAddr::V6(address) => public_v6(address),
    }
}

fn public_v6(address: Ipv6Addr) -> bool {
    if let Some(v4) = address.to_ipv4_mapped() {
        return is_public(IpAddr::V4(v4));
    }
    // Of the address space, 2000::/3 is global unicast; in it lie 6to4 and Teredo, which
    // stand for an IPv4 address.
    let [first, second, ..] = address.segments();
    let is_global = first & 0xe000 == 0x2000;
    is_global
        && first != 0x2002
        && (first, second) != (0x2001, 0)
        && (first, second) != (0x2001, 0xdb8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_within_bounds_how_long_a_list_is_fresh() {
        let minutes = [
            (None, 5),
            (Some(0), 5),
            (Some(1), 1),
            (Some(600_000), 10),
            (Some(u64::MAX), 60),
        ];
        for (ttl, minutes) in minutes {
            let least = Duration::from_mins(minutes);
            let again = again(ttl);
            assert!(
                (least..least * 11 / 10).contains(&again),
                "{ttl:?} {again:?}"
            );
        }
    }
}
