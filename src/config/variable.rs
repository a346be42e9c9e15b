//! The table of all variables: name, group, default, unit, description, how it is shown.

/// A variable that Clew reads.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name in the environment.
    pub name: &'static str,
    /// Its section in the documentation.
    pub group: Group,
    /// The value in effect if it is not set; empty if there is none.
    pub default: &'static str,
    /// The value's unit or form.
    pub unit: &'static str,
    /// What it does, one line of Markdown.
    pub about: &'static str,
    /// How much of its value is shown.
    pub shown: Shown,
}

/// How much of a value errors, logs and listings show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    Plainly,
    /// Only that it is set.
    Never,
    /// A store's address without its password.
    WithoutPassword,
    /// A server's address, unless it may carry a login or a key.
    WithoutLogin,
}

/// A part of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Connection to Discord.
    Discord,
    /// Who may use the bot, and where.
    Access,
    /// What makes a message a trigger.
    Triggers,
    /// The model that answers.
    Model,
    /// The caps of the collected context.
    Context,
    /// The window of recent messages.
    Window,
    /// Turns and answers.
    Turns,
    /// Telemetry, log and state.
    Operation,
    /// Memory and history.
    Memory,
}

impl Group {
    /// Its heading in `.env.example`.
    #[cfg(feature = "test-util")]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Discord => "Discord",
            Self::Access => "Who may use the bot, and where",
            Self::Triggers => "What the bot answers to",
            Self::Model => "The model (without LLM_BASE_URL the bot shows what it collected)",
            Self::Context => "Caps of the collected context",
            Self::Window => "Window of recent messages in memory",
            Self::Turns => "Turns and answers",
            Self::Operation => "Telemetry, log and state",
            Self::Memory => "Memory and history",
        }
    }
}

/// The meaning of the mark at the end of a row.
macro_rules! shown {
    (secret) => {
        Shown::Never
    };
    (address) => {
        Shown::WithoutPassword
    };
    (server) => {
        Shown::WithoutLogin
    };
    () => {
        Shown::Plainly
    };
}

/// Makes a constant per row, and the list of all rows in order.
macro_rules! variables {
    ($(#[doc = $about:literal] $name:ident = $default:literal, $unit:literal, $group:ident $(, $mark:ident)?;)+) => {
        $(
            #[doc = $about]
            pub(super) const $name: Variable = Variable {
                name: stringify!($name),
                group: Group::$group,
                default: $default,
                unit: $unit,
                about: $about.trim_ascii(),
                shown: shown!($($mark)?),
            };
        )+
        /// Every variable that Clew reads, by group.
        pub static VARIABLES: &[Variable] = &[$($name),+];
    };
}

variables! {
    /// The bot's token from Discord's developer portal.
    DISCORD_TOKEN = "", "text", Discord, secret;
    /// Another base for REST calls, for instance a proxy; Discord itself if empty.
    DISCORD_API_URL = "", "http://host:port", Discord, server;
    /// Another gateway; if empty, what the REST base says.
    DISCORD_GATEWAY_URL = "", "ws://host:port", Discord, server;
    /// Whether the message content intent is requested; with off only mentions, replies with ping and direct messages have text.
    DISCORD_MESSAGE_CONTENT = "required", "required|off", Discord;
    /// Requests the members intent, which keeps names and roles of members fresher.
    DISCORD_MEMBERS_INTENT = "false", "true|false", Discord;
    /// Registers the commands in this server only, where they appear at once; everywhere if empty.
    DISCORD_COMMAND_GUILD = "", "server id", Discord;

    /// Servers in which the bot answers; a star for all.
    ALLOWED_GUILDS = "*", "server ids, comma separated", Access;
    /// Servers in which it does not answer; denied wins over allowed, here and below.
    DENIED_GUILDS = "", "server ids, comma separated", Access;
    /// Channels in which the bot answers; a thread counts as its channel.
    ALLOWED_CHANNELS = "*", "channel ids, comma separated", Access;
    /// Channels in which it does not answer; a thread counts as its channel.
    DENIED_CHANNELS = "", "channel ids, comma separated", Access;
    /// Users who are answered; with `ALLOWED_ROLES` set as well, one of both suffices.
    ALLOWED_USERS = "*", "user ids, comma separated", Access;
    /// Users who are not answered.
    DENIED_USERS = "", "user ids, comma separated", Access;
    /// Roles whose members are answered; nobody has a role in a direct message.
    ALLOWED_ROLES = "*", "role ids, comma separated", Access;
    /// Roles whose members are not answered.
    DENIED_ROLES = "", "role ids, comma separated", Access;
    /// Whether direct messages are answered.
    DIRECT_MESSAGES = "true", "true|false", Access;

    /// With true only mentions count in servers: no replies without ping, no `AUTO_REPLY_CHANNELS`.
    MENTION_ONLY = "false", "true|false", Triggers;
    /// Channels in which every human message is answered.
    AUTO_REPLY_CHANNELS = "", "channel ids, comma separated", Triggers;
    /// Whether another bot's inline mention is answered.
    REPLY_TO_BOTS = "false", "true|false", Triggers;
    /// Bot turns in a row, in one channel and in one server, before a person who may use the bot has to speak.
    MAX_BOT_TURNS = "3", "turns", Triggers;
    /// In a thread the answer replies to the newest human message or to the trigger.
    THREAD_REPLY_TARGET = "newest", "newest|trigger", Triggers;

    /// An OpenAI-compatible API; a bare host gets /v1 appended.
    LLM_BASE_URL = "", "http(s)://host/v1", Model, server;
    /// The API's key, if it asks for one.
    LLM_API_KEY = "", "text", Model, secret;
    /// The model's name, required with `LLM_BASE_URL`.
    LLM_MODEL = "", "text", Model;
    /// Longest wait for the next part of an answer.
    LLM_TIMEOUT_S = "60", "seconds", Model;
    /// What the model takes, question and answer together: longer prompts are cut beforehand; if empty, once the server refuses one.
    LLM_CONTEXT_TOKENS = "", "tokens", Model;
    /// Longest answer.
    LLM_MAX_OUTPUT_TOKENS = "1024", "tokens", Model;
    /// Sampling temperature from 0 to 2; the model's own if empty.
    LLM_TEMPERATURE = "", "number", Model;
    /// Who the bot is and how it answers; a short text of our own if empty.
    SYSTEM_PROMPT = "", "text", Model;
    /// A UTF-8 file with the same, instead of `SYSTEM_PROMPT`.
    SYSTEM_PROMPT_FILE = "", "path", Model;

    /// Messages of a thread right before the answered one that are always shown, at most 40.
    THREAD_CONTEXT_TAIL_COUNT = "5", "messages", Context;
    /// Most messages in a context block.
    MEM_MAX_MSGS = "40", "messages", Context;
    /// Longest context block; messages are shortened to keep it.
    MEM_MAX_CHARS = "8000", "characters", Context;
    /// Longest single message in a block.
    MEM_MAX_MSG_CHARS = "2000", "characters", Context;
    /// How much older than the tail a thread's history may be, or than a message pointed at that is older still; 0 for no limit.
    MEM_MAX_AGE_MIN = "240", "minutes", Context;
    /// How much older than the message replied to the links of a chain may be; `MEM_MAX_AGE_MIN` counts where it alone is set; 0 for no limit.
    MEM_CHAIN_MAX_AGE_MIN = "10080", "minutes", Context;
    /// One deadline for everything that is fetched for a block.
    MEM_FETCH_TIMEOUT_S = "5", "seconds, fractions allowed", Context;
    /// Most REST calls for one block.
    MEM_MAX_FETCHES = "8", "calls", Context;
    /// Largest text file that is shown inline; 0 for none.
    MEM_MAX_FILE_BYTES = "20000", "bytes", Context;
    /// Whether an app's or webhook's message is shown when the asker points at it.
    MEM_INCLUDE_POINTED_APPS = "true", "true|false", Context;
    /// Name of the context subsystem in the telemetry.
    MEM_LOG_SUBSYS = "mem.ctx", "name", Context;

    /// Messages kept in memory per channel; 0 for none.
    WINDOW_PER_CHANNEL = "200", "messages", Window;
    /// Memory for all kept messages together.
    WINDOW_MAX_MB = "8", "MiB", Window;

    /// Triggers that wait behind a running turn of the same conversation.
    TURN_QUEUE_PER_CHANNEL = "3", "turns", Turns;
    /// Turns at the same time; while more wait, servers have equal shares, and the people within one.
    MAX_CONCURRENT_TURNS = "32", "turns", Turns;
    /// Turns of one user in a minute, those asked again after an edit too; 0 for no limit.
    USER_TURNS_PER_MIN = "10", "turns", Turns;
    /// Messages of one answer; the rest comes as an attached file.
    ANSWER_MAX_MESSAGES = "4", "messages", Turns;
    /// Whether links in answers show previews.
    LINK_PREVIEWS = "false", "true|false", Turns;
    /// How long running turns may take to finish at the end.
    SHUTDOWN_TIMEOUT_S = "20", "seconds", Turns;

    /// Where the JSONL events go, a file a day.
    TELEMETRY_DIR = "var/telemetry", "path", Operation;
    /// How long those files are kept; 0 for ever.
    TELEMETRY_KEEP_DAYS = "30", "days", Operation;
    /// With keyed users and direct conversations stand there under pseudonyms whose key is in `STATE_DIR`.
    TELEMETRY_IDS = "plain", "plain or keyed", Operation;
    /// Where the bot keeps what it needs after a restart.
    STATE_DIR = "var/state", "path", Operation;
    /// What the readable log shows: off, error, warn, info, debug or trace.
    LOG_LEVEL = "info", "level", Operation;
    /// Raises Clew's own log level to debug; message text is never logged.
    DEBUG = "false", "true|false", Operation;

    /// Where conversations, facts and opt-outs are kept; a folder of files keeps no snapshots or tool calls.
    CONTEXT_STORE = "sqlite:var/clew.db", "sqlite:PATH|postgres://user:password@host/database|files:DIR", Memory, address;
    /// Who shares a conversation: a member in one channel, everybody in a thread, or one user everywhere; files know `member` only.
    CONTEXT_SCOPE = "member", "member|thread|user", Memory;
    /// How far back stored messages go into a prompt; `/settings` sets another for a server.
    CONTEXT_ROLLING_WINDOW_S = "86400", "seconds", Memory;
    /// Most stored messages that go into a prompt, the newest; 0 for none.
    MAX_CONTEXT_MESSAGES = "30", "messages", Memory;
    /// Longest stored conversation in a prompt; one message is shortened to a quarter of it.
    MAX_CONTEXT_CHARS = "16000", "characters", Memory;
    /// Of the messages stored before the start, at most so many go into a prompt, up to 100; 0 for none.
    LOAD_PAST_CONVERSATIONS = "30", "messages", Memory;
    /// Writes no conversation, snapshot or log of direct messages to a disk; facts and opt-outs still are.
    IN_MEMORY_CONTEXT_ONLY = "false", "true|false", Memory;
    /// How long conversations and facts are kept; 0 for ever.
    RETENTION_DAYS = "0", "days", Memory;
    /// How long after the bot has left a server what is stored of it goes; 0 for at once.
    GUILD_RETENTION_DAYS = "30", "days", Memory;
    /// A folder per agent with its `agent.json` and `docs/*.md`.
    AGENTS_DIR = "var/agents", "path", Memory;
    /// Whether a built-in agent answers where no other one does.
    DEFAULT_AGENT = "on", "on|off", Memory;
    /// With model the model is asked after an answer for lasting facts about the asker.
    MEMORY_LEARN = "off", "off|model", Memory;
    /// Remembered facts a user; the least useful one makes room.
    MAX_USER_MEMORY = "5", "facts", Memory;
    /// Remembered facts a server; the least useful one makes room.
    MAX_SERVER_MEMORY = "100", "facts", Memory;
    /// How often learnt facts are saved; those that a person asked for are saved at once.
    MEMORY_SAVE_INTERVAL = "30", "seconds", Memory;
    /// Where facts of users are kept with `CONTEXT_STORE=files:`.
    USER_PROFILE_DIR = "var/data/users", "path", Memory;
    /// Where facts of servers are kept with `CONTEXT_STORE=files:`.
    SERVER_PROFILE_DIR = "var/data/servers", "path", Memory;
    /// Where transcripts of direct messages are written; none are if empty.
    DM_LOGS_DIR = "", "path", Memory;
    /// A transcript that has grown to this size is set aside for a new one; no limit if empty.
    MAX_CONVERSATION_LOG_SIZE = "", "bytes", Memory;
    /// Accepted for older settings and never used: Clew does not speak.
    TTS_PREFS_FILE = "", "path", Memory;
}
