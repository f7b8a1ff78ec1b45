"""What happens to searchapp when something happens to a cluster: three real nodes, which are killed, upgraded, filled.

    conftest.py            the nodes, which all tests here share, and commands that have the addresses of all of them
    collection.py          a small task, whose run on the embedded engine is what every disturbed run must be
    meanwhile.py           something done when the n-th request of a kind has been answered
    test_engine.py         the engine, while another node than the one it asks is lost
    test_kills.py          a node that is asked killed while commands index, rank and share judgments, again and again
    test_faults.py         slow and full nodes, aliases that others move
    test_red.py            an index that has lost a shard
    test_snapshots.py      an older state that somebody brings back
    test_certificates.py   a node that shows another certificate
    test_rolling.py        nodes that are restarted, or upgraded from version 8, one after the other
    test_comparison.py     runs of real data, byte by byte those of the embedded engine
    test_search_screen.py  the search screen

`make test-cluster` runs all of it, `make test` the short form.
"""
