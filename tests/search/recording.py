"""Answers of a real Elasticsearch in `tests/fixtures/search`, so that the embedded engine is checked without one.

    python -m tests.search.recording

asks a server of its own, or SEARCHAPP_TEST_URL, all that `chosen` has and random bodies on random documents, and
writes the files anew: the same ones, as long as the bodies and the server are. It stops where the engines differ. Names
of indexes after it record only these.

A file holds one index: the server's version, the mapping, the documents, and each body with its outcome as `comparing`
has it, of a refusal only the status and the kind of error. No body's answer depends on the code that is checked, but
what the embedded engine refuses by name is not recorded.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.files import digest_json
from tests.search import chosen, comparing, queries
from tests.search.comparing import REFUSED, Json, Outcome
from tests.server.rest import Server
from tests.server.shared import any_server

FOLDER = Path(__file__).parents[1] / "fixtures" / "search"

RANDOM_INDEXES, RANDOM_DOCUMENTS, RANDOM_BODIES = 12, 10, 60
"""How many random indexes are recorded, how many documents each has at least, and how many bodies are asked."""

RANDOM_SEED = 7

LONGEST_BODY = 10_000
"""Longer bodies, which test limits, would fill the files."""

KIND = re.compile(rf"{REFUSED}\d+ \w+")
"""What is recorded of a refusal: the rest has names of nodes and addresses in it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A body, its name, and the server's outcome."""

    name: str
    body: Json
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Recording:
    """What a server of this version answered on an index of these documents.

    `left_out` names the bodies that the embedded engine refuses by name.
    """

    server: str
    mapping: Json
    documents: list[Json]
    answered: list[Answered]
    left_out: list[str]

    @property
    def bodies(self) -> list[Json]:
        return [one.body for one in self.answered]

    def index(self, engine: EmbeddedEngine) -> EmbeddedIndex:
        """The embedded index of the same documents."""
        documents = list(map(queries.document, self.documents))
        spec = IndexSpec(self.mapping, len(documents), digest_json(self.documents))
        engine.build("recorded", spec, documents)
        return engine.open("recorded")

    def differing(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        """Which outcomes of the bodies are not those recorded: the body's name, the body, and the first difference."""
        for one, outcome in zip(self.answered, outcomes, strict=True):
            if said := comparing.differing(outcome, one.outcome):
                yield f"{one.name}: {json.dumps(one.body)}\n{said}"


def names() -> list[str]:
    """The names of the recordings."""
    return sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


def load(name: str) -> Recording:
    """A recording by its name."""
    kept = json.loads(gzip.decompress(_path(name).read_bytes()))
    answered = [Answered(**one) for one in kept.pop("answered")]
    return Recording(**kept, answered=answered)


def save(name: str, recording: Recording) -> None:
    """Write a recording; the same one gives the same bytes."""
    FOLDER.mkdir(exist_ok=True)
    _path(name).write_bytes(gzip.compress(written(recording), 9, mtime=0))


def written(recording: Recording) -> bytes:
    """The JSON of a recording."""
    return json.dumps(asdict(recording), ensure_ascii=True, separators=(",", ":")).encode()


def short_enough(bodies: Mapping[str, Json]) -> dict[str, Json]:
    """The bodies that are short enough to be recorded."""
    return {name: body for name, body in bodies.items() if len(json.dumps(body)) <= LONGEST_BODY}


def _path(name: str) -> Path:
    return FOLDER / f"{name}.json.gz"


def recorded(server: Server, chosen_names: Collection[str] = ()) -> Iterator[tuple[str, Recording]]:
    """Each recording with its name: all, or those of these names."""
    version = server.request("GET", "/").json()["version"]["number"]
    with queries.engines(server) as engines:
        for name, case in _cases():
            if chosen_names and name not in chosen_names:
                continue
            asked = short_enough(case["bodies"])
            documents, outcomes = engines.recorded({**case, "bodies": list(asked.values())})
            by_name = dict(zip(asked, outcomes, strict=True))
            answered = [
                Answered(one, asked[one], _kept(outcome))
                for one, outcome in by_name.items()
                if outcome is not None
            ]
            left_out = [one for one, outcome in by_name.items() if outcome is None]
            yield name, Recording(version, case["mapping"], documents, answered, left_out)


def _cases() -> Iterator[tuple[str, Json]]:
    yield from chosen.by_hand().items()
    yield from chosen.by_searchapp().items()
    yield from _random_cases()


def _random_cases() -> Iterator[tuple[str, Json]]:
    """Random indexes with enough documents, and as `bodies` the bodies by name."""
    drawn = (next(queries.cases(RANDOM_SEED, RANDOM_BODIES, number)) for number in itertools.count())
    large = (case for case in drawn if len(case["documents"]) >= RANDOM_DOCUMENTS)
    for number, case in enumerate(itertools.islice(large, RANDOM_INDEXES)):
        yield (
            f"random-{number:02}",
            {**case, "bodies": {str(n): body for n, body in enumerate(case["bodies"])}},
        )


def _kept(outcome: Outcome) -> Outcome:
    if isinstance(outcome, str):
        kind = KIND.match(outcome)
        assert kind is not None, outcome
        return kind[0]
    return outcome


def main(arguments: Sequence[str]) -> int:
    """Record everything anew, or the indexes that are named."""
    with any_server() as server:
        return _main(server, arguments)


def _main(server: Server, chosen_names: Sequence[str]) -> int:
    try:
        found = dict(recorded(server, chosen_names))
    except AssertionError as error:
        print(
            f"{error}\nThe engines differ there: nothing is recorded before they are the same.",
            file=sys.stderr,
        )
        return 1
    if unknown := set(chosen_names) - found.keys():
        print(
            f"there is no index {', '.join(sorted(unknown))}; there are {', '.join(names())}", file=sys.stderr
        )
        return 2
    if not chosen_names:
        for path in FOLDER.glob("*.json.gz"):
            path.unlink()
    for name, recording in found.items():
        save(name, recording)
        refused = sum(isinstance(one.outcome, str) for one in recording.answered)
        size = _path(name).stat().st_size
        print(
            f"{name}: {len(recording.answered)} bodies, {refused} of them refused, on {len(recording.documents)} "
            f"documents, {size:,} bytes; {len(recording.left_out)} left out"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
