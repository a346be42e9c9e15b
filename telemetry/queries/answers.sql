-- How turns end: outcomes with their share and times in milliseconds, then
-- triggers that got no turn, by reason (outcome `no_turn`).
--
--   duckdb -c ".read telemetry/queries/answers.sql"
WITH lines AS (
    SELECT event, detail
    FROM read_json(
        'var/telemetry/*.jsonl',
        format = 'newline_delimited',
        columns = {event: 'VARCHAR', detail: 'JSON'},
        ignore_errors = true
    )
    WHERE event IN ('turn_done', 'refused')
),
done AS (
    SELECT detail ->> 'outcome' AS outcome, CAST(detail ->> 'ms' AS DOUBLE) AS ms
    FROM lines
    WHERE event = 'turn_done'
),
ended AS (
    SELECT
        outcome,
        NULL AS reason,
        count(*) AS turns,
        count(*) / (SELECT count(*) FROM done) AS share,
        quantile_disc(ms, 0.50) AS p50,
        quantile_disc(ms, 0.95) AS p95
    FROM done
    GROUP BY outcome
),
no_turn AS (
    SELECT
        'no_turn' AS outcome,
        detail ->> 'reason' AS reason,
        count(*) AS turns,
        NULL AS share,
        NULL AS p50,
        NULL AS p95
    FROM lines
    WHERE event = 'refused'
    GROUP BY detail ->> 'reason'
)
SELECT * FROM ended
UNION ALL
SELECT * FROM no_turn
ORDER BY reason NULLS FIRST, outcome;
