"""Writes the table of docs/reference/settings.md from the settings that the program has.

python scripts/settings_reference.py
"""

from __future__ import annotations

from pathlib import Path

from searchapp.config.settings import DECLARED, SettingDeclaration

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"


def table() -> str:
    """A row a setting: its key, its flag, its variable, the files that may hold it, its default, what it is for."""
    head = ["| setting | flag | variable | files | default | |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *map(_row, DECLARED)])


def _row(one: SettingDeclaration) -> str:
    files = ["user"] * one.by_user + ["project"] * one.by_project
    default = one.unset if one.default is None else f"`{one.shown(one.default)}`"
    flag, variable = (f"`{name}`" if name else "" for name in (one.flag, one.variable))
    return f"| `{one.name}` | {flag} | {variable} | {', '.join(files)} | {default} | {one.about} |"


def written(text: str) -> str:
    """A document with the table between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    TARGET.write_text(written(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
