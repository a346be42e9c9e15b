//! One event of each kind, and a hundred turns.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clew::model::Consent;
use clew::telemetry::event::{
    AnswerSent, Answers, BlockAges, Capped, CaughtBy, CaughtUp, CauseWord, ChangesDropped,
    CircuitChanged, CircuitState, CollectFallback, CollectOk, CollectTruncated, CommandAnswered,
    CommandOutcome, CommandWord, Confirmed, DropReason, Dropped, EntriesPurged, Fatal, FatalReason,
    Finish, Flushed, Learnt, LinkCounts, List, LlmFailure, LostBy, MergeOk, OmitCounts, OrderWord,
    Outcome, PurgeCause, ReadFailure, Recorded, Refusal, RequestFailed, RequestOk, RunDone, RunEnd,
    SearchedBy, SendFallback, SendStage, ServedBy, ServedCall, SessionLost, ShardConnected,
    ShardDisconnected, SourceWord, StageCalls, StageCounts, Started, Stopping, StoreFailed,
    StoreOperation, TailFallback, TailOk, ToolCalled, ToolOutcome, Trigger, TriggerRefused,
    TurnDone, TurnsDropped, UnreadableInput,
};
use clew::telemetry::{Event, Ids, Ms, Telemetry};
use clew_context::model::{
    ChannelId, Fallback, GuildId, Limits, MessageId, OmitReason, Scene, Stage, TurnId, UserId,
};

pub(crate) fn turn_ids(turn: u64) -> Ids {
    Ids {
        guild: Some(GuildId::new(11)),
        channel: Some(ChannelId::new(22)),
        user: Some(UserId::new(33)),
        message: Some(MessageId::new(1000 + turn)),
        turn: Some(TurnId(1000 + turn)),
    }
}

/// In the order of the table in `telemetry/event.rs`.
pub(crate) fn one_of_each() -> Vec<Event> {
    let mut events = of_the_context();
    events.extend(of_the_turn());
    events.extend(of_the_connection());
    events.extend(of_memory());
    events.extend(of_the_process());
    events
}

/// A hundred turns: turn n took n ms to collect, each tenth one made two fetches, and the last ten are reply
/// chains that met a timeout and two caps.
pub(super) fn a_day(telemetry: &Telemetry) {
    for turn in 1..=100 {
        let chain = turn > 90;
        let scene = if chain {
            Scene::ReplyChain
        } else {
            Scene::Thread
        };
        let ids = turn_ids(turn);
        telemetry.emit(&ids, trigger(scene));
        telemetry.emit(
            &ids,
            collect_ok(scene, turn, if turn % 10 == 0 { 2 } else { 0 }),
        );
        if chain {
            telemetry.emit(&ids, fallback(scene, Fallback::Timeout));
            telemetry.emit(&ids, truncated(OmitReason::Msgs, 60));
            telemetry.emit(&ids, truncated(OmitReason::Age, 3));
        }
        let failed = turn == 100;
        let outcome = if failed {
            Outcome::Failed
        } else {
            Outcome::Answered
        };
        telemetry.emit(&ids, turn_done(outcome, 10 * turn));
    }
    let reason = Refusal::UserRate;
    telemetry.emit(&turn_ids(101), refused(reason));
}

fn of_the_context() -> Vec<Event> {
    vec![
        collect_ok(Scene::Thread, 12, 2).into(),
        truncated(OmitReason::Chars, 7).into(),
        fallback(Scene::ReplyChain, Fallback::Deleted).into(),
        Event::from(MergeOk {
            block_msgs: 40,
            user_facts: 5,
            server_facts: 100,
            history_msgs: 30,
            recalled_msgs: 4,
            dedup: 2,
            chars: 12_000,
        }),
        Event::from(TailOk {
            k: 5,
            reply_target: Some(MessageId::new(5)),
            count: 5,
        }),
        Event::from(TailFallback {
            reason: Fallback::Archived,
        }),
    ]
}

fn of_the_turn() -> Vec<Event> {
    vec![
        trigger(Scene::Direct).into(),
        refused(Refusal::NotAllowed).into(),
        turn_done(Outcome::Answered, 900).into(),
        Event::from(RunDone {
            end: RunEnd::TimeOver,
            rounds: Some(7),
            calls: Some(9),
            tokens: Some(40_000),
            ms: millis(600_000),
        }),
        Event::from(RequestOk {
            ms_first: millis(120),
            ms: millis(800),
            prompt_chars: 12_000,
            prompt_tokens: Some(3_000),
            cached_tokens: Some(2_048),
            completion_tokens: None,
            reasoning_tokens: None,
            finish: Finish::Stop,
            attempt: 1,
            server: 1,
            model: "gpt".to_owned(),
            response_model: Some("gpt-2026-01-01".to_owned()),
            agent: Some("default".to_owned()),
            images: 2,
            image_bytes: 4_000,
        }),
        Event::from(RequestFailed {
            reason: LlmFailure::ContextTooLong,
            ms: millis(70),
            attempt: 1,
            will_retry: true,
            server: 2,
            model: "gpt".to_owned(),
            agent: None,
        }),
        Event::from(ToolCalled {
            tool: Some("get_message".to_owned()),
            outcome: ToolOutcome::Ok,
            ms: millis(40),
            bytes: 300,
            round: 1,
            agent: "default".to_owned(),
            search: Some(SearchedBy::Discord),
            consent: Some(Consent::Auto),
        }),
        Event::from(ServedCall {
            tool: "read_thread".to_owned(),
            by: ServedBy::Token,
            outcome: ToolOutcome::Ok,
            ms: millis(40),
            bytes: 300,
            read: BTreeMap::from([(ChannelId::new(22), BTreeSet::from([MessageId::new(5)]))]),
        }),
    ]
}

fn of_the_connection() -> Vec<Event> {
    vec![
        Event::from(ShardConnected {
            shard: 0,
            resumed: true,
        }),
        Event::from(ShardDisconnected {
            shard: 0,
            reason: LostBy::Closed,
            code: Some(4000),
        }),
        Event::from(SessionLost { shard: 3 }),
        Event::from(CaughtUp {
            how: CaughtBy::Pages,
            channels: 3,
            fetches: 4,
            failed: 1,
            unread: 2,
            questions: 5,
            answered: 4,
            too_old: 1,
            too_many: 0,
        }),
        Event::from(UnreadableInput {
            what: "guild_create".to_owned(),
            reason: ReadFailure::Rejected,
            parts: vec!["owner_id"],
        }),
        Event::from(AnswerSent {
            messages: 2,
            chars: 2_600,
            attached: false,
            edits: 4,
            reply: true,
            pinged: false,
        }),
        Event::from(SendFallback {
            reason: Fallback::Forbidden,
            stage: SendStage::Reference,
        }),
        Event::from(Fatal {
            reason: FatalReason::DisallowedIntents,
        }),
    ]
}

fn of_memory() -> Vec<Event> {
    vec![
        Event::from(StoreFailed {
            operation: StoreOperation::Append,
            transient: true,
        }),
        Event::from(CircuitChanged {
            read: CircuitState::Closed,
            write: CircuitState::Failing,
            unsaved: 3,
        }),
        Event::from(Recorded {
            rows: 2,
            early: false,
            ms: millis(1),
        }),
        Event::from(TurnsDropped {
            turns: 1,
            reason: DropReason::Room,
        }),
        Event::from(Flushed {
            facts: 3,
            ms: millis(2),
        }),
        Event::from(Learnt {
            facts: 1,
            refused: 2,
        }),
        Event::from(EntriesPurged {
            cause: PurgeCause::Erase,
            entries: 12,
        }),
        Event::from(Confirmed {
            asked: 8,
            calls: 1,
            gone: 1,
            unanswered: 0,
            ms: millis(90),
        }),
        Event::from(ChangesDropped {
            changes: 3_000,
            channels: 2,
        }),
        Event::from(CommandAnswered {
            command: CommandWord::new("server-memory", Some("show")),
            outcome: CommandOutcome::Done,
            ms: millis(900),
            deferred: true,
        }),
    ]
}

fn of_the_process() -> Vec<Event> {
    vec![
        Event::from(Started {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: Some("machine:7.0a1b2".to_owned()),
            answers: Answers::Inspector,
            model: None,
            caps: Capped::from(&Limits::default()),
        }),
        Event::from(Stopping {
            drained: 3,
            abandoned: 0,
        }),
        Event::from(Dropped { count: 17 }),
    ]
}

pub(super) fn trigger(scene: Scene) -> Trigger {
    Trigger {
        scene,
        cause: CauseWord::Mention,
        target: Some(MessageId::new(5)),
        adopted: false,
        queued_ms: millis(0),
        parent_channel_id: Some(ChannelId::new(21)),
        agent: Some("default".to_owned()),
    }
}

fn refused(reason: Refusal) -> TriggerRefused {
    TriggerRefused {
        reason,
        list: (reason == Refusal::NotAllowed).then_some(List::User),
        parent_channel_id: None,
    }
}

fn collect_ok(case: Scene, ms: u64, fetches: usize) -> CollectOk {
    CollectOk {
        case,
        msgs: 40,
        chars: 7_900,
        ms: millis(ms),
        fetches,
        source: SourceWord::Mixed,
        omitted: OmitCounts(BTreeMap::from([(OmitReason::App, 2), (OmitReason::Age, 9)])),
        links: Some(LinkCounts {
            targets: 2,
            closed: true,
            fetches: 3,
        }),
        age_s: Some(BlockAges {
            oldest: 9_000,
            newest: 12,
        }),
        stages: StageCounts(BTreeMap::from([(
            Stage::History,
            StageCalls {
                fetches: 1,
                ms: millis(40),
            },
        )])),
        caps: Capped::from(&Limits::default()),
    }
}

fn truncated(reason: OmitReason, dropped: usize) -> CollectTruncated {
    CollectTruncated {
        reason,
        kept: 40,
        dropped,
        shortened: 2,
    }
}

fn fallback(case: Scene, reason: Fallback) -> CollectFallback {
    CollectFallback {
        case,
        reason,
        stage: Stage::Chain,
    }
}

fn turn_done(outcome: Outcome, ms: u64) -> TurnDone {
    let answered = outcome == Outcome::Answered;
    TurnDone {
        outcome,
        ms: millis(ms),
        ms_to_model: answered.then(|| millis(ms / 2)),
        case: Some(Scene::Thread),
        agent: Some("default".to_owned()),
        model: answered.then(|| "gpt".to_owned()),
        left: None,
        order: (!answered).then_some(OrderWord::Stop),
    }
}

fn millis(ms: u64) -> Ms {
    Ms::from(Duration::from_millis(ms))
}
