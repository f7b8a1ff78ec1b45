"""A wheel is complete: it is built, installed in another folder and run there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=120)
    (built,) = folder.glob("searchapp-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True, timeout=120)
    return folder


def run(installed: Path, *command: str) -> str:
    """Run Python outside the checkout with the installed wheel first on its path; return the output."""
    result = subprocess.run(
        [sys.executable, *command],
        cwd=installed,
        env={**os.environ, "PYTHONPATH": str(installed), "SEARCHAPP_HOME": str(installed / "home")},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return result.stdout


def test_a_source_archive_builds_without_a_compiler(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path), "--target"]
    subprocess.run([*build, "sdist"], check=True, capture_output=True, cwd=ROOT, timeout=120)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    environment = {**os.environ, "CC": str(tmp_path / "no-compiler")}
    built = subprocess.run(
        [*build, "wheel"],
        check=True,
        capture_output=True,
        text=True,
        cwd=unpacked,
        env=environment,
        timeout=120,
    )
    assert "searchapp works without compiled functions: there is no C compiler" in built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_installed_wheel_is_imported(installed: Path) -> None:
    printed = run(installed, "-c", "import searchapp; print(searchapp.__file__)").strip()
    assert Path(printed).is_relative_to(installed)


def test_mappings_templates_recipes_samples_and_pages_are_in_the_wheel(wheel: Path) -> None:
    names = {name.removeprefix("searchapp/") for name in zipfile.ZipFile(wheel).namelist()}
    for folder in ("index_mappings", "query_templates", "searchapp/samples", "searchapp/report/templates"):
        shipped = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
        assert shipped
        for path in shipped:
            assert path.relative_to(ROOT).as_posix().removeprefix("searchapp/") in names


def test_licence_and_notice_are_in_the_wheel_and_in_the_source_archive(wheel: Path, tmp_path: Path) -> None:
    expected = {name: (ROOT / name).read_bytes() for name in ("LICENSE", "NOTICE")}
    with zipfile.ZipFile(wheel) as archive:
        paths = {name.rpartition(".dist-info/licenses/")[2]: name for name in archive.namelist()}
        assert {name: archive.read(paths[name]) for name in expected} == expected
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True, cwd=ROOT, timeout=120)
    (built,) = tmp_path.glob("searchapp-*.tar.gz")
    with tarfile.open(built) as source:
        folder = built.name.removesuffix(".tar.gz")
        members = {name: source.extractfile(f"{folder}/{name}") for name in expected}
        assert {name: file.read() for name, file in members.items() if file} == expected


def test_an_installed_wheel_uses_its_compiled_functions(installed: Path) -> None:
    if "CI" not in os.environ and shutil.which(os.environ.get("CC") or "cc") is None:
        pytest.skip("there is no C compiler")
    code = "from searchapp.engines import lacks_compiled; print(lacks_compiled())"
    assert run(installed, "-c", code).strip() == ""


def test_an_installed_wheel_lists_its_tasks(installed: Path) -> None:
    described = json.loads(run(installed, "-m", "searchapp", "tasks", "--json"))
    assert described["tasks"][0]["task"] == "nlps"
    assert "bm25" in described["tasks"][0]["recipes"]


def test_an_installed_wheel_lists_the_official_data(installed: Path) -> None:
    listed = json.loads(run(installed, "-m", "searchapp", "data", "list", "nlps", "--json"))
    assert listed["tasks"][0]["files"][0]["path"] == "knowledge_base.json"


def test_an_installed_wheel_contains_its_mappings(installed: Path) -> None:
    code = (
        "from searchapp import resources\n"
        "resources.index_mapping('premises')\n"
        "print(resources.folder('index_mappings'))"
    )
    assert Path(run(installed, "-c", code).strip()).is_relative_to(installed)


INDEX_RANK_EVALUATE = """
import sys
from pathlib import Path
from searchapp.cli import run
from searchapp.resources import SAMPLES
home, out = ["--home", sys.argv[1]], str(Path(sys.argv[1], "run"))
for line in (
    ["index", "nlps", "--data", str(SAMPLES / "nlps"), *home],
    ["rank", "nlps", "--split", "dev", "--recipe", "neighbours", "--out", out, *home],
    ["evaluate", out, "--cutoff", "50", *home],
):
    assert run(line) == 0, line
"""


def test_an_installed_wheel_indexes_ranks_and_scores(installed: Path, tmp_path: Path) -> None:
    assert "MAP@50" in run(installed, "-c", INDEX_RANK_EVALUATE, str(tmp_path))
