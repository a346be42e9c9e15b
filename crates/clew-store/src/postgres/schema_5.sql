-- Receipts of answers: ids, times and counts, no text of people. receipt_ids has the question and
-- the answer's messages; receipt_people the servers and people that a receipt names, 0 for none.
CREATE TABLE clew.receipts (
    turn_id BIGINT PRIMARY KEY,
    scope TEXT NOT NULL,
    guild_id BIGINT,
    channel_id BIGINT NOT NULL,
    owner_id BIGINT NOT NULL,
    is_private BOOLEAN NOT NULL,
    trigger_id BIGINT,
    messages TEXT,
    at TIMESTAMPTZ NOT NULL,
    sources TEXT,
    body TEXT NOT NULL
);
CREATE INDEX idx_receipts_channel ON clew.receipts (channel_id, at);
CREATE INDEX idx_receipts_owner ON clew.receipts (owner_id, channel_id, at);
CREATE INDEX idx_receipts_guild ON clew.receipts (guild_id, owner_id);
CREATE INDEX idx_receipts_at ON clew.receipts (at);

CREATE TABLE clew.receipt_ids (
    channel_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    turn_id BIGINT NOT NULL REFERENCES clew.receipts ON DELETE CASCADE,
    PRIMARY KEY (channel_id, message_id, turn_id)
);
CREATE INDEX idx_receipt_ids_turn ON clew.receipt_ids (turn_id);

CREATE TABLE clew.receipt_people (
    turn_id BIGINT NOT NULL REFERENCES clew.receipts ON DELETE CASCADE,
    guild_id BIGINT NOT NULL,
    author_id BIGINT NOT NULL,
    PRIMARY KEY (turn_id, guild_id, author_id)
);
CREATE INDEX idx_receipt_people_guild ON clew.receipt_people (guild_id);
CREATE INDEX idx_receipt_people_author ON clew.receipt_people (author_id);
