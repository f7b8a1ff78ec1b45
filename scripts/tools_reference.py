"""Write docs/reference/tools.md from the tools of `searchapp mcp`.

python scripts/tools_reference.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcp.types import Tool

from searchapp.config.settings import Settings
from searchapp.mcp.tool_server import ToolServer
from searchapp.mcp.toolbox import ModelJudge

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "tools.md"

HEAD = """# Tools

The tools of [`searchapp mcp`](../use/mcp.md). `python scripts/tools_reference.py` makes this page from the schemas that
clients receive.

Lists have pages: `total` is the number of entries on all pages, and `next_cursor` is the argument `cursor` for the next
page, null on the last one. Figures and scores are numbers at full precision, null if undefined.
"""


def tools() -> list[Tool]:
    """Return all tools, those of judging too."""
    server = ToolServer(Settings(home=Path()), Path(), ModelJudge("NAME", 1))
    try:
        return asyncio.run(server.list_tools())
    finally:
        server.close()


def reference() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for tool in tools() for line in _section(tool))])


def _section(tool: Tool) -> Iterator[str]:
    yield f"## `{tool.name}`\n\n{tool.description}\n"
    if not (tool.annotations and tool.annotations.read_only_hint):
        yield "Only with `--judge-as NAME`.\n"
    required = tool.input_schema.get("required", ())
    yield "| argument | type | meaning |\n|---|---|---|"
    for name, schema in tool.input_schema["properties"].items():
        default = "required" if name in required else _default(schema)
        kind = ", ".join(filter(None, (_kind(schema, tool.input_schema), default)))
        yield f"| `{name}` | {kind} | {_cell(schema)} |"
    yield "\n| result | type | meaning |\n|---|---|---|"
    assert tool.output_schema is not None
    yield from _fields(tool.output_schema, tool.output_schema, "")
    yield ""


def _fields(schema: Mapping[str, Any], root: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, field in schema["properties"].items():
        yield f"| `{prefix}{name}` | {_kind(field, root)} | {_cell(field)} |"
        if "$ref" in field.get("items", {}):
            yield from _fields(_resolved(field["items"], root), root, f"{prefix}{name}[].")


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return found


def _kind(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        schema = _resolved(schema, root)
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(choice, root) for choice in schema["anyOf"])
    kind = str(schema["type"])
    if "type" in schema.get("items", {}):
        kind += f" of {schema['items']['type']}s"
    bounds = (("minimum", "from"), ("maximum", "to"))
    return " ".join([kind, *(f"{word} {schema[bound]}" for bound, word in bounds if bound in schema)])


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return (
        ""
        if default in (None, "")
        else f"default {str(default).lower() if isinstance(default, bool) else default}"
    )


def _cell(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description", "")).replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
