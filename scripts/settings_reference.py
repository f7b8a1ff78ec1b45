"""Write the table of docs/reference/settings.md from the declared settings.

python scripts/settings_reference.py
"""

from __future__ import annotations

from pathlib import Path

from searchapp.config.settings import DECLARED, SettingDeclaration

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"


def table() -> str:
    """Return a table with a row for each setting: key, flag, variable, files, default and description."""
    head = ["| setting | flag | variable | files | default | |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *map(_row, DECLARED)])


def _row(setting: SettingDeclaration) -> str:
    files = ["user"] * setting.by_user + ["project"] * setting.by_project
    default = setting.unset if setting.default is None else f"`{setting.shown(setting.default)}`"
    flag, variable = (f"`{name}`" if name else "" for name in (setting.flag, setting.variable))
    return f"| `{setting.name}` | {flag} | {variable} | {', '.join(files)} | {default} | {setting.about} |"


def updated(text: str) -> str:
    """Return the document with the current table between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    TARGET.write_text(updated(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
