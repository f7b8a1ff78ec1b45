"""Query templates: search bodies whose string leaves may be placeholders.

A leaf that is exactly `{{topic.text}}` takes the variable's value with its type, so a number stays a number and
a list a list. Text with a placeholder inside it is refused, and nothing is ever pasted into JSON: whatever a
topic contains, quotes and braces included, it can't change the query's structure.

>>> Template({"match": {"text": "{{topic.text}}"}}).render({"topic.text": 'a "quoted" word'})
{'match': {'text': 'a "quoted" word'}}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from searchapp.errors import DataError
from searchapp.model import Document, Topic
from searchapp.names import meant

_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+(?:\.[a-z_][a-z0-9_]*)*)\s*\}\}")


class Template:
    """A search body with placeholders.

    Raises:
        DataError: a leaf has a placeholder among other text, or braces that are no placeholder.
    """

    def __init__(self, body: Mapping[str, Any], name: str = "template") -> None:
        self.name = name
        self.body = body
        self._places = list(self._placeholders(body, ""))
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
        missing = sorted(self.variables - variables.keys())
        if missing:
            known = ", ".join(sorted(variables))
            raise DataError(
                f"{self.name}: there is no variable {{{{{missing[0]}}}}}{meant(missing[0], variables)}: "
                f"this task and recipe have {known}"
            )
        return {**self.body} if self._fill is None else self._fill(variables)

    def where(self, variable: str) -> str:
        """In which places of the template a variable stands, in words for people."""
        return f"{self.name}: {', '.join(place for name, place in self._places if name == variable)}"

    def _placeholders(self, node: Any, path: str) -> list[tuple[str, str]]:
        if isinstance(node, Mapping):
            for key in node:
                if "{{" in key:
                    raise DataError(
                        f"{self.name}: {path or 'top level'}: a key can't be a placeholder: {key}"
                    )
            children = [(value, f"{path}.{key}".lstrip(".")) for key, value in node.items()]
        elif isinstance(node, list):
            children = [(value, f"{path}[{place}]") for place, value in enumerate(node)]
        elif isinstance(node, str) and "{{" in node:
            match = _PLACEHOLDER.fullmatch(node)
            if match is None:
                raise DataError(
                    f"{self.name}: {path}: {node!r} is not a placeholder: "
                    "a whole value must be {{name}}, without other text"
                )
            return [(match[1], path)]
        else:
            return []
        return [found for value, place in children for found in self._placeholders(value, place)]


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
