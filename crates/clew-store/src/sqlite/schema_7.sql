-- A turn writes fewer pages: rows have no index of their own for time, a conversation's counter is
-- kept once rows go, messages of early rows are looked for among these, and whom a receipt names
-- stands in one row a server. Bodies are packed.

DROP INDEX idx_messages_agent_time;

-- A row of each owner with an agent in a server or in direct messages, found by stepping along the
-- index.
CREATE VIEW message_owners AS
    WITH RECURSIVE each(id) AS (
        SELECT (SELECT id FROM message_rows ORDER BY guild_id, owner_id, agent_name LIMIT 1)
        UNION ALL
        SELECT coalesce(
            (SELECT next.id FROM message_rows next
                WHERE next.guild_id IS last.guild_id AND next.owner_id = last.owner_id
                    AND next.agent_name > last.agent_name
                ORDER BY next.agent_name LIMIT 1),
            (SELECT next.id FROM message_rows next
                WHERE next.guild_id IS last.guild_id AND next.owner_id > last.owner_id
                ORDER BY next.owner_id, next.agent_name LIMIT 1),
            (SELECT next.id FROM message_rows next
                WHERE next.guild_id > coalesce(last.guild_id, -9223372036854775808)
                ORDER BY next.guild_id, next.owner_id, next.agent_name LIMIT 1))
            FROM each CROSS JOIN message_rows last ON last.id = each.id
    )
    SELECT guild_id, owner_id, agent_name
    FROM each CROSS JOIN message_rows one ON one.id = each.id;

-- What `last_ordinal` is raised to; of rows that are there, their own ordinals tell.
CREATE TRIGGER message_rows_emptied AFTER UPDATE OF gone ON message_rows
WHEN new.gone AND NOT old.gone BEGIN
    INSERT INTO conversations (scope, agent_name, last_ordinal, disordered)
        VALUES (new.scope, new.agent_name, new.ordinal, 0)
        ON CONFLICT DO UPDATE SET last_ordinal = max(last_ordinal, excluded.last_ordinal);
END;
-- The same in memory, where rows go at once.
CREATE TRIGGER message_rows_dropped AFTER DELETE ON message_rows WHEN NOT old.gone BEGIN
    INSERT INTO conversations (scope, agent_name, last_ordinal, disordered)
        VALUES (old.scope, old.agent_name, old.ordinal, 0)
        ON CONFLICT DO UPDATE SET last_ordinal = max(last_ordinal, excluded.last_ordinal);
END;

DROP TRIGGER message_rows_added;
DROP TRIGGER message_rows_gone;
DROP TRIGGER message_rows_change;
DROP TRIGGER message_rows_changed;
DROP VIEW message_row_ids;
DROP TABLE message_ids;
DROP TRIGGER receipts_added;
DROP TRIGGER receipts_gone;
DROP VIEW keys_of_receipts;
DROP VIEW receipt_people;
DROP TABLE receipt_keys;
ALTER TABLE receipts RENAME TO receipts_6;
-- `people`: lists of ids as JSON, a server's and those of its people, 0 for none; the asker is among
-- them.
CREATE TABLE receipts (
    turn_id INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    guild_id INTEGER,
    channel_id INTEGER NOT NULL,
    owner_id INTEGER NOT NULL,
    is_private INTEGER NOT NULL,
    trigger_id INTEGER,
    messages TEXT,
    at TEXT NOT NULL,
    people TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
INSERT INTO receipts
    SELECT turn_id, scope, guild_id, channel_id, owner_id, is_private, trigger_id, messages, at,
        (SELECT json_group_array(json('[' || guild || authors || ']')) FROM
            (SELECT guild, group_concat(',' || author, '') AS authors FROM
                (SELECT coalesce(r.guild_id, 0) AS guild, r.owner_id AS author
                    UNION SELECT coalesce(CAST(source.value ->> 'guild' AS INTEGER), 0),
                        coalesce(CAST(source.value ->> 'author' AS INTEGER), 0)
                    FROM json_each(r.sources) source ORDER BY 1, 2)
                GROUP BY guild)),
        CAST(body AS BLOB)
    FROM receipts_6 r;
DROP TABLE receipts_6;

-- What holds a message, and what a channel's rows and receipts are found by. `kind` 0: a row of a
-- turn, 1: the receipt of a turn. Each has at least one, of message 0 if there is none. Triggers keep
-- it. An early row has none yet: the answer's would be written in two places.
CREATE TABLE message_holders (
    channel_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (channel_id, message_id, kind, id)
) STRICT, WITHOUT ROWID;
CREATE VIEW message_row_ids AS
    SELECT thread_id AS channel_id, coalesce(discord_message_id, 0) AS message_id, 0 AS kind, id,
        early FROM message_rows
    UNION ALL
    SELECT r.thread_id, part.value, 0, r.id, r.early
        FROM message_rows r, json_each('[' || replace(r.parts, ' ', ',') || ']') part
        WHERE json_valid('[' || replace(r.parts, ' ', ',') || ']');
CREATE VIEW receipt_ids AS
    SELECT channel_id, coalesce(trigger_id, 0) AS message_id, 1 AS kind, turn_id AS id FROM receipts
    UNION ALL
    SELECT r.channel_id, part.value, 1, r.turn_id
        FROM receipts r, json_each('[' || replace(r.messages, ' ', ',') || ']') part
        WHERE json_valid('[' || replace(r.messages, ' ', ',') || ']');
INSERT OR IGNORE INTO message_holders
    SELECT channel_id, message_id, kind, id FROM message_row_ids WHERE NOT early
    UNION ALL SELECT * FROM receipt_ids;
CREATE TRIGGER message_rows_added AFTER INSERT ON message_rows WHEN NOT new.early BEGIN
    INSERT OR IGNORE INTO message_holders
        SELECT channel_id, message_id, kind, id FROM message_row_ids WHERE id = new.id;
END;
CREATE TRIGGER message_rows_gone BEFORE DELETE ON message_rows WHEN NOT old.early BEGIN
    DELETE FROM message_holders WHERE (channel_id, message_id, kind, id) IN
        (SELECT channel_id, message_id, kind, id FROM message_row_ids WHERE id = old.id);
END;
CREATE TRIGGER message_rows_change BEFORE UPDATE OF discord_message_id, parts, early ON message_rows
WHEN NOT old.early BEGIN
    DELETE FROM message_holders WHERE (channel_id, message_id, kind, id) IN
        (SELECT channel_id, message_id, kind, id FROM message_row_ids WHERE id = old.id);
END;
CREATE TRIGGER message_rows_changed AFTER UPDATE OF discord_message_id, parts, early ON message_rows
WHEN NOT new.early BEGIN
    INSERT OR IGNORE INTO message_holders
        SELECT channel_id, message_id, kind, id FROM message_row_ids WHERE id = new.id;
END;

-- Whom receipts name: a row for each server, or 0, with its people there.
CREATE TABLE receipt_guilds (
    guild_id INTEGER NOT NULL,
    turn_id INTEGER NOT NULL,
    people TEXT NOT NULL,
    PRIMARY KEY (guild_id, turn_id)
) STRICT, WITHOUT ROWID;
CREATE VIEW guilds_of_receipts AS
    SELECT list.value ->> 0 AS guild_id, r.turn_id, json_remove(list.value, '$[0]') AS people
        FROM receipts r, json_each(r.people) list;
INSERT OR IGNORE INTO receipt_guilds SELECT * FROM guilds_of_receipts;
CREATE TRIGGER receipts_added AFTER INSERT ON receipts BEGIN
    INSERT OR IGNORE INTO message_holders SELECT * FROM receipt_ids WHERE id = new.turn_id;
    INSERT OR IGNORE INTO receipt_guilds
        SELECT * FROM guilds_of_receipts WHERE turn_id = new.turn_id;
END;
CREATE TRIGGER receipts_gone BEFORE DELETE ON receipts BEGIN
    DELETE FROM message_holders WHERE (channel_id, message_id, kind, id) IN
        (SELECT * FROM receipt_ids WHERE id = old.turn_id);
    DELETE FROM receipt_guilds WHERE (guild_id, turn_id) IN
        (SELECT guild_id, turn_id FROM guilds_of_receipts WHERE turn_id = old.turn_id);
END;

-- The servers and people that receipts name.
CREATE VIEW receipt_people AS
    SELECT named.turn_id, named.guild_id, person.value AS author_id
    FROM receipt_guilds named CROSS JOIN json_each(named.people) person;
