"""The `highlight` of a search body: its parameters, and those of each field.

Source: org.elasticsearch.search.fetch.subphase.highlight.{HighlightBuilder, AbstractHighlighterBuilder}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector, invalid, known_only, unsupported
from searchapp.lucene.queries.query import Parser, Query

HIGHLIGHT_QUERY = "highlight_query"  # key of the query that is highlighted instead of the body's

_TYPES = ("unified", "plain", "fvh")
_SCANNERS = ("chars", "word", "sentence")
_LOCALES = ("en", "en-US", "en-GB", "root", "und", "")  # with the boundaries of `BreakIterator`
_STYLED = tuple(f'<em class="hlt{number}">' for number in range(1, 11))

# Characters that `encoder: html` escapes (SimpleHTMLEncoder).
_ESCAPED = str.maketrans(
    {'"': "&quot;", "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#x27;", "/": "&#x2F;"}
)

_OF_ANY = {
    "type", "number_of_fragments", "pre_tags", "post_tags", "fragment_size", "order", "no_match_size",
    "boundary_scanner", "boundary_chars", "boundary_max_scan", "boundary_scanner_locale", "fragmenter",
    "require_field_match", "max_analyzed_offset", "phrase_limit", "tags_schema", "encoder", "highlight_filter",
    "options", HIGHLIGHT_QUERY,
}  # fmt: skip
_OF_FIELD = _OF_ANY | {"matched_fields", "fragment_offset"}
_OF_ALL = _OF_ANY | {"fields"}


@dataclass(frozen=True, slots=True)
class HighlightOptions:
    """How to highlight a field."""

    type: str = "unified"
    before: tuple[str, ...] = ("<em>",)  # the texts before and after a match
    after: tuple[str, ...] = ("</em>",)
    fragments: int = 5  # maximum number; 0: whole values
    size: int = 100  # of a fragment, in UTF-16 code units
    by_score: bool = False  # order of fragments
    no_match_size: int = 0  # of the beginning of a text without matches
    scanner: str | None = None  # which boundaries fragments have
    boundary_chars: str = ".,!? \t\n"
    max_scan: int = 20
    fragmenter: str | None = None
    field_match: bool = True  # whether to mark only matches of queries on the same field
    matched_fields: tuple[str, ...] = ()
    is_html: bool = False  # whether to escape HTML
    max_offset: int | None = None  # later tokens are not marked
    phrase_limit: int = 256


def encoded(text: str, options: HighlightOptions) -> str:
    """Return a piece of text as the encoder of the highlighter writes it."""
    return text.translate(_ESCAPED) if options.is_html else text


def read_highlight(highlight: Any) -> dict[str, HighlightOptions]:
    """Read the `highlight` of a search body without its queries; return the options by name or pattern of fields.

    Raises:
        Refused: lists all problems with JSON paths.
    """
    problems = ErrorCollector()
    options: dict[str, HighlightOptions] = {}
    with problems.at("highlight"):
        described = parameters.mapping(highlight, "`highlight`")
        with problems.at("highlight"):
            known_only(described, _OF_ALL, "`highlight`")
        general = _values(described, "highlight", problems)
        for path, name, of_field in _fields(described, problems):
            with problems.at(path):
                of_field = parameters.mapping(of_field, f"`highlight` for {name}")
                with problems.at(path):
                    known_only(of_field, _OF_FIELD, f"`highlight` for {name}")
                own = _values(of_field, path, problems)
                with problems.at(path):
                    options[name] = _checked(HighlightOptions(**{**general, **own}))
    problems.raise_if_any()
    return options


def read_highlight_queries(highlight: Any, parser: Parser) -> tuple[Query | None, dict[str, Query]]:
    """Read the `highlight_query` of a `highlight` that `read_highlight` checks, and those of its fields by name.

    Raises:
        Refused: lists all problems of the queries.
    """
    problems = ErrorCollector()
    if not isinstance(highlight, Mapping):
        return None, {}
    described = [("highlight", "", highlight), *_fields(highlight, ErrorCollector())]
    read: dict[str, Query] = {}
    for path, name, options in described:
        if isinstance(options, Mapping) and options.get(HIGHLIGHT_QUERY) is not None:
            with problems.at():
                read[name] = parser.query_at(f"{path}.{HIGHLIGHT_QUERY}", options[HIGHLIGHT_QUERY])
    problems.raise_if_any()
    return read.pop("", None), read


def _fields(described: Mapping[str, Any], problems: ErrorCollector) -> list[tuple[str, str, Any]]:
    fields = described.get("fields", {})
    if isinstance(fields, Mapping):
        return [(f"highlight.fields.{name}", name, options) for name, options in fields.items()]
    entries: list[tuple[str, str, Any]] = []
    for number, entry in enumerate(parameters.listed(fields, "`fields` in `highlight`")):
        path = f"highlight.fields[{number}]"
        with problems.at(path):
            name, options = parameters.single(entry, "an entry of `fields` in `highlight`")
            entries.append((f"{path}.{name}", name, options))
    return entries


def _values(options: Mapping[str, Any], path: str, problems: ErrorCollector) -> dict[str, Any]:
    """Return the values of the parameters that are present, by the names of `HighlightOptions`."""
    values: dict[str, Any] = {}

    def read(parameter: str, name: str, reader: Any) -> None:
        if parameter in options:
            with problems.at(path):
                if options[parameter] is None:
                    raise unsupported(f"`{parameter}: null` in `highlight`")
                values[name] = reader(options[parameter], f"`{parameter}` of `highlight`")

    if "tags_schema" in options:
        with problems.at(path):
            schema = _text(options["tags_schema"], "`tags_schema` of `highlight`")
            if schema not in ("default", "styled"):
                raise invalid(f"`tags_schema` of `highlight` must be default or styled, not {schema!r}")
            if "pre_tags" in options or "post_tags" in options:
                raise unsupported("`tags_schema` with tags in `highlight`")
            values["before"] = _STYLED if schema == "styled" else ("<em>",)
            values["after"] = ("</em>",)
    read("pre_tags", "before", _tags)
    read("post_tags", "after", _tags)
    with problems.at(path):
        if "pre_tags" in options and "post_tags" not in options:
            raise invalid("`highlight` has `pre_tags` and no `post_tags`")
    read("type", "type", _text)
    read("number_of_fragments", "fragments", parameters.integer)
    read("fragment_size", "size", parameters.integer)
    read("order", "by_score", lambda value, label: _text(value, label).upper() == "SCORE")
    read("no_match_size", "no_match_size", parameters.integer)
    read("boundary_scanner", "scanner", lambda value, label: parameters.choice(value, _SCANNERS, label))
    read("boundary_chars", "boundary_chars", _text)
    read("boundary_max_scan", "max_scan", parameters.integer)
    read("boundary_scanner_locale", "locale", _locale)
    values.pop("locale", None)
    read("fragmenter", "fragmenter", _text)
    read("require_field_match", "field_match", parameters.flag)
    read("encoder", "is_html", lambda value, label: _text(value, label) == "html")
    read("max_analyzed_offset", "max_offset", _offset)
    read("phrase_limit", "phrase_limit", parameters.integer)
    read("matched_fields", "matched_fields", _texts)
    return values


def _checked(options: HighlightOptions) -> HighlightOptions:
    """Reject unsupported combinations."""
    if options.type not in _TYPES:
        raise unsupported(f"`type: {options.type}` of `highlight`")
    if options.fragments < 0:
        raise unsupported(f"`number_of_fragments: {options.fragments}` of `highlight`")
    if options.type == "unified" and options.scanner == "chars":
        raise unsupported("`boundary_scanner: chars` of the highlighter `unified`")
    if options.matched_fields and not options.field_match:
        raise unsupported("`matched_fields` with `require_field_match: false` in `highlight`")
    if options.type == "fvh":
        raise unsupported("`type: fvh` of `highlight`")
    return options


def _text(value: Any, label: str) -> str:
    if not isinstance(value, str):
        raise invalid(f"{label} is {parameters.shown(value)}, which is not text")
    return value


def _texts(value: Any, label: str) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else parameters.listed(value, label)
    return tuple(parameters.raw_text(entry, label) for entry in values)


def _tags(value: Any, label: str) -> tuple[str, ...]:
    texts = _texts(value, label)
    if not texts:
        raise invalid(f"{label} is an empty list")
    return texts


def _locale(value: Any, label: str) -> str:
    text = _text(value, label)
    if text not in _LOCALES:
        raise unsupported(f"`boundary_scanner_locale: {text}`, only {', '.join(filter(None, _LOCALES))}")
    return text


def _offset(value: Any, label: str) -> int | None:
    offset = parameters.integer(value, label)
    if offset < -1 or not offset:
        raise invalid(f"{label} must be positive or -1, but is {value!r}")
    return None if offset < 0 else offset
