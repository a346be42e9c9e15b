# How often a turn had to do without something, by event and reason.
# `rate` is the share of all turns that began; null if none is in the files.
#
#   jq -nRc -f telemetry/queries/fallbacks.jq var/telemetry/*.jsonl
#
# (-R with fromjson? passes over a line that a crash cut off.)
[inputs | fromjson?
  | select(.event == "trigger" or .event == "collect_fallback"
      or .event == "tail_fallback" or .event == "send_fallback")]
| ([.[] | select(.event == "trigger") | .turn_id] | unique | length) as $turns
| [.[] | select(.event != "trigger")]
| group_by([.event, .detail.reason])
| map({
    event: .[0].event,
    reason: .[0].detail.reason,
    events: length,
    turns: (map(.turn_id | values) | unique | length)
  })
| map(. + {rate: (if $turns == 0 then null else .turns / $turns end)})
| sort_by([-.events, .event, .reason])
| .[]
