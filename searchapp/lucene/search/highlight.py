"""Highlighting of whole values, as by Elasticsearch's highlighter of type `plain`.

    org.apache.lucene.search.highlight.{Highlighter, QueryScorer, TokenGroup, WeightedSpanTermExtractor}

The text is analyzed again. Overlapping tokens form a group, which is marked from its first to its last matching
token.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from searchapp.lucene import parameters
from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.analysis.characters import has_halves, joined_units, replace_halves
from searchapp.lucene.errors import ErrorCollector, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import (
    BOOLEAN,
    Field,
    Schema,
    by_depth,
    indexed_text,
    shown_text,
    source_value,
)
from searchapp.lucene.queries.query import EVERYWHERE, MarkedLeaf, PositionSpans, Query
from searchapp.lucene.records import Token

LARGEST_GROUP = 50  # further overlapping tokens are ignored

CACHED_TOKENS = 100_000  # about 20 MB, for some hundred documents

HIGHLIGHT_QUERY = "highlight_query"  # key of the query that is highlighted instead of the body's

NOWHERE: tuple[bool, PositionSpans] = (False, ())

_OPTIONS = {"type", "number_of_fragments", "pre_tags", "post_tags"}

# The leaves of a query on a field in order, and whether they are marked (boost not 0). The last leaf with a term
# decides whether it is marked; a phrase limits the positions of terms only if no other leaf has them.
MarkedLeaves = Sequence[tuple[MarkedLeaf, bool]]


class HighlightTags(NamedTuple):
    """The text before and after a match."""

    before: str
    after: str


class TokenCache:
    """Caches the tokens of recently analyzed texts, because type-ahead shows mostly the same documents again."""

    def __init__(self, analyzers: AnalysisRegistry) -> None:
        self._analyzers = analyzers
        self._texts: OrderedDict[tuple[str, str], Sequence[Token]] = OrderedDict()
        self._size = 0

    def bound(self, field: Field) -> Field:
        return field.bound(self._analyzers)

    def tokens(self, analyzer: str, text: str) -> Sequence[Token]:
        key = analyzer, text
        tokens = self._texts.get(key)
        if tokens is not None:
            self._texts.move_to_end(key)
            return tokens
        tokens = self._analyzers.analyzer(analyzer).emitted(text)
        if len(tokens) <= CACHED_TOKENS // 20:
            self._texts[key] = tokens
            self._size += len(tokens) + 1
            while self._size > CACHED_TOKENS:
                _key, dropped = self._texts.popitem(last=False)
                self._size -= len(dropped) + 1
        return tokens


class Highlighter:
    """Marks the matches of one query in the values of fields."""

    def __init__(
        self, query: Query, tags: Mapping[str, HighlightTags], schema: Schema, cache: TokenCache
    ) -> None:
        self._tags = tags
        self._schema = schema
        self._cache = cache
        self._leaves: defaultdict[str, list[tuple[MarkedLeaf, bool]]] = defaultdict(list)
        for leaf, boost in query.leaves():
            if isinstance(leaf, MarkedLeaf):
                self._leaves[leaf.field].append((leaf, boost != 0))

    def highlights(self, source: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the tagged values of a document that match, by field."""
        highlights = {}
        for name, tags in self._tags.items():
            field = self._schema.fields.get(self._schema.aliases.get(name, name))
            # Elasticsearch compares the values `true` and `false` of booleans with their terms, unless they are stored.
            if field is None or field.is_number or (field.type == BOOLEAN and not field.is_stored):
                continue
            leaves = self._leaves.get(field.name)
            if not leaves:
                continue
            marked = [self._mark(text, field, leaves, tags) for text in self._texts(field, source)]
            if fragments := [fragment for fragment in marked if fragment is not None]:
                highlights[name] = fragments
        return highlights

    def _texts(self, field: Field, source: Mapping[str, Any]) -> Iterator[str]:
        """Yield the values of a field in the order of highlights: as indexed if they are stored, otherwise by depth."""
        field = self._cache.bound(field)
        if field.is_stored:
            values = self._schema.values(source).get(field.source, ())
            yield from (field.normalized(indexed_text(value, field)) for value in field.indexed(values))
            return
        if any(field.source in targets for targets in self._schema.copies.values()):
            raise unsupported(f"highlights of {field.name}, into which other fields are copied,")
        for value in by_depth(source_value(source, field.source.split("."), field.null_value)):
            text = shown_text(value, field)
            if not field.ignores(text):
                yield field.normalized(text)

    def _mark(self, text: str, field: Field, leaves: MarkedLeaves, tags: HighlightTags) -> str | None:
        tokens = self._cache.tokens(field.analyzer or "keyword", text)
        matching = _matching(tokens, leaves)
        if not any(matching):
            return None
        units = _Units(text)
        pieces: list[str] = []
        done = 0
        for start, end, matches in _groups(tokens, matching):
            if start > done:
                pieces.append(units[done:start])
            piece = units[start:end]
            pieces.append(f"{tags.before}{piece}{tags.after}" if matches else piece)
            done = max(done, end)
        pieces.append(units[done:])
        return joined_units("".join(pieces))  # a group may end inside a surrogate pair


class _Units:
    """A text indexed by UTF-16 code units."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._units = text.encode("utf-16-le", "surrogatepass") if text and max(text) > "\uffff" else None

    def __getitem__(self, part: slice) -> str:
        if self._units is None:
            return self._text[part]
        end = None if part.stop is None else part.stop * 2
        return self._units[part.start * 2 : end].decode("utf-16-le", "surrogatepass")


def _matching(tokens: Sequence[Token], leaves: MarkedLeaves) -> list[bool]:
    """Return whether each token is marked; terms with lone surrogates are not in the index."""
    if has_halves(token.term for token in tokens):
        indexed = [replace(token, term=replace_halves(token.term)) for token in tokens]
        matching = zip(_matching(indexed, leaves), tokens, indexed, strict=True)
        return [matches and token.term == its.term for matches, token, its in matching]
    spans: dict[str, tuple[bool, PositionSpans]] = {}
    for leaf, counts in leaves:
        for term, term_spans in leaf.term_spans(tokens).items():
            is_marked, known = spans.get(term, (counts, ()))
            if term_spans is EVERYWHERE:
                spans[term] = counts, EVERYWHERE
            elif known is not EVERYWHERE:
                spans[term] = is_marked, (*known, *term_spans)
    matching_spans = [(token.position, *spans.get(token.term, NOWHERE)) for token in tokens]
    return [
        counts and any(start <= position <= end for start, end in token_spans)
        for position, counts, token_spans in matching_spans
    ]


def _groups(tokens: Sequence[Token], matching: Sequence[bool]) -> Iterator[tuple[int, int, bool]]:
    first = 0
    while first < len(tokens):
        group_end = tokens[first].end
        last = first + 1
        while last < len(tokens) and tokens[last].start < group_end:
            if last - first < LARGEST_GROUP:
                group_end = max(group_end, tokens[last].end)
            last += 1
        members = range(first, min(last, first + LARGEST_GROUP))
        marked = [tokens[index] for index in members if matching[index]]
        if marked:
            yield min(token.start for token in marked), max(token.end for token in marked), True
        else:
            yield tokens[first].start, tokens[first].end, False
        first = last


def read_highlight(highlight: Any) -> dict[str, HighlightTags]:
    """Read the `highlight` of a search body without its `highlight_query`; return the tags by field.

    Raises:
        Refused: another highlighter, fragments or an unknown option; lists all problems with JSON paths.
    """
    problems = ErrorCollector()
    tags: dict[str, HighlightTags] = {}
    with problems.at("highlight"):
        described = parameters.mapping(highlight, "`highlight`")
        with problems.at("highlight"):
            known_only(
                described, {*_OPTIONS, HIGHLIGHT_QUERY, "fields", "require_field_match"}, "`highlight`"
            )
        with problems.at("highlight"):
            _fragments(described)
        with problems.at("highlight"):
            _type(described)
        with problems.at("highlight"):
            if described.get("require_field_match", True) is not True:
                raise unsupported("`require_field_match: false` of `highlight`")
        for path, name, options in _fields(described, problems):
            with problems.at(path):
                options = parameters.mapping(options, f"`highlight` for {name}")
                with problems.at(path):
                    known_only(options, _OPTIONS, f"`highlight` for {name}")
                with problems.at(path):
                    if "*" in name:
                        raise unsupported(f"the pattern `{name}` for the fields of `highlight`")
                tags[name] = _tags({**described, **options}, path if options else "highlight", problems)
    problems.raise_if_any()
    return tags


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


def _tags(options: Mapping[str, Any], path: str, problems: ErrorCollector) -> HighlightTags:
    before, after = "", ""
    with problems.at(path):
        if _type(options) != "plain":
            raise unsupported(f"`type: {options.get('type', 'unified')}` of `highlight`, only `plain`")
    with problems.at(path):
        if _fragments(options):
            raise unsupported("fragments in `highlight`, only whole values (`number_of_fragments: 0`)")
    with problems.at(path):
        if "pre_tags" in options and "post_tags" not in options:
            raise invalid("`highlight` has `pre_tags` and no `post_tags`")
    with problems.at(path):
        before = _tag(options.get("pre_tags", "<em>"))
    with problems.at(path):
        after = _tag(options.get("post_tags", "</em>"))
    return HighlightTags(before, after)


def _type(options: Mapping[str, Any]) -> str:
    type_ = options.get("type", "unified")
    if not isinstance(type_, str):
        raise invalid(f"`type` of `highlight` is {parameters.shown(type_)}, which is not text")
    return type_


def _fragments(options: Mapping[str, Any]) -> int:
    return parameters.integer(options.get("number_of_fragments", 5), "`number_of_fragments` of `highlight`")


def _tag(value: Any) -> str:
    """Return the first of the tags; `plain` ignores the others."""
    tags = [value] if isinstance(value, str) else parameters.listed(value, "the tags of `highlight`")
    texts = [parameters.raw_text(tag, "a tag of `highlight`") for tag in tags]
    if not texts:
        raise unsupported("`highlight` with an empty list of tags")
    return texts[0]
