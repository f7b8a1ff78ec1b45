"""Copy an index into several Lucene segments, as a large index has."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.search.comparing import Json
from tests.server.rest import Server

SEGMENTS = 3


def copy_in_segments(server: Server, index: str, sources: Sequence[Json], shards: int = 1) -> str:
    """Copy an index by writing its documents in `SEGMENTS` refreshes, and return the name of the copy.

    Each segment has every third document, so that some segments lack rare terms.
    """
    copy = f"{index}-in-segments-{shards}"
    original = server.request("GET", f"/{index}").json()[index]
    settings = {
        name: value
        for name, value in original["settings"]["index"].items()
        if name in ("analysis", "similarity", "query")
    }
    settings |= {"number_of_shards": shards, "number_of_replicas": 0, "refresh_interval": -1}
    answer = server.request(
        "PUT", f"/{copy}", {"settings": settings, "mappings": original["mappings"]}, timeout=60
    )
    assert answer.status == 200, answer.body
    for part in range(SEGMENTS):
        lines = [
            line for source in sources[part::SEGMENTS] for line in ({"create": {"_id": source["id"]}}, source)
        ]
        if lines:
            content = "".join(json.dumps(line) + "\n" for line in lines).encode()
            response = server.request("POST", f"/{copy}/_bulk?refresh=true", content, timeout=60).json()
            assert not response["errors"], response
    return copy


def segment_count(server: Server, index: str) -> int:
    """Return the number of segments of an index with one shard."""
    ((shard,),) = server.request("GET", f"/{index}/_segments").json()["indices"][index]["shards"].values()
    return len(shard["segments"])
