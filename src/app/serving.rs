//! The loop: what happens is handled one by one, and at the end turns that run may finish.

use std::time::Duration;

use tokio::sync::mpsc;

use super::dispatcher::Dispatcher;
use super::loop_event::{EventSources, LoopEvent};
use super::{Error, SETTLE};
use crate::telemetry::event::Stopping;
use crate::turn::Services;
use clew_context::model::ApplicationId;

/// How long abandoned turns may take to take back what they posted.
const ABANDON: Duration = Duration::from_secs(5);

/// Handles what happens until the end.
pub(super) async fn serve(
    services: &Services,
    dispatcher: &mut Dispatcher,
    sources: &mut EventSources,
) -> Result<(), Error> {
    let mut is_claimed = false;
    loop {
        match sources.next(dispatcher.due()).await {
            LoopEvent::Stop => return Ok(()),
            LoopEvent::Disconnected(ended) => return ended.map_err(Error::from),
            LoopEvent::StoreLost(held) => return Err(held.into()),
            LoopEvent::LeaseOver => return Err(Error::LeaseOver),
            LoopEvent::HandOver => return Err(Error::Drained),
            LoopEvent::GiveWay { was_reached } => {
                // It may be reached by now.
                if !dispatcher.is_connected() {
                    return Err(Error::Unreached { was_reached });
                }
            }
            LoopEvent::Discord(delivery) => {
                // Discord's first event or the session file tells who we are. Only
                // this once the loop waits: nothing may be read from or written to
                // another bot's store.
                if !is_claimed && let Some(us) = services.guild_state.current_user() {
                    is_claimed = true;
                    claim_store(services, us.application).await?;
                }
                dispatcher.deliver(delivery);
            }
            LoopEvent::Due => dispatcher.ask_due(),
            LoopEvent::Ask(request) => drop(dispatcher.submit(*request, None)),
            LoopEvent::Run(request, slot) => dispatcher.start_run(*request, slot),
            LoopEvent::StopRun(id) => dispatcher.stop_run(id),
            LoopEvent::Steer(steer, reply) => drop(reply.send(dispatcher.steer(steer))),
            LoopEvent::LookedUp(of, kind, mark) => dispatcher.looked_up(of, kind, mark),
            LoopEvent::CatchUp(news) => dispatcher.catch_up_goes_on(news),
            LoopEvent::TurnWaits(trigger) => dispatcher.turn_waits(trigger),
            LoopEvent::TurnEnded(end) => dispatcher.turn_ended(end),
            LoopEvent::Look(reply) => dispatcher.look(reply),
        }
    }
}

/// Claims the store. If it fails, the bot runs on; before servers are taken
/// for left, the store is claimed again.
async fn claim_store(services: &Services, application: ApplicationId) -> Result<(), Error> {
    match services.memory.claim(application).await {
        Err(error @ clew_store::Error::Owned { .. }) => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "the store does not say whose it is");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Lets running turns finish; after the deadline they take back what they
/// posted, and the next process answers. Without a deadline nothing of theirs can be sent or stored
/// any more, and they end.
pub(super) async fn drain(
    dispatcher: &mut Dispatcher,
    reports: &mut mpsc::UnboundedReceiver<LoopEvent>,
    patience: Option<Duration>,
) -> Stopping {
    dispatcher.close();
    let mut drained = 0;
    let finishing = finish(dispatcher, reports, &mut drained);
    let _ = tokio::time::timeout(patience.unwrap_or_default(), finishing).await;
    let abandoned = dispatcher.running();
    if abandoned > 0 {
        dispatcher.abandon();
        let mut taken_back = 0;
        let taking_back = finish(dispatcher, reports, &mut taken_back);
        let _ = tokio::time::timeout(ABANDON, taking_back).await;
    }
    dispatcher.settle(SETTLE).await;
    while let Ok(loop_event) = reports.try_recv() {
        match loop_event {
            LoopEvent::Ask(request) => drop(dispatcher.submit(*request, None)),
            LoopEvent::Run(request, slot) => dispatcher.start_run(*request, slot),
            _ => {}
        }
    }
    dispatcher.settle(SETTLE).await;
    if patience.is_none() {
        dispatcher.kill();
    }
    Stopping { drained, abandoned }
}

/// Waits for what runs, also for runs that begin meanwhile, and counts what ended.
async fn finish(
    dispatcher: &mut Dispatcher,
    reports: &mut mpsc::UnboundedReceiver<LoopEvent>,
    ended: &mut usize,
) {
    while dispatcher.running() > 0 {
        match reports.recv().await {
            Some(LoopEvent::TurnEnded(end)) => {
                *ended += 1;
                dispatcher.turn_ended(end);
            }
            Some(LoopEvent::Ask(request)) => drop(dispatcher.submit(*request, None)),
            Some(LoopEvent::Run(request, slot)) => dispatcher.start_run(*request, slot),
            Some(LoopEvent::StopRun(id)) => dispatcher.stop_run(id),
            Some(LoopEvent::Steer(steer, reply)) => drop(reply.send(dispatcher.steer(steer))),
            Some(_) => {}
            None => return,
        }
    }
}
