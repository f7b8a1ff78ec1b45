"""What analyzers make of texts, for commands and screens alike."""

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
    found = analyze(nlps.task, nlps.index, "the groups")
    assert [one.name for one in found if one.kind == "field"] == fields_of(nlps.task)
    assert found[0].kind == "field"
    one, of_queries = analyze(nlps.task, nlps.index, "the groups", field="text.prose")
    assert [token.term for token in one.steps[-1].tokens] == ["group"]
    assert (of_queries.kind, of_queries.name) == ("search", "text.prose")
    assert of_queries.steps == nlps.index.analyze("the groups", analyzer="prose_query")


@pytest.mark.parametrize(
    "chosen",
    [{"field": "nowhere"}, {"analyzer": "nobody"}, {"field": "text", "analyzer": "mathematics"}],
)
def test_what_the_task_does_not_have_is_refused(nlps: TaskSearcher, chosen: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        analyze(nlps.task, nlps.index, "a", **chosen)


@pytest.mark.parametrize("text", ["", "\x1b[2J '''a", "a" * 3000])
def test_both_texts_go_through_their_own_steps(nlps: TaskSearcher, text: str) -> None:
    for field in fields_of(nlps.task):
        found = side_by_side(nlps.task, nlps.index, field, text, "Groups of a ring")
        of_document = [one.document for one in found.steps if one.is_of_document]
        assert of_document == nlps.index.analyze(text, field=field) and found.field == field
        named = nlps.task.index_mapping()["mappings"]["properties"]["text"]
        named = named["fields"][field.partition(".")[2]] if "." in field else named
        analyzer = named.get("search_analyzer", named["analyzer"])
        of_query = [one.query for one in found.steps if one.is_of_query]
        assert of_query == nlps.index.analyze("Groups of a ring", analyzer=analyzer)


def test_terms_that_both_have_are_common(nlps: TaskSearcher) -> None:
    found = side_by_side(nlps.task, nlps.index, "text.prose", "Every group is a set", "sets of rings")
    assert found.steps[-1].common == {"set"} and not found.steps[0].common


def test_a_step_that_only_one_of_them_takes_stands_in_its_place(nlps: TaskSearcher) -> None:
    found = side_by_side(nlps.task, nlps.index, "text.prose", "a set", "a set")
    alone = [one for one in found.steps if not (one.is_of_document and one.is_of_query)]
    assert alone, "documents of this field are analyzed otherwise than queries"
    assert all(one.document is not None and one.query is not None for one in alone)
