"""A server of tools by the official Python SDK: over stdio, or with a port as its argument behind http://127.0.0.1:PORT/mcp."""

import sys

from mcp.server import MCPServer

server = MCPServer("official")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("on purpose")


@server.resource("note://today", mime_type="text/markdown")
def today() -> str:
    """What is to be done."""
    return "Feed the fox."


@server.resource("note://named/{name}")
def named(name: str) -> str:
    """A note by its name."""
    return f"A note called {name}."


if len(sys.argv) > 1:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
