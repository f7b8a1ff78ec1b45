"""Files of users are opened by `searchapp.files`, which rejects contents that later code could not handle."""

from __future__ import annotations

import ast
import json
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import searchapp
from searchapp.files import (
    MOST_LEVELS,
    NotAFileError,
    open_file,
    parse_json,
    parse_toml,
    read_bytes,
    read_text,
)

PACKAGE = Path(searchapp.__file__).parent


def nested(levels: int, inner: str = "1") -> str:
    return "[" * levels + inner + "]" * levels


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (nested(10_000), "nested more than 100 deep"),
        (nested(800), "nested more than 100 deep"),
        (nested(MOST_LEVELS + 1), "nested more than 100 deep"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested more than 100 deep"),
        ("[" * 10_000, "nested more than 100 deep"),
        ('"\\ud800"', "an escape is half of a surrogate pair: line 1 column 2"),
        ('{"\\uDC00": 1}', "an escape is half of a surrogate pair: line 1 column 3"),
        ('[\n"\\ud83d\\ude00 \\ude00"]', "an escape is half of a surrogate pair: line 2 column 15"),
        ('"\\ud83d\\ud83d"', "an escape is half of a surrogate pair: line 1 column 2"),
        (nested(99, '"\\udfff"'), "an escape is half of a surrogate pair"),
        ("1e400", "a number is too large"),
        ('{"a": [-1E+999]}', "a number is too large"),
        ("9" * 400, "a number is too large"),
        ("9" * 5000, "a number has too many digits"),
        ("[NaN]", "there is no NaN in JSON"),
        ("-Infinity", "there is no -Infinity in JSON"),
        ("{", "Expecting property name"),
    ],
)
def test_json_that_could_not_be_written_again_is_rejected(text: str, problem: str) -> None:
    with pytest.raises(json.JSONDecodeError, match=problem):
        parse_json(text)


@pytest.mark.parametrize(
    "text",
    [
        nested(MOST_LEVELS),
        json.dumps([[1]] * 1000),
        '"\\ud83d\\ude00"',
        '{"a\\\\ud800": "\\\\\\\\udc00"}',
        "1e308",
        "9" * 300,
        '"1e400"',
        '{"a": "\\u0000", "a": 2}',
    ],
)
def test_other_json_is_read_like_in_python(text: str) -> None:
    value = parse_json(text)
    assert value == json.loads(text)
    json.dumps(value, ensure_ascii=False).encode()


def test_file_names_may_contain_bytes_that_are_not_utf8() -> None:
    text = json.dumps({"data": os.fsdecode(b"/data/\xff")})
    assert os.fsencode(parse_json(text, file_names=True)["data"]) == b"/data/\xff"
    with pytest.raises(json.JSONDecodeError):
        parse_json(text)
    with pytest.raises(json.JSONDecodeError):  # not the escape of a byte
        parse_json('"\\ud800"', file_names=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = " + nested(10_000), "nested"),
        ("a = " + nested(MOST_LEVELS + 1), "nested"),
        ("a" + ".a" * 500 + " = 1", "nested"),
        ("a = " + "9" * 5000, "too many digits"),
        ("a = ", "Invalid value"),
    ],
)
def test_toml_with_deep_nesting_or_huge_numbers_is_rejected(text: str, problem: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=problem):
        parse_toml(text)


def test_other_toml_is_read_like_in_python() -> None:
    assert parse_toml("a = [[1]]\n[b.c]\nd = 1e308") == {"a": [[1]], "b": {"c": {"d": 1e308}}}


READERS: dict[str, Callable[[Path], object]] = {
    "open_file": open_file,
    "read_bytes": read_bytes,
    "read_text": read_text,
}


@pytest.mark.parametrize("read", READERS.values(), ids=list(READERS))
def test_pipes_devices_and_folders_are_rejected(tmp_path: Path, read: Callable[[Path], object]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(NotAFileError, match="it is a pipe, not a file") as raised:
            read(path)
        assert raised.value.filename == str(path)
    with pytest.raises(NotAFileError, match="it is a device, not a file"):
        read(Path("/dev/zero"))
    for name in ("a\0b", "a\ud800"):
        with pytest.raises(NotAFileError, match="not a valid file name"):
            read(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")


def test_files_are_read_without_conversions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_bytes(path) == path.read_bytes()
    assert read_text(path) == path.read_text("utf-8")
    assert read_text(path, "utf-8-sig") == path.read_text("utf-8-sig")
    path.write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        read_text(path)


def test_an_open_pipe_is_read_to_its_end() -> None:
    read, write = os.pipe()
    os.write(write, b"abc")
    os.close(write)
    assert read_bytes(Path(f"/dev/fd/{read}")) == b"abc"
    os.close(read)


OWN_FILES = {
    "app/evaluate.py": "written by this module",
    "app/export_task.py": "written by this module",
    "app/pool.py": "a temporary file",
    "app/json_lines.py": "written by this module",
    "cli/__init__.py": "nothing to write to",
    "fetching/download.py": "written by searchapp in its own folder",
    "fetching/fetch.py": "written by this module",
    "files.py": "the reading functions, and files written by this module",
    "formats/encoding.py": "written by this module",
    "judging/event_log.py": "written by this module, with a checksum",
    "judging/view.py": "written by this module, with a digest",
    "lucene/analysis/characters.py": "shipped with searchapp",
    "lucene/index": "files of indexes, which have checksums",
    "lucene/native/compilation.py": "shipped with searchapp, or compiled during the build",
    "report/pages.py": "shipped with searchapp",
    "runs/directory.py": "written by this module",
    "serving/server.py": "shipped with searchapp",
    "tasks/own/task_sources.py": "written by this module",
}
"""Modules and folders that open files without `searchapp.files`, with the reason."""


def opens(call: ast.Call) -> bool:
    """Return whether a call is `open(...)` or a method that opens or reads a path, without a path as argument."""
    if isinstance(call.func, ast.Name):
        return call.func.id == "open"
    constants = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if not isinstance(call.func, ast.Attribute) or len(constants) < len(call.args):
        return False
    modes = set(constants)
    return call.func.attr in ("read_text", "read_bytes") or (
        call.func.attr == "open" and bool(modes & {"r", "rb", "a", "ab", "a+", "w", "wb", "xb", "r+b"})
    )


def opening_modules() -> Iterator[str]:
    """Yield the modules that open files themselves."""
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        if any(isinstance(node, ast.Call) and opens(node) for node in nodes):
            yield path.relative_to(PACKAGE).as_posix()


def test_files_of_users_are_opened_by_searchapp_files() -> None:
    opened = set(opening_modules())
    others = {
        module
        for module in opened
        if not any(module == known or module.startswith(f"{known}/") for known in OWN_FILES)
    }
    assert not others, "use searchapp.files, or add the module to OWN_FILES if only searchapp writes the file"
    unused = {known for known in OWN_FILES if not any(module.startswith(known) for module in opened)}
    assert not unused, "OWN_FILES lists modules that open no file"
