"""The commands and the mapping in docs/start/questions.md work."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from scripts.cli_reference import reference
from tests.cli.conftest import SAMPLES, Cli

PAGE = (Path(__file__).parents[2] / "docs" / "start" / "questions.md").read_text(encoding="utf-8")


def test_every_command_of_the_page_exists_with_its_options() -> None:
    parts = re.split(r"^## ", reference(), flags=re.MULTILINE)
    known = {part.partition("\n")[0].strip("`"): part for part in parts}
    lines = [line.strip() for line in PAGE.splitlines() if line.startswith("    searchapp ")]
    assert len(lines) > 12
    for line in lines:
        command = max((name for name in known if f"{line} ".startswith(f"{name} ")), key=len)
        for option in re.findall(r"(?<= )--[a-z-]+", line.partition("#")[0]):
            assert f"`{option}" in known[command], f"{command} has no option {option}"


def test_the_mapping_of_the_page_removes_its_stop_words(offline: Cli, tmp_path: Path) -> None:
    task = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own")) / "cooking.toml"
    (mapping,) = re.findall(r"```json\n(.+?)```", PAGE, re.DOTALL)
    (tmp_path / "mapping.json").write_text(mapping, encoding="utf-8")
    mine = tmp_path / "mine.toml"
    mine.write_text(f'extends = "{task}"\nmapping = "mapping.json"\n', encoding="utf-8")
    indexed = offline("index", mine)
    assert indexed.code == 0, indexed.stderr
    analyzed = offline("analyze", mine, "the best recipe of soups", "--json").json
    names = [analysis.get("field", analysis.get("search")) for analysis in analyzed["analyses"]]
    assert names.count("text") == 1
    text = analyzed["analyses"][names.index("text")]
    assert [token["term"] for token in text["steps"][-1]["tokens"]] == ["best", "soup"]
