-- Receipts of answers: ids, times and counts, no text of people.
--
-- `receipt_ids` has the question and the answer's messages; `receipt_people` the servers and
-- people that a receipt names, 0 for none.

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
    sources TEXT,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX receipts_channel ON receipts(channel_id, at);
CREATE INDEX receipts_owner ON receipts(owner_id, channel_id, at);
CREATE INDEX receipts_guild ON receipts(guild_id, owner_id);
CREATE INDEX receipts_at ON receipts(at);

CREATE TABLE receipt_ids (
    channel_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    turn_id INTEGER NOT NULL REFERENCES receipts(turn_id) ON DELETE CASCADE,
    PRIMARY KEY (channel_id, message_id, turn_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipt_ids_turn ON receipt_ids(turn_id);

CREATE TABLE receipt_people (
    turn_id INTEGER NOT NULL REFERENCES receipts(turn_id) ON DELETE CASCADE,
    guild_id INTEGER NOT NULL,
    author_id INTEGER NOT NULL,
    PRIMARY KEY (turn_id, guild_id, author_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipt_people_guild ON receipt_people(guild_id);
CREATE INDEX receipt_people_author ON receipt_people(author_id);
