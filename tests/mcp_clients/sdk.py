"""The Python SDK's client: both generations, over HTTP with a token and over stdio."""

import asyncio
from importlib.metadata import version

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import town

GENERATIONS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


def over_http(token: str | None, statuses: list[int]):
    async def note(response: httpx2.Response) -> None:
        statuses.append(response.status_code)

    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    client = httpx2.AsyncClient(headers=headers, event_hooks={"response": [note]})
    return streamable_http_client(town.URL, http_client=client)


def over_stdio():
    environment = {"STATE_DIR": town.STATE_DIR}
    return StdioServerParameters(command=town.PROGRAM, args=town.SERVE, env=environment)


async def call(client: Client, tool: str, arguments: dict) -> tuple[bool, str]:
    result = await client.call_tool(tool, arguments)
    return bool(result.is_error), result.content[0].text


async def reads(server, mode: str) -> None:
    async with Client(server, mode=mode, read_timeout_seconds=30) as client:
        assert client.protocol_version == GENERATIONS[mode], client.protocol_version
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == town.TOOLS, listed
        for tool, arguments, expected in town.CALLS:
            is_error, text = await call(client, tool, arguments)
            assert not is_error and expected in text, (tool, text)
        town.has_role(False)
        answer = await call(client, "read_thread", {"channel": "#engine-room"})
        assert answer == (True, town.NOTHING), answer
        town.has_role(True)


async def is_refused(token: str | None, mode: str) -> None:
    statuses: list[int] = []
    try:
        async with Client(over_http(token, statuses), mode=mode) as client:
            await client.list_tools()
    except* MCPError:
        assert statuses == [401], statuses
    else:
        raise AssertionError("it was let in")


async def main() -> None:
    for mode, generation in GENERATIONS.items():
        for name, server in [("HTTP", over_http(town.TOKEN, [])), ("stdio", over_stdio())]:
            await reads(server, mode)
            town.said(f"mcp {version('mcp')}, {generation} over {name}: ok")
        for token in [None, town.WRONG]:
            await is_refused(token, mode)


asyncio.run(main())
