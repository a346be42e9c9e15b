//! What each event adds to the metrics.

use super::super::event::{
    CollectOk, CommandAnswered, Confirmed, DropReason, Event, LostBy, Outcome, PurgeCause,
    ReadFailure, Recorded, Refusal, RequestFailed, RequestOk, RunEnd, StoreOperation, ToolCalled,
    TurnDone,
};
use super::{Counts, Metrics};
use clew_context::model::{OmitReason, Scene};

/// The label's value where there is nothing to name.
const NONE: &str = "none";
const SCENES: [Scene; 4] = [Scene::Thread, Scene::ReplyChain, Scene::Direct, Scene::Lone];

impl Metrics {
    pub(in crate::telemetry) fn count(&self, event: &Event) {
        let counts = &self.counts;
        match event {
            Event::CollectOk(collected) => counts.collected(collected),
            Event::CollectTruncated(truncated) => {
                let cap = [truncated.reason.as_str()];
                counts.context_truncations.one(cap);
                let dropped = truncated.dropped as u64;
                counts.context_messages_dropped.add(cap, dropped);
            }
            Event::CollectFallback(fallback) => {
                let labels = [fallback.stage.as_str(), fallback.reason.as_str()];
                counts.context_fallbacks.one(labels);
            }
            Event::TailFallback(fallback) => {
                counts.thread_tail_fallbacks.one([fallback.reason.as_str()]);
            }
            Event::TriggerRefused(refused) => counts.turns_refused.one([refused.reason.as_str()]),
            Event::TurnDone(done) => counts.turn_done(done),
            Event::RunDone(done) => counts.agent_runs.one([done.end.as_str()]),
            Event::RequestOk(request) => counts.request_ok(request),
            Event::RequestFailed(request) => counts.request_failed(request),
            Event::ToolCalled(called) => counts.tool_called(called),
            Event::ServedCall(call) => {
                let labels = [call.by.as_str(), &call.tool, call.outcome.as_str()];
                counts.served_calls.one(labels);
            }
            Event::AnswerSent(sent) => {
                counts.answers_sent.one([]);
                counts.answer_messages_sent.add([], sent.messages as u64);
            }
            Event::SendFallback(fallback) => {
                let labels = [fallback.stage.as_str(), fallback.reason.as_str()];
                counts.send_fallbacks.one(labels);
            }
            Event::CommandAnswered(answered) => counts.command(answered),
            Event::ShardConnected(connected) => {
                let resumed = if connected.resumed { "true" } else { "false" };
                counts.discord_connections.one([resumed]);
            }
            Event::ShardDisconnected(lost) => {
                counts.discord_disconnections.one([lost.reason.as_str()]);
            }
            Event::SessionLost(_) => counts.discord_sessions_lost.one([]),
            Event::UnreadableInput(input) => counts.discord_unreadable.one([input.reason.as_str()]),
            Event::StoreFailed(failed) => counts.store_failures.one([failed.operation.as_str()]),
            Event::Recorded(recorded) => counts.recorded(recorded),
            Event::TurnsDropped(dropped) => {
                let reason = [dropped.reason.as_str()];
                counts.turns_not_stored.add(reason, dropped.turns as u64);
            }
            Event::Flushed(flushed) => counts.facts_saved.add([], flushed.facts as u64),
            Event::Learnt(learnt) => {
                counts.facts_learnt.add([], learnt.facts as u64);
                counts.facts_rejected.add([], learnt.refused as u64);
            }
            Event::EntriesPurged(purged) => {
                let cause = [purged.cause.as_str()];
                counts.entries_purged.add(cause, purged.entries);
            }
            Event::Confirmed(confirmed) => counts.confirmed(confirmed),
            Event::ChangesDropped(dropped) => {
                counts.changes_dropped.add([], dropped.changes as u64);
            }
            // These four say nothing that others do not, the state of the store is looked up, and
            // the last four are of the process's beginning and end.
            Event::CaughtUp(_)
            | Event::TailOk(_)
            | Event::MergeOk(_)
            | Event::Trigger(_)
            | Event::CircuitChanged(_)
            | Event::Fatal(_)
            | Event::Started(_)
            | Event::Stopping(_)
            | Event::Dropped(_) => {}
        }
    }
}

impl Counts {
    fn turn_done(&self, done: &TurnDone) {
        let outcome = done.outcome.as_str();
        let scene = done.case.map_or(NONE, Scene::as_str);
        self.turns.one([outcome, scene]);
        self.turn_duration.observe([outcome], done.ms.0);
    }

    fn collected(&self, collected: &CollectOk) {
        let scene = collected.case.as_str();
        self.context_blocks.one([scene, collected.source.as_str()]);
        self.collect_duration.observe([scene], collected.ms.0);
        self.context_fetches.add([], collected.fetches as u64);
        self.context_messages.observe([], collected.msgs);
    }

    fn request_ok(&self, request: &RequestOk) {
        let model = request.model.as_str();
        let (server, reason) = (request.server.to_string(), request.finish.as_str());
        self.model_requests.one([&server, model, "ok", reason]);
        self.model_request_duration.observe([model], request.ms.0);
        self.model_first_words.observe([model], request.ms_first.0);
        self.prompt_characters.observe([], request.prompt_chars);
        let tokens = [
            ("prompt", request.prompt_tokens),
            ("completion", request.completion_tokens),
        ];
        for (kind, tokens) in tokens {
            self.model_tokens.add([model, kind], tokens.unwrap_or(0));
        }
    }

    fn request_failed(&self, request: &RequestFailed) {
        let (server, reason) = (request.server.to_string(), request.reason.as_str());
        let labels = [server.as_str(), &request.model, "failed", reason];
        self.model_requests.one(labels);
    }

    fn tool_called(&self, called: &ToolCalled) {
        let tool = called.tool.as_deref().unwrap_or(NONE);
        self.tool_calls.one([tool, called.outcome.as_str()]);
        self.tool_call_duration.observe([tool], called.ms.0);
    }

    fn command(&self, answered: &CommandAnswered) {
        let command = answered.command.to_string();
        self.commands.one([&command, answered.outcome.as_str()]);
        self.command_duration.observe([], answered.ms.0);
    }

    fn recorded(&self, recorded: &Recorded) {
        self.turns_recorded.one([]);
        let late = u64::from(!recorded.early);
        self.turns_recorded_late.add([], late);
        self.turn_recording_duration.observe([], recorded.ms.0);
    }

    fn confirmed(&self, confirmed: &Confirmed) {
        let (gone, unanswered) = (confirmed.gone, confirmed.unanswered);
        let there = confirmed.asked.saturating_sub(gone + unanswered);
        for (result, count) in [("there", there), ("gone", gone), ("unanswered", unanswered)] {
            self.messages_confirmed.add([result], count as u64);
        }
    }

    /// The series that are known beforehand.
    pub(super) fn begin_at_zero(&self) {
        let scenes = || SCENES.map(Scene::as_str).into_iter().chain([NONE]);
        for outcome in Outcome::words() {
            self.turns.begin(scenes().map(|scene| [outcome, scene]));
        }
        self.turns_refused.begin(Refusal::words().map(one));
        self.agent_runs.begin(RunEnd::words().map(one));
        let caps = || OmitReason::caps().map(|cap| [cap.as_str()]);
        self.context_truncations.begin(caps());
        self.context_messages_dropped.begin(caps());
        self.discord_connections.begin(["true", "false"].map(one));
        self.discord_disconnections.begin(LostBy::words().map(one));
        self.discord_unreadable.begin(ReadFailure::words().map(one));
        self.store_failures.begin(StoreOperation::words().map(one));
        self.turns_not_stored.begin(DropReason::words().map(one));
        self.entries_purged.begin(PurgeCause::words().map(one));
        let results = ["there", "gone", "unanswered"];
        self.messages_confirmed.begin(results.map(one));
        for alone in [
            &self.context_fetches,
            &self.answers_sent,
            &self.answer_messages_sent,
            &self.discord_sessions_lost,
            &self.turns_recorded,
            &self.turns_recorded_late,
            &self.facts_saved,
            &self.facts_learnt,
            &self.facts_rejected,
            &self.changes_dropped,
        ] {
            alone.begin([[]]);
        }
    }
}

fn one(value: &'static str) -> [&'static str; 1] {
    [value]
}
