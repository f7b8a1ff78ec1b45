"""The ratings of TextGraphs-15: how relevant facts are to a question and its right answer, from 0 to 6.

    {"rankingProblems": [
      {"qid": "Q1", "queryText": "What is hot? [ANSWER] fire",
       "questionText": "What is hot?", "answerText": "fire",
       "documents": [{"uuid": "6abc-4443-f672-9a97", "relevance": 6, "goldRole": "CENTRAL"}, ...]}, ...]}

`questionText` and `answerText` may be missing: `queryText` has both. Other keys are ignored. A blank answer is noted:
only the question is the query. Every problem is recorded and the next question read; a question with a problem is left
out.

The organisers leave out what is to be found in a masked file: `documents` is missing, null or empty there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from searchapp.formats import json_stream
from searchapp.formats.problems import Problems, shown
from searchapp.formats.worldtree import usable_id

PROBLEMS = "rankingProblems"
HIGHEST = 6
ANSWER = "[ANSWER]"


@dataclass(frozen=True, slots=True)
class RatedQuestion:
    """A question with its right answer; `ratings` has the rating of each rated fact."""

    id: str
    text: str
    answer: str
    ratings: dict[str, float]


def read_ratings(
    path: Path,
    problems: Problems,
    known: Container[str] | None = None,
    *,
    masked: bool = False,
    solved: bool = False,
) -> Iterator[RatedQuestion]:
    """The questions of a file, in its order.

    `known` has the ids of the facts, among which those of ratings must be; without it ratings are not looked at
    and are empty. With `masked` questions may lack their ratings. With `solved` unknown facts are noted and left
    out.
    """
    seen: set[str] = set()
    found, before = False, len(problems)
    for key, value in json_stream.read_members(path, problems):
        if key != PROBLEMS:
            continue
        if found:
            problems.add(path, "duplicate key", PROBLEMS, "the file has several lists: make them one")
        found = True
        if not isinstance(value, list):
            detail = f"{PROBLEMS} is {json_stream.type_name(value)}, not a list"
            problems.add(path, "wrong type", "", detail, skippable=False)
            continue
        for number, entry in enumerate(value, 1):
            reader = _Entry(path, number, entry, problems)
            question = reader.question(known, masked, solved)
            if question is None:
                continue
            if question.id in seen:
                reader.wrong("duplicate id", "an earlier question has the same qid")
                continue
            seen.add(question.id)
            yield question
    if not found and len(problems) == before:
        problems.add(path, "missing key", "", f"the file has no {PROBLEMS!r}", skippable=False)


class _Entry:
    """One entry of the list; it is `good` until something is found wrong with it."""

    def __init__(self, path: Path, number: int, value: Any, problems: Problems) -> None:
        self._path = path
        self._where = f"entry {number}"
        self._value = value
        self._problems = problems
        self._good = True

    def wrong(self, kind: str, detail: str = "") -> None:
        self._good = False
        self._problems.add(self._path, kind, self._where, detail)

    def question(self, known: Container[str] | None, masked: bool, solved: bool) -> RatedQuestion | None:
        """The question, None when it has problems."""
        if not isinstance(self._value, dict):
            self.wrong("wrong type", f"it is {json_stream.type_name(self._value)}, not an object")
            return None
        id_ = self._text(self._value, "qid")
        if not self._good:
            return None
        if not usable_id(id_):
            self.wrong("unusable id", f"{shown(id_)!r} as qid: an id without blanks is expected")
            return None
        self._where = f"question {shown(id_)}"
        text, answer = self._asked()
        ratings = {} if known is None else self._ratings(known, masked, solved)
        return RatedQuestion(id_, text, answer, ratings) if self._good else None

    def _text(self, holder: dict[str, Any], key: str, *, may_be_blank: bool = False) -> str:
        if key not in holder:
            self.wrong("missing key", key)
        elif not isinstance(holder[key], str):
            self.wrong("wrong type", f"{key} is {json_stream.type_name(holder[key])}, not a string")
        elif not holder[key].strip() and not may_be_blank:
            self.wrong("blank text", f"{key} must not be blank")
        else:
            return str(holder[key]).strip()
        return ""

    def _asked(self) -> tuple[str, str]:
        """Question and right answer; where they are given twice they must agree."""
        if "questionText" not in self._value and "answerText" not in self._value:
            together = self._text(self._value, "queryText")
            text, marker, answer = (part.strip() for part in together.rpartition(ANSWER))
            if self._good and not (text and marker):
                self.wrong("no answer", f"queryText must be the question, {ANSWER} and the right answer")
        else:
            text = self._text(self._value, "questionText")
            answer = self._text(self._value, "answerText", may_be_blank=True)
            together = self._text(self._value, "queryText") if "queryText" in self._value else ""
            if self._good and together and together.split() != [*text.split(), ANSWER, *answer.split()]:
                self.wrong("contradiction", f"queryText must be questionText, {ANSWER} and answerText")
        if self._good and not answer:
            self._problems.note(self._path, "no answer", self._where, "only the question is the query")
        return text, answer

    def _ratings(self, known: Container[str], masked: bool, solved: bool) -> dict[str, float]:
        documents = self._value.get("documents")
        if masked and not documents:
            return {}
        if not isinstance(documents, list):
            missing = "documents" not in self._value
            kind = "missing key" if missing else "wrong type"
            self.wrong(kind, "documents" if missing else "documents is not a list")
            return {}
        ratings: dict[str, float] = {}
        for document in documents:
            if not isinstance(document, dict):
                self.wrong("wrong type", f"a document is {json_stream.type_name(document)}, not an object")
                continue
            uid = self._text(document, "uuid")
            if not uid:
                continue
            rating = self._rating(uid, document)
            if uid not in known:
                self._unknown(uid, solved)
            elif uid in ratings:
                self.wrong("duplicate rating", f"fact {shown(uid)} is rated twice")
            elif rating is not None:
                ratings[uid] = rating
        return ratings

    def _rating(self, uid: str, document: dict[str, Any]) -> float | None:
        if "relevance" not in document:
            self.wrong("missing key", f"fact {shown(uid)}: relevance")
            return None
        rating = document["relevance"]
        if not isinstance(rating, int | float | Decimal) or isinstance(rating, bool):
            named = json_stream.type_name(rating)
            self.wrong("wrong type", f"fact {shown(uid)}: relevance is {named}, not a number")
        elif not 0 <= rating <= HIGHEST:
            self.wrong("rating out of range", f"fact {shown(uid)}: {rating} is not from 0 to {HIGHEST}")
        else:
            return float(rating)
        return None

    def _unknown(self, uid: str, solved: bool) -> None:
        if solved:
            detail = f"no table has the fact {shown(uid)}: the others count"
            self._problems.note(self._path, "unknown fact", self._where, detail)
        else:
            self.wrong("unknown fact", f"no table has the fact {shown(uid)}")
