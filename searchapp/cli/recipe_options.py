"""The options that say how topics are ranked, which several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from searchapp.cli import complete
from searchapp.errors import UsageError

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the recipe: `searchapp tasks show TASK --recipe R` lists what can be set.",
        show_default=False,
    ),
]


ExamplesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SPLIT",
        help="Learn from the solved topics of this split alone; can be given several times. By default from all that "
        "the split may be ranked by: of nlps and explanation-* those of train, and for test those of dev too.",
        show_default=False,
        autocompletion=complete.splits,
    ),
]
DepthOption = Annotated[
    int | None,
    typer.Option(min=1, help="Documents per topic; the task's own by default.", show_default=False),
]
LenientRankingOption = Annotated[
    bool,
    typer.Option(
        "--lenient",
        help="Leave invalid topics and solved topics out, and continue where the official scorer stops.",
    ),
]


def parameters_of(settings: list[str]) -> dict[str, object]:
    """Values by name from `name=value`; a value that is JSON keeps its type, any other is text."""
    from searchapp.inputs import parse_json

    values: dict[str, object] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise UsageError(
                f"--set {setting}: use the form NAME=VALUE; `searchapp tasks show TASK --recipe R` lists what there is"
            )
        try:
            values[name] = parse_json(text)
        except ValueError:
            values[name] = text
    return values
