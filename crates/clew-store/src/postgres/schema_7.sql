-- Whom a receipt names, as lists of ids in JSON: a server's and those of its people, 0 for none.
-- Bodies are packed.
ALTER TABLE clew.receipts ADD COLUMN people TEXT;
UPDATE clew.receipts SET people = (
    SELECT '[' || string_agg(list, ',') || ']' FROM (
        SELECT '[' || guild_id || ',' || string_agg(author_id::text, ',') || ']' AS list
        FROM clew.receipt_people named WHERE named.turn_id = receipts.turn_id
        GROUP BY guild_id ORDER BY guild_id) AS lists);
ALTER TABLE clew.receipts ALTER COLUMN people SET NOT NULL;
ALTER TABLE clew.receipts DROP COLUMN sources;
ALTER TABLE clew.receipts ALTER COLUMN body TYPE BYTEA USING convert_to(body, 'UTF8');
