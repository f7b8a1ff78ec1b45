"""The leaf queries, one in each module: its value, its reader, and all that the engine asks of it (`queries.leaf`).

A new one is a module here, and a name in `queries.readers` if the DSL has a query of its own for it. Those that only
analyzed text comes to have no reader: see `queries.fulltext`.
"""
