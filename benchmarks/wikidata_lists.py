"""Compare the completed lists of smart-types-wikidata with lists of ten types by the official scorer.

    python benchmarks/wikidata_lists.py DATA RUN...

Prints for each run of a fold: the number of lists of ten types at which the scorer stops, and the MRR of both kinds of
lists over the others.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from searchapp import tasks
from searchapp.formats.json_files import load_list
from searchapp.runs import directory
from searchapp.tasks import splits
from searchapp.tasks.smart_types import answers
from searchapp.tasks.smart_types.scorer_wikidata import score, stopping_predictions


def compare(data: Path, path: Path) -> str:
    """Return a line about a run directory."""
    stored = directory.read(path)
    collection: Any = tasks.load("smart-types-wikidata").collection(data)
    split = stored.manifest.split
    questions = load_list(collection.split_files(split)[0], "questions", bom=True)
    gold = [question for question in questions if splits.in_split(split, str(question.get("id")))]
    longer = answers.predictions_of_run(stored.run, collection.complete).aligned(gold)
    plain = answers.predictions_of_run(stored.run).aligned(gold)
    stopping = {number for number, _ in stopping_predictions(plain, gold)}
    others = [entry for number, entry in enumerate(plain) if number not in stopping]
    before = reciprocal_ranks(others, gold)
    after = reciprocal_ranks(longer, gold)
    pairs = [(before[name], after[name]) for name in before]
    more, less = (sum(sign * (new - old) > 0 for old, new in pairs) for sign in (1, -1))
    return (
        f"{path.name}: the scorer stops at {len(stopping)} of {len(plain)} lists of ten types; over the others MRR is "
        f"{mean(old for old, _ in pairs):.4f}, with the longer lists {mean(new for _, new in pairs):.4f} "
        f"({more} questions gain, {less} lose)"
    )


def reciprocal_ranks(predictions: Sequence[Any], gold: list[Any]) -> dict[str, float]:
    """Return the reciprocal rank of each question by its id."""
    figures: Mapping[str, Any] = score(predictions, gold).per_topic
    return {name: float(figure["rr"]) for name, figure in figures.items()}


if __name__ == "__main__":
    for run in sys.argv[2:]:
        print(compare(Path(sys.argv[1]), Path(run)), flush=True)
