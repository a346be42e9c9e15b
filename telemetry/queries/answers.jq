# How turns end: outcomes with their share and times in milliseconds, then
# triggers that got no turn, by reason (outcome `no_turn`).
#
#   jq -nRc -f telemetry/queries/answers.jq var/telemetry/*.jsonl
def quantile(q): sort | .[((length * q) | ceil) - 1];

[inputs | fromjson? | select(.event == "turn_done" or .event == "refused")]
| (map(select(.event == "turn_done")) | length) as $turns
| group_by([.event != "turn_done", .detail.outcome, .detail.reason])
| map(
    if .[0].event == "turn_done" then
      {outcome: .[0].detail.outcome, reason: null, turns: length}
      + {share: (length / $turns)}
      + (map(.detail.ms) | {p50: quantile(0.50), p95: quantile(0.95)})
    else
      {outcome: "no_turn", reason: .[0].detail.reason, turns: length}
      + {share: null, p50: null, p95: null}
    end
  )
| .[]
