"""A real Elasticsearch for tests and developers.

    shared.py         where the server comes from: SEARCHAPP_TEST_URL, or a node that several processes share
    node.py           one node: configure, start, wait, stop, kill, restart, close
    cluster.py        several nodes that make one cluster
    distribution.py   the genuine distribution, fetched once into a cache folder, and a Java that is new enough
    supervisor.py     ends the server when all who use it are gone
    rest.py           plain HTTP requests, so that the starter does not depend on the client under test
    faults.py         a proxy that injects faults, other proxies, and stand-ins for servers that cannot be real

`python -m tests.server` starts a node to work with; the fixtures in `tests/conftest.py` start one for a
session. Linux and macOS.
"""
