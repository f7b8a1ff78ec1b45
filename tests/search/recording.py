"""Record answers of Elasticsearch in `tests/fixtures/search`, to test the embedded engine without a server.

    python -m tests.search.recording

sends the bodies of `chosen_bodies` and random bodies to a new server, or to SEARCHAPP_TEST_URL, and writes all files
again. The same bodies and server give the same files. Recording stops if the engines differ. Names of indexes as
arguments restrict it to these indexes.

A file contains one index: the server's version, the mapping, the documents, and each body with its outcome of
`comparing`; of an error only the status and type. Bodies that the embedded engine does not support are left out.
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
from tests.search import chosen_bodies, comparing, queries
from tests.search.comparing import REFUSED, Json, Outcome
from tests.server.rest import Server
from tests.server.shared import any_server

FOLDER = Path(__file__).parents[1] / "fixtures" / "search"

RANDOM_INDEXES, RANDOM_DOCUMENTS, RANDOM_BODIES = 30, 10, 60
"""Number of random indexes, minimum of documents and number of bodies of each."""

RANDOM_SEED = 7

LONGEST_BODY = 10_000
"""Longer bodies, which test limits, are not recorded, to keep the files small."""

KIND = re.compile(rf"{REFUSED}\d+ \w+")
"""The recorded part of an error; the rest contains names of nodes and addresses."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A body, its name and the server's outcome."""

    name: str
    body: Json
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Recording:
    """The answers of a server of a version on an index of documents.

    `left_out` names the bodies that the embedded engine does not support.
    """

    server: str
    mapping: Json
    documents: list[Json]
    answered: list[RecordedAnswer]
    left_out: list[str]

    @property
    def bodies(self) -> list[Json]:
        return [answer.body for answer in self.answered]

    def index(self, engine: EmbeddedEngine) -> EmbeddedIndex:
        """Build the embedded index of the same documents."""
        documents = list(map(queries.document, self.documents))
        spec = IndexSpec(self.mapping, len(documents), digest_json(self.documents))
        engine.build("recorded", spec, documents)
        return engine.open("recorded")

    def differences(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        """Yield name, body and first difference of the outcomes that differ from the recorded ones."""
        for answer, outcome in zip(self.answered, outcomes, strict=True):
            if difference := comparing.outcome_difference(outcome, answer.outcome):
                yield f"{answer.name}: {json.dumps(answer.body)}\n{difference}"


def names() -> list[str]:
    """Return the names of the recordings."""
    return sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


def load(name: str) -> Recording:
    """Read a recording."""
    fields = json.loads(gzip.decompress(_path(name).read_bytes()))
    answered = [RecordedAnswer(**answer) for answer in fields.pop("answered")]
    return Recording(**fields, answered=answered)


def save(name: str, recording: Recording) -> None:
    """Write a recording; equal recordings give the same bytes."""
    FOLDER.mkdir(exist_ok=True)
    _path(name).write_bytes(gzip.compress(to_json(recording), 9, mtime=0))


def to_json(recording: Recording) -> bytes:
    """Return a recording as JSON."""
    return json.dumps(asdict(recording), ensure_ascii=True, separators=(",", ":")).encode()


def short_enough(bodies: Mapping[str, Json]) -> dict[str, Json]:
    """Return the bodies that are short enough to be recorded."""
    return {name: body for name, body in bodies.items() if len(json.dumps(body)) <= LONGEST_BODY}


def _path(name: str) -> Path:
    return FOLDER / f"{name}.json.gz"


def record(server: Server, chosen_names: Collection[str] = ()) -> Iterator[tuple[str, Recording]]:
    """Record all indexes, or those with the chosen names, and yield each name and recording."""
    version = server.request("GET", "/").json()["version"]["number"]
    with queries.engines(server) as engines:
        for name, case in _cases():
            if chosen_names and name not in chosen_names:
                continue
            bodies = short_enough(case["bodies"])
            documents, outcomes = engines.record({**case, "bodies": list(bodies.values())})
            by_name = dict(zip(bodies, outcomes, strict=True))
            answered = [
                RecordedAnswer(body_name, bodies[body_name], _recorded_part(outcome))
                for body_name, outcome in by_name.items()
                if outcome is not None
            ]
            if not answered:  # both engines reject the mapping
                continue
            left_out = [body_name for body_name, outcome in by_name.items() if outcome is None]
            yield name, Recording(version, case["mapping"], documents, answered, left_out)


def _cases() -> Iterator[tuple[str, Json]]:
    yield from chosen_bodies.by_hand().items()
    yield from chosen_bodies.by_searchapp().items()
    yield from _random_cases()


def _random_cases() -> Iterator[tuple[str, Json]]:
    """Yield random cases with enough documents, and their bodies by name."""
    random_cases = (next(queries.cases(RANDOM_SEED, RANDOM_BODIES, number)) for number in itertools.count())
    large = (case for case in random_cases if len(case["documents"]) >= RANDOM_DOCUMENTS)
    for number, case in enumerate(itertools.islice(large, RANDOM_INDEXES)):
        yield (
            f"random-{number:02}",
            {**case, "bodies": {str(n): body for n, body in enumerate(case["bodies"])}},
        )


def _recorded_part(outcome: Outcome) -> Outcome:
    if isinstance(outcome, str):
        kind = KIND.match(outcome)
        assert kind is not None, outcome
        return kind[0]
    return outcome


def main(arguments: Sequence[str]) -> int:
    """Record all indexes again, or those named by arguments."""
    with any_server() as server:
        return _main(server, arguments)


def _main(server: Server, chosen_names: Sequence[str]) -> int:
    try:
        recordings = dict(record(server, chosen_names))
    except AssertionError as error:
        print(
            f"{error}\nThe engines differ; nothing was recorded.",
            file=sys.stderr,
        )
        return 1
    if unknown := set(chosen_names) - recordings.keys():
        print(f"unknown index {', '.join(sorted(unknown))} (known: {', '.join(names())})", file=sys.stderr)
        return 2
    if not chosen_names:
        for path in FOLDER.glob("*.json.gz"):
            path.unlink()
    for name, recording in recordings.items():
        save(name, recording)
        errors = sum(isinstance(answer.outcome, str) for answer in recording.answered)
        size = _path(name).stat().st_size
        print(
            f"{name}: {len(recording.answered)} bodies, {errors} of them refused, on {len(recording.documents)} "
            f"documents, {size:,} bytes; {len(recording.left_out)} left out"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
