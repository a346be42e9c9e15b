# Which cap leaves messages out, how often and how many.
# `rate` is the share of all blocks; `msgs` points at MEM_MAX_MSGS, `chars` at
# MEM_MAX_CHARS, `lone_chars` at LONE_MAX_CHARS, `age` at MEM_MAX_AGE_MIN, `chain_age` at
# MEM_CHAIN_MAX_AGE_MIN.
#
#   jq -nRc -f telemetry/queries/truncation.jq var/telemetry/*.jsonl
[inputs | fromjson?
  | select(.event == "collect_ok" or .event == "collect_truncated")]
| (map(select(.event == "collect_ok")) | length) as $blocks
| map(select(.event == "collect_truncated") | .detail)
| group_by(.reason)
| map({
    reason: .[0].reason,
    blocks: length,
    rate: (if $blocks == 0 then null else length / $blocks end),
    kept: ((map(.kept) | add) / length),
    dropped: ((map(.dropped) | add) / length)
  })
| sort_by([-.blocks, .reason])
| .[]
