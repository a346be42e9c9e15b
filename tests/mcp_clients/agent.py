"""An agent, opencode: its model is a script that calls each tool and repeats what it is told."""

import json
import os
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import town

# The agent may ask its model before it knows its servers' tools.
ATTEMPTS = 5
HERE = {"channel": "#engine-room"}
CALLS = [(tool, arguments) for tool, arguments, _ in town.CALLS] + [("read_thread", HERE)]


def next_step(request: dict) -> dict:
    """What the model says to a request: the next call, or all that calls gave."""
    given = [str(one["content"]) for one in request["messages"] if one["role"] == "tool"]
    tools = [tool["function"]["name"] for tool in request.get("tools", [])]
    if "discord_why" not in tools or len(given) == len(CALLS):
        return {"content": "\n".join(["I was told:", *given])}
    if len(given) == len(CALLS) - 1:
        town.has_role(False)
    tool, arguments = CALLS[len(given)]
    function = {"name": f"discord_{tool}", "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call_{len(given)}", "type": "function", "function": function}
    return {"tool_calls": [call]}


class Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        delta = next_step(request)
        reason = "tool_calls" if "tool_calls" in delta else "stop"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for chunk in [{"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": reason}]:
            event = {"choices": [{"index": 0, **chunk}]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def opencode(folder: str, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"], "HOME": folder,
        "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    ended = subprocess.run(
        ["opencode", *arguments], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )
    assert ended.returncode == 0, ended
    return ended.stdout


def configure(folder: str, model: str, headers: dict[str, str]) -> None:
    server = {"type": "remote", "url": town.URL, "oauth": False, "headers": headers}
    provider = {
        "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
        "options": {"baseURL": model, "apiKey": "none"}, "models": {"scripted": {}},
    }
    config = {
        "mcp": {"discord": server}, "provider": {"scripted": provider},
        "model": "scripted/scripted", "small_model": "scripted/scripted",
    }
    with open(os.path.join(folder, "opencode.json"), "w") as file:
        json.dump(config, file)


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = f"http://127.0.0.1:{server.server_port}/v1"
    with tempfile.TemporaryDirectory() as home:
        folder = os.path.join(home, "work")
        os.mkdir(folder)
        version = opencode(folder, "--version").strip()
        configure(folder, model, {"Authorization": f"Bearer {town.TOKEN}"})
        answers = (opencode(folder, "run", "What is broken?") for _ in range(ATTEMPTS))
        answer = next(answer for answer in answers if "engine-room" in answer)
        for tool, _, expected in town.CALLS:
            assert expected in answer, (tool, answer)
        assert town.NOTHING in answer.splitlines()[-1], answer
        town.has_role(True)
        for headers in [{}, {"Authorization": f"Bearer {town.WRONG}"}]:
            configure(folder, model, headers)
            listed = opencode(folder, "mcp", "list")
            assert "failed" in listed and "connected" not in listed, listed
        town.said(f"opencode {version}: ok")


main()
