-- REST calls for the context of one turn, by case. `warm` is the share of
-- turns that needed none. A turn that began again counts with all its calls.
--
--   duckdb -c ".read telemetry/queries/fetches.sql"
WITH collected AS (
    SELECT
        turn_id,
        last(detail ->> 'case' ORDER BY ts) AS "case",
        sum(CAST(detail ->> 'fetches' AS BIGINT)) AS fetches
    FROM read_json(
        'var/telemetry/*.jsonl',
        format = 'newline_delimited',
        columns = {
            ts: 'TIMESTAMP', event: 'VARCHAR', turn_id: 'VARCHAR', detail: 'JSON'
        },
        ignore_errors = true
    )
    WHERE event = 'collect_ok'
    GROUP BY turn_id
)
SELECT
    "case",
    count(*) AS turns,
    avg(fetches) AS mean,
    quantile_disc(fetches, 0.50) AS p50,
    quantile_disc(fetches, 0.95) AS p95,
    max(fetches) AS max,
    avg(CAST(fetches = 0 AS INTEGER)) AS warm
FROM collected
GROUP BY "case"
ORDER BY "case";
