"""Names that people type, when there is nothing of the name: which one was meant, and which ones there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LIKE = 0.6
"""How alike two names must be for one to be a slip of the other: 1 is equal, 0 has no letter in common."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant; None if none is like it.

    >>> nearest("NLPS", ["nlps", "checkthat"]), nearest("chekthat", ["nlps", "checkthat"]), nearest("x", ["nlps"])
    ('nlps', 'checkthat', None)
    """
    from difflib import get_close_matches

    by_small = {one.casefold(): one for one in known}
    small = name.strip().casefold()
    begun = [one for one in by_small if small and one.startswith(small)]
    like = begun[:1] if len(begun) == 1 else get_close_matches(small, by_small, 1, LIKE)
    return by_small[like[0]] if like else None


def meant(name: str, known: Iterable[str]) -> str:
    """A question for the end of a sentence that refuses a name: nothing if no known name is like it.

    >>> meant("nlp", ["nlps", "checkthat"]), meant("x", ["nlps"])
    (' (did you mean nlps?)', '')
    """
    like = nearest(name, known)
    return "" if like is None else f" (did you mean {like}?)"


def refused(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: what was meant, and everything that there is to choose.

    >>> "there is no task " + refused("nlp", ["nlps", "checkthat"])
    "there is no task 'nlp' (did you mean nlps?): choose nlps or checkthat"
    """
    every = list(known)
    return f"{name!r}{meant(name, every)}: choose {' or '.join(every)}"


def one_of(names: Sequence[str]) -> str:
    """Names of which there is a choice, in words.

    >>> one_of(["dark", "light", "own"])
    'dark, light or own'
    """
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
