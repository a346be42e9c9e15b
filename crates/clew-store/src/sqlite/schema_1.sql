-- The `messages` table and its index, and all that stands
-- beside it. Ids of Discord are integers, times are texts of RFC 3339 in UTC
-- with milliseconds, so that they sort as texts.
--
-- - `conversations` has the last ordinal given, and whether a turn was
--   replaced behind the newest one, after which times no longer grow with
--   the ordinals.
-- - A turn is looked up by `messages_turn`, named in the statements: left to
--   itself `SQLite` takes the index of the conversation, which is long.
-- - `message_ids` has every Discord message that a row holds, further parts
--   included; `snapshot_messages` the same for snapshots, 0 for rows without.
-- - `markers` has 0 for no server and for everybody.
-- - `facts_fts` has the servers' facts only; `guild` is searched as a word,
--   so that another server's facts are not even ranked.

CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_name TEXT NOT NULL,
    thread_id INTEGER NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    tool_calls TEXT,
    tool_call_id TEXT,
    timestamp TEXT NOT NULL,
    discord_message_id INTEGER,
    guild_id INTEGER,
    owner_id INTEGER NOT NULL,
    scope TEXT NOT NULL,
    turn_id INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    position INTEGER NOT NULL,
    author_name TEXT,
    parts TEXT,
    target_id INTEGER,
    restored_from TEXT
) STRICT;
CREATE INDEX idx_messages_agent_time ON messages(agent_name, timestamp);
CREATE INDEX messages_conversation
    ON messages(scope, agent_name, ordinal, turn_id, position, timestamp);
CREATE INDEX messages_turn ON messages(turn_id);
CREATE INDEX messages_owner ON messages(owner_id, agent_name, guild_id, timestamp);
CREATE INDEX messages_channel ON messages(thread_id);
CREATE INDEX messages_guild ON messages(guild_id, owner_id);

CREATE TABLE message_ids (
    channel_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    row_id INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
    PRIMARY KEY (channel_id, message_id, row_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_ids_row ON message_ids(row_id);

CREATE TABLE conversations (
    scope TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    last_ordinal INTEGER NOT NULL,
    disordered INTEGER NOT NULL,
    PRIMARY KEY (scope, agent_name)
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (name TEXT PRIMARY KEY, created_at TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE markers (
    agent_name TEXT NOT NULL,
    guild_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    cleared_at TEXT NOT NULL,
    PRIMARY KEY (agent_name, guild_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    agent_name TEXT NOT NULL,
    owner_id INTEGER NOT NULL,
    guild_id INTEGER,
    timestamp TEXT NOT NULL,
    description TEXT,
    summary TEXT NOT NULL,
    message_count INTEGER NOT NULL,
    window_start TEXT NOT NULL,
    window_end TEXT NOT NULL,
    oldest TEXT,
    ready INTEGER NOT NULL
) STRICT;
CREATE INDEX snapshots_owner ON snapshots(owner_id, guild_id, timestamp);

CREATE TABLE snapshot_messages (
    channel_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    snapshot INTEGER NOT NULL REFERENCES snapshots(seq) ON DELETE CASCADE,
    guild_id INTEGER,
    PRIMARY KEY (channel_id, message_id, snapshot)
) STRICT, WITHOUT ROWID;
CREATE INDEX snapshot_messages_snapshot ON snapshot_messages(snapshot);

CREATE TABLE facts (
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    subject_id INTEGER NOT NULL,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    origin_guild INTEGER,
    by_user INTEGER NOT NULL,
    at TEXT NOT NULL,
    link_channel INTEGER,
    link_message INTEGER,
    pinned INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    last_used TEXT NOT NULL
) STRICT;
CREATE INDEX facts_subject ON facts(subject, subject_id, at);
CREATE INDEX facts_by ON facts(by_user);
CREATE INDEX facts_link ON facts(link_channel, link_message);
CREATE INDEX facts_guild ON facts(origin_guild);

CREATE VIRTUAL TABLE facts_fts USING fts5(
    guild, text, tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO facts_fts(facts_fts, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER facts_added AFTER INSERT ON facts WHEN new.subject = 'server' BEGIN
    INSERT INTO facts_fts(rowid, guild, text) VALUES (new.id, new.subject_id, new.text);
END;
CREATE TRIGGER facts_gone AFTER DELETE ON facts WHEN old.subject = 'server' BEGIN
    DELETE FROM facts_fts WHERE rowid = old.id;
END;
CREATE TRIGGER facts_changed AFTER UPDATE ON facts
WHEN old.text <> new.text OR old.subject <> new.subject OR old.subject_id <> new.subject_id BEGIN
    DELETE FROM facts_fts WHERE rowid = old.id;
    INSERT INTO facts_fts(rowid, guild, text)
        SELECT new.id, new.subject_id, new.text WHERE new.subject = 'server';
END;

CREATE TABLE opt_outs (user_id INTEGER PRIMARY KEY, since TEXT NOT NULL) STRICT;
CREATE TABLE guild_settings (guild_id INTEGER PRIMARY KEY, settings TEXT NOT NULL) STRICT;
CREATE TABLE departures (guild_id INTEGER PRIMARY KEY, at TEXT NOT NULL) STRICT;
