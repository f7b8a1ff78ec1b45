"""Names of properties, and how many there may be: a dot in a name stands for an object to Elasticsearch."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from searchapp.analysis.options import JAVA_WHITESPACE
from searchapp.engines.embedded.refusals import invalid, unsupported

MOST_FIELDS = 1_000
DEEPEST = 20
"""Elasticsearch's defaults of `index.mapping.total_fields.limit` and `index.mapping.depth.limit`."""

# fmt: off
METADATA = frozenset([
    "_data_stream_timestamp", "_doc_count", "_field_names", "_id", "_ignored", "_ignored_source", "_index",
    "_inference_fields", "_nested_path", "_routing", "_seq_no", "_source", "_tier", "_version",
])
# fmt: on
"""Names of what Elasticsearch itself keeps of a document."""


def check(properties: Collection[str], stored: Collection[str]) -> None:
    """Refuse names that Elasticsearch refuses, and those whose meaning there is another one than here.

    `stored` are the properties that are kept and not indexed.

    Raises:
        EngineRefused: a name is empty, blank, taken, or stands for a field and for an object.
    """
    for name in properties:
        parts = name.split(".")
        if len(parts) > 1 and not parts[-1]:
            raise unsupported(f"the name {name!r} of a field, which ends in a dot,")
        if not all(part.strip(JAVA_WHITESPACE) for part in parts):
            raise invalid(f"the name of the field {name!r} is blank, or a part of it")
        if parts[0] in METADATA:
            raise invalid(f"{parts[0]} is the name of something that Elasticsearch itself keeps")
        if len(parts) > DEEPEST:
            raise invalid(
                f"the name of the field {name!r} stands for more than {DEEPEST} objects inside one another"
            )
        for above in objects(name):
            if above in stored:
                raise unsupported(f"the field {name} below {above}, which is not indexed,")
            if above in properties:
                raise invalid(f"{above} is a field, and an object because of {name}")


def check_inner(name: str, inner: str) -> None:
    """Refuse names of sub-fields in the same way."""
    if not inner:
        raise unsupported(f"a sub-field of {name} without a name")
    if "." in inner:
        raise invalid(f"the sub-field {name}.{inner} has a dot in its name")


def check_number(properties: Collection[str], fields: int) -> None:
    """Refuse a mapping that is larger than Elasticsearch's limit; `fields` come with objects by their names' dots."""
    count = fields + len({above for name in properties for above in objects(name)})
    if count > MOST_FIELDS:
        raise invalid(
            f"the mapping has {count:,} fields and objects, and at most {MOST_FIELDS:,} are allowed"
        )


def objects(name: str) -> Iterator[str]:
    """The names of the objects that a property lies in.

    >>> list(objects("a.b.c"))
    ['a', 'a.b']
    """
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts)))
