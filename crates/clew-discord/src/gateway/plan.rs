//! What `/gateway/bot` says: the address, shards, and session starts left.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use twilight_gateway::queue::InMemoryQueue;

use super::Gateway;
use super::backoff::Backoff;
use crate::event::FatalReason;
use crate::rest::{GatewayInfo, Rest, SessionStartLimit};

/// The queue that spaces out IDENTIFYs.
pub(super) type Identifies = InMemoryQueue;

/// Session starts held in reserve: using up a day's starts makes Discord reset
/// the token.
const STARTS_KEPT_BACK: u32 = 5;
/// Timeout of one `/gateway/bot` request.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Where and with how many shards to connect.
pub(super) struct Plan {
    pub(super) url: String,
    pub(super) shards: u32,
    pub(super) identifies: Identifies,
}

/// Asks Discord until it answers; `None` if shutdown came first.
pub(super) async fn plan(gateway: &Gateway, rest: &Rest) -> Result<Option<Plan>, FatalReason> {
    tokio::select! {
        biased;
        plan = ask(gateway, rest) => plan.map(Some),
        () = gateway.shutdown.cancelled() => Ok(None),
    }
}

async fn ask(gateway: &Gateway, rest: &Rest) -> Result<Plan, FatalReason> {
    let mut info = gateway_info(gateway, rest).await?;
    let settings = &gateway.settings;
    // Their number is changed beside them, if it is to be another one.
    if let Some(session) = settings.resume.first()
        && *gateway.shards.borrow() > 0
    {
        info.shards = session.shards;
    }
    let resumed = (0..info.shards)
        .filter(|shard| settings.session(*shard, info.shards).is_some())
        .count();
    let starts = info
        .shards
        .saturating_sub(u32::try_from(resumed).unwrap_or(u32::MAX));
    await_starts(&mut info.session_start_limit, starts).await;
    Ok(Plan {
        url: settings.url.clone().unwrap_or(info.url),
        shards: info.shards.max(1),
        identifies: identifies(info.session_start_limit),
    })
}

/// Grants no start of the reserve, however often sessions are lost while the process runs.
fn identifies(limit: SessionStartLimit) -> Identifies {
    let reserve = reserve(&limit);
    InMemoryQueue::new(
        limit.max_concurrency,
        limit.remaining.min(limit.total).saturating_sub(reserve),
        Duration::from_millis(limit.reset_after),
        limit.total - reserve,
    )
}

/// A bot with few starts keeps fewer back.
fn reserve(limit: &SessionStartLimit) -> u32 {
    STARTS_KEPT_BACK.min(limit.total / 10)
}

/// Waits for the daily reset if `starts` would cut into the reserve.
pub(super) async fn await_starts(limit: &mut SessionStartLimit, starts: u32) {
    if starts == 0 || limit.remaining >= starts.saturating_add(reserve(limit)) {
        return;
    }
    let wait = Duration::from_millis(limit.reset_after);
    tracing::warn!(
        remaining = limit.remaining,
        total = limit.total,
        seconds = wait.as_secs(),
        "hardly any session start is left today: waiting for the reset; using them up would \
         reset the token"
    );
    sleep(wait).await;
    limit.remaining = limit.total;
}

async fn gateway_info(gateway: &Gateway, rest: &Rest) -> Result<GatewayInfo, FatalReason> {
    let mut backoff = Backoff::new(gateway.settings.seed);
    loop {
        let error = match rest.gateway(Instant::now() + ANSWER_TIMEOUT).await {
            Ok(info) => return Ok(info),
            Err(error) if error.unauthorized => return Err(FatalReason::TokenRefused),
            Err(error) => error,
        };
        if let Some(url) = gateway.settings.url.clone() {
            tracing::warn!(url = gateway.settings.api, %error,
                "cannot reach Discord to ask for the number of shards: connecting with one");
            return Ok(GatewayInfo {
                url,
                shards: 1,
                session_start_limit: SessionStartLimit::default(),
            });
        }
        let wait = backoff.after(None);
        tracing::warn!(url = gateway.settings.api, %error, seconds = wait.as_secs(),
            "cannot reach Discord: trying again");
        sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{timeout, timeout_at};
    use twilight_gateway::queue::Queue;

    use super::*;

    const RESET: Duration = Duration::from_hours(1);

    /// How many starts are granted before the reset, at most ten, and whether one is after it.
    async fn granted(total: u32, remaining: u32) -> (usize, bool) {
        let queue = identifies(SessionStartLimit {
            total,
            remaining,
            reset_after: 3_600_000,
            max_concurrency: 1,
        });
        let before_reset = Instant::now() + RESET / 2;
        for granted in 0..10 {
            let next = queue.enqueue(0);
            tokio::pin!(next);
            if timeout_at(before_reset, &mut next).await.is_err() {
                return (granted, timeout(RESET, next).await.is_ok());
            }
        }
        (10, true)
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_runs_keeps_starts_in_reserve() {
        assert_eq!(granted(1_000, 7).await, (2, true));
        assert_eq!(granted(1_000, 3).await, (0, true));
        assert_eq!(granted(1_000, 2_000).await, (10, true));
        assert_eq!(granted(20, 5).await, (3, true));
        assert_eq!(granted(3, 3).await, (3, false), "a day later");
    }
}
