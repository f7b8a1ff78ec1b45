"""Recipes: the named ways in which a task ranks its documents.

They are data, kept as TOML beside the query templates that they refer to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from searchapp import resources
from searchapp.digests import digest_json
from searchapp.errors import DataError, UsageError
from searchapp.model import Topic
from searchapp.ranking.templates import Template


@dataclass(frozen=True, slots=True)
class Recipe:
    """One template over the documents, and the values of its parameters (`{{recipe.<name>}}`)."""

    name: str
    about: str
    template: Template
    template_digest: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def body(self, topic: Topic, depth: int) -> dict[str, Any]:
        """The search body that retrieves the first `depth` documents for a topic."""
        variables = {f"topic.{name}": value for name, value in topic.variables().items()}
        variables |= {f"recipe.{name}": value for name, value in self.parameters.items()}
        return self.template.render(variables | {"depth": depth})

    def manifest(self) -> dict[str, Any]:
        """What a run records of the recipe."""
        return {
            "name": self.name,
            "template": self.template.name,
            "template_digest": self.template_digest,
            "parameters": dict(self.parameters),
        }


def names(task: str) -> list[str]:
    """The names of a task's recipes."""
    return sorted(resources.recipes(task))


def load(task: str, name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """A task's recipe, with some of its parameters set to other values.

    Raises:
        UsageError: there is no such recipe, or it has no such parameter.
        DataError: the recipe or its template is not what it should be.
    """
    described = resources.recipes(task).get(name)
    if described is None:
        raise UsageError(f"{task} has no recipe {name!r}: choose {' or '.join(names(task))}")
    unknown = sorted(described.keys() - {"about", "template", "parameters"})
    if unknown or "template" not in described:
        wrong = f"has the unknown key {unknown[0]!r}" if unknown else "names no template"
        raise DataError(f"the recipe {task}/{name} {wrong}: correct recipes.toml")
    parameters = dict(described.get("parameters", {}))
    for key, value in (overrides or {}).items():
        if key not in parameters:
            known = ", ".join(sorted(parameters)) or "none"
            raise UsageError(f"the recipe {task}/{name} has no parameter {key!r}: it has {known}")
        parameters[key] = value
    body = resources.query_template(task, described["template"])
    template = Template(body, f"{task}/{described['template']}")
    template.require_used({f"recipe.{key}": value for key, value in parameters.items()})
    return Recipe(name, described.get("about", ""), template, digest_json(body), parameters)
