"""How to get the numbers of a report again: the commands, and what these need to say the same."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import searchapp
from searchapp.app.compare import SOLVED_FROM, CompareRequest
from searchapp.app.comparison import ComparedRun, Comparison
from searchapp.app.evaluate import GoldSource, gold_files
from searchapp.app.run_metadata import command
from searchapp.digests import data_name, digest_file, digest_json
from searchapp.evaluation.significance import PERMUTATIONS, RESAMPLES, SEED
from searchapp.judging.fold import Folding, Rule
from searchapp.judging.treatment import Unjudged
from searchapp.runs.directory import read_manifest
from searchapp.tasks.base import Task

COMPUTED_WITH = ("ir-measures", "pytrec-eval-terrier", "numpy", "scipy")
"""The packages whose versions matter to a figure."""


@dataclass(frozen=True, slots=True)
class MadeFrom:
    """What a run was made from; digests are SHA-256, `files` those of the data by name.

    `command` makes the same run of the same data, in a folder DATA; nothing where no command does, as of a run that
    another tool made.
    """

    run: str
    command: str
    searchapp: str
    engine: str
    created: str
    seconds: float
    digest: str
    rankings: str
    mapping: str
    index: str
    files: Mapping[str, str]
    recipe: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JudgedIn:
    """Where judgments come from that are the gold: a qrels file, or a log, and how its judgments become grades.

    `log` is None for the one in searchapp's own folder.
    """

    qrels: Path | None = None
    log: Path | None = None
    folding: Folding = field(default_factory=Folding)

    def words(self) -> list[str]:
        """The options of `judgments agreement` that say so."""
        log = [] if self.log is None else ["--log", str(self.log)]
        return [*log, *(word for name in self.folding.annotators or () for word in ("--annotator", name))]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Commands by what they print, what each run was made from, and the versions and digests behind the figures.

    `gold` has the SHA-256 of each file with gold by its name; of judgments in a log that of their grades.
    """

    commands: Mapping[str, str]
    runs: tuple[MadeFrom, ...]
    gold: Mapping[str, str]
    versions: Mapping[str, str]
    permutations: int
    resamples: int
    seed: int


def reproduction(
    request: CompareRequest, task: Task, gold: GoldSource, found: Comparison, judged: JudgedIn
) -> Reproduction:
    """How to get the numbers of compared runs again.

    `gold` says where the organisers' gold is, `judged` where judgments are, if these are the gold.

    Raises:
        DataError: a file with gold is gone since it was read.
    """
    return Reproduction(
        commands=_commands(request, task, judged),
        runs=tuple(_made_from(path, run) for path, run in zip(request.runs, found.runs, strict=True)),
        gold=_gold(request, task, gold, judged.qrels),
        versions={
            "searchapp": searchapp.__version__,
            "Python": platform.python_version(),
            **{name: version for name in COMPUTED_WITH if (version := _version(name))},
        },
        permutations=request.permutations,
        resamples=RESAMPLES,
        seed=request.seed,
    )


def _gold(request: CompareRequest, task: Task, gold: GoldSource, qrels: Path | None) -> dict[str, str]:
    if qrels is not None:
        return {qrels.name: digest_file(qrels)}
    if request.judgments is not None:
        grades = {topic: dict(of_topic) for topic, of_topic in request.judgments.grades.items()}
        return {"the grades of the judgments": digest_json(grades)}
    folder = gold.folder(task) or Path()
    return {
        data_name(folder, file) if file.is_relative_to(folder) else file.name: digest_file(file)
        for file in gold_files(task, gold)
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _made_from(path: Path, run: ComparedRun) -> MadeFrom:
    manifest = read_manifest(path)
    engine = " ".join(filter(None, (manifest.engine.get("name"), manifest.engine.get("version"))))
    return MadeFrom(
        run=run.name,
        command=command(manifest, portable=True),
        searchapp=manifest.searchapp,
        engine=engine,
        created=manifest.created,
        seconds=manifest.seconds,
        digest=manifest.digest,
        rankings=manifest.files.get(manifest.rankings, ""),
        mapping=manifest.mapping_digest,
        index=manifest.index_digest,
        files=manifest.data_digests,
        recipe=manifest.recipe,
    )


def _commands(request: CompareRequest, task: Task, judged: JudgedIn) -> dict[str, str]:
    """The commands that print the numbers, by what these are."""
    runs, source = [str(path) for path in request.runs], request.source
    scoring = list(_scoring(request, judged))
    measures = [word for name in source.measures for word in ("--measure", name)]
    by = [word for name in source.by for word in ("--by", name)]
    of_curves = [word for name in source.also for word in ("--measure", name)]
    found = {
        "figures and breakdowns": ["evaluate", *runs, *scoring, *measures, *by],
        "precision and recall by level and rank": ["evaluate", *runs, *scoring, *of_curves],
    }
    if len(runs) > 1:
        words = ["compare", *runs, *scoring, *measures, *by, *_testing(request)]
        found["tests, topics, difficulty, likeness of rankings"] = words
    if request.judgments is not None and judged.qrels is None:
        found["agreement of annotators"] = ["judgments", "agreement", task.reference, *judged.words()]
    return {what: shlex.join(["searchapp", *words, "--json"]) for what, words in found.items()}


def _scoring(request: CompareRequest, judged: JudgedIn) -> Iterator[str]:
    """The options that say what runs are scored against."""
    source, options, judgments = request.source, request.source.options, request.judgments
    if source.data is not None:
        yield from ("--data", str(source.data))
    for file in source.gold:
        yield from ("--gold", str(file))
    if options.nearest is not None:
        yield from ("--nearest", str(options.nearest))
    if options.hierarchy is not None:
        yield from ("--hierarchy", str(options.hierarchy))
    if options.knowledge_base is not None:
        yield from ("--kb", options.knowledge_base)
    if options.lenient:
        yield "--lenient"
    if judgments is None:
        return
    if judged.qrels is None:
        yield from ("--judgments", *judged.words())
        if judged.folding.rule is not Rule.majority:
            yield from ("--rule", judged.folding.rule.value)
    else:
        yield from ("--qrels", str(judged.qrels))
    if judgments.unjudged is not Unjudged.nonrelevant:
        yield from ("--unjudged", judgments.unjudged.value)
    if judgments.unseen:
        yield "--unseen"


def _testing(request: CompareRequest) -> Iterator[str]:
    """The options that `compare` alone takes."""
    if request.baseline is not None:
        yield from ("--baseline", str(request.baseline))
    if request.depth is not None:
        yield from ("--depth", str(request.depth))
    for option, value, usual in (
        ("--solved-from", request.solved_from, SOLVED_FROM),
        ("--permutations", request.permutations, PERMUTATIONS),
        ("--seed", request.seed, SEED),
    ):
        if value != usual:
            yield from (option, f"{value:g}" if isinstance(value, float) else str(value))
    if request.anyway:
        yield "--anyway"
