-- A turn is in the store before its answer is wholly posted.
--
-- `early`: it is not confirmed yet, and read by nothing but `early_messages`. Confirming changes
-- this row alone, so the ids of an answer's further messages are kept here from now on; those of
-- rows from before are still beside their text.

ALTER TABLE message_rows ADD COLUMN early INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message_rows ADD COLUMN parts TEXT;
CREATE INDEX messages_early ON message_rows(id) WHERE early;

DROP VIEW messages;
CREATE VIEW messages AS
    SELECT r.id, r.agent_name, r.thread_id, r.role, t.content, t.tool_calls, t.tool_call_id,
        r.timestamp, r.discord_message_id, r.guild_id, r.owner_id, r.scope, r.turn_id, r.ordinal,
        r.position, t.author_name, coalesce(r.parts, t.parts) AS parts, r.target_id,
        r.restored_from, r.sources
    FROM message_rows r CROSS JOIN message_texts t ON t.id = r.text_id
    WHERE NOT r.gone AND NOT r.early;

CREATE VIEW early_messages AS
    SELECT r.id, r.agent_name, r.thread_id, r.role, t.content, t.tool_calls, t.tool_call_id,
        r.timestamp, r.discord_message_id, r.guild_id, r.owner_id, r.scope, r.turn_id, r.ordinal,
        r.position, t.author_name, r.parts, r.target_id, r.restored_from, r.sources
    FROM message_rows r CROSS JOIN message_texts t ON t.id = r.text_id
    WHERE NOT r.gone AND r.early;
