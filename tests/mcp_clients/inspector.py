"""The inspector's command line: each call is a process of its own."""

import json
import subprocess

import town

# The exit codes of its command line.
OK, NEEDS_TOKEN, TOOL_REFUSED = 0, 3, 5


def inspector(expected: int, method: str, *more: str, token: str | None = town.TOKEN) -> str:
    command = ["mcp-inspector", "--cli", town.URL, "--transport", "http", "--method", method, *more]
    if token is not None:
        command += ["--header", f"Authorization: Bearer {token}"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert ended.returncode == expected, ended
    return ended.stdout


def call(expected: int, tool: str, arguments: dict) -> str:
    pairs = [f"{name}={value}" for name, value in arguments.items()]
    given = ["--tool-arg", *pairs] if pairs else []
    result = json.loads(inspector(expected, "tools/call", "--tool-name", tool, *given))
    return result["content"][0]["text"]


listed = json.loads(inspector(OK, "tools/list"))
assert {tool["name"] for tool in listed["tools"]} == town.TOOLS, listed
for tool, arguments, expected in town.CALLS:
    text = call(OK, tool, arguments)
    assert expected in text, (tool, text)
town.has_role(False)
text = call(TOOL_REFUSED, "read_thread", {"channel": "#engine-room"})
assert text == town.NOTHING, text
town.has_role(True)
for token in [None, town.WRONG]:
    inspector(NEEDS_TOKEN, "tools/list", token=token)
version = subprocess.run(["mcp-inspector", "--cli", "--version"], capture_output=True, text=True, timeout=60)
town.said(f"inspector {version.stdout.strip()}: ok")
