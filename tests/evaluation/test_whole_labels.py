"""Lists of labels that the official scorer of Wikidata's answer types does not stop at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from searchapp.tasks.smart_types.scorer_wikidata import WholeLabels, stopping_predictions

# Few short texts, so that many are parts of others. No quotes and blanks: alone they are parts of whatever is printed.
LABELS = st.text(alphabet="abcé", min_size=1, max_size=4)
VOCABULARY = st.lists(LABELS, min_size=1, max_size=12, unique=True)


def stopped(listed: list[str], gold: list[str]) -> bool:
    question = {"id": 1, "category": "resource", "type": gold}
    return bool(list(stopping_predictions([{"id": 1, "category": "resource", "type": listed}], [question])))


def test_a_label_stands_behind_those_that_it_is_a_part_of() -> None:
    labels = WholeLabels(["city", "big city", "very big city", "town"])
    assert labels.containing_labels("city") == ("very big city", "big city")
    assert labels.complete(["town", "city"]) == ["town", "very big city", "big city", "city"]
    assert labels.complete(["big city", "city", "big city"]) == ["very big city", "big city", "city"]
    assert labels.complete(["hamlet"]) == ["hamlet"]
    assert stopped(["city"], ["big city"]) and not stopped(labels.complete(["city"]), ["big city"])


@given(VOCABULARY, st.data())
def test_the_official_scorer_stops_at_no_completed_list(vocabulary: list[str], data: st.DataObject) -> None:
    one = st.sampled_from(vocabulary)
    ranked = data.draw(st.lists(one, min_size=1, max_size=4, unique=True))
    listed = WholeLabels(vocabulary).complete(ranked)
    assert set(ranked) <= set(listed) <= set(vocabulary) and len(listed) == len(set(listed))
    for label in vocabulary:
        assert not stopped(listed, [label])
        assert not stopped(listed, [label, ranked[-1]])
