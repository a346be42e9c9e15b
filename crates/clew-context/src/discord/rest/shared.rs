//! Identical reads that are in flight at the same time share one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use tokio::time::{Instant, timeout_at};
use twilight_http::request::{Method, RequestBuilder};

use super::build;
use super::pool::{MAX_SENDINGS, RateLimitPool, RateLimitPools, RequestState};
use crate::collect::PageCursor;
use crate::discord::error::RestError;
use crate::model::{ChannelId, MessageId};

/// A read that can be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::discord) enum Query {
    Page(ChannelId, PageCursor, usize),
    Message(ChannelId, MessageId),
    Channel(ChannelId),
    Pins(ChannelId, usize),
}

impl Query {
    /// Without `/api/v10/`.
    pub(in crate::discord) fn path(self) -> String {
        match self {
            Self::Page(channel, PageCursor::Before(id), limit) => {
                format!("channels/{channel}/messages?limit={limit}&before={id}")
            }
            Self::Page(channel, PageCursor::After(id), limit) => {
                format!("channels/{channel}/messages?limit={limit}&after={id}")
            }
            Self::Page(channel, PageCursor::Around(id), limit) => {
                format!("channels/{channel}/messages?limit={limit}&around={id}")
            }
            Self::Message(channel, id) => format!("channels/{channel}/messages/{id}"),
            Self::Channel(channel) => format!("channels/{channel}"),
            Self::Pins(channel, limit) => {
                format!("channels/{channel}/messages/pins?limit={limit}")
            }
        }
    }
}

type Answer = BoxFuture<'static, Result<Arc<[u8]>, RestError>>;

/// The reads in flight. References are weak: a request that all callers have
/// dropped is cancelled.
#[derive(Debug, Default)]
pub(super) struct SharedRequests(Mutex<HashMap<Query, RunningRequest>>);

#[derive(Debug)]
struct RunningRequest {
    answer: WeakShared<Answer>,
    state: Arc<RequestState>,
}

/// One caller's share of a request.
pub(super) struct SharedRequest {
    answer: Shared<Answer>,
    state: Arc<RequestState>,
}

impl SharedRequests {
    /// Joins an identical request in flight, or starts one.
    pub(super) fn join(
        &self,
        query: Query,
        pool: RateLimitPool,
        pools: &RateLimitPools,
    ) -> Result<SharedRequest, RestError> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(request) = running.get(&query).and_then(RunningRequest::join) {
            return Ok(request);
        }
        // Finished requests are removed here, so the map is as large as the number of
        // reads in flight.
        running.retain(|_, request| request.answer.upgrade().is_some());
        let request = build(RequestBuilder::raw(Method::Get, query.path()))?;
        let state = Arc::new(RequestState::of(&request));
        let answer = pools.start(request, pool, &state, None, MAX_SENDINGS);
        let answer = answer.map(|answer| answer.map(Arc::from)).boxed().shared();
        if let Some(weak) = answer.downgrade() {
            let request = RunningRequest {
                answer: weak,
                state: Arc::clone(&state),
            };
            running.insert(query, request);
        }
        Ok(SharedRequest { answer, state })
    }
}

impl RunningRequest {
    /// `None` if it has finished: its answer may already be out of date.
    fn join(&self) -> Option<SharedRequest> {
        let answer = self.answer.upgrade()?;
        let is_running = answer.peek().is_none();
        is_running.then(|| SharedRequest {
            answer,
            state: Arc::clone(&self.state),
        })
    }
}

impl SharedRequest {
    /// Waits for the answer until `deadline`, which applies to this caller only.
    pub(super) async fn wait(
        self,
        pools: &RateLimitPools,
        pool: RateLimitPool,
        deadline: Instant,
    ) -> Result<Arc<[u8]>, RestError> {
        match timeout_at(deadline, self.answer).await {
            Ok(answer) => answer,
            Err(_) => Err(pools.late(pool, &self.state).await),
        }
    }
}
