"""Highlights: the values of fields with marked matches, whole or in fragments.

Source: org.elasticsearch.search.fetch.subphase.highlight.{HighlightPhase, DefaultHighlighter, PlainHighlighter}
"""

from __future__ import annotations

import heapq
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.analysis.characters import utf16_length, utf16_units
from searchapp.lucene.errors import unsupported
from searchapp.lucene.index.mapping import (
    BOOLEAN,
    FLATTENED,
    IP,
    KEYED,
    KEYWORD,
    TEXT,
    Field,
    Schema,
    by_depth,
    indexed_text,
    objects,
    shown_text,
    source_value,
)
from searchapp.lucene.queries.query import MarkedLeaf, Query
from searchapp.lucene.records import Token
from searchapp.lucene.search.highlight_options import HighlightOptions
from searchapp.lucene.search.plain_highlights import MarkedLeaves, plain_highlights
from searchapp.lucene.search.unified_highlights import SEPARATOR, unified_highlights

if TYPE_CHECKING:
    from searchapp.lucene.search.matches import Match

CACHED_TOKENS = 100_000  # about 20 MB, for some hundred documents

# Returns whether a document of the index, by its number, matches a query.
HasMatch = Callable[[Query, int], bool]


class TokenCache:
    """Caches the tokens of recently analyzed texts, because type-ahead shows mostly the same documents again."""

    def __init__(self, analyzers: AnalysisRegistry) -> None:
        self.analyzers = analyzers
        self._texts: OrderedDict[tuple[str, str], tuple[Sequence[Token], int]] = OrderedDict()
        self._size = 0

    def bound(self, field: Field) -> Field:
        return field.bound(self.analyzers)

    def tokens(self, analyzer: str, text: str) -> tuple[Sequence[Token], int]:
        """Return the tokens of a text and the position after them; see `Analyzer.emitted`."""
        key = analyzer, text
        tokens = self._texts.get(key)
        if tokens is not None:
            self._texts.move_to_end(key)
            return tokens
        tokens = self.analyzers.analyzer(analyzer).emitted(text)
        if len(tokens[0]) <= CACHED_TOKENS // 20:
            self._texts[key] = tokens
            self._size += len(tokens[0]) + 1
            while self._size > CACHED_TOKENS:
                _key, dropped = self._texts.popitem(last=False)
                self._size -= len(dropped[0]) + 1
        return tokens


class Highlighter:
    """Marks the matches of queries in the values of fields.

    Args:
        query: the query before rewriting.
        queries: replace it for fields; by their name or pattern in `options`.
        has: whether a document matches a query.
    """

    def __init__(
        self,
        query: Query,
        queries: Mapping[str, Query],
        options: Mapping[str, HighlightOptions],
        schema: Schema,
        cache: TokenCache,
        has: HasMatch,
    ) -> None:
        self._schema = schema
        self._cache = cache
        self._has = has
        self._fields: list[tuple[str, Field, HighlightOptions, Query]] = []
        by_field: dict[str, tuple[HighlightOptions, Query]] = {}
        for name, (pattern, own) in self._named(options).items():
            canonical = schema.aliases.get(name, name)
            field = schema.fields.get(canonical)
            own_query = queries.get(pattern, query)
            if field is not None:
                self._fields.append((name, field, own, own_query))
                # Elasticsearch uses parts of the parameters of the first of several names.
                if by_field.setdefault(canonical, (own, own_query)) != (own, own_query):
                    raise unsupported(f"several `highlight` for {canonical} and its aliases")
            elif own.no_match_size > 0 and (canonical in schema.stored or canonical in schema.unindexed):
                raise unsupported(f"`no_match_size` for {canonical}, which is not indexed")
            elif own.no_match_size > 0 and any(part + KEYED in schema.fields for part in objects(canonical)):
                raise unsupported(f"`no_match_size` for {canonical}, a key of a flattened field,")

    def _named(self, options: Mapping[str, HighlightOptions]) -> dict[str, tuple[str, HighlightOptions]]:
        """Return options, with the pattern that they are for, by the names of fields and aliases."""
        named: dict[str, tuple[str, HighlightOptions]] = {}
        for pattern, own in options.items():
            if "*" not in pattern:
                named[pattern] = pattern, own
                continue
            expression = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
            schema = self._schema
            fields = {**schema.fields, **schema.unindexed}
            for name in (*fields, *schema.aliases):
                field = fields.get(schema.aliases.get(name, name))
                if field is not None and field.type in (TEXT, KEYWORD) and expression.fullmatch(name):
                    named[name] = pattern, own
        return named

    def highlights(self, source: Mapping[str, Any], document: int) -> dict[str, list[str]]:
        """Return the highlights of a document by field; fields without highlights are left out."""
        highlights = {}
        for name, field, options, query in self._fields:
            if fragments := self._highlight(field, options, query, source, document):
                highlights[name] = fragments
        return highlights

    def _highlight(
        self,
        field: Field,
        options: HighlightOptions,
        query: Query,
        source: Mapping[str, Any],
        document: int,
    ) -> list[str]:
        if not field.has_postings or field.type in (IP, FLATTENED):
            if options.no_match_size > 0 or not options.field_match:
                raise unsupported(
                    f"`no_match_size` or `require_field_match` for {field.name}, which is {field.type},"
                )
            names = options.matched_fields if options.type == "unified" else ()
            if field.type == FLATTENED:
                names = field.name, *names
            if any(_marked_leaves(query, name) for name in names):
                raise unsupported(f"highlights of {field.name}, which is {field.type},")
            return []
        if options.type == "unified":
            return self._unified(field, options, query, source, document)
        if options.no_match_size > 0 and field.is_stored and not field.is_text:
            raise unsupported(f"`no_match_size` of the highlighter `plain` for {field.name}, which is stored")
        leaves = _marked_leaves(query, field.name if options.field_match else None)
        if not leaves and options.no_match_size <= 0:
            return []
        values = [
            (utf16_units(text), _limited(self._tokens(field, text)[0], options.max_offset))
            for text in self._texts(field, source)
        ]
        return plain_highlights(values, leaves, options)

    def _unified(
        self,
        field: Field,
        options: HighlightOptions,
        query: Query,
        source: Mapping[str, Any],
        document: int,
    ) -> list[str]:
        from searchapp.lucene.search.matches import (
            FieldMatcher,
            has_nested,
            word_matches,
        )  # imports most queries

        names = [*dict.fromkeys(options.matched_fields), field.name]  # a repeated field counts twice
        if not options.field_match:
            raise unsupported("`require_field_match: false` of the highlighter `unified`")
        if options.no_match_size <= 0 and not any(_marked_leaves(query, name) for name in names):
            return []
        marks_words = has_nested(query)
        if marks_words and len(names) > 1:
            raise unsupported("`matched_fields` of the highlighter `unified` beside the query `nested`")
        # Values that contain the separator are analyzed in parts.
        texts = [part for text in self._texts(field, source) for part in text.split(SEPARATOR)]
        lists: list[list[Match]] = []
        frequencies: Mapping[str, int] = {}
        for name in names:
            own = self._schema.fields.get(name)
            if own is None or not _marked_leaves(query, name):
                continue
            tokens = self._joined_tokens(own, texts, options.max_offset)
            if marks_words:
                marked, frequencies = word_matches(query, name, [*tokens])
            else:
                matcher = FieldMatcher(name, tokens, lambda part: self._has(part, document), self._schema)
                marked = matcher.matches(query)
            lists.append(marked)
        matches = iter(lists[0]) if len(lists) == 1 else heapq.merge(*lists, key=lambda match: match[2:])
        if (most := options.max_offset) is not None:
            matches = takewhile(lambda match: match.start <= most, matches)
        text = utf16_units(SEPARATOR.join(texts))
        return unified_highlights(text, matches, frequencies, options, is_tokenized=field.is_text)

    def _texts(self, field: Field, source: Mapping[str, Any]) -> Iterator[str]:
        """Yield the values of a field in the order of highlights: as indexed if they are stored, otherwise by depth."""
        field = self._cache.bound(field)
        if field.is_stored:
            values = self._schema.block(source)[-1].values.get(field.source, ())
            yield from (field.normalized(indexed_text(value, field)) for value in field.indexed(values))
            return
        if any(field.source in targets for targets in self._schema.copies.values()):
            raise unsupported(f"highlights of {field.name}, into which other fields are copied,")
        for value in by_depth(source_value(source, field.source.split("."), field.null_value)):
            if field.type == IP and field.ignores(value):
                continue
            text = shown_text(value, field)
            if field.type == BOOLEAN:  # Elasticsearch compares these with the terms T and F
                text = "true" if text == "T" else "false"
            if not field.ignores(text):
                yield field.normalized(text)

    def _tokens(self, field: Field, text: str) -> tuple[Sequence[Token], int]:
        return self._cache.tokens(field.analyzer or "keyword", text)

    def _joined_tokens(self, field: Field, texts: Sequence[str], max_offset: int | None) -> Iterator[Token]:
        """Yield the tokens of all values with their offsets in the joined text."""
        gap = field.position_increment_gap
        if gap is None:
            gap = self._cache.analyzers.analyzer(field.analyzer or "keyword").position_increment_gap
        position, offset = 0, 0
        for text in texts:
            tokens, end_position = self._tokens(field, text)
            for term, own_position, start, end in map(_fields_of, _limited(tokens, max_offset)):
                yield Token(term, position + own_position, offset + start, offset + end)
            position += end_position + gap
            offset += utf16_length(text) + len(SEPARATOR)


def _fields_of(token: Token) -> tuple[str, int, int, int]:
    return token.term, token.position, token.start, token.end


def _limited(tokens: Sequence[Token], max_offset: int | None) -> Sequence[Token]:
    """Return the tokens before the first one that begins after an offset."""
    if max_offset is None:
        return tokens
    end = next((number for number, token in enumerate(tokens) if token.start > max_offset), len(tokens))
    return tokens[:end]


def _marked_leaves(query: Query, field: str | None) -> MarkedLeaves:
    """Return the leaves on the terms of a field, or of any field, with their boosts."""
    return [
        (leaf, boost)
        for leaf, boost in query.leaves()
        if isinstance(leaf, MarkedLeaf) and field in (None, leaf.field)
    ]
