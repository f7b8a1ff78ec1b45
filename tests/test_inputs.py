"""What others have written is read at one door, and nothing that comes through it surprises anybody later."""

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
def test_json_that_could_not_be_written_again_is_no_json(text: str, problem: str) -> None:
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
def test_other_json_is_what_python_reads(text: str) -> None:
    value = parse_json(text)
    assert value == json.loads(text)
    json.dumps(value, ensure_ascii=False).encode()


def test_names_of_files_may_hold_bytes_that_are_not_utf8() -> None:
    text = json.dumps({"data": os.fsdecode(b"/data/\xff")})
    assert os.fsencode(parse_json(text, file_names=True)["data"]) == b"/data/\xff"
    with pytest.raises(json.JSONDecodeError):
        parse_json(text)
    with pytest.raises(json.JSONDecodeError):  # no byte of a name is written like this
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
def test_toml_that_nobody_can_go_through_is_no_toml(text: str, problem: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=problem):
        parse_toml(text)


def test_other_toml_is_what_python_reads() -> None:
    assert parse_toml("a = [[1]]\n[b.c]\nd = 1e308") == {"a": [[1]], "b": {"c": {"d": 1e308}}}


READERS: dict[str, Callable[[Path], object]] = {
    "open_file": open_file,
    "read_bytes": read_bytes,
    "read_text": read_text,
}


@pytest.mark.parametrize("read", READERS.values(), ids=list(READERS))
def test_only_files_are_read(tmp_path: Path, read: Callable[[Path], object]) -> None:
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


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_bytes(path) == path.read_bytes()
    assert read_text(path) == path.read_text("utf-8")
    assert read_text(path, "utf-8-sig") == path.read_text("utf-8-sig")
    path.write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        read_text(path)


def test_a_pipe_that_is_open_already_is_read_to_its_end() -> None:
    read, write = os.pipe()
    os.write(write, b"abc")
    os.close(write)
    assert read_bytes(Path(f"/dev/fd/{read}")) == b"abc"
    os.close(read)


OWN_FILES = {
    "app/evaluate.py": "written there",
    "app/json_lines.py": "written there",
    "cli/__init__.py": "nothing to write to",
    "fetching/download.py": "searchapp's own, below a folder of its own",
    "fetching/fetch.py": "written there",
    "files.py": "the door, and what is written there",
    "formats/encoding.py": "written there",
    "judging/event_log.py": "written there, with a checksum",
    "judging/view.py": "written there, with a digest",
    "lucene/analysis/characters.py": "ships with searchapp",
    "lucene/index": "an index, which has checksums",
    "lucene/native/compilation.py": "ships with searchapp, or was compiled when it was built",
    "report/pages.py": "ships with searchapp",
    "runs/directory.py": "written there",
    "serving/server.py": "ships with searchapp",
}
"""Where files are opened without the door, and why."""


def opens(call: ast.Call) -> bool:
    """Whether a call is `open(...)`, or the method of a path that opens or reads it: these take no path."""
    if isinstance(call.func, ast.Name):
        return call.func.id == "open"
    if not isinstance(call.func, ast.Attribute) or not all(
        isinstance(one, ast.Constant) for one in call.args
    ):
        return False
    modes = {one.value for one in call.args if isinstance(one, ast.Constant)}
    return call.func.attr in ("read_text", "read_bytes") or (
        call.func.attr == "open" and bool(modes & {"r", "rb", "a", "ab", "a+", "w", "wb", "xb", "r+b"})
    )


def opened_elsewhere() -> Iterator[str]:
    """The modules that open a file by itself."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if any(
            isinstance(node, ast.Call) and opens(node)
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
        ):
            yield path.relative_to(PACKAGE).as_posix()


def test_files_of_others_are_opened_at_the_door() -> None:
    opened = set(opened_elsewhere())
    others = {
        module
        for module in opened
        if not any(module == known or module.startswith(f"{known}/") for known in OWN_FILES)
    }
    assert not others, (
        "use searchapp.files, or for files that searchapp alone writes name the module in OWN_FILES"
    )
    unused = {known for known in OWN_FILES if not any(module.startswith(known) for module in opened)}
    assert not unused, "OWN_FILES names modules that open no file"
