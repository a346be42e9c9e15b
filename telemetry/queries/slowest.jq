# The twenty slowest turns and where their time went, in milliseconds:
# waiting behind other turns, collecting, up to the request to the model, in
# all. Null: the turn did not come that far.
#
#   jq -nRc -f telemetry/queries/slowest.jq var/telemetry/*.jsonl
[inputs | fromjson?
  | select(.event == "turn_done" or .event == "trigger" or .event == "collect_ok")]
| group_by(.turn_id)
| map(
    . as $lines
    | def last_of(name): [$lines[] | select(.event == name)] | last;
      last_of("turn_done") | values
    | {
        ms: .detail.ms,
        ms_to_model: .detail.ms_to_model,
        collect_ms: (last_of("collect_ok") | .detail.ms),
        queued_ms: (last_of("trigger") | .detail.queued_ms),
        fetches: (last_of("collect_ok") | .detail.fetches),
        outcome: .detail.outcome,
        scene: (last_of("trigger") | .detail.scene),
        ts, channel_id, turn_id
      }
  )
| sort_by([-.ms, .turn_id])
| .[:20][]
