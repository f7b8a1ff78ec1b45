"""The community's schema of what a run was made from, `ir_metadata` 0.1, as YAML.

    T. Breuer, J. Keller, P. Schaer, ir_metadata: An Extensible Metadata Schema for IR Experiments, SIGIR 2022

The first and the last line are comments, so that the file is YAML, and may stand before the lines of a TREC run for the
tools that look for them there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

START, END = "# ir_metadata.start", "# ir_metadata.end"
SCHEMA_VERSION = 0.1
RUN_VERSION = 1.0

PARTS = ("platform", "research goal", "implementation", "method", "actor", "data")
"""Of the model PRIMAD, in the order of the schema."""


def write(target: BinaryIO, tag: str, parts: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the metadata of a run: what of `PARTS` there is, without what is empty.

    Values are mappings, sequences, texts, numbers and truth values.
    """
    described = {"schema-version": SCHEMA_VERSION, "run-version": RUN_VERSION, "tag": tag}
    described |= {name: parts[name] for name in PARTS if name in parts}
    kept = _without_empty(described)
    target.write("\n".join([START, *_lines(kept, 0), END, ""]).encode("utf-8", "backslashreplace"))


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {str(name): _without_empty(held) for name, held in value.items()}
        return {name: held for name, held in kept.items() if held not in (None, "", {}, [])}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [held for one in value if (held := _without_empty(one)) not in (None, "", {}, [])]
    return value


def _lines(held: Mapping[str, Any], depth: int) -> Iterator[str]:
    """A mapping as YAML in blocks; whatever is a text is quoted as in JSON, which YAML reads the same."""
    for name, value in held.items():
        yield from _entry(f"{'  ' * depth}{_key(name)}:", value, depth + 1)


def _entry(before: str, value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield before
        yield from _lines(value, depth)
    elif isinstance(value, list) and value:
        yield before
        for one in value:
            if isinstance(one, Mapping) and one:
                first, *rest = _lines(one, depth + 1)
                yield f"{'  ' * depth}- {first.strip()}"
                yield from rest
            else:
                yield f"{'  ' * depth}- {_scalar(one)}"
    else:
        yield f"{before} {_scalar(value)}"


_PLAIN = re.compile("[A-Za-z][A-Za-z0-9 _-]*[A-Za-z0-9]")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null"}
"""What YAML takes for something else than a text."""


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else _scalar(name)


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        digits, exponent, power = json.dumps(value).partition("e")
        # YAML 1.1 takes a number with an exponent for a text unless it has a point.
        return digits + ".0" * (exponent != "" and "." not in digits) + exponent + power
    if not isinstance(value, str):
        return json.dumps(value)
    return f'"{"".join(map(_character, value))}"'


def _character(one: str) -> str:
    """A character between double quotes, as YAML's escape where nobody would see it or a terminal would act on it."""
    if one in '"\\':
        return f"\\{one}"
    return one if one.isprintable() else f"\\U{ord(one):08x}"
