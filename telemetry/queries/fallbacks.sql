-- How often a turn had to do without something, by event and reason.
-- `rate` is the share of all turns that began; null if none is in the files.
--
--   duckdb -c ".read telemetry/queries/fallbacks.sql"
--
-- Run it where the bot runs, or change the path. Lines that a crash cut off
-- are passed over.
WITH lines AS (
    SELECT event, turn_id, detail
    FROM read_json(
        'var/telemetry/*.jsonl',
        format = 'newline_delimited',
        columns = {event: 'VARCHAR', turn_id: 'VARCHAR', detail: 'JSON'},
        ignore_errors = true
    )
),
began AS (
    SELECT count(DISTINCT turn_id) AS turns FROM lines WHERE event = 'trigger'
)
SELECT
    event,
    detail ->> 'reason' AS reason,
    count(*) AS events,
    count(DISTINCT turn_id) AS turns,
    count(DISTINCT turn_id) / nullif((SELECT turns FROM began), 0) AS rate
FROM lines
WHERE event IN ('collect_fallback', 'tail_fallback', 'send_fallback')
GROUP BY event, reason
ORDER BY events DESC, event, reason;
