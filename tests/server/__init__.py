"""A real Elasticsearch for tests and developers, with Docker or without.

    choice.py         where the server comes from: SEARCHAPP_TEST_URL, Docker, or the unpacked distribution
    node.py           one node: configure, start, wait, stop, kill, restart, close
    docker.py         how a node runs as a container of the official image
    unpacked.py       how a node runs from an unpacked distribution
    distribution.py   the genuine distribution, fetched once into a cache folder
    java.py           a Java that is new enough
    supervisor.py     ends the server when whoever started it is gone
    errors.py         unavailable (skip) or failed (never skip)
    rest.py           plain HTTP requests, so that the starter does not depend on the client under test
    proxy.py          an HTTP proxy between a client and a server
    serverless.py     a proxy that refuses what a serverless project refuses
    faults.py         a proxy that injects faults, and stand-ins for servers that cannot be real

`python -m tests.server` starts a node to work with; the fixtures in `tests/conftest.py` start one for a
session. Linux and macOS.
"""
