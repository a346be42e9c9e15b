//! Identical reads that are in flight at the same time share one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use tokio::time::{Instant, timeout_at};
use twilight_http::request::{Method, RequestBuilder};

use super::build;
use super::lane::{Lane, Lanes, Waiting};
use crate::collect::Anchor;
use crate::discord::error::RestError;
use crate::model::{ChannelId, MessageId};

/// A read that can be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Query {
    Page(ChannelId, Anchor, usize),
    Message(ChannelId, MessageId),
    Channel(ChannelId),
}

impl Query {
    fn path(self) -> String {
        match self {
            Self::Page(channel, Anchor::Before(id), limit) => {
                format!("channels/{channel}/messages?limit={limit}&before={id}")
            }
            Self::Page(channel, Anchor::After(id), limit) => {
                format!("channels/{channel}/messages?limit={limit}&after={id}")
            }
            Self::Message(channel, id) => format!("channels/{channel}/messages/{id}"),
            Self::Channel(channel) => format!("channels/{channel}"),
        }
    }
}

type Answer = BoxFuture<'static, Result<Arc<[u8]>, RestError>>;

/// The reads in flight. References are weak: a request that all callers have
/// dropped is cancelled.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Query, Airborne>>);

#[derive(Debug)]
struct Airborne {
    answer: WeakShared<Answer>,
    waiting: Arc<Waiting>,
}

/// One caller's share of a request.
pub(super) struct Flight {
    answer: Shared<Answer>,
    waiting: Arc<Waiting>,
}

impl Flights {
    /// Joins an identical request in flight, or starts one.
    pub(super) fn board(
        &self,
        query: Query,
        lane: Lane,
        lanes: &Lanes,
    ) -> Result<Flight, RestError> {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(&query).and_then(Airborne::join) {
            return Ok(flight);
        }
        // Finished requests are removed here, so the map is as large as the number of
        // reads in flight.
        flights.retain(|_, airborne| airborne.answer.upgrade().is_some());
        let request = build(RequestBuilder::raw(Method::Get, query.path()))?;
        let waiting = Arc::new(Waiting::of(&request));
        let answer = lanes.start(request, lane, &waiting, None);
        let answer = answer.map(|answer| answer.map(Arc::from)).boxed().shared();
        if let Some(weak) = answer.downgrade() {
            let airborne = Airborne {
                answer: weak,
                waiting: Arc::clone(&waiting),
            };
            flights.insert(query, airborne);
        }
        Ok(Flight { answer, waiting })
    }
}

impl Airborne {
    /// `None` if it has finished: its answer may already be out of date.
    fn join(&self) -> Option<Flight> {
        let answer = self.answer.upgrade()?;
        let flying = answer.peek().is_none();
        flying.then(|| Flight {
            answer,
            waiting: Arc::clone(&self.waiting),
        })
    }
}

impl Flight {
    /// Waits for the answer until `deadline`, which applies to this caller only.
    pub(super) async fn land(
        self,
        lanes: &Lanes,
        lane: Lane,
        deadline: Instant,
    ) -> Result<Arc<[u8]>, RestError> {
        match timeout_at(deadline, self.answer).await {
            Ok(answer) => answer,
            Err(_) => Err(lanes.late(lane, &self.waiting).await),
        }
    }
}
