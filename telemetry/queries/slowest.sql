-- The twenty slowest turns and where their time went, in milliseconds:
-- waiting behind other turns, collecting, up to the request to the model, in
-- all. Null: the turn did not come that far.
--
--   duckdb -c ".read telemetry/queries/slowest.sql"
WITH lines AS (
    SELECT *
    FROM read_json(
        'var/telemetry/*.jsonl',
        format = 'newline_delimited',
        columns = {
            ts: 'VARCHAR', event: 'VARCHAR', channel_id: 'VARCHAR',
            turn_id: 'VARCHAR', detail: 'JSON'
        },
        ignore_errors = true
    )
    WHERE event IN ('turn_done', 'trigger', 'collect_ok')
),
latest AS (
    SELECT event, turn_id, last(detail ORDER BY ts) AS detail
    FROM lines
    GROUP BY event, turn_id
),
done AS (
    SELECT turn_id, last(detail ORDER BY ts) AS detail, max(ts) AS ts,
        last(channel_id ORDER BY ts) AS channel_id
    FROM lines
    WHERE event = 'turn_done'
    GROUP BY turn_id
)
SELECT
    CAST(done.detail ->> 'ms' AS DOUBLE) AS ms,
    CAST(done.detail ->> 'ms_to_model' AS DOUBLE) AS ms_to_model,
    CAST(collected.detail ->> 'ms' AS DOUBLE) AS collect_ms,
    CAST(began.detail ->> 'queued_ms' AS DOUBLE) AS queued_ms,
    CAST(collected.detail ->> 'fetches' AS BIGINT) AS fetches,
    done.detail ->> 'outcome' AS outcome,
    began.detail ->> 'scene' AS scene,
    done.ts,
    done.channel_id,
    done.turn_id
FROM done
LEFT JOIN latest AS collected
    ON collected.turn_id = done.turn_id AND collected.event = 'collect_ok'
LEFT JOIN latest AS began
    ON began.turn_id = done.turn_id AND began.event = 'trigger'
ORDER BY ms DESC, done.turn_id
LIMIT 20;
