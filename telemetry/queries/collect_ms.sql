-- How long collecting took, by case, in milliseconds: nearest-rank quantiles.
--
--   duckdb -c ".read telemetry/queries/collect_ms.sql"
WITH collected AS (
    SELECT detail ->> 'case' AS "case", CAST(detail ->> 'ms' AS DOUBLE) AS ms
    FROM read_json(
        'var/telemetry/*.jsonl',
        format = 'newline_delimited',
        columns = {event: 'VARCHAR', detail: 'JSON'},
        ignore_errors = true
    )
    WHERE event = 'collect_ok'
)
SELECT
    "case",
    count(*) AS turns,
    quantile_disc(ms, 0.50) AS p50,
    quantile_disc(ms, 0.95) AS p95,
    quantile_disc(ms, 0.99) AS p99,
    max(ms) AS max
FROM collected
GROUP BY "case"
ORDER BY "case";
