-- Servers, those with the most turns first: how turns ended and how long they took
-- in milliseconds, tokens, triggers that got no turn. Direct messages have guild_id NULL.
--
--   duckdb -c ".read telemetry/queries/servers.sql"
WITH lines AS (
    SELECT event, guild_id, detail
    FROM read_json(
        'var/telemetry/*.jsonl',
        format = 'newline_delimited',
        columns = {event: 'VARCHAR', guild_id: 'VARCHAR', detail: 'JSON'},
        ignore_errors = true
    )
    WHERE event IN ('turn_done', 'request_ok', 'refused')
),
numbers AS (
    SELECT
        event,
        guild_id,
        detail ->> 'outcome' AS outcome,
        CAST(detail ->> 'ms' AS DOUBLE) AS ms,
        CAST(detail ->> 'prompt_tokens' AS BIGINT) AS prompt_tokens,
        CAST(detail ->> 'completion_tokens' AS BIGINT) AS completion_tokens
    FROM lines
)
SELECT
    guild_id,
    count(*) FILTER (WHERE event = 'turn_done') AS turns,
    count(*) FILTER (WHERE event = 'turn_done' AND outcome = 'failed') AS failed,
    quantile_disc(ms, 0.50) FILTER (WHERE event = 'turn_done') AS p50,
    quantile_disc(ms, 0.95) FILTER (WHERE event = 'turn_done') AS p95,
    coalesce(sum(prompt_tokens) FILTER (WHERE event = 'request_ok'), 0) AS prompt_tokens,
    coalesce(sum(completion_tokens) FILTER (WHERE event = 'request_ok'), 0)
        AS completion_tokens,
    count(*) FILTER (WHERE event = 'refused') AS no_turn
FROM numbers
GROUP BY guild_id
ORDER BY turns DESC, guild_id NULLS FIRST;
