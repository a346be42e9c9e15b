-- Columns agent_name to discord_message_id and the first index are those of SQLite;
-- thread_id is the channel or thread. Dead rows hold what people
-- deleted: they are to be cleaned away soon, however large the table is.
CREATE TABLE clew.messages (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent_name TEXT NOT NULL,
    thread_id BIGINT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    tool_calls TEXT,
    tool_call_id TEXT,
    timestamp TIMESTAMPTZ NOT NULL,
    discord_message_id BIGINT,
    scope TEXT NOT NULL,
    turn_id BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    position BIGINT NOT NULL,
    guild_id BIGINT,
    owner_id BIGINT NOT NULL,
    author_name TEXT,
    part_ids BIGINT[] NOT NULL,
    target_id BIGINT,
    restored_from TEXT
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50);
CREATE INDEX idx_messages_agent_time ON clew.messages (agent_name, timestamp);
CREATE INDEX idx_messages_window
    ON clew.messages (scope, agent_name, ordinal, turn_id, position);
CREATE INDEX idx_messages_recent ON clew.messages (scope, agent_name, timestamp);
CREATE INDEX idx_messages_turn ON clew.messages (scope, turn_id);
CREATE INDEX idx_messages_owner ON clew.messages (owner_id, guild_id);
CREATE INDEX idx_messages_guild ON clew.messages (guild_id);
CREATE INDEX idx_messages_channel ON clew.messages (thread_id);
CREATE INDEX idx_messages_time ON clew.messages (timestamp);

ALTER TABLE clew.messages ENABLE ROW LEVEL SECURITY;
ALTER TABLE clew.messages FORCE ROW LEVEL SECURITY;
CREATE POLICY one_conversation ON clew.messages
    USING (scope = current_setting('clew.scope', true)
        OR current_setting('clew.all', true) = 'on')
    WITH CHECK (scope = current_setting('clew.scope', true)
        OR current_setting('clew.all', true) = 'on');

-- Which of Discord's messages a row is made of, further parts included.
CREATE TABLE clew.message_ids (
    channel_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    row_id BIGINT NOT NULL REFERENCES clew.messages ON DELETE CASCADE,
    PRIMARY KEY (channel_id, message_id, row_id)
);
CREATE INDEX idx_message_ids_row ON clew.message_ids (row_id);

-- The last ordinal of a conversation, which outlives its rows.
CREATE TABLE clew.conversations (
    scope TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    last_ordinal BIGINT NOT NULL,
    guild_id BIGINT,
    channel_id BIGINT,
    owner_id BIGINT,
    PRIMARY KEY (scope, agent_name)
);
CREATE INDEX idx_conversations_owner ON clew.conversations (owner_id, guild_id);
CREATE INDEX idx_conversations_guild ON clew.conversations (guild_id);
CREATE INDEX idx_conversations_channel ON clew.conversations (channel_id);

CREATE TABLE clew.agents (
    agent_name TEXT PRIMARY KEY,
    created_at TIMESTAMPTZ NOT NULL
);

-- guild_id 0: direct messages; user_id 0: everybody.
CREATE TABLE clew.markers (
    agent_name TEXT NOT NULL,
    guild_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (agent_name, guild_id, user_id)
);

-- What is known of a saved window; its rows are in a file. oldest and
-- text_bytes are of those rows. Not ready: a kill may have come before the
-- file.
CREATE TABLE clew.snapshots (
    snapshot_id TEXT PRIMARY KEY,
    seq BIGINT GENERATED ALWAYS AS IDENTITY,
    ready BOOLEAN NOT NULL,
    agent_name TEXT NOT NULL,
    owner_id BIGINT NOT NULL,
    guild_id BIGINT,
    timestamp TIMESTAMPTZ NOT NULL,
    description TEXT,
    summary TEXT NOT NULL,
    message_count BIGINT NOT NULL,
    window_start TIMESTAMPTZ NOT NULL,
    window_end TIMESTAMPTZ NOT NULL,
    oldest TIMESTAMPTZ,
    text_bytes BIGINT NOT NULL
);
CREATE INDEX idx_snapshots_owner ON clew.snapshots (owner_id, guild_id, timestamp);
CREATE INDEX idx_snapshots_guild ON clew.snapshots (guild_id);

-- message_id 0: a row that is no message of Discord's.
CREATE TABLE clew.snapshot_messages (
    snapshot_id TEXT NOT NULL REFERENCES clew.snapshots ON DELETE CASCADE,
    guild_id BIGINT,
    channel_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    PRIMARY KEY (channel_id, message_id, snapshot_id)
);
CREATE INDEX idx_snapshot_messages_snapshot ON clew.snapshot_messages (snapshot_id);

CREATE TABLE clew.facts (
    id BIGINT PRIMARY KEY,
    user_id BIGINT,
    server_id BIGINT,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    origin_guild BIGINT,
    by_user BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    link_channel BIGINT,
    link_message BIGINT,
    pinned BOOLEAN NOT NULL,
    seen BIGINT NOT NULL,
    last_used TIMESTAMPTZ NOT NULL,
    words TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', text)) STORED
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50);
CREATE INDEX idx_facts_user ON clew.facts (user_id);
CREATE INDEX idx_facts_server ON clew.facts (server_id);
CREATE INDEX idx_facts_origin ON clew.facts (origin_guild);
CREATE INDEX idx_facts_by ON clew.facts (by_user);
CREATE INDEX idx_facts_link ON clew.facts (link_channel, link_message);
CREATE INDEX idx_facts_words ON clew.facts USING GIN (words);

CREATE TABLE clew.opt_outs (
    user_id BIGINT PRIMARY KEY,
    since TIMESTAMPTZ NOT NULL
);

-- settings: JSON.
CREATE TABLE clew.guild_settings (
    guild_id BIGINT PRIMARY KEY,
    settings TEXT NOT NULL
);

CREATE TABLE clew.departures (
    guild_id BIGINT PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL
);
