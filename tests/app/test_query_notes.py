"""Which words of a query find nothing, and why a query has no hits."""

from __future__ import annotations

import re
from typing import Any

import pytest

from searchapp.app.inspection.explanation import RankStatus, compare_texts, find_reason
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.ranking import paging, word_notes
from searchapp.ranking.query_language import FieldFilter
from searchapp.ranking.word_notes import WordNote, WordState, corrected
from tests.app.conftest import MakeSearcher


@pytest.fixture(scope="module")
def nlps(make_searcher: MakeSearcher) -> TaskSearcher:
    return make_searcher("nlps")


def notes(searcher: TaskSearcher, text: str, **more: Any) -> list[tuple[str, str, str]]:
    found = searcher.notes(SearchRequest(text, **more), 1).words
    assert all(text[note.start : note.end] == note.word for note in found)
    return [(note.word, note.state.value, note.suggestion) for note in found]


def test_words_that_the_analyzer_removes_are_stop_words_or_ignored(nlps: TaskSearcher) -> None:
    assert notes(nlps, "let the ring") == [("let", "stop word", ""), ("the", "stop word", "")]
    assert notes(nlps, "ring & field") == []  # not a word
    assert notes(nlps, "&") == [("&", "ignored", "")]
    assert notes(nlps, r"\displaystyle ring") == [(r"\displaystyle", "ignored", "")]


def test_a_word_in_no_document_has_a_similar_word_of_a_document(nlps: TaskSearcher) -> None:
    assert notes(nlps, "abelain ring") == [("abelain", "unknown", "abelian")]
    assert notes(nlps, "zzzzqq") == [("zzzzqq", "unknown", "")]
    # The index has the term `homomorph` only.
    assert notes(nlps, "homomorphsm") == [("homomorphsm", "unknown", "homomorphism")]


def test_every_word_of_a_query_is_checked_at_its_place(nlps: TaskSearcher) -> None:
    text = r'+(abelain -rnig) "prime nmuber" text:kernle \+gruop abelain'
    assert notes(nlps, text) == [
        ("abelain", "unknown", "abelian"),
        ("rnig", "unknown", "ring"),
        ("nmuber", "unknown", "number"),
        ("kernle", "unknown", ""),  # after the first three, words get no suggestion
        ("gruop", "unknown", ""),
    ]
    assert notes(nlps, "id:nowhere zzzz*") == []  # a value, and the beginning of a word


def test_only_the_unknown_part_of_a_word_is_reported(nlps: TaskSearcher) -> None:
    assert notes(nlps, "group-abelain") == [("abelain", "unknown", "abelian")]


def test_words_of_a_topic_are_checked_without_operators(nlps: TaskSearcher) -> None:
    assert notes(nlps, 'let "abelain', literal=True) == [
        ("let", "stop word", ""),
        ("abelain", "unknown", "abelian"),
    ]
    assert notes(nlps, "let abelain", literal=True, like="603") == []  # nobody typed the text


def test_long_queries_and_words_are_checked_in_part(
    nlps: TaskSearcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_notes, "MOST_WORDS", 20)
    texts = " ".join(f"qq{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(500))
    asked: list[int] = []
    index = nlps.index
    searched = index.frequencies

    def counted(terms: Any) -> Any:
        asked.append(sum(map(len, terms.values())))
        return searched(terms)

    monkeypatch.setattr(index, "frequencies", counted)
    assert len(notes(nlps, texts)) == 20
    assert asked == [20]
    assert notes(nlps, "q" * 5_000) == []


def test_a_query_without_hits_says_which_restriction_is_the_reason(
    nlps: TaskSearcher, make_searcher: MakeSearcher
) -> None:
    request = SearchRequest("+normal +kernel -group")
    assert nlps.search(request) == []
    count = nlps.counts(SearchRequest("normal kernel")).total
    assert nlps.notes(request, 0).sentences() == [f"{count} documents match without + and -"]
    count = nlps.counts(SearchRequest("subgroup normal")).total
    for text in ('"subgroup normal"', '("subgroup normal")', 'text:"subgroup normal"'):
        assert nlps.search(SearchRequest(text)) == []
        (sentence,) = nlps.notes(SearchRequest(text), 0).sentences()
        assert re.fullmatch(r"\d+ documents? match(es)? without quotation marks", sentence)
    assert nlps.notes(SearchRequest('"subgroup normal"'), 0).sentences()[0].startswith(f"{count} ")
    checkthat = make_searcher("checkthat")
    request = SearchRequest("jobs", filters=(FieldFilter("speaker", "NOBODY"),))
    count = checkthat.counts(SearchRequest("jobs")).total
    assert checkthat.notes(request, 0).sentences() == [
        f"{count} document{'s match' if count != 1 else ' matches'} without the filters"
    ]


def test_a_suggestion_replaces_its_word_and_moves_later_notes() -> None:
    first = WordNote("rng", WordState.unknown, 4, 7, "ring")
    stop_word, later = (
        WordNote("let", WordState.stop_word, 0, 3),
        WordNote("fied", WordState.unknown, 8, 12, "field"),
    )
    text, end, others = corrected("let rng fied", first, (stop_word, first, later))
    assert (text, end) == ("let ring fied", 8)
    assert all(note.holds_in(text) for note in others) and others[0] is stop_word and len(others) == 2
    assert not later.holds_in(text) and not first.holds_in("let rngs")


def test_documents_like_a_document_are_others(nlps: TaskSearcher) -> None:
    (document,) = nlps.search(SearchRequest("+id:603"))
    request = SearchRequest(document.text, size=100, literal=True)
    plain = nlps.search(request)
    assert plain[0].hit.document_id == "603"
    like = SearchRequest(document.text, size=100, literal=True, like="603")
    assert [result.hit for result in nlps.search(like)] == [result.hit for result in plain[1:]]
    assert nlps.counts(like).total == len(plain) - 1
    assert find_reason(nlps, like, "603").status is RankStatus.origin


def test_documents_like_a_document_are_others_with_learned_recipes(nlps: TaskSearcher) -> None:
    (document,) = nlps.search(SearchRequest("+id:603"))
    of_text = SearchRequest(document.text, recipe="neighbours", size=100, literal=True)
    hits = [result.hit for result in nlps.search(of_text)]
    (first, *_) = hits
    like = SearchRequest(document.text, "neighbours", size=100, literal=True, like=first.document_id)
    assert [result.hit for result in nlps.search(like)] == hits[1:]


def test_queries_without_words_rank_nothing(nlps: TaskSearcher) -> None:
    assert not any(nlps.is_ranked(SearchRequest(text)) for text in ("", "-ring", "-(ring field)"))
    assert all(nlps.is_ranked(SearchRequest(text)) for text in ("ring", '"prime number"', "+ring", "prim*"))


def test_the_texts_of_two_hits_have_the_words_that_the_other_lacks(nlps: TaskSearcher) -> None:
    upper, lower = compare_texts(nlps, ("602", "604"))
    assert upper.text == "Every subgroup of an abelian group is normal." and not upper.is_cut
    assert [upper.text[start:end] for start, end in upper.own] == ["subgroup", "normal"]
    assert [lower.text[start:end] for start, end in lower.own] == ["cyclic"]
    assert compare_texts(nlps, ("602", "nowhere")) == ()


def test_characters_beyond_the_basic_plane_do_not_move_marks(
    nlps: TaskSearcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"a": "𝔸𝔹 a ring", "b": "a field 𝔸 " + "ring " * 5_000}
    monkeypatch.setattr(
        paging,
        "sources",
        lambda *_given: {name: {"text": text} for name, text in texts.items()},
    )
    first, second = compare_texts(nlps, ("a", "b"))
    assert first.own == ()
    assert [second.text[start:end] for start, end in second.own] == ["field"]
    assert second.is_cut and len(second.text) == 20_000
