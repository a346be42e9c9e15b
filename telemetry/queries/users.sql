-- People, those with the most turns first: turns, tokens, and how often they got no
-- turn, by limit (`limits`) and for other reasons. With TELEMETRY_IDS=keyed user_id is
-- a pseudonym.
--
--   duckdb -c ".read telemetry/queries/users.sql"
WITH lines AS (
    SELECT event, user_id, detail
    FROM read_json(
        'var/telemetry/*.jsonl',
        format = 'newline_delimited',
        columns = {event: 'VARCHAR', user_id: 'VARCHAR', detail: 'JSON'},
        ignore_errors = true
    )
    WHERE event IN ('turn_done', 'request_ok', 'refused')
),
numbers AS (
    SELECT
        event,
        user_id,
        detail ->> 'reason' IN (
            'user_rate', 'user_tokens', 'guild_tokens', 'queue_full', 'busy'
        ) AS of_limits,
        CAST(detail ->> 'prompt_tokens' AS BIGINT) AS prompt_tokens,
        CAST(detail ->> 'completion_tokens' AS BIGINT) AS completion_tokens
    FROM lines
)
SELECT
    user_id,
    count(*) FILTER (WHERE event = 'turn_done') AS turns,
    coalesce(sum(prompt_tokens) FILTER (WHERE event = 'request_ok'), 0) AS prompt_tokens,
    coalesce(sum(completion_tokens) FILTER (WHERE event = 'request_ok'), 0)
        AS completion_tokens,
    count(*) FILTER (WHERE event = 'refused' AND of_limits) AS limits,
    count(*) FILTER (WHERE event = 'refused' AND NOT of_limits) AS other_refusals
FROM numbers
GROUP BY user_id
ORDER BY turns DESC, limits DESC, user_id NULLS FIRST;
