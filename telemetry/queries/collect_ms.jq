# How long collecting took, by case, in milliseconds: nearest-rank quantiles.
#
#   jq -nRc -f telemetry/queries/collect_ms.jq var/telemetry/*.jsonl
def quantile(q): sort | .[((length * q) | ceil) - 1];

[inputs | fromjson? | select(.event == "collect_ok") | .detail]
| group_by(.case)
| map(
    {case: .[0].case, turns: length}
    + (map(.ms) | {
        p50: quantile(0.50),
        p95: quantile(0.95),
        p99: quantile(0.99),
        max: max
      })
  )
| .[]
