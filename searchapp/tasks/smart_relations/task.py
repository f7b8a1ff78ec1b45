"""Relation prediction for questions over DBpedia and Wikidata (SMART 2021).

A topic is a question, the documents are the relations of the official vocabulary, and the gold of a question is the
relations that lead to its answer. Only the train file has gold; its splits are the folds of `tasks.splits`.

    vocabulary, DBpedia    ["dbo:birthPlace", ...]
    vocabulary, Wikidata   {"P19": {"id": "P19", "label": "place of birth", "aliases": "born in, ...",
                           "description": "..."}, ...}; aliases and description may be missing
    questions, DBpedia     [{"id": "q-1", "question": "...", "relations": [["dbo:producer"], ["dbo:award"]]}, ...]
    questions, Wikidata    likewise with a flat list: ["P162", "P166"]
    test questions         likewise without `relations`, or with null or an empty list in its place
    predictions            [{"id": "q-1", "relations": ["dbo:producer", "dbo:award"]}, ...] for both

A slot of DBpedia lists interchangeable relations. Ids may be text or integers; here they are always text.

Accepted, because official files contain them: the same question under several ids, also with different gold;
relations that differ only in letter case, which are distinct; a repeated relation in the gold of Wikidata or in two
slots, which must be predicted twice.

Gold that the official scorer accepts is only a note: a repeated relation in a slot, an empty slot, a question without
relations. A null or empty question is a note too, and is skipped. Other problems are reported, and the entry is
skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.formats.json_files import (
    EntryReader,
    OfficialId,
    RepeatedKeys,
    read_entries,
    read_members,
    type_name,
)
from searchapp.formats.problems import Problems, shown, unusable_id
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example, Run
from searchapp.tasks.base import (
    DataSplit,
    DocumentSource,
    Grades,
    Task,
    TaskInfo,
    Writer,
    json_writer,
    shipped,
)
from searchapp.tasks.smart_relations.scorer import CutOff, RelationPredictions, RelationScorer
from searchapp.tasks.splits import TEST, AnswersFormat, FoldFiles, GoldReading, fold_task_info, words_of

_DBPEDIA = re.compile(r"([a-z]+):(\S+)")
_WIKIDATA = re.compile(r"P[1-9][0-9]*")
_WIKIDATA_KEYS = ("id", "label", "aliases", "description")

Slots = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class RelationQuestion:
    """A question with slots of interchangeable relations; in the flat gold of Wikidata each relation is a slot."""

    id: str
    text: str
    # None without gold, or if gold was not read.
    slots: Slots | None

    @property
    def has_gold(self) -> bool:
        return self.slots is not None


class RelationPrediction(NamedTuple):
    """One entry of a prediction file."""

    line: int
    id: str
    official_id: OfficialId  # with its JSON type
    relations: tuple[str, ...]


def read_dbpedia_vocabulary(path: Path, problems: Problems) -> Iterator[Document]:
    """Read the relations of the vocabulary as documents, whose text is the name in words."""
    seen: set[str] = set()
    for entry in read_entries(path, problems):
        reader, relation = EntryReader(path, f"line {entry.line}", entry.value, problems), entry.value
        if not isinstance(relation, str):
            reader.wrong("wrong type", f"a relation is {type_name(relation)}, not a string")
        elif not (match := _DBPEDIA.fullmatch(relation)) or unusable_id(relation):
            reader.wrong("unusable relation", f"{shown(relation)} is not like dbo:birthPlace")
        elif relation in seen:
            reader.wrong("duplicate relation", shown(relation))
        else:
            seen.add(relation)
            yield Document(relation, words_of(match[2]), {"namespace": match[1], "name": match[2]})


def read_wikidata_vocabulary(path: Path, problems: Problems) -> Iterator[Document]:
    """Read the properties of the vocabulary as documents, whose text is the label."""
    seen: set[str] = set()
    for key, value in read_members(path, problems):
        entry = EntryReader(path, f"property {shown(key)}", value, problems)
        if key in seen:
            entry.wrong("duplicate id", "the first one counts")
            continue
        seen.add(key)
        if not _WIKIDATA.fullmatch(key):
            entry.wrong("unusable id", "it is not like P19")
        if not entry.is_object("the value"):
            continue
        for name in sorted(value.keys() - set(_WIKIDATA_KEYS)):
            entry.wrong("unknown key", f"{shown(name)} is not one of {', '.join(_WIKIDATA_KEYS)}")
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
) -> Iterator[RelationQuestion]:
    """Read the questions of a file in order.

    With `slots` the gold has slots, as for DBpedia. Relations must be in `known`, the vocabulary. Without `gold` they
    are not read; with `masked` they may be missing, null or empty.
    """
    for _line, id_, entry in _entries(path, problems, known):
        value = entry.value
        if value.get("question", "(none)") in (None, ""):
            entry.note("no question", "it has no text to rank with, and is ignored")
            continue
        text = entry.text_of("question")
        relations: Slots | None = None
        if gold and value.get("relations") == []:
            if not masked:
                entry.note("no gold", "it has no relation and is not used for training")
        elif gold and not (masked and not value.get("relations")):
            relations = entry.gold_slots(slots=slots)
        if entry.good:
            yield RelationQuestion(str(id_), text, relations)


def read_predictions(
    path: Path, problems: Problems, known: Container[str] | None = None
) -> Iterator[RelationPrediction]:
    """Read the predictions of an official file, in order."""
    for line, id_, entry in _entries(path, problems, known):
        # A relation may be repeated: the official scorers count each occurrence as a prediction.
        relations = entry.predicted_relations()
        if entry.good:
            yield RelationPrediction(line, str(id_), id_, relations)


def _entries(
    path: Path, problems: Problems, known: Container[str] | None
) -> Iterator[tuple[int, OfficialId, _RelationsReader]]:
    seen: dict[str, OfficialId] = {}
    for line, value in read_entries(path, problems):
        entry = _RelationsReader(path, f"line {line}", value, problems, known)
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


class _RelationsReader(EntryReader):
    def __init__(
        self, path: Path, where: str, value: Any, problems: Problems, known: Container[str] | None
    ) -> None:
        super().__init__(path, where, value, problems)
        self._known = known

    def gold_slots(self, *, slots: bool) -> Slots:
        listed = self.list_of("relations") or []
        if not slots:
            return tuple((relation,) for relation in self._relations(listed))
        result = []
        for slot in listed:
            if not isinstance(slot, list):
                self.wrong("wrong type", f"a slot is {type_name(slot)}, not a list of relations")
            elif not slot:
                self.note("empty slot", "it contains no relation, so nothing can fill it")
            else:
                relations = self._relations(slot)
                for relation in sorted({name for name in relations if relations.count(name) > 1}):
                    self.note(
                        "repeated relation", f"{shown(relation)} occurs twice in one slot: it counts once"
                    )
                result.append(tuple(dict.fromkeys(relations)))
        return tuple(result)

    def predicted_relations(self) -> tuple[str, ...]:
        listed = self.list_of("relations") or []
        if self.value.get("relations") == []:
            self.wrong("no relation", "the official scorer needs at least one")
        return self._relations(listed)

    def _relations(self, listed: Sequence[Any]) -> tuple[str, ...]:
        relations = []
        for relation in listed:
            if not isinstance(relation, str):
                self.wrong("wrong type", f"a relation is {type_name(relation)}, not a string")
            elif self._known is not None and relation not in self._known:
                self.wrong("unknown relation", f"{shown(relation)} is not in the vocabulary")
            else:
                relations.append(relation)
        return tuple(relations)


# Cuts a ranking to the answer; docs/tasks/smart-relations.md has the reasons.
CUT_OFF = CutOff(share=0.65, most=3)


ReadVocabulary = Callable[[Path, Problems], Iterator[Document]]


def _task(key: str, name: str, read_vocabulary: ReadVocabulary, *, slots: bool) -> Task:
    info = fold_task_info(
        name=f"smart-relations-{key}",
        title=f"Relation prediction for questions over {name} (SMART 2021)",
        about=f"For a question, find the relations of {name} that lead to its answer.",
        mapping="relations",
        official_measure="F1",
        official_file=f"smart-2021-rl-{key}-predictions.json",
        measures=("AP", "RR", "R@1", "R@2", "R@5", "R@10", "R@50", "R@100"),
        grades=("not the relation", "the relation"),
        guidelines=Path(__file__).with_name("guidelines.md"),
    )
    collection = partial(RelationsCollection, info, key, read_vocabulary, slots)
    return shipped(info, collection, RelationsFormat(info, slots, RelationScorer(key, CUT_OFF)))


class RelationsCollection(FoldFiles):
    """A vocabulary, a train file and a test file, with gold (`test`) or without (`test-questions`)."""

    def __init__(
        self, info: TaskInfo, key: str, read_vocabulary: ReadVocabulary, slots: bool, folder: Path
    ) -> None:
        def path_of(suffix: str) -> Path:
            return folder / f"smart-2021-rl-{key}-{suffix}.json"

        def split_path(split: str) -> Path:
            path = path_of(split)
            return path_of("test-questions") if split == TEST and not path.exists() else path

        vocabulary = path_of("relation-vocabulary")
        documents = DocumentSource(
            lambda: [vocabulary], lambda problems: read_vocabulary(vocabulary, problems)
        )
        super().__init__(info, folder, documents, split_path)
        self._slots = slots

    def questions(self, path: Path, problems: Problems, gold: GoldReading) -> Iterator[RelationQuestion]:
        return read_questions(
            path,
            problems,
            slots=self._slots,
            known=gold.known,
            gold=not gold.skipped,
            masked=gold.masked,
        )

    def example(self, question: RelationQuestion) -> Example | None:
        """Return a training topic in which the relations of each slot share one vote."""
        if not question.slots:
            return None
        votes: dict[str, float] = {}
        for slot in question.slots:
            for relation in slot:
                votes[relation] = votes.get(relation, 0.0) + 1 / len(slot)
        return Example(self.topic(question), votes)


@dataclass(frozen=True, slots=True)
class RelationsFormat(AnswersFormat[RelationPredictions, RelationsCollection]):
    """A list of relations for each question."""

    noun = "relation"
    lack = "it has no valid prediction and would score 0"

    info: TaskInfo
    slots: bool
    scorer: RelationScorer

    @property
    def breakdowns(self) -> RelationScorer:
        return self.scorer

    def entries(self, run: Run, split: DataSplit[RelationsCollection]) -> Iterator[Mapping[str, Any]]:
        for ranking in run:
            yield {"id": ranking.topic_id, "relations": CUT_OFF.answer(ranking.hits)}

    def read(
        self, path: Path, problems: Problems, split: DataSplit[RelationsCollection] | None
    ) -> Iterator[RelationPrediction]:
        return read_predictions(path, problems, None if split is None else split.collection.documents.ids())

    def gold(self, grades: Grades, split: DataSplit[RelationsCollection]) -> Mapping[str, Writer]:
        official = split.collection.official_ids(split.name)
        gold = []
        for question, of_topic in grades.items():
            relations = [relation for relation, grade in of_topic.items() if grade > 0]
            slots = [[relation] for relation in relations] if self.slots else relations
            gold.append({"id": official.get(question, question), "relations": slots})
        (path,) = split.files
        return {path.name: json_writer(gold)}


TASK_DBPEDIA = _task("dbpedia", "DBpedia", read_dbpedia_vocabulary, slots=True)
TASK_WIKIDATA = _task("wikidata", "Wikidata", read_wikidata_vocabulary, slots=False)
