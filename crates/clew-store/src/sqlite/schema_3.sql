-- What rows of turns and snapshots were made from: ids only, no text.
--
-- `message_rows.sources` is what a row is read with, as JSON; null for nearly all. The two tables
-- are what purges find it by.

ALTER TABLE message_rows ADD COLUMN sources TEXT;

DROP VIEW messages;
CREATE VIEW messages AS
    SELECT r.id, r.agent_name, r.thread_id, r.role, t.content, t.tool_calls, t.tool_call_id,
        r.timestamp, r.discord_message_id, r.guild_id, r.owner_id, r.scope, r.turn_id, r.ordinal,
        r.position, t.author_name, t.parts, r.target_id, r.restored_from, r.sources
    FROM message_rows r CROSS JOIN message_texts t ON t.id = r.text_id
    WHERE NOT r.gone;

CREATE TABLE message_sources (
    row_id INTEGER NOT NULL REFERENCES message_rows(id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    guild_id INTEGER,
    channel_id INTEGER NOT NULL,
    message_id INTEGER,
    author_id INTEGER,
    PRIMARY KEY (row_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_sources_message ON message_sources(channel_id, message_id);
CREATE INDEX message_sources_guild ON message_sources(guild_id, author_id);
CREATE INDEX message_sources_author ON message_sources(author_id);

CREATE TABLE snapshot_sources (
    snapshot INTEGER NOT NULL REFERENCES snapshot_rows(seq) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    guild_id INTEGER,
    channel_id INTEGER NOT NULL,
    message_id INTEGER,
    author_id INTEGER,
    PRIMARY KEY (snapshot, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX snapshot_sources_message ON snapshot_sources(channel_id, message_id);
CREATE INDEX snapshot_sources_guild ON snapshot_sources(guild_id, author_id);
CREATE INDEX snapshot_sources_author ON snapshot_sources(author_id);
