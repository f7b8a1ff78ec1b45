"""Reads the tables of a recipe: each key with its type, and a sentence where it is not what it should be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from searchapp.digests import digest_json
from searchapp.errors import DataError, UsageError
from searchapp.names import meant, refused
from searchapp.ranking.templates import Template, TopicQuery
from searchapp.resources import RecipeBook

WEIGHT = "weight"

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
    refuses those that are left.
    """

    def __init__(
        self, place: RecipeName, name: str, values: Mapping[str, Any], parameters: Mapping[str, Any]
    ) -> None:
        self.place = place
        self.name = name
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

    def finish(self, *beside: str) -> None:
        """Refuse a key that was not read and is none of those beside.

        Raises:
            DataError: there is one.
        """
        known = {*self._read, *beside}
        for key in sorted(self._values.keys() - known):
            raise self.place.wrong(f"has the unknown key {key!r}{meant(key, known)} in {self.name!r}")


def topic_query(book: RecipeBook, name: object, parameters: Mapping[str, Any]) -> TopicQuery:
    """The query of a template of a recipe book.

    Raises:
        DataError: there is no such template, or it can't be one.
    """
    if not isinstance(name, str):
        raise DataError(f"{book.file}: a template must be named by text in quotes, not by {name!r}")
    body = book.template(name)
    template = Template(body, f"{book.task}/{name}")
    if body.get("size") != "{{depth}}":
        raise DataError(
            f'{template.name}: a template must have "size": "{{{{depth}}}}", or --depth means nothing'
        )
    return TopicQuery(template, digest_json(body), parameters)
