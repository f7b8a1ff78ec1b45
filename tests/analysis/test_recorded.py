"""Each piece gives the tokens recorded from Elasticsearch 9.4.3 in `tests/fixtures/analysis`.

Tokens have the notation `term@position[start:end]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from searchapp.model import Token
from tests.analysis.parity import InlineOracle, built_analyzer
from tests.search.analyzers import CHANGED

NO_PIECES: dict[str, Any] = {"char_filter": [], "filter": []}
RECORDED = [
    pytest.param(case, id=f"{path.stem}-{number}")
    for path in sorted((Path(__file__).parents[1] / "fixtures" / "analysis").glob("*.json"))
    for number, case in enumerate(json.loads(path.read_text(encoding="utf-8")))
]


def _analyzer(case: dict[str, Any]) -> str | dict[str, Any]:
    analyzer = case["analyzer"]
    return analyzer if isinstance(analyzer, str) else {**NO_PIECES, **analyzer}


def _notation(tokens: Iterable[Token]) -> str:
    return " ".join(f"{token.term}@{token.position}[{token.start}:{token.end}]" for token in tokens)


@pytest.mark.parametrize("case", RECORDED)
def test_pieces_give_the_recorded_tokens(case: dict[str, Any]) -> None:
    analyzer = built_analyzer(_analyzer(case))
    tokens = analyzer.tokens(case["text"])
    assert _notation(tokens) == case["tokens"]
    assert analyzer.terms(case["text"]) == [(token.term, token.position) for token in tokens]


def test_a_server_gives_the_recorded_tokens(oracle: InlineOracle) -> None:
    for param in RECORDED:
        (case,) = param.values
        assert isinstance(case, dict)
        if oracle.is_older and any(name in str(case["analyzer"]).lower() for name in CHANGED):
            continue
        assert _notation(oracle.servers(_analyzer(case), [case["text"]])) == case["tokens"]
