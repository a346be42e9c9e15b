-- Texts of people apart from everything that is looked up by.
--
-- A text is written behind all others of its table and never moves: b-trees leave copies where
-- rows move. It goes by being overwritten at equal length, an edit by a new text behind the last.
-- `sqlite/texts.rs` is the only place that writes to the three tables of texts.
--
-- Tables named *_rows have no text of people, so that their rows may come and go.

CREATE TABLE message_texts (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    author_name TEXT,
    tool_calls TEXT,
    tool_call_id TEXT,
    parts TEXT
) STRICT;

-- `gone`: its text is overwritten, and it is in no answer; the row itself is swept later.
CREATE TABLE message_rows (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text_id INTEGER NOT NULL,
    gone INTEGER NOT NULL,
    agent_name TEXT NOT NULL,
    thread_id INTEGER NOT NULL,
    role TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    discord_message_id INTEGER,
    guild_id INTEGER,
    owner_id INTEGER NOT NULL,
    scope TEXT NOT NULL,
    turn_id INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    position INTEGER NOT NULL,
    target_id INTEGER,
    restored_from TEXT
) STRICT;

INSERT INTO message_texts (id, content, author_name, tool_calls, tool_call_id, parts)
    SELECT id, content, author_name, tool_calls, tool_call_id, parts FROM messages ORDER BY id;
INSERT INTO message_rows (id, text_id, gone, agent_name, thread_id, role, timestamp,
        discord_message_id, guild_id, owner_id, scope, turn_id, ordinal, position, target_id,
        restored_from)
    SELECT id, id, 0, agent_name, thread_id, role, timestamp, discord_message_id, guild_id,
        owner_id, scope, turn_id, ordinal, position, target_id, restored_from
    FROM messages ORDER BY id;

DROP INDEX message_ids_row;
ALTER TABLE message_ids RENAME TO message_ids_1;
CREATE TABLE message_ids (
    channel_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    row_id INTEGER NOT NULL REFERENCES message_rows(id) ON DELETE CASCADE,
    PRIMARY KEY (channel_id, message_id, row_id)
) STRICT, WITHOUT ROWID;
INSERT INTO message_ids SELECT channel_id, message_id, row_id FROM message_ids_1;
DROP TABLE message_ids_1;
DROP TABLE messages;
CREATE INDEX message_ids_row ON message_ids(row_id);
CREATE INDEX idx_messages_agent_time ON message_rows(agent_name, timestamp);
CREATE INDEX messages_conversation
    ON message_rows(scope, agent_name, ordinal, turn_id, position, timestamp);
CREATE INDEX messages_turn ON message_rows(turn_id);
CREATE INDEX messages_owner ON message_rows(owner_id, agent_name, guild_id, timestamp);
CREATE INDEX messages_channel ON message_rows(thread_id);
CREATE INDEX messages_guild ON message_rows(guild_id, owner_id);
CREATE INDEX messages_gone ON message_rows(id) WHERE gone;

-- The table as it is read.
CREATE VIEW messages AS
    SELECT r.id, r.agent_name, r.thread_id, r.role, t.content, t.tool_calls, t.tool_call_id,
        r.timestamp, r.discord_message_id, r.guild_id, r.owner_id, r.scope, r.turn_id, r.ordinal,
        r.position, t.author_name, t.parts, r.target_id, r.restored_from
    FROM message_rows r CROSS JOIN message_texts t ON t.id = r.text_id
    WHERE NOT r.gone;

DROP TRIGGER facts_added;
DROP TRIGGER facts_gone;
DROP TRIGGER facts_changed;
DROP TABLE facts_fts;
CREATE TABLE fact_texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
ALTER TABLE facts RENAME TO fact_rows;
ALTER TABLE fact_rows ADD COLUMN text_id INTEGER NOT NULL DEFAULT 0;
INSERT INTO fact_texts (id, text) SELECT row_number() OVER (ORDER BY id), text FROM fact_rows;
UPDATE fact_rows SET text_id = numbered.text_id
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS text_id FROM fact_rows) AS numbered
    WHERE numbered.id = fact_rows.id;
ALTER TABLE fact_rows DROP COLUMN text;
CREATE VIEW facts AS
    SELECT r.id, r.subject, r.subject_id, t.text, r.origin, r.origin_guild, r.by_user, r.at,
        r.link_channel, r.link_message, r.pinned, r.seen, r.last_used
    FROM fact_rows r CROSS JOIN fact_texts t ON t.id = r.text_id;

CREATE TABLE snapshot_texts (
    id INTEGER PRIMARY KEY,
    summary TEXT NOT NULL,
    description TEXT
) STRICT;
ALTER TABLE snapshots RENAME TO snapshot_rows;
ALTER TABLE snapshot_rows ADD COLUMN text_id INTEGER NOT NULL DEFAULT 0;
INSERT INTO snapshot_texts (id, summary, description)
    SELECT seq, summary, description FROM snapshot_rows ORDER BY seq;
UPDATE snapshot_rows SET text_id = seq;
ALTER TABLE snapshot_rows DROP COLUMN summary;
ALTER TABLE snapshot_rows DROP COLUMN description;
CREATE VIEW snapshots AS
    SELECT r.seq, r.id, r.agent_name, r.owner_id, r.guild_id, r.timestamp, t.description,
        t.summary, r.message_count, r.window_start, r.window_end, r.oldest, r.ready
    FROM snapshot_rows r CROSS JOIN snapshot_texts t ON t.id = r.text_id;

-- One row. `blank_bytes`: overwritten texts that nothing points to, about. `rewrite_owed`: texts
-- have moved, so the file has to be written again before anything that goes counts as gone.
CREATE TABLE upkeep (blank_bytes INTEGER NOT NULL, rewrite_owed INTEGER NOT NULL) STRICT;
INSERT INTO upkeep (blank_bytes, rewrite_owed)
    SELECT 0, EXISTS (SELECT 1 FROM message_texts) OR EXISTS (SELECT 1 FROM fact_texts)
        OR EXISTS (SELECT 1 FROM snapshot_texts);

-- At most one row: the application that everything in here is of.
CREATE TABLE owner (application_id INTEGER NOT NULL) STRICT;
