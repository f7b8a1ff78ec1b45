"""Marks what matched in a text, as Elasticsearch's highlighter of the type `plain` does on whole values.

    org.apache.lucene.search.highlight.{Highlighter, QueryScorer, TokenGroup, WeightedSpanTermExtractor}

The text is analyzed again; tokens that overlap form a group, and a group with a term of the query in it is
marked from its first to its last such token. A term that only occurs in phrases counts where a phrase stands.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from searchapp.lucene import parameters
from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.analysis.characters import has_halves, joined_units, whole
from searchapp.lucene.errors import ErrorCollector, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import Field, Schema, by_depth, shown_text
from searchapp.lucene.queries.query import EVERYWHERE, MarkedLeaf, PositionSpans, Query
from searchapp.lucene.records import Token

LARGEST_GROUP = 50
"""Overlapping tokens that a group takes in; it ignores further ones."""

KEPT_TOKENS = 100_000
"""Tokens of texts that are kept: of some hundred documents, in some 20 MB."""

HIGHLIGHT_QUERY = "highlight_query"
"""What says in `highlight` that another query than the body's is marked."""

NOWHERE: tuple[bool, PositionSpans] = (False, ())

_OPTIONS = {"type", "number_of_fragments", "pre_tags", "post_tags"}


@dataclass(frozen=True, slots=True)
class Marks:
    """What is put before and after a match."""

    before: str
    after: str


Wanted = list[tuple[MarkedLeaf, bool]]
"""The leaves of a query on one field, in their order, and whether they are marked: leaves with the boost 0 are not.

The last leaf that names a term decides whether the term is marked; a phrase only says where, for terms that nothing
else names.
"""


class Emitted:
    """What analyzers make of texts, kept for the texts that were asked for last.

    Who types a query sees mostly the same documents after each key, and to analyze them is most of what a search takes.
    """

    def __init__(self, analyzers: AnalysisRegistry) -> None:
        self._analyzers = analyzers
        self._kept: OrderedDict[tuple[str, str], Sequence[Token]] = OrderedDict()
        self._tokens = 0

    def tokens(self, analyzer: str, text: str) -> Sequence[Token]:
        """The tokens of a text, as `Analyzer.emitted` gives them."""
        key = analyzer, text
        tokens = self._kept.get(key)
        if tokens is not None:
            self._kept.move_to_end(key)
            return tokens
        tokens = self._analyzers.analyzer(analyzer).emitted(text)
        if len(tokens) <= KEPT_TOKENS // 20:
            self._kept[key] = tokens
            self._tokens += len(tokens) + 1
            while self._tokens > KEPT_TOKENS:
                _key, dropped = self._kept.popitem(last=False)
                self._tokens -= len(dropped) + 1
        return tokens


class Highlighter:
    """Marks the matches of one query in the values of fields."""

    def __init__(self, query: Query, marks: Mapping[str, Marks], schema: Schema, emitted: Emitted) -> None:
        self._marks = marks
        self._schema = schema
        self._emitted = emitted
        self._wanted = _wanted(query)

    def highlights(self, source: Mapping[str, Any]) -> dict[str, list[str]]:
        """The values of a document that have a match, with marks, by field."""
        found = {}
        for name, marks in self._marks.items():
            described = self._schema.fields.get(name)
            wanted = self._wanted.get(name)
            if described is None or described.is_number or not wanted:
                continue
            values = by_depth(source.get(described.source))
            texts = (shown_text(value, described) for value in values)
            marked = [self._marked(text, described, wanted, marks) for text in texts]
            if fragments := [fragment for fragment in marked if fragment is not None]:
                found[name] = fragments
        return found

    def _marked(self, text: str, described: Field, wanted: Wanted, marks: Marks) -> str | None:
        tokens = self._emitted.tokens(described.analyzer or "keyword", text)
        matching = _matching(tokens, wanted)
        if not any(matching):
            return None
        units = _Units(text)
        pieces: list[str] = []
        done = 0
        for start, end, matches in _groups(tokens, matching):
            if start > done:
                pieces.append(units[done:start])
            piece = units[start:end]
            pieces.append(f"{marks.before}{piece}{marks.after}" if matches else piece)
            done = max(done, end)
        pieces.append(units[done:])
        return joined_units("".join(pieces))  # a group may end within a character


class _Units:
    """A text by its UTF-16 code units, in which the offsets of tokens count."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._units = text.encode("utf-16-le", "surrogatepass") if text and max(text) > "\uffff" else None

    def __getitem__(self, place: slice) -> str:
        if self._units is None:
            return self._text[place]
        end = None if place.stop is None else place.stop * 2
        return self._units[place.start * 2 : end].decode("utf-16-le", "surrogatepass")


def read_marks(given: Any) -> dict[str, Marks]:
    """Read the `highlight` of a search body, all but its `highlight_query`: the marks of each field.

    Raises:
        Refused: `highlight` asks for another highlighter, for fragments, or for something else; has all
            problems, with their JSON paths.
    """
    problems = ErrorCollector()
    marks: dict[str, Marks] = {}
    with problems.at("highlight"):
        described = parameters.mapping(given, "`highlight`")
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
        for place, name, options in _fields(described, problems):
            with problems.at(place):
                options = parameters.mapping(options, f"`highlight` for {name}")
                with problems.at(place):
                    known_only(options, _OPTIONS, f"`highlight` for {name}")
                with problems.at(place):
                    if "*" in name:
                        raise unsupported(f"the pattern `{name}` for the fields of `highlight`")
                marks[name] = _marks({**described, **options}, place if options else "highlight", problems)
    problems.raise_if_any()
    return marks


def _fields(described: Mapping[str, Any], problems: ErrorCollector) -> list[tuple[str, str, Any]]:
    """JSON path, name and options of each field."""
    fields = described.get("fields", {})
    if isinstance(fields, Mapping):
        return [(f"highlight.fields.{name}", name, options) for name, options in fields.items()]
    found: list[tuple[str, str, Any]] = []
    for number, entry in enumerate(parameters.listed(fields, "`fields` in `highlight`")):
        place = f"highlight.fields[{number}]"
        with problems.at(place):
            name, options = parameters.single(entry, "an entry of `fields` in `highlight`")
            found.append((f"{place}.{name}", name, options))
    return found


def _marks(options: Mapping[str, Any], place: str, problems: ErrorCollector) -> Marks:
    """The marks of a field; what is wrong with its options goes to `problems`."""
    before, after = "", ""
    with problems.at(place):
        if _type(options) != "plain":
            raise unsupported(f"`type: {options.get('type', 'unified')}` of `highlight`, only `plain`")
    with problems.at(place):
        if _fragments(options):
            raise unsupported("fragments in `highlight`, only whole values (`number_of_fragments: 0`)")
    with problems.at(place):
        if "pre_tags" in options and "post_tags" not in options:
            raise invalid("`highlight` has `pre_tags` and no `post_tags`")
    with problems.at(place):
        before = _tag(options.get("pre_tags", "<em>"))
    with problems.at(place):
        after = _tag(options.get("post_tags", "</em>"))
    return Marks(before, after)


def _type(options: Mapping[str, Any]) -> str:
    given = options.get("type", "unified")
    if not isinstance(given, str):
        raise invalid(f"`type` of `highlight` is {parameters.shown(given)}, which is no text")
    return given


def _fragments(options: Mapping[str, Any]) -> int:
    return parameters.integer(options.get("number_of_fragments", 5), "`number_of_fragments` of `highlight`")


def _tag(given: Any) -> str:
    """The first of the tags: the others are for fragments that differ in how they match, which `plain` knows not."""
    tags = [given] if isinstance(given, str) else parameters.listed(given, "the tags of `highlight`")
    texts = [parameters.raw_text(tag, "a tag of `highlight`") for tag in tags]
    if not texts:
        raise unsupported("`highlight` with an empty list of tags")
    return texts[0]


def _wanted(query: Query) -> dict[str, Wanted]:
    """What to mark in each field."""
    fields: defaultdict[str, Wanted] = defaultdict(list)
    for leaf, boost in query.leaves():
        if isinstance(leaf, MarkedLeaf):
            fields[leaf.field].append((leaf, boost != 0))
    return fields


def _matching(tokens: Sequence[Token], wanted: Wanted) -> list[bool]:
    """Whether each token is to be marked; tokens with half of a character are none of the index's terms."""
    if has_halves(token.term for token in tokens):
        indexed = [replace(token, term=whole(token.term)) for token in tokens]
        matching = zip(_matching(indexed, wanted), tokens, indexed, strict=True)
        return [matches and token.term == its.term for matches, token, its in matching]
    where: dict[str, tuple[bool, PositionSpans]] = {}
    for leaf, counts in wanted:
        for term, places in leaf.term_spans(tokens).items():
            marked, known = where.get(term, (counts, ()))
            if places is EVERYWHERE:
                where[term] = counts, EVERYWHERE
            elif known is not EVERYWHERE:
                where[term] = marked, (*known, *places)
    found = [(token.position, *where.get(token.term, NOWHERE)) for token in tokens]
    return [
        counts and any(start <= position <= end for start, end in places)
        for position, counts, places in found
    ]


def _groups(tokens: Sequence[Token], matching: Sequence[bool]) -> Iterator[tuple[int, int, bool]]:
    """Start, end and whether to mark it, of each group of overlapping tokens."""
    first = 0
    while first < len(tokens):
        group_end = tokens[first].end
        last = first + 1
        while last < len(tokens) and tokens[last].start < group_end:
            if last - first < LARGEST_GROUP:
                group_end = max(group_end, tokens[last].end)
            last += 1
        members = range(first, min(last, first + LARGEST_GROUP))
        marked = [tokens[place] for place in members if matching[place]]
        if marked:
            yield min(token.start for token in marked), max(token.end for token in marked), True
        else:
            yield tokens[first].start, tokens[first].end, False
        first = last
