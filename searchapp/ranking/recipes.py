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
from searchapp.model import Document, Topic
from searchapp.names import meant, refused
from searchapp.ranking.templates import Template
from searchapp.resources import RecipeBook


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The signal of solved topics: `template` finds the nearest `k`, whose answers vote (see `signals.votes`).

    `direct` is the weight of the recipe's own template beside the votes. With the `scale` "shares" both are shares of
    their greatest, so that every topic's votes weigh the same. With "scores" both are as they come: votes weigh
    more for a topic that is much like solved ones, or whose neighbours agree.
    """

    template: Template
    template_digest: str
    k: int
    power: float
    direct: float
    scale: str = "shares"


@dataclass(frozen=True, slots=True)
class Labelled:
    """The signal of labelled documents: each document that the recipe's own template retrieves asks `template`.

    That finds the nearest `k` documents of solved topics, whose grades vote, each with the weight (s / s1) ** `power`;
    the recipe's own ranking and the one by votes are fused by 1 / (`rank_constant` + rank). See `ranking.labelled`.
    """

    template: Template
    template_digest: str
    k: int
    power: float
    rank_constant: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """A template over the documents, the values of its parameters (`{{recipe.<name>}}`), and further signals.

    With `baseline` the named method ranks, from the texts alone, and the template says what `search` does.
    """

    name: str
    about: str
    template: Template
    template_digest: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    neighbours: Neighbours | None = None
    baseline: str | None = None
    labelled: Labelled | None = None

    @property
    def learns(self) -> bool:
        """Whether it ranks by solved topics."""
        return self.neighbours is not None or self.labelled is not None

    @property
    def takes_words(self) -> bool:
        """Whether it ranks words that a person types as it ranks a topic: by its template and their text alone."""
        fields = {name for name in self.template.variables if name.startswith("topic.")}
        return self.baseline is None and not self.learns and fields <= {"topic.id", "topic.text"}

    def body(self, topic: Topic, depth: int) -> dict[str, Any]:
        """The search body that retrieves the first `depth` documents for a topic."""
        return self._rendered(self.template, topic, depth)

    def examples_body(self, topic: Topic) -> dict[str, Any]:
        """The search body that retrieves the solved topics nearest to a topic."""
        assert self.neighbours is not None, "the recipe has this signal"
        return self._rendered(self.neighbours.template, topic, self.neighbours.k)

    def labelled_body(self, topic: Topic, document: Document) -> dict[str, Any]:
        """The search body that retrieves the labelled documents nearest to a document."""
        assert self.labelled is not None, "the recipe has this signal"
        return self._rendered(self.labelled.template, topic, self.labelled.k, document)

    def _rendered(
        self, template: Template, topic: Topic, depth: int, document: Document | None = None
    ) -> dict[str, Any]:
        variables = {f"topic.{name}": value for name, value in topic.variables().items()}
        if document is not None:
            variables |= {f"document.{name}": value for name, value in document.source().items()}
        variables |= {f"recipe.{name}": value for name, value in self.parameters.items()}
        return template.render(variables | {"depth": depth})

    def manifest(self) -> dict[str, Any]:
        """What a run records of the recipe."""
        described: dict[str, Any] = {
            "name": self.name,
            "template": self.template.name,
            "template_digest": self.template_digest,
            "parameters": dict(self.parameters),
        }
        if self.baseline is not None:
            described["baseline"] = self.baseline
        if self.neighbours is not None:
            signal = self.neighbours
            described["neighbours"] = {
                "template": signal.template.name,
                "template_digest": signal.template_digest,
                "k": signal.k,
                "power": signal.power,
                "direct": signal.direct,
                "scale": signal.scale,
            }
        if self.labelled is not None:
            described["labelled"] = {
                "template": self.labelled.template.name,
                "template_digest": self.labelled.template_digest,
                **{name: getattr(self.labelled, name) for name in _LABELLED},
            }
        return described


BASELINES = ("tfidf",)
"""Methods for comparison that use no engine; see the modules of these names."""

SCALES = ("shares", "scores")
"""On what scale votes and the recipe's own template are added, see `Neighbours`."""

_KEYS = {"about", "template", "parameters", "neighbours", "labelled", "baseline"}
_NEIGHBOURS = {"k": int, "power": float, "direct": float}
_LABELLED = {"k": int, "power": float, "rank_constant": float}
_TEXTS = {"about", "template", "baseline"}
_SIGNALS = {"neighbours": _NEIGHBOURS, "labelled": _LABELLED}


def names(task: str | RecipeBook) -> list[str]:
    """The names of a task's recipes; a task that ships with searchapp may be given by its name."""
    return sorted(_book(task).recipes)


def load(task: str | RecipeBook, name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """A task's recipe, with some of its parameters set to other values.

    A task that ships with searchapp may be given by its name.

    Raises:
        UsageError: there is no such recipe, or it has no such parameter, or the value is of the wrong kind.
        DataError: the recipe or its template is not what it should be.
    """
    book = _book(task)
    described = book.recipes.get(name)
    label = f"{book.task}/{name}"
    if described is None:
        raise UsageError(f"{book.task} has no recipe {refused(name, names(book))}")
    unknown = sorted(described.keys() - _KEYS)
    if unknown or "template" not in described:
        wrong = (
            f"has the unknown key {unknown[0]!r}{meant(unknown[0], _KEYS)}"
            if unknown
            else "names no template"
        )
        raise DataError(f"the recipe {label} {wrong}: correct {book.file.name}")
    for key, value in described.items():
        if not isinstance(value, str if key in _TEXTS else Mapping):
            kind = "text in quotes" if key in _TEXTS else "a table"
            raise DataError(f"the recipe {label}: {key} must be {kind}: correct {book.file.name}")
    parameters = dict(described.get("parameters", {}))
    signals = {kind: dict(described.get(kind, {})) for kind in _SIGNALS}
    for key, value in (overrides or {}).items():
        places = [parameters, *(signals[kind] for kind in _SIGNALS if key in _SIGNALS[kind])]
        where = next((place for place in places if key in place), None)
        if where is None:
            own = (signals[kind].keys() & _SIGNALS[kind].keys() for kind in _SIGNALS)
            known = sorted({*parameters}.union(*own))
            there = ", ".join(known) or "none"
            raise UsageError(
                f"the recipe {label} has no parameter {key!r}{meant(key, known)}: it has {there}"
            )
        where[key] = value
    template, digest = _template(book, described["template"])
    scale = signals["neighbours"].pop("scale", SCALES[0])
    if scale not in SCALES:
        raise DataError(f"the recipe {label} has no scale {refused(str(scale), SCALES)}")
    neighbours = (
        Neighbours(**_signal(book, name, "neighbours", signals), scale=scale)
        if signals["neighbours"]
        else None
    )
    labelled = Labelled(**_signal(book, name, "labelled", signals)) if signals["labelled"] else None
    used = template.variables.union(*(one.template.variables for one in (neighbours, labelled) if one))
    for key in sorted({f"recipe.{key}" for key in parameters} - used):
        raise DataError(f"{template.name}: the variable {key} is set, but the template does not use it")
    baseline = described.get("baseline")
    if baseline not in (None, *BASELINES):
        raise DataError(f"the recipe {label} has no baseline {refused(str(baseline), BASELINES)}")
    return Recipe(
        name, described.get("about", ""), template, digest, parameters, neighbours, baseline, labelled
    )


def load_for_words(task: str | RecipeBook, name: str) -> Recipe:
    """A task's recipe, if it can rank words that a person types.

    Raises:
        UsageError: there is no such recipe, or it needs more than words.
        DataError: the recipe or its template is not what it should be.
    """
    recipe = load(task, name)
    if not recipe.takes_words:
        book = _book(task)
        suited = [other for other in names(book) if load(book, other).takes_words]
        raise UsageError(
            f"the recipe {book.task}/{name} needs more than words (fields of a topic, solved topics or all texts), "
            f"which `searchapp rank` has: search with --recipe {' or '.join(suited) or 'of your own'}"
        )
    return recipe


def _signal(
    book: RecipeBook, name: str, kind: str, signals: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The template and the numbers of a signal, as the class of its kind takes them."""
    label, described, types = f"{book.task}/{name}", signals[kind], _SIGNALS[kind]
    if described.keys() != {"template", *types}:
        raise DataError(
            f"the recipe {label}: `{kind}` must have template, {', '.join(types)}: correct {book.file.name}"
        )
    template, digest = _template(book, described["template"])
    made: dict[str, Any] = {"template": template, "template_digest": digest}
    for key, type_ in types.items():
        value = described[key]
        right = isinstance(value, int) if type_ is int else isinstance(value, int | float)
        if not right or isinstance(value, bool) or not value >= (1 if key == "k" else 0):
            raise UsageError(
                f"the recipe {label}: {key} must be a number that is not negative, not {value!r}"
            )
        made[key] = type_(value)
    return made


def _template(book: RecipeBook, name: str) -> tuple[Template, str]:
    if not isinstance(name, str):
        raise DataError(f"{book.file}: a template must be named by text in quotes, not by {name!r}")
    body = book.template(name)
    template = Template(body, f"{book.task}/{name}")
    if body.get("size") != "{{depth}}":
        raise DataError(
            f'{template.name}: a template must have "size": "{{{{depth}}}}", or --depth means nothing'
        )
    return template, digest_json(body)


def _book(task: str | RecipeBook) -> RecipeBook:
    return resources.recipe_book(task) if isinstance(task, str) else task
