//! The table of all variables: name, group, default, unit, description, how it is shown.

use clew_store::model::StoreAddress;

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

/// Variables that take, while they are not set, the value of another that is.
pub(super) const FOLLOWS: [(&Variable, &Variable); 1] =
    [(&MEM_CHAIN_MAX_AGE_MIN, &MEM_MAX_AGE_MIN)];

impl Variable {
    /// The settings that decide what is collected for a question.
    pub fn caps() -> impl Iterator<Item = &'static Self> {
        let is_cap = |one: &&Self| matches!(one.group, Group::Context | Group::Window);
        VARIABLES.iter().filter(is_cap)
    }
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
    /// A list of servers, each with a model's name, unless one may carry a login or a key.
    EachWithoutLogin,
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
    /// What models may call.
    Tools,
    /// Telemetry, log and state.
    Operation,
    /// Memory and history.
    Memory,
}

/// How a value is shown, from the word at the end of a row, if there is one.
macro_rules! shown {
    ($shown:ident) => {
        Shown::$shown
    };
    () => {
        Shown::Plainly
    };
}

/// Makes a constant per row, and the list of all rows in order.
macro_rules! variables {
    ($(#[doc = $about:literal] $name:ident = $default:literal, $unit:expr, $group:ident $(, $shown:ident)?;)+) => {
        $(
            #[doc = $about]
            pub(super) const $name: Variable = Variable {
                name: stringify!($name),
                group: Group::$group,
                default: $default,
                unit: $unit,
                about: $about.trim_ascii(),
                shown: shown!($($shown)?),
            };
        )+
        /// Every variable that Clew reads, by group.
        pub static VARIABLES: &[Variable] = &[$($name),+];
    };
}

variables! {
    /// The bot's token from Discord's developer portal.
    DISCORD_TOKEN = "", "text", Discord, Never;
    /// Another base URL for REST calls, for instance a proxy's; Discord's own if empty.
    DISCORD_API_URL = "", "http://host:port", Discord, WithoutLogin;
    /// Another gateway; if empty, the one that the REST API names.
    DISCORD_GATEWAY_URL = "", "ws://host:port", Discord, WithoutLogin;
    /// Whether to request the message content intent; with off, only mentions, replies with a ping and direct messages have text.
    DISCORD_MESSAGE_CONTENT = "required", "required|off", Discord;
    /// Requests the members intent, which keeps members' names and roles up to date.
    DISCORD_MEMBERS_INTENT = "false", "true|false", Discord;

    /// Where the bot answers, and whom; of a kind that is not named everything is allowed, a thread counts as its channel, and of users and roles either is enough.
    ALLOWED = "", "guild:ID, channel:ID, user:ID or role:ID, comma separated", Access;
    /// Where it does not answer, and whom; denied wins over allowed; `direct` stands for direct messages.
    DENIED = "", "direct, guild:ID, channel:ID, user:ID or role:ID, comma separated", Access;
    /// Whether in servers only mentions count: no replies without a ping, no `AUTO_REPLY_CHANNELS`.
    MENTION_ONLY = "false", "true|false", Triggers;
    /// Channels in which every person's message is answered.
    AUTO_REPLY_CHANNELS = "", "channel ids, comma separated", Triggers;
    /// Whether a mention by another bot, in its text, is answered.
    REPLY_TO_BOTS = "false", "true|false", Triggers;
    /// Apps through which people write, such as proxies and bridges: what their webhooks post counts as people's words.
    PROXY_APPS = "", "pluralkit, tupperbox, application or webhook ids, comma separated", Triggers;
    /// What an answer in a thread replies to: the newest message of a person, or the trigger.
    THREAD_REPLY_TARGET = "newest", "newest|trigger", Triggers;

    /// The base URL of an OpenAI-compatible API; /v1 is appended to a bare host.
    LLM_BASE_URL = "", "http(s)://host/v1", Model, WithoutLogin;
    /// The API's key, if it needs one.
    LLM_API_KEY = "", "text", Model, Never;
    /// The model's name, required with `LLM_BASE_URL`.
    LLM_MODEL = "", "text", Model;
    /// Further servers, at most three, asked in this order while those before are unreachable, refuse, are busy or silent.
    LLM_FALLBACKS = "", "http(s)://host/v1 model [key], comma separated", Model, EachWithoutLogin;
    /// The longest wait for the next part of an answer.
    LLM_TIMEOUT_S = "60", "seconds", Model;
    /// The model's context length, prompt and answer together: longer prompts are cut beforehand; if empty, only after the server refuses one.
    LLM_CONTEXT_TOKENS = "", "tokens", Model;
    /// The longest answer.
    LLM_MAX_OUTPUT_TOKENS = "1024", "tokens", Model;
    /// Sampling temperature, from 0 to 2; the model's default if empty.
    LLM_TEMPERATURE = "", "number", Model;
    /// Whether the model is sent images: with auto until it refuses them, then not for an hour; with on always, and a refusal is an error.
    LLM_VISION = "auto", "auto|on|off", Model;
    /// What a million tokens of prompts and of answers cost, for `clew report`; MODEL= before them where a model differs.
    LLM_PRICES = "", "IN/OUT or MODEL=IN/OUT, comma separated", Model;
    /// Who the bot is and how it answers; a short built-in text if empty.
    SYSTEM_PROMPT = "", "text", Model;

    /// How many messages right before the answered one a thread always shows, at most 40.
    THREAD_CONTEXT_TAIL_COUNT = "5", "messages", Context;
    /// The most messages in a context block.
    MEM_MAX_MSGS = "40", "messages", Context;
    /// The longest context block; messages are shortened to fit.
    MEM_MAX_CHARS = "8000", "characters", Context;
    /// The longest single message in a block.
    MEM_MAX_MSG_CHARS = "2000", "characters", Context;
    /// How much older than the tail, or than an even older message pointed at, a thread's history may be; 0 for no limit.
    MEM_MAX_AGE_MIN = "240", "minutes", Context;
    /// How much older than the message replied to the links of a reply chain may be; `MEM_MAX_AGE_MIN` applies if only that is set; 0 for no limit.
    MEM_CHAIN_MAX_AGE_MIN = "10080", "minutes", Context;
    /// One deadline for everything fetched for a block.
    MEM_FETCH_TIMEOUT_S = "5", "seconds, fractions allowed", Context;
    /// The most REST calls for one block.
    MEM_MAX_FETCHES = "8", "calls", Context;
    /// The largest text file shown inline; 0 for none.
    MEM_MAX_FILE_BYTES = "20000", "bytes", Context;
    /// Whether a message of an app or webhook is shown when the asker points at it.
    MEM_INCLUDE_POINTED_APPS = "true", "true|false", Context;
    /// How many messages before and after a linked message are shown with it, each at most 10; `/settings` changes it for a server.
    LINK_CONTEXT = "3,1", "before,after", Context;
    /// What a mention with text outside threads gets of its channel: with recent its last messages, with conversation those of the last 200 that belong to the asker's conversation, which a reply gets beside its chain; `/settings` changes it for a server or a channel.
    LONE_CONTEXT = "off", "off|recent|conversation", Context;
    /// The most of those messages.
    LONE_MAX_CHARS = "2000", "characters", Context;
    /// What is shown of the channel itself: its topic (of a thread its parent's, of a forum the guidelines), and up to 5 pinned messages, in a quarter of the block; `/settings` changes it for a server.
    PLACE_CONTEXT = "off", "off|topic|topic,pins", Context;
    /// Which messages of a thread stay where the caps leave no room for all: the newest ones, or with conversation those that most surely belong to the asker's conversation.
    THREAD_SELECT = "newest", "newest|conversation", Context;
    /// The context subsystem's name in the telemetry.
    MEM_LOG_SUBSYS = "mem.ctx", "name", Context;

    /// Messages kept in memory per channel; 0 for none.
    WINDOW_PER_CHANNEL = "200", "messages", Window;
    /// Memory for all kept messages together.
    WINDOW_MAX_MB = "8", "MiB", Window;

    /// How many triggers may wait behind a running turn of the same conversation.
    TURN_QUEUE_PER_CHANNEL = "3", "turns", Turns;
    /// How many turns may run at once, at most half of them in one channel; while more wait, servers get equal shares, and so do the people and channels within a server.
    MAX_CONCURRENT_TURNS = "32", "turns", Turns;
    /// Turns per user and minute, restarts after an edit included; 0 for no limit.
    USER_TURNS_PER_MIN = "10", "turns", Turns;
    /// The most tokens of the model, prompts and answers, that a user, and all users of a server together, may use per day (UTC), 0 for no limit; direct messages count for the user alone.
    TOKENS_PER_DAY = "0,0", "user,server", Turns;
    /// The most tokens of the model that everybody together may use per day (UTC), 0 for no limit.
    TOKENS_TOTAL_DAY = "0", "tokens", Turns;
    /// How many agent runs (`/agent run`) may be under way at once, in all; 0 for none.
    MAX_AGENT_RUNS = "4", "runs", Turns;
    /// The tokens of one, prompts and answers: when they run low, the model is asked for its answer without tools.
    AGENT_RUN_MAX_TOKENS = "200000", "tokens", Turns;
    /// The most messages of one answer; the rest is attached as a file.
    ANSWER_MAX_MESSAGES = "4", "messages", Turns;
    /// Whether a button under answers shows what they were made from, as `/context why` does.
    RECEIPT_BUTTON = "false", "true|false", Turns;
    /// How long running turns may take to finish at shutdown.
    SHUTDOWN_TIMEOUT_S = "20", "seconds", Turns;
    /// How old a question may be that was asked while the bot was down or cut off, and is answered then; 0 for none.
    CATCH_UP_MIN = "15", "minutes", Turns;
    /// The most pages of messages that are read to find them.
    CATCH_UP_MAX_FETCHES = "200", "requests", Turns;

    /// How often the model may call tools in one turn; then it is asked once more without them. With 0 it is offered none; an agent's `tools` names those it gets.
    TOOL_MAX_ROUNDS = "6", "rounds", Tools;
    /// Where the tool `search_messages` looks: Discord's search of what everybody who reads the answer may read, only the window of recent messages, or off.
    SEARCH = "discord", "discord|window|off", Tools;
    /// A file of MCP servers whose tools models may call (see docs/mcp.md); none if empty.
    MCP_CONFIG = "", "path", Tools;
    /// Roles whose members may allow calls of those tools that need it.
    APPROVER_ROLES = "", "role ids", Tools;
    /// Where members' own programs read what they may read, as MCP over HTTP (see docs/mcp.md), such as 127.0.0.1:9470; `socket`: only for `clew mcp serve`, which an address lets in, too; nowhere if empty.
    MCP_LISTEN = "", "IP:port|socket", Tools;
    /// Where what tools gave is kept, one file each; with `IN_MEMORY_CONTEXT_ONLY` in memory instead.
    TOOL_OUTPUT_DIR = "var/tool_outputs", "path", Tools;
    /// Whether the next process finds those files again; otherwise they go at the end, at the latest at the next start.
    TOOL_OUTPUT_RESUME = "false", "true|false", Tools;

    /// Where the events are written as JSON Lines, one file a day.
    TELEMETRY_DIR = "var/telemetry", "path", Operation;
    /// How long those files are kept; 0 for ever.
    TELEMETRY_KEEP_DAYS = "30", "days", Operation;
    /// With keyed, users and direct conversations appear there under pseudonyms, whose key is in `STATE_DIR`.
    TELEMETRY_IDS = "plain", "plain or keyed", Operation;
    /// Where metrics for Prometheus and health checks are served, such as 127.0.0.1:9464; nowhere if empty.
    METRICS_ADDR = "", "IP:port", Operation;
    /// Where the operator is told of troubles, as JSON: a Discord webhook or another URL; nowhere if empty.
    ALERT_WEBHOOK = "", "https://host/path", Operation, Never;
    /// Where traces of turns go as OTLP over HTTP, in builds with the feature otel; nowhere if empty.
    OTEL_EXPORTER_OTLP_ENDPOINT = "", "http://host:port", Operation, WithoutLogin;
    /// Headers for that server, such as its key: name=value pairs separated by commas.
    OTEL_EXPORTER_OTLP_HEADERS = "", "name=value,...", Operation, Never;
    /// Where the bot keeps what it needs after a restart.
    STATE_DIR = "var/state", "path", Operation;
    /// Whether other processes with the same PostgreSQL stand by, and one goes on when this one ends.
    CLUSTER = "off", "on|off", Operation;
    /// How its lines are written: for people, or as JSON objects for collectors of logs.
    LOG_FORMAT = "text", "text or json", Operation;
    /// Raises Clew's own log level to debug; message text is never logged.
    DEBUG = "false", "true|false", Operation;

    /// Where conversations, facts and opt-outs are kept; a folder of files keeps no snapshots or tool calls.
    CONTEXT_STORE = "sqlite:var/clew.db", StoreAddress::CHOICE, Memory, WithoutPassword;
    /// Whose a conversation is: one member's in one channel, everybody's in a thread, or one user's everywhere; files support `member` only.
    CONTEXT_SCOPE = "member", "member|thread|user", Memory;
    /// How far back the stored history in prompts goes; `/settings` changes it for a server.
    CONTEXT_ROLLING_WINDOW_S = "86400", "seconds", Memory;
    /// The most messages of stored history in a prompt, the newest; 0 for none, and nothing is recalled.
    MAX_CONTEXT_MESSAGES = "30", "messages", Memory;
    /// The longest stored conversation in a prompt; a single message is shortened to a quarter of it.
    MAX_CONTEXT_CHARS = "16000", "characters", Memory;
    /// How many of the messages stored before the start may go into that history, at most 100; 0 for none, and none is recalled.
    LOAD_PAST_CONVERSATIONS = "30", "messages", Memory;
    /// How many older exchanges with the bot that match the question are shown as well, at most 20; 0 for none.
    RECALL_MESSAGES = "4", "exchanges", Memory;
    /// Writes no conversation, snapshot or log of direct messages to disk; facts and opt-outs are still written.
    IN_MEMORY_CONTEXT_ONLY = "false", "true|false", Memory;
    /// How long conversations and facts are kept; 0 for ever.
    RETENTION_DAYS = "0", "days", Memory;
    /// How long it is kept, without any text, what each answer was made from; 0 to keep nothing.
    RECEIPT_DAYS = "30", "days", Memory;
    /// How long after the bot has left a server its stored data is deleted; 0 for at once.
    GUILD_RETENTION_DAYS = "30", "days", Memory;
    /// A folder with one folder per agent: its `agent.json` and `docs/*.md`.
    AGENTS_DIR = "var/agents", "path", Memory;
    /// Whether the built-in agent answers where no other agent does.
    DEFAULT_AGENT = "on", "on|off", Memory;
    /// With model, the model is asked after each answer for lasting facts about the asker.
    MEMORY_LEARN = "off", "off|model", Memory;
    /// The most facts remembered per user; the least useful one makes room.
    MAX_USER_MEMORY = "5", "facts", Memory;
    /// The most facts remembered per server; the least useful one makes room.
    MAX_SERVER_MEMORY = "100", "facts", Memory;
    /// How often learnt facts are saved; facts that a person asked to remember are saved at once.
    MEMORY_SAVE_INTERVAL = "30", "seconds", Memory;
    /// Where facts about users are kept with `CONTEXT_STORE=files:`.
    USER_PROFILE_DIR = "var/data/users", "path", Memory;
    /// Where facts about servers are kept with `CONTEXT_STORE=files:`.
    SERVER_PROFILE_DIR = "var/data/servers", "path", Memory;
    /// Where direct messages are logged, without answers made from messages elsewhere.
    DM_LOGS_DIR = "", "path", Memory;
    /// A transcript that reaches this size is rotated; no limit if empty.
    MAX_CONVERSATION_LOG_SIZE = "", "bytes", Memory;
    /// Accepted from older configurations and never used: Clew does not speak.
    TTS_PREFS_FILE = "", "path", Memory;
}
