# Servers, those with the most turns first: how turns ended and how long they took
# in milliseconds, tokens, triggers that got no turn. Direct messages have guild_id null.
#
#   jq -nRc -f telemetry/queries/servers.jq var/telemetry/*.jsonl
def quantile(q): sort | if . == [] then null else .[((length * q) | ceil) - 1] end;

[inputs | fromjson?
  | select(.event == "turn_done" or .event == "request_ok" or .event == "refused")]
| group_by(.guild_id)
| map(
    map(select(.event == "turn_done") | .detail) as $turns
    | map(select(.event == "request_ok") | .detail) as $requests
    | {
        guild_id: .[0].guild_id,
        turns: ($turns | length),
        failed: ($turns | map(select(.outcome == "failed")) | length),
        p50: ($turns | map(.ms) | quantile(0.50)),
        p95: ($turns | map(.ms) | quantile(0.95)),
        prompt_tokens: ($requests | map(.prompt_tokens // 0) | add // 0),
        completion_tokens: ($requests | map(.completion_tokens // 0) | add // 0),
        no_turn: (map(select(.event == "refused")) | length)
      }
  )
| sort_by([-.turns, .guild_id])
| .[]
