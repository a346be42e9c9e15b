//! REST: a single entry that records, delays, corrupts, limits and authenticates
//! every call, and the table of routes.

mod answer;
mod application;
mod body;
mod channels;
mod definition;
mod guilds;
mod interactions;
mod messages;
mod parts;
mod reactions;
mod search;
mod send;
mod threads;

use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State as Extract, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::cuttable::CutSwitch;
use super::faults::FaultKind;
use super::gateway;
use super::log::RequestRecord;
use super::state::{Shared, State};
use answer::{Answer, Refusal, Reply};
use body::Call;

/// Entry for every HTTP request.
pub(super) async fn entry(
    Extract(shared): Extract<Arc<Shared>>,
    ConnectInfo(connection): ConnectInfo<CutSwitch>,
    request: Request,
) -> Response {
    if request.headers().contains_key("upgrade") {
        let (mut parts, _) = request.into_parts();
        return upgrade(shared, &mut parts).await;
    }
    answer(shared, request, &connection).await
}

/// The answer to a call; the connection is cut if there is none.
pub(super) async fn answer(
    shared: Arc<Shared>,
    request: Request,
    connection: &CutSwitch,
) -> Response {
    if shared.read(|state| state.stopped) {
        return connection.cut();
    }
    let (parts, body) = request.into_parts();
    let call = match body::read(parts, body).await {
        Ok(call) => call,
        Err(refusal) => return answer::respond(&refusal.into(), None, 0, None),
    };
    let open = InProgress::arrive(shared, &call);
    open.answer(call, connection).await
}

/// Upgrades a request to a gateway connection.
async fn upgrade(shared: Arc<Shared>, parts: &mut Parts) -> Response {
    let query = parts.uri.query().unwrap_or_default();
    let compressed = query.split('&').any(|pair| pair == "compress=zstd-stream");
    match WebSocketUpgrade::from_request_parts(parts, &()).await {
        Ok(upgrade) => upgrade.on_upgrade(move |socket| gateway::serve(socket, shared, compressed)),
        Err(refused) => refused.into_response(),
    }
}

/// Status and body of the answer to a GET by the bot that did not come over the network.
pub(super) fn peek(state: &mut State, path: &str) -> (u16, Vec<u8>) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut call = Call {
        method: "GET".to_owned(),
        path: path.to_owned(),
        raw_query: query.to_owned(),
        ..Call::default()
    };
    let reply = state.route(&mut call).unwrap_or_else(Reply::from);
    (reply.status, reply.bytes().1)
}

/// A call between its arrival and its answer; counts as in progress until it is
/// dropped, even if the client hangs up.
struct InProgress {
    shared: Arc<Shared>,
    ordinal: usize,
}

impl InProgress {
    fn arrive(shared: Arc<Shared>, call: &Call) -> Self {
        let ordinal = shared.with(|state| {
            state.in_flight += 1;
            let record = RequestRecord {
                ordinal: state.next_ordinal(),
                method: call.method.clone(),
                path: call.path.clone(),
                query: call.raw_query.clone(),
                body: call.body.clone(),
                files: call.files.iter().map(|file| file.name.clone()).collect(),
                status: None,
                code: None,
                in_flight: state.in_flight,
                at: state.elapsed(),
            };
            state.record(record)
        });
        Self { shared, ordinal }
    }

    async fn answer(self, call: Call, connection: &CutSwitch) -> Response {
        let (latency, faults) = self
            .shared
            .with(|state| (state.latency, state.faults.meet(&call.method, &call.path)));
        let mut delay = latency;
        for fault in &faults {
            match fault {
                FaultKind::Latency(more) => delay = delay.saturating_add(*more),
                FaultKind::Held(gate) => gate.pass().await,
                FaultKind::Hang(time) => {
                    tokio::time::sleep(*time).await;
                    return connection.cut();
                }
                FaultKind::DroppedBefore => {
                    return connection.cut();
                }
                _ => {}
            }
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        self.process(call, &faults, connection)
    }

    fn process(self, mut call: Call, faults: &[FaultKind], connection: &CutSwitch) -> Response {
        let forced = faults.iter().find_map(|fault| match fault {
            FaultKind::Status {
                status,
                body,
                retry_after,
            } => Some(Reply::forced(*status, body.clone(), *retry_after)),
            _ => None,
        });
        let (reply, standing, now_ms) = self.shared.with(|state| {
            let now = state.elapsed();
            let mut standing = state.limits.count(&call.method, &call.path, now);
            if let Some(wait) = forced.as_ref().and_then(Reply::limited_for) {
                (standing.remaining, standing.reset_after) = (0, wait);
            }
            let reply = match forced {
                Some(reply) => reply,
                None if standing.exceeded => Reply::too_many(&standing),
                None => {
                    let answer = state.authorise(&call).and_then(|()| state.route(&mut call));
                    answer.unwrap_or_else(Reply::from)
                }
            };
            let is_short = faults.iter().any(|f| matches!(f, FaultKind::Short));
            let reply = if is_short { reply.shortened() } else { reply };
            (reply, standing, state.world.now_ms())
        });
        if faults.iter().any(|f| matches!(f, FaultKind::DroppedAfter)) {
            return connection.cut();
        }
        let spoilt = faults
            .iter()
            .find(|f| matches!(f, FaultKind::Truncated | FaultKind::Body(_)));
        let response = answer::respond(&reply, Some(&standing), now_ms, spoilt);
        self.shared.with(|state| {
            if let Some(record) = state.recorded(self.ordinal) {
                record.status = Some(response.status().as_u16());
                record.code = reply.code();
            }
        });
        response
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.shared.with(|state| state.in_flight -= 1);
    }
}

impl State {
    /// Refuses a call without the bot's token, unless a token in the path replaces it.
    fn authorise(&self, call: &Call) -> Result<(), Refusal> {
        let open = ["/interactions/", "/webhooks/", "/attachments/"];
        let exempt = call.path == "/gateway" || open.iter().any(|p| call.path.starts_with(p));
        let token = call.token.as_deref().unwrap_or_default();
        if exempt || token.strip_prefix("Bot ") == Some(self.world.token.as_str()) {
            Ok(())
        } else {
            Err(Refusal::unauthorized())
        }
    }

    /// The table of routes.
    fn route(&mut self, call: &mut Call) -> Answer {
        let path = std::mem::take(&mut call.path);
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        match (call.method.as_str(), &segments[..]) {
            (_, ["gateway" | "users" | "oauth2", ..] | ["applications", "@me"]) => {
                self.application_routes(call, &segments)
            }
            (_, ["applications", id, "commands", rest @ ..]) => {
                self.command_routes(call, id, None, rest)
            }
            (_, ["applications", id, "guilds", guild, "commands", rest @ ..]) => {
                self.command_routes(call, id, Some(guild), rest)
            }
            (_, ["guilds", guild, rest @ ..]) => self.guild_routes(call, guild, rest),
            (_, ["channels", channel, rest @ ..]) => self.routes_in_channel(call, channel, rest),
            ("POST", ["interactions", interaction, token, "callback"]) => {
                self.callback(call, interaction, token)
            }
            (_, ["webhooks", application, token, rest @ ..]) => {
                self.webhook_routes(call, application, token, rest)
            }
            ("GET", ["attachments", channel, attachment, _]) => self.cdn(channel, attachment),
            _ => Err(Refusal::no_route()),
        }
    }

    /// The part of the table for a channel and what is in it.
    fn routes_in_channel(&mut self, call: &mut Call, channel: &str, rest: &[&str]) -> Answer {
        match rest {
            ["messages", message, "reactions", rest @ ..] => {
                self.reaction_routes(call, channel, message, rest)
            }
            ["messages", message, "threads"] if call.method == "POST" => {
                self.create_thread(call, channel, Some(message))
            }
            ["messages", rest @ ..] => self.message_routes(call, channel, rest),
            [first @ ("threads" | "thread-members"), rest @ ..] => {
                self.thread_routes(call, channel, first, rest)
            }
            ["users", "@me", "threads", "archived", "private"] => {
                self.archived_threads(call, channel, "joined")
            }
            _ => self.channel_routes(call, channel, rest),
        }
    }
}

/// A field of a body that is present and not null.
fn given<'a>(body: &'a Value, key: &str) -> Option<&'a Value> {
    body.get(key).filter(|value| !value.is_null())
}
