-- Which cap leaves messages out, how often and how many (means a block).
-- `rate` is the share of all blocks; `msgs` points at MEM_MAX_MSGS, `chars`
-- at MEM_MAX_CHARS, `lone_chars` at LONE_MAX_CHARS, `age` at MEM_MAX_AGE_MIN,
-- `chain_age` at MEM_CHAIN_MAX_AGE_MIN.
--
--   duckdb -c ".read telemetry/queries/truncation.sql"
WITH lines AS (
    SELECT event, detail
    FROM read_json(
        'var/telemetry/*.jsonl',
        format = 'newline_delimited',
        columns = {event: 'VARCHAR', detail: 'JSON'},
        ignore_errors = true
    )
),
collected AS (
    SELECT count(*) AS blocks FROM lines WHERE event = 'collect_ok'
)
SELECT
    detail ->> 'reason' AS reason,
    count(*) AS blocks,
    count(*) / nullif((SELECT blocks FROM collected), 0) AS rate,
    avg(CAST(detail ->> 'kept' AS BIGINT)) AS kept,
    avg(CAST(detail ->> 'dropped' AS BIGINT)) AS dropped
FROM lines
WHERE event = 'collect_truncated'
GROUP BY reason
ORDER BY blocks DESC, reason;
