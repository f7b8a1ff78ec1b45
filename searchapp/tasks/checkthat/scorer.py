"""The official scorer of check-worthiness ranking (CheckThat! 2019, task 1): AP, RR, R-Precision, P@k, and means.

A submission is a result file for each debate, paired in order with as many gold files. All debates weigh the same in
the means. A debate of fewer than 50 lines stops the official scorer (one training debate has 44); the lenient mode
excludes such a debate from P@50 only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from searchapp.errors import NotScorable
from searchapp.evaluation.base import Breakdown, BreakdownRow, GoldFiles, OfficialScore, Qrels, Scored, mean
from searchapp.formats.problems import Problems, shown
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Run
from searchapp.tasks.checkthat.debate_files import failures, read_debate, read_text
from searchapp.text import be, counted, have

# The k of P@k; the official scorer stops at a debate with fewer lines.
CUTOFFS = (1, 3, 5, 10, 20, 50)

# The names of means, if not `mean` and the figure's name.
MEANS = {"AP": "MAP", "RR": "MRR"}

# The suffix of the official files, whose stems are names of debates.
SUFFIX = ".tsv"

# The least share of one speaker in the spoken lines of a speech or press conference.
MIN_MAIN_SPEAKER_SHARE = 0.75

# The speakers of reactions, as spelled in the data.
REACTIONS = frozenset({"SYSTEM", "SYSYTEM", "AUDIENCE", "AUDIENCE MEMBERS"})


@dataclass(frozen=True, slots=True)
class DebatePrediction:
    """The prediction for one debate: a result file, or scores by line number."""

    name: str
    path: Path | None = None
    scores: Mapping[int, float] | None = None


class CheckThatScorer:
    """The official scorer of `checkthat`."""

    files_make_one = True
    breakdowns: tuple[str, ...] = ("debate", "event", "speaker")

    def read(self, files: Sequence[Path]) -> list[DebatePrediction]:
        # The official scorer counts the files before it opens them: `score` opens them.
        names = Counter(path.name for path in files)
        return [DebatePrediction(path.name if names[path.name] == 1 else str(path), path) for path in files]

    def predictions(self, run: Run) -> list[DebatePrediction]:
        return [
            DebatePrediction(
                ranking.topic_id + SUFFIX,
                scores=dict(sorted((line_number(document), score) for document, score in ranking.hits)),
            )
            for ranking in run
        ]

    def qrels(self, gold: GoldFiles) -> Qrels:
        return {path.name: _grades(read_gold(path)) for path in gold.files}

    def score(self, predictions: Sequence[DebatePrediction], gold: GoldFiles) -> Scored:
        _require_valid_files(predictions, gold.files)
        ranked: dict[str, list[int]] = {}
        labels: dict[str, dict[int, int]] = {}
        for prediction, path in zip(predictions, gold.files, strict=True):
            name = prediction.name
            relevant = read_gold(path)
            ranked[name] = ranking(_scores(prediction, relevant), relevant, name)
            labels[name] = relevant
            if len(ranked[name]) < CUTOFFS[-1] and not gold.options.lenient:
                raise NotScorable(
                    f"{name}: {len(ranked[name])} lines, too few for P@{CUTOFFS[-1]}; --lenient "
                    "excludes it from that measure only",
                    "IndexError: list index out of range",
                )
        return Scored(
            _official(ranked, labels),
            len(labels),
            {name: [str(number) for number in numbers] for name, numbers in ranked.items()},
            {name: _grades(relevant) for name, relevant in labels.items()},
        )

    def breakdown(
        self,
        predictions: Sequence[DebatePrediction],
        gold: GoldFiles,
        wanted: Sequence[str],
    ) -> Iterable[Breakdown]:
        debates = []
        for prediction, path in zip(predictions, gold.files, strict=True):
            labels = read_gold(path)
            lines = read_debate(path, Problems(lenient=True))
            speakers = {line.number: line.speaker for line in lines}
            ranked = ranking(_scores(prediction, labels), labels, prediction.name)
            name = prediction.name.removesuffix(SUFFIX)
            debates.append(_Debate(name, prediction.name, ranked, labels, speakers))
        functions = {"debate": _by_debate, "event": _by_event, "speaker": _by_speaker}
        return [functions[name](debates) for name in wanted]


def line_number(document_id: str) -> int:
    """Return the line number in a document id `<debate>:<line>`."""
    return int(document_id.rpartition(":")[2])


def _require_valid_files(predictions: Sequence[DebatePrediction], gold: Sequence[Path]) -> None:
    """Raise the errors that the official scorer raises before it reads gold, in its order."""
    if len(predictions) != len(gold):
        names = {prediction.path.name if prediction.path else prediction.name for prediction in predictions}
        missing_names = [path.name for path in gold if path.name not in names]
        hint = f" (missing: {', '.join(missing_names)})" if 0 < len(missing_names) < len(gold) else ""
        raise NotScorable(
            f"predictions: {len(predictions)}{hint}, gold files: {len(gold)}: name one gold file for "
            "each debate, in order",
            f"Different number of gold files ({len(gold)}) and pred files ({len(predictions)}) "
            "provided. Cannot score.",
        )
    paths = [str(prediction.path) for prediction in predictions if prediction.path is not None]
    repeated = [path for path, count in Counter(paths).items() if count > 1]
    if repeated:
        raise NotScorable(
            f"{repeated[0]} is named more than once: name each debate's file once",
            "Same pred file provided multiple times. The pred files should be for different debates.",
        )
    for prediction in predictions:
        if prediction.path is None:
            continue
        for failure in failures(prediction.path):
            where = f"{prediction.path}: line {failure.line}: {failure.kind}: {failure.advice}"
            if failure.crashes:
                raise NotScorable(where, failure.official)
            bad = f"Bad format for pred file {prediction.path.name}. Cannot score."
            raise NotScorable(f"{where} ({failure.official})", bad)


def read_gold(path: Path) -> dict[int, int]:
    """Return the label of each line number as the official scorer reads them.

    Raises:
        NotScorable: the file is not UTF-8, a line does not have four cells, or a number or label is not an integer.
        DataError: the file can't be opened.
    """
    labels = {}
    text = read_text(path)
    for index, line in enumerate(_lines(text), start=1):
        where = f"{path}: line {index}"
        number, _speaker, _text, label = _cells(line.strip(), 4, where)
        labels[_integer(number, where)] = _integer(label, where)
    return labels


def _scores(prediction: DebatePrediction, gold: Mapping[int, int]) -> Mapping[int, float]:
    """Return the score of each line number, in the order of the file."""
    scores: dict[int, float] = {}
    for number, score in _scored_lines(prediction):
        if number not in gold:
            raise NotScorable(
                f"{prediction.name}: line {number} is ranked, but its gold file has no such line",
                f"No such line_number: {number} in gold file!",
            )
        scores[number] = score
    return scores


def _scored_lines(prediction: DebatePrediction) -> Iterator[tuple[int, float]]:
    if prediction.path is None:
        yield from (prediction.scores or {}).items()
        return
    for index, line in enumerate(_lines(read_text(prediction.path)), start=1):
        number, score = _cells(line, 2, f"{prediction.path}: line {index}")
        yield int(number), float(score)


def ranking(scores: Mapping[int, float], gold: Mapping[int, int], name: str) -> list[int]:
    """Return the line numbers of a debate, best first; equal scores keep the order of the lines.

    Raises:
        NotScorable: a line of the gold has no score.
    """
    missing = [number for number in gold if number not in scores]
    if missing:
        raise NotScorable(
            f"{name}: {counted(len(missing), 'line')} of the debate not ranked, such as line "
            f"{min(missing)}: rank all lines",
            "ValueError: The predictions do not match the lines from the gold file - missing or extra line_no",
        )
    return sorted(scores, key=lambda number: -scores[number])


def figures(ranked: Sequence[int], gold: Mapping[int, int]) -> dict[str, float]:
    """Return AP, RR, R, R-Precision and P@k of a ranking of all lines; lines with the label 1 are relevant.

    Without relevant lines the figures are 0. A ranking shorter than k has no P@k.
    """
    hits = [gold[number] == 1 for number in ranked]
    relevant = sum(hits)
    ranks = [rank for rank, hit in enumerate(hits, start=1) if hit]
    precisions = [hit_count / rank for hit_count, rank in enumerate(ranks, start=1)]
    return {
        "AP": math.fsum(precisions) / relevant if relevant else 0.0,
        "RR": 1 / ranks[0] if ranks else 0.0,
        "R": relevant,
        "R-Precision": sum(hits[:relevant]) / relevant if relevant else 0.0,
        **{f"P@{k}": sum(hits[:k]) / k for k in CUTOFFS if k <= len(hits)},
    }


def means(per_debate: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each figure except R over the debates that have it, under its official name."""
    return {
        MEANS.get(name, f"mean {name}"): mean([debate[name] for debate in per_debate if name in debate])
        for name in _names(per_debate)
        if name != "R"
    }


def _names(per_debate: Iterable[Mapping[str, float]]) -> dict[str, None]:
    """Return the names of figures in the order of the debate with most of them."""
    by_count = sorted(per_debate, key=len, reverse=True)
    return dict.fromkeys(name for debate in by_count for name in debate)


def _official(ranked: Mapping[str, Sequence[int]], labels: Mapping[str, Mapping[int, int]]) -> OfficialScore:
    warnings = []
    per_file = {name: figures(ranked[name], labels[name]) for name in ranked}
    scored = list(per_file.values())
    first_figures = {name: value for name, value in scored[0].items() if name != "R"}
    values = means(scored) if len(ranked) > 1 else first_figures
    if any(len(numbers) < CUTOFFS[-1] for numbers in ranked.values()):
        warnings.append(_short_debate_warning(ranked))
    if empty_debates := [name for name in per_file if not per_file[name]["R"]]:
        warnings.append(
            f"{len(empty_debates)} of {len(per_file)} debates {have(len(empty_debates))} no "
            "check-worthy line, such as "
            f"{empty_debates[0]}: all their values are 0 and count in the means"
        )
    for name, relevant in labels.items():
        other_labels = Counter(label for label in relevant.values() if label not in (0, 1))
        if other_labels:
            shown_labels = ", ".join(shown(str(label)) for label in sorted(other_labels))
            warnings.append(
                f"the gold of {name} has the labels {shown_labels}, which count as not check-worthy"
            )
    measure = "MAP" if len(ranked) > 1 else "AP"
    all_names = _names(scored)
    per_topic = {name: {**all_names, **figures_of_file} for name, figures_of_file in per_file.items()}
    return OfficialScore(measure, values, per_topic, tuple(warnings))


def _short_debate_warning(ranked: Mapping[str, Sequence[int]]) -> str:
    short = [
        f"{name} ({len(numbers)} lines)" for name, numbers in ranked.items() if len(numbers) < CUTOFFS[-1]
    ]
    fewest = min(map(len, ranked.values()))
    lacking = [f"P@{k}" for k in CUTOFFS if k > fewest]
    stops = f"the official scorer fails at {', '.join(short)}, too few for P@{CUTOFFS[-1]}"
    if len(ranked) == 1:
        return f"{stops}: no {', '.join(lacking)}"
    return (
        f"{stops}: {', '.join(lacking)} {be(len(lacking))} over the debates with enough lines, "
        f"all other measures over all {len(ranked)}"
    )


@dataclass(frozen=True, slots=True)
class _Debate:
    name: str
    # Its name in `Scored.qrels`.
    topic: str
    ranked: Sequence[int]
    labels: Mapping[int, int]
    speakers: Mapping[int, str]

    def event(self) -> str:
        spoken = Counter(speaker for speaker in self.speakers.values() if speaker not in REACTIONS)
        if not spoken:
            return "only reactions"
        return (
            "one voice"
            if max(spoken.values()) >= MIN_MAIN_SPEAKER_SHARE * spoken.total()
            else "several voices"
        )


def _by_debate(debates: Sequence[_Debate]) -> Breakdown:
    rows = [
        BreakdownRow(debate.name, len(debate.ranked), figures(debate.ranked, debate.labels), (debate.topic,))
        for debate in debates
    ]
    return Breakdown("debate", "by debate", tuple(rows), counted="lines")


def _by_event(debates: Sequence[_Debate]) -> Breakdown:
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for debate in debates:
        groups.setdefault(debate.event(), {})[debate.topic] = figures(debate.ranked, debate.labels)
    rows = [
        BreakdownRow(group, len(of_debate), means(list(of_debate.values())), tuple(of_debate))
        for group, of_debate in sorted(groups.items())
    ]
    title = f"by event: one voice has at least {MIN_MAIN_SPEAKER_SHARE:.0%} of the spoken lines"
    return Breakdown("event", title, tuple(rows), counted="debates")


def _by_speaker(debates: Sequence[_Debate]) -> Breakdown:
    """Rank each speaker's lines separately; MAP covers debates in which the speaker has a check-worthy line."""
    lines: Counter[str] = Counter()
    relevant: Counter[str] = Counter()
    precisions: dict[str, list[float]] = {}
    for debate in debates:
        by_speaker: dict[str, list[int]] = {}
        for number in debate.ranked:
            by_speaker.setdefault(debate.speakers.get(number, ""), []).append(number)
        for speaker, ranked in by_speaker.items():
            result = figures(ranked, debate.labels)
            lines[speaker] += len(ranked)
            relevant[speaker] += int(result["R"])
            if result["R"]:
                precisions.setdefault(speaker, []).append(result["AP"])
    rows = [
        BreakdownRow(
            speaker or "(none)",
            lines[speaker],
            {"R": relevant[speaker], "MAP": mean(values)},
        )
        for speaker, values in sorted(precisions.items(), key=lambda entry: (-lines[entry[0]], entry[0]))
    ]
    title = "by speaker, each speaker's lines ranked separately"
    return Breakdown("speaker", title, tuple(rows), counted="lines")


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _cells(line: str, count: int, where: str) -> list[str]:
    cells = line.split("\t")
    if len(cells) < count:
        official = f"ValueError: not enough values to unpack (expected {count}, got {len(cells)})"
        actual = "a blank line" if not line.strip() else f"{len(cells)} cells"
        raise NotScorable(f"{where}: {actual} instead of {count} cells", official)
    if len(cells) > count:
        official = f"ValueError: too many values to unpack (expected {count})"
        raise NotScorable(f"{where}: {len(cells)} cells instead of {count}", official)
    return cells


def _integer(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise NotScorable(f"{where}: {shown(text)} is not an integer", f"ValueError: {error}") from error


def _grades(labels: Mapping[int, int]) -> dict[str, int]:
    return {str(number): int(label == 1) for number, label in labels.items()}
