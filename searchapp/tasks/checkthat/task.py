"""Check-worthiness of the sentences of political debates (CheckThat! 2019, task 1).

A topic is a debate, the documents are the lines of debates, and a topic's ranking holds the lines of its debate and
no others, the ones most worth a fact check first. What that means is learnt from the labelled debates: of the training
debates each is ranked by the others, of the test debates each by all training debates.

Scores depend on statistics of all lines in an index. So the training debates have an index of their own, in which
they are ranked whether there are test debates or not; test debates are ranked among the lines of both.

`TermCounts` chooses the characteristic terms of check-worthy lines, each as often as it weighs: by the weight of
relevance feedback (Robertson and Spärck Jones, "Relevance weighting of search terms", JASIS 1976) times the number of
relevant texts that have the term (Robertson, "On term selection for query expansion", Journal of Documentation 1990).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import partial
from pathlib import Path

from searchapp import resources
from searchapp.errors import DataError
from searchapp.evaluation.base import ScorerOptions
from searchapp.formats.problems import Problems, unusable_id
from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.model import Document, Example, Ranking, Topic
from searchapp.tasks.base import (
    Collection,
    DocumentSource,
    Grades,
    NoOfficialFile,
    OfficialFile,
    OfficialFormat,
    Once,
    Part,
    Submission,
    TaskInfo,
    Writer,
)
from searchapp.tasks.checkthat import debate_files
from searchapp.tasks.checkthat.debate_files import MOST_LINES, Line, read_debate, write_debate
from searchapp.tasks.checkthat.scorer import CUTOFFS, SUFFIX, CheckThatScorer, Prediction, line_number
from searchapp.tasks.shipped import shipped
from searchapp.text import counted

FEWEST = 2
"""Relevant texts that must have a term: what is in one alone is chance."""

COPIES = 4
"""How often a term is repeated in the query whose relevance weight equals its idf."""


@dataclass
class TermCounts:
    """In how many texts, and in how many relevant ones, each term is."""

    texts: int = 0
    relevant: int = 0
    containing: Counter[str] = dataclass_field(default_factory=Counter)
    containing_relevant: Counter[str] = dataclass_field(default_factory=Counter)

    def add(self, terms: Iterable[str], relevant: bool) -> None:
        """Count a text by its terms."""
        distinct = set(terms)
        self.texts += 1
        self.containing.update(distinct)
        if relevant:
            self.relevant += 1
            self.containing_relevant.update(distinct)

    def without(self, other: TermCounts) -> TermCounts:
        """These counts without those of some of their texts."""
        return TermCounts(
            self.texts - other.texts,
            self.relevant - other.relevant,
            _without(self.containing, other.containing),
            _without(self.containing_relevant, other.containing_relevant),
        )

    def include(self, other: TermCounts) -> None:
        """Count the texts of the other as well."""
        self.texts += other.texts
        self.relevant += other.relevant
        self.containing.update(other.containing)
        self.containing_relevant.update(other.containing_relevant)

    def weight(self, term: str) -> float:
        """The relevance weight of a term: log of its odds in relevant texts over those in the others."""
        r, n = self.containing_relevant[term], self.containing[term]
        among = (r + 0.5) / (self.relevant - r + 0.5)
        others = (n - r + 0.5) / (self.texts - n - self.relevant + r + 0.5)
        return math.log(among / others)

    def query(self, terms: int) -> list[str]:
        """The `terms` most characteristic terms, best first, each repeated so that its BM25 comes to its weight.

        BM25 multiplies each copy by the term's idf, so there are COPIES * weight / idf, rounded.
        """
        weights = {term: self.weight(term) for term, r in self.containing_relevant.items() if r >= FEWEST}
        best = sorted(weights, key=lambda term: (-self.containing_relevant[term] * weights[term], term))
        return [
            term for term in best[:terms] for _copy in range(round(COPIES * weights[term] / self._idf(term)))
        ]

    def _idf(self, term: str) -> float:
        """The idf of BM25 as Lucene has it."""
        n = self.containing[term]
        return math.log(1 + (self.texts - n + 0.5) / (n + 0.5))


def _without(counts: Counter[str], gone: Counter[str]) -> Counter[str]:
    """The counts that are left: only those of what is gone are looked at, which is less than what is there."""
    left = counts.copy()
    left.subtract(gone)
    return left


TRAINING = "training"
"""The folder whose debates are the labelled examples."""

WITH_TEST = "checkthat-with-test"
"""The index of all debates; that of the training debates has the task's name."""

TERMS = 200
"""Characteristic terms, and as many characteristic pairs of terms, that a topic asks for."""

QUERIES = {"words": "claims", "pairs": "claim_pairs"}
"""The topic fields with characteristic terms, and the analyzers of the mapping that make the terms."""


INFO = TaskInfo(
    name="checkthat",
    title="Check-worthiness of debate sentences (CheckThat! 2019, task 1)",
    about="For a debate, rank its sentences by how much they are worth a fact check.",
    mapping="sentences",
    examples_mapping=None,
    splits=(TRAINING, "test_annotated"),
    default_depth=MOST_LINES,
    official_measure="MAP",
    official_file=f"<debate>{SUFFIX} for each debate",
    measures=("AP", "RR", "Rprec", "P@10", "P@50", "nDCG@10"),
    grades=("not check-worthy", "check-worthy"),
    context=("debate", "line"),
    indexes=(WITH_TEST, "checkthat"),
)


class CheckThatCollection(Collection):
    """A folder of debates a split, a file of lines each. The name of a single debate is a split too."""

    def __init__(self, folder: Path) -> None:
        # Documents, topics, gold and official files are all made of the lines, 3 MB for all debates: these are kept,
        # and the documents made again from them.
        self._debates: dict[Path, Once[Sequence[Line]]] = {}
        every = DocumentSource(
            self._every_file, lambda problems: self._read(self._every_file(), problems), kept=False
        )
        in_training = DocumentSource(
            self._training, lambda problems: self._read(self._training(), problems), kept=False
        )
        super().__init__(INFO, folder, every, {WITH_TEST: every, INFO.index_name: in_training})

    def lines(self, path: Path, problems: Problems) -> Sequence[Line]:
        """The lines of a debate."""
        if path not in self._debates:
            self._debates[path] = Once(partial(_read_lines, path))
        return self._debates[path](problems)

    def index_of(self, split: str) -> str:
        (part,) = {path.parent.name for path in self.split_files(split)[:1]}
        name = INFO.index_name if part == TRAINING else WITH_TEST
        return self.renamed.get(name, name)

    def split_files(self, split: str) -> list[Path]:
        if split in INFO.splits:
            return sorted((self.folder / split).glob(f"*{SUFFIX}")) or [self.folder / split / f"*{SUFFIX}"]
        named = (self.folder / part / f"{split}{SUFFIX}" for part in INFO.splits)
        found = [path for path in named if path.is_file()]
        if not found:
            INFO.require_split(split, f" or the name of a debate in {self.folder}, such as 20160926_1pres")
        return found

    def all_solved_splits(self, split: str) -> tuple[str, ...]:
        self.split_files(split)  # for its error
        return (TRAINING,)

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        registry = AnalysisRegistry(resources.index_mapping(INFO.mapping)["settings"]["analysis"])
        labelled = {
            path: _counts(self.lines(path, Problems(lenient=True)), registry)
            for path in self._training()
            if path.exists()
        }
        every = {field: TermCounts() for field in QUERIES}
        for counts in labelled.values():
            for field in QUERIES:
                every[field].include(counts[field])
        topics = []
        for path in self.split_files(split):
            lines = self.lines(path, problems)
            if not lines:
                continue
            queries = {}
            for field, among in every.items():
                others = among.without(labelled[path][field]) if path in labelled else among
                if not others.relevant:
                    raise DataError(
                        f"{self.folder / TRAINING} has no debate with check-worthy lines to rank {path.stem} by: put "
                        "labelled debates there"
                    )
                queries[field] = " ".join(others.query(TERMS))
            topics.append(Topic(path.stem, _described(path, lines), {"debate": path.stem, **queries}))
        return topics

    def check_split(self, split: str, problems: Problems) -> int:
        return sum(bool(self.lines(path, problems)) for path in self.split_files(split))

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        own = self.split_files(split) if split not in INFO.splits else []
        for path in self.example_files(split):
            if path not in own:
                lines = self.lines(path, problems)
                gold = {_id(path, line): 1.0 for line in lines if line.label == 1}
                yield Example(Topic(path.stem, _described(path, lines), {"debate": path.stem}), gold)

    def _training(self) -> list[Path]:
        return self.split_files(TRAINING)

    def _every_file(self) -> list[Path]:
        parts = [self.split_files(split) for split in INFO.splits if (self.folder / split).is_dir()]
        return [path for part in parts for path in part] or self._training()

    def _read(self, files: Sequence[Path], problems: Problems) -> Iterator[Document]:
        for path in files:
            if problem := unusable_id(path.stem):
                detail = f"rename the file, whose name is the debate's: {problem[1]}"
                problems.add(path, problem[0], detail=detail, skippable=False)
            part = path.parent.name
            if part != TRAINING and (self.folder / TRAINING / path.name).exists():
                detail = f"{TRAINING} has a debate of that name already"
                problems.add(path, "duplicate debate", detail=detail, skippable=False)
            for line in self.lines(path, problems):
                fields = {
                    "debate": path.stem,
                    "part": part,
                    "line": line.number,
                    "speaker": line.speaker,
                }
                yield Document(_id(path, line), line.text, fields)


class CheckThatFormat(OfficialFormat[list[Prediction], CheckThatCollection]):
    """A file of line numbers and scores for each debate, which together are one submission."""

    scorer = CheckThatScorer()
    breakdowns = scorer

    def files(self, submission: Submission[CheckThatCollection]) -> Mapping[str, Writer]:
        for ranking in submission.run:
            numbers = {line_number(document) for document in ranking.document_ids()}
            missing = next((number for number in range(1, len(numbers) + 1) if number not in numbers), None)
            if missing is not None or not numbers:
                raise NoOfficialFile(
                    f"debate {ranking.topic_id} has no line {missing or 1}, and the official file needs every line: "
                    "rank deeper with --depth"
                )
        collection = submission.part.collection
        return {f"{ranking.topic_id}{SUFFIX}": _writer(ranking, collection) for ranking in submission.run}

    def validate(self, file: OfficialFile[CheckThatCollection], problems: Problems) -> None:
        path, part = file.path, file.part
        for failure in debate_files.failures(path):
            detail = f"{failure.advice} (the official checker: {failure.official})"
            problems.add(path.name, failure.kind, f"line {failure.place}", detail)
        if len(problems):
            return
        text = debate_files.read_text(path)
        # The format checker lets pass what the scorer stops at: alone, a file is held to the checker.
        report = problems.note if part is None else problems.add
        for place, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            if line.count("\t") != 1:
                detail = "the official checker lets it pass, but the scorer stops there: remove blank lines and tabs"
                report(path.name, "stray white space", f"line {place}", detail)
        found = len(text.split()) // 2
        if found < CUTOFFS[-1]:
            detail = (
                f"{counted(found, 'line')}, and the official scorer stops at a debate of fewer than {CUTOFFS[-1]}: "
                "evaluate the other debates, or all with --lenient"
            )
            report(path.name, "too few lines", detail=detail)
        if part is None:
            return
        debates = part.files
        debate = next((one for one in debates if one.name == path.name), debates[0])
        if len(debates) > 1 and debate.name != path.name:
            detail = f"name the file after its debate, such as {debate.name}, or the debate with --split"
            problems.add(path.name, "unknown debate", detail=detail)
            return
        unread = Problems()
        expected = len(part.collection.lines(debate, unread))
        unread.raise_if_any()
        if found != expected:
            kind = "missing lines" if found < expected else "unknown lines"
            are = "is" if found == 1 else "are"
            detail = (
                f"{counted(found, 'line')} {are} scored, and {debate.name} has {expected}: score each of them"
            )
            problems.add(path.name, kind, detail=detail)

    def gold(self, grades: Grades, part: Part[CheckThatCollection]) -> Mapping[str, Writer]:
        def writer(path: Path, labels: Mapping[str, int]) -> Writer:
            lines = [
                Line(line.number, line.speaker, line.text, int(labels.get(_id(path, line), 0) > 0))
                for line in part.collection.lines(path, Problems(lenient=True))
            ]
            return lambda file: write_debate(file, lines)

        return {path.name: writer(path, grades[path.stem]) for path in part.files if path.stem in grades}

    def grades(
        self, files: Sequence[Path], part: Part[CheckThatCollection], options: ScorerOptions = ScorerOptions()
    ) -> Grades:
        qrels = self.scorer.qrels(part.gold(files, options))
        grades = {Path(name).stem: lines for name, lines in qrels.items()}
        return {
            debate: {f"{debate}:{line}": grade for line, grade in lines.items()}
            for debate, lines in grades.items()
        }


def _writer(ranking: Ranking, collection: CheckThatCollection) -> Writer:
    """What writes the lines of a debate, all of them.

    Raises:
        DataError: the debate has more lines; its last ones are missing.
    """
    for path in collection.documents.files:
        if path.stem == ranking.topic_id and path.exists():
            lines = len(collection.lines(path, Problems(lenient=True)))
            if lines > len(ranking.hits):
                raise DataError(
                    f"debate {ranking.topic_id} has {counted(lines, 'line')}, {len(ranking.hits):,} of them "
                    "ranked, and "
                    "the official file needs every line: rank deeper with --depth"
                )
    scores = [(line_number(document), score) for document, score in ranking.hits]
    return lambda file: debate_files.write_line_scores(file, scores)


def _read_lines(path: Path, problems: Problems) -> Sequence[Line]:
    return tuple(read_debate(path, problems))


def _id(path: Path, line: Line) -> str:
    return f"{path.stem}:{line.number}"


def _described(path: Path, lines: Sequence[Line]) -> str:
    """A debate in a few words, for people."""
    speakers = [speaker for speaker, _count in Counter(line.speaker for line in lines).most_common(3)]
    return f"{path.stem}: {counted(len(lines), 'line')}, by {', '.join(filter(None, speakers)) or 'unnamed speakers'}"


def _counts(lines: Sequence[Line], registry: AnalysisRegistry) -> dict[str, TermCounts]:
    """The terms of a debate's lines, by topic field."""
    texts = [line.text for line in lines]
    counts = {field: TermCounts() for field in QUERIES}
    for field, name in QUERIES.items():
        for line, terms in zip(lines, registry.analyzer(name).terms_of_each(texts), strict=True):
            counts[field].add(terms, relevant=line.label == 1)
    return counts


TASK = shipped(INFO, CheckThatCollection, CheckThatFormat())
