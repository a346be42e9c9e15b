# Requests, tokens and what they cost, by day and model. Prices are those of
# `clew report`, a million tokens each, from the environment: LLM_PRICES, such as
# `0.15/0.6` or `0.15/0.6, big-model=2.5/10`. Without a price the cost is
# null; `uncounted` are requests of which the server did not count the tokens, so
# that they cost nothing here. `cost.sql` says the same.
#
#   LLM_PRICES=0.15/0.6 \
#     jq -nRc -f telemetry/queries/cost.jq var/telemetry/*.jsonl
def trim: gsub("^\\s+|\\s+$"; "");
def prices($list; $model):
  [$list // "" | split(",")[] | trim | select(. != "")
    | if contains("=")
      then {model: (.[:rindex("=")] | trim), prices: .[rindex("=") + 1:]}
      else {model: null, prices: .}
      end]
  | (map(select(.model == $model)) + map(select(.model == null)))[0].prices
  | values | split("/") | map(trim | tonumber);

[inputs | fromjson? | select(.event == "request_ok") | .day = .ts[:10]]
| group_by([.day, .detail.model])
| map({
    day: .[0].day,
    model: .[0].detail.model,
    requests: length,
    uncounted: (map(select(.detail.prompt_tokens == null and .detail.completion_tokens == null)) | length),
    prompt_tokens: (map(.detail.prompt_tokens // 0) | add),
    completion_tokens: (map(.detail.completion_tokens // 0) | add)
  })
| map(. + {cost: (
    [prices(env.LLM_PRICES; .model)][0] as $prices
    | if $prices == null then null
      else (.prompt_tokens * $prices[0] + .completion_tokens * $prices[1]) / 1000000
      end
  )})
| .[]
