-- What rows of turns and snapshots were made from: ids only, no text. The column is what a row is
-- read with, as JSON, null for nearly all; the two tables are what purges find it by.
ALTER TABLE clew.messages ADD COLUMN sources TEXT;

CREATE TABLE clew.message_sources (
    row_id BIGINT NOT NULL REFERENCES clew.messages ON DELETE CASCADE,
    position BIGINT NOT NULL,
    guild_id BIGINT,
    channel_id BIGINT NOT NULL,
    message_id BIGINT,
    author_id BIGINT,
    PRIMARY KEY (row_id, position)
);
CREATE INDEX idx_message_sources_message ON clew.message_sources (channel_id, message_id);
CREATE INDEX idx_message_sources_guild ON clew.message_sources (guild_id, author_id);
CREATE INDEX idx_message_sources_author ON clew.message_sources (author_id);

CREATE TABLE clew.snapshot_sources (
    snapshot_id TEXT NOT NULL REFERENCES clew.snapshots ON DELETE CASCADE,
    position BIGINT NOT NULL,
    guild_id BIGINT,
    channel_id BIGINT NOT NULL,
    message_id BIGINT,
    author_id BIGINT,
    PRIMARY KEY (snapshot_id, position)
);
CREATE INDEX idx_snapshot_sources_message ON clew.snapshot_sources (channel_id, message_id);
CREATE INDEX idx_snapshot_sources_guild ON clew.snapshot_sources (guild_id, author_id);
CREATE INDEX idx_snapshot_sources_author ON clew.snapshot_sources (author_id);
