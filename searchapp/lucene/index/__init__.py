"""The index: how documents become files, and how these are opened.

mapping         fields of a create-index body, and their values in a document
index_settings  the canonical form of an index's settings
writer          new documents and merged segments in, a segment and its manifest out
postings        tokens of a field to sorted runs, runs to postings, in bounded memory
segments        the merge policy: which segments a changed collection keeps, merges and adds
versions        which version is live, and the lock of its builder
layout          the files of a version: manifest, segments, digests, damage, verification
arrays          numbers in `.npy` files, verified by block, and the terms made of them
impacts         the bound of each posting's share of a score, in one byte
documents       ids and sources in SQLite
reader          an index opened for searching: its segments and their fields"""
