-- Requests, tokens and what they cost, by day and model. Put your prices, a million
-- tokens each, into the first table; NULL stands for the models that it does not
-- name. Without a price the cost is NULL; `uncounted` are requests of which the
-- server did not count the tokens.
--
--   duckdb -c ".read telemetry/queries/cost.sql"
WITH prices (model, price_in, price_out) AS (
    VALUES
        (CAST(NULL AS VARCHAR), 0.15, 0.60),
        ('a-big-model', 2.50, 10.00)
),
requests AS (
    SELECT
        ts[:10] AS "day",
        detail ->> 'model' AS model,
        CAST(detail ->> 'prompt_tokens' AS BIGINT) AS prompt_tokens,
        CAST(detail ->> 'completion_tokens' AS BIGINT) AS completion_tokens
    FROM read_json(
        'var/telemetry/*.jsonl',
        format = 'newline_delimited',
        columns = {ts: 'VARCHAR', event: 'VARCHAR', detail: 'JSON'},
        ignore_errors = true
    )
    WHERE event = 'request_ok'
),
days AS (
    SELECT
        "day",
        model,
        count(*) AS requests,
        count(*) FILTER (WHERE prompt_tokens IS NULL) AS uncounted,
        coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
        coalesce(sum(completion_tokens), 0) AS completion_tokens
    FROM requests
    GROUP BY "day", model
)
SELECT
    days.*,
    (
        days.prompt_tokens * coalesce(named.price_in, others.price_in)
        + days.completion_tokens * coalesce(named.price_out, others.price_out)
    ) / 1e6 AS cost
FROM days
LEFT JOIN prices AS named ON named.model = days.model
LEFT JOIN prices AS others ON others.model IS NULL
ORDER BY "day", days.model;
