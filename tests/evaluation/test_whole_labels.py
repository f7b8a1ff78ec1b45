"""Lists of labels are completed so that the official scorer of Wikidata's answer types does not stop."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from searchapp.tasks.smart_types.scorer_wikidata import WholeLabels, stopping_predictions

# Few short texts, so that many are parts of others. Quotes and blanks are parts of every printed list.
LABELS = st.text(alphabet="abcé", min_size=1, max_size=4)
VOCABULARY = st.lists(LABELS, min_size=1, max_size=12, unique=True)


def stopped(listed: list[str], gold: list[str]) -> bool:
    question = {"id": 1, "category": "resource", "type": gold}
    return bool(list(stopping_predictions([{"id": 1, "category": "resource", "type": listed}], [question])))


def test_labels_that_contain_a_label_are_placed_before_it() -> None:
    labels = WholeLabels(["city", "big city", "very big city", "town"])
    assert labels.containing_labels("city") == ("very big city", "big city")
    assert labels.complete(["town", "city"]) == ["town", "very big city", "big city", "city"]
    assert labels.complete(["big city", "city", "big city"]) == ["very big city", "big city", "city"]
    assert labels.complete(["hamlet"]) == ["hamlet"]
    assert stopped(["city"], ["big city"]) and not stopped(labels.complete(["city"]), ["big city"])


@given(VOCABULARY, st.data())
def test_a_completed_list_never_stops_the_official_scorer(vocabulary: list[str], data: st.DataObject) -> None:
    ranked = data.draw(st.lists(st.sampled_from(vocabulary), min_size=1, max_size=4, unique=True))
    listed = WholeLabels(vocabulary).complete(ranked)
    assert set(ranked) <= set(listed) <= set(vocabulary) and len(listed) == len(set(listed))
    for label in vocabulary:
        assert not stopped(listed, [label])
        assert not stopped(listed, [label, ranked[-1]])
