"""Relation prediction for questions over DBpedia and over Wikidata (SMART 2021).

A topic is a question, the documents are the relations of the official vocabulary, and the gold of a question are
the relations that its answer is found by. Only the train file has gold; its splits are the folds of
`tasks.splits`, each ranked with the questions of the other four as solved examples.

The JSON layouts of SMART 2021 relation prediction, for DBpedia and for Wikidata.

    vocabulary, DBpedia    ["dbo:birthPlace", ...]
    vocabulary, Wikidata   {"P19": {"id": "P19", "label": "place of birth", "aliases": "born in, ...",
                           "description": "..."}, ...}; aliases and description may be missing
    questions, DBpedia     [{"id": "q-1", "question": "...", "relations": [["dbo:producer"], ["dbo:award"]]}, ...]
    questions, Wikidata    likewise with a flat list: ["P162", "P166"]
    test questions         likewise without `relations`, or with null or an empty list in its place
    predictions            [{"id": "q-1", "relations": ["dbo:producer", "dbo:award"]}, ...] for both

A slot of DBpedia lists relations that are interchangeable. Ids may be text or integers; here they are text always,
and `formats.json_files.official_ids` has them as a file does. Further keys of a question are ignored, as the official
scorer does. Harmless, and found in real files: the same question under several ids, also with other gold; relations
that differ in letter case only (`dbp:birthPlace`, `dbp:birthplace`), which are two relations; a relation twice in the
gold of Wikidata, or in two slots, which is needed twice; relations of the vocabulary that no question has.

Gold that the official scorer copes with is noted, and its question kept: a relation twice in a slot; an empty slot,
which stays unfilled; a question without relations. A question that is null or empty is noted too, and left out.

Every problem is recorded and the next entry read. An entry with a problem is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.formats import json_files
from searchapp.formats.json_files import (
    EntryReader,
    OfficialId,
    RepeatedKeys,
    read_entries,
    type_name,
)
from searchapp.formats.problems import Problems, shown, unusable_id
from searchapp.model import Document, Example, Topic
from searchapp.tasks import splits
from searchapp.tasks.base import (
    DocumentSource,
    Grades,
    Part,
    Submission,
    Task,
    TaskInfo,
    Writer,
)
from searchapp.tasks.shipped import json_writer, shipped, words_of
from searchapp.tasks.smart_relations.scorer import CutOff, Predictions, RelationScorer
from searchapp.tasks.splits import TEST, AnswersFormat, FoldFiles

_DBPEDIA = re.compile(r"([a-z]+):(\S+)")
_WIKIDATA = re.compile(r"P[1-9][0-9]*")
_WIKIDATA_KEYS = ("id", "label", "aliases", "description")

Slots = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question. Each slot has the relations that may fill it; `slots` is None when there is no gold.

    In the flat gold of Wikidata every relation is a slot of its own.
    """

    id: str
    text: str
    slots: Slots | None


class Prediction(NamedTuple):
    """What one entry of a prediction file says; `official_id` is its id as it stands there."""

    line: int
    id: str
    official_id: OfficialId
    relations: tuple[str, ...]


def read_dbpedia_vocabulary(path: Path, problems: Problems) -> Iterator[Document]:
    """The relations of the vocabulary as documents, in the order of the file: the name in words is the text."""
    seen: set[str] = set()
    for entry in read_entries(path, problems):
        where, relation = f"line {entry.line}", entry.value
        if not isinstance(relation, str):
            problems.add(path, "wrong type", where, f"a relation is {type_name(relation)}, not a string")
        elif not (match := _DBPEDIA.fullmatch(relation)) or unusable_id(relation):
            problems.add(path, "unusable relation", where, f"{shown(relation)} is not like dbo:birthPlace")
        elif relation in seen:
            problems.add(path, "duplicate relation", where, shown(relation))
        else:
            seen.add(relation)
            yield Document(relation, words_of(match[2]), {"namespace": match[1], "name": match[2]})


def read_wikidata_vocabulary(path: Path, problems: Problems) -> Iterator[Document]:
    """The properties of the vocabulary as documents, in the order of the file: the label is the text."""
    seen: set[str] = set()
    for key, value in json_files.read_members(path, problems):
        entry = EntryReader(path, f"property {shown(key)}", value, problems)
        if key in seen:
            entry.wrong("duplicate id", "the first one counts")
            continue
        seen.add(key)
        if not _WIKIDATA.fullmatch(key):
            entry.wrong("unusable id", "it is not like P19")
        if not isinstance(value, dict):
            entry.wrong("wrong type", f"the value is {type_name(value)}, not an object")
            continue
        for name in sorted(value.keys() - set(_WIKIDATA_KEYS)):
            entry.wrong("unknown key", f"{shown(name)} is none of {', '.join(_WIKIDATA_KEYS)}")
        for name in _WIKIDATA_KEYS:
            if name in value or name in ("id", "label"):
                entry.text_of(name)
        if value.get("id", key) != key and isinstance(value["id"], str):
            entry.wrong("contradiction", f"its `id` is {shown(value['id'])}")
        if entry.good:
            fields = {name: value[name] for name in ("aliases", "description") if name in value}
            yield Document(key, value["label"], fields)


def read_questions(
    path: Path,
    problems: Problems,
    *,
    slots: bool,
    known: Container[str] | None = None,
    gold: bool = True,
    masked: bool = False,
) -> Iterator[Question]:
    """The questions of a file in its order; its problems go to `problems`.

    `slots` says that the gold is a list of slots, as for DBpedia. `known` has the vocabulary, from which every
    relation must be. Without `gold` the relations are not looked at and `slots` is None; with `masked` they may
    be missing, null or empty without a note.
    """
    for _line, id_, entry in _entries(path, problems, known):
        value = entry.value
        if value.get("question", "(none)") in (None, ""):
            entry.note("no question", "it has no text to rank by, and is left out")
            continue
        text = entry.text_of("question")
        found: Slots | None = None
        if gold and value.get("relations") == []:
            if not masked:
                entry.note("no gold", "it has no relation, so that nothing is learned from it")
        elif gold and not (masked and not value.get("relations")):
            found = entry.gold(slots=slots)
        if entry.good:
            yield Question(str(id_), text, found)


def read_predictions(
    path: Path, problems: Problems, known: Container[str] | None = None
) -> Iterator[Prediction]:
    """The predictions of an official file, in its order.

    A relation may be there twice, which the official scorers count as two predictions.
    """
    for line, id_, entry in _entries(path, problems, known):
        relations = entry.flat()
        if entry.good:
            yield Prediction(line, str(id_), id_, relations)


def _entries(
    path: Path, problems: Problems, known: Container[str] | None
) -> Iterator[tuple[int, OfficialId, _Entry]]:
    """The entries of a file's list that are objects with an id of their own, each with its line and its id."""
    seen: dict[str, OfficialId] = {}
    for line, value in read_entries(path, problems):
        entry = _Entry(path, f"line {line}", value, problems, known)
        id_ = entry.official_id(next(iter(seen.values()), None))
        if id_ is None:
            continue
        if str(id_) in seen:
            problems.add(path, "duplicate id", f"line {line}", shown(str(id_)))
            continue
        seen[str(id_)] = id_
        if isinstance(value, RepeatedKeys):
            entry.wrong("duplicate key", ", ".join(map(shown, value.names)))
        yield line, id_, entry


class _Entry(EntryReader):
    """An entry with relations, which must be among those that are `known`."""

    def __init__(
        self, path: Path, where: str, value: Any, problems: Problems, known: Container[str] | None
    ) -> None:
        super().__init__(path, where, value, problems)
        self._known = known

    def gold(self, *, slots: bool) -> Slots:
        """The slots of a gold question: each relation of a slot once, and no empty slot."""
        listed = self.list_of("relations") or []
        if not slots:
            return tuple((relation,) for relation in self._relations(listed))
        found = []
        for slot in listed:
            if not isinstance(slot, list):
                self.wrong("wrong type", f"a slot is {type_name(slot)}, not a list of relations")
            elif not slot:
                self.note("empty slot", "it lists no relation, so that nothing fills it")
            else:
                relations = self._relations(slot)
                for relation in sorted({one for one in relations if relations.count(one) > 1}):
                    self.note("repeated relation", f"{shown(relation)} is twice in one slot: it counts once")
                found.append(tuple(dict.fromkeys(relations)))
        return tuple(found)

    def flat(self) -> tuple[str, ...]:
        """The relations of a prediction."""
        listed = self.list_of("relations") or []
        if self.value.get("relations") == []:
            self.wrong("no relation", "the official scorer needs at least one")
        return self._relations(listed)

    def _relations(self, listed: Sequence[Any]) -> tuple[str, ...]:
        good = []
        for relation in listed:
            if not isinstance(relation, str):
                self.wrong("wrong type", f"a relation is {type_name(relation)}, not a string")
            elif self._known is not None and relation not in self._known:
                self.wrong("unknown relation", f"{shown(relation)} is not in the vocabulary")
            else:
                good.append(relation)
        return tuple(good)


CUT_OFF = CutOff(share=0.65, most=3)
"""How much of a ranking is the answer; see docs/smart-relations.md for the choice."""


ReadVocabulary = Callable[[Path, Problems], Iterator[Document]]


def task(key: str, name: str, read_vocabulary: ReadVocabulary, *, slots: bool) -> Task:
    """The task for one knowledge base: `key` is how files and scorer call it, `name` how people do.

    With `slots` the gold has slots of interchangeable relations.
    """
    scorer = RelationScorer(key, CUT_OFF, splits.in_split)
    info = TaskInfo(
        name=f"smart-relations-{key}",
        title=f"Relation prediction for questions over {name} (SMART 2021)",
        about=f"For a question, find the relations of {name} that lead to its answer.",
        mapping="relations",
        examples_mapping="questions",
        splits=(*splits.FOLD_NAMES, TEST),
        default_recipe="neighbours",
        default_depth=100,
        official_measure="F1",
        official_file=f"smart-2021-rl-{key}-predictions.json",
        measures=("AP", "RR", "R@1", "R@2", "R@5", "R@10", "R@50", "R@100"),
        grades=("not the relation", "the relation"),
    )
    collection = partial(RelationsCollection, info, key, read_vocabulary, slots)
    return shipped(info, collection, RelationsFormat(info, slots, scorer))


class RelationsCollection(FoldFiles):
    """A vocabulary, a train file and a test file, with gold (`test`) or without (`test-questions`)."""

    def __init__(
        self, info: TaskInfo, key: str, read_vocabulary: ReadVocabulary, slots: bool, folder: Path
    ) -> None:
        def named(what: str) -> Path:
            return folder / f"smart-2021-rl-{key}-{what}.json"

        def file(split: str) -> Path:
            path = named(split)
            return named("test-questions") if split == TEST and not path.exists() else path

        vocabulary = named("relation-vocabulary")
        documents = DocumentSource(
            lambda: [vocabulary], lambda problems: read_vocabulary(vocabulary, problems)
        )
        super().__init__(info, folder, documents, file)
        self._slots = slots

    def questions(
        self,
        path: Path,
        problems: Problems,
        *,
        compared: bool = False,
        gold: bool = True,
        masked: bool = False,
    ) -> Iterator[Question]:
        known = self.known_ids() if compared else None
        return read_questions(path, problems, slots=self._slots, known=known, gold=gold, masked=masked)

    def example(self, question: Question) -> Example | None:
        """Each slot has one vote, shared by the relations that may fill it."""
        if not question.slots:
            return None
        votes: dict[str, float] = {}
        for slot in question.slots:
            for relation in slot:
                votes[relation] = votes.get(relation, 0.0) + 1 / len(slot)
        return Example(Topic(question.id, question.text), votes)

    def solved(self, path: Path) -> Iterable[bool]:
        questions = self.questions(path, Problems(lenient=True), masked=True)
        return (question.slots is not None for question in questions)


@dataclass(frozen=True, slots=True)
class RelationsFormat(AnswersFormat[Predictions, RelationsCollection]):
    """A list of relations for each question."""

    noun = "relation"
    lack = "it has no good prediction and would score 0"

    info: TaskInfo
    slots: bool
    scorer: RelationScorer

    @property
    def breakdowns(self) -> RelationScorer:
        return self.scorer

    def entries(self, submission: Submission[RelationsCollection]) -> Iterator[Mapping[str, Any]]:
        for ranking in submission.run:
            yield {"id": ranking.topic_id, "relations": CUT_OFF.answer(ranking.hits)}

    def read(
        self, path: Path, problems: Problems, part: Part[RelationsCollection] | None
    ) -> Iterator[Prediction]:
        return read_predictions(path, problems, None if part is None else part.collection.documents.ids())

    def gold(self, grades: Grades, part: Part[RelationsCollection]) -> Mapping[str, Writer]:
        def relations(of_topic: Mapping[str, int]) -> Sequence[str | list[str]]:
            found = [relation for relation, grade in of_topic.items() if grade > 0]
            return [[relation] for relation in found] if self.slots else found

        official = part.collection.official_ids(part.split)
        gold = [
            {"id": official.get(question, question), "relations": relations(of_topic)}
            for question, of_topic in grades.items()
        ]
        (path,) = part.files
        return {path.name: json_writer(gold)}


TASK_DBPEDIA = task("dbpedia", "DBpedia", read_dbpedia_vocabulary, slots=True)


TASK_WIKIDATA = task("wikidata", "Wikidata", read_wikidata_vocabulary, slots=False)
