"""The analysis of texts, as commands and screens show it."""

from __future__ import annotations

import pytest

from searchapp.app.analyze import analyze, fields_of, side_by_side
from searchapp.app.search import TaskSearcher
from searchapp.errors import UsageError
from tests.app.conftest import MakeSearcher


@pytest.fixture(scope="module")
def nlps(make_searcher: MakeSearcher) -> TaskSearcher:
    return make_searcher("nlps")


def test_every_field_has_its_analysis(nlps: TaskSearcher) -> None:
    analyses = analyze(nlps.task, nlps.index, "the groups")
    assert [analysis.name for analysis in analyses if analysis.kind == "field"] == fields_of(nlps.task)
    assert analyses[0].kind == "field"
    of_documents, of_queries = analyze(nlps.task, nlps.index, "the groups", field="text.prose")
    assert [token.term for token in of_documents.steps[-1].tokens] == ["group"]
    assert (of_queries.kind, of_queries.name) == ("search", "text.prose")
    assert of_queries.steps == nlps.index.analyze("the groups", analyzer="prose_query")


@pytest.mark.parametrize(
    "chosen",
    [{"field": "nowhere"}, {"analyzer": "nobody"}, {"field": "text", "analyzer": "mathematics"}],
)
def test_unknown_fields_and_analyzers_are_refused(nlps: TaskSearcher, chosen: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        analyze(nlps.task, nlps.index, "a", **chosen)


@pytest.mark.parametrize("text", ["", "\x1b[2J '''a", "a" * 3000])
def test_document_and_query_are_each_analyzed_by_their_analyzer(nlps: TaskSearcher, text: str) -> None:
    for field in fields_of(nlps.task):
        comparison = side_by_side(nlps.task, nlps.index, field, text, "Groups of a ring")
        of_document = [step.document for step in comparison.steps if step.is_of_document]
        assert of_document == nlps.index.analyze(text, field=field) and comparison.field == field
        mapping = nlps.task.index_mapping()["mappings"]["properties"]["text"]
        mapping = mapping["fields"][field.partition(".")[2]] if "." in field else mapping
        analyzer = mapping.get("search_analyzer", mapping["analyzer"])
        of_query = [step.query for step in comparison.steps if step.is_of_query]
        assert of_query == nlps.index.analyze("Groups of a ring", analyzer=analyzer)


def test_terms_of_both_texts_are_common(nlps: TaskSearcher) -> None:
    comparison = side_by_side(nlps.task, nlps.index, "text.prose", "Every group is a set", "sets of rings")
    assert comparison.steps[-1].common == {"set"} and not comparison.steps[0].common


def test_a_step_of_one_analyzer_only_has_the_tokens_of_both(nlps: TaskSearcher) -> None:
    comparison = side_by_side(nlps.task, nlps.index, "text.prose", "a set", "a set")
    unshared = [step for step in comparison.steps if not (step.is_of_document and step.is_of_query)]
    assert unshared, "documents of this field are analyzed differently than queries"
    assert all(step.document is not None and step.query is not None for step in unshared)
