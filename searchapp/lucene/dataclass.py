"""The decorator `dataclass` of the standard library, several times faster.

The standard decorator compiles up to six methods for each class, which took a third of the start of `searchapp search`.
Here only `__init__` is compiled, and the other methods are closures or shared by all classes. Fields, defaults, slots
and inheritance are the work of the standard decorator, and `fields`, `replace` and `asdict` accept the classes. Type
checkers see the standard decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True, repr=True):  # noqa: A002
        """Make a class a dataclass, as `dataclasses.dataclass` does with these parameters."""

        def decorate(cls):
            # For a class without docstring, the standard decorator inspects the signature.
            cls.__doc__ = cls.__doc__ or cls.__name__
            bases = [getattr(base, "__dataclass_params__", None) for base in cls.__mro__[1:]]
            has_frozen_base = any(base is not None and base.frozen for base in bases)
            cls = dataclasses.dataclass(
                init=False,
                repr=False,
                eq=False,
                slots=slots,
                kw_only=kw_only,
                frozen=frozen and has_frozen_base,  # which compiles two methods
            )(cls)
            cls.__dataclass_params__.frozen = (
                frozen  # the standard decorator compares it with that of subclasses
            )
            methods = {"__init__": _compile_init(cls, frozen)}
            if repr:
                methods["__repr__"] = _describe
            if eq:
                methods |= _comparison(cls, frozen)
            if frozen:
                methods |= {"__setattr__": _reject_assignment, "__delattr__": _reject_deletion}
                if slots:
                    methods["__setstate__"] = _restore
            for name, method in methods.items():
                # A class with `__eq__` and no `__hash__` has a `__hash__` of None.
                if cls.__dict__.get(name) is None:
                    setattr(cls, name, method)
            return cls

        return decorate if cls is None else decorate(cls)


def _compile_init(cls: Any, frozen: bool) -> Callable[..., None]:
    """Return an `__init__` that takes as long as one written by hand."""
    names: dict[str, Any] = {"_assign": object.__setattr__, "_MISSING": dataclasses.MISSING}
    positional, keyword, lines = ["self"], ["*"], []
    for field in dataclasses.fields(cls):
        if not field.init:
            raise TypeError(f"{cls.__qualname__}.{field.name}: this dataclass has no fields with init=False")
        parameter = value = field.name
        if field.default is not dataclasses.MISSING:
            parameter += f"=_default_{field.name}"
            names[f"_default_{field.name}"] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            parameter += "=_MISSING"
            value = f"_make_{field.name}() if {field.name} is _MISSING else {field.name}"
            names[f"_make_{field.name}"] = field.default_factory
        (keyword if field.kw_only else positional).append(parameter)
        lines.append(f"_assign(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(positional + (keyword if len(keyword) > 1 else []))
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in dataclasses.fields(cls)} | {"return": None}
    return init


@recursive_repr()
def _describe(record: Any) -> str:
    shown = [
        f"{field.name}={getattr(record, field.name)!r}" for field in dataclasses.fields(record) if field.repr
    ]
    return f"{type(record).__qualname__}({', '.join(shown)})"


def _comparison(cls: Any, frozen: bool) -> dict[str, Any]:
    """Return `__eq__` and `__hash__`, which compare tuples of the fields."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    # The getter of a single attribute returns no tuple.
    values: Callable[[Any], Any] = attrgetter(*names) if len(names) > 1 else partial(_tuple_of, names)

    def equals(record: Any, other: object) -> Any:
        return values(record) == values(other) if other.__class__ is record.__class__ else NotImplemented

    def compute_hash(record: Any) -> int:
        return hash(values(record))

    return {"__eq__": equals, "__hash__": compute_hash if frozen else None}


def _tuple_of(names: Sequence[str], record: object) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in names)


def _reject_assignment(_record: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _reject_deletion(_record: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _restore(record: object, state: tuple[None, dict[str, Any]]) -> None:
    """Set the slots of an unpickled or copied record."""
    for name, value in state[1].items():
        object.__setattr__(record, name, value)
