"""Draw the learning curves in docs/images/curves from the official data: `make curves DATA=DIR`.

python -m scripts.learning_curves DIR [NAME]...

DIR contains the folders of `FOLDERS`. `CURVES` has the command of each curve, which docs/use/learning-curve.md shows
with the picture; a test compares them. The script prints the table of each curve.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs" / "images" / "curves"

FOLDERS = {"nlps": "nlps", "explanation-2019": "worldtree2019", "smart-types-dbpedia": "smart"}
"""The folder of each task's data."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A picture, and the options of `searchapp learning-curve TASK` that draw it."""

    task: str
    options: str

    @property
    def path(self) -> Path:
        return IMAGES / f"{self.task}.svg"

    @property
    def command(self) -> str:
        """The command that draws the curve, as in the documentation."""
        return f"searchapp learning-curve {self.task} {self.options} --out {self.task}.svg"


CURVES = (
    Curve(
        "nlps",
        "--split dev --recipe neighbours --judgments-only --points 0,50,100,200,400,800 "
        "--repetitions 3 --test-topics 500",
    ),
    Curve(
        "explanation-2019",
        "--split dev --recipe neighbours --judgments-only --points 0,5,10,20,40,53 --repetitions 5 --depth 1000 "
        "--set window=1000",
    ),
    Curve(
        "smart-types-dbpedia",
        "--split fold0 --recipe best --judgments-only --points 100,250,500,1000,2000 "
        "--repetitions 2 --test-topics 1000",
    ),
)


def main() -> None:
    """Draw the names curves, or all."""
    data, names = Path(sys.argv[1]), set(sys.argv[2:])
    IMAGES.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEARCHAPP_")}
    for curve in CURVES:
        if names and curve.task not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="searchapp-curve-") as home:

            def run(*words: str, home: str = home) -> None:
                command = [sys.executable, "-m", "searchapp", *words, "--home", home, "--quiet"]
                subprocess.run(command, check=True, env=environment)

            folder = str((data / FOLDERS[curve.task]).resolve())
            run("index", curve.task, "--data", folder)
            print(f"{curve.command}\n", flush=True)
            run(
                "learning-curve",
                curve.task,
                *curve.options.split(),
                *("--data", folder, "--out", str(curve.path), "--overwrite", "--markdown"),
            )


if __name__ == "__main__":
    main()
