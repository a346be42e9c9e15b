# REST calls for the context of one turn, by case. `warm` is the share of
# turns that needed none.
#
#   jq -nRc -f telemetry/queries/fetches.jq var/telemetry/*.jsonl
def quantile(q): sort | .[((length * q) | ceil) - 1];

[inputs | fromjson? | select(.event == "collect_ok")]
| group_by(.turn_id)
| map({case: .[-1].detail.case, fetches: (map(.detail.fetches) | add)})
| group_by(.case)
| map(
    {case: .[0].case, turns: length}
    + (map(.fetches) | {
        mean: (add / length),
        p50: quantile(0.50),
        p95: quantile(0.95),
        max: max,
        warm: ((map(select(. == 0)) | length) / length)
      })
  )
| .[]
