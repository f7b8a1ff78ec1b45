"""A copy of an index whose documents are in several Lucene segments, as those of a large index are."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.search.comparing import Json
from tests.server.rest import Server

SEGMENTS = 3


def copy_in_segments(server: Server, index: str, sources: Sequence[Json], shards: int = 1) -> str:
    """Copy an index by writing its documents in `SEGMENTS` refreshes; returns the name of the copy.

    Every third document is in the same segment, so that the rare terms of the collection are absent from some.
    """
    copy = f"{index}-in-segments-{shards}"
    described = server.request("GET", f"/{index}").json()[index]
    kept = ("analysis", "similarity")
    settings = {
        name: described["settings"]["index"][name] for name in kept if name in described["settings"]["index"]
    }
    settings |= {"number_of_shards": shards, "number_of_replicas": 0, "refresh_interval": -1}
    answer = server.request(
        "PUT", f"/{copy}", {"settings": settings, "mappings": described["mappings"]}, timeout=60
    )
    assert answer.status == 200, answer.body
    for part in range(SEGMENTS):
        lines = [
            line for source in sources[part::SEGMENTS] for line in ({"create": {"_id": source["id"]}}, source)
        ]
        if lines:
            sent = "".join(json.dumps(line) + "\n" for line in lines).encode()
            written = server.request("POST", f"/{copy}/_bulk?refresh=true", sent, timeout=60).json()
            assert not written["errors"], written
    return copy


def segment_count(server: Server, index: str) -> int:
    """The number of segments of the only shard of an index."""
    ((shard,),) = server.request("GET", f"/{index}/_segments").json()["indices"][index]["shards"].values()
    return len(shard["segments"])
