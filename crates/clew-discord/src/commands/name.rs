//! The words of our commands, used both to register and to read them.

// Commands.
pub(super) const ASK: &str = "ask";
pub(super) const ASK_ABOUT: &str = "Ask about this message";
pub(super) const CONTEXT: &str = "context";
pub(super) const CLEAR_CONTEXT: &str = "clear-context";
pub(super) const SETTINGS: &str = "settings";
pub(super) const MEMORY: &str = "memory";
pub(super) const SERVER_MEMORY: &str = "server-memory";
pub(super) const PRIVACY: &str = "privacy";
pub(super) const HELP: &str = "help";

// Sub-commands.
pub(super) const CLEAR: &str = "clear";
pub(super) const SHOW: &str = "show";
pub(super) const SAVE: &str = "save";
pub(super) const HISTORY: &str = "history";
pub(super) const RESTORE: &str = "restore";
pub(super) const SET: &str = "set";
pub(super) const REMEMBER: &str = "remember";
pub(super) const FORGET: &str = "forget";
pub(super) const OPT_OUT: &str = "opt-out";
pub(super) const OPT_IN: &str = "opt-in";
pub(super) const EXPORT: &str = "export";
pub(super) const ERASE: &str = "erase";

// Options.
pub(super) const QUESTION: &str = "question";
pub(super) const EVERYONE: &str = "everyone";
pub(super) const DESCRIPTION: &str = "description";
pub(super) const AGENT: &str = "agent";
pub(super) const SNAPSHOT: &str = "snapshot";
pub(super) const ROLLING_WINDOW: &str = "rolling-window";
pub(super) const CHANNEL: &str = "channel";
pub(super) const MODE: &str = "mode";
pub(super) const REPLY_TARGET: &str = "reply-target";
pub(super) const LEARNING: &str = "learning";
pub(super) const TEXT: &str = "text";
pub(super) const EVERYWHERE: &str = "everywhere";
pub(super) const FACT: &str = "fact";

// Choices of options.
pub(super) const MENTIONS: &str = "mentions";
pub(super) const EVERYTHING: &str = "everything";
pub(super) const OFF: &str = "off";
pub(super) const ON: &str = "on";
pub(super) const DEFAULT: &str = "default";
pub(super) const NEWEST: &str = "newest";
pub(super) const TRIGGER: &str = "trigger";
