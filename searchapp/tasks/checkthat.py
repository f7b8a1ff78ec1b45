"""Check-worthiness of the sentences of political debates (CheckThat! 2019, task 1).

A topic is a debate, the documents are the lines of debates, and a topic's ranking holds the lines of its debate and
no others, the ones most worth a fact check first. What that means is learnt from the labelled debates: of the training
debates each is ranked by the others, of the test debates each by all training debates.

Scores depend on statistics of all lines in an index. So the training debates have an index of their own, in which
they are ranked whether there are test debates or not; test debates are ranked among the lines of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from searchapp.analysis import AnalysisRegistry
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.evaluation.checkthat import CUTOFFS, SUFFIX, CheckThatScorer, line_number
from searchapp.formats import line_scores
from searchapp.formats.debates import MOST_LINES, Line, read_debate, write_debate
from searchapp.formats.ids import unusable
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example, Ranking, Run, Topic
from searchapp.names import refused
from searchapp.tasks.base import Grades, ShippedTask, Writer
from searchapp.tasks.characteristic import TermCounts

TRAINING = "training"
"""The folder whose debates are the labelled examples."""

WITH_TEST = "checkthat-with-test"
"""The index of all debates; that of the training debates has the task's name."""

TERMS = 200
"""Characteristic terms, and as many characteristic pairs of terms, that a topic asks for."""

QUERIES = {"words": "claims", "pairs": "claim_pairs"}
"""The topic fields with characteristic terms, and the analyzers of the mapping that make the terms."""


class CheckThat(ShippedTask):
    """The task `checkthat`."""

    name = "checkthat"
    title = "Check-worthiness of debate sentences (CheckThat! 2019, task 1)"
    about = "For a debate, rank its sentences by how much they are worth a fact check."
    mapping = "sentences"
    examples_mapping = None
    splits = (TRAINING, "test_annotated")
    topics_are_documents = False
    default_recipe = "bm25"
    search_recipe = "words"
    default_depth = MOST_LINES
    official_measure = "MAP"
    official_file = f"<debate>{SUFFIX} for each debate"
    scorer = CheckThatScorer()
    grades = ("not check-worthy", "check-worthy")
    context = ("debate", "line")
    measures = ("AP", "RR", "Rprec", "P@10", "P@50", "nDCG@10")

    def split_files(self, data: Path, split: str) -> list[Path]:
        if split in self.splits:
            return sorted((data / split).glob(f"*{SUFFIX}")) or [data / split / f"*{SUFFIX}"]
        found = [path for part in self.splits if (path := data / part / f"{split}{SUFFIX}").is_file()]
        if not found:
            raise UsageError(
                f"{self.name} has no split {refused(split, self.splits)} or the name of a debate in "
                f"{data}, such as 20160926_1pres"
            )
        return found

    def gold_files(self, data: Path, split: str) -> list[Path]:
        return self.split_files(data, split)

    @property
    def index_names(self) -> tuple[str, ...]:
        return WITH_TEST, self.index_name

    def index_of(self, data: Path, split: str) -> str:
        (part,) = {path.parent.name for path in self.split_files(data, split)[:1]}
        return self.index_name if part == TRAINING else WITH_TEST

    def files_of(self, data: Path, index: str) -> list[Path]:
        return self.document_files(data) if index == WITH_TEST else self.split_files(data, TRAINING)

    def documents_of(self, data: Path, index: str, problems: Problems) -> Iterator[Document]:
        return self._lines(self.files_of(data, index), data, problems)

    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        return self._lines(self.document_files(data), data, problems)

    def _lines(self, files: Sequence[Path], data: Path, problems: Problems) -> Iterator[Document]:
        for path in files:
            if problem := unusable(path.stem):
                detail = f"rename the file, whose name is the debate's: {problem[1]}"
                problems.add(path, problem[0], detail=detail, skippable=False)
            part = path.parent.name
            if part != TRAINING and (data / TRAINING / path.name).exists():
                detail = f"{TRAINING} has a debate of that name already"
                problems.add(path, "duplicate debate", detail=detail, skippable=False)
            for line in read_debate(path, problems):
                fields = {
                    "debate": path.stem,
                    "part": part,
                    "line": line.number,
                    "speaker": line.speaker,
                }
                yield Document(_id(path, line), line.text, fields)

    def document_files(self, data: Path) -> list[Path]:
        parts = [self.split_files(data, split) for split in self.splits if (data / split).is_dir()]
        return [path for part in parts for path in part] or self.split_files(data, TRAINING)

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        registry = AnalysisRegistry(self.index_mapping()["settings"]["analysis"])
        labelled = {
            path: _counts(read_debate(path, Problems(lenient=True)), registry)
            for path in self.split_files(data, TRAINING)
            if path.exists()
        }
        every = {field: TermCounts() for field in QUERIES}
        for counts in labelled.values():
            every = {field: every[field].plus(counts[field]) for field in QUERIES}
        topics = []
        for path in self.split_files(data, split):
            lines = list(read_debate(path, problems))
            if not lines:
                continue
            queries = {}
            for field, among in every.items():
                others = among.without(labelled[path][field]) if path in labelled else among
                if not others.relevant:
                    raise DataError(
                        f"{data / TRAINING} has no debate with check-worthy lines to rank {path.stem} by: put "
                        "labelled debates there"
                    )
                queries[field] = " ".join(others.query(TERMS))
            topics.append(Topic(path.stem, _described(path, lines), {"debate": path.stem, **queries}))
        return topics

    def check_split(self, data: Path, split: str, problems: Problems) -> int:
        # What is wrong with a line is told by who reads the documents, which the lines are.
        own = Problems(lenient=True)
        return sum(any(True for _ in read_debate(path, own)) for path in self.split_files(data, split))

    def examples(self, data: Path, split: str, problems: Problems) -> Iterator[Example]:
        own = self.split_files(data, split) if split not in self.splits else []
        for path in self.example_files(data, split):
            if path not in own:
                lines = list(read_debate(path, problems))
                gold = {_id(path, line): 1.0 for line in lines if line.label == 1}
                yield Example(Topic(path.stem, _described(path, lines), {"debate": path.stem}), gold)

    def example_files(self, data: Path, split: str) -> list[Path]:
        return self.split_files(data, TRAINING)

    def judged_gold(
        self, grades: Mapping[str, Mapping[str, int]], data: Path, split: str
    ) -> Mapping[str, Writer]:
        def writer(path: Path, labels: Mapping[str, int]) -> Writer:
            lines = [
                Line(line.number, line.speaker, line.text, int(labels.get(_id(path, line), 0) > 0))
                for line in read_debate(path, Problems(lenient=True))
            ]
            return lambda file: write_debate(file, lines)

        return {
            path.name: writer(path, grades[path.stem])
            for path in self.split_files(data, split)
            if path.stem in grades
        }

    def gold_grades(self, files: Sequence[Path], data: Path, split: str) -> Grades:
        grades = {Path(name).stem: lines for name, lines in super().gold_grades(files, data, split).items()}
        return {
            debate: {f"{debate}:{line}": grade for line, grade in lines.items()}
            for debate, lines in grades.items()
        }

    def is_masked(self, data: Path, split: str) -> bool:
        return False

    def official_shortfall(self, run: Run, options: ScorerOptions) -> str | None:
        for ranking in run:
            numbers = {line_number(document) for document in ranking.document_ids()}
            missing = next((number for number in range(1, len(numbers) + 1) if number not in numbers), None)
            if missing is not None or not numbers:
                return (
                    f"debate {ranking.topic_id} has no line {missing or 1}, and the official file needs every line: "
                    "rank deeper with --depth"
                )
        return None

    def official_files(self, run: Run, data: Path, split: str) -> Mapping[str, Writer]:
        return {f"{ranking.topic_id}{SUFFIX}": self._writer(ranking, data) for ranking in run}

    def _writer(self, ranking: Ranking, data: Path) -> Writer:
        """What writes the lines of a debate, all of them.

        Raises:
            DataError: the debate has more lines; its last ones are missing.
        """
        for path in self.document_files(data):
            if path.stem == ranking.topic_id and path.exists():
                lines = sum(1 for _ in read_debate(path, Problems(lenient=True)))
                if lines > len(ranking.hits):
                    raise DataError(
                        f"debate {ranking.topic_id} has {lines} lines, of which {len(ranking.hits)} are ranked, and "
                        "the official file needs every line: rank deeper with --depth"
                    )
        scores = [(line_number(document), score) for document, score in ranking.hits]
        return lambda file: line_scores.write_line_scores(file, scores)

    def validate_official(
        self, path: Path, data: Path | None, split: str | None, options: ScorerOptions, problems: Problems
    ) -> None:
        for failure in line_scores.failures(path):
            detail = f"{failure.advice} (the official checker: {failure.official})"
            problems.add(path.name, failure.kind, f"line {failure.place}", detail)
        if len(problems):
            return
        text = line_scores.read_text(path)
        # The format checker lets pass what the scorer stops at: alone, a file is held to the checker.
        report = problems.note if data is None or split is None else problems.add
        for place, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            if line.count("\t") != 1:
                detail = "the official checker lets it pass, but the scorer stops there: remove blank lines and tabs"
                report(path.name, "stray white space", f"line {place}", detail)
        found = len(text.split()) // 2
        if found < CUTOFFS[-1]:
            detail = (
                f"{found} lines, and the official scorer stops at a debate of fewer than {CUTOFFS[-1]}: "
                "evaluate the other debates, or all with --lenient"
            )
            report(path.name, "too few lines", detail=detail)
        if data is None or split is None:
            return
        debates = self.split_files(data, split)
        debate = next((one for one in debates if one.name == path.name), debates[0])
        if len(debates) > 1 and debate.name != path.name:
            detail = f"name the file as its debate, such as {debate.name}, or the debate with --split"
            problems.add(path.name, "unknown debate", detail=detail)
            return
        unread = Problems()
        expected = sum(1 for _ in read_debate(debate, unread))
        unread.raise_if_any()
        if found != expected:
            kind = "missing lines" if found < expected else "unknown lines"
            detail = f"{found} lines are scored, and {debate.name} has {expected}: score each of them"
            problems.add(path.name, kind, detail=detail)


def _id(path: Path, line: Line) -> str:
    return f"{path.stem}:{line.number}"


def _described(path: Path, lines: list[Line]) -> str:
    """A debate in a few words, for people."""
    speakers = [speaker for speaker, _count in Counter(line.speaker for line in lines).most_common(3)]
    return f"{path.stem}: {len(lines)} lines, by {', '.join(filter(None, speakers)) or 'nobody named'}"


def _counts(lines: Iterator[Line], registry: AnalysisRegistry) -> dict[str, TermCounts]:
    """The terms of a debate's lines, by topic field."""
    analyzers = {field: registry.analyzer(name) for field, name in QUERIES.items()}
    counts = {field: TermCounts() for field in QUERIES}
    for line in lines:
        for field, analyzer in analyzers.items():
            terms = (term for term, _position in analyzer.terms(line.text))
            counts[field].add(terms, relevant=line.label == 1)
    return counts


TASK = CheckThat()
