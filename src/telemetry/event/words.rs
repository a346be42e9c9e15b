//! The closed sets of words used in details. `telemetry/schema.json` lists each of
//! them under the same name; a test compares the two.

use clew_context::model::Cause;
use clew_context::words;

words! {
    /// The parts of the bot. `mem.ctx` is written as the name that `MEM_LOG_SUBSYS`
    /// gives it.
    Subsys {
        /// Collectors and merge.
        MemCtx = "mem.ctx",
        /// A thread's tail and reply target.
        MemThread = "mem.thread",
        /// Which messages become turns, and how those end.
        Route = "route",
        /// The model.
        Llm = "llm",
        /// What the model calls.
        Tools = "tools",
        /// The connection and deliveries.
        Discord = "discord",
        /// Failures of stores.
        Store = "store",
        /// What is remembered and removed.
        Memory = "memory",
        /// Calls of our commands.
        Command = "command",
        /// The process itself.
        Process = "process",
    }

    /// What a store was asked to do.
    StoreOperation {
        /// Read history, facts or anything else.
        Read = "read",
        /// Append a turn.
        Append = "append",
        /// Log a direct message.
        Transcript = "transcript",
        /// Save facts.
        Flush = "flush",
        /// Remove what was deleted or erased.
        Purge = "purge",
        /// Remove what expired.
        Sweep = "sweep",
        /// Learn facts.
        Learn = "learn",
        /// Close.
        Close = "close",
    }

    /// The state of a store.
    CircuitState {
        /// It does what it is asked to.
        Closed = "closed",
        /// It fails at once: turns keep asking.
        Failing = "failing",
        /// It does not answer: turns do not ask.
        Open = "open",
    }

    /// Why an answered turn was not stored.
    DropReason {
        /// Too many waited for a store that failed.
        Room = "room",
        /// The process ended before the store was back.
        Stopping = "stopping",
        /// So much was deleted meanwhile that it was not known what of it is left.
        Unknown = "unknown",
    }

    /// The outcome of a call.
    CommandOutcome {
        /// It was done.
        Done = "done",
        /// The caller may not do it, or it makes no sense.
        Refused = "refused",
        /// We or a store failed.
        Failed = "failed",
    }

    /// Why stored entries were removed.
    PurgeCause {
        /// Messages were deleted.
        Deleted = "deleted",
        /// Discord was asked for the messages and did not know them.
        Evidence = "evidence",
        /// A channel or thread was deleted.
        Channel = "channel",
        /// We left a server.
        Guild = "guild",
        /// A member left a server.
        Member = "member",
        /// A user opted out.
        OptOut = "opt_out",
        /// A user had everything erased.
        Erase = "erase",
        /// `RETENTION_DAYS`.
        Retention = "retention",
    }

    /// Where the messages of a block came from.
    SourceWord {
        /// All from the window that the gateway fills.
        Window = "window",
        /// All fetched for this turn.
        Fetched = "fetched",
        /// Some of each.
        Mixed = "mixed",
        /// The block is empty.
        None = "none",
    }

    /// What made a message a trigger.
    CauseWord {
        /// A mention or a reply to us.
        Mention = "mention",
        /// A direct message.
        Direct = "direct",
        /// One of `AUTO_REPLY_CHANNELS`.
        AutoReply = "auto_reply",
        /// `/ask`.
        Ask = "ask",
        /// "Ask about this message".
        AskAbout = "ask_about",
        /// `/agent run`.
        AgentRun = "agent_run",
    }

    /// How an agent run ended.
    RunEnd {
        /// With a summary.
        Done = "done",
        /// The model or the posting failed.
        Failed = "failed",
        /// Somebody stopped it.
        Stopped = "stopped",
        /// Its time was over.
        TimeOver = "time_over",
        /// `AGENT_RUN_MAX_TOKENS` were used up, or the tokens of the day.
        TokensSpent = "tokens_spent",
        /// The process ended.
        Interrupted = "interrupted",
    }

    /// Why a trigger got no turn.
    Refusal {
        /// `TURN_QUEUE_PER_CHANNEL` turns are already waiting.
        QueueFull = "queue_full",
        /// The asker has exceeded `USER_TURNS_PER_MIN`.
        UserRate = "user_rate",
        /// The asker has used up their part of `TOKENS_PER_DAY`.
        UserTokens = "user_tokens",
        /// The server has used up its part of `TOKENS_PER_DAY`.
        GuildTokens = "guild_tokens",
        /// `TOKENS_TOTAL_DAY` are used up.
        TotalTokens = "total_tokens",
        /// The server's moderators blocked the asker (`/block member`).
        Blocked = "blocked",
        /// `MAX_CONCURRENT_TURNS` are running, and too many of theirs are waiting.
        Busy = "busy",
        /// An allow or deny list forbids it.
        NotAllowed = "not_allowed",
        /// It came from neither a server that we are in nor our direct messages.
        Elsewhere = "context",
        /// We cannot see the text: the message content intent is off.
        NoContent = "no_content",
        /// A command from another version was called.
        UnknownCommand = "unknown_command",
        /// The process is shutting down.
        Stopping = "stopping",
    }

    /// What an earlier process had left of an answer.
    AnswerLeft {
        /// The answer, which stays.
        Answer = "answer",
        /// A part, which is taken back.
        Part = "part",
        /// Maybe a message, which is posted again under its nonce.
        Nonce = "nonce",
        /// A message of ours that no other question explains; it counts as the answer.
        Unexplained = "unexplained",
    }

    /// What somebody told a turn.
    OrderWord {
        /// To end its answer.
        Stop = "stop",
        /// To answer again.
        Regenerate = "regenerate",
    }

    /// How a turn ended.
    Outcome {
        /// With an answer.
        Answered = "answered",
        /// With a line that says why there is none.
        Refused = "refused",
        /// The trigger was deleted, or the process shut down.
        Cancelled = "cancelled",
        /// With an error.
        Failed = "failed",
    }

    /// What came of a tool's call.
    ToolOutcome {
        /// It gave a result.
        Ok = "ok",
        /// What was asked for does not exist or may not be read.
        Refused = "refused",
        /// The arguments are no JSON object, or one is missing or wrong.
        Invalid = "invalid",
        /// There is no such tool.
        Unknown = "unknown",
        /// It was called with the same arguments before in this turn.
        Repeated = "repeated",
        /// The model called too many at once.
        TooMany = "too_many",
        /// It took longer than a call may.
        Timeout = "timeout",
        /// Discord or a store failed.
        Failed = "failed",
    }

    /// How a member's program came.
    ServedBy {
        /// Over HTTP, with a token of the member's.
        Token = "token",
        /// Through the operator's socket.
        Socket = "socket",
    }

    /// Where messages were searched, and why not by Discord.
    SearchedBy {
        /// By Discord, and in the window.
        Discord = "discord",
        /// In the window alone: by `SEARCH`, without the message content intent, or in direct
        /// messages.
        Window = "window",
        /// In the window, since Discord's index is not ready.
        NotIndexed = "not_indexed",
        /// In the window: Discord's rate limit.
        RateLimited = "rate_limited",
        /// In the window: Discord refused it to us.
        Forbidden = "forbidden",
        /// In the window: the turn or the server has searched enough.
        Limit = "limit",
        /// In the window: Discord did not answer, or not as documented.
        Failed = "failed",
    }

    /// How questions were found that were asked while nobody listened.
    CaughtBy {
        /// Discord sent their events again.
        Resume = "resume",
        /// The channels' messages were read.
        Pages = "pages",
    }

    /// How much of it was unreadable.
    ReadFailure {
        /// Part of it: the rest was used.
        Rejected = "rejected",
        /// All of it, even leniently; it was left out.
        Malformed = "malformed",
    }

    /// Which part of a delivery is missing.
    SendStage {
        /// The reply: sent without a reference.
        Reference = "reference",
        /// The message itself.
        Create = "create",
        /// The file: the rest was cut off.
        Attach = "attach",
        /// The reaction in place of an answer.
        React = "react",
    }

    /// Why the bot cannot run as configured.
    FatalReason {
        /// Close code 4004, or 401 from REST.
        TokenRejected = "token_rejected",
        /// Close code 4013.
        InvalidIntents = "invalid_intents",
        /// Close code 4014.
        DisallowedIntents = "disallowed_intents",
        /// Close codes 4010 and 4011.
        Sharding = "sharding",
        /// Anything else.
        Other = "other",
    }

    /// Who answers.
    Answers {
        /// A model.
        Model = "model",
        /// The built-in inspector, without `LLM_BASE_URL`.
        Inspector = "inspector",
    }
}

impl ToolOutcome {
    /// Whether something is wrong, other than with what the model asked for.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Timeout | Self::Failed)
    }
}

impl From<&Cause> for CauseWord {
    fn from(cause: &Cause) -> Self {
        match cause {
            Cause::Mention => Self::Mention,
            Cause::Direct => Self::Direct,
            Cause::AutoReply => Self::AutoReply,
            Cause::Ask(_) => Self::Ask,
            Cause::AskAbout(..) => Self::AskAbout,
            Cause::AgentRun => Self::AgentRun,
        }
    }
}
