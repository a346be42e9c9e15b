# People, those with the most turns first: turns, tokens, and how often they got no
# turn, by limit (`limits`) and for other reasons. With TELEMETRY_IDS=keyed user_id is
# a pseudonym.
#
#   jq -nRc -f telemetry/queries/users.jq var/telemetry/*.jsonl
def of_limits: IN("user_rate", "user_tokens", "guild_tokens", "queue_full", "busy");

[inputs | fromjson?
  | select(.event == "turn_done" or .event == "request_ok" or .event == "refused")]
| group_by(.user_id)
| map(
    map(select(.event == "request_ok") | .detail) as $requests
    | map(select(.event == "refused") | .detail.reason) as $refused
    | {
        user_id: .[0].user_id,
        turns: (map(select(.event == "turn_done")) | length),
        prompt_tokens: ($requests | map(.prompt_tokens // 0) | add // 0),
        completion_tokens: ($requests | map(.completion_tokens // 0) | add // 0),
        limits: ($refused | map(select(of_limits)) | length),
        other_refusals: ($refused | map(select(of_limits | not)) | length)
      }
  )
| sort_by([-.turns, -.limits, .user_id])
| .[]
