"""The server that the clients read: where it is, what it says, and the test that changes it.

The test `turns::client_named` starts it, runs each client, and gives all this in the environment.
"""

import os
import sys

URL = os.environ["CLEW_URL"]
TOKEN = os.environ["CLEW_TOKEN"]
# Who never had a token.
WRONG = "clew_0"
# What `clew mcp serve` needs: the program, the bot's folder, and as whom it reads.
PROGRAM = os.environ["CLEW_PROGRAM"]
STATE_DIR = os.environ["CLEW_STATE_DIR"]
SERVE = ["mcp", "serve", "--as", os.environ["CLEW_USER"], "--guild", os.environ["CLEW_GUILD"]]

# Each tool, its arguments, and what the member reads by it.
CALLS = [
    ("list_channels", {}, "#engine-room"),
    ("read_thread", {"channel": "#engine-room"}, "the boiler has a crack"),
    ("read_context", {"channel": os.environ["CLEW_ASKED"], "question": "And?"}, "what is broken?"),
    ("search", {"words": "crack"}, "the boiler has a crack"),
    ("why", {"answer": os.environ["CLEW_ANSWER"]}, "What this answer was made from"),
]
TOOLS = {name for name, _, _ in CALLS}
NOTHING = "There is nothing there that you may read."


def has_role(is_member: bool) -> None:
    """Has the test give the member the role that reads the engine room, or take it away."""
    print("give" if is_member else "take", flush=True)
    sys.stdin.readline()


def said(what: str) -> None:
    """Tells whoever runs `.ci/mcp`."""
    print(what, flush=True)
