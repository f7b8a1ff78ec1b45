"""Query templates, which are search bodies with placeholders, and the typed tables of a recipe that name them.

A leaf that is exactly `{{topic.text}}` takes the variable's value with its type, so a number stays a number and a
list a list. Text with a placeholder inside it is refused, and nothing is ever pasted into JSON: whatever a topic
contains, quotes and braces included, it can't change the query's structure.

>>> Template({"match": {"text": "{{topic.text}}"}}).render({"topic.text": 'a "quoted" word'})
{'match': {'text': 'a "quoted" word'}}

A `Table` reads each key of a recipe's table with its type, and says in a sentence where it is not what it should be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from operator import itemgetter
from typing import Any

from searchapp.engines.base import BEST_FIRST
from searchapp.errors import DataError, Gathering, UsageError
from searchapp.files import digest_json
from searchapp.model import Document, Topic
from searchapp.resources import RecipeBook
from searchapp.text import meant, refused

_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+(?:\.[a-z_][a-z0-9_]*)*)\s*\}\}")


class Template:
    """A search body with placeholders.

    Raises:
        DataError: leaves have placeholders among other text, or braces that are no placeholder; a line for each.
    """

    def __init__(self, body: Mapping[str, Any], name: str = "template") -> None:
        self.name = name
        self.body = body
        problems = Gathering()
        self._places = self._placeholders(body, "", problems)
        problems.raise_if_any()
        self._fill = _filler(body)
        self.variables = frozenset(name for name, _place in self._places)
        self.topic_fields = _fields_of_topic(self.variables)
        """The fields of a topic that the template asks for, besides its id and text."""
        self.matched = self.topic_fields - _fields_of_topic(_unmatched(body))
        """Those of them that are texts whose words are matched, wherever they stand in the template."""

    def render(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The search body with every placeholder replaced by its variable.

        What has no placeholder inside is that of the template, and not to be changed.

        Raises:
            DataError: the template names a variable that is not there.
        """
        if missing := self.variables - variables.keys():
            known = ", ".join(sorted(variables))
            raise DataError(
                *(
                    f"{self.name}: {place}: there is no variable {{{{{name}}}}}{meant(name, variables)}: "
                    f"this task and recipe have {known}"
                    for name, place in self._places
                    if name in missing
                )
            )
        return {**self.body} if self._fill is None else self._fill(variables)

    def where(self, variable: str) -> str:
        """In which places of the template a variable stands, in words for people."""
        return f"{self.name}: {', '.join(place for name, place in self._places if name == variable)}"

    def _placeholders(self, node: Any, path: str, problems: Gathering) -> list[tuple[str, str]]:
        if isinstance(node, Mapping):
            for key in node:
                if "{{" in key:
                    with problems.at(f"{self.name}: {path or 'top level'}"):
                        raise DataError(f"a key can't be a placeholder: {key}")
            children = [(value, f"{path}.{key}".lstrip(".")) for key, value in node.items()]
        elif isinstance(node, list):
            children = [(value, f"{path}[{place}]") for place, value in enumerate(node)]
        elif isinstance(node, str) and "{{" in node:
            match = _PLACEHOLDER.fullmatch(node)
            if match is not None:
                return [(match[1], path)]
            with problems.at(f"{self.name}: {path}"):
                raise DataError(
                    f"{node!r} is not a placeholder: a whole value must be {{{{name}}}}, without other text"
                )
            return []
        else:
            return []
        return [found for value, place in children for found in self._placeholders(value, place, problems)]


@dataclass(frozen=True, slots=True)
class TopicQuery:
    """A template of a recipe with the recipe's parameters; `digest` is that of the template as it is written."""

    template: Template
    digest: str
    parameters: Mapping[str, Any]

    def uses(self, parameter: str) -> bool:
        """Whether the template has a parameter of the recipe."""
        return f"recipe.{parameter}" in self.template.variables

    def body(self, topic: Topic, depth: int, document: Document | None = None) -> dict[str, Any]:
        """The search body that retrieves the first `depth` documents for a topic, or for a document that it ranks.

        Raises:
            DataError: the template names a variable that the topic, the document and the recipe do not have.
        """
        variables = {f"topic.{name}": value for name, value in topic.variables().items()}
        if document is not None:
            variables |= {f"document.{name}": value for name, value in document.source().items()}
        variables |= {f"recipe.{name}": value for name, value in self.parameters.items()}
        return self.template.render(variables | {"depth": depth})


_TOPIC = "topic."
_MATCHING = ("match", "match_phrase", "multi_match")


def _fields_of_topic(variables: Iterable[str]) -> frozenset[str]:
    named = (name.removeprefix(_TOPIC) for name in variables if name.startswith(_TOPIC))
    return frozenset(named) - {"id", "text"}


def _unmatched(node: Any) -> Iterator[str]:
    """The variables of a body that stand elsewhere than in a clause that matches words."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key not in _MATCHING:
                yield from _unmatched(value)
    elif isinstance(node, list):
        for value in node:
            yield from _unmatched(value)
    elif isinstance(node, str) and (match := _PLACEHOLDER.fullmatch(node)):
        yield match[1]


def _filler(node: Any) -> Callable[[Mapping[str, Any]], Any] | None:
    """What makes a copy of a part of a template with its variables; None for a part that has none."""
    if isinstance(node, str):
        match = _PLACEHOLDER.fullmatch(node) if "{{" in node else None
        return itemgetter(match[1]) if match else None
    if not isinstance(node, Mapping | list):
        return None
    children = node.items() if isinstance(node, Mapping) else enumerate(node)
    fillers = [(key, fill) for key, child in children if (fill := _filler(child)) is not None]
    if not fillers:
        return None
    copied: Callable[[Any], Any] = dict if isinstance(node, Mapping) else list

    def filled(variables: Mapping[str, Any]) -> Any:
        copy = copied(node)
        for key, fill in fillers:
            copy[key] = fill(variables)
        return copy

    return filled


WEIGHT = "weight"
WINDOW = "window"

WHOLE = "a whole number from 1 on"
NUMBER = "a number that is not negative"
TEXT = "text"


@dataclass(frozen=True, slots=True)
class RecipeName:
    """Where a recipe stands: its name in the recipe book of a task."""

    book: RecipeBook
    recipe: str

    def __str__(self) -> str:
        return f"{self.book.task}/{self.recipe}"

    def wrong(self, what: str) -> DataError:
        """The error that the recipe is not what it should be, which the file has to be corrected for."""
        return DataError(f"the recipe {self} {what}: correct {self.book.file.name}")


class Table:
    """A table of a recipe, such as that of a signal; `parameters` are those of the recipe's templates.

    `name` is what the recipe calls what the table describes. Once all keys that have a meaning were read, `finish`
    refuses those that are left. With `is_fused` it describes one of several signals.
    """

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
        self.settable: dict[str, tuple[object, str]] = {}
        """What was read that can have other values, by its key: the value, and which ones it can have."""

    def _value(self, key: str) -> Any:
        self._read.append(key)
        if key not in self._values:
            raise self.place.wrong(f"says no {key} for {self.name!r}")
        return self._values[key]

    def query(self, key: str) -> TopicQuery:
        """The query of the template that a key names.

        Raises:
            DataError: the key is missing, or the template is not what it should be.
        """
        return topic_query(self.place.book, self._value(key), self._parameters)

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number from 1 on; `default` where it is left out.

        Raises:
            DataError: the key is missing and has no default.
            UsageError: it is something else.
        """
        if default is not None and key not in self._values:
            self._read.append(key)
            self.settable[key] = default or None, WHOLE
            return default
        value = self._value(key)
        self.settable[key] = value, WHOLE
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UsageError(f"the recipe {self.place}: {key} must be {WHOLE}, not {value!r}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number that is not negative; `default` where it is left out.

        Raises:
            DataError: the key is missing and has no default.
            UsageError: it is something else.
        """
        value = self._value(key) if default is None else self._values.get(key, default)
        self._read.append(key)
        self.settable[key] = value, NUMBER
        right = isinstance(value, int | float) and not isinstance(value, bool)
        if not right or not isfinite(value) or value < 0:
            raise UsageError(f"the recipe {self.place}: {key} must be {NUMBER}, not {value!r}")
        return float(value)

    def weights(self, key: str) -> dict[str, float]:
        """Numbers that are not negative, by names; none where the key is left out.

        Raises:
            DataError: it is no table.
            UsageError: one is something else.
        """
        self._read.append(key)
        held = self._values.get(key, {})
        if not isinstance(held, Mapping):
            raise self.place.wrong(f"has the {key} {held!r} in {self.name!r}, and not a table of numbers")
        inner = Table(self.place, f"{self.name}.{key}", held, self._parameters)
        return {name: inner.number(name) for name in held}

    def choice(self, key: str, known: Collection[str], default: str) -> str:
        """One of some words; `default` where it is left out.

        Raises:
            DataError: it is none of them.
        """
        self._read.append(key)
        value = self._values.get(key, default)
        self.settable[key] = value, " or ".join(known)
        if value not in known:
            raise DataError(f"the recipe {self.place} has no {key} {refused(str(value), known)}")
        return str(value)

    def text(self, key: str) -> str | None:
        """Text that is not empty; None where it is left out.

        Raises:
            DataError: it is something else.
        """
        self._read.append(key)
        value = self._values.get(key)
        self.settable[key] = value, TEXT
        if value is not None and (not isinstance(value, str) or not value):
            raise self.place.wrong(f"has the {key} {value!r} in {self.name!r}, and not text in quotes")
        return value

    def required_text(self, key: str) -> str:
        """Text that is not empty.

        Raises:
            DataError: the key is missing, or it is something else.
        """
        self._value(key)
        return self.text(key) or ""

    def weight(self) -> float:
        """What a signal counts in a fusion, 1 where it is left out.

        Raises:
            UsageError: it is no number, or negative.
        """
        return self.number(WEIGHT, 1.0)

    def window(self) -> int:
        """How many documents a signal ranks at least, the task's own depth where it is left out.

        0 for a signal that is fused with no other: its first documents are the same at any depth.

        Raises:
            UsageError: it is no whole number from 1 on.
        """
        return self.whole(WINDOW, self.place.book.depth) if self._is_fused else 0

    def finish(self, *beside: str) -> None:
        """Refuse a key that was not read and is none of those beside.

        Raises:
            DataError: there is one.
        """
        known = {*self._read, *beside}
        for key in sorted(self._values.keys() - known):
            raise self.place.wrong(f"has the unknown key {key!r}{meant(key, known)} in {self.name!r}")


def setting(
    meaning: str, read: Callable[..., Any] | None = None, *default: Any, key: str = ""
) -> Mapping[str, Any]:
    """Declare, as the metadata of a field of a signal, that a key of a recipe's table sets it.

    Args:
        meaning: what the key means, in a clause for people; empty where it is no parameter.
        read: the method of `Table` that reads it; None where the class reads it itself.
        default: the value where the key is left out; without one it is required.
        key: the key; by default the name of the field.
    """
    return {"meaning": meaning, "read": read, "default": default, "key": key}


def settings_in(table: Table, kind: type) -> dict[str, Any]:
    """Read the values of the fields of a class from a table, by the names of the fields.

    Raises:
        DataError, UsageError: as the methods of `Table` do.
    """
    return {
        name: read(table, key, *default)
        for name, key, _meaning, read, default in _declared(kind)
        if read is not None
    }


def settings_of(described: Any) -> dict[str, Any]:
    """Return the values of the declared fields of a signal, by their keys; queries are left out."""
    values = {key: getattr(described, name) for name, key, *_ in _declared(type(described))}
    return {key: value for key, value in values.items() if not isinstance(value, TopicQuery)}


def meanings_of(kind: type) -> dict[str, str]:
    """Return what each parameter of a signal means, by its key."""
    return {key: meaning for _name, key, meaning, *_ in _declared(kind) if meaning}


def _declared(kind: type) -> Iterator[tuple[str, str, str, Callable[..., Any] | None, tuple[Any, ...]]]:
    """The name of each declared field of a class, its key, its meaning, and how it is read."""
    for one in fields(kind):
        if declared := one.metadata:
            key = declared["key"] or one.name
            yield one.name, key, declared["meaning"], declared["read"], declared["default"]


def topic_query(book: RecipeBook, name: object, parameters: Mapping[str, Any]) -> TopicQuery:
    """Return the query of a template of a recipe book, sorted by score and then by id unless it has a `sort`.

    Raises:
        DataError: there is no such template, or it can't be one.
    """
    if not isinstance(name, str):
        raise DataError(f"{book.file}: a template must be named by text in quotes, not by {name!r}")
    body = book.template(name)
    problems = Gathering()
    of_task = f"{book.task}/{name}"
    template = None
    with problems.at():
        template = Template({"sort": BEST_FIRST, **body}, of_task)
    if body.get("size") != "{{depth}}":
        with problems.at(f"{of_task}: size"):
            raise DataError('a template must have "size": "{{depth}}", or --depth means nothing')
    problems.raise_if_any()
    assert template is not None
    return TopicQuery(template, digest_json(body), parameters)
