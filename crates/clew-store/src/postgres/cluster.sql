-- What the processes of one bot agree by. Apart from the migrations: whoever stands by must not
-- bring the tables up to date that another version uses.
CREATE TABLE IF NOT EXISTS clew.leases (
    name TEXT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    node TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL
);
INSERT INTO clew.leases VALUES ('bot', 0, '', '-infinity') ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS clew.nodes (
    name TEXT PRIMARY KEY,
    version TEXT NOT NULL,
    since TIMESTAMPTZ NOT NULL,
    seen TIMESTAMPTZ NOT NULL
);
-- What operators ask for: a number of shards, 0 for as many as Discord recommends; and that a process is the
-- bot only if no other can be. Whoever could not be it lately is in the place of none.
-- A lock on the lease for nothing might cost it.
DO $$ BEGIN
    IF to_regclass('clew.relieved') IS NULL THEN
        ALTER TABLE clew.leases ADD COLUMN shards INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE clew.nodes ADD COLUMN drains BOOLEAN NOT NULL DEFAULT FALSE,
            ADD COLUMN unable_until TIMESTAMPTZ NOT NULL DEFAULT '-infinity',
            ADD COLUMN shards INTEGER NOT NULL DEFAULT 0,
            ADD COLUMN connected INTEGER NOT NULL DEFAULT 0;
        CREATE VIEW clew.relieved AS
            SELECT name FROM clew.nodes WHERE drains AND EXISTS (
                SELECT FROM clew.nodes other WHERE NOT other.drains
                    AND other.seen > clock_timestamp() - interval '5 s'
                    AND other.unable_until < clock_timestamp());
    END IF;
END $$;
-- In place of the files of STATE_DIR.
CREATE TABLE IF NOT EXISTS clew.state_files (
    name TEXT PRIMARY KEY,
    content BYTEA NOT NULL
);
-- In place of the files of saved conversations: people's texts, which only what covers all
-- conversations sees.
CREATE TABLE IF NOT EXISTS clew.snapshot_texts (
    name TEXT PRIMARY KEY,
    content TEXT NOT NULL
);
ALTER TABLE clew.snapshot_texts ENABLE ROW LEVEL SECURITY;
ALTER TABLE clew.snapshot_texts FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS all_rows ON clew.snapshot_texts;
CREATE POLICY all_rows ON clew.snapshot_texts
    USING (current_setting('clew.all', true) = 'on');
-- Questions that were taken. It holds no id: see `clew_discord::session::Claims`.
CREATE TABLE IF NOT EXISTS clew.claims (
    claim BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    line TEXT NOT NULL
);
