# An MCP server of the older generation (2025-11-25) for tests, by stdio: a line is a message.
# `$1` is a folder for what tests look at.
printf 'begun\n' >>"$1/starts"
env | cut -d= -f1 | sort >"$1/variables"
printf 'the key is %s\n' "$KEY" >&2
result() {
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
}
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
    *'"method":"initialize"'*)
        printf 'greeted\n' >>"$1/starts"
        result '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}'
        ;;
    *'"method":"server/discover"'*)
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id"
        ;;
    *'"method":"tools/list"'*)
        does=$(cat "$1/does" 2>/dev/null || echo 'Says it again.')
        schema='{"type":"object","properties":{"text":{"type":"string"}}}'
        result '{"tools":[{"name":"say","description":"'"$does"'","inputSchema":'"$schema"'},{"name":"hidden","inputSchema":{"type":"object"}},{"name":"long","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}},{"name":"end","inputSchema":{"type":"object"}},{"name":"far","inputSchema":{"type":"object"}},{"name":"take","inputSchema":{"type":"object"}},{"name":"spawn","inputSchema":{"type":"object"}},{"name":"wait","inputSchema":{"type":"object"}},{"name":"list","inputSchema":{"type":"array"}}]}'
        ;;
    *'"name":"say"'*)
        text=$(printf '%s' "$line" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')
        result '{"content":[{"type":"text","text":"'"$text"'"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource_link","uri":"https://example.org/a","name":"a"},{"type":"resource","resource":{"uri":"file:///b","text":"inside"}},{"type":"audio","data":"AAAA","mimeType":"audio/wav"}],"structuredContent":{"text":"again"}}'
        ;;
    *'"name":"long"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
        head -c 9000000 /dev/zero | tr '\0' 'a'
        printf '"}]}}\n'
        ;;
    *'"name":"ask"'*)
        asked=$id
        printf '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{}}}}\n'
        read -r answer
        id=$asked
        case $answer in
        *'"decline"'*) result '{"content":[{"type":"text","text":"nobody answered"}],"isError":true}' ;;
        *) result '{"content":[{"type":"text","text":"somebody answered"}]}' ;;
        esac
        ;;
    *'"name":"take"'*)
        asked=$id
        printf '{"jsonrpc":"2.0","id":901,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9}}\n'
        read -r sampled
        printf '{"jsonrpc":"2.0","id":902,"method":"roots/list"}\n'
        read -r roots
        id=$asked
        case $sampled$roots in
        *'"result"'*) result '{"content":[{"type":"text","text":"it was given"}]}' ;;
        *'"id":901'*'-32601'*'"id":902'*'-32601'*) result '{"content":[{"type":"text","text":"both refused"}]}' ;;
        esac
        ;;
    *'"name":"far"'*)
        token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":2}}\n' "$token"
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":2,"message":"nearly, says %s"}}\n' "$token" "$KEY"
        sleep 0.2
        result '{"content":[{"type":"text","text":"there"}]}'
        ;;
    *'"name":"end"'*) exit 3 ;;
    *'"name":"spawn"'*)
        sleep 600 &
        printf '%s' "$!" >"$1/spawned"
        result '{"content":[],"structuredContent":{"started":true}}'
        ;;
    *'"notifications/cancelled"'*) printf 'cancelled\n' >>"$1/starts" ;;
    *'change'*) printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n' ;;
    esac
done
