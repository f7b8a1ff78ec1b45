"""The proxy that injects faults, and imitations of other servers."""

from __future__ import annotations

import http.client
import json

import pytest

from tests.server.faults import FaultProxy, OldElasticsearch
from tests.server.rest import Server


def bulk_lines(index: str, *ids: str) -> bytes:
    lines = [line for name in ids for line in ({"index": {"_index": index, "_id": name}}, {"a": name})]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def test_the_proxy_forwards_and_counts_requests(fault_proxy: FaultProxy) -> None:
    server = Server(fault_proxy.url)
    assert server.request("GET", "/").headers["x-elastic-product"] == "Elasticsearch"
    assert server.request("HEAD", "/no-such-index").status == 404
    assert fault_proxy.count() == 2
    assert fault_proxy.count(method="HEAD", path="^/no-such") == 1


def test_the_proxy_injects_the_given_number_of_faults(fault_proxy: FaultProxy) -> None:
    server = Server(fault_proxy.url)
    complete = server.request("GET", "/").body
    fault_proxy.reject(2, method="GET", path="^/_cat")
    assert server.request("GET", "/").status == 200
    answers = [server.request("GET", "/_cat/indices") for _ in range(3)]
    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].json()["error"]["type"] == "es_rejected_execution_exception"
    fault_proxy.unavailable()
    assert server.request("GET", "/").status == 503
    fault_proxy.shorten()
    assert server.request("GET", "/").body == complete[: len(complete) // 2]
    fault_proxy.cut()
    with pytest.raises(http.client.IncompleteRead):
        server.request("GET", "/")
    fault_proxy.delay(30)
    with pytest.raises(TimeoutError):
        server.request("GET", "/", timeout=0.3)
    assert server.request("GET", "/").body == complete


def test_the_proxy_closes_connections_from_the_second_bulk_request_on(
    fault_proxy: FaultProxy, index_prefix: str
) -> None:
    server = Server(fault_proxy.url)
    fault_proxy.refuse_from(2)
    assert server.request("POST", "/_bulk", bulk_lines(index_prefix, "1"), timeout=60).status == 200
    for method, path in (("POST", "/_bulk"), ("GET", "/")):
        with pytest.raises(http.client.RemoteDisconnected):
            server.request(method, path, bulk_lines(index_prefix, "2") if method == "POST" else None)
    fault_proxy.heal()
    assert server.request("GET", f"/{index_prefix}/_doc/2").status == 404


def test_the_proxy_rejects_single_documents(fault_proxy: FaultProxy, index_prefix: str) -> None:
    server = Server(fault_proxy.url)
    fault_proxy.reject_documents({"2"})
    answer = server.request("POST", "/_bulk", bulk_lines(index_prefix, "1", "2", "3"), timeout=60).json()
    assert answer["errors"] is True
    assert [(item["index"]["_id"], item["index"]["status"]) for item in answer["items"]] == [
        ("1", 201),
        ("2", 429),
        ("3", 201),
    ]
    assert server.request("GET", f"/{index_prefix}/_doc/2").status == 404


def test_a_proxy_without_server_closes_the_connection() -> None:
    with FaultProxy("http://127.0.0.1:9") as proxy, pytest.raises(http.client.RemoteDisconnected):
        Server(proxy.url).request("GET", "/")


def test_an_old_server_rejects_the_media_type_of_a_new_client() -> None:
    accept = "application/vnd.elasticsearch+json; compatible-with=9"
    with OldElasticsearch() as old:
        connection = Server(old.url).connect()
        connection.request("GET", "/", headers={"Accept": accept})
        response = connection.getresponse()
        error = json.loads(response.read())["error"]
        connection.close()
        assert Server(old.url).request("GET", "/").json()["version"]["number"] == "8.17.0"
    assert response.status == 400
    assert error["type"] == "media_type_header_exception"
    assert "must be either version 8 or 7, but found 9" in error["caused_by"]["reason"]


def test_the_proxy_loses_answers_and_repeats_requests(fault_proxy: FaultProxy, index_prefix: str) -> None:
    server = Server(fault_proxy.url)
    fault_proxy.lose(path="/_bulk")
    with pytest.raises(http.client.RemoteDisconnected):
        server.request("POST", "/_bulk", bulk_lines(index_prefix, "1"), timeout=60)
    fault_proxy.lose(path="/_bulk", status=504)
    assert server.request("POST", "/_bulk", bulk_lines(index_prefix, "2"), timeout=60).status == 504
    fault_proxy.double(path="/_doc$")
    server.request("POST", f"/{index_prefix}/_doc", {"a": 1}, timeout=60)
    server.request("POST", f"/{index_prefix}/_refresh", timeout=60)
    assert server.request("GET", f"/{index_prefix}/_count").json()["count"] == 4


def test_random_faults_of_the_proxy_depend_on_the_seed(fault_proxy: FaultProxy) -> None:
    server = Server(fault_proxy.url)

    def outcomes(seed: int) -> list[str]:
        fault_proxy.heal()
        fault_proxy.disturb(0.5, seed, seconds=0.1)
        results = []
        for _ in range(30):
            try:
                answer = server.request("GET", "/")
                results.append(f"{answer.status} {len(answer.body)}")
            except (OSError, http.client.HTTPException) as error:
                results.append(type(error).__name__)
        return results

    first = outcomes(7)
    assert first == outcomes(7) != outcomes(8)
    assert len(set(first)) > 3 and 8 < fault_proxy.disturbed < 82
