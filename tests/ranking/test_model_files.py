"""Files of trained models are read back, and damaged or foreign files are rejected."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from searchapp.errors import DataError
from searchapp.ranking import learning
from searchapp.ranking.learning import Linear, StoredModel, sparse

HEADER = {"features": ["words: a", "words: é"], "labels": ["x"], "training_topics": 3}
ARRAYS = {
    "idf": np.array([1.0, 1.5]),
    "intercepts": np.array([0.25]),
    "weights": np.array([0.5], dtype=np.float32),
    "weights_at": np.array([0], dtype=np.int32),
    "weights_ends": np.array([0, 0, 1], dtype=np.int64),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.npz"


def stored(**changed: object) -> StoredModel:
    return StoredModel.of(HEADER, {**ARRAYS, **changed})


def test_a_written_model_is_read_back(path: Path) -> None:
    learning.write_model(path, stored())
    read = learning.read_model(path)
    assert read.digest == stored().digest
    linear = Linear.read(read.header, read.arrays)
    assert linear.labels == ("x",) and linear.weights.toarray().tolist() == [[0.0], [0.5]]
    assert linear.arrays().keys() == ARRAYS.keys()


def test_equal_models_have_equal_bytes(path: Path, tmp_path: Path) -> None:
    learning.write_model(path, stored())
    again = tmp_path / "again.npz"
    learning.write_model(again, learning.read_model(path))
    assert again.read_bytes() == path.read_bytes()


def test_a_damaged_byte_is_reported_or_has_no_effect(path: Path) -> None:
    learning.write_model(path, stored())
    content = path.read_bytes()
    digest = learning.read_model(path).digest
    for offset in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[offset] ^= 0xFF
        path.write_bytes(damaged)
        try:
            # Readers of zip files ignore some bytes, such as times.
            assert learning.read_model(path).digest == digest
        except DataError as error:
            assert "model.npz" in str(error) and "searchapp train" in str(error)
    for length in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match="is not a model of searchapp, or is damaged"):
            learning.read_model(path)


class Harmful:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("harm"),)


def test_pickled_code_is_not_executed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for write in (
        lambda: path.write_bytes(pickle.dumps(Harmful())),
        lambda: np.savez(path, header=np.array([Harmful()], dtype=object), allow_pickle=True),
        lambda: np.savez(path, header=np.frombuffer(b"{}", np.uint8), weights=np.array([Harmful()], object)),
    ):
        write()
        with pytest.raises(DataError, match="is not a model of searchapp, or is damaged"):
            learning.read_model(path)
    assert not (tmp_path / "harm").exists()


def test_foreign_files_are_rejected(path: Path, tmp_path: Path) -> None:
    np.savez(path, numbers=np.arange(3))
    with pytest.raises(DataError, match="is not a model of searchapp"):
        learning.read_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header", "{}")
    with pytest.raises(DataError, match="is not a model of searchapp"):
        learning.read_model(path)
    np.savez(path, header=np.frombuffer(b'{"format": 99}', np.uint8))
    with pytest.raises(DataError, match="was written by another version of searchapp"):
        learning.read_model(path)
    with pytest.raises(DataError, match="there is no such file"):
        learning.read_model(tmp_path / "nothing.npz")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("idf", np.array([1.0])),
        ("idf", np.array([1.0, np.nan])),
        ("intercepts", np.array([1])),
        ("weights_at", np.array([7], dtype=np.int32)),
        ("weights_at", np.array([-1], dtype=np.int32)),
        ("weights_ends", np.array([0, 2, 1], dtype=np.int64)),
        ("weights_ends", np.array([0, 1], dtype=np.int64)),
        ("weights", np.array([0.5, 0.5], dtype=np.float32)),
    ],
)
def test_invalid_arrays_are_rejected(path: Path, name: str, array: object) -> None:
    learning.write_model(path, stored(**{name: array}))
    read = learning.read_model(path)
    with pytest.raises(DataError, match="train again"):
        Linear.read(read.header, read.arrays)


def test_a_matrix_may_be_empty() -> None:
    arrays = {"gains": np.array([]), "gains_at": np.array([], dtype=np.int32), "gains_ends": np.array([0, 0])}
    assert sparse(arrays, "gains", (1, 5)).toarray().tolist() == [[0.0] * 5]
