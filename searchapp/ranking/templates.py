"""Query templates (search bodies with placeholders), and typed access to a recipe's tables.

A leaf that is exactly `{{topic.text}}` becomes the variable's value with its type. A placeholder among other text is
rejected, and no value is pasted into JSON text: quotes and braces in a topic can't change the query's structure.

>>> Template({"match": {"text": "{{topic.text}}"}}).render({"topic.text": 'a "quoted" word'})
{'match': {'text': 'a "quoted" word'}}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, field, fields
from functools import partial
from math import isfinite
from operator import itemgetter
from typing import Any

from searchapp.errors import DataError, ErrorCollector, UsageError
from searchapp.files import digest_json
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.queries.dsl import BY_SCORE, NOTHING, total_order
from searchapp.model import Document, Topic
from searchapp.resources import RecipeBook
from searchapp.text import choices_hint, is_renamed, key_suggestion, suggestion

_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+(?:\.[a-z_][a-z0-9_]*)*)\s*\}\}")

# The parts of Elasticsearch's search templates: a variable, one as JSON, and all else, such as sections.
_BARE = re.compile(r"\{\{\s*(?:#toJson\s*\}\}\s*(?P<json>[\w.]+)\s*\{\{/toJson|(?P<name>\w+))\s*\}\}")
_TAG = re.compile(r"\{\{\s*(?:[#^/>!&=]\s*[^{}\s]*|\{[^{}]*\})")

# The names that search templates use for the words of a query, and for the number of hits.
_USUAL_NAMES = {
    **dict.fromkeys(("q", "query", "query_string", "queryString", "text"), "topic.text"),
    "size": "depth",
}

# The parts of a search body that do not change a ranking.
_WITHOUT_EFFECT = {
    *(
        "_source",
        "aggregations",
        "aggs",
        "docvalue_fields",
        "explain",
        "fields",
        "from",
        "highlight",
        "profile",
    ),
    *("size", "stored_fields", "suggest", "timeout", "track_scores", "track_total_hits", "version"),
}


class Template:
    """A search body with placeholders.

    Raises:
        DataError: leaves have placeholders among other text, or braces that are not a placeholder; one line for each.
    """

    def __init__(self, body: Mapping[str, Any], name: str = "template") -> None:
        self.name = name
        self.body = body
        problems = ErrorCollector()
        self._variable_paths = self._placeholders(body, "", problems)
        problems.raise_if_any()
        self._fill = _fill_function(body)
        self.variables = frozenset(name for name, _path in self._variable_paths)
        # The fields of a topic that the template uses, except id and text.
        self.topic_fields = _fields_of_topic(self.variables)
        # The fields that occur only in clauses that match words.
        self.matched = self.topic_fields - _fields_of_topic(_unmatched(body))

    def render(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return the search body with values instead of placeholders; parts without placeholders are shared.

        Raises:
            DataError: the template contains an unknown variable.
        """
        if missing := self.variables - variables.keys():
            known = ", ".join(sorted(variables))
            raise DataError(
                *(
                    f"{self.name}: {path}: there is no variable {{{{{name}}}}}{suggestion(name, variables)}: "
                    f"this task and recipe have {known}"
                    for name, path in self._variable_paths
                    if name in missing
                )
            )
        return {**self.body} if self._fill is None else self._fill(variables)

    def where(self, variable: str) -> str:
        return f"{self.name}: {', '.join(path for name, path in self._variable_paths if name == variable)}"

    def _placeholders(self, node: Any, path: str, problems: ErrorCollector) -> list[tuple[str, str]]:
        if isinstance(node, Mapping):
            for key in node:
                if "{{" in key:
                    with problems.at(f"{self.name}: {path or 'top level'}"):
                        raise DataError(f"a placeholder can't be a key: {key}")
            children = [(value, f"{path}.{key}".lstrip(".")) for key, value in node.items()]
        elif isinstance(node, list):
            children = [(value, f"{path}[{index}]") for index, value in enumerate(node)]
        elif isinstance(node, str) and "{{" in node:
            match = _PLACEHOLDER.fullmatch(node)
            if match is not None:
                return [(match[1], path)]
            with problems.at(f"{self.name}: {path}"):
                if tag := _TAG.search(node):
                    raise DataError(
                        f"{tag[0]}}}}} of a search template is not supported: write a template for each case, with "
                        "variables as whole values"
                    )
                raise DataError(
                    f"{node!r} is not a placeholder: a whole value must be {{{{name}}}}, without other text"
                )
            return []
        else:
            return []
        return [
            placeholder
            for value, child_path in children
            for placeholder in self._placeholders(value, child_path, problems)
        ]


class TextTemplate:
    """A text with placeholders, such as a prompt; values are never searched for placeholders.

    Raises:
        DataError: the text has braces that are not a placeholder.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.text = text
        self.variables = frozenset(_PLACEHOLDER.findall(text))
        if (rest := _PLACEHOLDER.sub("", text)).find("{{") >= 0:
            raise DataError(
                f"{name}: {rest[rest.index('{{') :][:40]!r} is not a placeholder: write {{{{name}}}}"
            )

    def render(self, variables: Mapping[str, str]) -> str:
        """Return the text with values; a variable without one is empty."""
        return _PLACEHOLDER.sub(lambda match: variables.get(match[1], ""), self.text)


@dataclass(frozen=True, slots=True)
class TopicQuery:
    """A recipe's template with the recipe's parameters."""

    template: Template
    digest: str  # of the template as written
    parameters: Mapping[str, Any]

    def uses(self, parameter: str) -> bool:
        return f"recipe.{parameter}" in self.template.variables

    def is_same(self, other: TopicQuery) -> bool:
        return (self.digest, self.parameters) == (other.digest, other.parameters)

    def body(self, topic: Topic, depth: int, document: Document | None = None) -> dict[str, Any]:
        """Return the search body that retrieves `depth` documents for a topic, or for a document that it ranks.

        Raises:
            DataError: the template contains an unknown variable.
        """
        variables = {f"topic.{name}": value for name, value in topic.variables().items()}
        if document is not None:
            variables |= {f"document.{name}": value for name, value in document.source().items()}
        variables |= {f"recipe.{name}": value for name, value in self.parameters.items()}
        return self.template.render(variables | {"depth": depth})


_TOPIC = "topic."
_MATCHING = (
    "match",
    "match_bool_prefix",
    "match_phrase",
    "match_phrase_prefix",
    "multi_match",
    "combined_fields",
)


def _fields_of_topic(variables: Iterable[str]) -> frozenset[str]:
    named = (name.removeprefix(_TOPIC) for name in variables if name.startswith(_TOPIC))
    return frozenset(named) - {"id", "text"}


def _unmatched(node: Any) -> Iterator[str]:
    """Yield the variables outside of clauses that match words."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key not in _MATCHING:
                yield from _unmatched(value)
    elif isinstance(node, list):
        for value in node:
            yield from _unmatched(value)
    elif isinstance(node, str) and (match := _PLACEHOLDER.fullmatch(node)):
        yield match[1]


def _fill_function(node: Any) -> Callable[[Mapping[str, Any]], Any] | None:
    """Return a function that copies a part of a template with values; None for a part without placeholders."""
    if isinstance(node, str):
        match = _PLACEHOLDER.fullmatch(node) if "{{" in node else None
        return itemgetter(match[1]) if match else None
    if not isinstance(node, Mapping | list):
        return None
    children = node.items() if isinstance(node, Mapping) else enumerate(node)
    fillers = [(key, fill) for key, child in children if (fill := _fill_function(child)) is not None]
    if not fillers:
        return None
    copy_container: Callable[[Any], Any] = dict if isinstance(node, Mapping) else list

    def fill_copy(variables: Mapping[str, Any]) -> Any:
        copy = copy_container(node)
        for key, fill in fillers:
            copy[key] = fill(variables)
        return copy

    return fill_copy


WEIGHT = "weight"
WINDOW = "window"

WHOLE = "a whole number of at least 1"
NUMBER = "a non-negative number"
TEXT = "text"


@dataclass(frozen=True, slots=True)
class RecipeName:
    """The name of a recipe in the recipe book of a task."""

    book: RecipeBook
    recipe: str

    def __str__(self) -> str:
        return f"{self.book.task}/{self.recipe}"

    def wrong(self, what: str) -> DataError:
        """Return the error for an invalid recipe, whose file must be corrected."""
        return DataError(f"the recipe {self} {what}: correct {self.book.file.name}")


class RecipeTable:
    """A table of a recipe, such as a signal's; `parameters` are the recipe's template parameters."""

    def __init__(
        self,
        place: RecipeName,
        name: str,
        values: Mapping[str, Any],
        parameters: Mapping[str, Any],
        *,
        is_fused: bool = False,
    ) -> None:
        self.place = place
        self.name = name
        self._is_fused = is_fused
        self._values = values
        self._parameters = parameters
        self._read: list[str] = []
        # The settable parameters read so far, by key: the value, and a description of the valid values.
        self.settable: dict[str, tuple[object, str]] = {}

    def parameters(self, described: type) -> dict[str, Any]:
        """Read the parameters that a dataclass declares.

        Raises:
            DataError: a key is missing or has a wrong type.
            UsageError: a number is out of range.
        """
        declared = {
            attribute.name: attribute for attribute in fields(described) if _PARAMETER in attribute.metadata
        }
        values: dict[str, Any] = {}
        for name in dict.fromkeys((*getattr(described, "listed_first", ()), *declared)):
            parameter: Parameter = declared[name].metadata[_PARAMETER]
            default = declared[name].default
            if parameter.default_of:
                default = values[parameter.default_of]
            if parameter.when is None or parameter.when(values):
                is_required = parameter.required is not None and parameter.required(values)
                key = parameter.key or name
                values[name] = parameter.read(self, key, MISSING if is_required else default)
            else:
                values[name] = default
        return values

    def _value(self, key: str, default: Any) -> Any:
        self._read.append(key)
        if key not in self._values and default is MISSING:
            for other in self._values:
                if is_renamed(other, key):
                    raise self._unknown(other, [key])
            raise self.place.wrong(f"has no {key} in {self.name!r}")
        return self._values.get(key, default)

    def required(self, key: str) -> Any:
        """Return the value of a key that can't be set with `--set`.

        Raises:
            DataError: the key is missing.
        """
        return self._value(key, MISSING)

    def query(self, key: str, default: Any = MISSING) -> TopicQuery:
        """Read the name of a template.

        Raises:
            DataError: the key is missing, or the template is invalid.
        """
        return topic_query(self.place.book, self._value(key, default), self._parameters)

    def whole(self, key: str, default: Any = MISSING) -> Any:
        """Read an integer of at least 1.

        Raises:
            DataError: the key is missing and has no default.
            UsageError: the value is something else.
        """
        value = self._value(key, default)
        self.settable[key] = value, WHOLE
        is_right = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if key in self._values and not is_right:
            raise UsageError(f"the recipe {self.place}: {key} must be {WHOLE}, not {value!r}")
        return value

    def number(self, key: str, default: Any = MISSING) -> float:
        """Read a non-negative number.

        Raises:
            DataError: the key is missing and has no default.
            UsageError: the value is something else.
        """
        value = self._value(key, default)
        self.settable[key] = value, NUMBER
        right = isinstance(value, int | float) and not isinstance(value, bool)
        if not right or not isfinite(value) or value < 0:
            raise UsageError(f"the recipe {self.place}: {key} must be {NUMBER}, not {value!r}")
        return float(value)

    def weights(self, key: str, default: Any = MISSING) -> dict[str, float]:  # noqa: ARG002  # always empty
        """Read non-negative numbers by name; empty if the key is missing.

        Raises:
            DataError: the value is not a table.
            UsageError: a number is something else.
        """
        numbers = self._value(key, {})
        if not isinstance(numbers, Mapping):
            raise self.place.wrong(
                f"has the {key} {numbers!r} in {self.name!r}, which is not a table of numbers"
            )
        inner = RecipeTable(self.place, f"{self.name}.{key}", numbers, self._parameters)
        return {name: inner.number(name) for name in numbers}

    def choice(self, key: str, default: str, known: Collection[str]) -> str:
        """Read one of the `known` words.

        Raises:
            DataError: the value is not one of them.
        """
        value = self._value(key, default)
        self.settable[key] = value, " or ".join(known)
        for word in known:
            if word == value:
                return word
        raise DataError(f"the recipe {self.place} has no {key} {choices_hint(str(value), known)}")

    def text(self, key: str, default: Any = MISSING) -> str | None:
        """Read a non-empty string.

        Raises:
            DataError: the key is missing and has no default, or the value is something else.
        """
        value = self._value(key, default)
        self.settable[key] = value, TEXT
        if value is not None and (not isinstance(value, str) or not value):
            raise self.place.wrong(
                f"has the {key} {value!r} in {self.name!r}, which is not a non-empty string"
            )
        return value

    def window(self, key: str, default: int) -> int:
        """Read the minimum number of documents of a signal; `default` for a single signal.

        Raises:
            UsageError: the value is not an integer of at least 1.
        """
        return int(self.whole(key, self.place.book.depth)) if self._is_fused else default

    def finish(self, *also_known: str) -> None:
        """Reject keys that were not read, except those in `beside`.

        Raises:
            DataError: a key is unknown.
        """
        valid_keys = {*self._read, *also_known}
        for key in sorted(self._values.keys() - valid_keys):
            raise self._unknown(key, valid_keys)

    def _unknown(self, key: str, known: Collection[str]) -> DataError:
        return self.place.wrong(f"has the unknown key {key!r}{key_suggestion(key, known)} in {self.name!r}")


_PARAMETER = "parameter"


@dataclass(frozen=True, slots=True)
class Parameter:
    """How to read a field of a signal or a fusion from a recipe's table."""

    read: Callable[[RecipeTable, str, Any], Any]  # takes the table, the key and the field's default
    meaning: str = ""  # a clause for users; empty for a template, which can't be set
    key: str = ""  # in the table, if not the field's name
    # Whether the key exists, and whether it is required despite a default, given the parameters read so far.
    when: Callable[[Mapping[str, Any]], bool] | None = None
    required: Callable[[Mapping[str, Any]], bool] | None = None
    default_of: str = ""  # the parameter whose value is the default


def parameter(
    read: Callable[[RecipeTable, str, Any], Any], meaning: str = "", default: Any = MISSING, **further: Any
) -> Any:
    """Declare a field of a dataclass that is read from a table, see `Parameter`."""
    return field(default=default, metadata={_PARAMETER: Parameter(read, meaning, **further)})


whole = partial(parameter, RecipeTable.whole)
number = partial(parameter, RecipeTable.number)
text = partial(parameter, RecipeTable.text)
template = partial(parameter, RecipeTable.query, key="template")
window = partial(
    parameter,
    RecipeTable.window,
    "minimum number of documents that the signal ranks, whatever the depth of the run",
    default=0,
)


def boosts() -> Any:
    """Declare a field with weights of a topic's fields other than its text."""
    return field(default_factory=dict, metadata={_PARAMETER: Parameter(RecipeTable.weights)})


def choice(known: Collection[str], meaning: str, default: str, key: str = "") -> Any:
    """Declare a field with one of the `known` words."""
    return parameter(partial(RecipeTable.choice, known=known), meaning, default, key=key)


def meanings(described: type) -> dict[str, str]:
    """Return the meaning of each settable key of a signal or a fusion."""
    declarations = ((attribute.name, attribute.metadata.get(_PARAMETER)) for attribute in fields(described))
    return {
        declaration.key or name: declaration.meaning
        for name, declaration in declarations
        if declaration and declaration.meaning
    }


def written_parameters(described: Any) -> dict[str, Any]:
    """Return the parameters of a signal or a fusion by key."""
    values = {attribute.name: getattr(described, attribute.name) for attribute in fields(described)}
    written = {}
    for attribute in fields(described):
        declared = attribute.metadata.get(_PARAMETER)
        value = values[attribute.name]
        if declared and value is not None and (declared.when is None or declared.when(values)):
            written[declared.key or attribute.name] = value
    return written


def _with_known_names(node: Any, parameters: Collection[str]) -> Any:
    """Replace the variables of a search template: by parameters of the recipe, the topic's text or another field."""
    if isinstance(node, Mapping):
        return {key: _with_known_names(value, parameters) for key, value in node.items()}
    if isinstance(node, list):
        return [_with_known_names(value, parameters) for value in node]
    match = _BARE.fullmatch(node) if isinstance(node, str) else None
    name = match and (match["json"] or match["name"])
    if not name or name == "depth":
        return node
    if name in parameters:
        name = f"recipe.{name}"
    elif "." not in name:
        name = _USUAL_NAMES.get(name, f"topic.{name}")
    return f"{{{{{name}}}}}"


def _ranking_body(body: Mapping[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Return the parts of a search body that rank, for `depth` hits, the best first."""
    named: dict[str, Any] = _with_known_names(
        {key: value for key, value in body.items() if key not in _WITHOUT_EFFECT}, parameters
    )
    sort = total_order(named.pop("sort", None))
    ranked = {"size": "{{depth}}", "sort": sort, "_source": False, "track_total_hits": False, **named}
    if named.get("rescore"):
        del ranked["sort"]  # by which Elasticsearch would not rescore
    if named.get("knn"):
        ranked.setdefault("query", NOTHING)
    return ranked


def topic_query(book: RecipeBook, name: object, parameters: Mapping[str, Any]) -> TopicQuery:
    """Return the query of a template of a recipe book.

    Its body may be one of another application: `size` and the parts that do not change the ranking have no effect, and
    hits with equal scores are sorted by id.

    Raises:
        DataError: the template is unknown or invalid.
    """
    if not isinstance(name, str):
        raise DataError(f"{book.file}: the name of a template must be a string, not {name!r}")
    body = book.template(name)
    ranked = _ranking_body(body, parameters.keys())
    sort = ranked.get("sort", "_score")
    first = sort[0] if isinstance(sort, list) and sort else sort
    if first not in BY_SCORE and [first] not in BY_SCORE:
        raise DataError(
            f"{book.task}/{name}: sort: the scores of a run must not increase, but the hits are sorted by {first} "
            "first: put `_score` before it, or remove it"
        )
    template = Template(ranked, f"{book.task}/{name}")
    return TopicQuery(template, digest_json(body), parameters)
