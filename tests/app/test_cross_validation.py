"""Cross-validation: a topic is ranked by the solved topics of other folds, and has one value."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.app.experiments.cross_validation import CrossValidation, CrossValidationRequest, is_training
from searchapp.app.index import index_task
from searchapp.config.settings import Settings
from searchapp.engines import open_on_disk
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.progress import SilentProgress
from searchapp.ranking import recipes
from searchapp.tasks import splits as folds
from tests.app.conftest import SAMPLES

Validate = Callable[..., CrossValidation]

OPTIONS = ScorerOptions(cutoff=30, lenient=True)
"""The samples are too small for the official cut-offs."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("validated")


@pytest.fixture
def validate(home: Path) -> Iterator[Validate]:
    """Opens the sample of a task, indexed, for cross-validation; closes it at the end."""
    opened: list[CrossValidation] = []

    def made(name: str, *splits: str, folder: Path | None = None, **asked: object) -> CrossValidation:
        task, settings = tasks.load(name), Settings(home=home)
        collection = task.collection(folder or SAMPLES / name)
        engine = open_on_disk(settings)
        index_task(task, engine, collection, SilentProgress())
        engine.close()
        request = CrossValidationRequest(task, collection, splits or ("train",), options=OPTIONS, **asked)  # type: ignore[arg-type]
        opened.append(CrossValidation(request, settings, SilentProgress()))
        return opened[-1]

    yield made
    for one in opened:
        one.close()


@contextmanager
def said(error: type[SearchappError], *words: str) -> Iterator[None]:
    with pytest.raises(error) as caught:
        yield
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("nlps", ("train",)),
        ("explanation-2019", ("train",)),
        ("explanation-2021", ("train",)),
        ("checkthat", ("training",)),
        ("smart-types-dbpedia", folds.FOLD_NAMES),
        ("smart-types-wikidata", folds.FOLD_NAMES),
        ("smart-relations-dbpedia", folds.FOLD_NAMES),
        ("smart-relations-wikidata", folds.FOLD_NAMES),
    ],
)
def test_every_task_has_a_value_for_each_solved_topic(
    name: str, splits: tuple[str, ...], validate: Validate
) -> None:
    found = validate(name, *splits)
    recipe = recipes.load(name, "neighbours")
    values = found.scores(recipe)
    assert list(values) == [topic for topic in found.topics if topic in values]
    assert len(values) >= 3 and all(0 <= value <= 1 for value in values.values())
    assert sum(found.sizes) == len(found.topics) == len(set(found.topics))
    assert values == found.scores(recipe), "the same again"


def test_no_topic_is_ranked_by_its_own_answers(validate: Validate, monkeypatch: pytest.MonkeyPatch) -> None:
    from searchapp.ranking import ranker as rank

    seen: list[tuple[set[str], set[str]]] = []
    ranker = rank.Ranker.rank

    def watched(self: rank.Ranker, topics: object, *rest: object) -> object:
        (voting,) = [scorer for scorer in self.scorers if hasattr(scorer, "_training")]
        seen.append(({topic.id for topic in topics}, set(voting._training.gold)))  # type: ignore[attr-defined]
        return ranker(self, topics, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("searchapp.app.experiments.cross_validation.Ranker.rank", watched)
    found = validate("nlps", folds=3)
    found.scores(recipes.load("nlps", "neighbours"))
    assert len(seen) == 3
    for topics, solved in seen:
        assert topics and not topics & solved and topics | solved == set(found.topics)


def test_trained_signals_learn_from_the_other_folds_only(validate: Validate) -> None:
    found = validate("smart-types-dbpedia", *folds.FOLD_NAMES)
    # A model refuses a topic that it was trained on: that it ranks them all shows that it has seen none of them.
    assert len(found.scores(recipes.load("smart-types-dbpedia", "best", {"min_samples": 2}))) == len(
        found.topics
    )


def test_the_usual_folds_are_those_that_figures_are_reported_for(validate: Validate) -> None:
    name = "smart-relations-dbpedia"
    recipe = recipes.load(name, "neighbours")
    together = validate(name, *folds.FOLD_NAMES, folds=5).scores(recipe)
    alone: dict[str, str] = {}
    for split in folds.FOLD_NAMES:
        examples = tasks.load(name).collection(SAMPLES / name).topics(split, Problems())
        alone |= {topic.id: split for topic in examples}
    by_number = {topic: folds.fold_of(topic) for topic in together}
    assert by_number == {topic: alone[topic] for topic in together}


def test_some_topics_have_the_values_that_they_have_among_all(validate: Validate) -> None:
    for name in ("nlps", "explanation-2019", "explanation-2021"):
        found = validate(name, folds=3)
        recipe = recipes.load(name, "neighbours")
        every = found.scores(recipe)
        some = set(list(every)[1:4])
        assert found.scores(recipe, some) == {topic: every[topic] for topic in every if topic in some}
    debates = validate("checkthat", "training")
    with said(UsageError, "rankings of all topics of training"):
        debates.scores(recipes.load("checkthat", "bm25"), {debates.topics[0]})


def test_topics_without_a_value_leave_the_others_theirs(validate: Validate, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / "checkthat", tmp_path / "checkthat"))
    short = sorted((folder / "training").iterdir())[0]
    lines = short.read_text().splitlines(keepends=True)
    assert len(lines) >= 50, "fewer lines the official scorer leaves out"
    short.write_text("".join(lines[:44]))
    found = validate("checkthat", "training", folder=folder).scores(recipes.load("checkthat", "bm25"))
    assert len(found) >= 2 and all(value > 0 for value in found.values())


def test_a_measure_of_the_field_and_one_that_is_none(validate: Validate) -> None:
    recipe = recipes.load("nlps", "bm25")
    assert set(validate("nlps", measure="P@1").scores(recipe).values()) <= {0.0, 1.0}
    with said(UsageError, "there is no measure 'x'"):
        validate("nlps", measure="x").scores(recipe)


def test_topics_of_dev_are_ranked_with_all_solved_ones_and_are_told_from_train(validate: Validate) -> None:
    found = validate("nlps", "dev")
    assert len(found.sizes) == 1, "nothing is left out for them"
    collection = found.request.collection
    assert is_training(collection, "train") and not is_training(collection, "dev")
    assert all(
        is_training(tasks.load("checkthat").collection(SAMPLES / "checkthat"), s) for s in ("training",)
    )


def test_what_cannot_be_validated_is_said(validate: Validate, tmp_path: Path) -> None:
    with said(UsageError, "no split"):
        validate("nlps", "everything")
    with said(UsageError, "at least 2 folds"):
        validate("nlps", folds=1)
    with said(DataError, "masked"):
        validate("smart-relations-dbpedia", "test")
    damaged = Path(shutil.copytree(SAMPLES / "nlps", tmp_path / "nlps"))
    (damaged / "train_set.json").write_text("{}")
    with said(DataError, "no topic of train has gold"):
        validate("nlps", folder=damaged)
