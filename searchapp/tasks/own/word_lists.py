"""Files of words and rules that the analysis settings of a mapping name, such as `stopwords_path`.

Elasticsearch reads them from the folder of its configuration; searchapp reads them beside the mapping, and puts
their lines into the settings, so that both engines have them and digests of the mapping include them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchapp.errors import DataError
from searchapp.files import open_file, reason
from searchapp.lucene.analysis.options import JAVA_WHITESPACE, TRIMMED

SYNONYMS = "synonyms"

# The settings that a file can replace; its name is the setting with `_path` at the end.
SETTINGS = (
    *(
        "articles",
        "common_words",
        "keep_words",
        "keywords",
        "mappings",
        "protected_words",
        "rules",
        "stopwords",
    ),
    *(SYNONYMS, "type_table", "word_list"),
)


def with_word_lists(mapping: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a canonical mapping with the lines of the files that its analysis settings name.

    Raises:
        DataError: a file is missing, outside of the folder, or not in UTF-8, or a setting is also given without one.
    """
    analysis = mapping.get("settings", {}).get("analysis")
    if not isinstance(analysis, Mapping):
        return dict(mapping)
    filled = {
        section: {name: _filled(piece, folder, f"{section}.{name}") for name, piece in pieces.items()}
        if isinstance(pieces, Mapping)
        else pieces
        for section, pieces in analysis.items()
    }
    return {**mapping, "settings": {**mapping["settings"], "analysis": filled}}


def _filled(piece: Any, folder: Path, label: str) -> Any:
    if not isinstance(piece, Mapping):
        return piece
    filled = dict(piece)
    for setting in SETTINGS:
        name = filled.pop(f"{setting}_path", None)
        if name is None:
            continue
        if setting in filled:
            raise DataError(f"{label} has both `{setting}` and `{setting}_path`: remove one of them")
        if not isinstance(name, str):
            raise DataError(f"`{setting}_path` of {label} must be the path of a file, not {name!r}")
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise DataError(
                f"`{setting}_path` of {label}: {path} is outside of the folder {folder.absolute()}"
            )
        lines = list(_lines(path, f"`{setting}_path` of {label}"))
        # Elasticsearch reads synonyms with their own parser, and other files as lists of words.
        filled[setting] = (
            lines
            if setting == SYNONYMS
            else [
                line.strip(TRIMMED)
                for line in lines
                if line.strip(JAVA_WHITESPACE) and not line.startswith("#")
            ]
        )
    return filled


def _lines(path: Path, label: str) -> Iterator[str]:
    """Yield the lines of a file as Java reads them (`BufferedReader.readLine`), without empty ones."""
    try:
        with open_file(path) as file:
            content = file.read()
    except OSError as error:
        raise DataError(f"{label}: {path} can't be read: {reason(error)}") from error
    for number, line in enumerate(re.split(rb"\r\n|\r|\n", content), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{label}: {path}: line {number}: not UTF-8") from error
        if text:
            yield text
