# Requests, tokens and what they cost, by day and model. Prices are those of
# `clew report`, a million tokens each, from the environment: LLM_PRICE_IN and
# LLM_PRICE_OUT, `0.15` or `0.15, big-model=2.5`. Without both prices the cost is
# null; `uncounted` are requests of which the server did not count the tokens, so
# that they cost nothing here. `cost.sql` says the same.
#
#   LLM_PRICE_IN=0.15 LLM_PRICE_OUT=0.6 \
#     jq -nRc -f telemetry/queries/cost.jq var/telemetry/*.jsonl
def trim: gsub("^\\s+|\\s+$"; "");
def price($list; $model):
  [$list // "" | split(",")[] | trim | select(. != "")
    | if contains("=")
      then {model: (.[:rindex("=")] | trim), price: (.[rindex("=") + 1:] | trim)}
      else {model: null, price: .}
      end]
  | (map(select(.model == $model)) + map(select(.model == null)))[0].price
  | values | tonumber;

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
    [price(env.LLM_PRICE_IN; .model), price(env.LLM_PRICE_OUT; .model)] as $prices
    | if ($prices | length) < 2 then null
      else (.prompt_tokens * $prices[0] + .completion_tokens * $prices[1]) / 1000000
      end
  )})
| .[]
