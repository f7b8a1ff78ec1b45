"""Every analyzer of every index mapping on real texts, compared with a real Elasticsearch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchapp.formats.problems import Problems
from searchapp.tasks.nlps.task import read_knowledge_base, read_statements
from tests.analysis.parity import AnalysisOracle
from tests.profile import FULL, SEED
from tests.scheduling import OLDER
from tests.server.rest import Server

OWN_TEXTS = "premises"
"""The mapping of these texts."""


def step_of(mapping: str) -> int:
    """Return n if the analyzers of a mapping are tested on every n-th text."""
    if FULL:
        return 1
    return 16 if mapping == OWN_TEXTS else 48


MAPPINGS = sorted((Path(__file__).parents[2] / "index_mappings").glob("*.json"))


@pytest.fixture(scope="module")
def real_texts(nlps_data: Path) -> list[str]:
    """Read all statements and topics, each text once."""
    problems = Problems()
    texts = [document.text for document in read_knowledge_base(nlps_data / "knowledge_base.json", problems)]
    for split in ("train", "dev"):
        texts += [topic.text for topic in read_statements(nlps_data / f"{split}_set.json", problems)]
    assert len(texts) > 12_343
    return list(dict.fromkeys(texts))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mapping", MAPPINGS, ids=[path.stem for path in MAPPINGS])
def test_every_analyzer_gives_the_tokens_of_the_server(
    mapping: Path,
    real_texts: list[str],
    compared_url: str,
    compared_prefix: str,
    request: pytest.FixtureRequest,
) -> None:
    analysis = json.loads(mapping.read_text(encoding="utf-8"))["settings"]["analysis"]
    oracle = AnalysisOracle(Server(compared_url), compared_prefix, analysis)
    step = step_of(mapping.stem) * (5 if OLDER in request.node.name and not FULL else 1)
    texts = real_texts[SEED % step :: step]
    for analyzer in analysis["analyzer"]:
        assert oracle.difference(analyzer, texts) is None
        for text in real_texts[:20]:
            assert oracle.steps(analyzer, text) == oracle.registry.analyzer(analyzer).steps(text)
