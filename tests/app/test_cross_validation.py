"""Cross-validation: each topic is ranked with the training topics of other folds and has one value."""

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
    validations: list[CrossValidation] = []

    def open_sample(
        name: str, *splits: str, folder: Path | None = None, **options: object
    ) -> CrossValidation:
        task, settings = tasks.load(name), Settings(home=home)
        collection = task.collection(folder or SAMPLES / name)
        engine = open_on_disk(settings)
        index_task(task, engine, collection, SilentProgress())
        engine.close()
        request = CrossValidationRequest(task, collection, splits or ("train",), options=OPTIONS, **options)  # type: ignore[arg-type]
        validations.append(CrossValidation(request, settings, SilentProgress()))
        return validations[-1]

    yield open_sample
    for validation in validations:
        validation.close()


@contextmanager
def raises_naming(error: type[SearchappError], *words: str) -> Iterator[None]:
    """Expect an error whose message contains these words."""
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
def test_every_task_has_a_value_for_each_training_topic(
    name: str, splits: tuple[str, ...], validate: Validate
) -> None:
    validation = validate(name, *splits)
    recipe = recipes.load(name, "neighbours")
    values = validation.scores(recipe)
    assert list(values) == [topic for topic in validation.topics if topic in values]
    assert len(values) >= 3 and all(0 <= value <= 1 for value in values.values())
    assert sum(validation.sizes) == len(validation.topics) == len(set(validation.topics))
    assert values == validation.scores(recipe), "the same again"


def test_no_topic_is_ranked_with_its_own_gold(validate: Validate, monkeypatch: pytest.MonkeyPatch) -> None:
    from searchapp.ranking import ranker as rank

    calls: list[tuple[set[str], set[str]]] = []
    ranker = rank.Ranker.rank

    def record_call(self: rank.Ranker, topics: object, *rest: object) -> object:
        (voting,) = [scorer for scorer in self.scorers if hasattr(scorer, "_training")]
        calls.append(({topic.id for topic in topics}, set(voting._training.gold)))  # type: ignore[attr-defined]
        return ranker(self, topics, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("searchapp.app.experiments.cross_validation.Ranker.rank", record_call)
    validation = validate("nlps", folds=3)
    validation.scores(recipes.load("nlps", "neighbours"))
    assert len(calls) == 3
    for topics, voters in calls:
        assert topics and not topics & voters and topics | voters == set(validation.topics)


def test_trained_signals_learn_from_the_other_folds_only(validate: Validate) -> None:
    validation = validate("smart-types-dbpedia", *folds.FOLD_NAMES)
    # A model refuses to rank a topic that it was trained on.
    recipe = recipes.load("smart-types-dbpedia", "best", {"min_samples": 2})
    assert len(validation.scores(recipe)) == len(validation.topics)


def test_five_folds_are_the_folds_of_the_task(validate: Validate) -> None:
    name = "smart-relations-dbpedia"
    scores = validate(name, *folds.FOLD_NAMES, folds=5).scores(recipes.load(name, "neighbours"))
    collection = tasks.load(name).collection(SAMPLES / name)
    split_of = {
        topic.id: split for split in folds.FOLD_NAMES for topic in collection.topics(split, Problems())
    }
    assert all(folds.fold_of(topic) == split_of[topic] for topic in scores)


def test_a_topic_has_the_same_value_alone_and_among_all(validate: Validate) -> None:
    for name in ("nlps", "explanation-2019", "explanation-2021"):
        validation = validate(name, folds=3)
        recipe = recipes.load(name, "neighbours")
        values = validation.scores(recipe)
        selected = set(list(values)[1:4])
        assert validation.scores(recipe, selected) == {
            topic: values[topic] for topic in values if topic in selected
        }
    debates = validate("checkthat", "training")
    with raises_naming(UsageError, "rankings of all topics of training"):
        debates.scores(recipes.load("checkthat", "bm25"), {debates.topics[0]})


def test_topics_without_a_value_do_not_affect_others(validate: Validate, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / "checkthat", tmp_path / "checkthat"))
    short = sorted((folder / "training").iterdir())[0]
    lines = short.read_text().splitlines(keepends=True)
    assert len(lines) >= 50, "the official scorer skips debates with fewer lines"
    short.write_text("".join(lines[:44]))
    values = validate("checkthat", "training", folder=folder).scores(recipes.load("checkthat", "bm25"))
    assert len(values) >= 2 and all(value > 0 for value in values.values())


def test_any_known_measure_can_be_validated(validate: Validate) -> None:
    recipe = recipes.load("nlps", "bm25")
    assert set(validate("nlps", measure="P@1").scores(recipe).values()) <= {0.0, 1.0}
    with raises_naming(UsageError, "there is no measure 'x'"):
        validate("nlps", measure="x").scores(recipe)


def test_topics_of_dev_are_ranked_with_all_training_topics(validate: Validate) -> None:
    validation = validate("nlps", "dev")
    assert len(validation.sizes) == 1, "one fold: no training topic is left out"
    collection = validation.request.collection
    assert is_training(collection, "train") and not is_training(collection, "dev")
    assert is_training(tasks.load("checkthat").collection(SAMPLES / "checkthat"), "training")


def test_invalid_requests_for_validation_are_refused(validate: Validate, tmp_path: Path) -> None:
    with raises_naming(UsageError, "no split"):
        validate("nlps", "everything")
    with raises_naming(UsageError, "at least 2 folds"):
        validate("nlps", folds=1)
    with raises_naming(DataError, "masked"):
        validate("smart-relations-dbpedia", "test")
    damaged = Path(shutil.copytree(SAMPLES / "nlps", tmp_path / "nlps"))
    (damaged / "train_set.json").write_text("{}")
    with raises_naming(DataError, "no topic of train has gold"):
        validate("nlps", folder=damaged)
