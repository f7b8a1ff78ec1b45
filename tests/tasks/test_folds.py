"""Folds of a file of training questions."""

from collections import Counter

from searchapp.tasks.splits import FOLD_NAMES, fold_of, in_split


def test_the_fold_of_an_id_never_changes() -> None:
    ids = ["1", "dbpedia_1", "lcquad_0", "ä", "", "\ud800"]
    assert [fold_of(id_) for id_ in ids] == ["fold1", "fold1", "fold3", "fold2", "fold4", "fold3"]


def test_a_question_is_in_exactly_one_fold() -> None:
    for number in range(100):
        assert [in_split(fold, str(number)) for fold in FOLD_NAMES].count(True) == 1


def test_folds_have_nearly_equal_sizes() -> None:
    sizes = Counter(fold_of(f"question{number}") for number in range(10_000))
    assert set(sizes) == set(FOLD_NAMES)
    assert max(sizes.values()) - min(sizes.values()) < 200


def test_folds_depend_on_the_seed() -> None:
    same = sum(fold_of(str(number), 1) == fold_of(str(number), 2) for number in range(1000))
    assert 120 < same < 280


def test_a_split_that_is_not_a_fold_is_the_whole_file() -> None:
    assert all(in_split(split, str(number)) for split in ("test", None) for number in range(20))
