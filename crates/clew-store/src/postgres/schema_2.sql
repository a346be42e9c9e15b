-- Facts and snapshots hold people's texts: a transaction sees and writes those
-- of one user (clew.user) or of one server (clew.server), or all (clew.all).

-- The server's statistics keep frequent values and samples of a column, texts
-- too, long after their rows went. What a new column type takes away are those
-- that were made already; the generated column stands in its way.
ALTER TABLE clew.messages
    ALTER COLUMN content TYPE TEXT, ALTER COLUMN content SET STATISTICS 0,
    ALTER COLUMN tool_calls TYPE TEXT, ALTER COLUMN tool_calls SET STATISTICS 0,
    ALTER COLUMN tool_call_id TYPE TEXT, ALTER COLUMN tool_call_id SET STATISTICS 0,
    ALTER COLUMN author_name TYPE TEXT, ALTER COLUMN author_name SET STATISTICS 0;
ALTER TABLE clew.snapshots
    ALTER COLUMN description TYPE TEXT, ALTER COLUMN description SET STATISTICS 0,
    ALTER COLUMN summary TYPE TEXT, ALTER COLUMN summary SET STATISTICS 0;
ALTER TABLE clew.facts DROP COLUMN words;
ALTER TABLE clew.facts
    ALTER COLUMN text TYPE TEXT, ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE clew.facts
    ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', text)) STORED;
ALTER TABLE clew.facts ALTER COLUMN words SET STATISTICS 0;
CREATE INDEX idx_facts_words ON clew.facts USING GIN (words);

ALTER TABLE clew.snapshots
    SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50);

ALTER TABLE clew.facts ENABLE ROW LEVEL SECURITY;
ALTER TABLE clew.facts FORCE ROW LEVEL SECURITY;
CREATE POLICY one_subject ON clew.facts
    USING (user_id = nullif(current_setting('clew.user', true), '')::bigint
        OR server_id = nullif(current_setting('clew.server', true), '')::bigint
        OR current_setting('clew.all', true) = 'on');

ALTER TABLE clew.snapshots ENABLE ROW LEVEL SECURITY;
ALTER TABLE clew.snapshots FORCE ROW LEVEL SECURITY;
CREATE POLICY one_owner ON clew.snapshots
    USING (owner_id = nullif(current_setting('clew.user', true), '')::bigint
        OR current_setting('clew.all', true) = 'on');
