"""`searchapp.lucene.dataclass` makes the same classes as the standard library's decorator."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import product
from typing import Any, NamedTuple

import pytest

from searchapp.lucene.dataclass import dataclass

Decorator = Callable[..., Any]
OPTIONS = [
    {"frozen": frozen, "slots": slots, "kw_only": kw_only}
    for frozen, slots, kw_only in product((False, True), repeat=3)
]


class Family(NamedTuple):
    """Classes that one decorator makes."""

    empty: Any
    single: Any
    record: Any
    derived: Any
    own: Any


def make_family(decorator: Decorator, options: dict[str, bool]) -> Family:
    make = decorator(**options)

    @make
    class Empty:
        """No field."""

    @make
    class Single:
        """One field, whose tuple of values is easily forgotten."""

        value: Any

    @make
    class Record:
        """Defaults, factories, and fields that are left out."""

        name: str
        values: tuple[int, ...] = (1, 2)
        table: dict[str, int] = field(default_factory=dict)
        hidden: str = field(default="h", repr=False)
        place: int = field(default=0, compare=False, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "name", self.name.strip())

        @property
        def length(self) -> int:
            return len(self.name)

    @make
    class Derived(Record):
        """Inherited fields, one with another default."""

        values: tuple[int, ...] = ()
        more: str = "m"

    @make
    class Own:
        """Methods that the decorator must leave."""

        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and abs(self.value - other.value) < 2

        def __repr__(self) -> str:
            return f"<{self.value}>"

    return Family(Empty, Single, Record, Derived, Own)


def describe(action: Callable[[], object]) -> str:
    """Return the text of a result, or the type of an error, with the message where both decorators word it."""
    try:
        return repr(action())
    except dataclasses.FrozenInstanceError as error:
        return f"{type(error)} {error}"
    except Exception as error:
        return f"{type(error)}"


def object_outcomes(value: Any, others: list[Any]) -> Iterator[str]:
    """Describe what an object does, last its changes."""
    yield describe(lambda: value)
    yield describe(lambda: dataclasses.asdict(value))
    yield describe(lambda: hash(value) == hash(copy.copy(value)))
    yield describe(lambda: copy.deepcopy(value))
    yield describe(lambda: [value == other for other in others])
    yield describe(lambda: dataclasses.replace(value, value=5))
    for name in [f.name for f in dataclasses.fields(value)]:
        yield describe(lambda: setattr(value, name, 1))  # noqa: B023
        yield describe(lambda: value)
        yield describe(lambda: delattr(value, name))  # noqa: B023
        yield describe(lambda: value)


def outcomes(family: Family) -> Iterator[str]:
    """Describe what classes and their objects do."""
    empty, single, record, derived, own = family
    for kind in family:
        yield repr([(f.name, f.type, f.kw_only) for f in dataclasses.fields(kind)])
        yield repr((kind.__match_args__, "__slots__" in kind.__dict__, kind.__hash__ is None))
        yield repr([(p.name, p.kind, p.annotation) for p in inspect.signature(kind).parameters.values()])
        yield repr(kind.__init__.__qualname__)
    objects = [
        empty(), single(value=None), single(value=(1,)), record(name=" a "), record(name="a", place=3),
        record(name="a", values=(), table={"x": 1}), derived(name="a"), own(value=1), own(value=2), own(value=9),
    ]  # fmt: skip
    for first in objects:
        yield from object_outcomes(first, objects)
    yield describe(record)
    yield describe(lambda: record("a", (3,), {}, "x"))
    yield describe(lambda: record("a", (3,), {}, "x", 5))
    yield describe(lambda: record(name="a", unknown=5))
    yield describe(lambda: record(name="a").table is record(name="a").table)
    yield describe(lambda: derived("b", (3,)).length)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_classes_and_objects_are_those_of_the_standard_decorator(options: dict[str, bool]) -> None:
    made, standard = make_family(dataclass, options), make_family(dataclasses.dataclass, options)
    assert [*outcomes(made)] == [*outcomes(standard)]


@dataclass(frozen=True, slots=True)
class Node:
    """A record that is pickled."""

    label: str
    children: tuple[Node, ...] = ()


def test_frozen_records_with_slots_can_be_pickled() -> None:
    node = Node("a", (Node("b"), Node("c")))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(node, protocol)) == node


def test_fields_that_init_leaves_out_are_rejected() -> None:
    with pytest.raises(TypeError, match="Computed.value: this dataclass has no fields with init=False"):

        @dataclass
        class Computed:
            value: int = field(init=False)


def test_a_record_that_contains_itself_can_be_shown() -> None:
    @dataclass
    class Loop:
        inner: Any = None

    loop = Loop()
    loop.inner = [loop]
    assert repr(loop).endswith("Loop(inner=[...])")


PROGRAM = """
import time
from {module} import dataclass
code = compile("class C:\\n a: int\\n b: str\\n c: float = 0.0\\n d: str = ''", "code", "exec")
best = float("inf")
for _ in range(30):
    names = {{}}
    exec(code, names)
    begin = time.process_time()
    dataclass(frozen=True, slots=True)(names["C"])
    best = min(best, time.process_time() - begin)
print(best)
"""


def test_decorating_takes_less_than_the_standard_decorator() -> None:
    ours, standard = (
        float(
            subprocess.run(
                [sys.executable, "-c", PROGRAM.format(module=module)],
                capture_output=True, text=True, check=True, timeout=60,
            ).stdout
        )
        for module in ("searchapp.lucene.dataclass", "dataclasses")
    )  # fmt: skip
    assert ours < 0.75 * standard


def test_a_class_of_the_standard_decorator_may_inherit() -> None:
    """Own signals inherit from classes of searchapp."""

    @dataclass(frozen=True, slots=True)
    class Base:
        name: str

    @dataclasses.dataclass(frozen=True, slots=True)
    class Derived(Base):
        size: int = 1

    @dataclass(frozen=True, slots=True)
    class Last(Derived):
        last: int = 2

    assert repr(Derived("a")).endswith("Derived(name='a', size=1)")
    record = Last("a")
    assert record == Last("a", 1, 2)
    assert hash(record) == hash(Last("a"))
    for frozen in (Derived("a"), record):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(frozen, "name", "b")  # noqa: B010  # type checkers reject the assignment
