"""The search for counterexamples to the promise that both engines give the same.

    python -m tests.search --queries 100000 --analyzers 100000 --seed 1

Cases are drawn from a seeded `random.Random`, so that a seed names the same cases everywhere. A case is plain JSON:
what differs is made as small as possible before it is reported (`reducing`). Pytest runs a short search,
`make test-full` a longer one.

    drawing     values, lists and settings by chance
    reducing    the smallest case that still differs
    texts       words, characters and texts
    pieces      settings of char filters, tokenizers, token filters
    analyzers   analyzers on texts, against `_analyze`
    mappings    mappings and documents
    asking      queries and search bodies
    queries     queries on documents: hits, sources, highlights, explanations
    comparing   what an engine says to a body, and where two of them differ first
    chosen      bodies that are recorded beside random ones
    options     the parameters of each query, for `chosen`
    recording   answers of a server in files: `python -m tests.search.recording`
    typed       what people type, on the samples
"""
