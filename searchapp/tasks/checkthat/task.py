"""Check-worthiness of the sentences of political debates (CheckThat! 2019, task 1).

A topic is a debate, the documents are the lines of debates, and a topic's ranking has only the lines of its debate. A
training debate is ranked with the other training debates as examples, a test debate with all of them.

`TermCounts` chooses characteristic terms of check-worthy lines, by the weight of relevance feedback (Robertson and
Spärck Jones, "Relevance weighting of search terms", JASIS 1976) times the number of relevant texts with the term
(Robertson, "On term selection for query expansion", Journal of Documentation 1990).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from searchapp import resources
from searchapp.errors import DataError
from searchapp.formats.problems import Problems, unusable_id
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example, Ranking, Run, Topic
from searchapp.tasks.base import (
    CachedReader,
    Collection,
    DataSplit,
    DocumentSource,
    Grades,
    NoOfficialFile,
    OfficialFormat,
    TaskInfo,
    Writer,
    shipped,
)
from searchapp.tasks.checkthat import debate_files
from searchapp.tasks.checkthat.debate_files import MOST_LINES, DebateLine, read_debate, write_debate
from searchapp.tasks.checkthat.scorer import CUTOFFS, SUFFIX, CheckThatScorer, DebatePrediction, line_number
from searchapp.text import be, counted

if TYPE_CHECKING:
    from searchapp.lucene.analysis import AnalysisRegistry

# How many relevant texts must have a term: a term of a single text is chance.
MIN_RELEVANT_TEXTS = 2

# How often the query repeats a term whose relevance weight equals its idf.
COPIES = 4


@dataclass
class TermCounts:
    """The number of texts, of relevant texts, and of those with each term."""

    texts: int = 0
    relevant: int = 0
    containing: Counter[str] = field(default_factory=Counter)
    containing_relevant: Counter[str] = field(default_factory=Counter)

    def add(self, terms: Iterable[str], relevant: bool) -> None:
        distinct = set(terms)
        self.texts += 1
        self.containing.update(distinct)
        if relevant:
            self.relevant += 1
            self.containing_relevant.update(distinct)

    def without(self, other: TermCounts) -> TermCounts:
        difference = TermCounts(
            self.texts - other.texts,
            self.relevant - other.relevant,
            self.containing.copy(),
            self.containing_relevant.copy(),
        )
        difference.containing.subtract(other.containing)
        difference.containing_relevant.subtract(other.containing_relevant)
        return difference

    def include(self, other: TermCounts) -> None:
        self.texts += other.texts
        self.relevant += other.relevant
        self.containing.update(other.containing)
        self.containing_relevant.update(other.containing_relevant)

    def weight(self, term: str) -> float:
        """Return the log of a term's odds in relevant texts over its odds in other texts."""
        r, n = self.containing_relevant[term], self.containing[term]
        odds = (r + 0.5) / (self.relevant - r + 0.5)
        other_odds = (n - r + 0.5) / (self.texts - n - self.relevant + r + 0.5)
        return math.log(odds / other_odds)

    def query(self, terms: int) -> list[str]:
        """Return the `terms` most characteristic terms, best first, repeated in proportion to their weights."""
        weights = {
            term: self.weight(term) for term, r in self.containing_relevant.items() if r >= MIN_RELEVANT_TEXTS
        }
        # BM25 multiplies each copy of a term by its idf.
        best = sorted(weights, key=lambda term: (-self.containing_relevant[term] * weights[term], term))
        return [
            term for term in best[:terms] for _copy in range(round(COPIES * weights[term] / self._idf(term)))
        ]

    def _idf(self, term: str) -> float:
        n = self.containing[term]
        return math.log(1 + (self.texts - n + 0.5) / (n + 0.5))


# The folder of the training debates.
TRAINING = "training"

# The index of all debates; the index of the training debates has the task's name. Scores depend on the statistics of
# all lines in an index: with their own index, training debates rank alike whether test debates exist or not.
WITH_TEST = "checkthat-with-test"

# How many characteristic terms, and pairs of terms, the query of a topic has.
QUERY_TERMS = 200

# The topic fields with characteristic terms, and the mapping's analyzers for the terms.
QUERIES = {"words": "claims", "pairs": "claim_pairs"}


INFO = TaskInfo(
    guidelines=Path(__file__).with_name("guidelines.md"),
    name="checkthat",
    title="Check-worthiness of debate sentences (CheckThat! 2019, task 1)",
    about="For a debate, rank its sentences by how much they are worth a fact check.",
    mapping="sentences",
    training_mapping=None,
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
    """A folder of debates for each split, a file for each debate. The name of a debate is also a split."""

    def __init__(self, folder: Path) -> None:
        # Documents, topics, gold and official files all come from the lines, 3 MB for all debates: lines are cached,
        # documents are not.
        self._debates: dict[Path, CachedReader[Sequence[DebateLine]]] = {}
        all_debates = DocumentSource(
            self._all_files, lambda problems: self._read(self._all_files(), problems), cached=False
        )
        training = DocumentSource(
            self._training_files, lambda problems: self._read(self._training_files(), problems), cached=False
        )
        super().__init__(INFO, folder, all_debates, {WITH_TEST: all_debates, INFO.index_name: training})

    def lines(self, path: Path, problems: Problems) -> Sequence[DebateLine]:
        if path not in self._debates:
            self._debates[path] = CachedReader(lambda reported: tuple(read_debate(path, reported)))
        return self._debates[path](problems)

    def index_of(self, split: str) -> str:
        name = INFO.index_name if self.split_files(split)[0].parent.name == TRAINING else WITH_TEST
        return self.renamed.get(name, name)

    def split_files(self, split: str) -> list[Path]:
        if split in INFO.splits:
            return sorted((self.folder / split).glob(f"*{SUFFIX}")) or [self.folder / split / f"*{SUFFIX}"]
        paths = (self.folder / folder / f"{split}{SUFFIX}" for folder in INFO.splits)
        existing = [path for path in paths if path.is_file()]
        if not existing:
            INFO.require_split(split, f" or the name of a debate in {self.folder}, such as 20160926_1pres")
        return existing

    def all_training_splits(self, split: str) -> tuple[str, ...]:
        self.split_files(split)  # for its error
        return (TRAINING,)

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        from searchapp.lucene.analysis import AnalysisRegistry  # slow to import

        registry = AnalysisRegistry(resources.index_mapping(INFO.mapping)["settings"]["analysis"])
        labelled = {
            path: _term_counts(self.lines(path, Problems(lenient=True)), registry)
            for path in self._training_files()
            if path.exists()
        }
        totals = {name: TermCounts() for name in QUERIES}
        for counts in labelled.values():
            for name, total in totals.items():
                total.include(counts[name])
        topics = []
        for path in self.split_files(split):
            lines = self.lines(path, problems)
            if not lines:
                continue
            queries = {}
            for name, total in totals.items():
                other_counts = total.without(labelled[path][name]) if path in labelled else total
                if not other_counts.relevant:
                    raise DataError(
                        f"{self.folder / TRAINING} has no debate with check-worthy lines to train on "
                        f"for {path.stem}: add labelled debates"
                    )
                queries[name] = " ".join(other_counts.query(QUERY_TERMS))
            topics.append(_topic(path, lines, queries))
        return topics

    def check_split(self, split: str, problems: Problems) -> int:
        return sum(bool(self.lines(path, problems)) for path in self.split_files(split))

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        own_files = self.split_files(split) if split not in INFO.splits else []
        for path in self.example_files(split):
            if path not in own_files:
                lines = self.lines(path, problems)
                yield Example(
                    _topic(path, lines, {}), {_id(path, line): 1.0 for line in lines if line.label == 1}
                )

    def _training_files(self) -> list[Path]:
        return self.split_files(TRAINING)

    def _all_files(self) -> list[Path]:
        existing = [split for split in INFO.splits if (self.folder / split).is_dir()]
        return [path for split in existing for path in self.split_files(split)] or self._training_files()

    def _read(self, files: Sequence[Path], problems: Problems) -> Iterator[Document]:
        for path in files:
            if problem := unusable_id(path.stem):
                detail = f"rename the file, because its name is the name of the debate: {problem[1]}"
                problems.add(path, problem[0], detail=detail, skippable=False)
            split_folder = path.parent.name
            if split_folder != TRAINING and (self.folder / TRAINING / path.name).exists():
                detail = f"{TRAINING} also has a debate with this name"
                problems.add(path, "duplicate debate", detail=detail, skippable=False)
            for line in self.lines(path, problems):
                fields = {
                    "debate": path.stem,
                    "part": split_folder,
                    "line": line.number,
                    "speaker": line.speaker,
                }
                yield Document(_id(path, line), line.text, fields)


class CheckThatFormat(OfficialFormat[list[DebatePrediction], CheckThatCollection]):
    """A file of line numbers and scores for each debate; all files form one submission."""

    scorer = CheckThatScorer()
    breakdowns = scorer

    def files(self, run: Run, split: DataSplit[CheckThatCollection]) -> Mapping[str, Writer]:
        for ranking in run:
            numbers = {line_number(document) for document in ranking.document_ids()}
            missing = next((number for number in range(1, len(numbers) + 1) if number not in numbers), None)
            if missing is not None or not numbers:
                raise NoOfficialFile(
                    f"debate {ranking.topic_id} has no rank for line {missing or 1}, but the official "
                    "file needs every line: rank deeper with --depth"
                )
        return {f"{ranking.topic_id}{SUFFIX}": _writer(ranking, split.collection) for ranking in run}

    def validate(
        self,
        path: Path,
        split: DataSplit[CheckThatCollection] | None,
        problems: Problems,
    ) -> None:
        for failure in debate_files.failures(path):
            detail = f"{failure.advice} (the official checker: {failure.official})"
            problems.add(path.name, failure.kind, f"line {failure.line}", detail)
        if len(problems):
            return
        text = debate_files.read_text(path)
        # By itself, a file need only pass the format checker, which accepts files that stop the scorer.
        report = problems.note if split is None else problems.add
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            if line.count("\t") != 1:
                detail = (
                    "the official checker accepts it, but the scorer fails there: remove blank lines and tabs"
                )
                report(path.name, "stray white space", f"line {number}", detail)
        scored = len(text.split()) // 2
        if scored < CUTOFFS[-1]:
            detail = (
                f"{counted(scored, 'line')}, but the official scorer fails at a debate with fewer than {CUTOFFS[-1]}: "
                "evaluate the other debates, or all with --lenient"
            )
            report(path.name, "too few lines", detail=detail)
        if split is None:
            return
        debates = split.files
        debate = next((file for file in debates if file.name == path.name), debates[0])
        if len(debates) > 1 and debate.name != path.name:
            detail = f"name the file after its debate, such as {debate.name}, or name the debate with --split"
            problems.add(path.name, "unknown debate", detail=detail)
            return
        unread = Problems()
        expected = len(split.collection.lines(debate, unread))
        unread.raise_if_any()
        if scored != expected:
            kind = "missing lines" if scored < expected else "unknown lines"
            detail = f"{counted(scored, 'line')} {be(scored)} scored, but {debate.name} has {expected}: score all lines"
            problems.add(path.name, kind, detail=detail)

    def gold(self, grades: Grades, split: DataSplit[CheckThatCollection]) -> Mapping[str, Writer]:
        def writer(path: Path, labels: Mapping[str, int]) -> Writer:
            lines = [
                line._replace(label=int(labels.get(_id(path, line), 0) > 0))
                for line in split.collection.lines(path, Problems(lenient=True))
            ]
            return partial(write_debate, lines=lines)

        return {path.name: writer(path, grades[path.stem]) for path in split.files if path.stem in grades}

    def grades(
        self,
        files: Sequence[Path],
        split: DataSplit[CheckThatCollection],
    ) -> Grades:
        qrels = {Path(name).stem: lines for name, lines in super().grades(files, split).items()}
        return {
            debate: {f"{debate}:{line}": grade for line, grade in lines.items()}
            for debate, lines in qrels.items()
        }


def _writer(ranking: Ranking, collection: CheckThatCollection) -> Writer:
    for path in collection.documents.files:
        if path.stem == ranking.topic_id and path.exists():
            lines = len(collection.lines(path, Problems(lenient=True)))
            if lines > len(ranking.hits):
                raise DataError(
                    f"debate {ranking.topic_id} has {counted(lines, 'line')}, but "
                    f"{len(ranking.hits):,} of them are ranked, and the official file needs every "
                    "line: rank deeper with --depth"
                )
    scores = [(line_number(document), score) for document, score in ranking.hits]
    return partial(debate_files.write_line_scores, scores=scores)


def _id(path: Path, line: DebateLine) -> str:
    return f"{path.stem}:{line.number}"


def _topic(path: Path, lines: Sequence[DebateLine], queries: Mapping[str, str]) -> Topic:
    speakers = [speaker for speaker, _count in Counter(line.speaker for line in lines).most_common(3)]
    names = ", ".join(filter(None, speakers)) or "unnamed speakers"
    text = f"{path.stem}: {counted(len(lines), 'line')}, by {names}"
    return Topic(path.stem, text, {"debate": path.stem, **queries})


def _term_counts(lines: Sequence[DebateLine], registry: AnalysisRegistry) -> dict[str, TermCounts]:
    texts = [line.text for line in lines]
    counts = {name: TermCounts() for name in QUERIES}
    for name, analyzer in QUERIES.items():
        for line, terms in zip(lines, registry.analyzer(analyzer).terms_of_each(texts), strict=True):
            counts[name].add(terms, relevant=line.label == 1)
    return counts


TASK = shipped(INFO, CheckThatCollection, CheckThatFormat())
