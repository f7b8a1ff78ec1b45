"""Index mappings that a user has written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from searchapp.engines.index_settings import NOT_INDEXED, canonical
from searchapp.errors import DataError


def own_mapping(mapping: dict[str, Any], fields: Iterable[str], path: Path, name: str) -> dict[str, Any]:
    """A mapping that the file `path` names, in canonical form, with the fields that it lacks kept and not indexed.

    Raises:
        DataError: it is none, or has no id and text.
    """
    try:
        mapping = canonical(mapping)
    except DataError as error:
        raise DataError(f"{path}: the mapping {name}: {error}") from error
    found = mapping.get("mappings")
    properties = found.get("properties") if isinstance(found, dict) else None
    for key, kind in (("id", "keyword"), ("text", "text")):
        field = properties.get(key) if isinstance(properties, dict) else None
        if not isinstance(field, dict) or field.get("type") != kind:
            raise DataError(f"{path}: the mapping {name} must have a property {key} of type {kind}")
    assert isinstance(found, dict) and isinstance(properties, dict)
    kept = {field: NOT_INDEXED for field in fields if field not in properties}
    found = {"dynamic": "strict", **found, "properties": {**properties, **kept}}
    return {**mapping, "mappings": found}
