"""An own mapping whose settings have any form that Elasticsearch accepts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli
from tests.engines.test_index_settings import DOCUMENTS, EQUIVALENT, MAPPINGS, PLAIN


def test_every_form_of_a_mapping_makes_the_same_index(cli: Cli, tmp_path: Path) -> None:
    lines = [json.dumps({"id": document.id, "text": document.text}) + "\n" for document in DOCUMENTS]
    (tmp_path / "d.jsonl").write_text("".join(lines))
    task = tmp_path / "task.toml"
    task.write_text(
        'name = "soups"\nmapping = "mine.json"\n[documents]\nfile = "d.jsonl"\n[topics.dev]\nfile = "d.jsonl"\n'
    )
    digests, built = set(), []
    for settings in EQUIVALENT.values():
        (tmp_path / "mine.json").write_text(json.dumps({"settings": settings, "mappings": MAPPINGS}))
        result = cli("index", task, "--json")
        assert result.code == 0, result.stderr
        digests.add(result.json["digest"])
        built.append(result.json["built"])
        hits = cli("search", task, "the north", "--json").json["hits"]
        assert [hit["id"] for hit in hits] == ["2", "1"]
        analyzed = cli("analyze", task, "The North", "--analyzer", "mine", "--json")
        assert analyzed.json["analyses"][0]["steps"][-1]["tokens"][0]["term"] == "north"
    assert len(digests) == 1
    assert built == [True] + [False] * (len(EQUIVALENT) - 1)
    (tmp_path / "mine.json").write_text(
        json.dumps(
            {"settings": {**PLAIN, "index.analysis.analyzer.mine.tokenizer": "keyword"}, "mappings": MAPPINGS}
        )
    )
    result = cli("index", task)
    assert result.code == 4
    assert "mine.json: the settings of the mapping set " in result.stderr
