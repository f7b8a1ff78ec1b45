"""A command with options that take all the words after them, as `--gold a b c`.

Click gives an option one word. The organisers' ways of naming several files are more: this command rewrites what
was typed into what Click reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchapp.cli.commands import Command


class SpreadingCommand(Command):
    """A command whose options in `spread` take every word up to the next option, once an argument was given.

    Before the first argument they take one word, as ever: the next one is then an argument.
    """

    spread = frozenset({"--gold"})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_word = {
            name: not getattr(option, "is_flag", False) and not getattr(option, "count", False)
            for option in self.params
            if option.param_type_name == "option"
            for name in (*option.opts, *option.secondary_opts)
        }
        return super().parse_args(ctx, list(spread_words(args, self.spread, takes_word)))


def spread_words(
    args: Sequence[str], spread: frozenset[str], takes_word: Mapping[str, bool]
) -> Iterator[str]:
    """The words of a command line, with the name of a spread option before each of its words.

    `takes_word` says of every option whether a word follows it.

    >>> list(spread_words(["p", "--gold", "a", "b", "--json"], frozenset({"--gold"}), {"--gold": True}))
    ['p', '--gold', 'a', '--gold', 'b', '--json']
    """
    arguments, option, waiting = False, "", False
    words = iter(args)
    for word in words:
        if word == "--":
            yield word
            break
        if waiting:
            waiting = False
        elif word.startswith("-") and word != "-":
            option, equals, _value = word.partition("=")
            waiting = not equals and takes_word.get(option, False)
        elif option in spread and arguments:
            yield option
        else:
            arguments, option = True, ""
        yield word
    yield from words


def files_named(given: Sequence[Path]) -> tuple[Path, ...]:
    """Files, where one that does not exist may be several with commas between them: `a.tsv,b.tsv`."""
    files: list[Path] = []
    for path in given:
        names = [name.strip() for name in str(path).split(",")]
        files += [path] if path.exists() or len(names) == 1 else map(Path, filter(None, names))
    return tuple(files)
