"""A real Elasticsearch for tests and developers.

    shared.py         the server of the tests: SEARCHAPP_TEST_URL, or a node that several processes share
    node.py           a node: configure, start, wait, stop, kill, restart, close
    cluster.py        a cluster of several nodes
    distribution.py   the official distribution, downloaded into a cache folder, and a Java that is new enough
    supervisor.py     ends the server after all processes that use it
    rest.py           plain HTTP requests, independent of the client under test
    faults.py         a proxy that injects faults, other proxies, and stand-ins for other servers

`python -m tests.server` starts a node for developers; the fixtures in `tests/conftest.py` start one for a
session. The package supports Linux and macOS.
"""
