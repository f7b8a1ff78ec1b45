"""Searchapp during failures and upgrades of a cluster of three real nodes.

    conftest.py            the nodes, which all tests share, and commands with the addresses of all nodes
    collection.py          a small task, whose run on the embedded engine every disturbed run must equal
    triggers.py            an action after the n-th request of a kind
    test_engine.py         the engine during the loss of a node other than the one that gets its requests
    test_kills.py          repeated kills of a node while commands index, rank and share judgments
    test_faults.py         slow and full nodes, aliases moved by other users
    test_red.py            an index without one of its shards
    test_snapshots.py      an older state restored from a snapshot
    test_certificates.py   a node with a new certificate
    test_rolling.py        rolling restarts, and upgrades from version 8
    test_comparison.py     runs of real data, equal to those of the embedded engine
    test_search_screen.py  the search screen

`make test-cluster` runs all tests, `make test` the short profile.
"""
