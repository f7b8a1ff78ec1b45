"""Compressed and empty files in place of plain ones are refused."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from searchapp import tasks
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.ranked_samples import indexed_split


@pytest.mark.parametrize("task", tasks.names())
def test_compressed_files_are_refused(offline: Cli, task: str, tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLES / task, tmp_path / "data"))
    path = tasks.load(task).collection(data).split_files(indexed_split(task))[0]
    options = ["--task", task, "--data", data, "--split", indexed_split(task)]
    official = tmp_path / f"{path.stem}.tsv"  # the checker of checkthat takes the debate from the name
    official.write_bytes(gzip.compress(b"4465\t102\n" * 9))
    for command in ("validate", "evaluate"):
        result = offline(command, official, *options)
        assert result.code == 4
        assert "unpack the file, which is compressed with gzip" in result.stderr
        assert result.stderr.count(str(official)) == 1
    path.write_bytes(gzip.compress(path.read_bytes()))
    indexed = offline("index", task, "--data", data)
    assert indexed.code == 4
    assert path.name in indexed.stderr and "compressed with gzip" in indexed.stderr


@pytest.mark.parametrize("task", tasks.names())
def test_an_empty_official_file_is_reported_once_with_its_name(
    offline: Cli, task: str, tmp_path: Path
) -> None:
    split = indexed_split(task)
    if task == "checkthat":
        split = tasks.load(task).collection(SAMPLES / task).split_files(split)[0].stem
    path = tmp_path / "predictions.tsv"
    path.touch()
    for command in ("validate", "evaluate"):
        result = offline(command, path, "--task", task, "--data", SAMPLES / task, "--split", split)
        assert result.code == 4
        assert result.stderr.count("predictions.tsv: ") == 1
        assert "Traceback" not in result.stderr
