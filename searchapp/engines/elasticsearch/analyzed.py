"""What a server says that an analyzer makes of a text, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from searchapp.engines.elasticsearch.older import without_added
from searchapp.model import AnalysisStep, Token


def analysis_steps(detail: Mapping[str, Any]) -> list[AnalysisStep]:
    """The steps in the `detail` of an answer, without those that searchapp has added for an older server."""
    if not detail["custom_analyzer"]:
        analyzer = detail["analyzer"]
        return [AnalysisStep("analyzer", analyzer["name"], tokens=_tokens(analyzer["tokens"]))]
    steps = [
        AnalysisStep("char_filter", step["name"], text="".join(step["filtered_text"]))
        for step in detail.get("charfilters", ())
    ]
    tokenizer = detail["tokenizer"]
    steps.append(AnalysisStep("tokenizer", tokenizer["name"], tokens=_tokens(tokenizer["tokens"])))
    steps += [
        AnalysisStep("filter", step["name"], tokens=_tokens(step["tokens"]))
        for step in without_added(detail.get("tokenfilters", ()))
    ]
    return steps


def _tokens(tokens: Iterable[Mapping[str, Any]]) -> tuple[Token, ...]:
    return tuple(
        Token(token["token"], token["position"], token["start_offset"], token["end_offset"])
        for token in tokens
    )
