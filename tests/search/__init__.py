"""Search for cases in which the two engines differ.

    python -m tests.search --queries 100000 --analyzers 100000 --seed 1

Cases are drawn from a seeded `random.Random`, so that a seed gives the same cases on every machine. A case is JSON;
a case with a difference is reduced before it is reported (`reducing`). Pytest runs a short search, `make test-full` a
longer one.

    drawing          random values, lists and settings
    reducing         reduction of cases
    texts            words, characters and texts
    pieces           settings of char filters, tokenizers, token filters
    analyzers        analyzers on texts, against `_analyze`
    mappings         mappings and documents
    random_bodies    random queries and search bodies
    queries          queries on documents: hits, sources, highlights, explanations
    comparing        outcomes of bodies, and their first difference
    chosen_bodies    bodies that are recorded in addition to random ones
    options          the parameters of each query, for `chosen_bodies`
    recording        answers of a server in files: `python -m tests.search.recording`
    typed_queries    queries as users type them, on the samples
"""
