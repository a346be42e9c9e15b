-- Fewer b-trees, so that a turn writes half as many pages: rows of turns have four indexes, and what
-- a purge has to find of a receipt is in one table. Triggers keep both tables of ids.

DROP VIEW messages;
DROP VIEW early_messages;
ALTER TABLE message_rows RENAME TO message_rows_5;
ALTER TABLE message_sources RENAME TO message_sources_5;
CREATE TABLE message_rows (
    id INTEGER PRIMARY KEY,
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
    restored_from TEXT,
    sources TEXT,
    early INTEGER NOT NULL DEFAULT 0,
    parts TEXT
) STRICT;
INSERT INTO message_rows
    SELECT r.id, r.text_id, r.gone, r.agent_name, r.thread_id, r.role, r.timestamp,
        r.discord_message_id, r.guild_id, r.owner_id, r.scope, r.turn_id, r.ordinal, r.position,
        r.target_id, r.restored_from, r.sources, r.early, coalesce(r.parts, t.parts)
    FROM message_rows_5 r LEFT JOIN message_texts t ON t.id = r.text_id ORDER BY r.id;

CREATE TABLE message_sources (
    row_id INTEGER NOT NULL REFERENCES message_rows(id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    guild_id INTEGER,
    channel_id INTEGER NOT NULL,
    message_id INTEGER,
    author_id INTEGER,
    PRIMARY KEY (row_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO message_sources SELECT * FROM message_sources_5;
DROP TABLE message_sources_5;
DROP TABLE message_ids;
DROP TABLE message_rows_5;
CREATE INDEX message_sources_message ON message_sources(channel_id, message_id);
CREATE INDEX message_sources_guild ON message_sources(guild_id, author_id);
CREATE INDEX message_sources_author ON message_sources(author_id);

CREATE INDEX idx_messages_agent_time ON message_rows(agent_name, timestamp);
CREATE INDEX messages_conversation
    ON message_rows(scope, agent_name, ordinal, turn_id, position, timestamp);
CREATE INDEX messages_turn ON message_rows(early, turn_id);
CREATE INDEX messages_owner ON message_rows(guild_id, owner_id, agent_name, timestamp);
CREATE INDEX messages_gone ON message_rows(id) WHERE gone;

CREATE VIEW messages AS
    SELECT r.id, r.agent_name, r.thread_id, r.role, t.content, t.tool_calls, t.tool_call_id,
        r.timestamp, r.discord_message_id, r.guild_id, r.owner_id, r.scope, r.turn_id, r.ordinal,
        r.position, t.author_name, r.parts, r.target_id, r.restored_from, r.sources, r.early
    FROM message_rows r CROSS JOIN message_texts t ON t.id = r.text_id
    WHERE NOT r.gone AND NOT r.early;
CREATE VIEW early_messages AS
    SELECT r.id, r.agent_name, r.thread_id, r.role, t.content, t.tool_calls, t.tool_call_id,
        r.timestamp, r.discord_message_id, r.guild_id, r.owner_id, r.scope, r.turn_id, r.ordinal,
        r.position, t.author_name, r.parts, r.target_id, r.restored_from, r.sources, r.early
    FROM message_rows r CROSS JOIN message_texts t ON t.id = r.text_id
    WHERE NOT r.gone AND r.early = 1;

-- The servers that rows are of, found by stepping along the index.
CREATE VIEW message_guilds AS
    WITH RECURSIVE each(id) AS (
        SELECT min(guild_id) FROM message_rows
        UNION ALL
        SELECT (SELECT min(guild_id) FROM message_rows WHERE guild_id > each.id)
            FROM each WHERE each.id IS NOT NULL
    )
    SELECT id FROM each WHERE id IS NOT NULL;

-- The messages that a row is made of, and what a channel's rows are found by: 0 if there are none. An
-- early answer has none yet; it would be written in two places.
CREATE TABLE message_ids (
    channel_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    row_id INTEGER NOT NULL,
    PRIMARY KEY (channel_id, message_id, row_id)
) STRICT, WITHOUT ROWID;
CREATE VIEW message_row_ids AS
    SELECT thread_id AS channel_id, coalesce(discord_message_id, 0) AS message_id, id AS row_id
        FROM message_rows WHERE discord_message_id IS NOT NULL OR NOT early
    UNION ALL
    SELECT r.thread_id, part.value, r.id
        FROM message_rows r, json_each('[' || replace(r.parts, ' ', ',') || ']') part
        WHERE json_valid('[' || replace(r.parts, ' ', ',') || ']');
INSERT OR IGNORE INTO message_ids SELECT * FROM message_row_ids;
CREATE TRIGGER message_rows_added AFTER INSERT ON message_rows BEGIN
    INSERT OR IGNORE INTO message_ids SELECT * FROM message_row_ids WHERE row_id = new.id;
END;
CREATE TRIGGER message_rows_gone BEFORE DELETE ON message_rows BEGIN
    DELETE FROM message_ids WHERE (channel_id, message_id, row_id) IN
        (SELECT * FROM message_row_ids WHERE row_id = old.id);
END;
CREATE TRIGGER message_rows_change BEFORE UPDATE OF discord_message_id, parts, early ON message_rows
WHEN old.discord_message_id IS NOT new.discord_message_id OR old.parts IS NOT new.parts
    OR new.discord_message_id IS NULL BEGIN
    DELETE FROM message_ids WHERE (channel_id, message_id, row_id) IN
        (SELECT * FROM message_row_ids WHERE row_id = old.id);
END;
CREATE TRIGGER message_rows_changed AFTER UPDATE OF discord_message_id, parts, early ON message_rows
WHEN old.discord_message_id IS NOT new.discord_message_id OR old.parts IS NOT new.parts
    OR new.discord_message_id IS NULL BEGIN
    INSERT OR IGNORE INTO message_ids SELECT * FROM message_row_ids WHERE row_id = new.id;
END;

-- What receipts are found by, by kind. 0: a channel and its message; the question's and the answer's,
-- or 0. 1: a server, and a person in it, whom the receipt names, the asker among them; 0 for none.
CREATE TABLE receipt_keys (
    kind INTEGER NOT NULL,
    id INTEGER NOT NULL,
    other INTEGER NOT NULL,
    turn_id INTEGER NOT NULL,
    PRIMARY KEY (kind, id, other, turn_id)
) STRICT, WITHOUT ROWID;
DROP TABLE receipt_ids;
DROP TABLE receipt_people;
DROP INDEX receipts_channel;
DROP INDEX receipts_owner;
DROP INDEX receipts_guild;
DROP INDEX receipts_at;
CREATE VIEW keys_of_receipts AS
    SELECT 0 AS kind, channel_id AS id, coalesce(trigger_id, 0) AS other, turn_id FROM receipts
    UNION ALL
    SELECT 0, r.channel_id, part.value, r.turn_id
        FROM receipts r, json_each('[' || replace(r.messages, ' ', ',') || ']') part
        WHERE json_valid('[' || replace(r.messages, ' ', ',') || ']')
    UNION ALL
    SELECT 1, coalesce(guild_id, 0), owner_id, turn_id FROM receipts
    UNION ALL
    SELECT 1, coalesce(CAST(source.value ->> 'guild' AS INTEGER), 0),
            coalesce(CAST(source.value ->> 'author' AS INTEGER), 0), r.turn_id
        FROM receipts r, json_each(r.sources) source WHERE json_valid(r.sources);
INSERT OR IGNORE INTO receipt_keys SELECT * FROM keys_of_receipts;
CREATE TRIGGER receipts_added AFTER INSERT ON receipts BEGIN
    INSERT OR IGNORE INTO receipt_keys SELECT * FROM keys_of_receipts WHERE turn_id = new.turn_id;
END;
CREATE TRIGGER receipts_gone BEFORE DELETE ON receipts BEGIN
    DELETE FROM receipt_keys WHERE (kind, id, other, turn_id) IN
        (SELECT * FROM keys_of_receipts WHERE turn_id = old.turn_id);
END;

-- The servers and people that receipts name, found by stepping along the index.
CREATE VIEW receipt_people AS
    WITH RECURSIVE each(id) AS (
        SELECT min(id) FROM receipt_keys WHERE kind = 1
        UNION ALL
        SELECT (SELECT min(id) FROM receipt_keys WHERE kind = 1 AND id > each.id)
            FROM each WHERE each.id IS NOT NULL
    )
    SELECT key.turn_id, each.id AS guild_id, key.other AS author_id
    FROM each CROSS JOIN receipt_keys key ON key.kind = 1 AND key.id = each.id;
