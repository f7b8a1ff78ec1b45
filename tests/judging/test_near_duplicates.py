from __future__ import annotations

import time

from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import (
    COMPARED_DOCUMENTS,
    JudgingSession,
    NearDuplicates,
    SeenDocument,
    Session,
)

TEXTS = {
    "plain": "A pond is a small kind of body of water in a garden",
    "same": "a pond is a small kind, of  body of WATER in a garden!",
    "near": "A pond is a small kind of body of water in the garden",
    "other": "Heat causes water to evaporate",
    "less": "x < y",
    "more": "x > y",
    "less again": "X  <  Y.",
    "empty": "…",
}


def judging(log: JudgmentLog, name: str = "ann", documents: list[str] | None = None) -> JudgingSession:
    session, documents = Session(log, "nlps", Author(name)), documents or list(TEXTS)
    return JudgingSession(
        session, ["t1", "t2"], lambda _topic: documents, lambda _topic: len(documents), "run@1"
    )


def found(near: NearDuplicates, document: str, topic: str = "t1") -> list[tuple[str, int | None, bool]]:
    return [(one.document_id, one.judgment.grade, one.is_same) for one in near.of(topic, document)]


def test_own_judgments_of_equal_and_similar_texts_are_found(log: JudgmentLog) -> None:
    mine = judging(log)
    near = NearDuplicates(mine, TEXTS.get)
    assert found(near, "plain") == []
    mine.grade("t1", ["near"], 0)
    mine.grade("t1", ["same"], 1)
    mine.grade("t1", ["other"], 1)
    assert found(near, "plain") == [("same", 1, True), ("near", 0, False)]
    assert found(near, "near") == [("same", 1, False)]  # not the document itself
    assert found(near, "other") == []
    assert found(near, "plain", "t2") == []  # another topic
    assert (
        found(NearDuplicates(judging(log, "ben"), TEXTS.get), "plain") == []
    )  # others' judgments stay hidden
    mine.undo()
    mine.undo()
    assert found(near, "plain") == [("near", 0, False)]
    mine.skip("t1", "near")
    assert found(near, "plain") == []
    mine.cant_tell("t1", "near")
    (duplicate,) = near.of("t1", "plain")
    assert duplicate.judgment.action is Action.cant_tell and 0.8 <= duplicate.overlap < 1


def test_signs_of_relations_distinguish_texts_and_an_empty_text_has_no_duplicate(log: JudgmentLog) -> None:
    mine = judging(log)
    near = NearDuplicates(mine, TEXTS.get)
    mine.grade("t1", ["less", "empty"], 1)
    assert found(near, "more") == [] and found(near, "empty") == []
    assert found(near, "less again") == [("less", 1, True)]


def test_unknown_texts_are_named_and_found_once_they_are_known(log: JudgmentLog) -> None:
    mine = judging(log)
    known = {"plain": TEXTS["plain"]}
    near = NearDuplicates(mine, known.get)
    mine.grade("t1", ["same"], 1)
    mine.session.grade([SeenDocument("t1", "not in the run")], 1)
    assert near.unknown("t1") == ["same", "not in the run"] and found(near, "plain") == []
    known["same"] = TEXTS["same"]
    assert near.unknown("t1") == ["not in the run"] and found(near, "plain") == [("same", 1, True)]


def test_the_work_for_a_document_is_bounded(log: JudgmentLog) -> None:
    documents = [f"d{number}" for number in range(2 * COMPARED_DOCUMENTS)]
    words = [f"word{number % 997}" for number in range(3_000)]
    texts = {document: " ".join(words[place : place + 700]) for place, document in enumerate(documents)}
    mine = judging(log, documents=documents)
    near = NearDuplicates(mine, texts.get)
    mine.grade("t1", documents[:-1], 1)
    asked: list[str] = []
    NearDuplicates(mine, lambda document: asked.append(document) or texts[document]).of("t1", documents[-1])  # type: ignore[func-returns-value]
    assert len(set(asked)) <= COMPARED_DOCUMENTS + 1
    assert len(near.of("t1", documents[-1])) == 3
    start = time.process_time()
    near.of("t1", documents[-1])
    assert time.process_time() - start < 0.2
