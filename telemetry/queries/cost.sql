-- Requests, tokens and what they cost, by day and model. Prices are those of
-- `clew report`, a million tokens each, from the environment: LLM_PRICES, such as
-- `0.15/0.6` or `0.15/0.6, big-model=2.5/10`. Without a price the cost is
-- NULL; `uncounted` are requests of which the server did not count the tokens, so
-- that they cost nothing here. `cost.jq` says the same.
--
--   LLM_PRICES=0.15/0.6 \
--     duckdb -c ".read telemetry/queries/cost.sql"
WITH entries AS (
    SELECT trim(unnest(string_split(coalesce(getenv('LLM_PRICES'), ''), ','))) AS entry
),
prices AS (
    -- A model's name may hold a `=`; without one the prices are those of all others.
    SELECT
        nullif(trim(regexp_extract(entry, '^(.*)=', 1)), '') AS model,
        CAST(trim(regexp_extract(entry, '([^=/]*)/[^=/]*$', 1)) AS DOUBLE) AS price_in,
        CAST(trim(regexp_extract(entry, '/([^=/]*)$', 1)) AS DOUBLE) AS price_out
    FROM entries
    WHERE entry <> ''
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
        count(*) FILTER (
            WHERE prompt_tokens IS NULL AND completion_tokens IS NULL
        ) AS uncounted,
        CAST(coalesce(sum(prompt_tokens), 0) AS BIGINT) AS prompt_tokens,
        CAST(coalesce(sum(completion_tokens), 0) AS BIGINT) AS completion_tokens
    FROM requests
    GROUP BY "day", model
),
priced AS (
    SELECT
        days.*,
        (
            SELECT arg_min(prices.price_in, model IS NULL) FROM prices
            WHERE prices.model = days.model OR prices.model IS NULL
        ) AS price_in,
        (
            SELECT arg_min(prices.price_out, model IS NULL) FROM prices
            WHERE prices.model = days.model OR prices.model IS NULL
        ) AS price_out
    FROM days
)
SELECT
    priced.* EXCLUDE (price_in, price_out),
    (prompt_tokens * price_in + completion_tokens * price_out) / 1e6 AS cost
FROM priced
ORDER BY "day", model NULLS FIRST;
