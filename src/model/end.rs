//! How a request to a model ended.

use clew_context::words;

words! {
    /// Why a model stopped.
    FinishReason {
        /// It was done.
        Stop = "stop",
        /// It reached its limit of tokens, or the end of its window; the last tool call may
        /// be incomplete.
        Length = "length",
        /// The provider's filter cut it off.
        ContentFilter = "content_filter",
        /// We stopped reading: it was longer than can be posted, or the stream did not end.
        CutOff = "cut_off",
        /// It waits for the results of the tools that it called.
        ToolCalls = "tool_calls",
        /// Anything else that a server may say.
        Other = "other",
    }

    /// Why the model gave no answer.
    LlmFailure {
        /// It refuses the key, or the account (401, 402, 403).
        Unauthorized = "unauthorized",
        /// It limits our rate, or a quota is used up.
        RateLimited = "rate_limited",
        /// The prompt does not fit its window.
        ContextTooLong = "context_too_long",
        /// It is down, unreachable or broken.
        Unavailable = "unavailable",
        /// No such model or endpoint.
        NotFound = "not_found",
        /// It refuses the request for another reason, as it would again.
        Rejected = "rejected",
        /// We could not read its answer.
        Malformed = "malformed",
        /// It does not take the images.
        ImagesRefused = "images_refused",
        /// It fell silent, or took too long.
        Timeout = "timeout",
        /// The answer has no text.
        Empty = "empty",
        /// The answer broke off.
        Truncated = "truncated",
        /// We cancelled: the question was edited or deleted, the process
        /// ended, or Discord accepts no answer there.
        Cancelled = "cancelled",
    }
}
